//! Puts, gets, atomic operations, queries, and Longs by the NIC: start, completion, failure.

use crate::fake::*;
use crate::in_every_mode;
use crate::messages::{SHORT, pattern};
use gasworks_core::engine::query::NUMBER;
use gasworks_core::ops::Answer as Bytes;
use gasworks_core::{
    Also, Categories, Category, CoreMode, Error, Incoming, OpId, Outgoing, Transfer, WireError, counts_of,
};
use gasworks_memory::MemoryError;
use gasworks_memory::atomic::{Change, Ops, Type, Update};
use gasworks_rdma::{Direction, EngineError, NicError};
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{Par, Seq, VolatileSlice};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// The category of a put without local completion of its own.
const PUT_ALONE: Categories = Categories::from_bits_truncate(2);
const FAILURE: NicError = NicError::PeerGone { peer: 1 };

fn plan(descriptors: usize) -> Plan {
    Plan { descriptors, ..Plan::default() }
}

fn transfer(direction: Direction, local: &mut [u8]) -> Transfer {
    let (local, len) = (local.as_mut_ptr(), local.len());
    Transfer { direction, peer: 1, offset: 8, local, len, set: None, local_apart: false }
}

/// Starts a transfer. The test keeps its bytes until the job is dropped.
fn start<M: TestMode>(job: &Job<M>, transfer: &Transfer) -> Result<OpId, Error> {
    // SAFETY: each test declares the local bytes before the job, and does not touch them while a transfer is under way.
    unsafe { job.engines[0].transfer(transfer, None) }.map_err(|(error, _)| error)
}

fn wait<M: TestMode>(job: &Job<M>, transfer: &Transfer, immediate: bool) -> Result<(), Error> {
    // SAFETY: each test declares the local bytes before the job, and they are not used during this call, which ends with the transfer.
    unsafe { job.engines[0].transfer_and_wait(transfer, immediate) }
}

fn ended<M: TestMode>(job: &Job<M>, id: OpId) -> Option<Result<(), NicError>> {
    job.engines[0].test(id).expect("it is known").map(|(result, _)| result)
}

fn update(change: Change, fetches: bool, operand: u64) -> Update {
    Update { of: Type::U64, change, fetches, operands: [operand, 0] }
}

#[test]
fn bytes_are_moved_and_words_updated() {
    fn check<M: TestMode>() {
        let (mut put, mut got, mut was) = (pattern(40), vec![0; 40], vec![0; 8]);
        let job = Job::<M>::new(&plan(16));
        let add = Direction::Update(update(Change::Add, true, 5));
        for waits in [true, false] {
            for (direction, local) in
                [(Direction::Put, &mut put), (Direction::Get, &mut got), (add, &mut was)]
            {
                let transfer = transfer(direction, local);
                if waits {
                    assert_eq!(wait(&job, &transfer, true), Ok(()));
                } else {
                    let id = start(&job, &transfer).expect("started");
                    assert_eq!((ended(&job, id), job.engines[0].poll()), (None, Ok(1)));
                    assert_eq!(ended(&job, id), Some(Ok(())));
                }
            }
            assert_eq!(got, pattern(40));
            assert_eq!(was, pattern(40)[..8]);
            let sum = u64::from_le_bytes(was[..].try_into().expect("8 bytes")) + 5;
            assert_eq!(read(job.fabric.segment(1))[8..16], sum.to_le_bytes());
            got.fill(0);
        }
        assert_eq!(job.nic(0).posts.iter().map(|post| post.2).collect::<Vec<_>>(), [40, 40, 8, 40, 40, 8]);
        assert_eq!(job.engines[0].atomics().on(Type::U64), Ops::all());
        assert_eq!((job.engines[0].has_network(), job.engines[0].poll()), (true, Ok(0)));
    }
    in_every_mode!(check);
}

