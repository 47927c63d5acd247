//! A thread's agent: every call that communicates is made on one.

use crate::event::Event;
use crate::segment::{Local, Segment};
use crate::table::{Args, LongRequest, MediumRequest, ShortRequest};
use crate::{Error, GlobalPtr, Job, Scope, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Category, Engine, Outgoing};
use gasworks_extended::rma;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A thread's agent. It stays on its thread and does not outlive its job, so a handler cannot hold one: a handler that
/// communicates does not compile. (Where a job has been leaked to make it `'static`, its calls fail in a handler.)
pub struct Agent<'job, M: ThreadMode> {
    job: &'job Job<M>,
    stays_here: PhantomData<*mut ()>,
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    pub(crate) fn new(job: &'job Job<M>) -> Self {
        Self { job, stays_here: PhantomData }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &'job Engine<M> {
        &self.job.engine
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.engine().rank()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.engine().ranks()
    }

    /// The largest payload of a Medium, in bytes.
    pub fn max_medium(&self) -> usize {
        self.engine().max_medium()
    }

    /// The largest payload of a Long, in bytes.
    pub fn max_long(&self) -> u64 {
        self.engine().max_long()
    }

    /// A rank's segment.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn segment(&self, rank: u32) -> Result<Segment, Error> {
        let peers = self.engine().peers();
        match peers.get(rank) {
            Some(peer) => Ok(Segment { rank, len: peer.len }),
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
        let located = self.engine().peers().locate(place.rank(), place.offset(), bytes);
        located.ok().flatten().map(Local::new).ok_or_else(outside)
    }

    // Active messages.

    /// Sends a Short request, polling while credits are short.
    ///
    /// # Errors
    /// There is no such rank, the peer is gone, or a poll finds something wrong.
    pub fn request_short<A: Args>(&self, to: u32, handler: ShortRequest<A>, args: A) -> Result<(), Error> {
        Ok(self.engine().request(to, &short(handler, &args))?)
    }

    /// Sends a Short request, or says that it must wait ([`Error::is_busy`]).
    ///
    /// # Errors
    /// It must wait; and those of [`request_short`](Self::request_short).
    pub fn try_request_short<A: Args>(
        &self,
        to: u32,
        handler: ShortRequest<A>,
        args: A,
    ) -> Result<(), Error> {
        Ok(self.engine().try_request(to, &short(handler, &args))?)
    }

    /// Sends a Medium request, polling while credits or room are short. The payload may be used again on return.
    ///
    /// # Errors
    /// The payload is larger than [`max_medium`](Self::max_medium), there is no such rank, the peer is gone, or a poll
    /// finds something wrong.
    pub fn request_medium<A: Args>(
        &self,
        to: u32,
        handler: MediumRequest<A>,
        args: A,
        payload: &[u8],
    ) -> Result<(), Error> {
        Ok(self.engine().request(to, &medium(handler, &args, payload))?)
    }

    /// Sends a Medium request, or says that it must wait ([`Error::is_busy`]).
    ///
    /// # Errors
    /// It must wait; and those of [`request_medium`](Self::request_medium).
    pub fn try_request_medium<A: Args>(
        &self,
        to: u32,
        handler: MediumRequest<A>,
        args: A,
        payload: &[u8],
    ) -> Result<(), Error> {
        Ok(self.engine().try_request(to, &medium(handler, &args, payload))?)
    }

    /// Sends a Long request: the payload lands at `landing` in its rank's segment, then the handler runs there. The
    /// payload may be used again on return.
    ///
    /// # Errors
    /// The place is not inside the segment, there is no such rank, the peer is gone, or a poll finds something wrong.
    pub fn request_long<A: Args>(
        &self,
        handler: LongRequest<A>,
        args: A,
        payload: &[u8],
        landing: GlobalPtr<u8>,
    ) -> Result<(), Error> {
        Ok(self.engine().request(landing.rank(), &long(handler, &args, payload, landing))?)
    }

    /// Sends a Long request, or says that it must wait ([`Error::is_busy`]). To a peer that is not mapped it returns when
    /// the payload has landed.
    ///
    /// # Errors
    /// It must wait; and those of [`request_long`](Self::request_long).
    pub fn try_request_long<A: Args>(
        &self,
        handler: LongRequest<A>,
        args: A,
        payload: &[u8],
        landing: GlobalPtr<u8>,
    ) -> Result<(), Error> {
        Ok(self.engine().try_request(landing.rank(), &long(handler, &args, payload, landing))?)
    }

    /// Makes progress: runs the handlers of messages that have arrived. Returns how many there were, with transfers
    /// that completed.
    ///
    /// # Errors
    /// Something is wrong with a peer's messages or memory, or a handler failed.
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

    // Put and get.

    /// Puts values; returns when they can be seen at the target.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    #[inline]
    pub fn put<T: Pod>(&self, target: GlobalPtr<T>, source: &[T]) -> Result<(), Error> {
        Ok(rma::put(self.engine(), target.rank(), target.offset(), bytemuck::cast_slice(source))?)
    }

    /// Gets values into `target`.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    #[inline]
    pub fn get<T: Pod>(&self, source: GlobalPtr<T>, target: &mut [T]) -> Result<(), Error> {
        Ok(rma::get(self.engine(), source.rank(), source.offset(), bytemuck::cast_slice_mut(target))?)
    }

    /// Puts one value.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    #[inline]
    pub fn put_value<T: Pod>(&self, target: GlobalPtr<T>, value: T) -> Result<(), Error> {
        self.put(target, std::slice::from_ref(&value))
    }

    /// Gets one value.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    #[inline]
    pub fn get_value<T: Pod>(&self, source: GlobalPtr<T>) -> Result<T, Error> {
        let mut value = T::zeroed();
        self.get(source, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Starts a put of a copy of `source`, which may be used again on return.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn put_copy<T: Pod>(&self, target: GlobalPtr<T>, source: &[T]) -> Result<Event<'job, M, ()>, Error> {
        let bytes: &[u8] = bytemuck::cast_slice(source);
        let peers = self.engine().peers();
        let mapped = matches!(peers.locate(target.rank(), target.offset(), bytes.len()), Ok(Some(_)));
        if mapped {
            self.put(target, source)?; // nothing to copy: it is done at once
            return Ok(Event::new(self.engine(), (rma::Event::DONE, None), |_| Some(())));
        }
        let copy = bytes.to_vec();
        let (start, len) = (copy.as_ptr(), copy.len());
        // SAFETY: E1 of gasworks_extended::rma: the operation keeps the copy, whose heap block does not move.
        let started = unsafe {
            rma::put_nb(self.engine(), target.rank(), target.offset(), start, len, Some(M::keep(copy)))?
        };
        Ok(Event::new(self.engine(), started, |_| Some(())))
    }

    /// Starts a put of `source`, and gives it back when it is done; on an error it is dropped.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn put_owned<T: Pod + Send + Sync>(
        &self,
        target: GlobalPtr<T>,
        source: Vec<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let (start, len) = (source.as_ptr().cast(), size_of_val(&source[..]));
        // SAFETY: E1 of gasworks_extended::rma: the operation keeps the vector, whose heap block does not move.
        let started = unsafe {
            rma::put_nb(self.engine(), target.rank(), target.offset(), start, len, Some(M::keep(source)))?
        };
        Ok(Event::new(self.engine(), started, |kept| kept.and_then(M::unkeep)))
    }

    /// Starts a get of `count` values, and gives them when it is done.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn get_owned<T: Pod + Send + Sync>(
        &self,
        source: GlobalPtr<T>,
        count: usize,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let mut target = vec![T::zeroed(); count];
        let (start, len) = (target.as_mut_ptr().cast(), size_of_val(&target[..]));
        // SAFETY: E1 of gasworks_extended::rma: the operation keeps the vector, whose heap block does not move.
        let started = unsafe {
            rma::get_nb(self.engine(), source.rank(), source.offset(), start, len, Some(M::keep(target)))?
        };
        Ok(Event::new(self.engine(), started, |kept| kept.and_then(M::unkeep)))
    }

    /// Starts a put of `count` values at `source`: the raw form.
    ///
    /// # Safety
    /// The values stay mapped and unchanged until the event is done, also if it is dropped. They do not overlap the target,
    /// and no rank writes them meanwhile.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub unsafe fn put_raw<T: Pod>(
        &self,
        target: GlobalPtr<T>,
        source: *const T,
        count: usize,
    ) -> Result<Event<'job, M, ()>, Error> {
        let len = bytes_of::<T>(count)?;
        // SAFETY: the caller's promise.
        let started =
            unsafe { rma::put_nb(self.engine(), target.rank(), target.offset(), source.cast(), len, None)? };
        Ok(Event::new(self.engine(), started, |_| Some(())))
    }

    /// Starts a get of `count` values to `target`: the raw form.
    ///
    /// # Safety
    /// The place stays mapped and is not used otherwise until the event is done, also if it is dropped. It does not overlap
    /// the source.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub unsafe fn get_raw<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        count: usize,
    ) -> Result<Event<'job, M, ()>, Error> {
        let len = bytes_of::<T>(count)?;
        // SAFETY: the caller's promise.
        let started =
            unsafe { rma::get_nb(self.engine(), source.rank(), source.offset(), target.cast(), len, None)? };
        Ok(Event::new(self.engine(), started, |_| Some(())))
    }

    /// Runs `body` with a scope in which puts and gets of borrowed memory are started; they are all done when this
    /// returns.
    ///
    /// # Errors
    /// What `body` returns, or the first operation that failed.
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, M>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        struct Finish<'a, 'scope, 'env, M: ThreadMode>(&'a Scope<'scope, 'env, M>);
        impl<M: ThreadMode> Drop for Finish<'_, '_, '_, M> {
            fn drop(&mut self) {
                // Only on a panic of the body is anything left here, and its panic says more than our error.
                let _ = self.0.finish();
            }
        }
        let scope = Scope::new(self.engine());
        let finish = Finish(&scope);
        let result = body(finish.0);
        let finished = finish.0.finish();
        let value = result?;
        finished?;
        Ok(value)
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

    // Barrier.

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

fn short<A: Args>(handler: ShortRequest<A>, args: &A) -> Outgoing<'_> {
    let args = bytemuck::bytes_of(args);
    Outgoing { category: Category::Short, handler: handler.index(), args, payload: &[], landing: 0 }
}

fn medium<'a, A: Args>(handler: MediumRequest<A>, args: &'a A, payload: &'a [u8]) -> Outgoing<'a> {
    let args = bytemuck::bytes_of(args);
    Outgoing { category: Category::Medium, handler: handler.index(), args, payload, landing: 0 }
}

fn long<'a, A: Args>(
    handler: LongRequest<A>,
    args: &'a A,
    payload: &'a [u8],
    landing: GlobalPtr<u8>,
) -> Outgoing<'a> {
    let args = bytemuck::bytes_of(args);
    Outgoing { category: Category::Long, handler: handler.index(), args, payload, landing: landing.offset() }
}

fn bytes_of<T>(count: usize) -> Result<usize, Error> {
    let too_many = || {
        Error::Pointer(format!("{count} values of {} bytes are more than an address counts", size_of::<T>()))
    };
    count.checked_mul(size_of::<T>()).ok_or_else(too_many)
}
