//! Every structure between real threads on the heap: the code that runs in shared memory, where Miri and the thread
//! sanitizer can watch it.
#![cfg(not(gasworks_loom))]
#![allow(unsafe_code)]

use gasworks_shmem::barrier::{Barrier, Meeting, Name};
use gasworks_shmem::blocks::Blocks;
use gasworks_shmem::board::{Board, Cell, INLINE, MAX_POST, PIECES, Progress, SMALL};
use gasworks_shmem::credit::{Credits, Owed};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{
    Block, Claims, Control, Cursor, Inbox, MAX_HEAD, MAX_INLINE, Message, Payload, Slot,
};
use gasworks_shmem::queues::{NoLine, Queue, Queues, Seat};
use gasworks_shmem::ranks::Ranks;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Mode, Par, Seq, VolatileSlice, racy, spin};
use std::thread;
use std::time::{Duration, Instant};

/// Fewer rounds where every step is interpreted.
const ROUNDS: u64 = if cfg!(miri) { 5 } else { 20_000 };

/// A part of the rounds, for what takes longer: some under Miri, too.
const fn rounds(divisor: u64) -> u64 {
    if cfg!(miri) { 3 } else { ROUNDS / divisor }
}

struct Watchdog(Instant);

impl Watchdog {
    fn new() -> Self {
        Self(Instant::now() + Duration::from_secs(120))
    }
    fn spin(&self) {
        assert!(Instant::now() < self.0, "no progress");
        spin();
        thread::yield_now();
    }
}

struct Ring {
    control: Control,
    slots: Box<[Slot]>,
}

impl Ring {
    fn new(slots: usize) -> Self {
        Self { control: Control::new(), slots: (0..slots).map(|_| Slot::new()).collect() }
    }
    fn view(&self) -> Inbox<'_> {
        Inbox::new(&self.control, &self.slots).expect("a power of two")
    }
}

/// The head and the payload that a sender makes for its `number`th message.
fn contents(from: u16, number: u64) -> (Vec<u8>, Vec<u8>) {
    let fill = (number as u8).wrapping_mul(31) ^ from as u8;
    let mut head = vec![fill; 8 + number as usize % (MAX_HEAD - 7)];
    head[..8].copy_from_slice(&number.to_le_bytes());
    (head, vec![!fill; (number as usize * 7) % (MAX_INLINE + 1)])
}

#[test]
fn inbox_keeps_every_sender_in_order_and_every_message_whole() {
    for (slots, senders, batch) in [(1, 2, 1), (2, 3, 8), (16, 3, 4)] {
        let ring = &Ring::new(slots);
        thread::scope(|scope| {
            for from in 0..senders {
                scope.spawn(move || {
                    let watchdog = Watchdog::new();
                    let claims = Claims::<Par>::new(batch);
                    let words: Vec<_> = (0..MAX_INLINE / 8).map(|_| AtomicU64::new(0)).collect();
                    for number in 0..ROUNDS {
                        while claims.take(ring.view()).is_err() {
                            watchdog.spin();
                        }
                        if number % 7 == 3 {
                            ring.view().cancel(1);
                            while claims.take(ring.view()).is_err() {
                                watchdog.spin();
                            }
                        }
                        let (head, payload) = contents(from, number);
                        racy::store_words(&words, &payload);
                        let _ = ring.view().send(
                            from,
                            &head,
                            Payload::Inline { words: &words, len: payload.len() },
                        );
                    }
                });
            }
            let watchdog = Watchdog::new();
            let (mut cursor, mut message) = (Cursor::default(), Message::new());
            let mut next = vec![0; senders as usize];
            while next.iter().sum::<u64>() < ROUNDS * u64::from(senders) {
                if !ring.view().take(&mut cursor, &mut message).expect("no damage") {
                    watchdog.spin();
                    continue;
                }
                let number = &mut next[message.from as usize];
                let (head, payload) = contents(message.from, *number);
                let (words, len) = message.inline();
                let mut found = vec![0; len];
                racy::load_words(words, &mut found);
                assert_eq!((message.head(), &found), (&head[..], &payload));
                *number += 1;
            }
            // SAFETY: the queue is read by this cursor alone.
            assert!(unsafe { ring.view().is_empty(cursor.mark()) });
        });
    }
}

