//! Non-blocking operations on borrowed memory: they all complete before the scope ends.
//!
//! # Invariants
//! S1. A buffer given to a scope is borrowed for `'scope`, which outlives the scope's closure; `Agent::scope` waits for
//!     every operation that was started before it returns or unwinds.

use crate::{Error, GlobalPtr, ThreadMode};
use bytemuck::Pod;
use gasworks_core::Engine;
use gasworks_extended::rma;
use std::cell::RefCell;
use std::marker::PhantomData;

/// A scope of non-blocking operations on borrowed memory; [`Agent::scope`](crate::Agent::scope) opens one.
pub struct Scope<'scope, 'env: 'scope, M: ThreadMode> {
    engine: &'env Engine<M>,
    started: RefCell<Vec<rma::Event>>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, 'env, M: ThreadMode> Scope<'scope, 'env, M> {
    pub(crate) fn new(engine: &'env Engine<M>) -> Self {
        Self { engine, started: RefCell::new(Vec::new()), scope: PhantomData }
    }

    /// Starts a put of `source`.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn put<T: Pod>(&'scope self, target: GlobalPtr<T>, source: &'scope [T]) -> Result<(), Error> {
        let bytes: &[u8] = bytemuck::cast_slice(source);
        // SAFETY: E1 of gasworks_extended::rma, by S1.
        let (event, _) = unsafe {
            rma::put_nb(self.engine, target.rank(), target.offset(), bytes.as_ptr(), bytes.len(), None)?
        };
        self.keep(event);
        Ok(())
    }

    /// Starts a get into `target`.
    ///
    /// # Errors
    /// The rank or the range is wrong, or the network failed.
    pub fn get<T: Pod>(&'scope self, source: GlobalPtr<T>, target: &'scope mut [T]) -> Result<(), Error> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(target);
        // SAFETY: E1 of gasworks_extended::rma, by S1.
        let (event, _) = unsafe {
            rma::get_nb(self.engine, source.rank(), source.offset(), bytes.as_mut_ptr(), bytes.len(), None)?
        };
        self.keep(event);
        Ok(())
    }

    fn keep(&self, event: rma::Event) {
        if !event.is_done() {
            self.started.borrow_mut().push(event);
        }
    }

    /// Waits for everything that was started; the first failure, once all are over.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut outcome = Ok(());
        // One by one: should the wait for one unwind, the scope's guard goes on with the rest.
        while let Some(event) = { self.started.borrow_mut().pop() } {
            if let Err(error) = rma::finish_borrowed(self.engine, event)
                && outcome.is_ok()
            {
                outcome = Err(error.into());
            }
        }
        outcome
    }
}
