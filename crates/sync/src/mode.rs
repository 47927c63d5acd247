//! The thread mode as a type: [`Seq`] and [`ParSync`] pay for no lock, [`Par`] for a mutex.

use crate::latch::{Latch, ParLatch};
use crate::tally;

/// How many threads of a process may communicate, decided at compile time.
pub trait Mode: Copy + Send + Sync + 'static {
    /// The lock that protects state shared between the threads of one process.
    type Lock<T>: Lock<T>;
    /// The same for state that nobody waits for.
    type Latch<T>: Latch<T>;
    /// The name in reports: `seq`, `parsync` or `par`.
    const NAME: &'static str;
    /// Whether several threads may communicate at once.
    const PARALLEL: bool;
}

/// One thread communicates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seq;

/// Several threads communicate, one at a time: who lets them take turns is the program, by moving what they share or
/// by a lock of its own. So nothing is locked here, and what is shared may change threads but not be used by two.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParSync;

/// Any number of threads communicate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Par;

/// What a thread mode asks of its lock. It is not recursive.
pub trait Lock<T> {
    /// Wraps a value.
    fn new(value: T) -> Self;
    /// Runs `f` with the value, waiting for another thread to finish with it.
    ///
    /// # Panics
    /// In [`Seq`], when called from inside `f`.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
    /// Runs `f` with the value unless it is in use.
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R>;
    /// Whether somebody seems to use the value, for who need not wait then.
    fn seems_taken(&self) -> bool;
}

impl Mode for Seq {
    type Lock<T> = std::cell::RefCell<T>;
    type Latch<T> = std::cell::RefCell<T>;
    const NAME: &'static str = "seq";
    const PARALLEL: bool = false;
}

impl Mode for ParSync {
    type Lock<T> = std::cell::RefCell<T>;
    type Latch<T> = std::cell::RefCell<T>;
    const NAME: &'static str = "parsync";
    const PARALLEL: bool = false;
}

impl<T> Lock<T> for std::cell::RefCell<T> {
    fn new(value: T) -> Self {
        std::cell::RefCell::new(value)
    }
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.borrow_mut())
    }
    #[inline]
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_borrow_mut().ok().map(|mut value| f(&mut value))
    }
    #[inline]
    fn seems_taken(&self) -> bool {
        self.try_borrow().is_err()
    }
}

impl Mode for Par {
    type Lock<T> = parking_lot::Mutex<T>;
    type Latch<T> = ParLatch<T>;
    const NAME: &'static str = "par";
    const PARALLEL: bool = true;
}

impl<T> Lock<T> for parking_lot::Mutex<T> {
    fn new(value: T) -> Self {
        parking_lot::Mutex::new(value)
    }
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.lock();
        tally::LOCKS.count();
        f(&mut value)
    }
    #[inline]
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_lock().map(|mut value| {
            tally::LOCKS.count();
            f(&mut value)
        })
    }
    #[inline]
    fn seems_taken(&self) -> bool {
        self.is_locked()
    }
}
