//! Blocks of memory that one process fills and another frees: a flag for each, nothing else.
//!
//! Whoever may fill a block claims it by its flag; whoever has read it frees it by one store. The lowest free block
//! is taken first, so that the same few stay in the caches. Contents lie elsewhere; a block is a number here.
//!
//! # Protocol
//! - blocks.1: a block whose flag is set is its claimer's until it is sent, and its receiver's from then until it is freed.

use core::marker::PhantomData;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Mode, VolatileSlice, kill_point, ord};

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

    /// Frees a block that was claimed here.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn free(&self, index: u32) {
        free(&self.flags[index as usize]);
    }

    /// A block that arrived with a message, whose payload is these bytes; `None` if there is no such block.
    #[inline]
    pub fn lend(self, index: u32, bytes: VolatileSlice<'a>) -> Option<Lent<'a>> {
        Some(Lent { bytes, flag: self.flags.get(index as usize)? })
    }

    /// How many are claimed now.
    pub fn claimed(&self) -> usize {
        self.flags.iter().filter(|flag| flag.load(Relaxed) != FREE).count()
    }
}

/// A payload in the block that it arrived in, which is freed when this is dropped.
#[derive(Debug)]
pub struct Lent<'a> {
    bytes: VolatileSlice<'a>,
    flag: &'a AtomicU32,
}

impl Lent<'_> {
    /// The payload. It is another one's once the block is freed.
    #[inline]
    pub fn bytes(&self) -> VolatileSlice<'_> {
        self.bytes
    }
}

impl Drop for Lent<'_> {
    #[inline]
    fn drop(&mut self) {
        free(self.flag);
    }
}

#[inline]
fn free(flag: &AtomicU32) {
    kill_point!("blocks.free.before");
    // Release: our reading of the block is over.
    flag.store(FREE, ord!("blocks.free", Release));
    kill_point!("blocks.free.freed");
}

/// How many flags share a cache line.
const LINE: u32 = 16;

/// Blocks that a process has claimed and not used yet. They were taken a line of flags at a time, so that most claims touch
/// nothing that is shared: a flag's line otherwise goes back and forth with every message, from who claims to who frees. In `Par`
/// any thread of the process may claim, in `Seq` one does.
#[derive(Debug)]
pub struct Stock<M: Mode> {
    /// The number of a line's first flag in the high half, a bit for each of its blocks in the low half.
    word: AtomicU64,
    mode: PhantomData<M::Lock<()>>,
}

/// The bit of a stock's word, in the high half, that says that a thread takes blocks to put there.
const FILLING: u64 = 1 << 63;

impl<M: Mode> Default for Stock<M> {
    fn default() -> Self {
        Self { word: AtomicU64::new(0), mode: PhantomData }
    }
}

impl<M: Mode> Stock<M> {
    /// How many are at hand.
    pub fn at_hand(&self) -> usize {
        (self.word.load(Relaxed) as u32).count_ones() as usize
    }

    /// Claims a block among `first..end`: one at hand, or else up to `most` of one line at once; `alone` says that nobody else claims
    /// these. `None` if none is free, or while another thread takes some.
    #[inline]
    pub fn claim<'a>(
        &self,
        alone: bool,
        blocks: impl FnOnce() -> Blocks<'a>,
        (first, end): (u32, u32),
        most: u32,
    ) -> Option<u32> {
        let word = if M::PARALLEL {
            let next = |word: u64| (word as u32 != 0).then(|| word & (word - 1));
            // Acquire: a block that the filling thread saw free is free for the thread that claims it here.
            match self.word.fetch_update(ord!("stock.claim", Acquire), Relaxed, next) {
                Ok(word) => word,
                // One thread at a time takes some, so that no more are kept from others than one stock holds.
                Err(word) if word & FILLING != 0 => return None,
                Err(word) => {
                    self.word.compare_exchange(word, word | FILLING, Relaxed, Relaxed).ok()?;
                    let word = take_line(alone, blocks(), first, end, most);
                    // Release: as above. Nobody else changes a word that is being filled.
                    let left = word.map_or(0, |word| word & (word - 1));
                    self.word.store(left, ord!("stock.fill", Release));
                    word?
                }
            }
        } else {
            let at_hand = self.word.load(Relaxed);
            let is_empty = at_hand as u32 == 0;
            let word = if is_empty { take_line(alone, blocks(), first, end, most)? } else { at_hand };
            self.word.store(word & (word - 1), Relaxed);
            word
        };
        Some((word >> 32) as u32 + word.trailing_zeros())
    }
}

