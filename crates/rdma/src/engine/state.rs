//! What the engine's lock protects: operations, what descriptors are used for, registrations.
//!
//! # Invariants
//! engine.1, engine.2 and engine.3 of the [engine](super) are kept here, by these:
//! - state.1: a descriptor is `busy` from a post that the NIC took until the completion with its number and generation; only
//!   then is what it points to touched, its buffer given back, and the operation's count of posts lowered.
//! - state.2: bytes that are shifted are moved back when no post of their operation is with the NIC; only then is what is behind them
//!   posted.

use super::memory::{Memory, Part};
use super::plan::{Place, Rest, Rules};
use super::{Progress, Site, Source, There};
use crate::cache::{Lease, Refused, Registrations, Shelf};
use crate::nic::{Abilities, Direction, Key, Nic, NicError, Post, Stage};
use crate::settings::Tuning;
use gasworks_sync::{RawSlice, tally};
use std::collections::VecDeque;

/// Memory of this rank that the NIC can use as it is.
#[derive(Debug)]
pub(super) struct Registered {
    pub bytes: RawSlice,
    pub key: Key,
}

impl Registered {
    fn holds(&self, bytes: RawSlice) -> bool {
        let (start, end) = (self.bytes.as_ptr().addr(), self.bytes.as_ptr().addr() + self.bytes.len());
        bytes.as_ptr().addr() >= start && bytes.as_ptr().addr() + bytes.len() <= end
    }
}

/// An operation as it was asked for.
pub(super) struct Start<'a> {
    pub direction: Direction,
    pub there: There<'a>,
    pub local: RawSlice,
    pub source: Source,
    /// What the peer is to be told when all of a put is there.
    pub tells: Option<u32>,
    pub token: u64,
}

/// How often a NIC may refuse an operation with nothing under way that would make room.
pub(super) const TRIES: u32 = if cfg!(miri) { 64 } else { 65_536 };

/// An operation that has been started.
#[derive(Debug)]
struct Operation {
    direction: Direction,
    peer: u32,
    /// Reused from operation to operation: its capacity stays.
    key: Key,
    base: u64,
    /// What has not been posted: where it begins there, and all of it here.
    offset: u64,
    left: RawSlice,
    /// Posts with the NIC.
    posts: u32,
    /// A descriptor that is held for the next post, so that the operation cannot starve.
    held: Option<u32>,
    /// Which registration holds the local bytes, if one does.
    registered: Option<u32>,
    token: u64,
    result: Result<(), NicError>,
    /// What the peer is to be told when all is there, and no post tells it.
    tells: Option<u32>,
    /// The source is wanted back before all is over, as a word of its own.
    wanted_back: bool,
    /// Whether local bytes may be registered for a post: until that was refused.
    may_register: bool,
    /// The registration for the next post, which the NIC had no room for yet.
    lease: Option<Lease>,
    /// Posts of a put for which the local bytes are still needed.
    sources: u32,
    /// What was fetched too far behind.
    shifted: Option<Shifted>,
    /// Nothing of it has been posted.
    is_whole: bool,
}

/// Bytes that were fetched too far behind: the NIC could not write them where they belong.
#[derive(Clone, Copy, Debug)]
struct Shifted {
    /// From where they belong on, all that the operation had left then.
    home: RawSlice,
    len: usize,
    by: usize,
}

impl Shifted {
    /// Moves them there.
    fn move_back(self) {
        let home = self.home.as_ptr();
        // SAFETY: engine.1: `by + len` of the bytes were left, all the operation's. state.2: no post of it is with the NIC.
        unsafe { home.copy_from(home.add(self.by), self.len) };
        tally::copied(self.len);
    }
}

/// What a post is for, and what to do when it completes.
#[derive(Debug)]
struct Descriptor {
    operation: u32,
    /// Grows with each use, so that a completion which is not this use's is noticed.
    generation: u32,
    busy: bool,
    /// Give this part of the engine's memory back.
    unbounce: Option<Part>,
    /// First copy from `skip` in it to these bytes: a get that went there.
    copy: Option<(usize, RawSlice)>,
    /// Give this registration back.
    lease: Option<Lease>,
    /// It is a put out of the local bytes, and these may still be needed.
    needs_source: bool,
}

