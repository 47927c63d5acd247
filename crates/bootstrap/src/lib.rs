//! Who am I, who are the others: PMI clients, the PMI server, and the port they implement.
//!
//! - [`connect`] finds out who started this process and gives its [`Bootstrap`]: [`Pmi2`] under a launcher that
//!   passes `PMI_FD`, [`Single`] where there is none.
//! - [`wire`] is the format, [`server`] the other side, both without input or output.
#![deny(missing_docs, unsafe_code)]

mod pmi2;
pub mod server;
mod settings;
mod single;
mod value;
mod watcher;
pub mod wire;

pub use pmi2::{Pmi2, Start};
pub use settings::SETTINGS;
pub use single::Single;

use std::fmt;

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
    fn exchange(&self, label: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.put(label, mine)?;
        self.fence()?;
        (0..self.size()).map(|rank| self.get(rank, label)).collect()
    }
    /// Asks the launcher to end all ranks, then ends this process with `code`. Does not return.
    fn abort(&self, code: i32, message: &str) -> !;
    /// Says that the start is over: from now on a [`fence`](Self::fence) waits as long as the slowest rank takes, and
    /// the start time-out no longer applies to it.
    fn started(&self) {}
    /// Tells the launcher that this rank ends in good order. Once; later calls do nothing.
    fn finalize(&self) -> Result<(), BootstrapError>;
}

/// Finds out who started this process, and joins the job.
///
/// With `PMI_FD` set it is a launcher that speaks PMI-2; without it this is the only rank. A rank under a launcher
/// is watched from then on: should the launcher vanish, the process says so and ends.
pub fn connect() -> Result<Box<dyn Bootstrap + Send>, BootstrapError> {
    match Start::from_settings()? {
        Some(start) => {
            let mut client = Pmi2::join(start)?;
            client.watch()?;
            Ok(Box::new(client))
        }
        None => Ok(Box::new(Single::new()?)),
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
