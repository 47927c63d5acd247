//! Handler-safe locks, which C keeps where it likes: two words, zero when nobody has it.
//!
//! # Invariants
//! As in the crate, and:
//! H1. The words are a lock's from its initialiser to its destruction, and are reached as atomics alone.

use crate::face::fail;
use crate::layout::{ERR_NOT_READY, OK};
use gasworks_os::futex;
use gasworks_sync::atomic::AtomicU32;
use gasworks_sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::ffi::c_int;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Somebody sleeps until it is free.
const WANTED: u32 = 2;
/// How often a thread looks before it sleeps.
const LOOKS: u32 = 100;

/// `gex_HSL_t`.
#[repr(C)]
pub struct Hsl {
    state: AtomicU32,
    rest: [u32; 3],
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
    // SAFETY: C1: nobody uses it yet.
    unsafe { lock.write(Hsl { state: AtomicU32::new(FREE), rest: [0; 3] }) };
}

/// `gex_HSL_Destroy`.
///
/// # Safety
/// H1.
pub unsafe fn destroy(lock: *const Hsl) {
    // SAFETY: H1.
    if unsafe { of("gex_HSL_Destroy", lock) }.state.load(Relaxed) != FREE {
        fail("gex_HSL_Destroy", "the lock is held");
    }
}

/// `gex_HSL_Trylock`.
///
/// # Safety
/// H1.
pub unsafe fn attempt(lock: *const Hsl) -> c_int {
    // SAFETY: H1.
    let state = &unsafe { of("gex_HSL_Trylock", lock) }.state;
    if state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok() { OK } else { ERR_NOT_READY }
}

/// `gex_HSL_Lock`.
///
/// # Safety
/// H1.
pub unsafe fn lock(lock: *const Hsl) {
    // SAFETY: H1.
    let state = &unsafe { of("gex_HSL_Lock", lock) }.state;
    for _ in 0..LOOKS {
        if state.load(Relaxed) == FREE && state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok() {
            return;
        }
        gasworks_sync::spin();
    }
    // Whoever gets it so does not know whether others sleep, and says that they do.
    while state.swap(WANTED, Acquire) != FREE {
        futex::wait(state, WANTED, None);
    }
}

/// `gex_HSL_Unlock`.
///
/// # Safety
/// H1, and this thread has it.
pub unsafe fn unlock(lock: *const Hsl) {
    // SAFETY: H1.
    let state = &unsafe { of("gex_HSL_Unlock", lock) }.state;
    match state.swap(FREE, Release) {
        WANTED => _ = futex::wake(state, 1),
        HELD => {}
        _ => fail("gex_HSL_Unlock", "nobody holds the lock"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn threads_take_turns() {
        struct Shared(Hsl, Cell<u64>);
        // SAFETY: the counter is used by whoever has the lock alone.
        unsafe impl Sync for Shared {}
        let shared = Shared(Hsl { state: AtomicU32::new(FREE), rest: [0; 3] }, Cell::new(0));
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
                        // SAFETY: H1.
                        unsafe { unlock(&shared.0) };
                    }
                });
            }
        });
        assert_eq!(shared.1.get(), 60_000);
        // SAFETY: H1.
        unsafe { destroy(&shared.0) };
    }
}
