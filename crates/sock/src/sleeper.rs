//! How a rank waits: it spins, then yields the processor, then sleeps.
//!
//! The sleep over shared memory is on a doorbell word. The owner *arms* it, looks again whether there is work, and
//! only then sleeps while the word stays armed; who publishes work and sees an armed word disarms it and rings. The
//! word's own algorithm, with its orderings, stands beside the other shared structures; here is when to do what,
//! and the calls to the system.

use std::time::Duration;

use gasworks_os::futex;
use gasworks_sync::atomic::AtomicU32;

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
    /// So many turns spin.
    pub spins: u32,
    /// So many more yield.
    pub yields: u32,
    /// The first sleep is at most this long; each later one twice as long as the one before.
    pub first_sleep: Duration,
    /// No sleep is longer, so that a rank notices on its own that a peer died.
    pub longest_sleep: Duration,
}

impl Policy {
    /// What suits `ranks` ranks on `processors` processors: a rank that has a processor to itself spins for about as
    /// long as a sleep and a wake-up cost, one that shares it must get out of the way at once.
    pub fn for_host(ranks: usize, processors: usize) -> Self {
        let spins = if ranks <= processors { 2_000 } else { 20 };
        let (first_sleep, longest_sleep) = (Duration::from_millis(10), Duration::from_millis(500));
        Self { spins, yields: 100, first_sleep, longest_sleep }
    }

    /// What to do in the turn after `idle` turns without work.
    pub fn step(&self, idle: u32) -> Step {
        let Some(past_spins) = idle.checked_sub(self.spins) else { return Step::Spin };
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

    /// What to do after one more turn without work; the caller does it.
    #[inline]
    pub fn step(&mut self) -> Step {
        let step = self.policy.step(self.idle);
        self.idle = self.idle.saturating_add(1);
        step
    }

    /// Passes one turn without work, asleep at the doorbell `word` if it has come to that.
    ///
    /// `arm` arms the word and says what it holds while armed; `work` looks again and must be ordered after the arming
    /// (the doorbell's own rule); `disarm` takes the arming back after a sleep, rung or not, or where work was found.
    #[inline]
    pub fn idle(
        &mut self,
        word: &AtomicU32,
        arm: impl FnOnce() -> u32,
        work: impl FnOnce() -> bool,
        disarm: impl FnOnce(),
    ) {
        match self.step() {
            Step::Spin => gasworks_sync::spin(),
            Step::Yield => std::thread::yield_now(),
            Step::Sleep(longest) => {
                let armed = arm();
                if !work() {
                    futex::wait(word, armed, Some(longest));
                }
                disarm();
            }
        }
    }
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
        assert!(Policy::for_host(4, 2).spins < Policy::for_host(2, 2).spins);
    }

    #[test]
    fn no_ring_is_lost() {
        const ROUNDS: u32 = 2_000;
        let policy = Policy {
            spins: 0,
            yields: 0,
            first_sleep: Duration::from_secs(20),
            longest_sleep: Duration::from_secs(20),
        };
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
            let mut sleeper = Sleeper::new(policy);
            for _ in 0..ROUNDS {
                while work.load(Ordering::Acquire) == 0 {
                    let arm = || {
                        word.store(1, Ordering::Relaxed);
                        fence(Ordering::SeqCst);
                        1
                    };
                    let disarm = || word.store(0, Ordering::Relaxed);
                    sleeper.idle(&word, arm, || work.load(Ordering::Acquire) != 0, disarm);
                }
                sleeper.worked();
                work.store(0, Ordering::Release);
            }
        });
        // One lost ring would cost a whole sleep.
        assert!(start.elapsed() < Duration::from_secs(20), "a ring was lost");
    }
}
