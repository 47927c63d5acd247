//! Processes: handles, groups, parents and ends.
//!
//! # Invariants
//! - process.1: these calls take numbers, or a structure that they read, and give numbers or a new descriptor.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::{OsError, Result};

/// A descriptor that stands for a process and becomes readable when it ends (`pidfd_open(2)`).
pub fn open(pid: i32) -> Result<OwnedFd> {
    // SAFETY: process.1: `pidfd_open` is given two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match RawFd::try_from(fd) {
        // SAFETY: process.1: the call has just returned `fd`, a new descriptor that nobody else knows.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(OsError::last("open a handle on process", pid)),
    }
}

/// Whether the process has ended that a descriptor of [`open`] stands for, whether or not anybody has asked how.
pub fn has_ended(handle: BorrowedFd<'_>) -> bool {
    // One descriptor that is there: the call cannot fail.
    poll(&mut [PollFd::new(handle, PollFlags::POLLIN)], PollTimeout::ZERO) != Ok(0)
}

/// Makes orphaned descendants children of this process instead of the system's first one.
pub fn become_subreaper() -> Result<()> {
    // SAFETY: process.1: this option of `prctl` is given a number.
    let rc = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
    if rc == 0 { Ok(()) } else { Err(OsError::last("adopt", "orphaned descendants")) }
}

/// Sends `signal` to the group `group`; `false` if nobody is left in it.
pub fn kill_group(group: i32, signal: Signal) -> Result<bool> {
    // 0 and 1 mean something else to the system: our own group, and everything.
    if group <= 1 {
        return Err(OsError::new("signal process group", group, Errno::EINVAL));
    }
    match killpg(Pid::from_raw(group), signal) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        Err(e) => Err(OsError::new("signal process group", group, e)),
    }
}

/// The number of the calling thread in the system (`gettid(2)`).
#[inline]
pub fn thread() -> u32 {
    nix::unistd::gettid().as_raw().unsigned_abs()
}

/// The user as whom this process acts (`geteuid(2)`).
pub fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// The code that a shell would report: 128 and the signal for one that was killed.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with code {code}"),
            Exit::Signal(n) => write!(f, "was killed by signal {n} ({})", crate::signals::name(*n)),
        }
    }
}

/// Takes the end of one child that has ended, if there is one; does not wait.
pub fn reap() -> Option<(i32, Exit)> {
    end_of(waitpid(None, Some(WaitPidFlag::WNOHANG)))
}

/// A child that was stopped since this was last asked, if there is one, and by which signal.
pub fn stopped() -> Option<(i32, i32)> {
    match waitid(Id::All, WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
        Ok(WaitStatus::Stopped(pid, signal)) => Some((pid.as_raw(), signal as i32)),
        _ => None,
    }
}

/// Waits for the child `pid` to end.
pub fn wait(pid: i32) -> Result<Exit> {
    loop {
        match waitpid(Pid::from_raw(pid), None) {
            Err(Errno::EINTR) => {}
            Err(e) => return Err(OsError::new("wait for process", pid, e)),
            status => {
                if let Some((_, exit)) = end_of(status) {
                    return Ok(exit);
                }
            }
        }
    }
}

fn end_of(status: nix::Result<WaitStatus>) -> Option<(i32, Exit)> {
    match status {
        Ok(WaitStatus::Exited(pid, code)) => Some((pid.as_raw(), Exit::Code(code))),
        Ok(WaitStatus::Signaled(pid, signal, _)) => Some((pid.as_raw(), Exit::Signal(signal as i32))),
        _ => None,
    }
}

/// Stops the timers of `alarm` and `setitimer`, which a program that this process becomes would have too.
pub fn stop_timers() {
    let never = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: 0, tv_usec: 0 },
    };
    for timer in [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF] {
        // SAFETY: process.1: `never` is a local that the call reads; the null pointer asks for no old time. It cannot fail for a timer that
        // exists.
        unsafe { libc::setitimer(timer, &raw const never, std::ptr::null_mut()) };
    }
}

/// Ends this process at once, without running exit hooks or destructors: for threads that found that there is no
/// point in going on while others compute.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: process.1: it is given a number, and nothing of this process runs after it.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_group_is_killed_and_its_end_told() {
        #[allow(clippy::zombie_processes)] // it is waited for by number
        let child = Command::new("sleep").arg("60").process_group(0).spawn().expect("sleep");
        let pid = child.id() as i32;
        let handle = open(pid).expect("a pidfd");
        assert!(!has_ended(handle.as_fd()));
        assert!(kill_group(pid, Signal::SIGTERM).expect("sent"));
        let exit = wait(pid).expect("its end");
        assert_eq!(exit.code(), 128 + 15);
        assert_eq!(exit.to_string(), "was killed by signal 15 (SIGTERM)");
        assert!(!kill_group(pid, Signal::SIGTERM).expect("nobody left"));
        assert!(wait(pid).is_err());
        assert!(has_ended(handle.as_fd()));
    }

    #[test]
    fn no_timer_is_left() {
        let left = || {
            let mut timer = libc::itimerval {
                it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
                it_value: libc::timeval { tv_sec: 1000, tv_usec: 0 },
            };
            // SAFETY: `timer` is a local of the type that the call writes, and nobody else borrows it.
            unsafe { libc::getitimer(libc::ITIMER_REAL, &raw mut timer) };
            timer.it_value.tv_sec
        };
        // SAFETY: process.1: it is given a number of seconds, more than this process lives.
        unsafe { libc::alarm(1000) };
        assert!(left() > 0);
        stop_timers();
        assert_eq!(left(), 0);
    }

    #[test]
    fn the_groups_that_mean_everything_are_refused() {
        for group in [-1, 0, 1] {
            assert!(kill_group(group, Signal::SIGCONT).is_err());
        }
    }
}
