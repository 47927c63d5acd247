//! The memory that messages go through: one piece of the auxiliary segment, laid out alike in every rank.
//!
//! | part | what it is |
//! |---|---|
//! | letters | for each rank a word for each request that it may have out to this one: notifications of messages to be fetched |
//! | grants | for each rank where its mailbox for this one is, once it has given one |
//! | answers | a word for each slot: the notification of the reply in it |
//! | slots | this rank's requests while they are out; then the reply lands there |
//! | replies | replies of this rank while they are out |
//! | fetched | messages that this rank fetches |
//! | barrier | a word for each step of a barrier, for two phases; or the result of the collective engines |
//!
//! What a rank has given another in case it talks is so 8 bytes for each request that may be out, and 32.

use crate::handle::Handle;
use crate::phases::MOST_STEPS;
use gasworks_core::message::MAX_HEAD;
use gasworks_shmem::view;
use gasworks_sync::VolatileSlice;
use gasworks_sync::atomic::{AtomicU64, Ordering};

/// What parts are multiples of.
const LINE: usize = 64;
/// Bytes of a grant: an address, a handle of two words, and the word that says that they are there.
const GRANT: usize = 32;
/// Requests that may be out to one rank: a set of them is a word.
pub(crate) const MOST_TICKETS: u32 = 64;

/// What layouts follow from. All ranks have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The ranks.
    pub ranks: u32,
    /// Requests that may be out to one of them.
    pub tickets: u32,
    /// Requests that may be out to all.
    pub slots: u32,
    /// The largest payload of a message.
    pub max_medium: usize,
    /// Replies that may be out.
    pub replies: u32,
    /// Messages that may be fetched at once.
    pub fetches: u32,
}

/// Where the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub shape: Shape,
    /// Bytes of a slot, and of what holds a reply or a message that is fetched.
    pub slot_len: usize,
    grants: usize,
    answers: usize,
    slots: usize,
    replies: usize,
    fetched: usize,
    barrier: usize,
    pub len: usize,
}

/// Bytes of a message: the payload, then the head in whole words.
pub(crate) fn message_len(head: usize, payload: usize) -> usize {
    payload.next_multiple_of(8) + head.next_multiple_of(8)
}

impl Layout {
    /// `None` where it would be larger than any memory.
    pub fn new(shape: Shape) -> Option<Self> {
        let line = |n: usize| n.checked_next_multiple_of(LINE);
        // A reply begins with what it ends.
        let slot_len = line(8 + message_len(MAX_HEAD, shape.max_medium))?;
        let (ranks, slots) = (shape.ranks as usize, shape.slots as usize);
        let grants = line(ranks.checked_mul(8 * shape.tickets as usize)?)?;
        let answers = line(grants.checked_add(ranks.checked_mul(GRANT)?)?)?;
        let slots_at = line(answers.checked_add(slots.checked_mul(8)?)?)?;
        let replies = slots_at.checked_add(slots.checked_mul(slot_len)?)?;
        let fetched = replies.checked_add(slot_len.checked_mul(shape.replies as usize)?)?;
        let barrier = fetched.checked_add(slot_len.checked_mul(shape.fetches as usize)?)?;
        let len = barrier.checked_add(2 * 8 * MOST_STEPS as usize)?;
        Some(Self { shape, slot_len, grants, answers, slots: slots_at, replies, fetched, barrier, len })
    }

    /// What each rank takes, whether it talks or not.
    pub fn each(&self) -> usize {
        8 * self.shape.tickets as usize + GRANT
    }

    /// The letter of a rank's request with this ticket.
    pub fn letter(&self, rank: u32, ticket: u32) -> usize {
        8 * (rank as usize * self.shape.tickets as usize + ticket as usize)
    }

    /// What a rank has given.
    pub fn grant(&self, rank: u32) -> usize {
        self.grants + GRANT * rank as usize
    }

    /// The notification of the reply in a slot.
    pub fn answer(&self, slot: u16) -> usize {
        self.answers + 8 * usize::from(slot)
    }

    pub fn slot(&self, slot: u16) -> usize {
        self.slots + self.slot_len * usize::from(slot)
    }

    pub fn reply(&self, number: u32) -> usize {
        self.replies + self.slot_len * number as usize
    }

    pub fn fetched(&self, number: u32) -> usize {
        self.fetched + self.slot_len * number as usize
    }

