//! A team's collectives.

use super::{Team, Teams};
use crate::collective::{self, Broadcast, Combine, Reduce, ReduceAll, Script};
use crate::{Error, Event};
use gasworks_core::{CoreMode, Engine, TeamError};
use gasworks_sync::VolatileSlice;

/// Whether a team has such a member.
fn is_member(team: &Team, member: u32) -> Result<(), Error> {
    let size = team.members().size();
    match member < size {
        true => Ok(()),
        false => Err(gasworks_core::Error::from(TeamError::NoSuchMember { member, size }).into()),
    }
}

impl Teams {
    /// The bytes of member `root` go to all members, each of which has room for as many. Collective: returns when this rank's part is over.
    ///
    /// # Errors
    /// There is no such member; a member called another collective of the team; or a poll finds something wrong.
    pub fn broadcast<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        root: u32,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        is_member(team, root)?;
        let script = Broadcast::new(root, VolatileSlice::from_mut(bytes));
        collective::run(engine, self.next(team), script).map(drop)
    }

    /// What all members have, as many bytes, is combined, and replaces it at member `root`, or at all members where that is `None`. Collective, as
    /// [`broadcast`](Self::broadcast). The order is that of the members from `root`, or the first, on.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast).
    pub fn reduce<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        root: Option<u32>,
        bytes: &mut [u8],
        combine: impl Combine,
    ) -> Result<(), Error> {
        let bytes = VolatileSlice::from_mut(bytes);
        let script = reduction(team, root, bytes, bytes, combine)?;
        collective::run(engine, self.next(team), script).map(drop)
    }

    /// As [`broadcast`](Self::broadcast); the event says when this rank's part is over. The bytes are in use until then.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast) that are known at once. What fails later a poll returns.
    pub fn begin_broadcast<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        root: u32,
        bytes: VolatileSlice<'static>,
    ) -> Result<Event, Error> {
        is_member(team, root)?;
        collective::begin(engine, self.next(team), Broadcast::new(root, bytes))
    }

    /// As [`reduce`](Self::reduce) of `own` to `result`, which may be the same; the event says when this rank's part is over. The bytes are in use until
    /// then.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce) that are known at once. What fails later a poll returns.
    pub fn begin_reduce<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        root: Option<u32>,
        (own, result): (VolatileSlice<'static>, VolatileSlice<'static>),
        combine: impl Combine + 'static,
    ) -> Result<Event, Error> {
        let script = reduction(team, root, own, result, combine)?;
        collective::begin(engine, self.next(team), script)
    }
}

fn reduction<'a>(
    team: &Team,
    root: Option<u32>,
    own: VolatileSlice<'a>,
    result: VolatileSlice<'a>,
    combine: impl Combine + 'a,
) -> Result<Box<dyn Script + 'a>, Error> {
    root.map_or(Ok(()), |root| is_member(team, root))?;
    Ok(match root {
        Some(root) => Box::new(Reduce::new(root, own, result, combine)),
        None => Box::new(ReduceAll::new(own, result, combine)),
    })
}
