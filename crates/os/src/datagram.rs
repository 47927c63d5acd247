//! Datagram sockets with a path (`unix(7)`), whose datagrams carry descriptors and say who has sent them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, sockopt};

use crate::unix::{Credentials, MAX_FDS, recv_once, send_once};
use crate::{OsError, Result};

/// A datagram socket. Its calls do not wait.
#[derive(Debug)]
pub struct DatagramSocket {
    inner: OwnedFd,
    path: PathBuf,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It lies in the receiver's queue.
    Queued,
    /// The receiver's queue has no room now.
    Full,
    /// There is no socket of that path, or nobody has it open.
    Nobody,
}

/// A datagram that has come.
#[derive(Debug)]
pub struct Received {
    /// How many bytes it has.
    pub len: usize,
    /// The descriptors that came with it.
    pub fds: Vec<OwnedFd>,
    /// Who sent it, as the kernel says.
    pub from: Credentials,
}

impl DatagramSocket {
    /// Makes a socket of this path. The file stays when the socket is closed.
    ///
    /// # Errors
    /// The path is too long for an address or exists, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self> {
        let fail = |error: Errno| OsError::new("bind socket", path.display(), error);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let inner = socket::socket(AddressFamily::Unix, SockType::Datagram, flags, None).map_err(fail)?;
        socket::setsockopt(&inner, sockopt::PassCred, &true).map_err(fail)?;
        socket::bind(inner.as_raw_fd(), &UnixAddr::new(path).map_err(fail)?).map_err(fail)?;
        Ok(Self { inner, path: path.into() })
    }

    /// Sends a datagram to the socket of another path, with up to [`MAX_FDS`] descriptors.
    ///
    /// # Errors
    /// The datagram is too long, has too many descriptors, or the system refuses.
    pub fn send_to(&self, to: &Path, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Sent> {
        const OPERATION: &str = "send to socket";
        let fail = |error: io::Error| OsError::new(OPERATION, to.display(), error);
        if fds.len() > MAX_FDS {
            let cause = format!("{} descriptors; at most {MAX_FDS}", fds.len());
            return Err(OsError::other(OPERATION, to.display(), cause));
        }
        let address = UnixAddr::new(to).map_err(|error| fail(error.into()))?;
        loop {
            let sent = send_once(self.inner.as_fd(), Some(&address), bytes, fds);
            return match sent {
                Ok(_) => Ok(Sent::Queued),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => Ok(Sent::Full),
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(Sent::Nobody),
                    _ => Err(fail(error)),
                },
            };
        }
    }

    /// Receives the next datagram into `bytes`, if one has come. What is longer is cut.
    ///
    /// # Errors
    /// The system has dropped descriptors that came with it, since this process has too many, or refuses.
    pub fn receive(&self, bytes: &mut [u8]) -> Result<Option<Received>> {
        let fail = |error| OsError::new("receive from socket", self.path.display(), error);
        loop {
            let mut fds = Vec::new();
            match recv_once(self.inner.as_fd(), bytes, &mut fds) {
                Ok((len, Some(from))) => return Ok(Some(Received { len, fds, from })),
                Ok((_, None)) => {
                    return Err(fail(io::Error::other("the system does not say who has sent it")));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(fail(error)),
            }
        }
    }
}

/// Asks whether somebody has a socket open, without a datagram.
#[derive(Debug)]
pub struct Inquirer(OwnedFd);

impl Inquirer {
    /// One that can ask.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        socket::socket(AddressFamily::Unix, SockType::Datagram, flags, None)
            .map(Self)
            .map_err(|error| OsError::new("make", "a socket", error))
    }

    /// Whether a datagram to the socket of this path would find a receiver. Where the system does not say that there is none, there is one.
    pub fn is_open(&self, path: &Path) -> bool {
        let connected = UnixAddr::new(path).and_then(|address| socket::connect(self.0.as_raw_fd(), &address));
        !matches!(connected, Err(Errno::ECONNREFUSED | Errno::ENOENT | Errno::ENOTDIR))
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn datagrams_carry_descriptors_and_say_who_has_sent_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (one, other) = (
            DatagramSocket::bind(&path("one")).expect("a socket"),
            DatagramSocket::bind(&path("other")).expect("a socket"),
        );
        let mut bytes = [0; 64];
        assert!(other.receive(&mut bytes).expect("nothing is wrong").is_none());
        assert_eq!(one.send_to(&path("nobody"), b"x", &[]).expect("sent"), Sent::Nobody);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"passed on").expect("written");
        assert_eq!(one.send_to(&path("other"), b"first", &[file.as_fd()]).expect("sent"), Sent::Queued);
        assert_eq!(one.send_to(&path("other"), b"", &[]).expect("sent"), Sent::Queued);
        let Received { len, mut fds, from } =
            other.receive(&mut bytes).expect("received").expect("it has come");
        assert_eq!(&bytes[..len], b"first");
        assert_eq!((from.pid, from.uid), (std::process::id() as i32, nix::unistd::getuid().as_raw()));
        let mut text = String::new();
        let mut passed = File::from(fds.pop().expect("a descriptor"));
        std::io::Seek::rewind(&mut passed).expect("a file");
        passed.read_to_string(&mut text).expect("read");
        assert_eq!((text.as_str(), fds.len()), ("passed on", 0));
        assert_eq!(other.receive(&mut bytes).expect("received").map(|received| received.len), Some(0));
        // A queue has an end, and a socket that is closed has nobody.
        let mut sent = (0..10_000).map(|_| one.send_to(&path("other"), &[7; 64], &[]).expect("sent"));
        assert_eq!(sent.rfind(|sent| *sent != Sent::Queued), Some(Sent::Full));
        drop(other);
        assert_eq!(one.send_to(&path("other"), b"x", &[]).expect("sent"), Sent::Nobody);
        let taken = DatagramSocket::bind(&path("other")).expect_err("the file is there").to_string();
        assert!(taken.contains("other"), "{taken}");
    }
}
