//! FIFOs (`fifo(7)`), whose writers learn of the reader's end by `EPIPE`, and not by `SIGPIPE`.
//!
//! A writer could keep the FIFO open for reading as well, and so never raise the signal: but then nobody would learn of the reader's end, other writers among them. The disposition of the
//! signal is the program's. So the system is asked not to raise it (`RWF_NOSIGNAL`, Linux 6.18); where it does not know that, the signal is blocked for this thread while it writes, and
//! taken if it was raised.
//!
//! # Invariants
//! - fifo.1: what a call is given is borrowed until it returns, and only read; or it is a structure of the type that the call names, for which all zeroes is valid.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use crate::{OsError, Result};

/// So many bytes are written at once or not at all.
pub const ATOMIC: usize = libc::PIPE_BUF;
/// `RWF_NOSIGNAL`, which `libc` does not have.
const NO_SIGNAL: libc::c_int = 0x100;
/// What a pipe holds if nobody has said otherwise.
const CAPACITY: usize = 64 << 10;

/// A FIFO, to be read.
#[derive(Debug)]
pub struct FifoReader(OwnedFd);

impl FifoReader {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Reads what has come, without waiting: how many bytes.
    ///
    /// # Errors
    /// The system refuses.
    #[inline]
    pub fn read(&self, into: &mut [u8]) -> Result<usize> {
        loop {
            return match nix::unistd::read(&self.0, into) {
                Ok(count) => Ok(count),
                Err(Errno::EAGAIN) => Ok(0),
                Err(Errno::EINTR) => continue,
                Err(error) => Err(OsError::new("read", "a FIFO", error)),
            };
        }
    }

    /// How many bytes it holds. Whoever has it open can change that.
    pub fn capacity(&self) -> usize {
        let asked = fcntl(&self.0, FcntlArg::F_GETPIPE_SZ);
        asked.ok().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(CAPACITY)
    }
}

impl AsFd for FifoReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What became of bytes that were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of them lie in the FIFO.
    Done,
    /// There is no room for all of them now, and none was written.
    Full,
    /// Nobody reads the FIFO any more (`EPIPE`).
    Broken,
}

/// A FIFO, to be written to.
#[derive(Debug)]
pub struct FifoWriter {
    fd: OwnedFd,
    /// Whether the system can be asked to raise no signal, as far as is known.
    asks: AtomicBool,
}

impl FifoWriter {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { fd, asks: AtomicBool::new(true) }
    }

    /// Writes at most [`ATOMIC`] bytes, all or none, without waiting. The calling thread gets no `SIGPIPE`.
    ///
    /// # Errors
    /// They are more, or the system refuses.
    pub fn write(&self, bytes: &[u8]) -> Result<Written> {
        let failed = |error| OsError::new("write to", "a FIFO", error);
        if bytes.len() > ATOMIC {
            return Err(failed(Errno::EMSGSIZE));
        }
        loop {
            let written = match self.asks.load(Relaxed) {
                true => self.write_without_signal(bytes),
                false => blocked(|| nix::unistd::write(&self.fd, bytes)),
            };
            return match written {
                Ok(_) => Ok(Written::Done),
                Err(Errno::EAGAIN) => Ok(Written::Full),
                Err(Errno::EPIPE) => Ok(Written::Broken),
                Err(Errno::EINTR) => continue,
                Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL) if self.asks.load(Relaxed) => {
                    self.asks.store(false, Relaxed);
                    continue;
                }
                Err(error) => Err(failed(error)),
            };
        }
    }

    fn write_without_signal(&self, bytes: &[u8]) -> nix::Result<usize> {
        let part = IoSlice::new(bytes);
        // SAFETY: fifo.1: `IoSlice` is laid out as `iovec`; an offset of -1 is the file's own position, which a FIFO has not.
        let count = unsafe {
            libc::pwritev2(self.fd.as_raw_fd(), (&raw const part).cast::<libc::iovec>(), 1, -1, NO_SIGNAL)
        };
        Errno::result(count).map(|count| count as usize)
    }

    /// Whether nobody reads the FIFO any more.
    pub fn is_broken(&self) -> bool {
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLOUT)];
        let polled = poll(&mut fds, PollTimeout::ZERO);
        polled.is_ok() && fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR))
    }
}

