//! The one error of the engine: a class to decide by, the system's number, and who, what and why in words.

use std::fmt;

use nix::errno::Errno;

use crate::{SetId, SockId};

/// What kind of failure it is: the error classes of `MPIDU_Sock`, for programs to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Something that no other class fits (`SOCK_FAIL`).
    Fail,
    /// The library is not initialised: the C interface only (`SOCK_ERR_INIT`).
    Init,
    /// No memory, or no more descriptors (`SOCK_ERR_NOMEM`).
    NoMem,
    /// The set is destroyed (`SOCK_ERR_BAD_SET`).
    BadSet,
    /// The set still has socks, and so is not destroyed.
    BusySet,
    /// The sock is closed, or not of the kind or in the state that the call needs (`SOCK_ERR_BAD_SOCK`).
    BadSock,
    /// A host description that cannot be used, or a buffer too small for one (`SOCK_ERR_BAD_HOST`).
    BadHost,
    /// A host name that does not resolve (`SOCK_ERR_BAD_HOSTNAME`).
    BadHostname,
    /// A port out of range, or none free in the range given (`SOCK_ERR_BAD_PORT`).
    BadPort,
    /// A buffer that cannot be used (`SOCK_ERR_BAD_BUF`).
    BadBuf,
    /// A length, a minimum or a number of parts out of range (`SOCK_ERR_BAD_LEN`).
    BadLen,
    /// A descriptor that cannot be adopted (`SOCK_ERR_BAD_NATIVE_FD`).
    BadNativeFd,
    /// This side closed the sock (`SOCK_ERR_SOCK_CLOSED`).
    SockClosed,
    /// The peer closed the connection, in order (`SOCK_ERR_CONN_CLOSED`).
    ConnClosed,
    /// The connection failed, or was never made (`SOCK_ERR_CONN_FAILED`).
    ConnFailed,
    /// An operation in the same direction is posted, or the sock is being closed (`SOCK_ERR_INPROGRESS`).
    InProgress,
    /// The time is over (`SOCK_ERR_TIMEOUT`): the C interface, where a wait has no other way to say it.
    Timeout,
    /// A wait was interrupted (`SOCK_ERR_INTR`). The engine repeats interrupted waits and never gives it.
    Intr,
    /// No connection waits to be accepted (`SOCK_ERR_NO_NEW_SOCK`).
    NoNewSock,
}

impl Class {
    /// What the class says by itself.
    pub fn describe(self) -> &'static str {
        match self {
            Class::Fail => "failed",
            Class::Init => "the library is not initialised",
            Class::NoMem => "out of memory or of descriptors",
            Class::BadSet => "the set is destroyed",
            Class::BusySet => "the set still has socks",
            Class::BadSock => "the sock cannot do this",
            Class::BadHost => "the host description cannot be used",
            Class::BadHostname => "the host name does not resolve",
            Class::BadPort => "no such port, or none is free",
            Class::BadBuf => "the buffer cannot be used",
            Class::BadLen => "the length is out of range",
            Class::BadNativeFd => "the descriptor cannot be adopted",
            Class::SockClosed => "the sock was closed by this side",
            Class::ConnClosed => "the peer closed the connection",
            Class::ConnFailed => "the connection failed",
            Class::InProgress => "an operation in this direction, or a close, is in progress",
            Class::Timeout => "the time is over",
            Class::Intr => "interrupted",
            Class::NoNewSock => "no connection waits to be accepted",
        }
    }

    /// The class of what the system said about a transfer.
    pub(crate) fn of_transfer(errno: Errno) -> Self {
        match errno {
            Errno::ENOMEM | Errno::ENOBUFS => Class::NoMem,
            Errno::EFAULT | Errno::EINVAL => Class::BadBuf,
            Errno::EPIPE => Class::ConnClosed,
            Errno::EBADF => Class::BadSock,
            _ => Class::ConnFailed,
        }
    }

    /// The class of what the system said when a socket was made, bound or accepted.
    pub(crate) fn of_setup(errno: Errno) -> Self {
        match errno {
            Errno::ENOMEM | Errno::ENOBUFS | Errno::EMFILE | Errno::ENFILE => Class::NoMem,
            Errno::EADDRINUSE | Errno::EACCES => Class::BadPort,
            Errno::EADDRNOTAVAIL => Class::BadHost,
            _ => Class::Fail,
        }
    }
}

/// What went wrong, for people and for programs. Cheap to move, and can be cloned: a sock tells the same failure to each
/// call that comes after it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    class: Class,
    operation: &'static str,
    errno: Option<Errno>,
    set: Option<SetId>,
    sock: Option<SockId>,
    peer: Option<String>,
    cause: Option<String>,
}

impl Error {
    /// A failure of `operation`, in the infinitive.
    pub fn new(class: Class, operation: &'static str) -> Self {
        let (errno, set, sock, peer, cause) = (None, None, None, None, None);
        Self(Box::new(Detail { class, operation, errno, set, sock, peer, cause }))
    }

    pub(crate) fn errno(mut self, errno: Errno) -> Self {
        self.0.errno = Some(errno);
        self
    }

    pub(crate) fn set(mut self, set: SetId) -> Self {
        self.0.set = Some(set);
        self
    }

    pub(crate) fn sock(mut self, sock: SockId) -> Self {
        self.0.sock = Some(sock);
        self
    }

    pub(crate) fn peer(mut self, peer: Option<&str>) -> Self {
        self.0.peer = peer.map(str::to_owned);
        self
    }

    /// Says the cause in words, and what to do about it.
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The same failure, met by another operation.
    pub(crate) fn again(&self, operation: &'static str) -> Self {
        let mut again = self.clone();
        again.0.operation = operation;
        again
    }

    /// The class, to decide by.
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// The system's own number, if the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.errno.map(|errno| errno as i32)
    }

    /// What was being done, in the infinitive.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The set it happened in.
    pub fn set_id(&self) -> Option<SetId> {
        self.0.set
    }

    /// The sock it happened to.
    pub fn sock_id(&self) -> Option<SockId> {
        self.0.sock
    }

    /// Who was at the other end, if that is known.
    pub fn peer_name(&self) -> Option<&str> {
        self.0.peer.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail { class, operation, errno, set, sock, peer, cause } = &*self.0;
        f.write_str(operation)?;
        if let Some(sock) = sock {
            write!(f, ", sock {sock}")?;
        }
        if let Some(set) = set {
            write!(f, ", set {set}")?;
        }
        if let Some(peer) = peer {
            write!(f, ", peer {peer}")?;
        }
        match cause {
            Some(cause) => write!(f, ": {cause}")?,
            None => write!(f, ": {}", class.describe())?,
        }
        if let Some(errno) = errno {
            write!(f, ": {} ({errno:?})", errno.desc())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.class())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_whom_and_why() {
        let error = Error::new(Class::ConnFailed, "post a read")
            .sock(SockId(7 | 1 << 32))
            .set(SetId(4))
            .peer(Some("10.0.0.2:4000"))
            .errno(Errno::ECONNRESET);
        let text = error.to_string();
        let want = "post a read, sock 7.1, set 4, peer 10.0.0.2:4000: the connection failed: Connection reset by peer \
                    (ECONNRESET)";
        assert_eq!(text, want);
        assert_eq!(error.raw_os_error(), Some(104));
        assert_eq!(error.again("write").operation(), "write");
    }
}
