//! What signal and exit hooks keep for their next call: numbers behind atomics, and what is to be done at the end.
//!
//! What they mean is said by the module of each hook, [`faults`](crate::faults), [`inquiry`](crate::inquiry) or
//! [`ending`](crate::ending); they live in the registry of [`jobs`](crate::jobs).

use std::sync::Weak;

use gasworks_sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize};

/// What the handler of `SIGBUS` needs between its installation and its call.
pub(crate) struct Faults {
    pub(crate) installed: AtomicU32,
    pub(crate) reported: AtomicU32,
    pub(crate) previous: AtomicUsize,
    pub(crate) previous_flags: AtomicU32,
}

impl Faults {
    pub(crate) const fn new() -> Self {
        Self {
            installed: AtomicU32::new(0),
            reported: AtomicU32::new(0),
            previous: AtomicUsize::new(libc::SIG_DFL),
            previous_flags: AtomicU32::new(0),
        }
    }
}

/// How many jobs of a process can be asked at once; more are not.
const ASKED: usize = 8;
/// No descriptor.
pub(crate) const NONE: i32 = -1;

/// What the handler of the signal that asks how a process is reads.
pub(crate) struct Inquiries {
    pub(crate) bells: [AtomicI32; ASKED],
    /// Handlers that run now.
    pub(crate) ringing: AtomicU32,
}

impl Inquiries {
    pub(crate) const fn new() -> Self {
        Self { bells: [const { AtomicI32::new(NONE) }; ASKED], ringing: AtomicU32::new(0) }
    }
}

/// What the hooks by which this process leaves its job keep.
pub(crate) struct Ending {
    /// The process that armed it: a forked child is none of ours.
    pub(crate) pid: AtomicU32,
    /// The bell's descriptor.
    pub(crate) bell: AtomicU32,
    /// The rank of this process.
    pub(crate) rank: AtomicU32,
    /// Whether an end by libc's `exit` with a job open ends the job.
    pub(crate) catch: AtomicU32,
    /// Whether such an end with code 0 is a good one.
    pub(crate) may_return: AtomicU32,
    /// How long a thread that wished for the end waits for it, in milliseconds.
    pub(crate) patience: AtomicU64,
    /// Jobs that this process has entered and not left.
    pub(crate) jobs: AtomicU32,
    pub(crate) wish: AtomicU32,
    /// Whether the program's own handler of SIGQUIT was called: it is once.
    pub(crate) quit: AtomicU32,
    /// The thread that says this process's last words, or 0; then whether it is done.
    pub(crate) speaker: AtomicU32,
    pub(crate) spoken: AtomicU32,
    /// Whether a thread in libc's `exit` has nothing left to do before the job has ended.
    pub(crate) returns: AtomicU32,
    /// Whether the exit hook has been called: it is registered again whenever something else is to come after it.
    pub(crate) hooked: AtomicU32,
    /// A futex: 0, and a bit with the code of this process once the keeper lets a thread in libc's `exit` go on.
    pub(crate) stage: AtomicU32,
}

impl Ending {
    pub(crate) const fn new() -> Self {
        Self {
            pid: AtomicU32::new(0),
            bell: AtomicU32::new(0),
            rank: AtomicU32::new(0),
            catch: AtomicU32::new(1),
            may_return: AtomicU32::new(1),
            patience: AtomicU64::new(0),
            jobs: AtomicU32::new(0),
            wish: AtomicU32::new(0),
            quit: AtomicU32::new(0),
            speaker: AtomicU32::new(0),
            spoken: AtomicU32::new(0),
            returns: AtomicU32::new(0),
            hooked: AtomicU32::new(0),
            stage: AtomicU32::new(0),
        }
    }
}

/// What is to be done at the end of a job that ends well, with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStep {
    /// This thread does nothing for the job any more: what it has under way is to come to its end, in a moment.
    Settle,
    /// No rank has anything under way any more, as far as each has waited: what the job has taken may be given up.
    GiveUp,
}

/// What has something to do at the end of the process.
pub trait AtEnd {
    /// Does a step of it.
    fn end(&self, step: EndStep);
}

/// What is to be done at the end of the process as long as it is there, and the thread that it is of.
pub(crate) struct Act {
    pub(crate) thread: u32,
    pub(crate) act: Weak<dyn AtEnd>,
}
