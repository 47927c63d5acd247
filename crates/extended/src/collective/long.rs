//! Long collectives of teams that have a board, by pieces: each member posts one after the other, as far as there is room, and copies or combines
//! what others have posted as it comes.
//!
//! A piece has a part of the bytes of each block that is given. A collective is one round of the board, however many pieces it has: so members that are in
//! different ones, with other numbers of pieces, go on alike with the next one.
//!
//! Nobody waits for ever: the member that has taken the fewest pieces is one for which all others have room to post the next. None waits to take
//! a piece before it has posted its own of that number.

use super::Combine;
use super::bytes::Stop;
use super::round::Round;
use super::short::{COMBINED, Combined, Copies, OnBoard, combine_by};
use gasworks_core::board::{MAX_POST, PIECE, PIECES, Progress};
use gasworks_sync::VolatileSlice;
use std::ops::Range;

/// So many members at most go by pieces where each gives others different bytes, or gets what all have, combined. Of more messages take less time where
/// ranks share processors.
const MAX_APART: u32 = 2;
/// So many members at most combine what all before them have.
const MAX_SCANNED: u32 = 8;

/// Whether `len` bytes for each of so many members, which are others for each, go by pieces.
pub(crate) fn has_parts(len: usize, size: u32) -> bool {
    size <= MAX_APART && has_pieces(len)
}

/// Whether all pieces of `len` bytes can be counted.
pub(crate) fn has_pieces(len: usize) -> bool {
    // The last number means something else.
    len / PIECE < (u32::MAX / 4) as usize
}

/// Whether a reduction of such elements by so many members goes by pieces.
pub(crate) fn is_reduced_by_pieces(len: usize, element: usize, size: u32) -> bool {
    size <= MAX_APART && (1..=COMBINED).contains(&element) && has_pieces(len)
}

/// Whether a scan does.
pub(crate) fn is_scanned_by_pieces(len: usize, element: usize, size: u32) -> bool {
    size <= MAX_SCANNED && (1..=COMBINED).contains(&element) && has_pieces(len)
}

/// What a member does in a round of pieces.
pub(crate) trait Pieces: Send {
    /// How many there are.
    fn count(&self) -> u32;
    /// Whether this member posts them.
    fn gives(&self) -> bool;
    /// Who needs what it posts.
    fn takers(&self) -> Range<u32>;
    /// Of whom it needs each piece.
    fn needs(&self) -> Range<u32>;
    /// Fills the place of a piece.
    fn fill(&mut self, piece: u32, round: &Round<'_>);
    /// All of whom it needs that piece have posted it.
    fn take(&mut self, piece: u32, round: &Round<'_>);
}

#[cfg(test)]
impl Pieces for Box<dyn Pieces + '_> {
    fn count(&self) -> u32 {
        (**self).count()
    }
    fn gives(&self) -> bool {
        (**self).gives()
    }
    fn takers(&self) -> Range<u32> {
        (**self).takers()
    }
    fn needs(&self) -> Range<u32> {
        (**self).needs()
    }
    fn fill(&mut self, piece: u32, round: &Round<'_>) {
        (**self).fill(piece, round);
    }
    fn take(&mut self, piece: u32, round: &Round<'_>) {
        (**self).take(piece, round);
    }
}

/// A member's part.
pub(crate) struct Long<S> {
    pieces: S,
    has_begun: bool,
    /// What the others know of this member.
    told: Progress,
    posted: u32,
    taken: u32,
    /// Up to whom members have posted the next piece that this one takes.
    seen: Option<u32>,
    /// So many pieces have been taken by all who need them.
    free: u32,
    /// Up to whom members have taken enough for the next one.
    freed: Option<u32>,
    is_over: bool,
}

impl<S: Pieces> Long<S> {
    pub fn new(pieces: S) -> Self {
        let (told, posted, taken) = (Progress::default(), 0, 0);
        Self {
            pieces,
            has_begun: false,
            told,
            posted,
            taken,
            seen: None,
            free: 0,
            freed: None,
            is_over: false,
        }
    }

