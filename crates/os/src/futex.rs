//! Sleeping on a word that processes share: `futex(2)` without the private flag.
//!
//! # Invariants
//! F1. The word is borrowed for the whole call, so its address stays mapped; the kernel only reads it, atomically.

use std::time::Duration;

use gasworks_sync::atomic::AtomicU32;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Somebody woke this thread; or nobody did: look at the word again.
    Woken,
    /// The word did not hold the expected value.
    Changed,
    /// A signal handler ran.
    Interrupted,
    /// The time allowed ran out.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, until woken or until `timeout` has passed.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wait {
    let timeout = timeout.map(|t| libc::timespec {
        tv_sec: libc::time_t::try_from(t.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(t.subsec_nanos()),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: F1; the timespec lives until the call returns.
    let rc = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, timeout) };
    if rc == 0 {
        return Wait::Woken;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Wait::Changed,
        Some(libc::ETIMEDOUT) => Wait::TimedOut,
        Some(libc::EINTR) => Wait::Interrupted,
        // Nothing else is possible for a mapped aligned word; whoever waits looks again anyway.
        _ => Wait::Woken,
    }
}

/// Wakes up to `n` of those who sleep on `word`, in this process and in others; says how many.
pub fn wake(word: &AtomicU32, n: u32) -> usize {
    let n = i32::try_from(n).unwrap_or(i32::MAX);
    // SAFETY: F1.
    let rc = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, n) };
    usize::try_from(rc).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::atomic::Ordering;
    use std::time::Instant;

    #[test]
    fn waits_at_least_as_long_as_asked() {
        let word = AtomicU32::new(7);
        let start = Instant::now();
        let how = wait(&word, 7, Some(Duration::from_millis(20)));
        assert!(how != Wait::TimedOut || start.elapsed() >= Duration::from_millis(20));
        assert_eq!(wait(&word, 8, None), Wait::Changed);
        assert_eq!(wake(&word, 1), 0);
    }

    #[test]
    fn a_change_of_the_word_wakes() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0, Some(Duration::from_secs(10)));
                }
            });
            std::thread::sleep(Duration::from_millis(5));
            word.store(1, Ordering::Release);
            wake(&word, u32::MAX);
        });
    }
}
