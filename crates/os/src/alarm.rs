//! A descriptor that is readable when one of some others is, or from a moment on (`epoll(7)`, `timerfd_create(2)`): what a program with an event loop of its own waits for.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::{OsError, Result};

/// Such a descriptor.
#[derive(Debug)]
pub struct Alarm {
    epoll: Epoll,
    timer: TimerFd,
    at: Option<u64>,
}

fn failed(doing: &'static str) -> impl FnOnce(Errno) -> OsError {
    move |error| OsError::new(doing, "an alarm", error)
}

impl Alarm {
    /// An alarm that is readable when one of `others` is, which are open at least as long.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new(others: &[BorrowedFd<'_>]) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("create"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed("create"))?;
        let readable = || EpollEvent::new(EpollFlags::EPOLLIN, 0);
        for other in others {
            epoll.add(other, readable()).map_err(failed("set up"))?;
        }
        epoll.add(&timer, readable()).map_err(failed("set up"))?;
        Ok(Self { epoll, timer, at: None })
    }

    /// Makes it readable from a moment on, or not at a moment at all. The clock is [`clock::monotonic`](crate::clock::monotonic).
    ///
    /// # Errors
    /// The system refuses.
    pub fn set(&mut self, at: Option<u64>) -> Result<()> {
        if self.at == at {
            return Ok(());
        }
        let set = match at {
            None => self.timer.unset(),
            // A timer at 0 is none.
            Some(at) => self.timer.set(
                Expiration::OneShot(TimeSpec::from(Duration::from_nanos(at.max(1)))),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            ),
        };
        set.map_err(failed("set"))?;
        self.at = at;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventfd::EventFd;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn is_readable(alarm: &Alarm, ms: u16) -> bool {
        let mut fds = [PollFd::new(alarm.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::from(ms)).expect("polled") == 1
    }

    #[test]
    fn it_is_readable_for_each_reason_and_not_without() {
        let other = EventFd::new().expect("a counter");
        let third = EventFd::new().expect("a counter");
        let mut alarm = Alarm::new(&[other.as_fd(), third.as_fd()]).expect("an alarm");
        assert!(!is_readable(&alarm, 0));
        for one in [&other, &third] {
            one.ring().expect("rung");
            assert!(is_readable(&alarm, 0));
            one.clear();
        }
        assert!(!is_readable(&alarm, 0));
        alarm.set(Some(crate::clock::monotonic() + 20_000_000)).expect("set");
        assert!(!is_readable(&alarm, 0));
        assert!(is_readable(&alarm, 60_000));
        // A time that has passed, and the clock's first.
        alarm.set(Some(0)).expect("set");
        assert!(is_readable(&alarm, 60_000));
        alarm.set(None).expect("set");
        assert!(!is_readable(&alarm, 0));
    }
}
