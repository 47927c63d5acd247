//! A lock that is only ever tried: one exchange to get in, one store to leave, and nobody waits.
//!
//! # Invariants
//! - latch.1: between the exchange that found the latch open and the store that opens it again, the value is that thread's
//!   alone.

use crate::atomic::{AtomicBool, Ordering};
use crate::cell::UnsafeCell;
use crate::{ord, tally};
use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A lock that is only tried: who finds the value in use goes on without it.
pub trait Latch<T> {
    /// The value while it is this thread's.
    type Entered<'a>: DerefMut<Target = T>
    where
        Self: 'a;
    /// Wraps a value.
    fn new(value: T) -> Self;
    /// The value unless it is in use.
    fn try_enter(&self) -> Option<Self::Entered<'_>>;
    /// Runs `f` with the value unless it is in use.
    #[inline]
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_enter().map(|mut value| f(&mut value))
    }
}

/// The latch of [`Seq`](crate::Seq) and [`ParSync`](crate::ParSync).
impl<T> Latch<T> for RefCell<T> {
    type Entered<'a>
        = RefMut<'a, T>
    where
        T: 'a;
    fn new(value: T) -> Self {
        RefCell::new(value)
    }
    #[inline(always)]
    fn try_enter(&self) -> Option<RefMut<'_, T>> {
        self.try_borrow_mut().ok()
    }
}

/// The latch of [`Par`](crate::Par).
#[derive(Debug)]
pub struct ParLatch<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: latch.1: one thread at a time reaches the value, so it need only be sendable.
unsafe impl<T: Send> Sync for ParLatch<T> {}

impl<T> ParLatch<T> {
    /// Whether it is hardly worth trying. It says nothing of the value.
    #[inline]
    pub(crate) fn seems_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}

/// The value of a latch while it is this thread's: open again when this is dropped. It is sent and shared as `&mut T` is.
///
/// ```compile_fail,E0277
/// use gasworks_sync::{Latch, Mode, Par};
/// use std::cell::Cell;
///
/// let latch: <Par as Mode>::Latch<Cell<u64>> = Latch::new(Cell::new(0));
/// let entered = latch.try_enter().unwrap();
/// std::thread::scope(|scope| _ = scope.spawn(|| entered.set(1)));
/// ```
#[derive(Debug)]
pub struct Entered<'a, T>(&'a ParLatch<T>, PhantomData<&'a mut T>);

impl<T> Deref for Entered<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: latch.1: this was made by the exchange that found the latch open, so the value is this thread's alone until it is dropped.
        self.0.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: latch.1: this was made by the exchange that found the latch open, so the value is this thread's alone until it is dropped.
        self.0.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: what was done with the value is done for whoever gets in next.
        self.0.taken.store(false, ord!("latch.leave", Release));
    }
}

impl<T> Latch<T> for ParLatch<T> {
    type Entered<'a>
        = Entered<'a, T>
    where
        T: 'a;
    fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline(always)]
    fn try_enter(&self) -> Option<Entered<'_, T>> {
        // Acquire: see the drop of `Entered`.
        self.taken.compare_exchange(false, true, ord!("latch.enter", Acquire), Ordering::Relaxed).ok()?;
        tally::LOCKS.count();
        Some(Entered(self, PhantomData))
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn one_at_a_time_and_open_again_after_a_panic() {
        let latch = ParLatch::new(1);
        let inside = latch.try_with(|value| {
            *value += 1;
            latch.try_with(|_| ())
        });
        assert_eq!(inside, Some(None));
        let panicked = catch_unwind(AssertUnwindSafe(|| latch.try_with(|_| panic!("inside"))));
        assert!(panicked.is_err());
        assert_eq!(latch.try_with(|value| *value), Some(2));
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const ROUNDS: u32 = if cfg!(miri) { 20 } else { 10_000 };
        let latch = ParLatch::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        while latch.try_with(|value| *value += 1).is_none() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(latch.try_with(|value| *value), Some(2 * ROUNDS));
    }
}
