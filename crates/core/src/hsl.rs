//! Handler-safe locks: the specification's `gex_HSL_t`, with what it protects inside.
//!
//! A handler runs on whatever thread happens to poll. A lock that a handler takes as well must therefore never be held
//! by a thread that polls, or a handler could wait on its own thread for ever. Here a thread that holds one cannot:
//! whatever would poll, send or reply fails until the lock is free.

use crate::engine::{Held, this_thread};
use crate::{CoreMode, Error};
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A lock that handlers and others may take. It is not recursive. In `Seq` it is a flag.
pub struct HandlerLock<M: CoreMode, T> {
    value: M::HandlerLock<T>,
    /// The thread that has it. Nobody but that thread can find its own number here.
    owner: AtomicUsize,
}

const NOBODY: usize = 0;

/// The thread takes a lock that is not one of these but counts as one: C's, which are taken by one call and left by another.
#[inline]
pub fn taken() {
    std::mem::forget(Held::begin());
}

/// It leaves one of those that it has taken.
#[inline]
pub fn left() {
    if Held::any() {
        drop(Held);
    }
}

/// Whether this thread holds a handler-safe lock.
#[inline]
pub fn any_held() -> bool {
    Held::any()
}

impl<M: CoreMode, T> HandlerLock<M, T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self { value: Lock::new(value), owner: AtomicUsize::new(NOBODY) }
    }

    /// Runs `f` with the value, waiting for another thread to finish with it. Meanwhile this thread neither polls nor
    /// sends nor replies.
    ///
    /// # Errors
    /// This thread has it already.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<R, Error> {
        let held = self.begin()?;
        Ok(self.value.with(|value| self.inside(held, value, f)))
    }

    /// Runs `f` with the value unless another thread has it: `None` then.
    ///
    /// # Errors
    /// This thread has it already.
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<Option<R>, Error> {
        let held = self.begin()?;
        Ok(self.value.try_with(|value| self.inside(held, value, f)))
    }

    fn begin(&self) -> Result<Held, Error> {
        if self.owner.load(Relaxed) == this_thread() { Err(Error::Recursive) } else { Ok(Held::begin()) }
    }

    fn inside<R>(&self, _held: Held, value: &mut T, f: impl FnOnce(&mut T) -> R) -> R {
        /// Also when `f` panics.
        struct Leave<'a>(&'a AtomicUsize);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.store(NOBODY, Relaxed);
            }
        }
        self.owner.store(this_thread(), Relaxed);
        let _leave = Leave(&self.owner);
        f(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::{Par, Seq};
    #[cfg(not(miri))]
    use std::sync::Arc;

    #[test]
    fn it_is_not_recursive_and_nests_with_others() {
        fn check<M: CoreMode>() {
            let (a, b) = (HandlerLock::<M, _>::new(1), HandlerLock::<M, _>::new(2));
            let inner = a.with(|x| {
                assert_eq!(a.with(|_| ()), Err(Error::Recursive));
                assert_eq!(a.try_with(|_| ()), Err(Error::Recursive));
                b.with(|y| *x + *y)
            });
            assert_eq!(inner, Ok(Ok(3)));
            assert_eq!(a.try_with(|x| *x), Ok(Some(1)));
        }
        check::<Seq>();
        check::<Par>();
    }

    #[test]
    fn others_count_as_well() {
        assert!(!any_held());
        taken();
        taken();
        left();
        assert!(any_held());
        left();
        assert!(!any_held());
        left();
        assert!(!any_held(), "one too many changes nothing");
        assert_eq!(HandlerLock::<Par, _>::new(0).with(|_| any_held()), Ok(true));
    }

    #[test]
    fn a_panic_frees_it() {
        let lock = HandlerLock::<Par, _>::new(0);
        let panicked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lock.with(|_| panic!("inside"))));
        assert!(panicked.is_err());
        assert_eq!(lock.with(|x| *x), Ok(0));
        assert!(!Held::any());
    }

    // Not under Miri: what a thread waits for is another library's lock, which makes pointers of numbers.
    #[cfg(not(miri))]
    #[test]
    fn threads_take_turns() {
        let lock = Arc::new(HandlerLock::<Par, _>::new(0u64));
        let add = |lock: Arc<HandlerLock<Par, u64>>| {
            move || (0..20_000).for_each(|_| lock.with(|x| *x += 1).unwrap_or(()))
        };
        let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(add(lock.clone()))).collect();
        for thread in threads {
            assert!(thread.join().is_ok());
        }
        assert_eq!(lock.with(|x| *x), Ok(60_000));
    }

    #[test]
    fn each_thread_is_another_owner() {
        let own = this_thread();
        let other = std::thread::scope(|scope| scope.spawn(this_thread).join().expect("it has not panicked"));
        assert!(other != own && other != NOBODY && own == this_thread());
    }
}
