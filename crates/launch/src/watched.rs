//! A descriptor that is not ours to change, shared with other programs or no stream of bytes: the set tells when it is
//! ready, and whoever has it does the rest.

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;
use gasworks_sock::{Direction, Error, Set, Sock};

#[derive(Debug)]
pub(crate) struct Watched {
    sock: Sock,
    asked: bool,
}

impl Watched {
    /// Watches a duplicate.
    pub(crate) fn new(set: &Set, token: u64, fd: impl AsFd) -> anyhow::Result<Self> {
        let fd = fd.as_fd().try_clone_to_owned().context("duplicate a descriptor")?;
        Ok(Self { sock: set.watch(token, fd)?, asked: false })
    }

    /// Has the set tell when it is ready, unless it is to tell already.
    pub(crate) fn ask(&mut self, direction: Direction) -> Result<(), Error> {
        if !self.asked {
            self.sock.post_ready(direction)?;
            self.asked = true;
        }
        Ok(())
    }

    /// The set has told.
    pub(crate) fn told(&mut self) {
        self.asked = false;
    }

    /// Whether the set is still to tell.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Lends the descriptor.
    pub(crate) fn with_fd<R>(&self, f: impl FnOnce(BorrowedFd<'_>) -> R) -> Result<R, Error> {
        self.sock.with_fd(f)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It is open as long as this lives.
        let _ = self.sock.post_close();
    }
}
