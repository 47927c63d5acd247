//! Registrations of memory for transfers, kept after them for the next.
//!
//! What is kept is found again by its addresses, and these may have come to mean other memory since. So kept memory is
//! [watched](watch): what happens to it is learnt at the next look, before anything is found. Where that cannot be, nothing is kept: memory
//! is registered for one transfer, and no longer.
//!
//! # Invariants
//! - cache.1: a registration is ended once, when nobody uses it: a post that the NIC has taken, or one that it is about to be handed.
//! - cache.2: only a *live* registration is found. It covers whole pages, all of them watched from before they were registered, and none of
//!   them has been told of since.
//! - cache.3: no live registration contains another. So in the order of their first pages they are also in the order of their last ones,
//!   and of all that begin at or before some byte the last one reaches farthest.
//! - cache.4: only pages are registered that hold bytes of the transfer. Those are mapped, and stay as they are until it is over (engine.1
//!   of the module `engine`): of any other page somebody else might just now be giving the memory back.
//!
//! Who breaks engine.1, and gives memory back while it is transferred, may leave a registration of what is not there any more; it goes
//! when the next thing happens to those addresses.

mod shelf;
mod watch;

#[cfg(not(miri))]
#[cfg(test)]
#[allow(unsafe_code)]
pub(crate) mod real;
#[cfg(test)]
#[allow(unsafe_code)]
pub(crate) mod tests;

use crate::nic::{Direction, Key, Nic};
use crate::settings::Tuning;
use crate::stale::{Gone, Span};
use gasworks_sync::RawSlice;
pub use shelf::Registry;
pub(crate) use shelf::Shelf;
use std::collections::BTreeMap;
pub(crate) use watch::{System, Watch, page};

/// What became of registrations for transfers, since the engine began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registrations {
    /// There are now, to be found by the next transfer.
    pub kept: usize,
    /// Were found when they were wanted.
    pub hits: u64,
    /// Were not: the NIC was asked.
    pub misses: u64,
    /// Were kept and given up for others.
    pub evicted: u64,
    /// Were kept until something happened to their memory.
    pub stale: u64,
}

/// A registration that is in use, by number: to be given back.
#[derive(Debug)]
pub(crate) struct Lease(u32);

/// Why there is no registration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// As many as there may be are in use.
    Full,
    /// The NIC registers no such memory, or no more.
    Nic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It may be found.
    Live,
    /// It was live, and ends with its last user.
    Stale,
    /// It is for one transfer.
    Single,
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    span: Span,
    key: Key,
    users: u32,
    /// When it was last given back.
    used: u64,
}

/// The registrations of an engine.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Live ones by their first byte.
    live: BTreeMap<usize, u32>,
    /// Live ones that nobody uses, by when they were given back.
    idle: BTreeMap<u64, u32>,
    clock: u64,
    /// How many registrations there are and may be.
    registered: usize,
    most: Option<usize>,
    /// Bytes of those that are kept, and how many these may be.
    bytes: usize,
    space: usize,
    page: usize,
    watch: Box<dyn Watch>,
    counts: Registrations,
}

impl Span {
    fn of(bytes: RawSlice) -> Self {
        let start = bytes.as_ptr().addr();
        Self { start, end: start + bytes.len() }
    }

    fn len(self) -> usize {
        self.end - self.start
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl Cache {
    /// Keeps nothing where there is no space to.
    pub fn new(tuning: &Tuning, keeps: bool, page: usize, watch: Box<dyn Watch>) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            live: BTreeMap::new(),
            idle: BTreeMap::new(),
            clock: 0,
            registered: 0,
            most: tuning.registrations,
            bytes: 0,
            space: if keeps { tuning.registration_space } else { 0 },
            page,
            watch,
            counts: Registrations::default(),
        }
    }

    pub fn counts(&self) -> Registrations {
        Registrations { kept: self.live.len(), ..self.counts }
    }

