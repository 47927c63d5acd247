//! Polling and waiting: bursts, the idle path, errors, tasks, sleeping.

use crate::fake::*;
use crate::in_every_mode;
use crate::messages::{SHORT, pattern};
use gasworks_core::{
    Category, CoreMode, Engine, Error, Flow, Machine, Outgoing, Policy, Transfer, Turned, WaitMode, WireError,
};
use gasworks_rdma::Direction;
use gasworks_shmem::inbox::MAX_INLINE;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{Par, Seq};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WIDE: Flow = Flow { depth: 500, total: 5000, volume: 0 };

fn gone() -> Error {
    Error::Wire(WireError::PeerGone { rank: 1 })
}

/// An idle poll over shared memory is counted, returns what is owed, and sees to a failure.
#[test]
fn an_idle_poll_returns_credits_and_tells_a_failure() {
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan::kinds()[0]);
        let poll = || job.engines[0].poll();
        for polls in 1..4 {
            assert_eq!((poll(), job.engines[0].peek().polls), (Ok(0), polls));
        }
        assert_eq!(job.engines[1].request(0, &SHORT), Ok(()));
        assert_eq!((poll(), job.engines[0].peek().owed_to), (Ok(1), vec![(1, 1)]));
        assert_eq!((poll(), job.engines[0].peek().owed_to), (Ok(0), vec![]));
        // A failure is told by the next poll, though nothing has come, and once.
        for _ in 0..2 {
            job.engines[0].fail_later(gone());
            assert_eq!((poll(), poll()), (Err(gone()), Ok(0)));
        }
    }
    in_every_mode!(check);
}

/// A poll that cannot return credits fails, on the idle path as on the other, and the credits stay owed.
#[test]
fn credits_that_do_not_leave_are_owed_and_said() {
    for plan in &Plan::kinds()[..2] {
        let job = Job::<Par>::new(plan);
        assert_eq!(job.engines[1].request(0, &SHORT), Ok(()));
        assert_eq!(job.engines[0].poll(), Ok(1));
        job.wire(0).refuse_room.push_back(WireError::PeerGone { rank: 1 });
        assert_eq!((job.engines[0].poll(), job.engines[0].peek().owed_to), (Err(gone()), vec![(1, 1)]));
        job.poll();
        job.assert_quiet();
    }
}

/// A poll takes one message, the next ones twice as many while they find so many, up to 20.
#[test]
fn a_poll_takes_more_where_messages_follow_each_other() {
    let job = Job::<Seq>::new(&Plan { flow: WIDE, ..Plan::default() });
    (0..95).for_each(|_| assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(())));
    let handled = [(); 10].map(|()| job.engines[1].poll().expect("nothing is wrong"));
    assert_eq!(handled, [1, 2, 4, 8, 16, 20, 20, 20, 4, 0]);
    assert_eq!(job.wire(1).bursts, [1, 2, 4, 8, 16, 20, 20, 20, 20, 1]);
}

/// The engine takes messages of one cache line from the queues, and leaves the rest of the burst to `Wire::poll`.
#[test]
fn a_poll_takes_long_messages_among_short_ones() {
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan { flow: WIDE, ..Plan::kinds()[0].clone() });
        let payload = pattern(MAX_INLINE);
        let medium = Outgoing { category: Category::Medium, handler: REQUEST[1], payload: &payload, ..SHORT };
        let send = |what: &[&Outgoing<'_>]| {
            what.iter().for_each(|m| assert_eq!(job.engines[0].try_request(1, m), Ok(())))
        };
        send(&[&SHORT, &SHORT, &SHORT, &medium, &medium, &SHORT]);
        let handled = [(); 4].map(|()| job.engines[1].poll().expect("nothing is wrong"));
        assert_eq!(handled, [1, 2, 3, 0]);
        assert_eq!(job.wire(1).bursts, [4], "of 4 that the third poll was to take, none was taken before");
        send(&[&SHORT, &SHORT, &SHORT, &SHORT, &SHORT, &medium]);
        let handled = [(); 4].map(|()| job.engines[1].poll().expect("nothing is wrong"));
        assert_eq!(handled, [1, 2, 3, 0]);
        assert_eq!(job.wire(1).bursts[1..], [2], "of 4, two were taken before");
        // A poll of a rank that has nothing to do begins anew.
        send(&[&SHORT, &SHORT]);
        assert_eq!([(); 3].map(|()| job.engines[1].poll()), [Ok(1), Ok(1), Ok(0)]);
        assert_eq!(job.seen().iter().filter(|seen| seen.payload == payload).count(), 3);
    }
    in_every_mode!(check);
}

