//! The means by which a connection moves headers and payloads: rings in memory that both parties map, or FIFOs and files.

use crate::channel::{Channel, Half, Payload, PeerError, Scratch, SendError, Sent};
use crate::fifo::{FifoLink, OwnFiles, PeerFiles};
use crate::header::{ConnectionId, Header, LINE};
use gasworks_sync::VolatileSlice;
use std::collections::VecDeque;
use std::sync::Arc;

/// What this side of a connection has, until the peer's side is known.
#[derive(Debug)]
pub(crate) enum OwnHalf {
    Rings(Half),
    Fifo(Arc<OwnFiles>),
}

/// What the peer's side has.
#[derive(Debug)]
pub(crate) enum PeerHalf {
    Rings(Half),
    Fifo(Arc<PeerFiles>),
}

/// A connection's means.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "what is used for each message lies in the connection itself")]
pub(crate) enum Link {
    Rings(Channel),
    Fifo(Box<FifoLink>),
}

impl Link {
    /// Puts both sides of the connection `id` together, which is `peer_id` of the peer's; `None` if they work by different means.
    pub(crate) fn join(
        own: OwnHalf,
        peer: PeerHalf,
        id: ConnectionId,
        peer_id: ConnectionId,
    ) -> Option<Self> {
        match (own, peer) {
            (OwnHalf::Rings(own), PeerHalf::Rings(peer)) => Some(Self::Rings(Channel::new(own, peer))),
            (OwnHalf::Fifo(own), PeerHalf::Fifo(peer)) => {
                Some(Self::Fifo(Box::new(FifoLink::new(own, peer, id, peer_id))))
            }
            _ => None,
        }
    }

    /// Takes a header that has come by the FIFO; whether the connection is to be looked at.
    pub(crate) fn arrive(&mut self, header: Header) -> bool {
        match self {
            Self::Rings(_) => false,
            Self::Fifo(link) => link.arrive(header),
        }
    }

    /// Sends a message, whose parts follow each other, or a header without any.
    ///
    /// # Errors
    /// [`SendError`]: nothing was sent.
    #[inline]
    pub(crate) fn send(&mut self, header: Header, parts: &[&[u8]]) -> Result<Sent, SendError> {
        match self {
            Self::Rings(channel) => channel.send(header, parts),
            Self::Fifo(link) => link.send(header, parts),
        }
    }

    /// Sends the first of some headers without payloads, or as many as go at once, and takes them from the queue.
    pub(crate) fn send_answers(&mut self, headers: &mut VecDeque<Header>) -> Result<Sent, SendError> {
        match self {
            Self::Rings(channel) => {
                let sent = channel.send(*headers.front().ok_or(SendError::Full)?, &[])?;
                headers.pop_front();
                Ok(sent)
            }
            Self::Fifo(link) => link.send_answers(headers),
        }
    }

    /// Sends what it can of them on a connection that this side closes, where messages are acknowledged so.
    pub(crate) fn send_last_answers(&mut self, headers: &mut VecDeque<Header>) {
        if let (Self::Fifo(link), false) = (self, headers.is_empty()) {
            // Where there is no room, the peer finds that the connection is closed.
            let _ = link.send_answers(headers);
        }
    }

    /// How many messages the peer has taken, as far as is known without a look at its memory.
    #[inline]
    pub(crate) fn known_taken(&self) -> u64 {
        match self {
            Self::Rings(channel) => channel.known_taken(),
            Self::Fifo(link) => link.taken(),
        }
    }

    /// How many messages the peer has taken.
    #[inline]
    pub(crate) fn taken(&mut self) -> u64 {
        match self {
            Self::Rings(channel) => channel.taken(),
            Self::Fifo(link) => link.taken(),
        }
    }

