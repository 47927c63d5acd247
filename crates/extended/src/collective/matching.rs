//! Matching what members of a team send each other for collectives with who receives it, in pieces that fit into messages.
//!
//! What comes for a step that this rank has not reached (MPI's unexpected messages) is kept. Short steps are sent eagerly, and so is the beginning of longer
//! ones; the rest is sent only when its receiver has cleared it to send, by a rendezvous, so that a rank which is late is not buried. Since the members of a team meet now and then, none is far ahead of another,
//! and what is kept is bounded. So is what is kept of memory that is free again: `buffers`, and places for 1,024 steps.

use super::buffers::{Buffer, Pool};
use super::reused::Reused;
use gasworks_core::{Category, CoreMode, Error, Handlers, Incoming, Rank, Received};
use gasworks_sync::{Lock, Mode, Par, VolatileSlice, kill_point};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// The library's handler index for a piece.
pub(super) const PIECE: u8 = 4;
/// Words of its arguments: the team's number, the collective's, the step; where the piece belongs in how many bytes.
pub(super) const WORDS: usize = 6;
/// The bit of a step's word by which a receiver clears its sender to send.
pub(super) const CLEAR_TO_SEND: u32 = 1 << 31;
/// So many bytes of a step are sent eagerly.
pub(super) const EAGER: usize = 4096;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Step {
    pub team: TeamNumber,
    pub order: u32,
    pub step: u32,
    pub from: Rank,
}

/// What has arrived for a step.
#[derive(Debug)]
struct Arrived {
    /// Room for all of it, or for as much as is sent eagerly.
    bytes: Buffer,
    /// How many of them are there.
    have: usize,
    /// How many there are to be, as who sends them says.
    total: usize,
    /// What it has said besides: it, or this rank, is at something else.
    other: Option<usize>,
}

impl Arrived {
    fn new(bytes: Buffer, have: usize, total: usize) -> Self {
        Self { bytes, have, total, other: None }
    }

    /// How many bytes it has that this rank's step has not.
    fn differs(&self, total: usize) -> Option<usize> {
        self.other.or((self.total != total).then_some(self.total))
    }
}

/// Hashes steps, which are some numbers of the job's own.
#[derive(Debug, Default)]
struct StepHasher(u64);

