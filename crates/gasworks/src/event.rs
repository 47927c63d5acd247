//! Events of non-blocking operations: tested, waited for, or awaited.

use crate::{Agent, Error, ThreadMode};
use gasworks_core::Engine;
use gasworks_extended::rma;
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
pub(crate) type Take<M, T> = fn(rma::Kept<M>) -> Option<T>;

enum State<M: ThreadMode, T> {
    Pending(rma::Event, Take<M, T>),
    Done(T),
    Taken,
}

impl<T, M: ThreadMode> Unpin for Event<'_, M, T> {}

impl<'job, M: ThreadMode, T> Event<'job, M, T> {
    /// From what `rma` returned: an event, and what was kept if it was done at once.
    pub(crate) fn new(
        engine: &'job Engine<M>,
        started: (rma::Event, rma::Kept<M>),
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

    /// Whether the operation is done. Does not poll.
    ///
    /// # Errors
    /// The operation failed.
    pub fn test(&mut self) -> Result<bool, Error> {
        if let State::Pending(event, take) = &self.state {
            let take = *take;
            match rma::test(self.engine, event) {
                Ok(None) => return Ok(false),
                Ok(Some(kept)) => self.state = take(kept).map_or(State::Taken, State::Done),
                Err(error) => {
                    self.state = State::Taken;
                    return Err(error.into());
                }
            }
        }
        Ok(true)
    }

    /// Polls until the operation is done. The agent is any of this thread's: it shows that no handler is running.
    ///
    /// # Errors
    /// The operation failed, was taken by an earlier await, or a poll found something wrong.
    pub fn wait(mut self, _agent: &Agent<'_, M>) -> Result<T, Error> {
        let mut sleeper = self.engine.sleeper();
        while !self.test()? {
            self.engine.turn(&mut sleeper)?;
        }
        self.take()
    }

    fn take(&mut self) -> Result<T, Error> {
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Done(value) => Ok(value),
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
            match rma::poll_event(self.engine, event, context) {
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
            rma::abandon(self.engine, event);
        }
    }
}
