//! Memory that several ranks touch: segments and payloads.
//!
//! # Invariants
//! - block.1: a block's words are allocated in `new` and freed in `drop`, and no reference to them is ever made: they leave this module
//!   as a [`VolatileSlice`] that borrows the block.

use gasworks_sync::{RawSlice, VolatileSlice};

/// Zeroed memory, aligned to 8 bytes.
#[derive(Debug)]
pub(super) struct Block {
    words: *mut [u64],
    len: usize,
}

// SAFETY: block.1: the allocation is the block's own, and what it gives away of it are volatile slices, which any thread may use.
unsafe impl Send for Block {}
// SAFETY: block.1: what a shared block gives away are volatile slices, which threads may share.
unsafe impl Sync for Block {}

impl Block {
    pub fn new(len: usize) -> Self {
        Self { words: Box::into_raw(vec![0u64; len.div_ceil(8)].into_boxed_slice()), len }
    }

    /// Leaves out the end; what is allocated stays.
    pub fn shorten(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub fn bytes(&self) -> VolatileSlice<'_> {
        if self.len == 0 {
            return VolatileSlice::EMPTY;
        }
        // SAFETY: block.1: the words are there as long as the block is borrowed, and there is no other reference.
        unsafe { RawSlice::new(self.words.cast::<u8>(), self.len).borrow() }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: block.1: made by `Box::into_raw` in `new`, freed only here.
        drop(unsafe { Box::from_raw(self.words) });
    }
}
