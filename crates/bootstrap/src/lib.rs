//! Who am I, who are the others: PMI clients, the PMI server, and the port they implement.
//!
//! - [`connect`] finds out who started this process and gives its [`Bootstrap`]: [`Launched`] under a launcher,
//!   [`Single`] where there is none.
//! - [`wire`] is the format, [`server`] the other side, both without input or output.
#![deny(missing_docs)]

mod client;
mod connection;
mod cray;
mod dialect;
mod gather;
pub mod host;
mod keeper;
mod launched;
mod lifeline;
mod link;
mod own;
mod pmix;
pub mod server;
mod settings;
mod single;
mod start;
mod store;
mod takeover;
mod together;
mod value;
pub mod wire;
mod worker;

pub use client::{Stream, Wire};
pub use dialect::Dialect;
pub use gasworks_os::ending::exit;
pub use host::{Host, Hosts, Parts};
pub use launched::Launched;
pub use own::{BECAME, becoming};
pub use pmix::Entry;
pub use settings::{ExitTimeout, SETTINGS};
pub use single::Single;
pub use start::{Start, Told, Way};
pub use takeover::{Abort, Barrier, Gather, Takeover};
pub use together::Together;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gasworks_os::{ending, jobs};

use keeper::Keeper;
use link::Link;

/// What went wrong between this rank and whoever started it.
#[derive(Debug)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The peer said something that the protocol does not allow.
    Protocol {
        /// The operation.
        during: &'static str,
        /// What was wrong, with the offending text.
        what: String,
    },
    /// The operating system refused, or the connection broke.
    Io {
        /// The operation.
        during: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// Nothing came within the time allowed.
    TimedOut {
        /// The operation.
        during: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// A setting is wrong.
    Setting(gasworks_os::settings::SettingError),
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol { during, what } => write!(f, "{during}: {what}"),
            Self::Io { during, source } => write!(f, "{during}: {source}"),
            Self::TimedOut { during, seconds } => {
                write!(f, "{during}: nothing came for {seconds} s ({})", settings::TIMEOUT.name)
            }
            Self::Setting(e) => e.fmt(f),
        }
    }
}
/// The message says the cause, so there is no `source()`: whoever prints the chain would print it twice.
impl std::error::Error for BootstrapError {}

/// The port to whoever started the job: identity, a key-value exchange, and the end.
///
/// Calls are collective where they say so. Keys are never put twice, and a key that may be absent is never asked
/// for: real servers disagree about both.
pub trait Bootstrap {
    /// This process's rank, below [`size`](Self::size).
    fn rank(&self) -> u32;
    /// The number of ranks.
    fn size(&self) -> u32;
    /// A name for the job that no other job on this machine has at the same time.
    fn job(&self) -> &str;
    /// Makes `value` (any bytes, any length) known under `key` for all ranks after the next [`fence`](Self::fence).
    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError>;
    /// Collective: returns when every rank has called it; what was put before is visible after.
    fn fence(&self) -> Result<(), BootstrapError>;
    /// What `rank` put under `key` before the last fence.
    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError>;
    /// Collective: every rank gives `mine`, every rank gets all, in rank order. `label` is the same on all ranks
    /// and used once.
    fn exchange(&self, label: &str, mine: &[u8]) -> Result<Parts, BootstrapError> {
        self.put(label, mine)?;
        self.fence()?;
        (0..self.size()).map(|rank| self.get(rank, label)).collect()
    }
    /// The ranks of this rank's host. Collective over all ranks the first time; [`connect`] has seen to that.
    fn host(&self) -> Result<&Host, BootstrapError>;
    /// Which ranks are on which host: those that can attach to each other, whatever the launcher says of them.
    fn hosts(&self) -> Result<&Hosts, BootstrapError>;
    /// Collective: returns when every rank has called it.
    fn barrier(&self) -> Result<(), BootstrapError> {
        self.fence()
    }
    /// Collective: where the ranks run as the launcher sees it, a number for the host of each rank. `None` where it
    /// says nothing. It is only a hint: real launchers are wrong about it.
    fn host_hint(&self) -> Result<Option<Vec<u32>>, BootstrapError> {
        Ok(None)
    }
    /// Says why, and ends all ranks with `code`. Does not return.
    fn abort(&self, code: i32, message: &str) -> !;
    /// Says that the start is over: from now on a [`fence`](Self::fence) waits as long as the slowest rank takes, and
    /// the start time-out no longer applies to it.
    fn started(&self) {}
    /// This rank leaves the job in good order. Once; later calls do nothing. The launcher hears of it when the process
    /// ends, so that another job may follow.
    fn finalize(&self) -> Result<(), BootstrapError>;
}

/// What a process under a launcher keeps from job to job.
#[derive(Debug)]
struct Process {
    /// Who watches over it, if anybody does.
    keeper: Option<Keeper>,
    timeout: ExitTimeout,
    /// Its number: a forked child is another.
    number: u32,
    /// What is needed to join, until that is tried; then the link, if it came to that.
    start: Mutex<Option<Start>>,
    link: OnceLock<Arc<Link>>,
}

