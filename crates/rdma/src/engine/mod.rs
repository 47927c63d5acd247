//! The engine: transfers of any size, from and to memory anywhere, on any [`Nic`].
//!
//! A NIC knows only single posts that obey its rules. The engine adds what every NIC's user would otherwise write
//! again: *post descriptors* that remember what a post is for, the way by which each goes (the processor hands over what is short, the
//! NIC fetches the rest), *bounce buffers* for local memory that the NIC cannot use and for gets that are not aligned, registration of
//! what is too long for them, which is kept for the next transfer, chunks of the largest size the NIC admits, posts put off while the
//! NIC is busy, and the *completion actions* that follow a post: copy out of the bounce buffer, free it, end the registration, go on with
//! the operation, report its end.
//!
//! An operation is a put, a get or an atomic operation as its caller sees it; a descriptor is one post of it. An operation with bytes
//! left to post always has a descriptor, waiting or under way, so it can never starve. Memory is bounded by the
//! number of descriptors, and nothing is allocated once each record has been used.
//!
//! # Invariants
//! - engine.1: the caller of [`Engine::put`] or [`Engine::get`] keeps the local bytes mapped, and for a get untouched, until
//!   the token comes back. An operation's unfinished descriptors point only into those bytes or into buffers of
//!   the pool.
//! - engine.2: a token comes back only when none of the operation's posts is with the NIC any more.
//! - engine.3: a bounce buffer belongs to one descriptor from `take` to `give`, and its memory outlives the posts that use
//!   it: given memory by the promise of whoever makes an engine, the pool's own by staying allocated while a buffer
//!   is out.

#[allow(unsafe_code)]
mod memory;
mod plan;
#[allow(unsafe_code)]
mod state;

use crate::cache::{self, Cache, Registrations, Registry, Shelf, System};
use crate::nic::{Abilities, Atomics, Direction, Key, Nic, NicError};
use crate::pool::Pool;
use crate::settings::Tuning;
use gasworks_memory::atomic::{Ops, Type, Update};
use gasworks_sync::{Lock, Mode, RawSlice};
use memory::Memory;
use plan::Rules;
use state::{Registered, Start, State};
use thiserror::Error;

/// Why the engine did not start a transfer, or did not start itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No free descriptor: poll, then try again.
    #[error("all {descriptors} post descriptors are in use: poll, then try again")]
    Busy {
        /// How many there are.
        descriptors: usize,
    },
    /// The NIC admits only aligned puts, and an edge cannot be mended without harm to its neighbours.
    #[error("a put of {len} bytes at offset {offset}: the network wants both to be multiples of {alignment}")]
    UnalignedPut {
        /// The remote offset.
        offset: u64,
        /// The length.
        len: usize,
        /// What both must be multiples of.
        alignment: usize,
    },
    /// The NIC does not do this atomic operation on such words.
    #[error("the network does no atomic {operation:?} on words of type {of:?}")]
    NoSuchAtomic {
        /// What the words hold.
        of: Type,
        /// Which operation.
        operation: Ops,
    },
    /// A word of an atomic operation does not lie at a multiple of its width.
    #[error("an atomic operation on {width} bytes at offset {offset}, which is no multiple of that")]
    UnalignedWord {
        /// The remote offset.
        offset: u64,
        /// Bytes of the word.
        width: usize,
    },
    /// The range does not exist in any memory.
    #[error("a transfer of {len} bytes at offset {offset} ends beyond the largest address")]
    PastEnd {
        /// The remote offset.
        offset: u64,
        /// The length.
        len: usize,
    },
    /// The NIC needs registered local memory, and not enough was given for one bounce buffer.
    #[error(
        "the network needs registered bounce buffers of at least {least} bytes: {given} bytes were given"
    )]
    NoBounceMemory {
        /// How much memory was given.
        given: usize,
        /// How much one buffer takes at least.
        least: usize,
    },
    /// The number of descriptors, or what the NIC can do, leaves no way to move a byte.
    #[error(
        "an engine with {descriptors} post descriptors on a network of depth {depth}, transfers of at most {largest} bytes"
    )]
    Unusable {
        /// Descriptors asked for.
        descriptors: usize,
        /// The NIC's depth.
        depth: usize,
        /// The NIC's largest transfer.
        largest: usize,
    },
    /// The NIC refused to register memory.
    #[error("registering memory: {0}")]
    Registration(#[from] NicError),
}

