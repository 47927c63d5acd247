//! What can go wrong, as a program sees it.

use gasworks_bootstrap::BootstrapError;
use gasworks_os::settings::SettingError;
use thiserror::Error;

/// Why an operation failed. The message says what was being done, to whom, and the cause.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting cannot be used as it stands.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The job could not be joined, or its launcher failed.
    #[error("joining the job: {0}")]
    Bootstrap(#[from] BootstrapError),
    /// Shared memory could not be set up.
    #[error("shared memory between the ranks: {0}")]
    Pshm(#[from] gasworks_pshm::PshmError),
    /// An active message failed.
    #[error(transparent)]
    Core(#[from] gasworks_core::Error),
    /// A put, a get or a barrier failed.
    #[error(transparent)]
    Extended(#[from] gasworks_extended::Error),
    /// The ranks registered different handlers.
    #[error(
        "the handler tables differ: rank {rank} has {mine:?} where rank {other} has {theirs:?}; every rank must \
         register the same handlers in the same order"
    )]
    TablesDiffer {
        /// This rank.
        rank: u32,
        /// What it registered.
        mine: String,
        /// The first rank that differs.
        other: u32,
        /// What that rank registered.
        theirs: String,
    },
    /// An allocation from the segment does not fit.
    #[error(
        "allocating {asked} bytes from the segment of rank {rank}: {left} of {len} bytes are left; ask for a larger \
         segment by Config::segment or GASWORKS_SEGMENT_SIZE"
    )]
    SegmentFull {
        /// Whose segment.
        rank: u32,
        /// What was asked for.
        asked: u64,
        /// What is left.
        left: u64,
        /// The segment's length.
        len: u64,
    },
    /// A local view or a typed pointer does not fit its segment, or a pointer is not local.
    #[error("{0}")]
    Pointer(String),
    /// A call from inside a handler.
    #[error("{0}: not allowed while a handler runs on this thread")]
    InHandler(&'static str),
    /// What a handler of the program's reports.
    #[error("{0}")]
    Program(String),
}

impl Error {
    /// Whether polling and trying again may help: only the `try_` calls return such an error.
    pub fn is_busy(&self) -> bool {
        match self {
            Error::Core(error) | Error::Extended(gasworks_extended::Error::Core(error)) => error.is_busy(),
            _ => false,
        }
    }
}
