//! A queue of events, as a network interface fills it: many producers, one consumer, one word for each event.
//!
//! An event is published by the very exchange that takes its place, so a producer that dies leaves an event or none, and
//! never a hole. A full queue takes nothing: the event is lost, the producer is told at once, and the consumer by
//! [`Queue::overrun`].
//!
//! # Protocol
//! - queue.1: a place holds an event, which has bits above the lowest [`LAP_BITS`], or the number of the lap in which it is free.
//!   Zeroed memory is an empty queue in lap 0.
//! - queue.2: an event gets into the place of a position by one exchange for the free word of that position's lap. Laps only grow,
//!   so an exchange that comes too late fails.
//! - queue.3: `tail` says where the next position is, and may lag behind: whoever finds its place filled, or free for a later lap,
//!   moves it on.
//! - queue.4: the consumer takes the event at `head`, leaves the free word of the next lap, and only then moves `head`. So who has
//!   seen `head` beyond a position finds that position's place filled anew or free.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::ord;

/// Bits of a word that say in which lap a place is free.
pub const LAP_BITS: u32 = 48;
const LAP: u64 = (1 << LAP_BITS) - 1;
/// How often a producer looks for its place: with others at work it needs a few looks for each of theirs, and none of what
/// they write, true or not, keeps it longer.
const LOOKS: u32 = if cfg!(test) { 1 << 8 } else { 1 << 16 };

/// The producers' line and the consumer's. Zero bytes are an empty queue.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Control {
    tail: AtomicU64,
    /// Events that found no place.
    lost: AtomicU64,
    apart: [AtomicU64; 14],
    head: AtomicU64,
    rest: [AtomicU64; 15],
}

