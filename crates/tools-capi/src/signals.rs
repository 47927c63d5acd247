//! Signals: what they do, and what they are called.
//!
//! # Invariants
//! - signals.1: a handler of a signal is a C function of one `int`, or one of the system's constants, as the caller promises.
//! - signals.2: a call that takes a number and structures of this function's own touches no other memory.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use gasworks_os::signals;
use libc::sighandler_t;

use crate::text::c_text;

/// Sets up what a signal does, and gives what it did. A call that the signal breaks into is taken up again.
///
/// # Safety
/// signals.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_reghandler(signal: c_int, handler: sighandler_t) -> sighandler_t {
    let mut wanted = MaybeUninit::<libc::sigaction>::zeroed();
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: signals.1: the caller promises a handler. signals.2: `wanted` and `before` are of this function, and zeros are a value of
    // them.
    unsafe {
        let action = wanted.assume_init_mut();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        if libc::sigaction(signal, wanted.as_ptr(), before.as_mut_ptr()) != 0 {
            return libc::SIG_ERR;
        }
        before.assume_init().sa_sigaction
    }
}

/// The name of a signal: `SIGKILL`; `signal 70` where it has none.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_signame_fromval(signal: c_int) -> *const c_char {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    const MOST: c_int = 128;
    let names = NAMES.get_or_init(|| (0..=MOST).map(|n| c_text(&signals::name(n))).collect());
    let name = usize::try_from(signal).ok().and_then(|n| names.get(n));
    name.map_or(c"an unknown signal".as_ptr(), |name| name.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn signals_have_names() {
        // SAFETY: text.1: the function gives a literal or a text in a static that is never changed.
        let name = |n| unsafe { CStr::from_ptr(gasnett_signame_fromval(n)) };
        assert_eq!(name(libc::SIGSEGV), c"SIGSEGV");
        assert_eq!(name(-4), c"an unknown signal");
    }
}
