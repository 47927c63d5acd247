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
