//! What can go wrong with a put, a get, an atomic operation or a barrier.

use gasworks_memory::atomic::{Ops, Type};
use thiserror::Error;

/// Why an operation of `extended` failed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A collective was given another number of bytes than its others have for it.
    #[error("{call}: {found} bytes, where {wanted} are wanted: {why}")]
    Length {
        /// Which.
        call: &'static str,
        /// How many it was given.
        found: usize,
        /// How many it should have been.
        wanted: usize,
        /// Of what that follows.
        why: &'static str,
    },
    /// The two sides of a scattered transfer do not have as many bytes.
    #[error("a scattered transfer between {here} bytes of this rank and {there} of the other")]
    Unequal {
        /// How many there are here.
        here: u64,
        /// How many there are there.
        there: u64,
    },
    /// A scattered transfer that cannot be.
    #[error("a scattered transfer: {0}")]
    Scattered(&'static str),
    /// An active message, a transfer or a poll failed.
    #[error(transparent)]
    Core(#[from] gasworks_core::Error),
    /// A setting cannot be used as it stands.
    #[error(transparent)]
    Setting(#[from] gasworks_os::settings::SettingError),
    /// An access region out of turn.
    #[error("access region: {0}")]
    Region(&'static str),
    /// Operations that are none on words of a type.
    #[error("an atomic domain of {operations:?} on words of type {of:?}: bits are an integer's")]
    Operations {
        /// What the words hold.
        of: Type,
        /// The operations that are none.
        operations: Ops,
    },
    /// An operation by which numbers of a type are not combined.
    #[error("a reduction by {operation:?} of numbers of type {of:?}: there is none")]
    NoReduction {
        /// What is to be combined.
        of: Type,
        /// The operation.
        operation: Ops,
    },
    /// An operation that is not one of its domain's.
    #[error(
        "atomic {operation:?} on a word of type {of:?}: its domain was made for {made_for:?} on {domain_of:?}"
    )]
    NotOfDomain {
        /// The operation.
        operation: Ops,
        /// Its type.
        of: Type,
        /// The domain's operations.
        made_for: Ops,
        /// The domain's type.
        domain_of: Type,
    },
    /// A word that does not lie at a multiple of its width.
    #[error(
        "atomic operation on {width} bytes at offset {offset} of rank {rank}'s segment, which is no multiple of that"
    )]
    UnalignedWord {
        /// Whose segment.
        rank: u32,
        /// Where in it.
        offset: u64,
        /// Bytes of the word.
        width: usize,
    },
    /// A barrier call out of turn.
    #[error("barrier: {0}")]
    Barrier(&'static str),
}

impl Error {
    /// Whether polling and trying again may help.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Core(error) if error.is_busy())
    }
}
