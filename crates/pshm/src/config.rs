//! What the transport is opened with.

use crate::memory::Memory;
use gasworks_os::limits::Limit;

/// What the transport is to provide for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// This rank's segment, and where its memory comes from.
    pub memory: Memory,
    /// How many requests may be out to one peer; the queue of requests is sized by it.
    pub depth: u32,
    /// How many requests may be out to all peers; the room for replies is sized by it, and `core` must keep to it.
    pub total: u32,
    /// How many bytes of payload may be out to one peer; the number of large blocks follows from it.
    pub volume: u64,
}

/// What is to be known of the network where there is one besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// How many ranks of a host share memory at most: those that follow each other; 0: all.
    pub most: u32,
    /// How large a segment the network bears.
    pub limit: Limit,
    /// Whether the largest segment that can be mapped is searched for.
    pub search: bool,
    /// Whether memory that was given back may not be there at once: then it is asked for again, and not before all ranks of the host have
    /// given theirs back. The work-around of GASNet's bug 3480.
    pub again: bool,
}
