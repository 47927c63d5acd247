//! Collectives with an event, of values that they own meanwhile.
//!
//! # Invariants
//! - begun.1: the values that a collective reads or writes lie in the heap block of a vector that it keeps until its event is done, and nobody else
//!   uses them until then.

use crate::collective::By;
use crate::event::Event;
use crate::pointer::bytes_of;
use crate::{Agent, Atomic, AtomicOps, Error, Team, ThreadMode};
use bytemuck::Pod;
use gasworks_extended::collective::Combine;
use gasworks_extended::team::{Lengths, Start};
use gasworks_sync::{RawSlice, VolatileSlice};

/// The bytes of a vector that is about to be kept.
///
/// # Safety
/// begun.1: the vector is kept until nobody uses the slice any more.
unsafe fn bytes_in<T: Pod>(values: &mut Vec<T>) -> VolatileSlice<'static> {
    let bytes = RawSlice::new(values.as_mut_ptr().cast(), size_of_val(&values[..]));
    // SAFETY: begun.1: the caller promises that the block stays, and that nobody else uses it meanwhile. Plain values are bytes.
    unsafe { bytes.borrow() }
}

/// The bytes of two vectors, and a beginning that keeps both.
///
/// # Safety
/// begun.1: the collective that begins so alone uses the slices.
unsafe fn both<M: ThreadMode, T: Pod + Send + Sync>(
    mut first: Vec<T>,
    mut second: Vec<T>,
) -> (VolatileSlice<'static>, VolatileSlice<'static>, Start<M>) {
    // SAFETY: begun.1: both are kept by what is returned with them, and then by the collective.
    let (one, other) = unsafe { (bytes_in(&mut first), bytes_in(&mut second)) };
    (one, other, Start { keep: Some(M::keep((first, second))), ..Start::default() })
}

