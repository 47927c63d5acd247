//! Names of regions, and places in regions as one 64-bit number.

use bitflags::bitflags;

bitflags! {
    /// What peers may do with a region.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rights: u32 {
        /// Get from it.
        const READ = 1;
        /// Put to it, and send Longs to it.
        const WRITE = 2;
        /// Change its words by atomic operations.
        const ATOMIC = 4;
    }
}

/// The regions of one column, of all ranks: what a collective call creates. The same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId {
    /// The number of the column.
    pub index: u8,
    /// How many regions the column had before. No two regions of a job have the same index and generation.
    pub generation: u16,
}

impl RegionId {
    /// The first column that a collective call may give out.
    pub const FIRST: u8 = 64;
    /// The last one. An offset below a segment's start, as a 64-bit number, would be in the column behind it.
    pub const LAST: u8 = 254;
    /// The largest region of a rank, in bytes.
    pub const MAX_LEN: u64 = 1 << Self::OFFSET_BITS;
    const OFFSET_BITS: u32 = 40;

    /// A place in a region of this column, as the offset that puts, gets, Longs and atomic operations take. It is never a place in a segment.
    /// `None` if the offset is beyond every region's end.
    #[inline]
    pub const fn place(self, offset: u64) -> Option<u64> {
        if offset > Self::MAX_LEN - 1 {
            return None;
        }
        Some((self.index as u64) << 56 | (self.generation as u64) << Self::OFFSET_BITS | offset)
    }

    /// The column of a place, and the offset in the region; `None` for an offset in a segment.
    #[inline]
    pub const fn of(place: u64) -> Option<(Self, u64)> {
        let index = (place >> 56) as u8;
        if index < Self::FIRST || index > Self::LAST {
            return None;
        }
        let generation = (place >> Self::OFFSET_BITS) as u16;
        Some((Self { index, generation }, place & (Self::MAX_LEN - 1)))
    }

    /// Whether two places are in one region, or both in a segment.
    #[inline]
    pub fn is_same(place: u64, other: u64) -> bool {
        // Most are close to each other, wherever they are.
        (place ^ other) >> Self::OFFSET_BITS == 0 || Self::is_same_far(place, other)
    }

    #[cold]
    fn is_same_far(place: u64, other: u64) -> bool {
        Self::of(place).map(|(id, _)| id) == Self::of(other).map(|(id, _)| id)
    }
}

impl std::fmt::Display for RegionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// One rank's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionHandle {
    /// Whose it is.
    pub owner: u32,
    /// Its column and generation.
    pub id: RegionId,
}

impl RegionHandle {
    /// As three words for the arguments of a message.
    pub const fn to_words(self) -> [u32; 3] {
        [self.owner, self.id.index as u32, self.id.generation as u32]
    }

    /// From the words of [`to_words`](Self::to_words); `None` if they name no region.
    pub fn from_words([owner, index, generation]: [u32; 3]) -> Option<Self> {
        let index =
            u8::try_from(index).ok().filter(|index| (RegionId::FIRST..=RegionId::LAST).contains(index))?;
        Some(Self { owner, id: RegionId { index, generation: u16::try_from(generation).ok()? } })
    }
}

impl std::fmt::Display for RegionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "region {} of rank {}", self.id, self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 256 }, failure_persistence: None,
            ..ProptestConfig::default() })]

        #[test]
        fn a_place_says_which_region_and_where(
            index in RegionId::FIRST..=RegionId::LAST, generation in any::<u16>(), offset in 0..RegionId::MAX_LEN, owner in any::<u32>()
        ) {
            let id = RegionId { index, generation };
            prop_assert_eq!(id.place(offset).and_then(RegionId::of), Some((id, offset)));
            let handle = RegionHandle { owner, id };
            prop_assert_eq!(RegionHandle::from_words(handle.to_words()), Some(handle));
        }
    }

    #[test]
    fn offsets_in_segments_are_in_no_region() {
        let most = 1u64 << 47;
        for offset in [0, 1, most, most << 8, (1 << 62) - 1, u64::MAX, u64::MAX - most] {
            assert_eq!(RegionId::of(offset), None, "{offset}");
        }
        let first = RegionId { index: RegionId::FIRST, generation: 0 };
        assert_eq!(first.place(0), Some(1 << 62));
        assert_eq!((first.place(RegionId::MAX_LEN), first.place(u64::MAX)), (None, None));
        for words in [[0, 63, 0], [0, 255, 0], [0, 64, 1 << 16], [0, 256 + 64, 0]] {
            assert_eq!(RegionHandle::from_words(words), None, "{words:?}");
        }
        let (next, other) = (RegionId { generation: 1, ..first }, RegionId { index: 65, ..first });
        let place = |id: RegionId, offset| id.place(offset).expect("it is no farther");
        assert!(
            RegionId::is_same(place(first, 0), place(first, RegionId::MAX_LEN - 1))
                && RegionId::is_same(0, most)
        );
        for (one, two) in
            [(place(first, 0), 0), (place(first, 0), place(next, 0)), (place(first, 0), place(other, 0))]
        {
            assert!(!RegionId::is_same(one, two), "{one:#x} {two:#x}");
        }
        assert_eq!(RegionHandle { owner: 3, id: next }.to_string(), "region 64.1 of rank 3");
    }
}
