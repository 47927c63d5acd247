//! A message in a handler's hands.

use super::own::REPLY;
use super::{Ask, Commit, Engine, Held, Outgoing, Prepared};
use crate::{CoreMode, Error, Rank, Signature};
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

    /// Agrees on room for the reply, fills it in `fill`, and sends what that returns; nothing if it returns `None`.
    ///
    /// # Errors
    /// This is a reply itself or was replied to, the room cannot be had or the message cannot be sent, or the peer is gone.
    pub fn reply_prepared<'m>(
        &self,
        ask: &Ask,
        fill: impl FnOnce(&Prepared<'a, M>) -> Option<Commit<'m>>,
    ) -> Result<(), Error> {
        let (bytes, replied) = self.may_reply()?;
        let prepared = self.engine.prepare_reply(self.source, ask, bytes)?;
        if let Some(commit) = fill(&prepared) {
            prepared.commit(&commit)?;
            replied.set(true);
        }
        Ok(())
    }

    /// Agrees on room for the reply, which is sent by [`PreparedReply::commit`]. Dropped instead, it is none, and another may be
    /// agreed on.
    ///
    /// # Errors
    /// This is a reply itself or was replied to, or the room cannot be had.
    pub fn prepare_reply(&self, ask: &Ask) -> Result<PreparedReply<'a, M>, Error> {
        let (bytes, replied) = self.may_reply()?;
        Ok(PreparedReply { prepared: self.engine.prepare_reply(self.source, ask, bytes)?, replied })
    }

    #[inline]
    fn may_reply(&self) -> Result<(u32, &'a Cell<bool>), Error> {
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

/// Room for a reply.
#[must_use = "room is held until it is committed or dropped"]
pub struct PreparedReply<'a, M: CoreMode> {
    prepared: Prepared<'a, M>,
    replied: &'a Cell<bool>,
}

impl<'a, M: CoreMode> PreparedReply<'a, M> {
    /// What was agreed on.
    pub fn prepared(&self) -> &Prepared<'a, M> {
        &self.prepared
    }

    /// Sends the reply.
    ///
    /// # Errors
    /// Those of [`Prepared::commit`].
    pub fn commit(self, commit: &Commit<'_>) -> Result<(), Error> {
        self.prepared.commit(commit)?;
        self.replied.set(true);
        Ok(())
    }
}