    /// Takes the next message or header, if one has come.
    ///
    /// # Errors
    /// [`PeerError`].
    #[inline]
    pub(crate) fn receive<'a>(
        &'a mut self,
        scratch: &'a mut Scratch,
    ) -> Result<Option<(Header, Payload<'a>)>, PeerError> {
        match self {
            Self::Rings(channel) => channel.receive(scratch),
            Self::Fifo(link) => link.receive(),
        }
    }

    /// Copies the first bytes of a block of a ring's.
    pub(crate) fn read_block(&self, index: u32, into: &mut [u8]) {
        if let Self::Rings(channel) = self {
            channel.peer_block(index, into.len()).read(into);
        }
    }

    /// Returns a block of a ring's to the peer.
    #[inline]
    pub(crate) fn free(&self, index: u32) {
        if let Self::Rings(channel) = self {
            channel.free(index);
        }
    }

    /// Copies a payload that lies in the peer's file; whether it is there.
    pub(crate) fn read_payload(&self, offset: u16, into: &mut [u8]) -> bool {
        match self {
            Self::Rings(_) => false,
            Self::Fifo(link) => link.read_payload(offset, into),
        }
    }

    /// Tells the peer which messages were taken, where it looks for that; whether it has asked to be woken then.
    #[inline]
    pub(crate) fn acknowledge(&mut self) -> bool {
        match self {
            Self::Rings(channel) => channel.acknowledge(),
            Self::Fifo(_) => false,
        }
    }

    /// As [`acknowledge`](Self::acknowledge), also where a message has told it, which the peer may not have read.
    pub(crate) fn acknowledge_surely(&mut self) -> bool {
        match self {
            Self::Rings(channel) => channel.acknowledge_surely(),
            Self::Fifo(_) => false,
        }
    }

    /// Whether something has come.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Rings(channel) => channel.waits(),
            Self::Fifo(link) => link.waits(),
        }
    }

    /// Asks the peer to say when it sends; whether nothing has come, so that this party need not look.
    pub(crate) fn arm(&self) -> bool {
        match self {
            Self::Rings(channel) => channel.arm(),
            // What comes by the FIFO is announced there.
            Self::Fifo(link) => !link.waits() && !link.is_closed(),
        }
    }

    /// Asks the peer to say when it takes what was sent.
    pub(crate) fn arm_acknowledgement(&self) {
        if let Self::Rings(channel) = self {
            channel.arm_acknowledgement();
        }
    }

    /// Says that this side sends no more, and receives no more; whether the peer is to be [signalled](super::wakeups).
    pub(crate) fn close(&mut self) -> bool {
        match self {
            Self::Rings(channel) => {
                channel.close();
                true
            }
            Self::Fifo(link) => {
                link.close();
                false
            }
        }
    }

    /// Whether the peer has closed the connection. What it sent before is there.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Rings(channel) => channel.is_closed(),
            Self::Fifo(link) => link.is_closed(),
        }
    }

    /// Whether the peer has closed the connection, and all that it sent before was taken.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Rings(channel) => channel.is_over(),
            Self::Fifo(link) => link.is_closed() && !link.waits(),
        }
    }

    /// The peer is not alive. Whether the connection's end is to be found later, behind what is still in the FIFO.
    pub(crate) fn break_off(&mut self) -> bool {
        match self {
            Self::Rings(_) => false,
            Self::Fifo(link) => {
                link.break_off();
                true
            }
        }
    }

    /// Whether there is room for one more header of a fragment, as far as is known.
    pub(crate) fn has_room(&mut self) -> bool {
        match self {
            Self::Rings(channel) => channel.has_room(),
            Self::Fifo(_) => true,
        }
    }

    /// Takes room of this side's for a fragment of `len` bytes with its line: its number.
    pub(crate) fn claim(&mut self, len: usize) -> Option<u32> {
        match self {
            Self::Rings(channel) => channel.claim(),
            Self::Fifo(link) => link.claim(len),
        }
    }

    /// Gives it back.
    pub(crate) fn free_own(&mut self, index: u32) {
        match self {
            Self::Rings(channel) => channel.free_own(index),
            Self::Fifo(link) => link.free_fragment(index),
        }
    }

    /// Writes the line of a fragment, and its payload if it has one; whether that was possible now.
    pub(crate) fn fill(&self, index: u32, line: &[u8; LINE], payload: Option<VolatileSlice<'_>>) -> bool {
        match self {
            Self::Rings(channel) => {
                let len = payload.map_or(0, VolatileSlice::len);
                let room = channel.own_block(index, LINE + len);
                room.write(line);
                if let (Some(payload), Some(room)) = (payload, room.slice(LINE, len)) {
                    payload.copy_to(room);
                }
                true
            }
            Self::Fifo(link) => link.fill(index, line, payload),
        }
    }

    /// Sends a fragment of `len` bytes with its line.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn send_fragment(
        &mut self,
        header: Header,
        index: u32,
        len: usize,
    ) -> Result<Sent, SendError> {
        match self {
            Self::Rings(channel) => channel.send_block(header, index, len),
            Self::Fifo(link) => link.send_fragment(header, index),
        }
    }

    /// Copies the payload of a fragment that the target has filled; whether it is there.
    pub(crate) fn drain(&self, index: u32, into: VolatileSlice<'_>) -> bool {
        match self {
            Self::Rings(channel) => {
                let block = channel.own_block(index, LINE + into.len());
                block.slice(LINE, into.len()).map(|payload| payload.copy_to(into)).is_some()
            }
            Self::Fifo(link) => link.drain(index, into),
        }
    }

    /// The line of a fragment of the peer's, of `len` bytes with its line, and how long its payload may be.
    pub(crate) fn fragment_line(&self, place: u32, len: usize) -> Option<([u8; LINE], u64)> {
        let payload = len.checked_sub(LINE)? as u64;
        let line = match self {
            Self::Rings(channel) => {
                let mut line = [0; LINE];
                channel.peer_block(place, len).slice(0, LINE)?.read(&mut line);
                line
            }
            Self::Fifo(link) => link.fragment_line(place)?,
        };
        Some((line, payload))
    }

    /// Copies the payload of a fragment of the peer's to memory of this side, or from it if the peer reads; whether that was possible.
    pub(crate) fn move_fragment(&self, place: u32, here: VolatileSlice<'_>, is_read: bool) -> bool {
        match self {
            Self::Rings(channel) => {
                let block = channel.peer_block(place, LINE + here.len());
                let Some(there) = block.slice(LINE, here.len()) else { return false };
                if is_read {
                    copy(here, there)
                } else {
                    copy(there, here)
                }
                true
            }
            Self::Fifo(link) => link.move_fragment(place, here, is_read),
        }
    }
}

/// Copies bytes to others, which may overlap them where an endpoint reaches its own memory.
pub(crate) fn copy(from: VolatileSlice<'_>, to: VolatileSlice<'_>) {
    if from.as_ptr().addr().abs_diff(to.as_ptr().addr()) >= from.len() {
        return from.copy_to(to);
    }
    let mut bytes = vec![0; from.len()];
    from.read(&mut bytes);
    to.write(&bytes);
}
