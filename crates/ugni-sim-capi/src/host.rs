//! This host: the address of its NIC.

use std::net::IpAddr;

use gasworks_sock::HostDescription;

/// Bits of an address, on either chip.
const ADDRESS_BITS: u32 = 18;

/// The address of the NIC of this host. It follows from the first IPv4 address at which others reach the host, so that hosts
/// need nobody to number them; those of a job are in one network, whose hosts differ in the bits that there are for it.
///
/// # Errors
/// Why the host cannot be described.
pub fn address() -> Result<u32, String> {
    let host = HostDescription::local().map_err(|e| e.to_string())?;
    let first = host.interfaces().iter().find_map(|interface| match interface.address {
        IpAddr::V4(address) => Some(address.to_bits()),
        IpAddr::V6(_) => None,
    });
    let address = first.ok_or_else(|| "this host has no IPv4 address".to_owned())?;
    Ok(address & ((1 << ADDRESS_BITS) - 1))
}
