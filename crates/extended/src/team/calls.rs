//! A team's collectives.

use super::{Team, Teams};
use crate::Error;
use crate::collective::Begun;
pub use crate::collective::Meets;
use crate::collective::{
    self, AllToAll, AnyAllToAll, AnyReduce, Appended, Between, Blocks, Broadcast, Brought, Bytes, Combine,
    Combined, Copies, Either, Exchange, Gather, Kind, Long, MAX_POST, Of, Pieces, Reduce, ReduceAll, Round,
    Scan, Scatter, Schedule, Short, Steps, What, has_parts, has_pieces, is_combined, is_reduced_by_pieces,
    is_scanned_by_pieces,
};
use crate::event::{Event, Kept};
use gasworks_core::{CoreMode, Engine, Name, TeamError};
use gasworks_sync::VolatileSlice;

#[cfg(test)]
mod counted;

// Each takes its place among the team's collectives, whatever it was given: a member that was given something wrong has had its turn all the same, or its next
// collective would be the others' last one.

// On the board of a team that has one are short ones, and long ones by pieces: which it is depends on the kind, the bytes and the team alone, so that all
// members choose the same.

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

/// How a collective of a team that has a board is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// On the board, in one piece.
    Short,
    /// On the board, by pieces.
    Long,
    /// As without a board.
    Messages,
}

impl Algorithm {
    /// What is short goes in one piece, and what is long by pieces if it can.
    #[inline]
    fn of(is_short: bool, has_pieces: impl FnOnce() -> bool) -> Self {
        match () {
            () if is_short => Algorithm::Short,
            () if has_pieces() => Algorithm::Long,
            () => Algorithm::Messages,
        }
    }
}

/// A collective with what this member was given for it: whether that is right, and what it does on a board or by messages.
struct Plan<X, S, L> {
    what: What,
    algorithm: Algorithm,
    given: Result<X, Error>,
    steps: S,
    schedule: L,
}

/// What goes to each member, and what comes of each.
type Both = [Blocks; 2];

/// How a collective begins.
pub struct Start<M: CoreMode> {
    /// Where its members meet.
    pub meets: Meets,
    /// What is kept until its event is done; the call returns it where it is at once.
    pub keep: Kept<M>,
}

impl<M: CoreMode> Default for Start<M> {
    fn default() -> Self {
        Self { meets: Meets::default(), keep: None }
    }
}

/// Bytes that are read and written until the event of a collective is done.
type Place = VolatileSlice<'static>;

