//! Short collectives of teams that have a board: each member posts what it gives, and copies or combines what others have posted.

use super::Combine;
use super::bytes::{Bytes, Stop};
use super::part::{Io, Schedule};
use super::round::Round;
pub(crate) use gasworks_core::board::MAX_POST;
use gasworks_sync::VolatileSlice;
use std::ops::Range;

/// So many bytes of all members are combined by each; what is longer they share by a tree.
const MAX_COMBINED: usize = 64 << 10;
/// Bytes that are combined at a time, and so the largest element.
pub(super) const COMBINED: usize = 1024;

/// Whether members of a team of that size who have `len` bytes each combine them by the board.
pub(crate) fn is_combined(len: usize, element: usize, size: u32) -> bool {
    len <= MAX_POST && len.saturating_mul(size as usize) <= MAX_COMBINED && (1..=COMBINED).contains(&element)
}

/// A member's part in a collective that is on the board alone.
pub(crate) trait OnBoard: Send {
    /// Goes as far as it can at once.
    fn go_on(&mut self, round: &Round<'_>) -> Result<(), Stop>;

    /// Tells the others that this member does no more.
    fn withdraw(&self, round: &Round<'_>);

    /// Whether it is over.
    fn over(&mut self) -> &mut bool;

    /// Goes on, and ends the round where it is over.
    #[inline]
    fn advance(&mut self, round: &Round<'_>) -> Result<(), Stop> {
        let turned = self.go_on(round);
        match &turned {
            Ok(()) => {
                *self.over() = true;
                round.finish();
            }
            Err(Stop::Failed(_)) => self.give_up(round),
            Err(Stop::Waits(_) | Stop::Busy) => {}
        }
        turned
    }

    /// It goes on no more, whatever it waits for.
    #[cold]
    fn give_up(&mut self, round: &Round<'_>) {
        if !std::mem::replace(self.over(), true) {
            self.withdraw(round);
            round.finish();
        }
    }
}

impl<P: OnBoard> Schedule for P {
    fn turn(&mut self, io: &mut Io<'_>) -> Result<(), Stop> {
        match io.round() {
            Some(round) => self.advance(&round),
            // There is none without a board.
            None => Ok(()),
        }
    }

    fn posts(&self) -> bool {
        true
    }

    fn abandon(&mut self, round: &Round<'_>) {
        self.give_up(round);
    }
}

/// What a member does in a round.
pub(crate) trait Steps: Send {
    /// What it posts, if anything.
    fn gives(&self) -> Option<Bytes<'_>>;
    /// Of whom it needs what they post.
    fn needs(&self) -> Range<u32>;
    /// They have posted.
    fn take(&mut self, round: &Round<'_>);
}

#[cfg(test)]
impl Steps for Box<dyn Steps + '_> {
    fn gives(&self) -> Option<Bytes<'_>> {
        (**self).gives()
    }
    fn needs(&self) -> Range<u32> {
        (**self).needs()
    }
    fn take(&mut self, round: &Round<'_>) {
        (**self).take(round);
    }
}

/// A member's part.
pub(crate) struct Short<S> {
    steps: S,
    has_posted: bool,
    /// Up to whom members have posted.
    seen: Option<u32>,
    is_over: bool,
}

impl<S: Steps> Short<S> {
    pub fn new(steps: S) -> Self {
        Self { steps, has_posted: false, seen: None, is_over: false }
    }
}

impl<S: Steps> OnBoard for Short<S> {
    #[inline]
    fn go_on(&mut self, round: &Round<'_>) -> Result<(), Stop> {
        let needs = self.steps.needs();
        let mut seen = match self.seen {
            Some(seen) => seen,
            None => {
                match self.steps.gives() {
                    Some(bytes) => {
                        round.room(bytes.len())?;
                        round.post(bytes);
                        self.has_posted = true;
                        if !needs.is_empty() {
                            round.tell();
                        }
                    }
                    None => round.begin()?,
                }
                needs.start
            }
        };
        while seen < needs.end {
            self.seen = Some(seen);
            if seen != round.own() {
                round.wait_for(seen)?;
            }
            seen += 1;
        }
        self.seen = Some(seen);
        self.steps.take(round);
        Ok(())
    }

    fn withdraw(&self, round: &Round<'_>) {
        round.give_up(self.has_posted);
    }