    /// Waits until there is room for the next piece.
    #[inline]
    fn room(&mut self, round: &Round<'_>) -> Result<(), Stop> {
        let needed = (self.posted + 1).saturating_sub(PIECES);
        if self.free >= needed {
            return Ok(());
        }
        let takers = self.pieces.takers();
        let mut freed = self.freed.unwrap_or(takers.start);
        while freed < takers.end {
            self.freed = Some(freed);
            if freed != round.own() {
                round.wait_until_taken(freed, needed)?;
            }
            freed += 1;
        }
        (self.free, self.freed) = (needed, None);
        Ok(())
    }

    /// Waits until the others have posted the next piece to be taken.
    #[inline]
    fn others(&mut self, round: &Round<'_>) -> Result<(), Stop> {
        let needs = self.pieces.needs();
        let mut seen = self.seen.unwrap_or(needs.start);
        while seen < needs.end {
            self.seen = Some(seen);
            if seen != round.own() {
                round.wait_for_pieces(seen, self.taken + 1)?;
            }
            seen += 1;
        }
        self.seen = None;
        Ok(())
    }

    /// Tells the others how far this member is, where one of them may wait for that.
    #[inline]
    fn tell(&mut self, round: &Round<'_>) {
        let now = Progress { posted: self.posted, taken: self.taken };
        let has_taken = now.taken != self.told.taken && now.taken + PIECES <= self.pieces.count();
        if now.posted != self.told.posted || has_taken {
            self.told = now;
            round.advance(now);
        }
    }
}

impl<S: Pieces> OnBoard for Long<S> {
    fn go_on(&mut self, round: &Round<'_>) -> Result<(), Stop> {
        let (count, gives) = (self.pieces.count(), self.pieces.gives());
        if !self.has_begun {
            round.room(if gives { MAX_POST } else { 0 })?;
            let posted = if gives { 0 } else { count };
            self.taken = if self.pieces.needs().is_empty() { count } else { 0 };
            (self.posted, self.told) = (posted, Progress { posted, taken: self.taken });
            round.begin_pieces(self.told);
            self.has_begun = true;
        }
        loop {
            if self.posted < count {
                match self.room(round) {
                    Ok(()) => {
                        self.pieces.fill(self.posted, round);
                        self.posted += 1;
                        self.tell(round);
                        continue;
                    }
                    Err(Stop::Waits(_)) if self.taken < self.posted => {}
                    stopped => {
                        self.tell(round);
                        return stopped;
                    }
                }
            }
            self.tell(round);
            if self.taken >= count {
                return Ok(());
            }
            self.others(round)?;
            self.pieces.take(self.taken, round);
            self.taken += 1;
        }
    }

    fn withdraw(&self, round: &Round<'_>) {
        match self.has_begun {
            true => round.advance(Progress::GIVEN_UP),
            false => round.give_up(false),
        }
    }

