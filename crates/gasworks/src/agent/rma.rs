//! Put and get.

use super::Agent;
use crate::event::Event;
use crate::pointer::bytes_of;
use crate::{Error, GlobalPtr, Implicit, Scope, ThreadMode};
use bytemuck::Pod;
use gasworks_extended::rma::{self, Local, Options};

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// Puts values; returns when they can be seen at the target.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    #[inline(always)]
    pub fn put<T: Pod>(&self, target: GlobalPtr<T>, source: &[T]) -> Result<(), Error> {
        let (place, source): (_, &[u8]) = (target.remote(self.view), bytemuck::cast_slice(source));
        match place.open(source.len()) {
            Some(there) => {
                there.write(source);
                Ok(())
            }
            None => self.put_far(target.cast(), source),
        }
    }

    /// What is more than a copy, or nowhere: out of line, so that the way to a mapped peer stays short.
    #[cold]
    #[inline(never)]
    fn put_far(&self, target: GlobalPtr<u8>, source: &[u8]) -> Result<(), Error> {
        match self.view.open_by_stride(target.rank(), target.offset(), source.len()) {
            Some(there) => there.write(source),
            None => rma::put(self.engine(), target.remote(self.view), source)?,
        }
        Ok(())
    }

    /// Gets values into `target`.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    #[inline(always)]
    pub fn get<T: Pod>(&self, source: GlobalPtr<T>, target: &mut [T]) -> Result<(), Error> {
        let (place, target): (_, &mut [u8]) = (source.remote(self.view), bytemuck::cast_slice_mut(target));
        match place.open(target.len()) {
            Some(there) => {
                there.read(target);
                Ok(())
            }
            None => self.get_far(source.cast(), target),
        }
    }

    /// As [`put_far`](Self::put_far).
    #[cold]
    #[inline(never)]
    fn get_far(&self, source: GlobalPtr<u8>, target: &mut [u8]) -> Result<(), Error> {
        match self.view.open_by_stride(source.rank(), source.offset(), target.len()) {
            Some(there) => there.read(target),
            None => rma::get(self.engine(), source.remote(self.view), target)?,
        }
        Ok(())
    }

    /// Puts one value.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    #[inline(always)]
    pub fn put_value<T: Pod>(&self, target: GlobalPtr<T>, value: T) -> Result<(), Error> {
        match self.view.rows().open_value(target.rank(), target.offset(), size_of::<T>()) {
            Some(place) => {
                place.write(bytemuck::bytes_of(&value));
                Ok(())
            }
            None => self.put_value_far(target, value),
        }
    }

    /// By value, so that one on its way to a mapped peer stays in a register.
    #[cold]
    #[inline(never)]
    fn put_value_far<T: Pod>(&self, target: GlobalPtr<T>, value: T) -> Result<(), Error> {
        match self.view.open_by_stride(target.rank(), target.offset(), size_of::<T>()) {
            Some(place) => {
                place.write(bytemuck::bytes_of(&value));
                Ok(())
            }
            None => self.put_far(target.cast(), bytemuck::bytes_of(&value)),
        }
    }

    /// Gets one value.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    #[inline(always)]
    pub fn get_value<T: Pod>(&self, source: GlobalPtr<T>) -> Result<T, Error> {
        let mut value = T::zeroed();
        match self.view.rows().open_value(source.rank(), source.offset(), size_of::<T>()) {
            Some(place) => place.read(bytemuck::bytes_of_mut(&mut value)),
            None => return self.get_value_far(source),
        }
        Ok(value)
    }

    /// As [`put_value_far`](Self::put_value_far).
    #[cold]
    #[inline(never)]
    fn get_value_far<T: Pod>(&self, source: GlobalPtr<T>) -> Result<T, Error> {
        let mut value = T::zeroed();
        match self.view.open_by_stride(source.rank(), source.offset(), size_of::<T>()) {
            Some(place) => place.read(bytemuck::bytes_of_mut(&mut value)),
            None => self.get_far(source.cast(), bytemuck::bytes_of_mut(&mut value))?,
        }
        Ok(value)
    }

    /// Starts a put of a copy of `source`, which may be used again on return.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn put_copy<T: Pod>(&self, target: GlobalPtr<T>, source: &[T]) -> Result<Event<'job, M, ()>, Error> {
        let bytes: &[u8] = bytemuck::cast_slice(source);
        let place = target.remote(self.view);
        let (start, len, now) =
            (bytes.as_ptr(), bytes.len(), Options { local: Local::Now, immediate: false });
        // SAFETY: rma.1 of `gasworks_extended`: `source` is borrowed until this returns, and by `Local::Now` it is used no more then.
        let started = unsafe { rma::put_nb(self.engine(), place, start, len, None, now) };
        Ok(Event::new(self.engine(), started?, |_| Some(())))
    }

    /// Starts a put of `source`, and gives it back when it is done; on an error it is dropped. Whether it may be used
    /// before, the event [says](Event::source_free).
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn put_owned<T: Pod + Send + Sync>(
        &self,
        target: GlobalPtr<T>,
        source: Vec<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let place = target.remote(self.view);
        let (start, len) = (source.as_ptr().cast(), size_of_val(&source[..]));
        // SAFETY: rma.1 of `gasworks_extended`: `start` points into the heap block of `source`, which the operation keeps and nobody
        // changes.
        let started = unsafe { rma::put_nb(self.engine(), place, start, len, Some(M::keep(source)), APART) };
        Ok(Event::new(self.engine(), started?, |kept| kept.and_then(M::unkeep)))
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
        let place = source.remote(self.view);
        let mut target = vec![T::zeroed(); count];
        let (start, len) = (target.as_mut_ptr().cast(), size_of_val(&target[..]));
        // SAFETY: rma.1 of `gasworks_extended`: `start` points into the heap block of `target`, which the operation keeps and gives back
        // when it is done.
        let started = unsafe { rma::get_nb(self.engine(), place, start, len, Some(M::keep(target)), false) };
        Ok(Event::new(self.engine(), started?, |kept| kept.and_then(M::unkeep)))
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
        let (place, len) = (target.remote(self.view), bytes_of::<T>(count)?);
        // SAFETY: rma.1 of `gasworks_extended`: the caller promises that the `count` values at `source` stay mapped and unchanged until the
        // event is done.
        let started =
            unsafe { rma::put_nb(self.engine(), place, source.cast(), len, None, Options::default()) };
        Ok(Event::new(self.engine(), started?, |_| Some(())))
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
        let (place, len) = (source.remote(self.view), bytes_of::<T>(count)?);
        // SAFETY: rma.1 of `gasworks_extended`: the caller promises that `target` has room for `count` values and is not used until the
        // event is done.
        let started = unsafe { rma::get_nb(self.engine(), place, target.cast(), len, None, false) };
        Ok(Event::new(self.engine(), started?, |_| Some(())))
    }

    /// A set of implicit operations of this thread: none of them has an event of its own.
    pub fn implicit(&self) -> Implicit<'job, M> {
        Implicit::new(self.engine(), self.view)
    }

    /// Runs `body` with a set of its own, an *access region*: one event says when all is done that was started in it.
    ///
    /// # Errors
    /// What `body` returns; what it started goes on then.
    pub fn region<R>(
        &self,
        body: impl FnOnce(&Implicit<'job, M>) -> Result<R, Error>,
    ) -> Result<(R, Event<'job, M, ()>), Error> {
        let implicit = self.implicit();
        let value = implicit.region(body)?;
        Ok((value.0, Event::new(self.engine(), (value.1, None), |_| Some(()))))
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
        let scope = Scope::new(self.engine(), self.view);
        let finish = Finish(&scope);
        let result = body(finish.0);
        let finished = finish.0.finish();
        let value = result?;
        finished?;
        Ok(value)
    }
}

/// The source of the put is asked for apart.
const APART: Options = Options { local: Local::Apart, immediate: false };
