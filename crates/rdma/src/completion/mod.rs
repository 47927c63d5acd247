//! The table of what is under way: each operation has a slot in it, and its number is the token by which the NIC names it when it is done.
//!
//! An operation is an event that somebody tests, waits for or awaits, or a part of a set of which somebody asks whether all is done; it may
//! have an action, which whoever completes it is given. It may keep a buffer alive until it completes, so that dropping an event early is
//! safe. An operation and a set are alike: each has something under way in each of the [`Categories`], an operation at most once. So a set
//! has leaves just as a put has.
//!
//! # Protocol
//! - completion.1: an operation is completed by one change of its state word, which says which operation the slot has (its generation), whether
//!   it is still there, and what is under way. Nobody touches a slot for an operation whose generation is not in the word, or that is not
//!   there any more.
//! - completion.2: an operation goes by a change of its word that finds nothing under way: the one that makes it takes what it kept and gives
//!   the slot back. Whoever abandons it and whoever completes it change the same word, so one of them sees both.
//! - completion.3: what stands behind a slot's lock is marked in the word first. Whoever has the lock looks at the word again before it
//!   puts something there.
//! - completion.4: who sees that nothing is under way sees what was done before it ended.

mod id;
mod slab;
#[cfg(all(test, not(gasworks_loom)))]
mod tests;

pub use id::{Categories, OpId};

use gasworks_sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{self, Relaxed},
};
use gasworks_sync::{Lock, Mode, ord};
use id::GENERATION_SHIFT;
use slab::Slab;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// The word of a slot that no operation has has only its last generation.
const GENERATION: u64 = u64::MAX << GENERATION_SHIFT;
/// An operation has the slot.
const LIVE: u64 = 1 << 35;
/// Nobody asks for it.
const ABANDONED: u64 = 1 << 34;
/// It is a set.
const SET: u64 = 1 << 33;
/// There is something behind the lock.
const COLD: u64 = 1 << 32;
/// That is an action.
const ACTION: u64 = 1 << 31;
/// That is a waker.
const WAKER: u64 = 1 << 30;
/// What is under way: of an operation the bits of its categories, of a set how much in all of them.
const PENDING: u64 = WAKER - 1;

/// What a finished operation leaves: how it ended, and what it kept.
pub type Finished<K, E> = (Result<(), E>, Option<K>);

/// An operation that is there: its slot and its word.
type Found<'a, M, A, K, E> = (&'a Slot<M, A, K, E>, u64);

/// There is no such operation, or none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// The operations under way, with actions `A`, which keep `K` and fail with `E`.
pub struct Completions<M: Mode, A, K, E> {
    slab: Slab<Slot<M, A, K, E>>,
}

struct Slot<M: Mode, A, K, E> {
    state: AtomicU64,
    /// Of a set: how much is under way, by bit of [`Categories`].
    left: [AtomicU32; 4],
    /// The set that it is part of, as a number, or 0.
    set: AtomicU64,
    cold: M::Lock<Cold<A, K, E>>,
}

struct Cold<A, K, E> {
    /// The first one.
    failure: Option<E>,
    action: Option<A>,
    keep: Option<K>,
    waker: Option<Waker>,
}

impl<A, K, E> Default for Cold<A, K, E> {
    fn default() -> Self {
        Self { failure: None, action: None, keep: None, waker: None }
    }
}

impl<M: Mode, A, K, E> Default for Slot<M, A, K, E> {
    fn default() -> Self {
        Self {
            state: AtomicU64::new(0),
            left: std::array::from_fn(|_| AtomicU32::new(0)),
            set: AtomicU64::new(0),
            cold: Lock::new(Cold::default()),
        }
    }
}

impl OpId {
    /// Whether a slot with this state has it.
    fn is(self, state: u64) -> bool {
        state >> GENERATION_SHIFT == u64::from(self.generation()) && state & LIVE != 0
    }
}

