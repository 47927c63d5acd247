//! What names an operation: one word, which a C program holds as its event.

use bitflags::bitflags;
use std::num::NonZeroU64;

bitflags! {
    /// Parts of an operation, or of a set of operations, that are tested and waited for apart: the specification's event
    /// categories.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Categories: u8 {
        /// Gets, and atomic operations that only read.
        const GET = 1;
        /// The local completion of puts and of active messages: their sources may be used again.
        const LOCAL = 4;
        /// Puts, which includes their local completion, and atomic operations that only write.
        const PUT = 2 | 4;
        /// Atomic operations that read and write.
        const UPDATE = 8;
    }
}

impl Categories {
    /// What is counted when a put is under way whose local completion is not asked for apart.
    pub const PUT_ALONE: Self = Self::from_bits_truncate(2);

    /// The numbers of its bits.
    pub(super) fn iter_bits(self) -> impl Iterator<Item = usize> {
        (0..4).filter(move |bit| self.bits() >> bit & 1 != 0)
    }

    /// How many bits it has.
    pub(super) fn count(self) -> u64 {
        u64::from(self.bits().count_ones())
    }
}

/// An operation or a set of them, or one of its leaves: an index, which of the operations that have had this index, and
/// for a leaf the categories that it stands for. Never 0 or 1 as a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpId(NonZeroU64);

const LEAF_SHIFT: u32 = 32;
/// Where an operation's generation stands, in its number as in its state.
pub(super) const GENERATION_SHIFT: u32 = 36;
/// Generations go from 1 to this, and round. The highest bit of a number is always zero.
const GENERATIONS: u32 = u32::MAX >> (GENERATION_SHIFT - 32 + 1);

impl OpId {
    pub(super) fn new(index: u32, generation: u32) -> Self {
        let bits = u64::from(generation) << GENERATION_SHIFT | u64::from(index);
        Self(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MAX))
    }

    pub(super) fn next_generation(generation: u32) -> u32 {
        generation % GENERATIONS + 1
    }

    pub(super) fn index(self) -> u32 {
        self.0.get() as u32
    }

    pub(super) fn generation(self) -> u32 {
        (self.0.get() >> GENERATION_SHIFT) as u32
    }

    /// The categories that a leaf stands for; none for a root.
    pub fn leaf_of(self) -> Categories {
        Categories::from_bits_truncate((self.0.get() >> LEAF_SHIFT) as u8)
    }

    /// The operation itself, of which this is the root or a leaf.
    #[must_use]
    pub fn root(self) -> Self {
        let bits = self.0.get() & !(u64::from(Categories::all().bits()) << LEAF_SHIFT);
        Self(NonZeroU64::new(bits).unwrap_or(self.0))
    }

    /// Its leaf for these categories: the same each time.
    #[must_use]
    pub fn leaf(self, categories: Categories) -> Self {
        Self(self.root().0 | u64::from(categories.bits()) << LEAF_SHIFT)
    }

    /// As a number, for a program in C.
    pub fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// From what [`to_bits`](Self::to_bits) gave; `None` for a number that it never gives.
    pub fn from_bits(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).map(Self).filter(|id| (1..=GENERATIONS).contains(&id.generation()))
    }
}

impl std::fmt::Debug for OpId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "operation {}.{}", self.index(), self.generation())?;
        if self.leaf_of().is_empty() { Ok(()) } else { write!(f, " {:?}", self.leaf_of()) }
    }
}
