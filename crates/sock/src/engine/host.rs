//! The description of a host: a line of text that one process gives to another, by which that one can connect.
//!
//! `v1 host=NAME;port=4000;id=0123abcd;prefer=host;if=eth0,inet,10.0.0.2;if=eth0,inet6,2001:db8::2;if=lo,inet,127.0.0.1`
//!
//! `port` and `prefer` may be absent, and so may all interfaces: then the name alone counts. `id` is the same for
//! processes that share a loopback interface. The order of the interfaces is the describer's, best first; who connects
//! puts those before the others that lie in a network it is in itself.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

use super::settings;
use crate::{Address, Class, Error};

/// The most bytes of a description.
pub const MOST_BYTES: usize = 4096;
/// The most interfaces of a description.
pub const MOST_INTERFACES: usize = 64;
const MOST_NAME: usize = 253;
const DESCRIBE: &str = "describe this host";
const PARSE: &str = "read a host description";

/// How a host can be reached (`MPIDU_Sock_get_host_description`). Its text form is what `Display` writes and
/// `parse` reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescription {
    name: String,
    port: Option<u16>,
    id: Option<u64>,
    prefer_name: bool,
    interfaces: Vec<Interface>,
}

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name that its host has for it.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}

impl HostDescription {
    /// This host: every interface that is up, IPv4 and IPv6, best first. Which, and whether a name comes before them, is
    /// said by the settings `GASWORKS_INTERFACES` and `GASWORKS_INTERFACE_HOSTNAME`.
    ///
    /// # Errors
    /// `BadHostname` if a name cannot stand in a description, `BadHost` if the filter leaves no interface.
    pub fn local() -> Result<Self, Error> {
        let _span = span!("sock_get_host_description");
        let (filter, explicit) = settings::description();
        Self::describe(&filter, &explicit)
    }

    /// [`local`](Self::local), with the values of the two settings; either may be empty.
    pub fn describe(filter: &str, explicit: &str) -> Result<Self, Error> {
        let name = match explicit {
            "" => host_name()?,
            name => name.to_owned(),
        };
        if !is_name(&name) {
            return Err(bad_name(DESCRIBE, &name));
        }
        let mut interfaces: Vec<Interface> =
            own_networks()?.into_iter().map(|network| network.interface).collect();
        let all = interfaces.len();
        interfaces.retain(|interface| chosen(filter, &interface.name));
        if interfaces.is_empty() && all > 0 {
            let why = format!(
                "GASWORKS_INTERFACES={filter} leaves none of {all} addresses; name an interface that is up"
            );
            return Err(Error::new(Class::BadHost, DESCRIBE).cause(why));
        }
        interfaces.sort_by_key(grade);
        interfaces.truncate(MOST_INTERFACES);
        Ok(Self { name, port: None, id: Some(host_id()), prefer_name: !explicit.is_empty(), interfaces })
    }

    /// A host of which only a name or an address is known (`MPIDU_Sock_hostname_to_host_description`). A name is resolved
    /// when a connect is posted, which waits for the resolver.
    pub fn named(name: &str) -> Result<Self, Error> {
        let _span = span!("sock_hostname_to_host_description");
        if !is_name(name) {
            return Err(bad_name(DESCRIBE, name));
        }
        let (port, id, interfaces) = (None, None, Vec::new());
        Ok(Self { name: name.to_owned(), port, id, prefer_name: false, interfaces })
    }

    /// The same host, and where on it to connect to.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port).filter(|port| *port != 0);
        self
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port, if the description has one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Its interfaces, best first.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Whether a process with this description shares the loopback interface with this one.
    pub fn is_here(&self) -> bool {
        self.id.is_some_and(|id| id == host_id())
    }

