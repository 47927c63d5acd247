//! The port that a transport implements: move one active message.
//!
//! A message is a head of at most [`MAX_HEAD`] bytes, which `core` encodes, and a payload of at most
//! [`Limits::max_medium`] bytes, which is filled in place. A transport knows nothing of handlers, credits or
//! replies, except that it must keep room apart for replies (see [`Class`]).
//!
//! All methods take `&self` and may be called while [`Wire::poll`] is running on the same thread: a handler replies
//! from inside the sink. Locks belong to the transport, through its thread-mode type parameter.

use crate::flow::Flow;
use crate::message::{First, MAX_HEAD};
use crate::{Category, Members, Rank};
use gasworks_shmem::barrier::Name;
use gasworks_shmem::blocks::Lent;
use gasworks_shmem::board::Board;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::Block;
use gasworks_shmem::queues::{Queue, Queues};
use gasworks_sock::sleeper;
use gasworks_sync::{Mode, VolatileSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How many messages a poll takes at most of a transport that does not say otherwise: the seed's `AM_BURST`.
pub const BURST: u32 = 20;

/// How many requests of its receiver's the message with this head ends: they are handled, and nobody will reply to them any
/// more. A transport that has lent its own room with each request may take it back then.
pub fn ended(head: &[u8]) -> usize {
    First::of(head).map_or(0, |first| first.returned().count.into())
}

/// What a message is, for the sake of the room it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A request. The wire may be busy. Sending it also reserves room for one reply of the largest size.
    Request,
    /// The reply to a request being handled: it uses the room that its request reserved, so the wire is never busy.
    Reply,
    /// A return of credits: no payload. It uses the room of replies that were not sent, so the wire is never busy.
    Credit,
}

impl Class {
    /// Where ranks share memory, the queue that it goes into.
    #[inline]
    pub fn queue(self) -> Queue {
        match self {
            Class::Request => Queue::Requests,
            Class::Reply | Class::Credit => Queue::Replies,
        }
    }
}

/// The largest messages that a transport carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload of a message, in bytes.
    pub max_medium: usize,
    /// The largest Long, in bytes.
    pub max_long: u64,
    /// The largest payload of a Long that goes in its message, where the target is not mapped; no more than `max_medium`.
    pub packed_long: usize,
}

impl Limits {
    /// The largest payload of a category, the same for requests and replies, and for any number of arguments.
    pub fn max_payload(&self, category: Category) -> u64 {
        match category {
            Category::Short => 0,
            Category::Medium => self.max_medium as u64,
            Category::Long => self.max_long,
        }
    }

    /// What both admit.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            max_medium: self.max_medium.min(other.max_medium),
            max_long: self.max_long.min(other.max_long),
            packed_long: self.packed_long.min(other.packed_long),
        }
    }
}

/// What a transport is like, as data.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// The transport's name: `pshm`, `simnet`.
    pub name: &'static str,
    /// The largest messages.
    pub limits: Limits,
    /// How much may be under way to each of the peers that it reaches, and to all of them.
    pub flow: Flow,
    /// How many messages a poll takes at most: more wait for the next one.
    pub burst: u32,
    /// Whether it uses the first domain of a network interface that may have several ([`Domains`](crate::Domains)): threads of the others
    /// poll it now and then only.
    pub is_of_first_domain: bool,
}

impl Attributes {
    /// Those of a transport that uses no domain and leaves to `core` how many messages a poll takes.
    pub fn new(name: &'static str, limits: Limits, flow: Flow) -> Self {
        Self { name, limits, flow, burst: BURST, is_of_first_domain: false }
    }
}

/// Room for one message, to be filled and then committed or cancelled.
#[derive(Debug)]
#[must_use = "a reservation holds room until it is committed or cancelled"]
pub struct Reservation<'a> {
    /// To whom.
    pub to: Rank,
    /// What it is.
    pub class: Class,
    payload: VolatileSlice<'a>,
    /// The transport's own.
    pub ticket: [u64; 2],
}

impl<'a> Reservation<'a> {
    /// Room whose payload goes to these bytes, which nobody is given for longer than the reservation is there.
    pub fn new(to: Rank, class: Class, payload: VolatileSlice<'a>, ticket: [u64; 2]) -> Self {
        Self { to, class, payload, ticket }
    }

    /// Where the payload goes, as long as was asked for; nobody else touches it until the commit.
    #[inline]
    pub fn payload(&self) -> VolatileSlice<'_> {
        self.payload
    }

    /// Leaves out the end: at most so many bytes of payload are sent.
    pub fn shorten(&mut self, len: usize) {
        self.payload = self.payload.slice(0, len).unwrap_or(self.payload);
    }
}

