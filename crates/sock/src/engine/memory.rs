//! The memory of a posted operation, and one transfer to or from it.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use super::raw::lent::Lent;
use super::sys;
use crate::Buffers;

/// The most parts of a vectored operation (the system's own limit).
pub const MOST_PARTS: usize = 1024;

#[derive(Debug)]
pub(crate) enum Memory {
    One(Vec<u8>),
    Many(Vec<Vec<u8>>),
    Lent(Vec<Lent>),
}

impl Memory {
    pub(crate) fn len(&self) -> usize {
        match self {
            Memory::One(buffer) => buffer.len(),
            Memory::Many(buffers) => buffers.iter().fold(0, |sum, buffer| sum.saturating_add(buffer.len())),
            Memory::Lent(parts) => parts.iter().fold(0, |sum, part| sum.saturating_add(part.len())),
        }
    }

    /// Whether it was given as several buffers, be it one.
    pub(crate) fn is_vectored(&self) -> bool {
        match self {
            Memory::One(_) => false,
            Memory::Many(_) => true,
            Memory::Lent(parts) => parts.len() != 1,
        }
    }

    pub(crate) fn parts(&self) -> usize {
        match self {
            Memory::One(_) => 1,
            Memory::Many(buffers) => buffers.len(),
            Memory::Lent(parts) => parts.len(),
        }
    }

    pub(crate) fn into_buffers(self) -> Buffers {
        match self {
            Memory::One(buffer) => Buffers::One(buffer),
            Memory::Many(buffers) => Buffers::Many(buffers),
            Memory::Lent(_) => Buffers::None,
        }
    }

    /// One call that reads into the bytes from `from` to `to`.
    pub(crate) fn read(
        &mut self,
        fd: BorrowedFd<'_>,
        socket: bool,
        from: usize,
        to: usize,
    ) -> nix::Result<usize> {
        match self {
            Memory::One(buffer) => sys::read(fd, socket, &mut buffer[from..to]),
            Memory::Many(buffers) => {
                readv(fd, buffers.iter_mut().map(|buffer| buffer.as_mut_slice()), from, to)
            }
            Memory::Lent(parts) => match parts.as_mut_slice() {
                [part] => sys::read(fd, socket, &mut part.bytes_mut()[from..to]),
                parts => readv(fd, parts.iter_mut().map(Lent::bytes_mut), from, to),
            },
        }
    }

    /// One call that writes the bytes from `from` to `to`.
    pub(crate) fn write(
        &self,
        fd: BorrowedFd<'_>,
        socket: bool,
        from: usize,
        to: usize,
    ) -> nix::Result<usize> {
        match self {
            Memory::One(buffer) => sys::write(fd, socket, &buffer[from..to]),
            Memory::Many(buffers) => {
                writev(fd, socket, buffers.iter().map(|buffer| buffer.as_slice()), from, to)
            }
            Memory::Lent(parts) => match parts.as_slice() {
                [part] => sys::write(fd, socket, &part.bytes()[from..to]),
                parts => writev(fd, socket, parts.iter().map(Lent::bytes), from, to),
            },
        }
    }
}

/// The part of a buffer of `len` bytes that lies between `from` and `to`, both counted from its beginning.
fn overlap(len: usize, from: usize, to: usize) -> Option<std::ops::Range<usize>> {
    let range = from.min(len)..to.min(len);
    (!range.is_empty()).then_some(range)
}

fn readv<'a>(
    fd: BorrowedFd<'_>,
    parts: impl Iterator<Item = &'a mut [u8]>,
    mut from: usize,
    mut to: usize,
) -> nix::Result<usize> {
    let mut slices = Vec::new();
    for part in parts {
        let len = part.len();
        if let Some(range) = overlap(len, from, to) {
            slices.push(IoSliceMut::new(&mut part[range]));
        }
        (from, to) = (from.saturating_sub(len), to.saturating_sub(len));
    }
    sys::readv(fd, &mut slices)
}

fn writev<'a>(
    fd: BorrowedFd<'_>,
    socket: bool,
    parts: impl Iterator<Item = &'a [u8]>,
    mut from: usize,
    mut to: usize,
) -> nix::Result<usize> {
    let mut slices = Vec::new();
    for part in parts {
        if let Some(range) = overlap(part.len(), from, to) {
            slices.push(IoSlice::new(&part[range]));
        }
        (from, to) = (from.saturating_sub(part.len()), to.saturating_sub(part.len()));
    }
    sys::writev(fd, socket, &slices)
}
