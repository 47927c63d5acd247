//! The 8-byte header that is written to a peer's FIFO, or that begins a slot of a ring.
//!
//! | bits | field |
//! |---|---|
//! | 0–3 | type |
//! | 4–19 | connection id |
//! | 20–27 | generation of the connection id |
//! | 28–43 | offset in the sender's send buffer, in cache lines; in a ring, where a message needs none, how many messages its sender has taken, modulo 65,536 |
//! | 44–63 | length in bytes, or a status |
//!
//! The first two fields are the seed's; the generation keeps a late header from reaching a connection that was given the id of a closed one.

/// Bytes of a header. A write of so many to a pipe is atomic.
pub const HEADER_LEN: usize = 8;
/// Bytes of a cache line, in which the send buffer is allocated.
pub const LINE: usize = 64;
/// The largest length, or status, that a header carries.
pub const MAX_LENGTH: u32 = (1 << 20) - 1;

const ID_SHIFT: u32 = 4;
const GENERATION_SHIFT: u32 = 20;
const OFFSET_SHIFT: u32 = 28;
const LENGTH_SHIFT: u32 = 44;

/// What a header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HeaderType {
    /// A message, whose payload lies in the sender's send buffer.
    Send = 1,
    /// The receiver has copied a message: its part of the send buffer is free.
    SendAck = 2,
    /// The sender is alive.
    Keepalive = 3,
    /// The answer to that.
    KeepaliveAck = 4,
    /// A fragment of an RMA write, which lies in the initiator's RMA buffer.
    RmaWrite = 5,
    /// A fragment of an RMA read, for which the initiator's RMA buffer has room.
    RmaRead = 6,
    /// The target has handled a fragment; the length field is its status.
    RmaAck = 7,
    /// The sender has closed the connection.
    Disconnect = 8,
}

impl HeaderType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Send,
        Self::SendAck,
        Self::Keepalive,
        Self::KeepaliveAck,
        Self::RmaWrite,
        Self::RmaRead,
        Self::RmaAck,
        Self::Disconnect,
    ];

    /// They are numbered from 1 on, in this order.
    #[inline]
    fn from_bits(bits: u64) -> Option<Self> {
        Self::ALL.get((bits as usize).wrapping_sub(1)).copied()
    }
}

/// A connection id with its generation: the name by which the receiver of a header knows the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// Which of the receiver's connections.
    pub index: u16,
    /// How often the index was given to another connection before, modulo 256.
    pub generation: u8,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it announces.
    pub of: HeaderType,
    /// For which connection of the receiver.
    pub connection: ConnectionId,
    /// Where the payload or the fragment begins in the sender's buffer, in cache lines.
    pub offset: u16,
    /// Its length in bytes, at most [`MAX_LENGTH`]; of an RMA acknowledgement the status.
    pub length: u32,
}

impl Header {
    /// The header of a message whose payload is named, or comes, with it.
    #[inline]
    pub fn of_message(connection: ConnectionId, len: usize) -> Self {
        Self { of: HeaderType::Send, connection, offset: 0, length: len as u32 }
    }

    /// The header as it is written. A length beyond [`MAX_LENGTH`] is cut to its low bits: callers check lengths before.
    #[inline]
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let Self { of, connection: ConnectionId { index, generation }, offset, length } = self;
        let word = of as u64
            | u64::from(index) << ID_SHIFT
            | u64::from(generation) << GENERATION_SHIFT
            | u64::from(offset) << OFFSET_SHIFT
            | u64::from(length) << LENGTH_SHIFT;
        word.to_le_bytes()
    }

    /// Reads a header; `None` if its type is unknown.
    #[inline]
    pub fn decode(bytes: [u8; HEADER_LEN]) -> Option<Self> {
        let word = u64::from_le_bytes(bytes);
        Some(Self {
            of: HeaderType::from_bits(word & 0xF)?,
            connection: ConnectionId {
                index: (word >> ID_SHIFT) as u16,
                generation: (word >> GENERATION_SHIFT) as u8,
            },
            offset: (word >> OFFSET_SHIFT) as u16,
            length: (word >> LENGTH_SHIFT) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_survives_eight_bytes(
            of in prop::sample::select(HeaderType::ALL.to_vec()),
            index: u16, generation: u8, offset: u16, length in 0..=MAX_LENGTH,
        ) {
            let header = Header { of, connection: ConnectionId { index, generation }, offset, length };
            prop_assert_eq!(Header::decode(header.encode()), Some(header));
        }

        #[test]
        fn any_eight_bytes_are_one_header_or_none(bytes: [u8; HEADER_LEN]) {
            match Header::decode(bytes) {
                Some(header) => prop_assert_eq!(header.encode(), bytes),
                None => prop_assert!(HeaderType::ALL.iter().all(|of| *of as u8 != bytes[0] & 0xF)),
            }
        }
    }

    /// The first four bits are the type and the next sixteen the connection, as CCI's design says.
    #[test]
    fn fields_lie_where_the_seed_has_them() {
        let connection = ConnectionId { index: 0xABCD, generation: 0 };
        let header = Header { of: HeaderType::RmaAck, connection, offset: 0, length: 0 };
        assert_eq!(u64::from_le_bytes(header.encode()), 0xABCD7);
    }
}
