//! Signals that kill: which rank they end, where it was, and a stop for a debugger, before they do.
//!
//! # Invariants
//! TC1. The handler is a C function of one `int`; it allocates nothing, and puts the system's own action back before the signal is raised
//!      again.

use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;

use gasworks_os::signals;
use nix::sys::signal::Signal;

use crate::environ::value;
use crate::{backtrace, freeze, process, settings};

/// Those by which the system, or `abort`, says that a program cannot go on.
const KILLING: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// The rank that a process is, of how many; there is none without a job.
static RANK: OnceLock<(u32, u32)> = OnceLock::new();

/// Notes which rank this process is, of how many.
pub fn of_rank(rank: u32, size: u32) {
    let _ = RANK.set((rank, size));
}

/// Sets up what is done then, if a setting asks for anything.
pub(crate) fn watch_if_wanted() {
    if settings::is_on(&settings::BACKTRACE) || settings::is_on(&settings::FREEZE_ON_ERROR) {
        watch();
    }
}

/// Sets up what is done then, for all signals that nobody handles, and that are not to be left alone.
pub fn watch() {
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
    // Nothing is allocated here: the program may have been at that. There is nobody to tell that it cannot be said.
    let mut line = [0; 80];
    let mut rest = &mut line[..];
    let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
    let _ = write!(rest, "*** FATAL SIGNAL: {name} ({signal})");
    if let Some((rank, size)) = RANK.get() {
        let _ = write!(rest, " on rank {rank} of {size}");
    }
    let _ = writeln!(rest);
    let left = rest.len();
    let _ = nix::unistd::write(std::io::stderr(), &line[..line.len() - left]);
    backtrace::print_own_if_enabled();
    freeze::gasnett_freezeForDebuggerErr();
    // SAFETY: TC1.
    unsafe {
        process::gasnett_reghandler(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