#[test]
fn what_cannot_be_transferred_is_refused() {
    let mut bytes = [0; 16];
    let ways = [
        (Direction::Put, "put"),
        (Direction::Get, "get"),
        (Direction::Update(update(Change::Inc, false, 0)), "atomic operation"),
    ];
    for (direction, during) in ways {
        let (job, none) = (Job::<Seq>::new(&plan(1)), Job::<Seq>::new(&plan(0)));
        let usual = transfer(direction, &mut bytes[..8]);
        let cause = |offset| MemoryError::OutsideSegment { rank: 1, offset, len: 8, segment: 4096 };
        let beyond = Transfer { offset: 4089, ..usual };
        let nobody = Transfer { peer: 2, ..usual };
        let rows = [
            (&none, usual, Error::Unreachable { during, rank: 1 }),
            (&job, beyond, Error::Memory { during, cause: cause(4089) }),
            (&job, nobody, Error::Memory { during, cause: MemoryError::NoSuchRank { rank: 2, ranks: 2 } }),
        ];
        for (job, transfer, refused) in rows {
            assert_eq!(
                (start(job, &transfer), wait(job, &transfer, false)),
                (Err(refused.clone()), Err(refused))
            );
        }
        assert!(!none.engines[0].has_network());
        // Without a network only messages are left, which nobody answers once the job is over.
        none.engines[0].end();
        assert_eq!((start(&none, &usual), wait(&none, &usual, false)), (Err(Error::Over), Err(Error::Over)));
        // All descriptors in use: who cannot wait is told, and who can waits.
        job.nic(0).hold = Hold::All;
        let id = start(&job, &usual).expect("started");
        let busy = Error::Busy { to: 1, what: "no post descriptor is free" };
        assert_eq!((start(&job, &usual), wait(&job, &usual, true)), (Err(busy.clone()), Err(busy)));
        let nic = job.nics[0].clone();
        assert_eq!(with_peers(move || lock(&nic).hold = Hold::Nothing, || wait(&job, &usual, false)), Ok(()));
        assert_eq!(ended(&job, id), Some(Ok(())));
        // Only its own kind of atomic operations does a NIC do: no waiting helps.
        let float = Update { of: Type::F64, ..update(Change::Inc, false, 0) };
        let strange = Transfer { direction: Direction::Update(float), ..usual };
        let cause = EngineError::NoSuchAtomic { of: Type::F64, operation: Ops::INC };
        let refused = Error::Rdma { during: "atomic operation", peer: 1, cause };
        assert_eq!(
            (start(&job, &strange), wait(&job, &strange, false)),
            (Err(refused.clone()), Err(refused))
        );
        assert_eq!(job.engines[0].poll(), Ok(0));
    }
}

/// A transfer that is not started returns what it was to keep.
#[test]
fn what_is_not_started_keeps_nothing() {
    let mut bytes = [0; 8];
    let job = Job::<Par>::new(&plan(1));
    job.nic(0).hold = Hold::All;
    let usual = transfer(Direction::Put, &mut bytes);
    start(&job, &usual).expect("started");
    for transfer in [usual, Transfer { peer: 2, ..usual }] {
        // SAFETY: `bytes` is declared before the job. Nothing is started here, and the put that was only reads.
        let refused = unsafe { job.engines[0].transfer(&transfer, Some(Box::new(7u32))) };
        let (_, kept) = refused.expect_err("it cannot be started");
        assert_eq!(kept.and_then(Par::unkeep::<u32>), Some(7));
    }
}

/// The local completion of a put comes before its end, if it was asked for.
#[test]
fn the_source_of_a_put_is_free_before_its_end() {
    for (local_apart, hold) in
        [(true, Hold::All), (true, Hold::Ends), (false, Hold::All), (false, Hold::Ends)]
    {
        let mut bytes = pattern(3000);
        let job = Job::<Par>::new(&plan(4));
        job.nic(0).hold = hold;
        let put = Transfer { local_apart, ..transfer(Direction::Put, &mut bytes) };
        let id = start(&job, &put).expect("started");
        assert_eq!(ended(&job, id.leaf(Categories::LOCAL)).is_some(), !local_apart);
        // A NIC that says nothing of a source keeps none by itself.
        let said = job.engines[0].poll();
        assert_eq!(said, Ok(usize::from(local_apart && hold == Hold::Ends)));
        assert_eq!(ended(&job, id.leaf(Categories::LOCAL)).is_some(), !local_apart || hold == Hold::Ends);
        assert_eq!((ended(&job, id.leaf(Categories::PUT)), ended(&job, id)), (None, None));
        job.nic(0).hold = Hold::Nothing;
        assert_eq!(job.engines[0].drain(), Ok(()));
        assert_eq!(ended(&job, id), Some(Ok(())));
    }
}

