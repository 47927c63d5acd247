//! The process: its streams, limits and end.
//!
//! # Invariants
//! - process.1: the streams of the C library are there from the start of the process, and are its functions' to touch.
//! - process.2: a call that takes numbers alone, or a structure of this function's own, touches no other memory.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use libc::FILE;

use crate::environ::{is_on, is_set};
use crate::settings;
use crate::text::{self, c_text};

unsafe extern "C" {
    static stdin: *mut FILE;
    static stdout: *mut FILE;
    static stderr: *mut FILE;
}

/// Gives other threads the processor.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_sched_yield() {
    std::thread::yield_now();
}

/// Sleeps that long, whatever signals arrive.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_nsleep(ns: u64) -> c_int {
    std::thread::sleep(Duration::from_nanos(ns));
    0
}

/// Writes out what the streams hold; with `GASNET_FS_SYNC` the system's files as well.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_flush_streams() {
    // SAFETY: process.1: a null pointer means all streams, which the C library locks one by one as it writes them out.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    if is_on(&settings::FS_SYNC) {
        sync_files();
    }
    gasnett_sched_yield();
}

/// Has the system write all files to their devices.
pub fn sync_files() {
    nix::unistd::sync();
}

/// Closes the three streams that every program has.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_close_streams() {
    // SAFETY: process.1: the three are open, since a program calls this once, right before its end, and uses them no more.
    unsafe {
        libc::fclose(stdin);
        libc::fclose(stdout);
        libc::fclose(stderr);
    }
}

/// Ends the process at once: no function of `atexit` runs.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_killmyprocess(code: c_int) -> ! {
    // SAFETY: process.2: the call takes one number and does not return.
    unsafe { libc::_exit(code) }
}

/// Raises the limits of the process as far as it may. Gives 1 if all are there.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_maximize_rlimits() -> c_int {
    let wanted = settings::MAXIMIZE.into_iter().filter(|(_, setting)| is_on(setting));
    // Each is tried, whatever became of the one before.
    c_int::from(wanted.filter(|(resource, _)| !raised(*resource)).count() == 0)
}

/// Raises one limit as far as the process may, unless a variable `GASNET_MAXIMIZE_` and its name forbids it. Gives 1 if it is
/// there.
///
/// # Safety
/// text.1 for the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_maximize_rlimit(resource: c_int, name: *const c_char) -> c_int {
    // SAFETY: text.1: the caller promises that `name` is null or a text that stays until this returns.
    let name = unsafe { text::read(name) }.unwrap_or_default();
    let is_wanted = is_set(&c_text(&format!("GASNET_MAXIMIZE_{name}")), true);
    c_int::from(!is_wanted || raised(resource as libc::__rlimit_resource_t))
}

fn raised(resource: libc::__rlimit_resource_t) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: process.2: the call writes `limit` alone, which is of this function.
    if unsafe { libc::getrlimit(resource, &mut limit) } != 0 {
        return false;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: process.2: the call reads `limit` alone, which is of this function.
    unsafe { libc::setrlimit(resource, &limit) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_limit_is_raised_to_the_hard_one() {
        let limit = || {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: process.2: `limit` is of this closure, and all that the call writes.
            assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_CORE, &mut limit) }, 0);
            limit
        };
        let lowered = libc::rlimit { rlim_cur: 0, ..limit() };
        // SAFETY: process.2: `lowered` is of this test, and all that the call reads.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &lowered) }, 0);
        assert!(raised(libc::RLIMIT_CORE));
        assert_eq!(limit().rlim_cur, lowered.rlim_max);
        assert!(!raised(9999));
    }
}