/// What is under way in an operation that is no set.
fn categories(state: u64) -> Categories {
    let bits = if state & SET == 0 { state as u8 } else { 0 };
    Categories::from_bits_truncate(bits)
}

impl<M: Mode, A, K, E> Slot<M, A, K, E> {
    fn load(&self) -> u64 {
        // Acquire: completion.4.
        self.state.load(ord!("completion.see", Acquire))
    }

    /// Changes the word of an operation that is there, unless `to` does not want it; what it was.
    fn change(&self, id: OpId, to: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut state = self.load();
        loop {
            let next = if id.is(state) { to(state)? } else { return None };
            if !M::PARALLEL {
                self.state.store(next, Relaxed);
                return Some(state);
            }
            // Release: completion.4.
            if self.state.compare_exchange_weak(state, next, ord!("completion.end", Release), Relaxed).is_ok()
            {
                return Some(state);
            }
            state = self.load();
        }
    }

    /// What is behind the lock, if the operation is there still (completion.3).
    fn with_cold<R>(&self, id: OpId, act: impl FnOnce(&mut Cold<A, K, E>) -> Option<R>) -> Option<R> {
        self.cold.with(|cold| if id.is(self.load()) { act(cold) } else { None })
    }
}

/// Adds to a counter, for which a processor's locked instruction is needed only where threads are parallel.
fn add<M: Mode>(counter: &AtomicU32, change: i32, order: Ordering) {
    if M::PARALLEL {
        counter.fetch_add(change as u32, order);
    } else {
        counter.store(counter.load(Relaxed).wrapping_add(change as u32), Relaxed);
    }
}

impl<M: Mode, A, K, E: Copy> Default for Completions<M, A, K, E> {
    fn default() -> Self {
        Self { slab: Slab::new() }
    }
}

impl<M: Mode, A, K, E: Copy> Completions<M, A, K, E> {
    /// Enters an operation that counts as this, alone.
    pub fn start(&self, action: Option<A>, counts: Categories, keep: Option<K>) -> OpId {
        self.enter(action, u64::from(counts.bits()), None, keep)
    }

    /// Enters an operation that counts as this in a set; nobody asks for it alone.
    ///
    /// # Errors
    /// There is no such set; what was to be kept comes back.
    pub fn start_in(
        &self,
        set: OpId,
        action: Option<A>,
        counts: Categories,
        keep: Option<K>,
    ) -> Result<OpId, (Unknown, Option<K>)> {
        let slot = self.slab.get(set.index());
        let more = |state: u64| (state & SET != 0).then(|| state + counts.count());
        let Some(slot) = slot.filter(|slot| slot.change(set.root(), more).is_some()) else {
            return Err((Unknown, keep));
        };
        // Relaxed: whoever asks for a leaf has started what it asks for, or was told by who did.
        counts.iter_bits().for_each(|bit| add::<M>(&slot.left[bit], 1, Relaxed));
        let state = ABANDONED | u64::from(counts.bits());
        Ok(self.enter(action, state, Some(set.root()), keep))
    }

    /// Enters a set, of nothing yet.
    pub fn open(&self) -> OpId {
        self.enter(None, SET, None, None)
    }

    /// Enters a set, of nothing yet, which keeps something until all of it is over and it is forgotten.
    pub fn open_keeping(&self, keep: K) -> OpId {
        self.enter(None, SET, None, Some(keep))
    }

    fn enter(&self, action: Option<A>, state: u64, set: Option<OpId>, keep: Option<K>) -> OpId {
        let index = self.slab.take();
        let Some(slot) = self.slab.get(index) else { unreachable!("it was taken") };
        let last = slot.state.load(Relaxed) >> GENERATION_SHIFT;
        let id = OpId::new(index, OpId::next_generation(last as u32));
        let mut state = u64::from(id.generation()) << GENERATION_SHIFT | LIVE | state;
        slot.set.store(set.map_or(0, OpId::to_bits), Relaxed);
        if action.is_some() || keep.is_some() {
            state |= if action.is_some() { COLD | ACTION } else { COLD };
            slot.cold.with(|cold| *cold = Cold { action, keep, ..Cold::default() });
        }
        // Relaxed: who completes it is told its number, and so comes after.
        slot.state.store(state, Relaxed);
        id
    }