    /// A word of the barrier.
    pub fn barrier(&self, place: u32) -> usize {
        self.barrier + 8 * place as usize
    }
}

/// Memory of this rank that others write to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    bytes: VolatileSlice<'static>,
}

impl Region {
    /// `bytes` begins at a multiple of 8.
    pub fn new(bytes: VolatileSlice<'static>) -> Self {
        debug_assert!(bytes.as_ptr().addr().is_multiple_of(8));
        Self { bytes }
    }

    /// The address of a byte of it.
    pub fn address(&self, offset: usize) -> u64 {
        self.bytes.as_ptr().addr() as u64 + offset as u64
    }

    /// A part of it; empty if it has no such part.
    pub fn part(&self, offset: usize, len: usize) -> VolatileSlice<'static> {
        self.bytes.slice(offset, len).unwrap_or(VolatileSlice::EMPTY)
    }

    /// A word of it.
    fn word(&self, offset: usize) -> Option<&AtomicU64> {
        view::slice(self.bytes, offset, 1)?.first()
    }

    /// What a word says, and with it what was written before.
    pub fn look(&self, offset: usize) -> u64 {
        self.word(offset).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Writes bytes as words, the last one filled with zeros: what is made of a few words anyway, such as a head.
    pub fn set_words(&self, offset: usize, bytes: &[u8]) {
        for (at, part) in (offset..).step_by(8).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.set(at, u64::from_le_bytes(word));
        }
    }

    /// Reads as many bytes in words.
    pub fn look_at_words(&self, offset: usize, bytes: &mut [u8]) {
        for (at, part) in (offset..).step_by(8).zip(bytes.chunks_mut(8)) {
            let len = part.len();
            part.copy_from_slice(&self.look(at).to_le_bytes()[..len]);
        }
    }

    /// Writes a word.
    pub fn set(&self, offset: usize, value: u64) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Release);
        }
    }
}

/// Where memory of a rank is, as that rank says. Whether it is so the NIC alone can tell, which refuses what is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Home {
    pub address: u64,
    pub handle: Handle,
}

impl Home {
    /// The address of a byte of it.
    pub fn at(&self, offset: usize) -> u64 {
        self.address.wrapping_add(offset as u64)
    }
}

/// What a grant says, once it is there: where the mailbox is.
pub(crate) fn read_grant(region: &Region, offset: usize) -> Option<Home> {
    let at = |word: usize| region.look(offset + 8 * word);
    (at(3) != 0).then(|| Home { address: at(0), handle: Handle { words: [at(1), at(2)] } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RESULT;

    fn shape(ranks: u32) -> Shape {
        Shape { ranks, tickets: 12, slots: 64, max_medium: 4032, replies: 32, fetches: 16 }
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        let layout = Layout::new(shape(5)).expect("it is small");
        assert_eq!(layout.letter(0, 0), 0);
        assert!(layout.letter(4, 11) + 8 <= layout.grant(0));
        assert!(layout.grant(4) + GRANT <= layout.answer(0));
        assert!(layout.answer(63) + 8 <= layout.slot(0));
        assert_eq!(layout.slot(63) + layout.slot_len, layout.reply(0));
        assert_eq!(layout.reply(31) + layout.slot_len, layout.fetched(0));
        assert_eq!(layout.fetched(15) + layout.slot_len, layout.barrier(0));
        assert_eq!(layout.barrier(2 * MOST_STEPS), layout.len);
        assert!(RESULT <= layout.len - layout.barrier(0));
        assert!(layout.slot_len >= 8 + 4032 + MAX_HEAD);
        for at in [layout.slot(1), layout.reply(1), layout.fetched(1), layout.barrier(0)] {
            assert_eq!(at % LINE, 0);
        }
    }

    /// What the issue of memory is about: a rank that has not talked costs little.
    #[test]
    fn a_silent_rank_takes_little() {
        let len = |ranks| Layout::new(shape(ranks)).expect("it fits").len;
        let each = Layout::new(shape(16)).expect("it fits").each();
        assert_eq!(((len(100_016) - len(16)) / 100_000, each), (12 * 8 + GRANT, 128));
        assert_eq!(Layout::new(Shape { slots: u32::MAX, max_medium: 1 << 40, ..shape(1) }), None);
    }
}
