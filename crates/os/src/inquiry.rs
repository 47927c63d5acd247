//! A signal that asks a process how it is: its handler rings, and a thread that waits for that answers.
//!
//! # Invariants
//! - inquiry.1: the handler makes async-signal-safe calls only, takes no lock and allocates nothing; what it reads is a table of
//!   atomics in the registry of [`jobs`]. It leaves `errno` as it was.
//! - inquiry.2: a descriptor in that table is open: who closes it takes it out first, and then waits until no handler runs that
//!   may have read it.
//! - inquiry.3: the kernel gives a handler installed with `SA_SIGINFO` a valid `siginfo_t`.
//! - inquiry.4: structures that are given to the system live through the call, and all zeroes is valid for them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use gasworks_sync::atomic::{AtomicI32, Ordering};

use crate::eventfd::EventFd;
use crate::hooks::NONE;
use crate::{OsError, Result, descriptor, jobs};

/// Who asked, since it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Somebody sent the signal by hand: the answer is to be seen.
    pub by_hand: bool,
    /// A program [sent](send) it: the answer goes there.
    pub by_program: bool,
}

/// Makes a signal ring. It becomes readable when the signal has come.
#[derive(Debug)]
pub struct Inquiry {
    bell: EventFd,
    slot: usize,
}

/// What the handler adds to the counter if a program asked; half the counter is above it.
const PROGRAM: u64 = 1 << 32;

impl Inquiry {
    /// From now on `signal` rings; `None` where that is not possible: the program handles the signal itself, or many jobs
    /// of this process are asked already.
    pub fn on(signal: i32) -> Result<Option<Self>> {
        if !install(signal)? {
            return Ok(None);
        }
        let bell = EventFd::new()?;
        let fd = bell.as_fd().as_raw_fd();
        let free =
            |bell: &AtomicI32| bell.compare_exchange(NONE, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        Ok(jobs::inquiries().bells.iter().position(free).map(|slot| Self { bell, slot }))
    }

    /// Waits until somebody asks; `false` if `stop` was rung instead.
    pub fn wait(&self, stop: &EventFd) -> bool {
        loop {
            let mut fds =
                [PollFd::new(self.as_fd(), PollFlags::POLLIN), PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) => return fds[1].any() != Some(true),
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Who asked since the last call.
    pub fn take(&self) -> Asked {
        let count = self.bell.clear();
        Asked { by_hand: !count.is_multiple_of(PROGRAM), by_program: count >= PROGRAM }
    }
}

impl AsFd for Inquiry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        let state = jobs::inquiries();
        state.bells[self.slot].store(NONE, Ordering::SeqCst);
        // inquiry.2: a handler on this very thread is over before this goes on.
        while state.ringing.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

/// Installs the handler; `false` if the program has one of its own.
fn install(signal: i32) -> Result<bool> {
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = ring;
    let fail = || OsError::last("install a handler for signal", signal);
    // SAFETY: inquiry.4: `present` and `wanted` are locals. inquiry.1: `handler` is a function with the three-argument form that
    // SA_SIGINFO announces, and does no more than a handler may.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &raw mut present) != 0 {
            return Err(fail());
        }
        if present.sa_sigaction == handler as usize {
            return Ok(true);
        }
        if present.sa_sigaction != libc::SIG_DFL {
            return Ok(false);
        }
        let mut wanted: libc::sigaction = std::mem::zeroed();
        wanted.sa_sigaction = handler as usize;
        wanted.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        match libc::sigaction(signal, &raw const wanted, std::ptr::null_mut()) {
            0 => Ok(true),
            _ => Err(fail()),
        }
    }
}

extern "C" fn ring(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: inquiry.3: this handler is only installed with SA_SIGINFO, so `info` is valid until it returns.
    let program = unsafe { (*info).si_code } == libc::SI_QUEUE;
    let value: u64 = if program { PROGRAM } else { 1 };
    let state = jobs::inquiries();
    state.ringing.fetch_add(1, Ordering::SeqCst);
    for bell in &state.bells {
        let fd = bell.load(Ordering::SeqCst);
        if fd != NONE {
            let errno = Errno::last_raw();
            // SAFETY: inquiry.2: `fd` was in the table after `ringing` was raised, so its owner keeps it open until this handler is over.
            // Where the program has closed it, `is_counter` looks at what is there now before anything is written.
            let bell = unsafe { BorrowedFd::borrow_raw(fd) };
            // An event counter never blocks, and takes 8 bytes.
            if descriptor::is_counter(bell) {
                let _ = nix::unistd::write(bell, &value.to_ne_bytes());
            }
            Errno::set_raw(errno);
        }
    }
    state.ringing.fetch_sub(1, Ordering::SeqCst);
}

/// Leaves `signal` alone to this thread, of all that can be blocked: for the thread that answers, so that the signal
/// finds somebody in a process whose other threads block it.
pub fn leave_only(signal: i32) {
    // SAFETY: inquiry.4: `set` is a local that is filled before it is read, and the null pointer asks for no old mask. A failure only
    // means that signals of the program's may come to this thread.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigdelset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Asks the process `pid`, as a program.
pub fn send(pid: i32, signal: i32) -> Result<()> {
    let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
    // SAFETY: the call is given two numbers and `value`, whose null pointer it only hands on, and gives a number.
    let rc = unsafe { libc::sigqueue(pid, signal, value) };
    if rc == 0 { Ok(()) } else { Err(OsError::last("ask process", pid)) }
}

/// Whether the process `pid` has a handler for `signal`: one that has none would be killed by it.
pub fn is_handled(pid: i32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    mask.is_some_and(|mask| (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes(inquiry: &Inquiry) -> Asked {
        let stop = EventFd::new().expect("a counter");
        assert!(inquiry.wait(&stop));
        inquiry.take()
    }

    #[test]
    fn a_signal_rings_for_everybody_who_wants_to_know() {
        let (signal, me) = (libc::SIGRTMIN() + 3, std::process::id() as i32);
        assert!(!is_handled(me, signal));
        let one = Inquiry::on(signal).expect("installed").expect("a place");
        let two = Inquiry::on(signal).expect("installed").expect("a place");
        assert!(is_handled(me, signal));
        assert_eq!(one.take(), Asked::default());
        send(me, signal).expect("sent");
        let program = Asked { by_hand: false, by_program: true };
        assert_eq!((comes(&one), comes(&two)), (program, program));
        // SAFETY: the call is given two numbers; this process has a handler for `signal`.
        assert_eq!(unsafe { libc::kill(me, signal) }, 0);
        let hand = Asked { by_hand: true, by_program: false };
        assert_eq!((comes(&one), comes(&two)), (hand, hand));
        drop(one);
        send(me, signal).expect("sent");
        assert_eq!(comes(&two), program);
        // What the program handles itself, and what cannot be handled, is left alone.
        assert!(Inquiry::on(libc::SIGPIPE).expect("looked at").is_none());
        assert!(Inquiry::on(libc::SIGKILL).is_err() && !is_handled(me, 0));
    }
}
