//! Every structure under loom: all interleavings of two or three threads, and all that the orderings admit.
//!
//! Each `ord!` in the crate is needed by one of these: run with `GASWORKS_MUTATION=name` to see it fail.
#![cfg(gasworks_loom)]
#![allow(unsafe_code)]

#[path = "loom/barrier.rs"]
mod barrier;
#[path = "loom/board.rs"]
mod board;
#[path = "loom/connection.rs"]
mod connection;

use gasworks_shmem::blocks::{Blocks, Stock};
use gasworks_shmem::credit::{Credits, Owed};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::eventcount::EventCount;
use gasworks_shmem::inbox::{Block, Claims, Control, Cursor, Inbox, Message, Payload, Slot};
use gasworks_shmem::queues::{Queue, Queues, Seat};
use gasworks_shmem::ranks::Ranks;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::cell::UnsafeCell;
use gasworks_sync::latch::ParLatch;
use gasworks_sync::{Latch, Lock, Par, SpinLock, VolatileSlice, spin};
use loom::sync::Arc;
use loom::thread;

/// Bounded preemption keeps three threads affordable; every bug planted here shows with two.
fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

struct Ring {
    control: Control,
    slots: Box<[Slot]>,
}

impl Ring {
    fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self::of(slots))
    }

    fn of(slots: usize) -> Self {
        Self { control: Control::new(), slots: (0..slots).map(|_| Slot::new()).collect() }
    }

    fn view(&self) -> Inbox<'_> {
        Inbox::new(&self.control, &self.slots).expect("a power of two")
    }
}

fn message(tag: u8) -> [u8; 16] {
    [tag; 16]
}

/// Takes until a message comes; checks that it is whole; returns its tag.
fn take(inbox: Inbox<'_>, cursor: &mut Cursor, message: &mut Message) -> u8 {
    while !inbox.take(cursor, message).expect("no damage") {
        spin();
    }
    let tag = message.head()[0];
    assert_eq!(message.head(), [tag; 16]);
    tag
}

/// A thread that sends what `send` makes of 1 and of 2, each when there is room.
fn sends_two(ring: &Arc<Ring>, send: fn(Inbox<'_>, u8)) -> thread::JoinHandle<()> {
    let ring = ring.clone();
    thread::spawn(move || {
        for tag in [1, 2] {
            while ring.view().reserve(1).is_err() {
                spin();
            }
            send(ring.view(), tag);
        }
    })
}

#[test]
fn inbox_message_arrives_whole() {
    model(|| {
        let ring = Ring::new(2);
        let sender = ring.clone();
        let sending = thread::spawn(move || {
            let words = [AtomicU64::new(0x0101_0101)];
            let inbox = sender.view();
            inbox.reserve(1).expect("room");
            let _ = inbox.send(3, &message(1), Payload::Inline { words: &words, len: 4 });
        });
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        assert_eq!(take(ring.view(), &mut cursor, &mut message), 1);
        assert_eq!(message.from, 3);
        let (words, len) = message.inline();
        assert_eq!((words[0].load(Relaxed), len), (0x0101_0101, 4));
        sending.join().expect("the sender");
    });
}

/// Where the ring has one slot, the second message is written over the first, which must have been copied out.
#[test]
fn inbox_lines_arrive_whole() {
    model(|| {
        let ring = Ring::new(1);
        let sending = sends_two(&ring, |inbox, tag| {
            let _ = inbox.send_words(3, [0x0101_0101 * u64::from(tag)], &[9; 4], Payload::Bytes(&[tag; 4]));
        });
        let mut cursor = Cursor::default();
        for tag in [1u8, 2] {
            let mut line = loop {
                match ring.view().take_line(&mut cursor, 4) {
                    Some(line) => break line,
                    None => spin(),
                }
            };
            let (head, payload) = line.parts();
            let word = u64::from(tag) * 0x0101_0101;
            assert_eq!(
                (&head[..8], &head[8..], &*payload),
                (&word.to_le_bytes()[..], &[9; 4][..], &[tag; 4][..])
            );
        }
        assert!(ring.view().take_line(&mut cursor, 4).is_none());
        sending.join().expect("the sender");
    });
}

/// Two threads of a rank poll: each message is taken by one of them, and a look that is made when all are taken says so.
#[test]
fn queues_are_taken_from_by_one_thread_at_a_time() {
    model(|| {
        // Leaked: the threads of a model borrow nothing.
        let (ring, replies): (&Ring, &Ring) =
            (Box::leak(Box::new(Ring::of(2))), Box::leak(Box::new(Ring::of(1))));
        let bell: &Doorbell = Box::leak(Box::new(Doorbell::new()));
        let seat = Seat { requests: ring.view(), replies: replies.view(), bell };
        let queues =
            Arc::new(Queues::<Par>::new(0, Ranks::new(&[0]).expect("a rank"), [seat], 2).expect("a rank"));
        for number in [1, 2] {
            assert_eq!(queues.post(0, Queue::Requests, number, &[], &[]), Ok(false));
        }
        let take = |queues: &Queues<'_, Par>| match queues.take_line().expect("lines alone") {
            Some(mut line) => u32::from(line.parts().0[0]),
            None => 0,
        };
        let other = queues.clone();
        let taker = thread::spawn(move || take(&other));
        let mut sum = take(&queues);
        sum += taker.join().expect("the other");
        while !queues.is_idle() {
            sum += take(&queues);
        }
        assert_eq!(sum, 3);
        assert!(queues.take_line().is_ok_and(|line| line.is_none()));
    });
}