/// Each kind of operation counts in its own categories of a set.
#[test]
fn operations_count_as_what_they_are() {
    let rows = [
        (Direction::Put, PUT_ALONE),
        (Direction::Get, Categories::GET),
        (Direction::Update(update(Change::Get, true, 0)), Categories::GET),
        (Direction::Update(update(Change::Set, false, 0)), PUT_ALONE),
        (Direction::Update(update(Change::Set, true, 0)), Categories::UPDATE),
        (Direction::Update(update(Change::Add, false, 0)), Categories::UPDATE),
    ];
    for (direction, counts) in rows {
        let mut bytes = [0; 8];
        let job = Job::<Par>::new(&plan(4));
        job.nic(0).hold = Hold::All;
        let set = job.engines[0].open_set();
        let usual = Transfer { set: Some(set), ..transfer(direction, &mut bytes) };
        start(&job, &usual).expect("started");
        for category in [Categories::GET, Categories::LOCAL, Categories::PUT, Categories::UPDATE] {
            let counted = counts.intersects(category);
            assert_eq!(ended(&job, set.leaf(category)).is_none(), counted, "{direction:?} as {category:?}");
        }
        if let Direction::Update(update) = direction {
            assert_eq!(counts_of(&update).bits(), counts.bits());
        }
        job.nic(0).hold = Hold::Nothing;
        assert_eq!((ended(&job, set), job.engines[0].poll(), ended(&job, set)), (None, Ok(1), Some(Ok(()))));
        assert_eq!(start(&job, &usual), Err(Error::UnknownEvent), "the set is gone");
    }
}

#[test]
fn a_failure_is_told_to_whom_it_concerns() {
    fn check<M: TestMode>() {
        let mut bytes = pattern(300);
        let job = Job::<M>::new(&plan(4));
        let failed = |during| Err(Error::Nic { during, cause: FAILURE });
        for (direction, during) in [(Direction::Put, "put"), (Direction::Get, "get")] {
            let usual = transfer(direction, &mut bytes);
            job.nic(0).fail.push_back(FAILURE);
            assert_eq!(wait(&job, &usual, false), failed(during));
            job.nic(0).fail.push_back(FAILURE);
            let id = start(&job, &usual).expect("started");
            assert_eq!((job.engines[0].poll(), ended(&job, id)), (Ok(1), Some(Err(FAILURE))));
        }
        // What else goes wrong with_peers is said after it, and the transfer is over.
        let usual = transfer(Direction::Put, &mut bytes);
        let other = Error::Wire(WireError::PeerGone { rank: 1 });
        job.engines[0].fail_later(other.clone());
        assert_eq!(wait(&job, &usual, false), Err(other.clone()));
        assert_eq!(job.engines[0].poll(), Ok(0));
        job.engines[0].fail_later(other);
        job.nic(0).fail.push_back(FAILURE);
        assert_eq!(wait(&job, &usual, false), failed("put"));
        assert_eq!(read(job.fabric.segment(1))[8..308], bytes);
    }
    in_every_mode!(check);
}

struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_waker_is_woken_once_by_the_end() {
    let mut bytes = pattern(30);
    let job = Job::<Par>::new(&plan(4));
    job.nic(0).hold = Hold::All;
    let id = start(&job, &transfer(Direction::Put, &mut bytes)).expect("started");
    let count = Arc::new(Count(AtomicU32::new(0)));
    let waker = Waker::from(count.clone());
    let polled = || job.engines[0].test_or_wake(id, &waker).map(|done| done.is_some());
    assert_eq!((polled(), polled(), job.engines[0].poll()), (Ok(false), Ok(false), Ok(0)));
    assert_eq!(count.0.load(Relaxed), 0);
    job.nic(0).hold = Hold::Nothing;
    assert_eq!((job.engines[0].poll(), count.0.load(Relaxed)), (Ok(1), 1));
    assert_eq!((polled(), polled()), (Ok(true), Err(Error::UnknownEvent)));
}

