//! The split-phase barrier over all ranks or a team, named or not: the specification's `gasnet_barrier`.
//!
//! To begin it releases what this rank did before; to finish it acquires what every rank did before its begin.
//! Between the two a rank may do anything but begin another. Each rank begins by a [`Name`]: any, an identifier, or a
//! declared mismatch; it finishes with the name that all agree on, or everywhere with [`Name::Mismatch`].
//!
//! - By the transport's own means, in shared memory or by a NIC: its [`SharedBarrier`].
//! - [`messages`]: by active messages, in steps of doubling distance (`AMDISSEM`) or over rank 0 (`AMCENTRAL`).
//! - `team`: of a team's members, by an exchange of theirs.

pub mod messages;
mod team;

pub use team::TeamBarrier;

use crate::Error;
use gasworks_core::observe::{Observer, Witness};
use gasworks_core::{CoreMode, Engine, Handlers, Name, SharedBarrier};
use gasworks_os::settings::{Kind, Setting, SettingError};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use messages::{Algorithm, Messages};
use std::sync::Arc;

pub(crate) const ALGORITHM: Setting = Setting {
    name: "GASNET_BARRIER",
    aliases: &["GASWORKS_BARRIER"],
    kind: Kind::Choice(&[
        "AUTO",
        "PSHM",
        "DISSEM",
        "AMDISSEM",
        "RDMADISSEM",
        "GNIDISSEM",
        "GNICE",
        "AMCENTRAL",
    ]),
    default: "AUTO",
    unit: "",
    meaning: "how the ranks meet: in shared memory (PSHM), by puts of the NIC over uGNI (GNIDISSEM) or its collective engines \
              (GNICE), by messages at doubling distances \
              (AMDISSEM, or DISSEM for the best such) or over rank 0 (AMCENTRAL); RDMADISSEM is the first two, by whichever the \
              ranks reach each other; AUTO is that, too, and DISSEM where there is neither",
    reader: "extended",
};

/// The word of the setting by which the ranks are to meet, for a transport that has to know it before they can.
///
/// # Errors
/// The setting is none of its words.
pub fn asked() -> Result<&'static str, SettingError> {
    ALGORITHM.choice()
}

/// How the ranks meet.
pub enum Way<M: CoreMode> {
    /// By the transport's own.
    Shared(Box<M::Barrier>),
    /// By messages.
    Messages(Arc<Messages>),
    /// As members of a team.
    Team(TeamBarrier),
    /// By one of these, in a job that is observed.
    Observed(Box<Self>, Arc<Observer>),
}

impl<M: CoreMode> Way<M> {
    /// The way that the settings ask for: `shared` where there is one and nothing else is asked for. What goes by
    /// messages is entered in the handler table (`boxed` makes the handler).
    ///
    /// # Errors
    /// The setting is none of its words, or asks for shared memory that there is not; the handler's index is taken.
    pub fn choose(
        rank: u32,
        ranks: u32,
        shared: Option<Box<M::Barrier>>,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Messages>) -> Box<M::Function>,
    ) -> Result<Self, Error> {
        let words = shared.as_ref().map_or(&[][..], |shared| shared.words());
        let algorithm = match (by(asked()?, words), shared) {
            (Some(By::Transport), Some(shared)) => return Ok(Self::Shared(shared)),
            (Some(By::Messages(algorithm)), _) => algorithm,
            _ => {
                let (variable, value) = ALGORITHM.held().unwrap_or_default();
                let wanted = [&["AUTO", "DISSEM", "AMCENTRAL"], words].concat().join(", ");
                let wanted = format!("the ranks do not meet like that here: wanted one of {wanted}");
                return Err(SettingError { variable: variable.into(), value, wanted }.into());
            }
        };
        let state = Messages::register(algorithm, rank, ranks, handlers, boxed)?;
        Ok(Self::Messages(state))
    }
}

impl<M: CoreMode> Way<M> {
    /// What sees from outside where this rank is, if the ranks meet by messages; otherwise the transport has that.
    pub fn witness(&self) -> Option<Arc<dyn Witness>> {
        match self {
            Self::Shared(_) | Self::Team(_) => None,
            Self::Messages(state) => Some(state.clone()),
            Self::Observed(way, _) => way.witness(),
        }
    }

    /// The same, of which the observer is told, if there is one.
    #[must_use]
    pub fn observed(self, observer: Option<Arc<Observer>>) -> Self {
        match observer {
            Some(observer) => Self::Observed(Box::new(self), observer),
            None => self,
        }
    }

    /// Announces this rank, by whatever way.
    #[cold]
    fn begin(&self, engine: &Engine<M>, name: Name) {
        match self {
            Self::Shared(barrier) => barrier.arrive(name),
            Self::Messages(state) => state.begin(engine, name),
            Self::Team(team) => team.begin(engine, name),
            Self::Observed(way, observer) => {
                observer.barrier_begins();
                way.begin(engine, name);
            }
        }
    }

    /// The name that all agree on once all have come, by whatever way.
    #[cold]
    fn done(&self, engine: &Engine<M>) -> Result<Option<Name>, Error> {
        match self {
            Self::Shared(barrier) => Ok(barrier.done()),
            Self::Messages(state) => Ok(state.done(engine)?),
            Self::Team(team) => team.done(),
            Self::Observed(way, observer) => {
                let done = way.done(engine)?;
                done.iter().for_each(|_| observer.barrier_ends());
                Ok(done)
            }
        }
    }
}