impl Hasher for StepHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }
    fn write_u32(&mut self, word: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// By steps. It allocates nothing while no more of them are there than have been.
#[derive(Debug)]
struct BySteps<T>(HashMap<Step, T, BuildHasherDefault<StepHasher>>);

impl<T> Default for BySteps<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> BySteps<T> {
    /// So many places are kept when nothing is there.
    const MAX_KEPT: usize = 1024;

    fn remove(&mut self, step: &Step) -> Option<T> {
        let removed = self.0.remove(step);
        if self.0.is_empty() && self.0.capacity() > 2 * Self::MAX_KEPT {
            self.0.shrink_to(Self::MAX_KEPT);
        }
        removed
    }
}

#[derive(Debug, Default)]
struct Held {
    arrived: BySteps<Arrived>,
    /// What receivers have cleared to send: the step, who receives, and how many bytes.
    cleared: BySteps<usize>,
    pool: Pool,
}

/// What has come for a rank's collectives.
#[derive(Debug)]
pub struct Matching {
    ranks: u32,
    held: <Par as Mode>::Lock<Held>,
    /// Machines of collectives that were begun.
    pub(super) reused: Reused,
}

impl Matching {
    /// That of a rank of so many, with its handler entered into the table.
    pub(crate) fn register<M: CoreMode>(
        ranks: u32,
        handlers: &Handlers<M>,
        boxed: impl FnOnce(Arc<Self>) -> Box<M::Function>,
    ) -> Result<Arc<Self>, Error> {
        let state = Arc::new(Self { ranks, held: Lock::new(Held::default()), reused: Reused::default() });
        let shape = (Category::Medium, false, 4 * WORDS);
        handlers.register_internal(PIECE, "gasworks.team", shape, boxed(state.clone()))?;
        Ok(state)
    }

    /// No more collectives are begun. What is under way holds this, and so must not be held by it.
    pub(crate) fn end(&self) {
        self.reused.clear();
    }

    /// Keeps a piece that has come until its step is taken.
    ///
    /// # Errors
    /// No member of a team sends such a piece.
    pub fn hear<M: CoreMode>(&self, piece: &Incoming<'_, M>) -> Result<(), Box<Error>> {
        let Received::Payload(payload) = piece.received() else { return Ok(()) };
        self.keep(piece.source(), piece.args(), payload)
    }

    /// The same of a piece's arguments and payload.
    pub(crate) fn keep(&self, from: Rank, args: &[u8], payload: VolatileSlice<'_>) -> Result<(), Box<Error>> {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(args.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let [maker, counter, order, step, offset, total] = words;
        let key = Step { team: TeamNumber { maker, counter }, order, step: step & !CLEAR_TO_SEND, from };
        let (offset, total) = (offset as usize, total as usize);
        let heard = if maker >= self.ranks {
            Err("is of no team")
        } else if step & CLEAR_TO_SEND != 0 {
            let before = self.held.with(|held| held.cleared.0.insert(key, total));
            before.map_or(Ok(()), |_| Err("is cleared to send twice"))
        } else {
            self.held.with(|held| held.arrive(key, (offset, total), payload))
        };
        kill_point!("collective.heard");
        heard.map_err(|what| Box::new(Error::BadMessage { from, what: format!("a piece of {key:?} {what}") }))
    }

    /// Room for a step that is going to be cleared to send.
    pub(super) fn expect(&self, step: Step, mut bytes: Buffer) -> Result<(), Error> {
        let total = bytes.len();
        self.held.with(|held| {
            let have = match held.arrived.0.get(&step) {
                Some(early) if early.differs(total).is_some() => return Err(held.other(step, total)),
                Some(early) => {
                    bytes[..early.bytes.len()].copy_from_slice(&early.bytes);
                    early.have
                }
                None => 0,
            };
            let early = held.arrived.0.insert(step, Arrived::new(bytes, have, total));
            early.into_iter().for_each(|early| held.pool.give_back(early.bytes));
            Ok(())
        })
    }

    /// What has come for a step of so many bytes, once all of it is there; it is kept no longer then.
    pub(super) fn take(&self, step: Step, total: usize) -> Result<Option<Buffer>, Error> {
        self.held.with(|held| match held.arrived.0.get(&step) {
            Some(arrived) if arrived.differs(total).is_some() => Err(held.other(step, total)),
            Some(arrived) if arrived.have == total => {
                Ok(held.arrived.remove(&step).map(|arrived| arrived.bytes))
            }
            _ => Ok(None),
        })
    }

    /// Whether a step of so many bytes has been cleared to send by its receiver; it is forgotten then.
    pub(super) fn is_cleared(&self, step: Step, total: usize) -> Result<bool, Error> {
        match self.held.with(|held| held.cleared.remove(&step)) {
            Some(wanted) if wanted != total => Err(differs(step, wanted, total)),
            found => Ok(found.is_some()),
        }
    }

    /// Nobody waits for a step any more.
    pub(super) fn forget(&self, step: Step) {
        self.held.with(|held| {
            let forgotten = held.arrived.remove(&step);
            forgotten.into_iter().for_each(|arrived| held.pool.give_back(arrived.bytes));
        });
    }

    /// A buffer of so many bytes.
    pub(super) fn buffer(&self, len: usize) -> Buffer {
        self.held.with(|held| held.pool.take(len))
    }

    /// Buffers are not needed any more.
    pub(super) fn give_back(&self, buffers: impl IntoIterator<Item = Buffer>) {
        self.held.with(|held| buffers.into_iter().for_each(|buffer| held.pool.give_back(buffer)));
    }
}

/// Another member is at something else than this one.
fn differs(step: Step, theirs: usize, own: usize) -> Error {
    let what = format!(
        "it has {theirs} bytes in a step of {own}: it is in another collective of {:?} than this rank, or has another number of values",
        step.team
    );
    Error::BadMessage { from: step.from, what }
}

impl Held {
    /// What has come for a step is not what this rank wants, and is of no use.
    fn other(&mut self, step: Step, own: usize) -> Error {
        let theirs = self.arrived.remove(&step).and_then(|arrived| arrived.differs(own)).unwrap_or(0);
        differs(step, theirs, own)
    }

    fn arrive(
        &mut self,
        step: Step,
        (offset, total): (usize, usize),
        payload: VolatileSlice<'_>,
    ) -> Result<(), &'static str> {
        let end = offset.checked_add(payload.len()).filter(|&end| end <= total && !payload.is_empty());
        let end = end.ok_or("is no part of it")?;
        let room = total.min(EAGER);
        let new = || Arrived::new(self.pool.take(room), 0, total);
        let arrived = self.arrived.0.entry(step).or_insert_with(new);
        if arrived.total != total {
            // Who waits for it is told, on whichever thread that is.
            arrived.other = Some(total);
            return Ok(());
        }
        let place = arrived.bytes.get_mut(offset..end).ok_or("was not cleared to send")?;
        if arrived.have + payload.len() > total {
            return Err("comes twice");
        }
        payload.read(place);
        arrived.have += payload.len();
        Ok(())
    }
}
