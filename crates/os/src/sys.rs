//! System calls for which neither the standard library nor `nix` has a wrapper that fits.
//!
//! # Invariants
//! S1. A buffer goes to the kernel with its own length in bytes, borrowed as the call uses it.

use std::io;

fn check(rc: impl Into<i64>) -> io::Result<i64> {
    let rc = rc.into();
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

/// Fills `mask` with the processors of this thread.
pub(crate) fn affinity(mask: &mut [u64]) -> io::Result<()> {
    // SAFETY: S1; 0 is this thread. The libc wrapper clears what the kernel does not write.
    check(unsafe { libc::sched_getaffinity(0, std::mem::size_of_val(mask), mask.as_mut_ptr().cast()) })
        .map(drop)
}

/// Binds this thread to the processors of `mask`.
pub(crate) fn set_affinity(mask: &[u64]) -> io::Result<()> {
    // SAFETY: S1; 0 is this thread.
    check(unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(mask), mask.as_ptr().cast()) }).map(drop)
}
