//! How a rank waits: it spins, then yields the processor, then sleeps.
//!
//! The sleep over shared memory is on a doorbell word. The owner *arms* it, looks again whether there is work, and
//! only then sleeps while the word stays armed; who publishes work and sees an armed word disarms it and rings. The
//! word's own algorithm, with its orderings, stands beside the other shared structures; here is when to do what,
//! and the two calls to the system.

use std::time::Duration;

use gasworks_os::futex;
use gasworks_sync::atomic::AtomicU32;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::BorrowedFd;

/// The longest sleep on descriptors: what the system cannot count it refuses.
const HOUR: Duration = Duration::from_secs(3600);

/// What to do in a turn that found no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look again at once.
    Spin,
    /// Let others run, then look again.
    Yield,
    /// Sleep until rung, at most this long.
    Sleep(Duration),
}

/// When to go from one step to the next, in turns without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// So many turns spin; all, if it is `u32::MAX`.
    pub spins: u32,
    /// So many more yield.
    pub yields: u32,
    /// The first sleep is at most this long; each later one twice as long as the one before.
    pub first_sleep: Duration,
    /// No sleep is longer, so that a rank notices on its own that a peer died.
    pub longest_sleep: Duration,
}

impl Policy {
    /// What suits `ranks` ranks that may use `processors` processors between them: where each has one to itself it
    /// spins for about as long as a sleep and a wake-up cost; where not it gets out of the way at once.
    pub fn for_host(ranks: usize, processors: usize) -> Self {
        let spins = if ranks <= processors { 2_000 } else { 0 };
        Self::spinning(spins)
    }

    /// Spins so many turns before it yields. A sleep is short at first, because what a peer stores without a message
    /// ends none, and never long.
    pub fn spinning(spins: u32) -> Self {
        let (first_sleep, longest_sleep) = (Duration::from_micros(100), Duration::from_millis(10));
        Self { spins, yields: 100, first_sleep, longest_sleep }
    }

    /// What to do in the turn after `idle` turns without work.
    pub fn step(&self, idle: u32) -> Step {
        // Turns are counted no further than `u32::MAX`: then that many have passed, and still all of them are to spin.
        let past_spins = idle.checked_sub(self.spins).filter(|_| self.spins < u32::MAX);
        let Some(past_spins) = past_spins else { return Step::Spin };
        match past_spins.checked_sub(self.yields) {
            None => Step::Yield,
            Some(sleeps) => {
                let doubled = self.first_sleep.saturating_mul(1 << sleeps.min(16));
                Step::Sleep(doubled.min(self.longest_sleep))
            }
        }
    }
}

/// Waits for work by a [`Policy`]. One for each thread that waits.
#[derive(Clone, Debug)]
pub struct Sleeper {
    policy: Policy,
    idle: u32,
}

impl Sleeper {
    /// A sleeper that has just worked.
    pub fn new(policy: Policy) -> Self {
        Self { policy, idle: 0 }
    }

    /// There was work in this turn.
    #[inline]
    pub fn worked(&mut self) {
        self.idle = 0;
    }

    /// Whether turns without work have become many: the next one is a sleep, or there were ten thousand.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.idle >= 10_000 || matches!(self.policy.step(self.idle), Step::Sleep(_))
    }

    /// What to do after one more turn without work; the caller does it.
    #[inline]
    pub fn step(&mut self) -> Step {
        let step = self.policy.step(self.idle);
        self.idle = self.idle.saturating_add(1);
        step
    }
}

/// Sleeps at the doorbell `word` while it holds `armed`, until rung, at most `longest`. Only after the caller has armed
/// it and looked for work once more.
#[cold]
pub fn sleep(word: &AtomicU32, armed: u32, longest: Duration) {
    futex::wait(word, armed, Some(longest));
}

/// Sleeps until one of the descriptors is readable, or broken, or a signal handler has run; at most `longest`.
#[cold]
pub fn sleep_on(descriptors: &[BorrowedFd<'_>], longest: Duration) {
    let mut all: Vec<_> = descriptors.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    // Whoever is woken looks again, whatever for.
    let _ = ppoll(&mut all, Some(TimeSpec::from_duration(longest.min(HOUR))), None);
}

/// Wakes everyone who sleeps at `word`. Only after the ringer has disarmed it: nothing rings a doorbell that is not
/// armed.
#[cold]
pub fn ring(word: &AtomicU32) {
    futex::wake(word, u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::atomic::{Ordering, fence};
    use std::time::Instant;

    #[test]
    fn steps_follow_each_other() {
        let policy = Policy {
            spins: 2,
            yields: 1,
            first_sleep: Duration::from_millis(1),
            longest_sleep: Duration::from_millis(3),
        };
        let steps: Vec<Step> = (0..6).map(|idle| policy.step(idle)).collect();
        let sleep = |ms| Step::Sleep(Duration::from_millis(ms));
        assert_eq!(steps, [Step::Spin, Step::Spin, Step::Yield, sleep(1), sleep(2), sleep(3)]);
        assert_eq!(policy.step(u32::MAX), sleep(3));
        assert_eq!(Policy { spins: u32::MAX, ..policy }.step(u32::MAX), Step::Spin);
        assert!(Policy::for_host(4, 2).spins < Policy::for_host(2, 2).spins);
    }

    #[test]
    fn no_ring_is_lost() {
        const ROUNDS: u32 = 2_000;
        let (word, work) = (AtomicU32::new(0), AtomicU32::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    work.store(round, Ordering::Release);
                    fence(Ordering::SeqCst);
                    if word.load(Ordering::Relaxed) == 1 && word.swap(0, Ordering::AcqRel) == 1 {
                        ring(&word);
                    }
                    while work.load(Ordering::Acquire) != 0 {
                        std::thread::yield_now();
                    }
                }
            });
            for _ in 0..ROUNDS {
                while work.load(Ordering::Acquire) == 0 {
                    word.store(1, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    if work.load(Ordering::Acquire) == 0 {
                        sleep(&word, 1, Duration::from_secs(20));
                    }
                    word.store(0, Ordering::Relaxed);
                }
                work.store(0, Ordering::Release);
            }
        });
        // One lost ring would cost a whole sleep.
        assert!(start.elapsed() < Duration::from_secs(20), "a ring was lost");
    }
}
