//! Collectives of a team: what all its members do together, by messages.
//!
//! - [`matching`]: what members send each other, in pieces; it is kept until it is wanted.
//! - `part`: one rank's part in a collective: a schedule that goes on step by step.
//! - `exchange`: all hear what all say. `tree`: from one to all, and from all to one. `spread`: from each its own. `scan`: from all before each.
//!
//! A team's collectives are numbered in the order in which its members call them, which is the same on all; several may be under way.

mod exchange;
pub mod matching;
mod part;
mod scan;
mod spread;
mod tree;

use crate::{Error, Event};
use gasworks_core::{CoreMode, Engine, Machine, Name, OpId, Turned};
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{Lock, Mode, Par, kill_point};
use part::{Io, Part, Stop};
use std::sync::Arc;

pub(crate) use exchange::Exchange;
pub use matching::TeamNumber;
pub(crate) use part::{Bytes, Of, Schedule};
pub(crate) use scan::Scan;
pub(crate) use spread::{AllToAll, Blocks, Gather, Scatter};
pub(crate) use tree::{Broadcast, Reduce, ReduceAll};

/// Every so many collectives of a team its members meet, so that none is further ahead of another.
const WINDOW: u32 = 16;
/// The first step of those meetings.
const MEETING: u32 = 1 << 30;

/// A schedule that waits until all have met as often as is due before it, and before which they meet where it is due then.
struct Windowed<S> {
    /// How often they have.
    met: Arc<AtomicU32>,
    due: u32,
    /// The last that may go ahead.
    is_last: bool,
    meeting: Option<Exchange>,
    schedule: S,
}

impl<S: Schedule> Windowed<S> {
    fn new(of: &Of, schedule: S) -> Self {
        let is_last = of.order % WINDOW == WINDOW - 1;
        let meeting = (is_last && !schedule.meets()).then(|| Exchange::agree(Name::Any, MEETING));
        Self { met: of.met.clone(), due: of.order / WINDOW, is_last, meeting, schedule }
    }

    fn have_met(&self) {
        if self.is_last {
            // They come after each other, and each only once the one before has been.
            self.met.store(self.due.wrapping_add(1), Relaxed);
        }
    }
}

impl<S: Schedule> Schedule for Windowed<S> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        if self.met.load(Relaxed) < self.due {
            return Err(Stop::Waits);
        }
        if let Some(meeting) = &mut self.meeting {
            meeting.turn(io)?;
            self.meeting = None;
            self.have_met();
        }
        self.schedule.turn(io)?;
        if self.schedule.meets() {
            self.have_met();
        }
        Ok(())
    }
}

fn part_of<S: Schedule>(of: Of, schedule: S) -> Part<Windowed<S>> {
    let schedule = Windowed::new(&of, schedule);
    Part::new(of, schedule)
}

/// How elements are combined.
pub trait Combine: Send {
    /// Bytes of an element.
    fn element(&self) -> usize;

    /// Combines each element of the first with the one in the same place of the second, which come from members before and after each other; the
    /// result goes into the first. Both are as long, some elements, and aligned for any; the second is not used any more.
    fn combine(&mut self, before: &mut [u8], after: &mut [u8]);

    /// Whether it makes no difference which of the two comes first.
    fn commutes(&self) -> bool {
        false
    }
}

