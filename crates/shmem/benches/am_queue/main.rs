//! Candidates for the queue of active messages, measured between two processes pinned to two cores.
//!
//! `cargo bench -p gasworks-shmem --bench am_queue [-- BLOCKS]` prints a table: median of the blocks and a 95 %
//! interval of the median, in nanoseconds. Candidates take turns inside every block, so that what the machine does
//! meanwhile hits all of them. The record is `docs/decisions/0001-am-queue.md`.

#[allow(unsafe_code)]
mod candidates;
#[allow(unsafe_code)]
mod machine;

use candidates::{Inboxes, Pairs, Queue, Slotted};
use gasworks_shmem::barrier::{Barrier, Meeting, Name};
use gasworks_shmem::inbox::MAX_HEAD;
use gasworks_sync::spin;
use gasworks_testkit::stats::shown;
use std::hint::black_box;
use std::time::Instant;

/// Ranks in the job, of which two talk.
const RANKS: [usize; 3] = [2, 10, 65];
const HEADS: [usize; 3] = [8, 40, MAX_HEAD];
const TRIPS: usize = 4_000;
const FLOOD: usize = 20_000;
const POLLS: usize = 50_000;
/// Messages that may be out, and how many the receiver takes before it returns their credits.
const WINDOWS: [(usize, usize); 2] = [(12, 4), (64, 16)];

/// The numbers of one candidate, by row.
type Samples = Vec<(String, Vec<f64>)>;

fn note(samples: &mut Samples, row: String, value: f64) {
    match samples.iter_mut().find(|(name, _)| *name == row) {
        Some((_, values)) => values.push(value),
        None => samples.push((row, vec![value])),
    }
}

fn meet(barrier: &Barrier<'_>) {
    let _ = barrier.arrive(Name::Any); // nobody sleeps
    while barrier.done().is_none() {
        spin();
    }
}

/// Sends, polling while there is no room. What arrives is counted.
fn push(queue: &mut impl Queue, to: usize, head: &[u8], arrived: &mut usize) {
    while !queue.send(to, head) {
        *arrived += queue.poll(&mut |_, _| ());
    }
}

/// One way, in nanoseconds: the mean, the median and the 99th percentile of half the round trips. A clock that ticks
/// in tens of nanoseconds shows in the latter two.
fn ping_pong(queue: &mut impl Queue, me: usize, head: &[u8]) -> (f64, f64, f64) {
    let mut trips = vec![0u32; TRIPS];
    let start = Instant::now();
    let mut last = start;
    let mut check = 0u64;
    for trip in &mut trips {
        if me == 0 {
            push(queue, 1, head, &mut 0);
        }
        while queue.poll(&mut |_, bytes: &[u8]| check += u64::from(bytes[bytes.len() - 1])) == 0 {}
        if me == 1 {
            push(queue, 0, head, &mut 0);
        }
        let now = Instant::now();
        *trip = (now - last).as_nanos() as u32;
        last = now;
    }
    assert_eq!(check, TRIPS as u64 * u64::from(head[head.len() - 1]), "bytes were lost");
    let mean = (last - start).as_nanos() as f64 / TRIPS as f64 / 2.0;
    trips.sort_unstable();
    (mean, f64::from(trips[TRIPS / 2]) / 2.0, f64::from(trips[TRIPS * 99 / 100]) / 2.0)
}

/// Rank 0 sends as fast as its credits allow; rank 1 reads every head and returns credits in batches.
fn flood(queue: &mut impl Queue, me: usize, head: &[u8], (window, batch): (usize, usize)) -> f64 {
    let start = Instant::now();
    if me == 0 {
        let mut credits = window;
        for _ in 0..FLOOD {
            while credits == 0 {
                credits += batch * queue.poll(&mut |_, _| ());
            }
            let mut returned = 0;
            push(queue, 1, head, &mut returned);
            credits += batch * returned - 1;
        }
        while credits < window {
            credits += batch * queue.poll(&mut |_, _| ());
        }
    } else {
        let (mut taken, mut returned, mut check) = (0, 0, 0u64);
        while taken < FLOOD {
            taken += queue.poll(&mut |_, bytes: &[u8]| check += u64::from(bytes[bytes.len() - 1]));
            while taken - returned >= batch {
                push(queue, 0, &[1; 8], &mut taken);
                returned += batch;
            }
        }
        assert_eq!(check, FLOOD as u64 * u64::from(head[head.len() - 1]), "bytes were lost");
    }
    start.elapsed().as_nanos() as f64 / FLOOD as f64
}

