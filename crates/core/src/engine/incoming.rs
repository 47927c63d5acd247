//! A message in a handler's hands.

use super::thread::Handling;
use super::{Engine, Held, Outgoing};
use crate::message::{First, Returned, first_word};
use crate::{Category, CoreMode, Error, Rank, Signature};
use gasworks_sync::VolatileSlice;
use std::cell::Cell;

/// What came with a message besides its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a> {
    /// Nothing: it is a Short.
    Nothing,
    /// A Medium's payload, in the library's buffer; gone when the handler returns.
    Payload(VolatileSlice<'a>),
    /// A Long's payload, in this rank's segment.
    Landed {
        /// Where, from the start of the segment.
        offset: u64,
        /// Its length.
        len: u64,
    },
}

/// What is known of a message besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Who sent it.
    pub source: Rank,
    /// The index of its handler.
    pub handler: u8,
    /// The handler's entry in the table.
    pub entry: &'a Signature,
    /// Whether it is a request.
    pub is_request: bool,
    /// Whether it is a Long.
    pub is_long: bool,
}

/// A message being handled: the specification's token, with the message's content.
pub struct Incoming<'a, M: CoreMode> {
    pub(super) engine: &'a Engine<M>,
    pub(super) source: Rank,
    pub(super) args: &'a [u8],
    pub(super) handler: u8,
    pub(super) received: Received<'a>,
    /// For a request: the bytes its packet carried, and whether it has been replied to.
    pub(super) request: Option<(u32, &'a Cell<bool>)>,
    pub(super) signature: &'a Signature,
}

impl<'a, M: CoreMode> Incoming<'a, M> {
    /// Where it lies while its handler has it.
    #[inline]
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The engine of the rank that handles it, with which a handler does not communicate.
    pub fn engine(&self) -> &'a Engine<M> {
        self.engine
    }

    /// Who sent it.
    pub fn source(&self) -> Rank {
        self.source
    }

    /// The rank that handles it.
    pub fn rank(&self) -> Rank {
        self.engine.rank
    }

    /// The arguments, as 4 bytes each in little-endian order.
    pub fn args(&self) -> &'a [u8] {
        self.args
    }

    /// What came with it.
    pub fn received(&self) -> Received<'a> {
        self.received
    }

    /// The handler that it runs, as it was registered.
    pub fn signature(&self) -> &'a Signature {
        self.signature
    }

    /// Whether it is a request, which may be replied to.
    pub fn is_request(&self) -> bool {
        self.request.is_some()
    }

    /// What is known of it besides its content: the specification's `gex_Token_Info`. Every field is always there.
    pub fn token(&self) -> Token<'a> {
        Token {
            source: self.source,
            handler: self.handler,
            entry: self.signature,
            is_request: self.is_request(),
            is_long: matches!(self.received, Received::Landed { .. }),
        }
    }

    /// Has another handler handle its payload: as a reply without arguments, or if it takes none as such a request.
    ///
    /// # Errors
    /// No handler at that index takes either; and what the handler says.
    pub fn pass_to(&self, handler: u8) -> Result<(), Box<Error>> {
        let taking = |is_reply| {
            let word = first_word(Category::Medium, is_reply, handler, 0, Returned::default());
            First::of(&word.to_le_bytes()).and_then(|first| self.engine.handlers.taking(first))
        };
        let Some(placed) = taking(true).or_else(|| taking(false)) else {
            let what = format!("no handler at index {handler} takes a medium without arguments");
            return Err(Box::new(Error::BadMessage { from: self.source, what }));
        };
        let signature = &placed.entry.signature;
        let passed = Incoming { args: &[], handler, request: None, signature, ..*self };
        Engine::run(placed, &passed, Handling::begin_within(passed.address()))
    }

    /// Replies, once. The room was reserved with the request: a reply never waits.
    ///
    /// # Errors
    /// This is a reply itself or was replied to, the reply is not one that can be sent, or the peer is gone.
    #[inline(always)]
    pub fn reply(&self, message: &Outgoing<'_>) -> Result<(), Error> {
        let (bytes, replied) = self.may_reply()?;
        self.engine.reply(self.source, message, bytes).map_err(|stop| stop.or_full(self.source))?;
        replied.set(true);
        Ok(())
    }

    /// What a reply goes with, if there may be one: the bytes that the request's packet carried, and what says that it was sent.
    #[inline]
    pub(super) fn may_reply(&self) -> Result<(u32, &'a Cell<bool>), Error> {
        if Held::any() {
            return Err(Error::LockHeld("active message reply"));
        }
        match self.request {
            Some((_, replied)) if replied.get() => Err(Error::InHandler("a second reply to one request")),
            Some(request) => Ok(request),
            None => Err(Error::InHandler("a reply to a reply")),
        }
    }
}
