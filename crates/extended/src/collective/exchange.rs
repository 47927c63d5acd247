//! Exchanges: each member of a team tells all others some bytes, at doubling distances.
//!
//! In step `s` a member sends what it has to the one 2^s before, and takes what the one 2^s further on has sent; after the last step it has
//! heard, directly or not, of all. Nobody is through before all have begun.

use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::part::{Io, Schedule};
use super::step;
use gasworks_core::Name;
use gasworks_sync::VolatileSlice;

/// So many bytes of a step go at a time.
const PIECE: usize = 1 << 20;
/// How many bytes a name has.
const NAME: usize = 8;

/// What this rank has said and heard.
#[derive(Debug)]
enum Heard {
    /// So many bytes of each member, one's behind the other's; how many bytes there are so far.
    Blocks { block: usize, bytes: Buffer, have: usize },
    /// What they agree on.
    Name(Name),
}

/// A member's part.
#[derive(Debug)]
pub(crate) struct Exchange {
    heard: Heard,
    /// The number of its first step.
    first: u32,
    step: u32,
    /// How many pieces of the step have been exchanged.
    pieces: u32,
    is_sent: bool,
}

impl Exchange {
    fn new(heard: Heard, first: u32) -> Self {
        Self { heard, first, step: 0, pieces: 0, is_sent: false }
    }

    /// All hear what each says, as many bytes.
    pub fn append(own: &[u8]) -> Self {
        Self::new(Heard::Blocks { block: own.len(), bytes: own.into(), have: own.len() }, 0)
    }

    /// All hear what the names of all agree on; its steps have numbers from `first`.
    pub fn agree(name: Name, first: u32) -> Self {
        Self::new(Heard::Name(name), first)
    }

    /// What all have said, this rank's own first, then that of the member after it, around.
    pub fn heard(&self) -> &[u8] {
        match &self.heard {
            Heard::Blocks { bytes, have, .. } => &bytes[..*have],
            Heard::Name(_) => &[],
        }
    }

    /// What all agree on.
    pub fn agreed(&self) -> Name {
        match self.heard {
            Heard::Blocks { .. } => Name::Any,
            Heard::Name(name) => name,
        }
    }

    /// Makes room for what all say.
    fn begin(&mut self, io: &mut Io<'_>) {
        if let Heard::Blocks { block, bytes, have } = &mut self.heard {
            let len = *block * io.size() as usize;
            if bytes.len() < len {
                let mut all = io.buffer(len);
                all[..*have].copy_from_slice(bytes);
                io.give_back(std::mem::replace(bytes, all));
            }
        }
    }
}

impl Schedule for Exchange {
    fn meets(&self) -> bool {
        matches!(self.heard, Heard::Name(_))
    }

    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let size = io.size();
        self.begin(io);
        loop {
            let distance = 1u64 << self.step;
            if distance >= size.into() {
                return Ok(());
            }
            let distance = distance as u32;
            let len = match self.heard {
                Heard::Blocks { block, .. } => distance.min(size - distance) as usize * block,
                Heard::Name(_) => NAME,
            };
            let from = self.pieces as usize * PIECE;
            if from >= len {
                (self.step, self.pieces) = (self.step + 1, 0);
                continue;
            }
            let len = PIECE.min(len - from);
            let step = self.first + self.step + self.pieces * u32::BITS;
            let after = io.beyond(io.own(), distance);
            if !self.is_sent {
                // First: around, each might wait to be cleared by the next one.
                io.clear_to_send(after, step, len)?;
                let before = io.beyond(io.own(), size - distance);
                match &self.heard {
                    Heard::Blocks { bytes, .. } => {
                        io.send(before, step, Bytes::Plain(&bytes[from..][..len]))?
                    }
                    Heard::Name(name) => io.send(before, step, Bytes::Plain(&name.encode().to_le_bytes()))?,
                }
                self.is_sent = true;
            }
            let theirs = io.receive(after, step, len)?;
            match &mut self.heard {
                Heard::Blocks { bytes, have, .. } => {
                    bytes[*have..][..len].copy_from_slice(&theirs);
                    *have += len;
                }
                Heard::Name(name) => {
                    let word = theirs.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                    *name = name.and(Name::decode(word));
                }
            }
            io.give_back(theirs);
            (self.pieces, self.is_sent) = (self.pieces + 1, false);
        }
    }
}

/// What all members say, as many bytes, comes to all, where it is wanted.
pub(crate) struct Appended<'a> {
    member: u32,
    own: Bytes<'a>,
    all: VolatileSlice<'a>,
    exchange: Option<Exchange>,
}

impl<'a> Appended<'a> {
    /// Of the member of this number.
    pub fn new(member: u32, own: Bytes<'a>, all: VolatileSlice<'a>) -> Self {
        Self { member, own, all, exchange: None }
    }
}

impl Schedule for Appended<'_> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let own = self.own;
        let exchange = self.exchange.get_or_insert_with(|| {
            let (block, mut bytes) = (own.len(), io.buffer(own.len() * io.size() as usize));
            own.read(&mut bytes[..block]);
            Exchange::new(Heard::Blocks { block, bytes, have: block }, 0)
        });
        exchange.turn(io)?;
        // They begin with this member's own.
        let heard = exchange.heard();
        let (after, before) = heard.split_at(heard.len() - self.member as usize * own.len());
        for (from, bytes) in [(0, before), (before.len(), after)] {
            self.all.slice(from, bytes.len()).unwrap_or(VolatileSlice::EMPTY).write(bytes);
        }
        if let Some(Exchange { heard: Heard::Blocks { bytes, .. }, .. }) = self.exchange.take() {
            io.give_back(bytes);
        }
        Ok(())
    }
}

/// Where members meet beside the collective itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meets {
    /// Before any of them reads or writes.
    pub first: bool,
    /// Before any is through.
    pub last: bool,
}

/// A collective between meetings.
pub(crate) struct Between<S> {
    first: Option<Exchange>,
    schedule: Option<S>,
    last: Option<Exchange>,
}

impl<S> Between<S> {
    pub fn new(meets: Meets, schedule: S) -> Self {
        let meeting = |is_there: bool, step| is_there.then(|| Exchange::agree(Name::Any, step));
        Self {
            first: meeting(meets.first, step::FIRST),
            schedule: Some(schedule),
            last: meeting(meets.last, step::LAST),
        }
    }
}

impl<S: Schedule> Schedule for Between<S> {
    fn meets(&self) -> bool {
        true
    }

    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        if let Some(first) = &mut self.first {
            first.turn(io)?;
            self.first = None;
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.turn(io)?;
            self.schedule = None;
        }
        self.last.as_mut().map_or(Ok(()), |last| last.turn(io))
    }
}

/// A collective before which bytes come to where it wants them.
pub(crate) struct Brought<'a, S> {
    bytes: Option<(VolatileSlice<'a>, VolatileSlice<'a>)>,
    schedule: S,
}

impl<'a, S> Brought<'a, S> {
    pub fn new(bytes: Option<(VolatileSlice<'a>, VolatileSlice<'a>)>, schedule: S) -> Self {
        Self { bytes, schedule }
    }
}

impl<S: Schedule> Schedule for Brought<'_, S> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        if let Some((from, to)) = self.bytes.take() {
            from.copy_to(to);
        }
        self.schedule.turn(io)
    }
}
