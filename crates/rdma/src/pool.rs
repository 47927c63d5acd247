//! A pool of numbers, from which threads take and to which they give without a lock. The one that came back last goes first: what
//! belongs to it is in the caches still.
//!
//! # Protocol
//! - pool.1: the lower half of the head is the topmost number plus one, or 0. The upper half is a turn, which every taking raises: so a
//!   head that was read before others took and gave the same number is not mistaken for the one that is there.
//! - pool.2: whoever takes a number sees what its giver did before.

use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::ord;

/// Some of the numbers from 0 on.
#[derive(Debug)]
pub struct Pool {
    head: AtomicU64,
    /// For each number in the pool, what the head was below it: another's plus one, or 0.
    below: Box<[AtomicU32]>,
}

impl Pool {
    /// The numbers below `count`, 0 on top.
    pub fn new(count: u32) -> Self {
        let below = (1..=count).map(|next| AtomicU32::new(if next < count { next + 1 } else { 0 })).collect();
        Self { head: AtomicU64::new(u64::from(count.min(1))), below }
    }

    /// How many numbers there are, in the pool or out of it.
    pub fn size(&self) -> usize {
        self.below.len()
    }

    /// Takes a number, if there is one.
    #[inline]
    pub fn take(&self) -> Option<u32> {
        // Acquire, here and below: pool.2.
        let mut head = self.head.load(ord!("pool.see", Acquire));
        loop {
            let number = (head as u32).checked_sub(1)?;
            let below = self.below[number as usize].load(Relaxed);
            let turn = (head >> 32).wrapping_add(1);
            let next = turn << 32 | u64::from(below);
            // Relaxed: a head is never the same again (pool.1), so that this is the one that was seen.
            match self.head.compare_exchange_weak(head, next, Relaxed, ord!("pool.look", Acquire)) {
                Ok(_) => return Some(number),
                Err(now) => head = now,
            }
        }
    }

    /// Gives a number back that was taken.
    ///
    /// # Panics
    /// If there is no such number.
    #[inline]
    pub fn give(&self, number: u32) {
        let below = &self.below[number as usize];
        let mut head = self.head.load(Relaxed);
        loop {
            below.store(head as u32, Relaxed);
            let next = head & !u64::from(u32::MAX) | u64::from(number + 1);
            // Release: pool.2, and what is below it.
            match self.head.compare_exchange_weak(head, next, ord!("pool.give", Release), Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

#[cfg(not(gasworks_loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_pool_gives_nothing() {
        let pool = Pool::new(0);
        assert_eq!((pool.take(), pool.size()), (None, 0));
        let pool = Pool::new(2);
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(0), Some(1), None]);
        assert_eq!(pool.size(), 2, "out of it or not");
    }

    /// pool.1: without it a head that was read before others took and gave the same number would be mistaken for the one that is there.
    #[test]
    fn every_taking_raises_the_turn_and_giving_keeps_it() {
        let pool = Pool::new(3);
        let head = || pool.head.load(Relaxed);
        assert_eq!(head(), 1);
        let (mut turn, mut before) = (0, vec![head()]);
        for _ in 0..4 {
            let mut out = Vec::new();
            for _ in 0..3 {
                out.extend(pool.take());
                turn += 1;
                assert_eq!(head() >> 32, turn, "raised by one");
                assert!(!before.contains(&head()), "a head is never the same again");
                before.push(head());
            }
            assert_eq!((out.len(), pool.take(), head() >> 32), (3, None, turn));
            for number in out {
                pool.give(number);
                assert_eq!(head(), turn << 32 | u64::from(number + 1));
            }
        }
        // After the last turn the first one comes.
        pool.head.store(u64::from(u32::MAX) << 32 | 1, Relaxed);
        assert_eq!((pool.take(), head() >> 32), (Some(0), 0));
    }

    #[test]
    fn threads_never_have_the_same_number() {
        let pool = Pool::new(3);
        let taken: Vec<AtomicU32> = (0..3).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
                        let Some(number) = pool.take() else { continue };
                        assert_eq!(taken[number as usize].swap(1, Relaxed), 0);
                        assert_eq!(taken[number as usize].swap(0, Relaxed), 1);
                        pool.give(number);
                    }
                });
            }
        });
        let mut all: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 256 }, failure_persistence: None,
            ..ProptestConfig::default() })]

        /// It is a stack.
        #[test]
        fn what_came_back_last_goes_first(count in 0..5u32, steps in prop::collection::vec(any::<Option<u8>>(), 0..60)) {
            let pool = Pool::new(count);
            let (mut model, mut out): (Vec<u32>, Vec<u32>) = ((0..count).rev().collect(), Vec::new());
            for step in steps {
                match step {
                    Some(which) if !out.is_empty() => {
                        let number = out.swap_remove(usize::from(which) % out.len());
                        pool.give(number);
                        model.push(number);
                    }
                    _ => {
                        let taken = pool.take();
                        prop_assert_eq!(taken, model.pop());
                        out.extend(taken);
                    }
                }
            }
        }
    }
}
