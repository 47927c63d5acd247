//! A growing array of parts, each twice as large as the one before, which never move: what is found in one stays there.

use std::sync::OnceLock;

/// How many parts there are at most.
pub const PARTS: usize = 26;

/// An array whose first part has `FIRST` elements. What a part is, and how its elements lie in it, is the caller's.
#[derive(Debug)]
pub struct Doubling<P, const FIRST: u32> {
    parts: [OnceLock<P>; PARTS],
}

impl<P, const FIRST: u32> Default for Doubling<P, FIRST> {
    fn default() -> Self {
        Self { parts: [const { OnceLock::new() }; PARTS] }
    }
}

impl<P, const FIRST: u32> Doubling<P, FIRST> {
    /// The part of an element, and the element's number in it.
    #[inline]
    pub fn locate(index: u32) -> (usize, usize) {
        let part = (index / FIRST + 1).ilog2() as usize;
        (part, (index - Self::start_of(part)) as usize)
    }

    /// The number of a part's first element.
    pub fn start_of(part: usize) -> u32 {
        FIRST * ((1 << part) - 1)
    }

    /// A part, if it has been made.
    #[inline]
    pub fn get(&self, part: usize) -> Option<&P> {
        self.parts.get(part)?.get()
    }

    /// A part, made of so many elements if it has not been made; `None` if there is no such part.
    pub fn get_or_make(&self, part: usize, make: impl FnOnce(u32) -> P) -> Option<&P> {
        Some(self.parts.get(part)?.get_or_init(|| make(FIRST << part)))
    }

    /// All that have been made, from the first on.
    pub fn made(&self) -> impl Iterator<Item = &P> {
        self.parts.iter().map_while(OnceLock::get)
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        type Of64 = Doubling<Vec<u32>, 64>;
        let found = [0, 1, 63, 64, 191, 192, u32::MAX].map(Of64::locate);
        assert_eq!(found, [(0, 0), (0, 1), (0, 63), (1, 0), (1, 127), (2, 0), (26, 63)]);
        let one = [0, 1, 2, 3, 6, 7].map(Doubling::<(), 1>::locate);
        assert_eq!(one, [(0, 0), (1, 0), (1, 1), (2, 0), (2, 3), (3, 0)]);
        let array = Of64::default();
        assert!(array.get(0).is_none() && array.get(PARTS).is_none());
        for part in [0, 1, 1] {
            let made = array.get_or_make(part, |len| (0..len).map(|at| Of64::start_of(part) + at).collect());
            assert_eq!(made.map(Vec::len), Some(64 << part));
        }
        assert!(array.get_or_make(PARTS, |_| Vec::new()).is_none());
        assert_eq!(array.made().flatten().copied().collect::<Vec<_>>(), (0..192).collect::<Vec<_>>());
    }
}
