//! Operations under way on a NIC, and what is done when they complete.
//!
//! The engine below knows a transfer by a token; this table gives the token its meaning: an event that somebody
//! tests, waits for or awaits, or a message that leaves once its payload has landed. An operation may keep buffers
//! alive until it completes, so that dropping an event early is safe.

use crate::message::{Encoded, Returned};
use crate::{CoreMode, Error, Rank};
use gasworks_rdma::NicError;
use gasworks_sync::Lock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// An operation: an index, and which of the operations that have had this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId {
    index: u32,
    generation: u32,
}

impl OpId {
    /// As the NIC's token.
    pub(crate) fn token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

/// What is done when an operation completes: the seed's "completion actions".
#[derive(Debug)]
pub(crate) enum After {
    /// Somebody asks for it.
    Event,
    /// A Long request's header leaves, and somebody asks when its payload may be used again.
    Request { to: Rank, head: Encoded },
    /// A Long reply's header leaves.
    Reply { to: Rank, head: Encoded, own: Returned },
}

enum State {
    Free,
    Pending,
    Done(Result<(), NicError>),
}

struct Slot<M: CoreMode> {
    generation: u32,
    state: State,
    after: After,
    keep: Option<Box<M::Keep>>,
    waker: Option<Waker>,
    abandoned: bool,
}

/// What a finished operation leaves: how it ended, and what it kept.
pub type Finished<M> = (Result<(), NicError>, Option<Box<<M as CoreMode>::Keep>>);

/// What came of a request whose payload may be in use: an operation, or if none was needed what would have been kept.
pub type Sent<M> = Result<OpId, Option<Box<<M as CoreMode>::Keep>>>;

/// Why an operation was not started, and what it would have kept.
pub type NotStarted<M> = (crate::Error, Option<Box<<M as CoreMode>::Keep>>);

/// The table of operations.
pub(crate) struct Ops<M: CoreMode> {
    inner: M::Lock<Inner<M>>,
}

struct Inner<M: CoreMode> {
    slots: Vec<Slot<M>>,
    free: Vec<u32>,
}

impl<M: CoreMode> Ops<M> {
    pub(crate) fn new() -> Self {
        Self { inner: Lock::new(Inner { slots: Vec::new(), free: Vec::new() }) }
    }

    /// Enters an operation.
    pub(crate) fn start(&self, after: After, keep: Option<Box<M::Keep>>) -> OpId {
        self.inner.with(|inner| {
            let index = inner.free.pop().unwrap_or_else(|| {
                let slot = Slot {
                    generation: 0,
                    state: State::Free,
                    after: After::Event,
                    keep: None,
                    waker: None,
                    abandoned: false,
                };
                inner.slots.push(slot);
                (inner.slots.len() - 1) as u32
            });
            let slot = &mut inner.slots[index as usize];
            slot.generation = slot.generation.wrapping_add(1);
            slot.state = State::Pending;
            slot.after = after;
            slot.keep = keep;
            slot.waker = None;
            slot.abandoned = false;
            OpId { index, generation: slot.generation }
        })
    }