/// Claims up to `most` blocks of the first line that has half of a line free, or else of the line that has most; as a
/// stock's word.
#[inline(never)]
fn take_line(alone: bool, blocks: Blocks<'_>, first: u32, end: u32, most: u32) -> Option<u64> {
    let free = |line: u32| {
        let (from, to) = (first.max(line), end.min(line + LINE));
        (from..to).filter(|&index| blocks.flags[index as usize].load(Relaxed) == FREE).count() as u32
    };
    let lines = (first / LINE * LINE..end).step_by(LINE as usize);
    let (mut best, mut found) = (0, 0);
    for line in lines {
        let here = free(line);
        if here > found {
            (best, found) = (line, here);
        }
        if found >= LINE / 2 {
            break;
        }
    }
    let (from, to) = (first.max(best), end.min(best + LINE));
    let claim = |index: &u32| match alone {
        true => blocks.claim_alone(*index, index + 1).is_some(),
        false => blocks.claim(*index, index + 1).is_some(),
    };
    let claimed = (from..to).filter(claim).take(most as usize);
    let bits = claimed.fold(0u64, |bits, index| bits | 1 << (index - best));
    (bits != 0).then_some(u64::from(best) << 32 | bits)
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use gasworks_sync::{Par, Seq};
    use std::collections::BTreeSet;

    #[test]
    fn a_stock_gives_every_block_once_and_takes_a_line_at_a_time() {
        gives_every_block_once::<Seq>();
        gives_every_block_once::<Par>();
    }

    fn gives_every_block_once<M: Mode>() {
        let flags: Vec<_> = (0..50).map(|_| AtomicU32::new(FREE)).collect();
        let (blocks, stock) = (Blocks::new(&flags), Stock::<M>::default());
        for most in [3, 16, 1].into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
            // Blocks 5 to 40 alone, some of which somebody else has.
            let taken = [7, 8, 20, 39].map(|index| blocks.claim(index, index + 1).expect("free"));
            let mut given = BTreeSet::new();
            while let Some(index) = stock.claim(false, || blocks, (5, 41), most) {
                assert!((5..41).contains(&index) && !taken.contains(&index), "{index}");
                assert!(given.insert(index), "{index} twice");
                assert!(blocks.claimed() < 4 + given.len() + most as usize, "more than {most} beforehand");
            }
            assert_eq!(given.len(), 36 - 4);
            given.into_iter().chain(taken).for_each(|index| blocks.free(index));
            assert_eq!(blocks.claimed(), 0);
        }
    }

    #[test]
    fn blocks_are_as_many_as_their_flags() {
        let flags: Vec<_> = (0..2).map(|_| AtomicU32::new(FREE)).collect();
        for len in 0..=2 {
            let blocks = Blocks::new(&flags[..len]);
            assert_eq!((blocks.len(), blocks.is_empty()), (len, len == 0));
        }
    }

    #[test]
    fn a_stock_takes_from_the_first_line_that_has_half_or_from_the_fullest() {
        /// What a stock has after its first claim, of two lines and a half with so many flags free in each, from the front.
        fn first_claim(free: [usize; 3], most: u32) -> Option<(u32, usize)> {
            let line = |free: usize| (0..LINE as usize).map(move |at| AtomicU32::new(u32::from(at >= free)));
            let flags: Vec<_> = free.into_iter().flat_map(line).take(40).collect();
            let (blocks, stock) = (Blocks::new(&flags), Stock::<Seq>::default());
            let index = stock.claim(true, || blocks, (0, 40), most)?;
            let before: usize = free.iter().map(|&free| LINE as usize - free).sum();
            assert_eq!(blocks.claimed() + LINE as usize / 2, before + 1 + stock.at_hand(), "{free:?}");
            Some((index, stock.at_hand()))
        }
        // Half a line is enough, whatever comes behind.
        assert_eq!(first_claim([8, 16, 8], 16), Some((0, 7)));
        assert_eq!(first_claim([0, 9, 8], 16), Some((16, 8)));
        // Less is not, where another line has more; of lines with as many it is the first.
        assert_eq!(first_claim([7, 8, 0], 16), Some((16, 7)));
        assert_eq!(first_claim([3, 3, 3], 16), Some((0, 2)));
        assert_eq!(first_claim([3, 5, 4], 16), Some((16, 4)));
        assert_eq!(first_claim([0, 0, 1], 16), Some((32, 0)));
        assert_eq!(first_claim([0, 0, 0], 16), None);
        // No more than was asked for.
        assert_eq!(first_claim([16, 16, 8], 5), Some((0, 4)));
        assert_eq!(first_claim([16, 16, 8], 1), Some((0, 0)));
    }

    #[test]
    fn a_stock_stays_with_few_lines() {
        let flags: Vec<_> = (0..128).map(|_| AtomicU32::new(FREE)).collect();
        let (blocks, stock) = (Blocks::new(&flags), Stock::<Seq>::default());
        for _ in 0..if cfg!(miri) { 3 * LINE } else { 1000 } {
            let index = stock.claim(false, || blocks, (0, 128), LINE).expect("free");
            assert!(index < 2 * LINE, "{index}: a message at a time needs no more than two lines");
            blocks.free(index);
        }
    }
}