/// Two threads of a process share their claims, and none is lost or made: the queue counts those at hand when both are done.
#[test]
fn claims_are_shared_by_threads_and_none_is_lost() {
    let (ring, claims) = (&Ring::new(64), &Claims::<Par>::new(4));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    claims.take(ring.view()).expect("room for more than two");
                    ring.view().cancel(1);
                }
            });
        }
    });
    let claimed = || ring.view().indices()[0].load(Relaxed);
    let before = claimed();
    for at_hand in (0..before).rev() {
        claims.take(ring.view()).expect("at hand");
        assert_eq!(claimed(), before, "of {before} claimed {} were not at hand", at_hand + 1);
    }
    claims.take(ring.view()).expect("room");
    assert!(claimed() > before, "more were at hand than the queue has counted");
}

#[test]
fn blocks_carry_payloads_and_come_back() {
    const BLOCK: usize = 64;
    let ring = &Ring::new(4);
    let flags: &Vec<_> = &(0..3).map(|_| AtomicU32::new(0)).collect();
    let memory: &Vec<_> = &(0..3 * BLOCK / 8).map(|_| AtomicU64::new(0)).collect();
    let bytes = |index: u32, len: usize| {
        let all = VolatileSlice::from_words(memory);
        all.slice(index as usize * BLOCK, len).expect("inside")
    };
    thread::scope(|scope| {
        for from in 0..2u16 {
            scope.spawn(move || {
                let watchdog = Watchdog::new();
                for number in 0..ROUNDS {
                    let index = loop {
                        match Blocks::new(flags).claim(0, 3) {
                            Some(index) => break index,
                            None => watchdog.spin(),
                        }
                    };
                    let len = number as usize % BLOCK + 1;
                    bytes(index, len).write(&vec![from as u8 ^ number as u8; len]);
                    while ring.view().reserve(1).is_err() {
                        watchdog.spin();
                    }
                    let block = Block { index, len: len as u32 };
                    let _ = ring.view().send(from, &number.to_le_bytes(), Payload::Block(block));
                }
            });
        }
        let watchdog = Watchdog::new();
        let (mut cursor, mut message) = (Cursor::default(), Message::new());
        let mut taken = 0;
        while taken < 2 * ROUNDS {
            // By either way of taking: the name of the block lies in the flag's line.
            let (from, fill, block) = if taken % 2 == 0 {
                let Some(mut line) = ring.view().take_line(&mut cursor, 2) else {
                    watchdog.spin();
                    continue;
                };
                assert!(line.names_block);
                (line.from, line.parts().0[0], line.block())
            } else {
                if !ring.view().take(&mut cursor, &mut message).expect("no damage") {
                    watchdog.spin();
                    continue;
                }
                (message.from, message.head()[0], message.block.expect("a block"))
            };
            let len = block.len as usize;
            let lent = Blocks::new(flags).lend(block.index, bytes(block.index, len)).expect("a block");
            let mut found = vec![0; len];
            lent.bytes().read(&mut found);
            assert!(found.iter().all(|&byte| byte == from as u8 ^ fill));
            drop(lent);
            taken += 1;
        }
        assert_eq!(Blocks::new(flags).claimed(), 0);
        assert!(Blocks::new(flags).lend(3, VolatileSlice::EMPTY).is_none(), "there are three");
    });
}

