//! A rank that dies at any kill point leaves the others with whole messages, or none, and never waiting for ever.
//!
//! Death is an unwind out of the structure: what was stored stays stored, what comes after never happens.
#![cfg(all(debug_assertions, not(gasworks_loom)))]

use gasworks_shmem::barrier::{Barrier, Meeting, Name};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::board::{self, Board};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{Block, Claims, Control, Cursor, Inbox, Message, Payload, Slot};
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::fault;
use gasworks_sync::{Par, VolatileSlice};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// What a thread unwinds with when it dies.
struct Death;

/// Runs `life`, which dies at its `nth` passage of the point `name`; whether it did.
fn dies_at(name: &'static str, nth: u32, life: impl FnOnce()) -> bool {
    let passed = Rc::new(Cell::new(0));
    let hook = move |point: &'static str| {
        if point == name {
            passed.set(passed.get() + 1);
            if passed.get() == nth {
                resume_unwind(Box::new(Death));
            }
        }
    };
    match catch_unwind(AssertUnwindSafe(|| fault::with_hook(hook, life))) {
        Ok(()) => false,
        Err(cause) if cause.is::<Death>() => true,
        Err(other) => resume_unwind(other),
    }
}

struct Ring {
    control: Control,
    slots: Box<[Slot]>,
}

impl Ring {
    fn new() -> Self {
        Self { control: Control::new(), slots: (0..8).map(|_| Slot::new()).collect() }
    }
    fn view(&self) -> Inbox<'_> {
        Inbox::new(&self.control, &self.slots).expect("a power of two")
    }
}

/// Everything that can be taken, as (sender, first byte of the head, payload).
fn drain(ring: &Ring, cursor: &mut Cursor) -> Vec<(u16, u8, u64)> {
    let (mut message, mut found) = (Message::new(), Vec::new());
    while ring.view().take(cursor, &mut message).expect("no damage") {
        assert_eq!(message.head(), [message.head()[0]; 24], "half a head");
        let (words, len) = message.inline();
        assert_eq!(len, 8, "half a payload");
        found.push((message.from, message.head()[0], words[0].load(Relaxed)));
    }
    found
}

#[test]
fn a_sender_that_dies_leaves_a_whole_message_or_none() {
    for (point, delivered) in [
        ("eventcount.count.counted", false),
        ("inbox.send.placed", false),
        ("inbox.send.filled", false),
        ("inbox.send.published", true),
    ] {
        for nth in 1..=3 {
            let ring = Ring::new();
            let words = [AtomicU64::new(0)];
            let send = |from: u16, tag: u8| {
                ring.view().reserve(1).expect("room");
                words[0].store(tag.into(), Relaxed);
                let _ = ring.view().send(from, &[tag; 24], Payload::Inline { words: &words, len: 8 });
            };
            assert!(dies_at(point, nth, || (1..=3).for_each(|tag| send(1, tag))), "{point} was not passed");
            let mut cursor = Cursor::default();
            let whole = nth as u8 - u8::from(!delivered);
            let expected: Vec<_> = (1..=whole).map(|tag| (1, tag, tag.into())).collect();
            assert_eq!(drain(&ring, &mut cursor), expected, "{point} {nth}");
            // A survivor's messages arrive, or wait behind the hole; a full queue is an error, not a wait.
            (10..12).for_each(|tag| send(2, tag));
            let later = drain(&ring, &mut cursor);
            let expected: Vec<_> = (10..12).map(|tag| (2, tag, tag.into())).collect();
            assert_eq!(later, if delivered { expected } else { Vec::new() }, "{point} {nth}");
            let room = std::iter::from_fn(|| ring.view().reserve(1).ok()).take(100).count();
            assert!(room <= 8, "room beyond the queue");
        }
    }
}

#[test]
fn a_receiver_that_dies_leaves_senders_with_a_full_queue() {
    let ring = Ring::new();
    let died = dies_at("inbox.take.consumed", 2, || {
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        for tag in 0..8 {
            ring.view().reserve(1).expect("room");
            let _ = ring.view().send(0, &[tag; 24], Payload::NONE);
            assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(true));
        }
    });
    assert!(died);
    let room = std::iter::from_fn(|| ring.view().reserve(1).ok()).take(100).count();
    assert_eq!(room, 8, "the fourth was published, and nothing is consumed any more");
}

