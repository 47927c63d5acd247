//! The queue of what a set has to deliver, and how a thread that waits in the system learns that there is something.
//!
//! A thread that finds nothing counts itself as asleep and then waits in the system, for descriptors and for the set's
//! bell. Who puts something in while somebody is asleep rings the bell, which ends the wait of one thread. Sleepers are
//! counted under the same lock under which things are put in, so that either the one who puts in finds the sleeper or the
//! sleeper finds the thing.
//!
//! # Protocol
//! - queue.1: a thread that was told [`Next::Sleep`] waits until the bell ends its wait, or something else does, and then says
//!   [`woke`](Queue::woke), and whether it was the bell. One ring ends the wait of one thread, also of one that comes
//!   after it.
//! - queue.2: who is told to ring (`true`) rings. Until some thread says that the bell woke it nobody is told again.
//! - queue.3: a thread that comes from the system may put things in without ringing ([`push_quiet`](Queue::push_quiet)), if it
//!   asks for the [`next`](Queue::next) afterwards: that is when it is told to ring for the rest.

use std::collections::VecDeque;

use gasworks_sync::{Lock, Mode, Par};

/// What a thread that wants something is told.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T, L> {
    /// Take this. If the flag is set there is more, and somebody asleep to be rung for it (queue.2).
    Item(T, bool),
    /// The same, of what was put off.
    Later(L, bool),
    /// There is nothing; the thread is counted as asleep (queue.1).
    Sleep,
    /// There will be nothing any more. If the flag is set somebody is asleep to be rung for it (queue.2).
    Closed(bool),
}

/// How many things may overtake what is put off.
const STREAK: u32 = 64;

struct State<T, L> {
    items: VecDeque<T>,
    /// What comes after the items, but not after more than [`STREAK`] of them.
    later: VecDeque<L>,
    streak: u32,
    /// How many threads are asleep, or about to be.
    asleep: usize,
    /// Whether the bell was rung and has woken nobody yet.
    rung: bool,
    /// Nothing will come any more. Known under the lock, so that nobody falls asleep after those that sleep were woken.
    closed: bool,
}

impl<T, L> State<T, L> {
    #[inline]
    fn pop(&mut self) -> Option<Next<T, L>> {
        if (self.streak < STREAK || self.later.is_empty())
            && let Some(item) = self.items.pop_front()
        {
            self.streak += 1;
            return Some(Next::Item(item, self.ring_for_rest()));
        }
        self.streak = 0;
        let later = self.later.pop_front()?;
        Some(Next::Later(later, self.ring_for_rest()))
    }

    fn ring_for_rest(&mut self) -> bool {
        !self.is_empty() && self.ring()
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.later.is_empty()
    }

    /// Whether the bell is to be rung so that somebody comes.
    fn ring(&mut self) -> bool {
        let ring = self.asleep > 0 && !self.rung;
        self.rung |= ring;
        ring
    }
}

/// Things to deliver, each once and in order, to any number of threads. `L`: what things are that can be
/// [put off](Queue::put_off).
pub struct Queue<T, L, M: Mode = Par> {
    state: M::Lock<Inner<T, L>>,
}

/// What the lock of a [`Queue`] holds.
pub struct Inner<T, L>(State<T, L>);

impl<T, L, M: Mode> Default for Queue<T, L, M> {
    fn default() -> Self {
        Self {
            state: Lock::new(Inner(State {
                items: VecDeque::new(),
                later: VecDeque::new(),
                streak: 0,
                asleep: 0,
                rung: false,
                closed: false,
            })),
        }
    }
}

impl<T, L, M: Mode> Queue<T, L, M> {
    /// Puts something in; `true`: ring (queue.2).
    #[must_use = "somebody may be asleep"]
    pub fn push(&self, item: T) -> bool {
        self.state.with(|Inner(state)| {
            state.items.push_back(item);
            state.ring()
        })
    }

    /// Puts something in; the same thread asks for the next later (queue.3).
    pub fn push_quiet(&self, item: T) {
        self.state.with(|Inner(state)| state.items.push_back(item));
    }

    /// Puts several things in that may be overtaken; the same thread asks for the next later (queue.3).
    pub fn put_off(&self, things: impl Iterator<Item = L>) {
        self.state.with(|Inner(state)| state.later.extend(things));
    }

    /// `true`: somebody is asleep who has to be rung (queue.2), so that it looks at the clock again.
    #[must_use = "somebody may be asleep"]
    pub fn nudge(&self) -> bool {
        self.state.with(|Inner(state)| state.ring())
    }

    /// Takes what comes next, or counts the thread as asleep.
    pub fn next(&self) -> Next<T, L> {
        self.state.with(|Inner(state)| match state.pop() {
            Some(next) => next,
            None if state.closed => Next::Closed(state.ring()),
            None => {
                state.asleep += 1;
                Next::Sleep
            }
        })
    }

    /// The thread is awake again; `bell`: the bell ended its wait.
    pub fn woke(&self, bell: bool) {
        self.state.with(|Inner(state)| {
            state.asleep -= 1;
            if bell {
                state.rung = false;
            }
        });
    }

    /// A thread that is not counted as asleep took the bell away; `true`: ring again, somebody is asleep.
    #[must_use = "somebody may be asleep"]
    pub fn pass_on(&self) -> bool {
        self.state.with(|Inner(state)| {
            state.rung = state.asleep > 0;
            state.rung
        })
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.state.with(|Inner(state)| state.is_empty())
    }

