//! Waiting: a rank polls until something has happened, and gives way meanwhile, by and by for longer.

use super::Engine;
use crate::flow::{Patience, WaitMode};
use crate::{CoreMode, Error};
use gasworks_shmem::eventcount::EventCount;
use gasworks_sock::sleeper::{Policy, Sleeper, Step};
use gasworks_sync::atomic::{AtomicU32, Ordering};

/// How this rank's threads wait, and wake each other.
pub(super) struct Waits {
    /// Polls that did something, in `Par`, and machines that ended.
    worked: EventCount,
    patience: Patience,
    /// A [`WaitMode`].
    mode: AtomicU32,
    /// How often a thread has slept; wraps round.
    sleeps: AtomicU32,
}

impl Waits {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            worked: EventCount::new(),
            mode: AtomicU32::new(patience.mode as u32),
            sleeps: AtomicU32::new(0),
            patience,
        }
    }

    /// How often a thread has slept.
    pub(super) fn sleeps(&self) -> u32 {
        self.sleeps.load(Ordering::Relaxed)
    }

    /// How often a thread has worked.
    pub(super) fn events(&self) -> u64 {
        self.worked.events()
    }
}

/// What a waiting loop keeps: how long it has been idle, and what it has seen of other threads' work.
#[derive(Debug)]
pub struct Waiting {
    sleeper: Sleeper,
    seen: u64,
}

impl Waiting {
    /// Whether it has been idle so long that to tell of it costs nothing that matters: it sleeps between its turns, or has polled many times.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.sleeper.is_long()
    }
}

impl<M: CoreMode> Engine<M> {
    /// Polls until `done` says so: spins, then yields, then sleeps.
    ///
    /// # Errors
    /// Whatever a poll finds wrong.
    #[inline]
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) -> Result<(), Error> {
        if done() {
            return Ok(());
        }
        let mut sleeper = self.sleeper();
        while !done() {
            self.turn(&mut sleeper)?;
        }
        Ok(())
    }

    /// How this rank waits from now on: the specification's `gasnet_set_waitmode`.
    pub fn set_wait_mode(&self, mode: WaitMode) {
        self.waits.mode.store(mode as u32, Ordering::Relaxed);
    }

    /// How this rank waits.
    pub fn wait_mode(&self) -> WaitMode {
        WaitMode::from_number(self.waits.mode.load(Ordering::Relaxed))
    }

    fn policy(&self) -> Policy {
        self.waits.patience.policy(self.wait_mode())
    }

    /// What a waiting loop keeps from turn to turn. Made before the loop's condition is looked at for the first time.
    pub fn sleeper(&self) -> Waiting {
        Waiting { sleeper: Sleeper::new(self.policy()), seen: self.waits.worked.events() }
    }

    /// One turn of a waiting loop: polls, and gives way if there was nothing to do.
    ///
    /// # Errors
    /// Whatever a poll finds wrong.
    #[inline]
    pub fn turn(&self, waiting: &mut Waiting) -> Result<(), Error> {
        let handled = self.poll()?;
        if handled > 0 {
            waiting.sleeper.worked();
        } else if self.is_over() {
            return Err(Error::Over);
        } else {
            let step = waiting.sleeper.step();
            if step != Step::Spin {
                self.transfers.rdma().look_around();
            }
            match step {
                Step::Spin => gasworks_sync::spin(),
                Step::Yield => std::thread::yield_now(),
                // Sleeping would delay what only polling moves.
                Step::Sleep(_) if self.is_busy() => std::thread::yield_now(),
                // Not if another thread has worked since the loop last looked: what it did may be what is waited for.
                Step::Sleep(longest) => {
                    if self.sleep(longest, &|| self.waits.worked.arm() == waiting.seen)? {
                        self.waits.sleeps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
        // Before the loop looks at its condition again: whoever has seen that another thread worked also sees what it
        // did.
        waiting.seen = self.waits.worked.events();
        Ok(())
    }

    /// Wakes this rank's threads that sleep in a wait.
    pub fn wake(&self) {
        if self.waits.worked.count().wanted {
            self.waits.worked.disarm();
            self.router.wake();
        }
    }

    /// Says that a poll of this thread did something: another thread may sleep that waits for just that. In `Seq` there
    /// is none.
    #[inline]
    pub(super) fn note_work(&self) {
        if M::PARALLEL {
            self.wake();
        }
    }
}