    fn over(&mut self) -> &mut bool {
        &mut self.is_over
    }
}

/// Copies of what others post: broadcast, gather, scatter, all-gather and all to all.
pub(crate) struct Copies<'a> {
    pub(super) gives: Option<Bytes<'a>>,
    /// That is a block for each member, and not one for all.
    pub(super) is_apart: bool,
    /// How much all that post do.
    posted: usize,
    /// Who needs what this member gives, and of whom it needs what they give.
    pub(super) takers: Range<u32>,
    pub(super) needs: Range<u32>,
    /// From where on this member copies of each.
    from: usize,
    /// How much, and where to, one behind the other.
    pub(super) len: usize,
    pub(super) to: VolatileSlice<'a>,
    /// What it copies of its own.
    pub(super) own: Bytes<'a>,
}

impl<'a> Copies<'a> {
    /// The root's bytes go to all members.
    pub fn broadcast((own, size): (u32, u32), root: u32, bytes: VolatileSlice<'a>) -> Self {
        let (gives, needs) = match own == root {
            true => (Some(Bytes::Shared(bytes)), 0..0),
            false => (None, root..root + 1),
        };
        let (len, takers, own) = (bytes.len(), 0..size, Bytes::Plain(&[]));
        Self { gives, is_apart: false, posted: len, takers, needs, from: 0, len, to: bytes, own }
    }

    /// The bytes of all members come to the root, or to all.
    pub fn gather(
        (own, size): (u32, u32),
        root: Option<u32>,
        bytes: Bytes<'a>,
        to: VolatileSlice<'a>,
    ) -> Self {
        let len = bytes.len();
        let needs = if root.is_none_or(|root| root == own) { 0..size } else { 0..0 };
        let gives = (root != Some(own)).then_some(bytes);
        let takers = root.map_or(0..size, |root| root..root + 1);
        Self { gives, is_apart: false, posted: len, takers, needs, from: 0, len, to, own: bytes }
    }

    /// Each member gets its part of the root's bytes.
    pub fn scatter((own, size): (u32, u32), root: u32, bytes: Bytes<'a>, to: VolatileSlice<'a>) -> Self {
        let len = to.len();
        let (from, posted) = (own as usize * len, size as usize * len);
        let gives = (own == root).then_some(bytes);
        let (takers, needs, own) = (0..size, root..root + 1, bytes.part(from, len));
        Self { gives, is_apart: true, posted, takers, needs, from, len, to, own }
    }

    /// Each member gets its part of the bytes of each, of which there are as many for each.
    pub fn all_to_all((own, size): (u32, u32), bytes: Bytes<'a>, to: VolatileSlice<'a>) -> Self {
        let len = to.len() / size as usize;
        let from = own as usize * len;
        let (gives, posted, own) = (Some(bytes), bytes.len(), bytes.part(from, len));
        Self { gives, is_apart: true, posted, takers: 0..size, needs: 0..size, from, len, to, own }
    }
}

impl Steps for Copies<'_> {
    fn gives(&self) -> Option<Bytes<'_>> {
        self.gives
    }

    fn needs(&self) -> Range<u32> {
        self.needs.clone()
    }

    #[inline]
    fn take(&mut self, round: &Round<'_>) {
        for (at, member) in self.needs.clone().enumerate() {
            let Some(to) = self.to.slice(at * self.len, self.len) else { return };
            match member == round.own() {
                true => self.own.copy_to(to),
                false => round.read_to(member, self.posted, self.from, to),
            }
        }
    }
}

/// What members have, combined in their order: reductions and scans.
pub(crate) struct Combined<'a, C> {
    pub(super) gives: bool,
    /// Who needs what this member gives, and what of others it needs.
    pub(super) takers: Range<u32>,
    pub(super) needs: Range<u32>,
    pub(super) own: VolatileSlice<'a>,
    pub(super) to: VolatileSlice<'a>,
    pub(super) combine: C,
}

impl<'a, C: Combine> Combined<'a, C> {
    /// What all have, at the root or at all.
    pub fn reduce(
        (own, size): (u32, u32),
        root: Option<u32>,
        (bytes, to): (VolatileSlice<'a>, VolatileSlice<'a>),
        combine: C,
    ) -> Self {
        let needs = if root.is_none_or(|root| root == own) { 0..size } else { 0..0 };
        let takers = root.map_or(0..size, |root| root..root + 1);
        Self { gives: root != Some(own), takers, needs, own: bytes, to, combine }
    }

    /// What those before a member have, with its own or without.
    pub fn scan((own, size): (u32, u32), bytes: VolatileSlice<'a>, with_own: bool, combine: C) -> Self {
        let (gives, takers, needs) = (own + 1 < size, own + 1..size, 0..own + u32::from(with_own));
        Self { gives, takers, needs, own: bytes, to: bytes, combine }
    }

