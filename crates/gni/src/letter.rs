//! What a notification says: one word, which is written where its receiver looks, behind the message or in its place.
//!
//! | bits | of a request | of a reply |
//! |---|---|---|
//! | 0..16 | the sender's slot: where the message lies if it is to be fetched, and where the reply goes | 0 |
//! | 16..24 | the granule of the mailbox in which it begins | 0 |
//! | 24..32 | bytes of the head | the same |
//! | 32..52 | bytes of the payload | the same |
//! | 60 | the message begins with a set of tickets | the same |
//! | 61 | the payload of its Long goes beside it | the same |
//! | 62 | it is to be fetched | 0 |
//! | 63 | there is one | the same |

use crate::region::MOST_TICKETS;

/// Bit 63: an empty word is 0.
const THERE: u64 = 1 << 63;
/// Bit 62.
const FETCH: u64 = 1 << 62;
/// Bit 61.
const BESIDE: u64 = 1 << 61;
/// Bit 60.
const ENDS: u64 = 1 << 60;
/// The bits that mean nothing.
const UNUSED: u64 = !(THERE | FETCH | BESIDE | ENDS | 0x000f_ffff_ffff_ffff);

/// A notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    /// Whether the message is to be fetched from the sender's slot.
    pub fetch: bool,
    /// Whether it may be taken only when its sender's NIC has told that a payload has landed.
    pub beside: bool,
    /// Whether the message begins with the set of the tickets that it ends; a reply ends that of its slot without saying so.
    pub ends: bool,
    /// The sender's slot.
    pub slot: u16,
    /// Where in the mailbox it begins.
    pub granule: u8,
    /// Bytes of the head.
    pub head: usize,
    /// Bytes of the payload.
    pub payload: usize,
}

impl Letter {
    /// The word. The lengths fit: the wire has checked.
    pub fn encode(self) -> u64 {
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let flags = flag(self.fetch, FETCH) | flag(self.beside, BESIDE) | flag(self.ends, ENDS);
        let lengths = (self.head as u64 & 0xff) << 24 | (self.payload as u64 & 0xf_ffff) << 32;
        THERE | flags | u64::from(self.slot) | u64::from(self.granule) << 16 | lengths
    }

    /// What a word says; `None` if it is none that a rank writes.
    pub fn decode(word: u64) -> Option<Self> {
        (word & (THERE | UNUSED) == THERE).then_some(Self {
            fetch: word & FETCH != 0,
            beside: word & BESIDE != 0,
            ends: word & ENDS != 0,
            slot: word as u16,
            granule: (word >> 16) as u8,
            head: usize::from((word >> 24) as u8),
            payload: (word >> 32) as usize & 0xf_ffff,
        })
    }
}

/// What an event carries to its receiver, in the 24 bits that both chips have for it: who has sent a request, or which slot
/// has a reply; or of which of these the payload has landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A request of this rank.
    Request(u32),
    /// A reply in this slot.
    Reply(u16),
    /// The payload beside this rank's request with this ticket.
    RequestLanded(u16, u8),
    /// The payload beside the reply in this slot.
    ReplyLanded(u16),
}

/// The most ranks that an event can tell apart.
pub(crate) const MOST_RANKS: u32 = 1 << 22;
const REPLY: u32 = 1 << 23;
const LANDED: u32 = 1 << 22;
/// Bits of a ticket.
const TICKET: u32 = MOST_TICKETS.trailing_zeros();

impl Call {
    pub fn encode(self) -> u32 {
        match self {
            Self::Request(rank) => rank,
            Self::Reply(slot) => REPLY | u32::from(slot),
            Self::RequestLanded(rank, ticket) => LANDED | u32::from(rank) << TICKET | u32::from(ticket),
            Self::ReplyLanded(slot) => REPLY | LANDED | u32::from(slot),
        }
    }

    pub fn decode(value: u64) -> Self {
        let value = value as u32;
        match (value & REPLY != 0, value & LANDED != 0) {
            (false, false) => Self::Request(value & (MOST_RANKS - 1)),
            (true, false) => Self::Reply(value as u16),
            (false, true) => Self::RequestLanded((value >> TICKET) as u16, (value % MOST_TICKETS) as u8),
            (true, true) => Self::ReplyLanded(value as u16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_letter_comes_back(fetch: bool, beside: bool, ends: bool, slot: u16, granule: u8, head in 0usize..256, payload in 0usize..1 << 20) {
            let letter = Letter { fetch, beside, ends, slot, granule, head, payload };
            prop_assert!(letter.encode() != 0);
            prop_assert_eq!(Letter::decode(letter.encode()), Some(letter));
        }

        #[test]
        fn other_words_are_no_letters(word: u64) {
            if let Some(letter) = Letter::decode(word) {
                prop_assert_eq!(letter.encode(), word);
            }
        }

        #[test]
        fn a_call_comes_back(rank in 0..MOST_RANKS, near: u16, slot: u16, ticket in 0..MOST_TICKETS as u8) {
            let landed = [Call::RequestLanded(near, ticket), Call::ReplyLanded(slot)];
            for call in [Call::Request(rank), Call::Reply(slot)].into_iter().chain(landed) {
                prop_assert!(call.encode() < 1 << 24);
                prop_assert_eq!(Call::decode(call.encode().into()), call);
            }
        }
    }
}
