//! Exchanges: each member of a team tells all others some bytes.
//!
//! At doubling distances: in step `s` a member sends what it has to the one 2^s before, and takes what the one 2^s further on has sent; after the
//! last step it has heard, directly or not, of all. Of a team whose members are in several neighbourhoods the first of each does that, after its neighbours
//! have told it what they have, up a tree, and before it tells them what all have. Nobody is through before all have begun.

use super::binomial::Position;
use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::layout::Layout;
use super::part::{Io, Schedule};
use super::step;
use super::tree::part;
use gasworks_core::Name;
use gasworks_sync::VolatileSlice;

/// So many bytes of a step go at a time; fewer in tests, so that several pieces are tried.
const PIECE: usize = if cfg!(test) { 9000 } else { 1 << 20 };
/// How many bytes a name has.
const NAME: usize = 8;

/// What this rank has said and heard.
#[derive(Debug)]
enum Heard {
    /// So many bytes of each member, one's behind the other's, from this rank's own on; how many bytes there are so far.
    Blocks { block: usize, bytes: Buffer, have: usize },
    /// What they agree on.
    Name(Name),
}

/// What a member sends to one other, and takes from one meanwhile: what how many members have said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExchangeStep {
    to: Option<(u32, u32)>,
    from: Option<(u32, u32)>,
    /// What comes takes the place of all that is here, and does not follow it.
    replaces: bool,
    step: u32,
}

/// The distance of a step among so many, if there is such a step.
fn doubled_distance(step: u32, size: u32) -> Option<u32> {
    1u32.checked_shl(step).filter(|&distance| distance < size)
}

impl ExchangeStep {
    /// The one of this number of a member of so many; `None`: it has heard of all.
    fn of(number: u32, own: u32, size: u32, layout: Option<&Layout>) -> Option<Self> {
        let Some(layout) = layout else {
            let distance = doubled_distance(number, size)?;
            let member = |distance| Position::new(0, 0, size).member(own + distance);
            let count = distance.min(size - distance);
            let (to, from) = (member(size - distance), member(distance));
            return Some(Self {
                to: Some((to, count)),
                from: Some((from, count)),
                replaces: false,
                step: number,
            });
        };
        let (neighbourhood, at) = layout.place_of(own);
        let place = Position::new(0, at, layout.size_of(neighbourhood));
        let neighbour = |at| layout.member(neighbourhood, at);
        let (bits, none) = (place.bits(), Self::default());
        // From those below it,
        let Some(number) = number.checked_sub(bits) else {
            let below = place.below_by(number);
            return Some(Self { from: below.map(|below| (neighbour(below.at), below.below())), ..none });
        };
        // with the one above it, or with those who lead other neighbourhoods,
        let number = match (place.parent(), number) {
            (Some(parent), 0) => return Some(Self { to: Some((neighbour(parent), place.below())), ..none }),
            (Some(parent), 1) => {
                return Some(Self { from: Some((neighbour(parent), size)), replaces: true, ..none });
            }
            (Some(_), number) => number - 2,
            (None, step) => match doubled_distance(step, layout.count()) {
                Some(distance) => return Some(Self::of_leaders(layout, neighbourhood, distance, step)),
                None => step - layout.count().next_power_of_two().ilog2(),
            },
        };
        // and to those below it, the furthest first.
        let below = place.below_by(bits.checked_sub(number + 1)?);
        Some(Self { to: below.map(|below| (neighbour(below.at), size)), ..none })
    }

    /// That of the first members of neighbourhoods.
    fn of_leaders(layout: &Layout, own: u32, distance: u32, step: u32) -> Self {
        let all = layout.count();
        let neighbourhood = |distance| Position::new(0, 0, all).member(own + distance);
        let (before, after) = (neighbourhood(all - distance), neighbourhood(distance));
        let of = |leader, first| {
            let count = distance.min(all - distance);
            Some((layout.member(leader, 0), layout.size_of_some(first, count)))
        };
        Self { to: of(before, own), from: of(after, after), replaces: false, step }
    }
}

