//! Stopping a process until a debugger has come.
//!
//! # Invariants
//! TZ1. A flag is an `int` of the client's that lasts, or the one of this module. A debugger, a signal and the thread that
//!      waits write it, each the whole of it and at any time; so it is only read and written as volatile.
//! TZ2. The place of the flag that the signal clears is written before the handler is set up, by the one thread that the
//!      lock admits.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::time::Duration;

use gasworks_os::say;
use parking_lot::Mutex;

use crate::{machine, process, settings, text};

/// The flag that a debugger sets to 0.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut gasnet_frozen: c_int = 0;

/// The flag that a signal to go on clears.
static mut WAITS_FOR: *mut c_int = ptr::null_mut();
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const STEP: Duration = Duration::from_millis(50);

extern "C" fn go_on(_signal: c_int) {
    // SAFETY: TZ2 for the place, TZ1 for the flag.
    unsafe { WAITS_FOR.write_volatile(0) };
}

extern "C" fn freeze_here(_signal: c_int) {
    own();
}

fn own() {
    // SAFETY: TZ1 for the flag of this module; the name is a literal.
    unsafe { gasnett_freezeForDebuggerNow(&raw mut gasnet_frozen, c"gasnet_frozen".as_ptr()) };
}

/// Waits until `*flag` is set to 0, or a `SIGCONT` comes.
///
/// # Safety
/// TZ1 for the flag, TX1 for its name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_freezeForDebuggerNow(flag: *mut c_int, name: *const c_char) {
    // SAFETY: TX1, by the caller's promise.
    let name = unsafe { text::read(name) }.unwrap_or_default();
    let _turn = ONE_AT_A_TIME.lock();
    // SAFETY: TZ2: this is the one thread.
    unsafe { WAITS_FOR = flag };
    // SAFETY: TZ1.
    unsafe { flag.write_volatile(1) };
    // SAFETY: TP2: it is one.
    let before =
        unsafe { process::gasnett_reghandler(libc::SIGCONT, go_on as *const () as libc::sighandler_t) };
    say(&format!(
        "*** frozen for a debugger: host {}, process {}. To go on, set {name} to 0 in a debugger, or send SIGCONT",
        machine::hostname(),
        std::process::id()
    ));
    // SAFETY: TZ1.
    while unsafe { flag.read_volatile() } != 0 {
        std::thread::sleep(STEP);
    }
    // SAFETY: TP2: the system gave it.
    unsafe { process::gasnett_reghandler(libc::SIGCONT, before) };
}

/// Freezes the process if `GASNET_FREEZE_ON_ERROR` says so.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_freezeForDebuggerErr() {
    // Read by hand: a bad value must not end a process that is ending.
    let wanted = settings::text(&settings::FREEZE_ON_ERROR).and_then(|v| crate::numbers::answer(&v));
    if wanted == Some(true) {
        own();
    }
}

/// Sets up the signal that freezes the process, if `GASNET_FREEZE_SIGNAL` names one.
pub fn watch() {
    process::handle_named(&settings::FREEZE_SIGNAL, freeze_here);
}

/// Freezes the process if `GASNET_FREEZE` says so; a job calls it when it starts.
pub fn at_start() {
    if settings::is_on(&settings::FREEZE) {
        own();
    }
}
