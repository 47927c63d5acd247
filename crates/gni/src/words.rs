//! A reduction of a word by the NIC's collective engines: what this rank gives, and what came of it. One at a time.

use gasworks_core::WordOp;

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
    begun: u64,
    step: Step,
    result: Option<u64>,
}

impl Default for Words {
    fn default() -> Self {
        Self { begun: 0, step: Step::Nothing, result: None }
    }
}

impl Words {
    /// The next one begins, by this rank's word.
    pub fn begin(&mut self, op: WordOp, word: u64) {
        self.begun += 1;
        (self.step, self.result) = (Step::Give { number: self.begun, op, word }, None);
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
