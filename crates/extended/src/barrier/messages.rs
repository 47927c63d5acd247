//! The barrier by active messages.
//!
//! By dissemination: in step `s` of a phase every rank tells the rank 2^s further on, and hears from the one 2^s before;
//! after the last step it has heard, directly or not, of all. Over rank 0: every rank tells rank 0, which tells all
//! when all have come. Either way a message carries the name on which those that it speaks for agree. A rank is at most
//! one phase ahead of any other, so what is heard is kept for two phases.

use gasworks_core::observe::{Standing, Witness};
use gasworks_core::{Category, CoreMode, Engine, Error, Handlers, Machine, Name, Outgoing, Turned};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::{Lock, Mode, Par};
use std::sync::Arc;

/// The library's handler index for a step.
const STEP: u8 = 1;
const MAX_STEPS: usize = 32;
/// The rank that all others tell in the central way, and the steps there: to it, and from it.
const CENTRE: u32 = 0;
const GATHER: u32 = 0;
const SPREAD: u32 = 1;

/// In what is heard: how many have spoken, above the name that they agree on.
const ONE: u64 = 1 << 34;

/// Whom a rank tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Those at doubling distances: `AMDISSEM`.
    Dissemination,
    /// Rank 0: `AMCENTRAL`.
    Central,
}

/// One rank's state.
pub struct Messages {
    algorithm: Algorithm,
    rank: u32,
    ranks: u32,
    /// What was heard in each step of the even phase and of the odd.
    heard: [[AtomicU64; MAX_STEPS]; 2],
    inner: <Par as Mode>::Lock<Inner>,
}

#[derive(Default)]
struct Inner {
    begun: u32,
    finished: u32,
    /// What this rank and those that it has heard of agree on.
    name: Name,
    step: u32,
    /// How many ranks have been told in this step.
    told: u32,
    /// Whether it is among the machines.
    runs: bool,
}