#[test]
fn inbox_two_senders_lose_nothing() {
    model(|| {
        let ring = Ring::new(2);
        let senders: Vec<_> = [1, 2]
            .map(|tag| {
                let ring = ring.clone();
                thread::spawn(move || {
                    ring.view().reserve(1).expect("room");
                    let _ = ring.view().send(tag.into(), &message(tag), Payload::NONE);
                })
            })
            .into();
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        let mut tags = [0, 1].map(|_| take(ring.view(), &mut cursor, &mut message));
        tags.sort_unstable();
        assert_eq!(tags, [1, 2]);
        assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(false));
        senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
    });
}

#[test]
fn inbox_slot_is_not_written_while_it_is_read() {
    model(|| {
        let ring = Ring::new(1);
        let sending = sends_two(&ring, |inbox, tag| {
            let _ = inbox.send(0, &message(tag), Payload::NONE);
        });
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        assert_eq!([0, 1].map(|_| take(ring.view(), &mut cursor, &mut message)), [1, 2]);
        sending.join().expect("the sender");
    });
}

/// A sender may get a place that another sender found free.
#[test]
fn inbox_place_checked_by_another_sender() {
    model(|| {
        let ring = Ring::new(2);
        for tag in [1, 2] {
            ring.view().reserve(1).expect("room");
            let _ = ring.view().send(0, &message(tag), Payload::NONE);
        }
        let senders: Vec<_> = [3, 4]
            .map(|tag| {
                let ring = ring.clone();
                thread::spawn(move || {
                    if ring.view().reserve(1).is_ok() {
                        let _ = ring.view().send(0, &message(tag), Payload::NONE);
                    }
                })
            })
            .into();
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        assert_eq!([0, 1].map(|_| take(ring.view(), &mut cursor, &mut message)), [1, 2]);
        senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
        while ring.view().take(&mut cursor, &mut message).expect("no damage") {
            assert!([3, 4].contains(&message.head()[0]));
        }
    });
}

/// A thread may use a claim that another thread of its process made.
#[test]
fn inbox_claim_made_by_another_thread() {
    model(|| {
        let ring = Ring::new(4);
        for tag in 1..5 {
            ring.view().reserve(1).expect("room");
            let _ = ring.view().send(0, &message(tag), Payload::NONE);
        }
        let claims = Arc::new(Claims::<Par>::new(2));
        let senders: Vec<_> = [5, 6]
            .map(|tag| {
                let (ring, claims) = (ring.clone(), claims.clone());
                thread::spawn(move || {
                    if claims.take(ring.view()).is_ok() {
                        let _ = ring.view().send(0, &message(tag), Payload::NONE);
                    }
                })
            })
            .into();
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        assert_eq!([0; 4].map(|_| take(ring.view(), &mut cursor, &mut message)), [1, 2, 3, 4]);
        senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
        while ring.view().take(&mut cursor, &mut message).expect("no damage") {
            assert!([5, 6].contains(&message.head()[0]));
        }
    });
}

/// Cancelling lowers the number of claims while others claim.
#[test]
fn inbox_cancel_keeps_the_bound() {
    model(|| {
        let ring = Ring::new(1);
        let other = ring.clone();
        let fickle = thread::spawn(move || {
            if other.view().reserve(1).is_ok() {
                other.view().cancel(1);
            }
        });
        let sent = ring.view().reserve(1).is_ok();
        if sent {
            let _ = ring.view().send(0, &message(1), Payload::NONE);
        }
        fickle.join().expect("the other sender");
        assert_eq!(ring.view().reserve(1).is_err(), sent);
    });
}

