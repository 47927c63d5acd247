//! Messages of a rank to itself: no transport carries them, and they take no credit. Their handlers have run when the call returns, those of
//! their replies when the reply returns.

use super::thread::{self, Handling};
use super::{Engine, Incoming, Outgoing, Received};
use crate::handlers::Placed;
use crate::message::{First, MAX_ARGS, Returned, first_word};
use crate::observe::Own;
use crate::wire::{Arrived, head_of};
use crate::{Category, CoreMode, Error};
use gasworks_sync::{Lock, Room, VolatileSlice, room};
use std::cell::Cell;

/// What the functions here are compiled for, once each.
pub(super) const REQUEST: bool = false;
pub(super) const REPLY: bool = true;

/// What messages of this rank to itself need.
pub(super) struct ToItself<M: CoreMode> {
    /// Payloads below so many bytes take the short path. None do, not even empty ones, where somebody observes.
    short_below: usize,
    /// Room for the payloads of Mediums that are too long for the stack.
    rooms: M::Lock<Vec<Room>>,
}

impl<M: CoreMode> ToItself<M> {
    pub(super) fn new(is_observed: bool, max_medium: usize) -> Self {
        let short_below = if is_observed { 0 } else { room::SMALL.min(max_medium) + 1 };
        Self { short_below, rooms: Lock::new(Vec::new()) }
    }
}

impl<M: CoreMode> Engine<M> {
    /// Handles a Short request of this rank to itself: as [`request`](Self::request) does, with what goes in registers.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    #[inline]
    pub fn request_short_to_itself(&self, handler: u8, args: &[u8]) -> Result<(), Box<Error>> {
        self.short_to_itself::<REQUEST>(handler, args)
    }

    /// Handles a Medium request of this rank to itself, as [`request_short_to_itself`](Self::request_short_to_itself).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    #[inline]
    pub fn request_medium_to_itself(
        &self,
        handler: u8,
        args: &[u8],
        payload: &[u8],
    ) -> Result<(), Box<Error>> {
        self.medium_to_itself::<REQUEST>(handler, args, payload)
    }

    /// Handles a message of this rank to itself.
    ///
    /// # Errors
    /// The message is not one that can be sent. What its handler says went wrong the next poll tells.
    #[inline(always)]
    pub(super) fn to_itself<const IS_REPLY: bool>(&self, message: &Outgoing<'_>) -> Result<(), Box<Error>> {
        let &Outgoing { category, handler, args, payload, .. } = message;
        match category {
            Category::Short if payload.is_empty() => self.short_to_itself::<IS_REPLY>(handler, args),
            Category::Medium => self.medium_to_itself::<IS_REPLY>(handler, args, payload),
            // A copy, so that on the ways above the message need not lie in memory.
            _ => self.longer_to_itself::<IS_REPLY>(*message),
        }
    }

    /// The handler of a message to this rank itself that is nothing out of the ordinary.
    #[inline(always)]
    fn own_handler<const IS_REPLY: bool>(
        &self,
        category: Category,
        handler: u8,
        args: &[u8],
        payload_len: usize,
    ) -> Option<&Placed<M>> {
        let word = first_word(category, IS_REPLY, handler, args.len() / 4, Returned::default());
        // A handler takes no more arguments than there may be.
        self.handlers
            .taking(First::new(word))
            .filter(|_| args.len().is_multiple_of(4) && payload_len < self.own.short_below)
    }

    #[inline(never)]
    pub(super) fn short_to_itself<const IS_REPLY: bool>(
        &self,
        handler: u8,
        args: &[u8],
    ) -> Result<(), Box<Error>> {
        match self.own_handler::<IS_REPLY>(Category::Short, handler, args, 0) {
            Some(placed) => self.run_own::<IS_REPLY>(handler, args, Received::Nothing, placed),
            None => {
                let message = Outgoing { category: Category::Short, handler, args, payload: &[], landing: 0 };
                self.longer_to_itself::<IS_REPLY>(message)
            }
        }
    }

    #[inline(never)]
    fn medium_to_itself<const IS_REPLY: bool>(
        &self,
        handler: u8,
        args: &[u8],
        payload: &[u8],
    ) -> Result<(), Box<Error>> {
        match self.own_handler::<IS_REPLY>(Category::Medium, handler, args, payload.len()) {
            Some(placed) => room::with_copy(payload, |copy| {
                self.run_own::<IS_REPLY>(handler, args, Received::Payload(copy), placed)
            }),
            None => {
                let message = Outgoing { category: Category::Medium, handler, args, payload, landing: 0 };
                self.longer_to_itself::<IS_REPLY>(message)
            }
        }
    }

