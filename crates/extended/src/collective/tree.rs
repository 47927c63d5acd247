//! Trees: a member at the root, and each other below the one that it has one bit less than, counted from the root.
//!
//! Long data go in chunks, so that all members work at a time. Below a member are those with one more bit, lower than its lowest, the nearest first
//! where they send and the furthest, which has most below it, first where they are sent to. Of a team whose members are in several neighbourhoods
//! the root, and the first member of each other one, are in a tree, and each of them has its neighbours below it in another.

use super::Combine;
use super::binomial::Position;
use super::buffers::Buffer;
use super::bytes::{Bytes, Stop};
use super::layout::Layout;
use super::part::{Either, Io, Schedule};
use super::step::TO_ROOT;
use super::word::WordReduce;
use gasworks_sync::VolatileSlice;

/// About how many bytes go at a time.
pub(super) const CHUNK: usize = 64 << 10;

/// Where a member is in a tree of neighbourhoods, or of all members alike. Those below one follow it in the tree's order: of neighbourhoods from the
/// root's on, and in each of members from its leader on.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    /// Among its neighbours, or all members.
    local: Position,
    leaders: Option<Leaders<'a>>,
}

/// The tree of those who lead their neighbourhoods: the root, and the first member of each other one.
#[derive(Clone, Copy)]
struct Leaders<'a> {
    layout: &'a Layout,
    root: u32,
    /// This member's neighbourhood, and where it is in the tree.
    own: u32,
    place: Position,
}

impl<'a> Leaders<'a> {
    /// Who leads a neighbourhood.
    fn of(&self, neighbourhood: u32) -> u32 {
        if neighbourhood == self.place.root { self.root } else { self.layout.member(neighbourhood, 0) }
    }

    /// How many members there are in so many neighbourhoods, of which the first is so far beyond this one.
    fn following(&self, distance: u32, count: u32) -> u32 {
        self.layout.size_of_some(self.place.member(self.place.at + distance), count)
    }
}

impl<'a> Tree<'a> {
    pub fn of(io: &Io<'a>, root: u32, layout: Option<&'a Layout>) -> Self {
        match layout {
            Some(layout) => Self::by(layout, io.own(), root),
            None => Self { local: Position::new(root, io.own(), io.size()), leaders: None },
        }
    }

    /// That of the member `own`.
    fn by(layout: &'a Layout, own: u32, root: u32) -> Self {
        let ((own, at), (top, top_at)) = (layout.place_of(own), layout.place_of(root));
        let leader = if own == top { top_at } else { 0 };
        let local = Position::new(leader, at, layout.size_of(own));
        let place = Position::new(top, own, layout.count());
        Self { local, leaders: Some(Leaders { layout, root, own, place }) }
    }

    /// The tree of leaders, of one of them.
    fn led(&self) -> Option<Leaders<'a>> {
        self.leaders.filter(|_| self.local.at == 0)
    }

    /// The member that is so far among its neighbours.
    fn neighbour(&self, at: u32) -> u32 {
        self.leaders.map_or(at, |leaders| leaders.layout.member(leaders.own, at))
    }

    /// Above it.
    pub fn parent(&self) -> Option<u32> {
        let local = self.local.parent().map(|at| self.neighbour(at));
        local.or_else(|| self.led().and_then(|leaders| Some(leaders.of(leaders.place.parent()?))))
    }

    /// How many there may be right below it, the nearest first.
    pub fn children(&self) -> u32 {
        self.local.bits() + self.led().map_or(0, |leaders| leaders.place.bits())
    }

    /// The one of that number right below it.
    pub fn child(&self, number: u32) -> Option<u32> {
        match number.checked_sub(self.local.bits()) {
            None => self.local.child(number).map(|at| self.neighbour(at)),
            Some(number) => self.led().and_then(|leaders| Some(leaders.of(leaders.place.child(number)?))),
        }
    }

    /// How many are below it, with itself.
    pub fn below(&self) -> usize {
        let others = self.led().map_or(0, |leaders| leaders.following(1, leaders.place.below() - 1));
        (self.local.below() + others) as usize
    }

    /// How far behind it those begin, in the tree's order, who are below the one of that number, with it; and how many they are.
    pub fn span(&self, number: u32) -> (usize, usize) {
        let span = match number.checked_sub(self.local.bits()) {
            None => self.local.below_by(number).map(|child| (child.at - self.local.at, child.below())),
            Some(number) => self.led().and_then(|leaders| {
                let child = leaders.place.below_by(number)?;
                let distance = child.at - leaders.place.at;
                let first = self.local.below() + leaders.following(1, distance - 1);
                Some((first, leaders.following(distance, child.below())))
            }),
        };
        span.map_or((0, 0), |(first, count)| (first as usize, count as usize))
    }

    /// All members in the tree's order, for the root.
    pub fn order(self) -> impl Iterator<Item = u32> + 'a {
        let count = self.leaders.map_or(1, |leaders| leaders.layout.count());
        (0..count).flat_map(move |distance| {
            let (local, number) = match self.leaders {
                Some(leaders) if distance > 0 => {
                    let number = leaders.place.member(distance);
                    (Position::new(0, 0, leaders.layout.size_of(number)), number)
                }
                leaders => (self.local, leaders.map_or(0, |leaders| leaders.own)),
            };
            (0..local.size).map(move |at| {
                let at = local.member(at);
                self.leaders.map_or(at, |leaders| leaders.layout.member(number, at))
            })
        })
    }
}

