//! A board: what the members of a group post for each other, round by round, where all read it.
//!
//! Each member has a cell, in which it alone writes. A round, from 1, has a line of every cell: who gives something posts it there, and who needs it
//! looks there until the line has the round's number. What is short lies in the line itself, so that it costs the passage of one or two lines of the
//! caches; what is longer lies in one of the member's buffers, of which there are some small ones and a few large ones. Members that are through with a round say so, for those that want to write its lines again.
//!
//! What is longer than a large buffer goes through it by pieces, in one round: while that lasts, each member says in its line how many pieces it has
//! posted, and how many of the others' it has taken.
//!
//! # Protocol
//! - board.1: a member's line and buffer of a round are written by that member alone, and published by the round's number in the line.
//! - board.2: they are written again, in the round that has the same ones next, only when all members are [through](Board::finish) with the round
//!   before in them ([`Board::has_room`]). So what was found [posted](Board::posted) stays until whoever found it is through.
//! - board.3: a member goes through rounds in any order, but none further than [`OPEN`] behind its oldest that is not over
//!   ([`Board::may_begin`]). It says which is the last of those of which none before is missing, and beside it has a bit for each of those beyond.
//! - board.4: who is going to sleep says so in the first member's cell, and looks again; who has posted something, or is through with a round, looks
//!   whether anybody sleeps: once for both, if it finishes the round right behind its post. Between the two each has a fence, so that one of them sees the other.
//! - board.5: a cell is used by one group after the other, as its owner's [`Meeting`](crate::barrier::Meeting) is (barrier.3), and is made as good as
//!   new with that.
//! - board.6: in a round of pieces the first word of a member's line is its [`Progress`], which it alone writes. It fills the place of a piece, and
//!   then counts the piece as [posted](Progress::posted). It fills the place again only when all who need the piece that was there count that as
//!   [taken](Progress::taken). So a piece that was found posted stays until whoever needs it has counted it.

use crate::eventcount::EventCount;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed, fence, fence_behind_rmw};
use gasworks_sync::{VolatileSlice, kill_point, ord, racy};
use thiserror::Error;

/// So many rounds ahead of the others a member may be.
pub const LINES: u64 = if cfg!(gasworks_loom) { 2 } else { 128 };
/// So many rounds of a member may be under way at a time.
pub const OPEN: u64 = if cfg!(gasworks_loom) { 2 } else { 32 };
/// The bytes of a small buffer.
pub const SMALL: usize = 4 << 10;
/// How many small and large ones there are, and so how many rounds may have one at a time.
const SMALLS: u64 = 8;
const LARGES: u64 = 2;
/// The bytes of a large buffer.
const LARGE: usize = MAX_POST;
/// The most bytes that can be posted at once.
pub const MAX_POST: usize = 16 << 10;
/// The bytes of a piece, of which so many lie in a large buffer.
pub const PIECE: usize = LARGE / PIECES as usize;
/// How many pieces there is room for.
pub const PIECES: u32 = 2;
/// Where the large buffers begin.
const LARGE_BUFFERS: usize = SMALLS as usize * SMALL;
/// The bytes that lie in a line.
pub const INLINE: usize = WORDS * 8;
const WORDS: usize = 14;
/// In a word that says what is waited for: who has to post. The rest is the round.
const MEMBER: u32 = 16;
/// The members that can be named there; numbers beyond them say that it is room, of which [kind](Kind).
const MEMBERS: usize = (1 << MEMBER) - KINDS.len();
/// The kinds of room: in a line alone, or in a buffer, too.
const KINDS: [Kind; 3] = [
    Kind { len: INLINE, rounds: LINES, spare: if LINES > 2 { LINES / 2 } else { 0 } },
    Kind { len: SMALL, rounds: if LINES < SMALLS { LINES } else { SMALLS }, spare: SMALLS / 2 },
    Kind { len: MAX_POST, rounds: LARGES, spare: 0 },
];

/// For posts of so many bytes.
struct Kind {
    len: usize,
    /// How many rounds may have one at a time.
    rounds: u64,
    /// How many must be free besides, where that has to be looked at: so that a member who is ahead does not look in every round, and take the
    /// line away of those whom it waits for.
    spare: u64,
}

/// The number of the kind for so many bytes.
#[inline]
fn kind(len: usize) -> usize {
    KINDS.iter().take(KINDS.len() - 1).filter(|kind| len > kind.len).count()
}

