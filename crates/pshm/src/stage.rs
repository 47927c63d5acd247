//! Private buffers: where a short payload waits for its head, and where one that arrived in a slot is lent from.

use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::inbox::{MAX_INLINE, Message};
use gasworks_sync::atomic::{AtomicU32, AtomicU64};
use gasworks_sync::{Mode, VolatileSlice};

/// Messages that can be reserved at the same time with a payload that fits into a slot; more use blocks.
const STAGED: usize = 64;
/// The room of one of them in words: whole cache lines, so that threads do not disturb each other.
const WORDS: usize = MAX_INLINE.div_ceil(64) * 8;

/// Buffers for short payloads.
#[derive(Debug)]
pub(crate) struct Stage {
    flags: Box<[AtomicU32]>,
    words: Box<[AtomicU64]>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            flags: (0..STAGED).map(|_| AtomicU32::new(0)).collect(),
            words: (0..STAGED * WORDS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Claims a buffer for `len` bytes, at most [`MAX_INLINE`]; `None` if all are in use.
    #[inline]
    pub(crate) fn claim<M: Mode>(&self, len: usize) -> Option<(u32, VolatileSlice<'_>)> {
        let index = claim::<M>(Blocks::new(&self.flags), 0, STAGED as u32)?;
        Some((index, VolatileSlice::from_words(self.words(index)).slice(0, len)?))
    }

    /// Frees a buffer.
    #[inline]
    pub(crate) fn free(&self, index: u32) {
        Blocks::new(&self.flags).free(index);
    }

    /// The words of a buffer.
    #[inline]
    pub(crate) fn words(&self, index: u32) -> &[AtomicU64] {
        &self.words[index as usize * WORDS..][..WORDS]
    }
}

/// Claims one of the blocks that only this process claims.
#[inline]
pub(crate) fn claim<M: Mode>(blocks: Blocks<'_>, first: u32, end: u32) -> Option<u32> {
    if M::PARALLEL { blocks.claim(first, end) } else { blocks.claim_alone(first, end) }
}

/// The payload that arrived in a slot.
#[inline]
pub(crate) fn lend(message: &Message) -> VolatileSlice<'_> {
    let (words, len) = message.inline();
    VolatileSlice::from_words(words).slice(0, len).unwrap_or(VolatileSlice::EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_shmem::inbox::{Control, Cursor, Inbox, Payload, Slot};
    use gasworks_sync::{Par, Seq, racy};

    #[test]
    fn a_payload_goes_through_a_stage_a_slot_and_a_message() {
        let stage = Stage::new();
        let (control, slots) = (Control::new(), [Slot::new(), Slot::new()]);
        let inbox = Inbox::new(&control, &slots).expect("a power of two");
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        for len in [1, 7, 8, 9, MAX_INLINE] {
            let (index, bytes) = stage.claim::<Seq>(len).expect("a free buffer");
            bytes.write(&vec![len as u8; len]);
            inbox.reserve(1).expect("room");
            let _ = inbox.send(0, b"head", Payload::Inline { words: stage.words(index), len });
            stage.free(index);
            assert_eq!(inbox.take(&mut cursor, &mut message), Ok(true));
            let lent = lend(&message);
            let mut found = vec![0; lent.len()];
            lent.read(&mut found);
            assert_eq!((found, message.head()), (vec![len as u8; len], &b"head"[..]));
        }
        let all: Vec<_> = std::iter::from_fn(|| stage.claim::<Par>(8)).map(|(index, _)| index).collect();
        assert_eq!(all.len(), STAGED);
        let mut back = [0; 8];
        racy::load_words(stage.words(0), &mut back);
        assert_eq!(back, [MAX_INLINE as u8; 8], "a buffer keeps what it held until it is filled again");
    }
}
