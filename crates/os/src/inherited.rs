//! Descriptors that whoever started this process left open for it, known by number only.
//!
//! # Invariants
//! - inherited.1: the number is only used to ask about it and to make a duplicate, which is ours alone; the original is never closed here.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use crate::{OsError, Result};

/// A duplicate of the inherited stream socket `number`; neither it nor the original passes on to programs that this
/// process starts from now on. Anything else than an open socket is an error.
pub fn socket(number: i32) -> Result<OwnedFd> {
    take(number, libc::S_IFSOCK, "it is not a socket")
}

/// As [`socket`], for an inherited memory file.
pub fn memory(number: i32) -> Result<OwnedFd> {
    take(number, libc::S_IFREG, "it is not a file")
}

fn take(number: i32, wanted: libc::mode_t, refusal: &'static str) -> Result<OwnedFd> {
    const OPERATION: &str = "use the inherited descriptor";
    // SAFETY: inherited.1: the call duplicates `number` and is given no pointer; a number that is not open makes it fail.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(OsError::last(OPERATION, number));
    }
    // SAFETY: inherited.1: the call has just returned `copy`, so it is open, and nobody else knows the number.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    let kind = nix::sys::stat::fstat(copy.as_fd()).map_err(|e| OsError::new(OPERATION, number, e))?.st_mode;
    if kind & libc::S_IFMT != wanted {
        return Err(OsError::other(OPERATION, number, refusal));
    }
    // SAFETY: inherited.1: the call sets a flag of `number`, which stays open, and is given no pointer.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(OsError::last(OPERATION, number));
    }
    Ok(copy)
}

/// Whether a descriptor of this number is open.
pub(crate) fn is_open(number: i32) -> bool {
    // SAFETY: inherited.1: the call reads a flag of `number` and is given no pointer; a number that is not open makes it fail.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// Lets the descriptor pass on to the programs that this process starts.
pub fn let_pass(fd: impl AsFd) -> Result<()> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))
        .map(drop)
        .map_err(|e| OsError::new("pass on", "a descriptor", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_what_was_promised_is_taken() {
        let (a, _b) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let copy = socket(a.as_raw_fd()).expect("a socket");
        assert_ne!(copy.as_raw_fd(), a.as_raw_fd());
        let file = std::fs::File::open("/dev/null").expect("open");
        let refused = socket(file.as_raw_fd()).expect_err("a file").to_string();
        assert!(refused.contains("it is not a socket"), "{refused}");
        assert!(socket(-1).is_err());
        let shared = crate::memfd::create("inherited", 4096).expect("a memfd");
        let copy = memory(shared.as_fd().as_raw_fd()).expect("a file");
        assert_eq!(crate::memfd::size_of_file(copy.as_fd()).expect("its size"), 4096);
        assert!(memory(a.as_raw_fd()).expect_err("a socket").to_string().contains("it is not a file"));
    }
}
