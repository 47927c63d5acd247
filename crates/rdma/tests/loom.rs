//! The pool, the table of operations, and what is told of stale memory, under loom: all interleavings of two or three threads, and all that the orderings admit.
#![cfg(gasworks_loom)]
#![allow(unsafe_code)]

use gasworks_rdma::completion::{Categories, Completions};
use gasworks_rdma::pool::Pool;
use gasworks_rdma::stale::{Gone, Reader, Span, pair};
use gasworks_sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use gasworks_sync::cell::UnsafeCell;
use gasworks_sync::latch::ParLatch;
use gasworks_sync::{Mode, SpinLock};
use loom::sync::Arc;
use loom::thread;

struct Things {
    pool: Pool,
    /// Whose number is out may use its own.
    things: [UnsafeCell<u32>; 3],
}

// SAFETY: that nobody uses a thing while another thread does is what the models check.
unsafe impl Sync for Things {}

impl Things {
    fn of(count: u32) -> Arc<Self> {
        Arc::new(Self { pool: Pool::new(count), things: std::array::from_fn(|_| UnsafeCell::new(0)) })
    }

    fn take(&self) -> Option<u32> {
        let number = self.pool.take()?;
        // SAFETY: the pool gave `number` to this thread, and gives it to no other before it came back.
        self.things[number as usize].with_mut(|thing| unsafe { *thing += 1 });
        Some(number)
    }

    fn give(&self, number: u32) {
        // SAFETY: `number` is still out: it goes back to the pool after this.
        self.things[number as usize].with_mut(|thing| unsafe { *thing += 1 });
        self.pool.give(number);
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

#[test]
fn pool_gives_each_number_to_one() {
    model(|| {
        let things = Things::of(2);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let things = Arc::clone(&things);
                thread::spawn(move || things.take().into_iter().for_each(|number| things.give(number)))
            })
            .collect();
        things.take().into_iter().for_each(|number| things.give(number));
        others.into_iter().for_each(|other| other.join().expect("it ends well"));
        let all = [things.take(), things.take(), things.take()];
        assert!(all[0] != all[1] && all[0].is_some() && all[1].is_some() && all[2].is_none(), "{all:?}");
    });
}

/// Somebody looks at the topmost; meanwhile others take it, and one below, and give the topmost back.
#[test]
fn pool_is_not_mistaken_for_what_it_was() {
    model(|| {
        let things = Things::of(3);
        let other = {
            let things = Arc::clone(&things);
            thread::spawn(move || {
                let (first, second) = (things.take(), things.take());
                first.into_iter().for_each(|number| things.give(number));
                second
            })
        };
        let mine = [things.take(), things.take()];
        let theirs = other.join().expect("it ends well");
        let mut out: Vec<u32> = mine.into_iter().flatten().chain(theirs).collect();
        out.sort_unstable();
        let before = out.len();
        out.dedup();
        assert_eq!(out.len(), before, "{mine:?} and {theirs:?}");
    });
}

/// What transfers bring: a NIC writes it, and who sees that it is done uses it.
#[derive(Default)]
struct Bytes([UnsafeCell<u32>; 2]);

// SAFETY: that nobody uses bytes while another thread does is what the models check.
unsafe impl Sync for Bytes {}
// SAFETY: they are numbers.
unsafe impl Send for Bytes {}

impl Bytes {
    fn touch(&self, which: usize) {
        // SAFETY: the transfer is under way for the NIC, and over for whoever else.
        self.0[which].with_mut(|bytes| unsafe { *bytes += 1 });
    }
}

/// Bytes that go with their operation.
struct Kept(Arc<Bytes>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.touch(0);
    }
}

/// As [`Par`](gasworks_sync::Par), with locks that the model sees.
#[derive(Clone, Copy)]
struct Parallel;

impl Mode for Parallel {
    type Lock<T> = SpinLock<T>;
    type Latch<T> = ParLatch<T>;
    const NAME: &'static str = "par";
    const PARALLEL: bool = true;
}

type Operations = Completions<Parallel, (), Kept, ()>;

fn table() -> (Arc<Operations>, Arc<Bytes>) {
    (Arc::default(), Arc::default())
}

/// A NIC that finishes an operation that touches these bytes.
fn nic(operations: &Arc<Operations>, bytes: &Arc<Bytes>, token: u64, which: usize) -> thread::JoinHandle<()> {
    let (operations, bytes) = (Arc::clone(operations), Arc::clone(bytes));
    thread::spawn(move || {
        bytes.touch(which);
        assert!(operations.complete(token, Ok(())).is_some(), "it is under way");
    })
}

#[test]
fn completion_shows_what_was_done() {
    model(|| {
        let (operations, bytes) = table();
        let id = operations.start(None, Categories::GET, None);
        let nic = nic(&operations, &bytes, id.to_bits(), 0);
        if operations.test(id).is_ok_and(|finished| finished.is_some()) {
            bytes.touch(0);
        }
        nic.join().expect("it ends well");
    });
}