impl Teams {
    /// Does this rank's part.
    #[inline]
    fn run<M: CoreMode, X, S: Steps + Pieces, L: Schedule>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        plan: Plan<X, impl FnOnce(X) -> S, impl FnOnce(X) -> L>,
    ) -> Result<(), Error> {
        let Plan { what, algorithm, given, steps, schedule } = plan;
        if let Some(round) = team.next_on_board(what, algorithm != Algorithm::Messages) {
            let (of, steps) = (|| self.of(team, &round), given.map(steps));
            return match algorithm {
                Algorithm::Short => collective::run_on_board(engine, &round, of, steps.map(Short::new)),
                _ => collective::run_on_board(engine, &round, of, steps.map(Long::new)),
            };
        }
        collective::run_if(engine, self.next(team, what), given.map(schedule)).map(drop)
    }

    /// Begins it.
    fn begin<M: CoreMode, X, S: Steps + Pieces + 'static, L: Schedule + 'static>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        Start { meets, keep }: Start<M>,
        plan: Plan<X, impl FnOnce(X) -> S, impl FnOnce(X) -> L>,
    ) -> Begun<M> {
        let Plan { what, algorithm, given, steps, schedule } = plan;
        let is_plain = !meets.first && !meets.last;
        if let Some(round) = team.next_on_board(what, algorithm != Algorithm::Messages && is_plain) {
            let (of, steps) = (|| self.of(team, &round), given.map(steps));
            return match algorithm {
                Algorithm::Short => {
                    collective::begin_on_board(engine, &round, of, steps.map(Short::new), keep)
                }
                _ => collective::begin_on_board(engine, &round, of, steps.map(Long::new), keep),
            };
        }
        let of = self.next(team, what);
        match is_plain {
            true => collective::begin_if(engine, of, given.map(schedule), keep),
            false => {
                let between = |given| Between::new(meets, schedule(given));
                collective::begin_if(engine, of, given.map(between), keep)
            }
        }
    }

    /// Begins it once bytes are where it wants them: at once, or where its members meet first, when all have come.
    fn begin_brought<M: CoreMode, X, S: Steps + Pieces + 'static, L: Schedule + 'static>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        brought: Option<(Place, Place)>,
        plan: Plan<X, impl FnOnce(X) -> S, impl FnOnce(X) -> L>,
    ) -> Begun<M> {
        if !start.meets.first {
            brought.into_iter().for_each(|(from, to)| from.copy_to(to));
            return self.begin(engine, team, start, plan);
        }
        let Plan { what, algorithm, given, steps, schedule } = plan;
        let schedule = |given| Brought::new(brought, schedule(given));
        self.begin(engine, team, start, Plan { what, algorithm, given, steps, schedule })
    }

    /// A collective on the board, with what a machine needs of it.
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
        self.run(engine, team, gather(team, root, Bytes::Plain(own), VolatileSlice::from_mut(all), lengths))
    }

    /// As [`gather`](Self::gather); the event says when this rank's part is over. The bytes are in use until then.
    ///
    /// # Errors
    /// Those of [`gather`](Self::gather) that are known at once. What fails later a poll returns.
    pub fn begin_gather<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        (root, own): (u32, Place),
        (all, lengths): (Place, Lengths<'_>),
    ) -> Begun<M> {
        self.begin(engine, team, start, gather(team, root, Bytes::Shared(own), all, lengths))
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
        self.run(engine, team, scatter(team, root, Bytes::Plain(all), lengths, VolatileSlice::from_mut(own)))
    }

    /// As [`scatter`](Self::scatter); the event says when this rank's part is over. The bytes are in use until then.
    ///
    /// # Errors
    /// Those of [`scatter`](Self::scatter) that are known at once. What fails later a poll returns.
    pub fn begin_scatter<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        (all, lengths): (Place, Lengths<'_>),
        (root, own): (u32, Place),
    ) -> Begun<M> {
        self.begin(engine, team, start, scatter(team, root, Bytes::Shared(all), lengths, own))
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
        self.run(engine, team, all_gather(team, Bytes::Plain(own), VolatileSlice::from_mut(all)))
    }

    /// As [`all_gather`](Self::all_gather); the event says when this rank's part is over. The bytes are in use until then.
    ///
    /// # Errors
    /// Those of [`all_gather`](Self::all_gather) that are known at once. What fails later a poll returns.
    pub fn begin_all_gather<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        (own, all): (Place, Place),
    ) -> Begun<M> {
        self.begin(engine, team, start, all_gather(team, Bytes::Shared(own), all))
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
        self.run(engine, team, all_to_all(team, Bytes::Plain(to), VolatileSlice::from_mut(from), lengths))
    }

    /// As [`all_to_all`](Self::all_to_all); the event says when this rank's part is over. The bytes are in use until then.
    ///
    /// # Errors
    /// Those of [`all_to_all`](Self::all_to_all) that are known at once. What fails later a poll returns.
    pub fn begin_all_to_all<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        (to, from): (Place, Place),
        lengths: Option<[&[usize]; 2]>,
    ) -> Begun<M> {
        self.begin(engine, team, start, all_to_all(team, Bytes::Shared(to), from, lengths))
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
        self.run(engine, team, scan(team, VolatileSlice::from_mut(bytes), with_own, combine))
    }

    /// As [`scan`](Self::scan); the event says when this rank's part is over. The bytes are in use until then. What this rank gives may lie elsewhere, apart:
    /// it comes to `bytes` first.
    ///
    /// # Errors
    /// Those of [`scan`](Self::scan) that are known at once. What fails later a poll returns.
    pub fn begin_scan<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        (own, bytes): (Option<Place>, Place),
        with_own: bool,
        combine: impl Combine + 'static,
    ) -> Begun<M> {
        let brought = own.map(|own| (own, bytes));
        self.begin_brought(engine, team, start, brought, scan(team, bytes, with_own, combine))
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
        self.run(engine, team, broadcast(team, root, VolatileSlice::from_mut(bytes)))
    }

    /// As [`broadcast`](Self::broadcast); the event says when this rank's part is over. The bytes are in use until then. What member `root` gives may lie
    /// elsewhere, apart: it comes to `bytes` first.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast) that are known at once. What fails later a poll returns.
    pub fn begin_broadcast<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        start: Start<M>,
        root: u32,
        (own, bytes): (Option<Place>, Place),
    ) -> Begun<M> {
        let brought = own.filter(|_| team.own() == root).map(|own| (own, bytes));
        self.begin_brought(engine, team, start, brought, broadcast(team, root, bytes))
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
        self.run(engine, team, reduce(team, root, (bytes, bytes), combine))
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
        start: Start<M>,
        root: Option<u32>,
        (own, result): (Place, Place),
        combine: impl Combine + 'static,
    ) -> Begun<M> {
        self.begin(engine, team, start, reduce(team, root, (own, result), combine))
    }

    /// This rank cannot take part in the next collective as it was asked to, for this reason. It takes its place there all the same: on a board the others are told.
    #[cold]
    pub fn refuse<M: CoreMode>(&self, engine: &Engine<M>, team: &Team, error: Error) -> Error {
        collective::refuse(engine, self.next(team, What::NOTHING), error)
    }

    /// A barrier by messages; the event says when all members have come. It has its turn among the team's collectives, of which several may be under way.
    ///
    /// # Errors
    /// Those of [`broadcast`](Self::broadcast) that are known at once. What fails later a poll returns.
    pub fn begin_barrier<M: CoreMode>(&self, engine: &Engine<M>, team: &Team) -> Result<Event, Error> {
        let what = What::new(Kind::Barrier, None, 0);
        let exchange = Ok(Exchange::agree(Name::Any, 0));
        collective::begin_if(engine, self.next(team, what), exchange, None).map(|(event, _)| event)
    }
}