#[test]
fn barrier_separates_phases() {
    for (ranks, radix) in [(1, 0), (2, 0), (4, 0), (4, 3), (7, 3)] {
        let meetings: &Vec<_> = &(0..ranks).map(|_| Meeting::new()).collect();
        let counters: &Vec<_> = &(0..ranks).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|scope| {
            for me in 0..ranks {
                scope.spawn(move || {
                    let watchdog = Watchdog::new();
                    let barrier = Barrier::new(meetings, me, radix).expect("a rank");
                    assert!(barrier.done() == Some(Name::Any) && barrier.arm());
                    for phase in 1..=rounds(8) {
                        counters[me].store(phase, Relaxed);
                        // By two names in some phases, by one or none in others.
                        let name = match phase % 4 {
                            0 => Name::Any,
                            1 => Name::Is(phase as u32),
                            2 if me == 0 => Name::Any,
                            2 => Name::Is(3),
                            _ => Name::Is(me as u32),
                        };
                        let _ = barrier.arrive(name);
                        let agreed = loop {
                            match barrier.done() {
                                Some(name) => break name,
                                None => watchdog.spin(),
                            }
                        };
                        assert_eq!(
                            agreed,
                            match (phase % 4, ranks) {
                                (0, _) | (2, 1) => Name::Any,
                                (1, _) => Name::Is(phase as u32),
                                (2, _) => Name::Is(3),
                                (_, 1) => Name::Is(0),
                                _ => Name::Mismatch,
                            }
                        );
                        // Nobody is behind, and nobody can be further ahead than the next phase.
                        let all = counters.iter().map(|counter| counter.load(Relaxed));
                        assert!(all.clone().all(|found| found == phase || found == phase + 1), "{phase}");
                    }
                });
            }
        });
    }
    assert!(Barrier::new(&[Meeting::new()], 1, 0).is_none());
}

/// What the buffers of a member of a board lie in.
type Room = [AtomicU64; Board::ROOM / 8];

/// Each posts in most rounds, some bytes or many, and reads what others have posted: whole, and of that round.
#[test]
fn boards_carry_what_members_post() {
    const MOST: usize = 5;
    // Miri would take a minute to fill them.
    static ROOMS: [Room; MOST] = [const { [const { AtomicU64::new(0) }; Board::ROOM / 8] }; MOST];
    let rooms = &ROOMS;
    for members in [1, 2, MOST].into_iter().filter(|&members| !cfg!(miri) || members == 2) {
        let cells: &Vec<_> = &(0..members).map(|_| Cell::new()).collect();
        let contents = |member: usize, round: u64| {
            let len = [3, 8, INLINE, INLINE + 1, 200, SMALL, SMALL + 9][(round % 7) as usize];
            let len = if round % 64 == 1 { MAX_POST } else { len };
            vec![(member as u64 * 31 + round) as u8; if cfg!(miri) { len.min(300) } else { len }]
        };
        let gives = |member: usize, round: u64| round.is_multiple_of(3) || round as usize % members == member;
        thread::scope(|scope| {
            for me in 0..members {
                scope.spawn(move || {
                    let watchdog = Watchdog::new();
                    let all =
                        cells.iter().zip(rooms).map(|(cell, room)| (cell, VolatileSlice::from_words(room)));
                    let board = Board::new(all, me).expect("a member");
                    for round in 1..=rounds(8) {
                        if gives(me, round) {
                            let bytes = contents(me, round);
                            while !board.has_room(round, bytes.len()) {
                                watchdog.spin();
                            }
                            let inline = if bytes.len() > INLINE {
                                board.buffer(me as u32, round, bytes.len()).expect("a buffer").write(&bytes);
                                &[][..]
                            } else {
                                &bytes
                            };
                            board.post(round, round + me as u64, inline);
                        }
                        for member in (0..members).filter(|&member| gives(member, round)) {
                            let mut found = contents(member, round);
                            let (wanted, who) = (found.clone(), member as u32);
                            while board.posted(who, round).expect("nobody is ahead")
                                != Some(round + member as u64)
                            {
                                watchdog.spin();
                            }
                            found.fill(0);
                            match board.buffer(who, round, found.len()).filter(|_| found.len() > INLINE) {
                                Some(buffer) => buffer.read(&mut found),
                                None => board.read(who, round, 0, &mut found),
                            }
                            assert_eq!(found, wanted, "of {member} in round {round}");
                        }
                        assert!(board.may_begin(round));
                        let _ = board.finish(round);
                    }
                });
            }
        });
    }
}

