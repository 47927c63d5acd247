//! What the library is: its version, and the modes of clients that it is for.
//!
//! An object of a client names one of the four `gasnett_linkconfig_` symbols, by its own mode. The archive as built has all
//! four; an installed library keeps the one of its mode, the others being made local, so that the wrong library does not link.
//!
//! # Invariants
//! - library.1: these symbols have these names once in a program. Nothing in this library touches the one that is no constant.

use std::ffi::{c_char, c_int};

const MAJOR: u64 = 2025;
const MINOR: u64 = 8;
const PATCH: u64 = 0;

macro_rules! modes {
    ($($name:ident: $what:literal,)*) => {
        $(
            #[doc = concat!("For clients ", $what, ".")]
            // SAFETY: library.1: nothing else in a program has this name, and the number behind it is a constant.
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static $name: c_int = 1;
        )*
    };
}

modes! {
    gasnett_linkconfig_SEQ_NDEBUG: "with one thread",
    gasnett_linkconfig_SEQ_DEBUG: "with one thread, to be debugged",
    gasnett_linkconfig_PAR_NDEBUG: "with several threads",
    gasnett_linkconfig_PAR_DEBUG: "with several threads, to be debugged",
}

/// Stands for fences in clients that are built for the thread sanitizer; they alone touch it, atomically.
// SAFETY: library.1: nothing else in a program has this name; Rust code neither reads nor writes it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut gasworks_tools_fence_place: c_int = 0;

/// What makes a program slow, for the reader of its timings; empty if nothing does.
#[unsafe(no_mangle)]
pub extern "C" fn gasworks_tools_performance_warning(debug: c_int) -> *const c_char {
    if debug == 0 {
        return c"".as_ptr();
    }
    c"        Built with GASNET_DEBUG: it checks itself and is slow. Its timings say nothing.\n".as_ptr()
}

/// The release of GASNet-EX whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_release_version_str() -> *const c_char {
    c"2025.8.0".as_ptr()
}

/// The same as a number that grows: two decimal digits for the second part, four for the last.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_release_version() -> u64 {
    (MAJOR * 100 + MINOR) * 10_000 + PATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_and_the_number_are_one_version() {
        // SAFETY: the function gives a literal, which ends with a zero byte and lasts as long as the program.
        let text = unsafe { std::ffi::CStr::from_ptr(gasnett_release_version_str()) };
        assert_eq!(text.to_string_lossy(), format!("{MAJOR}.{MINOR}.{PATCH}"));
        assert_eq!(gasnett_release_version(), 2_025_080_000);
    }
}
