//! What went wrong where nobody was there to be told of it.

use super::Engine;
use crate::{CoreMode, Error};
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The first failure that no poll has told of yet.
pub(super) struct Failure<M: CoreMode> {
    first: M::Lock<Option<Error>>,
    /// Whether there is one.
    is_there: AtomicBool,
}

impl<M: CoreMode> Failure<M> {
    /// All is well.
    pub(super) fn none() -> Self {
        Self { first: Lock::new(None), is_there: AtomicBool::new(false) }
    }

    /// Takes it, if there is one.
    #[inline]
    pub(super) fn take(&self) -> Option<Box<Error>> {
        if self.is_there.load(Relaxed) { self.take_it() } else { None }
    }

    #[cold]
    fn take_it(&self) -> Option<Box<Error>> {
        self.first.with(|first| {
            self.is_there.store(false, Relaxed);
            first.take().map(Box::new)
        })
    }
}

impl<M: CoreMode> Engine<M> {
    /// Records a failure that nobody is there to be told of; the next poll returns it.
    pub fn fail_later(&self, error: Error) {
        self.failure.first.with(|first| {
            first.get_or_insert(error);
        });
        // Relaxed: the lock orders what it holds; a poll that comes too early leaves it to the next.
        self.failure.is_there.store(true, Relaxed);
        self.pace.excite();
    }
}