    #[inline(never)]
    fn longer_to_itself<const IS_REPLY: bool>(&self, message: Outgoing<'_>) -> Result<(), Box<Error>> {
        let Outgoing { category, payload, landing, .. } = message;
        if !IS_REPLY {
            thread::may_communicate("active message request")?;
        }
        self.fits(self.rank, &message)?;
        match category {
            Category::Short => self.handle_own::<IS_REPLY>(&message, Received::Nothing),
            Category::Medium => self
                .with_copy(payload, |copy| self.handle_own::<IS_REPLY>(&message, Received::Payload(copy)))?,
            Category::Long => {
                if let Some(target) = self.landing(self.rank, landing, payload.len())? {
                    target.write(payload);
                }
                let len = payload.len() as u64;
                self.handle_own::<IS_REPLY>(&message, Received::Landed { offset: landing, len })
            }
        }
    }

    /// Has `act` see a copy, as any other receiver has: a handler may write to what the payload was made of.
    fn with_copy<R>(&self, payload: &[u8], act: impl FnOnce(VolatileSlice<'_>) -> R) -> Result<R, Error> {
        let len = payload.len();
        if len <= room::SMALL {
            return Ok(room::with_copy(payload, act));
        }
        // Those that are kept are large enough for any Medium; there are as many as handlers were ever within each other.
        let kept = self.own.rooms.with(Vec::pop);
        let room = kept
            .or_else(|| Room::zeroed(self.limits_to(self.rank).max_medium))
            .ok_or(Error::NoMemory { len })?;
        room.bytes(len).write(payload);
        let result = act(room.bytes(len));
        self.own.rooms.with(|rooms| rooms.push(room));
        Ok(result)
    }

    /// Handles a message of this rank to itself whose payload is where its handler looks for it.
    pub(super) fn handle_own<const IS_REPLY: bool>(
        &self,
        message: &Outgoing<'_>,
        received: Received<'_>,
    ) -> Result<(), Box<Error>> {
        let &Outgoing { category, handler, args, .. } = message;
        let word = first_word(category, IS_REPLY, handler, args.len() / 4, Returned::default());
        let Some(placed) = self.handlers.taking(First::new(word)) else {
            let (head, len) = head_of(word, args);
            let payload = VolatileSlice::EMPTY;
            return Err(self.refused(Arrived { from: self.rank, head: &head[..len], payload }));
        };
        let Some(observer) = &self.observer else {
            return self.run_own::<IS_REPLY>(handler, args, received, placed);
        };
        let bytes = match received {
            Received::Nothing => 0,
            Received::Payload(bytes) => bytes.len(),
            Received::Landed { len, .. } => len as usize,
        };
        observer.own(Own { category, reply: IS_REPLY, handler, bytes }, || {
            // It fails later, if at all.
            let _ = self.run_own::<IS_REPLY>(handler, args, received, placed);
        });
        Ok(())
    }

    /// What the handler says went wrong the next poll tells.
    ///
    /// # Errors
    /// This thread may not send a request.
    #[inline(always)]
    fn run_own<const IS_REPLY: bool>(
        &self,
        handler: u8,
        args: &[u8],
        received: Received<'_>,
        placed: &Placed<M>,
    ) -> Result<(), Box<Error>> {
        debug_assert!(args.len() <= 4 * MAX_ARGS, "{} bytes of arguments", args.len());
        let replied = Cell::new(false);
        let incoming = Incoming {
            engine: self,
            source: self.rank,
            args,
            handler,
            received,
            request: (!IS_REPLY).then_some((0, &replied)),
            signature: &placed.entry.signature,
        };
        let handling = match IS_REPLY {
            true => Some(Handling::begin_within(incoming.address())),
            false => Handling::begin(incoming.address()),
        };
        let Some(handling) = handling else { return refused_here() };
        if let Err(error) = Self::run(placed, &incoming, handling) {
            incoming.engine.fail_later(*error);
        }
        self.note_work();
        Ok(())
    }
}

impl<M: CoreMode> Incoming<'_, M> {
    /// Replies with a Short, once, if this rank has sent itself the message; `None` if another has.
    ///
    /// # Errors
    /// As [`reply`](Self::reply).
    #[inline]
    pub fn reply_short_to_itself(&self, handler: u8, args: &[u8]) -> Option<Result<(), Box<Error>>> {
        if self.source != self.engine.rank {
            return None;
        }
        Some(self.may_reply().map_err(Box::new).and_then(|(_, replied)| {
            self.engine.short_to_itself::<REPLY>(handler, args)?;
            replied.set(true);
            Ok(())
        }))
    }
}

#[cold]
fn refused_here() -> Result<(), Box<Error>> {
    Ok(thread::may_communicate("active message request")?)
}