/// A cell whose accesses loom orders or reports.
struct Contents(UnsafeCell<u32>);

// SAFETY: the structure under test orders every access, and loom reports one that it does not order.
unsafe impl Sync for Contents {}
// SAFETY: the number in the cell belongs to no thread, and loom reports accesses that are not ordered.
unsafe impl Send for Contents {}

impl Contents {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn write(&self, value: u32) {
        // SAFETY: `at` points into the cell, and loom, which knows of the access by `with_mut`, reports another at the same time.
        self.0.with_mut(|at| unsafe { *at = value });
    }
    fn read(&self) -> u32 {
        // SAFETY: `at` points into the cell, and loom, which knows of the access by `with`, reports a write at the same time.
        self.0.with(|at| unsafe { *at })
    }
}

#[test]
fn blocks_are_reused_after_they_were_read() {
    blocks_go_round(|blocks| blocks.claim(0, 1));
}

#[test]
fn blocks_of_one_claimer_are_reused_after_they_were_read() {
    blocks_go_round(|blocks| blocks.claim_alone(0, 1));
}

fn blocks_go_round(claim: fn(Blocks<'_>) -> Option<u32>) {
    model(move || {
        struct Shared {
            flags: [AtomicU32; 1],
            contents: Contents,
            ring: Ring,
        }
        let ring = Ring { control: Control::new(), slots: (0..2).map(|_| Slot::new()).collect() };
        let shared = Arc::new(Shared { flags: [AtomicU32::new(0)], contents: Contents::new(), ring });
        let other = shared.clone();
        let sender = thread::spawn(move || {
            for value in [1, 2] {
                let index = loop {
                    match claim(Blocks::new(&other.flags)) {
                        Some(index) => break index,
                        None => spin(),
                    }
                };
                other.contents.write(value);
                let _ = other.ring.view().send(0, &message(1), Payload::Block(Block { index, len: value }));
            }
        });
        let mut cursor = Cursor::default();
        for value in [1, 2] {
            let line = loop {
                match shared.ring.view().take_line(&mut cursor, 1) {
                    Some(line) => break line,
                    None => spin(),
                }
            };
            assert_eq!((line.names_block, line.block()), (true, Block { index: 0, len: value }));
            let lent = Blocks::new(&shared.flags).lend(0, VolatileSlice::EMPTY).expect("a block");
            assert_eq!(shared.contents.read(), value);
            drop(lent);
        }
        sender.join().expect("the sender");
    });
}

/// A thread may use a block that another thread of its process has claimed.
#[test]
fn a_stock_of_blocks_is_shared_by_threads() {
    model(|| {
        struct Shared {
            flags: [AtomicU32; 2],
            contents: [Contents; 2],
            stock: Stock<Par>,
        }
        let contents = [Contents::new(), Contents::new()];
        let flags = [AtomicU32::new(0), AtomicU32::new(0)];
        let shared = Arc::new(Shared { flags, contents, stock: Stock::default() });
        assert_eq!(Blocks::new(&shared.flags).claim(1, 2), Some(1));
        let reader = shared.clone();
        let reading = thread::spawn(move || {
            let lent = Blocks::new(&reader.flags).lend(1, VolatileSlice::EMPTY).expect("a block");
            assert_eq!(reader.contents[1].read(), 0);
            drop(lent);
        });
        let claim = |shared: &Shared| {
            let index = shared.stock.claim(false, || Blocks::new(&shared.flags), (0, 2), 2)?;
            shared.contents[index as usize].write(1);
            Some(index)
        };
        let other = shared.clone();
        let claiming = thread::spawn(move || claim(&other));
        let mine = claim(&shared);
        let theirs = claiming.join().expect("the other");
        assert!(mine.is_some() || theirs.is_some(), "one was free");
        assert!(mine != theirs, "one block for two");
        reading.join().expect("the reader");
        let used = usize::from(mine.is_some()) + usize::from(theirs.is_some());
        assert_eq!(Blocks::new(&shared.flags).claimed(), used + shared.stock.at_hand());
    });
}

#[test]
fn blocks_are_claimed_once() {
    model(|| {
        let flags = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let other = flags.clone();
        let claiming = thread::spawn(move || Blocks::new(&other[..]).claim(0, 2));
        let mine = Blocks::new(&flags[..]).claim(0, 2);
        let theirs = claiming.join().expect("the other");
        assert!(mine.is_some() && theirs.is_some() && mine != theirs);
        assert_eq!(Blocks::new(&flags[..]).claim(0, 2), None);
    });
}

/// A thread up to its sleep: the ticket, and whether it would ask the system to sleep.
fn lie_down(bell: &Doorbell, events: &EventCount, seen: u64) -> Option<u32> {
    let ticket = bell.ticket();
    (events.arm() == seen).then_some(ticket)
}

/// Counts an event and wakes whoever sleeps.
fn count_and_ring(bell: &Doorbell, events: &EventCount) -> u64 {
    let counted = events.count();
    if counted.wanted {
        events.disarm();
        let _ = bell.ring();
    }
    counted.index
}

/// A sleeper that the system would still let sleep, all that could wake it being over.
fn sleeps_on(bell: &Doorbell, asleep: Option<u32>) -> bool {
    asleep == Some(bell.word().load(Relaxed))
}

#[test]
fn eventcount_nobody_sleeps_through_an_event() {
    model(|| {
        let shared = Arc::new((Doorbell::new(), EventCount::new()));
        let counters = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || count_and_ring(&shared.0, &shared.1))
        });
        let asleep = lie_down(&shared.0, &shared.1, 0);
        let mut indices = counters.map(|thread| thread.join().expect("a counter"));
        indices.sort_unstable();
        assert_eq!(indices, [0, 1]);
        assert!(!sleeps_on(&shared.0, asleep), "an event came and it sleeps on");
    });
}

