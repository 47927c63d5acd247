//! Many threads of two ranks at once: nothing is lost, comes twice or comes mixed up.

use super::fake::{self, CONFIG, Watchdog};
use super::messages::{TIMES, check, send};
use crate::Opened;
use gasworks_core::{Arrived, Class, Wire, WireError};
use gasworks_shmem::credit::Credits;
use gasworks_sync::Par;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const THREADS: u64 = 4;
/// Requests from each thread.
const ROUNDS: u64 = 250 * TIMES;
const ALL: u64 = THREADS * ROUNDS;
/// From the seed of a request to that of its reply, which so has another size and other bytes.
const REPLY: u64 = 1 << 20;

/// How often each of the messages that a rank is to get has come.
struct Seen {
    times: Box<[AtomicU32]>,
    count: AtomicU64,
}

impl Seen {
    fn new() -> Self {
        Self { times: (0..ALL).map(|_| AtomicU32::new(0)).collect(), count: AtomicU64::new(0) }
    }

    fn note(&self, seed: u64) {
        self.times[seed as usize].fetch_add(1, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    fn all_came(&self) -> bool {
        self.count.load(Relaxed) >= ALL
    }
}

#[test]
fn four_threads_on_each_side() {
    fake::run::<Par, _>(2, CONFIG, |me, Opened { wire, .. }| {
        let peer = 1 - me;
        let credits = Credits::new(2, CONFIG.depth, CONFIG.total, u64::MAX);
        let (handled, answered) = (Seen::new(), Seen::new());
        let sink = &|message: Arrived<'_>| {
            assert_eq!(message.from, peer);
            match check(&message) {
                (b'q', seed) => {
                    send(&wire, peer, Class::Reply, b'r', seed + REPLY).expect("replies always fit");
                    handled.note(seed);
                }
                (b'r', seed) => {
                    credits.give(peer, 1, 0).expect("a credit that was out");
                    answered.note(seed - REPLY);
                }
                (kind, _) => panic!("a message of kind {kind}"),
            }
        };
        let work = |thread: u64| {
            let watchdog = Watchdog::new();
            let mut next = thread * ROUNDS;
            let end = next + ROUNDS;
            while next < end || !handled.all_came() || !answered.all_came() {
                if next < end && credits.take(peer, 0).is_ok() {
                    match send(&wire, peer, Class::Request, b'q', next) {
                        Ok(()) => next += 1,
                        Err(error) => {
                            assert_eq!(error, WireError::Busy { to: peer });
                            credits.give(peer, 1, 0).expect("ours");
                        }
                    }
                }
                wire.poll(4, &mut |message| sink(message)).expect("a healthy queue");
                watchdog.check(|| format!("rank {me} thread {thread} at {next} of {end}, {credits:?}"));
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            (0..THREADS).for_each(|thread| {
                scope.spawn(move || work(thread));
            });
        });
        for seen in [&handled, &answered] {
            assert!(
                seen.times.iter().all(|times| times.load(Relaxed) == 1),
                "a message was lost or came twice"
            );
        }
        assert_eq!(credits.total_out(), 0);
        // Who handled the last reply has freed its block, and the peer has some beforehand; it may still be freeing the last request's.
        assert!(wire.host.mine().reply_blocks().claimed() <= crate::layout::SLACK as usize / 2);
    });
}
