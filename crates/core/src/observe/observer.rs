//! What is recorded of messages: which they are, and their numbers in the whole job.

use super::layout::{Collective, Op, Tally, What};
use super::recorder::{About, Open, Recorder};
use crate::message::{Head, decode};
use crate::wire::head_of;
use crate::{Arrived, Category, Rank, WireError};
use gasworks_os::clock;
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A message of a rank to itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// Its category.
    pub category: Category,
    /// Whether it is a reply.
    pub reply: bool,
    /// The index of its handler.
    pub handler: u8,
    /// The bytes of its payload.
    pub bytes: usize,
}

/// What a head says of its message.
struct Told {
    sent: Op,
    handled: Op,
    about: About,
    /// Whether it belongs to the requests or to the replies; `None` for credits.
    numbered: Option<usize>,
}

/// Reads a head; `None` if it is none, which the engine is about to find out as well.
fn read(head: &[u8], packet: usize, peer: Rank) -> Option<Told> {
    let (category, reply, handler, landing) = match decode(head).ok()?.head {
        Head::Message { category, reply, handler, landing } => (category, reply, handler, landing),
        Head::Credits => {
            let about = About { peer, ..About::plain(What::HandleCredits) };
            return Some(Told { sent: Op::CreditsSent, handled: Op::CreditsReceived, about, numbered: None });
        }
    };
    let bytes = landing.map_or(packet as u64, |landing| landing.len);
    Some(Told::of(category, reply, handler, bytes, peer))
}

impl Told {
    fn of(category: Category, reply: bool, handler: u8, bytes: u64, peer: Rank) -> Self {
        let (sent, handled) = match (category, reply) {
            (Category::Short, false) => (Op::RequestShort, Op::HandledRequestShort),
            (Category::Medium, false) => (Op::RequestMedium, Op::HandledRequestMedium),
            (Category::Long, false) => (Op::RequestLong, Op::HandledRequestLong),
            (Category::Short, true) => (Op::ReplyShort, Op::HandledReplyShort),
            (Category::Medium, true) => (Op::ReplyMedium, Op::HandledReplyMedium),
            (Category::Long, true) => (Op::ReplyLong, Op::HandledReplyLong),
        };
        let what = if reply { What::HandleReply } else { What::HandleRequest };
        let about = About { what, category: category as u8, handler, peer, bytes, flow: 0 };
        Told { sent, handled, about, numbered: Some(usize::from(reply)) }
    }
}

/// The number of a message in the whole job, from its number between two ranks; 0 where it does not fit.
fn flow(kind: usize, from: Rank, to: Rank, number: u64) -> u64 {
    if (from | to) >> 15 != 0 {
        return 0;
    }
    1 << 63 | (kind as u64) << 62 | u64::from(from) << 47 | u64::from(to) << 32 | number & 0xFFFF_FFFF
}

/// What an observed rank says of its messages, whatever carries them.
pub struct Observer {
    recorder: Arc<Recorder>,
    rank: Rank,
    /// Requests and replies to each rank, and from each: both ends of a message give it the same number, since a
    /// transport keeps the messages of one thread to one rank in order.
    sent: [Box<[AtomicU64]>; 2],
    arrived: [Box<[AtomicU64]>; 2],
}

impl Observer {
    /// Of `rank` in a job of `ranks`.
    pub fn new(recorder: Arc<Recorder>, rank: Rank, ranks: u32) -> Self {
        let first = recorder.first_number();
        let counters = || (0..ranks).map(|_| AtomicU64::new(first)).collect();
        let two = || [counters(), counters()];
        Self { recorder, rank, sent: two(), arrived: two() }
    }

    /// A message of this rank to itself, which no transport carries, is handled by `handle`.
    pub(crate) fn own(&self, own: Own, handle: impl FnOnce()) {
        let told = || Told::of(own.category, own.reply, own.handler, own.bytes as u64, self.rank);
        self.sent(Some(told()), self.recorder.time());
        // To its own reply a rank is within the handler of its request.
        self.handled(told(), own.reply, handle);
    }