    fn over(&mut self) -> &mut bool {
        &mut self.is_over
    }
}

/// The range of a piece in `len` bytes of which each piece has so many.
fn range(piece: u32, len: usize, step: usize) -> Range<usize> {
    let at = (piece as usize).saturating_mul(step).min(len);
    at..len.min(at + step)
}

fn part(bytes: VolatileSlice<'_>, at: usize, len: usize) -> VolatileSlice<'_> {
    bytes.slice(at, len).unwrap_or(VolatileSlice::EMPTY)
}

impl Pieces for Copies<'_> {
    fn count(&self) -> u32 {
        self.len.div_ceil(PIECE) as u32
    }

    fn gives(&self) -> bool {
        self.gives.is_some()
    }

    fn takers(&self) -> Range<u32> {
        self.takers.clone()
    }

    fn needs(&self) -> Range<u32> {
        self.needs.clone()
    }

    #[inline]
    fn fill(&mut self, piece: u32, round: &Round<'_>) {
        let (Some(bytes), range) = (self.gives, range(piece, self.len, PIECE)) else { return };
        // Of two members: what is for the other one, if there is one.
        let block = if self.is_apart { (round.own() ^ 1) as usize * self.len } else { 0 };
        let bytes = bytes.part(block + range.start, range.len());
        bytes.copy_to(part(round.piece(round.own(), piece), 0, bytes.len()));
    }

    #[inline]
    fn take(&mut self, piece: u32, round: &Round<'_>) {
        let range = range(piece, self.len, PIECE);
        for (at, member) in self.needs.clone().enumerate() {
            let to = part(self.to, at * self.len + range.start, range.len());
            if member == round.own() {
                self.own.part(range.start, range.len()).copy_to(to);
                continue;
            }
            part(round.piece(member, piece), 0, range.len()).copy_to(to);
        }
    }
}

impl<C: Combine> Combined<'_, C> {
    fn range(&self, piece: u32) -> Range<usize> {
        let element = self.combine.element();
        range(piece, self.own.len(), PIECE / element * element)
    }
}

impl<C: Combine> Pieces for Combined<'_, C> {
    fn count(&self) -> u32 {
        let element = self.combine.element();
        self.own.len().div_ceil(PIECE / element * element) as u32
    }

    fn gives(&self) -> bool {
        self.gives
    }

    fn takers(&self) -> Range<u32> {
        self.takers.clone()
    }

    fn needs(&self) -> Range<u32> {
        self.needs.clone()
    }

    #[inline]
    fn fill(&mut self, piece: u32, round: &Round<'_>) {
        let (range, place) = (self.range(piece), round.piece(round.own(), piece));
        part(self.own, range.start, range.len()).copy_to(part(place, 0, range.len()));
    }

    #[inline]
    fn take(&mut self, piece: u32, round: &Round<'_>) {
        let (range, own) = (self.range(piece), round.own());
        let (values, to) = (self.own, self.to);
        let read = |member: u32, at: usize, bytes: &mut [u8]| match member == own {
            true => part(values, at, bytes.len()).read(bytes),
            false => part(round.piece(member, piece), at - range.start, bytes.len()).read(bytes),
        };
        let write = |at: usize, bytes: &[u8]| part(to, at, bytes.len()).write(bytes);
        combine_by::<WORDS>(&mut self.combine, self.needs.clone(), range.clone(), read, write);
    }
}

/// So many words are combined at a time.
const WORDS: usize = COMBINED / size_of::<u128>();

#[cfg(test)]
mod tests {
    use super::super::bytes::Bytes;
    use super::super::round::{Kind, What};
    use super::super::short::Short;
    use super::super::short::tests::{Digits, OnHeap, boards, is_waiting, round};
    use super::*;
    use gasworks_core::Members;

    const KINDS: u32 = 9;

    /// What member `own` has for `to` in a collective, so many bytes: each word says whose it is, and where it lies.
    fn block(own: u32, to: u32, len: usize) -> Vec<u8> {
        let word = |at: usize| ((u64::from(own) << 40) + (u64::from(to) << 32) + at as u64).to_ne_bytes();
        (0..len.div_ceil(8)).flat_map(word).take(len).collect()
    }

    /// What a member begins with, of what its result is to be made, and that.
    struct Wanted {
        given: Vec<u8>,
        before: Vec<u8>,
        after: Vec<u8>,
    }

