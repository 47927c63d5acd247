//! Asks the core to fetch a cache line that will be needed soon.
//!
//! # Invariants
//! - prefetch.1: the address handed to the instruction comes from a live reference. (The instruction would bear any address: it
//!   neither faults nor changes memory.)
#![allow(unsafe_code)]

/// Begins to fetch the line that holds `place`.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetch.1: `place` is a live reference, and the instruction changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