/// With which rounds a member is through (board.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Through {
    /// The last before which none is missing, modulo 2^32: members are never half as far apart.
    last: u32,
    /// A bit for each of the [`OPEN`] behind it.
    beyond: u32,
}

const _: () = assert!(OPEN <= u32::BITS as u64 && OPEN <= LINES);

impl Through {
    fn of(word: u64) -> Self {
        Self { last: (word >> 32) as u32, beyond: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.last) << 32 | u64::from(self.beyond)
    }

    /// By how many rounds the last is before that one; less than 0 behind it.
    fn before(self, round: u64) -> i32 {
        (round as u32).wrapping_sub(self.last) as i32
    }

    /// With that round, too; `None` if it is too far from the last.
    fn with(self, round: u64) -> Option<Self> {
        let ahead = u32::try_from(self.before(round)).ok()?.checked_sub(1)?;
        let beyond = (u64::from(ahead) < OPEN).then(|| self.beyond | 1 << ahead)?;
        let passed = beyond.trailing_ones();
        Some(Self { last: self.last.wrapping_add(passed), beyond: beyond.checked_shr(passed).unwrap_or(0) })
    }
}

/// How far a member is in a round of pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// It has posted so many.
    pub posted: u32,
    /// It needs nothing any more of so many of each other member.
    pub taken: u32,
}

impl Progress {
    /// It posts nothing more, and needs nothing.
    pub const GIVEN_UP: Self = Self { posted: u32::MAX, taken: u32::MAX };

    fn word(self) -> u64 {
        u64::from(self.posted) << 32 | u64::from(self.taken)
    }

    fn of(word: u64) -> Self {
        Self { posted: (word >> 32) as u32, taken: word as u32 }
    }

    /// The bytes that [`Board::post`] puts into the line.
    pub fn to_bytes(self) -> [u8; 8] {
        self.word().to_ne_bytes()
    }
}

/// A line. Zero bytes are one in which nothing was posted.
#[repr(C, align(128))]
#[derive(Debug)]
struct Line {
    round: AtomicU64,
    /// What it is that was posted, in the words of those who use the board.
    what: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// What one member writes, and, if it is the first, the sleepers' word. Zero bytes are a cell of a group that has done nothing yet.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Cell {
    /// A [`Through`].
    through: AtomicU64,
    /// Not 0 if the number of its last has left 32 bits.
    wrapped: AtomicU64,
    apart: [AtomicU64; 14],
    /// Counts nothing: its sleepers' bit is what matters.
    sleepers: EventCount,
    rest: [AtomicU64; 15],
    lines: [Line; LINES as usize],
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    core::array::from_fn(|_| AtomicU64::new(0))
}

impl Cell {
    /// One of a group that has done nothing yet.
    pub fn new() -> Self {
        let line = |_| Line { round: AtomicU64::new(0), what: AtomicU64::new(0), words: zeros() };
        Self {
            through: AtomicU64::new(0),
            wrapped: AtomicU64::new(0),
            apart: zeros(),
            sleepers: EventCount::new(),
            rest: zeros(),
            lines: core::array::from_fn(line),
        }
    }

    /// Makes it as good as new. Called by its owner, when its group has left (board.5).
    pub fn renew(&self) {
        // Lines that nobody can have posted in stay untouched, and so their pages.
        let last = Through::of(self.through.load(Relaxed)).last;
        let rounds = if self.wrapped.load(Relaxed) == 0 { u64::from(last) + OPEN } else { LINES };
        for round in 1..=rounds.min(LINES) {
            self.lines[(round % LINES) as usize].round.store(0, Relaxed);
        }
        [&self.through, &self.wrapped].iter().for_each(|word| word.store(0, Relaxed));
        self.sleepers.reset();
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self::new()
    }
}

/// A line is in a round in which no well-behaved member has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the line of round {round} has been used for round {found} before all were through with it")]
pub struct Damage {
    /// The round that was looked for.
    pub round: u64,
    /// What the line says.
    pub found: u64,
}

