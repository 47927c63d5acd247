//! Collectives of a team: what all its members do together, by messages, or in shared memory where they have a board.
//!
//! - [`matching`]: what members send each other, in pieces; it is kept until it is wanted.
//! - `buffers`: memory of the library's own for that, which is used again.
//! - `part`: one rank's part in a collective: a schedule that goes on step by step. `reused`: machines of those that are begun.
//! - `round`: where a rank is on its team's board. `short`: collectives that are no more than that. `long`: those that go there by pieces.
//! - `layout`: where members are, if in several neighbourhoods. `binomial`: where they are in a tree.
//! - `exchange`: all hear what all say. `tree`: from one to all, and from all to one; `word`: of a word, by the network's own means, and `ticket`: in which order. `spread`: from each its own, and `bruck`: short ones by way of others. `scan`: from all before each.
//!
//! A team's collectives are numbered in the order in which its members call them, which is the same on all; several may be under way.

mod binomial;
mod bruck;
mod buffers;
mod bytes;
mod exchange;
mod layout;
mod long;
pub mod matching;
mod numbers;
mod part;
mod reused;
mod round;
mod scan;
mod short;
mod spread;
mod ticket;
mod tree;
mod word;

use crate::Error;
use crate::event::{self, Event, Kept};
use bytes::Stop;
use gasworks_core::observe::Observer;
use gasworks_core::{CoreMode, Engine, Machine, Name, OpId, Rank, Turned, WordOp};
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Lock, Mode, Par, kill_point};
use part::{Io, Part};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[cfg(test)]
pub(crate) use bruck::Bruck;
pub(crate) use bytes::Bytes;
pub use exchange::Meets;
pub(crate) use exchange::{Appended, Between, Brought, Exchange};
pub(crate) use layout::Layout;
pub(crate) use long::{Long, Pieces, has_parts, has_pieces, is_reduced_by_pieces, is_scanned_by_pieces};
pub use matching::TeamNumber;
pub use numbers::Numbers;
#[cfg(test)]
pub(crate) use part::Sender;
pub(crate) use part::{Either, Of, Schedule};
pub(crate) use round::{Kind, Round, What, Which};
pub(crate) use scan::Scan;
pub(crate) use short::{Combined, Copies, MAX_POST, OnBoard, Short, Steps, is_combined};
pub(crate) use spread::{AllToAll, AnyAllToAll, Blocks, Gather, Scatter};
pub(crate) use ticket::{Ticket, TicketQueue};
pub(crate) use tree::{AnyReduce, Broadcast, Reduce, ReduceAll};

/// Every so many collectives of a team its members meet, so that none is further ahead of another.
const WINDOW: u32 = 16;
/// Bits of a step, one for each of what goes on beside a schedule's own steps, which count up from 0.
mod step {
    /// The first member sends a chunk of the result to the root.
    pub const TO_ROOT: u32 = 1 << 27;
    /// Members meet before a collective, as it was asked for.
    pub const FIRST: u32 = 1 << 28;
    /// They meet behind it.
    pub const LAST: u32 = 1 << 29;
    /// They meet so that none is further ahead.
    pub const MEETING: u32 = 1 << 30;
}

/// A schedule that waits until all have met as often as is due before it, and before which they meet where it is due then. Where the team has a
/// board, its members see there how far the others are, and whether they are in the same collective.
struct Windowed<S> {
    /// How often they have.
    met: Arc<AtomicU32>,
    due: u32,
    /// The last that may go ahead.
    is_last: bool,
    meeting: Option<Exchange>,
    /// On a board: whether this member has said what it is in, and how many have been found to be in the same.
    has_posted: bool,
    checked: u32,
    is_over: bool,
    schedule: S,
}

impl<S: Schedule> Windowed<S> {
    fn new(of: &Of, schedule: S) -> Self {
        let is_last = of.order % WINDOW == WINDOW - 1;
        let meeting = (is_last && !schedule.meets()).then(|| Exchange::agree(Name::Any, step::MEETING));
        let (met, due, has_posted, checked, is_over) = (of.met.clone(), of.order / WINDOW, false, 0, false);
        Self { met, due, is_last, meeting, has_posted, checked, is_over, schedule }
    }

    fn have_met(&self) {
        if self.is_last {
            // They come after each other, and each only once the one before has been.
            self.met.store(self.due.wrapping_add(1), Relaxed);
        }
    }

