//! Implicit operations: they have no event of their own, but belong to a set of which one asks by category whether all
//! is done; or to an access region, which has one event for all that was started in it.

use crate::Error;
use crate::event::{self, Event};
use gasworks_core::{Categories, CoreMode, Engine, OpId};
use std::cell::Cell;

/// A thread's implicit operations: the specification's NBI set. Whoever starts operations in it owns it; it stays on one
/// thread at a time. What completes at once leaves no trace in it.
#[derive(Debug, Default)]
pub struct Implicit {
    set: Cell<Option<OpId>>,
    /// The access region that is open, and its set once that has something in it.
    region: Cell<Option<Option<OpId>>>,
}

impl Implicit {
    /// A set of nothing.
    pub const fn new() -> Self {
        Self { set: Cell::new(None), region: Cell::new(None) }
    }

    /// An access region whose set is open already: it is ended by whoever has opened that.
    pub(crate) const fn within(set: OpId) -> Self {
        Self { set: Cell::new(None), region: Cell::new(Some(Some(set))) }
    }

    /// The set that an operation joins which does not complete at once.
    pub(crate) fn joined<M: CoreMode>(&self, engine: &Engine<M>) -> OpId {
        match self.region.get() {
            None => self.set.get().unwrap_or_else(|| {
                let set = engine.open_set();
                self.set.set(Some(set));
                set
            }),
            Some(set) => set.unwrap_or_else(|| {
                let set = engine.open_set();
                self.region.set(Some(Some(set)));
                set
            }),
        }
    }

    /// Whether all operations of these categories are done that were started so far. Does not poll.
    ///
    /// # Errors
    /// An access region is open; one of the operations failed, of which all are done then.
    #[inline]
    pub fn test<M: CoreMode>(&self, engine: &Engine<M>, categories: Categories) -> Result<bool, Error> {
        if self.region.get().is_some() {
            return Err(Error::Region("implicit operations tested or waited for inside one"));
        }
        match self.set.get() {
            None => Ok(true),
            Some(set) => self.test_set(engine, set, categories),
        }
    }

    fn test_set<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        set: OpId,
        categories: Categories,
    ) -> Result<bool, Error> {
        // All done is tested first: it takes the set out, and says whether something failed.
        let all = event::test(engine, &Event(Some(set)));
        if !matches!(all, Ok(None)) {
            self.set.set(None);
        }
        Ok(all?.is_some()
            || (categories != Categories::all()
                && event::test(engine, &Event(Some(set.leaf(categories))))?.is_some()))
    }

    /// Polls until all operations of these categories are done.
    ///
    /// # Errors
    /// Those of [`test`](Self::test), and whatever a poll finds wrong.
    #[inline]
    pub fn wait<M: CoreMode>(&self, engine: &Engine<M>, categories: Categories) -> Result<(), Error> {
        if self.test(engine, categories)? {
            return Ok(());
        }
        let mut sleeper = engine.sleeper();
        while !self.test(engine, categories)? {
            engine.turn(&mut sleeper)?;
        }
        Ok(())
    }

    /// Waits for all, though polls may fail: for operations on borrowed memory. A failure is returned once all are over.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn finish<M: CoreMode>(&self, engine: &Engine<M>) -> Result<(), Error> {
        // The set is taken out only with its last operation over: should the wait unwind, it can be gone on with.
        let set = self.set.get();
        let outcome = event::finish_borrowed(engine, &Event(set));
        self.set.set(None);
        outcome
    }

    /// Opens an access region: what is started until it ends is part of its event, and of nothing else.
    ///
    /// # Errors
    /// One is open: they do not nest.
    pub fn begin_region(&self) -> Result<(), Error> {
        if self.region.get().is_some() {
            return Err(Error::Region("begun inside another: they do not nest"));
        }
        self.region.set(Some(None));
        Ok(())
    }

    /// Ends the access region, and gives its one event.
    ///
    /// # Errors
    /// None is open.
    pub fn end_region(&self) -> Result<Event, Error> {
        self.region.take().map(Event).ok_or(Error::Region("ended, but none is open"))
    }

    /// Forgets all of it: operations go on, and what they keep lives until they are done.
    pub fn abandon<M: CoreMode>(&self, engine: &Engine<M>) {
        let region = self.region.take().flatten();
        self.set.take().into_iter().chain(region).for_each(|set| engine.abandon(set));
    }
}
