//! Typed views of a mapping: where bytes become structures, once, after which every method is safe.
//!
//! # Invariants
//! V1. A [`Shared`] type consists of atomics alone, has no padding that anybody reads, and any bit pattern, all zero
//!     included, is a valid value: so a reference to it stays valid whatever a peer writes.
//! V2. A view lies inside the bytes it was cut from and is aligned for its type.

use crate::{barrier::Meeting, doorbell::Doorbell, eventcount::EventCount, inbox};
use gasworks_sync::RawBytes;
use gasworks_sync::atomic::{AtomicU32, AtomicU64};

/// A type that may be laid over memory that others write.
///
/// # Safety
/// V1 holds for it.
pub unsafe trait Shared {}

// SAFETY: an atomic integer alone (V1).
unsafe impl Shared for AtomicU32 {}
// SAFETY: an atomic integer alone (V1).
unsafe impl Shared for AtomicU64 {}
// SAFETY: an atomic integer alone (V1).
unsafe impl Shared for EventCount {}
// SAFETY: repr(C), atomics alone, every word of it declared (V1).
#[cfg(not(gasworks_loom))]
unsafe impl Shared for inbox::Slot {}
// SAFETY: repr(C), atomics alone, every word of it declared (V1).
unsafe impl Shared for inbox::Control {}
// SAFETY: repr(C), one atomic; the padding is never read (V1).
unsafe impl Shared for Doorbell {}
// SAFETY: repr(C), atomics; the padding is never read (V1).
unsafe impl Shared for Meeting {}

/// Lays `count` structures over `bytes` from `offset`; `None` if they would not lie inside or not be aligned.
///
/// # Safety
/// The bytes stay mapped, readable and writable for `'a`, and are touched only through atomics and racy copies (Y1
/// and Y2 of `gasworks_sync::racy`).
pub unsafe fn slice<'a, T: Shared>(bytes: RawBytes, offset: usize, count: usize) -> Option<&'a [T]> {
    let part = bytes.slice(offset, size_of::<T>().checked_mul(count)?)?;
    let at = part.as_ptr().cast::<T>();
    // SAFETY: inside (checked by `slice`) and aligned (V2); valid whatever it holds (V1); mapped for 'a by the
    // caller's promise.
    at.is_aligned().then(|| unsafe { core::slice::from_raw_parts(at, count) })
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use gasworks_sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_view_lies_inside_its_bytes_and_is_aligned() {
        let words = [const { AtomicU64::new(0) }; 4];
        // SAFETY: the words outlive the views, which are atomics like them.
        let bytes = unsafe { RawBytes::new(words.as_ptr().cast_mut().cast(), 32) };
        // SAFETY: as above.
        let view = |offset, count| unsafe { slice::<AtomicU32>(bytes, offset, count) };
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
        assert_eq!(view(8, 1).expect("it fits")[0].load(Relaxed), 7);
        assert_eq!(words.each_ref().map(|word| word.load(Relaxed) != 0), [false, true, false, false]);
    }
}