    /// Throws away all there is, and tells all who wait or will wait that nothing comes any more; `true`: ring (queue.2).
    #[must_use = "somebody may be asleep"]
    pub fn close(&self) -> bool {
        let (things, ring) = self.state.with(|Inner(state)| {
            state.closed = true;
            let things = (std::mem::take(&mut state.items), std::mem::take(&mut state.later));
            (things, state.ring())
        });
        // Dropped without the lock.
        drop(things);
        ring
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Queue<u32, u32>;

    /// A queue with so many threads asleep.
    fn with_asleep(threads: u32) -> Numbers {
        let queue = Queue::default();
        (0..threads).for_each(|_| assert_eq!(queue.next(), Next::Sleep));
        queue
    }

    #[test]
    fn a_ring_for_each_sleeper_that_is_needed() {
        let queue = Numbers::default();
        assert!(!queue.push(1), "nobody is asleep");
        assert_eq!(queue.next(), Next::Item(1, false));
        assert_eq!((queue.next(), queue.next()), (Next::Sleep, Next::Sleep));
        assert!(queue.push(2));
        assert!(!queue.push(3), "the bell is ringing already");
        queue.woke(true);
        assert_eq!(queue.next(), Next::Item(2, true), "one more item and one more sleeper");
        queue.woke(true);
        assert_eq!(queue.next(), Next::Item(3, false));
        assert!(!queue.nudge() && queue.is_empty());
    }

    #[test]
    fn nobody_is_rung_for_what_nobody_needs() {
        let queue = Numbers::default();
        queue.push_quiet(1);
        queue.push_quiet(2);
        assert!(!queue.is_empty());
        assert_eq!(queue.next(), Next::Item(1, false), "one more item and nobody asleep");
        assert_eq!(queue.next(), Next::Item(2, false));
        let queue = with_asleep(2);
        assert!(queue.push(1));
        queue.woke(true);
        assert_eq!(queue.next(), Next::Item(1, false), "one more sleeper and nothing for it");
        assert!(queue.push(2), "it is asleep still");
    }

    #[test]
    fn a_ring_that_woke_nobody_counts_until_somebody_hears_it() {
        let queue = with_asleep(2);
        assert!(queue.push(1));
        queue.woke(false);
        assert!(!queue.push(2) && !queue.nudge(), "the bell rings for the other sleeper");
        queue.woke(true);
        assert_eq!((queue.next(), queue.next()), (Next::Item(1, false), Next::Item(2, false)));
        assert_eq!(queue.next(), Next::Sleep);
        assert!(queue.push(3), "the last ring was heard");
    }

    #[test]
    fn a_bell_taken_by_the_way_is_rung_again_for_a_sleeper_alone() {
        let queue = with_asleep(1);
        assert!(queue.push(1));
        assert!(queue.pass_on(), "a sleeper would not hear it");
        assert!(!queue.push(2), "it was rung again");
        queue.woke(false);
        assert!(!queue.pass_on(), "nobody is asleep");
        assert_eq!((queue.next(), queue.next()), (Next::Item(1, false), Next::Item(2, false)));
        assert_eq!(queue.next(), Next::Sleep);
        assert!(queue.push(3), "the bell was taken away, so it does not ring any more");
    }

    #[test]
    fn a_nudge_rings_for_a_sleeper_once() {
        let queue = Numbers::default();
        assert!(!queue.nudge());
        let queue = with_asleep(1);
        assert!(queue.nudge() && !queue.nudge());
        queue.woke(true);
        assert!(!queue.nudge());
    }

    #[test]
    fn a_closed_queue_keeps_nobody() {
        let queue = Numbers::default();
        assert!(!queue.push(1));
        queue.put_off([2].into_iter());
        assert!(!queue.close() && queue.is_empty(), "nobody is asleep");
        assert_eq!(queue.next(), Next::Closed(false));
        let queue = with_asleep(2);
        assert!(queue.close());
        queue.woke(true);
        assert_eq!(queue.next(), Next::Closed(true), "one more sleeper");
        queue.woke(true);
        assert_eq!(queue.next(), Next::Closed(false));
    }

    #[test]
    fn what_is_put_off_is_overtaken_but_not_for_ever() {
        let queue = Numbers::default();
        queue.put_off([1000, 1001].into_iter());
        (0..STREAK + 1).for_each(|item| queue.push_quiet(item));
        let all: Vec<u32> = std::iter::from_fn(|| match queue.next() {
            Next::Item(item, _) | Next::Later(item, _) => Some(item),
            _ => None,
        })
        .collect();
        let wanted: Vec<u32> = (0..STREAK).chain([1000, STREAK, 1001]).collect();
        assert_eq!(all, wanted);
        queue.woke(false);
        // With nothing put off a streak has no end.
        (0..2 * STREAK).for_each(|item| queue.push_quiet(item));
        (0..2 * STREAK).for_each(|item| assert_eq!(queue.next(), Next::Item(item, false)));
    }

    #[test]
    fn what_is_put_off_is_there_and_is_rung_for() {
        let queue = with_asleep(2);
        queue.put_off([1, 2].into_iter());
        assert!(!queue.is_empty());
        queue.woke(false);
        assert_eq!(queue.next(), Next::Later(1, true), "one more thing and one more sleeper");
        queue.woke(true);
        assert_eq!(queue.next(), Next::Later(2, false));
        assert!(queue.is_empty());
    }
}
