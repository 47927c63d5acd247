//! Messages of a rank to itself: no transport carries them, and they take no credit. Their handlers have run when the call returns, those of
//! their replies when the reply returns.

use super::{Engine, Incoming, Outgoing, Received};
use crate::error::Stop;
use crate::handlers::Placed;
use crate::message::{First, MAX_ARGS, Returned, first_word};
use crate::wire::{Arrived, Class, Own, Wire, head_of};
use crate::{Category, CoreMode, Error};
use gasworks_sync::{Lock, Room, VolatileSlice, room};
use std::cell::Cell;

impl<M: CoreMode> Engine<M> {
    /// Handles a message of this rank to itself.
    ///
    /// # Errors
    /// The message is not one that can be sent. What its handler says went wrong the next poll tells.
    #[inline(always)]
    pub(super) fn to_itself(&self, class: Class, message: &Outgoing<'_>) -> Result<(), Stop> {
        let &Outgoing { category, handler, args, payload, .. } = message;
        if category == Category::Short && payload.is_empty() {
            return self.short_to_itself(class, handler, args);
        }
        // A copy, so that on the way above the message need not lie in memory.
        self.longer_to_itself(class, *message)
    }

    /// What it takes goes in registers.
    #[inline(never)]
    fn short_to_itself(&self, class: Class, handler: u8, args: &[u8]) -> Result<(), Stop> {
        let word =
            first_word(Category::Short, class == Class::Reply, handler, args.len() / 4, Returned::default());
        match self.handlers.taking(First::new(word)) {
            // A handler takes no more arguments than there may be.
            Some(placed) if args.len().is_multiple_of(4) && !self.sees_own => {
                self.run_own(class, handler, args, Received::Nothing, placed);
                Ok(())
            }
            _ => {
                let message = Outgoing { category: Category::Short, handler, args, payload: &[], landing: 0 };
                self.longer_to_itself(class, message)
            }
        }
    }

    #[inline(never)]
    fn longer_to_itself(&self, class: Class, message: Outgoing<'_>) -> Result<(), Stop> {
        let Outgoing { category, payload, landing, .. } = message;
        self.fits(self.rank, &message)?;
        match category {
            Category::Short => self.handle_own(class, &message, Received::Nothing),
            Category::Medium => {
                self.with_copy(payload, |copy| self.handle_own(class, &message, Received::Payload(copy)))?
            }
            Category::Long => {
                if let Some(target) = self.landing(self.rank, landing, payload.len())? {
                    target.write(payload);
                }
                let len = payload.len() as u64;
                self.handle_own(class, &message, Received::Landed { offset: landing, len })
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
        let kept = self.own_rooms.with(Vec::pop);
        let room = kept.or_else(|| Room::zeroed(self.limits.max_medium)).ok_or(Error::NoMemory { len })?;
        room.bytes(len).write(payload);
        let result = act(room.bytes(len));
        self.own_rooms.with(|rooms| rooms.push(room));
        Ok(result)
    }

    /// Handles a message of this rank to itself whose payload is where its handler looks for it.
    pub(super) fn handle_own(
        &self,
        class: Class,
        message: &Outgoing<'_>,
        received: Received<'_>,
    ) -> Result<(), Stop> {
        let &Outgoing { category, handler, args, .. } = message;
        let reply = class == Class::Reply;
        let word = first_word(category, reply, handler, args.len() / 4, Returned::default());
        let Some(placed) = self.handlers.taking(First::new(word)) else {
            let (head, len) = head_of(word, args);
            let payload = VolatileSlice::EMPTY;
            return Err((*self.refused(Arrived { from: self.rank, head: &head[..len], payload })).into());
        };
        if !self.sees_own {
            self.run_own(class, handler, args, received, placed);
            return Ok(());
        }
        let bytes = match received {
            Received::Nothing => 0,
            Received::Payload(bytes) => bytes.len(),
            Received::Landed { len, .. } => len as usize,
        };
        self.router.to(self.rank).own(Own { category, reply, handler, bytes }, &mut || {
            self.run_own(class, handler, args, received, placed);
        });
        Ok(())
    }

    #[inline(always)]
    fn run_own(&self, class: Class, handler: u8, args: &[u8], received: Received<'_>, placed: &Placed<M>) {
        debug_assert!(args.len() <= 4 * MAX_ARGS, "{} bytes of arguments", args.len());
        let replied = Cell::new(false);
        let outcome = Self::run(
            placed,
            &Incoming {
                engine: self,
                source: self.rank,
                args,
                handler,
                received,
                request: (class == Class::Request).then_some((0, &replied)),
                signature: &placed.entry.signature,
            },
        );
        if let Err(error) = outcome {
            self.fail_later(*error);
        }
        self.note_work();
    }
}
