//! The engine's own memory, which the NIC can use: for transfers whose local bytes it cannot, or not long enough. Each descriptor has a
//! little of it, and the rest are buffers.
//!
//! # Invariants
//! - memory.1: memory that the engine allocated itself is atomics to the language, and so may be changed by whoever took a part of it
//!   (engine.3). It is freed with the engine, and only if no transfer can be using it.

use super::EngineError;
use crate::nic::Abilities;
use crate::pool::Pool;
use crate::settings::{IMMEDIATE, Tuning};
use gasworks_sync::RawSlice;
use gasworks_sync::atomic::AtomicU64;
use std::sync::Arc;

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
    bytes: RawSlice,
    /// Bytes of each descriptor: 0 where there was no room for all.
    immediate: usize,
    buffers: RawSlice,
    /// Bytes of a buffer.
    buffer: usize,
    free: Pool,
    /// What `bytes` are, if they are the engine's own: nobody looks at it, it is there for memory.1.
    own: Option<Arc<[AtomicU64]>>,
}

impl Memory {
    /// Divides `bytes`, or memory of its own where none is given and the NIC needs none registered.
    pub fn new(bytes: RawSlice, abilities: &Abilities, tuning: &Tuning) -> Result<Self, EngineError> {
        let alignment = abilities.get_alignment.max(abilities.put_alignment).max(1);
        let fit = |room: usize| {
            let most = tuning.buffer().next_multiple_of(alignment).max(alignment);
            most.min(abilities.largest).min(room) / alignment * alignment
        };
        if bytes.is_empty() && !abilities.registers_local {
            // Only the edges of gets come here, and puts whose source is wanted back soon.
            let size = fit(usize::MAX);
            let words: Arc<[AtomicU64]> = (0..(size * OWN).div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
            let first = Arc::as_ptr(&words).cast::<u8>().cast_mut();
            let bytes = RawSlice::new(first, size * OWN);
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
        bytes: RawSlice,
        (descriptors, immediate): (usize, usize),
        buffer: usize,
        own: Option<Arc<[AtomicU64]>>,
    ) -> Self {
        let before = immediate * descriptors;
        let buffers = bytes.slice(before, bytes.len() - before).unwrap_or(RawSlice::EMPTY);
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
    pub fn bytes(&self, part: Part, len: usize) -> RawSlice {
        let (all, size, number) = match part {
            Part::Immediate(number) => (self.bytes, self.immediate, number),
            Part::Buffer(number) => (self.buffers, self.buffer, number),
        };
        all.slice(number as usize * size, len.min(size)).unwrap_or(RawSlice::EMPTY)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let all_back = (0..self.free.size()).all(|_| self.free.take().is_some());
        if !all_back {
            // memory.1: a transfer that holds a buffer may use it at any time.
            std::mem::forget(self.own.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two descriptors, and buffers for so many bytes.
    fn tuning(buffer: usize) -> Tuning {
        Tuning { descriptors: 2, put_bounce: buffer, get_bounce: 1, least_buffer: 0, ..Tuning::default() }
    }

    /// Bytes of each descriptor, of each buffer, and how many buffers there are.
    fn sizes(memory: &Memory) -> (usize, usize, usize) {
        (memory.immediate(), memory.buffer(), std::iter::from_fn(|| memory.take()).count())
    }

    /// What given memory is divided into, next to where it is enough for more.
    #[test]
    fn given_memory_is_divided_as_far_as_it_goes() {
        let mut all = vec![0u64; 256];
        let all = RawSlice::new(all.as_mut_ptr().cast(), 2048);
        const LARGE: usize = 1 << 20;
        for (bytes, alignment, largest, buffer, wanted) in [
            (0, 1, LARGE, 256, None),
            (1, 1, LARGE, 256, Some((0, 1, 1))),
            (255, 1, LARGE, 256, Some((0, 255, 1))),
            (511, 1, LARGE, 256, Some((0, 256, 1))),
            (512, 1, LARGE, 256, Some((128, 256, 1))),
            (767, 1, LARGE, 256, Some((128, 256, 1))),
            (768, 1, LARGE, 256, Some((128, 256, 2))),
            (2048, 1, LARGE, 256, Some((128, 256, 7))),
            // A buffer is a multiple of what the NIC wants.
            (7, 8, LARGE, 256, None),
            (8, 8, LARGE, 256, Some((0, 8, 1))),
            (15, 8, LARGE, 256, Some((0, 8, 1))),
            (512, 8, LARGE, 250, Some((128, 256, 1))),
            (259, 4, LARGE, 1, Some((0, 4, 64))),
            (260, 4, LARGE, 1, Some((128, 4, 1))),
            // A descriptor's part has to be one, too, and short enough.
            (1024, 256, LARGE, 256, Some((0, 256, 4))),
            (512, 1, 127, 256, Some((0, 127, 4))),
            (383, 1, 128, 256, Some((0, 128, 2))),
            (384, 1, 128, 256, Some((128, 128, 1))),
        ] {
            let given = all.slice(0, bytes).expect("it is inside");
            let rules = Abilities { largest, registers_local: true, ..Abilities::PLAIN };
            for abilities in [
                Abilities { get_alignment: alignment, ..rules },
                Abilities { put_alignment: alignment, ..rules },
            ] {
                let memory = Memory::new(given, &abilities, &tuning(buffer));
                let none = EngineError::NoBounceMemory { given: bytes, least: alignment };
                let found = memory.as_ref().map(sizes);
                assert_eq!(found, wanted.ok_or(&none), "{bytes} bytes in multiples of {alignment}");
                assert!(memory.is_err() || memory.is_ok_and(|memory| memory.own.is_none()));
            }
        }
        // So many descriptors that their parts are beyond all numbers.
        let endless = Tuning { descriptors: usize::MAX, ..tuning(256) };
        let rules = Abilities { registers_local: true, ..Abilities::PLAIN };
        assert_eq!(Memory::new(all, &rules, &endless).as_ref().map(sizes), Ok((0, 256, 8)));
    }

    #[test]
    fn parts_lie_side_by_side() {
        let mut all = vec![0u64; 128];
        let all = RawSlice::new(all.as_mut_ptr().cast(), 1024);
        let memory = Memory::new(all, &Abilities::PLAIN, &tuning(256)).expect("it is enough");
        assert!(memory.own.is_none(), "what is given is used, needed or not");
        let found = |part, len| {
            let bytes = memory.bytes(part, len);
            (bytes.as_ptr().addr() - all.as_ptr().addr(), bytes.len())
        };
        for (part, at, size) in [
            (Part::Immediate(0), 0, 128),
            (Part::Immediate(1), 128, 128),
            (Part::Buffer(0), 256, 256),
            (Part::Buffer(1), 512, 256),
            (Part::Buffer(2), 768, 256),
        ] {
            for len in [0, 1, size - 1, size, size + 1, usize::MAX] {
                assert_eq!(found(part, len), (at, len.min(size)), "{len} bytes of {part:?}");
            }
        }
        let taken = [memory.take(), memory.take(), memory.take()];
        assert_eq!(taken, [0, 1, 2].map(|number| Some(Part::Buffer(number))));
        assert_eq!(memory.take(), None);
        memory.give(Part::Immediate(1));
        assert_eq!(memory.take(), None, "that one is always its descriptor's");
        memory.give(Part::Buffer(1));
        assert_eq!((memory.take(), memory.take()), (Some(Part::Buffer(1)), None));
    }

    #[test]
    fn memory_of_its_own_is_there_while_a_transfer_may_use_it() {
        for size in [1, 3, 256] {
            for taken in [0, 1, OWN] {
                let abilities = Abilities { largest: 256, ..Abilities::PLAIN };
                let memory = Memory::new(RawSlice::EMPTY, &abilities, &tuning(size)).expect("it has its own");
                let words = memory.own.clone().expect("it is its own");
                assert!(8 * words.len() >= OWN * size, "{} words for buffers of {size} bytes", words.len());
                assert_eq!(sizes(&memory), (0, size, OWN));
                (taken..OWN).for_each(|number| memory.give(Part::Buffer(number as u32)));
                assert!(memory.bytes(Part::Immediate(0), 1).is_empty(), "descriptors have none");
                let last = memory.bytes(Part::Buffer(OWN as u32 - 1), size);
                assert_eq!(last.as_ptr().addr() - words.as_ptr().addr(), (OWN - 1) * size);
                drop(memory);
                assert_eq!(Arc::strong_count(&words), 1 + usize::from(taken > 0), "{taken} are out");
                if taken > 0 {
                    // SAFETY: `drop` has forgotten one count of these words, for transfers that there are none of; `words` has its own.
                    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&words)) };
                }
            }
        }
        // It is registered with nobody.
        let registers = Abilities { registers_local: true, ..Abilities::PLAIN };
        let none = Memory::new(RawSlice::EMPTY, &registers, &tuning(256)).err();
        assert_eq!(none, Some(EngineError::NoBounceMemory { given: 0, least: 1 }));
    }
}
