//! Who am I, who are the others: PMI clients, the PMI server, and the port they implement.
#![deny(missing_docs)]

use thiserror::Error;

/// What went wrong between this rank and whoever started it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The peer said something that the protocol does not allow.
    #[error("{during}: {what}")]
    Protocol {
        /// The operation.
        during: &'static str,
        /// What was wrong, with the offending text.
        what: String,
    },
    /// The operating system refused, or the connection broke.
    #[error("{during}: {source}")]
    Io {
        /// The operation.
        during: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// Nothing came within the time allowed.
    #[error("{during}: nothing came for {seconds} s")]
    TimedOut {
        /// The operation.
        during: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] gasworks_os::settings::SettingError),
}

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
    /// Tells the launcher that this rank ends in good order. Once; later calls do nothing.
    fn finalize(&self) -> Result<(), BootstrapError>;
}
