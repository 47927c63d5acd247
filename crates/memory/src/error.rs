//! What can be wrong with a piece of memory that is named.

use thiserror::Error;

/// What is wrong with a rank, a range or a length.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no such rank.
    #[error("rank {rank} is out of range: the job has {ranks} ranks")]
    NoSuchRank {
        /// The rank that was named.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// The range is not inside the segment.
    #[error(
        "bytes {offset} to {offset}+{len} are outside the segment of rank {rank}, which has {segment} bytes"
    )]
    OutsideSegment {
        /// Whose segment.
        rank: u32,
        /// The first byte that was named, from the start of the segment.
        offset: u64,
        /// The number of bytes.
        len: u64,
        /// The segment's length.
        segment: u64,
    },
    /// The segment has the length that it has.
    #[error(
        "the segment of rank {rank} cannot grow to {len} bytes: its transport maps segments of a fixed length"
    )]
    FixedSegment {
        /// Whose segment.
        rank: u32,
        /// The length that was asked for.
        len: u64,
    },
    /// The segment cannot grow so far.
    #[error("the segment of rank {rank} cannot grow from {from} to {to} bytes: {cause}")]
    CannotGrow {
        /// Whose segment.
        rank: u32,
        /// Its length.
        from: u64,
        /// The length that was asked for.
        to: u64,
        /// What is in the way, and what to do.
        cause: String,
    },
}
