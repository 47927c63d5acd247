//! Memory that several ranks touch: segments and payloads.
//!
//! # Invariants
//! B1. A block's words are allocated in `new` and freed in `drop`, and no reference to them is ever made: only
//!     `RawBytes` and raw pointers leave this module. Whoever uses those keeps the block.

use gasworks_sync::RawBytes;

/// Zeroed memory, aligned to 8 bytes.
#[derive(Debug)]
pub(super) struct Block {
    words: *mut [u64],
    len: usize,
}

// SAFETY: the block only owns the allocation; access goes through `RawBytes`, whose rules hold between threads (B1).
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    pub fn new(len: usize) -> Self {
        Self { words: Box::into_raw(vec![0u64; len.div_ceil(8)].into_boxed_slice()), len }
    }

    /// Leaves out the end; what is allocated stays.
    pub fn shorten(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub fn bytes(&self) -> RawBytes {
        if self.len == 0 {
            return RawBytes::EMPTY;
        }
        // SAFETY: B1: allocated for at least `len` bytes until `drop`, and without references.
        unsafe { RawBytes::new(self.words.cast::<u8>(), self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: B1: made by `Box::into_raw` in `new`, freed only here.
        drop(unsafe { Box::from_raw(self.words) });
    }
}
