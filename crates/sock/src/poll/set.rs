//! A set of descriptors that are waited for together (`epoll(7)`), with a way to end the wait from elsewhere.
//!
//! `epoll` through `nix`, not a portable poller: what is waited for are descriptors that others own (pipes of ranks,
//! signals, process handles), and several threads may wait on one set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use gasworks_os::OsError;
use gasworks_os::eventfd::EventFd;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// What went wrong in the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SockError {
    /// The system refused.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The token is kept for the set itself.
    #[error("add to a set: the token {0} is kept for wake-ups")]
    Token(u64),
}

/// What is waited for on a descriptor. Errors and hang-ups are always told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Nothing but errors and hang-ups.
    None,
    /// Bytes, or a connection, that can be taken.
    Read,
    /// Room for bytes.
    Write,
    /// Both.
    Both,
}

impl Interest {
    /// From its two halves.
    pub fn new(read: bool, write: bool) -> Self {
        match (read, write) {
            (false, false) => Interest::None,
            (true, false) => Interest::Read,
            (false, true) => Interest::Write,
            (true, true) => Interest::Both,
        }
    }

    fn flags(self) -> EpollFlags {
        match self {
            Interest::None => EpollFlags::empty(),
            Interest::Read => EpollFlags::EPOLLIN,
            Interest::Write => EpollFlags::EPOLLOUT,
            Interest::Both => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        }
    }
}

/// Something happened on a descriptor of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What the descriptor was registered with.
    pub token: u64,
    /// A read would not block (it may find the end or an error).
    pub readable: bool,
    /// A write would not block.
    pub writable: bool,
    /// The other side is gone.
    pub closed: bool,
}

/// The token of the set's own wake-up counter.
const WAKEUP: u64 = u64::MAX;
/// How many events one wait takes at most.
const BATCH: usize = 256;

/// A set of descriptors.
///
/// It does not own them: who closes a descriptor that others hold open too (a duplicate, a child) removes it first.
#[derive(Debug)]
pub struct Set {
    epoll: Epoll,
    wakeup: Arc<EventFd>,
}

/// Ends the wait of a [`Set`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// Makes one [`Set::wait`], the present or the next, return.
    pub fn wakeup(&self) -> Result<(), SockError> {
        Ok(self.0.ring()?)
    }
}

fn fail(operation: &'static str, e: Errno) -> SockError {
    OsError::new(operation, "a set of descriptors", e).into()
}

impl Set {
    /// An empty set.
    pub fn new() -> Result<Self, SockError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| fail("create", e))?;
        let wakeup = Arc::new(EventFd::new()?);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, WAKEUP);
        epoll.add(&*wakeup, event).map_err(|e| fail("add the wake-up counter to", e))?;
        Ok(Self { epoll, wakeup })
    }

    /// Adds a descriptor; its events carry `token`. A plain file is refused (`EPERM`): it is always ready.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), SockError> {
        if token == WAKEUP {
            return Err(SockError::Token(token));
        }
        self.epoll.add(fd, EpollEvent::new(interest.flags(), token)).map_err(|e| fail("add to", e))
    }

    /// Changes what is waited for on a descriptor.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), SockError> {
        self.epoll.modify(fd, &mut EpollEvent::new(interest.flags(), token)).map_err(|e| fail("change in", e))
    }

    /// Takes a descriptor out.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), SockError> {
        self.epoll.delete(fd).map_err(|e| fail("remove from", e))
    }

    /// What ends a wait of this set from another thread.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wakeup))
    }

    /// Waits for events, at most as long as `timeout` says, and puts them into `events` (emptied first). Returns
    /// whether it was woken; a signal handler ends the wait early, without events.
    pub fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<bool, SockError> {
        events.clear();
        // Rounded up: a wait that is a little too short would be repeated without rest.
        let ms = |t: Duration| i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = timeout
            .map_or(EpollTimeout::NONE, |t| EpollTimeout::try_from(ms(t)).unwrap_or(EpollTimeout::MAX));
        let mut batch = [EpollEvent::empty(); BATCH];
        let n = match self.epoll.wait(&mut batch, timeout) {
            Ok(n) => n,
            Err(Errno::EINTR) => 0,
            Err(e) => return Err(fail("wait for", e)),
        };
        let mut woken = false;
        for event in &batch[..n] {
            if event.data() == WAKEUP {
                self.wakeup.clear();
                woken = true;
                continue;
            }
            let has = |flag| event.events().contains(flag);
            let closed = has(EpollFlags::EPOLLHUP) || has(EpollFlags::EPOLLERR);
            events.push(Event {
                token: event.data(),
                readable: has(EpollFlags::EPOLLIN) || closed,
                writable: has(EpollFlags::EPOLLOUT) || closed,
                closed,
            });
        }
        Ok(woken)
    }
}

/// Makes reads and writes of a descriptor return instead of waiting. It changes the open file, for everybody who
/// shares it: not for a terminal or a pipe that came from elsewhere.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// It is readable when there are events.
impl AsFd for Set {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn events_carry_their_token() {
        let set = Set::new().expect("a set");
        let (a, b) = std::os::unix::net::UnixStream::pair().expect("a pair");
        set.add(&a, 7, Interest::Both).expect("added");
        let mut events = Vec::new();
        set.wait(None, &mut events).expect("waited");
        assert_eq!(events, [Event { token: 7, readable: false, writable: true, closed: false }]);
        set.modify(&a, 8, Interest::Read).expect("changed");
        drop(b);
        set.wait(None, &mut events).expect("waited");
        assert!(events[0].token == 8 && events[0].closed && events[0].readable);
        set.remove(&a).expect("removed");
        let start = Instant::now();
        set.wait(Some(Duration::from_millis(10)), &mut events).expect("waited");
        assert!(events.is_empty() && start.elapsed() >= Duration::from_millis(10));
        assert!(set.add(&a, u64::MAX, Interest::Read).is_err());
    }

    #[test]
    fn another_thread_wakes() {
        let set = Set::new().expect("a set");
        let waker = set.waker();
        std::thread::scope(|scope| {
            scope.spawn(move || waker.wakeup().expect("woken"));
            let mut events = Vec::new();
            while !set.wait(Some(Duration::from_secs(10)), &mut events).expect("waited") {}
            assert!(events.is_empty());
        });
    }
}