/// A message that has arrived. It is gone when the sink returns.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// From whom, as far as the transport knows: over shared memory, by the sender's own word. It is a rank of the job.
    pub from: Rank,
    /// The head: a private copy.
    pub head: &'a [u8],
    /// The payload where it lies; its sender may still be writing it if it is hostile.
    pub payload: VolatileSlice<'a>,
}

/// Why a transport did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// No room now: poll, then try again.
    #[error("no room for a message to rank {to} now")]
    Busy {
        /// To whom.
        to: Rank,
    },
    /// A payload larger than the transport carries.
    #[error("a payload of {len} bytes: the {transport} transport carries at most {max}")]
    TooLarge {
        /// The transport.
        transport: &'static str,
        /// How large it was.
        len: usize,
        /// How large it may be.
        max: usize,
    },
    /// Shared structures hold something that no well-behaved peer writes.
    #[error("the {transport} queue of rank {at} is corrupt: {what}")]
    Corrupt {
        /// The transport.
        transport: &'static str,
        /// Whose queue.
        at: Rank,
        /// What was found.
        what: String,
    },
    /// The peer is gone.
    #[error("rank {rank} cannot be reached any more")]
    PeerGone {
        /// Which.
        rank: Rank,
    },
    /// What was sent did not arrive, and the network says why.
    #[error("rank {rank} cannot be reached any more: {why}")]
    Unreachable {
        /// Whom it was sent to.
        rank: Rank,
        /// In the network's words.
        why: &'static str,
    },
    /// The network has failed, and nobody knows with whom.
    #[error("the {transport} transport of rank {at} failed: {what}")]
    Failed {
        /// The transport.
        transport: &'static str,
        /// Whose.
        at: Rank,
        /// What did not come.
        what: String,
    },
    /// The network had no room for what cannot be put off, time and again.
    #[error("the {transport} transport had no room for a message to rank {to} in {times} tries")]
    Starved {
        /// The transport.
        transport: &'static str,
        /// To whom.
        to: Rank,
        /// How often it was tried.
        times: u32,
    },
}

/// A message from `from` in the queues of `at` names a block that does not exist.
#[cold]
pub fn no_such_block(transport: &'static str, at: Rank, from: Rank, class: Class, block: Block) -> WireError {
    let (name, Block { index, len }) = (if class == Class::Request { "request" } else { "reply" }, block);
    let what = format!(
        "a message from rank {from} names {name} block {index} with {len} bytes, which does not exist"
    );
    WireError::Corrupt { transport, at, what }
}

/// The head that is one word and its arguments, and its length. More arguments than any message has are cut off.
pub fn head_of(word: u64, args: &[u8]) -> ([u8; MAX_HEAD], usize) {
    let mut head = [0; MAX_HEAD];
    let len = 8 + args.len().min(MAX_HEAD - 8);
    head[..8].copy_from_slice(&word.to_le_bytes());
    head[8..len].copy_from_slice(&args[..len - 8]);
    (head, len)
}

/// Wakes the threads that sleep at a bell, if any do.
#[cold]
pub fn ring(bell: &Doorbell) {
    if bell.ring() {
        sleeper::ring(bell.word());
    }
}

/// Something that has a doorbell and keeps it where it is.
pub trait Bell: Send + Sync {
    /// The doorbell.
    fn bell(&self) -> &Doorbell;
}

impl Bell for Doorbell {
    fn bell(&self) -> &Doorbell {
        self
    }
}

/// What ends a sleep on a transport.
pub enum Wait<'a> {
    /// A doorbell, which whoever sends rings once the transport is [armed](Wire::arm).
    Bell(Arc<dyn Bell>),
    /// A descriptor, which is readable from when something has come after the transport was [armed](Wire::arm) until it is armed again.
    Descriptor(BorrowedFd<'a>),
    /// Nothing.
    Nothing,
}

