//! The split-phase barrier over all ranks.
//!
//! To begin it releases what this rank did before; to finish it acquires what every rank did before its begin.
//! Between the two a rank may do anything but begin another.

use crate::Error;
use gasworks_core::engine::Task;
use gasworks_core::{Category, CoreMode, Engine, Entry, Handlers, Outgoing, SharedBarrier, Signature};
use gasworks_sync::atomic::{AtomicU32, Ordering};
use gasworks_sync::{Lock, Mode, Par};
use std::sync::Arc;

/// The library's handler index for a step of the dissemination.
const STEP: u8 = 1;
const MAX_STEPS: usize = 32;

/// How the ranks meet.
pub enum Way<M: CoreMode> {
    /// In shared memory.
    Shared(Box<M::Barrier>),
    /// By messages.
    Dissemination(Arc<Dissemination>),
}

/// Which phase was begun last, from 1, and whether it is still to be finished.
#[derive(Clone, Copy, Default)]
struct Phase {
    number: u64,
    open: bool,
}

/// The barrier of a job.
pub struct Barrier<M: CoreMode> {
    way: Way<M>,
    phase: <Par as Mode>::Lock<Phase>,
}

impl<M: CoreMode> Barrier<M> {
    /// A barrier that meets this way.
    pub fn new(way: Way<M>) -> Self {
        Self { way, phase: Lock::new(Phase::default()) }
    }

    /// Announces this rank. Does not wait. Returns the number of the phase, which the other calls are given.
    ///
    /// # Errors
    /// The phase before was not finished.
    pub fn begin(&self, engine: &Engine<M>) -> Result<u64, Error> {
        self.phase.with(|phase| {
            if phase.open {
                return Err(Error::Barrier("begun twice: finish the first by test or wait"));
            }
            *phase = Phase { number: phase.number + 1, open: true };
            match &self.way {
                Way::Shared(barrier) => barrier.arrive(),
                Way::Dissemination(state) => {
                    state.begin();
                    let _ = state.advance(engine); // a failure shows again in the test that finishes the phase
                }
            }
            Ok(phase.number)
        })
    }

    /// Whether every rank has begun phase `number`; then it is finished. Does not poll.
    ///
    /// # Errors
    /// That phase is not the one under way; a message failed.
    #[inline]
    pub fn test(&self, engine: &Engine<M>, number: u64) -> Result<bool, Error> {
        self.phase.with(|phase| {
            if !phase.open || phase.number != number {
                return Err(Error::Barrier("tested or waited for after it was finished"));
            }
            let done = match &self.way {
                Way::Shared(barrier) => barrier.done(),
                Way::Dissemination(state) => state.advance(engine)?,
            };
            phase.open = !done;
            Ok(done)
        })
    }

    /// Polls until every rank has begun phase `number`.
    ///
    /// # Errors
    /// Those of [`test`](Self::test), and whatever a poll finds wrong.
    #[inline]
    pub fn wait(&self, engine: &Engine<M>, number: u64) -> Result<(), Error> {
        let mut sleeper = engine.sleeper();
        while !self.test(engine, number)? {
            engine.turn(&mut sleeper)?;
        }
        Ok(())
    }

    /// The phase that was begun and not finished, if there is one.
    pub fn under_way(&self) -> Option<u64> {
        self.phase.with(|phase| phase.open.then_some(phase.number))
    }
}

/// The dissemination barrier: in step `s` of a phase every rank tells the rank 2^s further on, and hears from the one
/// 2^s before. A rank is at most one phase ahead of any other, so two sets of counters are enough.
pub struct Dissemination {
    rank: u32,
    ranks: u32,
    heard: [[AtomicU32; MAX_STEPS]; 2],
    inner: <Par as Mode>::Lock<Inner>,
}

#[derive(Default)]
struct Inner {
    begun: u32,
    finished: u32,
    step: u32,
    told: bool,
}

impl Dissemination {
    /// The state of one rank, with its handler entered into the table.
    ///
    /// # Errors
    /// The handler's index is taken.
    pub fn register<M: CoreMode>(
        rank: u32,
        ranks: u32,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Dissemination>) -> Box<M::Function>,
    ) -> Result<Arc<Self>, gasworks_core::Error> {
        let heard = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0)));
        let state = Arc::new(Self { rank, ranks, heard, inner: Lock::new(Inner::default()) });
        let signature =
            Signature { name: "gasworks.barrier".into(), category: Category::Short, reply: false, nargs: 2 };
        handlers.register_internal(STEP, Entry { signature, function: boxed(state.clone()) })?;
        Ok(state)
    }

    /// A step's message has come: its arguments are the phase's parity and the step.
    pub fn hear(&self, args: &[u8]) {
        let word = |at: usize| args.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        if let (Some(parity @ 0..=1), Some(step)) = (word(0), word(4))
            && let Some(heard) = self.heard[parity as usize].get(step as usize)
        {
            heard.fetch_add(1, Ordering::Release);
        }
    }

    fn begin(&self) {
        self.inner.with(|inner| inner.begun = inner.begun.wrapping_add(1));
    }

    /// Takes as many steps as can be taken; whether the phase begun last is finished.
    fn advance<M: CoreMode>(&self, engine: &Engine<M>) -> Result<bool, gasworks_core::Error> {
        self.inner.try_with(|inner| self.advance_inner(engine, inner)).unwrap_or(Ok(false))
    }

    fn advance_inner<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        inner: &mut Inner,
    ) -> Result<bool, gasworks_core::Error> {
        while inner.begun != inner.finished {
            let distance = 1u64 << inner.step;
            if distance >= u64::from(self.ranks) {
                inner.finished = inner.finished.wrapping_add(1);
                inner.step = 0;
                continue;
            }
            let parity = inner.begun % 2;
            if !inner.told {
                let to = ((u64::from(self.rank) + distance) % u64::from(self.ranks)) as u32;
                let mut args = [0u8; 8];
                args[..4].copy_from_slice(&parity.to_le_bytes());
                args[4..].copy_from_slice(&inner.step.to_le_bytes());
                let message = Outgoing {
                    category: Category::Short,
                    handler: STEP,
                    args: &args,
                    payload: &[],
                    landing: 0,
                };
                match engine.try_request(to, &message) {
                    Ok(()) => inner.told = true,
                    Err(error) if error.is_busy() => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            let heard = &self.heard[parity as usize][inner.step as usize];
            if heard.load(Ordering::Acquire) == 0 {
                return Ok(false);
            }
            heard.fetch_sub(1, Ordering::Relaxed);
            inner.step += 1;
            inner.told = false;
        }
        Ok(true)
    }
}

/// A dissemination barrier on the progress list, so that a rank that polls for other reasons passes the word on.
pub struct Turn(pub Arc<Dissemination>);

impl<M: CoreMode> Task<M> for Turn {
    fn turn(&self, engine: &Engine<M>) -> Result<(), gasworks_core::Error> {
        self.0.advance(engine).map(|_| ())
    }
}
