//! How this process gets into its job: which launcher there is, and by which protocol it is spoken to.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use gasworks_os::inherited;

use crate::client::{self, Stream, Wire};
use crate::dialect::Dialect;
use crate::settings::{self, BOOTSTRAP, FD, ID, PORT, RANK};
use crate::store::Joined;
use crate::takeover::{self, Takeover};
use crate::{BootstrapError, cray, pmix};

/// What a rank knows before it has spoken with its launcher.
#[derive(Debug)]
pub struct Start {
    /// The way in.
    pub way: Way,
    /// How long to wait for an answer.
    pub timeout: Duration,
}

/// A way into a job.
#[derive(Debug)]
#[non_exhaustive]
pub enum Way {
    /// PMI-1 or PMI-2 over a socket.
    Wire(Wire),
    /// PMIx, by the launcher's library.
    Pmix(pmix::Entry),
    /// Cray's PMI, by its libraries; the rank is what the launcher's variable says.
    Cray {
        /// The rank.
        rank: u32,
    },
    /// A job that something else in this process is in.
    Takeover(Takeover),
}

/// What a launcher has told a rank before anybody has asked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The rank.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
    /// The name of the job.
    pub job: String,
    /// How many of the ranks are on this host.
    pub here: u32,
}

impl Told {
    /// For a library that is Cray's PMI to others; `None` where it was not told all of that, by the descriptor that the launcher has
    /// made for it.
    ///
    /// # Errors
    /// What it was told makes no sense.
    pub fn as_cray() -> Result<Option<Self>, BootstrapError> {
        if FD.raw().is_none() {
            return Ok(None);
        }
        let here = settings::HERE.number()?.map(narrow);
        let told = Start::as_cray()?.and_then(|start| match start.way {
            Way::Wire(Wire { stream: Stream::Descriptor(_), rank, size, job, .. }) => {
                Some(Self { rank, size: size?, job: job?, here: here? })
            }
            _ => None,
        });
        Ok(told.filter(|told| told.rank < told.size && told.here <= told.size))
    }
}

impl Start {
    /// Introduces this rank.
    pub(crate) fn join(self) -> Result<Joined, BootstrapError> {
        match self.way {
            Way::Wire(wire) => client::join(wire, self.timeout),
            Way::Pmix(entry) => pmix::join(entry, self.timeout),
            Way::Cray { .. } => cray::join(self.timeout),
            Way::Takeover(takeover) => takeover::join(takeover),
        }
    }

    /// What is to be done while this process has no thread of ours.
    pub(crate) fn prepare(&self) {
        if let Way::Cray { .. } = self.way {
            cray::prepare();
        }
    }

    /// The rank of this process, as far as it is known before that.
    pub(crate) fn rank(&self) -> u32 {
        match &self.way {
            Way::Wire(wire) => wire.rank,
            Way::Pmix(entry) => entry.rank,
            Way::Cray { rank } => *rank,
            Way::Takeover(takeover) => takeover.rank,
        }
    }

    /// A descriptor that hangs up when the launcher vanishes, where there is one.
    pub(crate) fn watched(&self) -> Result<Option<OwnedFd>, BootstrapError> {
        let copied = match &self.way {
            Way::Wire(wire) => wire.stream.socket().try_clone(),
            Way::Pmix(entry) => entry.watched(),
            Way::Cray { .. } | Way::Takeover(_) => return Ok(None),
        };
        copied.map(Some).map_err(|source| BootstrapError::Io { during: "watch over the launcher", source })
    }

    /// What the launcher left in the environment, or what the setting asks for; `None` where this is the only rank.
    pub fn from_settings() -> Result<Option<Self>, BootstrapError> {
        Self::wished(BOOTSTRAP.choice()?, true)
    }

    /// The same for a library that is Cray's PMI to others: what they are to join by it joins by something else.
    pub fn as_cray() -> Result<Option<Self>, BootstrapError> {
        match BOOTSTRAP.choice()? {
            "cray" => Self::wished("auto", false),
            wish => Self::wished(wish, false),
        }
    }

