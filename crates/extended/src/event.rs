//! Events: of operations with one of their own, of sets, and their leaves.
//!
//! An event belongs to no thread. The event of an operation is its *root*; a *leaf* of it says that a part is over, as
//! the source of a put, and is good until the root is found done. Testing never polls, waiting does.

use crate::Error;
use gasworks_core::{Categories, CoreMode, Engine, OpId};
use std::task::{Context, Poll};

/// The event of an operation that was started and may not be done: the specification's `gex_Event_t`. One word; of an
/// operation that was done when it was started it is zero.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an event that is not done is tested, waited for, or abandoned"]
pub struct Event(pub(crate) Option<OpId>);

/// What is left of a finished operation: the buffer it kept, if any.
pub type Kept<M> = Option<Box<<M as CoreMode>::Keep>>;

impl Event {
    /// The event of an operation that is done already: `GEX_EVENT_INVALID`.
    pub const DONE: Event = Event(None);

    /// Whether the operation was done when it was started.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }

    /// The leaf that says when these parts are over: of a put or an active message the local completion, of an access
    /// region any. The same each time.
    pub fn leaf(&self, categories: Categories) -> Event {
        Event(self.0.map(|id| id.leaf(categories)))
    }

    /// As a number, for a program in C: 0 if it is done, never 1, which there means that nothing was started.
    pub fn into_bits(self) -> u64 {
        self.0.map_or(0, OpId::to_bits)
    }

    /// From what [`into_bits`](Self::into_bits) gave.
    ///
    /// # Errors
    /// It never gives this number.
    pub fn from_bits(bits: u64) -> Result<Event, Error> {
        match bits {
            0 => Ok(Event::DONE),
            bits => OpId::from_bits(bits)
                .map(|id| Event(Some(id)))
                .ok_or(gasworks_core::Error::UnknownEvent.into()),
        }
    }
}

fn failed(cause: gasworks_rdma::NicError) -> Error {
    gasworks_core::Error::Nic { during: "put, get or atomic operation", cause }.into()
}

/// Whether an operation is done. Does not poll. A done event must not be tested again, nor its leaves.
///
/// # Errors
/// The transfer failed, or the event is not of this engine.
pub fn test<M: CoreMode>(engine: &Engine<M>, event: &Event) -> Result<Option<Kept<M>>, Error> {
    let Some(id) = event.0 else { return Ok(Some(None)) };
    match engine.test(id)? {
        None => Ok(None),
        Some((Ok(()), kept)) => Ok(Some(kept)),
        Some((Err(cause), _)) => Err(failed(cause)),
    }
}

/// Like [`test()`], for a future: the waker is woken by the poll that completes the operation.
///
/// # Errors
/// Those of [`test()`].
pub fn poll_event<M: CoreMode>(
    engine: &Engine<M>,
    event: &Event,
    context: &mut Context<'_>,
) -> Poll<Result<Kept<M>, Error>> {
    let Some(id) = event.0 else { return Poll::Ready(Ok(None)) };
    match engine.test_or_wake(id, context.waker()) {
        Err(error) => Poll::Ready(Err(error.into())),
        Ok(None) => Poll::Pending,
        Ok(Some((Ok(()), kept))) => Poll::Ready(Ok(kept)),
        Ok(Some((Err(cause), _))) => Poll::Ready(Err(failed(cause))),
    }
}

/// Polls until an operation is done.
///
/// # Errors
/// Those of [`test()`], and whatever a poll finds wrong.
pub fn wait<M: CoreMode>(engine: &Engine<M>, event: &Event) -> Result<Kept<M>, Error> {
    let mut sleeper = engine.sleeper();
    loop {
        if let Some(kept) = test(engine, event)? {
            return Ok(kept);
        }
        engine.turn(&mut sleeper)?;
    }
}

/// Waits for a transfer of borrowed memory. Whatever else goes wrong meanwhile, it returns only when the transfer is
/// over, and the other failure after that.
///
/// # Errors
/// Those of [`wait`].
pub fn finish_borrowed<M: CoreMode>(engine: &Engine<M>, event: &Event) -> Result<(), Error> {
    let (mut sleeper, mut other) = (engine.sleeper(), None);
    loop {
        if test(engine, event)?.is_some() {
            return other.map_or(Ok(()), Err);
        }
        if let Err(error) = engine.turn(&mut sleeper) {
            other.get_or_insert(error.into());
        }
    }
}

/// Forgets an event; what the operation keeps lives until it is done.
pub fn abandon<M: CoreMode>(engine: &Engine<M>, event: Event) {
    if let Event(Some(id)) = event {
        engine.abandon(id);
    }
}

/// Tests each event, and overwrites those that are done by [`Event::DONE`]; how many are left that are not, and whether
/// one was found done now. Roots and their leaves may stand together, in any order.
fn sweep<M: CoreMode>(engine: &Engine<M>, events: &mut [Event]) -> Result<(usize, bool), Error> {
    let is_leaf = |event: &Event| event.0.is_some_and(|id| !id.leaf_of().is_empty());
    let (mut left, mut found, mut leaves, mut problem) = (0, false, 0, None);
    // Leaves first: a leaf dies with its root.
    for leaf in [true, false] {
        for at in 0..events.len() {
            if events[at].is_done() || is_leaf(&events[at]) != leaf {
                continue;
            }
            match test(engine, &events[at]) {
                Ok(None) => {
                    left += 1;
                    leaves += usize::from(leaf);
                    continue;
                }
                Ok(Some(_)) => {}
                // It is over all the same.
                Err(error) => problem = problem.or(Some(error)),
            }
            let done = std::mem::replace(&mut events[at], Event::DONE).0;
            found = true;
            if !leaf && leaves > 0 {
                // Another thread has finished the operation since its leaf was looked at.
                for other in events.iter_mut().filter(|e| is_leaf(e) && e.0.map(OpId::root) == done) {
                    *other = Event::DONE;
                    (left, leaves) = (left - 1, leaves - 1);
                }
            }
        }
    }
    problem.map_or(Ok((left, found)), Err)
}

/// Whether all events are done, of which those that are are overwritten by [`Event::DONE`]. Does not poll.
///
/// # Errors
/// One of the transfers failed (its event is overwritten too), or an event is not of this engine.
pub fn test_all<M: CoreMode>(engine: &Engine<M>, events: &mut [Event]) -> Result<bool, Error> {
    sweep(engine, events).map(|(left, _)| left == 0)
}

/// Whether one event at least has been found done, or there was none that was not; those that are done are overwritten
/// by [`Event::DONE`]. Does not poll.
///
/// # Errors
/// Those of [`test_all`].
pub fn test_some<M: CoreMode>(engine: &Engine<M>, events: &mut [Event]) -> Result<bool, Error> {
    sweep(engine, events).map(|(left, found)| found || left == 0)
}

/// Polls until [`test_all`] says yes.
///
/// # Errors
/// Those of [`test_all`], and whatever a poll finds wrong.
pub fn wait_all<M: CoreMode>(engine: &Engine<M>, events: &mut [Event]) -> Result<(), Error> {
    let mut sleeper = engine.sleeper();
    while !test_all(engine, events)? {
        engine.turn(&mut sleeper)?;
    }
    Ok(())
}

/// Polls until [`test_some`] says yes.
///
/// # Errors
/// Those of [`wait_all`].
pub fn wait_some<M: CoreMode>(engine: &Engine<M>, events: &mut [Event]) -> Result<(), Error> {
    let mut sleeper = engine.sleeper();
    while !test_some(engine, events)? {
        engine.turn(&mut sleeper)?;
    }
    Ok(())
}
