//! The pool of bounce buffers: memory that the NIC can use, for transfers whose own memory it cannot.
//!
//! # Invariants
//! O1. Memory that the pool allocated itself is freed once, in `drop`, and only if no buffer is out; no reference to it
//!     is ever made, so whoever took a buffer has it alone (E3 of the engine).

use super::EngineError;
use crate::nic::Abilities;
use gasworks_sync::RawBytes;

/// The size of a buffer, where the NIC and the memory allow it.
const SIZE: usize = 4096;
/// Buffers of a pool that the engine allocates for itself.
const OWN: usize = 16;

/// Equal buffers in one run of memory, the free ones kept on a stack.
#[derive(Debug)]
pub(super) struct Pool {
    memory: RawBytes,
    size: usize,
    free: Vec<u32>,
    /// The memory is this pool's own, and is freed with it unless a transfer may still use it.
    own: Option<*mut [u64]>,
}

// SAFETY: O1: the pool's own memory is reached through `memory` only, by whoever took the buffer.
unsafe impl Send for Pool {}

impl Pool {
    /// Divides `memory`, or memory of its own where none is given and the NIC needs none registered.
    pub fn new(memory: RawBytes, abilities: &Abilities) -> Result<Self, EngineError> {
        let alignment = abilities.get_alignment.max(abilities.put_alignment).max(1);
        let fit = |room: usize| {
            let most = abilities.largest.min(room);
            most.min(SIZE.max(alignment)) / alignment * alignment
        };
        if memory.is_empty() && !abilities.registers_local {
            // Only the edges of unaligned gets come here.
            let size = if abilities.get_alignment > 1 { fit(usize::MAX) } else { 0 };
            let words = Box::into_raw(vec![0u64; (size * OWN).div_ceil(8)].into_boxed_slice());
            // SAFETY: O1: the allocation lives until `drop`, and nobody makes a reference to it.
            let memory = unsafe { RawBytes::new(words.cast::<u8>(), size * OWN) };
            return Ok(Self { memory, size, free: free(memory, size), own: Some(words) });
        }
        let size = fit(memory.len());
        if size == 0 && (abilities.registers_local || abilities.get_alignment > 1) {
            return Err(EngineError::NoBounceMemory { given: memory.len(), least: alignment });
        }
        Ok(Self { memory, size, free: free(memory, size), own: None })
    }

    /// The size of a buffer; 0 where there are none.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Takes a free buffer.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives a buffer back.
    pub fn give(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// The first `len` bytes of a buffer; empty if it has fewer.
    pub fn bytes(&self, buffer: u32, len: usize) -> RawBytes {
        self.memory.slice(buffer as usize * self.size, len.min(self.size)).unwrap_or(RawBytes::EMPTY)
    }
}

fn free(memory: RawBytes, size: usize) -> Vec<u32> {
    let buffers = memory.len().checked_div(size).unwrap_or(0);
    (0..buffers as u32).rev().collect()
}

impl Drop for Pool {
    fn drop(&mut self) {
        let all_back = self.free.len() == self.memory.len().checked_div(self.size).unwrap_or(0);
        if let Some(words) = self.own.filter(|_| all_back) {
            // SAFETY: O1: made by `Box::into_raw` in `new`, freed once, and no transfer holds a buffer.
            drop(unsafe { Box::from_raw(words) });
        }
    }
}