fn empty_poll(queue: &mut impl Queue) -> f64 {
    let start = Instant::now();
    let mut found = 0;
    for _ in 0..POLLS {
        found += queue.poll(&mut |_, _| ());
    }
    assert_eq!(black_box(found), 0);
    start.elapsed().as_nanos() as f64 / POLLS as f64
}

fn block<Q: Queue>(queue: &mut Q, me: usize, ranks: usize, barrier: &Barrier<'_>, samples: &mut Samples) {
    let name = Q::NAME;
    for len in HEADS {
        meet(barrier);
        let (mean, median, p99) = ping_pong(queue, me, &vec![3; len]);
        note(samples, format!("{ranks:2} ranks | one way, {len:2} B, mean | {name}"), mean);
        note(samples, format!("{ranks:2} ranks | one way, {len:2} B, p50 | {name}"), median);
        note(samples, format!("{ranks:2} ranks | one way, {len:2} B, p99 | {name}"), p99);
    }
    for window in WINDOWS {
        meet(barrier);
        let each = flood(queue, me, &[3; 40], window);
        note(samples, format!("{ranks:2} ranks | flood, 40 B, window {:2} | {name}", window.0), each);
    }
    meet(barrier);
    let each = empty_poll(queue);
    note(samples, format!("{ranks:2} ranks | empty poll | {name}"), each);
}

fn main() {
    let blocks = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(25);
    let bytes = machine::shared(256 << 20);
    let mut room = candidates::Room::new(bytes);
    let meetings: &[Meeting] = room.take(2);
    let plans: Vec<_> = RANKS
        .map(|ranks| {
            let whole = Inboxes::lay_out(&mut room, ranks);
            let hoard = Inboxes::lay_out(&mut room, ranks);
            let free = Inboxes::lay_out(&mut room, ranks);
            let pairs = Pairs::lay_out(&mut room, ranks);
            let slotted = Slotted::lay_out(&mut room, ranks);
            (ranks, whole, hoard, free, pairs, slotted)
        })
        .into();
    let child = machine::fork();
    let me = usize::from(child.is_none());
    machine::pin(me);
    let barrier = Barrier::new(meetings, me, 0).expect("two ranks");
    let mut samples = Samples::new();
    let mut queues: Vec<_> = plans
        .into_iter()
        .map(|(ranks, whole, hoard, free, pairs, slotted)| {
            let whole: Inboxes<'_, 1, true> = whole.open(me);
            let hoard: Inboxes<'_, 16, true> = hoard.open(me);
            let free: Inboxes<'_, 16, false> = free.open(me);
            (ranks, whole, hoard, free, pairs.open(me), slotted.open(me))
        })
        .collect();
    for round in 0..=blocks {
        if round == 1 {
            samples.clear(); // the first was the warm-up
        }
        for (ranks, whole, hoard, free, pairs, slotted) in &mut queues {
            block(whole, me, *ranks, &barrier, &mut samples);
            block(pairs, me, *ranks, &barrier, &mut samples);
            block(slotted, me, *ranks, &barrier, &mut samples);
            block(hoard, me, *ranks, &barrier, &mut samples);
            block(free, me, *ranks, &barrier, &mut samples);
        }
    }
    match child {
        None => machine::leave(),
        Some(child) => {
            machine::wait(child);
            samples.sort_by(|a, b| a.0.cmp(&b.0));
            println!("{blocks} blocks; median [95 % interval of the median], ns");
            for (row, values) in &samples {
                println!("{row:70} {:>28}", shown(values, 1));
            }
        }
    }
}
