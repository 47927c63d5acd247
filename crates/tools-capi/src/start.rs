//! What a program sets up as it starts: signals at which it says where it is, or stops for a debugger, also before they kill it.
//!
//! # Invariants
//! - start.1: the program's name from C is null, or a text as text.1 says.

use std::ffi::{c_char, c_int};

use gasworks_os::settings::Setting;
use gasworks_os::signals::named;

use crate::environ::{is_on, warn};
use crate::{backtrace, crash, freeze, machine, settings, signals};

/// Notes the program's name, and sets up the signals that print a backtrace or freeze the process.
///
/// # Safety
/// start.1 for the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_backtrace_init(program: *const c_char) {
    // SAFETY: start.1: the caller promises that `program` is null or a text that stays until this returns.
    unsafe { machine::note_program(program) };
    let known = backtrace::known();
    for name in backtrace::wanted() {
        if !known.contains(&name) {
            warn(&format!("GASNET_BACKTRACE_TYPE names '{name}', which is none of {}", known.join(", ")));
        }
    }
    backtrace::prepare(is_on(&settings::BACKTRACE));
    if is_on(&settings::BACKTRACE) || is_on(&settings::FREEZE_ON_ERROR) {
        crash::watch();
    }
    handle_named(&settings::BACKTRACE_SIGNAL, backtrace::on_signal);
    freeze::prepare();
    handle_named(&settings::FREEZE_SIGNAL, freeze::on_signal);
}

/// Sets up a handler for the signal that a variable names, if it names one.
fn handle_named(setting: &Setting, handler: extern "C" fn(c_int)) {
    let Some(name) = settings::text(setting).filter(|name| !name.trim().is_empty()) else { return };
    match named(&name) {
        Some(signal) => {
            // SAFETY: signals.1: `handler` is a C function of one `int`, by its type here.
            unsafe { signals::gasnett_reghandler(signal, handler as *const () as libc::sighandler_t) };
        }
        None => warn(&format!("{} is '{name}', which is no signal", setting.name)),
    }
}

/// Freezes the process if `GASNET_FREEZE` says so; a job calls it when it starts.
pub fn freeze_if_wanted() {
    if is_on(&settings::FREEZE) {
        freeze::own();
    }
}
