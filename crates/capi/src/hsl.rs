//! Handler-safe locks, which C keeps where it likes: two words, zero when nobody has it. As with Rust's, a thread that has one neither polls
//! nor sends nor replies, and none is taken twice by one thread.
//!
//! # Invariants
//! As in the crate, and:
//! H1. The words are a lock's from its initialiser to its destruction, and are reached as one alone.

use crate::face::fail;
use crate::layout::{ERR_NOT_READY, OK};
use crate::place;
use gasworks_core::hsl::{holder, left, taken};
use gasworks_sync::atomic::AtomicUsize;
use gasworks_sync::atomic::Ordering::Relaxed;
use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::ffi::c_int;

/// `gex_HSL_t`.
#[repr(C)]
pub struct Hsl {
    lock: RawMutex,
    rest: [u8; 7],
    /// The thread that has it. Nobody but that thread can find its own number here.
    owner: AtomicUsize,
}

const _: () = assert!(size_of::<Hsl>() == 16 && align_of::<Hsl>() == 8, "as in C");
const NOBODY: usize = 0;
const OWN: &str = "this thread has the lock already, and it is not recursive";

impl Hsl {
    const fn free() -> Self {
        Self { lock: RawMutex::INIT, rest: [0; 7], owner: AtomicUsize::new(NOBODY) }
    }

    /// It is this thread's now.
    fn begin(&self) {
        self.owner.store(holder(), Relaxed);
        taken();
    }

    fn is_own(&self) -> bool {
        self.owner.load(Relaxed) == holder()
    }
}

/// # Safety
/// H1.
unsafe fn of<'a>(call: &str, lock: *const Hsl) -> &'a Hsl {
    if lock.is_null() || !lock.is_aligned() {
        fail(call, format!("there is no lock at {lock:p}"));
    }
    // SAFETY: H1.
    unsafe { &*lock }
}

/// `gex_HSL_Init`.
///
/// # Safety
/// C1.
pub unsafe fn init(lock: *mut Hsl) {
    if lock.is_null() || !lock.is_aligned() {
        fail("gex_HSL_Init", format!("no lock can be at {lock:p}"));
    }
    // SAFETY: C1: nobody uses it yet.
    unsafe { lock.write(Hsl::free()) };
}

/// `gex_HSL_Destroy`.
///
/// # Safety
/// H1.
pub unsafe fn destroy(lock: *const Hsl) {
    // SAFETY: H1.
    if unsafe { of("gex_HSL_Destroy", lock) }.lock.is_locked() {
        fail("gex_HSL_Destroy", "the lock is held");
    }
}

/// `gex_HSL_Trylock`.
///
/// # Safety
/// H1.
pub unsafe fn attempt(lock: *const Hsl) -> c_int {
    // SAFETY: H1.
    let hsl = unsafe { of("gex_HSL_Trylock", lock) };
    if !hsl.lock.try_lock() {
        if hsl.is_own() && place::is_known() {
            fail("gex_HSL_Trylock", OWN);
        }
        return ERR_NOT_READY;
    }
    hsl.begin();
    OK
}

/// `gex_HSL_Lock`.
///
/// # Safety
/// H1.
pub unsafe fn lock(lock: *const Hsl) {
    // SAFETY: H1.
    let hsl = unsafe { of("gex_HSL_Lock", lock) };
    if hsl.is_own() {
        fail("gex_HSL_Lock", OWN);
    }
    hsl.lock.lock();
    hsl.begin();
}

/// `gex_HSL_Unlock`.
///
/// # Safety
/// H1.
pub unsafe fn unlock(lock: *const Hsl) {
    // SAFETY: H1.
    let hsl = unsafe { of("gex_HSL_Unlock", lock) };
    if !hsl.is_own() {
        match hsl.lock.is_locked() {
            true => fail("gex_HSL_Unlock", "another thread holds the lock"),
            false if place::is_known() => fail("gex_HSL_Unlock", "nobody holds the lock"),
            // It stays as it is. Programs that were never told do so.
            false => return,
        }
    }
    hsl.owner.store(NOBODY, Relaxed);
    left();
    // SAFETY: H1: it is this thread's.
    unsafe { hsl.lock.unlock() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// C's initialiser is zeros.
    #[test]
    fn zeros_are_a_free_lock() {
        let free = Hsl::free();
        // SAFETY: C1: all of it is bytes that were written.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const free).cast::<u8>(), size_of::<Hsl>()) };
        assert_eq!(bytes, [0; 16]);
    }

    #[test]
    fn threads_take_turns() {
        struct Shared(Hsl, Cell<u64>);
        // SAFETY: the counter is used by whoever has the lock alone.
        unsafe impl Sync for Shared {}
        let shared = Shared(Hsl::free(), Cell::new(0));
        let shared = &shared;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    for number in 0..20_000 {
                        if number % 7 == 0 {
                            // SAFETY: H1.
                            while unsafe { attempt(&shared.0) } != OK {
                                std::thread::yield_now();
                            }
                        } else {
                            // SAFETY: H1.
                            unsafe { lock(&shared.0) };
                        }
                        shared.1.set(shared.1.get() + 1);
                        assert!(gasworks_core::hsl::any_held());
                        // SAFETY: H1.
                        unsafe { unlock(&shared.0) };
                        assert!(!gasworks_core::hsl::any_held());
                    }
                });
            }
        });
        assert_eq!(shared.1.get(), 60_000);
        // SAFETY: H1.
        unsafe { destroy(&shared.0) };
    }
}