/// Does this rank's part in a collective, and polls meanwhile.
pub(crate) fn run<M: CoreMode, S: Schedule>(engine: &Engine<M>, of: Of, schedule: S) -> Result<S, Error> {
    let (mut part, mut sleeper, mut other) = (part_of(of, schedule), engine.sleeper(), None);
    loop {
        let polled = match part.turn(engine) {
            Ok(()) => {
                kill_point!("collective.through");
                return other.map_or(Ok(part.schedule.schedule), |error| Err(Error::Core(error)));
            }
            // A credit comes by a message, which ends a sleep; of room in a queue nobody tells, so that sleeps are short at first.
            Err(Stop::Waits | Stop::Busy) => engine.turn(&mut sleeper),
            Err(Stop::Failed(error)) => return Err(error.into()),
        };
        match polled {
            Ok(()) => {}
            // Of the program's own; the other members wait for this one all the same.
            Err(error @ gasworks_core::Error::Handler { .. }) => _ = other.get_or_insert(error),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Nothing is done, but what is due before it.
struct Nothing;

impl Schedule for Nothing {
    fn turn(&mut self, _: &mut Io<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// As [`run`], or this rank was given something wrong: then it does no more than meet the others where that is due.
pub(crate) fn run_if<M: CoreMode, S: Schedule>(
    engine: &Engine<M>,
    of: Of,
    schedule: Result<S, Error>,
) -> Result<S, Error> {
    match schedule {
        Ok(schedule) => run(engine, of, schedule),
        Err(error) => run(engine, of, Nothing).and(Err(error)),
    }
}

/// As [`begin`], or this rank was given something wrong, as in [`run_if`].
pub(crate) fn begin_if<M: CoreMode, S: Schedule + 'static>(
    engine: &Engine<M>,
    of: Of,
    schedule: Result<S, Error>,
) -> Result<Event, Error> {
    match schedule {
        Ok(schedule) => begin(engine, of, schedule),
        Err(error) => {
            Started::new(engine, of, Nothing);
            Err(error)
        }
    }
}

/// A rank's part in a collective that goes on at every poll.
pub(crate) struct Started<S> {
    state: <Par as Mode>::Lock<State<S>>,
    /// What is done when it is through.
    event: Option<OpId>,
}

enum State<S> {
    Going(Box<Part<Windowed<S>>>),
    Through(Result<S, gasworks_core::Error>),
    /// While it is turned.
    Turning,
}

impl<S: Schedule + 'static> Started<S> {
    /// Begins it.
    pub fn new<M: CoreMode>(engine: &Engine<M>, of: Of, schedule: S) -> Arc<Self> {
        Self::with(engine, of, schedule, None)
    }

    fn with<M: CoreMode>(engine: &Engine<M>, of: Of, schedule: S, event: Option<OpId>) -> Arc<Self> {
        let this = Arc::new(Self { state: Lock::new(State::Going(Box::new(part_of(of, schedule)))), event });
        if this.advance(engine) != Turned::Ended {
            engine.start_machine(this.clone());
        }
        this
    }

    /// What came of it, once it is through.
    pub fn outcome<T>(&self, of: impl FnOnce(&S) -> T) -> Option<Result<T, gasworks_core::Error>> {
        self.state.with(|state| match state {
            State::Through(Ok(schedule)) => Some(Ok(of(schedule))),
            State::Through(Err(error)) => Some(Err(error.clone())),
            State::Going(_) | State::Turning => None,
        })
    }

    fn advance<M: CoreMode>(&self, engine: &Engine<M>) -> Turned {
        self.state.with(|state| {
            let State::Going(mut part) = std::mem::replace(state, State::Turning) else {
                return Turned::Ended;
            };
            let outcome = match part.turn(engine) {
                Err(Stop::Waits) => {
                    *state = State::Going(part);
                    return Turned::Waits;
                }
                Err(Stop::Busy) => {
                    *state = State::Going(part);
                    return Turned::Busy;
                }
                Ok(()) => Ok(part.schedule.schedule),
                Err(Stop::Failed(error)) => Err(error),
            };
            if let Some(event) = self.event {
                engine.end_operation(event, outcome.is_ok());
            }
            *state = State::Through(outcome);
            Turned::Ended
        })
    }
}

impl<M: CoreMode, S: Schedule + 'static> Machine<M> for Started<S> {
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, gasworks_core::Error> {
        let turned = self.advance(engine);
        match (turned, self.event) {
            // Nobody asks for the outcome but by the event, which cannot say why.
            (Turned::Ended, Some(_)) => self.outcome(|_| turned).unwrap_or(Ok(turned)),
            _ => Ok(turned),
        }
    }
}

/// Begins a collective; the event says when this rank's part in it is over.
fn begin<M: CoreMode, S: Schedule + 'static>(
    engine: &Engine<M>,
    of: Of,
    schedule: S,
) -> Result<Event, Error> {
    let event = engine.start_operation();
    let begun = Started::with(engine, of, schedule, Some(event));
    match begun.outcome(|_| ()) {
        None => Ok(Event(Some(event))),
        Some(outcome) => {
            engine.abandon(event);
            Ok(outcome.map(|()| Event::DONE)?)
        }
    }
}
