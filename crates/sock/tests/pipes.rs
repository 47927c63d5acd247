//! The engine over pipes: few descriptors, few rounds, and no other calls than Miri knows.
#![cfg(not(gasworks_loom))]
#![allow(unsafe_code)]

use std::io::{PipeWriter, Write, pipe};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gasworks_sock::raw::{self, Lent};
use gasworks_sock::{Class, Event, Op, Set, Sock};
use gasworks_sync::atomic::{AtomicUsize, Ordering};

/// No event of a test takes so long.
const LONG: Duration = Duration::from_secs(60);

fn next(set: &Set) -> Event {
    set.wait(Some(LONG)).expect("waited").expect("an event")
}

/// The next event, which must be this one, without an error.
fn expect(set: &Set, op: Op, user: u64) -> Event {
    let event = next(set);
    assert_eq!((event.op, event.user, &event.error), (op, user, &None));
    event
}

/// Both ends of a pipe in the set: the one to read from has the even number.
fn ends(set: &Set, number: u64) -> (Sock, Sock) {
    let (reader, writer) = pipe().expect("a pipe");
    (set.adopt(2 * number, reader).expect("adopted"), set.adopt(2 * number + 1, writer).expect("adopted"))
}

/// One end in the set.
fn reader(set: &Set, user: u64) -> (Sock, PipeWriter) {
    let (reader, writer) = pipe().expect("a pipe");
    (set.adopt(user, reader).expect("adopted"), writer)
}

#[test]
fn posted_operations_end_when_they_have_enough() {
    let set = Set::new().expect("a set");
    let (from, to) = ends(&set, 1);
    from.post_read(vec![0; 8], 6, 8, None).expect("posted");
    assert_eq!(to.write(b"abc").expect("written"), 3);
    assert_eq!(set.wait(Some(Duration::ZERO)).expect("waited"), None, "three are not six");
    to.post_writev(vec![b"de".to_vec(), b"f".to_vec()], 3, None).expect("posted");
    expect(&set, Op::Write, 3);
    assert_eq!(expect(&set, Op::Read, 2).data(), b"abcdef");
    from.post_readv(vec![vec![0; 2], vec![0; 2]], 1, None).expect("posted");
    to.post_write(b"xyz".to_vec(), 3, 3, None).expect("posted");
    expect(&set, Op::Write, 3);
    let mut event = expect(&set, Op::Read, 2);
    assert_eq!((event.bytes, event.take_buffers()), (3, vec![b"xy".to_vec(), b"z\0".to_vec()]));
    set.destroy_now().expect("destroyed");
}

/// The system writes into memory that is only lent, and reads from it, through pointers.
#[test]
fn lent_memory_is_the_callers() {
    let set = Set::new().expect("a set");
    let (from, to) = ends(&set, 1);
    let (mut into, out) = ([0u8; 7], *b"seven b");
    let (left, right) = into.split_at_mut(3);
    let lend = |part: &mut [u8]| {
        // SAFETY: raw.1: `part` lies in `into`, which outlives the set's last event and is only looked at after it.
        unsafe { Lent::new(part.as_mut_ptr(), part.len()) }
    };
    raw::post_read(&from, vec![lend(left), lend(right)], 7, 7, None).expect("posted");
    // SAFETY: raw.1: `out` outlives the set's last event, and is posted for writing, so that it is only read.
    let lent = unsafe { Lent::new(out.as_ptr().cast_mut(), out.len()) };
    raw::post_write(&to, vec![lent], 7, 7, None).expect("posted");
    expect(&set, Op::Write, 3);
    expect(&set, Op::Read, 2);
    assert_eq!(into, out);
    set.destroy_now().expect("destroyed");
}

#[test]
fn ends_and_closes_are_told() {
    let set = Set::new().expect("a set");
    let (from, to) = ends(&set, 1);
    from.post_read(vec![0; 8], 8, 8, None).expect("posted");
    to.post_close().expect("posted");
    // The end of the stream, and the close that made it.
    for _ in 0..2 {
        let event = next(&set);
        match (event.op, event.user) {
            (Op::Close, 3) => assert_eq!(event.error, None),
            (Op::Read, 2) => assert_eq!(event.error.map(|e| e.class()), Some(Class::ConnClosed)),
            _ => panic!("a stray event: {event:?}"),
        }
    }
    set.wakeup();
    expect(&set, Op::Wakeup, 0);
    set.destroy_now().expect("destroyed");
}

