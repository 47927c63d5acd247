//! Segments, and views of the local one.

use crate::{Error, GlobalPtr};
use bytemuck::Pod;
use gasworks_sync::VolatileSlice;
use std::marker::PhantomData;

/// A rank's segment, seen from anywhere: never a slice, since every rank may write it at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub(crate) rank: u32,
    pub(crate) len: u64,
}

impl Segment {
    /// Whose it is.
    pub fn rank(self) -> u32 {
        self.rank
    }

    /// Its length in bytes.
    pub fn len(self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The place of `count` values of `T` at `offset`.
    ///
    /// # Errors
    /// They are not all inside.
    pub fn at<T: Pod>(self, offset: u64, count: u64) -> Result<GlobalPtr<T>, Error> {
        let end = count.checked_mul(size_of::<T>() as u64).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > self.len) {
            return Err(Error::Pointer(format!(
                "{count} values of {} bytes at {offset} are outside the segment of rank {}, which has {} bytes",
                size_of::<T>(),
                self.rank,
                self.len
            )));
        }
        Ok(GlobalPtr::new(self.rank, offset))
    }
}

/// Values in this rank's own segment, read and written in place. Other ranks may be writing them: what is read is a
/// copy, and may be torn if nothing orders the two.
#[derive(Clone, Copy)]
pub struct Local<'a, T> {
    bytes: VolatileSlice<'a>,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Pod> Local<'a, T> {
    pub(crate) fn new(bytes: VolatileSlice<'a>) -> Self {
        Self { bytes, of: PhantomData }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / size_of::<T>().max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn get(&self, index: usize) -> T {
        let mut value = T::zeroed();
        self.read(index, std::slice::from_mut(&mut value));
        value
    }

    /// Writes the value at `index`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn set(&self, index: usize, value: T) {
        self.write(index, std::slice::from_ref(&value));
    }

    /// Copies values out, from `index` on.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn read(&self, index: usize, target: &mut [T]) {
        let target = bytemuck::cast_slice_mut(target);
        self.part(index, target.len()).read(target);
    }

    /// Copies values in, from `index` on.
    ///
    /// # Panics
    /// If there is no room for so many.
    #[inline]
    pub fn write(&self, index: usize, source: &[T]) {
        let source = bytemuck::cast_slice(source);
        self.part(index, source.len()).write(source);
    }

    /// Where the first value lies.
    pub fn as_ptr(&self) -> *mut T {
        self.bytes.as_ptr().cast()
    }

    #[inline]
    fn part(&self, index: usize, bytes: usize) -> VolatileSlice<'a> {
        let part = index.checked_mul(size_of::<T>()).and_then(|offset| self.bytes.slice(offset, bytes));
        match part {
            Some(part) => part,
            None => panic!("{bytes} bytes from value {index} of a local view of {} values", self.len()),
        }
    }
}
