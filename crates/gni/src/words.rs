//! A reduction of a word by the NIC's collective engines: what this rank gives, and what came of it. One at a time.

use gasworks_core::WordOp;

/// Numbers of reductions are below this.
const MAX_NUMBER: u64 = 1 << 32;

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Give the engines this word, for the reduction with this number.
    Give { number: u64, op: WordOp, word: u64 },
    /// Look whether they have a result.
    Gather,
    /// No reduction is under way.
    Nothing,
}

/// This rank's reductions.
#[derive(Debug)]
pub(crate) struct Words {
    step: Step,
    result: Option<u64>,
}

impl Default for Words {
    fn default() -> Self {
        Self { step: Step::Nothing, result: None }
    }
}

impl Words {
    /// The next one begins, by this rank's word. Engines compare the numbers that they are given, as far as these have room there.
    pub fn begin(&mut self, number: u64, op: WordOp, word: u64) {
        let number = number & (MAX_NUMBER - 1);
        (self.step, self.result) = (Step::Give { number, op, word }, None);
    }

    pub fn next(&self) -> Step {
        self.step
    }

    /// The word was given.
    pub fn give(&mut self) {
        self.step = Step::Gather;
    }

    /// The engines have this word.
    pub fn gather(&mut self, word: u64) {
        (self.step, self.result) = (Step::Nothing, Some(word));
    }

    /// What came of the one that was begun last, once it is there.
    pub fn result(&self) -> Option<u64> {
        self.result
    }
}