    /// Reads a description.
    ///
    /// # Errors
    /// `BadHost`, with what is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|why| {
            let shown: String = text.chars().take(60).collect();
            Error::new(Class::BadHost, PARSE).cause(format!("{why} in {shown:?}"))
        })
    }

    /// Where to connect to, best first: a name that was given by hand, addresses in a network that this host is in too,
    /// then the others. A loopback address only if the host is this one.
    ///
    /// # Errors
    /// `BadPort` without a port, `BadHostname` if the name is all there is and does not resolve, `BadHost` if no address
    /// can be reached from here.
    pub fn addresses(&self, port: u16) -> Result<Vec<Address>, Error> {
        const OPERATION: &str = "find the addresses of a host";
        let port = Some(port).filter(|port| *port != 0).or(self.port).ok_or_else(|| {
            Error::new(Class::BadPort, OPERATION).cause(format!("no port was given for {}", self.name))
        })?;
        let mut found = Vec::new();
        if self.prefer_name || self.interfaces.is_empty() {
            match resolve(&self.name, port) {
                Ok(resolved) => found.extend(resolved),
                Err(why) if self.interfaces.is_empty() => {
                    let why = format!("{} does not resolve: {why}", self.name);
                    return Err(Error::new(Class::BadHostname, OPERATION).cause(why));
                }
                Err(_) => {}
            }
        }
        let (own, here) = (own_networks()?, self.is_here());
        let reachable =
            self.interfaces.iter().map(|i| i.address).filter(|address| here || !address.is_loopback());
        let (near, far): (Vec<_>, Vec<_>) =
            reachable.partition(|address| own.iter().any(|network| network.contains(*address)));
        found.extend(near.into_iter().chain(far).map(|address| SocketAddr::new(address, port)));
        let mut addresses: Vec<Address> = Vec::new();
        for address in found.into_iter().map(Address::Inet) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            let why = format!("{} has only loopback addresses, and is another host", self.name);
            return Err(Error::new(Class::BadHost, OPERATION).cause(why));
        }
        Ok(addresses)
    }
}

impl fmt::Display for HostDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1 host={}", self.name)?;
        if let Some(port) = self.port {
            write!(f, ";port={port}")?;
        }
        if let Some(id) = self.id {
            write!(f, ";id={id:016x}")?;
        }
        if self.prefer_name {
            f.write_str(";prefer=host")?;
        }
        for Interface { name, address } in &self.interfaces {
            let family = if address.is_ipv4() { "inet" } else { "inet6" };
            write!(f, ";if={name},{family},{address}")?;
        }
        Ok(())
    }
}

impl FromStr for HostDescription {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

/// Strict: the fields in their order, each in the one form in which it is written.
fn parse(text: &str) -> Result<HostDescription, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("{} bytes, at most {MOST_BYTES} are allowed,", text.len()));
    }
    let fields = text.strip_prefix("v1 ").ok_or("no \"v1 \" at the beginning")?;
    let mut fields = fields.split(';').peekable();
    let mut field =
        |key: &str| fields.next_if(|field| field.starts_with(key)).map(|field| &field[key.len()..]);
    let name = field("host=").filter(|name| is_name(name)).ok_or("no valid host=")?.to_owned();
    let canonical = |port: &&str| !port.starts_with('0') && port.bytes().all(|b| b.is_ascii_digit());
    let port = field("port=")
        .map(|port| Some(port).filter(canonical).and_then(|port| port.parse().ok()).ok_or("no valid port="));
    let hex = |id: &&str| id.len() == 16 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let id = field("id=")
        .map(|id| Some(id).filter(hex).and_then(|id| u64::from_str_radix(id, 16).ok()).ok_or("no valid id="));
    let prefer = field("prefer=").map(|what| (what == "host").then_some(true).ok_or("no valid prefer="));
    let mut interfaces = Vec::new();
    for field in fields {
        if interfaces.len() == MOST_INTERFACES {
            return Err(format!("more than {MOST_INTERFACES} interfaces"));
        }
        interfaces.push(parse_interface(field).ok_or_else(|| format!("no valid field {field:?}"))?);
    }
    let (port, id) = (port.transpose()?, id.transpose()?);
    Ok(HostDescription { name, port, id, prefer_name: prefer.transpose()?.unwrap_or(false), interfaces })
}

fn parse_interface(field: &str) -> Option<Interface> {
    let mut parts = field.strip_prefix("if=")?.split(',');
    let (name, family, text) = (parts.next()?, parts.next()?, parts.next()?);
    let address = match family {
        "inet" => IpAddr::V4(text.parse::<Ipv4Addr>().ok()?),
        "inet6" => IpAddr::V6(text.parse::<Ipv6Addr>().ok()?),
        _ => return None,
    };
    let good = parts.next().is_none() && is_interface(name) && address.to_string() == text && usable(address);
    good.then(|| Interface { name: name.to_owned(), address })
}

/// A host name, or an address in place of one.
fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':');
    (1..=MOST_NAME).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(allowed)
}

/// An interface name: the kernel allows more, but not what would end a field.
fn is_interface(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b',' | b';' | b'/');
    (1..=15).contains(&name.len()) && name.bytes().all(allowed)
}

/// Whether one can connect to it at all, without saying through which interface.
fn usable(address: IpAddr) -> bool {
    let local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !local && !address.is_unspecified() && !address.is_multicast()
}