    /// By so many words at a time.
    #[inline]
    fn take_by<const WORDS: usize>(&mut self, round: &Round<'_>) {
        let (own, to) = (self.own, self.to);
        let read = |member: u32, at: usize, values: &mut [u8]| match member == round.own() {
            true => Bytes::Shared(own).part(at, values.len()).read(values),
            false => round.read(member, own.len(), at, values),
        };
        let write = |at: usize, values: &[u8]| {
            if let Some(to) = to.slice(at, values.len()) {
                to.write(values);
            }
        };
        combine_by::<WORDS>(&mut self.combine, self.needs.clone(), 0..own.len(), read, write);
    }
}

/// Combines what some members have in a range, in their order, so many words at a time. What is read, and then written, is of a member and from a place on, or from
/// a place on.
#[inline]
pub(super) fn combine_by<const WORDS: usize>(
    combine: &mut impl Combine,
    members: Range<u32>,
    range: Range<usize>,
    read: impl Fn(u32, usize, &mut [u8]),
    write: impl Fn(usize, &[u8]),
) {
    if members.is_empty() {
        return;
    }
    let (mut so_far, mut theirs) = ([0u128; WORDS], [0u128; WORDS]);
    let element = combine.element();
    let step = size_of_val(&so_far) / element * element;
    let mut at = range.start;
    while at < range.end && step > 0 {
        let count = step.min(range.end - at);
        let mut has_some = false;
        for member in members.clone() {
            let values = if has_some { &mut theirs } else { &mut so_far };
            read(member, at, &mut bytemuck::cast_slice_mut(values)[..count]);
            if has_some {
                let [so_far, theirs] =
                    [&mut so_far, &mut theirs].map(|words| &mut bytemuck::cast_slice_mut(words)[..count]);
                combine.combine(so_far, theirs);
            }
            has_some = true;
        }
        write(at, &bytemuck::cast_slice(&so_far)[..count]);
        at += count;
    }
}