/// A transport of active messages, for threads as `M` has them.
pub trait Wire<M: Mode> {
    /// What it admits and is like. `core` asks once, when a job is put together.
    fn attributes(&self) -> Attributes;
    /// Room for a message to `to` with `payload` bytes of payload.
    ///
    /// # Errors
    /// [`WireError::Busy`] (requests only), [`WireError::TooLarge`], [`WireError::PeerGone`].
    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError>;
    /// Sends a message whose payload has been filled in, of as many bytes as the [payload](Reservation::payload) has, which may have been
    /// [shortened](Reservation::shorten). `head` has at most [`MAX_HEAD`] bytes.
    ///
    /// # Errors
    /// [`WireError::Corrupt`], [`WireError::PeerGone`].
    fn commit(&self, reservation: Reservation<'_>, head: &[u8]) -> Result<(), WireError>;
    /// Sends a message in one go, where its head is one word, in little-endian, and its arguments: room, payload, head.
    /// What a transport can do faster than one step after the other.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve) and [`commit`](Self::commit).
    fn send(&self, to: Rank, class: Class, word: u64, args: &[u8], payload: &[u8]) -> Result<(), WireError> {
        let reservation = self.reserve(to, class, payload.len())?;
        reservation.payload().write(payload);
        let (head, len) = head_of(word, args);
        self.commit(reservation, &head[..len])
    }
    /// Has the message in this room wait at its receiver until the NIC there has been told the number that comes back: so it may leave before
    /// the payload of its Long has landed. `None`: that cannot be had, and the message has to wait here.
    fn beside(&self, reservation: &mut Reservation<'_>) -> Option<u32> {
        let _ = reservation;
        None
    }
    /// Gives room back unused.
    fn cancel(&self, reservation: Reservation<'_>);
    /// The queues themselves, where the peers that this transport reaches are mapped: short messages then go through them
    /// without another call, as puts go to a mapped segment. Transports without mapped queues return `None`.
    fn queues(&self) -> Option<&Queues<'_, M>> {
        None
    }
    /// The payload of a message in the [mapped queues](Self::queues), in the block that it names: a request's is one of its sender's, whose
    /// number is `from`, a reply's one of this rank's. `None` if there is no such block.
    fn lend(&self, from: u16, class: Class, block: Block) -> Option<Lent<'_>> {
        let _ = (from, class, block);
        None
    }
    /// Hands up to `burst` arrived messages to `sink`, one at a time; returns how many. The payload is freed when
    /// the sink returns.
    ///
    /// # Errors
    /// [`WireError::Corrupt`], [`WireError::PeerGone`].
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError>;
    /// What ends a sleep on it: the same kind each time.
    fn wait(&self) -> Wait<'_>;
    /// Asks that the next message end sleeps, and says how long a sleep may be: not at all where something has come already, or only
    /// polling moves it; not for long where what may come ends no sleep. Called when a thread has spun and yielded for nothing,
    /// before each sleep: the time to look whether what others may write to is sound.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    fn arm(&self) -> Result<Duration, WireError>;
    /// The network's reduction of words, if it has one.
    fn reduction(&self) -> Option<&dyn WordReduction> {
        None
    }
    /// Whether all that this rank has sent has arrived, as far as it is the transport's to see to that. Whoever moves messages
    /// without the sender's help keeps this.
    fn is_settled(&self) -> bool {
        true
    }
    /// No rank will send anything any more: they have met, and were settled before. What others may write to is given up when
    /// the transport is dropped after this, and stays where it is if it is dropped without.
    fn closed(&self) {}
}

/// An operation by which a network reduces words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOp {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The sum modulo 2^64.
    Add,
}

/// A network's reduction of words: engines of its NICs combine a word of every rank, or of the first rank of every neighbourhood. It does one reduction at a time, to which
/// the ranks contribute in the same order. The next poll reports that a reduction failed.
pub trait WordReduction {
    /// The number of ranks that contribute: all, or the first one of each neighbourhood.
    fn participants(&self) -> u32;
    /// Contributes this rank's word to the next reduction. Reductions in which ranks pass different numbers fail.
    fn contribute(&self, number: u64, op: WordOp, word: u64);
    /// The result of the reduction that this rank has contributed to last, once it is there.
    fn result(&self) -> Option<u64>;
}

/// A barrier of all ranks that the transport has: in shared memory where all share it, or by a network's own means. One thread of a
/// rank arrives at a time; any asks.
pub trait SharedBarrier {
    /// By which words of `GASNET_BARRIER` it is asked for.
    fn words(&self) -> &'static [&'static str] {
        &["PSHM", "RDMADISSEM"]
    }
    /// Announces this rank's arrival in the current phase, by this name.
    fn arrive(&self, name: Name);
    /// Once everybody has arrived in the phase of the last [`arrive`](Self::arrive), the name that all agree on.
    fn done(&self) -> Option<Name>;
}

/// How many teams at most of one rank have a barrier of [`TeamBarriers`] at a time: what a mask of slots has room for.
pub const TEAM_SLOTS: u32 = 24;

/// What the members of a team have in shared memory: their barrier, and a board for short collectives, if they have one, on all members alike.
pub trait SharedTeam: SharedBarrier + Send + Sync {
    /// The board.
    fn board(&self) -> Option<&Board<'_>> {
        None
    }
    /// Rings for all members: somebody may be asleep that waits for what this one has done on the board.
    fn ring(&self) {}
}

