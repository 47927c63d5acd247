//! Scans: each member gets what those before it have, combined, with its own or without.
//!
//! In round `r` a member sends what it has combined so far to the one 2^r further on, if there is one, and puts what comes from the one 2^r before in
//! front of its own.

use super::Combine;
use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::part::{Io, Schedule};
use super::tree::{chunk, part};
use gasworks_sync::VolatileSlice;

/// A member's part.
pub(crate) struct Scan<'a, C> {
    /// What it has, and gets.
    values: VolatileSlice<'a>,
    /// Its own is a part of it.
    with_own: bool,
    combine: C,
    chunk: usize,
    is_begun: bool,
    round: u32,
    is_sent: bool,
    so_far: Buffer,
    /// That without its own, if that is what is wanted, and if there is any.
    before: Option<Buffer>,
}

impl<'a, C: Combine> Scan<'a, C> {
    pub fn new(values: VolatileSlice<'a>, with_own: bool, combine: C) -> Self {
        let (chunk, is_begun, round, is_sent) = (0, false, 0, false);
        let (so_far, before) = (Buffer::default(), None);
        Self { values, with_own, combine, chunk, is_begun, round, is_sent, so_far, before }
    }

    /// What comes is of members before all that is here.
    fn put_in_front(&mut self, io: &mut Io<'_>, mut theirs: Buffer) {
        if !self.with_own {
            let mut before = io.buffer(theirs.len());
            before.copy_from_slice(&theirs);
            if let Some(mut nearer) = self.before.take() {
                self.combine.combine(&mut before, &mut nearer);
                io.give_back(nearer);
            }
            self.before = Some(before);
        }
        self.combine.combine(&mut theirs, &mut self.so_far);
        io.give_back(std::mem::replace(&mut self.so_far, theirs));
    }
}

impl<C: Combine> Schedule for Scan<'_, C> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let (own, size) = (io.own(), io.size());
        while let Some(range) = chunk(self.chunk, self.values.len(), self.combine.element()) {
            let (values, len) = (part(self.values, range), range.1);
            if !self.is_begun {
                self.so_far = io.buffer(len);
                values.read(&mut self.so_far);
                self.is_begun = true;
            }
            while let Some(distance) = 1u32.checked_shl(self.round).filter(|&distance| distance < size) {
                let step = self.chunk as u32 * u32::BITS + self.round;
                let from = own.checked_sub(distance);
                if let Some(from) = from {
                    io.clear_to_send(from, step, len)?;
                }
                if !self.is_sent && distance < size - own {
                    io.send(own + distance, step, Bytes::Plain(&self.so_far))?;
                    self.is_sent = true;
                }
                if let Some(from) = from {
                    let theirs = io.receive(from, step, len)?;
                    self.put_in_front(io, theirs);
                }
                (self.round, self.is_sent) = (self.round + 1, false);
            }
            let so_far = std::mem::take(&mut self.so_far);
            if self.with_own {
                values.write(&so_far);
            }
            if let Some(before) = self.before.take() {
                values.write(&before);
                io.give_back(before);
            }
            io.give_back(so_far);
            (self.chunk, self.is_begun, self.round) = (self.chunk + 1, false, 0);
        }
        Ok(())
    }
}
