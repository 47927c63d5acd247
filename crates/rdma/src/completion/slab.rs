//! Places with numbers, which are taken and given back without a lock. They never move, and there are more of them when they are wanted.

use crate::pool::Pool;
use std::sync::OnceLock;

/// How many places there are at first; each further part is twice as large as the one before.
#[cfg(not(gasworks_loom))]
const FIRST: u32 = 64;
#[cfg(gasworks_loom)]
const FIRST: u32 = 2;
/// So many parts that their places have numbers of 32 bits.
const PARTS: usize = 26;

struct Part<T> {
    free: Pool,
    places: Box<[T]>,
}

/// The places, parts of which are made when those before are all taken.
pub(super) struct Slab<T> {
    parts: [OnceLock<Part<T>>; PARTS],
}

/// The part of a place, and the place's number there.
fn part_of(index: u32) -> (usize, usize) {
    let part = (index / FIRST + 1).ilog2();
    (part as usize, (index - start_of(part)) as usize)
}

/// The number of a part's first place.
fn start_of(part: u32) -> u32 {
    FIRST * ((1 << part) - 1)
}

impl<T: Default> Slab<T> {
    pub fn new() -> Self {
        let this = Self { parts: std::array::from_fn(|_| OnceLock::new()) };
        this.part(0);
        this
    }

    fn part(&self, number: u32) -> &Part<T> {
        self.parts[number as usize].get_or_init(|| {
            let count = FIRST << number;
            Part { free: Pool::new(count), places: (0..count).map(|_| T::default()).collect() }
        })
    }

    /// Takes a place: its number.
    ///
    /// # Panics
    /// If four thousand million are taken.
    pub fn take(&self) -> u32 {
        for number in 0..PARTS as u32 {
            if let Some(place) = self.part(number).free.take() {
                return start_of(number) + place;
            }
        }
        panic!("no place is left for an operation");
    }

    /// Gives a place back that was taken.
    pub fn give(&self, index: u32) {
        let (part, place) = part_of(index);
        if let Some(part) = self.parts[part].get() {
            part.free.give(place as u32);
        }
    }

    /// The place with this number, if it has been made.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let (part, place) = part_of(index);
        self.parts.get(part)?.get()?.places.get(place)
    }

    /// All that have been made.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().map_while(OnceLock::get).flat_map(|part| &part.places)
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let found = [0, 1, 63, 64, 191, 192, u32::MAX].map(part_of);
        assert_eq!(found, [(0, 0), (0, 1), (0, 63), (1, 0), (1, 127), (2, 0), (26, 63)]);
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
