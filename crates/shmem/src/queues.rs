//! The queues of the ranks that share memory, as one of them sees them.
//!
//! Every rank has two: requests wait in one until it handles them, replies and credits in the other. A sender needs
//! room for a request, and claims it; a reply has room by the request that it answers (inbox.5 of [`inbox`](crate::inbox)).
//! Whoever sends is told when the receiver may be asleep, and then rings its bell.
//!
//! # Invariants
//! - queues.1: each mark is that of the cursor by which its queue is read, of which there is one.

use crate::doorbell::Doorbell;
use crate::inbox::{Block, Claims, Cursor, Damage, Full, Inbox, Line, Message, Payload};
use crate::ranks::Ranks;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Latch, Mode};
use thiserror::Error;

/// Which of a rank's two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Where requests wait.
    Requests,
    /// Where replies and returned credits wait.
    Replies,
}

/// The next message does not lie in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the next message does not lie in one line")]
pub struct NoLine;

/// What there is of one rank.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Requests to it.
    pub requests: Inbox<'a>,
    /// Replies and credits to it.
    pub replies: Inbox<'a>,
    /// What wakes its threads.
    pub bell: &'a Doorbell,
}

impl<'a> Seat<'a> {
    #[inline]
    fn queue(&self, queue: Queue) -> Inbox<'a> {
        match queue {
            Queue::Requests => self.requests,
            Queue::Replies => self.replies,
        }
    }
}

#[derive(Debug, Default)]
struct Receiver {
    requests: Cursor,
    replies: Cursor,
}

/// As many ranks as a message can name.
const MOST: usize = 1 + u16::MAX as usize;

