//! The system calls of the engine, each repeated when a signal interrupts it.
//!
//! # Invariants
//! - sys.1: a descriptor that `accept4` returned is new, open and ours alone: it becomes an `OwnedFd` at once, exactly once.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{self, MsgFlags, SockFlag};

fn again<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

pub(crate) fn accept(listener: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = again(|| match socket::accept4(listener.as_raw_fd(), flags) {
        // The connection died while it waited: the next, please.
        Err(Errno::ECONNABORTED | Errno::EPROTO) => Err(Errno::EINTR),
        other => other,
    })?;
    // SAFETY: sys.1: `accept4` has just returned `fd`, and nobody else knows the number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `socket`: the shorter way through the system.
#[inline]
pub(crate) fn read(fd: BorrowedFd<'_>, socket: bool, into: &mut [u8]) -> nix::Result<usize> {
    again(|| match socket {
        true => socket::recv(fd.as_raw_fd(), into, MsgFlags::empty()),
        false => nix::unistd::read(fd, &mut *into),
    })
}

pub(crate) fn readv(fd: BorrowedFd<'_>, into: &mut [IoSliceMut<'_>]) -> nix::Result<usize> {
    again(|| nix::sys::uio::readv(fd, into))
}

/// `socket`: a broken one gives an error instead of a signal. A broken pipe gives both, where `SIGPIPE` is not ignored.
#[inline]
pub(crate) fn write(fd: BorrowedFd<'_>, socket: bool, from: &[u8]) -> nix::Result<usize> {
    again(|| match socket {
        true => socket::send(fd.as_raw_fd(), from, MsgFlags::MSG_NOSIGNAL),
        false => nix::unistd::write(fd, from),
    })
}

pub(crate) fn writev(fd: BorrowedFd<'_>, socket: bool, from: &[IoSlice<'_>]) -> nix::Result<usize> {
    again(|| match socket {
        true => socket::sendmsg::<()>(fd.as_raw_fd(), from, &[], MsgFlags::MSG_NOSIGNAL, None),
        false => nix::sys::uio::writev(fd, from),
    })
}

/// Whether a transfer would not block now; also if it would fail.
pub(crate) fn is_ready(fd: BorrowedFd<'_>, what: PollFlags) -> nix::Result<bool> {
    again(|| poll(&mut [PollFd::new(fd, what)], PollTimeout::ZERO)).map(|ready| ready > 0)
}

/// Makes reads and writes of a descriptor return instead of waiting. It changes the open file, for everybody who
/// shares it.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> nix::Result<OFlag> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    if !flags.contains(OFlag::O_NONBLOCK) {
        fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    }
    Ok(flags)
}

pub(crate) fn set_cloexec(fd: BorrowedFd<'_>) -> nix::Result<()> {
    let flags = FdFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFD)?);
    if !flags.contains(FdFlag::FD_CLOEXEC) {
        fcntl(fd, FcntlArg::F_SETFD(flags | FdFlag::FD_CLOEXEC))?;
    }
    Ok(())
}
