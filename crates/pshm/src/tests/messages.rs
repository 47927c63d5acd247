//! Messages between threads that are ranks.

use super::fake::{self, CONFIG, Watchdog};
use crate::{MAX_MEDIUM, Opened, Pshm, ShmBarrier};
use gasworks_core::{Class, Name, SharedBarrier, WaitSet, Wire, WireError};
use gasworks_memory::Rights;
use gasworks_shmem::credit::Credits;
use gasworks_shmem::inbox::{MAX_HEAD, MAX_INLINE};
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{Mode, Par, Seq};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

pub(super) const SIZES: [usize; 9] = [0, 1, 8, MAX_INLINE, MAX_INLINE + 1, 512, 513, 4097, MAX_MEDIUM];

/// What every byte of a message is computed from.
fn byte(seed: u64, at: usize) -> u8 {
    (seed.wrapping_mul(0x9E37_79B9) >> 8) as u8 ^ (at as u8) ^ (at >> 8) as u8
}

fn head(kind: u8, seed: u64) -> Vec<u8> {
    let len = 16 + (seed as usize * 8) % (MAX_HEAD - 15);
    let mut head = vec![kind; len];
    head[8..16].copy_from_slice(&seed.to_le_bytes());
    head
}

pub(super) fn send<M: Mode>(
    wire: &dyn Wire<M>,
    to: u32,
    class: Class,
    kind: u8,
    seed: u64,
) -> Result<(), WireError> {
    let len = SIZES[seed as usize % SIZES.len()];
    let room = wire.reserve(to, class, len)?;
    let bytes: Vec<u8> = (0..len).map(|at| byte(seed, at)).collect();
    room.payload().write(&bytes);
    wire.commit(room, &head(kind, seed))
}

/// Checks that a message is what `send` made; returns its kind and seed.
pub(super) fn check(message: &gasworks_core::Arrived<'_>) -> (u8, u64) {
    let seed = u64::from_le_bytes(message.head[8..16].try_into().expect("8 bytes"));
    assert_eq!(message.head, head(message.head[0], seed));
    assert_eq!(message.payload.len(), SIZES[seed as usize % SIZES.len()]);
    let mut bytes = vec![0; message.payload.len()];
    message.payload.read(&mut bytes);
    assert!(bytes.iter().enumerate().all(|(at, &found)| found == byte(seed, at)), "a payload came mixed up");
    (message.head[0], seed)
}

/// The thread sanitizer sees races, not laps, and takes its time.
pub(super) const TIMES: u64 = if cfg!(gasworks_tsan) { 1 } else { 10 };

/// Every rank sends `rounds` requests to every rank, itself included; each is replied to from inside the sink.
fn all_to_all<M: Mode>(ranks: u32, rounds: u64) {
    fake::run::<M, _>(ranks, CONFIG, |me, opened| {
        let Opened { wire, barrier, .. } = opened;
        let credits = Credits::new(ranks, CONFIG.depth, CONFIG.total, CONFIG.volume);
        let (answered, handled) = (Cell::new(0), Cell::new(0));
        let sent_sizes = |seed: u64| SIZES[seed as usize % SIZES.len()] as u32;
        let all = rounds * u64::from(ranks);
        let poll = || {
            let sink = &mut |message: gasworks_core::Arrived<'_>| {
                let (kind, seed) = check(&message);
                if kind == b'q' {
                    handled.set(handled.get() + 1);
                    send(&wire, message.from, Class::Reply, b'r', seed).expect("replies always fit");
                } else {
                    answered.set(answered.get() + 1);
                    let given = credits.give(message.from, 1, sent_sizes(seed).into());
                    given.expect("a credit that was out");
                }
            };
            wire.poll(3, sink).expect("a healthy queue")
        };
        let watchdog = Watchdog::new();
        for round in 0..rounds {
            for to in (me..ranks).chain(0..me) {
                let seed = round * 1000 + u64::from(to);
                while credits.take(to, sent_sizes(seed)).is_err() {
                    watchdog.check(|| format!("rank {me} has no credit for {to}: {credits:?}"));
                    poll();
                }
                while let Err(error) = send(&wire, to, Class::Request, b'q', seed) {
                    assert_eq!(error, WireError::Busy { to });
                    watchdog.check(|| format!("rank {me} finds the wire to {to} busy"));
                    poll();
                }
            }
        }
        while answered.get() < all || handled.get() < all {
            watchdog
                .check(|| format!("rank {me} handled {} and was answered {}", handled.get(), answered.get()));
            poll();
        }
        assert_eq!(credits.total_out(), 0);
        barrier.arrive(Name::Any);
        while barrier.done().is_none() {
            watchdog.check(|| format!("rank {me} waits in the barrier"));
        }
        assert_eq!((answered.get(), handled.get()), (all, all));
        let mine = wire.host.mine();
        assert_eq!(mine.request_blocks().claimed(), wire.request_blocks_at_hand());
        // Others may have claimed some beforehand, but never all that are beyond one for each request.
        assert!(mine.reply_blocks().claimed() <= crate::layout::SLACK as usize / 2);
    });
}

