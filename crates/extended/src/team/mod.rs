//! Teams, made by collective calls over the members of another: the specification's `gex_TM_Split` and `gex_TM_Create`.
//!
//! Each member tells all others a few words; from what all have said each finds the same teams. A team's number is the rank of its first
//! member and how many that rank has made: every member of the old team says the number that it would give, so nobody asks for it. So it is
//! with what the team has in shared memory ([`TeamBarriers`]): every member says which of its slots are free, and the lowest that is free
//! at all members of the new team is taken. What a rank has said of a slot it says to nobody else until it knows whether it is taken.

use crate::Error;
use crate::collective::matching::Matching;
use crate::collective::{self, Appended, Bytes, Kind, Layout, Of, Round, Ticket, TicketQueue, What};
use gasworks_core::wire::TEAM_SLOTS;
use gasworks_core::{CoreMode, Engine, Handlers, Members, Rank, SharedTeam, TeamBarriers, TeamError};
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Lock, Mode, Par, VolatileSlice};
use std::sync::{Arc, OnceLock};

mod calls;

pub use crate::collective::TeamNumber;
pub use calls::{Lengths, Meets, Start};

/// A team that this rank is a member of.
pub struct Team {
    number: TeamNumber,
    members: Arc<Members>,
    /// Which of them this rank is.
    own: u32,
    /// How many collectives were begun on it, and how often its members have met for that.
    begun: AtomicU64,
    met: Arc<AtomicU32>,
    /// What it has in shared memory.
    shared: Option<Arc<dyn SharedTeam>>,
    /// Where its members are, if in several neighbourhoods, once a collective goes by messages.
    layout: OnceLock<Option<Arc<Layout>>>,
    /// The order of the reductions that a network does.
    tickets: TicketQueue,
}

impl Team {
    /// All ranks, who have nothing in shared memory for that.
    pub fn everyone(rank: Rank, ranks: u32) -> Self {
        Self::new(TeamNumber::EVERYONE, Members::everyone(ranks), rank, None)
    }

    fn new(number: TeamNumber, members: Members, own: u32, shared: Option<Arc<dyn SharedTeam>>) -> Self {
        let (begun, met, layout, tickets) =
            (AtomicU64::new(0), Arc::default(), OnceLock::new(), TicketQueue::default());
        Self { number, members: Arc::new(members), own, begun, met, shared, layout, tickets }
    }

    /// What all members call it, and no other team is called.
    pub fn number(&self) -> TeamNumber {
        self.number
    }

    /// Its members.
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Which of them this rank is.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Which member this rank is, of how many.
    fn place(&self) -> (u32, u32) {
        (self.own, self.members.size())
    }

    /// The order of the reductions that a network does: of all ranks, since networks know no teams.
    fn tickets(&self) -> Option<&TicketQueue> {
        (self.number == TeamNumber::EVERYONE).then_some(&self.tickets)
    }

    /// What it has in shared memory: its barrier, and its board.
    pub fn shared(&self) -> Option<&dyn SharedTeam> {
        self.shared.as_deref()
    }

    /// Takes a place among its collectives: how many were begun before.
    fn take_place(&self) -> u64 {
        self.begun.fetch_add(1, Relaxed)
    }

    /// The next collective, on the board if the team has one, and if it is one for that.
    fn next_on_board(&self, what: What, is_on_board: bool) -> Option<Round<'_>> {
        let place = (self.number, &*self.members, self.own);
        // Which round it is is known when the place is taken.
        let has_board = is_on_board && self.members.size() > 1 && self.shared.as_ref()?.board().is_some();
        let before = if has_board { self.take_place() } else { return None };
        Round::new(self.shared(), place, before, what.posted())
    }
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, member {} of {:?}", self.number, self.own, self.members)
    }
}

/// What a member says in a collective that makes teams: two words of its arguments; and the kind of the collective, the member's free slots,
/// and the number that it would give.
type Said = [u64; 3];

/// The kinds of those collectives.
const SPLIT: u64 = 1 << (32 + TEAM_SLOTS);
const CREATE: u64 = 2 << (32 + TEAM_SLOTS);
const CREATE_APART: u64 = 3 << (32 + TEAM_SLOTS);
const KIND: u64 = !0 << (32 + TEAM_SLOTS);
/// A slot for each number.
const SLOTS: u32 = (1 << TEAM_SLOTS) - 1;
/// The colour of a member who gets no team.
const NO_COLOR: u64 = u64::MAX;