/// What the setting's word means.
#[derive(Debug, PartialEq)]
enum By {
    Transport,
    Messages(Algorithm),
}

/// What this word means where the transport's barrier goes by these, or has none; `None`: nothing.
fn by(asked: &str, words: &[&str]) -> Option<By> {
    match asked {
        "AUTO" if !words.is_empty() => Some(By::Transport),
        "AUTO" | "DISSEM" | "AMDISSEM" => Some(By::Messages(Algorithm::Dissemination)),
        "AMCENTRAL" => Some(By::Messages(Algorithm::Central)),
        asked => words.contains(&asked).then_some(By::Transport),
    }
}

/// The bit of the phase word that says that the phase is under way.
const OPEN: u64 = 1;

/// The barrier of a job.
pub struct Barrier<M: CoreMode> {
    way: Way<M>,
    /// Twice the number of the phase begun last, from 1, and [`OPEN`] while it is to be finished.
    phase: AtomicU64,
    /// By what name it was begun, encoded.
    begun: AtomicU64,
}

impl<M: CoreMode> Barrier<M> {
    /// A barrier that meets this way.
    pub fn new(way: Way<M>) -> Self {
        Self { way, phase: AtomicU64::new(0), begun: AtomicU64::new(0) }
    }

    /// Moves the phase word on, unless another thread has.
    #[inline]
    fn step(&self, from: u64, to: u64) -> bool {
        if M::PARALLEL {
            // Acquire and release: whoever begins a phase on one thread sees what finished the last on another.
            self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        } else {
            self.phase.store(to, Ordering::Relaxed);
            true
        }
    }

    /// Announces this rank, by this name. Does not wait. Returns the number of the phase, which the other calls are
    /// given.
    ///
    /// # Errors
    /// The phase before was not finished.
    #[inline]
    pub fn begin(&self, engine: &Engine<M>, name: Name) -> Result<u64, Error> {
        let last = self.phase.load(Ordering::Relaxed);
        if last & OPEN != 0 || !self.step(last, (last + 2) | OPEN) {
            return Err(Error::Barrier("begun twice: finish the first by test or wait"));
        }
        self.begun.store(name.encode(), Ordering::Relaxed);
        match &self.way {
            Way::Shared(barrier) => barrier.arrive(name),
            Way::Team(team) if let Some(barrier) = team.shared() => barrier.arrive(name),
            way => way.begin(engine, name),
        }
        Ok(last / 2 + 1)
    }

    /// Whether every rank has begun phase `number`; then it is finished, and this is the name they agree on. Does not
    /// poll. `name` is what this rank began it by: another is a mismatch, here alone.
    ///
    /// # Errors
    /// That phase is not the one under way; a message failed.
    #[inline]
    pub fn test(&self, engine: &Engine<M>, number: u64, name: Name) -> Result<Option<Name>, Error> {
        let word = (number * 2) | OPEN;
        let late = Err(Error::Barrier("tested or waited for after it was finished"));
        if self.phase.load(Ordering::Relaxed) != word {
            return late;
        }
        let done = match &self.way {
            Way::Shared(barrier) => barrier.done(),
            Way::Team(team) if let Some(barrier) = team.shared() => barrier.done(),
            way => way.done(engine)?,
        };
        let Some(agreed) = done else { return Ok(None) };
        let begun = self.begun.load(Ordering::Relaxed);
        if !self.step(word, word & !OPEN) {
            return late;
        }
        Ok(Some(if begun == name.encode() { agreed } else { Name::Mismatch }))
    }

    /// Polls until every rank has begun phase `number`; the name they agree on.
    ///
    /// # Errors
    /// Those of [`test`](Self::test), and whatever a poll finds wrong.
    #[inline]
    pub fn wait(&self, engine: &Engine<M>, number: u64, name: Name) -> Result<Name, Error> {
        if let Some(agreed) = self.test(engine, number, name)? {
            return Ok(agreed);
        }
        let mut sleeper = engine.sleeper();
        loop {
            if let Some(agreed) = self.test(engine, number, name)? {
                return Ok(agreed);
            }
            engine.turn(&mut sleeper)?;
        }
    }

    /// The phase that was begun and not finished, if there is one, and by what name.
    pub fn under_way(&self) -> Option<(u64, Name)> {
        let word = self.phase.load(Ordering::Relaxed);
        (word & OPEN != 0).then(|| (word / 2, Name::decode(self.begun.load(Ordering::Relaxed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_setting_has_a_meaning_on_each_transport() {
        let Kind::Choice(words) = ALGORITHM.kind else { panic!("a choice") };
        const MEMORY: &[&str] = &["PSHM", "RDMADISSEM"];
        const NIC: &[&str] = &["GNIDISSEM", "RDMADISSEM"];
        let transport = || Some(By::Transport);
        let messages = |algorithm| Some(By::Messages(algorithm));
        for &word in words {
            let wanted = match word {
                "AUTO" => [transport(), transport(), messages(Algorithm::Dissemination)],
                "PSHM" => [transport(), None, None],
                "GNIDISSEM" => [None, transport(), None],
                "GNICE" => [None, None, None],
                "RDMADISSEM" => [transport(), transport(), None],
                "AMCENTRAL" => std::array::from_fn(|_| messages(Algorithm::Central)),
                _ => std::array::from_fn(|_| messages(Algorithm::Dissemination)),
            };
            assert_eq!([by(word, MEMORY), by(word, NIC), by(word, &[])], wanted, "{word}");
        }
        assert_eq!(by("GNICE", &["GNICE"]), transport());
    }
}
