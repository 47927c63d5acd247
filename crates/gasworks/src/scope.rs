//! Non-blocking operations on borrowed memory: they all complete before the scope ends.
//!
//! # Invariants
//! - scope.1: a buffer given to a scope is borrowed for `'scope`, which outlives the scope's closure; `Agent::scope` waits for
//!   every operation that was started before it returns or unwinds.

use crate::{Error, GlobalPtr, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Engine, View};
use gasworks_extended::Implicit;
use gasworks_extended::rma::{self, Options};
use gasworks_extended::scattered::{self, Peer, Runs, Way};
use std::marker::PhantomData;

/// A scope of non-blocking operations on borrowed memory; [`Agent::scope`](crate::Agent::scope) opens one.
pub struct Scope<'scope, 'env: 'scope, M: ThreadMode> {
    engine: &'env Engine<M>,
    view: View<'env>,
    started: Implicit,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, 'env, M: ThreadMode> Scope<'scope, 'env, M> {
    pub(crate) fn new(engine: &'env Engine<M>, view: View<'env>) -> Self {
        Self { engine, view, started: Implicit::new(), scope: PhantomData }
    }

    /// Starts a put of `source`.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn put<T: Pod>(&'scope self, target: GlobalPtr<T>, source: &'scope [T]) -> Result<(), Error> {
        let place = target.remote(self.view);
        let (start, len, options) = (source.as_ptr().cast(), size_of_val(source), Options::default());
        // SAFETY: scope.1: `source` is borrowed for `'scope`, at whose end the put is over, which is what rma.1 of `gasworks_extended`
        // asks.
        Ok(unsafe { rma::put_nbi(self.engine, &self.started, place, start, len, None, options) }?)
    }

    /// Starts a get into `target`.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    #[inline]
    pub fn get<T: Pod>(&'scope self, source: GlobalPtr<T>, target: &'scope mut [T]) -> Result<(), Error> {
        let place = source.remote(self.view);
        let (start, len) = (target.as_mut_ptr().cast(), size_of_val(target));
        // SAFETY: scope.1: `target` is borrowed exclusively for `'scope`, at whose end the get is over, which is what rma.1 of
        // `gasworks_extended` asks.
        Ok(unsafe { rma::get_nbi(self.engine, &self.started, place, start, len, false) }?)
    }

    /// Starts a transfer of scattered data.
    ///
    /// # Safety
    /// The runs here are borrowed for `'scope`, exclusively for a get (scope.1).
    pub(crate) unsafe fn start(&self, member: u32, way: Way, runs: &impl Runs) -> Result<(), Error> {
        let (peer, options) = (Peer { view: self.view, member }, Options::default());
        // SAFETY: scope.1: the caller promises the runs here for `'scope`, at whose end the transfer is over, which is what scattered.1 of
        // `gasworks_extended` asks.
        Ok(unsafe { scattered::transfer_nbi(self.engine, &self.started, peer, way, runs, options) }?)
    }

    /// Waits for everything that was started; the first failure, once all are over. Should a wait unwind, the scope's guard
    /// goes on with it.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        Ok(self.started.finish(self.engine)?)
    }
}