    fn wished(wish: &str, cray: bool) -> Result<Option<Self>, BootstrapError> {
        let timeout = settings::timeout()?;
        let way = match wish {
            "single" => None,
            "pmi1" => Some(Way::Wire(wired(Some(Dialect::Pmi1), timeout)?.ok_or_else(|| absent(wish))?)),
            "pmi2" => Some(Way::Wire(wired(Some(Dialect::Pmi2), timeout)?.ok_or_else(|| absent(wish))?)),
            "pmix" => Some(pmix_way()?.ok_or_else(|| absent(wish))?),
            // The library is asked, whatever the environment says.
            "cray" => Some(Way::Cray { rank: settings::CRAY_RANK.number()?.map_or(0, narrow) }),
            _ => automatic(timeout, cray)?,
        };
        Ok(way.map(|way| Start { way, timeout }))
    }
}

/// The way that the environment offers. A launcher inside another one's job leaves the outer one's variables standing,
/// so the order counts: a descriptor is made for this very process, a port nearly so, and what says only that a library
/// could be asked comes last. Cray's PMI is one of them only if `cray`.
fn automatic(timeout: Duration, cray: bool) -> Result<Option<Way>, BootstrapError> {
    if let Some(wire) = wired(None, timeout)? {
        return Ok(Some(Way::Wire(wire)));
    }
    if cray && let Some(rank) = settings::CRAY_RANK.number()? {
        return Ok(Some(Way::Cray { rank: narrow(rank) }));
    }
    match pmix_way()? {
        Some(way) => Ok(Some(way)),
        None => alone(),
    }
}

/// The way by PMIx, if the launcher offers it.
fn pmix_way() -> Result<Option<Way>, BootstrapError> {
    if settings::PMIX_NAMESPACE.raw().is_none() {
        return Ok(None);
    }
    let rank = settings::PMIX_RANK.number()?;
    rank.map(|rank| Ok(Way::Pmix(pmix::Entry::new(narrow(rank))?))).transpose()
}

/// The way over a socket, if there is one.
fn wired(dialect: Option<Dialect>, timeout: Duration) -> Result<Option<Wire>, BootstrapError> {
    let port = PORT.raw();
    if let Some(fd) = FD.number()? {
        let elsewhere = port.is_some() || (dialect.is_none() && pmix_way()?.is_some());
        match descriptor(fd) {
            Ok((stream, rank)) => {
                let size = settings::SIZE.number()?.map(narrow);
                let job = settings::JOB.raw().map(|(_, job)| job);
                return Ok(Some(Wire { stream, rank, size, job, dialect }));
            }
            // The number is that of a launcher further out.
            Err(_) if elsewhere => {}
            Err(e) => return Err(e),
        }
    }
    let Some((_, port)) = port else { return Ok(None) };
    let rank = ID.number()?.map(narrow).ok_or_else(|| {
        let what = format!("PMI_PORT={port} is set, but PMI_ID is not: it says which rank this is");
        BootstrapError::protocol("read PMI_ID", what)
    })?;
    let stream = Stream::Port(call(&port, timeout)?);
    // What it says on the wire comes from this launcher; PMI_SIZE and PMI_JOBID may be another's.
    Ok(Some(Wire { stream, rank, size: None, job: None, dialect }))
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The connection that the launcher has made for this rank, and the rank.
fn descriptor(fd: u64) -> Result<(Stream, u32), BootstrapError> {
    let rank = RANK.number()?.ok_or_else(|| {
        let what = format!(
            "PMI_FD={fd} is set, but neither PMI_RANK nor PMI_ID: unset PMI_FD to run without a launcher"
        );
        BootstrapError::protocol("read PMI_RANK", what)
    })?;
    let socket = inherited::socket(i32::try_from(fd).unwrap_or(i32::MAX)).map_err(|e| {
        let what = format!(
            "PMI_FD={fd} is no connection to the launcher ({}): a program between the launcher and this one has closed it, \
             or the launcher is another program's; gasrun --pmi-port gives ranks a port instead, and \
             {}=single runs without the launcher",
            e.cause, BOOTSTRAP.name
        );
        BootstrapError::protocol("read PMI_FD", what)
    })?;
    Ok((Stream::Descriptor(socket), narrow(rank)))
}

/// Connects to the launcher at `port`, a host and a number: to the first of its addresses that answers in time.
fn call(port: &str, timeout: Duration) -> Result<OwnedFd, BootstrapError> {
    const DURING: &str = "connect to the launcher";
    let wrong = |why: &dyn std::fmt::Display| {
        BootstrapError::protocol(DURING, format!("PMI_PORT={port}: {why}: wanted host:port of a launcher"))
    };
    let deadline = Instant::now() + timeout;
    let mut failed = None;
    for address in port.to_socket_addrs().map_err(|e| wrong(&e))? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                // Questions are short and each waits for its answer.
                let _ = stream.set_nodelay(true);
                return Ok(stream.into());
            }
            Err(e) => failed = Some(e),
        }
    }
    match failed {
        Some(e) if e.kind() == std::io::ErrorKind::TimedOut => {
            Err(BootstrapError::TimedOut { during: DURING, seconds: timeout.as_secs() })
        }
        Some(e) => Err(wrong(&e)),
        None => Err(wrong(&"it has no address")),
    }
}

