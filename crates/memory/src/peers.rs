//! Where each peer's segment is: the small table that every put and get looks at first.
//!
//! # Invariants
//! P1. A peer with [`PeerFlags::MAPPED`] has `len` bytes mapped at `mapped`, readable and writable, for as long as the
//!     table or a copy of it lives: the table keeps whatever owns the mappings.

use bitflags::bitflags;
use gasworks_sync::RawBytes;
use std::any::Any;
use std::sync::Arc;

bitflags! {
    /// What is known of a peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PeerFlags: u32 {
        /// This rank itself.
        const SELF = 1;
        /// Its segment is mapped here: load and store reach it.
        const MAPPED = 2;
        /// Its segment is device memory.
        const DEVICE = 4;
    }
}

/// One peer's segment, seen from here.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where its segment is mapped in this process; [`RawBytes::EMPTY`] if it is not.
    pub mapped: RawBytes,
    /// The length of its segment in bytes, mapped or not.
    pub len: u64,
    /// The address of its segment in its own process, which a NIC may want.
    pub remote_base: u64,
    /// The NIC's key for its segment: opaque, of any length; empty if there is no NIC.
    pub key: Vec<u8>,
    /// What is known of it.
    pub flags: PeerFlags,
}

/// The peers of a job, by rank.
#[derive(Clone)]
pub struct PeerTable {
    peers: Box<[Peer]>,
    /// Never looked at: it is here for P1.
    _owner: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&*self.peers).finish()
    }
}

impl PeerTable {
    /// Takes the peers in rank order, and what owns their mappings.
    pub fn new(peers: Vec<Peer>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { peers: peers.into(), _owner: owner }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.peers.len() as u32
    }

    /// The peer of that rank, if there is one.
    #[inline]
    pub fn get(&self, rank: u32) -> Option<&Peer> {
        self.peers.get(rank as usize)
    }

    /// The bytes `offset..offset + len` of `rank`'s segment where they are mapped; `None` where the peer is
    /// unmapped.
    ///
    /// # Errors
    /// The rank does not exist, or the range is not inside its segment.
    #[inline]
    pub fn locate(&self, rank: u32, offset: u64, len: usize) -> Result<Option<RawBytes>, crate::MemoryError> {
        let Some(peer) = self.peers.get(rank as usize) else {
            return Err(crate::MemoryError::NoSuchRank { rank, ranks: self.peers.len() as u32 });
        };
        if offset.checked_add(len as u64).is_none_or(|end| end > peer.len) {
            return Err(crate::MemoryError::OutsideSegment {
                rank,
                offset,
                len: len as u64,
                segment: peer.len,
            });
        }
        if peer.flags.contains(PeerFlags::MAPPED) {
            Ok(peer.mapped.slice(offset as usize, len))
        } else {
            Ok(None)
        }
    }
}
