//! Slots with numbers, which are taken and given back without a lock. They never move, and there are more of them when they are wanted.

use crate::pool::Pool;
use gasworks_sync::doubling::{Doubling, PARTS};

/// How many slots there are at first.
const FIRST: u32 = if cfg!(gasworks_loom) { 2 } else { 64 };

struct Part<T> {
    free: Pool,
    slots: Box<[T]>,
}

/// The slots, more of which are made when all are taken.
pub(super) struct Slab<T> {
    parts: Doubling<Part<T>, FIRST>,
}

impl<T: Default> Slab<T> {
    pub fn new() -> Self {
        let this = Self { parts: Doubling::default() };
        this.part(0);
        this
    }

    fn part(&self, number: usize) -> Option<&Part<T>> {
        let make = |count| Part { free: Pool::new(count), slots: (0..count).map(|_| T::default()).collect() };
        self.parts.get_or_make(number, make)
    }

    /// Takes a slot: its number.
    ///
    /// # Panics
    /// If four thousand million are taken.
    pub fn take(&self) -> u32 {
        let free =
            |number| Some(Doubling::<Part<T>, FIRST>::start_of(number) + self.part(number)?.free.take()?);
        match (0..PARTS).find_map(free) {
            Some(index) => index,
            None => panic!("no slot is left for an operation"),
        }
    }

    /// Gives a slot back that was taken.
    pub fn give(&self, index: u32) {
        let (part, slot) = Doubling::<Part<T>, FIRST>::locate(index);
        if let Some(part) = self.parts.get(part) {
            part.free.give(slot as u32);
        }
    }

    /// The slot with this number, if it has been made.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let (part, slot) = Doubling::<Part<T>, FIRST>::locate(index);
        self.parts.get(part)?.slots.get(slot)
    }

    /// All that have been made.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.parts.made().flat_map(|part| &part.slots)
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn slots_are_taken_once_and_more_are_made() {
        let slab = Slab::<u32>::new();
        assert!(slab.get(64).is_none() && slab.get(u32::MAX).is_none(), "not made yet");
        let taken: BTreeSet<u32> = (0..200).map(|_| slab.take()).collect();
        assert_eq!(taken, (0..200).collect());
        let places: BTreeSet<_> = taken.iter().filter_map(|&n| slab.get(n)).map(std::ptr::from_ref).collect();
        assert_eq!((places.len(), slab.all().count()), (200, 64 + 128 + 256));
        for number in [150, 7] {
            slab.give(number);
            assert_eq!(slab.take(), number);
        }
    }
}