/// The engine's state.
#[derive(Debug)]
pub(super) struct State {
    rules: Rules,
    registers_local: bool,
    /// Whether memory may be registered for transfers at all.
    may_register: bool,
    depth: usize,
    memory: Memory,
    memory_key: Key,
    no_key: Key,
    registered: Vec<Option<Registered>>,
    /// Registrations for posts.
    cache: Shelf,
    /// The key of one of them, for the post that is being made.
    leased: Key,
    operations: Vec<Operation>,
    free_operations: Vec<u32>,
    descriptors: Vec<Descriptor>,
    /// Operations with bytes to post, the one to try first in front.
    waiting: VecDeque<u32>,
    /// Tokens to hand back, and what to say with them.
    pub finished: VecDeque<(u64, Progress)>,
    /// Operations whose tokens have not been handed back.
    pub pending: usize,
    under_way: usize,
    /// Refusals one after the other with nothing under way.
    refused: u32,
}

/// Why the next post of an operation was not made.
enum Stop {
    /// The NIC has no room.
    Network,
    /// No descriptor, buffer or registration: another operation may need none.
    Own,
}

impl State {
    pub fn new(
        memory: Memory,
        rules: Rules,
        abilities: &Abilities,
        tuning: &Tuning,
        memory_key: Key,
        cache: Shelf,
    ) -> Self {
        let descriptor = || Descriptor {
            operation: 0,
            generation: 0,
            busy: false,
            unbounce: None,
            copy: None,
            lease: None,
            needs_source: false,
        };
        Self {
            rules,
            registers_local: abilities.registers_local,
            may_register: tuning.registrations != Some(0),
            depth: abilities.depth,
            memory,
            memory_key,
            no_key: Key::default(),
            registered: Vec::new(),
            cache,
            leased: Key::default(),
            operations: Vec::new(),
            free_operations: Vec::new(),
            descriptors: std::iter::repeat_with(descriptor).take(tuning.descriptors).collect(),
            waiting: VecDeque::with_capacity(tuning.descriptors),
            finished: VecDeque::with_capacity(tuning.descriptors),
            pending: 0,
            under_way: 0,
            refused: 0,
        }
    }

