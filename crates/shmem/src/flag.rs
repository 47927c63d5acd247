//! A flag that one process sets once, behind all that it has stored before, and others look at.

use gasworks_sync::atomic::AtomicU32;
use gasworks_sync::{kill_point, ord};

/// A flag. A zero word is one that is not set.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Flag {
    word: AtomicU32,
}

impl Flag {
    /// One that is not set.
    pub fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Sets it.
    pub fn set(&self) {
        // Release: what was stored before is there for whoever finds it set.
        self.word.store(1, ord!("flag.set", Release));
        kill_point!("flag.set.done");
    }

    /// Whether it is set. What its owner stored before is there, to be looked at after this.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.word.load(ord!("flag.is_set", Acquire)) != 0
    }
}