/// Bytes of a peer, from one of them on.
#[derive(Clone, Copy, Debug)]
pub struct There<'a> {
    /// Whose.
    pub peer: u32,
    /// The key of its registration.
    pub key: &'a [u8],
    /// The address in its process at which that begins ([`Post::remote_base`](crate::Post::remote_base)).
    pub base: u64,
    /// Where in it they begin.
    pub offset: u64,
}

/// What the caller of a put does with its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It keeps it until all is over.
    Kept,
    /// It waits for it ([`Progress::Copied`]): what can be copied at once is.
    WantedBack,
}

/// What a token comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of a put has been taken out of the local bytes, which may be used again. The token comes once more.
    Copied,
    /// The operation is over; a put can be seen at the target.
    Done(Result<(), NicError>),
}

/// Drives one NIC.
pub struct Engine<M: Mode, N: Nic + ?Sized> {
    // The lock is also the NIC's: posts and polls happen under it, so a NIC need not be safe against several threads
    // driving its queues. `done` is called outside.
    state: M::Lock<State>,
    /// Descriptors that nobody has. Who finds none waits for no lock to learn that.
    free: Pool,
    memory_key: Option<Key>,
    burst: usize,
    rules: Rules,
    nic: Box<N>,
}

/// What the state is used with.
struct Site<'a, N: ?Sized> {
    nic: &'a N,
    free: &'a Pool,
}

impl<N: ?Sized> Clone for Site<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: ?Sized> Copy for Site<'_, N> {}

impl<M: Mode, N: Nic + ?Sized> Engine<M, N> {
    /// An engine over `nic`. `memory` is for its descriptors and bounce buffers ([`Tuning::memory`] says how much is wanted); it may be
    /// empty where the NIC does not need local memory to be registered.
    ///
    /// # Safety
    /// engine.3: `memory` is the engine's alone from now on, and stays mapped, readable and writable until the engine is dropped; and if
    /// that happens with operations pending, for as long as the NIC may carry them out.
    ///
    /// # Errors
    /// [`EngineError::Unusable`], [`EngineError::NoBounceMemory`], [`EngineError::Registration`].
    pub unsafe fn new(nic: Box<N>, memory: RawSlice, tuning: &Tuning) -> Result<Self, EngineError> {
        let keeps = !nic.abilities().keeps_registrations;
        let cache = Cache::new(tuning, keeps, cache::page(), Box::new(System::Unasked));
        // SAFETY: the caller promises that `memory` is this engine's alone, and stays mapped as long as it is used (engine.3).
        unsafe { Self::registering(nic, memory, tuning, Shelf::Own(Box::new(cache))) }
    }