    /// Remembers memory that the NIC can use as it is.
    pub fn enter(&mut self, registered: Registered) {
        match self.registered.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(registered),
            None => self.registered.push(Some(registered)),
        }
    }

    /// Forgets it. Places stay where they are: operations name them by number.
    pub fn leave(&mut self, key: &Key) {
        let mine = |place: &&mut Option<Registered>| place.as_ref().is_some_and(|r| r.key == *key);
        self.registered.iter_mut().filter(mine).for_each(|place| *place = None);
    }

    /// Posts that are with the NIC.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Nothing is to be moved: that is done.
    pub fn start_empty(&mut self, token: u64) {
        self.pending += 1;
        self.finished.push_back((token, Progress::Done(Ok(()))));
    }

    /// Takes the operation on with its first descriptor, and posts what can be posted at once.
    ///
    /// # Safety
    /// engine.1: what is said of the local bytes of `start` holds until its token comes back.
    pub unsafe fn start<N: Nic + ?Sized>(&mut self, site: Site<'_, N>, start: &Start<'_>, held: u32) {
        let registered = self
            .registered
            .iter()
            .position(|r| r.as_ref().is_some_and(|r| r.holds(start.local)))
            .map(|i| i as u32);
        let index = self.free_operations.pop().unwrap_or_else(|| {
            self.operations.push(Operation {
                direction: start.direction,
                peer: 0,
                key: Key::default(),
                base: 0,
                offset: 0,
                left: RawSlice::EMPTY,
                posts: 0,
                held: None,
                registered: None,
                token: 0,
                result: Ok(()),
                tells: None,
                wanted_back: false,
                may_register: false,
                lease: None,
                sources: 0,
                shifted: None,
                is_whole: true,
            });
            self.operations.len() as u32 - 1
        });
        let operation = &mut self.operations[index as usize];
        operation.direction = start.direction;
        operation.peer = start.there.peer;
        operation.key.0.clear();
        operation.key.0.extend_from_slice(start.there.key);
        operation.base = start.there.base;
        operation.offset = start.there.offset;
        operation.left = start.local;
        operation.posts = 0;
        operation.held = Some(held);
        operation.registered = registered;
        operation.token = start.token;
        operation.result = Ok(());
        operation.tells = start.tells;
        // Of the payload of a message nobody asks whether it has landed: the source comes back with the one word that there is anyway.
        operation.wanted_back = start.source == Source::WantedBack && start.tells.is_none();
        operation.may_register = self.may_register;
        operation.sources = 0;
        operation.shifted = None;
        operation.is_whole = true;
        self.pending += 1;
        let crowded = !self.waiting.is_empty();
        self.waiting.push_back(index);
        if !crowded {
            self.advance(site);
        }
    }

    /// Posts what can be posted of the waiting operations.
    pub fn advance<N: Nic + ?Sized>(&mut self, site: Site<'_, N>) {
        for _ in 0..self.waiting.len() {
            let Some(index) = self.waiting.pop_front() else { return };
            let mut stop = None;
            while stop.is_none() && self.operations[index as usize].has_more() {
                stop = self.post(site, index).err();
            }
            match stop {
                None => self.settle(site, index),
                // To the back: if the NIC is busy for one peer only, the next poll begins with another.
                Some(Stop::Own) => self.waiting.push_back(index),
                Some(Stop::Network) => {
                    self.waiting.push_back(index);
                    return;
                }
            }
        }
    }

    /// Makes the next post of an operation, or fails the operation.
    fn post<N: Nic + ?Sized>(&mut self, site: Site<'_, N>, index: u32) -> Result<(), Stop> {
        if self.under_way >= self.depth {
            return Err(Stop::Network);
        }
        let operation = &mut self.operations[index as usize];
        let is_put = operation.direction == Direction::Put;
        let chunk = self.rules.next(&Rest {
            direction: operation.direction,
            offset: operation.offset,
            address: operation.left.as_ptr().addr(),
            len: operation.left.len(),
            ready: !self.registers_local || operation.registered.is_some(),
            may_register: operation.may_register,
            wanted_back: operation.wanted_back,
        });
        if chunk.shift == 0
            && let Some(shifted) = operation.shifted
        {
            if operation.posts > 0 {
                return Err(Stop::Own);
            }
            shifted.move_back();
            operation.shifted = None;
        }
        let mine = operation.left.slice(chunk.shift, chunk.useful).unwrap_or(RawSlice::EMPTY);
        if chunk.place == Place::Registered && operation.lease.is_none() {
            // SAFETY: engine.1: `mine` is part of the operation's bytes, mapped until its token comes back; the registration is given back
            // before that.
            match unsafe { self.cache.take(site.nic, mine, operation.direction) } {
                Ok(lease) => operation.lease = Some(lease),
                Err(Refused::Full) => return Err(Stop::Own),
                Err(Refused::Nic) => {
                    // What cannot be registered goes through the engine's memory.
                    operation.may_register = false;
                    return Ok(());
                }
            }
        }
        let buffer = match chunk.place {
            Place::Buffer => Some(self.memory.take().ok_or(Stop::Own)?),
            _ => None,
        };
        let Some(number) = operation.held.take().or_else(|| site.free.take()) else {
            buffer.into_iter().for_each(|buffer| self.memory.give(buffer));
            return Err(Stop::Own);
        };
        let part = match chunk.place {
            Place::Immediate => Some(Part::Immediate(number)),
            _ => buffer,
        };
        let local = match part {
            None => mine,
            Some(part) => {
                let bytes = self.memory.bytes(part, chunk.wire);
                if is_put {
                    // SAFETY: engine.1: the source is mapped. engine.3: the part is this descriptor's, and no shorter.
                    unsafe { bytes.as_ptr().copy_from_nonoverlapping(mine.as_ptr(), mine.len()) };
                    tally::copied(mine.len());
                }
                bytes
            }
        };
        let local_key = match (part, &operation.lease, operation.registered) {
            (Some(_), ..) => &self.memory_key,
            (None, Some(lease), _) => {
                self.cache.copy_key(lease, &mut self.leased);
                &self.leased
            }
            (None, None, Some(registered)) => {
                self.registered[registered as usize].as_ref().map_or(&self.no_key, |r| &r.key)
            }
            (None, None, None) => &self.no_key,
        };
        let descriptor = &mut self.descriptors[number as usize];
        descriptor.operation = index;
        descriptor.generation = descriptor.generation.wrapping_add(1);
        // Of several posts nobody knows which one lands last.
        let is_only = operation.is_whole && chunk.useful == operation.left.len();
        let tells = operation.tells.filter(|_| is_only);
        let post = Post {
            direction: operation.direction,
            way: chunk.way,
            peer: operation.peer,
            local,
            local_key,
            remote_base: operation.base,
            remote_offset: operation.offset - chunk.skip as u64,
            remote_key: &operation.key,
            source_apart: is_put && part.is_none() && operation.wanted_back,
            tells,
            token: u64::from(descriptor.generation) << 32 | u64::from(number),
        };
        // SAFETY: `local` is in the caller's bytes (engine.1, and by engine.2 the token is not handed back before this post's
        // completion) or in a part of the engine's memory that is this descriptor's until then (engine.3).
        let posted = unsafe { site.nic.post(&post) };
        match posted {
            Ok(()) => {
                descriptor.busy = true;
                descriptor.unbounce = part;
                descriptor.copy = (part.is_some() && !is_put).then_some((chunk.skip, mine));
                descriptor.needs_source = part.is_none() && is_put;
                descriptor.lease = operation.lease.take();
                operation.sources += u32::from(descriptor.needs_source);
                operation.tells = operation.tells.filter(|_| tells.is_none());
                operation.is_whole = false;
                operation.posts += 1;
                if chunk.shift > 0 {
                    let begins = Shifted { home: operation.left, len: 0, by: chunk.shift };
                    operation.shifted.get_or_insert(begins).len += chunk.useful;
                }
                operation.offset += chunk.useful as u64;
                let rest = operation.left.len() - chunk.useful;
                operation.left = operation.left.slice(chunk.useful, rest).unwrap_or(RawSlice::EMPTY);
                let released = is_put && rest == 0 && operation.sources == 0 && operation.result.is_ok();
                if released {
                    self.finished.push_back((operation.token, Progress::Copied));
                }
                self.under_way += 1;
                self.refused = 0;
                Ok(())
            }
            Err(error) => {
                buffer.into_iter().for_each(|buffer| self.memory.give(buffer));
                operation.held = Some(number);
                if error != NicError::Busy {
                    operation.fail(error);
                    return Ok(());
                }
                self.refused += u32::from(self.under_way == 0);
                if self.refused < TRIES {
                    return Err(Stop::Network);
                }
                operation.fail(NicError::Starved { times: self.refused });
                self.refused = 0;
                Ok(())
            }
        }
    }

    /// Ends an operation that has nothing to post and nothing with the NIC.
    fn settle<N: Nic + ?Sized>(&mut self, site: Site<'_, N>, index: u32) {
        let operation = &mut self.operations[index as usize];
        if let Some(held) = operation.held.take() {
            site.free.give(held);
        }
        if let Some(lease) = operation.lease.take() {
            self.cache.give(site.nic, lease);
        }
        if operation.posts == 0 {
            if let Some(number) = operation.tells.take() {
                site.nic.tell(operation.peer, number, operation.result.is_ok());
            }
            // engine.2: only here, and no post of it is left.
            self.finished.push_back((operation.token, Progress::Done(operation.result)));
            self.free_operations.push(index);
        }
    }

    /// Takes completions from the NIC and does what their descriptors say.
    pub fn reap<N: Nic + ?Sized>(&mut self, site: Site<'_, N>, burst: usize) {
        // Also with nothing under way: some networks make their targets' progress in it.
        site.nic.poll(burst, &mut |completion| {
            let number = completion.token as u32;
            let Some(descriptor) = self.descriptors.get_mut(number as usize) else { return };
            if !descriptor.busy || descriptor.generation != (completion.token >> 32) as u32 {
                return; // not of a post that is under way: a NIC that repeats itself does no harm
            }
            let index = descriptor.operation;
            let operation = &mut self.operations[index as usize];
            if std::mem::take(&mut descriptor.needs_source) {
                operation.sources -= 1;
                let is_last = operation.sources == 0 && operation.left.is_empty();
                if completion.stage == Stage::Source && is_last && operation.result.is_ok() {
                    self.finished.push_back((operation.token, Progress::Copied));
                }
            }
            if completion.stage == Stage::Source {
                return;
            }
            descriptor.busy = false;
            self.under_way -= 1;
            if let Some(part) = descriptor.unbounce.take() {
                if let (Some((skip, mine)), Ok(())) = (descriptor.copy.take(), completion.result) {
                    let bytes = self.memory.bytes(part, skip + mine.len());
                    // It has them all, as `Rules::next` made the post.
                    let wanted = bytes.slice(skip, mine.len()).unwrap_or(RawSlice::EMPTY);
                    // SAFETY: engine.1: `mine` is mapped, and the operation's. engine.3: `wanted` is in the part, not given back yet.
                    unsafe { mine.as_ptr().copy_from_nonoverlapping(wanted.as_ptr(), wanted.len()) };
                    tally::copied(wanted.len());
                }
                self.memory.give(part);
            }
            if let Some(lease) = descriptor.lease.take() {
                self.cache.give(site.nic, lease);
            }
            operation.posts -= 1;
            if let Err(error) = completion.result {
                operation.fail(error);
            }
            if !operation.has_more() {
                site.free.give(number);
                // One that failed while waiting is settled where it waits, by `advance`.
                let waits = operation.result.is_err() && self.waiting.contains(&index);
                if !waits {
                    self.settle(site, index);
                }
            } else if operation.held.is_none() {
                operation.held = Some(number);
            } else {
                site.free.give(number);
            }
        });
    }

    /// Ends registrations of memory that is not there any more.
    pub fn tend<N: Nic + ?Sized>(&mut self, site: Site<'_, N>) {
        self.cache.tend(site.nic);
    }

    /// Ends registrations that nobody uses.
    pub fn close<N: Nic + ?Sized>(&mut self, site: Site<'_, N>) {
        self.cache.close(site.nic);
    }

    /// What became of registrations.
    pub fn registrations(&mut self) -> Registrations {
        self.cache.counts()
    }

    /// The next token to hand back.
    pub fn finish(&mut self) -> Option<(u64, Progress)> {
        let finished = self.finished.pop_front()?;
        self.pending -= usize::from(finished.1 != Progress::Copied);
        Some(finished)
    }
}

