//! A thread's agent: every call that communicates is made on one.
//!
//! - `am`: active messages; `negotiated`: those whose payload is made in place; `rma`: put and get; `meet`: the barrier.

#[allow(unsafe_code)]
mod am;
mod meet;
mod negotiated;
#[allow(unsafe_code)]
mod rma;

pub(crate) use am::send_owned_long;
pub use meet::Phase;
pub use negotiated::{PreparedLong, PreparedMedium};

use crate::segment::{Local, Segment};
use crate::{Error, GlobalPtr, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Engine, View};
use gasworks_extended::Barrier;
use gasworks_memory::Rights;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A thread's agent. It stays on its thread and does not outlive its job, so a handler cannot hold one: a handler that
/// communicates does not compile. (Where a job has been leaked to make it `'static`, its calls fail in a handler.)
pub struct Agent<'job, M: ThreadMode> {
    engine: &'job Engine<M>,
    barrier: &'job Barrier<M>,
    /// What the numbers of ranks mean.
    view: View<'job>,
    /// What this rank's is.
    own: u32,
    stays_here: PhantomData<*mut ()>,
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    pub(crate) fn new(engine: &'job Engine<M>, barrier: &'job Barrier<M>) -> Self {
        Self::within(engine, barrier, engine.everyone(), engine.rank())
    }

    /// As which this rank is known by the numbers of a view.
    pub(crate) fn within(
        engine: &'job Engine<M>,
        barrier: &'job Barrier<M>,
        view: View<'job>,
        own: u32,
    ) -> Self {
        Self { engine, barrier, view, own, stays_here: PhantomData }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &'job Engine<M> {
        self.engine
    }

    #[inline]
    pub(crate) fn view(&self) -> View<'job> {
        self.view
    }

    /// This rank; on a team, which member it is.
    pub fn rank(&self) -> u32 {
        self.own
    }

    /// The number of ranks; on a team, of its members.
    pub fn ranks(&self) -> u32 {
        self.view.size()
    }

    /// The largest payload of a Medium to any rank, in bytes.
    pub fn max_medium(&self) -> usize {
        self.engine().max_medium()
    }

    /// The largest payload of a Medium to this rank, in bytes: no less than to any.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn max_medium_to(&self, rank: u32) -> Result<usize, Error> {
        Ok(self.engine().limits(self.view.rank_of(rank)?)?.max_medium)
    }

    /// The largest payload of a Long to any rank, in bytes.
    pub fn max_long(&self) -> u64 {
        self.engine().max_long()
    }

    /// A rank's segment, or its part of the region that stands in the place of segments.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn segment(&self, rank: u32) -> Result<Segment, Error> {
        let (peers, of) = (self.engine().peers(), self.view.rank_of(rank)?);
        let len = match self.view.in_region() {
            Some(id) => peers.len_in(id, of),
            None => peers.len_of(of),
        };
        match len {
            Some(len) => Ok(Segment { rank, len }),
            None => {
                let cause = gasworks_memory::MemoryError::NoSuchRank { rank, ranks: peers.ranks() };
                Err(gasworks_core::Error::Memory { during: "segment query", cause }.into())
            }
        }
    }

    /// `count` values at `place`, which is in this rank's own segment, to be read and written in place.
    ///
    /// # Errors
    /// The place is another rank's, or not inside the segment.
    pub fn local<T: Pod>(&self, place: GlobalPtr<T>, count: usize) -> Result<Local<'job, T>, Error> {
        if place.rank() != self.rank() {
            return Err(Error::Pointer(format!("{place:?} is not local to rank {}", self.rank())));
        }
        let outside = || Error::Pointer(format!("{count} values at {place:?} are not inside the segment"));
        let bytes = count.checked_mul(size_of::<T>()).ok_or_else(outside)?;
        let located = self.engine().peers().reach(
            self.engine().rank(),
            place.place(self.view)?.1,
            bytes,
            Rights::empty(),
        );
        located.ok().flatten().map(Local::new).ok_or_else(outside)
    }

    /// Makes progress: runs the handlers of messages that have arrived. Returns how many there were, with transfers
    /// that completed.
    ///
    /// # Errors
    /// Something is wrong with a peer's messages or memory, or a handler failed.
    #[inline]
    pub fn poll(&self) -> Result<usize, Error> {
        Ok(self.engine().poll()?)
    }

    /// Polls until `done` says so: spins, then yields, then sleeps.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll).
    pub fn wait_until(&self, done: impl FnMut() -> bool) -> Result<(), Error> {
        Ok(self.engine().wait_until(done)?)
    }

    /// Runs a future of events to its end, polling all the while.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll).
    pub fn block_on<R>(&self, future: impl Future<Output = Result<R, Error>>) -> Result<R, Error> {
        struct Polled;
        impl Wake for Polled {
            fn wake(self: Arc<Self>) {} // the loop below asks again after every turn anyway
        }
        let waker = Waker::from(Arc::new(Polled));
        let mut future = pin!(future);
        let mut sleeper = self.engine().sleeper();
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return result;
            }
            self.engine().turn(&mut sleeper)?;
        }
    }
}

/// An error of a call to a member of a team, which names the member.
pub(crate) fn named<E: Into<Error>>(view: View<'_>, member: u32) -> impl FnOnce(E) -> Error {
    move |error| match error.into() {
        Error::Core(error) => Error::Core(view.explain(member, error)),
        other => other,
    }
}
