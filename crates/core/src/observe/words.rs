//! The file in which a rank records, as words.

use gasworks_os::Result;
use gasworks_os::memfd::{self, Mapping};
use gasworks_shmem::view;
use gasworks_sync::atomic::AtomicU64;
use std::os::fd::BorrowedFd;

/// A mapped file of words.
#[derive(Debug)]
pub(super) struct Words {
    mapping: Mapping,
}

impl Words {
    /// Maps all of the file.
    pub(super) fn map(file: BorrowedFd<'_>) -> Result<Self> {
        let len = usize::try_from(memfd::size_of_file(file)?).unwrap_or(usize::MAX);
        Ok(Self { mapping: memfd::map(file, len)? })
    }

    /// The words.
    #[inline]
    pub(super) fn get(&self) -> &[AtomicU64] {
        view::slice(self.mapping.bytes(), 0, self.mapping.len() / 8).unwrap_or_default()
    }
}
