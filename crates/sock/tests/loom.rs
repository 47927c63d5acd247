//! The queue of a set and the way its sleepers are woken, under loom: all interleavings of two or three threads.
//!
//! The system is played by a bell: a ring ends the wait of one thread, of one that comes later too, and two rings that
//! nobody has heard are one, as with an edge-triggered descriptor.
#![cfg(gasworks_loom)]

use gasworks_sock::queue::{Next, Queue};
use gasworks_sync::latch::ParLatch;
use gasworks_sync::{Lock, Mode};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Loom's own lock, so that it knows of it.
#[derive(Clone, Copy, Debug)]
struct Modelled;

struct Locked<T>(Mutex<T>);

impl Mode for Modelled {
    type Lock<T> = Locked<T>;
    type Latch<T> = ParLatch<T>;
    const NAME: &'static str = "modelled";
    const PARALLEL: bool = true;
}

impl<T> Lock<T> for Locked<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().expect("nobody panics"))
    }
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().ok().map(|mut value| f(&mut value))
    }
    fn seems_taken(&self) -> bool {
        self.0.try_lock().is_err()
    }
}

struct Set {
    queue: Queue<u32, u32, Modelled>,
    bell: Mutex<bool>,
    rung: Condvar,
}

impl Set {
    fn new() -> Arc<Self> {
        Arc::new(Self { queue: Queue::default(), bell: Mutex::new(false), rung: Condvar::new() })
    }

    fn ring(&self) {
        *self.bell.lock().expect("nobody panics") = true;
        self.rung.notify_one();
    }

    fn push(&self, item: u32) {
        if self.queue.push(item) {
            self.ring();
        }
    }

    /// Sleeps until the bell rings.
    fn sleep(&self) {
        let mut bell = self.bell.lock().expect("nobody panics");
        while !*bell {
            bell = self.rung.wait(bell).expect("nobody panics");
        }
        *bell = false;
        drop(bell);
        self.queue.woke(true);
    }

    /// The next item, waited for; none if the queue is closed.
    fn wait_or_close(&self) -> Option<u32> {
        loop {
            let (item, ring) = match self.queue.next() {
                Next::Item(item, ring) | Next::Later(item, ring) => (Some(item), ring),
                Next::Closed(ring) => (None, ring),
                Next::Sleep => {
                    self.sleep();
                    continue;
                }
            };
            if ring {
                self.ring();
            }
            return item;
        }
    }

    fn wait(&self) -> u32 {
        self.wait_or_close().expect("it is open")
    }

    fn close(&self) {
        if self.queue.close() {
            self.ring();
        }
    }

    /// A wait with a time-out that is over at once.
    fn look(&self) -> Option<u32> {
        match self.queue.next() {
            Next::Item(item, ring) | Next::Later(item, ring) => {
                if ring {
                    self.ring();
                }
                Some(item)
            }
            Next::Closed(_) => unreachable!("it is open"),
            Next::Sleep => {
                self.queue.woke(false);
                None
            }
        }
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

fn spawn<R: 'static>(set: &Arc<Set>, body: impl FnOnce(&Set) -> R + 'static) -> thread::JoinHandle<R> {
    let set = Arc::clone(set);
    thread::spawn(move || body(&set))
}

#[test]
fn queue_a_sleeper_is_woken_by_a_post() {
    model(|| {
        let set = Set::new();
        let waiter = spawn(&set, |set| [set.wait(), set.wait()]);
        set.push(1);
        set.push(2);
        assert_eq!(waiter.join().expect("ended"), [1, 2]);
    });
}

#[test]
fn queue_two_sleepers_take_each_item_once() {
    model(|| {
        let set = Set::new();
        let waiters = [spawn(&set, Set::wait), spawn(&set, Set::wait)];
        set.push(1);
        set.push(2);
        let mut taken = waiters.map(|waiter| waiter.join().expect("ended"));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

/// Nobody sleeps on, whether it fell asleep before the close, or came to it meanwhile.
#[test]
fn queue_a_close_wakes_all() {
    model(|| {
        let set = Set::new();
        let waiters = [spawn(&set, Set::wait_or_close), spawn(&set, Set::wait_or_close)];
        set.close();
        assert_eq!(waiters.map(|waiter| waiter.join().expect("ended")), [None, None]);
    });
}

/// Who comes from the system puts in several at once and rings for the rest.
#[test]
fn queue_a_batch_is_shared_with_who_sleeps() {
    model(|| {
        let set = Set::new();
        let waiter = spawn(&set, Set::wait);
        // This thread was asleep as well, and the system woke it.
        if let Next::Item(..) = set.queue.next() {
            unreachable!("nothing was put in");
        }
        set.queue.woke(false);
        set.queue.push_quiet(1);
        set.queue.push_quiet(2);
        let mut taken = [set.wait(), waiter.join().expect("ended")];
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

/// Who gives up when its time is over may have been the one that was rung for: the next one hears it.
#[test]
fn queue_a_time_out_loses_no_ring() {
    model(|| {
        let set = Set::new();
        let hasty = spawn(&set, Set::look);
        let poster = spawn(&set, |set| set.push(1));
        if hasty.join().expect("ended").is_none() {
            assert_eq!(set.wait(), 1);
        }
        poster.join().expect("ended");
        let waiter = spawn(&set, Set::wait);
        set.push(2);
        assert_eq!(waiter.join().expect("ended"), 2);
    });
}

/// A thread that is not asleep takes the bell away and passes it on.
#[test]
fn queue_a_bell_taken_by_the_way_is_passed_on() {
    model(|| {
        let set = Set::new();
        let waiter = spawn(&set, Set::wait);
        let by_the_way = spawn(&set, |set| {
            let taken = std::mem::take(&mut *set.bell.lock().expect("nobody panics"));
            if taken && set.queue.pass_on() {
                set.ring();
            }
        });
        set.push(1);
        assert_eq!(waiter.join().expect("ended"), 1);
        by_the_way.join().expect("ended");
        let waiter = spawn(&set, Set::wait);
        set.push(2);
        assert_eq!(waiter.join().expect("ended"), 2);
    });
}
