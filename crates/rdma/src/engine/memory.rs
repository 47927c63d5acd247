//! The engine's own memory, which the NIC can use: for transfers whose local bytes it cannot, or not long enough. Each descriptor has a
//! little of it, and the rest are buffers.
//!
//! # Invariants
//! O1. Memory that the engine allocated itself is freed once, in `drop`, and only if no transfer can be using it; no reference to
//!     it is ever made, so whoever took a part of it has that alone (E3 of the engine).

use super::EngineError;
use crate::nic::Abilities;
use crate::pool::Pool;
use crate::settings::{IMMEDIATE, Tuning};
use gasworks_sync::RawBytes;

/// Buffers that the engine allocates for itself.
const OWN: usize = 16;

/// Where a transfer's bytes are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What belongs to a descriptor.
    Immediate(u32),
    /// A buffer.
    Buffer(u32),
}

/// Parts for all descriptors, and equal buffers behind them.
#[derive(Debug)]
pub(super) struct Memory {
    bytes: RawBytes,
    /// Bytes of each descriptor: 0 where there was no room for all.
    immediate: usize,
    buffers: RawBytes,
    /// Bytes of a buffer.
    buffer: usize,
    free: Pool,
    /// It is the engine's own, and is freed with it unless a transfer may still use it.
    own: Option<*mut [u64]>,
}

// SAFETY: O1: the engine's own memory is reached through `bytes` only, by whoever has a part of it.
unsafe impl Send for Memory {}

impl Memory {
    /// Divides `bytes`, or memory of its own where none is given and the NIC needs none registered.
    pub fn new(bytes: RawBytes, abilities: &Abilities, tuning: &Tuning) -> Result<Self, EngineError> {
        let alignment = abilities.get_alignment.max(abilities.put_alignment).max(1);
        let fit = |room: usize| {
            let most = tuning.buffer().next_multiple_of(alignment).max(alignment);
            most.min(abilities.largest).min(room) / alignment * alignment
        };
        if bytes.is_empty() && !abilities.registers_local {
            // Only the edges of gets come here, and puts whose source is wanted back soon.
            let size = fit(usize::MAX);
            let words = Box::into_raw(vec![0u64; (size * OWN).div_ceil(8)].into_boxed_slice());
            // SAFETY: O1: the allocation lives until `drop`, and nobody makes a reference to it.
            let bytes = unsafe { RawBytes::new(words.cast::<u8>(), size * OWN) };
            return Ok(Self::divided(bytes, (0, 0), size, Some(words)));
        }
        let all = tuning.descriptors.saturating_mul(IMMEDIATE);
        // Buffers of a useful size come first: without parts of its own a descriptor takes one.
        let has_immediate = IMMEDIATE.is_multiple_of(alignment) && abilities.largest >= IMMEDIATE;
        let immediate = match all.checked_add(fit(usize::MAX)) {
            Some(needed) if has_immediate && needed <= bytes.len() => IMMEDIATE,
            _ => 0,
        };
        let size = fit(bytes.len() - immediate * tuning.descriptors);
        if size == 0 {
            return Err(EngineError::NoBounceMemory { given: bytes.len(), least: alignment });
        }
        Ok(Self::divided(bytes, (tuning.descriptors, immediate), size, None))
    }

    /// So much for each descriptor, and buffers of a size that is not 0 behind that.
    fn divided(
        bytes: RawBytes,
        (descriptors, immediate): (usize, usize),
        buffer: usize,
        own: Option<*mut [u64]>,
    ) -> Self {
        let before = immediate * descriptors;
        let buffers = bytes.slice(before, bytes.len() - before).unwrap_or(RawBytes::EMPTY);
        let free = Pool::new(u32::try_from(buffers.len() / buffer).unwrap_or(u32::MAX));
        Self { bytes, immediate, buffers, buffer, free, own }
    }

    /// Bytes that each descriptor has.
    pub fn immediate(&self) -> usize {
        self.immediate
    }

    /// The size of a buffer.
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// Takes a free buffer.
    pub fn take(&self) -> Option<Part> {
        self.free.take().map(Part::Buffer)
    }

    /// Gives a part back.
    pub fn give(&self, part: Part) {
        if let Part::Buffer(number) = part {
            self.free.give(number);
        }
    }

    /// The first `len` bytes of a part; empty if it has fewer.
    pub fn bytes(&self, part: Part, len: usize) -> RawBytes {
        let (all, size, number) = match part {
            Part::Immediate(number) => (self.bytes, self.immediate, number),
            Part::Buffer(number) => (self.buffers, self.buffer, number),
        };
        all.slice(number as usize * size, len.min(size)).unwrap_or(RawBytes::EMPTY)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let all_back = || (0..self.free.size()).all(|_| self.free.take().is_some());
        if let Some(words) = self.own.filter(|_| all_back()) {
            // SAFETY: O1: made by `Box::into_raw` in `new`, freed once, and no transfer holds a buffer.
            drop(unsafe { Box::from_raw(words) });
        }
    }
}
