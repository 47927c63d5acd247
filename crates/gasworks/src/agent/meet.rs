//! The barrier.

use super::Agent;
use crate::{Error, Job, ThreadMode};

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// Waits for all ranks.
    ///
    /// # Errors
    /// A phase is under way already, or a poll finds something wrong.
    pub fn barrier(&self) -> Result<(), Error> {
        self.barrier_begin()?.wait(self)
    }

    /// Announces this rank at the barrier, without waiting.
    ///
    /// # Errors
    /// A phase is under way already.
    pub fn barrier_begin(&self) -> Result<Phase<'job, M>, Error> {
        let number = self.job.barrier.begin(self.engine())?;
        Ok(Phase { job: self.job, number })
    }
}

/// A phase of the barrier that this rank has begun.
#[must_use = "a phase that was begun must be finished by test or wait"]
pub struct Phase<'job, M: ThreadMode> {
    job: &'job Job<M>,
    number: u64,
}

impl<M: ThreadMode> Phase<'_, M> {
    /// Whether all ranks have begun; if so the phase is finished. Does not poll.
    ///
    /// # Errors
    /// The phase was finished before.
    pub fn test(&self, _agent: &Agent<'_, M>) -> Result<bool, Error> {
        Ok(self.job.barrier.test(&self.job.engine, self.number)?)
    }

    /// Polls until all ranks have begun.
    ///
    /// # Errors
    /// The phase was finished before, or a poll finds something wrong.
    pub fn wait(self, _agent: &Agent<'_, M>) -> Result<(), Error> {
        Ok(self.job.barrier.wait(&self.job.engine, self.number)?)
    }
}
