//! From each its own: gather, scatter, and all to all.
//!
//! Short blocks of the same length go along the tree ([`tree`](super::tree)), those of all below a member at once; others straight to where they belong, a chunk at a time. So do
//! those of all to all, but short ones of the same length ([`bruck`]).

use super::bruck::{self, Bruck};
use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::part::{Either, Io, Schedule};
use super::tree::{CHUNK, Tree, chunk, part};
use gasworks_sync::VolatileSlice;

/// Where members' blocks lie in a buffer, one behind the other, in the order of the members.
#[derive(Clone, Debug)]
pub(crate) enum Blocks {
    /// All have so many bytes.
    Equal(usize),
    /// All have the same bytes, so many.
    Same(usize),
    /// From where, and how many.
    Each(Vec<(usize, usize)>),
}

impl Blocks {
    /// Those of so many bytes each.
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Self {
        let place = |end: &mut usize, len: usize| {
            let from = *end;
            *end = end.saturating_add(len);
            Some((from, len))
        };
        Blocks::Each(lengths.into_iter().scan(0, place).collect())
    }

    /// Whether they are so short that all go at once.
    pub fn are_short(&self, size: u32) -> bool {
        self.together(size).is_some()
    }

    fn range(&self, member: u32) -> (usize, usize) {
        match self {
            &Blocks::Equal(len) => (member as usize * len, len),
            &Blocks::Same(len) => (0, len),
            Blocks::Each(all) => all.get(member as usize).copied().unwrap_or_default(),
        }
    }

    /// How many bytes one has, if all have as many, and go along a tree together.
    fn together(&self, size: u32) -> Option<usize> {
        match *self {
            Blocks::Equal(len) if len.saturating_mul(size as usize) <= CHUNK => Some(len),
            _ => None,
        }
    }
}

/// The blocks of all members come to the root.
pub(crate) struct Gather<'a> {
    root: u32,
    own: Bytes<'a>,
    /// At the root where they go.
    all: VolatileSlice<'a>,
    blocks: Blocks,
    /// Along the tree: what is here of those below, in the order from the root on.
    held: Option<Buffer>,
    /// How many bytes of it are here.
    have: usize,
    /// How many were heard, or which member is next.
    next: u32,
    chunk: usize,
}

impl<'a> Gather<'a> {
    /// `blocks` say where in `all` they go, and are known at the root alone unless they are equal.
    pub fn new(root: u32, own: Bytes<'a>, all: VolatileSlice<'a>, blocks: Blocks) -> Self {
        Self { root, own, all, blocks, held: None, have: 0, next: 0, chunk: 0 }
    }

    fn along_the_tree(&mut self, io: &mut Io<'_>, len: usize) -> Result<(), Stop> {
        let tree = Tree::of(io, self.root, io.layout());
        let held = match &mut self.held {
            Some(held) => held,
            none => {
                let mut held = io.buffer(tree.below() * len);
                self.own.read(&mut held[..len]);
                self.have = len;
                none.insert(held)
            }
        };
        while self.next < tree.children() {
            if let Some(child) = tree.child(self.next) {
                let theirs = io.receive(child, 0, tree.span(self.next).1 * len)?;
                held[self.have..][..theirs.len()].copy_from_slice(&theirs);
                self.have += theirs.len();
                io.give_back(theirs);
            }
            self.next += 1;
        }
        match tree.parent() {
            Some(parent) => io.send(parent, 0, Bytes::Plain(held))?,
            None => {
                for (member, block) in tree.order().zip(held.chunks_exact(len)) {
                    part(self.all, self.blocks.range(member)).write(block);
                }
            }
        }
        self.held.take().into_iter().for_each(|held| io.give_back(held));
        Ok(())
    }
}

impl Schedule for Gather<'_> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        match self.blocks.together(io.size()) {
            Some(0) => return Ok(()),
            Some(len) => return self.along_the_tree(io, len),
            None => {}
        }
        if io.own() != self.root {
            while let Some((from, len)) = chunk(self.chunk, self.own.len(), 1) {
                io.send(self.root, self.chunk as u32, self.own.part(from, len))?;
                self.chunk += 1;
            }
            return Ok(());
        }
        while self.next < io.size() {
            let block = part(self.all, self.blocks.range(self.next));
            while let Some(range) = chunk(self.chunk, block.len(), 1) {
                let place = part(block, range);
                if self.next == self.root {
                    self.own.part(range.0, range.1).copy_to(place);
                } else {
                    io.receive_into(self.next, self.chunk as u32, place)?;
                }
                self.chunk += 1;
            }
            (self.next, self.chunk) = (self.next + 1, 0);
        }
        Ok(())
    }
}

/// Each member gets a block of the root's.
pub(crate) struct Scatter<'a> {
    root: u32,
    /// At the root, all of them.
    all: Bytes<'a>,
    own: VolatileSlice<'a>,
    blocks: Blocks,
    held: Option<Buffer>,
    next: u32,
    chunk: usize,
}