#[test]
fn claims_of_the_dead_are_lost_and_no_more() {
    for point in ["inbox.reserve.claimed", "claims.keep.kept", "inbox.send.published"] {
        let ring = Ring::new();
        let life = || {
            let claims = Claims::<Par>::new(4);
            claims.take(ring.view()).expect("room");
            let _ = ring.view().send(0, &[1; 24], Payload::NONE);
        };
        assert!(dies_at(point, 1, life), "{point} was not passed");
        let room = std::iter::from_fn(|| ring.view().reserve(1).ok()).take(100).count();
        assert_eq!(room, 4, "{point}");
    }
}

#[test]
fn blocks_of_the_dead_stay_claimed_or_come_free() {
    for (point, claimed) in [
        ("blocks.claim.claimed", 1),
        ("blocks.claim_alone.claimed", 1),
        ("blocks.free.before", 1),
        ("blocks.free.freed", 0),
    ] {
        let flags: Vec<_> = (0..2).map(|_| AtomicU32::new(0)).collect();
        let life = || {
            let blocks = Blocks::new(&flags);
            let index = if point.contains("alone") { blocks.claim_alone(0, 2) } else { blocks.claim(0, 2) };
            let index = index.expect("a block");
            Blocks::new(&flags).free(index);
        };
        assert!(dies_at(point, 1, life), "{point} was not passed");
        assert_eq!(Blocks::new(&flags).claimed(), claimed, "{point}");
        let left = std::iter::from_fn(|| Blocks::new(&flags).claim(0, 2)).take(9).count();
        assert_eq!(left, 2 - claimed, "{point}");
    }
}

#[test]
fn a_block_of_a_dead_sender_is_read_whole_or_not_at_all() {
    for (point, delivered) in
        [("inbox.send.placed", false), ("inbox.send.filled", false), ("inbox.send.published", true)]
    {
        let ring = Ring::new();
        let life = || {
            ring.view().reserve(1).expect("room");
            let _ = ring.view().send(0, &[1; 24], Payload::Block(Block { index: 7, len: 99 }));
        };
        assert!(dies_at(point, 1, life));
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        assert_eq!(ring.view().take(&mut cursor, &mut message), Ok(delivered));
        if delivered {
            assert_eq!(message.block, Some(Block { index: 7, len: 99 }));
        }
        let line = ring.view().take_line(&mut Cursor::default(), 1).map(|line| line.block());
        assert_eq!(line, delivered.then_some(Block { index: 7, len: 99 }));
    }
}

#[test]
fn a_rank_that_dies_in_the_barrier_has_arrived_or_not() {
    for (point, done) in [
        ("barrier.arrive.before", false),
        ("eventcount.count.counted", true),
        ("barrier.arrive.counted", true),
    ] {
        let meetings = [Meeting::new(), Meeting::new()];
        let [survivor, dead] = [0, 1].map(|me| Barrier::new(&meetings, me, 0).expect("a rank"));
        assert!(!survivor.arrive(Name::Any));
        assert!(survivor.done().is_none());
        assert!(dies_at(point, 1, || _ = dead.arrive(Name::Any)), "{point} was not passed");
        // Not all have come, or a sleeper learns that they have without a ring.
        assert_eq!((survivor.arm(), survivor.done().is_some()), (!done, done), "{point}");
        if done {
            // The next phase never ends, which the survivor learns by asking, not by waiting.
            assert!(!survivor.arrive(Name::Any) && survivor.done().is_none());
        }
    }
}

/// In a tree the last of a group may die between two counts: nobody ever leaves, and nobody leaves early.
#[test]
fn a_rank_that_dies_on_its_way_up_holds_all() {
    for nth in 1..=3 {
        let meetings: Vec<_> = (0..4).map(|_| Meeting::new()).collect();
        let ranks: Vec<_> = (0..4).map(|me| Barrier::new(&meetings, me, 3).expect("a rank")).collect();
        ranks[..3].iter().for_each(|rank| assert!(!rank.arrive(Name::Any)));
        assert!(dies_at("barrier.arrive.counted", nth, || _ = ranks[3].arrive(Name::Any)));
        assert!(ranks.iter().all(|rank| rank.done().is_some() == (nth == 3)), "{nth}");
    }
}

