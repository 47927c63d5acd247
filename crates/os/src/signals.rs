//! Signals as events: blocked in every thread, read from a descriptor (`signalfd(2)`).

use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::{OsError, Result};

/// Signals that are read instead of delivered. The signal mask is put back when it is dropped.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks `wanted` for this thread, and for the threads that it starts from now on, and opens a descriptor on
    /// them. Call it before other threads exist: a thread that does not block a signal takes it.
    pub fn block(wanted: &[Signal]) -> Result<Self> {
        let set: SigSet = wanted.iter().copied().collect();
        let mut before = SigSet::empty();
        nix::sys::signal::pthread_sigmask(
            nix::sys::signal::SigmaskHow::SIG_BLOCK,
            Some(&set),
            Some(&mut before),
        )
        .map_err(|e| OsError::new("block", "signals", e))?;
        SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map(|fd| Self { fd, before })
            .map_err(|e| OsError::new("open", "a descriptor on signals", e))
    }

    /// The mask as it was before: what a child should start with.
    pub fn mask_before(&self) -> SigSet {
        self.before
    }

    /// The next signal that has come, if any, with the process that sent it.
    pub fn take(&mut self) -> Option<(Signal, u32)> {
        let info = self.fd.read_signal().ok()??;
        let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
        Some((signal, info.ssi_pid))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while self.take().is_some() {}
        // Nothing can be done about a failure here, and none is possible with a valid set.
        let _ = self.before.thread_set_mask();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Signals by which the system says that a thread has done what it cannot, which comes to that thread alone. Where they are
/// blocked it ends the process without asking its handlers.
pub(crate) const FAULTS: [Signal; 6] =
    [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGSYS];

/// Leaves the program's signals to the program's threads: this one takes none any more.
pub fn block_all() {
    // A failure only means that they may come here.
    let _ = SigSet::all().thread_block();
}

/// Runs `start` while this thread takes no signals but for its own faults, as does every thread that it starts, from its first
/// instruction on.
pub fn without<R>(start: impl FnOnce() -> R) -> R {
    let mut blocked = SigSet::all();
    FAULTS.into_iter().for_each(|fault| blocked.remove(fault));
    // As above; and what was not changed needs no changing back.
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let done = start();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    done
}

/// The signals that this process ignores, as a rule because its parent said so.
pub fn ignored() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    Signal::iterator().filter(|&signal| mask >> (signal as u32 - 1) & 1 == 1).collect()
}

/// The usual name of a signal number: `SIGKILL`, or `signal 70` where it has none.
pub fn name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |s| s.as_str().to_owned())
}

/// The number of the signal that a text names, as `SIGTERM`, `term` or `15`.
pub fn named(text: &str) -> Option<i32> {
    let name = text.trim().to_ascii_uppercase();
    let full = if name.starts_with("SIG") { name.clone() } else { format!("SIG{name}") };
    match Signal::from_str(&full) {
        Ok(signal) => Some(signal as i32),
        Err(_) => name.parse().ok().filter(|n| (1..=libc::SIGRTMAX()).contains(n)),
    }
}

/// Whether a signal is among those that a list names, between commas or blanks; `*` names all.
pub fn is_among(list: &str, signal: i32) -> bool {
    list.split([',', ' ']).any(|word| word == "*" || named(word) == Some(signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_by_their_names() {
        for (text, wanted) in [("SIGUSR1", libc::SIGUSR1), ("usr2", libc::SIGUSR2), (" 9 ", 9)] {
            assert_eq!(named(text), Some(wanted));
        }
        for text in ["", "SIGNONE", "0", "-1", "4000"] {
            assert_eq!(named(text), None, "{text}");
        }
        assert!(is_among("SIGBUS, segv", libc::SIGSEGV) && is_among("*", libc::SIGTERM));
        assert!(!is_among("", libc::SIGTERM) && !is_among("SIGBUS,", libc::SIGTERM));
    }

    #[test]
    fn a_blocked_signal_is_read() {
        let mut signals = Signals::block(&[Signal::SIGWINCH]).expect("blocked");
        assert!(signals.take().is_none());
        nix::sys::signal::raise(Signal::SIGWINCH).expect("raised");
        assert_eq!(signals.take().map(|(s, _)| s), Some(Signal::SIGWINCH));
        // Programs in Rust ignore this one from the start.
        assert!(ignored().contains(&Signal::SIGPIPE) && !ignored().contains(&Signal::SIGWINCH));
        assert_eq!(name(9), "SIGKILL");
        assert_eq!(name(4000), "signal 4000");
    }
}