/// Writes while `SIGPIPE` is blocked for this thread, to which alone the system sends it, and takes the one that was raised.
fn blocked(write: impl FnOnce() -> nix::Result<usize>) -> nix::Result<usize> {
    let pipe: SigSet = Signal::SIGPIPE.into();
    let before = pipe.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let was_blocked = before.contains(Signal::SIGPIPE);
    // One that the program has blocked, and that has come before, is the program's.
    let was_pending = was_blocked && is_pending();
    let written = write();
    if written == Err(Errno::EPIPE) && !was_pending {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: fifo.1: the set and the time live through the call, and nobody wants to know more of the signal.
        unsafe { libc::sigtimedwait(pipe.as_ref(), std::ptr::null_mut(), &raw const now) };
    }
    if !was_blocked {
        before.thread_set_mask()?;
    }
    written
}

/// Whether a `SIGPIPE` waits to be unblocked.
fn is_pending() -> bool {
    // SAFETY: fifo.1: all zeroes is a set of signals, which the calls are given until they return.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, libc::SIGPIPE) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::OpenDirectory;

    fn pair() -> (tempfile::TempDir, FifoReader, FifoWriter) {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = OpenDirectory::open(folder.path()).expect("this user's");
        let reader = directory.make_fifo("fifo").expect("made");
        let writer = directory.open_fifo("fifo").expect("it is read");
        (folder, reader, writer)
    }

    #[test]
    fn it_takes_all_or_none_until_it_is_full() {
        let (_folder, reader, writer) = pair();
        let mut bytes = [0; ATOMIC];
        assert_eq!(reader.read(&mut bytes).expect("nothing yet"), 0);
        assert!(writer.write(&[0; ATOMIC + 1]).is_err());
        let mut written = 0;
        while writer.write(&[7; 1000]).expect("no error") == Written::Done {
            written += 1000;
        }
        assert!((1000..=reader.capacity()).contains(&written), "{written}");
        assert!(!writer.is_broken());
        let mut read = 0;
        loop {
            match reader.read(&mut bytes).expect("no error") {
                0 => break,
                count => read += count,
            }
        }
        assert_eq!(read, written);
        assert_eq!(writer.write(b"again").expect("no error"), Written::Done);
        assert_eq!((reader.read(&mut bytes).expect("no error"), &bytes[..5]), (5, &b"again"[..]));
    }

    /// By either way, with the signal's default action, which would end this process; one that the program has blocked and that was pending before stays.
    #[test]
    fn nobody_gets_a_signal() {
        // SAFETY: fifo.1: numbers alone. Programs in Rust ignore the signal from the start.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        for asks in [true, false] {
            let (_folder, reader, writer) = pair();
            writer.asks.store(asks, Relaxed);
            assert_eq!(writer.write(b"x").expect("no error"), Written::Done);
            drop(reader);
            for _ in 0..2 {
                assert_eq!(writer.write(b"x").expect("no error"), Written::Broken);
            }
            assert!(writer.is_broken() && !is_pending());
            let pipe: SigSet = Signal::SIGPIPE.into();
            pipe.thread_block().expect("blocked");
            assert_eq!(writer.write(b"x").expect("no error"), Written::Broken);
            assert!(!is_pending());
            // The program's own.
            // SAFETY: fifo.1: the call is given the number of this very thread, which is there, and of a signal that it has blocked.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
            assert_eq!(writer.write(b"x").expect("no error"), Written::Broken);
            assert!(is_pending());
            assert_eq!(pipe.wait().expect("it is pending"), Signal::SIGPIPE);
            pipe.thread_unblock().expect("unblocked");
        }
        // SAFETY: fifo.1: what is put back is what the same call gave, an action that was valid before.
        unsafe { libc::signal(libc::SIGPIPE, before) };
    }
}