/// Two threads wait, one posts and one writes: each event comes once, and the progress functions before it.
#[test]
fn several_threads_wait() {
    const ROUNDS: usize = 4;
    const SOCKS: u64 = 3;
    let set = &Set::new().expect("a set");
    let (socks, writers): (Vec<Sock>, Vec<PipeWriter>) = (0..SOCKS).map(|user| reader(set, user)).unzip();
    let heard: Mutex<Vec<Vec<u8>>> = Mutex::new(vec![Vec::new(); SOCKS as usize]);
    let (left, parts) = (AtomicUsize::new(SOCKS as usize * ROUNDS), Arc::new(AtomicUsize::new(0)));
    let post = |sock: &Sock| {
        let parts = Arc::clone(&parts);
        let progress = move |bytes: usize, _: u64| {
            assert_eq!(bytes, 1);
            parts.fetch_add(1, Ordering::Relaxed);
        };
        sock.post_read(vec![0; 2], 2, 2, Some(Box::new(progress))).expect("posted");
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while left.load(Ordering::Acquire) > 0 {
                    let event = next(set);
                    if event.op == Op::Wakeup {
                        continue;
                    }
                    assert_eq!((event.op, &event.error, event.bytes), (Op::Read, &None, 2));
                    heard.lock().expect("ours")[event.user as usize].extend(event.data());
                    if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                        (0..2).for_each(|_| set.wakeup());
                    }
                    post(&set.sock(event.sock.expect("a sock")).expect("it is there"));
                }
            });
        }
        scope.spawn(|| socks.iter().for_each(post));
        for mut writer in &writers {
            scope.spawn(move || {
                (0..2 * ROUNDS as u8).for_each(|byte| writer.write_all(&[byte]).expect("written"))
            });
        }
    });
    for bytes in heard.into_inner().expect("ours") {
        assert!(bytes.into_iter().eq(0..2 * ROUNDS as u8));
    }
    assert!(parts.load(Ordering::Relaxed) <= SOCKS as usize * ROUNDS);
    set.destroy_now().expect("destroyed");
}

/// A close while another thread is in the middle of it.
#[test]
fn closes_race_with_transfers() {
    for round in 0..if cfg!(miri) { 3 } else { 50 } {
        let set = &Set::new().expect("a set");
        let (from, mut writer): (Sock, PipeWriter) = reader(set, 1);
        from.post_read(vec![0; 4], 2, 4, None).expect("posted");
        std::thread::scope(|scope| {
            // Nobody may be there any more to read it.
            scope.spawn(move || drop(writer.write_all(&[round; 2])));
            scope.spawn(move || from.post_close().expect("posted"));
            let read = next(set);
            assert!(read.error.is_none() || read.error.is_some_and(|e| e.class() == Class::SockClosed));
            expect(set, Op::Close, 1);
        });
        assert!(set.is_empty());
    }
}

/// Waiters that find a set destroyed leave it, also those that were about to fall asleep just then.
#[test]
fn a_destroyed_set_is_left() {
    for _ in 0..if cfg!(miri) { 4 } else { 300 } {
        let set = &Set::new().expect("a set");
        std::thread::scope(|scope| {
            let waiters: Vec<_> =
                (0..2).map(|_| scope.spawn(|| set.wait(Some(LONG)).map_err(|e| e.class()))).collect();
            set.destroy().expect("destroyed");
            for waiter in waiters {
                assert_eq!(waiter.join().expect("ended"), Err(Class::BadSet));
            }
        });
    }
}

/// A set that nobody has any more lets go of all it had: descriptors, operations, and what was still to be looked at.
#[test]
fn a_forgotten_set_is_gone() {
    let set = Set::new().expect("a set");
    let (from, to) = ends(&set, 1);
    let ((idle, busy), (kept, mut far)) = (ends(&set, 2), reader(&set, 7));
    // One is posted, one has come to its end, and two have changes that nobody was told of.
    idle.post_read(vec![0; 8], 1, 8, None).expect("posted");
    from.post_read(vec![0; 8], 1, 8, Some(Box::new(|_, _| {}))).expect("posted");
    kept.post_read(vec![0; 8], 1, 8, None).expect("posted");
    to.write(b"a").expect("written");
    busy.write(b"b").expect("written");
    far.write_all(b"c").expect("written");
    set.wait(Some(LONG)).expect("waited").expect("the first of them");
    from.post_close().expect("posted");
    let another = set.clone();
    drop((set, from, to, idle, busy));
    assert_eq!(another.len(), 5, "it is still there");
    drop(another);
    // The other end is still there, since somebody has its sock; but the set is not.
    assert_eq!(kept.post_read(vec![0; 8], 1, 8, None).expect_err("gone").class(), Class::BadSet);
    far.write_all(b"d").expect("written");
    drop(kept);
    assert_eq!(far.write_all(b"e").expect_err("nobody reads").kind(), std::io::ErrorKind::BrokenPipe);
}