/// The chunks of so many bytes, whole elements each: from where, and how many.
pub(super) fn chunk(number: usize, len: usize, element: usize) -> Option<(usize, usize)> {
    let chunk = (CHUNK / element.max(1)).max(1) * element.max(1);
    let from = number.checked_mul(chunk).filter(|&from| from < len)?;
    Some((from, chunk.min(len - from)))
}

pub(super) fn part(bytes: VolatileSlice<'_>, (from, len): (usize, usize)) -> VolatileSlice<'_> {
    bytes.slice(from, len).unwrap_or(VolatileSlice::EMPTY)
}

/// The root's bytes go to all members.
pub(crate) struct Broadcast<'a> {
    root: u32,
    /// At the root what is sent, at the others where it goes.
    bytes: VolatileSlice<'a>,
    chunk: usize,
    is_here: bool,
    /// How many below have it.
    sent: u32,
}

impl<'a> Broadcast<'a> {
    pub fn new(root: u32, bytes: VolatileSlice<'a>) -> Self {
        Self { root, bytes, chunk: 0, is_here: false, sent: 0 }
    }
}

impl Schedule for Broadcast<'_> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        let tree = Tree::of(io, self.root, io.layout());
        while let Some(range) = chunk(self.chunk, self.bytes.len(), 1) {
            let (bytes, step) = (part(self.bytes, range), self.chunk as u32);
            if let (Some(parent), false) = (tree.parent(), self.is_here) {
                io.receive_into(parent, step, bytes)?;
            }
            self.is_here = true;
            while let Some(number) = tree.children().checked_sub(self.sent + 1) {
                if let Some(child) = tree.child(number) {
                    io.send(child, step, Bytes::Shared(bytes))?;
                }
                self.sent += 1;
            }
            (self.chunk, self.is_here, self.sent) = (self.chunk + 1, false, 0);
        }
        Ok(())
    }
}

/// What all members have is combined, each element with those in the same place, and lands at the root. In which order does not depend on when
/// what comes: it is that of the members, or where it makes no difference that from the root on.
pub(crate) struct Reduce<'a, C> {
    root: u32,
    /// Where the tree begins: there too, or at the first member if the order matters.
    top: u32,
    own: VolatileSlice<'a>,
    /// Where the result goes, at the root.
    result: VolatileSlice<'a>,
    combine: C,
    chunk: usize,
    is_begun: bool,
    /// How many below it were heard, as far as there are such.
    heard: u32,
    is_sent: bool,
    so_far: Buffer,
}

impl<'a, C: Combine> Reduce<'a, C> {
    pub fn new(root: u32, own: VolatileSlice<'a>, result: VolatileSlice<'a>, combine: C) -> Self {
        let so_far = Buffer::default();
        let top = if combine.commutes() { root } else { 0 };
        Self { root, top, own, result, combine, chunk: 0, is_begun: false, heard: 0, is_sent: false, so_far }
    }
}

impl<C: Combine> Schedule for Reduce<'_, C> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        // Neighbours have to follow each other where the order matters.
        let layout = io.layout().filter(|layout| self.combine.commutes() || layout.is_in_order());
        let (tree, is_root) = (Tree::of(io, self.top, layout), io.own() == self.root);
        while let Some(range) = chunk(self.chunk, self.own.len(), self.combine.element()) {
            let (len, step) = (range.1, self.chunk as u32);
            if !self.is_begun {
                self.so_far = io.buffer(len);
                part(self.own, range).read(&mut self.so_far);
                self.is_begun = true;
            }
            while self.heard < tree.children() {
                if let Some(child) = tree.child(self.heard) {
                    let mut theirs = io.receive(child, step, len)?;
                    self.combine.combine(&mut self.so_far, &mut theirs);
                    io.give_back(theirs);
                }
                self.heard += 1;
            }
            match tree.parent() {
                Some(parent) if !self.is_sent => {
                    io.send(parent, step, Bytes::Plain(&self.so_far))?;
                    self.is_sent = true;
                }
                None if is_root => part(self.result, range).write(&self.so_far),
                None => io.send(self.root, step | TO_ROOT, Bytes::Plain(&self.so_far))?,
                Some(_) => {}
            }
            if is_root && self.root != self.top {
                io.receive_into(self.top, step | TO_ROOT, part(self.result, range))?;
            }
            io.give_back(std::mem::take(&mut self.so_far));
            (self.chunk, self.is_begun, self.heard, self.is_sent) = (self.chunk + 1, false, 0, false);
        }
        Ok(())
    }
}

