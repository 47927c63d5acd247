//! All to all of short blocks in a logarithm of steps: Bruck's algorithm.
//!
//! A member numbers its blocks by how far the members that they are for are beyond it. In step `r` those whose number has bit `r` go together to the member
//! 2^r further on, where they keep their numbers. After the last step each has gone as far as its number says: so block `d` is then that of the member `d`
//! before.

use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::matching::EAGER;
use super::part::{Io, Schedule};
use super::tree::{CHUNK, part};
use gasworks_sync::VolatileSlice;

/// About how many bytes are copied in the time that a message takes besides its bytes.
const MESSAGE: usize = 1 << 10;
/// The most bytes that a member's blocks have together, of which it holds as many twice.
const MAX_TOGETHER: usize = 4 * CHUNK;

/// The blocks, of so many, whose numbers have a bit: the first of each run, and how many there are.
fn runs(size: usize, bit: u32) -> impl Iterator<Item = (usize, usize)> {
    let run = 1usize << bit;
    (run..size).step_by(2 * run).map(move |first| (first, run.min(size - first)))
}

/// How many blocks of so many have a number with a bit.
fn count(size: usize, bit: u32) -> usize {
    runs(size, bit).map(|(_, count)| count).sum()
}

/// The steps among so many members.
fn steps(size: usize) -> u32 {
    size.next_power_of_two().ilog2()
}

/// Whether blocks of so many bytes are there sooner by way of others than by a message from each to each. That takes fewer messages, but each block goes as
/// often as its number has bits, half of them on average.
pub(crate) fn is_faster(size: u32, len: usize) -> bool {
    let size = size as usize;
    if len == 0 || len.saturating_mul(size) > MAX_TOGETHER {
        return false;
    }
    // Beyond what goes eagerly: that, the word that clears the rest, and the rest.
    let cost = |bytes: usize| MESSAGE * if bytes > EAGER { 3 } else { 1 } + bytes;
    let together: usize = (0..steps(size)).map(|bit| cost(count(size, bit) * len)).sum();
    together < (size - 1) * cost(len)
}

/// A member's part.
pub(crate) struct Bruck<'a> {
    to: Bytes<'a>,
    from: VolatileSlice<'a>,
    /// Bytes of a block.
    len: usize,
    /// The blocks by their numbers, once it has begun.
    held: Buffer,
    /// Those that go in a step, once they lie here.
    going: Buffer,
    is_begun: bool,
    step: u32,
    is_packed: bool,
    is_sent: bool,
}

impl<'a> Bruck<'a> {
    /// What goes to each, and where what comes of each goes, in blocks of so many bytes.
    pub fn new(to: Bytes<'a>, from: VolatileSlice<'a>, len: usize) -> Self {
        let (held, going) = Default::default();
        Self { to, from, len, held, going, is_begun: false, step: 0, is_packed: false, is_sent: false }
    }

    /// Takes the blocks in the order of their numbers.
    fn begin(&mut self, io: &mut Io<'_>, own: usize, size: usize) {
        self.held = io.buffer(size * self.len);
        let before = own * self.len;
        let (first, last) = self.held.split_at_mut(size * self.len - before);
        self.to.part(before, first.len()).read(first);
        self.to.part(0, before).read(last);
        self.is_begun = true;
    }

    /// Packs those that go in this step.
    fn pack(&mut self, io: &mut Io<'_>, size: usize) {
        let (len, mut end) = (self.len, 0);
        io.give_back(std::mem::take(&mut self.going));
        self.going = io.buffer(count(size, self.step) * len);
        for (first, count) in runs(size, self.step) {
            let (from, bytes) = (first * len, count * len);
            self.going[end..end + bytes].copy_from_slice(&self.held[from..from + bytes]);
            end += bytes;
        }
        self.is_packed = true;
    }

    /// Unpacks those that have come.
    fn unpack(&mut self, size: usize, mut come: &[u8]) {
        for (first, count) in runs(size, self.step) {
            let (from, bytes) = (first * self.len, count * self.len);
            let (run, rest) = come.split_at(bytes);
            self.held[from..from + bytes].copy_from_slice(run);
            come = rest;
        }
    }
}

impl Schedule for Bruck<'_> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let (own, members) = (io.own(), io.size());
        let size = members as usize;
        if !self.is_begun {
            self.begin(io, own as usize, size);
        }
        while self.step < steps(size) {
            let distance = 1u32 << self.step;
            let (from, bytes) = (io.beyond(own, members - distance), count(size, self.step) * self.len);
            if !self.is_packed {
                self.pack(io, size);
            }
            if !self.is_sent {
                // First: around, each might wait to be cleared by the next one.
                io.clear_to_send(from, self.step, bytes)?;
                io.send(io.beyond(own, distance), self.step, Bytes::Plain(&self.going))?;
                self.is_sent = true;
            }
            let come = io.receive(from, self.step, bytes)?;
            self.unpack(size, &come);
            io.give_back(come);
            (self.step, self.is_packed, self.is_sent) = (self.step + 1, false, false);
        }
        for (number, block) in (0..members).zip(self.held.chunks_exact(self.len.max(1))) {
            let member = io.beyond(own, members - number) as usize;
            part(self.from, (member * self.len, self.len)).write(block);
        }
        io.give_back(std::mem::take(&mut self.held));
        io.give_back(std::mem::take(&mut self.going));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_goes_in_the_steps_of_its_bits() {
        for size in 1..70 {
            for bit in 0..steps(size) {
                let going: Vec<_> = runs(size, bit).flat_map(|(first, count)| first..first + count).collect();
                let wanted: Vec<_> = (0..size).filter(|number| number >> bit & 1 == 1).collect();
                assert_eq!(going, wanted, "of {size}, step {bit}");
                assert_eq!(count(size, bit), wanted.len());
            }
            assert!(size <= 1 << steps(size), "every number's bits are among the steps");
        }
    }

    /// Where there are as many steps as others nothing is gained, and long blocks go straight.
    #[test]
    fn short_blocks_among_many_go_together() {
        for len in [1, 8, 1000, 4096] {
            assert!([1, 2, 3].into_iter().all(|size| !is_faster(size, len)), "{len} bytes");
        }
        for size in [4, 5, 8, 9, 64, 100, 1024] {
            assert!(is_faster(size, 8) && is_faster(size, 128), "{size} members");
            let most = (0..100_000).rev().find(|&len| is_faster(size, len)).unwrap_or(0);
            assert!((128..1024).contains(&most), "{size} members: up to {most} bytes");
        }
        assert!(!is_faster(1 << 20, 8), "no member holds {MAX_TOGETHER} bytes of such blocks");
    }
}
