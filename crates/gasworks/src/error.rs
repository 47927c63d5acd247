//! What can go wrong, as a program sees it.

use gasworks_bootstrap::BootstrapError;
use gasworks_os::settings::SettingError;
use thiserror::Error;

/// Why an operation failed. The message says what was being done, to whom, and the cause.
///
/// Which error it is stands in a word of its own: hidden in a variant's bytes it would be a constant of eight bytes with which
/// every put and get compares its result.
#[derive(Error)]
#[non_exhaustive]
#[repr(u32)]
pub enum Error {
    /// A setting cannot be used as it stands.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The job could not be joined, or its launcher failed.
    #[error("{}", joining(.0))]
    Bootstrap(BootstrapError),
    /// What the ranks talk over could not be set up.
    #[error("{doing}: {cause}")]
    Network {
        /// What was being done.
        doing: &'static str,
        /// What was in the way.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no network of that name.
    #[error(
        "GASWORKS_NETWORK, or the program, asks for the network {name:?}, which there is not; there are: {there}"
    )]
    NoNetwork {
        /// What it asks for.
        name: Box<str>,
        /// Those that there are, and what is in the way of each.
        there: String,
    },
    /// A program limits segments to what is no size.
    #[error("segments are limited to {text:?}, which is no size or fraction of memory, with /P or /H")]
    NoShare {
        /// What it says.
        text: Box<str>,
    },
    /// The job was to be observed, and cannot be.
    #[error(transparent)]
    Observe(#[from] gasworks_core::observe::ObserveError),
    /// The system refused what makes a rank answer when it is asked how it stands.
    #[error("preparing for the signal of GASWORKS_INSPECT_SIGNAL: {0}; 0 does without")]
    Inspect(gasworks_os::OsError),
    /// An active message, a put, a get or a poll failed.
    #[error(transparent)]
    Core(#[from] gasworks_core::Error),
    /// A barrier call out of turn.
    #[error("barrier: {0}")]
    Barrier(&'static str),
    /// An access region out of turn.
    #[error("access region: {0}")]
    Region(&'static str),
    /// What is of one job was named to an agent of another.
    #[error("{0} is of another job than the agent")]
    OtherJob(&'static str),
    /// A rank could not create a region that all were to create, or was at another collective call.
    #[error("create a region: rank {rank}: {cause}")]
    NoRegion {
        /// Which rank.
        rank: u32,
        /// What it says.
        cause: String,
    },
    /// The ranks came to a barrier by different names; all have met all the same.
    #[error("barrier: the ranks came by different names, or one declared a mismatch")]
    Mismatch,
    /// A transport does not fit its job.
    #[error(
        "a transport with {wires} wires, {routes} routes and {peers} segments for a job of {ranks} ranks: every rank \
         needs a segment and a route to one of the wires"
    )]
    Transport {
        /// The ranks of the job.
        ranks: u32,
        /// The segments that the transport knows.
        peers: u32,
        /// The routes that it gives.
        routes: usize,
        /// The wires that it has.
        wires: usize,
    },
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
    /// A progress thread where several threads may not communicate at once.
    #[error(
        "a progress thread in {mode} mode: only a job in par mode lets another thread poll; use Job<Par>"
    )]
    ProgressThread {
        /// The thread mode.
        mode: &'static str,
    },
    /// A thread could not be started.
    #[error("starting a thread: {cause}")]
    Thread {
        /// What the system says.
        cause: String,
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
    /// What a handler of the program's reports.
    #[error("{0}")]
    Program(String),
}

impl Error {
    /// Whether polling and trying again may help: only the `try_` calls return such an error.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Core(error) if error.is_busy())
    }
}

/// As it reads: a `main` that returns an error prints it this way.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// What was done is said once, here or by the error itself.
fn joining(error: &BootstrapError) -> String {
    let said = error.to_string();
    if said.starts_with("join the job") { said } else { format!("joining the job: {said}") }
}

// By hand, since an error whose text has its cause in it must not give the cause again as its source.
impl From<BootstrapError> for Error {
    fn from(cause: BootstrapError) -> Self {
        Error::Bootstrap(cause)
    }
}

impl From<gasworks_extended::Error> for Error {
    fn from(error: gasworks_extended::Error) -> Self {
        match error {
            gasworks_extended::Error::Core(error) => Error::Core(error),
            gasworks_extended::Error::Barrier(what) => Error::Barrier(what),
            gasworks_extended::Error::Region(what) => Error::Region(what),
            gasworks_extended::Error::Setting(error) => Error::Setting(error),
            other => Error::Program(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said_once() {
        let protocol = |during| BootstrapError::Protocol { during, what: "why".into() };
        for (during, said) in [
            ("join the job", "join the job: why"),
            ("join the job by PMIx", "join the job by PMIx: why"),
            ("read PMI_FD", "joining the job: read PMI_FD: why"),
        ] {
            assert_eq!(Error::from(protocol(during)).to_string(), said);
        }
        let cause = Box::new(protocol("gather"));
        let over_network = Error::Network { doing: "shared memory between the ranks", cause };
        assert_eq!(over_network.to_string(), "shared memory between the ranks: gather: why");
    }
}
