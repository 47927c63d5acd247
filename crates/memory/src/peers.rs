//! Where each peer's segment is: the small table that every put and get looks at first.
//!
//! # Invariants
//! P1. A peer with [`PeerFlags::MAPPED`] or [`PeerFlags::COUNTED`] has `len` bytes mapped at `mapped`, readable and writable, for as long as the
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
        /// Load and store reach it, but puts and gets are to be counted: set in the place of `MAPPED`, so that whatever
        /// looks for that takes the way of an unmapped peer.
        const COUNTED = 8;
    }
}

/// Counts puts and gets, where a job is observed.
pub trait Watch: Send + Sync {
    /// A put of `len` bytes to `rank`, or a get from it; `copy` moves them, if that is all there is to it.
    fn moves(&self, put: bool, rank: u32, len: usize, copy: &mut dyn FnMut());
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
    watch: Option<Arc<dyn Watch>>,
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
        Self { peers: peers.into(), watch: None, _owner: owner }
    }

    /// Has puts and gets counted from now on: no peer is [`MAPPED`](PeerFlags::MAPPED) any more, those that were are
    /// [`COUNTED`](PeerFlags::COUNTED).
    #[must_use]
    pub fn watched(mut self, watch: Arc<dyn Watch>) -> Self {
        for peer in self.peers.iter_mut().filter(|peer| peer.flags.contains(PeerFlags::MAPPED)) {
            peer.flags.toggle(PeerFlags::MAPPED | PeerFlags::COUNTED);
        }
        self.watch = Some(watch);
        self
    }

    /// Who counts puts and gets.
    pub fn watch(&self) -> Option<&dyn Watch> {
        self.watch.as_deref()
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

    /// The bytes `offset..offset + len` of `rank`'s segment where they are mapped and not counted; `None` where the peer
    /// is unmapped or counted.
    ///
    /// # Errors
    /// The rank does not exist, or the range is not inside its segment.
    #[inline]
    pub fn locate(&self, rank: u32, offset: u64, len: usize) -> Result<Option<RawBytes>, crate::MemoryError> {
        self.find(rank, offset, len, PeerFlags::MAPPED)
    }

    /// As [`locate`](Self::locate), counted or not: for whoever is no put and no get.
    ///
    /// # Errors
    /// Those of `locate`.
    #[inline]
    pub fn reach(&self, rank: u32, offset: u64, len: usize) -> Result<Option<RawBytes>, crate::MemoryError> {
        self.find(rank, offset, len, PeerFlags::MAPPED | PeerFlags::COUNTED)
    }

    #[inline]
    fn find(
        &self,
        rank: u32,
        offset: u64,
        len: usize,
        mapped: PeerFlags,
    ) -> Result<Option<RawBytes>, crate::MemoryError> {
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
        if peer.flags.intersects(mapped) { Ok(peer.mapped.slice(offset as usize, len)) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Count(AtomicU32);
    impl Watch for Count {
        fn moves(&self, _: bool, _: u32, _: usize, copy: &mut dyn FnMut()) {
            self.0.fetch_add(1, Ordering::Relaxed);
            copy();
        }
    }

    #[test]
    fn a_counted_peer_is_reached_but_not_located() {
        let mut bytes = vec![0u8; 64];
        // SAFETY: the bytes outlive the table, and nobody else uses them meanwhile.
        let mapped = unsafe { RawBytes::new(bytes.as_mut_ptr(), 64) };
        let peer = |flags| Peer { mapped, len: 64, remote_base: 0, key: Vec::new(), flags };
        let peers = vec![peer(PeerFlags::MAPPED | PeerFlags::SELF), peer(PeerFlags::empty())];
        let table = PeerTable::new(peers, Arc::new(()));
        let found = |table: &PeerTable| {
            [0, 1].map(|rank| {
                let of = |found: Result<Option<RawBytes>, _>| found.is_ok_and(|found| found.is_some());
                (of(table.locate(rank, 8, 8)), of(table.reach(rank, 8, 8)))
            })
        };
        assert!(table.watch().is_none());
        assert_eq!(found(&table), [(true, true), (false, false)]);
        let (count, mut copied) = (Arc::new(Count::default()), 0);
        let table = table.watched(count.clone());
        assert_eq!(found(&table), [(false, true), (false, false)]);
        assert!(table.reach(0, 60, 8).is_err() && table.locate(2, 0, 0).is_err());
        assert_eq!(table.get(0).map(|peer| peer.flags), Some(PeerFlags::COUNTED | PeerFlags::SELF));
        table.watch().into_iter().for_each(|watch| watch.moves(true, 0, 8, &mut || copied += 1));
        assert_eq!((count.0.load(Ordering::Relaxed), copied), (1, 1));
    }
}
