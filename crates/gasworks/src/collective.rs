//! What all members of a team do together.

use crate::{Agent, Atomic, AtomicOps, Error, Team, ThreadMode};
use bytemuck::Pod;
use gasworks_extended::collective::{Combine, Numbers};
use gasworks_extended::team::Lengths;

/// Combines values by a closure.
pub(crate) struct By<T, F> {
    combine: F,
    of: std::marker::PhantomData<fn(T) -> T>,
}

impl<T: Pod, F: FnMut(T, T) -> T + Send> By<T, F> {
    pub(crate) fn new(combine: F) -> Self {
        Self { combine, of: std::marker::PhantomData }
    }
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
    /// members before those of the second, so that the result depends neither on who was faster nor on the root.
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

    /// As [`reduce`](Self::reduce), and all get the result.
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

    /// As [`reduce`](Self::reduce), of numbers, by an operation that both sides know by its name.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); numbers of this type are not combined so.
    pub fn reduce_by<T: Atomic>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        values: &mut [T],
        op: AtomicOps,
    ) -> Result<(), Error> {
        self.reduced(Some(root), values, op)
    }

    /// As [`reduce_all`](Self::reduce_all), of numbers, by an operation that both sides know by its name: a
    /// single integer of all ranks is combined by engines of the network, where these were asked for (`GASNET_BARRIER=GNICE` over Aries).
    ///
    /// ```
    /// # use gasworks::{AtomicOps, Config, Job, Seq, Table};
    /// # fn main() -> Result<(), gasworks::Error> {
    /// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
    /// let agent = job.agent()?;
    /// let mut sum = [agent.rank()];
    /// job.everyone().reduce_all_by(&agent, &mut sum, AtomicOps::ADD)?;
    /// assert_eq!(sum, [agent.ranks() * (agent.ranks() - 1) / 2]);
    /// # job.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`reduce_by`](Self::reduce_by).
    pub fn reduce_all_by<T: Atomic>(
        &self,
        _agent: &Agent<'_, M>,
        values: &mut [T],
        op: AtomicOps,
    ) -> Result<(), Error> {
        self.reduced(None, values, op)
    }

    fn reduced<T: Atomic>(&self, root: Option<u32>, values: &mut [T], op: AtomicOps) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        Ok(teams.reduce(engine, team, root, bytemuck::cast_slice_mut(values), self.numbers::<T>(op)?)?)
    }

    /// How numbers of a type are combined; if they are not, this rank has its turn all the same.
    pub(crate) fn numbers<T: Atomic>(&self, operation: AtomicOps) -> Result<Numbers, Error> {
        let (engine, teams, team) = self.parts();
        let refused = || gasworks_extended::Error::NoReduction { of: T::OF, operation };
        Ok(Numbers::new(T::OF, operation).ok_or_else(|| teams.refuse(engine, team, refused()))?)
    }

    /// What each member has comes to member `root`, one's behind the other's, as many values of each: `all` has room for them there, and is not looked at
    /// elsewhere.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); at the root there is other room.
    pub fn gather<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        own: &[T],
        all: &mut [T],
    ) -> Result<(), Error> {
        self.gathered(root, own, all, Lengths::Equal)
    }

    /// As [`gather`](Self::gather), of each member as many values as `counts` say at the root; elsewhere these are not looked at.
    ///
    /// # Errors
    /// Those of [`gather`](Self::gather).
    pub fn gather_each<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        own: &[T],
        all: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        self.gathered(root, own, all, Lengths::Each(&lengths_of::<T>(counts)?))
    }

    /// Each member gets its part of what member `root` has in `all`, where they lie one behind the other, as many values for each. Elsewhere `all` is not looked
    /// at.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); at the root there are not as many values.
    pub fn scatter<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        all: &[T],
        own: &mut [T],
    ) -> Result<(), Error> {
        self.scattered(root, all, own, Lengths::Equal)
    }

    /// As [`scatter`](Self::scatter), for each member as many values as `counts` say at the root; elsewhere these are not looked at.
    ///
    /// # Errors
    /// Those of [`scatter`](Self::scatter).
    pub fn scatter_each<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        all: &[T],
        counts: &[usize],
        own: &mut [T],
    ) -> Result<(), Error> {
        self.scattered(root, all, own, Lengths::Each(&lengths_of::<T>(counts)?))
    }

    /// What each member has comes to all, one's behind the other's, as many values of each.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); there is other room.
    pub fn all_gather<T: Pod>(&self, _agent: &Agent<'_, M>, own: &[T], all: &mut [T]) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        Ok(teams.all_gather(engine, team, bytemuck::cast_slice(own), bytemuck::cast_slice_mut(all))?)
    }

    /// Each member sends each a part of `to`, and gets one of each in `from`, as many values each, in the order of the members.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); there are not as many values for each member, or other room.
    pub fn all_to_all<T: Pod>(&self, _agent: &Agent<'_, M>, to: &[T], from: &mut [T]) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        let (to, from) = (bytemuck::cast_slice(to), bytemuck::cast_slice_mut(from));
        Ok(teams.all_to_all(engine, team, to, from, None)?)
    }

    /// As [`all_to_all`](Self::all_to_all), with as many values to each and from each as these counts say.
    ///
    /// # Errors
    /// Those of [`all_to_all`](Self::all_to_all).
    pub fn all_to_all_each<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        (to, going): (&[T], &[usize]),
        (from, coming): (&mut [T], &[usize]),
    ) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        let (going, coming) = (lengths_of::<T>(going)?, lengths_of::<T>(coming)?);
        let (to, from) = (bytemuck::cast_slice(to), bytemuck::cast_slice_mut(from));
        Ok(teams.all_to_all(engine, team, to, from, Some([&going, &coming]))?)
    }

    /// What the members up to this one have in a place is combined, for each place, and replaces what this one has. In the order of the members.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn scan<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        values: &mut [T],
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        self.scanned(values, true, combine)
    }

    /// As [`scan`](Self::scan), of the members before this one: the first member's values stay as they are.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn scan_before<T: Pod>(
        &self,
        _agent: &Agent<'_, M>,
        values: &mut [T],
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        self.scanned(values, false, combine)
    }

    fn gathered<T: Pod>(
        &self,
        root: u32,
        own: &[T],
        all: &mut [T],
        lengths: Lengths<'_>,
    ) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        let (own, all) = (bytemuck::cast_slice(own), bytemuck::cast_slice_mut(all));
        Ok(teams.gather(engine, team, root, own, (all, lengths))?)
    }

    fn scattered<T: Pod>(
        &self,
        root: u32,
        all: &[T],
        own: &mut [T],
        lengths: Lengths<'_>,
    ) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        let (all, own) = (bytemuck::cast_slice(all), bytemuck::cast_slice_mut(own));
        Ok(teams.scatter(engine, team, root, (all, lengths), own)?)
    }

    fn scanned<T: Pod>(
        &self,
        values: &mut [T],
        with_own: bool,
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        Ok(teams.scan(engine, team, bytemuck::cast_slice_mut(values), with_own, By::new(combine))?)
    }

    fn combined<T: Pod>(
        &self,
        root: Option<u32>,
        values: &mut [T],
        combine: impl FnMut(T, T) -> T + Send,
    ) -> Result<(), Error> {
        let (engine, teams, team) = self.parts();
        Ok(teams.reduce(engine, team, root, bytemuck::cast_slice_mut(values), By::new(combine))?)
    }
}

/// How many bytes so many values take, for each.
fn lengths_of<T: Pod>(counts: &[usize]) -> Result<Vec<usize>, Error> {
    counts.iter().map(|&count| crate::pointer::bytes_of::<T>(count)).collect()
}