#[test]
fn all_to_all_1_rank() {
    all_to_all::<Seq>(1, 30 * TIMES);
    all_to_all::<Par>(1, 30 * TIMES);
}

#[test]
fn all_to_all_2_ranks() {
    all_to_all::<Seq>(2, 30 * TIMES);
    all_to_all::<Par>(2, 30 * TIMES);
}

#[test]
fn all_to_all_4_ranks() {
    all_to_all::<Seq>(4, 10 * TIMES);
    all_to_all::<Par>(4, 10 * TIMES);
}

#[test]
fn all_to_all_7_ranks() {
    all_to_all::<Seq>(7, 6 * TIMES);
    all_to_all::<Par>(7, 6 * TIMES);
}

#[test]
fn all_to_all_64_ranks() {
    all_to_all::<Seq>(if cfg!(gasworks_tsan) { 16 } else { 64 }, 2);
}

#[test]
fn par_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Pshm<Par>>();
    shared::<ShmBarrier<Par>>();
    fake::run::<Par, _>(2, CONFIG, |me, opened| {
        const EACH: u64 = 40 * TIMES;
        let wire = &opened.wire;
        let credits = &Credits::new(2, CONFIG.depth, CONFIG.total, u64::MAX);
        let done = &gasworks_sync::atomic::AtomicU64::new(0);
        let relaxed = gasworks_sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                scope.spawn(move || {
                    let watchdog = Watchdog::new();
                    let mut sent = 0;
                    // Requests and replies of the other rank, each handled by whichever thread takes it.
                    while sent < EACH || done.load(relaxed) < 2 * 3 * EACH {
                        let seed = thread * EACH + sent;
                        if sent < EACH && credits.take(1 - me, 0).is_ok() {
                            match send(wire, 1 - me, Class::Request, b'q', seed) {
                                Ok(()) => sent += 1,
                                Err(_) => credits.give(1 - me, 1, 0).expect("ours"),
                            }
                        }
                        let sink = &mut |message: gasworks_core::Arrived<'_>| {
                            match check(&message) {
                                (b'q', seed) => {
                                    send(wire, message.from, Class::Reply, b'r', seed)
                                        .expect("replies always fit");
                                }
                                _ => credits.give(message.from, 1, 0).expect("a credit that was out"),
                            }
                            done.fetch_add(1, relaxed);
                        };
                        wire.poll(4, sink).expect("a healthy queue");
                        watchdog.check(|| format!("rank {me} thread {thread} sent {sent}, {credits:?}"));
                    }
                });
            }
        });
        assert_eq!(done.load(relaxed), 2 * 3 * EACH);
    });
}

#[test]
fn a_full_queue_is_busy_and_cancelling_makes_room() {
    let opened = fake::alone::<Seq>().expect("open");
    let wire = &opened.wire;
    let mut rooms = Vec::new();
    let error = loop {
        match wire.reserve(0, Class::Request, 0) {
            Ok(room) => rooms.push(room),
            Err(error) => break error,
        }
    };
    assert_eq!(error, WireError::Busy { to: 0 });
    assert_eq!(rooms.len(), opened.wire.host.mine().layout.requests);
    // A reply and a credit have their own room.
    let reply = wire.reserve(0, Class::Reply, MAX_MEDIUM).expect("room for a reply");
    let credit = wire.reserve(0, Class::Credit, 0).expect("room for a credit");
    wire.commit(reply, b"reply").expect("sent");
    wire.commit(credit, b"credit").expect("sent");
    rooms.drain(..).for_each(|room| wire.cancel(room));
    // Blocks run out before slots do.
    let error = loop {
        match wire.reserve(0, Class::Request, MAX_MEDIUM) {
            Ok(room) => rooms.push(room),
            Err(error) => break error,
        }
    };
    assert_eq!(error, WireError::Busy { to: 0 });
    assert!(wire.reserve(0, Class::Request, 0).is_ok_and(|room| wire.commit(room, b"short").is_ok()));
    rooms.drain(..).for_each(|room| wire.cancel(room));
    let heads = RefCell::new(Vec::new());
    let taken = wire.poll(100, &mut |message| heads.borrow_mut().push(message.head.to_vec()));
    assert_eq!(taken, Ok(3));
    assert_eq!(heads.into_inner(), [&b"reply"[..], b"credit", b"short"]);
    assert_eq!(opened.wire.host.mine().request_blocks().claimed(), opened.wire.request_blocks_at_hand());
    assert!(opened.wire.host.mine().reply_blocks().claimed() <= crate::layout::SLACK as usize / 2);
}