/// A poll returns the number of messages of all transports and of completed transfers.
#[test]
fn a_poll_counts_messages_and_transfers() {
    let mut bytes = [0; 8];
    let job = Job::<Par>::new(&Plan { ranks: 3, sharing: 2, descriptors: 4, flow: WIDE, ..Plan::default() });
    (1..3).for_each(|from| assert_eq!(job.engines[from].try_request(0, &SHORT), Ok(())));
    let (local, len) = (bytes.as_mut_ptr(), bytes.len());
    let put =
        Transfer { direction: Direction::Put, peer: 2, offset: 0, local, len, set: None, local_apart: false };
    for _ in 0..3 {
        // SAFETY: `bytes` is declared before the job, whose NIC reads it, and is not changed.
        unsafe { job.engines[0].transfer(&put, None) }.map_err(|refused| refused.0).expect("started");
    }
    assert_eq!(job.engines[0].poll(), Ok(5));
    assert_eq!(job.seen().iter().map(|seen| seen.from).collect::<Vec<_>>(), [1, 2]);
    // A transport that fails is said, though another has brought something, and transfers go on.
    job.wire(0).broken = Some(WireError::PeerGone { rank: 1 });
    assert_eq!(job.engines[1].try_request(0, &SHORT), Ok(()));
    // SAFETY: `bytes` is still there and unchanged, for this put as for those before: it is declared before the job.
    let id = unsafe { job.engines[0].transfer(&put, None) }.map_err(|refused| refused.0).expect("started");
    assert_eq!((job.engines[0].poll(), job.seen().len()), (Err(gone()), 1));
    assert!(job.engines[0].test(id).is_ok_and(|done| done.is_some()));
}

#[test]
fn a_wait_lasts_until_it_is_done() {
    fn check<M: TestMode>() {
        for plan in Plan::kinds() {
            let job = Job::<M>::new(&plan);
            let mut asked = 0;
            let done = || {
                asked += 1;
                asked > 3
            };
            assert_eq!(job.engines[0].wait_until(done), Ok(()));
            assert_eq!((asked, job.engines[0].peek().polls), (4, 2));
            job.engines[0].fail_later(gone());
            assert_eq!(job.engines[0].wait_until(|| false), Err(gone()));
            assert_eq!(job.engines[0].wait_until(|| true), Ok(()));
        }
    }
    in_every_mode!(check);
}

fn policy(spins: u32, yields: u32) -> Policy {
    let (first_sleep, longest_sleep) = (Duration::from_millis(1), Duration::from_secs(1));
    Policy { spins, yields, first_sleep, longest_sleep }
}

