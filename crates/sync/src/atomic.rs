//! Atomics, fences and the spin hint: the standard library's, or loom's under `--cfg gasworks_loom`.

#[cfg(not(gasworks_loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
#[cfg(gasworks_loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// A memory fence. A `Relaxed` one (only a planted bug asks for it) does nothing.
///
/// Under the thread sanitizer, which does not model fences, it is a read-modify-write of one shared word: that
/// orders at least as much for the sanitizer as the fence does for the machine.
#[inline(always)]
pub fn fence(order: Ordering) {
    if matches!(order, Ordering::Relaxed) {
        return;
    }
    #[cfg(gasworks_loom)]
    loom::sync::atomic::fence(order);
    #[cfg(all(not(gasworks_loom), gasworks_tsan))]
    {
        static ANCHOR: AtomicU32 = AtomicU32::new(0);
        ANCHOR.fetch_add(1, Ordering::AcqRel);
        core::sync::atomic::fence(order);
    }
    #[cfg(all(not(gasworks_loom), not(gasworks_tsan)))]
    core::sync::atomic::fence(order);
}

/// Tells the processor, or the model checker, that this thread waits for another.
#[inline(always)]
pub fn spin() {
    #[cfg(gasworks_loom)]
    loom::thread::yield_now();
    #[cfg(all(not(gasworks_loom), miri))]
    std::thread::yield_now();
    #[cfg(all(not(gasworks_loom), not(miri)))]
    core::hint::spin_loop();
}