/// Calls of any number of threads wait at once, each for its own transfer.
#[test]
fn many_calls_wait_at_once() {
    const CALLS: usize = 100;
    let mut bytes = vec![[7; 8]; CALLS];
    let job = Job::<Par>::new(&plan(2 * CALLS));
    job.nic(0).hold = Hold::All;
    let engine = &*job.engines[0];
    std::thread::scope(|scope| {
        for own in &mut bytes {
            scope.spawn(move || {
                // SAFETY: `own` is borrowed exclusively until the thread ends, and this call ends with the transfer.
                let ended = unsafe { engine.transfer_and_wait(&transfer(Direction::Put, own), false) };
                assert_eq!(ended, Ok(()));
            });
        }
        while job.nic(0).posts.len() < CALLS {
            std::thread::yield_now();
        }
        job.nic(0).hold = Hold::Nothing;
    });
    assert_eq!(job.nic(0).posts.len(), CALLS);
}

/// What an operation keeps is freed at its end if it was abandoned, else with the engine, but never while a transfer is
/// under way.
#[test]
fn what_is_under_way_outlives_the_engine() {
    fn check<M: TestMode>() {
        for (hold, is_abandoned, freed) in [
            (Hold::All, false, [false, false]),
            (Hold::All, true, [false, false]),
            (Hold::Nothing, false, [false, true]),
            (Hold::Nothing, true, [true, true]),
        ] {
            let mut bytes = vec![1; 8];
            let job = Job::<M>::new(&plan(4));
            job.nic(0).hold = hold;
            let kept = Arc::new(());
            let keep = Some(M::keep(kept.clone()));
            // SAFETY: `bytes` is declared before the job, whose NIC alone touches it, and goes after it.
            let started = unsafe { job.engines[0].transfer(&transfer(Direction::Put, &mut bytes), keep) };
            let id = started.map_err(|refused| refused.0).expect("started");
            if is_abandoned {
                job.engines[0].abandon(id);
            }
            job.engines[0].poll().expect("nothing is wrong");
            assert_eq!(Arc::strong_count(&kept) == 1, freed[0], "{hold:?}, abandoned: {is_abandoned}");
            drop(job);
            assert_eq!(Arc::strong_count(&kept) == 1, freed[1], "{hold:?}, abandoned: {is_abandoned}");
        }
    }
    in_every_mode!(check);
}

/// A drain waits for transfers, for postponed steps, and for the transports.
#[test]
fn a_drain_waits_for_all_of_it() {
    fn check<M: TestMode>() {
        let mut bytes = vec![1; 8];
        let job = Job::<M>::new(&plan(4));
        assert_eq!(job.engines[0].drain(), Ok(()));
        // A transfer.
        job.nic(0).hold = Hold::All;
        start(&job, &transfer(Direction::Put, &mut bytes)).expect("started");
        let (nic, mut turns) = (job.nics[0].clone(), 0);
        let release = move || {
            turns += 1;
            lock(&nic).hold = if turns < 3 { Hold::All } else { Hold::Nothing };
        };
        assert_eq!(with_peers(release, || job.engines[0].drain()), Ok(()));
        assert_eq!(read(job.fabric.segment(1))[8..16], bytes);
        // A header that has had no room.
        let long = pattern(LONG);
        let long = Outgoing { category: Category::Long, handler: REQUEST[2], payload: &long, ..SHORT };
        let busy = || WireError::Busy { to: 1 };
        job.wire(0).refuse_room.push_back(busy());
        assert_eq!(started_long(&job, &long), Err(true), "no room for a header now");
        let id = started_long(&job, &long).expect("started");
        job.wire(0).refuse_room.extend([busy(), busy(), busy(), busy()]);
        // The source is free, and the payload has landed.
        assert_eq!((job.engines[0].poll(), job.engines[0].peek().postponed), (Ok(2), 1));
        assert_eq!(ended(&job, id), Some(Ok(())));
        assert_eq!(job.engines[0].drain(), Ok(()));
        assert_eq!((job.engines[0].peek().postponed, job.fabric.waiting(1)), (0, 1));
        // Messages that the transport has not delivered.
        job.wire(0).unsettled = 5;
        assert_eq!(job.engines[0].drain(), Ok(()));
        assert_eq!(job.wire(0).unsettled, 0);
        for closed in 0..2 {
            assert_eq!(job.wire(0).closed, closed);
            job.engines[0].closed();
        }
        job.poll();
        job.assert_quiet();
    }
    in_every_mode!(check);
}

