//! Where everything lies in the file in which a rank records: words of 8 bytes.
//!
//! | words | what |
//! |---|---|
//! | 0..64 | the head: see [`head`] |
//! | then | [`COUNTERS`] pairs of count and bytes, for each [`Op`] and size class |
//! | then | 256 names of handlers, [`NAME_WORDS`] words each, ended by a zero byte |
//! | then | the ring of events, [`EVENT_WORDS`] words each |

/// The first word of the file; its last digit is the version of the layout.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"gwobsrv3");

/// Words of the head.
pub(super) mod head {
    pub const MAGIC: usize = 0;
    /// How many events the ring holds; 0: none are recorded. Written by whoever made the file.
    pub const CAPACITY: usize = 1;
    /// The process, once it has joined.
    pub const PID: usize = 2;
    pub const RANK: usize = 3;
    /// Both clocks when the rank joined, so that traces of several hosts can be aligned.
    pub const MONOTONIC: usize = 4;
    pub const REALTIME: usize = 5;
    /// How many events were recorded, those overwritten since included.
    pub const EVENTS: usize = 6;
    /// How many jobs of this process have begun to record here, one after the other.
    pub const JOBS: usize = 7;
    /// The first of the [`Tally`](super::Tally) words.
    pub const TALLIES: usize = 8;
    /// When what is still going on began, or 0: a barrier, a handler, a sleep, a collective.
    pub const OPEN: usize = 32;
    /// What is still going on, as in an event, behind each of those.
    pub const OPEN_WHAT: usize = 36;
    pub const LEN: usize = 64;
}

/// What is counted by number and bytes, for each size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Requests sent, by category: this and the next two.
    RequestShort,
    /// A Medium request sent.
    RequestMedium,
    /// A Long request sent.
    RequestLong,
    /// A Short reply sent.
    ReplyShort,
    /// A Medium reply sent.
    ReplyMedium,
    /// A Long reply sent.
    ReplyLong,
    /// A Short request handled.
    HandledRequestShort,
    /// A Medium request handled.
    HandledRequestMedium,
    /// A Long request handled.
    HandledRequestLong,
    /// A Short reply handled.
    HandledReplyShort,
    /// A Medium reply handled.
    HandledReplyMedium,
    /// A Long reply handled.
    HandledReplyLong,
    /// A message that only returned credits, sent.
    CreditsSent,
    /// A message that only returned credits, received.
    CreditsReceived,
    /// A put.
    Put,
    /// A get.
    Get,
    /// An atomic operation.
    Atomic,
    /// A collective, by the bytes that this rank had in it.
    Collective,
}

impl Op {
    /// All of them, in the order of their numbers.
    pub const ALL: [Op; 18] = [
        Op::RequestShort,
        Op::RequestMedium,
        Op::RequestLong,
        Op::ReplyShort,
        Op::ReplyMedium,
        Op::ReplyLong,
        Op::HandledRequestShort,
        Op::HandledRequestMedium,
        Op::HandledRequestLong,
        Op::HandledReplyShort,
        Op::HandledReplyMedium,
        Op::HandledReplyLong,
        Op::CreditsSent,
        Op::CreditsReceived,
        Op::Put,
        Op::Get,
        Op::Atomic,
        Op::Collective,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Op::RequestShort => "short request",
            Op::RequestMedium => "medium request",
            Op::RequestLong => "long request",
            Op::ReplyShort => "short reply",
            Op::ReplyMedium => "medium reply",
            Op::ReplyLong => "long reply",
            Op::HandledRequestShort => "short request handled",
            Op::HandledRequestMedium => "medium request handled",
            Op::HandledRequestLong => "long request handled",
            Op::HandledReplyShort => "short reply handled",
            Op::HandledReplyMedium => "medium reply handled",
            Op::HandledReplyLong => "long reply handled",
            Op::CreditsSent => "credits sent",
            Op::CreditsReceived => "credits received",
            Op::Put => "put",
            Op::Get => "get",
            Op::Atomic => "atomic operation",
            Op::Collective => "collective",
        }
    }
}

