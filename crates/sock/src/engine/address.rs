//! Addresses of both families, and sockets for them.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, UnixAddr, sockopt,
};

use crate::{Class, Error, Options};

/// Where to listen, or whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP over IPv4 or IPv6; port 0 to listen on: one of the set's range, or one that the system chooses.
    Inet(SocketAddr),
    /// A socket in the file system. Who listens removes the file.
    Path(PathBuf),
    /// A socket in the abstract name space, which leaves no file behind.
    Abstract(Vec<u8>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(f),
            Address::Path(path) => path.display().fmt(f),
            Address::Abstract(name) => write!(f, "@{}", name.escape_ascii()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Inet(address)
    }
}

enum System {
    Inet(SockaddrStorage),
    Unix(UnixAddr),
}

impl Address {
    fn system(&self) -> nix::Result<System> {
        Ok(match self {
            Address::Inet(address) => System::Inet((*address).into()),
            Address::Path(path) => System::Unix(UnixAddr::new(path)?),
            Address::Abstract(name) => System::Unix(UnixAddr::new_abstract(name)?),
        })
    }

    fn family(&self) -> AddressFamily {
        match self {
            Address::Inet(SocketAddr::V4(_)) => AddressFamily::Inet,
            Address::Inet(SocketAddr::V6(_)) => AddressFamily::Inet6,
            _ => AddressFamily::Unix,
        }
    }

    fn with_port(&self, port: u16) -> Self {
        match self {
            Address::Inet(address) => Address::Inet(SocketAddr::new(address.ip(), port)),
            other => other.clone(),
        }
    }

    /// The address of this family that any interface has, with a port.
    fn any(&self, port: u16) -> Self {
        use std::net::{Ipv4Addr, Ipv6Addr};
        match self {
            Address::Inet(SocketAddr::V6(_)) => {
                Address::Inet(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port))
            }
            _ => Address::Inet(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
        }
    }
}

impl System {
    fn as_dyn(&self) -> &dyn SockaddrLike {
        match self {
            System::Inet(address) => address,
            System::Unix(address) => address,
        }
    }
}

/// A new stream socket of the address's family, as `options` want it.
fn new_socket(address: &Address, options: &Options) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket::socket(address.family(), SockType::Stream, flags, None)?;
    if let Some(bytes) = options.buffer {
        socket::setsockopt(&fd, sockopt::SndBuf, &bytes)?;
        socket::setsockopt(&fd, sockopt::RcvBuf, &bytes)?;
    }
    if let Address::Inet(inet) = address {
        // What is accepted has these from its listener.
        socket::setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
        socket::setsockopt(&fd, sockopt::KeepAlive, &options.keepalive)?;
        if let Some(limit) = options.unacknowledged {
            let ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
            socket::setsockopt(&fd, sockopt::TcpUserTimeout, &ms)?;
        }
        if inet.is_ipv6() {
            // "Any address" means both families; an address of its own means that one.
            socket::setsockopt(&fd, sockopt::Ipv6V6Only, &!inet.ip().is_unspecified())?;
        }
    }
    Ok(fd)
}

/// The ports to try, beginning anywhere in the range, so that many processes do not all begin with the same.
fn ports(range: &std::ops::RangeInclusive<u16>, start: usize) -> impl Iterator<Item = u16> {
    let (low, count) = (usize::from(*range.start()), range.len());
    (0..count).map(move |i| (low + (start + i) % count) as u16)
}

/// A number that differs between processes and calls.
fn anywhere() -> usize {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.subsec_nanos() as usize / 64).wrapping_add(std::process::id() as usize)
}

fn none_free(operation: &'static str, range: &std::ops::RangeInclusive<u16>, errno: Errno) -> Error {
    let (low, high) = (range.start(), range.end());
    Error::new(Class::BadPort, operation)
        .errno(errno)
        .cause(format!("no port from {low} to {high} is free; give a wider range"))
}

