//! Hints to the processor that change nothing but time.
//!
//! # Invariants
//! - hint.1: a prefetch is a hint: it faults on no address and changes no byte.

/// Asks for the cache line of `place` before it is written, so that the store finds it owned. Without such a hint the
/// line is fetched when the store leaves the processor's buffer, and whatever orders stores waits for that.
#[inline(always)]
pub fn prefetch_for_write<T>(place: &T) {
    let address = core::ptr::from_ref(place);
    #[cfg(all(target_arch = "x86_64", not(miri), not(gasworks_loom)))]
    // SAFETY: hint.1: `prefetchw` of the address of `place` changes neither registers nor flags.
    unsafe {
        core::arch::asm!("prefetchw [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri), not(gasworks_loom)))]
    // SAFETY: hint.1: `prfm` of the address of `place` changes neither registers nor flags.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    let _ = address;
}
