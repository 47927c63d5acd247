//! The barrier.

use super::Agent;
use crate::{Error, ThreadMode};
use gasworks_core::{Engine, Name};
use gasworks_extended::Barrier;

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// Waits for all ranks.
    ///
    /// # Errors
    /// A phase is under way already, a rank came by a name that another did not, or a poll finds something wrong.
    #[inline]
    pub fn barrier(&self) -> Result<(), Error> {
        self.barrier_as(Name::Any).map(|_| ())
    }

    /// Waits for all ranks at the barrier of this name; returns the name that all agree on, which is another only where
    /// this rank comes by none.
    ///
    /// # Errors
    /// [`Error::Mismatch`] on every rank, once all have come, if two came by different names or one declared a mismatch;
    /// and those of [`barrier`](Self::barrier).
    #[inline]
    pub fn barrier_as(&self, name: Name) -> Result<Name, Error> {
        self.barrier_begin_as(name)?.wait(self)
    }

    /// Announces this rank at the barrier, without waiting.
    ///
    /// # Errors
    /// A phase is under way already.
    #[inline]
    pub fn barrier_begin(&self) -> Result<Phase<'job, M>, Error> {
        self.barrier_begin_as(Name::Any)
    }

    /// Announces this rank at the barrier of this name, without waiting.
    ///
    /// # Errors
    /// A phase is under way already.
    #[inline]
    pub fn barrier_begin_as(&self, name: Name) -> Result<Phase<'job, M>, Error> {
        let number = self.barrier.begin(self.engine, name)?;
        Ok(Phase { engine: self.engine, barrier: self.barrier, number, name })
    }
}

/// A phase of the barrier that this rank has begun.
#[must_use = "a phase that was begun must be finished by test or wait"]
pub struct Phase<'job, M: ThreadMode> {
    engine: &'job Engine<M>,
    barrier: &'job Barrier<M>,
    number: u64,
    name: Name,
}

impl<M: ThreadMode> Phase<'_, M> {
    /// Whether all ranks have begun; if so the phase is finished. Does not poll.
    ///
    /// # Errors
    /// The phase was finished before; [`Error::Mismatch`], and then it is finished.
    #[inline]
    pub fn test(&self, _agent: &Agent<'_, M>) -> Result<bool, Error> {
        let agreed = self.barrier.test(self.engine, self.number, self.name)?;
        agreed.map(matched).transpose().map(|agreed| agreed.is_some())
    }

    /// Polls until all ranks have begun; returns the name that all agree on.
    ///
    /// # Errors
    /// The phase was finished before, [`Error::Mismatch`], or a poll finds something wrong.
    #[inline]
    pub fn wait(self, _agent: &Agent<'_, M>) -> Result<Name, Error> {
        matched(self.barrier.wait(self.engine, self.number, self.name)?)
    }
}

#[inline]
fn matched(agreed: Name) -> Result<Name, Error> {
    match agreed {
        Name::Mismatch => Err(Error::Mismatch),
        agreed => Ok(agreed),
    }
}
