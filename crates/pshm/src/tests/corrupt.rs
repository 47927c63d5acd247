//! What a hostile peer may leave in the queues.

use super::fake;
use crate::Opened;
use gasworks_core::{Class, WaitSet, Wire, WireError};
use gasworks_sync::Seq;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Sends one message of `payload` bytes, lets `scribble` change its slot, and returns what a poll says.
fn spoil(class: Class, payload: usize, scribble: impl Fn(&[AtomicU64])) -> String {
    let Opened { wire, .. } = fake::alone::<Seq>().expect("open");
    let room = wire.reserve(0, class, payload).expect("room");
    wire.commit(room, &[1; 16]).expect("sent");
    let seat = wire.host.seats().next().expect("a rank");
    let queue = if class == Class::Request { seat.requests } else { seat.replies };
    scribble(queue.slots()[0].words());
    let error = wire.poll(1, &mut |_| panic!("a damaged message was delivered")).expect_err("it is damaged");
    assert!(matches!(error, WireError::Corrupt { transport: "pshm", at: 0, .. }), "{error:?}");
    // The message is passed over, and the queue goes on.
    assert_eq!(wire.poll(1, &mut |_| ()), Ok(0));
    let room = wire.reserve(0, class, 8).expect("room");
    wire.commit(room, b"next").expect("sent");
    assert_eq!(wire.poll(9, &mut |message| assert_eq!(message.head, b"next")), Ok(1));
    error.to_string()
}

fn with_flag(change: impl Fn(u64) -> u64) -> impl Fn(&[AtomicU64]) {
    move |words| words[0].store(change(words[0].load(Relaxed)), Relaxed)
}

fn says(error: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn a_lap_out_of_order() {
    let error = spoil(Class::Request, 0, with_flag(|flag| flag & 0xffff_ffff | 77 << 32));
    says(&error, &["pshm queue of rank 0", "in the request queue", "lap 77", "lap 1"]);
    says(
        &spoil(Class::Reply, 0, with_flag(|flag| flag & 0xffff_ffff | 3 << 32)),
        &["in the reply queue", "lap 3"],
    );
}

#[test]
fn indices_that_jump() {
    for value in [512 * 5, u64::MAX, u64::MAX - 511, 1 << 39] {
        let Opened { wire, .. } = fake::alone::<Seq>().expect("open");
        let [claimed, placed, consumed] = wire.host.seats().next().expect("a rank").requests.indices();
        placed.store(value, Relaxed);
        let room = wire.reserve(0, Class::Request, 8).expect("room");
        wire.commit(room, b"lost").expect("sent, somewhere");
        // It lies in the wrong lap or the wrong place: found damaged, or not found, but never delivered.
        match wire.poll(1, &mut |_| panic!("a misplaced message was delivered")) {
            Ok(taken) => assert_eq!(taken, 0),
            Err(error) => says(&error.to_string(), &["in the request queue", "lap"]),
        }
        // Whatever the indices say, a sender is busy or writes inside the queue.
        for index in [claimed, consumed] {
            index.store(value, Relaxed);
            for _ in 0..3000 {
                match wire.reserve(0, Class::Request, 0) {
                    Ok(room) => wire.commit(room, b"somewhere").expect("sent, somewhere"),
                    Err(error) => assert_eq!(error, WireError::Busy { to: 0 }),
                }
            }
        }
    }
}

/// Nothing is found in the queue, and nobody knows why: whoever waits looks at the counts.
#[test]
fn counts_that_cannot_be_are_found_by_who_waits() {
    let sleep = |wire: &dyn Wire<Seq>| {
        WaitSet::new().sleep(std::iter::once(wire), Duration::from_millis(1), &|| true)
    };
    for (class, name) in [(Class::Request, "request"), (Class::Reply, "reply")] {
        for (count, values) in [(0, [0, 517]), (1, [4, 518]), (2, [1, 6])] {
            for value in values {
                let Opened { wire, .. } = fake::alone::<Seq>().expect("open");
                for _ in 0..5 {
                    let room = wire.reserve(0, class, 0).expect("room");
                    wire.commit(room, b"taken").expect("sent");
                    assert_eq!(wire.poll(1, &mut |_| ()), Ok(1));
                }
                sleep(&wire).expect("all is well");
                let seat = wire.host.seats().next().expect("a rank");
                let queue = if class == Class::Request { seat.requests } else { seat.replies };
                let changed = queue.indices()[count];
                let before = changed.swap(value, Relaxed);
                // Room is not claimed for replies: nobody looks at that count.
                let matters = !(count == 0 && class == Class::Reply);
                match sleep(&wire) {
                    Ok(_) => assert!(!matters, "{name} {count}: {value} in place of {before}"),
                    Err(error) => says(&error.to_string(), &["pshm queue of rank 0", name, "5 were taken"]),
                }
            }
        }
    }
}

#[test]
fn a_length_beyond_the_slot() {
    says(&spoil(Class::Request, 0, with_flag(|flag| flag & !0x7f00 | 89 << 8)), &["a head of 89"]);
    says(&spoil(Class::Request, 0, with_flag(|flag| flag & !0xff | 161)), &["a payload of 161"]);
}

#[test]
fn a_source_that_does_not_exist() {
    let error = spoil(Class::Request, 0, with_flag(|flag| flag | 0xffff << 16));
    says(&error, &["a request says it is from number 65535 of the 1 ranks"]);
    let error = spoil(Class::Reply, 3000, with_flag(|flag| flag | 1 << 16));
    says(&error, &["a reply says it is from number 1 of the 1 ranks"]);
}

#[test]
fn a_block_that_does_not_exist() {
    // The head has 16 bytes, so the block's name is the fourth word.
    let name = |index: u64, len: u64| move |words: &[AtomicU64]| words[3].store(index << 32 | len, Relaxed);
    says(&spoil(Class::Request, 3000, name(0xffff_ffff, 8)), &["request block 4294967295 with 8 bytes"]);
    says(&spoil(Class::Request, 3000, name(0, 513)), &["from rank 0 names request block 0 with 513 bytes"]);
    says(&spoil(Class::Reply, 3000, name(0, 65537)), &["reply block 0 with 65537 bytes"]);
    says(&spoil(Class::Reply, 3000, name(72, 8)), &["reply block 72 with 8 bytes"]);
}

#[test]
fn reply_blocks_that_never_come_back() {
    let Opened { wire, .. } = fake::alone::<Seq>().expect("open");
    let mut rooms = Vec::new();
    let error = loop {
        match wire.reserve(0, Class::Reply, 3000) {
            Ok(room) => rooms.push(room),
            Err(error) => break error.to_string(),
        }
    };
    says(&error, &["rank 0", "all 72 of its reply blocks are in use"]);
    rooms.into_iter().for_each(|room| wire.cancel(room));
}

#[test]
fn a_sink_that_panics_frees_its_block() {
    let Opened { wire, .. } = fake::alone::<Seq>().expect("open");
    for _ in 0..2000 {
        let room = wire.reserve(0, Class::Request, 30_000).expect("room");
        wire.commit(room, b"bad").expect("sent");
        let poll = || wire.poll(1, &mut |_| std::panic::resume_unwind(Box::new("handler")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
    }
    assert_eq!(wire.host.mine().request_blocks().claimed(), 0);
}
