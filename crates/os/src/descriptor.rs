//! Descriptors that this process keeps for itself for long. Programs close descriptors by number, all from 3 on as a rule,
//! and what they open afterwards gets these numbers.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use nix::sys::stat::fstat;

use crate::line::Line;
use crate::process;

/// A descriptor that is known by what it stands for, too. Whoever borrows it looks whether it still does: that is a system
/// call, and safe in a handler of a signal.
#[derive(Debug)]
pub struct Descriptor {
    /// There is one until it is given away.
    fd: Option<OwnedFd>,
    number: i32,
    file: Option<File>,
}

/// What tells files, sockets and kinds of others from each other: device, number and kind.
type File = (u64, u64, u32);

fn file(fd: BorrowedFd<'_>) -> Option<File> {
    fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino, stat.st_mode & nix::libc::S_IFMT))
}

/// Whether it is one that stands for no file, socket or pipe, but for an object of the system without a name: an event counter.
pub(crate) fn is_counter(fd: BorrowedFd<'_>) -> bool {
    file(fd).is_some_and(|(_, _, kind)| kind == 0)
}

/// Says that the program has closed the descriptor of that number, and ends this process.
pub(crate) fn lost(number: i32) -> ! {
    let mut line = Line::new();
    line.who().text("the program has closed descriptor ").number(number.unsigned_abs().into());
    line.text(", by which the library reaches the job: this process ends").say();
    process::exit_now(1)
}

impl Descriptor {
    /// Whether it is what it was. Event counters are not told from each other.
    pub fn is_whole(&self) -> bool {
        self.fd.as_ref().is_some_and(|fd| file(fd.as_fd()) == self.file)
    }

    /// Gives it away.
    pub fn into_fd(mut self) -> OwnedFd {
        if self.is_whole()
            && let Some(fd) = self.fd.take()
        {
            return fd;
        }
        lost(self.number)
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        Self { number: fd.as_raw_fd(), file: file(fd.as_fd()), fd: Some(fd) }
    }
}

impl AsFd for Descriptor {
    /// Ends the process where the program has closed it: what it opened since must not be written to.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Some(fd) if self.is_whole() => fd.as_fd(),
            _ => lost(self.number),
        }
    }
}

impl Drop for Descriptor {
    /// What the program has opened under its number stays open.
    fn drop(&mut self) {
        if !self.is_whole()
            && let Some(fd) = self.fd.take()
        {
            let _ = fd.into_raw_fd();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// A descriptor, and this in its place.
    fn replaced(fd: OwnedFd, by: &OwnedFd) -> Descriptor {
        let descriptor = Descriptor::from(fd);
        assert!(descriptor.is_whole());
        let copy = descriptor.fd.as_ref().and_then(|fd| fd.try_clone().ok()).expect("copied");
        assert_eq!(file(copy.as_fd()), descriptor.file, "a copy stands for the same");
        let fd = by.try_clone().ok();
        Descriptor { fd, number: descriptor.number, file: descriptor.file }
    }

    #[test]
    fn another_of_each_kind_is_found() {
        let socket = || OwnedFd::from(UnixStream::pair().expect("a pair").0);
        let file = || OwnedFd::from(tempfile::tempfile().expect("a file"));
        let counter = || OwnedFd::from(nix::sys::eventfd::EventFd::new().expect("one"));
        assert!(
            is_counter(counter().as_fd()) && !is_counter(file().as_fd()) && !is_counter(socket().as_fd())
        );
        type Make = fn() -> OwnedFd;
        let pairs: [(Make, Make); 4] = [(socket, file), (file, file), (socket, socket), (counter, file)];
        for (make, other) in pairs {
            let other = other();
            let descriptor = replaced(make(), &other);
            assert!(!descriptor.is_whole());
            let number = descriptor.fd.as_ref().expect("open").as_raw_fd();
            drop(descriptor);
            assert!(
                std::path::Path::new(&format!("/proc/self/fd/{number}")).exists(),
                "the program's is open"
            );
        }
        let whole = Descriptor::from(socket());
        let number = whole.as_fd().as_raw_fd();
        assert_eq!(whole.into_fd().as_raw_fd(), number);
    }
}
