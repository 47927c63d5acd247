//! Calls that wait, and threads that end in them.
//!
//! A client may cancel a thread that is in a call (libfabric ends its threads so, which wait in `GNI_CqVectorMonitor` and
//! `GNI_PostdataProbeWaitById`). The C library ends such a thread at the next of its own calls that allow it, by unwinding its
//! stack, and where that is in the midst of our work nobody says what becomes of it. So what a call does is done with that put off;
//! a call that waits is tried again and again, from the beginning, and between two tries the thread may end: then nothing of ours
//! is on its stack but the function that C has called, which has nothing to clean up.
//!
//! # Invariants
//! - waiting.1: the functions are the C library's, of these types.
//! - waiting.2: whoever may be ended at [`may_end`] has nothing on its stack that is to be dropped, up to the frame of C; and what is
//!   between may be unwound.

use std::cell::Cell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use gasworks_gni_sys::{GNI_RC_TIMEOUT, gni_return_t};

/// What a try gives that is to be followed by another: no code.
pub(super) const AGAIN: gni_return_t = gni_return_t::MAX;
/// How often somebody who waits gives way to others before it sleeps, and how long it sleeps at most.
const YIELDS: u32 = 50;
const SLEEP: Duration = Duration::from_micros(500);

/// `PTHREAD_CANCEL_DISABLE`
const PUT_OFF: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// While this lives the thread does not end.
struct Steady(c_int);

impl Steady {
    fn begin() -> Self {
        let mut before = 0;
        // SAFETY: waiting.1: it is the C library's function, and writes one number, for which `before` has room.
        unsafe { pthread_setcancelstate(PUT_OFF, &raw mut before) };
        Self(before)
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // A panic does not leave the library: C has no place for it.
        if std::thread::panicking() {
            std::process::abort();
        }
        // SAFETY: waiting.1: it is the C library's function, and may be given no place for what was before.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}

/// Does something during which the thread does not end.
pub(super) fn steadily<T>(act: impl FnOnce() -> T) -> T {
    let _steady = Steady::begin();
    act()
}

/// The thread ends here, if that was asked for.
///
/// # Safety
/// waiting.2.
pub(super) unsafe fn may_end() {
    // SAFETY: waiting.1: it is the C library's function. waiting.2: the caller promises that nothing on the stack, up to the frame
    // of C, is to be dropped, and that all of it may be unwound.
    unsafe { pthread_testcancel() };
}

thread_local! {
    /// When the call that this thread is in began to wait, and how often it was tried since; 0 where it has not.
    static WAIT: Cell<(Option<Instant>, u32)> = const { Cell::new((None, 0)) };
}

/// What a call waits for has not come: rests a little, for [`AGAIN`].
///
/// # Errors
/// `GNI_RC_TIMEOUT`: `limit` is over.
pub(super) fn not_yet(limit: Option<Duration>) -> gni_return_t {
    let (begun, tries) = WAIT.get();
    let begun = begun.unwrap_or_else(Instant::now);
    if limit.is_some_and(|limit| begun.elapsed() >= limit) {
        return GNI_RC_TIMEOUT;
    }
    WAIT.set((Some(begun), tries.saturating_add(1)));
    match tries.checked_sub(YIELDS) {
        None => std::thread::yield_now(),
        Some(more) => std::thread::sleep(Duration::from_micros(u64::from(more) + 1).min(SLEEP)),
    }
    AGAIN
}

/// Whether this is a call's first try.
pub(super) fn is_first() -> bool {
    WAIT.get().0.is_none()
}

/// The call that has waited is over.
pub(super) fn over() {
    WAIT.set((None, 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_when_its_time_is_over_and_the_next_begins_anew() {
        for _ in 0..2 {
            let begun = Instant::now();
            let mut tries = 0;
            while not_yet(Some(Duration::from_millis(20))) == AGAIN {
                tries += 1;
            }
            over();
            assert!(tries > 0 && begun.elapsed() >= Duration::from_millis(20));
        }
        assert_eq!(not_yet(Some(Duration::ZERO)), GNI_RC_TIMEOUT);
        assert_eq!((is_first(), not_yet(None), is_first()), (true, AGAIN, false));
        over();
    }
}