/// Nobody speaks with this process: it is alone, unless a launcher says that it is not.
fn alone() -> Result<Option<Way>, BootstrapError> {
    match settings::SIZE.number()? {
        Some(size) if size > 1 => {
            let what = format!(
                "PMI_SIZE={size} says there are other ranks, but {}: unset PMI_SIZE to run alone",
                settings::offers()
            );
            Err(BootstrapError::protocol("join the job", what))
        }
        _ => Ok(None),
    }
}

/// The setting asks for a way that is not there.
fn absent(wish: &str) -> BootstrapError {
    let what = format!("{}={wish} cannot be had: {}", BOOTSTRAP.name, settings::offers());
    BootstrapError::protocol("join the job", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen,
    };
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    const SHORT: Duration = Duration::from_millis(100);

    #[test]
    fn the_rank_is_known_before_the_launcher_is_asked() {
        let rank = |way| Start { way, timeout: SHORT }.rank();
        let stream = || Stream::Port(UnixStream::pair().expect("a pair").0.into());
        let wire = Wire { stream: stream(), rank: 5, size: None, job: None, dialect: None };
        assert_eq!(rank(Way::Wire(wire)), 5);
        assert_eq!(rank(Way::Pmix(pmix::Entry::new(6).expect("a pair"))), 6);
        assert_eq!(rank(Way::Cray { rank: 7 }), 7);
        let takeover = Takeover {
            rank: 8,
            size: 9,
            all_gather: Box::new(|_, _| Ok(())),
            barrier: Box::new(|| Ok(())),
            abort: Box::new(|_, _| {}),
        };
        assert_eq!(format!("{takeover:?}"), "Takeover { rank: 8, size: 9 }");
        assert_eq!(rank(Way::Takeover(takeover)), 8);
    }

    #[test]
    fn numbers_are_narrowed_without_a_change() {
        assert_eq!([narrow(0), narrow(7), narrow(u64::from(u32::MAX) + 1)], [0, 7, u32::MAX]);
    }

    #[test]
    fn a_launcher_whose_queue_is_full_is_waited_for() {
        let flags = SockFlag::SOCK_CLOEXEC;
        let door =
            nix::sys::socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket");
        bind(door.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("bound");
        listen(&door, Backlog::new(0).expect("a length")).expect("listening");
        let address = getsockname::<SockaddrIn>(door.as_raw_fd()).expect("a name");
        let port = format!("127.0.0.1:{}", address.port());
        let mut guests = Vec::new();
        let error = loop {
            let begun = Instant::now();
            match call(&port, SHORT) {
                Ok(guest) => guests.push(guest),
                Err(e) => {
                    assert!(begun.elapsed() >= SHORT, "{e}");
                    break e.to_string();
                }
            }
            assert!(guests.len() < 100, "the queue does not fill");
        };
        assert_eq!(error, "connect to the launcher: nothing came for 0 s (GASWORKS_BOOTSTRAP_TIMEOUT)");
    }
}
