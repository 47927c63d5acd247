//! What the engine's lock protects: operations, descriptors, bounce buffers.
//!
//! # Invariants
//! E1, E2 and E3 of the [engine](super), which are kept here:
//! D1. A descriptor is `busy` from a post that the NIC took until the completion with its number and generation; only
//!     then is what it points to touched, its buffer given back, and the operation's count of posts lowered.

use super::bounce::Pool;
use super::chunk::Rules;
use super::{EngineError, Progress};
use crate::nic::{Abilities, Direction, Key, Nic, NicError, Post};
use gasworks_sync::RawBytes;
use std::collections::VecDeque;

/// Memory of this rank that the NIC can use as it is.
#[derive(Debug)]
pub(super) struct Registered {
    pub bytes: RawBytes,
    pub key: Key,
}

impl Registered {
    fn holds(&self, bytes: RawBytes) -> bool {
        let (start, end) = (self.bytes.as_ptr().addr(), self.bytes.as_ptr().addr() + self.bytes.len());
        bytes.as_ptr().addr() >= start && bytes.as_ptr().addr() + bytes.len() <= end
    }
}

/// A put or get as it was asked for.
pub(super) struct Start<'a> {
    pub direction: Direction,
    pub peer: u32,
    pub key: &'a Key,
    pub offset: u64,
    pub local: RawBytes,
    pub token: u64,
}

/// An operation that has been started.
#[derive(Debug)]
struct Operation {
    direction: Direction,
    peer: u32,
    /// Reused from operation to operation: its capacity stays.
    key: Key,
    /// What has not been posted: where it begins there, and all of it here.
    offset: u64,
    left: RawBytes,
    /// Posts with the NIC.
    posts: u32,
    /// A descriptor that is held for the next post, so that the operation cannot starve.
    held: Option<u32>,
    /// Which registration holds the local bytes, if one does.
    registered: Option<u32>,
    token: u64,
    result: Result<(), NicError>,
    /// All that was posted so far was copied out of the local bytes first.
    copied: bool,
}

/// What a post is for, and what to do when it completes.
#[derive(Debug)]
struct Descriptor {
    operation: u32,
    /// Grows with each use, so that a completion which is not this use's is noticed.
    generation: u32,
    busy: bool,
    /// Free this buffer.
    unbounce: Option<u32>,
    /// First copy from `skip` in the buffer to these bytes: a get through a bounce buffer.
    copy: Option<(usize, RawBytes)>,
}

/// The engine's state.
#[derive(Debug)]
pub(super) struct State {
    rules: Rules,
    registers_local: bool,
    depth: usize,
    pool: Pool,
    bounce_key: Key,
    no_key: Key,
    registered: Vec<Option<Registered>>,
    operations: Vec<Operation>,
    free_operations: Vec<u32>,
    descriptors: Vec<Descriptor>,
    free: Vec<u32>,
    /// Operations with bytes to post, the one to try first in front.
    waiting: VecDeque<u32>,
    /// Tokens to hand back, and what to say with them.
    pub finished: VecDeque<(u64, Progress)>,
    /// Operations whose tokens have not been handed back.
    pub pending: usize,
    under_way: usize,
}

/// Why the next post of an operation was not made.
enum Stop {
    /// The NIC has no room.
    Network,
    /// No descriptor or no buffer: another operation may need neither.
    Own,
}

