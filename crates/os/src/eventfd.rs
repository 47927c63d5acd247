//! A counter with a descriptor (`eventfd(2)`): how one thread wakes another that waits in `epoll` or `poll`.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd as Raw};

use crate::{OsError, Result};

/// A non-blocking event counter.
#[derive(Debug)]
pub struct EventFd(Raw);

impl EventFd {
    /// A counter at zero.
    pub fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Raw::from_value_and_flags(0, flags)
            .map(Self)
            .map_err(|e| OsError::new("create", "an event counter", e))
    }

    /// Makes the descriptor readable.
    pub fn ring(&self) -> Result<()> {
        match self.0.write(1) {
            // A full counter is readable already.
            Ok(_) | Err(nix::errno::Errno::EAGAIN) => Ok(()),
            Err(e) => Err(OsError::new("ring", "an event counter", e)),
        }
    }

    /// How often it was rung since the last call; it is not readable after.
    pub fn clear(&self) -> u64 {
        self.0.read().unwrap_or(0)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts() {
        let event = super::EventFd::new().expect("an eventfd");
        assert_eq!(event.clear(), 0);
        event.ring().expect("rung");
        event.ring().expect("rung");
        assert_eq!(event.clear(), 2);
        assert_eq!(event.clear(), 0);
    }
}