/// Listens; the socket and its port (0 for a Unix socket).
pub(crate) fn listen(address: &Address, options: &Options) -> Result<(OwnedFd, u16), Error> {
    const OPERATION: &str = "listen";
    let fail = |e: Errno| {
        Error::new(Class::of_setup(e), OPERATION).errno(e).cause(format!("cannot listen on {address}"))
    };
    let backlog = Backlog::new(options.backlog.clamp(1, 4096)).map_err(fail)?;
    let attempt = |address: &Address| -> nix::Result<OwnedFd> {
        let fd = new_socket(address, options)?;
        if matches!(address, Address::Inet(_)) {
            // A port whose last connection has just ended may be taken again.
            socket::setsockopt(&fd, sockopt::ReuseAddr, &true)?;
        }
        socket::bind(fd.as_raw_fd(), address.system()?.as_dyn())?;
        // Another may listen on the port since: then this fails, like the call above, with "address in use".
        socket::listen(&fd, backlog)?;
        Ok(fd)
    };
    let range = match (address, &options.ports) {
        (Address::Inet(inet), Some(range)) if inet.port() == 0 => range,
        _ => {
            let fd = attempt(address).map_err(fail)?;
            let port = port_of(&fd).map_err(fail)?;
            return Ok((fd, port));
        }
    };
    let mut last = Errno::EADDRINUSE;
    for port in ports(range, anywhere()) {
        match attempt(&address.with_port(port)) {
            Ok(fd) => return Ok((fd, port)),
            Err(e @ (Errno::EADDRINUSE | Errno::EACCES)) => last = e,
            Err(e) => return Err(fail(e)),
        }
    }
    Err(none_free(OPERATION, range, last))
}

fn port_of(fd: &OwnedFd) -> nix::Result<u16> {
    let own: SockaddrStorage = socket::getsockname(fd.as_raw_fd())?;
    Ok(own
        .as_sockaddr_in()
        .map(|a| a.port())
        .or_else(|| own.as_sockaddr_in6().map(|a| a.port()))
        .unwrap_or_default())
}

/// Who is at the other end of a TCP connection.
pub(crate) fn peer_of(fd: &OwnedFd) -> nix::Result<Option<SocketAddr>> {
    let peer: SockaddrStorage = socket::getpeername(fd.as_raw_fd())?;
    let v4 = peer.as_sockaddr_in().map(|a| SocketAddr::from(*a));
    let v6 = peer.as_sockaddr_in6().map(|a| SocketAddr::from(*a));
    // Who came by IPv4 to a socket for both is known by that address.
    Ok(v4.or_else(|| v6.map(|peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()))))
}

/// Begins to connect; the flag: it is connected already.
pub(crate) fn connect(address: &Address, options: &Options) -> Result<(OwnedFd, bool), Failure> {
    let attempt = |port: Option<u16>| -> nix::Result<(OwnedFd, bool)> {
        let fd = new_socket(address, options)?;
        if let Some(port) = port {
            socket::setsockopt(&fd, sockopt::ReuseAddr, &true)?;
            socket::bind(fd.as_raw_fd(), address.any(port).system()?.as_dyn())?;
        }
        match socket::connect(fd.as_raw_fd(), address.system()?.as_dyn()) {
            Ok(()) => Ok((fd, true)),
            // An interrupted connect goes on like one that does not wait.
            Err(Errno::EINPROGRESS | Errno::EINTR) => Ok((fd, false)),
            Err(e) => Err(e),
        }
    };
    let range = match (address, &options.ports) {
        (Address::Inet(_), Some(range)) => range,
        _ => return attempt(None).map_err(Failure::System),
    };
    for port in ports(range, anywhere()) {
        match attempt(Some(port)) {
            // Taken, or connected from here to the same address already.
            Err(Errno::EADDRINUSE | Errno::EADDRNOTAVAIL | Errno::EACCES) => {}
            other => return other.map_err(Failure::System),
        }
    }
    Err(Failure::NoPort(none_free("connect", range, Errno::EADDRINUSE)))
}

/// Why one address failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The system says so.
    System(Errno),
    /// It did not answer within the limit.
    Silent,
    /// The port range is used up.
    NoPort(Error),
}

/// How an attempt stands.
pub(crate) enum Standing {
    Connected,
    Waiting,
    Failed(Errno),
}

/// Asks the system; never trusts that readiness alone means success.
pub(crate) fn standing(fd: &OwnedFd) -> Standing {
    match socket::getsockopt(fd, sockopt::SocketError) {
        Ok(0) => {}
        Ok(e) => return Standing::Failed(Errno::from_raw(e)),
        Err(e) => return Standing::Failed(e),
    }
    match socket::getpeername::<SockaddrStorage>(fd.as_raw_fd()) {
        Err(Errno::ENOTCONN) => Standing::Waiting,
        Err(e) => Standing::Failed(e),
        Ok(_) => Standing::Connected,
    }
}

/// Resets a connection: the peer learns it at once, and nothing is sent any more.
pub(crate) fn reset(fd: OwnedFd) {
    let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    // A socket without linger, such as a Unix one, is closed, which its peer learns as well.
    let _ = socket::setsockopt(&fd, sockopt::Linger, &now);
}