    /// Goes on in a round on the board.
    fn turn_on_board(&mut self, round: &Round<'_>, io: &mut Io<'_>) -> Result<(), Stop> {
        if !self.has_posted {
            round.room(0)?;
            round.announce();
            self.has_posted = true;
        }
        let mut turned = self.schedule.turn(io);
        if let Err(Stop::Waits(_) | Stop::Busy) = turned {
            let checked = round.check(self.checked).map(|checked| self.checked = checked);
            turned = checked.and(turned);
        }
        if let Ok(()) | Err(Stop::Failed(_)) = turned {
            self.end(round);
        }
        turned
    }

    fn end(&mut self, round: &Round<'_>) {
        self.is_over = true;
        round.finish();
    }

    /// It is turned no more, whatever it waits for.
    #[cold]
    fn abandon(&mut self, of: &Of) {
        match of.round() {
            Some(round) if self.schedule.posts() => self.schedule.abandon(&round),
            Some(round) if !self.is_over => self.end(&round),
            _ => {}
        }
    }
}

impl<S: Schedule> Schedule for Windowed<S> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        if self.schedule.posts() {
            return self.schedule.turn(io);
        }
        if let Some(round) = io.round() {
            return self.turn_on_board(&round, io);
        }
        if self.met.load(Relaxed) < self.due {
            return Err(Stop::Waits(None));
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

impl<S: Schedule> Part<Windowed<S>> {
    /// It is turned no more, whatever it waits for.
    #[cold]
    fn abandon(&mut self) {
        self.schedule.abandon(&self.of);
    }
}

fn part_of<S: Schedule>(of: Of, schedule: S) -> Part<Windowed<S>> {
    let schedule = Windowed::new(&of, schedule);
    Part::new(of, schedule)
}

/// The turns of a rank's part, for tests that play the network: each goes as far as it can at once, and says whether the part is over.
#[cfg(test)]
pub(crate) fn turns<'a>(
    of: Of,
    schedule: impl Schedule + 'a,
) -> impl FnMut(&dyn Sender) -> Result<bool, gasworks_core::Error> + 'a {
    let mut part = part_of(of, schedule);
    move |sender| match part.turn(sender) {
        Ok(()) => Ok(true),
        Err(Stop::Waits(_) | Stop::Busy) => Ok(false),
        Err(Stop::Failed(error)) => Err(error),
    }
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

    /// What does the same to elements of 4 or 8 bytes as words, beginning with the lowest bits, if there is such a thing.
    fn word_op(&self) -> Option<WordOp> {
        None
    }
}

/// Does this rank's part in a collective, and polls meanwhile.
pub(crate) fn run<M: CoreMode, S: Schedule>(engine: &Engine<M>, of: Of, schedule: S) -> Result<S, Error> {
    let _span = Span::begin(engine, of.what);
    let which = of.which();
    let mut part = part_of(of, schedule);
    let outcome = turn_until_over(engine, which, || part.turn(engine));
    if outcome.as_ref().is_err_and(others_wait) {
        part.abandon();
    }
    outcome.map(|()| part.schedule.schedule)
}

/// The same of one on a board, which `of` says more of.
#[inline]
pub(crate) fn run_on_board<M: CoreMode>(
    engine: &Engine<M>,
    round: &Round<'_>,
    of: impl FnOnce() -> Of,
    part: Result<impl OnBoard, Error>,
) -> Result<(), Error> {
    let mut part = match part {
        Ok(part) => part,
        Err(error) => return Err(refuse(engine, of(), error)),
    };
    let _span = Span::begin(engine, round.what());
    let outcome = turn_until_over(engine, round.which(), || part.advance(round));
    if outcome.as_ref().is_err_and(others_wait) {
        part.give_up(round);
    }
    outcome
}

/// Whether others are to be told that this rank does no more: that their job is closed they come to know by themselves.
fn others_wait(error: &Error) -> bool {
    *error != Error::Core(gasworks_core::Error::Over)
}

/// This rank's part in a collective, which the observer, if there is one, is told of, until it is dropped.
struct Span<'e> {
    observed: Option<(&'e Observer, What, u64)>,
}

impl<'e> Span<'e> {
    #[inline]
    fn begin<M: CoreMode>(engine: &'e Engine<M>, what: What) -> Self {
        Self { observed: engine.observer().map(|observer| (observer, what, begins(observer, what))) }
    }
}

impl Drop for Span<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((observer, what, start)) = self.observed {
            ends(observer, what, start);
        }
    }
}

#[cold]
fn begins(observer: &Observer, what: What) -> u64 {
    what.kind().map_or(0, |kind| observer.collective_begins(kind, what.len()))
}

#[cold]
fn ends(observer: &Observer, what: What, start: u64) {
    what.kind().into_iter().for_each(|kind| observer.collective_ends(kind, what.len(), start));
}