/// Two threads of a rank: one has lain down for the first event, the other has seen it and lies down for the second.
#[test]
fn eventcount_wakes_an_early_and_a_late_sleeper() {
    model(|| {
        let shared = Arc::new((Doorbell::new(), EventCount::new()));
        let counter = {
            let shared = shared.clone();
            thread::spawn(move || {
                count_and_ring(&shared.0, &shared.1);
            })
        };
        let late = {
            let shared = shared.clone();
            thread::spawn(move || {
                let seen = shared.1.events();
                lie_down(&shared.0, &shared.1, seen).map(|ticket| (seen, ticket))
            })
        };
        let early = lie_down(&shared.0, &shared.1, 0);
        counter.join().expect("the counter");
        let late = late.join().expect("the other sleeper");
        assert!(!sleeps_on(&shared.0, early), "the event came and it sleeps on");
        if let Some((0, ticket)) = late {
            assert!(!sleeps_on(&shared.0, Some(ticket)), "the event came and it sleeps on");
        }
        // Whoever sleeps until the second event is woken by it.
        count_and_ring(&shared.0, &shared.1);
        assert!(!sleeps_on(&shared.0, late.map(|(_, ticket)| ticket)), "the second came and it sleeps on");
    });
}

/// Two rings, and a sleeper that comes between: neither takes its bit away without making its ticket void.
#[test]
fn eventcount_disarmed_by_a_slow_counter() {
    model(|| {
        let shared = Arc::new((Doorbell::new(), EventCount::new()));
        let first = lie_down(&shared.0, &shared.1, 0);
        assert!(first.is_some());
        let slow = {
            let shared = shared.clone();
            thread::spawn(move || count_and_ring(&shared.0, &shared.1))
        };
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || {
                let seen = shared.1.events();
                lie_down(&shared.0, &shared.1, seen)
            })
        };
        let other = count_and_ring(&shared.0, &shared.1);
        slow.join().expect("the slow counter");
        let asleep = sleeper.join().expect("the sleeper");
        assert!(other < 2 && !sleeps_on(&shared.0, first));
        let before = shared.0.word().load(Relaxed);
        let third = shared.1.count();
        assert!(third.wanted || asleep != Some(before), "it sleeps and nobody would wake it");
    });
}

#[test]
fn eventcount_carries_what_was_done_before() {
    model(|| {
        let shared = Arc::new((EventCount::new(), Contents::new()));
        let other = shared.clone();
        let counter = thread::spawn(move || {
            other.1.write(7);
            let _ = other.0.count();
        });
        if shared.0.events() == 1 {
            assert_eq!(shared.1.read(), 7);
        }
        counter.join().expect("the counter");
    });
}