impl State {
    pub fn new(pool: Pool, abilities: &Abilities, descriptors: usize, bounce_key: Key) -> Self {
        let descriptor =
            || Descriptor { operation: 0, generation: 0, busy: false, unbounce: None, copy: None };
        Self {
            rules: Rules::new(abilities, pool.size()),
            registers_local: abilities.registers_local,
            depth: abilities.depth,
            pool,
            bounce_key,
            no_key: Key::default(),
            registered: Vec::new(),
            operations: Vec::new(),
            free_operations: Vec::new(),
            descriptors: std::iter::repeat_with(descriptor).take(descriptors).collect(),
            free: (0..descriptors as u32).rev().collect(),
            waiting: VecDeque::with_capacity(descriptors),
            finished: VecDeque::with_capacity(descriptors),
            pending: 0,
            under_way: 0,
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

    /// Takes the operation on, and posts what can be posted at once.
    pub fn start<N: Nic + ?Sized>(&mut self, nic: &N, start: Start<'_>) -> Result<(), EngineError> {
        self.rules.check(start.direction, start.offset, start.local.len())?;
        if start.local.is_empty() {
            self.pending += 1;
            self.finished.push_back((start.token, Progress::Done(Ok(()))));
            return Ok(());
        }
        let held = self.free.pop().ok_or(EngineError::Busy { descriptors: self.descriptors.len() })?;
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
                offset: 0,
                left: RawBytes::EMPTY,
                posts: 0,
                held: None,
                registered: None,
                token: 0,
                result: Ok(()),
                copied: false,
            });
            self.operations.len() as u32 - 1
        });
        let operation = &mut self.operations[index as usize];
        operation.direction = start.direction;
        operation.peer = start.peer;
        operation.key.0.clear();
        operation.key.0.extend_from_slice(&start.key.0);
        operation.offset = start.offset;
        operation.left = start.local;
        operation.posts = 0;
        operation.held = Some(held);
        operation.registered = registered;
        operation.token = start.token;
        operation.result = Ok(());
        operation.copied = start.direction == Direction::Put;
        self.pending += 1;
        let crowded = !self.waiting.is_empty();
        self.waiting.push_back(index);
        if !crowded {
            self.advance(nic);
        }
        Ok(())
    }

    /// Posts what can be posted of the waiting operations.
    pub fn advance<N: Nic + ?Sized>(&mut self, nic: &N) {
        for _ in 0..self.waiting.len() {
            let Some(index) = self.waiting.pop_front() else { return };
            let mut stop = None;
            while stop.is_none() && !self.operations[index as usize].left.is_empty() {
                stop = self.post(nic, index).err();
            }
            match stop {
                None => self.settle(index),
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
    fn post<N: Nic + ?Sized>(&mut self, nic: &N, index: u32) -> Result<(), Stop> {
        if self.under_way >= self.depth {
            return Err(Stop::Network);
        }
        let operation = &mut self.operations[index as usize];
        let direct = !self.registers_local || operation.registered.is_some();
        let chunk = self.rules.next(operation.direction, operation.offset, operation.left.len(), direct);
        let bounce = if chunk.bounced { Some(self.pool.take().ok_or(Stop::Own)?) } else { None };
        let Some(number) = operation.held.take().or_else(|| self.free.pop()) else {
            bounce.into_iter().for_each(|buffer| self.pool.give(buffer));
            return Err(Stop::Own);
        };
        let mine = operation.left.slice(0, chunk.useful).unwrap_or(RawBytes::EMPTY);
        let local = match bounce {
            None => mine,
            Some(buffer) => {
                let bytes = self.pool.bytes(buffer, chunk.wire);
                if operation.direction == Direction::Put {
                    // SAFETY: E1 for the source, E3 for the buffer, of which `mine.len() <= chunk.wire` bytes exist.
                    unsafe { bytes.as_ptr().copy_from_nonoverlapping(mine.as_ptr(), mine.len()) };
                }
                bytes
            }
        };
        let local_key = match (bounce, operation.registered) {
            (Some(_), _) => &self.bounce_key,
            (None, Some(registered)) => {
                self.registered[registered as usize].as_ref().map_or(&self.no_key, |r| &r.key)
            }
            (None, None) => &self.no_key,
        };
        let descriptor = &mut self.descriptors[number as usize];
        descriptor.operation = index;
        descriptor.generation = descriptor.generation.wrapping_add(1);
        descriptor.unbounce = bounce;
        let copies = bounce.is_some() && operation.direction == Direction::Get;
        descriptor.copy = copies.then_some((chunk.skip, mine));
        let post = Post {
            direction: operation.direction,
            peer: operation.peer,
            local,
            local_key,
            remote_offset: operation.offset - chunk.skip as u64,
            remote_key: &operation.key,
            token: u64::from(descriptor.generation) << 32 | u64::from(number),
        };
        // SAFETY: `local` is in the caller's bytes (E1, and the token is not handed back before this post's
        // completion, E2) or in a buffer that is this descriptor's until then (E3).
        let posted = unsafe { nic.post(&post) };
        match posted {
            Ok(()) => {
                descriptor.busy = true;
                operation.posts += 1;
                operation.offset += chunk.useful as u64;
                let rest = operation.left.len() - chunk.useful;
                operation.left = operation.left.slice(chunk.useful, rest).unwrap_or(RawBytes::EMPTY);
                operation.copied &= bounce.is_some();
                if operation.copied && rest == 0 {
                    self.finished.push_back((operation.token, Progress::Copied));
                }
                self.under_way += 1;
                Ok(())
            }
            Err(error) => {
                bounce.into_iter().for_each(|buffer| self.pool.give(buffer));
                operation.held = Some(number);
                if error == NicError::Busy {
                    return Err(Stop::Network);
                }
                operation.fail(error);
                Ok(())
            }
        }
    }

    /// Ends an operation that has nothing to post and nothing with the NIC.
    fn settle(&mut self, index: u32) {
        let operation = &mut self.operations[index as usize];
        if let Some(held) = operation.held.take() {
            self.free.push(held);
        }
        if operation.posts == 0 {
            // E2: only here, and no post of it is left.
            self.finished.push_back((operation.token, Progress::Done(operation.result)));
            self.free_operations.push(index);
        }
    }

    /// Takes completions from the NIC and does what their descriptors say.
    pub fn reap<N: Nic + ?Sized>(&mut self, nic: &N, burst: usize) {
        // Also with nothing under way: some networks make their targets' progress in it.
        nic.poll(burst, &mut |completion| {
            let number = completion.token as u32;
            let Some(descriptor) = self.descriptors.get_mut(number as usize) else { return };
            if !descriptor.busy || descriptor.generation != (completion.token >> 32) as u32 {
                return; // not of a post that is under way: a NIC that repeats itself does no harm
            }
            descriptor.busy = false;
            self.under_way -= 1;
            if let Some(buffer) = descriptor.unbounce.take() {
                if let (Some((skip, mine)), Ok(())) = (descriptor.copy.take(), completion.result) {
                    let bytes = self.pool.bytes(buffer, skip + mine.len());
                    // SAFETY: E1 for the target; E3 for the buffer, which has `skip + mine.len()` bytes, as
                    // `Rules::next` made the post.
                    unsafe { mine.as_ptr().copy_from_nonoverlapping(bytes.as_ptr().add(skip), mine.len()) };
                }
                self.pool.give(buffer);
            }
            let index = descriptor.operation;
            let operation = &mut self.operations[index as usize];
            operation.posts -= 1;
            if let Err(error) = completion.result {
                operation.fail(error);
            }
            if operation.left.is_empty() {
                self.free.push(number);
                // One that failed while waiting is settled where it waits, by `advance`.
                let waits = operation.result.is_err() && self.waiting.contains(&index);
                if !waits {
                    self.settle(index);
                }
            } else if operation.held.is_none() {
                operation.held = Some(number);
            } else {
                self.free.push(number);
            }
        });
    }

    /// The next token to hand back.
    pub fn finish(&mut self) -> Option<(u64, Progress)> {
        let finished = self.finished.pop_front()?;
        self.pending -= usize::from(finished.1 != Progress::Copied);
        Some(finished)
    }
}

impl Operation {
    /// Nothing more of it is posted; the first cause is the one that is reported.
    fn fail(&mut self, error: NicError) {
        self.left = RawBytes::EMPTY;
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }
}
