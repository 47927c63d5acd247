//! System calls for which neither the standard library nor `nix` has a wrapper that fits.
//!
//! # Invariants
//! S1. A buffer goes to the kernel with its own length in bytes, borrowed as the call uses it.
//! S2. A [`RawBytes`] is mapped while it is used, by its own contract, and what is asked of the kernel about it leaves its
//!     bytes as they are.

use gasworks_sync::RawBytes;
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

/// Gives advice about mapped bytes that changes none of them: S2.
pub(crate) fn advise(bytes: RawBytes, advice: Advice) -> io::Result<()> {
    let advice = match advice {
        Advice::HugePages => libc::MADV_HUGEPAGE,
        Advice::Populate => libc::MADV_POPULATE_WRITE,
    };
    // SAFETY: S2.
    check(unsafe { libc::madvise(bytes.as_ptr().cast(), bytes.len(), advice) }).map(drop)
}

/// What `madvise(2)` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Back them with transparent huge pages.
    HugePages,
    /// Back them with memory now.
    Populate,
}

/// Sets the policy by which mapped bytes get their memory (`mbind(2)`): S1, S2. `nodes` is a mask.
pub(crate) fn set_policy(bytes: RawBytes, mode: i32, nodes: &[u64]) -> io::Result<()> {
    // One more than the number of bits: the kernel takes the last one off.
    let bits = size_of_val(nodes) * 8 + 1;
    // SAFETY: S1, S2.
    let rc =
        unsafe { libc::syscall(libc::SYS_mbind, bytes.as_ptr(), bytes.len(), mode, nodes.as_ptr(), bits, 0) };
    check(rc).map(drop)
}

/// The policy of the byte at `address` (`get_mempolicy(2)`), and its nodes: S1.
pub(crate) fn policy(address: *const u8, nodes: &mut [u64]) -> io::Result<i32> {
    const BY_ADDRESS: i32 = 1 << 1;
    let (mut mode, bits) = (0i32, size_of_val(nodes) * 8 + 1);
    // SAFETY: S1; the address is looked up, not used.
    let rc = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, nodes.as_mut_ptr(), bits, address, BY_ADDRESS)
    };
    check(rc).map(|_| mode)
}

/// The node that the page at `address` lies on (`move_pages(2)` without moving): S1.
pub(crate) fn node_of(address: *const u8) -> io::Result<i32> {
    let mut node = 0i32;
    let nowhere = std::ptr::null::<i32>();
    // SAFETY: S1: one page, one answer; the address is looked up, not used.
    let rc = unsafe {
        libc::syscall(libc::SYS_move_pages, 0, 1usize, &raw const address, nowhere, &raw mut node, 0)
    };
    check(rc)?;
    if node < 0 { Err(io::Error::from_raw_os_error(-node)) } else { Ok(node) }
}