/// Turns this rank's part until it is over, and polls meanwhile.
#[inline]
fn turn_until_over<M: CoreMode>(
    engine: &Engine<M>,
    which: Which,
    mut turn: impl FnMut() -> Result<(), Stop>,
) -> Result<(), Error> {
    let (mut sleeper, mut other, mut long) = (engine.sleeper(), None, LongWaitGuard { engine, told: None });
    loop {
        let polled = match turn() {
            Ok(()) => {
                kill_point!("collective.through");
                return other.map_or(Ok(()), |error| Err(Error::Core(error)));
            }
            // A credit comes by a message, which ends a sleep; of room in a queue nobody tells, so that sleeps are short at first.
            Err(stop @ (Stop::Waits(_) | Stop::Busy)) => {
                if sleeper.is_long() {
                    long.waits(which, stop);
                }
                engine.turn(&mut sleeper)
            }
            Err(Stop::Failed(error)) => return Err(error.into()),
        };
        match polled {
            Ok(()) => {}
            // Of the program's own, or of a collective that was begun; the other members wait for this one all the same.
            Err(error @ (gasworks_core::Error::Handler { .. } | gasworks_core::Error::BadMessage { .. })) => {
                _ = other.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What is told of a collective that takes long, until it is over.
struct LongWaitGuard<'e, M: CoreMode> {
    engine: &'e Engine<M>,
    told: Option<(u64, Option<Rank>)>,
}

impl<M: CoreMode> LongWaitGuard<'_, M> {
    #[cold]
    fn waits(&mut self, which: Which, stop: Stop) {
        let rank = match stop {
            Stop::Waits(rank) => rank,
            _ => None,
        };
        match &mut self.told {
            Some((_, told)) if *told == rank => {}
            Some((number, told)) => {
                *told = rank;
                self.engine.waits_for(*number, rank);
            }
            None => self.told = which.long(rank).map(|wait| (self.engine.begin_long_wait(wait), rank)),
        }
    }
}

impl<M: CoreMode> Drop for LongWaitGuard<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some((number, _)) = self.told {
            self.engine.end_long_wait(number);
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
        Err(error) => Err(refuse(engine, of, error)),
    }
}

/// This rank was given something wrong, and has had its turn.
#[cold]
pub(crate) fn refuse<M: CoreMode>(engine: &Engine<M>, of: Of, error: Error) -> Error {
    run(engine, of.of_nothing(), Nothing).err().unwrap_or(error)
}

/// What is begun: its event, and what was kept for it if it is over.
pub(crate) type Begun<M> = Result<(Event, Kept<M>), Error>;

/// As [`begin`], or this rank was given something wrong, as in [`run_if`].
pub(crate) fn begin_if<M: CoreMode, S: Schedule + 'static>(
    engine: &Engine<M>,
    of: Of,
    schedule: Result<S, Error>,
    keep: Kept<M>,
) -> Begun<M> {
    match schedule {
        Ok(schedule) => begin(engine, of, schedule, keep),
        Err(error) => {
            Started::new(engine, of.of_nothing(), Nothing);
            Err(error)
        }
    }
}

/// The same of one on a board, which `of` says more of.
pub(crate) fn begin_on_board<M: CoreMode>(
    engine: &Engine<M>,
    round: &Round<'_>,
    of: impl FnOnce() -> Of,
    part: Result<impl OnBoard + 'static, Error>,
    keep: Kept<M>,
) -> Begun<M> {
    let mut part = match part {
        Ok(part) => part,
        Err(error) => return begin_if(engine, of(), Err::<Nothing, _>(error), None),
    };
    if engine.observer().is_some() {
        return begin(engine, of(), part, keep);
    }
    match OnBoard::advance(&mut part, round) {
        // Nothing of it is kept where the others were faster.
        Ok(()) => Ok((Event::DONE, keep)),
        Err(Stop::Failed(error)) => Err(error.into()),
        Err(Stop::Waits(_) | Stop::Busy) => begin(engine, of(), part, keep),
    }
}

/// A rank's part in a collective that goes on at every poll.
pub(crate) struct Started<S> {
    state: <Par as Mode>::Lock<State<S>>,
    /// What is done when it is through.
    event: Option<OpId>,
    /// What it is, and when it began, for an observer.
    what: What,
    start: u64,
    /// What is told of what it waits for: the number, and the rank less one.
    told: (AtomicU64, AtomicU32),
}

struct State<S> {
    /// Where the part lies until it is through; not there while it is turned.
    place: Option<Box<Option<Part<Windowed<S>>>>>,
    /// What came of it; of one with an event not the schedule, which nobody asks for.
    outcome: Option<Result<Option<S>, gasworks_core::Error>>,
}