fn bad_name(operation: &'static str, name: &str) -> Error {
    let why = format!("{name:?} is no host name: give letters, digits, and . - _ :, at most {MOST_NAME}");
    Error::new(Class::BadHostname, operation).cause(why)
}

/// The order of a host's addresses: global, private, then those of bridges to containers and virtual machines, which
/// look like networks and lead nowhere, and loopback last; IPv4 before IPv6 of the same kind.
fn grade(interface: &Interface) -> (u8, bool) {
    const BRIDGES: &[&str] = &["docker", "virbr", "br-", "veth", "cni", "lxc", "podman", "flannel", "cali"];
    let address = interface.address;
    let private = match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => v6.is_unique_local(),
    };
    let class = if address.is_loopback() {
        3
    } else if BRIDGES.iter().any(|bridge| interface.name.starts_with(bridge)) {
        2
    } else {
        u8::from(private)
    };
    (class, address.is_ipv6())
}

/// Whether a filter such as `eth0,ib*` or `^docker0` admits an interface.
fn chosen(filter: &str, name: &str) -> bool {
    let (wanted, list) = match filter.strip_prefix('^') {
        Some(rest) => (false, rest),
        None => (true, filter),
    };
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    let listed = list.split(',').map(str::trim).filter(|p| !p.is_empty()).any(matches);
    filter.is_empty() || listed == wanted
}

/// An address of this host, and the network it is in.
struct Network {
    interface: Interface,
    mask: Option<IpAddr>,
}

impl Network {
    fn contains(&self, other: IpAddr) -> bool {
        let masked = |address: u128, mask: u128| address & mask;
        match (self.interface.address, self.mask, other) {
            (IpAddr::V4(own), Some(IpAddr::V4(mask)), IpAddr::V4(other)) => {
                let mask = u128::from(mask.to_bits());
                masked(own.to_bits().into(), mask) == masked(other.to_bits().into(), mask)
            }
            (IpAddr::V6(own), Some(IpAddr::V6(mask)), IpAddr::V6(other)) => {
                masked(own.to_bits(), mask.to_bits()) == masked(other.to_bits(), mask.to_bits())
            }
            _ => false,
        }
    }
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// The addresses of all interfaces that are up.
fn own_networks() -> Result<Vec<Network>, Error> {
    let all = getifaddrs().map_err(|e| Error::new(Class::Fail, "list the network interfaces").errno(e))?;
    let up = all.filter(|i| i.flags.contains(InterfaceFlags::IFF_UP));
    let mut networks = Vec::new();
    for found in up.filter(|i| is_interface(&i.interface_name)) {
        let Some(address) = found.address.as_ref().and_then(ip_of).filter(|a| usable(*a)) else { continue };
        let interface = Interface { name: found.interface_name, address };
        networks.push(Network { interface, mask: found.netmask.as_ref().and_then(ip_of) });
    }
    Ok(networks)
}

fn host_name() -> Result<String, Error> {
    let fail = |e| Error::new(Class::BadHostname, DESCRIBE).errno(e);
    Ok(nix::unistd::gethostname().map_err(fail)?.to_string_lossy().into_owned())
}

fn resolve(name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
        Err(_) => Ok((name, port).to_socket_addrs()?.collect()),
    }
}

/// Tells apart who has another loopback interface: another machine, or another network name space of this one.
fn host_id() -> u64 {
    use std::hash::Hasher;
    use std::os::unix::fs::MetadataExt;
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino());
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.write(&boot);
    hash.write(&space.to_le_bytes());
    hash.finish()
}

