//! What all members of a team do together.

use crate::{Agent, Error, Team, ThreadMode};
use bytemuck::Pod;
use gasworks_extended::collective::Combine;

/// Combines values by a closure.
struct By<T, F> {
    combine: F,
    of: std::marker::PhantomData<fn(T) -> T>,
}

impl<T: Pod, F: FnMut(T, T) -> T + Send> Combine for By<T, F> {
    fn element(&self) -> usize {
        size_of::<T>()
    }

    fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
        let before = bytemuck::cast_slice_mut::<u8, T>(before);
        for (before, &after) in before.iter_mut().zip(bytemuck::cast_slice::<u8, T>(after)) {
            *before = (self.combine)(*before, after);
        }
    }
}

/// # Collectives
/// Every member of a team calls them, in the same order as its other collectives, with as many values. A call returns when this member's part is
/// over, which need not be after the others have begun: where it matters that all have, a barrier says so.
///
/// ```
/// # use gasworks::{Config, Job, Seq, Table};
/// # fn main() -> Result<(), gasworks::Error> {
/// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
/// let agent = job.agent()?;
/// let everyone = job.everyone();
/// // The first rank decides on a size, and all hear of it.
/// let mut size = [if agent.rank() == 0 { 64u64 } else { 0 }];
/// everyone.broadcast(&agent, 0, &mut size)?;
/// assert_eq!(size, [64]);
/// // The sum and the number of what all ranks have.
/// let mut sums = [f64::from(agent.rank()), 1.0];
/// everyone.reduce_all(&agent, &mut sums, |a, b| a + b)?;
/// assert_eq!(sums[1], f64::from(agent.ranks()));
/// # job.close()
/// # }
/// ```
impl<M: ThreadMode> Team<'_, M> {
    /// The values of member `root` replace those of all others.
    ///
    /// # Errors
    /// There is no such member. A member called another collective of the team, or with another number of values, as far as that is seen. Or a poll
    /// finds something wrong.
    pub fn broadcast<T: Pod>(&self, _agent: &Agent<'_, M>, root: u32, values: &mut [T]) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        Ok(teams.broadcast(engine, team, root, bytemuck::cast_slice_mut(values))?)
    }

    /// What all members have in a place is combined, for each place, and replaces what member `root` has. The first value that the closure gets is that of
    /// members before those of the second, counted from `root` on and around, so that the result does not depend on who was faster.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn reduce<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        values: &mut [T],
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        self.combined(Some(root), values, combine)
    }

    /// As [`reduce`](Self::reduce) to the first member, and all get the result.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn reduce_all<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        values: &mut [T],
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        self.combined(None, values, combine)
    }

    fn combined<T: Pod>(
        &self,
        root: Option<u32>,
        values: &mut [T],
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        let combine = By { combine, of: std::marker::PhantomData };
        Ok(teams.reduce(engine, team, root, bytemuck::cast_slice_mut(values), combine)?)
    }
}