/// Starts a Long by the NIC. The error says whether it may be tried again.
fn started_long<M: TestMode>(job: &Job<M>, message: &Outgoing<'_>) -> Result<OpId, bool> {
    // SAFETY: each test declares the payload before the job, and does not change it.
    let sent = unsafe { job.engines[0].try_request_nb(1, message, None, None) };
    sent.map(|sent| sent.ok().expect("by the NIC")).map_err(|(error, _)| error.is_busy())
}

/// `try_request_nb` returns an operation if the payload goes by the NIC; otherwise it has copied the payload.
#[test]
fn a_request_lends_its_payload_until_its_operation_says_so() {
    fn check<M: TestMode>() {
        let long = pattern(LONG);
        for (plan, beside) in [(plan(4), false), (Plan { beside: true, ..plan(4) }, true)] {
            for fails in [false, true] {
                let job = Job::<M>::new(&plan);
                let kept = || Some(M::keep(7u32));
                let message =
                    |payload| Outgoing { category: Category::Long, handler: REQUEST[2], payload, ..SHORT };
                // SAFETY: the payloads are parts of `long`, which is declared before the job and not changed.
                let send = |to, payload, set| unsafe {
                    job.engines[0].try_request_nb(to, &message(payload), set, kept())
                };
                for (to, payload) in [(1, &long[..8]), (0, &long[..]), (1, &long[..0])] {
                    let sent = send(to, payload, None).map_err(|refused| refused.0).expect("sent");
                    let back = sent.expect_err("copied").and_then(M::unkeep::<u32>);
                    assert_eq!(back, Some(7));
                }
                job.poll();
                assert_eq!(job.seen().len(), 3);
                job.nic(0).hold = Hold::Ends;
                let set = job.engines[0].open_set();
                let mut ids = Vec::new();
                for set in [None, Some(set)] {
                    let sent = send(1, &long, set).map_err(|refused| refused.0).expect("sent");
                    ids.push(sent.ok().expect("an operation"));
                }
                assert_eq!(job.engines[0].out(1), (2, 0));
                // Beside its payload a header leaves at once, but it is taken only when that is there.
                assert_eq!(job.fabric.waiting(1), if beside { 2 } else { 0 });
                assert_eq!(job.engines[1].poll(), Ok(0));
                job.engines[0].poll().expect("nothing is wrong");
                // That the source is free the end says, for it is one word then.
                assert_eq!(ended(&job, ids[0]), None);
                assert_eq!(ended(&job, set.leaf(Categories::LOCAL)), None);
                if fails {
                    job.nic(0).fail.extend([FAILURE; 2]);
                }
                job.nic(0).hold = Hold::Nothing;
                let told = job.engines[0].poll();
                match fails {
                    true => {
                        assert_eq!(
                            (told, ended(&job, ids[0]), ended(&job, set)),
                            (Ok(2), Some(Err(FAILURE)), Some(Err(FAILURE)))
                        );
                        if beside {
                            assert_eq!((job.engines[1].poll(), job.fabric.waiting(1)), (Ok(0), 0));
                        } else {
                            assert_eq!(job.engines[0].out(1), (0, 0), "nothing has left");
                        }
                    }
                    false => {
                        assert_eq!((told, ended(&job, set)), (Ok(2), Some(Ok(()))));
                        job.poll();
                        assert_eq!(job.seen().iter().filter(|seen| seen.payload == long).count(), 2);
                        job.assert_quiet();
                    }
                }
            }
        }
    }
    in_every_mode!(check);
}