/// Each posts pieces, more than there is room for, and takes those of the others: whole, and in order.
#[test]
fn pieces_of_a_round_come_whole() {
    const MEMBERS: usize = 3;
    let pieces = if cfg!(miri) { 3 } else { 37 };
    let cells: &Vec<_> = &(0..MEMBERS).map(|_| Cell::new()).collect();
    static ROOMS: [Room; MEMBERS] = [const { [const { AtomicU64::new(0) }; Board::ROOM / 8] }; MEMBERS];
    let rooms = &ROOMS;
    let contents =
        |member: u32, round: u64, number: u32| [member as u8, round as u8, number as u8].repeat(30);
    thread::scope(|scope| {
        for me in 0..MEMBERS as u32 {
            scope.spawn(move || {
                let watchdog = Watchdog::new();
                let all = cells.iter().zip(rooms).map(|(cell, room)| (cell, VolatileSlice::from_words(room)));
                let board = Board::new(all, me as usize).expect("a member");
                let others = || (0..MEMBERS as u32).filter(|&member| member != me);
                for round in 1..=rounds(100) {
                    while !board.has_room(round, MAX_POST) {
                        watchdog.spin();
                    }
                    board.post(round, 9, &Progress::default().to_bytes());
                    let progress = |member| match board.posted(member, round).expect("nobody is ahead") {
                        Some(_) => board.progress(member, round),
                        None => Progress::default(),
                    };
                    for number in 0..pieces {
                        while others().any(|member| progress(member).taken + PIECES <= number) {
                            watchdog.spin();
                        }
                        let place = board.piece(me, round, number).expect("a member");
                        place.write(&contents(me, round, number));
                        let _ = board.advance(round, Progress { posted: number + 1, taken: number });
                        for member in others() {
                            while progress(member).posted <= number {
                                watchdog.spin();
                            }
                            let wanted = contents(member, round, number);
                            let mut found = vec![0; wanted.len()];
                            board
                                .piece(member, round, number)
                                .expect("a member")
                                .slice(0, 90)
                                .expect("inside")
                                .read(&mut found);
                            assert_eq!(found, wanted, "piece {number} of {member} in round {round}");
                        }
                        let _ = board.advance(round, Progress { posted: number + 1, taken: number + 1 });
                    }
                    let _ = board.finish(round);
                }
            });
        }
    });
}

#[test]
fn doorbell_rings_for_sleepers_only_and_makes_every_ticket_void() {
    let bell = Doorbell::new();
    assert!(!bell.ring());
    let tickets = [bell.ticket(), bell.ticket()];
    assert!(bell.ring() && !bell.ring());
    assert!(!tickets.contains(&bell.word().load(Relaxed)));
    assert!(!tickets.contains(&bell.ticket()), "an old ticket would be good again");
    assert!(bell.ring());
}

