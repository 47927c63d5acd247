//! Operations under way on a NIC, and what is done when they complete.
//!
//! The engine below knows a transfer by a token; this table gives the token its meaning: an event that somebody
//! tests, waits for or awaits, a part of a set of which somebody asks whether all is done, or a message that leaves once
//! its payload has landed. An operation may keep buffers alive until it completes, so that dropping an event early is
//! safe.
//!
//! An operation and a set are alike: each counts what is under way in each of the [`Categories`], one operation at most
//! one in each. So a set has leaves just as a put has.

mod id;
#[cfg(test)]
#[allow(unsafe_code)]
mod tests;

pub use id::{Categories, OpId};

use crate::message::{Encoded, Returned};
use crate::{CoreMode, Error, Rank};
use gasworks_rdma::NicError;
use gasworks_sync::{Lock, RawSlice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// What is done when an operation completes: the seed's "completion actions".
#[derive(Debug)]
pub(crate) enum After {
    /// Somebody asks for it.
    Event,
    /// A Long request's header leaves, and somebody asks when its payload may be used again.
    Request { to: Rank, head: Encoded },
    /// A Long reply's header leaves.
    Reply { to: Rank, head: Encoded, own: Returned },
    /// A rank has been asked something; somebody asks for it once its answer lies there (query.1 of `engine::query`).
    Answer { from: Rank, place: RawSlice },
    /// Nothing: the header has left beside its payload, and nobody asks.
    Beside,
}

struct Slot<M: CoreMode> {
    generation: u32,
    live: bool,
    /// What is under way, by bit of [`Categories`].
    pending: [u32; 4],
    /// The first failure.
    result: Result<(), NicError>,
    after: After,
    keep: Option<Box<M::Keep>>,
    waker: Option<Waker>,
    abandoned: bool,
    /// The set that it is part of: nobody asks for it alone.
    set: Option<OpId>,
}

impl<M: CoreMode> Slot<M> {
    fn is_done(&self, categories: Categories) -> bool {
        categories.iter_bits().all(|bit| self.pending[bit] == 0)
    }

    fn add(&mut self, counts: Categories) {
        counts.iter_bits().for_each(|bit| self.pending[bit] += 1);
    }

    fn take(&mut self, counts: Categories) {
        counts.iter_bits().for_each(|bit| self.pending[bit] = self.pending[bit].saturating_sub(1));
    }

    /// What is under way in an operation, which is not a set: it counts at most one of each.
    fn under_way(&self) -> Categories {
        let bits = (0..4).filter(|&bit| self.pending[bit] > 0).fold(0, |bits, bit| bits | 1 << bit);
        Categories::from_bits_truncate(bits)
    }
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

    /// Enters an operation that counts as this, alone.
    pub(crate) fn start(&self, after: After, counts: Categories, keep: Option<Box<M::Keep>>) -> OpId {
        self.inner.with(|inner| inner.enter(after, counts, keep))
    }

    /// Enters an operation that counts as this in a set; nobody asks for it alone.
    pub(crate) fn start_in(
        &self,
        set: OpId,
        after: After,
        counts: Categories,
        keep: Option<Box<M::Keep>>,
    ) -> Result<OpId, NotStarted<M>> {
        self.inner.with(|inner| match inner.slot(set.root()) {
            Err(error) => Err((error, keep)),
            Ok(slot) => {
                slot.add(counts);
                let id = inner.enter(after, counts, keep);
                let slot = &mut inner.slots[id.index()];
                (slot.set, slot.abandoned) = (Some(set.root()), true);
                Ok(id)
            }
        })
    }

    /// Enters a set, of nothing yet.
    pub(crate) fn open(&self) -> OpId {
        self.start(After::Event, Categories::empty(), None)
    }

    /// The NIC has finished: keeps the result for whoever asks, and says what is to be done now.
    pub(crate) fn complete(&self, token: u64, result: Result<(), NicError>) -> Option<After> {
        let id = OpId::from_bits(token)?;
        let (after, left) = self.inner.with(|inner| {
            let slot = inner.slot(id).ok()?;
            let counts = slot.under_way();
            if counts.is_empty() {
                return None; // a second completion of the same
            }
            slot.result = slot.result.and(result);
            let after = std::mem::replace(&mut slot.after, After::Event);
            Some((after, inner.finish(id, counts, result)))
        })?;
        left.settle();
        Some(after)
    }

    /// A rank has answered: puts what it says where it belongs, and completes the operation. Whether this was asked of that rank.
    pub(crate) fn answer(&self, token: u64, from: Rank, answer: Result<&[u8], NicError>) -> bool {
        let Some(id) = OpId::from_bits(token) else { return false };
        let left = self.inner.with(|inner| {
            let slot = inner.slot(id).ok()?;
            let After::Answer { from: asked, place } = slot.after else { return None };
            if asked != from {
                return None;
            }
            match answer {
                // SAFETY: the operation is not done yet, and until it is, whoever made the query keeps the place mapped and leaves it
                // alone.
                Ok(bytes) => unsafe { place.borrow() }.write(bytes.get(..place.len())?),
                Err(error) => slot.result = slot.result.and(Err(error)),
            }
            slot.after = After::Event;
            let counts = slot.under_way();
            Some(inner.finish(id, counts, answer.map(|_| ())))
        });
        let was_asked = left.is_some();
        left.into_iter().for_each(Left::settle);
        was_asked
    }

    /// The source of an operation under way may be used again.
    pub(crate) fn complete_locally(&self, token: u64) {
        let Some(id) = OpId::from_bits(token) else { return };
        let left = self.inner.with(|inner| {
            let local = inner.slot(id).ok()?.under_way() & Categories::LOCAL;
            // Where nothing else is counted, and something is to be done in the end, the end says it all.
            let slot = inner.slot(id).ok()?;
            let more = slot.under_way() != local || matches!(slot.after, After::Event);
            (more && !local.is_empty()).then(|| inner.finish(id, local, Ok(())))
        });
        left.into_iter().for_each(Left::settle);
    }

    /// Whether an operation has finished; if so it is taken out of the table. A leaf stays until its root is taken out.
    pub(crate) fn test(&self, id: OpId) -> Result<Option<Finished<M>>, Error> {
        let (finished, waker) = self.inner.with(|inner| {
            let slot = inner.slot(id)?;
            let leaf = id.leaf_of();
            if !leaf.is_empty() {
                return Ok((slot.is_done(leaf).then_some((Ok(()), None)), None));
            }
            if !slot.is_done(Categories::all()) {
                return Ok((None, None));
            }
            let (result, waker) = (slot.result, slot.waker.take());
            Ok::<_, Error>((Some((result, inner.release(id))), waker))
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
            Ok::<_, Error>(slot.is_done(Categories::all()))
        })?;
        drop(waker);
        if late { self.test(id) } else { Ok(None) }
    }

    /// Nobody will ask any more: what the operation keeps stays alive until it completes.
    pub(crate) fn abandon(&self, id: OpId) {
        let left = self.inner.with(|inner| {
            let slot = inner.slot(id.root()).ok()?;
            slot.abandoned = true;
            let waker = slot.waker.take();
            let done = slot.is_done(Categories::all());
            Some((waker, if done { inner.release(id) } else { None }))
        });
        drop(left);
    }

    /// The network will never be heard of again while it may still use what operations keep: that stays for ever.
    pub(crate) fn leak(&self) {
        self.inner.with(|inner| inner.slots.iter_mut().for_each(|slot| std::mem::forget(slot.keep.take())));
    }

    /// Takes out an operation that was never started.
    pub(crate) fn withdraw(&self, id: OpId) -> Option<Box<M::Keep>> {
        let (kept, left) = self.inner.with(|inner| {
            let slot = inner.slot(id).ok()?;
            let (counts, kept) = (slot.under_way(), slot.keep.take());
            slot.abandoned = true;
            Some((kept, inner.finish(id, counts, Ok(()))))
        })?;
        left.settle();
        kept
    }
}

/// What a completion leaves to be done outside the lock.
struct Left<M: CoreMode> {
    kept: Option<Box<M::Keep>>,
    wakers: [Option<Waker>; 2],
}

impl<M: CoreMode> Left<M> {
    fn settle(self) {
        drop(self.kept); // it may be large, or the client's own type
        for waker in self.wakers.into_iter().flatten() {
            // A waker is the client's code. Its panic must not unwind through a wait for a borrowed buffer.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl<M: CoreMode> Inner<M> {
    fn enter(&mut self, after: After, counts: Categories, keep: Option<Box<M::Keep>>) -> OpId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                live: false,
                pending: [0; 4],
                result: Ok(()),
                after: After::Event,
                keep: None,
                waker: None,
                abandoned: false,
                set: None,
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.generation = OpId::next_generation(slot.generation);
        slot.live = true;
        slot.pending = [0; 4];
        slot.add(counts);
        slot.result = Ok(());
        slot.after = after;
        slot.keep = keep;
        slot.abandoned = false;
        slot.set = None;
        OpId::new(index, slot.generation)
    }

    fn slot(&mut self, id: OpId) -> Result<&mut Slot<M>, Error> {
        let slot = self.slots.get_mut(id.index());
        slot.filter(|s| s.generation == id.generation() && s.live).ok_or(Error::UnknownEvent)
    }

    /// These parts of an operation are over, here and in its set.
    fn finish(&mut self, id: OpId, counts: Categories, result: Result<(), NicError>) -> Left<M> {
        let mut left = Left { kept: None, wakers: [None, None] };
        let mut set = None;
        if let Ok(slot) = self.slot(id) {
            slot.take(counts);
            set = slot.set;
            left.kept = self.retire(id, &mut left.wakers[0]);
        }
        if let Some(set) = set
            && let Ok(slot) = self.slot(set)
        {
            slot.take(counts);
            slot.result = slot.result.and(result);
            // A set keeps nothing.
            self.retire(set, &mut left.wakers[1]);
        }
        left
    }

    /// If all of it is over: its waker is to be woken, and if nobody asks for it it goes.
    fn retire(&mut self, id: OpId, waker: &mut Option<Waker>) -> Option<Box<M::Keep>> {
        let slot = self.slot(id).ok()?;
        if !slot.is_done(Categories::all()) {
            return None;
        }
        *waker = slot.waker.take();
        if slot.abandoned { self.release(id) } else { None }
    }

    fn release(&mut self, id: OpId) -> Option<Box<M::Keep>> {
        let slot = &mut self.slots[id.index()];
        slot.live = false;
        slot.after = After::Event;
        self.free.push(id.index() as u32);
        slot.keep.take()
    }
}
