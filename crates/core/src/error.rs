//! What can go wrong with an active message.

use crate::team::TeamError;
use crate::{Category, Rank, WireError};
use gasworks_memory::MemoryError;
use gasworks_rdma::{EngineError, NicError};
use thiserror::Error;

/// Why an operation of `core` failed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There is no room or no credit now: poll, then try again. Only the `try_` forms return it.
    #[error("a request to rank {to} must wait: {what}")]
    Busy {
        /// To whom.
        to: Rank,
        /// What it waits for.
        what: &'static str,
    },
    /// The transport failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The network interface failed.
    #[error("{during}: {cause}")]
    Nic {
        /// The operation.
        during: &'static str,
        /// The cause.
        cause: NicError,
    },
    /// The engine of the network interface did not start a transfer.
    #[error("{during} to or from rank {peer}: {cause}")]
    Rdma {
        /// The operation.
        during: &'static str,
        /// The other rank.
        peer: Rank,
        /// The cause.
        cause: EngineError,
    },
    /// An address, a rank or a range is wrong.
    #[error("{during}: {cause}")]
    Memory {
        /// The operation.
        during: &'static str,
        /// The cause.
        cause: MemoryError,
    },
    /// A payload is larger than the transport carries.
    #[error("{category} message to rank {to}: a payload of {len} bytes, at most {max} are allowed")]
    PayloadTooLarge {
        /// The category.
        category: Category,
        /// To whom.
        to: Rank,
        /// How large it was.
        len: usize,
        /// How large it may be.
        max: u64,
    },
    /// A Long lands elsewhere than where it was prepared for.
    #[error("long message to rank {to}: prepared to land at byte {asked} of its segment, not {landing}")]
    Landing {
        /// To whom.
        to: Rank,
        /// Where it was to land.
        asked: u64,
        /// Where it would.
        landing: u64,
    },
    /// The arguments are not at most 16 words of 32 bits.
    #[error("an active message carries at most 16 arguments of 32 bits, not {bytes} bytes")]
    Arguments {
        /// The size that was given.
        bytes: usize,
    },
    /// A communication call from inside a handler.
    #[error("{0}: not allowed while a handler runs on this thread")]
    InHandler(&'static str),
    /// A communication call by a thread that holds a handler-safe lock.
    #[error("{0}: not allowed while this thread holds a handler-safe lock")]
    LockHeld(&'static str),
    /// A handler-safe lock was taken twice by one thread.
    #[error("a handler-safe lock is not recursive, and this thread has it already")]
    Recursive,
    /// A peer sent something that no well-behaved peer sends.
    #[error("message from rank {from}: {what}")]
    BadMessage {
        /// From whom.
        from: Rank,
        /// What was wrong with it.
        what: String,
    },
    /// The handler table cannot be built.
    #[error("handler {name:?}: {what}")]
    Table {
        /// The handler's name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A handler says that it failed.
    #[error("handling a message from rank {from}: {what}")]
    Handler {
        /// Who sent the message.
        from: Rank,
        /// What it says.
        what: String,
    },
    /// There is no memory for a payload.
    #[error("no memory for a payload of {len} bytes")]
    NoMemory {
        /// How large it is.
        len: usize,
    },
    /// An operation's event was used with a job that does not know it.
    #[error("the event does not belong to this job, or was waited for before")]
    UnknownEvent,
    /// A team cannot be made, or a member is none of a team's.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A call to a member of a team failed.
    #[error("member {member} of the team: {cause}")]
    Member {
        /// The member.
        member: u32,
        /// Why, by its rank.
        cause: Box<Error>,
    },
    /// The job has ended in good order, and something of it is waited for.
    #[error("the job is closed: nothing goes on in it")]
    Over,
    /// A peer needs the network and there is none.
    #[error("{during}: rank {rank} is not mapped here and no network transport is open")]
    Unreachable {
        /// The operation.
        during: &'static str,
        /// Which rank.
        rank: Rank,
    },
}

impl Error {
    /// Whether polling and trying again may help.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Busy { .. } | Error::Wire(WireError::Busy { .. }))
    }

    pub(crate) fn memory(during: &'static str) -> impl Fn(MemoryError) -> Error {
        move |cause| Error::Memory { during, cause }
    }
}

/// Why a step of the way that every message takes did not succeed, in the size of a register, so that those that do succeed
/// carry no room for an error along: the error, or nothing if there is no room or no credit now.
#[derive(Debug)]
pub(crate) struct Stop(Option<Box<Error>>);

impl Stop {
    /// No room or no credit now.
    pub(crate) const BUSY: Stop = Stop(None);

    /// The error of a message to `to`, which cannot wait.
    #[cold]
    pub(crate) fn or_full(self, to: Rank) -> Error {
        self.error().unwrap_or(Error::Wire(WireError::Busy { to }))
    }

    /// The error; `None` if polling and trying again may help.
    #[cold]
    pub(crate) fn error(self) -> Option<Error> {
        self.0.map(|error| *error)
    }
}

impl From<Error> for Stop {
    #[cold]
    fn from(error: Error) -> Self {
        if error.is_busy() { Self::BUSY } else { Self(Some(Box::new(error))) }
    }
}

impl From<Box<Error>> for Stop {
    #[cold]
    fn from(error: Box<Error>) -> Self {
        (*error).into()
    }
}

impl From<WireError> for Stop {
    #[cold]
    fn from(error: WireError) -> Self {
        Error::Wire(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_help_is_tried_again() {
        let (busy, gone) = (WireError::Busy { to: 3 }, WireError::PeerGone { rank: 3 });
        let rows = [
            (Error::Busy { to: 3, what: "short" }, true),
            (Error::Wire(busy.clone()), true),
            (Error::Wire(gone.clone()), false),
            (Error::Recursive, false),
        ];
        for (error, is_busy) in rows {
            assert_eq!(error.is_busy(), is_busy, "{error}");
            let (told, told_full) = (Stop::from(error.clone()).error(), Stop::from(error.clone()).or_full(3));
            let wanted =
                if is_busy { (None, Error::Wire(busy.clone())) } else { (Some(error.clone()), error) };
            assert_eq!((told, told_full), wanted);
        }
        assert_eq!(
            (Stop::from(busy).error(), Stop::from(gone.clone()).error()),
            (None, Some(Error::Wire(gone)))
        );
        assert_eq!(size_of::<Stop>(), size_of::<usize>());
    }

    #[test]
    fn an_error_says_what_was_done_and_why_it_failed() {
        let cause = MemoryError::NoSuchRank { rank: 4, ranks: 2 };
        let rows = [
            (Error::Busy { to: 3, what: "it is short" }, "a request to rank 3 must wait: it is short"),
            (Error::Wire(WireError::Busy { to: 3 }), "no room for a message to rank 3 now"),
            (Error::memory("put")(cause), "put: "),
            (
                Error::PayloadTooLarge { category: Category::Medium, to: 3, len: 9, max: 8 },
                "medium message to rank 3: a payload of 9 bytes, at most 8 are allowed",
            ),
            (
                Error::Rdma { during: "get", peer: 3, cause: EngineError::Busy { descriptors: 2 } },
                "get to or from rank 3: all 2 post descriptors are in use",
            ),
            (Error::Nic { during: "put", cause: NicError::Busy }, "put: the network has no room"),
        ];
        for (error, text) in rows {
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }
}