/// Whoever is last drops what it kept, once.
#[test]
fn completion_of_what_is_abandoned_drops_it() {
    model(|| {
        let (operations, bytes) = table();
        let id = operations.start(None, Categories::PUT, Some(Kept(Arc::clone(&bytes))));
        let nic = nic(&operations, &bytes, id.to_bits(), 0);
        operations.abandon(id);
        nic.join().expect("it ends well");
        assert!(operations.test(id).is_err(), "it is gone");
        // SAFETY: the only other thread has ended.
        assert_eq!(bytes.0[0].with(|bytes| unsafe { *bytes }), 2, "used, and dropped");
    });
}

#[test]
fn completion_of_a_set_is_that_of_all_in_it() {
    model(|| {
        let (operations, bytes) = table();
        let set = operations.open();
        let nics = [Categories::GET, Categories::PUT].map(|counts| {
            operations
                .start_in(set, None, counts, None)
                .map(|id| id.to_bits())
                .unwrap_or_else(|_| panic!("a set"))
        });
        let nics = [0, 1].map(|which| nic(&operations, &bytes, nics[which], which));
        if operations.test(set.leaf(Categories::GET)).is_ok_and(|finished| finished.is_some()) {
            bytes.touch(0);
        }
        if operations.test(set).is_ok_and(|finished| finished.is_some()) {
            (0..2).for_each(|which| bytes.touch(which));
        }
        nics.into_iter().for_each(|nic| nic.join().expect("it ends well"));
    });
}

struct Woken(AtomicU32);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn completion_wakes_who_was_told_to_wait() {
    model(|| {
        let (operations, bytes) = table();
        let id = operations.start(None, Categories::GET, None);
        let nic = nic(&operations, &bytes, id.to_bits(), 0);
        let woken = std::sync::Arc::new(Woken(AtomicU32::new(0)));
        let told = operations.test_or_wake(id, &woken.clone().into());
        nic.join().expect("it ends well");
        let waits = told.is_ok_and(|finished| finished.is_none());
        assert!(!waits || woken.0.load(Relaxed) == 1, "it waits for ever");
    });
}

/// Of two that ask one is told, and its place is given once: the next two operations have places of their own.
#[test]
fn completion_is_told_once() {
    model(|| {
        let (operations, bytes) = table();
        let id = operations.start(None, Categories::GET, None);
        assert!(operations.complete(id.to_bits(), Ok(())).is_some());
        let other = {
            let operations = Arc::clone(&operations);
            thread::spawn(move || operations.test(id).is_ok_and(|finished| finished.is_some()))
        };
        let told = operations.test(id).is_ok_and(|finished| finished.is_some());
        assert!(told != other.join().expect("it ends well"), "one of them");
        let next = [(); 2].map(|()| operations.start(None, Categories::GET, None));
        assert!(next[0].to_bits() as u32 != next[1].to_bits() as u32 && !next.contains(&id));
        drop(bytes);
    });
}

/// Memory that has changed, as the system tells it: an event waits to be read, and then whoever changed the memory goes on.
struct System {
    events: AtomicU32,
    changing: AtomicU32,
}

fn here(number: u32) -> Gone {
    Gone::Unmapped(Span { start: number as usize, end: number as usize + 1 })
}

/// So many changes, told of by a writer with so much room, to a reader that looks so often in between.
fn told(changes: u32, room: usize, looks: usize) {
    model(move || {
        let system = Arc::new(System { events: AtomicU32::new(changes), changing: AtomicU32::new(changes) });
        let (mut writer, mut reader) = pair(room);
        let other = {
            let system = Arc::clone(&system);
            thread::spawn(move || {
                while system.events.load(Relaxed) > 0 {
                    writer.enter(|| {
                        let left = system.events.load(Relaxed).checked_sub(1)?;
                        system.events.store(left, Relaxed);
                        system.changing.store(left, Release);
                        Some(here(left))
                    });
                }
            })
        };
        // Which changes it was told of; all of them by one word.
        let (mut known, mut next) = (0u32, changes);
        let mut look = |reader: &mut Reader| {
            // What has been read by now is told, if nothing is being read.
            let over = changes - system.changing.load(Acquire);
            let settled = reader.is_settled();
            while let Some(gone) = reader.next() {
                if let Gone::Unmapped(span) = gone {
                    assert!((span.start as u32) < next, "in order");
                    next = span.start as u32;
                    known |= 1 << next;
                } else {
                    known = (1 << changes) - 1;
                }
            }
            let wanted = (changes - over..changes).fold(0, |bits, number| bits | 1 << number);
            assert!(!settled || known & wanted == wanted, "{known:b} of {wanted:b}");
        };
        (0..looks).for_each(|_| look(&mut reader));
        other.join().expect("it ends well");
        assert!(reader.is_settled());
        look(&mut reader);
    });
}

#[test]
fn stale_words_are_there_once_the_system_goes_on() {
    told(2, 2, 1);
}

#[test]
fn stale_slots_are_used_again_when_they_are_empty() {
    told(2, 1, 1);
}
