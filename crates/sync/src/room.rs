//! Memory of the library's own for a payload, aligned for anything.
//!
//! # Invariants
//! - room.1: a `Room` owns what was allocated with its layout, all of it zero or written since, until it is dropped. Its bytes leave
//!   as borrows of it alone.

use crate::{RawSlice, VolatileSlice};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};

const ALIGN: usize = align_of::<u128>();
/// So many bytes are copied without asking for memory.
pub const SMALL: usize = 2048;

/// Memory on the heap, zero at first.
#[derive(Debug)]
pub struct Room {
    at: NonNull<u8>,
    layout: Layout,
}

// SAFETY: room.1: it is its owner's alone, as a box is.
unsafe impl Send for Room {}

impl Room {
    /// Room for `len` bytes; `None`: there is not as much memory.
    pub fn zeroed(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len.max(1), ALIGN).ok()?;
        // SAFETY: room.1: the layout is not empty.
        let at = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { at, layout })
    }

    /// The first `len` bytes, at most all.
    #[inline]
    pub fn bytes(&self, len: usize) -> VolatileSlice<'_> {
        // SAFETY: room.1: they are there as long as the room is borrowed, and plain references need it exclusively.
        unsafe { RawSlice::new(self.at.as_ptr(), len.min(self.layout.size())).borrow() }
    }

    /// The first `len` bytes, at most all, once it has been filled.
    #[inline]
    pub fn filled(&mut self, len: usize) -> &[u8] {
        // SAFETY: room.1: they are all written, and the room is borrowed exclusively, so that no volatile slice of it is left.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), len.min(self.layout.size())) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: room.1: allocated with this layout, and nobody borrows the room any more.
        unsafe { dealloc(self.at.as_ptr(), self.layout) }
    }
}

/// Does something with a copy of at most [`SMALL`] bytes, which is aligned for anything and nobody else's.
///
/// # Panics
/// There are more.
#[inline]
pub fn with_copy<R>(bytes: &[u8], act: impl FnOnce(VolatileSlice<'_>) -> R) -> R {
    assert!(bytes.len() <= SMALL, "a copy of {} bytes on the stack", bytes.len());
    let mut small = [MaybeUninit::<u128>::uninit(); SMALL / ALIGN];
    // SAFETY: `small` is at least as long, as was asserted, lies here until the end of this function, and is not used otherwise; the
    // bytes are written before anybody reads them.
    let copy: VolatileSlice<'_> = unsafe { RawSlice::new(small.as_mut_ptr().cast(), bytes.len()).borrow() };
    copy.write(bytes);
    act(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_aligned_and_the_same() {
        for len in [0, 1, 8, 100, SMALL - 1, SMALL] {
            let bytes: Vec<u8> = (0..len + 1).map(|i| i as u8).collect();
            let copied = with_copy(&bytes[1..], |copy| {
                assert!(
                    copy.as_ptr().addr().is_multiple_of(ALIGN)
                        && copy.as_ptr().cast_const() != bytes[1..].as_ptr()
                );
                let mut read = vec![0; copy.len()];
                copy.read(&mut read);
                read
            });
            assert_eq!(copied, &bytes[1..]);
        }
    }

    #[test]
    fn room_is_zero_and_as_long_as_was_asked_for() {
        let mut room = Room::zeroed(40).expect("there is as much memory");
        assert_eq!(room.filled(50), [0; 40]);
        let bytes = room.bytes(8);
        assert!((bytes.len(), bytes.as_ptr().addr() % ALIGN) == (8, 0));
        bytes.write(&[7; 8]);
        assert_eq!(room.filled(9), [7, 7, 7, 7, 7, 7, 7, 7, 0]);
        assert!(Room::zeroed(0).is_some_and(|room| room.bytes(1).len() <= 1));
        assert!(Room::zeroed(usize::MAX).is_none());
    }
}
