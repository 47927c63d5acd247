//! Scans: each member gets what those before it have, combined, with its own or without.
//!
//! In round `r` a member sends what it has combined so far to the one 2^r further on, if there is one, and puts what comes from the one 2^r before in
//! front of its own.

use super::Combine;
use super::bytes::{Bytes, Stop};
use super::part::{Io, Schedule};
use super::tree::{Aligned, chunk, part};
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
    so_far: Aligned,
    /// That without its own, if there is any.
    before: Aligned,
    has_before: bool,
    theirs: Aligned,
}

impl<'a, C: Combine> Scan<'a, C> {
    pub fn new(values: VolatileSlice<'a>, with_own: bool, combine: C) -> Self {
        let [so_far, before, theirs] = std::array::from_fn(|_| Aligned::default());
        let (chunk, is_begun, round, is_sent, has_before) = (0, false, 0, false, false);
        Self {
            values,
            with_own,
            combine,
            chunk,
            is_begun,
            round,
            is_sent,
            so_far,
            before,
            has_before,
            theirs,
        }
    }

    /// What comes is of members before all that is here.
    fn put_in_front(&mut self, received: &[u8]) {
        let len = received.len();
        let theirs = self.theirs.room(len);
        theirs.copy_from_slice(received);
        if self.has_before {
            self.combine.combine(theirs, self.before.room(len));
        }
        self.before.room(len).copy_from_slice(theirs);
        self.has_before = true;
        theirs.copy_from_slice(received);
        self.combine.combine(theirs, self.so_far.room(len));
        self.so_far.room(len).copy_from_slice(theirs);
    }
}

impl<C: Combine> Schedule for Scan<'_, C> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let (own, size) = (io.own(), io.size());
        while let Some(range) = chunk(self.chunk, self.values.len(), self.combine.element()) {
            let (values, len) = (part(self.values, range), range.1);
            if !self.is_begun {
                values.read(self.so_far.room(len));
                self.is_begun = true;
            }
            while let Some(distance) = 1u32.checked_shl(self.round).filter(|&distance| distance < size) {
                let step = self.chunk as u32 * u32::BITS + self.round;
                let from = own.checked_sub(distance);
                if let Some(from) = from {
                    io.clear_to_send(from, step, len)?;
                }
                if !self.is_sent && distance < size - own {
                    io.send(own + distance, step, Bytes::Plain(self.so_far.room(len)))?;
                    self.is_sent = true;
                }
                if let Some(from) = from {
                    let received = io.receive(from, step, len)?;
                    self.put_in_front(&received);
                    io.give_back(received);
                }
                (self.round, self.is_sent) = (self.round + 1, false);
            }
            match (self.with_own, self.has_before) {
                (true, _) => values.write(self.so_far.room(len)),
                (false, true) => values.write(self.before.room(len)),
                (false, false) => {}
            }
            (self.chunk, self.is_begun, self.round, self.has_before) = (self.chunk + 1, false, 0, false);
        }
        Ok(())
    }
}
