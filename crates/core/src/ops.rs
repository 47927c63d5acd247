//! Operations under way, and what is done when they complete.
//!
//! The engine below knows a transfer by a token; the table of operations gives the token its meaning: an event that somebody
//! tests, waits for or awaits, a part of a set of which somebody asks whether all is done, or a message that leaves once
//! its payload has landed.
//!
//! # Invariants
//! - ops.1: the places of an answer stay mapped, and are not used otherwise, until the operation that has it as its action is done: whoever
//!   starts one promises it.

use crate::message::{Encoded, Returned};
use crate::{CoreMode, Error, Rank};
use gasworks_rdma::NicError;
use gasworks_rdma::completion::{Completions, Unknown};
use gasworks_sync::{RawSlice, VolatileSlice};
use std::sync::Arc;

/// What is done when an operation completes: the seed's "completion actions".
#[derive(Debug)]
pub(crate) enum After {
    /// A Long request's header leaves, and somebody asks when its payload may be used again.
    Request { to: Rank, head: Encoded },
    /// A Long reply's header leaves.
    Reply { to: Rank, head: Encoded, own: Returned },
    /// A rank has been asked something; somebody asks for it once its answer lies there (ops.1).
    Answer { from: Rank, places: Places },
    /// Nothing: the header has left beside its payload, and nobody asks.
    Beside,
}

/// Where an answer goes.
#[derive(Clone, Debug)]
pub enum Places {
    /// Its first bytes, to one place.
    One(RawSlice),
    /// All of its bytes, to these places in order.
    Many(Arc<[RawSlice]>),
}

/// The bytes of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// Private ones.
    Plain(&'a [u8]),
    /// Those of a payload, which its sender may be writing.
    Shared(VolatileSlice<'a>),
}

impl Answer<'_> {
    fn len(self) -> usize {
        match self {
            Answer::Plain(bytes) => bytes.len(),
            Answer::Shared(bytes) => bytes.len(),
        }
    }

    /// Copies those from `from` on that a place has room for; `None` if there are not as many.
    fn copy(self, from: usize, place: VolatileSlice<'_>) -> Option<()> {
        match self {
            Answer::Plain(bytes) => place.write(bytes.get(from..)?.get(..place.len())?),
            Answer::Shared(bytes) => bytes.slice(from, place.len())?.copy_to(place),
        }
        Some(())
    }
}

impl After {
    /// What came of the answer of a rank, which lies in its places now; `None` if this was not asked of it.
    pub(crate) fn answered(
        &self,
        by: Rank,
        answer: Result<Answer<'_>, NicError>,
    ) -> Option<Result<(), NicError>> {
        let After::Answer { from, places } = self else { return None };
        if *from != by {
            return None;
        }
        let ended = answer.map(|bytes| {
            let places = match places {
                Places::One(place) => std::slice::from_ref(place),
                Places::Many(places)
                    if places.iter().map(|place| place.len()).sum::<usize>() == bytes.len() =>
                {
                    places
                }
                Places::Many(_) => return None,
            };
            let mut from = 0;
            for place in places {
                // SAFETY: ops.1: the action is there still, so the operation is not done.
                bytes.copy(from, unsafe { place.borrow() })?;
                from += place.len();
            }
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
        let answer = |token, by, answer: Result<&[u8], _>| {
            ops.answer(token, |after| after.answered(by, answer.map(Answer::Plain)))
        };
        let places = || Places::One(raw);
        let ask = || ops.start(Some(After::Answer { from: 3, places: places() }), Categories::UPDATE, None);
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

    #[test]
    fn a_scattered_answer_has_as_many_bytes_as_its_places() {
        let ops = Ops::<Seq>::default();
        let (mut there, mut answer) = ([9u8; 6], *b"abcde");
        let raw = RawSlice::new(there.as_mut_ptr(), 6);
        let places: Arc<[RawSlice]> =
            [(4, 2), (0, 0), (0, 3)].map(|(at, len)| raw.slice(at, len).expect("inside")).into();
        let answer = VolatileSlice::from_mut(&mut answer);
        let ask = || {
            let after = After::Answer { from: 3, places: Places::Many(places.clone()) };
            ops.start(Some(after), Categories::GET, None)
        };
        let id = ask();
        let take = |bytes| ops.answer(id.to_bits(), |after| after.answered(3, Ok(Answer::Shared(bytes))));
        assert!(!take(answer.slice(0, 4).expect("inside")), "too short");
        assert!(take(answer));
        assert!(matches!(ops.test(id), Ok(Some((Ok(()), None)))));
        let mut seen = [0; 6];
        // SAFETY: `there` is declared before this and outlives it; it is looked at only through this and written only by answers.
        unsafe { raw.borrow() }.read(&mut seen);
        assert_eq!(seen, *b"cde\x09ab");
        let long = ask();
        let mut six = [0; 6];
        let six = Answer::Shared(VolatileSlice::from_mut(&mut six));
        assert!(!ops.answer(long.to_bits(), |after| after.answered(3, Ok(six))), "too long");
    }
}
