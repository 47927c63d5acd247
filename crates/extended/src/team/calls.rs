//! A team's collectives.

use super::{Team, Teams};
use crate::collective::{
    self, AllToAll, Blocks, Broadcast, Bytes, Combine, Combined, Copies, Exchange, Gather, Kind, MAX_POST,
    Of, Reduce, ReduceAll, Round, Scan, Scatter, Schedule, Steps, What, is_combined,
};
use crate::{Error, Event};
use gasworks_core::{CoreMode, Engine, Name, TeamError};
use gasworks_sync::VolatileSlice;

// Each takes its place among the team's collectives, whatever it was given: a member that was given something wrong has had its turn all the same, or its next
// collective would be the others' last one.

// A short one is on the board of a team that has one: which it is depends on the kind, the bytes and the team alone, so that all members choose the same.

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
    /// A collective that has a round on the board.
    #[inline]
    fn on_board<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        round: &Round<'_>,
        steps: Result<impl Steps, Error>,
    ) -> Result<(), Error> {
        collective::run_short(engine, round, || self.of(team, round), steps)
    }

    /// The same collective, with what a machine needs of it.
    fn of(&self, team: &Team, round: &Round<'_>) -> Of {
        self.at(team, round.before(), round.what())
    }

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
        let (all, own) = (VolatileSlice::from_mut(all), Bytes::Plain(own));
        let what = match lengths {
            Lengths::Equal => What::new(Kind::Gather, Some(root), own.len()),
            Lengths::Each(_) => What::new(Kind::GatherEach, Some(root), 0),
        };
        let is_short = matches!(lengths, Lengths::Equal) && own.len() <= MAX_POST;
        if let Some(round) = team.next_on_board(what, is_short) {
            let steps = blocks.map(|_| Copies::gather(team.place(), Some(root), own, all));
            return self.on_board(engine, team, &round, steps);
        }
        let schedule = blocks.map(|blocks| Gather::new(root, own, all, blocks));
        collective::run_if(engine, self.next(team, what), schedule).map(drop)
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
        let (all, own) = (Bytes::Plain(all), VolatileSlice::from_mut(own));
        let what = match lengths {
            Lengths::Equal => What::new(Kind::Scatter, Some(root), own.len()),
            Lengths::Each(_) => What::new(Kind::ScatterEach, Some(root), 0),
        };
        let posted = own.len().saturating_mul(team.members().size() as usize);
        let is_short = matches!(lengths, Lengths::Equal) && posted <= MAX_POST;
        if let Some(round) = team.next_on_board(what, is_short) {
            let steps = blocks.map(|_| Copies::scatter(team.place(), root, all, own));
            return self.on_board(engine, team, &round, steps);
        }
        let schedule = blocks.map(|blocks| Scatter::new(root, all, own, blocks));
        collective::run_if(engine, self.next(team, what), schedule).map(drop)
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
        let what = What::new(Kind::AllGather, None, len);
        if let Some(round) = team.next_on_board(what, len <= MAX_POST) {
            let to = VolatileSlice::from_mut(all);
            let steps = blocks.map(|_| Copies::gather(team.place(), None, Bytes::Plain(own), to));
            return self.on_board(engine, team, &round, steps);
        }
        if let Ok(blocks) = &blocks
            && !blocks.are_short(size)
        {
            let (to, from) = ((Bytes::Plain(own), Blocks::same(len, size)), VolatileSlice::from_mut(all));
            let schedule = AllToAll::new(to, (from, blocks.clone()));
            return collective::run(engine, self.next(team, what), schedule).map(drop);
        }
        let schedule = blocks.map(|_| Exchange::append(own.into()));
        let heard = collective::run_if(engine, self.next(team, what), schedule)?.heard();
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
        let (to, from) = (Bytes::Plain(to), VolatileSlice::from_mut(from));
        let what = match lengths {
            None => What::new(Kind::AllToAll, None, to.len()),
            Some(_) => What::new(Kind::AllToAllEach, None, 0),
        };
        if let Some(round) = team.next_on_board(what, lengths.is_none() && to.len() <= MAX_POST) {
            let steps = blocks.map(|_| Copies::all_to_all(team.place(), to, from));
            return self.on_board(engine, team, &round, steps);
        }
        let schedule = blocks.map(|[going, coming]| AllToAll::new((to, going), (from, coming)));
        collective::run_if(engine, self.next(team, what), schedule).map(drop)
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
        let (len, bytes) = (bytes.len(), VolatileSlice::from_mut(bytes));
        let what = What::new(if with_own { Kind::Scan } else { Kind::ScanBefore }, None, len);
        if let Some(round) =
            team.next_on_board(what, is_combined(len, combine.element(), team.members().size()))
        {
            let steps = Combined::scan(team.place(), bytes, with_own, combine);
            return self.on_board(engine, team, &round, Ok(steps));
        }
        let schedule = Scan::new(bytes, with_own, combine);
        collective::run(engine, self.next(team, what), schedule).map(drop)
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
        let (given, bytes) = (is_member(team, root), VolatileSlice::from_mut(bytes));
        let what = What::new(Kind::Broadcast, Some(root), bytes.len());
        if let Some(round) = team.next_on_board(what, bytes.len() <= MAX_POST) {
            let steps = given.map(|()| Copies::broadcast(team.own(), root, bytes));
            return self.on_board(engine, team, &round, steps);
        }
        let schedule = given.map(|()| Broadcast::new(root, bytes));
        collective::run_if(engine, self.next(team, what), schedule).map(drop)
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
        let (given, bytes) = (is_root(team, root), VolatileSlice::from_mut(bytes));
        let (what, is_short) = reduction(team, root, bytes.len(), &combine);
        if let Some(round) = team.next_on_board(what, is_short) {
            let steps = given.map(|()| Combined::reduce(team.place(), root, (bytes, bytes), combine));
            return self.on_board(engine, team, &round, steps);
        }
        let schedule = given.map(|()| by_tree(root, (bytes, bytes), combine));
        collective::run_if(engine, self.next(team, what), schedule).map(drop)
    }

    /// A barrier by messages; the event says when all members have come. It has its turn among the team's collectives, of which several may be under way.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast) that are known at once. What fails later a poll returns.
    pub fn begin_barrier<M: CoreMode>(&self, engine: &Engine<M>, team: &Team) -> Result<Event, Error> {
        let what = What::new(Kind::Barrier, None, 0);
        collective::begin_if(engine, self.next(team, what), Ok(Exchange::agree(Name::Any, 0)))
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
        let given = is_member(team, root);
        let what = What::new(Kind::Broadcast, Some(root), bytes.len());
        if let Some(round) = team.next_on_board(what, bytes.len() <= MAX_POST) {
            let steps = given.map(|()| Copies::broadcast(team.own(), root, bytes));
            return collective::begin_short(engine, &round, || self.of(team, &round), steps);
        }
        let schedule = given.map(|()| Broadcast::new(root, bytes));
        collective::begin_if(engine, self.next(team, what), schedule)
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
        let given = is_root(team, root);
        let (what, is_short) = reduction(team, root, own.len(), &combine);
        if let Some(round) = team.next_on_board(what, is_short) {
            let steps = given.map(|()| Combined::reduce(team.place(), root, (own, result), combine));
            return collective::begin_short(engine, &round, || self.of(team, &round), steps);
        }
        let schedule = given.map(|()| by_tree(root, (own, result), combine));
        collective::begin_if(engine, self.next(team, what), schedule)
    }
}

/// Whether a team has the root, if there is one.
fn is_root(team: &Team, root: Option<u32>) -> Result<(), Error> {
    root.map_or(Ok(()), |root| is_member(team, root))
}

/// Which reduction it is, and whether it is one for a board.
fn reduction(team: &Team, root: Option<u32>, len: usize, combine: &impl Combine) -> (What, bool) {
    let kind = if root.is_some() { Kind::Reduce } else { Kind::ReduceAll };
    (What::new(kind, root, len), is_combined(len, combine.element(), team.members().size()))
}

fn by_tree<'a>(
    root: Option<u32>,
    (own, result): (VolatileSlice<'a>, VolatileSlice<'a>),
    combine: impl Combine + 'a,
) -> Box<dyn Schedule + 'a> {
    match root {
        Some(root) => Box::new(Reduce::new(root, own, result, combine)),
        None => Box::new(ReduceAll::new(own, result, combine)),
    }
}
