//! What can be wrong with a piece of memory that is named.

use crate::{RegionHandle, Rights};
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
    /// No such region has been created.
    #[error("{region} does not exist")]
    NoSuchRegion {
        /// The region that was named.
        region: RegionHandle,
    },
    /// The region is being created, and not all ranks have it yet.
    #[error("{region} is not published yet: its creation is not over on all ranks")]
    NotPublished {
        /// The region that was named.
        region: RegionHandle,
    },
    /// The region was withdrawn, or its column has another region now.
    #[error("{region} was withdrawn")]
    Withdrawn {
        /// The region that was named.
        region: RegionHandle,
    },
    /// The owner has no memory in the region.
    #[error("{region} has no bytes")]
    EmptyRegion {
        /// The region that was named.
        region: RegionHandle,
    },
    /// The range is not inside the region.
    #[error("bytes {offset} to {offset}+{len} are outside {region}, which has {size} bytes")]
    OutsideRegion {
        /// The region that was named.
        region: RegionHandle,
        /// The first byte that was named, from the start of the region.
        offset: u64,
        /// The number of bytes.
        len: u64,
        /// The region's length.
        size: u64,
    },
    /// The range has no end that a 64-bit offset can name.
    #[error("bytes {offset} to {offset}+{len} of {region} wrap around")]
    Wraps {
        /// The region that was named.
        region: RegionHandle,
        /// The first byte that was named, from the start of the region.
        offset: u64,
        /// The number of bytes.
        len: u64,
    },
    /// The owner does not allow it.
    #[error("{region} does not allow it: it has the rights {has:?}, and {lacks:?} is needed")]
    Denied {
        /// The region that was named.
        region: RegionHandle,
        /// What its owner allows.
        has: Rights,
        /// What else is needed.
        lacks: Rights,
    },
    /// A region of a rank cannot be so large.
    #[error("a region of {len} bytes is too large: a rank may have {} at most", crate::RegionId::MAX_LEN)]
    RegionTooLarge {
        /// The length that was asked for.
        len: u64,
    },
    /// All columns are in use.
    #[error("no more regions can be created: all {columns} columns are in use, or have been too often")]
    NoColumn {
        /// How many columns there are.
        columns: u32,
    },
    /// The transport creates no regions.
    #[error("regions cannot be created while the job runs: its transport does not support it")]
    NoRegions,
    /// The memory for a region could not be had.
    #[error("a region cannot be created: {cause}")]
    CannotCreate {
        /// What is in the way, and what to do.
        cause: String,
    },
    /// Memory that a rank gives cannot be its part of a region.
    #[error("{len} bytes at {start:#x} cannot be a region: {cause}")]
    CannotGive {
        /// The address.
        start: u64,
        /// The number of bytes.
        len: u64,
        /// What is in the way.
        cause: String,
    },
    /// The memory of a region could not be given back.
    #[error("the memory of a region cannot be freed: {cause}")]
    CannotFree {
        /// What is in the way.
        cause: String,
    },
}
