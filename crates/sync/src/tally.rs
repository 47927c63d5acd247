//! What an operation costs in things that no NIC sees: counted in builds with `--cfg gasworks_faults`, and nothing in others.

#[cfg(gasworks_faults)]
use crate::atomic::{AtomicU64, Ordering};

/// Counts something.
#[derive(Debug)]
pub struct Tally {
    #[cfg(gasworks_faults)]
    count: AtomicU64,
}

/// The processor has copied bytes of an operation, to a buffer or out of one.
pub static COPIES: Tally = Tally::new();

/// A thread has taken a lock.
pub static LOCKS: Tally = Tally::new();

/// The processor has copied so many bytes.
#[inline(always)]
pub fn copied(len: usize) {
    if len > 0 {
        COPIES.count();
    }
}

impl Tally {
    const fn new() -> Self {
        Self {
            #[cfg(gasworks_faults)]
            count: AtomicU64::new(0),
        }
    }

    /// It has happened once more.
    #[inline(always)]
    pub fn count(&self) {
        #[cfg(gasworks_faults)]
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it has happened; `None` in a build that does not count.
    pub fn read(&self) -> Option<u64> {
        #[cfg(gasworks_faults)]
        return Some(self.count.load(Ordering::Relaxed));
        #[cfg(not(gasworks_faults))]
        None
    }
}