    /// The NIC has finished: keeps the result for whoever asks, and says what is to be done now.
    pub(crate) fn complete(&self, token: u64, result: Result<(), NicError>) -> Option<After> {
        let (index, generation) = (token as u32, (token >> 32) as u32);
        let (after, waker, kept) = self.inner.with(|inner| {
            let slot = inner.slots.get_mut(index as usize)?;
            if slot.generation != generation || !matches!(slot.state, State::Pending) {
                return None;
            }
            let after = std::mem::replace(&mut slot.after, After::Event);
            let waker = slot.waker.take();
            slot.state = State::Done(result);
            let kept = if slot.abandoned { inner.release(index) } else { None };
            Some((after, waker, kept))
        })?;
        drop(kept); // outside the lock: it may be large, or the client's own type
        if let Some(waker) = waker {
            // A waker is the client's code. Its panic must not unwind through a wait for a borrowed buffer.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        Some(after)
    }

    /// Whether an operation has finished; if so it is taken out of the table.
    pub(crate) fn test(&self, id: OpId) -> Result<Option<Finished<M>>, Error> {
        let (finished, waker) = self.inner.with(|inner| {
            let slot = inner.slot(id)?;
            match slot.state {
                State::Done(result) => {
                    let waker = slot.waker.take();
                    let kept = inner.release(id.index);
                    Ok::<_, Error>((Some((result, kept)), waker))
                }
                _ => Ok((None, None)),
            }
        })?;
        drop(waker);
        Ok(finished)
    }

    /// Like [`test`](Self::test), and has `waker` woken later if it has not.
    pub(crate) fn test_or_wake(&self, id: OpId, waker: &Waker) -> Result<Option<Finished<M>>, Error> {
        if let Some(finished) = self.test(id)? {
            return Ok(Some(finished));
        }
        // Wakers are cloned and dropped outside the lock: they are the client's code, which may come back here.
        let mut waker = Some(waker.clone());
        let late = self.inner.with(|inner| {
            let slot = inner.slot(id)?;
            std::mem::swap(&mut slot.waker, &mut waker);
            Ok::<_, Error>(matches!(slot.state, State::Done(_)))
        })?;
        drop(waker);
        if late { self.test(id) } else { Ok(None) }
    }

    /// Nobody will ask any more: what the operation keeps stays alive until it completes.
    pub(crate) fn abandon(&self, id: OpId) {
        let left = self.inner.with(|inner| {
            let slot = inner.slot(id).ok()?;
            let waker = slot.waker.take();
            let kept = match slot.state {
                State::Done(_) => inner.release(id.index),
                _ => {
                    slot.abandoned = true;
                    None
                }
            };
            Some((waker, kept))
        });
        drop(left);
    }

    /// The network will never be heard of again while it may still use what operations keep: that stays for ever.
    pub(crate) fn leak(&self) {
        self.inner.with(|inner| inner.slots.iter_mut().for_each(|slot| std::mem::forget(slot.keep.take())));
    }

    /// Takes out an operation that was never started.
    pub(crate) fn withdraw(&self, id: OpId) -> Option<Box<M::Keep>> {
        self.inner.with(|inner| {
            inner.slot(id).ok()?;
            inner.release(id.index)
        })
    }
}

impl<M: CoreMode> Inner<M> {
    fn slot(&mut self, id: OpId) -> Result<&mut Slot<M>, Error> {
        let slot = self.slots.get_mut(id.index as usize);
        slot.filter(|s| s.generation == id.generation && !matches!(s.state, State::Free))
            .ok_or(Error::UnknownEvent)
    }

    fn release(&mut self, index: u32) -> Option<Box<M::Keep>> {
        let slot = &mut self.slots[index as usize];
        slot.state = State::Free;
        slot.after = After::Event;
        self.free.push(index);
        slot.keep.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::Seq;

    #[test]
    fn an_event_is_good_once() {
        let ops = Ops::<Seq>::new();
        let id = ops.start(After::Event, Some(Box::new(7u32)));
        assert!(matches!(ops.test(id), Ok(None)));
        assert!(ops.complete(id.token(), Ok(())).is_some());
        assert!(ops.complete(id.token(), Ok(())).is_none(), "a second completion is ignored");
        let finished = ops.test(id);
        assert!(matches!(&finished, Ok(Some((Ok(()), Some(kept)))) if kept.downcast_ref() == Some(&7u32)));
        assert_eq!(ops.test(id).err(), Some(Error::UnknownEvent));
        let next = ops.start(After::Event, None);
        assert_ne!(next, id);
        assert_eq!(ops.test(id).err(), Some(Error::UnknownEvent));
    }

    #[test]
    fn what_an_abandoned_operation_keeps_lives_until_it_completes() {
        let ops = Ops::<Seq>::new();
        let kept = std::rc::Rc::new(());
        let id = ops.start(After::Event, Some(Box::new(kept.clone())));
        ops.abandon(id);
        assert_eq!(std::rc::Rc::strong_count(&kept), 2);
        assert!(ops.complete(id.token(), Err(NicError::Busy)).is_some());
        assert_eq!(std::rc::Rc::strong_count(&kept), 1);
    }
}
