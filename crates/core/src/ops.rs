//! Operations under way, and what is done when they complete.
//!
//! The engine below knows a transfer by a token; the table of operations gives the token its meaning: an event that somebody
//! tests, waits for or awaits, a part of a set of which somebody asks whether all is done, or a message that leaves once
//! its payload has landed.
//!
//! # Invariants
//! - ops.1: the place of an answer stays mapped, and is not used otherwise, until the operation that has it as its action is done: whoever
//!   starts one promises it.

use crate::message::{Encoded, Returned};
use crate::{CoreMode, Error, Rank};
use gasworks_rdma::NicError;
use gasworks_rdma::completion::{Completions, Unknown};
use gasworks_sync::RawSlice;

/// What is done when an operation completes: the seed's "completion actions".
#[derive(Debug)]
pub(crate) enum After {
    /// A Long request's header leaves, and somebody asks when its payload may be used again.
    Request { to: Rank, head: Encoded },
    /// A Long reply's header leaves.
    Reply { to: Rank, head: Encoded, own: Returned },
    /// A rank has been asked something; somebody asks for it once its answer lies there (ops.1).
    Answer { from: Rank, place: RawSlice },
    /// Nothing: the header has left beside its payload, and nobody asks.
    Beside,
}

impl After {
    /// What came of the answer of a rank, which lies in its place now; `None` if this was not asked of it.
    pub(crate) fn answered(&self, by: Rank, answer: Result<&[u8], NicError>) -> Option<Result<(), NicError>> {
        let &After::Answer { from, place } = self else { return None };
        if from != by {
            return None;
        }
        let ended = answer.map(|bytes| {
            let bytes = bytes.get(..place.len())?;
            // SAFETY: ops.1: the action is there still, so the operation is not done.
            unsafe { place.borrow() }.write(bytes);
            Some(())
        });
        match ended {
            Ok(taken) => taken.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// What operations keep.
pub(crate) type Keep<M> = Box<<M as CoreMode>::Keep>;

/// The table of operations.
pub(crate) type Ops<M> = Completions<M, After, Keep<M>, NicError>;

/// What a finished operation leaves: how it ended, and what it kept.
pub type Finished<M> = gasworks_rdma::completion::Finished<Box<<M as CoreMode>::Keep>, NicError>;

/// What came of a request whose payload may be in use: an operation, or if none was needed what would have been kept.
pub type Sent<M> = Result<gasworks_rdma::completion::OpId, Option<Box<<M as CoreMode>::Keep>>>;

/// Why an operation was not started, and what it would have kept.
pub type NotStarted<M> = (Error, Option<Box<<M as CoreMode>::Keep>>);

impl From<Unknown> for Error {
    fn from(_: Unknown) -> Self {
        Error::UnknownEvent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_rdma::completion::Categories;
    use gasworks_sync::Seq;

    #[test]
    fn an_answer_is_taken_once_and_from_who_was_asked() {
        let ops = Ops::<Seq>::default();
        let mut place = [9u8; 4];
        let raw = RawSlice::new(place.as_mut_ptr(), 4);
        let seen = || {
            let mut seen = [0; 4];
            // SAFETY: `place` is declared before this and outlives it; it is looked at only through this and written only by answers.
            unsafe { raw.borrow() }.read(&mut seen);
            seen
        };
        let answer = |token, by, answer| ops.answer(token, |after| after.answered(by, answer));
        let ask = || ops.start(Some(After::Answer { from: 3, place: raw }), Categories::UPDATE, None);
        let id = ask();
        assert!(!answer(id.to_bits(), 2, Ok(&[1, 2, 3, 4])), "of another rank");
        assert!(!answer(id.to_bits() + 1, 3, Ok(&[1, 2, 3, 4])), "of another operation");
        assert!(!answer(id.to_bits(), 3, Ok(&[1, 2, 3])), "too short");
        assert!(matches!(ops.test(id), Ok(None)));
        assert_eq!(seen(), [9; 4]);
        assert!(answer(id.to_bits(), 3, Ok(&[1, 2, 3, 4, 5])));
        assert_eq!(seen(), [1, 2, 3, 4]);
        assert!(!answer(id.to_bits(), 3, Ok(&[5; 4])), "a second time");
        assert!(matches!(ops.test(id), Ok(Some((Ok(()), None)))));
        let refused = ask();
        assert!(answer(refused.to_bits(), 3, Err(NicError::BadKey { peer: 3 })));
        assert!(matches!(ops.test(refused), Ok(Some((Err(NicError::BadKey { peer: 3 }), None)))));
        assert_eq!(seen(), [1, 2, 3, 4]);
        let put = ops.start(None, Categories::PUT, None);
        assert!(!answer(put.to_bits(), 3, Ok(&[0; 8])), "nobody was asked anything");
        assert!(matches!(ops.test(put), Ok(None)));
    }
}
