//! Signals that kill: which rank they end, where it was, and a stop for a debugger, before they do.
//!
//! # Invariants
//! - crash.1: the handler is a C function of one `int`; it allocates nothing, takes no lock, and puts the system's own action back before
//!   the signal is raised again. What settings say was read before it was set up.

use std::ffi::c_int;
use std::sync::OnceLock;

use gasworks_os::line::Line;
use gasworks_os::signals::is_among;
use nix::sys::signal::Signal;

use crate::variable::value;
use crate::{backtrace, freeze, signals};

/// Those by which the system, or `abort`, says that a program cannot go on.
const KILLING: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// The rank that a process is, of how many; there is none without a job.
static RANK: OnceLock<(u32, u32)> = OnceLock::new();

/// Notes which rank this process is, of how many.
pub fn of_rank(rank: u32, size: u32) {
    let _ = RANK.set((rank, size));
}

/// Sets up what is done then, for all signals that nobody handles, and that are not to be left alone.
pub fn watch() {
    freeze::prepare();
    let alone = value(c"GASNET_NO_CATCH_SIGNAL").unwrap_or_default();
    for signal in KILLING {
        if is_among(&alone, signal) {
            continue;
        }
        // SAFETY: crash.1: `on_signal` is a C function of one `int`; `before` is what the system had for this very signal.
        unsafe {
            let before = signals::gasnett_reghandler(signal, on_signal as *const () as libc::sighandler_t);
            if before != libc::SIG_DFL {
                signals::gasnett_reghandler(signal, before);
            }
        }
    }
}

/// `abort` is called next, of which all has been said.
pub(crate) fn expect_abort() {
    // SAFETY: crash.1: `SIG_DFL` is the system's own action, no function of the program.
    unsafe { signals::gasnett_reghandler(libc::SIGABRT, libc::SIG_DFL) };
}

extern "C" fn on_signal(signal: c_int) {
    // The program may have been at allocating, or hold any lock.
    let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
    let mut line = Line::new();
    line.text("*** FATAL SIGNAL: ").text(name).text(" (").number(signal as u64).text(")");
    if let Some(&(rank, size)) = RANK.get() {
        line.text(" on rank ").number(rank.into()).text(" of ").number(size.into());
    }
    line.say();
    backtrace::print_own_if_enabled();
    freeze::in_a_handler();
    // SAFETY: crash.1: `SIG_DFL` is the system's own action, so the signal that is raised next, by its number, runs nothing of the program.
    unsafe {
        signals::gasnett_reghandler(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
