//! Reduces a word of every rank to all by the network's own means ([`WordReduction`]): collective engines of its NICs.
//!
//! Where the first rank of each neighbourhood contributes for all its neighbours, they send it their words up a tree and get the result down the same tree. The network
//! does one reduction at a time, and all ranks contribute in the order of the team's collectives: each reduction takes a [`Ticket`] with its place among them.

use super::Combine;
use super::binomial::Position;
use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::part::Io;
use super::ticket::Ticket;
use gasworks_core::{WordOp, WordReduction};
use gasworks_sync::VolatileSlice;

/// Steps: to the one above, and from it.
const UP: u32 = 0;
const DOWN: u32 = 1;

/// The element as the low bits of a word; `None` for elements of other sizes.
fn word_of(element: &[u8]) -> Option<u64> {
    match element.len() {
        4 => element.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes).into()),
        8 => element.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
        _ => None,
    }
}

/// The ranks for which one contributes: this rank's place in the tree of them, and the member at each place.
struct Group<'a> {
    place: Position,
    member: &'a dyn Fn(u32) -> u32,
}

/// A member's part.
pub(crate) struct WordReduce {
    op: WordOp,
    so_far: Option<Buffer>,
    heard: u32,
    is_sent: bool,
    /// The result is here.
    is_over: bool,
    told: u32,
}

impl WordReduce {
    /// A reduction of `len` bytes; `None` unless they are one element that networks may combine.
    pub fn new(combine: &impl Combine, len: usize) -> Option<Self> {
        let op = combine.word_op().filter(|_| combine.element() == len && matches!(len, 4 | 8))?;
        Some(Self { op, so_far: None, heard: 0, is_sent: false, is_over: false, told: 0 })
    }

    /// Advances the reduction; `None`, on all members alike, if the network does not do it.
    pub fn turn(
        &mut self,
        io: &mut Io<'_>,
        (own, result): (VolatileSlice<'_>, VolatileSlice<'_>),
        combine: &mut impl Combine,
    ) -> Option<Result<(), Stop>> {
        let (network, ticket) = io.reduction().zip(io.ticket())?;
        let (participants, layout, own_member) = (network.participants(), io.layout(), io.own());
        if participants == io.size() {
            let group = Group { place: Position::new(0, 0, 1), member: &|_| own_member };
            return Some(self.turn_in(io, (network, ticket), &group, (own, result), combine));
        }
        let layout = layout.filter(|layout| layout.count() == participants)?;
        let (neighbourhood, at) = layout.place_of(own_member);
        let place = Position::new(0, at, layout.size_of(neighbourhood));
        let group = Group { place, member: &|at| layout.member(neighbourhood, at) };
        Some(self.turn_in(io, (network, ticket), &group, (own, result), combine))
    }

    fn turn_in(
        &mut self,
        io: &mut Io<'_>,
        (network, ticket): (&dyn WordReduction, &Ticket),
        &Group { place, member }: &Group<'_>,
        (own, result): (VolatileSlice<'_>, VolatileSlice<'_>),
        combine: &mut impl Combine,
    ) -> Result<(), Stop> {
        let len = own.len();
        let so_far = self.so_far.get_or_insert_with(|| {
            let mut bytes = io.buffer(len);
            own.read(&mut bytes);
            bytes
        });
        while self.heard < place.bits() {
            if let Some(child) = place.child(self.heard) {
                let mut theirs = io.receive(member(child), UP, len)?;
                combine.combine(so_far, &mut theirs);
                io.give_back(theirs);
            }
            self.heard += 1;
        }
        if !self.is_over {
            match place.parent() {
                Some(parent) => {
                    if !self.is_sent {
                        io.send(member(parent), UP, Bytes::Plain(so_far))?;
                        self.is_sent = true;
                    }
                    let all = io.receive(member(parent), DOWN, len)?;
                    so_far.copy_from_slice(&all);
                    io.give_back(all);
                }
                None => {
                    if !ticket.is_first() {
                        return Err(Stop::Waits(None));
                    }
                    if !self.is_sent {
                        network.contribute(ticket.place(), self.op, word_of(so_far).unwrap_or(0));
                        self.is_sent = true;
                    }
                    let word = network.result().ok_or(Stop::Waits(None))?;
                    ticket.end();
                    match len {
                        4 => so_far.copy_from_slice(&(word as u32).to_ne_bytes()),
                        _ => so_far.copy_from_slice(&word.to_ne_bytes()),
                    }
                }
            }
            result.write(so_far);
            self.is_over = true;
        }
        while let Some(bit) = place.bits().checked_sub(self.told + 1) {
            if let Some(child) = place.child(bit) {
                io.send(member(child), DOWN, Bytes::Plain(so_far))?;
            }
            self.told += 1;
        }
        self.so_far.take().into_iter().for_each(|bytes| io.give_back(bytes));
        Ok(())
    }
}
