//! Exchanges: each member of a team tells all others some bytes, by messages at doubling distances.
//!
//! In step `s` a member sends what it has to the one 2^s before, and takes what the one 2^s further on has sent; after the last step it has
//! heard, directly or not, of all. A message carries the number of the team, which collective of the team it is for, and the step. What comes for one that
//! has not begun here is kept; since nobody is through with one before all have begun it, that is one at most for each member and team.

use gasworks_core::{
    Category, CoreMode, Engine, Error, Handlers, Incoming, Machine, Members, Name, Outgoing, Rank, Received,
    Turned,
};
use gasworks_sync::{Lock, Mode, Par};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The library's handler index for a piece of what a member sends.
const PIECE: u8 = 4;
/// Words of its arguments: the team's number, the collective's, the step; where the piece belongs in how many bytes.
const WORDS: usize = 6;

/// How many bytes each member appends.
pub(crate) const BLOCK: usize = 24;
/// How many bytes a name has.
const NAME: usize = 8;

/// What all members of a team call it: the rank of its first member, and a number that this rank gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamNumber {
    /// The rank.
    pub maker: Rank,
    /// The number, from 1.
    pub counter: u32,
}

impl TeamNumber {
    /// All ranks.
    pub const EVERYONE: Self = Self { maker: 0, counter: 0 };
}

/// A step of a team's collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    team: TeamNumber,
    order: u32,
    step: u32,
}

/// What has arrived for a step.
#[derive(Debug)]
struct Arrived {
    from: Rank,
    bytes: Vec<u8>,
    /// How many of them are there.
    have: usize,
}

type Kept = <Par as Mode>::Lock<BTreeMap<Step, Arrived>>;

/// The exchanges of one rank.
pub struct Exchanges {
    ranks: u32,
    kept: Kept,
}

impl Exchanges {
    pub(super) fn register<M: CoreMode>(
        ranks: u32,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Self>) -> Box<M::Function>,
    ) -> Result<Arc<Self>, Error> {
        let state = Arc::new(Self { ranks, kept: Lock::new(BTreeMap::new()) });
        let shape = (Category::Medium, false, 4 * WORDS);
        handlers.register_internal(PIECE, "gasworks.team", shape, boxed(state.clone()))?;
        Ok(state)
    }

    /// Keeps a piece that has come until its step is taken.
    ///
    /// # Errors
    /// No member of a team sends such a piece.
    pub fn hear<M: CoreMode>(&self, piece: &Incoming<'_, M>) -> Result<(), Box<Error>> {
        let Received::Payload(payload) = piece.received() else { return Ok(()) };
        let (from, mut words) = (piece.source(), [0; WORDS]);
        for (word, bytes) in words.iter_mut().zip(piece.args().as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let [maker, counter, order, step, offset, total] = words;
        let key = Step { team: TeamNumber { maker, counter }, order, step };
        let (offset, total) = (offset as usize, total as usize);
        let bad =
            |what: &str| Box::new(Error::BadMessage { from, what: format!("a piece of {key:?} {what}") });
        let end = offset.checked_add(payload.len()).filter(|&end| end <= total);
        let is_one = maker < self.ranks && step < u32::BITS && total <= BLOCK * self.ranks as usize;
        let Some(end) = end.filter(|_| is_one && !payload.is_empty()) else {
            return Err(bad("that is no part of it"));
        };
        self.kept.with(|kept| {
            let new = || Arrived { from, bytes: vec![0; total], have: 0 };
            let arrived = kept.entry(key).or_insert_with(new);
            if arrived.from != from || arrived.bytes.len() != total || arrived.have + payload.len() > total {
                return Err(bad("that another sends, or twice"));
            }
            payload.read(&mut arrived.bytes[offset..end]);
            arrived.have += payload.len();
            Ok(())
        })
    }

    /// Goes as far as it can at once, and on at every poll.
    pub(super) fn begin<M: CoreMode>(
        self: &Arc<Self>,
        engine: &Engine<M>,
        exchange: Exchange,
    ) -> Arc<Exchange> {
        let exchange = Arc::new(exchange);
        if exchange.advance(engine, &self.kept) != Turned::Ended {
            engine.start_machine(Arc::new(Running { exchanges: self.clone(), exchange: exchange.clone() }));
        }
        exchange
    }
}

/// What is done with what another member has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// It is appended: [`BLOCK`] bytes of each member.
    Append,
    /// They are [names](Name), and what is kept is what both agree on.
    Agree,
}

/// One rank's part in an exchange.
pub struct Exchange {
    /// Of which team it is, and which of the team's.
    of: (TeamNumber, u32),
    members: Arc<Members>,
    /// Which member this rank is.
    own: u32,
    combine: Combine,
    state: <Par as Mode>::Lock<State>,
}

