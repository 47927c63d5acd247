//! Blocks for payloads that no slot holds, which all ranks that share memory have in common.

use super::{Words, bytes_of, words};
use gasworks_shmem::blocks::{Blocks, Lent};
use gasworks_shmem::inbox::Block;
use gasworks_sync::VolatileSlice;
use gasworks_sync::atomic::AtomicU32;

/// How many there are.
pub const BLOCKS: u32 = 256;

/// The largest payload that any test has.
pub const LEN: usize = 1024;

/// Blocks of [`LEN`] bytes.
pub struct FakeBlocks {
    bytes: Words,
    flags: Box<[AtomicU32]>,
}

impl FakeBlocks {
    pub fn new() -> Self {
        let flags = (0..BLOCKS).map(|_| AtomicU32::new(0)).collect();
        Self { bytes: words(BLOCKS as usize * LEN), flags }
    }

    fn bytes(&self, Block { index, len }: Block) -> Option<VolatileSlice<'_>> {
        let all = bytes_of(&self.bytes, BLOCKS as usize * LEN);
        all.slice(index as usize * LEN, LEN)?.slice(0, len as usize)
    }

    /// Claims one and fills it.
    pub fn fill(&self, payload: &[u8]) -> Block {
        let index = Blocks::new(&self.flags).claim(0, BLOCKS).expect("a free block");
        let block = Block { index, len: payload.len() as u32 };
        self.bytes(block).expect("it is large enough").write(payload);
        block
    }

    pub fn lend(&self, block: Block) -> Option<Lent<'_>> {
        Blocks::new(&self.flags).lend(block.index, self.bytes(block)?)
    }

    /// How many are in use.
    pub fn claimed(&self) -> usize {
        Blocks::new(&self.flags).claimed()
    }
}