    /// One of several engines of a rank, with its own NIC and memory, whose registrations for transfers are everybody's.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub unsafe fn sharing(
        nic: Box<N>,
        memory: RawSlice,
        tuning: &Tuning,
        registry: &Registry,
    ) -> Result<Self, EngineError> {
        // SAFETY: the caller promises that no other engine has `memory`, and that it stays mapped while it is used (engine.3).
        unsafe { Self::registering(nic, memory, tuning, Shelf::Shared(registry.clone())) }
    }

    /// # Safety
    /// As [`new`](Self::new).
    unsafe fn registering(
        nic: Box<N>,
        memory: RawSlice,
        tuning: &Tuning,
        cache: Shelf,
    ) -> Result<Self, EngineError> {
        let (abilities, descriptors) = (nic.abilities(), tuning.descriptors);
        let Abilities { largest, depth, get_alignment, put_alignment, .. } = abilities;
        let count = u32::try_from(descriptors).ok().filter(|count| *count > 0);
        let Some(count) = count.filter(|_| depth > 0 && largest >= get_alignment.max(put_alignment).max(1))
        else {
            return Err(EngineError::Unusable { descriptors, depth, largest });
        };
        let parts = Memory::new(memory, &abilities, tuning)?;
        let memory_key = if abilities.registers_local {
            // SAFETY: engine.3: the caller promises that `memory` stays mapped until `drop` deregisters it, or as long as posts use it.
            Some(unsafe { nic.register(memory) }?)
        } else {
            None
        };
        let (rules, key) = (Rules::new(&abilities, tuning, &parts), memory_key.clone().unwrap_or_default());
        let state = State::new(parts, rules, &abilities, tuning, key, cache);
        Ok(Self {
            state: M::Lock::new(state),
            free: Pool::new(count),
            memory_key,
            burst: abilities.burst,
            rules,
            nic,
        })
    }

    fn site(&self) -> Site<'_, N> {
        Site { nic: &*self.nic, free: &self.free }
    }

    /// The NIC.
    pub fn nic(&self) -> &N {
        &self.nic
    }

    /// Registers memory of this rank for peers, and for use as the local side without bounce buffers.
    ///
    /// # Safety
    /// The bytes stay mapped until [`deregister`](Self::deregister), or until the engine is dropped.
    ///
    /// # Errors
    /// [`EngineError::Registration`].
    pub unsafe fn register(&self, bytes: RawSlice) -> Result<Key, EngineError> {
        // SAFETY: the caller promises that the bytes stay mapped until `deregister`, or until the engine is dropped.
        let key = unsafe { self.nic.register(bytes) }?;
        // SAFETY: they were registered just now; `deregister`, before which they stay mapped, has the engine forget them first.
        unsafe { self.learn(bytes, &key) };
        Ok(key)
    }

    /// Memory of this rank that another engine has registered, with a NIC whose keys are good for this one's transfers, too: it is the local
    /// side of those without bounce buffers from now on.
    ///
    /// # Safety
    /// The bytes stay mapped, and registered, until the engine is dropped or [forgets](Self::forget) them.
    pub unsafe fn learn(&self, bytes: RawSlice, key: &Key) {
        self.state.with(|state| state.enter(Registered { bytes, key: key.clone() }));
    }

    /// Uses a registration no more. No operation that uses the memory may be pending here.
    pub fn forget(&self, key: &Key) {
        self.state.with(|state| state.leave(key));
    }

    /// Ends a registration. No operation that uses the memory may be pending, here or in a peer.
    ///
    /// # Errors
    /// [`EngineError::Registration`]: the key is not of a registration of this rank.
    pub fn deregister(&self, key: &Key) -> Result<(), EngineError> {
        self.forget(key);
        Ok(self.nic.deregister(key)?)
    }

    /// Starts a put of `len` bytes from `from`. `token` comes back
    /// from [`poll`](Self::poll), once when all of it can be seen at the target, or part of it never will, and perhaps
    /// once before, when the source may be used again.
    ///
    /// # Safety
    /// engine.1: the bytes stay mapped, and as they are, until the token comes back.
    ///
    /// # Errors
    /// [`EngineError::Busy`], [`EngineError::UnalignedPut`], [`EngineError::PastEnd`]; nothing was started then, and
    /// the token does not come back.
    pub unsafe fn put(
        &self,
        there: There<'_>,
        from: *const u8,
        len: usize,
        source: Source,
        token: u64,
    ) -> Result<(), EngineError> {
        let local = RawSlice::new(from.cast_mut(), len);
        // SAFETY: engine.1: the caller keeps the bytes at `from` as a put wants them.
        unsafe { self.start(&Start { direction: Direction::Put, there, local, source, tells: None, token }) }
    }

    /// As [`put`](Self::put); and the peer is told `number`, once, when all of it can be seen there ([`Nic::tell`]).
    ///
    /// # Safety
    /// As [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub unsafe fn put_and_tell(
        &self,
        there: There<'_>,
        from: *const u8,
        len: usize,
        source: Source,
        number: u32,
        token: u64,
    ) -> Result<(), EngineError> {
        let local = RawSlice::new(from.cast_mut(), len);
        let start = Start { direction: Direction::Put, there, local, source, tells: Some(number), token };
        // SAFETY: engine.1: the caller keeps the bytes at `from` as a put wants them.
        unsafe { self.start(&start) }
    }

    /// Starts a get of `len` bytes to `target`. `token` comes back
    /// once, from [`poll`](Self::poll), when all of it is there, or part of it never will be.
    ///
    /// # Safety
    /// engine.1: the bytes at `target` stay mapped and nobody else's until the token comes back.
    ///
    /// # Errors
    /// [`EngineError::Busy`], [`EngineError::PastEnd`]; nothing was started then, and the token does not come back.
    pub unsafe fn get(
        &self,
        there: There<'_>,
        target: *mut u8,
        len: usize,
        token: u64,
    ) -> Result<(), EngineError> {
        let local = RawSlice::new(target, len);
        let start =
            Start { direction: Direction::Get, there, local, source: Source::Kept, tells: None, token };
        // SAFETY: engine.1: the caller leaves the bytes at `target` to the get.
        unsafe { self.start(&start) }
    }

    /// The atomic operations that there are.
    pub fn atomics(&self) -> Atomics {
        self.rules.atomics
    }

    /// Starts an atomic operation on a word of the peer's. `token` comes back once, from [`poll`](Self::poll), when it has been done, and
    /// what the word was is at `target` if that is fetched; or when it failed, and it is not known whether it was done.
    ///
    /// # Safety
    /// engine.1, if it fetches: as many bytes at `target` as the word has stay mapped and nobody else's until the token comes back.
    ///
    /// # Errors
    /// [`EngineError::Busy`], [`EngineError::NoSuchAtomic`], [`EngineError::UnalignedWord`]; nothing was started then, and the token does
    /// not come back.
    pub unsafe fn update(
        &self,
        there: There<'_>,
        update: Update,
        target: *mut u8,
        token: u64,
    ) -> Result<(), EngineError> {
        let wanted = if update.fetches { update.width() } else { 0 };
        let local = RawSlice::new(target, wanted);
        let direction = Direction::Update(update);
        // SAFETY: engine.1: the caller leaves as many bytes at `target` to the operation as it fetches.
        unsafe { self.start(&Start { direction, there, local, source: Source::Kept, tells: None, token }) }
    }

    /// # Safety
    /// engine.1: what is said of the local bytes of `start` holds until its token comes back.
    unsafe fn start(&self, start: &Start<'_>) -> Result<(), EngineError> {
        self.rules.check(start.direction, start.there.offset, start.local.len())?;
        if start.local.is_empty() && !matches!(start.direction, Direction::Update(_)) {
            start.tells.into_iter().for_each(|number| self.nic.tell(start.there.peer, number, true));
            self.state.with(|state| state.start_empty(start.token));
            return Ok(());
        }
        let held = self.free.take().ok_or(EngineError::Busy { descriptors: self.free.size() })?;
        // SAFETY: engine.1: the caller promises it.
        self.state.with(|state| unsafe { state.start(self.site(), start, held) });
        Ok(())
    }

    /// Takes up to `burst` completions from the NIC, goes on with unfinished operations, and hands the tokens of
    /// finished ones to `done`, which may start transfers. Returns how many tokens.
    pub fn poll(&self, burst: usize, done: &mut dyn FnMut(u64, Progress)) -> usize {
        // A thread that finds another one at it has nothing to add: that one hands out what is finished.
        let finished = self.state.try_with(|state| {
            state.tend(self.site());
            state.reap(self.site(), burst);
            state.advance(self.site());
            state.finished.len()
        });
        let Some(finished) = finished else { return 0 };
        let mut handed = 0;
        // Counted beforehand: what `done` starts does not end in the same poll, so this loop ends.
        while handed < finished {
            let Some((token, progress)) = self.state.with(State::finish) else { break };
            done(token, progress);
            handed += 1;
        }
        handed
    }

    /// How many completions a poll is to take at most, by what the NIC says.
    pub fn burst(&self) -> usize {
        self.burst
    }

    /// How many operations have been started and their tokens not yet handed back.
    pub fn pending(&self) -> usize {
        self.state.with(|state| state.pending)
    }

    /// What became of registrations for transfers from and to memory that the NIC did not know.
    pub fn registrations(&self) -> Registrations {
        self.state.with(|state| state.registrations())
    }

    /// How many post descriptors there are.
    pub fn descriptors(&self) -> usize {
        self.free.size()
    }
}

impl<M: Mode, N: Nic + ?Sized> Drop for Engine<M, N> {
    fn drop(&mut self) {
        self.state.with(|state| state.close(self.site()));
        // With posts under way the registration has to outlive the engine, as the memory does (engine.3).
        if self.state.with(|state| state.under_way()) > 0 {
            return;
        }
        if let Some(key) = &self.memory_key {
            // Nobody is left to tell; the NIC frees what remains when it is dropped.
            let _ = self.nic.deregister(key);
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod fake;
#[cfg(test)]
#[allow(unsafe_code)]
mod sharing;
#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
#[cfg(test)]
#[allow(unsafe_code)]
mod updates;
