//! This host: the address of its NIC.

use std::net::IpAddr;

use gasworks_os::settings::{Kind, Setting};
use gasworks_sock::HostDescription;

/// How many nodes a job on one host is to find itself on.
const NODES: Setting = Setting {
    name: "GASWORKS_UGNI_NODES",
    aliases: &[],
    kind: Kind::Number { min: 1, max: 1024 },
    default: "1",
    unit: "",
    meaning: "Over how many addresses of NICs the ranks of a host are spread, for jobs on one host",
    reader: "ugni-sim",
};

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

/// The address of the NIC of a rank of this many on the host with this address: as the setting says, several nodes are played, each
/// with as many ranks as the others and one more at most, in their order.
///
/// # Errors
/// The setting is wrong.
pub fn of_rank(address: u32, rank: u32, size: u32) -> Result<u32, String> {
    let nodes = NODES.number().map_err(|e| e.to_string())?.unwrap_or(1);
    Ok(spread(address, nodes, rank, size))
}

fn spread(address: u32, nodes: u64, rank: u32, size: u32) -> u32 {
    let node = u64::from(rank) * nodes.min(size.into()) / u64::from(size.max(1));
    (address + node as u32) & ((1 << ADDRESS_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_spread_evenly_over_nodes() {
        let nodes = |nodes, size| (0..size).map(|rank| spread(5, nodes, rank, size) - 5).collect::<Vec<_>>();
        assert_eq!(nodes(1, 4), [0; 4]);
        assert_eq!(nodes(2, 5), [0, 0, 0, 1, 1]);
        assert_eq!(nodes(3, 8), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(nodes(1024, 3), [0, 1, 2]);
        assert_eq!(spread((1 << ADDRESS_BITS) - 1, 2, 1, 2), 0, "addresses have so many bits");
    }
}
