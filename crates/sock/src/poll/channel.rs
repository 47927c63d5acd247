//! A descriptor with a buffer on each side, never blocking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::set::set_nonblocking;

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// So many bytes; more may come.
    Bytes(usize),
    /// So many bytes, and there will be no more.
    End(usize),
}

/// A pipe or a stream socket.
#[derive(Debug)]
pub struct Channel {
    fd: OwnedFd,
    /// What has come and was not taken yet.
    inbox: Vec<u8>,
    /// What is still to be written, from `written` on.
    outbox: Vec<u8>,
    written: usize,
}

/// How much one read asks for.
const CHUNK: usize = 16 << 10;

impl Channel {
    /// Takes a descriptor over.
    pub fn new(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        let fd = fd.into();
        set_nonblocking(fd.as_fd())?;
        Ok(Self { fd, inbox: Vec::new(), outbox: Vec::new(), written: 0 })
    }

    /// Reads until there is nothing more now or at least `enough` bytes have come in this call.
    pub fn fill(&mut self, enough: usize) -> io::Result<Filled> {
        let mut total = 0;
        while total < enough {
            let before = self.inbox.len();
            self.inbox.resize(before + CHUNK, 0);
            let got = nix::unistd::read(&self.fd, &mut self.inbox[before..]);
            self.inbox.truncate(before + got.unwrap_or(0));
            match got {
                Ok(0) => return Ok(Filled::End(total)),
                Ok(n) => total += n,
                Err(nix::errno::Errno::EAGAIN) => break,
                Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Filled::Bytes(total))
    }

    /// What has come; the caller takes away what it has used.
    pub fn inbox(&mut self) -> &mut Vec<u8> {
        &mut self.inbox
    }

    /// Puts bytes behind those that are still to be written; [`flush`](Self::flush) writes them.
    pub fn post(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    /// How many bytes are still to be written.
    pub fn unwritten(&self) -> usize {
        self.outbox.len() - self.written
    }

    /// Writes what can be written now; `true` when nothing is left.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.unwritten() > 0 {
            match nix::unistd::write(&self.fd, &self.outbox[self.written..]) {
                Ok(n) => self.written += n,
                Err(nix::errno::Errno::EAGAIN) => break,
                Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        if self.unwritten() == 0 {
            self.outbox.clear();
            self.written = 0;
        } else if self.written > CHUNK {
            self.outbox.drain(..self.written);
            self.written = 0;
        }
        Ok(self.outbox.is_empty())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn more_than_the_socket_holds_goes_through() {
        let (a, b) = UnixStream::pair().expect("a pair");
        let (mut a, mut b) = (Channel::new(a).expect("a channel"), Channel::new(b).expect("a channel"));
        let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        a.post(&sent);
        let mut turns = 0;
        while !a.flush().expect("written") {
            assert!(a.unwritten() > 0);
            b.fill(usize::MAX).expect("read");
            turns += 1;
        }
        assert!(turns > 0);
        drop(a);
        while !matches!(b.fill(usize::MAX).expect("read"), Filled::End(_)) {}
        assert!(*b.inbox() == sent);
    }

    #[test]
    fn a_closed_reader_is_an_error() {
        let (a, b) = UnixStream::pair().expect("a pair");
        let mut a = Channel::new(a).expect("a channel");
        drop(b);
        a.post(b"x");
        assert_eq!(a.flush().expect_err("nobody reads").kind(), io::ErrorKind::BrokenPipe);
    }
}