/// What is counted without a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tally {
    /// Looks at a transport for arrived messages.
    Polls,
    /// Those that found none.
    EmptyPolls,
    /// Messages that found no room in a transport, and were tried again.
    Busy,
    /// Reservations that were given back unused.
    Cancelled,
    /// Sleeps.
    Sleeps,
    /// Nanoseconds asleep.
    SleepTime,
    /// Barriers begun.
    Barriers,
    /// Nanoseconds from the begin of barriers to their ends.
    BarrierTime,
    /// Nanoseconds from the begin of collectives to their ends.
    CollectiveTime,
}

impl Tally {
    /// All of them, in the order of their numbers.
    pub const ALL: [Tally; 9] = [
        Tally::Polls,
        Tally::EmptyPolls,
        Tally::Busy,
        Tally::Cancelled,
        Tally::Sleeps,
        Tally::SleepTime,
        Tally::Barriers,
        Tally::BarrierTime,
        Tally::CollectiveTime,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Tally::Polls => "polls",
            Tally::EmptyPolls => "empty polls",
            Tally::Busy => "busy answers",
            Tally::Cancelled => "cancelled messages",
            Tally::Sleeps => "sleeps",
            Tally::SleepTime => "ns asleep",
            Tally::Barriers => "barriers",
            Tally::BarrierTime => "ns in barriers",
            Tally::CollectiveTime => "ns in collectives",
        }
    }
}

/// The largest payload of each size class, in bytes; the last class has what is larger.
pub const CLASSES: [u64; 8] = [0, 8, 64, 512, 4 << 10, 64 << 10, 1 << 20, u64::MAX];

/// The name of a size class.
pub fn class_name(class: usize) -> &'static str {
    ["0 B", "1-8 B", "9-64 B", "65-512 B", "513 B-4 KiB", "4-64 KiB", "64 KiB-1 MiB", "over 1 MiB"][class]
}

/// The size class of so many bytes.
#[inline]
pub fn class_of(bytes: u64) -> usize {
    CLASSES.iter().position(|&largest| bytes <= largest).unwrap_or(CLASSES.len() - 1)
}

/// Pairs of count and bytes.
pub(super) const COUNTERS: usize = Op::ALL.len() * CLASSES.len();
/// Words of a handler's name.
pub(super) const NAME_WORDS: usize = 4;
/// Words of an event: its number from 1, when it began, when it ended, what it was, its bytes and thread, its flow.
pub(super) const EVENT_WORDS: usize = 6;

pub(super) const COUNTERS_AT: usize = head::LEN;
pub(super) const NAMES_AT: usize = COUNTERS_AT + 2 * COUNTERS;
pub(super) const EVENTS_AT: usize = NAMES_AT + 256 * NAME_WORDS;

/// The word of the counters of `op` in a size class: its count; its bytes are in the next.
#[inline]
pub(super) fn counter_at(op: Op, class: usize) -> usize {
    COUNTERS_AT + 2 * (op as usize * CLASSES.len() + class)
}

/// The length in bytes of a file whose ring holds `events` events.
pub fn file_len(events: u32) -> usize {
    8 * (EVENTS_AT + EVENT_WORDS * events as usize)
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// A handler of a request ran.
    HandleRequest = 1,
    /// A handler of a reply ran.
    HandleReply,
    /// Credits were received alone.
    HandleCredits,
    /// A request was sent.
    SendRequest,
    /// A reply was sent.
    SendReply,
    /// Credits were sent alone.
    SendCredits,
    /// Polls one after the other found nothing.
    Idle,
    /// The rank slept.
    Sleep,
    /// A barrier, from its begin until it was found to be over.
    Barrier,
    /// A put.
    Put,
    /// A get.
    Get,
    /// An atomic operation.
    Atomic,
    /// A collective, from its begin until this rank's part was over.
    Collective,
}

impl What {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        use What::*;
        let all = [
            HandleRequest,
            HandleReply,
            HandleCredits,
            SendRequest,
            SendReply,
            SendCredits,
            Idle,
            Sleep,
            Barrier,
            Put,
            Get,
            Atomic,
            Collective,
        ];
        all.into_iter().find(|&what| what as u8 == number)
    }
}

