//! Typed views of a mapping: where bytes become structures, once, after which every method is safe.
//!
//! # Invariants
//! - view.1: a [`Shared`] type consists of atomics alone, has no padding that anybody reads, and any bit pattern, all zero
//!   included, is a valid value: so a reference to it stays valid whatever a peer writes.
//! - view.2: a view lies inside the bytes it was cut from and is aligned for its type.

use core::ptr::NonNull;

use crate::{barrier::Meeting, board::Cell, doorbell::Doorbell, eventcount::EventCount, flag::Flag, inbox};
use gasworks_sync::VolatileSlice;
use gasworks_sync::atomic::{AtomicU32, AtomicU64};

/// A type that may be laid over memory that others write.
///
/// # Safety
/// view.1 holds for it.
pub unsafe trait Shared {}

// SAFETY: view.1: an atomic integer of 4 bytes alone, which may have any value.
unsafe impl Shared for AtomicU32 {}
// SAFETY: view.1: an atomic integer of 8 bytes alone, which may have any value.
unsafe impl Shared for AtomicU64 {}
// SAFETY: view.1: repr(transparent) over one atomic integer; any value of it is a count and the sleepers' bit.
unsafe impl Shared for EventCount {}
// SAFETY: view.1: repr(C), atomics alone, every word of it declared, 256 bytes.
#[cfg(not(gasworks_loom))]
unsafe impl Shared for inbox::Slot {}
// SAFETY: view.1: repr(C), atomics alone, every word of it declared, those between its lines too.
unsafe impl Shared for inbox::Control {}
// SAFETY: view.1: repr(C), one atomic; the padding behind it is never read.
unsafe impl Shared for Doorbell {}
// SAFETY: view.1: repr(transparent) over one atomic integer; any value of it is a flag that is set or not.
unsafe impl Shared for Flag {}
// SAFETY: view.1: repr(C), atomics alone; the padding behind them is never read.
unsafe impl Shared for Meeting {}
// SAFETY: view.1: repr(C), atomics alone, every word of it declared.
unsafe impl Shared for Cell {}

/// Lays `count` structures over `bytes` from `offset`; `None` if they would not lie inside or not be aligned.
pub fn slice<T: Shared>(bytes: VolatileSlice<'_>, offset: usize, count: usize) -> Option<&[T]> {
    let part = bytes.slice(offset, size_of::<T>().checked_mul(count)?)?;
    let at = part.as_ptr().cast::<T>();
    // SAFETY: inside, as `slice` has checked, and aligned (view.2); atomics, valid whatever they hold (view.1), which is how a volatile
    // slice's bytes may be referred to; mapped as long as that is borrowed.
    at.is_aligned().then(|| unsafe { core::slice::from_raw_parts(at, count) })
}

/// Where structures were laid over bytes: a view that was checked once, and whose bytes somebody else keeps.
#[derive(Debug)]
pub struct Place<T> {
    at: NonNull<T>,
    count: usize,
}

// SAFETY: view.1: who gets at the structures shares atomics.
unsafe impl<T: Shared + Sync> Send for Place<T> {}
// SAFETY: view.1: as much can be done with a shared one.
unsafe impl<T: Shared + Sync> Sync for Place<T> {}

impl<T: Shared> Place<T> {
    /// The place of a view.
    pub fn of(structures: &[T]) -> Self {
        Self { at: NonNull::from(structures).cast(), count: structures.len() }
    }

    /// The view again.
    ///
    /// # Safety
    /// The bytes that it was laid over are mapped, at the same addresses, for `'a`.
    #[inline(always)]
    pub unsafe fn get<'a>(&self) -> &'a [T] {
        // SAFETY: view.2: checked when the view was made, of bytes that the caller keeps mapped.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), self.count) }
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use gasworks_sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_view_lies_inside_its_bytes_and_is_aligned() {
        let words = [const { AtomicU64::new(0) }; 4];
        let bytes = VolatileSlice::from_words(&words);
        let view = |offset, count| slice::<AtomicU32>(bytes, offset, count);
        for (offset, count, fits) in [
            (0, 0, true),
            (0, 8, true),
            (0, 9, false),
            (4, 7, true),
            (4, 8, false),
            (32, 0, true),
            (33, 0, false),
            (2, 1, false),
            (0, usize::MAX / 4, false),
            (4, 1 << 62, false),
        ] {
            assert_eq!(view(offset, count).map(<[_]>::len), fits.then_some(count), "{count} from {offset}");
        }
        view(4, 7).expect("it fits")[1].store(7, Relaxed);
        let place = Place::of(view(4, 7).expect("it fits"));
        // SAFETY: `words` lives until the end of this test.
        assert_eq!(unsafe { place.get() }.iter().map(|word| word.load(Relaxed)).sum::<u32>(), 7);
        assert_eq!(view(8, 1).expect("it fits")[0].load(Relaxed), 7);
        assert_eq!(words.each_ref().map(|word| word.load(Relaxed) != 0), [false, true, false, false]);
    }
}