impl Operation {
    /// Whether there is something to post. Of an atomic operation it may be that no bytes are wanted here.
    fn has_more(&self) -> bool {
        let is_update = matches!(self.direction, Direction::Update(_));
        !self.left.is_empty() || is_update && self.is_whole && self.result.is_ok()
    }

    /// Nothing more of it is posted; the first cause is the one that is reported.
    fn fail(&mut self, error: NicError) {
        self.left = RawSlice::EMPTY;
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transfers next to both ends of 16 bytes that are registered.
    #[test]
    fn registered_memory_holds_what_lies_in_it_from_end_to_end() {
        let mut words = [0u64; 8];
        let all = RawSlice::new(words.as_mut_ptr().cast(), 64);
        let part = |start, len| all.slice(start, len).expect("it is inside");
        let registered = Registered { bytes: part(16, 16), key: Key::default() };
        for (start, len, is_held) in [
            (16, 16, true),
            (16, 0, true),
            (16, 1, true),
            (31, 1, true),
            (32, 0, true),
            (17, 15, true),
            (17, 16, false),
            (15, 1, false),
            (15, 16, false),
            (15, 18, false),
            (16, 17, false),
            (32, 1, false),
            (40, 8, false),
            (0, 8, false),
            (0, 64, false),
        ] {
            assert_eq!(registered.holds(part(start, len)), is_held, "{len} bytes from {start} on");
        }
    }
}