impl Messages {
    /// The state of one rank, with its handler entered into the table.
    ///
    /// # Errors
    /// The handler's index is taken.
    pub fn register<M: CoreMode>(
        algorithm: Algorithm,
        rank: u32,
        ranks: u32,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Self>) -> Box<M::Function>,
    ) -> Result<Arc<Self>, Error> {
        let heard = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        let state = Arc::new(Self { algorithm, rank, ranks, heard, inner: Lock::new(Inner::default()) });
        let shape = (Category::Short, false, 4 * 4);
        handlers.register_internal(STEP, "gasworks.barrier", shape, boxed(state.clone()))?;
        Ok(state)
    }

    /// A step's message has come: its arguments are the phase's parity, the step and the name.
    pub fn hear(&self, args: &[u8]) {
        let word = |at: usize| args.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        if let (Some(parity), Some(step), Some(id), Some(kind)) = (word(0), word(4), word(8), word(12)) {
            self.note(parity, step, Name::decode(u64::from(kind) << 32 | u64::from(id)));
        }
    }

    /// One more has spoken.
    fn note(&self, parity: u32, step: u32, name: Name) {
        let heard = self.heard.get(parity as usize).and_then(|steps| steps.get(step as usize));
        let with = |old: u64| ((old & !(ONE - 1)) + ONE) | Name::decode(old & (ONE - 1)).and(name).encode();
        if let Some(heard) = heard {
            let mut old = heard.load(Ordering::Relaxed);
            while let Err(now) = heard.compare_exchange(old, with(old), Ordering::AcqRel, Ordering::Relaxed) {
                old = now;
            }
        }
    }

    /// What `count` ranks agree on once so many have spoken in this step; it is forgotten then.
    fn take(&self, parity: u32, step: u32, count: u32) -> Option<Name> {
        let heard = &self.heard[parity as usize][step as usize];
        let word = heard.load(Ordering::Acquire);
        if word / ONE < u64::from(count) {
            return None;
        }
        heard.store(0, Ordering::Relaxed);
        Some(Name::decode(word & (ONE - 1)))
    }

    /// Announces this rank, and has the phase go on at every poll: a rank that polls for other reasons passes the word on.
    pub(super) fn begin<M: CoreMode>(self: &Arc<Self>, engine: &Engine<M>, name: Name) {
        let starts = self.inner.with(|inner| {
            inner.begun = inner.begun.wrapping_add(1);
            inner.name = name;
            // What fails here fails again in the test that finishes the phase.
            let finished = self.advance(engine, inner) == Ok(Turned::Ended);
            !finished && !std::mem::replace(&mut inner.runs, true)
        });
        if starts {
            engine.start_machine(self.clone());
        }
    }

    /// Once the phase begun last is finished, what all agree on.
    pub(super) fn done<M: CoreMode>(&self, engine: &Engine<M>) -> Result<Option<Name>, Error> {
        let done =
            |inner: &mut Inner| Ok((self.advance(engine, inner)? == Turned::Ended).then_some(inner.name));
        // Another thread that is at it already does as well.
        self.inner.try_with(done).unwrap_or(Ok(None))
    }

    /// Takes as many steps as can be taken: all once the phase begun last is finished, and what all agree on is the name.
    fn advance<M: CoreMode>(&self, engine: &Engine<M>, inner: &mut Inner) -> Result<Turned, Error> {
        if inner.begun != inner.finished {
            let turned = match self.algorithm {
                Algorithm::Dissemination => self.disseminate(engine, inner)?,
                Algorithm::Central => self.meet_at_centre(engine, inner)?,
            };
            if turned != Turned::Ended {
                return Ok(turned);
            }
            inner.finished = inner.begun;
            (inner.step, inner.told) = (0, 0);
        }
        Ok(Turned::Ended)
    }

    fn disseminate<M: CoreMode>(&self, engine: &Engine<M>, inner: &mut Inner) -> Result<Turned, Error> {
        loop {
            let distance = 1u64 << inner.step;
            if distance >= u64::from(self.ranks) {
                return Ok(Turned::Ended);
            }
            if inner.told == 0 {
                let to = ((u64::from(self.rank) + distance) % u64::from(self.ranks)) as u32;
                if !self.tell(engine, to, inner)? {
                    return Ok(Turned::Busy);
                }
                inner.told = 1;
            }
            let Some(name) = self.take(inner.begun % 2, inner.step, 1) else { return Ok(Turned::Waits) };
            inner.name = inner.name.and(name);
            inner.step += 1;
            inner.told = 0;
        }
    }

    fn meet_at_centre<M: CoreMode>(&self, engine: &Engine<M>, inner: &mut Inner) -> Result<Turned, Error> {
        let parity = inner.begun % 2;
        if self.rank == CENTRE {
            if inner.step == GATHER {
                let Some(name) = self.take(parity, GATHER, self.ranks - 1) else { return Ok(Turned::Waits) };
                inner.name = inner.name.and(name);
                inner.step = SPREAD;
            }
            while inner.told < self.ranks - 1 {
                if !self.tell(engine, CENTRE + 1 + inner.told, inner)? {
                    return Ok(Turned::Busy);
                }
                inner.told += 1;
            }
            return Ok(Turned::Ended);
        }
        if inner.told == 0 {
            if !self.tell(engine, CENTRE, inner)? {
                return Ok(Turned::Busy);
            }
            inner.told = 1;
        }
        let Some(name) = self.take(parity, SPREAD, 1) else { return Ok(Turned::Waits) };
        inner.name = name;
        Ok(Turned::Ended)
    }

    /// Tells a rank the step and the name; false if it must be tried again.
    fn tell<M: CoreMode>(&self, engine: &Engine<M>, to: u32, inner: &Inner) -> Result<bool, Error> {
        let name = inner.name.encode();
        let words = [inner.begun % 2, inner.step, name as u32, (name >> 32) as u32];
        let mut args = [0u8; 16];
        args.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        let message =
            Outgoing { category: Category::Short, handler: STEP, args: &args, payload: &[], landing: 0 };
        match engine.try_request(to, &message) {
            Ok(()) => Ok(true),
            Err(error) if error.is_busy() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// While a phase is under way.
impl<M: CoreMode> Machine<M> for Messages {
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error> {
        let turn = |inner: &mut Inner| {
            let turned = self.advance(engine, inner);
            inner.runs = matches!(turned, Ok(Turned::Waits | Turned::Busy));
            turned
        };
        self.inner.try_with(turn).unwrap_or(Ok(Turned::Waits))
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "barrier by {:?} of rank {} of {}", self.algorithm, self.rank, self.ranks)
    }
}

impl Witness for Messages {
    fn standing(&self) -> Standing {
        self.inner.with(|&mut Inner { begun, finished, .. }| Standing {
            begun: begun.into(),
            waiting: begun != finished,
        })
    }
}
