//! Many threads, and many descriptors.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use crate::common::*;
use gasworks_sock::{Op, Sock};
use gasworks_sync::atomic::{AtomicUsize, Ordering};

/// Waiters that answer, posters that post, wakers that wake: each event comes once, and in each sock's order.
#[test]
fn each_event_is_delivered_once() {
    const SOCKS: usize = 16;
    const ROUNDS: usize = 300;
    const WAITERS: usize = 4;
    let set = set();
    let (socks, peers): (Vec<Sock>, Vec<UnixStream>) =
        (0..SOCKS).map(|user| unix_pair(&set, user as u64)).unzip();
    let seen: Mutex<HashMap<(Op, u64), usize>> = Mutex::default();
    let left = AtomicUsize::new(SOCKS * ROUNDS);
    std::thread::scope(|scope| {
        for mut peer in &peers {
            // The other end sends each number and gets it back; it stays open to the end of the test.
            scope.spawn(move || {
                for round in 0..ROUNDS as u64 {
                    peer.write_all(&round.to_ne_bytes()).expect("written");
                    let mut back = [0; 8];
                    peer.read_exact(&mut back).expect("read");
                    assert_eq!(u64::from_ne_bytes(back), round);
                }
            });
        }
        for _ in 0..WAITERS {
            scope.spawn(|| {
                while left.load(Ordering::Acquire) > 0 {
                    let event = next(&set);
                    assert_eq!(event.error, None);
                    *seen.lock().expect("ours").entry((event.op, event.user)).or_default() += 1;
                    let sock = event.sock.and_then(|id| set.sock(id));
                    match (event.op, sock) {
                        (Op::Read, Some(sock)) => {
                            assert_eq!(event.bytes, 8);
                            sock.post_write(event.data().to_vec(), 8, 8, None).expect("posted");
                        }
                        (Op::Write, Some(sock)) => {
                            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                                (0..WAITERS).for_each(|_| set.wakeup());
                            }
                            sock.post_read(vec![0; 64], 8, 64, None).expect("posted");
                        }
                        (Op::Wakeup, None) => {}
                        other => panic!("a stray event: {other:?}"),
                    }
                }
            });
        }
        // Posts come from a thread that never waits.
        scope.spawn(|| {
            socks.iter().for_each(|sock| sock.post_read(vec![0; 64], 8, 64, None).expect("posted"))
        });
    });
    let seen = seen.into_inner().expect("ours");
    for user in 0..SOCKS as u64 {
        assert_eq!((seen[&(Op::Read, user)], seen[&(Op::Write, user)]), (ROUNDS, ROUNDS));
    }
}

/// As many wake-ups as there were calls, whoever waits.
#[test]
fn wakeups_of_many_threads_are_counted() {
    const EACH: usize = 500;
    let set = set();
    let woken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(|_| set.wakeup()));
        }
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    expect(&set, Op::Wakeup, 0);
                    woken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(woken.load(Ordering::Relaxed), 4 * EACH);
    expect_nothing(&set);
}

/// One thread posts and closes while others wait: what was posted ends before the close, always.
#[test]
fn a_close_comes_last_whoever_waits() {
    const SOCKS: u64 = 400;
    let ends = Mutex::new(HashMap::<u64, Vec<Op>>::new());
    let closed = AtomicUsize::new(0);
    let (ends, closed, set) = (&ends, &closed, &set());
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(move || {
                    while closed.load(Ordering::Acquire) < SOCKS as usize {
                        let event = next(set);
                        if event.op == Op::Close {
                            if closed.fetch_add(1, Ordering::AcqRel) + 1 == SOCKS as usize {
                                (0..3).for_each(|_| set.wakeup());
                            }
                            assert!(event.sock.is_some_and(|id| set.sock(id).is_none()));
                        }
                        ends.lock().expect("ours").entry(event.user).or_default().push(event.op);
                    }
                })
            })
            .collect();
        for user in 1..=SOCKS {
            let (sock, mut peer) = unix_pair(set, user);
            sock.post_read(vec![0; 8], 4, 8, None).expect("posted");
            peer.write_all(&[1; 4]).expect("written");
            sock.post_write(vec![2; 8], 8, 8, None).expect("posted");
            sock.post_close().expect("posted");
        }
        for waiter in waiters {
            waiter.join().expect("ended");
        }
        let ends = ends.lock().expect("ours");
        for user in 1..=SOCKS {
            let mut ops = ends[&user].clone();
            ops.sort_by_key(|op| (*op == Op::Close, *op == Op::Write));
            assert_eq!(ops, [Op::Read, Op::Write, Op::Close], "each once");
        }
    });
}

/// Ten thousand descriptors in one set, event counters and sockets; a wait's work is that of the busy ones.
#[test]
fn idle_descriptors_cost_nothing() {
    const IDLE: usize = 10_000;
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("raised");
    assert!(hard as usize > IDLE + 500, "ulimit -Hn is {hard}: too low");
    let set = set();
    let (sock, mut peer) = unix_pair(&set, 1);
    let few = work(&set, &sock, &mut peer);
    let mut idle: Vec<Sock> = Vec::new();
    while idle.len() < IDLE {
        let mut add = |fd| idle.push(set.adopt(10 + idle.len() as u64, fd).expect("adopted"));
        let counter = gasworks_os::eventfd::EventFd::new().expect("a counter");
        add(counter.as_fd().try_clone_to_owned().expect("a copy"));
        let (one, other) = UnixStream::pair().expect("a pair");
        add(one.into());
        add(other.into());
    }
    for sock in &idle {
        sock.post_read(vec![0; 16], 8, 16, None).expect("posted");
    }
    let many = work(&set, &sock, &mut peer);
    assert_eq!(many, few, "calls, and changes that they told of");
    // They are all alive: a counter reads what is written to it, a socket what is written to the next.
    for chunk in idle.chunks_exact(3).step_by(331) {
        for (writer, reader) in [(0, 0), (1, 2)] {
            chunk[writer].write(&1u64.to_ne_bytes()).expect("written");
            expect(&set, Op::Read, chunk[reader].user());
        }
    }
    set.destroy_now().expect("destroyed");
}
/// How many calls to the system, and changes that they told of, a hundred echoes take.
fn work(set: &gasworks_sock::Set, sock: &Sock, peer: &mut UnixStream) -> (u64, u64) {
    let before = set.counts();
    for _ in 0..100 {
        sock.post_read(vec![0; 8], 1, 8, None).expect("posted");
        peer.write_all(b"x").expect("written");
        expect(set, Op::Read, 1);
    }
    let after = set.counts();
    (after.waits - before.waits, after.changes - before.changes)
}
