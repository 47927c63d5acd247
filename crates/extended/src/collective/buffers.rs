//! Buffers of the library's own for what members send each other. Those that are free are used again, so that collectives which follow each other
//! allocate nothing.
//!
//! Memory that is kept: of buffers of up to 4 KiB 64 of each power of two from 64 bytes on, and of those of up to 64 KiB 512 KiB each. That is a rank's, whatever
//! teams it is in and however many members these have, and never more than 2.5 MiB. What is longer is given back to the system.

use std::ops::{Deref, DerefMut};

/// The least bytes of a buffer, and the most of one that is kept.
const LEAST: usize = 64;
const MOST: usize = 64 << 10;
/// Powers of two between them.
const CLASSES: usize = (MOST / LEAST).ilog2() as usize + 1;
/// How many of a class are kept, and how many bytes.
const MAX_KEPT: usize = 64;
const MAX_BYTES: usize = 512 << 10;

/// Bytes that are aligned for any element. They have any values at first.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    words: Vec<u128>,
    len: usize,
}

impl Buffer {
    /// One with room for so many.
    fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(size_of::<u128>())], len }
    }

    fn room(&self) -> usize {
        self.words.len() * size_of::<u128>()
    }

    /// The same with so many bytes, if there is room for them.
    fn of_len(self, len: usize) -> Result<Self, Self> {
        if len <= self.room() { Ok(Self { len, ..self }) } else { Err(self) }
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::new(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

/// The class of buffers for so many bytes; `None`: they are not kept.
fn class(len: usize) -> Option<usize> {
    (len <= MOST).then(|| (len.max(LEAST).next_power_of_two() / LEAST).ilog2() as usize)
}

/// Those that are free.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: [Vec<Buffer>; CLASSES],
}

impl Pool {
    /// One of so many bytes.
    pub fn take(&mut self, len: usize) -> Buffer {
        let Some(class) = class(len).filter(|_| len > 0) else { return Buffer::new(len) };
        let buffer = self.free[class].pop().unwrap_or_else(|| Buffer::new(LEAST << class));
        buffer.of_len(len).unwrap_or_default()
    }

    /// One is not needed any more.
    pub fn give_back(&mut self, buffer: Buffer) {
        let room = buffer.room();
        if let Some(class) = class(room).filter(|class| room == LEAST << class) {
            let free = &mut self.free[class];
            if free.len() < MAX_KEPT.min(MAX_BYTES / room) {
                free.push(buffer);
            }
        }
    }
}

/// One buffer that is at hand.
#[derive(Debug, Default)]
pub(super) struct Spare(Option<Buffer>);

impl Spare {
    /// It, with so many bytes; if it has no room for them, it stays.
    pub fn take(&mut self, len: usize) -> Option<Buffer> {
        match self.0.take()?.of_len(len) {
            Ok(buffer) => Some(buffer),
            Err(buffer) => {
                self.0 = Some(buffer);
                None
            }
        }
    }

    /// Keeps this one, if it is one, and returns the one that was at hand.
    pub fn replace(&mut self, buffer: Buffer) -> Option<Buffer> {
        if buffer.room() == 0 { None } else { self.0.replace(buffer) }
    }

    /// None is at hand any more.
    pub fn empty(&mut self) -> Option<Buffer> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_no_more_are_kept_than_is_said() {
        let mut pool = Pool::default();
        let lens = [1, 63, 64, 65, 4096, 4097, 65_536, 65_537, 1 << 20];
        for len in lens {
            let mut buffer = pool.take(len);
            assert_eq!(buffer.len(), len);
            buffer.fill(7);
            let at = buffer.as_ptr();
            assert!(at.cast::<u128>().is_aligned());
            pool.give_back(buffer);
            let again = pool.take(len);
            assert_eq!(again.len(), len);
            assert!(len > MOST || again.as_ptr() == at, "{len} bytes are allocated again");
        }
        for _ in 0..2 {
            let all: Vec<_> = (0..1000).map(|at| pool.take(lens[at % lens.len()])).collect();
            all.into_iter().for_each(|buffer| pool.give_back(buffer));
        }
        let kept: usize = pool.free.iter().flatten().map(Buffer::room).sum();
        assert!((MAX_BYTES..5 << 19).contains(&kept), "{kept} bytes are kept");
        assert!(pool.take(0).is_empty());
    }
}