struct State {
    /// What this rank has said and heard.
    held: Vec<u8>,
    step: u32,
    /// How many bytes of the step's were sent.
    sent: usize,
    /// What came of it.
    outcome: Option<Result<(), Error>>,
}

impl Exchange {
    pub(super) fn new(
        of: (TeamNumber, u32),
        members: Arc<Members>,
        own: u32,
        combine: Combine,
        held: Vec<u8>,
    ) -> Self {
        let state = Lock::new(State { held, step: 0, sent: 0, outcome: None });
        Self { of, members, own, combine, state }
    }

    /// What all have said, once it is known: appended, this rank's own first, then that of the member after it, around; or agreed on.
    pub(crate) fn outcome(&self) -> Option<Result<Vec<u8>, Error>> {
        self.state.with(|state| {
            let outcome = state.outcome.clone()?;
            // Of several threads that ask each is told.
            Some(outcome.map(|()| state.held.clone()))
        })
    }

    /// Goes as far as it can.
    fn advance<M: CoreMode>(&self, engine: &Engine<M>, kept: &Kept) -> Turned {
        self.state.with(|state| {
            let turned = self.steps(engine, kept, state);
            match turned {
                Ok(Turned::Ended) => state.outcome = Some(Ok(())),
                Ok(turned) => return turned,
                Err(error) => state.outcome = Some(Err(error)),
            }
            Turned::Ended
        })
    }

    fn steps<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        kept: &Kept,
        state: &mut State,
    ) -> Result<Turned, Error> {
        let size = u64::from(self.members.size());
        loop {
            let distance = 1u64 << state.step;
            if distance >= size {
                return Ok(Turned::Ended);
            }
            let total = match self.combine {
                Combine::Append => distance.min(size - distance) as usize * BLOCK,
                Combine::Agree => NAME,
            };
            let (team, order) = self.of;
            let key = Step { team, order, step: state.step };
            while state.sent < total {
                if !self.send(engine, key, self.at(size - distance), (state.sent, total), &state.held)? {
                    return Ok(Turned::Busy);
                }
                state.sent = total.min(state.sent + engine.max_medium());
            }
            let Some(heard) = take(kept, key, self.at(distance), total)? else { return Ok(Turned::Waits) };
            match self.combine {
                Combine::Append => state.held.extend(heard),
                Combine::Agree => {
                    state.held = name_of(&state.held).and(name_of(&heard)).encode().to_le_bytes().into()
                }
            }
            (state.step, state.sent) = (state.step + 1, 0);
        }
    }

    /// The rank of the member so much further on, around.
    fn at(&self, distance: u64) -> Rank {
        let member = (u64::from(self.own) + distance) % u64::from(self.members.size());
        self.members.rank_of(member as u32).unwrap_or(Rank::MAX)
    }

    /// Sends as much of a step's bytes as a Medium takes; false if it must be tried again.
    fn send<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        Step { team, order, step }: Step,
        to: Rank,
        (sent, total): (usize, usize),
        held: &[u8],
    ) -> Result<bool, Error> {
        let payload = &held[sent..total.min(sent + engine.max_medium())];
        let words = [team.maker, team.counter, order, step, sent as u32, total as u32];
        let args = words.map(u32::to_le_bytes);
        let args = args.as_flattened();
        let message = Outgoing { category: Category::Medium, handler: PIECE, args, payload, landing: 0 };
        match engine.try_request(to, &message) {
            Ok(()) => Ok(true),
            Err(error) if error.is_busy() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What a rank has sent for a step, once all of it is there; it is kept no longer then.
fn take(kept: &Kept, step: Step, from: Rank, total: usize) -> Result<Option<Vec<u8>>, Error> {
    kept.with(|kept| match kept.get(&step) {
        Some(arrived) if arrived.from != from || arrived.bytes.len() != total => {
            let what = format!("it is in another collective of {:?} than this rank", step.team);
            Err(Error::BadMessage { from: arrived.from, what })
        }
        Some(arrived) if arrived.have == total => Ok(kept.remove(&step).map(|arrived| arrived.bytes)),
        _ => Ok(None),
    })
}

/// The name of an [`Agree`](Combine::Agree) exchange.
pub(crate) fn name_of(bytes: &[u8]) -> Name {
    Name::decode(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

/// An exchange as a machine.
struct Running {
    exchanges: Arc<Exchanges>,
    exchange: Arc<Exchange>,
}

impl<M: CoreMode> Machine<M> for Running {
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error> {
        Ok(self.exchange.advance(engine, &self.exchanges.kept))
    }
}

impl std::fmt::Debug for Exchanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exchanges of teams of {} ranks", self.ranks)
    }
}