#[test]
fn what_is_too_large_or_to_nobody_is_refused() {
    let opened = fake::alone::<Seq>().expect("open");
    let refused = opened.wire.reserve(0, Class::Request, MAX_MEDIUM + 1).expect_err("too large").to_string();
    assert!(refused.contains("65537") && refused.contains("65536"), "{refused}");
    assert_eq!(opened.wire.reserve(1, Class::Request, 0).err(), Some(WireError::PeerGone { rank: 1 }));
    let room = opened.wire.reserve(0, Class::Request, 100).expect("room");
    assert!(matches!(opened.wire.commit(room, &[0; MAX_HEAD + 1]), Err(WireError::TooLarge { len: 89, .. })));
    assert_eq!(opened.wire.poll(1, &mut |_| ()), Ok(0));
}

#[test]
fn a_sleeper_is_woken_by_a_message_a_wake_and_a_barrier() {
    let long = Duration::from_secs(20);
    fake::run::<Par, _>(2, CONFIG, |me, opened| {
        let Opened { wire, barrier, .. } = opened;
        let pause = || std::thread::sleep(Duration::from_millis(20));
        let (watchdog, waits) = (Watchdog::new(), WaitSet::new());
        let sleep = || waits.sleep(std::iter::once(&wire), long, &|| true).expect("slept");
        if me == 0 {
            pause();
            send(&wire, 1, Class::Request, b'q', 0).expect("sent");
            pause();
            barrier.arrive(Name::Any);
        } else {
            let start = Instant::now();
            while wire.poll(1, &mut |_| ()) == Ok(0) {
                sleep();
            }
            barrier.arrive(Name::Any);
            while barrier.done().is_none() {
                sleep();
            }
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    pause();
                    waits.wake(std::iter::once(&wire));
                });
                sleep();
            });
            assert!(start.elapsed() < long, "it slept for the whole time allowed");
            assert!(start.elapsed() >= Duration::from_millis(40));
        }
        while barrier.done().is_none() {
            watchdog.check(|| format!("rank {me} waits in the barrier"));
        }
    });
}

/// A split-phase barrier is complete, and its rank waits for something else first.
#[test]
fn a_barrier_that_all_have_come_to_keeps_a_rank_awake_once() {
    let complete = AtomicU32::new(0);
    fake::run::<Seq, _>(2, CONFIG, |me, Opened { wire, barrier, .. }| {
        let watchdog = Watchdog::new();
        barrier.arrive(Name::Any);
        if me == 1 {
            while barrier.done().is_none() {
                watchdog.check(|| "rank 1 waits in the barrier".into());
            }
            return complete.store(1, Relaxed);
        }
        while complete.load(Relaxed) == 0 {
            watchdog.check(|| "rank 0 waits for rank 1".into());
        }
        let slept = [(); 3].map(|()| {
            WaitSet::new()
                .sleep(std::iter::once(&wire), Duration::from_millis(1), &|| true)
                .expect("no error")
        });
        assert_eq!((slept, barrier.done()), ([false, true, true], Some(Name::Any)));
    });
}

#[test]
fn segments_are_shared() {
    fake::run::<Seq, _>(4, CONFIG, |me, opened| {
        let Opened { barrier, peers, .. } = opened;
        let watchdog = Watchdog::new();
        let wait = || {
            barrier.arrive(Name::Any);
            while barrier.done().is_none() {
                watchdog.check(|| format!("rank {me} waits in the barrier"));
            }
        };
        for phase in 0..50u32 {
            let right = (me + 1) % 4;
            let bytes =
                peers.reach(right, u64::from(phase) * 8, 4, Rights::all()).expect("inside").expect("mapped");
            bytes.write(&(me * 1000 + phase).to_le_bytes());
            wait();
            let mut found = [0; 4];
            peers
                .reach(me, u64::from(phase) * 8, 4, Rights::all())
                .expect("inside")
                .expect("mapped")
                .read(&mut found);
            assert_eq!(u32::from_le_bytes(found), (me + 3) % 4 * 1000 + phase);
        }
        wait();
        assert!(peers.len_of(me) == Some(1 << 20));
    });
}
