//! Events of non-blocking operations: tested, waited for, or awaited.

use crate::{Agent, Error, ThreadMode};
use gasworks_core::{Categories, Engine};
use gasworks_extended::event;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A non-blocking operation that gives a `T` when it is done. Dropped before, it goes on, and what it uses stays alive
/// until it is done.
#[must_use = "an operation is done when its event says so"]
pub struct Event<'job, M: ThreadMode, T> {
    engine: &'job Engine<M>,
    state: State<M, T>,
}

/// What turns what the operation kept into the event's value.
pub(crate) type Take<M, T> = fn(event::Kept<M>) -> Option<T>;

enum State<M: ThreadMode, T> {
    Pending(event::Event, Take<M, T>),
    Done(T),
    Failed(Error),
    Taken,
}

impl<T, M: ThreadMode> Unpin for Event<'_, M, T> {}

impl<'job, M: ThreadMode, T> Event<'job, M, T> {
    /// From what `rma` returned: an event, and what was kept if it was done at once.
    pub(crate) fn new(
        engine: &'job Engine<M>,
        started: (event::Event, event::Kept<M>),
        take: Take<M, T>,
    ) -> Self {
        let (event, kept) = started;
        let state = if event.is_done() {
            take(kept).map_or(State::Taken, State::Done)
        } else {
            State::Pending(event, take)
        };
        Self { engine, state }
    }

    /// Of what is over.
    pub(crate) fn done(engine: &'job Engine<M>, value: T) -> Self {
        Self { engine, state: State::Done(value) }
    }

    /// Whether the operation is done. Does not poll.
    ///
    /// # Errors
    /// The operation failed.
    pub fn test(&mut self) -> Result<bool, Error> {
        self.look();
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Failed(error) => Err(error),
            state => {
                self.state = state;
                Ok(!matches!(self.state, State::Pending(..)))
            }
        }
    }

    /// Asks whether the operation is done, if that is not known.
    fn look(&mut self) {
        if let State::Pending(event, take) = &self.state {
            self.state = match event::test(self.engine, event) {
                Ok(None) if self.engine.is_over() => State::Failed(gasworks_core::Error::Over.into()),
                Ok(None) => return,
                Ok(Some(kept)) => take(kept).map_or(State::Taken, State::Done),
                Err(error) => State::Failed(error.into()),
            };
        }
    }

    /// Polls until the operation is done. The agent is any of this thread's: it shows that no handler is running.
    ///
    /// # Errors
    /// The operation failed, was taken by an earlier await, or a poll found something wrong.
    pub fn wait(mut self, _agent: &Agent<'_, M>) -> Result<T, Error> {
        // Most are done when they are started: to a mapped peer all are.
        if matches!(self.state, State::Pending(..)) {
            let mut sleeper = self.engine.sleeper();
            while !self.test()? {
                self.engine.turn(&mut sleeper)?;
            }
        }
        self.take()
    }

    /// Whether the source of the put may be used again, by whoever owns it: its local completion. Never later than the
    /// operation is done. Does not poll.
    ///
    /// # Errors
    /// The event is of no operation that is known.
    pub fn source_free(&self) -> Result<bool, Error> {
        match &self.state {
            State::Pending(event, _) => {
                Ok(event::test(self.engine, &event.leaf(Categories::LOCAL))?.is_some())
            }
            _ => Ok(true),
        }
    }

    /// Polls until all are done; their values, in the same order. An operation that failed does not keep the others from
    /// being waited for.
    ///
    /// # Errors
    /// The first operation that failed, or what a poll found wrong.
    pub fn all(
        agent: &Agent<'_, M>,
        events: impl IntoIterator<Item = Event<'job, M, T>>,
    ) -> Result<Vec<T>, Error> {
        let ended: Vec<_> = events.into_iter().map(|event| event.wait(agent)).collect();
        ended.into_iter().collect()
    }

    /// Polls until one at least is done that has not been awaited yet; the places of all that are, in order. None are
    /// where there is nothing to wait for. One that failed counts as done: its [`wait`](Self::wait) tells.
    ///
    /// # Errors
    /// What a poll found wrong.
    pub fn some(_agent: &Agent<'_, M>, events: &mut [Event<'job, M, T>]) -> Result<Vec<usize>, Error> {
        let Some(engine) = events.first().map(|event| event.engine) else { return Ok(Vec::new()) };
        let mut sleeper = engine.sleeper();
        loop {
            events.iter_mut().for_each(Self::look);
            let done = |event: &Self| matches!(event.state, State::Done(_) | State::Failed(_));
            let places: Vec<_> = (0..events.len()).filter(|&at| done(&events[at])).collect();
            let waiting = events.iter().any(|event| matches!(event.state, State::Pending(..)));
            if !places.is_empty() || !waiting {
                return Ok(places);
            }
            engine.turn(&mut sleeper)?;
        }
    }

    fn take(&mut self) -> Result<T, Error> {
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Done(value) => Ok(value),
            State::Failed(error) => Err(error),
            _ => Err(gasworks_core::Error::UnknownEvent.into()),
        }
    }
}

/// Woken by whichever agent's poll completes the operation.
impl<M: ThreadMode, T> Future for Event<'_, M, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Pending(event, take) = &self.state {
            let take = *take;
            match event::poll_event(self.engine, event, context) {
                Poll::Pending if self.engine.is_over() => {
                    self.state = State::Failed(gasworks_core::Error::Over.into());
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(kept)) => self.state = take(kept).map_or(State::Taken, State::Done),
                Poll::Ready(Err(error)) => {
                    self.state = State::Taken;
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
        Poll::Ready(self.take())
    }
}

impl<M: ThreadMode, T> Drop for Event<'_, M, T> {
    fn drop(&mut self) {
        if let State::Pending(event, _) = std::mem::replace(&mut self.state, State::Taken) {
            event::abandon(self.engine, event);
        }
    }
}