/// What eventcount.2 rests on, by data: a ticket that counts a ring knows what was done before that ring, a bit taken away
/// included. (The bits themselves loom never shows out of order, since a read-modify-write always reads the latest.)
#[test]
fn doorbell_ticket_knows_what_came_before_the_ring() {
    model(|| {
        let shared = Arc::new((Doorbell::new(), Contents::new()));
        let early = shared.0.ticket();
        let other = shared.clone();
        let ringer = thread::spawn(move || {
            other.1.write(1);
            assert!(other.0.ring());
        });
        if shared.0.ticket() != early {
            assert_eq!(shared.1.read(), 1);
        }
        ringer.join().expect("the ringer");
    });
}

#[test]
fn inbox_receiver_does_not_sleep_through_a_message() {
    model(|| {
        let shared = Arc::new((Doorbell::new(), Ring::of(1)));
        let other = shared.clone();
        let sender = thread::spawn(move || {
            let (bell, ring) = &*other;
            if ring.view().send(0, &message(1), Payload::NONE) {
                let _ = bell.ring();
            }
        });
        let (bell, ring) = &*shared;
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        let ticket = bell.ticket();
        let asleep = ring.view().arm(&cursor).then_some(ticket);
        sender.join().expect("the sender");
        assert!(!sleeps_on(bell, asleep), "it sleeps, and nobody rang");
        assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(true));
        assert!(ring.view().arm(&cursor));
    });
}

#[test]
fn latch_is_waited_for_by_a_spin_lock() {
    model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let other = lock.clone();
        let them = thread::spawn(move || other.with(|value| *value += 1));
        let before = lock.with(|value| {
            *value += 1;
            *value
        });
        them.join().expect("them");
        assert!(before == 1 || before == 2);
        assert_eq!(lock.with(|value| *value), 2);
    });
}

#[test]
fn latch_lets_one_in_at_a_time() {
    model(|| {
        let latch = Arc::new(ParLatch::new(0));
        let other = latch.clone();
        let thread = thread::spawn(move || other.try_with(|value| *value += 1).is_some());
        let mine = latch.try_with(|value| *value += 1).is_some();
        let theirs = thread.join().expect("the other");
        assert_eq!(latch.try_with(|value| *value), Some(u32::from(mine) + u32::from(theirs)));
    });
}

/// A credit that one thread gives is worth what that thread did before, to the thread that takes it.
fn credit_carries(depth: u32, total: u32, give_to: u32, take_from: u32) {
    model(move || {
        let shared = Arc::new((Credits::new(2, depth, total, 100), Contents::new()));
        shared.0.take(give_to, 10).expect("the first");
        let other = shared.clone();
        let giver = thread::spawn(move || {
            other.1.write(1);
            other.0.give(give_to, 1, 10).expect("what is out");
        });
        // Until it succeeds: loom tries no order in which a single failing look would have come after the giving.
        while shared.0.take(take_from, 10).is_err() {
            spin();
        }
        assert_eq!(shared.1.read(), 1);
        giver.join().expect("the giver");
    });
}

#[test]
fn credit_of_a_peer_carries() {
    credit_carries(1, 2, 0, 0);
}

#[test]
fn credit_of_the_total_carries() {
    credit_carries(2, 1, 0, 1);
}

#[test]
fn credit_limits_hold() {
    model(|| {
        let credits = Arc::new(Credits::new(2, 1, 2, 100));
        let other = credits.clone();
        let thread = thread::spawn(move || (other.take(0, 60).is_ok(), other.take(1, 60).is_ok()));
        let mine = credits.take(0, 60).is_ok();
        let (first, second) = thread.join().expect("the other");
        assert!(mine != first, "one of two takers gets the only credit");
        let out = u32::from(second) + 1;
        assert_eq!(credits.total_out(), out);
        assert!(credits.give(0, 2, 0).is_err() && credits.give(0, 1, 61).is_err());
        assert_eq!((credits.out(0), credits.total_out()), ((1, 60), out));
    });
}

#[test]
fn owed_carries_and_loses_nothing() {
    model(|| {
        let shared = Arc::new((Owed::new(2), Contents::new()));
        let other = shared.clone();
        let handler = thread::spawn(move || {
            other.1.write(1);
            other.0.owe(1, 7)
        });
        let (count, bytes) = shared.0.collect(1, 9);
        if count == 1 {
            assert_eq!((shared.1.read(), bytes), (1, 7));
        }
        assert_eq!(handler.join().expect("the handler"), (1, 7));
        let (late, late_bytes) = shared.0.collect(1, 9);
        assert_eq!((count + late, bytes + late_bytes), (1, 7));
        assert_eq!(shared.0.next_owing(0), None);
    });
}