/// Which collective it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Collective {
    /// From one to all.
    Broadcast = 1,
    /// From all, combined, to one.
    Reduce,
    /// From all, combined, to all.
    ReduceAll,
    /// From those up to each, combined, to that.
    Scan,
    /// From those before each, combined, to that.
    ScanBefore,
    /// From all to one.
    Gather,
    /// From one to each its own.
    Scatter,
    /// From all to all.
    AllGather,
    /// From each to each its own.
    AllToAll,
    /// From all to one, of each as much as it has.
    GatherEach,
    /// From one to each its own, as much as it gets.
    ScatterEach,
    /// From each to each its own, as much as it is.
    AllToAllEach,
    /// New teams.
    Teams,
    /// A barrier by messages.
    Barrier,
}

impl Collective {
    /// All of them, in the order of their numbers.
    pub const ALL: [Collective; 14] = [
        Self::Broadcast,
        Self::Reduce,
        Self::ReduceAll,
        Self::Scan,
        Self::ScanBefore,
        Self::Gather,
        Self::Scatter,
        Self::AllGather,
        Self::AllToAll,
        Self::GatherEach,
        Self::ScatterEach,
        Self::AllToAllEach,
        Self::Teams,
        Self::Barrier,
    ];

    /// That of a number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::ReduceAll => "reduce_all",
            Self::Scan => "scan",
            Self::ScanBefore => "scan_before",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllGather => "all_gather",
            Self::AllToAll => "all_to_all",
            Self::GatherEach => "gather_each",
            Self::ScatterEach => "scatter_each",
            Self::AllToAllEach => "all_to_all_each",
            Self::Teams => "split or create",
            Self::Barrier => "barrier",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_one_class() {
        for (class, &largest) in CLASSES.iter().enumerate() {
            assert_eq!(class_of(largest), class);
            assert_eq!(class_of(largest.saturating_add(1)), (class + 1).min(CLASSES.len() - 1));
        }
    }

    #[test]
    fn numbers_and_places_agree() {
        for (number, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, number);
        }
        for (number, tally) in Tally::ALL.into_iter().enumerate() {
            assert_eq!(tally as usize, number);
        }
        assert!(head::TALLIES + Tally::ALL.len() <= head::OPEN && head::OPEN_WHAT + 4 <= head::LEN);
        assert_eq!(counter_at(Op::Collective, CLASSES.len() - 1) + 2, NAMES_AT);
        assert_eq!(file_len(0), 8 * EVENTS_AT);
        assert!(What::from_number(0).is_none() && What::from_number(What::Collective as u8 + 1).is_none());
        assert_eq!(What::from_number(What::Put as u8), Some(What::Put));
    }

    #[test]
    fn the_file_is_laid_out_as_its_readers_know_it() {
        assert_eq!((COUNTERS_AT, NAMES_AT, EVENTS_AT), (64, 352, 1376));
        assert_eq!([0, 1, 3].map(file_len), [11008, 11056, 11152]);
        assert_eq!((counter_at(Op::RequestShort, 0), counter_at(Op::RequestMedium, 2)), (64, 84));
        assert_eq!(&MAGIC.to_le_bytes(), b"gwobsrv3");
        assert_eq!(CLASSES, [0, 8, 64, 512, 4096, 65536, 1_048_576, u64::MAX]);
    }

    #[test]
    fn collectives_have_the_numbers_of_their_order() {
        let names: std::collections::HashSet<_> = Collective::ALL.map(Collective::name).into_iter().collect();
        assert_eq!(names.len(), Collective::ALL.len());
        for (number, kind) in (1..).zip(Collective::ALL) {
            assert_eq!((kind as u8, Collective::of(number)), (number, Some(kind)));
        }
        assert_eq!([Collective::of(0), Collective::of(15)], [None, None]);
    }

    #[test]
    fn every_name_is_its_own() {
        let names = Op::ALL.map(Op::name).into_iter().chain(Tally::ALL.map(Tally::name));
        let all: Vec<_> = names.chain((0..CLASSES.len()).map(class_name)).collect();
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!((distinct.len(), all.len()), (35, 35));
        let some = (Op::ReplyLong.name(), Tally::SleepTime.name(), class_name(4));
        assert_eq!(some, ("long reply", "ns asleep", "513 B-4 KiB"));
        assert!((1..=13).all(|number| What::from_number(number).is_some_and(|what| what as u8 == number)));
    }
}
