//! What members of a team send each other for collectives, in pieces that fit into messages.
//!
//! What comes for a step that this rank has not reached is kept. Short steps come unasked; what is longer is sent only when
//! who gets it has asked, so that a rank which is late is not buried. Since the members of a team meet now and then, none is far ahead of another,
//! and what is kept is bounded.

use gasworks_core::{Category, CoreMode, Error, Handlers, Incoming, Rank, Received};
use gasworks_sync::{Lock, Mode, Par, VolatileSlice, kill_point};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The library's handler index for a piece.
pub(super) const PIECE: u8 = 4;
/// Words of its arguments: the team's number, the collective's, the step; where the piece belongs in how many bytes.
pub(super) const WORDS: usize = 6;
/// The bit of a step's word that says: send me that step.
pub(super) const ASK: u32 = 1 << 31;
/// So many bytes are sent without being asked for.
pub(super) const UNASKED: usize = 4096;

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

/// A step of a team's collective, and who sends for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub team: TeamNumber,
    pub order: u32,
    pub step: u32,
    pub from: Rank,
}

/// What has arrived for a step.
#[derive(Debug)]
struct Arrived {
    bytes: Vec<u8>,
    /// How many of them are there.
    have: usize,
}

#[derive(Debug, Default)]
struct Held {
    arrived: BTreeMap<Step, Arrived>,
    /// What others have asked for: the step, and who is to get it.
    asked: BTreeSet<Step>,
}

/// What has come for a rank's collectives.
#[derive(Debug)]
pub struct Mail {
    ranks: u32,
    held: <Par as Mode>::Lock<Held>,
}

impl Mail {
    /// That of a rank of so many, with its handler entered into the table.
    pub(crate) fn register<M: CoreMode>(
        ranks: u32,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Self>) -> Box<M::Function>,
    ) -> Result<Arc<Self>, Error> {
        let state = Arc::new(Self { ranks, held: Lock::new(Held::default()) });
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
        let key = Step { team: TeamNumber { maker, counter }, order, step: step & !ASK, from };
        let heard = if maker >= self.ranks {
            Err("is of no team")
        } else if step & ASK != 0 {
            self.held.with(|held| held.asked.insert(key)).then_some(()).ok_or("is asked for twice")
        } else {
            self.held.with(|held| held.arrive(key, (offset as usize, total as usize), payload))
        };
        kill_point!("collective.heard");
        heard.map_err(|what| Box::new(Error::BadMessage { from, what: format!("a piece of {key:?} {what}") }))
    }

    /// Room for a step that is going to be asked for.
    pub(super) fn expect(&self, step: Step, bytes: Vec<u8>) {
        self.held.with(|held| _ = held.arrived.insert(step, Arrived { bytes, have: 0 }));
    }

    /// What has come for a step, once all of it is there; it is kept no longer then.
    pub(super) fn take(&self, step: Step, total: usize) -> Result<Option<Vec<u8>>, Error> {
        self.held.with(|held| match held.arrived.get(&step) {
            Some(arrived) if arrived.bytes.len() != total => {
                let what = format!(
                    "{} bytes came for a step of {total}: it is in another collective of {:?} than this rank",
                    arrived.bytes.len(),
                    step.team
                );
                Err(Error::BadMessage { from: step.from, what })
            }
            Some(arrived) if arrived.have == total => {
                Ok(held.arrived.remove(&step).map(|arrived| arrived.bytes))
            }
            _ => Ok(None),
        })
    }

    /// Whether a step has been asked for by who is to get it; it is forgotten then.
    pub(super) fn is_asked(&self, step: Step) -> bool {
        self.held.with(|held| held.asked.remove(&step))
    }

    /// Nobody waits for a step any more.
    pub(super) fn forget(&self, step: Step) {
        self.held.with(|held| _ = held.arrived.remove(&step));
    }
}

impl Held {
    fn arrive(
        &mut self,
        step: Step,
        (offset, total): (usize, usize),
        payload: VolatileSlice<'_>,
    ) -> Result<(), &'static str> {
        let end = offset.checked_add(payload.len()).filter(|&end| end <= total && !payload.is_empty());
        let end = end.ok_or("is no part of it")?;
        if total > UNASKED && !self.arrived.contains_key(&step) {
            return Err("was not asked for");
        }
        let new = || Arrived { bytes: vec![0; total], have: 0 };
        let arrived = self.arrived.entry(step).or_insert_with(new);
        if arrived.bytes.len() != total || arrived.have + payload.len() > total {
            return Err("is of another length than this rank's, or comes twice");
        }
        payload.read(&mut arrived.bytes[offset..end]);
        arrived.have += payload.len();
        Ok(())
    }
}
