//! Posted operations on memory that the caller only lends: what the C interface is made of.
//!
//! # Invariants
//! - raw.1: the memory of a [`Lent`] is valid for its length, for reads and writes if it is posted for reading and for reads
//!   if it is posted for writing, and nobody else touches it in a conflicting way, from the call that posts it until the
//!   event that ends the operation was delivered. That is the contract of the functions that take it.
//! - raw.2: the engine makes references to it only while it transfers bytes, under the lock of the sock, one direction each.

#[allow(unsafe_code)]
pub(crate) mod lent;

use super::memory::Memory;
use crate::{Direction, Error, Progress, Sock};

pub use lent::Lent;

/// [`Sock::post_readv`] into lent memory.
pub fn post_read(
    sock: &Sock,
    parts: Vec<Lent>,
    min: usize,
    max: usize,
    progress: Option<Progress>,
) -> Result<(), Error> {
    sock.post_transfer(Direction::Read, Memory::Lent(parts), min, max, progress)
}

/// [`Sock::post_writev`] from lent memory.
pub fn post_write(
    sock: &Sock,
    parts: Vec<Lent>,
    min: usize,
    max: usize,
    progress: Option<Progress>,
) -> Result<(), Error> {
    sock.post_transfer(Direction::Write, Memory::Lent(parts), min, max, progress)
}