/// As [`Reduce`], and all members get the result: by the network, if it can do that.
pub(crate) struct ReduceAll<'a, C> {
    word: Option<WordReduce>,
    reduce: Option<Reduce<'a, C>>,
    broadcast: Broadcast<'a>,
}

/// A reduction to one member, or to all.
pub(crate) type AnyReduce<'a, C> = Either<Reduce<'a, C>, ReduceAll<'a, C>>;

impl<'a, C: Combine> ReduceAll<'a, C> {
    pub fn new(own: VolatileSlice<'a>, result: VolatileSlice<'a>, combine: C) -> Self {
        let broadcast = Broadcast::new(0, result);
        let word = WordReduce::new(&combine, own.len());
        Self { word, reduce: Some(Reduce::new(0, own, result, combine)), broadcast }
    }
}

impl<C: Combine> Schedule for ReduceAll<'_, C> {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        if let (Some(word), Some(reduce)) = (&mut self.word, &mut self.reduce) {
            if let Some(turned) = word.turn(io, (reduce.own, reduce.result), &mut reduce.combine) {
                return turned;
            }
            self.word = None;
        }
        // What goes up a tree comes from others than what goes down: so both may count their steps from 0.
        if let Some(reduce) = &mut self.reduce {
            reduce.turn(io)?;
            self.reduce = None;
        }
        self.broadcast.turn(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever the root is, each member but that is below one other, one of each further neighbourhood is below one of another, and what is combined from the
    /// nearest on is in order where neighbours follow each other.
    #[test]
    fn one_of_each_neighbourhood_is_below_another_one() {
        use gasworks_core::Members;
        for (size, count) in (2..24).flat_map(|size| (2..size).map(move |count| (size, count))) {
            for scattered in [false, true] {
                let number = |rank: u32| if scattered { rank % count } else { rank * count / size };
                let numbers: Vec<_> = (0..size).map(number).collect();
                let layout = Layout::new(&Members::everyone(size), &numbers).expect("several");
                assert_eq!(layout.count(), count);
                for root in 0..size {
                    let tree = |own| Tree::by(&layout, own, root);
                    let mut crossed = 0;
                    for own in 0..size {
                        let below: Vec<_> =
                            (0..tree(own).children()).filter_map(|number| tree(own).child(number)).collect();
                        for &child in &below {
                            assert_eq!(tree(child).parent(), Some(own), "{child} of {size}, root {root}");
                            crossed += u32::from(number(child) != number(own));
                        }
                        assert_eq!(tree(own).parent().is_none(), own == root);
                        // Those below follow it, one child's behind the other's.
                        let mut end = 1;
                        for child in 0..tree(own).children() {
                            let (first, count) = tree(own).span(child);
                            if let Some(child) = tree(own).child(child) {
                                assert_eq!((first, count), (end, tree(child).below()));
                                end += count;
                            }
                        }
                        assert_eq!(tree(own).below(), end);
                    }
                    let order: Vec<_> = tree(root).order().collect();
                    assert_eq!(order, follows(&tree, root), "the root's order, {size} in {count}");
                    assert_eq!(crossed, count - 1, "{size} in {count}, root {root}");
                }
                if !scattered {
                    let mut order = Vec::new();
                    in_order(&layout, 0, &mut order);
                    assert!(order.is_sorted() && order.len() == size as usize, "{order:?}");
                }
            }
        }
    }

    /// A member, and all below it.
    fn follows<'a>(tree: &impl Fn(u32) -> Tree<'a>, own: u32) -> Vec<u32> {
        let children = (0..tree(own).children()).filter_map(|number| tree(own).child(number));
        [vec![own], children.flat_map(|child| follows(tree, child)).collect()].concat()
    }

    /// In which order what members have is combined at one of them.
    fn in_order(layout: &Layout, own: u32, order: &mut Vec<u32>) {
        order.push(own);
        let tree = Tree::by(layout, own, 0);
        (0..tree.children())
            .filter_map(|number| tree.child(number))
            .for_each(|child| in_order(layout, child, order));
    }

    #[test]
    fn chunks_are_whole_elements_and_leave_nothing_out() {
        for (len, element) in
            [(0, 8), (24, 24), (1 << 20, 8), ((1 << 20) + 8, 8), (3 * 70_001, 70_001), (100, 1)]
        {
            let (mut at, mut number) = (0, 0);
            while let Some((from, count)) = chunk(number, len, element) {
                assert!(from == at && count > 0 && count.is_multiple_of(element), "{len} {element}");
                (at, number) = (from + count, number + 1);
            }
            assert_eq!(at, len);
        }
    }
}
