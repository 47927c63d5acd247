//! A rank's stream to its launcher, with what has come on it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gasworks_os::descriptor::Descriptor;
use gasworks_os::eventfd::EventFd;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};

use crate::BootstrapError;
use crate::wire::{Message, WireError, quote};

/// The stream: a socket of any family. No call on it blocks, whatever its own flags say: it may be shared with others.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Descriptor,
    inbox: Vec<u8>,
    pub(crate) timeout: Duration,
    /// Readable once the process ends and the conversation is another's to finish.
    interrupt: Arc<EventFd>,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, timeout: Duration, interrupt: Arc<EventFd>) -> Self {
        Self { socket: socket.into(), inbox: Vec::new(), timeout, interrupt }
    }

    fn wait(&self, what: PollFlags, deadline: Option<Instant>) -> io::Result<()> {
        loop {
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let ms = left.map_or(PollTimeout::NONE, |left| {
                u16::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u16::MAX).into()
            });
            let own = PollFd::new(self.socket.as_fd(), what);
            let mut fds = [own, PollFd::new(self.interrupt.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, ms);
            if ready.is_ok() && fds[1].any() == Some(true) {
                gasworks_os::ending::wait_for_the_end();
            }
            match ready {
                Ok(0) if left.is_some_and(|left| left.is_zero()) => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn fail(&self, during: &'static str, limit: Option<Duration>, source: io::Error) -> BootstrapError {
        match source.kind() {
            io::ErrorKind::TimedOut => {
                BootstrapError::TimedOut { during, seconds: limit.unwrap_or(self.timeout).as_secs() }
            }
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                let what = if self.inbox.is_empty() {
                    "the launcher closed the connection".to_owned()
                } else {
                    format!("the launcher closed the connection in the middle of {}", quote(&self.inbox))
                };
                BootstrapError::protocol(during, what)
            }
            _ => BootstrapError::Io { during, source },
        }
    }

    pub(crate) fn send(&mut self, during: &'static str, bytes: &[u8]) -> Result<(), BootstrapError> {
        let deadline = Instant::now() + self.timeout;
        let mut rest = bytes;
        while !rest.is_empty() {
            // A program in C may not ignore SIGPIPE.
            match send(self.socket.as_fd().as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT)
            {
                Ok(n) => rest = &rest[n..],
                Err(Errno::EAGAIN) => {
                    self.wait(PollFlags::POLLOUT, Some(deadline)).map_err(|e| self.fail(during, None, e))?;
                }
                Err(Errno::EINTR) => {}
                Err(e) => return Err(self.fail(during, None, e.into())),
            }
        }
        Ok(())
    }

    pub(crate) fn receive(
        &mut self,
        during: &'static str,
        limit: Option<Duration>,
        take: impl Fn(&mut Vec<u8>) -> Result<Option<Message>, WireError>,
    ) -> Result<Message, BootstrapError> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let taken = take(&mut self.inbox).map_err(|e| {
                BootstrapError::protocol(during, format!("the launcher does not keep to PMI: {e}"))
            })?;
            if let Some(message) = taken {
                return Ok(message);
            }
            let mut chunk = [0u8; 4096];
            match recv(self.socket.as_fd().as_raw_fd(), &mut chunk, MsgFlags::MSG_DONTWAIT) {
                Ok(0) => return Err(self.fail(during, limit, io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => self.inbox.extend_from_slice(&chunk[..n]),
                Err(Errno::EAGAIN) => {
                    self.wait(PollFlags::POLLIN, deadline).map_err(|e| self.fail(during, limit, e))?;
                }
                Err(Errno::EINTR) => {}
                Err(e) => return Err(self.fail(during, limit, e.into())),
            }
        }
    }
}