    /// A registration that holds these bytes, for a transfer in this direction.
    ///
    /// # Safety
    /// cache.4: the bytes are mapped, and stay so until it is given back.
    pub unsafe fn take<N: Nic + ?Sized>(
        &mut self,
        nic: &N,
        bytes: RawSlice,
        direction: Direction,
    ) -> Result<Lease, Refused> {
        // In this order: what is settled has been told of.
        let settled = self.space > 0 && self.watch.is_settled();
        self.tend(nic);
        let pages = self.pages(bytes);
        if settled && let Some(number) = self.find(pages) {
            self.counts.hits += 1;
            return Ok(self.lease(number));
        }
        while self.most.is_some_and(|most| self.registered >= most) {
            if !self.evict(nic) {
                return Err(Refused::Full);
            }
        }
        self.counts.misses += 1;
        for is_last in [false, true] {
            let keeps = settled && self.make_space(nic, pages.len()) && self.watch.watch(pages);
            let memory = if keeps { self.whole(bytes, pages) } else { bytes };
            // SAFETY: cache.4: it is mapped now, and while this transfer uses it, as the caller promises; cache.2: others find it only as long as it is.
            let Ok(key) = (unsafe { nic.register_local(memory) }) else {
                if keeps {
                    self.forget(pages);
                }
                // What may only be read is registered for this put, and not found by the next transfer, which may be a get.
                if direction == Direction::Put
                    // SAFETY: `take` asks that the bytes stay mapped until the lease is given back, which ends this registration.
                    && let Ok(key) = unsafe { nic.register_source(bytes) }
                {
                    return Ok(self.enter(nic, Kind::Single, Span::of(bytes), key));
                }
                if is_last || !self.make_room(nic, memory.len()) {
                    break;
                }
                continue;
            };
            let tells_all = keeps && self.watch.tells_all(pages);
            if keeps && !tells_all {
                self.forget(pages);
            }
            let kind = if tells_all { Kind::Live } else { Kind::Single };
            return Ok(self.enter(nic, kind, Span::of(memory), key));
        }
        Err(Refused::Nic)
    }

    /// The key of a registration that is in use.
    pub fn key(&self, lease: &Lease) -> Option<&Key> {
        self.entries.get(lease.0 as usize)?.as_ref().map(|entry| &entry.key)
    }

    /// Gives a registration back.
    pub fn give<N: Nic + ?Sized>(&mut self, nic: &N, Lease(number): Lease) {
        let Some(entry) = self.entries[number as usize].as_mut() else { return };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        if entry.kind == Kind::Live {
            self.clock += 1;
            entry.used = self.clock;
            self.idle.insert(self.clock, number);
        } else {
            self.end(nic, number);
        }
    }

    /// Learns what has happened to memory, and ends registrations of what is not there any more.
    pub fn tend<N: Nic + ?Sized>(&mut self, nic: &N) {
        while let Some(gone) = self.watch.next() {
            let all = Span { start: 0, end: usize::MAX };
            let (span, unmapped) = match gone {
                Gone::Unmapped(span) => (span, Some(span)),
                Gone::Emptied(span) => (span, None),
                Gone::All => (all, None),
            };
            while let Some((number, pages)) =
                self.last_before(span.end).filter(|last| last.1.end > span.start)
            {
                self.counts.stale += 1;
                self.retire(nic, number);
                match unmapped {
                    None => self.forget(pages),
                    // There is nothing to forget, but around it.
                    Some(hole) => {
                        self.forget(Span { end: pages.end.min(hole.start), ..pages });
                        self.forget(Span { start: pages.start.max(hole.end), ..pages });
                    }
                }
            }
        }
    }

    /// Ends what nobody uses, and watches nothing any more. What is in use stays registered.
    pub fn close<N: Nic + ?Sized>(&mut self, nic: &N) {
        while let Some((number, pages)) = self.last_before(usize::MAX) {
            self.retire(nic, number);
            self.forget(pages);
        }
    }

    /// The pages that hold some bytes.
    fn pages(&self, bytes: RawSlice) -> Span {
        let Span { start, end } = Span::of(bytes);
        Span { start: start - start % self.page, end: end.next_multiple_of(self.page) }
    }

    /// Those pages, as they are handed to a NIC.
    fn whole(&self, bytes: RawSlice, pages: Span) -> RawSlice {
        let first = bytes.as_ptr().wrapping_sub(bytes.as_ptr().addr() - pages.start);
        RawSlice::new(first, pages.len())
    }

