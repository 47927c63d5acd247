//! A message in a handler's hands.

use super::{Engine, Held, Outgoing};
use crate::{CoreMode, Error, Rank, Signature};
use gasworks_sync::Lent;
use std::cell::Cell;

/// What came with a message besides its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a> {
    /// Nothing: it is a Short.
    Nothing,
    /// A Medium's payload, in the library's buffer; gone when the handler returns.
    Payload(Lent<'a>),
    /// A Long's payload, in this rank's segment.
    Landed {
        /// Where, from the start of the segment.
        offset: u64,
        /// Its length.
        len: u64,
    },
}

/// A message being handled: the specification's token, with the message's content.
pub struct Incoming<'a, M: CoreMode> {
    pub(super) engine: &'a Engine<M>,
    pub(super) source: Rank,
    pub(super) args: &'a [u8],
    pub(super) received: Received<'a>,
    /// For a request: the bytes its packet carried, and whether it has been replied to.
    pub(super) request: Option<(u32, &'a Cell<bool>)>,
    pub(super) signature: &'a Signature,
}

impl<'a, M: CoreMode> Incoming<'a, M> {
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

    /// Replies, once. The room was reserved with the request: a reply never waits.
    ///
    /// # Errors
    /// This is a reply itself, the reply is not one that can be sent, or the peer is gone.
    pub fn reply(self, message: &Outgoing<'_>) -> Result<(), Error> {
        let Some((bytes, replied)) = self.request else {
            return Err(Error::InHandler("reply to a reply"));
        };
        if Held::any() {
            return Err(Error::LockHeld("active message reply"));
        }
        self.engine.reply(self.source, message, bytes)?;
        replied.set(true);
        Ok(())
    }
}