#[inline]
fn gather<'a>(
    team: &Team,
    root: u32,
    own: Bytes<'a>,
    all: VolatileSlice<'a>,
    lengths: Lengths<'_>,
) -> Plan<Blocks, impl FnOnce(Blocks) -> Copies<'a>, impl FnOnce(Blocks) -> Gather<'a>> {
    let (place, given) = (team.place(), blocks_at("gather", team, root, (all.len(), own.len()), lengths));
    let what = match lengths {
        Lengths::Equal => What::new(Kind::Gather, Some(root), own.len()),
        Lengths::Each(_) => What::new(Kind::GatherEach, Some(root), 0),
    };
    let len = own.len();
    Plan {
        what,
        algorithm: match lengths {
            Lengths::Equal => Algorithm::of(len <= MAX_POST, || has_pieces(len)),
            Lengths::Each(_) => Algorithm::Messages,
        },
        given,
        steps: move |_| Copies::gather(place, Some(root), own, all),
        schedule: move |blocks| Gather::new(root, own, all, blocks),
    }
}

#[inline]
fn scatter<'a>(
    team: &Team,
    root: u32,
    all: Bytes<'a>,
    lengths: Lengths<'_>,
    own: VolatileSlice<'a>,
) -> Plan<Blocks, impl FnOnce(Blocks) -> Copies<'a>, impl FnOnce(Blocks) -> Scatter<'a>> {
    let (place, given) = (team.place(), blocks_at("scatter", team, root, (all.len(), own.len()), lengths));
    let what = match lengths {
        Lengths::Equal => What::new(Kind::Scatter, Some(root), own.len()),
        Lengths::Each(_) => What::new(Kind::ScatterEach, Some(root), 0),
    };
    let (len, size) = (own.len(), place.1);
    let posted = len.saturating_mul(size as usize);
    Plan {
        what,
        algorithm: match lengths {
            Lengths::Equal => Algorithm::of(posted <= MAX_POST, || has_parts(len, size)),
            Lengths::Each(_) => Algorithm::Messages,
        },
        given,
        steps: move |_| Copies::scatter(place, root, all, own),
        schedule: move |blocks| Scatter::new(root, all, own, blocks),
    }
}