/// A Long that is not started takes neither credit nor room, and returns what it was to keep.
#[test]
fn a_long_that_is_not_started_takes_nothing() {
    let long = pattern(LONG);
    for beside in [false, true] {
        let job = Job::<Par>::new(&Plan { beside, ..plan(1) });
        let message = Outgoing { category: Category::Long, handler: REQUEST[2], payload: &long, ..SHORT };
        let send = |to, message: &Outgoing<'_>, set| {
            // SAFETY: `long` is declared before the job; and nothing is started.
            let sent = unsafe { job.engines[0].try_request_nb(to, message, set, Some(Box::new(7u32))) };
            let (error, kept) = sent.expect_err("it is refused");
            assert_eq!(kept.and_then(Par::unkeep::<u32>), Some(7));
            error
        };
        let gone = job.engines[0].open_set();
        assert_eq!(ended(&job, gone), Some(Ok(())));
        assert_eq!(send(1, &message, Some(gone)), Error::UnknownEvent);
        assert!(matches!(send(2, &message, None), Error::Memory { .. }));
        assert!(matches!(send(1, &Outgoing { args: &[0], ..message }, None), Error::Arguments { bytes: 1 }));
        assert!(matches!(send(0, &Outgoing { args: &[0], ..message }, None), Error::Arguments { bytes: 1 }));
        job.wire(0).refuse_room.push_back(WireError::PeerGone { rank: 1 });
        assert_eq!(send(1, &message, None), Error::Wire(WireError::PeerGone { rank: 1 }));
        job.assert_quiet();
        // No descriptor, and no credit.
        job.nic(0).hold = Hold::All;
        let id = started_long(&job, &message).expect("started");
        assert_eq!(send(1, &message, None), Error::Busy { to: 1, what: "no post descriptor is free" });
        assert!(job.engines[0].try_request(1, &message).is_err_and(|error| error.is_busy()));
        assert_eq!((job.engines[0].out(1), job.wire(0).held), ((1, 0), 0));
        (0..3).for_each(|_| assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(())));
        assert_eq!(send(1, &message, None), Error::Busy { to: 1, what: "no credit left for that rank" });
        job.nic(0).hold = Hold::Nothing;
        job.poll();
        assert_eq!((ended(&job, id), job.seen().len()), (Some(Ok(())), 4));
        job.assert_quiet();
    }
}

/// When the put of a Long request fails, no handler runs, even if the header has left already.
#[test]
fn a_long_request_that_fails_is_not_handled() {
    for beside in [false, true] {
        let long = pattern(LONG);
        let job = Job::<Par>::new(&Plan { beside, ..plan(4) });
        let message = Outgoing { category: Category::Long, handler: REQUEST[2], payload: &long, ..SHORT };
        job.nic(0).fail.push_back(FAILURE);
        let failed = Err(Error::Nic { during: "put of a long message", cause: FAILURE });
        assert_eq!((job.engines[0].request(1, &message), job.engines[0].out(1)), (failed, (0, 0)));
        job.poll();
        assert_eq!((job.seen(), job.fabric.waiting(1)), (vec![], 0));
        // A header that the transport refuses: who waits is told by the next poll.
        let gone = WireError::PeerGone { rank: 1 };
        job.wire(0).refuse_commit.push_back(gone.clone());
        assert_eq!(job.engines[0].request(1, &message), Ok(()));
        assert_eq!(job.engines[0].poll(), Err(Error::Wire(gone)));
        assert_eq!(job.engines[0].request(1, &message), Ok(()));
        job.poll();
        assert_eq!(job.seen().len(), 1);
    }
}

