//! A lock whose waiters spin: the [latch](crate::latch), tried until it is open.
//!
//! It is for what is held shortly. Who waits longer than that gives the processor away time and again: the holder may need it.

use crate::atomic::spin;
use crate::latch::{Latch, ParLatch};
use crate::mode::Lock;

/// How often a waiter looks before it gives the processor away.
const LOOKS: u32 = 128;

/// The lock.
#[derive(Debug)]
pub struct SpinLock<T>(ParLatch<T>);

/// Lets time pass after so many looks.
fn wait(looked: u32) {
    if cfg!(gasworks_loom) || !looked.is_multiple_of(LOOKS) {
        spin();
    } else {
        std::thread::yield_now();
    }
}

impl<T> Lock<T> for SpinLock<T> {
    fn new(value: T) -> Self {
        Self(ParLatch::new(value))
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let (mut f, mut looked) = (Some(f), 0u32);
        loop {
            if let Some(done) = self.0.try_with(|value| f.take().map(|f| f(value))).flatten() {
                return done;
            }
            loop {
                looked = looked.wrapping_add(1);
                wait(looked);
                if !self.0.seems_taken() {
                    break;
                }
            }
        }
    }

    #[inline]
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_with(f)
    }

    #[inline]
    fn seems_taken(&self) -> bool {
        self.0.seems_taken()
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn it_is_open_again_after_a_panic() {
        let lock = SpinLock::new(1);
        assert!(lock.with(|_| lock.seems_taken() && lock.try_with(|_| ()).is_none()));
        assert!(!lock.seems_taken());
        let panicked = catch_unwind(AssertUnwindSafe(|| lock.with(|_| panic!("inside"))));
        assert!(panicked.is_err());
        assert_eq!(lock.with(|value| *value), 1);
    }

    /// More threads than any machine of ours has processors: who holds it must get one.
    #[test]
    fn nothing_is_lost_between_many_threads() {
        const ROUNDS: u32 = if cfg!(miri) { 5 } else { 2_000 };
        const THREADS: u32 = if cfg!(miri) { 3 } else { 32 };
        let lock = SpinLock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        lock.with(|value| *value += 1);
                    }
                });
            }
        });
        assert_eq!(lock.with(|value| *value), THREADS * ROUNDS);
    }
}
