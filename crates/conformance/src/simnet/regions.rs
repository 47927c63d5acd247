//! Regions that are created while a job runs: further blocks of the net.
//!
//! # Invariants
//! - regions.1: the blocks of all regions stay in the net, which every part of a job over it holds: so they are there as long as any rank's
//!   engine can name them, withdrawn or not.

use super::SimRank;
use super::block::Block;
use gasworks_memory::{Asked, MemoryError, Peer, PeerFlags, RegionId, RegionMemory};
use gasworks_sync::RawSlice;

// SAFETY: table.1 of gasworks_memory: what `create` returns are blocks of the net, which this rank holds (regions.1).
unsafe impl RegionMemory for SimRank {
    fn create(&self, id: RegionId, asked: &[Asked]) -> Result<Vec<Peer>, MemoryError> {
        let mut regions = self.net.regions.lock();
        // Whoever comes first makes those of all.
        let blocks = regions.entry(id).or_insert_with(|| {
            let unit = self.net.config.nic.get_alignment.max(1);
            asked.iter().map(|asked| Block::new((asked.len as usize).next_multiple_of(unit))).collect()
        });
        let peer = |((rank, block), asked): ((u32, &Block), &Asked)| {
            let mut flags = PeerFlags::empty();
            flags.set(PeerFlags::SELF, rank == self.rank());
            flags.set(PeerFlags::MAPPED, rank == self.rank() || self.net.config.mapped);
            let is_mapped = flags.contains(PeerFlags::MAPPED);
            let mapped = if is_mapped { block.bytes().raw() } else { RawSlice::EMPTY };
            Peer { mapped, len: asked.len, remote_base: 0, key: Vec::new(), flags }
        };
        Ok((0..).zip(&*blocks).zip(asked).map(peer).collect())
    }

    fn unmap(&self, _: RegionId) -> Result<(), MemoryError> {
        Ok(())
    }

    fn free(&self, _: RegionId) -> Result<(), MemoryError> {
        Ok(())
    }
}
