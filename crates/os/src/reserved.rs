//! Arrays of zeroes that take no memory where nobody has written: what a process keeps of each other, most of which it never talks to.
//!
//! # Invariants
//! - reserved.1: `map` is as long as `count` values of `T` and aligned for them, and is this array's alone. All of it is zero, which is a
//!   `T`, or was written as one. A `T` is never dropped. It stays where it is until the array is dropped.

use bytemuck::Zeroable;
use memmap2::{MmapOptions, MmapRaw};
use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// So many values, all zero at first. A page of it is memory once something is written there.
pub struct Reserved<T> {
    map: MmapRaw,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Zeroable> Reserved<T> {
    /// An array of `count` values.
    ///
    /// # Panics
    /// No address space is as large. As with a box, the process ends where there are not as many addresses left.
    pub fn new(count: usize) -> Self {
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= 4096) };
        let layout = Layout::array::<T>(count).expect("an array that fits into an address space");
        let map = MmapOptions::new().len(layout.size().max(1)).map_anon();
        let map = map.unwrap_or_else(|_| handle_alloc_error(layout));
        Self { map: map.into(), count, of: PhantomData }
    }
}

/// Of these values, of which those that are zero take no memory, where there are many.
impl<T: Zeroable + Copy + PartialEq> From<&[T]> for Reserved<T> {
    fn from(values: &[T]) -> Self {
        let (mut all, zero) = (Self::new(values.len()), T::zeroed());
        for (place, value) in all.iter_mut().zip(values).filter(|(_, value)| **value != zero) {
            *place = *value;
        }
        all
    }
}

impl<T> Deref for Reserved<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: reserved.1: as many values are there as long as the array is borrowed.
        unsafe { std::slice::from_raw_parts(self.map.as_mut_ptr().cast(), self.count) }
    }
}

impl<T> DerefMut for Reserved<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: reserved.1: as many values are there, and the array is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.count) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Reserved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_until_it_is_written() {
        let mut words = Reserved::<u64>::new(10_000);
        assert_eq!((words.len(), words.iter().max()), (10_000, Some(&0)));
        words[9_999] = 7;
        assert_eq!((words[9_998], words.last()), (0, Some(&7)));
        assert_eq!(format!("{:?}", Reserved::<u8>::new(2)), "[0, 0]");
        assert!(Reserved::<u8>::new(0).is_empty());
        assert_eq!(Reserved::from(&[0, 3, 0][..])[..], [0, 3, 0]);
    }

    #[cfg(not(miri))]
    #[test]
    fn what_is_not_written_takes_no_memory() {
        let resident = || crate::memory_use::own().expect("known").anonymous;
        let before = resident();
        let mut words = Reserved::<u64>::new(1 << 24);
        words[1 << 20] = 1;
        let taken = resident().saturating_sub(before);
        assert!(taken < 16 << 20, "{taken} bytes of {}", words.len() * 8);
    }
}