#[inline]
fn all_gather<'a>(
    team: &Team,
    own: Bytes<'a>,
    all: VolatileSlice<'a>,
) -> Plan<Blocks, impl FnOnce(Blocks) -> Copies<'a>, impl FnOnce(Blocks) -> Either<Appended<'a>, AllToAll<'a>>>
{
    let (place, len) = (team.place(), own.len());
    let (member, size) = place;
    let schedule = move |blocks: Blocks| match blocks.are_short(size) {
        true => Either::First(Appended::new(member, own, all)),
        false => Either::Second(AllToAll::new((own, Blocks::Same(len)), (all, blocks))),
    };
    Plan {
        what: What::new(Kind::AllGather, None, len),
        algorithm: Algorithm::of(len <= MAX_POST, || has_pieces(len)),
        given: blocks("all_gather", team, (all.len(), len), Lengths::Equal),
        steps: move |_| Copies::gather(place, None, own, all),
        schedule,
    }
}

#[inline]
fn all_to_all<'a>(
    team: &Team,
    to: Bytes<'a>,
    from: VolatileSlice<'a>,
    lengths: Option<[&[usize]; 2]>,
) -> Plan<Both, impl FnOnce(Both) -> Copies<'a>, impl FnOnce(Both) -> AnyAllToAll<'a>> {
    let place = team.place();
    let (_, size) = place;
    Plan {
        what: match lengths {
            None => What::new(Kind::AllToAll, None, to.len()),
            Some(_) => What::new(Kind::AllToAllEach, None, 0),
        },
        algorithm: match lengths {
            None => Algorithm::of(to.len() <= MAX_POST, || has_parts(to.len() / size as usize, size)),
            Some(_) => Algorithm::Messages,
        },
        given: blocks_of_both(team, (to.len(), from.len()), lengths),
        steps: move |_| Copies::all_to_all(place, to, from),
        schedule: move |[going, coming]: Both| AllToAll::any(place.1, (to, going), (from, coming)),
    }
}

#[inline]
fn broadcast<'a>(
    team: &Team,
    root: u32,
    bytes: VolatileSlice<'a>,
) -> Plan<(), impl FnOnce(()) -> Copies<'a>, impl FnOnce(()) -> Broadcast<'a>> {
    let (place, len) = (team.place(), bytes.len());
    Plan {
        what: What::new(Kind::Broadcast, Some(root), len),
        algorithm: Algorithm::of(len <= MAX_POST, || has_pieces(len)),
        given: is_member(team, root),
        steps: move |()| Copies::broadcast(place, root, bytes),
        schedule: move |()| Broadcast::new(root, bytes),
    }
}

#[inline]
fn scan<'a, C: Combine + 'a>(
    team: &Team,
    bytes: VolatileSlice<'a>,
    with_own: bool,
    combine: C,
) -> Plan<C, impl FnOnce(C) -> Combined<'a, C>, impl FnOnce(C) -> Scan<'a, C>> {
    let (place, len, element) = (team.place(), bytes.len(), combine.element());
    let (_, size) = place;
    Plan {
        what: What::new(if with_own { Kind::Scan } else { Kind::ScanBefore }, None, len),
        algorithm: Algorithm::of(is_combined(len, element, size), || {
            is_scanned_by_pieces(len, element, size)
        }),
        given: Ok(combine),
        steps: move |combine| Combined::scan(place, bytes, with_own, combine),
        schedule: move |combine| Scan::new(bytes, with_own, combine),
    }
}

#[inline]
fn reduce<'a, C: Combine + 'a>(
    team: &Team,
    root: Option<u32>,
    (own, result): (VolatileSlice<'a>, VolatileSlice<'a>),
    combine: C,
) -> Plan<C, impl FnOnce(C) -> Combined<'a, C>, impl FnOnce(C) -> AnyReduce<'a, C>> {
    let (place, len, element) = (team.place(), own.len(), combine.element());
    let schedule = move |combine| match root {
        Some(root) => Either::First(Reduce::new(root, own, result, combine)),
        None => Either::Second(ReduceAll::new(own, result, combine)),
    };
    Plan {
        what: What::new(if root.is_some() { Kind::Reduce } else { Kind::ReduceAll }, root, len),
        algorithm: Algorithm::of(is_combined(len, element, place.1), || {
            is_reduced_by_pieces(len, element, place.1)
        }),
        given: root.map_or(Ok(()), |root| is_member(team, root)).map(|()| combine),
        steps: move |combine| Combined::reduce(place, root, (own, result), combine),
        schedule,
    }
}
