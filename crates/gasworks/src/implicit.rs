//! Implicit operations: a set of them is asked whether all is done.

use crate::agent::send_owned_long;
use crate::index::{Args, LongRequest};
use crate::pointer::bytes_of;
use crate::{Agent, Error, GlobalPtr, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Categories, Engine, View};
use gasworks_extended::event::Event;
use gasworks_extended::rma::{self, Local, Options};
use std::marker::PhantomData;

/// A set of implicit operations of one thread: the specification's NBI operations. None has an event of its own; one asks
/// whether all of some [`Categories`] are done. Dropped before, they go on, and what they use stays alive until they are
/// done.
///
/// [`Agent::implicit`] makes one, [`Agent::region`] one whose operations have one event together.
pub struct Implicit<'job, M: ThreadMode> {
    pub(crate) engine: &'job Engine<M>,
    view: View<'job>,
    pub(crate) set: gasworks_extended::Implicit,
    stays_here: PhantomData<*mut ()>,
}

impl<'job, M: ThreadMode> Implicit<'job, M> {
    pub(crate) fn new(engine: &'job Engine<M>, view: View<'job>) -> Self {
        Self { engine, view, set: gasworks_extended::Implicit::new(), stays_here: PhantomData }
    }

    /// Runs `body` with an access region open.
    pub(crate) fn region<R>(
        &self,
        body: impl FnOnce(&Self) -> Result<R, Error>,
    ) -> Result<(R, Event), Error> {
        self.set.begin_region()?;
        let value = body(self)?; // on an error or a panic the drop forgets what was started
        Ok((value, self.set.end_region()?))
    }

    /// Puts values; the source may be used again on return.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    #[inline]
    pub fn put<T: Pod>(&self, target: GlobalPtr<T>, source: &[T]) -> Result<(), Error> {
        let now = Options { local: Local::Now, immediate: false };
        // SAFETY: rma.1 of `gasworks_extended`: `source` is borrowed until this returns, and by `Local::Now` it is used no more then.
        unsafe { self.start_put(target, source.as_ptr(), size_of_val(source), None, now) }
    }

    /// Puts one value.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    #[inline]
    pub fn put_value<T: Pod>(&self, target: GlobalPtr<T>, value: T) -> Result<(), Error> {
        self.put(target, std::slice::from_ref(&value))
    }

    /// Puts values that the operation keeps until it is done.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub fn put_owned<T: Pod + Send + Sync>(&self, target: GlobalPtr<T>, source: Vec<T>) -> Result<(), Error> {
        let (start, bytes) = (source.as_ptr(), size_of_val(&source[..]));
        // SAFETY: rma.1 of `gasworks_extended`: the operation keeps `source`, whose heap block does not move with the vector and is not
        // used otherwise.
        unsafe { self.start_put(target, start, bytes, Some(M::keep(source)), Options::default()) }
    }

    /// Puts `count` values at `source`, which may be used again when `local` says: the raw form.
    ///
    /// # Safety
    /// The values stay mapped and unchanged until then, also if the set is dropped. They do not overlap the target, and no
    /// rank writes them meanwhile.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub unsafe fn put_raw<T: Pod>(
        &self,
        target: GlobalPtr<T>,
        source: *const T,
        count: usize,
        local: Local,
    ) -> Result<(), Error> {
        let options = Options { local, immediate: false };
        // SAFETY: rma.1 of `gasworks_extended`: the caller promises that the `count` values stay mapped and unchanged until `local` says.
        unsafe { self.start_put(target, source, bytes_of::<T>(count)?, None, options) }
    }

    /// Gets `count` values to `target`: the raw form. In borrowed memory, [`Agent::scope`] gets without it.
    ///
    /// # Safety
    /// The place stays mapped and is not used otherwise until the gets of this set are done, also if it is dropped. It does
    /// not overlap the source.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub unsafe fn get_raw<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        count: usize,
    ) -> Result<(), Error> {
        let (place, bytes) = (source.remote(self.view), bytes_of::<T>(count)?);
        // SAFETY: rma.1 of `gasworks_extended`: the caller promises that `target` has room for `count` values, and uses it only when the
        // gets are done.
        Ok(unsafe { rma::get_nbi(self.engine, &self.set, place, target.cast(), bytes, false) }?)
    }

    /// Sends a Long request with a payload that the operation keeps until it may be used again: local completion in a group.
    ///
    /// # Errors
    /// Those of [`Agent::request_long`].
    pub fn request_long_owned<A: Args, T: Pod + Send + Sync>(
        &self,
        handler: LongRequest<A>,
        args: A,
        payload: Vec<T>,
        landing: GlobalPtr<T>,
    ) -> Result<(), Error> {
        send_owned_long((self.engine, self.view), Some(&self.set), handler, args, payload, landing)
            .map(|_| ())
    }

    /// # Safety
    /// rma.1 of `gasworks_extended`, for the `bytes` at `source`.
    #[inline]
    unsafe fn start_put<T: Pod>(
        &self,
        target: GlobalPtr<T>,
        source: *const T,
        bytes: usize,
        keep: Option<Box<M::Keep>>,
        options: Options,
    ) -> Result<(), Error> {
        let (place, source) = (target.remote(self.view), source.cast());
        // SAFETY: rma.1 of `gasworks_extended`: the caller promises that the `bytes` at `source` stay until `options` say, or gives `keep`.
        Ok(unsafe { rma::put_nbi(self.engine, &self.set, place, source, bytes, keep, options) }?)
    }

    /// Whether all operations of these categories are done. Does not poll.
    ///
    /// # Errors
    /// An operation failed; or this is the set of a region, which has an event instead.
    #[inline]
    pub fn test(&self, categories: Categories) -> Result<bool, Error> {
        Ok(self.set.test(self.engine, categories)?)
    }

    /// Polls until all operations of these categories are done.
    ///
    /// # Errors
    /// Those of [`test`](Self::test), and what a poll found wrong.
    #[inline]
    pub fn wait(&self, _agent: &Agent<'_, M>, categories: Categories) -> Result<(), Error> {
        Ok(self.set.wait(self.engine, categories)?)
    }
}

impl<M: ThreadMode> Drop for Implicit<'_, M> {
    fn drop(&mut self) {
        self.set.abandon(self.engine);
    }
}