    /// A message with this head, and so many bytes in its packet, is sent by `send`.
    pub(crate) fn sends(
        &self,
        to: Rank,
        head: &[u8],
        packet: usize,
        send: impl FnOnce() -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let (told, start) = (read(head, packet, to), self.recorder.time());
        let sent = send();
        match &sent {
            Ok(()) => self.sent(told, start),
            Err(error) => self.refused(error),
        }
        sent
    }

    /// As [`sends`](Self::sends), of a message whose head is given by its first word and its arguments.
    #[cold]
    pub(crate) fn sends_word(
        &self,
        to: Rank,
        (word, args): (u64, &[u8]),
        packet: usize,
        send: impl FnOnce() -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let (head, len) = head_of(word, args);
        self.sends(to, &head[..len], packet, send)
    }

    /// A transport has refused a message.
    pub(crate) fn refused(&self, error: &WireError) {
        if matches!(error, WireError::Busy { .. }) {
            self.recorder.tally(Tally::Busy, 1);
        }
    }

    /// Room for a message is given back.
    pub(crate) fn cancelled(&self) {
        self.recorder.tally(Tally::Cancelled, 1);
    }

    /// A transport hands over a message, which `sink` handles.
    pub(crate) fn arrives(&self, arrived: Arrived<'_>, sink: &mut dyn FnMut(Arrived<'_>)) {
        match read(arrived.head, arrived.payload.len(), arrived.from) {
            Some(told) => self.handled(told, false, || sink(arrived)),
            None => sink(arrived),
        }
    }

    /// A look at a transport has found so many messages.
    pub(crate) fn polled(&self, taken: usize) {
        self.recorder.tally(Tally::Polls, 1);
        if taken == 0 {
            self.recorder.tally(Tally::EmptyPolls, 1);
            self.recorder.polled_in_vain();
        }
    }

    /// The rank sleeps as long as `sleep` takes, unless that says that it has not.
    pub(crate) fn sleeps<E>(&self, sleep: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
        // Whoever sleeps has time to read the clock.
        let (start, about) = (clock::monotonic(), About::plain(What::Sleep));
        self.recorder.open(Open::Sleep, about, start);
        let slept = sleep();
        let end = clock::monotonic();
        if matches!(slept, Ok(true)) {
            self.recorder.close(Open::Sleep, about, start, end);
            self.recorder.tally(Tally::Sleeps, 1);
            self.recorder.tally(Tally::SleepTime, end - start);
        } else {
            self.recorder.take_open(Open::Sleep);
        }
        self.recorder.still_idle(end);
        slept
    }

    /// The rank is about to begin a barrier.
    pub fn barrier_begins(&self) {
        self.recorder.worked();
        self.recorder.tally(Tally::Barriers, 1);
        self.recorder.open(Open::Barrier, About::plain(What::Barrier), clock::monotonic());
    }

    /// The barrier was found to be over. Of several threads that find it the first is heard.
    pub fn barrier_ends(&self) {
        let Some(start) = self.recorder.take_open(Open::Barrier) else { return };
        self.recorder.worked();
        let end = clock::monotonic();
        self.recorder.tally(Tally::BarrierTime, end - start);
        self.recorder.event(About::plain(What::Barrier), start, end);
    }

    /// This rank's part in a collective begins, in which it has so many bytes: when, which is for [`collective_ends`](Self::collective_ends).
    pub fn collective_begins(&self, kind: Collective, bytes: u64) -> u64 {
        self.recorder.worked();
        self.recorder.count(Op::Collective, bytes);
        let start = clock::monotonic();
        self.recorder.open(Open::Collective, Self::in_collective(kind, bytes), start);
        start
    }

    /// This rank's part in it is over. Several may be under way.
    pub fn collective_ends(&self, kind: Collective, bytes: u64, start: u64) {
        self.recorder.worked();
        let end = clock::monotonic();
        self.recorder.tally(Tally::CollectiveTime, end - start);
        self.recorder.close(Open::Collective, Self::in_collective(kind, bytes), start, end);
    }

    fn in_collective(kind: Collective, bytes: u64) -> About {
        About { handler: kind as u8, bytes, ..About::plain(What::Collective) }
    }

    fn number(counters: &[Box<[AtomicU64]>; 2], kind: usize, peer: Rank) -> u64 {
        counters[kind].get(peer as usize).map_or(0, |counter| counter.fetch_add(1, Ordering::Relaxed))
    }

    /// A message has left, which the transport began to send at `start`.
    fn sent(&self, told: Option<Told>, start: u64) {
        let Some(Told { sent, mut about, numbered, .. }) = told else { return };
        let recorder = &*self.recorder;
        recorder.worked();
        about.what = match about.what {
            What::HandleRequest => What::SendRequest,
            What::HandleReply => What::SendReply,
            _ => What::SendCredits,
        };
        if let Some(kind) = numbered {
            let number = Self::number(&self.sent, kind, about.peer);
            about.flow = flow(kind, self.rank, about.peer, number);
        }
        recorder.count(sent, about.bytes);
        recorder.event(about, start, recorder.time());
    }

    /// A message is handled by `handle`, perhaps while another one is.
    fn handled(&self, told: Told, is_within: bool, handle: impl FnOnce()) {
        let recorder = &*self.recorder;
        let Told { handled, mut about, numbered, .. } = told;
        recorder.worked();
        recorder.count(handled, about.bytes);
        if let Some(kind) = numbered {
            let number = Self::number(&self.arrived, kind, about.peer);
            about.flow = flow(kind, about.peer, self.rank, number);
        }
        let start = recorder.time();
        if is_within {
            handle();
            return recorder.event(about, start, recorder.time());
        }
        recorder.open(Open::Handler, about, start);
        handle();
        recorder.close(Open::Handler, about, start, recorder.time());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_own_number_in_the_whole_job() {
        let rows = [
            ((0, 0, 0, 0), 1 << 63),
            ((1, 2, 3, 4), (1 << 63) | (1 << 62) | (2 << 47) | (3 << 32) | 4),
            ((0, 32767, 32767, 1 << 32), (1 << 63) | (32767 << 47) | (32767 << 32)),
            ((0, 32768, 0, 1), 0),
            ((0, 0, 32768, 1), 0),
            ((0, 32768, 32768, 1), 0),
        ];
        for ((kind, from, to, number), wanted) in rows {
            assert_eq!(flow(kind, from, to, number), wanted, "{from} to {to}");
        }
    }

    #[test]
    fn a_head_says_which_message_it_is() {
        let told = |category, reply| {
            let Told { sent, handled, about, numbered } = Told::of(category, reply, 7, 9, 5);
            assert_eq!((about.category, about.handler, about.peer, about.bytes), (category as u8, 7, 5, 9));
            assert_eq!(numbered, Some(usize::from(reply)));
            assert_eq!(about.what, if reply { What::HandleReply } else { What::HandleRequest });
            (sent, handled)
        };
        for (at, category) in [Category::Short, Category::Medium, Category::Long].into_iter().enumerate() {
            for (reply, at) in [(false, at), (true, at + 3)] {
                assert_eq!(told(category, reply), (Op::ALL[at], Op::ALL[at + 6]));
            }
        }
        let credits = crate::message::Encoded::new(Head::Credits, Default::default(), &[]);
        let told = read(credits.as_bytes(), 0, 5).expect("a head");
        assert_eq!((told.sent, told.handled, told.numbered), (Op::CreditsSent, Op::CreditsReceived, None));
        assert!(
            (told.about.peer, told.about.what) == (5, What::HandleCredits) && read(&[1, 2], 0, 5).is_none()
        );
    }
}
