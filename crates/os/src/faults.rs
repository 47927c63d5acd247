//! What happens when shared memory cannot be backed: a message that names it, instead of a bare `SIGBUS`.
//!
//! # Invariants
//! - faults.1: the handler calls only async-signal-safe functions, takes no lock and allocates nothing; what it reads is the
//!   table of atomics in [`jobs`].
//! - faults.2: the handler that was there before is stored before ours can run, and is called as its flags say.
//! - faults.3: the kernel gives a handler installed with `SA_SIGINFO` a valid `siginfo_t`, which for a `SIGBUS` of its own
//!   (a positive code) holds an address.

use gasworks_sync::RawSlice;
use gasworks_sync::atomic::Ordering;

use crate::jobs::{self, Guard};
use crate::line::Line;
use crate::{OsError, Result};

const NOT: u32 = 0;
const BEING: u32 = 1;
const DONE: u32 = 2;

/// Names a range of shared memory in the report of a fault, and installs the reporter if that was not done before.
/// `name` reads like `segment of rank 1 (job X)`.
pub fn name_range(bytes: RawSlice, name: &str) -> Result<Guard> {
    install()?;
    Ok(jobs::enter_range(bytes, name))
}

fn install() -> Result<()> {
    let state = jobs::faults();
    match state.installed.compare_exchange(NOT, BEING, Ordering::AcqRel, Ordering::Acquire) {
        Err(DONE) => return Ok(()),
        // Another thread is at it; its range is named a moment before ours could fault.
        Err(_) => return Ok(()),
        Ok(_) => {}
    }
    // SAFETY: all zeroes is a valid sigaction; both structures live through the calls. faults.2: the present handler is
    // asked for and stored before ours is installed. The address is that of a function with the three-argument form
    // that SA_SIGINFO announces, and it keeps faults.1. SA_ONSTACK: a thread that overflowed its stack can report too.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        let mut wanted: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut present) != 0 {
            state.installed.store(NOT, Ordering::Release);
            return Err(OsError::last("read the handler of", "SIGBUS"));
        }
        state.previous.store(present.sa_sigaction, Ordering::Release);
        state.previous_flags.store(present.sa_flags as u32, Ordering::Release);
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        wanted.sa_sigaction = handler as usize;
        wanted.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &raw const wanted, std::ptr::null_mut()) != 0 {
            state.installed.store(NOT, Ordering::Release);
            return Err(OsError::last("install a handler for", "SIGBUS"));
        }
    }
    state.installed.store(DONE, Ordering::Release);
    Ok(())
}

extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let state = jobs::faults();
    // SAFETY: faults.3: this handler is only installed with SA_SIGINFO, so `info` is valid; the address is used if the code is positive.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let faulted = code > 0;
    let first = state.reported.fetch_add(1, Ordering::AcqRel) == 0;
    if faulted && first {
        report(address);
    }
    let previous = state.previous.load(Ordering::Acquire);
    if previous == libc::SIG_IGN && !faulted {
        return;
    }
    if previous != libc::SIG_DFL && previous != libc::SIG_IGN {
        let with_info = state.previous_flags.load(Ordering::Acquire) & libc::SA_SIGINFO as u32 != 0;
        // SAFETY: faults.2: `previous` was installed as a handler, of the form that `previous_flags` announces.
        unsafe {
            if with_info {
                let f: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(previous);
                f(signal, info, context);
            } else {
                let f: extern "C" fn(i32) = std::mem::transmute(previous);
                f(signal);
            }
        }
        // It mended the fault, or put the default action back for the access that comes again.
        return;
    }
    // SAFETY: faults.1: sigaction and raise are async-signal-safe; all zeroes is SIG_DFL without flags. The signal is
    // blocked while this handler runs, and kills when it returns.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        libc::raise(signal);
    }
}

fn report(address: usize) {
    let Some((name, offset)) = jobs::range_of(address) else { return };
    let mut line = Line::new();
    line.who().bytes(name.as_bytes()).text(" cannot be backed with memory at byte ").number(offset as u64);
    line.text(": the machine, its control group or its huge pages are exhausted, or the file was cut").say();
}