/// Two senders, and two threads that share a cursor and sleep in turn: everything is taken, and no sleep is for ever.
#[test]
fn nobody_sleeps_while_a_message_waits() {
    let (ring, bell) = (&Ring::new(16), &Doorbell::new());
    let (cursor, taken) = (&std::sync::Mutex::new(Cursor::default()), &AtomicU64::new(0));
    let each = rounds(10);
    let all = 2 * each;
    thread::scope(|scope| {
        for from in 0..2 {
            scope.spawn(move || {
                let watchdog = Watchdog::new();
                for _ in 0..each {
                    while ring.view().reserve(1).is_err() {
                        watchdog.spin();
                    }
                    if ring.view().send(from, &[1; 8], Payload::NONE) {
                        let _ = bell.ring();
                    }
                    thread::yield_now();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                let mut message = Message::new();
                while taken.load(Relaxed) < all {
                    let ticket = bell.ticket();
                    let mut cursor = cursor.lock().expect("no panic");
                    let found = ring.view().take(&mut cursor, &mut message).expect("no damage");
                    let idle = !found && ring.view().arm(&cursor);
                    drop(cursor);
                    if found && taken.fetch_add(1, Relaxed) + 1 == all {
                        let _ = bell.ring(); // the other waits for what this one took
                    }
                    let watchdog = Watchdog::new();
                    while idle && taken.load(Relaxed) < all && bell.word().load(Relaxed) == ticket {
                        watchdog.spin(); // in place of the system's wait
                    }
                }
            });
        }
    });
    assert_eq!(taken.load(Relaxed), all);
}

#[test]
fn credits_bound_what_is_out_and_all_come_back() {
    let (credits, owed) = (&Credits::new(2, 3, 4, 100), &Owed::new(2));
    let in_flight = &[AtomicU32::new(0), AtomicU32::new(0)];
    thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                let watchdog = Watchdog::new();
                for number in 0..ROUNDS {
                    let peer = (number + thread) as u32 % 2;
                    while credits.take(peer, 30).is_err() {
                        watchdog.spin();
                    }
                    assert!(in_flight[peer as usize].fetch_add(1, Relaxed) < 3);
                    owed.owe(peer, 30);
                }
            });
        }
        let watchdog = Watchdog::new();
        let mut returned = 0;
        while returned < 2 * ROUNDS {
            let Some(peer) = owed.next_owing(returned as u32) else {
                watchdog.spin();
                continue;
            };
            let (count, bytes) = owed.collect(peer, 2);
            in_flight[peer as usize].fetch_sub(count, Relaxed);
            credits.give(peer, count, bytes).expect("what was out");
            returned += u64::from(count);
        }
    });
    assert_eq!((credits.total_out(), credits.out(0), credits.out(1)), (0, (0, 0), (0, 0)));
    assert_eq!(owed.next_owing(0), None);
}

/// What there is of each rank.
struct Desk(Ring, Ring, Doorbell);

fn queues<M: Mode>(desks: &[Desk], me: u32) -> Queues<'_, M> {
    let ranks = Ranks::new(&(0..desks.len() as u32).collect::<Vec<_>>()).expect("they rise");
    let seats =
        desks.iter().map(|desk| Seat { requests: desk.0.view(), replies: desk.1.view(), bell: &desk.2 });
    Queues::new(me, ranks, seats, 2).expect("a rank")
}

