//! Ends with a message, and places in a source.
//!
//! # Invariants
//! - fatal.1: the C library's streams may be flushed at any time; a thread that holds one of them flushes it none the less.
//! - fatal.2: texts from C are so as text.1 says.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::process::abort;

use gasworks_os::say;
use parking_lot::Mutex;

use crate::text::{self, c_text};
use crate::{backtrace, crash, freeze};

/// Places that were asked for. They last as long as the process, because who asked may keep them.
static PLACES: Mutex<BTreeSet<CString>> = Mutex::new(BTreeSet::new());

/// Ends the process with a message: freezes it for a debugger first, and says where it was, if that is wanted.
pub fn end(place: Option<&str>, message: &str) -> ! {
    // What the program said before stands before its end.
    // SAFETY: fatal.1: a null pointer means all streams, which may be flushed from any thread.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    match place {
        Some(place) => say(&format!("*** FATAL ERROR: {message}\n    in {place}")),
        None => say(&format!("*** FATAL ERROR: {message}")),
    }
    freeze::gasnett_freezeForDebuggerErr();
    backtrace::print_if_enabled(libc::STDERR_FILENO);
    crash::expect_abort();
    abort()
}

/// Ends the process with a message from C.
///
/// # Safety
/// fatal.2; the place may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_tools_fatal_text(place: *const c_char, message: *const c_char) -> ! {
    // SAFETY: fatal.2: `place` and `message` are null or texts that stay until this function ends the process.
    let (place, message) = unsafe { (text::read(place), text::read(message)) };
    end(place.as_deref(), &message.unwrap_or_default())
}

/// A place in a source as one text, which lasts.
///
/// # Safety
/// fatal.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasworks_tools_location(
    function: *const c_char,
    file: *const c_char,
    line: c_int,
) -> *mut c_char {
    // SAFETY: fatal.2: `function` and `file` are null or texts that stay until this returns; what is kept is a copy.
    let (function, file) = unsafe { (text::read(function), text::read(file)) };
    let place = format!("{} at {}:{line}", function.unwrap_or_default(), file.unwrap_or_default());
    keep(c_text(&place)).as_ptr().cast_mut()
}

/// The one copy of a text that lasts.
fn keep(place: CString) -> &'static CStr {
    let mut places = PLACES.lock();
    if !places.contains(&place) {
        places.insert(place.clone());
    }
    let kept = places.get(&place).expect("it is there").as_ptr();
    // SAFETY: fatal.2: `kept` points into the static set, of which nothing is ever taken out; a text on the heap does not move with its
    // entry.
    unsafe { CStr::from_ptr(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_once() {
        let place = |line| {
            // SAFETY: fatal.2: the two names are literals, which end with a zero byte.
            unsafe { gasworks_tools_location(c"f".as_ptr(), c"a.c".as_ptr(), line) }
        };
        assert_eq!(place(3), place(3));
        assert_ne!(place(3), place(4));
        // SAFETY: fatal.2: the location is a text in the static set, which lasts.
        assert_eq!(unsafe { CStr::from_ptr(place(3)) }, c"f at a.c:3");
    }
}
