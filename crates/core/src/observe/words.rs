//! The file in which a rank records, as words.
//!
//! # Invariants
//! W1. The words lie inside the mapping, which lives in the same value and is dropped after the last use of them: they
//!     are only lent for as long as that value is borrowed.
//! W2. The mapped bytes are touched only through these atomics, here and in the process that made the file.

use gasworks_os::memfd::{self, Mapping};
use gasworks_os::{OsError, Result};
use gasworks_shmem::view;
use gasworks_sync::atomic::AtomicU64;
use std::os::fd::BorrowedFd;

/// A mapped file of words.
#[derive(Debug)]
pub(super) struct Words {
    words: &'static [AtomicU64],
    _mapping: Mapping,
}

impl Words {
    /// Maps all of the file.
    pub(super) fn map(file: BorrowedFd<'_>) -> Result<Self> {
        let len = usize::try_from(memfd::size_of_file(file)?).unwrap_or(usize::MAX);
        let mapping = memfd::map(file, len)?;
        // SAFETY: W1, W2; Y1 and Y2 of `gasworks_sync::racy` follow from them.
        let words = unsafe { view::slice(mapping.bytes(), 0, len / 8) };
        let odd = || OsError::new("lay words over", "a mapped file", std::io::ErrorKind::InvalidData);
        Ok(Self { words: words.ok_or_else(odd)?, _mapping: mapping })
    }

    /// The words.
    #[inline]
    pub(super) fn get(&self) -> &[AtomicU64] {
        self.words
    }
}