/// Two threads of one rank ask, two of the other answer, by lines and by longer messages: each is taken once, by one thread.
#[test]
fn queues_lose_nothing_between_the_threads_of_two_ranks() {
    let (each, words) = (rounds(4), 9);
    let desks: Vec<_> = (0..2).map(|_| Desk(Ring::new(4), Ring::new(16), Doorbell::new())).collect();
    let ranks = [0, 1].map(|me| queues::<Par>(&desks, me));
    let (asked, answered) = (&AtomicU64::new(0), &AtomicU64::new(0));
    let (sum, received) = (&AtomicU64::new(0), &AtomicU64::new(0));
    let length = |number: u64| if number.is_multiple_of(3) { 8 * words } else { 4 };
    // Takes one message of either kind, and says what its first word is and how much came with it.
    let take = |rank: &Queues<'_, Par>| {
        if let Ok(Some(mut line)) = rank.take_line() {
            let (head, payload) = line.parts();
            return Some((u64::from_le_bytes(*head.first_chunk()?), head.len() - 8 + payload.len()));
        }
        let mut message = Message::new();
        rank.take(&mut message).expect("no damage")?;
        Some((
            u64::from_le_bytes(*message.head().first_chunk()?),
            message.head().len() - 8 + message.inline().1,
        ))
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (watchdog, bytes) = (Watchdog::new(), [7; 72]);
                while received.load(Relaxed) < each {
                    let number = asked.fetch_add(1, Relaxed);
                    if number < each {
                        while ranks[0]
                            .post(1, Queue::Requests, number, &[1; 4], &bytes[..length(number)])
                            .is_err()
                        {
                            watchdog.spin();
                        }
                    }
                    // As many are out as there is room for replies.
                    while received.load(Relaxed) < each && number.saturating_sub(received.load(Relaxed)) >= 12
                    {
                        match take(&ranks[0]) {
                            Some((_, len)) => {
                                assert_eq!(len, 0);
                                received.fetch_add(1, Relaxed);
                            }
                            None => watchdog.spin(),
                        }
                    }
                }
            });
            scope.spawn(|| {
                let watchdog = Watchdog::new();
                while answered.load(Relaxed) < each {
                    let Some((number, len)) = take(&ranks[1]) else {
                        watchdog.spin();
                        continue;
                    };
                    assert_eq!(len, 4 + length(number));
                    sum.fetch_add(number, Relaxed);
                    let woken = ranks[1].post(0, Queue::Replies, number, &[], &[]);
                    assert_eq!(woken, Ok(false), "nobody sleeps");
                    answered.fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.load(Relaxed), each * (each - 1) / 2);
    assert!(ranks.iter().all(|rank| rank.is_idle() && rank.arm()));
    let (sleeper, late) = (ranks[1].bell(1), ranks[0].post(1, Queue::Requests, 0, &[], &[]));
    assert_eq!((late, ranks[1].is_idle()), (Ok(true), false));
    assert!(std::ptr::eq(sleeper, &desks[1].2));
}

#[test]
fn queues_leave_to_others_what_is_no_line() {
    let desks: Vec<_> = (0..2).map(|_| Desk(Ring::new(8), Ring::new(8), Doorbell::new())).collect();
    let (sender, receiver) = (queues::<Seq>(&desks, 0), queues::<Seq>(&desks, 1));
    assert!(receiver.is_idle() && matches!(receiver.take_line(), Ok(None)));
    sender.post(1, Queue::Requests, 1, &[2; 8], &[3; 41]).expect("room");
    assert_eq!(receiver.take_line().err(), Some(NoLine), "the payload ends in the next line");
    assert!(!receiver.is_idle());
    let mut message = Message::new();
    assert_eq!(receiver.take(&mut message), Ok(Some(Queue::Requests)));
    sender.claim(1).expect("room");
    assert!(!sender.send(1, Queue::Requests, &[4; 56], Payload::NONE));
    assert!(!desks[1].1.view().send(2, &[5; 8], Payload::NONE));
    // The reply comes first, though nobody is its sender.
    assert_eq!(receiver.take_line().err(), Some(NoLine));
    assert_eq!((receiver.take(&mut message), message.from), (Ok(Some(Queue::Replies)), 2));
    let mut line = receiver.take_line().expect("a line").expect("which is there");
    let (head, payload) = line.parts();
    assert_eq!((head, payload.len()), (&[4; 56][..], 0));
    assert_eq!(line.from, 0);
    sender.claim(1).expect("room");
    sender.cancel(1);
    let two = Ranks::new(&[0, 5]).expect("they rise");
    let seats =
        || desks.iter().map(|desk| Seat { requests: desk.0.view(), replies: desk.1.view(), bell: &desk.2 });
    assert!(Queues::<Seq>::new(1, two.clone(), seats(), 1).is_none(), "rank 1 is none of them");
    assert!(Queues::<Seq>::new(0, two.clone(), seats().take(1), 1).is_none(), "one of two");
    let apart = Queues::<Seq>::new(5, two, seats(), 1).expect("the second of them");
    assert_eq!((apart.rank(0), apart.rank(1)), (0, 5));
    assert!(std::ptr::eq(apart.bell(5), &desks[1].2));
}