    /// The live registration that begins last before an address.
    fn last_before(&self, end: usize) -> Option<(u32, Span)> {
        let (_, &number) = self.live.range(..end).next_back()?;
        self.entries[number as usize].as_ref().map(|entry| (number, entry.span))
    }

    /// The first live registration that lies in some pages.
    fn first_in(&self, pages: Span) -> Option<u32> {
        let (_, &number) = self.live.range(pages.start..).next()?;
        self.entries[number as usize].as_ref().filter(|entry| pages.contains(entry.span)).map(|_| number)
    }

    /// The live registration that holds these pages: cache.3.
    fn find(&self, pages: Span) -> Option<u32> {
        self.last_before(pages.start + 1).filter(|(_, span)| span.contains(pages)).map(|(number, _)| number)
    }

    fn lease(&mut self, number: u32) -> Lease {
        if let Some(entry) = self.entries[number as usize].as_mut() {
            if entry.users == 0 {
                self.idle.remove(&entry.used);
            }
            entry.users += 1;
        }
        Lease(number)
    }

    /// Enters a registration that was made, with one user.
    fn enter<N: Nic + ?Sized>(&mut self, nic: &N, kind: Kind, span: Span, key: Key) -> Lease {
        if kind == Kind::Live {
            // cache.3. Their pages stay watched.
            while let Some(number) = self.first_in(span) {
                self.counts.evicted += 1;
                self.retire(nic, number);
            }
        }
        let entry = Entry { kind, span, key, users: 1, used: 0 };
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[number as usize] = Some(entry);
        self.registered += 1;
        if kind == Kind::Live {
            self.live.insert(span.start, number);
            self.bytes += span.len();
        }
        Lease(number)
    }

    /// Ends some that are not in use, if there are any: as many bytes as the NIC had no room for, or all.
    fn make_room<N: Nic + ?Sized>(&mut self, nic: &N, bytes: usize) -> bool {
        let before = self.bytes;
        while before - self.bytes < bytes && self.evict(nic) {}
        self.bytes < before
    }

    /// Makes space to keep so many bytes more.
    fn make_space<N: Nic + ?Sized>(&mut self, nic: &N, bytes: usize) -> bool {
        while bytes <= self.space && self.bytes > self.space - bytes {
            if !self.evict(nic) {
                return false;
            }
        }
        bytes <= self.space
    }

    /// Ends the one that has not been used for the longest time.
    fn evict<N: Nic + ?Sized>(&mut self, nic: &N) -> bool {
        let Some((_, &number)) = self.idle.first_key_value() else { return false };
        let span = self.entries[number as usize].as_ref().map(|entry| entry.span);
        self.counts.evicted += 1;
        self.retire(nic, number);
        span.into_iter().for_each(|span| self.forget(span));
        true
    }

    /// A live one is not found any more, and ends if nobody uses it.
    fn retire<N: Nic + ?Sized>(&mut self, nic: &N, number: u32) {
        let Some(entry) = self.entries[number as usize].as_mut() else { return };
        entry.kind = Kind::Stale;
        self.live.remove(&entry.span.start);
        if entry.users == 0 {
            self.idle.remove(&entry.used);
            self.end(nic, number);
        }
    }

    /// Watches pages no more, but those of live registrations.
    fn forget(&mut self, span: Span) {
        let mut at =
            self.last_before(span.start).map_or(span.start, |(_, before)| span.start.max(before.end));
        for (&start, &number) in self.live.range(span.start.min(span.end)..span.end) {
            if at < start {
                self.watch.forget(Span { start: at, end: start });
            }
            at = self.entries[number as usize].as_ref().map_or(at, |entry| entry.span.end);
        }
        if at < span.end {
            self.watch.forget(Span { start: at, end: span.end });
        }
    }

    /// Takes the entry out, so that its registration is ended once (cache.1).
    fn end<N: Nic + ?Sized>(&mut self, nic: &N, number: u32) {
        let Some(entry) = self.entries[number as usize].take() else { return };
        self.free.push(number);
        self.registered -= 1;
        if entry.kind != Kind::Single {
            self.bytes -= entry.span.len();
        }
        // A key of ours: that it is none would be the NIC's mistake, and the transfer is over.
        let _ = nic.deregister(&entry.key);
    }
}
