//! A lock in memory that processes share, which outlives whoever holds it.
//!
//! # Protocol
//! - alone.1: the word is the number of the process that holds it, or 0. It is taken by an exchange for 0.
//! - alone.2: who waits asks now and then whether the holder is dead, and if so takes the lock by an exchange for the dead one's
//!   number; of several who do one succeeds. What the dead one was about is as it left it: for a change of one word that
//!   is done or not done.
//! - alone.3: who leaves exchanges its own number for 0, so that one that was taken for dead opens nobody else's lock.

use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{ord, spin};

/// The lock. Zero bytes are a free one.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Alone {
    holder: AtomicU32,
}

/// What to do about a lock that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Look again.
    Wait,
    /// Its holder is dead.
    Dead,
    /// Do without.
    GiveUp,
}

impl Alone {
    /// A free one.
    pub fn new() -> Self {
        Self { holder: AtomicU32::new(0) }
    }

    /// Takes it for the process `own`, which is not 0. `judge` is asked about the process that holds it each time that it
    /// is found taken; `None` when it gives up.
    pub fn enter(&self, own: u32, mut judge: impl FnMut(u32) -> Verdict) -> Option<Inside<'_>> {
        let take = |from: u32| {
            let taken = self.holder.compare_exchange(from, own, ord!("alone.enter", Acquire), Relaxed);
            taken.map(|_| Inside { lock: self, own })
        };
        loop {
            let holder = match take(0) {
                Ok(inside) => return Some(inside),
                Err(holder) => holder,
            };
            match judge(holder) {
                Verdict::Wait => spin(),
                // alone.2: of several who find the holder dead, one takes its place.
                Verdict::Dead => match take(holder) {
                    Ok(inside) => return Some(inside),
                    Err(_) => spin(),
                },
                Verdict::GiveUp => return None,
            }
        }
    }
}

impl Default for Alone {
    fn default() -> Self {
        Self::new()
    }
}

/// The lock is held until this is dropped.
#[derive(Debug)]
pub struct Inside<'a> {
    lock: &'a Alone,
    own: u32,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // alone.3: only where the number is still its own.
        let leave = ord!("alone.leave", Release);
        let _ = self.lock.holder.compare_exchange(self.own, 0, leave, Relaxed);
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_from_the_dead_alone() {
        let lock = Alone::new();
        let first = lock.enter(7, |_| unreachable!("it is free")).expect("taken");
        let mut asked = Vec::new();
        let judge = |holder| {
            asked.push(holder);
            if asked.len() < 3 { Verdict::Wait } else { Verdict::GiveUp }
        };
        assert!(lock.enter(8, judge).is_none());
        assert_eq!(asked, [7; 3]);
        // It was alive after all, and leaves what is another's now.
        let second = lock.enter(8, |_| Verdict::Dead).expect("taken over");
        drop(first);
        assert!(lock.enter(9, |holder| if holder == 8 { Verdict::GiveUp } else { Verdict::Wait }).is_none());
        drop(second);
        assert!(lock.enter(9, |_| unreachable!("it is free")).is_some());
    }
}