/// What this rank needs to make teams and to meet in them.
pub struct Teams {
    matching: Arc<Matching>,
    /// The number that this rank gave, or could have given, last.
    made: AtomicU32,
    /// Where teams have barriers in shared memory, if they have.
    barriers: Option<Arc<dyn TeamBarriers + Send + Sync>>,
    /// The slots that this rank has offered in collectives that are not over.
    offered: <Par as Mode>::Lock<u32>,
    /// The number of each rank's neighbourhood, if there are several.
    neighbourhoods: Option<Box<[u32]>>,
}

impl Teams {
    /// Those of a rank of so many, with its handler entered into the table, and the barriers that teams have in shared memory. Each rank has the number
    /// of its neighbourhood, of ranks that share memory; none where all do.
    ///
    /// # Errors
    /// The handler's index is taken.
    pub fn register<M: CoreMode>(
        ranks: u32,
        barriers: Option<Arc<dyn TeamBarriers + Send + Sync>>,
        neighbourhoods: Option<Box<[u32]>>,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Matching>) -> Box<M::Function>,
    ) -> Result<Arc<Self>, Error> {
        let matching = Matching::register(ranks, handlers, boxed)?;
        let (made, offered) = (AtomicU32::new(0), Lock::new(0));
        Ok(Arc::new(Self { matching, made, barriers, offered, neighbourhoods }))
    }

    /// All ranks.
    pub fn everyone(&self, rank: Rank, ranks: u32) -> Team {
        let members = Members::everyone(ranks);
        let shared = self.barriers.as_ref().and_then(|barriers| barriers.everyone(&members));
        Team::new(TeamNumber::EVERYONE, members, rank, shared)
    }

    /// The next collective of a team. Every member calls them in the same order.
    pub(crate) fn next(&self, team: &Team, what: What) -> Of {
        let tickets = team.tickets().filter(|_| what.is_of_a_word());
        let ticket = tickets.map(|tickets| tickets.take(|| team.take_place()));
        let place = ticket.as_ref().map_or_else(|| team.take_place(), Ticket::place);
        Of { ticket, ..self.at(team, place, what) }
    }

    /// The collective of a team that had begun so many before.
    fn at(&self, team: &Team, before: u64, what: What) -> Of {
        let (matching, members, met) = (self.matching.clone(), team.members.clone(), team.met.clone());
        let (order, shared, layout) = (before as u32, team.shared.clone(), self.layout(team));
        let (team, own) = (team.number, team.own);
        Of { matching, team, order, before, what, members, own, met, shared, layout, ticket: None }
    }

    /// Where the members of a team are, if in several neighbourhoods.
    fn layout(&self, team: &Team) -> Option<Arc<Layout>> {
        let neighbourhoods = self.neighbourhoods.as_ref()?;
        let layout = || Layout::new(&team.members, neighbourhoods).map(Arc::new);
        team.layout.get_or_init(layout).clone()
    }

    /// Takes the slots that this rank offers to a new team.
    fn offer(&self) -> u32 {
        self.offered.with(|offered| {
            let free = self.barriers.as_ref().map_or(0, |barriers| barriers.free_slots()) & SLOTS & !*offered;
            *offered |= free;
            free
        })
    }

    /// What all members of a team say in the same collective, in order; then what `made_of` makes of it.
    fn tell<M: CoreMode, T>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        said: Said,
        made_of: impl FnOnce(&[Said]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let slots = self.offer();
        // Of one that fails nobody knows here what the others have made of it: so the slots stay taken.
        let all = self.exchange(engine, team, said, slots)?;
        let made = self.same(&all, |said| [said[2] & KIND, 0], "called different collectives");
        let made = made.and_then(|()| made_of(&all));
        self.offered.with(|offered| *offered &= !slots);
        made
    }

    /// What all members of a team say in the same collective, in order.
    fn exchange<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        [a, b, kind]: Said,
        slots: u32,
    ) -> Result<Vec<Said>, Error> {
        let counter = self.made.fetch_add(1, Relaxed).wrapping_add(1);
        let own = [a, b, kind | u64::from(slots) << 32 | u64::from(counter)].map(u64::to_le_bytes).concat();
        let of = self.next(team, What::new(Kind::Teams, None, own.len()));
        let mut all = vec![0; own.len() * team.members.size() as usize];
        let appended = Appended::new(team.own, Bytes::Plain(&own), VolatileSlice::from_mut(&mut all));
        collective::run(engine, of, appended)?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let said = |block: &[u8]| [&block[..8], &block[8..16], &block[16..]].map(word);
        Ok(all.chunks_exact(size_of::<Said>()).map(said).collect())
    }

    /// Whether all have said the same of something.
    fn same(&self, all: &[Said], of: impl Fn(&Said) -> [u64; 2], what: &'static str) -> Result<(), Error> {
        let second = all.iter().position(|said| of(said) != of(&all[0]));
        second.map_or(Ok(()), |second| not_the_same(what, 0, second as u32))
    }

    /// The team of these members of another, if this rank is one of them.
    fn team<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        of: &Team,
        members: impl IntoIterator<Item = u32>,
        all: &[Said],
    ) -> Result<Option<Team>, Error> {
        let members = of.members.within(members, engine.ranks()).map_err(gasworks_core::Error::from)?;
        let maker = members.rank_of(0).unwrap_or(0);
        let said = |rank| of.members.member_of(rank).map_or(0, |member| all[member as usize][2]);
        let number = TeamNumber { maker, counter: said(maker) as u32 };
        let Some(own) = members.member_of(engine.rank()) else { return Ok(None) };
        // The lowest slot that is free at all, if one is.
        let slots = members.iter().fold(SLOTS, |slots, rank| slots & (said(rank) >> 32) as u32);
        let barriers = self.barriers.as_ref().filter(|_| slots != 0);
        let shared = barriers.and_then(|barriers| barriers.open(slots.trailing_zeros(), &members));
        Ok(Some(Team::new(number, members, own, shared)))
    }

    /// Divides a team: those of its members that pass the same colour are a team, in the order of their keys, and of their numbers in the old one
    /// where these are the same. Who passes none gets no team. Collective: returns when every member has called it.
    ///
    /// # Errors
    /// A member called another collective of the team, or a poll finds something wrong.
    pub fn split<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        color: Option<u32>,
        key: i64,
    ) -> Result<Option<Team>, Error> {
        let own = color.map_or(NO_COLOR, u64::from);
        self.tell(engine, team, [own, key.cast_unsigned(), SPLIT], |all| {
            if color.is_none() {
                return Ok(None);
            }
            let mut ours: Vec<_> = (0..).zip(all).filter(|(_, said)| said[0] == own).collect();
            ours.sort_by_key(|(_, said)| said[1].cast_signed());
            self.team(engine, team, ours.into_iter().map(|(member, _)| member), all)
        })
    }

    /// Makes a team of some members of another, in this order. Who is not among them gets none. Collective: every member of the old team passes
    /// the same.
    ///
    /// # Errors
    /// There is no member, one is none of the old team's, or one comes twice; two members passed others, or called another collective of the
    /// team; on every member alike. Or a poll finds something wrong.
    pub fn create<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        members: impl IntoIterator<Item = u32>,
    ) -> Result<Option<Team>, Error> {
        let members: Vec<u32> = members.into_iter().collect();
        let [hash, count] = name_of(&members);
        self.tell(engine, team, [hash, count, CREATE], |all| {
            self.same(all, |said| [said[0], said[1]], OTHER_MEMBERS)?;
            self.team(engine, team, members, all)
        })
    }

    /// As [`create`](Self::create), of several teams at once that have no members in common: each member of the old team passes those of its own
    /// new team, or none if it gets no team.
    ///
    /// # Errors
    /// Those of [`create`](Self::create), if members of one new team passed others for it: on those of them alone. What else is wrong of a new
    /// team, too.
    pub fn create_apart<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        team: &Team,
        members: &[u32],
    ) -> Result<Option<Team>, Error> {
        let [hash, count] = name_of(members);
        self.tell(engine, team, [hash, count, CREATE_APART], |all| {
            if members.is_empty() {
                return Ok(None);
            }
            let same =
                |member: &&u32| all.get(**member as usize).is_none_or(|said| said[..2] == [hash, count]);
            if let Some(&second) = members.iter().find(|member| !same(member)) {
                return not_the_same(OTHER_MEMBERS, team.own, second);
            }
            self.team(engine, team, members.iter().copied(), all)
        })
    }
}

const OTHER_MEMBERS: &str = "passed different members for a new one";

fn not_the_same<T>(what: &'static str, first: u32, second: u32) -> Result<T, Error> {
    Err(gasworks_core::Error::from(TeamError::NotTheSame { what, first, second }).into())
}

/// What a list of members is told by: a hash, and how many there are.
fn name_of(members: &[u32]) -> [u64; 2] {
    // FNV-1a, a number at a time.
    let step = |hash: u64, &member: &u32| (hash ^ u64::from(member)).wrapping_mul(0x0100_0000_01b3);
    [members.iter().fold(0xcbf2_9ce4_8422_2325, step), members.len() as u64]
}

impl Drop for Teams {
    fn drop(&mut self) {
        self.matching.end();
    }
}

impl std::fmt::Debug for Teams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "teams, {:?}", self.matching)
    }
}
