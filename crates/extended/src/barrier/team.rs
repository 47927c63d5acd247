//! The barrier of a team: in shared memory where its members have agreed on slots there, else an exchange of names among them.

use crate::Error;
use crate::collective::{Exchange, Kind, Started, What};
use crate::team::{Team, Teams};
use gasworks_core::{CoreMode, Engine, Name, SharedTeam};
use gasworks_sync::{Lock, Mode, Par};
use std::sync::Arc;

/// A team's barrier, seen from one rank.
pub struct TeamBarrier {
    teams: Arc<Teams>,
    team: Arc<Team>,
    /// The phase begun last, of an exchange.
    phase: <Par as Mode>::Lock<Option<Arc<Started<Exchange>>>>,
}

impl TeamBarrier {
    /// That of a team.
    pub fn new(teams: Arc<Teams>, team: Arc<Team>) -> Self {
        Self { teams, team, phase: Lock::new(None) }
    }

    /// What members who share memory meet by.
    #[inline]
    pub(super) fn shared(&self) -> Option<&dyn SharedTeam> {
        self.team.shared()
    }

    /// Announces this rank.
    pub(super) fn begin<M: CoreMode>(&self, engine: &Engine<M>, name: Name) {
        if let Some(barrier) = self.shared() {
            return barrier.arrive(name);
        }
        let phase = Started::new(
            engine,
            self.teams.next(&self.team, What::new(Kind::Barrier, None, 0)),
            Exchange::agree(name, 0),
        );
        self.phase.with(|last| *last = Some(phase));
    }

    /// The name that all members agree on, once all have begun.
    pub(super) fn done(&self) -> Result<Option<Name>, Error> {
        if let Some(barrier) = self.shared() {
            return Ok(barrier.done());
        }
        let agreed = |exchange: Option<&Exchange>| exchange.map_or(Name::Any, Exchange::agreed);
        let outcome = self.phase.with(|phase| phase.as_ref().and_then(|phase| phase.outcome(agreed)));
        Ok(outcome.transpose()?)
    }
}
