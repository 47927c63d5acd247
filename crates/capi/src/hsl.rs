//! Handler-safe locks, which C keeps where it likes. Their words are C's ([`gasworks_hsl.h`](../include/gasworks_hsl.h)): a mutex, so that
//! conditions are waited for with it. Here is what a thread may not do that has one, and what is wrong with a call.
//!
//! # Invariants
//! As in the crate, and place.1 of [`crate::place`].

use crate::face::fail;
use crate::layout::ERR_NOT_READY;
use crate::place;
pub use gasworks_core::hsl::{left, taken};
use std::ffi::{c_char, c_int, c_void};

/// `gasworks_hsl_check`: the lock, if there can be one.
///
/// # Safety
/// place.1.
pub unsafe fn check(call: *const c_char, lock: *mut c_void) -> *mut c_void {
    if lock.is_null() || !lock.cast::<usize>().is_aligned() {
        // SAFETY: place.1: `call` is a literal: the header's function that checks a lock passes its name in C.
        fail(&unsafe { place::text_of(call) }, format!("there is no lock at {lock:p}"));
    }
    lock
}

/// `gasworks_hsl_wrong`: a mutex refuses what a call wants of a lock, that somebody has or not.
///
/// # Safety
/// place.1.
pub unsafe fn wrong(call: *const c_char, error: c_int, is_taken: c_int) -> c_int {
    // SAFETY: place.1: `call` is a literal: the header's function whose mutex has refused passes its name in C.
    let call = &unsafe { place::text_of(call) };
    match (error, is_taken != 0) {
        (libc::EDEADLK, _) => fail(call, "this thread has the lock already, and it is not recursive"),
        (libc::EPERM, true) => fail(call, "another thread holds the lock"),
        (libc::EPERM, false) if place::is_known() => fail(call, "nobody holds the lock"),
        // It stays as it is. Programs that were never told do so.
        (libc::EPERM, false) => ERR_NOT_READY,
        (libc::EBUSY, _) if call == "gex_HSL_Trylock" => ERR_NOT_READY,
        (libc::EBUSY, _) => fail(call, "the lock is held"),
        (error, _) => fail(call, std::io::Error::from_raw_os_error(error)),
    }
}