/// Finds out who started this process, and joins the job: the first, or the next one after others. Collective; all
/// ranks join their jobs in the same order.
///
/// The protocol is the one that the environment offers, or that `GASWORKS_BOOTSTRAP` names; where there is none this is
/// the only rank, or with `GASNET_PSHM_NODES` what starts the others. From the first job on a process under a launcher is watched: should the launcher or another rank vanish while a job is open, the process
/// says so and ends; and its own end, however it comes, is the job's ([`exit`]).
pub fn connect() -> Result<Box<dyn Bootstrap + Send>, BootstrapError> {
    let start = || {
        let start = Start::from_settings()?;
        own::start_ranks(start.as_ref())?;
        Ok(start)
    };
    watched(start)
}

/// As [`connect`], for a library that is Cray's PMI to others: whatever the settings and the environment say, it does not
/// join by that, for it would ask itself. Nobody watches over the process, as Cray's PMI does not: its end is an affair of the launcher and
/// of the library above, which may have a watch of its own. The launcher hears of the end of a job at once, so that who uses it may end the
/// process as soon as that one is over.
pub fn connect_as_cray() -> Result<Box<dyn Bootstrap + Send>, BootstrapError> {
    join(Start::as_cray, false)
}

/// Joins the job that something else in this process is in already, as a rule MPI: by the functions that the program
/// gives, whatever the environment says. Collective. A process that is in a job by other means goes on by those.
pub fn connect_with(takeover: Takeover) -> Result<Box<dyn Bootstrap + Send>, BootstrapError> {
    watched(|| Ok(Some(Start { way: Way::Takeover(takeover), timeout: settings::timeout()? })))
}

fn watched(
    start: impl FnOnce() -> Result<Option<Start>, BootstrapError>,
) -> Result<Box<dyn Bootstrap + Send>, BootstrapError> {
    // What ends this process from here on is to end the job.
    ending::enter_job();
    let joined = join(start, true);
    ending::leave_job();
    joined
}

fn join(
    start: impl FnOnce() -> Result<Option<Start>, BootstrapError>,
    is_watched: bool,
) -> Result<Box<dyn Bootstrap + Send>, BootstrapError> {
    let process = jobs::kept(|| match start() {
        Ok(Some(start)) => Process::new(start, is_watched).map(Arc::new).map_err(Some),
        Ok(None) => Err(None),
        Err(e) => Err(Some(e)),
    });
    match process {
        Ok(process) => Ok(Box::new(process.join()?)),
        Err(None) => Ok(Box::new(Single::new()?)),
        Err(Some(e)) => Err(e),
    }
}

impl Process {
    fn new(start: Start, is_watched: bool) -> Result<Self, BootstrapError> {
        start.prepare();
        let timeout = ExitTimeout::from_settings(matches!(start.way, Way::Cray { .. }))?;
        let keeper = is_watched.then(|| Self::watch(&start, timeout)).transpose()?;
        let number = std::process::id();
        Ok(Self { keeper, timeout, number, start: Mutex::new(Some(start)), link: OnceLock::new() })
    }

    fn watch(start: &Start, timeout: ExitTimeout) -> Result<Keeper, BootstrapError> {
        let launcher = start.watched()?;
        // Until it is known how many ranks there are.
        let patience = timeout.patience(u32::MAX);
        let catch = settings::CATCH_EXIT.boolean()?;
        let bell = ending::arm(start.rank(), catch, patience, &settings::NO_CATCH_SIGNAL.text())?;
        Keeper::start(start.rank(), launcher, bell, timeout)
    }

    fn join(&self) -> Result<Launched, BootstrapError> {
        const DURING: &str = "join the job";
        if self.number != std::process::id() {
            let what = "this process was forked from a rank: a rank's job is not its children's";
            return Err(BootstrapError::protocol(DURING, what));
        }
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let link = match (self.link.get(), start.take()) {
            (Some(link), _) => Arc::clone(link),
            (None, None) => {
                return Err(BootstrapError::protocol(DURING, "this process has tried before, and failed"));
            }
            (None, Some(start)) => {
                let link = Arc::new(Link::join(start)?);
                self.keeper.iter().for_each(|keeper| keeper.joined(Arc::clone(&link)));
                Arc::clone(self.link.get_or_init(|| link))
            }
        };
        let job = Launched::over(link, self.keeper.is_some());
        job.host()?;
        if let Some(keeper) = &self.keeper {
            ending::wait_no_longer(self.timeout.patience(job.size()));
            keeper.met();
        }
        Ok(job)
    }
}

impl From<gasworks_os::settings::SettingError> for BootstrapError {
    fn from(e: gasworks_os::settings::SettingError) -> Self {
        BootstrapError::Setting(e)
    }
}

impl From<gasworks_os::OsError> for BootstrapError {
    fn from(e: gasworks_os::OsError) -> Self {
        let source = std::io::Error::new(e.cause.kind(), format!("{}: {}", e.operand, e.cause));
        BootstrapError::Io { during: e.operation, source }
    }
}