impl<C: Combine> Steps for Combined<'_, C> {
    fn gives(&self) -> Option<Bytes<'_>> {
        self.gives.then_some(Bytes::Shared(self.own))
    }

    fn needs(&self) -> Range<u32> {
        self.needs.clone()
    }

    #[inline]
    fn take(&mut self, round: &Round<'_>) {
        const FEW: usize = 4;
        match self.own.len() <= FEW * size_of::<u128>() && self.combine.element() <= FEW * size_of::<u128>() {
            true => self.take_by::<FEW>(round),
            false => self.take_by::<{ COMBINED / size_of::<u128>() }>(round),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::matching::TeamNumber;
    use super::super::round::{Kind, What};
    use super::*;
    use gasworks_core::board::{Board, Cell};
    use gasworks_core::{Members, Name, SharedBarrier, SharedTeam};

    const SIZE: u32 = 3;

    pub struct OnHeap(Board<'static>);

    impl SharedBarrier for OnHeap {
        fn arrive(&self, _: Name) {}
        fn done(&self) -> Option<Name> {
            None
        }
    }

    impl SharedTeam for OnHeap {
        fn board(&self) -> Option<&Board<'_>> {
            Some(&self.0)
        }
    }

    /// The boards of all of so many members.
    pub fn boards(size: u32) -> Vec<OnHeap> {
        let cells: &'static [_] = (0..size).map(|_| Cell::new()).collect::<Vec<_>>().leak();
        let room = || VolatileSlice::from_mut(vec![0; Board::ROOM].leak());
        let rooms: Vec<_> = (0..size).map(|_| room()).collect();
        let of = |own| Board::new(cells.iter().zip(rooms.iter().copied()), own as usize).map(OnHeap);
        (0..size).filter_map(of).collect()
    }

    /// Writes the members' numbers one behind the other, as digits: in another order they are another number. An element has so many words.
    pub struct Digits(pub usize);

    impl Combine for Digits {
        fn element(&self) -> usize {
            8 * self.0
        }
        fn combine(&mut self, before: &mut [u8], after: &mut [u8]) {
            assert!(before.len() == after.len() && before.len().is_multiple_of(self.element()));
            for (before, after) in before.as_chunks_mut().0.iter_mut().zip(after.as_chunks().0) {
                let [a, b] = [*before, *after].map(u64::from_ne_bytes);
                *before = a.wrapping_mul(10).wrapping_add(b).to_ne_bytes();
            }
        }
    }

    pub fn round<'a>(team: &'a OnHeap, members: &'a Members, own: u32, before: u64, what: What) -> Round<'a> {
        let place = (TeamNumber::EVERYONE, members, own);
        Round::new(Some(team), place, before, what).expect("a board")
    }

    pub fn is_waiting(turned: Result<(), Stop>) -> bool {
        match turned {
            Ok(()) => false,
            Err(Stop::Waits(_) | Stop::Busy) => true,
            Err(Stop::Failed(error)) => panic!("{error}"),
        }
    }

    /// Members are turned in all orders until all are through; each has then what it should.
    #[test]
    fn each_has_what_members_give() {
        let (boards, members) = (boards(SIZE), Members::everyone(SIZE));
        let mut before = 0;
        for len in [0usize, 8, 112, 120, 5000, 16_384] {
            let of =
                |member: u32| u64::from(member + 1).to_ne_bytes().repeat(len.div_ceil(8))[..len].to_vec();
            for (kind, root) in (0..5).flat_map(|kind| (0..SIZE).map(move |root| (kind, root))) {
                let words = len / 8 * 8;
                let mut all: Vec<Vec<u8>> = (0..SIZE)
                    .map(|own| match kind {
                        0 => {
                            if own == root {
                                of(own)
                            } else {
                                vec![9; len]
                            }
                        }
                        1 => vec![9; len * SIZE as usize],
                        _ => of(own)[..words].to_vec(),
                    })
                    .collect();
                let given: Vec<_> = (0..SIZE).map(of).collect();
                let what = What::new(Kind::Broadcast, None, len);
                {
                    let mut parts: Vec<_> = (0..)
                        .zip(&mut all)
                        .map(|(own, bytes)| {
                            let (place, to) = ((own, SIZE), VolatileSlice::from_mut(bytes));
                            let steps: Box<dyn Steps> = match kind {
                                0 => Box::new(Copies::broadcast(place, root, to)),
                                1 => Box::new(Copies::gather(
                                    place,
                                    None,
                                    Bytes::Plain(&given[own as usize]),
                                    to,
                                )),
                                2 => Box::new(Combined::reduce(place, None, (to, to), Digits(1))),
                                3 => Box::new(Combined::reduce(place, Some(root), (to, to), Digits(1))),
                                _ => Box::new(Combined::scan(place, to, true, Digits(1))),
                            };
                            Some(Short::new(steps))
                        })
                        .collect();
                    let mut turns = 0;
                    while parts.iter().any(Option::is_some) {
                        let own = ((before + turns * 2) % u64::from(SIZE)) as u32;
                        let round = round(&boards[own as usize], &members, own, before, what);
                        let part = &mut parts[own as usize];
                        if part.as_mut().is_some_and(|part| !is_waiting(part.advance(&round))) {
                            *part = None;
                        }
                        turns += 1;
                        assert!(turns < 100, "nobody goes on");
                    }
                }
                for (own, found) in (0..).zip(&all) {
                    let number = |value: u64| value.to_ne_bytes().repeat(words / 8);
                    let wanted = match kind {
                        0 => of(root),
                        1 => given.concat(),
                        2 => number(123),
                        3 => {
                            if own == root {
                                number(123)
                            } else {
                                of(own)[..words].to_vec()
                            }
                        }
                        _ => number([1, 12, 123][own as usize]),
                    };
                    assert_eq!(*found, wanted, "kind {kind}, root {root}, {len} bytes, member {own}");
                }
                before += 1;
            }
        }
    }

    /// A member in another collective is told so, and so is who needs something of one that was given something wrong.
    #[test]
    fn members_in_different_collectives_are_told() {
        let (boards, members) = (boards(SIZE), Members::everyone(SIZE));
        let what = |len| What::new(Kind::AllGather, None, len);
        let (mut to, mut other) = ([0; 24], [0; 48]);
        let round = |own: u32, what| round(&boards[own as usize], &members, own, 0, what);
        let own = Bytes::Plain(&[1; 8]);
        let mut first = Short::new(Copies::gather((0, SIZE), None, own, VolatileSlice::from_mut(&mut to)));
        assert!(is_waiting(first.advance(&round(0, what(8)))));
        let own = Bytes::Plain(&[1; 16]);
        let mut second =
            Short::new(Copies::gather((1, SIZE), None, own, VolatileSlice::from_mut(&mut other)));
        let fails = |turned| match turned {
            Err(Stop::Failed(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        let said = fails(second.advance(&round(1, what(16))));
        assert!(said.starts_with("message from rank 0: it is in all_gather of 8 bytes"), "{said}");
        let said = fails(first.advance(&round(0, what(8))));
        assert!(
            said.contains("all_gather of 16 bytes") && said.contains("another number of values"),
            "{said}"
        );
        // The third has nothing to give.
        let third = round(2, What::NOTHING);
        third.announce();
        third.finish();
        assert!(round(0, what(8)).check(2).is_ok_and(|all| all == SIZE), "who needs nothing of it goes on");
        let said = fails(round(0, what(8)).wait_for(2));
        assert!(said.starts_with("message from rank 2: it was given something wrong"), "{said}");
    }
}
