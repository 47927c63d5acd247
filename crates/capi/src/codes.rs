//! The codes that calls return: what they are called and mean, and why one is returned, which is said unless C sees to that itself.

use crate::face::fail;
use crate::layout::{ERR_BAD_ARG, ERR_BARRIER_MISMATCH, ERR_NOT_INIT, ERR_NOT_READY, ERR_RESOURCE, OK};
use crate::place;
use gasworks_sync::atomic::AtomicU32;
use gasworks_sync::atomic::Ordering::Relaxed;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Display;

/// Whether calls that return a code say why.
static VERBOSE: AtomicU32 = AtomicU32::new(1);

/// `gex_System_GetVerboseErrors`.
pub fn is_verbose() -> c_int {
    VERBOSE.load(Relaxed) as c_int
}

/// `gex_System_SetVerboseErrors`.
pub fn set_verbose(verbose: c_int) {
    VERBOSE.store(u32::from(verbose != 0), Relaxed);
}

/// Says why a call returns a code, if that is wanted.
fn say(what: impl Display) {
    if is_verbose() != 0 {
        gasworks_os::say(&what.to_string());
    }
}

/// An argument cannot be used of a call that returns a code, which is returned. Why is said unless C wants to see to codes itself;
/// and a program that is compiled for debugging ends then.
#[cold]
pub(crate) fn refused(call: &str, what: impl Display, code: c_int) -> c_int {
    if is_verbose() != 0 && place::is_known() {
        fail(call, what);
    }
    say(format!("{call}: {what}"));
    code
}

/// A code, what it is called, and what it says.
const CODES: [(c_int, &CStr, &CStr); 6] = [
    (OK, c"GASNET_OK", c"all is well"),
    (ERR_NOT_INIT, c"GASNET_ERR_NOT_INIT", c"there is no job: gex_Client_Init comes first"),
    (ERR_RESOURCE, c"GASNET_ERR_RESOURCE", c"there is not as much as was asked for"),
    (ERR_BAD_ARG, c"GASNET_ERR_BAD_ARG", c"an argument cannot be used"),
    (ERR_NOT_READY, c"GASNET_ERR_NOT_READY", c"it is not done yet"),
    (ERR_BARRIER_MISMATCH, c"GASNET_ERR_BARRIER_MISMATCH", c"ranks came to the barrier by different names"),
];

/// `gasnet_ErrorName`.
pub fn error_name(code: c_int) -> *const c_char {
    CODES.iter().find(|known| known.0 == code).map_or(c"*unknown*", |known| known.1).as_ptr()
}

/// `gasnet_ErrorDesc`.
pub fn error_text(code: c_int) -> *const c_char {
    CODES.iter().find(|known| known.0 == code).map_or(c"a code that is none", |known| known.2).as_ptr()
}