/// A meeting that not all have left is never as good as new, and the others', which the dead one had left before, are.
#[test]
fn a_rank_that_dies_while_it_leaves_keeps_what_it_has_not_left() {
    for nth in 1..=3 {
        let meetings: Vec<_> = (0..3).map(|_| Meeting::new()).collect();
        let leave = || meetings.iter().for_each(Meeting::leave);
        (0..2).for_each(|_| leave());
        assert!(meetings.iter().all(|meeting| !meeting.renew(3)));
        assert!(dies_at("barrier.leave.left", nth, leave));
        let renewed: Vec<_> = meetings.iter().map(|meeting| meeting.renew(3)).collect();
        assert_eq!(renewed, [1, 2, 3].map(|number| number <= nth));
    }
}

/// What a member that dies has posted is whole, or it is not there; with what it was not through the others wait for it.
#[test]
fn a_member_that_dies_has_posted_or_not_and_is_through_or_not() {
    let room = vec![0u8; Board::ROOM].leak();
    let room = VolatileSlice::from_mut(room);
    let points = [
        ("board.post.filled", false, false),
        ("board.post.posted", true, false),
        ("eventcount.disarm.disarmed", true, false),
        ("board.advance.advanced", true, false),
        ("board.finish.finished", true, true),
    ];
    for (point, has_posted, is_through) in points {
        let cells = [board::Cell::new(), board::Cell::new()];
        let [survivor, dead] =
            [0, 1].map(|own| Board::new(cells.iter().map(|cell| (cell, room)), own).expect("a member"));
        survivor.wait_for(1, 1);
        assert!(survivor.arm());
        let life = || {
            dead.post(1, 5, &[3; 20]);
            let _ = dead.advance(1, board::Progress { posted: 0x0303_0303, taken: 0x0303_0303 });
            let _ = dead.finish(1);
        };
        assert!(dies_at(point, 1, life), "{point} was not passed");
        assert_eq!(survivor.posted(1, 1), Ok(has_posted.then_some(5)), "{point}");
        if has_posted {
            let mut found = [0; 20];
            survivor.read(1, 1, 0, &mut found);
            assert_eq!(found, [3; 20]);
        }
        // It sleeps no further where it has looked.
        assert_eq!(survivor.arm(), !has_posted);
        (1..=3).for_each(|round| _ = survivor.finish(round));
        let has_room = [2, 3].map(|round| survivor.has_room(round, board::MAX_POST));
        assert_eq!(has_room, [true, is_through]);
    }
}

/// A sleeper up to its sleep.
fn go_to_sleep(ring: &Ring, bell: &Doorbell, cursor: &Cursor) -> (u32, bool) {
    let ticket = bell.ticket();
    (ticket, ring.view().arm(cursor))
}

#[test]
fn a_sleeper_that_dies_costs_one_ring() {
    for (point, rings) in [("doorbell.ticket.taken", 0), ("eventcount.arm.armed", 1)] {
        let (ring, bell, cursor) = (Ring::new(), Doorbell::new(), Cursor::default());
        assert!(dies_at(point, 1, || _ = go_to_sleep(&ring, &bell, &cursor)), "{point} was not passed");
        let rung = (0..3).filter(|_| ring.view().send(0, &[1; 24], Payload::NONE) && bell.ring()).count();
        assert_eq!(rung, rings, "{point}");
    }
}

/// Whoever sleeps then sleeps until its own limit, which every sleep has, and the next sleeper is woken.
#[test]
fn a_sender_that_dies_before_it_wakes_the_sleeper_leaves_the_bell_ready_for_the_next() {
    for point in [
        "eventcount.count.counted",
        "inbox.send.placed",
        "inbox.send.published",
        "eventcount.disarm.disarmed",
        "doorbell.ring.rung",
    ] {
        let (ring, bell, mut cursor) = (Ring::new(), Doorbell::new(), Cursor::default());
        let (_, idle) = go_to_sleep(&ring, &bell, &cursor);
        assert!(idle);
        let send = || ring.view().send(0, &[1; 24], Payload::NONE) && bell.ring();
        assert!(dies_at(point, 1, || assert!(!send())), "{point} was not passed");
        let hole = ring.view().take(&mut cursor, &mut Message::new()) == Ok(false);
        let (ticket, idle) = go_to_sleep(&ring, &bell, &cursor);
        assert_eq!(idle, !hole, "{point}");
        assert!(send() && bell.word().load(Relaxed) != ticket, "{point}");
    }
}
