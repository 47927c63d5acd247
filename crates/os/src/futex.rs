//! Sleeping on a word that processes share: `futex(2)` without the private flag.
//!
//! # Invariants
//! - futex.1: the word is borrowed for the whole call, so its address stays mapped; the kernel only reads it, atomically.

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
    // SAFETY: futex.1: `word` is borrowed until the call returns; `timeout` is null or points to a local that lives as long.
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
    // SAFETY: futex.1: the address of `word`, which is borrowed, says who is woken; nothing is written there.
    let rc = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, n) };
    usize::try_from(rc).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::Arc;
    use std::time::Instant;

    /// Long enough for a thread to fall asleep and be woken on any machine; only a failed test takes so long.
    const LONG: Duration = Duration::from_secs(30);

    /// Waits until something other than a signal ends the wait.
    fn wait_past_signals(word: &AtomicU32, expected: u32, timeout: Duration) -> Wait {
        loop {
            match wait(word, expected, Some(timeout)) {
                Wait::Interrupted => {}
                end => return end,
            }
        }
    }

    #[test]
    fn a_wait_that_nobody_ends_takes_its_timeout() {
        let (word, timeout) = (AtomicU32::new(7), Duration::from_millis(20));
        let start = Instant::now();
        assert_eq!(wait_past_signals(&word, 7, timeout), Wait::TimedOut);
        assert!(start.elapsed() >= timeout);
    }

    #[test]
    fn a_word_that_has_changed_is_not_waited_on() {
        let word = AtomicU32::new(7);
        assert_eq!(wait(&word, 8, None), Wait::Changed);
        assert_eq!(wait(&word, 6, Some(LONG)), Wait::Changed);
    }

    /// The word keeps its value, so that nothing but the wake ends the wait before its timeout.
    #[test]
    fn a_wake_ends_the_wait_of_as_many_as_it_says() {
        let word = AtomicU32::new(0);
        assert_eq!((wake(&word, 1), wake(&word, u32::MAX)), (0, 0), "nobody sleeps");
        std::thread::scope(|scope| {
            let waiters = [(); 3].map(|()| scope.spawn(|| wait_past_signals(&word, 0, LONG)));
            let mut woken = 0;
            while woken < 3 && !waiters.iter().all(|waiter| waiter.is_finished()) {
                let most = if woken == 0 { 1 } else { u32::MAX };
                let now = wake(&word, most);
                assert!(now <= most as usize, "{now} woken of {most}");
                woken += now;
                std::thread::yield_now();
            }
            let ends = waiters.map(|waiter| waiter.join().expect("it ends"));
            assert_eq!((ends, woken), ([Wait::Woken; 3], 3));
        });
    }

    #[test]
    fn a_signal_handler_ends_the_wait() {
        extern "C" fn handler(_: libc::c_int) {}
        let handler = handler as extern "C" fn(libc::c_int);
        let signal = libc::SIGRTMIN() + 7; // which no other test uses
        // SAFETY: `handler` does nothing, so it may run in any thread at any time.
        let before = unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        assert_ne!(before, libc::SIG_ERR);
        let word = Arc::new(AtomicU32::new(0));
        let waiter = std::thread::spawn(move || wait(&word, 0, Some(LONG)));
        while !waiter.is_finished() {
            // SAFETY: the thread has not been joined, so its identifier is valid; no pointer is given.
            unsafe { libc::pthread_kill(waiter.as_pthread_t(), signal) };
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(waiter.join().expect("it ends"), Wait::Interrupted);
    }
}