    fn wanted(kind: u32, (own, size): (u32, u32), root: u32, len: usize) -> Wanted {
        let all = |of: &dyn Fn(u32) -> Vec<u8>| (0..size).flat_map(of).collect::<Vec<u8>>();
        let blank = |blocks: u32| vec![9u8; blocks as usize * len];
        let is_root = own == root;
        // Words that are digits.
        let digits = |of: u64| of.to_ne_bytes().repeat(len / 8);
        let up_to = |count: u32| digits((1..=u64::from(count)).fold(0, |number, digit| number * 10 + digit));
        let (mine, none) = (digits(u64::from(own) + 1), Vec::new);
        let (given, before, after) = match kind {
            0 if is_root => (none(), block(root, 0, len), block(root, 0, len)),
            0 => (none(), blank(1), block(root, 0, len)),
            1 => (block(own, 0, len), blank(size), all(&|from| block(from, 0, len))),
            2 if is_root => (block(own, 0, len), blank(size), all(&|from| block(from, 0, len))),
            2 => (block(own, 0, len), none(), none()),
            3 => {
                let given = if is_root { all(&|to| block(root, to, len)) } else { none() };
                (given, blank(1), block(root, own, len))
            }
            4 => (all(&|to| block(own, to, len)), blank(size), all(&|from| block(from, own, len))),
            5 => (none(), mine, up_to(size)),
            6 => (none(), mine.clone(), if is_root { up_to(size) } else { mine }),
            7 => (none(), mine, up_to(own + 1)),
            _ => (none(), mine.clone(), if own == 0 { mine } else { up_to(own) }),
        };
        Wanted { given, before, after }
    }

