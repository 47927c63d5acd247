//! Counters of the copies and locks that an operation takes, which no NIC sees. Builds without debug assertions count
//! nothing.

// Not loom's: a model has nothing to check in them, and loom has none that a static can hold.
#[cfg(debug_assertions)]
use core::sync::atomic::{AtomicU64, Ordering};

/// Counts something.
#[derive(Debug)]
pub struct Tally {
    #[cfg(debug_assertions)]
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
            #[cfg(debug_assertions)]
            count: AtomicU64::new(0),
        }
    }

    /// It has happened once more.
    #[inline(always)]
    pub fn count(&self) {
        #[cfg(debug_assertions)]
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it has happened; `None` in a build that does not count.
    pub fn read(&self) -> Option<u64> {
        #[cfg(debug_assertions)]
        return Some(self.count.load(Ordering::Relaxed));
        #[cfg(not(debug_assertions))]
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_where_assertions_are_checked() {
        let tally = Tally::new();
        tally.count();
        tally.count();
        assert_eq!(tally.read(), cfg!(debug_assertions).then_some(2));
    }
}
