//! Blocks of memory that one process fills and another frees: a flag for each, nothing else.
//!
//! Whoever may fill a block claims it by its flag; whoever has read it frees it by one store. The lowest free block
//! is taken first, so that the same few stay in the caches. Contents lie elsewhere; a block is a number here.
//!
//! # Protocol
//! B1. A block whose flag is set is its claimer's until it is sent, and its receiver's from then until it is freed.

use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{kill_point, ord};

const FREE: u32 = 0;
const CLAIMED: u32 = 1;

/// A view of the flags of a run of blocks. Zeroed flags are free blocks.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    flags: &'a [AtomicU32],
}

impl<'a> Blocks<'a> {
    /// A view of as many blocks as there are flags.
    pub fn new(flags: &'a [AtomicU32]) -> Self {
        Self { flags }
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// Claims the lowest free block among `first..end`, if there is one.
    #[inline]
    pub fn claim(&self, first: u32, end: u32) -> Option<u32> {
        let flags = self.flags.get(first as usize..end as usize)?;
        // Acquire: the reading of whoever freed it is over before we write into it.
        let claim = |flag: &AtomicU32| {
            flag.load(Relaxed) == FREE
                && flag.compare_exchange(FREE, CLAIMED, ord!("blocks.claim", Acquire), Relaxed).is_ok()
        };
        let found = flags.iter().position(claim)?;
        kill_point!("blocks.claim.claimed");
        Some(first + found as u32)
    }

    /// As [`claim`](Self::claim), without a bus lock, where one thread is the only one that claims these blocks.
    #[inline]
    pub fn claim_alone(&self, first: u32, end: u32) -> Option<u32> {
        let flags = self.flags.get(first as usize..end as usize)?;
        // Acquire: as above. Nobody but us sets a flag, so one that is free stays free until we set it.
        let free = |flag: &AtomicU32| flag.load(ord!("blocks.claim_alone", Acquire)) == FREE;
        let found = flags.iter().position(free)?;
        flags[found].store(CLAIMED, Relaxed);
        kill_point!("blocks.claim_alone.claimed");
        Some(first + found as u32)
    }

    /// Frees a block that was claimed here or arrived with a message.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn free(&self, index: u32) {
        kill_point!("blocks.free.before");
        // Release: our reading of the block is over.
        self.flags[index as usize].store(FREE, ord!("blocks.free", Release));
        kill_point!("blocks.free.freed");
    }

    /// How many are claimed now.
    pub fn claimed(&self) -> usize {
        self.flags.iter().filter(|flag| flag.load(Relaxed) != FREE).count()
    }
}