    fn pieces<'a>(
        kind: u32,
        place: (u32, u32),
        root: u32,
        (given, to): (&'a [u8], &'a mut [u8]),
        words: usize,
    ) -> Box<dyn Pieces + 'a> {
        let (given, to) = (Bytes::Plain(given), VolatileSlice::from_mut(to));
        match kind {
            0 => Box::new(Copies::broadcast(place, root, to)),
            1 => Box::new(Copies::gather(place, None, given, to)),
            2 => Box::new(Copies::gather(place, Some(root), given, to)),
            3 => Box::new(Copies::scatter(place, root, given, to)),
            4 => Box::new(Copies::all_to_all(place, given, to)),
            5 => Box::new(Combined::reduce(place, None, (to, to), Digits(words))),
            6 => Box::new(Combined::reduce(place, Some(root), (to, to), Digits(words))),
            7 => Box::new(Combined::scan(place, to, true, Digits(words))),
            _ => Box::new(Combined::scan(place, to, false, Digits(words))),
        }
    }

    /// Members are turned in many orders until all are through; each has then what it should.
    #[test]
    fn each_has_what_members_give() {
        for size in [2, 3, 5] {
            let (boards, members) = (boards(size), Members::everyone(size));
            let mut before = 0;
            for (words, len) in [
                (1, 8),
                (1, PIECE),
                (1, PIECE + 8),
                (1, MAX_POST + 8),
                (3, 24 * 683),
                (3, 24 * 3000),
                (1, 7 * PIECE - 16),
            ] {
                let is_for = |kind: &u32| size <= MAX_APART || ![3, 4].contains(kind);
                for kind in (0..KINDS).filter(is_for) {
                    let root = (before % u64::from(size)) as u32;
                    let wanted: Vec<_> = (0..size).map(|own| wanted(kind, (own, size), root, len)).collect();
                    let mut found: Vec<_> = wanted.iter().map(|wanted| wanted.before.clone()).collect();
                    let what = What::new(Kind::Broadcast, None, len);
                    let mut parts: Vec<_> = (0..)
                        .zip(&mut found)
                        .map(|(own, to)| {
                            let given = &wanted[own as usize].given[..];
                            Some(Long::new(pieces(kind, (own, size), root, (given, to), words)))
                        })
                        .collect();
                    let mut draw = before + 1;
                    let mut turns = 0;
                    while parts.iter().any(Option::is_some) {
                        draw = draw
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let own = ((draw >> 33) % u64::from(size)) as usize;
                        let round = round(&boards[own], &members, own as u32, before, what);
                        let part = &mut parts[own];
                        if part.as_mut().is_some_and(|part| !is_waiting(OnBoard::advance(part, &round))) {
                            *part = None;
                        }
                        turns += 1;
                        assert!(turns < 10_000, "nobody goes on");
                    }
                    drop(parts);
                    for ((own, found), wanted) in (0..).zip(found).zip(wanted) {
                        assert!(
                            found == wanted.after,
                            "kind {kind}, root {root}, {len} bytes of {words} words, member {own} of {size}"
                        );
                    }
                    before += 1;
                }
            }
        }
    }

    fn said(turned: Result<(), Stop>) -> String {
        match turned {
            Err(Stop::Failed(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// That all of the next rounds are as they should be.
    fn go_on(boards: &[OnHeap], members: &Members) {
        let size = members.size();
        for before in 1..40 {
            let mut bytes: Vec<_> = (0..size).map(|own| [own as u8; 8]).collect();
            let what = What::new(Kind::Broadcast, None, 8);
            let mut parts: Vec<_> = (0..)
                .zip(&mut bytes)
                .map(|(own, bytes)| {
                    Short::new(Copies::broadcast((own, size), 1, VolatileSlice::from_mut(bytes)))
                })
                .collect();
            for own in [1, 0].into_iter().chain(2..size as usize) {
                let round = round(&boards[own], members, own as u32, before, what);
                assert!(!is_waiting(OnBoard::advance(&mut parts[own], &round)));
            }
            drop(parts);
            assert!(bytes.iter().all(|bytes| *bytes == [1; 8]));
        }
    }

    /// One with another length is found, by who is there before it and by itself, and none of what comes after is lost.
    #[test]
    fn another_length_is_told_in_the_middle() {
        let (boards, members) = (boards(3), Members::everyone(3));
        let (len, other) = (5 * PIECE, 6 * PIECE);
        let mut bytes = [vec![1; len], vec![2; len], vec![3; other]];
        let [first, second, third] = &mut bytes;
        let part = |own, bytes| Long::new(Copies::broadcast((own, 3), 0, VolatileSlice::from_mut(bytes)));
        let mut parts = [part(0, first), part(1, second), part(2, third)];
        let mut turn = |own: usize, len| {
            let what = What::new(Kind::Broadcast, Some(0), len);
            OnBoard::advance(&mut parts[own], &round(&boards[own], &members, own as u32, 0, what))
        };
        assert!(is_waiting(turn(0, len)) && is_waiting(turn(1, len)));
        // The root waits for the third, which is told first.
        assert!(is_waiting(turn(0, len)));
        let told = said(turn(2, other));
        assert!(told.contains("another number of values"), "{told}");
        let told = said(turn(0, len));
        assert!(told.starts_with("message from rank 2: it is in broadcast"), "{told}");
        // What the root has posted before is there, and no more of it comes.
        let told = said(turn(1, len));
        assert!(told.starts_with("message from rank 0: it has given up"), "{told}");
        go_on(&boards, &members);
    }

    /// Who gives goes on without one that was given something wrong, or has given up; who needs something of one is told.
    #[test]
    fn who_gives_up_is_waited_for_by_nobody() {
        let (boards, members) = (boards(3), Members::everyone(3));
        let len = 6 * PIECE;
        let what = What::new(Kind::Broadcast, Some(0), len);
        let mut bytes = [vec![1; len], vec![2; len]];
        let [first, second] = &mut bytes;
        let part = |own, bytes| Long::new(Copies::broadcast((own, 3), 0, VolatileSlice::from_mut(bytes)));
        let mut parts = [part(0, first), part(1, second)];
        let round = |own: u32, what| round(&boards[own as usize], &members, own, 0, what);
        let wrong = round(2, What::NOTHING);
        wrong.announce();
        wrong.finish();
        for _ in 0..2 {
            assert!(is_waiting(OnBoard::advance(&mut parts[0], &round(0, what))));
            assert!(is_waiting(OnBoard::advance(&mut parts[1], &round(1, what))));
        }
        OnBoard::give_up(&mut parts[1], &round(1, what));
        assert!(!is_waiting(OnBoard::advance(&mut parts[0], &round(0, what))), "nobody needs anything");
        go_on(&boards, &members);
    }
}