/// A member's part.
#[derive(Debug)]
pub(crate) struct Exchange {
    heard: Heard,
    /// The number of its first step.
    first: u32,
    /// How many transfers are over, and how many pieces of the next one.
    transfers: u32,
    pieces: u32,
    is_sent: bool,
}

impl Exchange {
    fn new(heard: Heard, first: u32) -> Self {
        Self { heard, first, transfers: 0, pieces: 0, is_sent: false }
    }

    /// All hear what the names of all agree on; its steps have numbers from `first`.
    pub fn agree(name: Name, first: u32) -> Self {
        Self::new(Heard::Name(name), first)
    }

    /// What all agree on.
    pub fn agreed(&self) -> Name {
        match self.heard {
            Heard::Blocks { .. } => Name::Any,
            Heard::Name(name) => name,
        }
    }

    /// The bytes of the next piece of what so many have said: from where, and how many.
    fn piece(&self, members: u32) -> Option<(usize, usize)> {
        let len = match self.heard {
            Heard::Blocks { block, .. } => members as usize * block,
            Heard::Name(_) => NAME,
        };
        let from = self.pieces as usize * PIECE;
        (from < len).then(|| (from, PIECE.min(len - from)))
    }
}

impl Schedule for Exchange {
    fn meets(&self) -> bool {
        matches!(self.heard, Heard::Name(_))
    }

    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        while let Some(transfer) = ExchangeStep::of(self.transfers, io.own(), io.size(), io.layout()) {
            let piece =
                |part: Option<(u32, u32)>| part.and_then(|(whom, count)| Some((whom, self.piece(count)?)));
            let (to, from) = (piece(transfer.to), piece(transfer.from));
            if to.is_none() && from.is_none() {
                (self.transfers, self.pieces) = (self.transfers + 1, 0);
                continue;
            }
            let step = self.first + transfer.step + self.pieces * u32::BITS;
            if !self.is_sent {
                if let Some((whom, (_, len))) = from {
                    // First: around, each might wait to be cleared by the next one.
                    io.clear_to_send(whom, step, len)?;
                }
                match (&self.heard, to) {
                    (_, None) => {}
                    (Heard::Blocks { bytes, .. }, Some((whom, (at, len)))) => {
                        io.send(whom, step, Bytes::Plain(&bytes[at..][..len]))?
                    }
                    (Heard::Name(name), Some((whom, _))) => {
                        io.send(whom, step, Bytes::Plain(&name.encode().to_le_bytes()))?
                    }
                }
                self.is_sent = true;
            }
            if let Some((whom, (at, len))) = from {
                let theirs = io.receive(whom, step, len)?;
                match &mut self.heard {
                    Heard::Blocks { bytes, .. } if transfer.replaces => {
                        bytes[at..][..len].copy_from_slice(&theirs)
                    }
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
            }
            (self.pieces, self.is_sent) = (self.pieces + 1, false);
        }
        Ok(())
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

    /// Puts what was heard where it is wanted. It begins with this member's own, and with that of its neighbourhood's first one where there are several.
    fn place(&self, heard: &[u8], layout: Option<&Layout>) {
        let len = self.own.len();
        let Some(layout) = layout else {
            let (after, before) = heard.split_at(heard.len() - self.member as usize * len);
            part(self.all, (0, before.len())).write(before);
            return part(self.all, (before.len(), after.len())).write(after);
        };
        let own = layout.place_of(self.member).0;
        let neighbourhoods = (own..layout.count()).chain(0..own);
        let members = neighbourhoods
            .flat_map(|number| (0..layout.size_of(number)).map(move |at| layout.member(number, at)));
        for (member, block) in members.zip(heard.chunks_exact(len.max(1))) {
            part(self.all, (member as usize * len, len)).write(block);
        }
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
        if let Some(Exchange { heard: Heard::Blocks { bytes, .. }, .. }) = self.exchange.take() {
            self.place(&bytes, io.layout());
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