    fn of(&self, id: OpId) -> Option<Found<'_, M, A, K, E>> {
        let slot = self.slab.get(id.index())?;
        let state = slot.load();
        id.is(state).then_some((slot, state))
    }

    /// The NIC has finished what this number names: keeps the result for whoever asks. The operation's action, if it has one; `None` if
    /// nothing was under way by this number.
    pub fn complete(&self, token: u64, result: Result<(), E>) -> Option<Option<A>> {
        let id = OpId::from_bits(token)?;
        let (slot, state) = self.of(id)?;
        let action = if state & ACTION == 0 { None } else { slot.with_cold(id, |cold| cold.action.take()) };
        self.finish(id, Categories::all(), result).then_some(action)
    }

    /// What an operation with an action has asked for has come: `act` sees its action and says how it ended, unless the answer is not the
    /// one. Whether it was.
    pub fn answer(&self, token: u64, act: impl FnOnce(&A) -> Option<Result<(), E>>) -> bool {
        let Some(id) = OpId::from_bits(token) else { return false };
        let ended = self.of(id).and_then(|(slot, _)| {
            slot.with_cold(id, |cold| {
                let ended = act(cold.action.as_ref()?)?;
                cold.action = None;
                Some(ended)
            })
        });
        ended.is_some_and(|result| self.finish(id, Categories::all(), result))
    }

    /// The source of an operation under way may be used again.
    pub fn complete_locally(&self, token: u64) {
        let Some(id) = OpId::from_bits(token) else { return };
        let Some((_, state)) = self.of(id) else { return };
        // Where nothing else is counted, and something is to be done in the end, the end says it all.
        if state & ACTION == 0 || categories(state) != Categories::LOCAL {
            self.finish(id, Categories::LOCAL, Ok(()));
        }
    }

    /// Whether an operation has finished; if so it is forgotten. A leaf stays until its root is.
    ///
    /// # Errors
    /// There is no such operation.
    pub fn test(&self, id: OpId) -> Result<Option<Finished<K, E>>, Unknown> {
        let (slot, state) = self.of(id).ok_or(Unknown)?;
        let leaf = id.leaf_of();
        if !leaf.is_empty() {
            // Acquire: completion.4.
            let is_over = |bit: usize| slot.left[bit].load(ord!("completion.leaf", Acquire)) == 0;
            let is_done = match state & SET {
                0 => !categories(state).intersects(leaf),
                _ => leaf.iter_bits().all(is_over),
            };
            return Ok(is_done.then_some((Ok(()), None)));
        }
        if state & PENDING != 0 {
            return Ok(None);
        }
        // Another thread may have been first.
        let Cold { failure, keep, .. } = self.release(id).ok_or(Unknown)?;
        Ok(Some((failure.map_or(Ok(()), Err), keep)))
    }

    /// Like [`test`](Self::test), and has `waker` woken later if it has not.
    ///
    /// # Errors
    /// There is no such operation.
    pub fn test_or_wake(&self, id: OpId, waker: &Waker) -> Result<Option<Finished<K, E>>, Unknown> {
        if let Some(finished) = self.test(id)? {
            return Ok(Some(finished));
        }
        let (slot, _) = self.of(id).ok_or(Unknown)?;
        slot.change(id, |state| Some(state | COLD | WAKER)).ok_or(Unknown)?;
        // Wakers are cloned and dropped outside the lock: they are the client's code, which may come back here.
        let waker = Some(waker.clone());
        drop(slot.with_cold(id, |cold| Some(std::mem::replace(&mut cold.waker, waker))));
        // Whoever has completed it meanwhile may have looked for the waker before it was there.
        self.test(id)
    }

    /// Nobody will ask any more: what the operation keeps stays alive until it completes.
    pub fn abandon(&self, id: OpId) {
        let id = id.root();
        let Some((slot, _)) = self.of(id) else { return };
        let Some(was) = slot.change(id, |state| Some(state | ABANDONED)) else { return };
        if was & PENDING == 0 {
            drop(self.release(id));
        } else if was & WAKER != 0 {
            drop(slot.with_cold(id, |cold| cold.waker.take()));
        }
    }

    /// The network will never be heard of again while it may still use what operations keep: that stays for ever.
    pub fn leak(&self) {
        self.slab.all().for_each(|slot| slot.cold.with(|cold| std::mem::forget(cold.keep.take())));
    }

    /// Takes out an operation that was never started: what it was to keep.
    pub fn withdraw(&self, id: OpId) -> Option<K> {
        let (slot, _) = self.of(id)?;
        let kept = slot.with_cold(id, |cold| cold.keep.take());
        slot.change(id, |state| Some(state | ABANDONED));
        self.finish(id, Categories::all(), Ok(()));
        kept
    }

    /// These parts of an operation are over, here and in its set. Whether any was under way.
    fn finish(&self, id: OpId, part: Categories, result: Result<(), E>) -> bool {
        let Some((slot, state)) = self.of(id) else { return false };
        if !categories(state).intersects(part) {
            return false; // a second completion of the same
        }
        let set = OpId::from_bits(slot.set.load(Relaxed));
        if let Err(failure) = result {
            Self::fail(slot, id, failure);
        }
        let less = |state: u64| {
            let over = categories(state) & part;
            (!over.is_empty()).then(|| state & !u64::from(over.bits()))
        };
        let Some(was) = self.end(slot, id, less) else { return false };
        if let Some(set) = set
            && let Some(slot) = self.slab.get(set.index())
        {
            if let Err(failure) = result {
                Self::fail(slot, set, failure);
            }
            let over = categories(was) & part;
            // Release: completion.4.
            over.iter_bits().for_each(|bit| add::<M>(&slot.left[bit], -1, ord!("completion.part", Release)));
            self.end(slot, set, |state| Some(state - over.count()));
        }
        true
    }

    fn fail(slot: &Slot<M, A, K, E>, id: OpId, failure: E) {
        slot.change(id, |state| Some(state | COLD));
        slot.with_cold(id, |cold| Some(cold.failure.get_or_insert(failure).to_owned()));
    }

    /// Takes from what is under way. If that was the last of it: its waker is woken, and if nobody asks for it it goes. What its word was.
    fn end(&self, slot: &Slot<M, A, K, E>, id: OpId, less: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let was = slot.change(id, &less)?;
        if less(was).is_some_and(|state| state & PENDING == 0) {
            if was & WAKER != 0
                && let Some(waker) = slot.with_cold(id, |cold| cold.waker.take())
            {
                // A waker is the client's code. Its panic must not unwind through a wait for a borrowed buffer.
                let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
            }
            if was & ABANDONED != 0 {
                drop(self.release(id)); // what it keeps may be large, or the client's own type
            }
        }
        Some(was)
    }

    /// Takes an operation out in which nothing is under way (completion.2): what is behind its lock.
    fn release(&self, id: OpId) -> Option<Cold<A, K, E>> {
        let slot = self.slab.get(id.index())?;
        let was = slot.change(id, |state| (state & PENDING == 0).then_some(state & GENERATION))?;
        let cold = if was & COLD == 0 { Cold::default() } else { slot.cold.with(std::mem::take) };
        self.slab.give(id.index());
        Some(cold)
    }

    /// How many operations and sets there are.
    #[cfg(all(test, not(gasworks_loom)))]
    fn count(&self) -> usize {
        self.slab.all().filter(|slot| slot.load() & LIVE != 0).count()
    }
}