/// A Long reply by the NIC waits for a descriptor and for room without its handler.
#[test]
fn a_long_reply_waits_without_its_handler() {
    fn check<M: TestMode>() {
        let (payload, mut bytes) = (pattern(LONG), vec![0; 8]);
        let busy = || WireError::Busy { to: 0 };
        for beside in [false, true] {
            let job = Job::<M>::new(&Plan { beside, ..plan(1) });
            job.answer(Some(Answer {
                category: Category::Long,
                args: vec![],
                payload: payload.clone(),
                landing: 8,
            }));
            let reply_comes = || {
                job.poll();
                let seen = job.seen();
                assert_eq!(seen.len(), 2);
                assert_eq!((&seen[1].payload, seen[1].landed, seen[1].at), (&payload, Some(8), 0));
                job.fabric.segment(0).write(&[0; SEGMENT]);
                job.assert_quiet();
            };
            let handle = || {
                assert_eq!(job.engines[0].request(1, &SHORT), Ok(()));
                job.engines[1].poll().expect("nothing is wrong");
                assert_eq!(job.replied(), [Ok(())]);
            };
            handle();
            reply_comes();
            // Its only descriptor is in use.
            job.nic(1).hold = Hold::All;
            let put = Transfer { peer: 0, offset: 4000, ..transfer(Direction::Put, &mut bytes) };
            // SAFETY: `bytes` is declared before the job, and not touched while this put of the other rank is under way.
            let id =
                unsafe { job.engines[1].transfer(&put, None) }.map_err(|refused| refused.0).expect("started");
            handle();
            assert_eq!(
                (job.engines[1].peek().postponed, job.engines[0].out(1), job.wire(1).held),
                (1, (1, 0), 0)
            );
            job.nic(1).hold = Hold::Nothing;
            reply_comes();
            assert!(job.engines[1].test(id).is_ok_and(|done| done.is_some()));
            // Its header finds no room when the payload has landed.
            if !beside {
                job.nic(1).hold = Hold::All;
                handle();
                job.wire(1).refuse_room.extend([busy(), busy()]);
                job.nic(1).hold = Hold::Nothing;
                assert_eq!((job.engines[1].poll(), job.engines[1].peek().postponed), (Ok(1), 1));
                reply_comes();
            }
        }
    }
    in_every_mode!(check);
}

/// A Long reply that fails returns the credit of its request, and the poll returns the error.
#[test]
fn a_long_reply_that_fails_returns_its_credit() {
    let payload = pattern(LONG);
    let medium = Outgoing { category: Category::Medium, handler: REQUEST[1], payload: &[1; 20], ..SHORT };
    let gone = || Error::Wire(WireError::PeerGone { rank: 0 });
    for beside in [false, true] {
        for at in ["room", "put", "commit"] {
            let job = Job::<Par>::new(&Plan { beside, ..plan(4) });
            job.answer(Some(Answer {
                category: Category::Long,
                args: vec![],
                payload: payload.clone(),
                landing: 8,
            }));
            job.nic(1).hold = Hold::All;
            let refusal = WireError::PeerGone { rank: 0 };
            match at {
                "room" => job.wire(1).refuse_room.push_back(refusal),
                "put" => job.nic(1).fail.push_back(FAILURE),
                _ => job.wire(1).refuse_commit.push_back(refusal),
            }
            assert_eq!(job.engines[0].try_request(1, &medium), Ok(()));
            let told = job.engines[1].poll().and_then(|_| {
                job.nic(1).hold = Hold::Nothing;
                job.engines[1].poll()
            });
            job.nic(1).hold = Hold::Nothing;
            let during = if beside { "put of a long message" } else { "put of a long reply" };
            match at {
                "room" => assert_eq!((told, job.replied()), (Ok(0), vec![Err(gone())])),
                "put" => assert_eq!(
                    (told, job.replied()),
                    (Err(Error::Nic { during, cause: FAILURE }), vec![Ok(())])
                ),
                _ => assert_eq!((told, job.replied()), (Err(gone()), vec![Ok(())])),
            }
            job.poll();
            // What leaves beside its payload takes its credit along.
            if !beside || at == "room" {
                assert_eq!(job.engines[0].out(1), (0, 0), "{at}");
            }
        }
    }
}

