//! Regular files that several processes read and write at offsets (`pread(2)`, `pwrite(2)`).
//!
//! They are not mapped: whoever may write to such a file may also cut it, and an access to a page that is cut away, or for which the file system has no room, ends a process by `SIGBUS`.
//! A call that finds no bytes, or no room, is an error. Processes that do map the file see the same bytes.
//!
//! # Invariants
//! - file.1: the system writes to memory of this process only as far as a [`VolatileSlice`] goes, which the caller borrows until the call returns, and to which nobody has references but to
//!   atomics.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use gasworks_sync::VolatileSlice;
use nix::errno::Errno;
use nix::sys::uio::{pread, pwritev};

use crate::{OsError, Result};

/// Parts that one call takes (`IOV_MAX`).
const MAX_PARTS: usize = 1024;

/// Such a file.
#[derive(Debug)]
pub struct SharedFile(OwnedFd);

fn failed(doing: &'static str, at: u64, error: Errno) -> OsError {
    OsError::new(doing, format!("a file from byte {at} on"), error)
}

/// Calls until `len` bytes are moved; `call` is given how many were.
fn each(
    doing: &'static str,
    at: u64,
    len: usize,
    mut call: impl FnMut(usize, libc::off_t) -> nix::Result<usize>,
) -> Result<()> {
    let mut done = 0;
    while done < len {
        let offset = libc::off_t::try_from(at + done as u64).map_err(|_| failed(doing, at, Errno::EFBIG))?;
        match call(done, offset) {
            // The file ends there.
            Ok(0) => return Err(failed(doing, at, Errno::ENODATA)),
            Ok(count) => done += count,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(failed(doing, at, error)),
        }
    }
    Ok(())
}

impl SharedFile {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Reads bytes from `at` on.
    ///
    /// # Errors
    /// The file ends before, or the system refuses: some may have been read.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        each("read", at, into.len(), |done, offset| pread(&self.0, &mut into[done..], offset))
    }

    /// As [`read`](Self::read), into memory that others may use.
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub fn read_to(&self, at: u64, into: VolatileSlice<'_>) -> Result<()> {
        each("read", at, into.len(), |done, offset| {
            let rest = into.slice(done, into.len() - done).unwrap_or(VolatileSlice::EMPTY);
            // SAFETY: file.1: `rest` are bytes of `into`, which is borrowed; the descriptor is open as long as this.
            let count = unsafe { libc::pread(self.0.as_raw_fd(), rest.as_ptr().cast(), rest.len(), offset) };
            Errno::result(count).map(|count| count as usize)
        })
    }

    /// Writes parts from `at` on, which follow each other.
    ///
    /// # Errors
    /// There is no room, or the system refuses: some may have been written.
    pub fn write(&self, at: u64, parts: &[&[u8]]) -> Result<()> {
        let mut at = at;
        for parts in parts.chunks(MAX_PARTS) {
            let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
            let mut rest = &mut slices[..];
            let len = parts.iter().map(|part| part.len()).sum();
            let mut before = 0;
            each("write", at, len, |done, offset| {
                IoSlice::advance_slices(&mut rest, done - before);
                before = done;
                pwritev(&self.0, rest, offset)
            })?;
            at += len as u64;
        }
        Ok(())
    }

    /// Writes memory that others may use from `at` on.
    ///
    /// # Errors
    /// As of [`write`](Self::write).
    pub fn write_from(&self, at: u64, from: VolatileSlice<'_>) -> Result<()> {
        each("write", at, from.len(), |done, offset| {
            let rest = from.slice(done, from.len() - done).unwrap_or(VolatileSlice::EMPTY);
            // SAFETY: file.1: the system reads the bytes of `rest`, which are borrowed, and writes none; the descriptor is open as long as this.
            let count = unsafe { libc::pwrite(self.0.as_raw_fd(), rest.as_ptr().cast(), rest.len(), offset) };
            Errno::result(count).map(|count| count as usize)
        })
    }
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_those_that_are_cut_away_are_an_error() {
        let inner = tempfile::tempfile().expect("a file");
        let file = SharedFile::new(inner.try_clone().expect("a descriptor").into());
        file.write(10, &[b"abc", b"", b"defg"]).expect("room");
        let many: Vec<_> = (0..3 * MAX_PARTS).map(|at| [at as u8, 1]).collect();
        let parts: Vec<&[u8]> = many.iter().map(|part| &part[..]).collect();
        file.write(100, &parts).expect("room");
        let mut found = vec![0; 6 * MAX_PARTS];
        file.read(100, &mut found).expect("there");
        assert_eq!(found, many.concat());
        let mut bytes = [0; 7];
        file.read_to(10, VolatileSlice::from_mut(&mut bytes)).expect("there");
        assert_eq!(&bytes, b"abcdefg");
        file.write_from(12, VolatileSlice::from_mut(&mut bytes)).expect("room");
        file.read(10, &mut bytes).expect("there");
        assert_eq!(&bytes, b"ababcde");
        inner.set_len(12).expect("cut");
        let error = file.read(10, &mut bytes).expect_err("cut").to_string();
        assert!(error.contains("read a file from byte 10 on"), "{error}");
        assert!(file.read_to(10, VolatileSlice::from_mut(&mut bytes)).is_err());
        assert!(file.read(u64::MAX - 3, &mut bytes).is_err());
        file.read(12, &mut []).expect("nothing");
    }
}
