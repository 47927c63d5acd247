//! System calls for which neither the standard library nor `nix` has a wrapper that fits.
//!
//! # Invariants
//! - sys.1: a buffer goes to the kernel with its own length in bytes, borrowed as the call uses it.
//! - sys.2: what is asked of the kernel about addresses leaves the bytes there as they are; it refuses those that are not mapped.
//! - sys.3: `sysconf` is given a number, and touches no memory of ours.

use gasworks_sync::RawSlice;
use std::io;

fn check(rc: impl Into<i64>) -> io::Result<i64> {
    let rc = rc.into();
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

/// Fills `mask` with the processors of this thread.
pub(crate) fn affinity(mask: &mut [u64]) -> io::Result<()> {
    // SAFETY: sys.1: `mask` is borrowed exclusively and written no further than its length; 0 is this thread. The libc wrapper clears what
    // the kernel does not write.
    check(unsafe { libc::sched_getaffinity(0, std::mem::size_of_val(mask), mask.as_mut_ptr().cast()) })
        .map(drop)
}

/// Binds this thread to the processors of `mask`.
pub(crate) fn set_affinity(mask: &[u64]) -> io::Result<()> {
    // SAFETY: sys.1: `mask` is borrowed and read no further than its length; 0 is this thread.
    check(unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(mask), mask.as_ptr().cast()) }).map(drop)
}

/// Gives advice about mapped bytes that changes none of them: sys.2.
pub(crate) fn advise(bytes: RawSlice, advice: Advice) -> io::Result<()> {
    let advice = match advice {
        Advice::HugePages => libc::MADV_HUGEPAGE,
        Advice::Populate => libc::MADV_POPULATE_WRITE,
    };
    // SAFETY: sys.2: either advice leaves the bytes as they are, and is refused where some are not mapped.
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

/// Sets the policy by which mapped bytes get their memory (`mbind(2)`): sys.1, sys.2. `nodes` is a mask.
pub(crate) fn set_policy(bytes: RawSlice, mode: i32, nodes: &[u64]) -> io::Result<()> {
    // One more than the number of bits: the kernel takes the last one off.
    let bits = size_of_val(nodes) * 8 + 1;
    // SAFETY: sys.1: `nodes` is borrowed and read no further than its bits. sys.2: the bytes keep their contents, and must be mapped.
    let rc =
        unsafe { libc::syscall(libc::SYS_mbind, bytes.as_ptr(), bytes.len(), mode, nodes.as_ptr(), bits, 0) };
    check(rc).map(drop)
}

/// The policy of the byte at `address` (`get_mempolicy(2)`), and its nodes: sys.1.
pub(crate) fn policy(address: *const u8, nodes: &mut [u64]) -> io::Result<i32> {
    const BY_ADDRESS: i32 = 1 << 1;
    let (mut mode, bits) = (0i32, size_of_val(nodes) * 8 + 1);
    // SAFETY: sys.1: `mode` is a local, and `nodes` is borrowed exclusively and written no further than its bits. sys.2: `address` is
    // looked up, not used.
    let rc = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, nodes.as_mut_ptr(), bits, address, BY_ADDRESS)
    };
    check(rc).map(|_| mode)
}

/// The node that the page at `address` lies on (`move_pages(2)` without moving): sys.1.
pub(crate) fn node_of(address: *const u8) -> io::Result<i32> {
    let mut node = 0i32;
    let nowhere = std::ptr::null::<i32>();
    // SAFETY: sys.1: `address` and `node` are locals, for one page and one answer. sys.2: the address is looked up, not used.
    let rc = unsafe {
        libc::syscall(libc::SYS_move_pages, 0, 1usize, &raw const address, nowhere, &raw mut node, 0)
    };
    check(rc)?;
    if node < 0 { Err(io::Error::from_raw_os_error(-node)) } else { Ok(node) }
}

/// How many bytes so many pages are as `sysconf(3)` tells of.
pub(crate) fn pages(of: libc::c_int) -> Option<u64> {
    // SAFETY: sys.3: it is given the number `of`.
    let pages = u64::try_from(unsafe { libc::sysconf(of) }).ok()?;
    pages.checked_mul(page_size() as u64)
}

/// The size of a base page.
pub fn page_size() -> usize {
    // SAFETY: sys.3: it is given the number `_SC_PAGESIZE`.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
