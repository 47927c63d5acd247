//! Runs of cache lines of a buffer, which one thread at a time takes and gives back in any order: a bit for each line, and the first run that is long enough.

use std::ops::Range;

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// Which lines of a buffer are taken.
#[derive(Debug)]
pub(crate) struct Lines {
    words: Box<[u64]>,
    /// No line before this one is free.
    first: usize,
}

impl Lines {
    /// So many lines, all of them free; a multiple of 64.
    pub(crate) fn new(count: usize) -> Self {
        Self { words: vec![0; count / BITS].into(), first: 0 }
    }

    fn count(&self) -> usize {
        self.words.len() * BITS
    }

    /// The first line from `at` on, and before `end`, that is taken, or that is free.
    fn next(&self, at: usize, end: usize, taken: bool) -> Option<usize> {
        let mut at = at;
        while at < end {
            let word = self.words[at / BITS];
            let wanted = (if taken { word } else { !word }) >> (at % BITS);
            if wanted != 0 {
                return Some(at + wanted.trailing_zeros() as usize).filter(|at| *at < end);
            }
            at = (at / BITS + 1) * BITS;
        }
        None
    }

    /// Sets or clears the bits of a run; whether they all were the other way before. Where they were not, nothing is changed.
    fn turn(&mut self, run: Range<usize>, taken: bool) -> bool {
        if run.end > self.count() || self.next(run.start, run.end, taken).is_some() {
            return false;
        }
        let mut at = run.start;
        while at < run.end {
            let count = (BITS - at % BITS).min(run.end - at);
            let mask = (u64::MAX >> (BITS - count)) << (at % BITS);
            let word = &mut self.words[at / BITS];
            *word = if taken { *word | mask } else { *word & !mask };
            at += count;
        }
        true
    }

    /// Takes the first free run of so many lines; its first line. None at all are at 0.
    pub(crate) fn claim(&mut self, count: usize) -> Option<usize> {
        if count == 0 {
            return Some(0);
        }
        let all = self.count();
        self.first = self.next(self.first, all, false)?;
        let mut start = self.first;
        loop {
            let end = start.checked_add(count).filter(|end| *end <= all)?;
            match self.next(start, end, true) {
                None => {
                    self.turn(start..end, true);
                    return Some(start);
                }
                Some(taken) => start = self.next(taken, all, false)?,
            }
        }
    }

    /// Gives a run back, all of whose lines are taken; whether they were.
    pub(crate) fn free(&mut self, start: usize, count: usize) -> bool {
        self.first = self.first.min(start);
        start.checked_add(count).is_some_and(|end| self.turn(start..end, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINES: usize = 256;

    proptest! {
        /// Against a flag for each line.
        #[test]
        fn runs_are_apart_and_the_first_that_fit(steps in prop::collection::vec((any::<bool>(), 0usize..90, any::<prop::sample::Index>()), 1..120)) {
            let mut lines = Lines::new(LINES);
            let mut model = [false; LINES];
            let mut runs: Vec<(usize, usize)> = Vec::new();
            for (claims, count, which) in steps {
                if claims {
                    let fits = |start: &usize| start + count <= LINES && !model[*start..start + count].contains(&true);
                    let wanted = (0..LINES).find(fits);
                    prop_assert_eq!(lines.claim(count), wanted);
                    if let Some(start) = wanted {
                        model[start..start + count].fill(true);
                        runs.push((start, count));
                    }
                } else if !runs.is_empty() {
                    let (start, count) = runs.swap_remove(which.index(runs.len()));
                    prop_assert!(lines.free(start, count));
                    model[start..start + count].fill(false);
                    prop_assert_eq!(lines.free(start, count), count == 0, "it was given back");
                }
            }
        }
    }

    #[test]
    fn what_is_no_run_is_not_given_back() {
        let mut lines = Lines::new(LINES);
        assert_eq!((lines.claim(LINES + 1), lines.claim(usize::MAX)), (None, None));
        assert_eq!((lines.claim(LINES), lines.claim(1)), (Some(0), None));
        assert!(!lines.free(1, LINES) && !lines.free(usize::MAX, 2) && !lines.free(LINES, 1));
        assert!(lines.free(64, 64) && !lines.free(63, 2));
        assert_eq!((lines.claim(65), lines.claim(64)), (None, Some(64)));
    }
}
