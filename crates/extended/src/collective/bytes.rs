//! What members give each other, and why they go no further for now.

use gasworks_core::{Error, Rank};
use gasworks_sync::VolatileSlice;

/// Bytes to be sent: nobody writes them, or somebody may.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes<'a> {
    Plain(&'a [u8]),
    Shared(VolatileSlice<'a>),
}

impl<'a> Bytes<'a> {
    pub fn len(self) -> usize {
        match self {
            Bytes::Plain(bytes) => bytes.len(),
            Bytes::Shared(bytes) => bytes.len(),
        }
    }

    /// So many from a place on, or none if they are not all there.
    pub fn part(self, from: usize, len: usize) -> Bytes<'a> {
        let end = from.saturating_add(len);
        match self {
            Bytes::Plain(bytes) => Bytes::Plain(bytes.get(from..end).unwrap_or_default()),
            Bytes::Shared(bytes) => Bytes::Shared(bytes.slice(from, len).unwrap_or(VolatileSlice::EMPTY)),
        }
    }

    /// Copies all of them out.
    pub fn read(self, to: &mut [u8]) {
        match self {
            Bytes::Plain(bytes) => to.copy_from_slice(bytes),
            Bytes::Shared(bytes) => bytes.read(to),
        }
    }

    /// Copies all of them to a place of as many, unless they lie there.
    pub fn copy_to(self, to: VolatileSlice<'_>) {
        match self {
            Bytes::Plain(bytes) => to.write(bytes),
            Bytes::Shared(bytes) if bytes.as_ptr() == to.as_ptr() => {}
            Bytes::Shared(bytes) => bytes.copy_to(to),
        }
    }
}

/// Why a schedule goes no further for now.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It waits for another member, of this rank if it is one that can be named.
    Waits(Option<Rank>),
    /// It waits for room or a credit.
    Busy,
    /// Nothing will come of it.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error.is_busy() {
            true => Stop::Busy,
            false => Stop::Failed(error),
        }
    }
}
