//! The progress list: what else gets a turn at every poll.

use super::Engine;
use crate::{CoreMode, Error};
use std::sync::OnceLock;

/// How many tasks there may be: the library's own subsystems.
const MOST: usize = 16;

/// Something on the progress list, the specification's "progress function": it is given a turn at every poll. It must
/// not poll itself.
pub trait Task<M: CoreMode>: Send + Sync {
    /// Makes what progress it can. Returns whether that is something that a thread of this rank may sleep for.
    ///
    /// # Errors
    /// Any; the poll returns it.
    fn turn(&self, engine: &Engine<M>) -> Result<bool, Error>;
}

/// The tasks in the order they came. They never go, so a poll reads them without a lock.
pub(super) struct Tasks<M: CoreMode> {
    list: [OnceLock<Box<dyn Task<M>>>; MOST],
}

impl<M: CoreMode> Tasks<M> {
    pub(super) fn new() -> Self {
        Self { list: std::array::from_fn(|_| OnceLock::new()) }
    }

    pub(super) fn add(&self, task: Box<dyn Task<M>>) -> Result<(), Error> {
        let full = self.list.iter().try_fold(task, |task, place| match place.set(task) {
            Ok(()) => Err(()),
            Err(back) => Ok(back),
        });
        if full.is_ok() { Err(Error::TooManyTasks { most: MOST }) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn turn(&self, engine: &Engine<M>) -> Result<(), Error> {
        for task in self.list.iter().map_while(OnceLock::get) {
            let moved = task.turn(engine);
            if !matches!(moved, Ok(false)) {
                // In every mode: what this thread waits for itself may be done, though its poll has handled nothing.
                engine.wake();
            }
            moved?;
        }
        Ok(())
    }
}