/// FNV-1a: the same in every program, unlike the standard library's hash.
struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "v1 host=node-1.example;port=4000;id=0123456789abcdef;prefer=host;if=eth0,inet,10.0.0.2;\
                        if=eth0,inet6,2001:db8::2;if=lo,inet,127.0.0.1";

    #[test]
    fn what_is_written_is_read() {
        for text in [FULL, "v1 host=n", "v1 host=::1;port=1", "v1 host=n;if=eth0:1,inet,1.2.3.4"] {
            assert_eq!(HostDescription::parse(text).expect(text).to_string(), text);
        }
        let local = HostDescription::describe("", "").expect("this host").with_port(7);
        assert!(local.is_here() && local.port() == Some(7) && local.interfaces().len() <= MOST_INTERFACES);
        assert_eq!(local.to_string().parse::<HostDescription>().expect("read again"), local);
    }

    #[test]
    fn nothing_but_the_one_form_is_read() {
        let long = format!("v1 host={}", "a".repeat(MOST_BYTES));
        let many = format!("v1 host=n{}", ";if=e,inet,1.2.3.4".repeat(MOST_INTERFACES + 1));
        for bad in [
            "",
            "v1",
            "v2 host=n",
            "v1 host=",
            "v1 host=a b",
            "v1 host=-n",
            "v1 host=n;",
            "v1 host=n;port=0",
            "v1 host=n;port=04",
            "v1 host=n;port=+4",
            "v1 host=n;port=65536",
            "v1 host=n;id=1",
            "v1 host=n;id=0123456789ABCDEF",
            "v1 host=n;prefer=if",
            "v1 host=n;id=0123456789abcdef;port=1",
            "v1 host=n;if=eth0,inet,10.0.0.02",
            "v1 host=n;if=eth0,inet,::1",
            "v1 host=n;if=eth0,inet6,0:0:0:0:0:0:0:1",
            "v1 host=n;if=eth0,inet,10.0.0.2,x",
            "v1 host=n;if=,inet,10.0.0.2",
            "v1 host=n;if=eth0,inet,0.0.0.0",
            "v1 host=n;if=eth0,inet6,fe80::1",
            "v1 host=n;if=eth0,inet,224.0.0.1",
            "v1 host=n;host=m",
            "v1 host=n\n",
            &long,
            &many,
        ] {
            let error = HostDescription::parse(bad).expect_err(bad);
            assert_eq!(error.class(), Class::BadHost, "{bad}");
        }
    }

    #[test]
    fn the_best_address_comes_first() {
        let interface = |name: &str, address: &str| Interface {
            name: name.into(),
            address: address.parse().expect("an address"),
        };
        let mut all = [
            interface("lo", "127.0.0.1"),
            interface("docker0", "172.17.0.1"),
            interface("eth1", "10.0.0.2"),
            interface("eth0", "2001:db8::2"),
            interface("eth0", "198.51.100.7"),
        ];
        all.sort_by_key(grade);
        let order: Vec<_> = all.iter().map(|i| i.address.to_string()).collect();
        assert_eq!(order, ["198.51.100.7", "2001:db8::2", "10.0.0.2", "172.17.0.1", "127.0.0.1"]);
    }

    #[test]
    fn filters_admit_by_name() {
        let cases =
            [("", true), ("eth0", true), ("lo,eth*", true), ("ib*", false), ("^eth0", false), ("^lo", true)];
        for (filter, admitted) in cases {
            assert_eq!(chosen(filter, "eth0"), admitted, "{filter}");
        }
        let error = HostDescription::describe("no-such", "").expect_err("nothing is left");
        assert_eq!(error.class(), Class::BadHost);
        assert_eq!(HostDescription::describe("", "a b").expect_err("a name").class(), Class::BadHostname);
    }

    #[test]
    fn loopback_is_for_this_host_only() {
        let mut host = HostDescription::parse("v1 host=n;if=lo,inet,127.0.0.1").expect("a description");
        assert_eq!(host.addresses(1).expect_err("another host").class(), Class::BadHost);
        host.id = Some(host_id());
        assert_eq!(host.addresses(9).expect("this host"), [Address::Inet(([127, 0, 0, 1], 9).into())]);
        assert_eq!(host.addresses(0).expect_err("no port").class(), Class::BadPort);
        let named = HostDescription::named("127.0.0.1").expect("a name");
        assert_eq!(named.addresses(5).expect("resolved"), [Address::Inet(([127, 0, 0, 1], 5).into())]);
        let preferred = HostDescription::describe("lo", "127.0.0.7").expect("this host");
        let first = preferred.addresses(5).expect("addresses").remove(0);
        assert_eq!(first, Address::Inet(([127, 0, 0, 7], 5).into()));
    }

    #[test]
    fn networks_contain_their_neighbours() {
        let network = |address: &str, mask: &str| Network {
            interface: Interface { name: "e".into(), address: address.parse().expect("an address") },
            mask: mask.parse().ok(),
        };
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let four = network("10.1.2.3", "255.255.0.0");
        assert!(four.contains(ip("10.1.9.9")) && !four.contains(ip("10.2.2.3")) && !four.contains(ip("::1")));
        let six = network("2001:db8:1::1", "ffff:ffff:ffff::");
        assert!(six.contains(ip("2001:db8:1:7::9")) && !six.contains(ip("2001:db8:2::1")));
    }
}