/// A waiting rank spins, yields, then sleeps twice as long each time; work resets it, and the wait mode changes it.
#[test]
fn a_rank_sleeps_after_turns_without_work() {
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan { policy: policy(1, 1), ..Plan::kinds()[0].clone() });
        let engine = &job.engines[0];
        let turns = |count: u32| {
            let (mut waiting, before) = (engine.sleeper(), engine.peek().sleeps);
            (0..count).for_each(|_| engine.turn(&mut waiting).expect("nothing is wrong"));
            (waiting, engine.peek().sleeps - before)
        };
        assert_eq!(turns(2).1, 0);
        let begun = Instant::now();
        let (mut waiting, slept) = turns(4);
        assert_eq!(slept, 2);
        assert!(begun.elapsed() >= Duration::from_millis(3), "1 ms, then 2 ms");
        assert_eq!(job.engines[1].request(0, &SHORT), Ok(()));
        let before = engine.peek().sleeps;
        (0..3).for_each(|_| engine.turn(&mut waiting).expect("nothing is wrong"));
        assert_eq!(engine.peek().sleeps, before, "it has worked, spun and yielded");
        assert_eq!(engine.wait_mode(), WaitMode::SpinBlock);
        for (mode, slept) in [(WaitMode::Spin, 0), (WaitMode::Block, 4), (WaitMode::SpinBlock, 2)] {
            engine.set_wait_mode(mode);
            assert_eq!((engine.wait_mode(), turns(4).1), (mode, slept));
        }
    }
    in_every_mode!(check);
}

/// Before a rank sleeps it asks each of its transports whether anything has come.
#[test]
fn a_rank_of_several_transports_asks_all_before_it_sleeps() {
    for ranks in [2, 3] {
        let job = Job::<Par>::new(&Plan { ranks, sharing: 2, policy: policy(0, 0), ..Plan::default() });
        job.engines[0].turn(&mut job.engines[0].sleeper()).expect("nothing is wrong");
        assert_eq!((job.wire(0).armed, job.engines[0].peek().sleeps), (ranks - 1, 1));
    }
}

/// A rank does not sleep while a transfer is under way or a step is postponed.
#[test]
fn nobody_sleeps_on_transfers_and_what_is_postponed() {
    let long = pattern(LONG);
    let job = Job::<Seq>::new(&Plan { descriptors: 4, ..Plan::default() });
    let sleeps = || {
        let engine = &job.engines[0];
        let before = job.wire(0).armed;
        engine.turn(&mut engine.sleeper()).expect("nothing is wrong");
        job.wire(0).armed > before
    };
    assert!(sleeps());
    job.nic(0).hold = Hold::All;
    let message = Outgoing { category: Category::Long, handler: REQUEST[2], payload: &long, ..SHORT };
    // SAFETY: `long` is declared before the job, whose NIC reads it, and is not changed.
    let sent = unsafe { job.engines[0].try_request_nb(1, &message, None, None) };
    assert!(sent.is_ok() && !sleeps());
    job.wire(0).refuse_room.extend(vec![WireError::Busy { to: 1 }; 4]);
    job.nic(0).hold = Hold::Nothing;
    job.engines[0].poll().expect("nothing is wrong");
    assert_eq!(job.engines[0].peek().postponed, 1);
    assert!(!sleeps() && !sleeps() && sleeps());
}

/// In `Par` a poll that made progress keeps a thread from sleeping that began to wait before; other polls do not.
#[test]
fn work_of_another_thread_ends_sleeps() {
    fn stays<M: TestMode>(plan: &Plan, act: impl Fn(&Job<M>)) -> bool {
        let job = Job::<M>::new(plan);
        let mut waiting = job.engines[0].sleeper();
        act(&job);
        job.engines[0].turn(&mut waiting).expect("nothing is wrong");
        assert_eq!(job.wire(0).armed, 1, "it was to sleep");
        job.engines[0].peek().sleeps == 1
    }
    for plan in Plan::kinds() {
        let nothing = |job: &Job<Par>| assert_eq!(job.engines[0].poll(), Ok(0));
        let message = |job: &Job<Par>| {
            assert_eq!(job.engines[1].request(0, &SHORT), Ok(()));
            assert_eq!(job.engines[0].poll(), Ok(1));
        };
        let failure = |job: &Job<Par>| {
            job.engines[0].fail_later(gone());
            assert_eq!(job.engines[0].poll(), Err(gone()));
        };
        let own = |job: &Job<Par>| assert_eq!(job.engines[0].request(0, &SHORT), Ok(()));
        let seen = (stays(&plan, nothing), stays(&plan, message), stays(&plan, failure), stays(&plan, own));
        assert_eq!(seen, (true, false, true, false));
        // A rank of one thread has no other.
        let message = |job: &Job<Seq>| {
            assert_eq!(job.engines[1].request(0, &SHORT), Ok(()));
            assert_eq!(job.engines[0].poll(), Ok(1));
        };
        assert!(stays(&plan, message));
    }
    // What comes with an error counts as well.
    let broken = |job: &Job<Par>| {
        job.wire(0).broken = Some(WireError::PeerGone { rank: 1 });
        assert_eq!(job.engines[0].poll(), Err(gone()));
    };
    assert!(!stays(&Plan::default(), broken));
}