impl<S: Schedule + 'static> Started<S> {
    /// Begins it.
    pub fn new<M: CoreMode>(engine: &Engine<M>, of: Of, schedule: S) -> Arc<Self> {
        Self::with(engine, of, schedule, None)
    }

    fn with<M: CoreMode>(engine: &Engine<M>, of: Of, schedule: S, event: Option<OpId>) -> Arc<Self> {
        let what = of.what;
        let start = engine.observer().map_or(0, |observer| begins(observer, what));
        let matching = of.matching.clone();
        let this = matching.reused.renewed(|old: Option<&mut Self>| {
            let place = old.and_then(|old| old.state.with(|state| state.place.take()));
            let mut place = place.unwrap_or_default();
            *place = Some(part_of(of, schedule));
            let state = Lock::new(State { place: Some(place), outcome: None });
            Self { state, event, what, start, told: Default::default() }
        });
        if this.advance(engine) != Turned::Ended {
            engine.start_machine(this.clone());
        }
        this
    }

    /// What came of it, once it is through. Of one with an event nobody asks for more than whether it went well.
    pub fn outcome<T>(&self, of: impl FnOnce(Option<&S>) -> T) -> Option<Result<T, gasworks_core::Error>> {
        let outcome = |outcome: &Result<Option<S>, gasworks_core::Error>| {
            outcome.as_ref().map(|schedule| of(schedule.as_ref())).map_err(Clone::clone)
        };
        self.state.with(|state| state.outcome.as_ref().map(outcome))
    }

    /// It has not ended where it was begun: so it is told what it waits for. Called with its lock.
    fn waits<M: CoreMode>(&self, engine: &Engine<M>, which: Which, rank: Option<Rank>) {
        let (number, told) = &self.told;
        let rank_word = rank.map_or(0, |rank| rank.wrapping_add(1));
        if number.load(Relaxed) == 0 {
            let begun = which.long(rank).map_or(0, |wait| engine.begin_long_wait(wait));
            number.store(begun, Relaxed);
        } else if told.load(Relaxed) != rank_word {
            engine.waits_for(number.load(Relaxed), rank);
        } else {
            return;
        }
        told.store(rank_word, Relaxed);
        if M::PARALLEL {
            // Another thread may sleep that did not know of this.
            engine.wake();
        }
    }

    fn advance<M: CoreMode>(&self, engine: &Engine<M>) -> Turned {
        self.state.with(|state| {
            let Some(mut place) = state.place.take() else { return Turned::Ended };
            let Some(part) = &mut *place else {
                state.place = Some(place);
                return Turned::Ended;
            };
            // A panic of the program's function must not unwind through a poll, which may wait for a borrowed buffer.
            let turned = catch_unwind(AssertUnwindSafe(|| part.turn(engine)));
            let turned = turned.unwrap_or_else(|panic| {
                part.abandon();
                Err(Stop::Failed(panicked(engine.rank(), &*panic)))
            });
            let outcome = match turned {
                Err(Stop::Waits(rank)) => {
                    self.waits(engine, part.which(), rank);
                    state.place = Some(place);
                    return Turned::Waits;
                }
                Err(Stop::Busy) => {
                    state.place = Some(place);
                    return Turned::Busy;
                }
                Ok(()) => Ok(()),
                Err(Stop::Failed(error)) => Err(error),
            };
            engine.observer().into_iter().for_each(|observer| ends(observer, self.what, self.start));
            match self.told.0.load(Relaxed) {
                0 => {}
                number => engine.end_long_wait(number),
            }
            // Before what waits for it may go on: it may be the program's.
            let schedule = place.take().map(|part| part.schedule.schedule);
            let schedule = schedule.filter(|_| self.event.is_none());
            if let Some(event) = self.event {
                engine.end_operation(event, outcome.is_ok());
            }
            *state = State { place: Some(place), outcome: Some(outcome.map(|()| schedule)) };
            Turned::Ended
        })
    }
}

/// What a panic in a function of the program's becomes.
#[cold]
fn panicked(from: Rank, panic: &(dyn Any + Send)) -> gasworks_core::Error {
    let said =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(|said| &**said));
    let what = format!("the function of a collective panicked: {}", said.unwrap_or("it did not say why"));
    gasworks_core::Error::Handler { from, what }
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
    keep: Kept<M>,
) -> Begun<M> {
    let event = engine.start_operation(keep);
    let begun = Started::with(engine, of, schedule, Some(event));
    match begun.outcome(|_| ()) {
        None => Ok((Event(Some(event)), None)),
        Some(Ok(())) => Ok((Event::DONE, event::test(engine, &Event(Some(event)))?.flatten())),
        Some(Err(error)) => {
            engine.abandon(event);
            Err(error.into())
        }
    }
}