impl<'a> Scatter<'a> {
    /// `blocks` say where in `all` they lie, and are known at the root alone unless they are equal.
    pub fn new(root: u32, all: Bytes<'a>, own: VolatileSlice<'a>, blocks: Blocks) -> Self {
        Self { root, all, own, blocks, held: None, next: 0, chunk: 0 }
    }

    fn along_the_tree(&mut self, io: &mut Io<'_>, len: usize) -> Result<(), Stop> {
        let tree = Tree::of(io, self.root, io.layout());
        let held = match &mut self.held {
            Some(held) => held,
            none => none.insert(match tree.parent() {
                Some(parent) => io.receive(parent, 0, tree.below() * len)?,
                None => {
                    let mut held = io.buffer(tree.below() * len);
                    for (member, block) in tree.order().zip(held.chunks_exact_mut(len)) {
                        let (from, len) = self.blocks.range(member);
                        self.all.part(from, len).read(block);
                    }
                    held
                }
            }),
        };
        while let Some(number) = tree.children().checked_sub(self.next + 1) {
            if let Some(child) = tree.child(number) {
                let (first, count) = tree.span(number);
                io.send(child, 0, Bytes::Plain(&held[first * len..][..count * len]))?;
            }
            self.next += 1;
        }
        self.own.write(&held[..len]);
        self.held.take().into_iter().for_each(|held| io.give_back(held));
        Ok(())
    }
}

impl Schedule for Scatter<'_> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        match self.blocks.together(io.size()) {
            Some(0) => return Ok(()),
            Some(len) => return self.along_the_tree(io, len),
            None => {}
        }
        if io.own() != self.root {
            while let Some(range) = chunk(self.chunk, self.own.len(), 1) {
                io.receive_into(self.root, self.chunk as u32, part(self.own, range))?;
                self.chunk += 1;
            }
            return Ok(());
        }
        while self.next < io.size() {
            let (begin, total) = self.blocks.range(self.next);
            while let Some((from, len)) = chunk(self.chunk, total, 1) {
                let block = self.all.part(begin + from, len);
                match self.next == self.root {
                    true => block.copy_to(part(self.own, (from, len))),
                    false => io.send(self.next, self.chunk as u32, block)?,
                }
                self.chunk += 1;
            }
            (self.next, self.chunk) = (self.next + 1, 0);
        }
        Ok(())
    }
}

/// Each member has a block for each, and gets one of each. What is short and equal goes by [`Bruck`], where that is faster.
pub(crate) type AnyAllToAll<'a> = Either<Bruck<'a>, AllToAll<'a>>;

/// Each to each: all members at a distance at a time.
pub(crate) struct AllToAll<'a> {
    to: (Bytes<'a>, Blocks),
    from: (VolatileSlice<'a>, Blocks),
    /// The distance of those with whom this member is at it.
    distance: u32,
    sent: usize,
    heard: usize,
}

impl<'a> AllToAll<'a> {
    /// As [`new`](Self::new), or sooner among so many members.
    pub fn any(size: u32, to: (Bytes<'a>, Blocks), from: (VolatileSlice<'a>, Blocks)) -> AnyAllToAll<'a> {
        match (&to.1, &from.1) {
            (&Blocks::Equal(len), Blocks::Equal(_)) if bruck::is_faster(size, len) => {
                Either::First(Bruck::new(to.0, from.0, len))
            }
            _ => Either::Second(Self::new(to, from)),
        }
    }

    /// What goes to each, and where what comes of each goes.
    pub fn new(to: (Bytes<'a>, Blocks), from: (VolatileSlice<'a>, Blocks)) -> Self {
        Self { to, from, distance: 0, sent: 0, heard: 0 }
    }
}

impl Schedule for AllToAll<'_> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let size = io.size();
        while self.distance < size {
            let (to, from) = (io.beyond(io.own(), self.distance), io.beyond(io.own(), size - self.distance));
            let ((begin, out), block) = (self.to.1.range(to), part(self.from.0, self.from.1.range(from)));
            if self.distance == 0 {
                self.to.0.part(begin, out.min(block.len())).copy_to(block);
                self.distance = 1;
                continue;
            }
            loop {
                let (coming, going) = (chunk(self.heard, block.len(), 1), chunk(self.sent, out, 1));
                if let Some((_, len)) = coming {
                    // First: around, each might wait to be cleared by the next one.
                    io.clear_to_send(from, self.heard as u32, len)?;
                }
                if let Some((at, len)) = going
                    && self.sent <= self.heard
                {
                    io.send(to, self.sent as u32, self.to.0.part(begin + at, len))?;
                    self.sent += 1;
                } else if let Some(range) = coming {
                    io.receive_into(from, self.heard as u32, part(block, range))?;
                    self.heard += 1;
                } else if going.is_none() {
                    break;
                } else {
                    // What comes is all here.
                    self.heard = usize::MAX;
                }
            }
            (self.distance, self.sent, self.heard) = (self.distance + 1, 0, 0);
        }
        Ok(())
    }
}