/// Shared memory for teams whose members share it. Each rank has numbered slots, and a team takes the slot of one
/// number at all its members, who agree on a number that is free at each.
pub trait TeamBarriers {
    /// A bit for each of this rank's slots, at most [`TEAM_SLOTS`], in which there is no team, nor one which another member has not left.
    fn free_slots(&self) -> u32;
    /// This rank's side of what these members have in their slots of this number, which must have been free at all of them. It is left
    /// when it is dropped. `None` if a member is not reached through shared memory, on all members alike.
    fn open(&self, slot: u32, members: &Members) -> Option<Arc<dyn SharedTeam>>;
    /// The same for all ranks of the job, who have a slot of their own for that.
    fn everyone(&self, members: &Members) -> Option<Arc<dyn SharedTeam>> {
        let _ = members;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Encoded, Head, Returned};
    use gasworks_sync::Seq;

    /// A transport that keeps all that a transport may leave out.
    struct Plain;

    impl<M: Mode> Wire<M> for Plain {
        fn attributes(&self) -> Attributes {
            Attributes::new("plain", Limits { max_medium: 0, max_long: 0, packed_long: 0 }, Flow::SEED)
        }
        fn reserve(&self, to: Rank, class: Class, _: usize) -> Result<Reservation<'_>, WireError> {
            Ok(Reservation::new(to, class, VolatileSlice::EMPTY, [0; 2]))
        }
        fn commit(&self, _: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
            Err(WireError::TooLarge { transport: "plain", len: head.len(), max: 0 })
        }
        fn cancel(&self, _: Reservation<'_>) {}
        fn poll(&self, _: usize, _: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
            Ok(0)
        }
        fn wait(&self) -> Wait<'_> {
            Wait::Nothing
        }
        fn arm(&self) -> Result<Duration, WireError> {
            Ok(Duration::ZERO)
        }
    }

    struct Never;

    impl SharedBarrier for Never {
        fn arrive(&self, _: Name) {}
        fn done(&self) -> Option<Name> {
            None
        }
    }

    #[test]
    fn what_a_transport_leaves_out_is_what_is_usual() {
        let wire: &dyn Wire<Seq> = &Plain;
        let mut room = wire.reserve(0, Class::Request, 0).expect("room");
        assert_eq!((wire.beside(&mut room), wire.queues().is_none()), (None, true));
        assert!(wire.lend(0, Class::Request, Block { index: 0, len: 0 }).is_none());
        let Attributes { burst, is_of_first_domain, .. } = wire.attributes();
        assert_eq!((is_of_first_domain, wire.is_settled(), burst), (false, true, BURST));
        let sent = wire.send(0, Class::Request, 0, &[0; 8], &[]);
        assert_eq!(sent, Err(WireError::TooLarge { transport: "plain", len: 16, max: 0 }), "in two steps");
        assert_eq!(Never.words(), ["PSHM", "RDMADISSEM"]);
    }

    #[test]
    fn a_head_of_a_word_has_the_word_and_its_arguments() {
        let args: Vec<u8> = (1..=100).collect();
        for (given, kept) in [(0, 0), (4, 4), (80, 80), (84, 80), (100, 80)] {
            let (head, len) = head_of(0x0807_0605_0403_0201, &args[..given]);
            assert_eq!((len, &head[..8]), (8 + kept, &[1, 2, 3, 4, 5, 6, 7, 8][..]));
            assert_eq!((&head[8..len], &head[len..]), (&args[..kept], &[0; MAX_HEAD][len..]));
        }
        for count in [0, 1, 7, 255] {
            let head = Encoded::new(Head::Credits, Returned { count, bytes: 9 }, &[]);
            assert_eq!((ended(head.as_bytes()), ended(&head.as_bytes()[..7])), (usize::from(count), 0));
        }
        let queues = [Class::Request, Class::Reply, Class::Credit].map(Class::queue);
        assert_eq!(queues, [Queue::Requests, Queue::Replies, Queue::Replies]);
    }

    // Not under Miri: it has no such call to the system.
    #[cfg(not(miri))]
    #[test]
    fn a_bell_rings_for_whoever_may_sleep() {
        let bell = Doorbell::new();
        let word = || bell.word().load(gasworks_sync::atomic::Ordering::Relaxed);
        ring(&bell);
        assert_eq!(word(), 0, "nobody sleeps");
        let ticket = bell.ticket();
        ring(&bell);
        assert_ne!(word(), ticket);
    }
}