/// A query completes when the reply with its number arrives.
#[test]
fn a_query_ends_with_its_answer() {
    fn check<M: TestMode>() {
        let mut place = [9u8; 4];
        let seen = VolatileSlice::from_mut(&mut place);
        let place = seen.raw();
        let job = Job::<M>::new(&Plan::kinds()[0]);
        let asked = signature("is asked", Category::Short, false, Also::ANY_COUNT);
        job.handle(150, asked, |message: &Incoming<'_, M>| {
            let args = [&message.args()[..NUMBER], &[5, 6, 7, 8]].concat();
            Ok(message.reply(&Outgoing { handler: 151, args: &args, ..SHORT })?)
        });
        let told = signature("is told", Category::Short, true, Also::ANY_COUNT);
        job.handle(151, told, |message: &Incoming<'_, M>| {
            let (number, answer) = message.args().split_first_chunk().expect("a number");
            Ok(message.engine().answered(
                message.source(),
                u64::from_le_bytes(*number),
                Ok(Bytes::Plain(answer)),
            )?)
        });
        let set = job.engines[0].open_set();
        let ask = |to, args: &mut [u8], set| {
            // SAFETY: query.1: `place` is of an array that is declared before the job, and is touched through volatile slices alone.
            unsafe { job.engines[0].query(to, (150, args), place, Categories::GET, set, Some(M::keep(7u32))) }
        };
        for of in [None, Some(set)] {
            let id = ask(1, &mut [0; 12], of).map_err(|refused| refused.0).expect("asked");
            let pending = of.unwrap_or(id);
            assert_eq!((ended(&job, pending), read(seen)), (None, vec![9; 4]));
            job.poll();
            let kept = job.engines[0].test(pending).expect("known").expect("over").1;
            assert_eq!(
                (kept.and_then(M::unkeep::<u32>), read(seen)),
                (of.is_none().then_some(7), vec![5, 6, 7, 8])
            );
            seen.write(&[9; 4]);
        }
        // A rank has something under way until it is answered.
        let id = ask(1, &mut [0; 12], None).map_err(|refused| refused.0).expect("asked");
        assert_eq!(job.engines[1].poll(), Ok(1));
        // The answer has come, and has not been looked at.
        assert_eq!((read(seen), job.engines[0].drain(), read(seen)), (vec![9; 4], Ok(()), vec![5, 6, 7, 8]));
        assert_eq!(ended(&job, id), Some(Ok(())));
        seen.write(&[9; 4]);
        // What is not asked keeps nothing.
        let refused = |to, args: &mut [u8], set| {
            let (error, kept) = ask(to, args, set).expect_err("it is refused");
            assert_eq!(kept.and_then(M::unkeep::<u32>), Some(7));
            error
        };
        assert_eq!(refused(1, &mut [0; 12], Some(set)), Error::UnknownEvent);
        assert_eq!(refused(1, &mut [0; 9], None), Error::Arguments { bytes: 9 });
        assert!(matches!(refused(2, &mut [0; 8], None), Error::Memory { .. }));
        // An answer to nothing is said, one that is too short as well; one that says why it was not done is an end.
        let unknown =
            Err(Error::BadMessage { from: 1, what: "it answers a query that nobody has made".into() });
        assert_eq!(job.engines[0].answered(1, 77, Ok(Bytes::Plain(&[0; 4]))), unknown);
        let id = ask(1, &mut [0; 8], None).map_err(|refused| refused.0).expect("asked");
        assert_eq!(job.engines[0].answered(1, id.to_bits(), Ok(Bytes::Plain(&[0; 3]))), unknown);
        assert_eq!(
            (job.engines[0].answered(1, id.to_bits(), Err(FAILURE)), ended(&job, id)),
            (Ok(()), Some(Err(FAILURE)))
        );
        assert_eq!(read(seen), [9; 4]);
        // What is asked is answered before a rank has nothing under way, and nobody answers once the job is over.
        job.engines[0].end();
        assert_eq!(refused(1, &mut [0; 8], None), Error::Over);
    }
    in_every_mode!(check);
}
