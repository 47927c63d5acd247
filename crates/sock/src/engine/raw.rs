//! Posted operations on memory that the caller only lends: what the C interface is made of.
//!
//! # Invariants
//! R1. The memory of a [`Lent`] is valid for its length, for reads and writes if it is posted for reading and for reads
//!     if it is posted for writing, and nobody else touches it in a conflicting way, from the call that posts it until the
//!     event that ends the operation was delivered. That is the contract of the functions that take it.
//! R2. The engine makes references to it only while it transfers bytes, under the lock of the sock, one direction each.

use super::memory::Memory;
use crate::{Error, Progress, Sock};

/// Memory of the caller.
#[derive(Debug)]
pub struct Lent {
    at: *mut u8,
    len: usize,
}

// SAFETY: R1: whichever thread transfers, it alone touches the memory (R2).
unsafe impl Send for Lent {}

impl Lent {
    /// So many bytes at `at`.
    ///
    /// # Safety
    /// R1, for the operation that it is posted with. `at` may be null if `len` is 0.
    pub unsafe fn new(at: *mut u8, len: usize) -> Self {
        Self { at, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: R1, R2.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: R1, R2: posted for reading, so it may be written.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

/// [`Sock::post_readv`] into lent memory.
pub fn post_read(
    sock: &Sock,
    parts: Vec<Lent>,
    min: usize,
    max: usize,
    progress: Option<Progress>,
) -> Result<(), Error> {
    sock.post_transfer(super::sock::Direction::Read, Memory::Lent(parts), min, max, progress)
}

/// [`Sock::post_writev`] from lent memory.
pub fn post_write(
    sock: &Sock,
    parts: Vec<Lent>,
    min: usize,
    max: usize,
    progress: Option<Progress>,
) -> Result<(), Error> {
    sock.post_transfer(super::sock::Direction::Write, Memory::Lent(parts), min, max, progress)
}
