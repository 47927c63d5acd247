//! A team's collectives.

use super::{Team, Teams};
use crate::collective::{
    self, AllToAll, Blocks, Broadcast, Bytes, Combine, Exchange, Gather, Reduce, ReduceAll, Scan, Scatter,
    Schedule,
};
use crate::{Error, Event};
use gasworks_core::{CoreMode, Engine, Name, TeamError};
use gasworks_sync::VolatileSlice;

// Each takes its place among the team's collectives, whatever it was given: a member that was given something wrong has had its turn all the same, or its next
// collective would be the others' last one.

/// Whether a team has such a member.
fn is_member(team: &Team, member: u32) -> Result<(), Error> {
    let size = team.members().size();
    match member < size {
        true => Ok(()),
        false => Err(gasworks_core::Error::from(TeamError::NoSuchMember { member, size }).into()),
    }
}

/// Whether there are so many bytes.
fn are(call: &'static str, found: usize, wanted: usize, why: &'static str) -> Result<(), Error> {
    if found == wanted { Ok(()) } else { Err(Error::Length { call, found, wanted, why }) }
}

/// How many bytes members have in a buffer where they lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub enum Lengths<'a> {
    /// All as many.
    Equal,
    /// So many each; only who has the buffer says how many.
    Each(&'a [usize]),
}

/// The blocks of members in `all` bytes, of which this member has `own`.
fn blocks(
    call: &'static str,
    team: &Team,
    (all, own): (usize, usize),
    lengths: Lengths<'_>,
) -> Result<Blocks, Error> {
    let size = team.members().size() as usize;
    match lengths {
        Lengths::Equal => {
            are(call, all, own.saturating_mul(size), "as many for each member")?;
            Ok(Blocks::Equal(own))
        }
        Lengths::Each(lengths) => {
            are(call, lengths.len(), size, "a length for each member")?;
            let sum = lengths.iter().fold(0usize, |sum, len| sum.saturating_add(*len));
            are(call, all, sum, "the sum of all lengths")?;
            are(call, own, lengths[team.own() as usize], "this member's length")?;
            Ok(Blocks::of(lengths.iter().copied()))
        }
    }
}

/// The same of a member that has the buffer only if it is the root.
fn blocks_at(
    call: &'static str,
    team: &Team,
    root: u32,
    (all, own): (usize, usize),
    lengths: Lengths<'_>,
) -> Result<Blocks, Error> {
    is_member(team, root)?;
    match lengths {
        lengths if team.own() == root => blocks(call, team, (all, own), lengths),
        Lengths::Equal => Ok(Blocks::Equal(own)),
        Lengths::Each(_) => Ok(Blocks::of([])),
    }
}

/// What goes to each member of `to` bytes, and what comes of each in `from`.
fn blocks_of_both(
    team: &Team,
    (to, from): (usize, usize),
    lengths: Option<[&[usize]; 2]>,
) -> Result<[Blocks; 2], Error> {
    const CALL: &str = "all_to_all";
    let (size, own) = (team.members().size() as usize, team.own() as usize);
    match lengths {
        None => {
            are(CALL, from, to, "as many come as go")?;
            let blocks = blocks(CALL, team, (to, to / size), Lengths::Equal)?;
            Ok([blocks.clone(), blocks])
        }
        Some([going, coming]) => {
            let own = going.get(own).copied().unwrap_or(0);
            let each = |all, lengths| blocks(CALL, team, (all, own), Lengths::Each(lengths));
            Ok([each(to, going)?, each(from, coming)?])
        }
    }
}

impl Teams {
    /// The bytes of each member come to member `root`, one's behind the other's. Elsewhere `all` is not looked at, nor what lengths there are. Collective, as
    /// [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); there is not as much room.
    pub fn gather<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        root: u32,
        own: &[u8],
        (all, lengths): (&mut [u8], Lengths<'_>),
    ) -> Result<(), Error> {
        let blocks = blocks_at("gather", team, root, (all.len(), own.len()), lengths);
        let all = VolatileSlice::from_mut(all);
        let schedule = blocks.map(|blocks| Gather::new(root, Bytes::Plain(own), all, blocks));
        collective::run_if(engine, self.next(team), schedule).map(drop)
    }

