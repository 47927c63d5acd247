//! Runs: the pieces of a scattered transfer that lie together on both sides.
//!
//! # Invariants
//! - runs.1: where the runs of a transfer go in the peer's memory is inside what [`Measure`] says of it, and as many bytes are there as here.

use crate::Error;
use gasworks_sync::{VolatileSlice, racy};

/// Bytes that lie together on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where they are here.
    pub local: *mut u8,
    /// Where they are in the peer's memory: an offset.
    pub remote: u64,
    /// How many there are.
    pub len: usize,
}

/// What is known of a transfer before a byte of it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// How many bytes move.
    pub bytes: u64,
    /// How many runs there are at least, and no less than half of them.
    pub runs: u64,
    /// The lowest offset in the peer's memory.
    pub low: u64,
    /// How many bytes there are from that to the end of the highest run.
    pub extent: usize,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the peer.
    Put,
    /// From it.
    Get,
}

/// A transfer's pieces.
///
/// # Safety
/// runs.1: it gives the same pieces each time, and [`measure`](Self::measure) says what is true of them.
pub unsafe trait Runs {
    /// What is known of all of them; `None` if nothing is to be moved.
    ///
    /// # Errors
    /// The two sides have different numbers of bytes, or a place or a number of bytes is more than an address counts.
    fn measure(&self) -> Result<Option<Measure>, Error>;

    /// All of them. None is empty.
    fn runs(&self) -> impl Iterator<Item = Run> + Clone;

    /// Copies all of them to or from the peer's memory, of which `there` is the part that [`measure`](Self::measure) has named.
    ///
    /// # Safety
    /// The runs here are mapped: readable and not written for a put, writable and nobody else's for a get; and none overlaps what it is copied
    /// to.
    unsafe fn copy(&self, way: Way, there: Base<'_>);
}

/// The part of a peer's memory that a transfer touches.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    there: VolatileSlice<'a>,
    low: u64,
}

impl<'a> Base<'a> {
    /// `there` begins at the offset `low`.
    pub fn new(there: VolatileSlice<'a>, low: u64) -> Self {
        Self { there, low }
    }

    /// The address of an offset that is inside.
    #[inline(always)]
    pub fn at(self, offset: u64) -> *mut u8 {
        self.there.as_ptr().wrapping_add(offset.wrapping_sub(self.low) as usize)
    }
}

/// Copies a run, one of many: after the last one a put ends with [`racy::all_copied_in`].
///
/// # Safety
/// `remote` is mapped for `len` bytes; so is `local`, readable and not written to if this is a put, otherwise writable and nobody else's; they do
/// not overlap.
#[inline(always)]
pub(super) unsafe fn copy<const PUT: bool>(local: *mut u8, remote: *mut u8, len: usize) {
    // SAFETY: the caller promises `len` bytes at both, free of references where peers may touch them, and apart.
    unsafe {
        match PUT {
            true => racy::copy_in_one(remote, local, len),
            false => racy::copy_out(local, remote, len),
        }
    }
}

/// What no address counts.
pub(super) fn too_large() -> Error {
    Error::Scattered("a place or a sum of its bytes is below zero or more than an address counts")
}
