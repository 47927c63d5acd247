//! A counter with a descriptor (`eventfd(2)`): how one thread wakes another that waits in `epoll` or `poll`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd as Raw};
use nix::unistd;

use crate::descriptor::Descriptor;
use crate::{OsError, Result};

/// A non-blocking event counter.
#[derive(Debug)]
pub struct EventFd(Descriptor);

impl EventFd {
    /// A counter at zero.
    pub fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Raw::from_value_and_flags(0, flags)
            .map(|raw| Self(Descriptor::from(OwnedFd::from(raw))))
            .map_err(|e| OsError::new("create", "an event counter", e))
    }

    /// Makes the descriptor readable.
    pub fn ring(&self) -> Result<()> {
        match unistd::write(self, &1u64.to_ne_bytes()) {
            // A full counter is readable already.
            Ok(_) | Err(Errno::EAGAIN) => Ok(()),
            Err(e) => Err(OsError::new("ring", "an event counter", e)),
        }
    }

    /// How often it was rung since the last call; it is not readable after.
    pub fn clear(&self) -> u64 {
        let mut count = [0; 8];
        unistd::read(self, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    /// Whether it is one still ([`Descriptor::is_whole`]).
    pub fn is_whole(&self) -> bool {
        self.0.is_whole()
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