impl Control {
    /// An empty queue.
    pub fn new() -> Self {
        let words = || AtomicU64::new(0);
        Self {
            tail: words(),
            lost: words(),
            apart: core::array::from_fn(|_| words()),
            head: words(),
            rest: core::array::from_fn(|_| words()),
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// The queue was full, and the event is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

/// A view of a queue: its two lines, and a power of two of places, of which so many may be filled.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    control: &'a Control,
    places: &'a [AtomicU64],
    limit: u64,
}

impl<'a> Queue<'a> {
    /// `None` unless `places` are a power of two and `limit` is 1 to as many.
    pub fn new(control: &'a Control, places: &'a [AtomicU64], limit: u64) -> Option<Self> {
        let sound = places.len().is_power_of_two() && (1..=places.len() as u64).contains(&limit);
        sound.then_some(Self { control, places, limit })
    }

    fn place(&self, position: u64) -> &'a AtomicU64 {
        &self.places[(position & (self.places.len() as u64 - 1)) as usize]
    }

    /// The word of the place of `position` while it is free for it.
    fn free(&self, position: u64) -> u64 {
        (position >> self.places.len().trailing_zeros()) & LAP
    }

    /// Puts an event in, from any thread or process that maps the queue.
    ///
    /// # Errors
    /// [`Overrun`]: it was full.
    pub fn push(&self, event: u64) -> Result<(), Overrun> {
        assert!(event > LAP, "{event:#x} is the word of a free place");
        for _ in 0..LOOKS {
            let tail = self.control.tail.load(Relaxed);
            // queue.4: acquired, so that the place is seen as the consumer left it.
            let head = self.control.head.load(ord!("completions.see_head", Acquire));
            // Less than nothing where `tail` lags.
            if tail.wrapping_sub(head) as i64 >= self.limit as i64 {
                break;
            }
            if self.fill(tail, event) {
                self.move_on(tail);
                return Ok(());
            }
            self.move_on(tail);
        }
        self.lose();
        Err(Overrun)
    }

    /// An event is lost, as if it had found the queue full.
    pub fn lose(&self) {
        self.control.lost.fetch_add(1, Relaxed);
    }

    /// queue.2; what the event tells of is to be seen by who takes it. `false`: the place is filled already, or free for a later
    /// lap.
    fn fill(&self, position: u64, event: u64) -> bool {
        let (place, free) = (self.place(position), self.free(position));
        let publish = ord!("completions.publish", Release);
        place.load(Relaxed) == free && place.compare_exchange(free, event, publish, Relaxed).is_ok()
    }

    /// queue.3: moves `tail` on, if nobody else has.
    fn move_on(&self, tail: u64) {
        let _ = self.control.tail.compare_exchange(tail, tail.wrapping_add(1), Relaxed, Relaxed);
    }

    /// Takes the next event. Only one thread at a time, in the process that the queue belongs to.
    pub fn pop(&self) -> Option<u64> {
        let head = self.control.head.load(Relaxed);
        let place = self.place(head);
        let word = place.load(ord!("completions.take", Acquire));
        if word <= LAP {
            return None;
        }
        // queue.4: the place is free for the next lap before `head` moves.
        place.store(self.free(head.wrapping_add(self.places.len() as u64)), Relaxed);
        self.control.head.store(head.wrapping_add(1), ord!("completions.give_back", Release));
        Some(word)
    }

    /// Whether there is an event to take. Any thread may ask.
    pub fn holds_event(&self) -> bool {
        self.place(self.control.head.load(Relaxed)).load(Relaxed) > LAP
    }

    /// How many events were lost since the last time that somebody asked.
    pub fn overrun(&self) -> u64 {
        match self.control.lost.load(Relaxed) {
            0 => 0,
            _ => self.control.lost.swap(0, Relaxed),
        }
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const EVENT: u64 = 1 << LAP_BITS;

    struct Memory(Control, Vec<AtomicU64>);

    impl Memory {
        fn new(places: usize) -> Self {
            Self(Control::new(), (0..places).map(|_| AtomicU64::new(0)).collect())
        }

        fn queue(&self, limit: u64) -> Queue<'_> {
            Queue::new(&self.0, &self.1, limit).expect("sound")
        }
    }

    #[test]
    fn events_come_out_in_order_for_many_laps() {
        let memory = Memory::new(4);
        let queue = memory.queue(3);
        for round in 0..100 {
            for i in 0..3 {
                assert_eq!(queue.push(EVENT + round * 3 + i), Ok(()));
            }
            assert_eq!(queue.push(EVENT), Err(Overrun));
            for i in 0..3 {
                assert!(queue.holds_event());
                assert_eq!(queue.pop(), Some(EVENT + round * 3 + i));
            }
            assert_eq!((queue.pop(), queue.holds_event()), (None, false));
            assert_eq!((queue.overrun(), queue.overrun()), (1, 0));
        }
    }

    #[test]
    fn a_queue_needs_a_power_of_two_and_a_limit_within_it() {
        let memory = Memory::new(4);
        assert!(Queue::new(&memory.0, &memory.1, 0).is_none());
        assert!(Queue::new(&memory.0, &memory.1, 5).is_none());
        assert!(Queue::new(&memory.0, &memory.1[..3], 3).is_none());
        assert!(Queue::new(&memory.0, &memory.1[..0], 1).is_none());
    }

    proptest! {
        #![proptest_config(crate::trials())]
        #[test]
        fn it_is_a_list_with_an_end(
            (places, limit) in (0..4u32).prop_flat_map(|bits| (Just(1 << bits), 1..=1u64 << bits)),
            pushes in prop::collection::vec(any::<bool>(), 0..100),
        ) {
            let memory = Memory::new(places);
            let (queue, mut model, mut lost) = (memory.queue(limit), VecDeque::new(), 0);
            for (i, push) in (0..).zip(pushes) {
                if push {
                    let room = (model.len() as u64) < limit;
                    prop_assert_eq!(queue.push(EVENT + i).is_ok(), room);
                    if room { model.push_back(EVENT + i) } else { lost += 1 }
                } else {
                    prop_assert_eq!(queue.pop(), model.pop_front());
                }
                prop_assert_eq!(queue.holds_event(), !model.is_empty());
            }
            prop_assert_eq!(queue.overrun(), lost);
        }
    }

    /// Real threads: what each producer puts in comes out in its order, and all of it.
    #[test]
    fn producers_get_all_through() {
        const EACH: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let memory = Memory::new(8);
        std::thread::scope(|scope| {
            for producer in 0..3 {
                let queue = memory.queue(7);
                scope.spawn(move || {
                    for i in 0..EACH {
                        while queue.push(EVENT + producer * EACH + i).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let (queue, mut next) = (memory.queue(7), [0; 3]);
            while next != [EACH; 3] {
                match queue.pop() {
                    Some(event) => {
                        let (producer, i) = ((event - EVENT) / EACH, (event - EVENT) % EACH);
                        assert_eq!(next[producer as usize], i);
                        next[producer as usize] += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
            assert_eq!(queue.pop(), None);
        });
    }

    /// A producer that dies between the two steps of a push leaves nothing to wait for, before or after the consumer has
    /// taken its event.
    #[test]
    fn a_producer_that_dies_half_way_keeps_nobody() {
        for taken_first in [false, true] {
            let memory = Memory::new(2);
            let queue = memory.queue(2);
            for lap in 0..5 {
                let tail = memory.0.tail.load(Relaxed);
                assert!(queue.fill(tail, EVENT + lap), "and then it dies");
                if taken_first {
                    assert_eq!(queue.pop(), Some(EVENT + lap));
                }
                assert_eq!(queue.push(EVENT + 100), Ok(()));
                if !taken_first {
                    assert_eq!(queue.pop(), Some(EVENT + lap));
                }
                assert_eq!(queue.pop(), Some(EVENT + 100));
                assert_eq!(queue.pop(), None);
            }
        }
    }

    /// Whatever a peer writes, a push ends, and a pop gives a word or none.
    #[test]
    fn nonsense_in_the_memory_keeps_nobody() {
        for word in [0, 1, LAP, EVENT, u64::MAX] {
            for line in [0, 1, 2, 1 << 40, u64::MAX] {
                let memory = Memory::new(2);
                memory.1.iter().for_each(|place| place.store(word, Relaxed));
                memory.0.tail.store(line, Relaxed);
                let queue = memory.queue(2);
                let _ = queue.push(EVENT);
                let _ = (queue.pop(), queue.pop(), queue.pop(), queue.overrun());
                memory.0.head.store(line.wrapping_add(7), Relaxed);
                let _ = queue.push(EVENT);
            }
        }
    }
}
