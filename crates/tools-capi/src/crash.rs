//! Signals that kill: where the program was, and a stop for a debugger, before they do.
//!
//! # Invariants
//! TC1. The handler is a C function of one `int`; it writes texts that last, and puts the system's own action back before the signal is
//!      raised again.

use std::ffi::{CStr, c_int};

use gasworks_os::signals;

use crate::environ::value;
use crate::{backtrace, freeze, process, settings};

/// Those by which the system, or `abort`, says that a program cannot go on.
const KILLING: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// Sets up what is done then, if a setting asks for anything, for all signals that nobody handles, and that are not to be left alone.
pub fn watch() {
    if !settings::is_on(&settings::BACKTRACE) && !settings::is_on(&settings::FREEZE_ON_ERROR) {
        return;
    }
    let alone = value(c"GASNET_NO_CATCH_SIGNAL").unwrap_or_default();
    for signal in KILLING {
        if signals::is_among(&alone, signal) {
            continue;
        }
        // SAFETY: TC1.
        unsafe {
            let before = process::gasnett_reghandler(signal, on_signal as *const () as libc::sighandler_t);
            if before != libc::SIG_DFL {
                process::gasnett_reghandler(signal, before);
            }
        }
    }
}

/// `abort` is called next, of which all has been said.
pub(crate) fn expect_abort() {
    // SAFETY: TC1: the system's own.
    unsafe { process::gasnett_reghandler(libc::SIGABRT, libc::SIG_DFL) };
}

extern "C" fn on_signal(signal: c_int) {
    // Nothing is allocated here: the program may have been at that.
    // SAFETY: TC1: names last, and were made before.
    let name = unsafe { CStr::from_ptr(process::gasnett_signame_fromval(signal)) };
    for text in [b"*** Caught a fatal signal: ", name.to_bytes(), b"\n"] {
        let _ = nix::unistd::write(std::io::stderr(), text);
    }
    backtrace::print_own_if_enabled();
    freeze::gasnett_freezeForDebuggerErr();
    // SAFETY: TC1.
    unsafe {
        process::gasnett_reghandler(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