/// # Collectives with an event
/// As those without, of values that are given to them and come back with the [`Event`], which can be tested, waited for, or awaited. Several may be under way.
///
/// ```
/// # use gasworks::{Config, Event, Job, Seq, Table};
/// # fn main() -> Result<(), gasworks::Error> {
/// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
/// let agent = job.agent()?;
/// let everyone = job.everyone();
/// let sum = everyone.begin_reduce_all(&agent, vec![1u64, 10], |a, b| a + b)?;
/// let all = everyone.begin_all_gather(&agent, vec![agent.rank()])?;
/// // Whatever else there is to do.
/// let ranks = u64::from(agent.ranks());
/// assert_eq!(sum.wait(&agent)?, [ranks, 10 * ranks]);
/// assert_eq!(all.wait(&agent)?, (0..agent.ranks()).collect::<Vec<_>>());
/// # job.close()
/// # }
/// ```
impl<'job, M: ThreadMode> Team<'job, M> {
    /// Begins a [`broadcast`](Self::broadcast); gives the values of member `root`.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast) that are known at once. What fails later a poll returns.
    pub fn begin_broadcast<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        mut values: Vec<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        // SAFETY: begun.1: the collective keeps `values` until its event is done.
        let bytes = unsafe { bytes_in(&mut values) };
        let start = Start { keep: Some(M::keep(values)), ..Start::default() };
        let begun = teams.begin_broadcast(engine, team, start, root, (None, bytes))?;
        Ok(Event::new(engine, begun, |kept| kept.and_then(M::unkeep)))
    }

    /// Begins a [`reduce`](Self::reduce); gives the result at member `root`, and elsewhere the values as they were.
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn begin_reduce<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        values: Vec<T>,
        combine: impl FnMut(T, T) -> T + Send + 'static,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        self.begin_combined(Some(root), values, By::new(combine))
    }

    /// Begins a [`reduce_by`](Self::reduce_by); gives what [`begin_reduce`](Self::begin_reduce) does.
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast); numbers of this type are not combined so.
    pub fn begin_reduce_by<T: Atomic>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        values: Vec<T>,
        op: AtomicOps,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        self.begin_combined(Some(root), values, self.numbers::<T>(op)?)
    }

    /// Begins a [`reduce_all_by`](Self::reduce_all_by).
    ///
    /// # Errors
    /// Those of [`begin_reduce_by`](Self::begin_reduce_by).
    pub fn begin_reduce_all_by<T: Atomic>(
        &self,
        _agent: &Agent<'_, M>,
        values: Vec<T>,
        op: AtomicOps,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        self.begin_combined(None, values, self.numbers::<T>(op)?)
    }

    /// Begins a [`reduce_all`](Self::reduce_all).
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn begin_reduce_all<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        values: Vec<T>,
        combine: impl FnMut(T, T) -> T + Send + 'static,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        self.begin_combined(None, values, By::new(combine))
    }

    fn begin_combined<T: Pod + Send + Sync>(
        &self,
        root: Option<u32>,
        mut values: Vec<T>,
        combine: impl Combine + 'static,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        // SAFETY: begun.1: the collective keeps `values` until its event is done.
        let bytes = unsafe { bytes_in(&mut values) };
        let start = Start { keep: Some(M::keep(values)), ..Start::default() };
        let begun = teams.begin_reduce(engine, team, start, root, (bytes, bytes), combine)?;
        Ok(Event::new(engine, begun, |kept| kept.and_then(M::unkeep)))
    }

    /// Begins a [`scan`](Self::scan).
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    ///
    /// # Panics
    /// Values that need more than 16 bytes' alignment.
    pub fn begin_scan<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        mut values: Vec<T>,
        combine: impl FnMut(T, T) -> T + Send + 'static,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        // SAFETY: begun.1: the collective keeps `values` until its event is done.
        let bytes = unsafe { bytes_in(&mut values) };
        let start = Start { keep: Some(M::keep(values)), ..Start::default() };
        let begun = teams.begin_scan(engine, team, start, (None, bytes), true, By::new(combine))?;
        Ok(Event::new(engine, begun, |kept| kept.and_then(M::unkeep)))
    }

    /// Begins a [`gather`](Self::gather); gives what all have at member `root`, and nothing elsewhere.
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    pub fn begin_gather<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        own: Vec<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        let all = self.room::<T>(own.len(), root == team.own())?;
        // SAFETY: begun.1: the collective keeps `own` and `all` until its event is done.
        let (given, place, start) = unsafe { both(own, all) };
        let begun = teams.begin_gather(engine, team, start, (root, given), (place, Lengths::Equal))?;
        Ok(Event::new(engine, begun, second::<M, T>))
    }

    /// Begins a [`scatter`](Self::scatter) of `count` values for each member; gives this one's. Elsewhere than at member `root`, `all` may be empty.
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast); at the root there are not as many values.
    pub fn begin_scatter<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        root: u32,
        all: Vec<T>,
        count: usize,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        // It has its turn among the team's collectives all the same.
        let wrong = bytes_of::<T>(count).err();
        let own = vec![T::zeroed(); if wrong.is_some() { 0 } else { count }];
        // SAFETY: begun.1: the collective keeps `all` and `own` until its event is done.
        let (given, place, start) = unsafe { both(all, own) };
        let begun = teams.begin_scatter(engine, team, start, (given, Lengths::Equal), (root, place));
        let begun = wrong.map_or(Ok(()), Err).and(Ok(begun?))?;
        Ok(Event::new(engine, begun, second::<M, T>))
    }

    /// Begins an [`all_gather`](Self::all_gather); gives what all have.
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    pub fn begin_all_gather<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        own: Vec<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        let all = self.room::<T>(own.len(), true)?;
        // SAFETY: begun.1: the collective keeps `own` and `all` until its event is done.
        let (given, place, start) = unsafe { both(own, all) };
        let begun = teams.begin_all_gather(engine, team, start, (given, place))?;
        Ok(Event::new(engine, begun, second::<M, T>))
    }

    /// Begins an [`all_to_all`](Self::all_to_all); gives what comes.
    ///
    /// # Errors
    /// Those of [`begin_broadcast`](Self::begin_broadcast); there are not as many values for each member.
    pub fn begin_all_to_all<T: Pod + Send + Sync>(
        &self,
        _agent: &Agent<'_, M>,
        to: Vec<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (engine, teams, team) = self.parts();
        let from = vec![T::zeroed(); to.len()];
        // SAFETY: begun.1: the collective keeps `to` and `from` until its event is done.
        let (given, place, start) = unsafe { both(to, from) };
        let begun = teams.begin_all_to_all(engine, team, start, (given, place), None)?;
        Ok(Event::new(engine, begun, second::<M, T>))
    }

    /// Room for as many values of each member, if it is wanted.
    fn room<T: Pod>(&self, count: usize, is_wanted: bool) -> Result<Vec<T>, Error> {
        if !is_wanted {
            return Ok(Vec::new());
        }
        let all = count.saturating_mul(self.size() as usize);
        bytes_of::<T>(all)?;
        Ok(vec![T::zeroed(); all])
    }
}

/// The second of two vectors that were kept.
fn second<M: ThreadMode, T: Pod + Send + Sync>(kept: gasworks_extended::event::Kept<M>) -> Option<Vec<T>> {
    kept.and_then(M::unkeep::<(Vec<T>, Vec<T>)>).map(|(_, second)| second)
}
