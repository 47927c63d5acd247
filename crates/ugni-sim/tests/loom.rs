//! The queue of events, the table of registrations and the lock under loom: all interleavings of two or three threads, and all that the orderings admit.
#![cfg(gasworks_loom)]
#![allow(unsafe_code)]

use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::cell::UnsafeCell;
use gasworks_sync::spin;
use gasworks_ugni_sim::alone::{Alone, Verdict};
use gasworks_ugni_sim::queue::{Control, LAP_BITS, Overrun, Queue};
use gasworks_ugni_sim::table::{Lies, Place, Registration};
use gasworks_ugni_sim::writes::Writes;
use loom::sync::Arc;
use loom::thread;

const EVENT: u64 = 1 << LAP_BITS;

struct Memory {
    control: Control,
    places: Vec<AtomicU64>,
    /// What the events of a producer tell of, written before.
    told: [UnsafeCell<u64>; 4],
}

// SAFETY: that nobody uses a cell of `told` while another thread writes it is what the models check.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(places: usize) -> Arc<Self> {
        Arc::new(Self {
            control: Control::new(),
            places: (0..places).map(|_| AtomicU64::new(0)).collect(),
            told: std::array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    fn queue(&self) -> Queue<'_> {
        Queue::new(&self.control, &self.places, self.places.len() as u64).expect("sound")
    }

    fn push(&self, which: usize) -> Result<(), Overrun> {
        // SAFETY: each is written by one thread, once, before its event is there.
        self.told[which].with_mut(|told| unsafe { *told = which as u64 + 1 });
        self.queue().push(EVENT + which as u64)
    }

    fn pop(&self) -> usize {
        loop {
            if let Some(event) = self.queue().pop() {
                let which = (event - EVENT) as usize;
                // SAFETY: its event was taken: the one thread that writes it has done so, and does not again.
                assert_eq!(self.told[which].with(|told| unsafe { *told }), which as u64 + 1);
                return which;
            }
            spin();
        }
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

fn spawn<R: 'static>(
    memory: &Arc<Memory>,
    body: impl FnOnce(&Memory) -> R + 'static,
) -> thread::JoinHandle<R> {
    let memory = Arc::clone(memory);
    thread::spawn(move || body(&memory))
}

#[test]
fn completions_an_event_comes_after_what_it_tells_of() {
    model(|| {
        let memory = Memory::new(2);
        let producer = spawn(&memory, |memory| [memory.push(0), memory.push(1)]);
        assert_eq!([memory.pop(), memory.pop()], [0, 1]);
        assert_eq!(producer.join().expect("ended"), [Ok(()), Ok(())]);
    });
}

#[test]
fn completions_of_two_producers_each_comes_once() {
    model(|| {
        let memory = Memory::new(2);
        let producers = [spawn(&memory, |memory| memory.push(0)), spawn(&memory, |memory| memory.push(1))];
        let mut popped = [memory.pop(), memory.pop()];
        popped.sort_unstable();
        assert_eq!(popped, [0, 1]);
        for producer in producers {
            producer.join().expect("ended").expect("there is room for two");
        }
        assert_eq!(memory.queue().pop(), None);
    });
}

/// With one place each event is of another lap; what is refused is counted.
#[test]
fn completions_in_a_full_queue_are_lost_and_counted() {
    model(|| {
        let memory = Memory::new(1);
        let producer = spawn(&memory, |memory| [memory.push(0), memory.push(1), memory.push(2)]);
        let mut popped = Vec::new();
        for _ in 0..2 {
            if let Some(event) = memory.queue().pop() {
                popped.push(event - EVENT);
            }
        }
        let pushed = producer.join().expect("ended");
        let kept: Vec<u64> = (0..3).filter(|&i| pushed[i as usize].is_ok()).collect();
        popped.extend(memory.queue().pop().map(|event| event - EVENT));
        assert_eq!(popped, kept);
        assert_eq!(memory.queue().overrun(), 3 - kept.len() as u64);
    });
}

/// A producer that waits for room finds the place as the consumer left it.
#[test]
fn completions_a_place_is_taken_again() {
    model(|| {
        let memory = Memory::new(1);
        let producer = spawn(&memory, |memory| {
            for which in 0..2 {
                while memory.push(which).is_err() {
                    spin();
                }
            }
        });
        assert_eq!([memory.pop(), memory.pop()], [0, 1]);
        producer.join().expect("ended");
    });
}

/// Whoever asks whether there is an event disturbs nobody.
#[test]
fn completions_may_be_asked_for_by_a_third() {
    model(|| {
        let memory = Memory::new(1);
        let producer = spawn(&memory, |memory| memory.push(0));
        let other = spawn(&memory, |memory| memory.queue().holds_event());
        assert_eq!(memory.pop(), 0);
        producer.join().expect("ended").expect("there is room");
        other.join().expect("ended");
        assert!(!memory.queue().holds_event());
    });
}

struct Registered {
    registration: Registration,
    /// The memory that is registered.
    memory: UnsafeCell<u64>,
}

// SAFETY: that nobody touches the memory while another thread writes it is what the models check.
unsafe impl Sync for Registered {}

const LIES: Lies = Lies { descriptor: 2, offset: 8 };
const PLACE: Place =
    Place { first: 7, len: 1, flags: 3, entropy: 5, queue: Some(9), next: Some(3), lies: Some(LIES) };

impl Registered {
    fn visit(&self, touch: impl FnOnce(&UnsafeCell<u64>)) {
        if let Some(visit) = self.registration.enter() {
            assert_eq!(visit.place(), PLACE);
            touch(&self.memory);
        }
    }
}

/// What is written to memory before it is registered is there for visitors; once it is closed it is the owner's again.
#[test]
fn table_registered_memory_is_shared_and_then_its_owners() {
    model(|| {
        let registration = Registration::new();
        let registered = Arc::new(Registered { registration, memory: UnsafeCell::new(0) });
        let visitor = thread::spawn({
            let registered = registered.clone();
            // SAFETY: the visit goes on, so the owner does not write, and visitors only read.
            move || registered.visit(|memory| memory.with(|memory| assert_eq!(unsafe { *memory }, 1)))
        });
        // SAFETY: it has not been open yet, so that no visitor can have entered.
        registered.memory.with_mut(|memory| unsafe { *memory = 1 });
        registered.registration.open(&PLACE);
        while !registered.registration.close(1) {
            spin();
        }
        // SAFETY: it is closed: all visitors have left, and nobody enters.
        registered.memory.with_mut(|memory| unsafe { *memory = 2 });
        visitor.join().expect("ended");
    });
}

/// What a visitor has written is there for the owner.
#[test]
fn table_what_was_written_is_there_when_it_is_closed() {
    model(|| {
        let registration = Registration::new();
        let registered = Arc::new(Registered { registration, memory: UnsafeCell::new(0) });
        registered.registration.open(&PLACE);
        let visitor = thread::spawn({
            let registered = registered.clone();
            // SAFETY: it is the only visitor, and the owner waits until it has left.
            move || registered.visit(|memory| memory.with_mut(|memory| unsafe { *memory = 1 }))
        });
        while !registered.registration.close(1) {
            spin();
        }
        // SAFETY: it is closed: the visitor has left, or finds it closed.
        let found = registered.memory.with(|memory| unsafe { *memory });
        visitor.join().expect("ended");
        assert!(found <= 1);
    });
}

struct Locked {
    lock: Alone,
    /// What is changed under it.
    word: UnsafeCell<u64>,
}

// SAFETY: that two threads never use the word at the same time is what the models check.
unsafe impl Sync for Locked {}

const DEAD: u32 = 9;

impl Locked {
    /// Adds one, as the process `own`; every other number is one that died.
    fn add(&self, own: u32) {
        let judge = |holder| if holder == DEAD { Verdict::Dead } else { Verdict::Wait };
        let _inside = self.lock.enter(own, judge).expect("it does not give up");
        // SAFETY: `_inside` holds the lock, and nobody uses the word without it.
        self.word.with_mut(|word| unsafe { *word += 1 });
    }
}

/// Two processes change a word; a third that died at it keeps nobody.
fn both_change(dead: bool) {
    model(move || {
        let locked = Arc::new(Locked { lock: Alone::new(), word: UnsafeCell::new(0) });
        if dead {
            std::mem::forget(locked.lock.enter(DEAD, |_| Verdict::Wait));
        }
        let other = thread::spawn({
            let locked = locked.clone();
            move || locked.add(1)
        });
        locked.add(2);
        other.join().expect("ended");
        // SAFETY: the other thread has ended, so that nobody else uses the word.
        assert_eq!(locked.word.with(|word| unsafe { *word }), 2);
    });
}

#[test]
fn alone_is_who_holds_the_lock() {
    both_change(false);
}

#[test]
fn alone_one_takes_it_from_the_dead() {
    both_change(true);
}

/// What is read of notes whose place is used again, by one or by two, is what was noted.
fn notes_are_whole(writers: &'static [&'static [u64]]) {
    model(move || {
        let writes = Arc::new(Writes::new());
        writes.want();
        let spawn = |notes: &'static [u64]| {
            let writes = writes.clone();
            thread::spawn(move || notes.iter().for_each(|note| writes.note(*note, *note)))
        };
        let threads: Vec<_> = writers.iter().map(|notes| spawn(notes)).collect();
        let look = || {
            for count in 0..2 {
                let known = writes.since(count).unwrap_or_default();
                assert!(known.iter().all(|(address, len)| address == len && *len > 0), "{known:?}");
            }
        };
        look();
        threads.into_iter().for_each(|thread| thread.join().expect("ended"));
        look();
    });
}

#[test]
fn writes_noted_by_one_are_whole() {
    notes_are_whole(&[&[1, 2]]);
}

#[test]
fn writes_noted_by_two_are_whole() {
    notes_are_whole(&[&[1], &[2]]);
}