/// A member's view of the board. In each round one thread acts; others may be at other rounds, and any may [arm](Self::arm).
#[derive(Debug)]
pub struct Board<'a> {
    cells: Box<[&'a Cell]>,
    buffers: Box<[VolatileSlice<'a>]>,
    own: usize,
    /// Up to which round all are known to be through; this member's own.
    known: AtomicU64,
    /// What each round that is under way waits for, if it does; this member's own.
    awaited: [AtomicU64; OPEN as usize],
    /// Where that is another member's progress: how far that was, or [`Progress::GIVEN_UP`], which nobody waits to see the end of.
    seen: [AtomicU64; OPEN as usize],
}

impl<'a> Board<'a> {
    /// The bytes of a member's buffers.
    pub const ROOM: usize = LARGE_BUFFERS + LARGES as usize * LARGE;

    /// The view of the member of that number, of these with their buffers; `None` if there is no such member, there are too many, or buffers are smaller
    /// than [`ROOM`](Self::ROOM).
    pub fn new(members: impl IntoIterator<Item = (&'a Cell, VolatileSlice<'a>)>, own: usize) -> Option<Self> {
        let (cells, buffers): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let fits = own < cells.len() && cells.len() <= MEMBERS;
        let fits = fits && buffers.iter().all(|buffer| buffer.len() >= Self::ROOM);
        let (known, awaited, seen) = (AtomicU64::new(0), zeros(), zeros());
        fits.then(|| Self { cells: cells.into(), buffers: buffers.into(), own, known, awaited, seen })
    }

    #[inline]
    fn line(&self, member: usize, round: u64) -> Option<&'a Line> {
        let cell: &'a Cell = self.cells.get(member)?;
        Some(&cell.lines[(round % LINES) as usize])
    }

    /// Whether this member may do anything in a round: it is not too far ahead of its own oldest.
    #[inline]
    pub fn may_begin(&self, round: u64) -> bool {
        let through = Through::of(self.cells[self.own].through.load(Relaxed));
        i64::from(through.before(round)) <= OPEN as i64
    }

    /// Whether this member may post so many bytes in a round (board.2). It may [begin](Self::may_begin) then. Where it is not known to have room from the last
    /// time, some more must be free.
    #[inline]
    pub fn has_room(&self, round: u64, len: usize) -> bool {
        self.is_room(round, &KINDS[kind(len)])
    }

    #[inline]
    fn is_room(&self, round: u64, kind: &Kind) -> bool {
        let needed = round.saturating_sub(kind.rounds);
        // Acquire: what another thread of this member knew is over is over for this one.
        self.known.load(ord!("board.known", Acquire)) >= needed || self.look_for_room(needed + kind.spare)
    }

    #[cold]
    fn look_for_room(&self, needed: u64) -> bool {
        // Acquire: what each has read in the rounds that it is through with, it has read.
        let before =
            |cell: &&Cell| Through::of(cell.through.load(ord!("board.room", Acquire))).before(needed);
        let missing = self.cells.iter().map(before).max().unwrap_or(0);
        let is_room = missing <= 0;
        if is_room {
            let all = needed + u64::from(missing.unsigned_abs());
            // Release: see `is_room`.
            self.known.fetch_max(all, ord!("board.know", Release));
            kill_point!("board.room.known");
        }
        is_room
    }

    /// Where so many bytes of a member lie in a round, which do not fit into a line: to be filled before it [posts](Self::post), to be read when it
    /// has. `None` for more than [`MAX_POST`].
    #[inline]
    pub fn buffer(&self, member: u32, round: u64, len: usize) -> Option<VolatileSlice<'a>> {
        let at = match () {
            () if len <= SMALL => (round % SMALLS) as usize * SMALL,
            () if len <= MAX_POST => Self::large(round),
            () => return None,
        };
        self.buffers.get(member as usize)?.slice(at, len)
    }

    /// Where the large buffer of a round begins.
    #[inline]
    fn large(round: u64) -> usize {
        LARGE_BUFFERS + (round % LARGES) as usize * LARGE
    }

    /// Where a member's piece of that number lies: to be filled before it is [counted](Self::advance) as posted, to be read when it is.
    #[inline]
    pub fn piece(&self, member: u32, round: u64, number: u32) -> Option<VolatileSlice<'a>> {
        let at = Self::large(round) + (number % PIECES) as usize * PIECE;
        self.buffers.get(member as usize)?.slice(at, PIECE)
    }

    /// Posts, in a round in which there [is room](Self::has_room): what it is, and what lies in the line, at most [`INLINE`] bytes. Who does not
    /// [finish](Self::finish) the round right behind it [looks for sleepers](Self::has_sleepers).
    ///
    /// # Panics
    /// Too many bytes.
    #[inline]
    pub fn post(&self, round: u64, what: u64, bytes: &[u8]) {
        let line = &self.cells[self.own].lines[(round % LINES) as usize];
        racy::store_words(&line.words, bytes);
        line.what.store(what, Relaxed);
        kill_point!("board.post.filled");
        // Release: who sees the round sees what belongs to it.
        line.round.store(round, ord!("board.post", Release));
        kill_point!("board.post.posted");
    }

    /// Says how far this member is in a round of pieces, which it has posted. Whether somebody may be asleep: then all bells must ring.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn advance(&self, round: u64, progress: Progress) -> bool {
        let line = &self.cells[self.own].lines[(round % LINES) as usize];
        // Release: who sees a piece posted sees its bytes; who sees one taken writes them again after they were read.
        line.words[0].store(progress.word(), ord!("board.advance", Release));
        kill_point!("board.advance.advanced");
        self.has_sleepers()
    }

    /// How far a member is in a round of pieces, which it has [posted](Self::posted).
    #[inline]
    pub fn progress(&self, member: u32, round: u64) -> Progress {
        let Some(line) = self.line(member as usize, round) else { return Progress::default() };
        // Acquire: see `advance`.
        Progress::of(line.words[0].load(ord!("board.progress", Acquire)))
    }

    /// Whether somebody may be asleep that has not seen what this thread has posted; takes the sleepers' bit away then, and all bells must ring.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn has_sleepers(&self) -> bool {
        // Sequentially consistent, here, in `finish` and in `arm`: of two that write, and then look at what the other has written, one sees it.
        fence(ord!("board.look.fence", SeqCst));
        self.look_for_sleepers()
    }

    #[inline]
    fn look_for_sleepers(&self) -> bool {
        let sleepers = &self.cells[0].sleepers;
        let has_sleepers = sleepers.is_armed();
        if has_sleepers {
            sleepers.disarm();
        }
        has_sleepers
    }

    /// What a member has posted in a round, once it has.
    ///
    /// # Errors
    /// The line is another round's, as no well-behaved member leaves it.
    #[inline]
    pub fn posted(&self, member: u32, round: u64) -> Result<Option<u64>, Damage> {
        let Some(line) = self.line(member as usize, round) else { return Ok(None) };
        // Acquire: see `post`.
        match line.round.load(ord!("board.posted", Acquire)) {
            found if found == round => Ok(Some(line.what.load(Relaxed))),
            found if found < round => Ok(None),
            found => Err(Damage { round, found }),
        }
    }

    /// Copies out, from a place on, what lies in the line of a member that has posted.
    ///
    /// # Panics
    /// It is beyond [`INLINE`].
    #[inline]
    pub fn read(&self, member: u32, round: u64, from: usize, target: &mut [u8]) {
        let Some(line) = self.line(member as usize, round) else { return };
        let mut bytes = [0; INLINE];
        let end = from + target.len();
        if from == 0 {
            racy::load_words(&line.words, target);
        } else {
            racy::load_words(&line.words, &mut bytes[..end]);
            target.copy_from_slice(&bytes[from..end]);
        }
    }

    /// This member is through with a round, which it [may begin](Self::may_begin). Whether somebody may be asleep: then all bells must ring.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn finish(&self, round: u64) -> bool {
        self.wait_for_nothing(round);
        let advance = |word: u64| Some(Through::of(word).with(round)?.word());
        let Cell { through, wrapped, .. } = self.cells[self.own];
        if round > u64::from(u32::MAX) {
            wrapped.store(1, Relaxed);
        }
        // Release: what this thread has read, it has read; and so have those whose bits were there.
        if through.fetch_update(ord!("board.finish", Release), Relaxed, advance).is_err() {
            return self.has_sleepers();
        }
        kill_point!("board.finish.finished");
        // See `has_sleepers`.
        fence_behind_rmw(ord!("board.finish.fence", SeqCst));
        self.look_for_sleepers()
    }

    /// What a round waits for, until it is over or waits for something else: that a member posts.
    #[inline]
    pub fn wait_for(&self, round: u64, member: u32) {
        self.wait_for_progress(round, member, Progress::GIVEN_UP);
    }

    /// The same: that a member is further than that in a round of pieces.
    #[inline]
    pub fn wait_for_progress(&self, round: u64, member: u32, seen: Progress) {
        let place = (round % OPEN) as usize;
        self.seen[place].store(seen.word(), Relaxed);
        self.awaited[place].store(round << MEMBER | u64::from(member), Relaxed);
    }

    /// It waits for nothing, and goes on otherwise.
    #[inline]
    pub fn wait_for_nothing(&self, round: u64) {
        self.awaited[(round % OPEN) as usize].store(0, Relaxed);
    }

    /// The same: that there is room.
    pub fn wait_for_room(&self, round: u64, len: usize) {
        self.wait_for(round, (MEMBERS + kind(len)) as u32);
    }

    /// Asks to be woken when what any round waits for is there; whether it may sleep.
    #[cold]
    pub fn arm(&self) -> bool {
        let words = || self.awaited.iter().map(|word| word.load(Relaxed)).zip(&self.seen);
        let awaited = || words().filter(|&(word, _)| word != 0);
        if awaited().next().is_none() {
            return true;
        }
        let _ = self.cells[0].sleepers.arm();
        fence(ord!("board.arm.fence", SeqCst));
        awaited().all(|(word, seen)| {
            let (round, member) = (word >> MEMBER, word & ((1 << MEMBER) - 1));
            match (member as usize).checked_sub(MEMBERS) {
                Some(kind) => KINDS.get(kind).is_some_and(|kind| !self.is_room(round, kind)),
                None => match (self.posted(member as u32, round), Progress::of(seen.load(Relaxed))) {
                    (Ok(None), _) => true,
                    (Ok(Some(_)), Progress::GIVEN_UP) | (Err(_), _) => false,
                    (Ok(Some(_)), seen) => self.progress(member as u32, round) == seen,
                },
            }
        })
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Rounds are over in any order within what a member may be ahead, also where their number leaves 32 bits.
    #[test]
    fn rounds_go_on_beyond_32_bits() {
        let mut last = (1u64 << 32) - 40;
        let mut through = Through { last: last as u32, beyond: 0 };
        let (mut over, mut seed) = (BTreeSet::new(), 1u64);
        for _ in 0..200 {
            let open: Vec<_> = (last + 1..=last + OPEN).filter(|round| !over.contains(round)).collect();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let round = open[(seed >> 33) as usize % open.len()];
            assert_eq!(through.with(last + OPEN + 1), None, "further than it may be ahead");
            through = through.with(round).unwrap();
            over.insert(round);
            while over.remove(&(last + 1)) {
                last += 1;
            }
            assert_eq!((through.last, through.before(last + 3)), (last as u32, 3));
        }
        assert!(last > 1 << 32, "they have not gone beyond");
    }

    /// Nothing of a round is left in a cell that is made new, however far its rounds were.
    #[test]
    fn nothing_of_any_round_is_left() {
        for last in [0, 1, 5, LINES - OPEN, LINES, 3 * LINES + 7, (1 << 32) + 1] {
            let (cell, mut bytes) = (Cell::new(), vec![0; Board::ROOM]);
            let board = Board::new([(&cell, VolatileSlice::from_mut(&mut bytes))], 0).unwrap();
            for round in (last + 1).saturating_sub(LINES).max(1)..=last + OPEN {
                board.post(round, 1, &[]);
            }
            if let Some(before) = last.checked_sub(1) {
                cell.through.store(Through { last: before as u32, beyond: 0 }.word(), Relaxed);
                assert!(!board.finish(last));
            }
            cell.renew();
            assert!(cell.lines.iter().all(|line| line.round.load(Relaxed) == 0), "after round {last}");
            assert_eq!([&cell.through, &cell.wrapped].map(|word| word.load(Relaxed)), [0, 0]);
        }
    }

    /// There is room for a round when all are through with the one that had its line, also where their number leaves 32 bits.
    #[test]
    fn there_is_room_beyond_32_bits() {
        let cells = [Cell::new(), Cell::new()];
        let (mut first, mut second) = (vec![0; Board::ROOM], vec![0; Board::ROOM]);
        let buffers = [VolatileSlice::from_mut(&mut first), VolatileSlice::from_mut(&mut second)];
        let board = Board::new(cells.iter().zip(buffers), 0).unwrap();
        let round = (1u64 << 32) + 5;
        let says = |cell: &Cell, last: u64| {
            cell.through.store(Through { last: last as u32, beyond: 0 }.word(), Relaxed);
        };
        says(&cells[0], round - 1);
        let enough = round - LINES + LINES / 2;
        says(&cells[1], enough - 1);
        assert!(board.may_begin(round) && !board.has_room(round, 8));
        says(&cells[1], enough);
        assert!(board.has_room(round, 8));
        assert_eq!(board.known.load(Relaxed), enough);
        assert!(board.may_begin(round - 1 + OPEN) && !board.may_begin(round + OPEN));
    }
}
