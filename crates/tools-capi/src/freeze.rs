//! Stopping a process until a debugger has come.
//!
//! # Invariants
//! - freeze.1: a flag is an `int` of the client's that lasts, or the one of this module. A debugger, a signal and the thread that
//!   waits write it, each the whole of it and at any time; so it is only read and written as volatile.
//! - freeze.2: the place of the flag that the signal clears is written before the handler is set up, by the one thread whose turn it is.
//! - freeze.3: a process may be frozen in a handler of a signal: nothing here allocates, takes a lock of a library or formats.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use gasworks_os::line::Line;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use nix::errno::Errno;

use crate::{host, settings, signals};

/// The flag that a debugger sets to 0.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut gasnet_frozen: c_int = 0;

/// The flag that a signal to go on clears.
static mut WAITS_FOR: *mut c_int = ptr::null_mut();
/// The thread that is frozen, or 0.
static TURN: AtomicU32 = AtomicU32::new(0);
/// Whether a process that a signal kills is frozen before.
static OF_CRASHES: OnceLock<bool> = OnceLock::new();

const STEP: Duration = Duration::from_millis(50);

extern "C" fn go_on(_signal: c_int) {
    // SAFETY: freeze.2: `WAITS_FOR` was written before this handler was set up. freeze.1: the flag lasts, and is written whole, as
    // volatile.
    unsafe { WAITS_FOR.write_volatile(0) };
}

/// Freezes the process when a signal asks for it.
pub(crate) extern "C" fn on_signal(_signal: c_int) {
    // The program goes on after it, and must not see that anything was called.
    let errno = Errno::last_raw();
    own();
    Errno::set_raw(errno);
}

/// Freezes the process, with the flag of this module.
pub(crate) fn own() {
    // SAFETY: freeze.1: the flag is the static of this module, which lasts. Its name is a literal.
    unsafe { gasnett_freezeForDebuggerNow(&raw mut gasnet_frozen, c"gasnet_frozen".as_ptr()) };
}

/// Waits until `*flag` is set to 0, or a `SIGCONT` comes.
///
/// # Safety
/// freeze.1 for the flag; its name is null, or ends with a zero byte and stays as it is while the call lasts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_freezeForDebuggerNow(flag: *mut c_int, name: *const c_char) {
    let this = gasworks_os::process::thread();
    while let Err(other) = TURN.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
        // A thread that is frozen is so already, and a handler on it gives no second turn.
        if other == this {
            return;
        }
        std::thread::sleep(STEP);
    }
    // SAFETY: the caller promises that a name that is not null ends with a zero byte and stays until this returns.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    // SAFETY: freeze.2: this thread holds `TURN`, and the handler that reads the place is set up below.
    unsafe { WAITS_FOR = flag };
    // SAFETY: freeze.1: the caller promises that `flag` points to an `int` that lasts; all write the whole of it.
    unsafe { flag.write_volatile(1) };
    // SAFETY: signals.1: `go_on` is a C function of one `int`, by its type.
    let before =
        unsafe { signals::gasnett_reghandler(libc::SIGCONT, go_on as *const () as libc::sighandler_t) };
    let mut line = Line::new();
    line.text("*** frozen for a debugger: host ").bytes(host::name().to_bytes());
    line.text(", process ").number(std::process::id().into()).text(". To go on, set ");
    line.bytes(name.to_bytes()).text(" to 0 in a debugger, or send SIGCONT").say();
    // SAFETY: freeze.1: `flag` points to an `int` that lasts, and the read is volatile, since a debugger or a signal may write it at any
    // time.
    while unsafe { flag.read_volatile() } != 0 {
        std::thread::sleep(STEP);
    }
    // SAFETY: signals.1: `before` is the action that the system gave for this signal above.
    unsafe { signals::gasnett_reghandler(libc::SIGCONT, before) };
    TURN.store(0, Ordering::Release);
}

/// Freezes the process if `GASNET_FREEZE_ON_ERROR` says so.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_freezeForDebuggerErr() {
    if of_errors() {
        own();
    }
}

fn of_errors() -> bool {
    settings::answer(&settings::FREEZE_ON_ERROR) == Some(true)
}

/// Does before a signal comes what cannot be done in its handler.
pub(crate) fn prepare() {
    host::name();
    OF_CRASHES.get_or_init(of_errors);
}

/// As [`gasnett_freezeForDebuggerErr`], in the handler of a signal that kills.
pub(crate) fn in_a_handler() {
    if OF_CRASHES.get() == Some(&true) {
        own();
    }
}