    /// Each member gets its part of the bytes of member `root`, where they lie one behind the other. Elsewhere `all` is not looked at, nor what lengths there are.
    /// Collective, as [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); there are not as many bytes.
    pub fn scatter<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        root: u32,
        (all, lengths): (&[u8], Lengths<'_>),
        own: &mut [u8],
    ) -> Result<(), Error> {
        let blocks = blocks_at("scatter", team, root, (all.len(), own.len()), lengths);
        let own = VolatileSlice::from_mut(own);
        let schedule = blocks.map(|blocks| Scatter::new(root, Bytes::Plain(all), own, blocks));
        collective::run_if(engine, self.next(team), schedule).map(drop)
    }

    /// The bytes of each member, as many, come to all, one's behind the other's. Collective, as [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); there is not as much room.
    pub fn all_gather<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        own: &[u8],
        all: &mut [u8],
    ) -> Result<(), Error> {
        let (size, len) = (team.members().size(), own.len());
        let blocks = blocks("all_gather", team, (all.len(), len), Lengths::Equal);
        if let Ok(blocks) = &blocks
            && !blocks.are_short(size)
        {
            let (to, from) = ((Bytes::Plain(own), Blocks::same(len, size)), VolatileSlice::from_mut(all));
            let schedule = AllToAll::new(to, (from, blocks.clone()));
            return collective::run(engine, self.next(team), schedule).map(drop);
        }
        let schedule = blocks.map(|_| Exchange::append(own.into()));
        let heard = collective::run_if(engine, self.next(team), schedule)?.heard();
        // They begin with this member's own.
        let behind = heard.len() - team.own() as usize * own.len();
        let (after, before) = heard.split_at(behind);
        let (first, last) = all.split_at_mut(before.len());
        first.copy_from_slice(before);
        last.copy_from_slice(after);
        Ok(())
    }

    /// Each member gets a block of each: as many bytes, or so many as `lengths` say of what goes to each and what comes of each. Collective, as
    /// [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast); there are not as many bytes.
    pub fn all_to_all<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        to: &[u8],
        from: &mut [u8],
        lengths: Option<[&[usize]; 2]>,
    ) -> Result<(), Error> {
        let blocks = blocks_of_both(team, (to.len(), from.len()), lengths);
        let from = VolatileSlice::from_mut(from);
        let schedule = blocks.map(|[going, coming]| AllToAll::new((Bytes::Plain(to), going), (from, coming)));
        collective::run_if(engine, self.next(team), schedule).map(drop)
    }

    /// What members before this one have, as many bytes, is combined, with its own or without, and replaces that; the first member's stays as it is. Collective, as
    /// [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast).
    pub fn scan<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        bytes: &mut [u8],
        with_own: bool,
        combine: impl Combine,
    ) -> Result<(), Error> {
        let schedule = Scan::new(VolatileSlice::from_mut(bytes), with_own, combine);
        collective::run(engine, self.next(team), schedule).map(drop)
    }

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
        let schedule = is_member(team, root).map(|()| Broadcast::new(root, VolatileSlice::from_mut(bytes)));
        collective::run_if(engine, self.next(team), schedule).map(drop)
    }

    /// What all members have, as many bytes, is combined, and replaces it at member `root`, or at all members where that is `None`. Collective, as
    /// [`broadcast`](Self::broadcast). The order is that of the members, or if it makes no difference ([`Combine::commutes`]) that from `root` on.
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
        let schedule = reduction(team, root, bytes, bytes, combine);
        collective::run_if(engine, self.next(team), schedule).map(drop)
    }

    /// A barrier by messages; the event says when all members have come. It has its turn among the team's collectives, of which several may be under way.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast) that are known at once. What fails later a poll returns.
    pub fn begin_barrier<M: CoreMode>(&self, engine: &Engine<M>, team: &Team) -> Result<Event, Error> {
        collective::begin_if(engine, self.next(team), Ok(Exchange::agree(Name::Any, 0)))
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
        let schedule = is_member(team, root).map(|()| Broadcast::new(root, bytes));
        collective::begin_if(engine, self.next(team), schedule)
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
        let schedule = reduction(team, root, own, result, combine);
        collective::begin_if(engine, self.next(team), schedule)
    }
}

fn reduction<'a>(
    team: &Team,
    root: Option<u32>,
    own: VolatileSlice<'a>,
    result: VolatileSlice<'a>,
    combine: impl Combine + 'a,
) -> Result<Box<dyn Schedule + 'a>, Error> {
    root.map_or(Ok(()), |root| is_member(team, root))?;
    Ok(match root {
        Some(root) => Box::new(Reduce::new(root, own, result, combine)),
        None => Box::new(ReduceAll::new(own, result, combine)),
    })
}