/// The queues of all ranks that share memory. Any number of threads send and take in `Par`; in `Seq` one does.
pub struct Queues<'a, M: Mode> {
    /// This rank's number among them.
    me: u16,
    ranks: Ranks,
    /// Each rank's, and the room in its queue of requests that is claimed here and not used.
    seats: Box<[(Seat<'a>, Claims<M>)]>,
    receiver: M::Latch<Receiver>,
    /// Where the next request and the next reply will be ([`Cursor::mark`]), for a look at the queues without the receiver.
    marks: [AtomicU64; 2],
    mine: Seat<'a>,
}

impl<'a, M: Mode> Queues<'a, M> {
    /// The queues of these ranks in their order, as rank `me` sees them, which claims places `batch` at a time; `None` if it
    /// is not among them, or they are more than a message can name.
    pub fn new(me: u32, ranks: Ranks, seats: impl IntoIterator<Item = Seat<'a>>, batch: u32) -> Option<Self> {
        let seats: Box<[_]> = seats.into_iter().map(|seat| (seat, Claims::new(batch))).collect();
        let me = u16::try_from(ranks.number(me)).ok()?;
        let fits = usize::from(me) < seats.len() && seats.len() == ranks.count() && seats.len() <= MOST;
        fits.then(|| Self {
            me,
            ranks,
            mine: seats[usize::from(me)].0,
            seats,
            receiver: M::Latch::new(Receiver::default()),
            marks: std::array::from_fn(|_| AtomicU64::new(Cursor::default().mark())),
        })
    }

    /// What there is of a rank.
    #[inline(always)]
    fn seat(&self, rank: u32) -> &(Seat<'a>, Claims<M>) {
        &self.seats[self.ranks.number(rank)]
    }

    /// The rank that a message names as its sender.
    #[inline(always)]
    pub fn rank(&self, from: u16) -> u32 {
        self.ranks.rank(from)
    }

    /// What wakes the threads of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn bell(&self, rank: u32) -> &Doorbell {
        self.seat(rank).0.bell
    }

    /// Claims room for a request, to be [sent](Self::send) or [cancelled](Self::cancel).
    ///
    /// # Errors
    /// There is none now.
    ///
    /// # Panics
    /// If there is no such rank.
    #[inline]
    pub fn claim(&self, to: u32) -> Result<(), Full> {
        let (seat, claims) = self.seat(to);
        claims.take(seat.requests)
    }

    /// Gives the room for a request back unused.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn cancel(&self, to: u32) {
        self.seat(to).0.requests.cancel(1);
    }

    /// Sends a message for which there is room. Whether the receiver may be asleep: then its [bell](Self::bell) must ring.
    ///
    /// # Panics
    /// If there is no such rank, or the head or the payload is longer than a slot admits.
    #[inline]
    #[must_use = "the receiver may be asleep"]
    pub fn send(&self, to: u32, queue: Queue, head: &[u8], payload: Payload<'_>) -> bool {
        self.seat(to).0.queue(queue).send(self.me, head, payload)
    }

    /// As [`send`](Self::send), with a head of some words and some bytes.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    #[inline]
    #[must_use = "the receiver may be asleep"]
    pub fn send_words<const N: usize>(
        &self,
        to: u32,
        queue: Queue,
        words: [u64; N],
        rest: &[u8],
        payload: Payload<'_>,
    ) -> bool {
        self.seat(to).0.queue(queue).send_words(self.me, words, rest, payload)
    }

    /// Sends a message whose payload travels in the slot, with a claim for it where it is a request.
    ///
    /// # Errors
    /// There is no room for a request now.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    #[inline(always)]
    pub fn post(&self, to: u32, queue: Queue, word: u64, rest: &[u8], payload: &[u8]) -> Result<bool, Full> {
        // One look at the rank for both.
        let (seat, claims) = self.seat(to);
        if queue == Queue::Requests {
            claims.take(seat.requests)?;
        }
        Ok(seat.queue(queue).send_words(self.me, [word], rest, Payload::Bytes(payload)))
    }

    /// Sends a message whose payload travels in the block that `fill` gives, with a claim for it where it is a request.
    ///
    /// # Errors
    /// That of `full` where there is no room for a request now, and that of `fill`.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    #[inline]
    pub fn post_block<E>(
        &self,
        to: u32,
        queue: Queue,
        word: u64,
        rest: &[u8],
        full: impl FnOnce(Full) -> E,
        fill: impl FnOnce() -> Result<Block, E>,
    ) -> Result<bool, E> {
        let (seat, claims) = self.seat(to);
        if queue == Queue::Requests {
            claims.take(seat.requests).map_err(full)?;
        }
        let block = fill().inspect_err(|_| {
            if queue == Queue::Requests {
                seat.requests.cancel(1);
            }
        })?;
        Ok(seat.queue(queue).send_words(self.me, [word], rest, Payload::Block(block)))
    }

    /// Whether nothing has come for this rank, by a look at two words.
    #[inline]
    pub fn is_idle(&self) -> bool {
        // Marks that another thread has just moved on only make it say that there is something.
        let [requests, replies] = &self.marks;
        // SAFETY: queues.1: the second mark is of the cursor of replies.
        let no_reply = unsafe { self.mine.replies.is_empty(replies.load(Relaxed)) };
        // SAFETY: queues.1: the first mark is of the cursor of requests.
        no_reply && unsafe { self.mine.requests.is_empty(requests.load(Relaxed)) }
    }

    /// Takes from the next message's queue, replies first: they free what requests wait for. The receiver is held while a
    /// message is copied out, not while it is handled: a handler replies through these very queues, and another thread may
    /// take the next message meanwhile. A thread that finds another one taking a message gets nothing.
    #[inline(always)]
    fn take_by<R>(&self, take: impl FnOnce(Queue, Inbox<'a>, &mut Cursor) -> Option<R>) -> Option<R> {
        let (mine, [requests, replies]) = (&self.mine, &self.marks);
        // No closure, which would be a call where this is used twice, and would copy the message once more.
        let mut entered = self.receiver.try_enter()?;
        let receiver = &mut *entered;
        // Most looks find a queue empty: that is a compare here, and no more.
        if mine.replies.waits(&receiver.replies) {
            let taken = take(Queue::Replies, mine.replies, &mut receiver.replies);
            replies.store(receiver.replies.mark(), Relaxed);
            taken
        } else if mine.requests.waits(&receiver.requests) {
            let taken = take(Queue::Requests, mine.requests, &mut receiver.requests);
            requests.store(receiver.requests.mark(), Relaxed);
            taken
        } else {
            None
        }
    }

    /// Takes the next message if its sender is one of the ranks and all of it lies in one line, or all but a payload in a block; `None` if
    /// there is none, or another thread is taking one.
    ///
    /// # Errors
    /// The next message is another one, or a slot is damaged: that is [`take`](Self::take)'s.
    #[inline(always)]
    pub fn take_line(&self) -> Result<Option<Line>, NoLine> {
        let ranks = self.seats.len();
        self.take_by(|_, inbox, cursor| Some(inbox.take_line(cursor, ranks).ok_or(NoLine))).transpose()
    }

    /// Takes the next message, and says from which queue it is; `None` if there is none, or another thread is taking one.
    /// The sender's number is its own account.
    ///
    /// # Errors
    /// The slot is damaged. It is passed over.
    #[inline(always)]
    pub fn take(&self, message: &mut Message) -> Result<Option<Queue>, (Queue, Damage)> {
        let taken = self.take_by(|queue, inbox, cursor| match inbox.take(cursor, message) {
            Ok(taken) => taken.then_some(Ok(queue)),
            Err(damage) => Some(Err((queue, damage))),
        });
        taken.transpose()
    }

    /// Whether what is counted beside the slots of this rank's queues can be; they can if another thread is taking a message.
    ///
    /// # Errors
    /// It cannot, in the first of them that is damaged.
    pub fn check(&self) -> Result<(), (Queue, Damage)> {
        let mine = &self.mine;
        let check = |r: &mut Receiver| {
            mine.requests.check(&r.requests, true).map_err(|damage| (Queue::Requests, damage))?;
            mine.replies.check(&r.replies, false).map_err(|damage| (Queue::Replies, damage))
        };
        self.receiver.try_with(check).unwrap_or(Ok(()))
    }

    /// Asks to be woken by the next message; whether none is here or on its way, and nobody is taking one.
    pub fn arm(&self) -> bool {
        let mine = &self.mine;
        // Both, whatever the first says.
        let arm = |r: &mut Receiver| mine.requests.arm(&r.requests) & mine.replies.arm(&r.replies);
        self.receiver.try_with(arm).unwrap_or(false)
    }
}