/// Is over at its third turn, by an error if it is to fail. Its turns are counted.
struct Third {
    fails: bool,
    own: AtomicU32,
    all: Arc<AtomicU32>,
}

impl Third {
    fn new(fails: bool, all: &Arc<AtomicU32>) -> Arc<Self> {
        Arc::new(Self { fails, own: AtomicU32::new(0), all: all.clone() })
    }
}

impl<M: CoreMode> Machine<M> for Third {
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error> {
        assert_eq!(engine.rank(), 0);
        self.all.fetch_add(1, Relaxed);
        match self.own.fetch_add(1, Relaxed) {
            2 if self.fails => Err(gone()),
            2 => Ok(Turned::Ended),
            _ => Ok(Turned::Waits),
        }
    }
}

/// In every poll, until they are over, and no longer; a poll tells of one that fails, and those behind it have their turns in the next.
#[test]
fn machines_get_turns_until_they_are_over() {
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan::kinds()[0]);
        let (engine, all) = (&job.engines[0], Arc::new(AtomicU32::new(0)));
        for fails in [false, true, false] {
            engine.start_machine(Third::new(fails, &all));
        }
        let polled = || (engine.poll(), all.load(Relaxed));
        assert_eq!((polled(), polled()), ((Ok(0), 3), (Ok(0), 6)));
        assert_eq!((polled(), polled(), polled()), ((Err(gone()), 8), (Ok(0), 9), (Ok(0), 9)));
    }
    in_every_mode!(check);
}

/// However many there are, each has one turn in a poll.
#[test]
fn many_machines_have_a_turn_each() {
    const MANY: u32 = 150;
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan::kinds()[0]);
        let (engine, all) = (&job.engines[0], Arc::new(AtomicU32::new(0)));
        let machines: Vec<_> = (0..MANY).map(|_| Third::new(false, &all)).collect();
        machines.iter().for_each(|machine| engine.start_machine(machine.clone()));
        for turns in [1, 2, 3, 3] {
            assert_eq!((engine.poll(), all.load(Relaxed)), (Ok(0), turns * MANY));
            assert!(
                machines.iter().all(|machine| machine.own.load(Relaxed) == turns),
                "one had another's turn"
            );
        }
    }
    in_every_mode!(check);
}

/// Its turn may start another, whose first turn is in the next poll.
#[test]
fn a_machine_may_start_another() {
    struct First(Arc<AtomicU32>);
    impl<M: CoreMode> Machine<M> for First {
        fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error> {
            engine.start_machine(Third::new(false, &self.0));
            Ok(Turned::Ended)
        }
    }
    fn check<M: TestMode>() {
        let job = Job::<M>::new(&Plan::kinds()[0]);
        let (engine, all) = (&job.engines[0], Arc::new(AtomicU32::new(0)));
        engine.start_machine(Arc::new(First(all.clone())));
        for turns in [0, 1, 2, 3, 3] {
            assert_eq!((engine.poll(), all.load(Relaxed)), (Ok(0), turns));
        }
    }
    in_every_mode!(check);
}
