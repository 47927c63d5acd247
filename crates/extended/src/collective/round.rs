//! A collective's round on the board of a team whose members share memory: what the members post for each other there.
//!
//! Of every collective of such a team each member knows by what the others post whether they are in the same one. A short one is no more than that:
//! [`short`](super::short).

use super::bytes::{Bytes, Stop};
use super::matching::TeamNumber;
use gasworks_core::board::{Damage, INLINE, Progress};
pub(crate) use gasworks_core::observe::Collective as Kind;
use gasworks_core::observe::LongWait;
use gasworks_core::{Board, Error, Members, Rank, SharedTeam};
use gasworks_sync::{VolatileSlice, kill_point};

/// What a member is in: the kind, the root, and the bytes of each member where these are as many on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct What(u64);

impl What {
    /// The member was given something wrong, and does nothing.
    pub const NOTHING: Self = Self(1 << 63);
    /// The member has found another in something else, and does nothing any more.
    const GIVEN_UP: u64 = 1 << 62;
    /// Its bytes are on the board.
    const POSTED: u64 = 1 << 61;
    const KIND: u32 = 56;
    const ROOT: u32 = 40;

    /// A collective of that kind.
    pub fn new(kind: Kind, root: Option<u32>, len: usize) -> Self {
        let root = root.map_or(0, |root| u64::from(root as u16)) << Self::ROOT;
        Self((kind as u64) << Self::KIND | root | (len as u64 & ((1 << Self::ROOT) - 1)))
    }

    /// The same, of which the bytes are on the board, and not in messages.
    pub fn posted(self) -> Self {
        Self(self.0 | Self::POSTED)
    }

    /// The kind; `None` of nothing.
    pub fn kind(self) -> Option<Kind> {
        Kind::of(((self.0 & (Self::POSTED - 1)) >> Self::KIND) as u8)
    }

    /// The bytes of each member where these are as many on all.
    pub fn len(self) -> u64 {
        self.0 & ((1 << Self::ROOT) - 1)
    }

    /// Whether it is a reduction to all that may be of one word.
    pub fn is_of_a_word(self) -> bool {
        self.kind() == Some(Kind::ReduceAll) && matches!(self.len(), 4 | 8)
    }

    fn describe(self) -> String {
        let (len, name) = (self.len(), self.kind().map_or("nothing known", Kind::name));
        let way = if self.0 & Self::POSTED == 0 { ", by messages" } else { "" };
        format!("{name} of {len} bytes, root {}{way}", self.0 >> Self::ROOT & 0xffff)
    }
}

/// Which collective of which team: what it is, and how many the team had begun before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    pub what: What,
    pub team: TeamNumber,
    pub before: u64,
}

impl Which {
    /// It takes long, and waits for this rank. Of nothing nobody is told.
    pub fn long(self, rank: Option<Rank>) -> Option<LongWait> {
        let (team, bytes) = ((self.team.maker, self.team.counter), self.what.len());
        Some(LongWait { kind: self.what.kind()?, bytes, team, before: self.before, rank })
    }
}

/// Where a member is in a collective of a team that has a board.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    shared: &'a dyn SharedTeam,
    board: &'a Board<'a>,
    /// From 1.
    number: u64,
    what: What,
    team: TeamNumber,
    members: &'a Members,
    own: u32,
}

impl<'a> Round<'a> {
    /// `None` where the team has no board. It is the round of a collective of which the team had begun so many before.
    pub fn new(
        shared: Option<&'a dyn SharedTeam>,
        (team, members, own): (TeamNumber, &'a Members, u32),
        before: u64,
        what: What,
    ) -> Option<Self> {
        let shared = shared?;
        let board = shared.board()?;
        Some(Self { shared, board, number: before + 1, what, team, members, own })
    }

    /// How many collectives the team had begun before.
    pub fn before(&self) -> u64 {
        self.number - 1
    }

    /// What it is.
    pub fn what(&self) -> What {
        self.what
    }

    /// Which collective it is.
    pub fn which(&self) -> Which {
        Which { what: self.what, team: self.team, before: self.before() }
    }

    /// How many members there are.
    pub fn size(&self) -> u32 {
        self.members.size()
    }

    /// Which of them this rank is.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Waits until there is room to post.
    pub fn room(&self, len: usize) -> Result<(), Stop> {
        self.begin()?;
        if self.board.has_room(self.number, len) {
            return Ok(());
        }
        self.board.wait_for_room(self.number, len);
        Err(Stop::Waits(None))
    }

    /// Waits until this rank's oldest collectives are over.
    pub fn begin(&self) -> Result<(), Stop> {
        // They go on at polls.
        if self.board.may_begin(self.number) { Ok(()) } else { Err(Stop::Waits(None)) }
    }

    /// Posts bytes that lie in plain memory, where there is [room](Self::room). Who does not [finish](Self::finish) right behind it
    /// [tells](Self::tell) the others.
    pub fn post(&self, bytes: Bytes<'_>) {
        let mut line = [0; INLINE];
        let len = bytes.len();
        let inline = match bytes {
            _ if len > INLINE => {
                if let Some(buffer) = self.board.buffer(self.own, self.number, len) {
                    bytes.copy_to(buffer);
                }
                &[]
            }
            Bytes::Plain(bytes) => bytes,
            Bytes::Shared(_) => {
                bytes.read(&mut line[..len]);
                &line[..len]
            }
        };
        self.board.post(self.number, self.what.0, inline);
        kill_point!("collective.posted");
    }

    /// Wakes those who sleep until this rank has posted.
    #[inline]
    pub fn tell(&self) {
        if self.board.has_sleepers() {
            self.shared.ring();
        }
    }

    /// Posts what it is in and no more, where there is [room](Self::room).
    pub fn announce(&self) {
        self.say(self.what.0, &[]);
    }

    fn say(&self, what: u64, inline: &[u8]) {
        self.board.post(self.number, what, inline);
        self.tell();
    }

    /// Waits until a member has posted. A member that is in something else is an error, which the others are told.
    pub fn wait_for(&self, member: u32) -> Result<(), Stop> {
        let posted = self.board.posted(member, self.number);
        if posted == Ok(Some(self.what.0)) {
            return Ok(());
        }
        self.not_posted(member, posted)
    }

    #[cold]
    fn not_posted(&self, member: u32, posted: Result<Option<u64>, Damage>) -> Result<(), Stop> {
        let from = self.members.rank_of(member).unwrap_or(u32::MAX);
        let what = match posted {
            Ok(None) => {
                self.board.wait_for(self.number, member);
                return Err(Stop::Waits(Some(from)));
            }
            Ok(Some(theirs)) => self.differs(What(theirs)),
            Err(damage) => format!("on the board of {:?}, {damage}", self.team),
        };
        Err(Stop::Failed(Error::BadMessage { from, what }))
    }

    #[cold]
    fn differs(&self, theirs: What) -> String {
        let (team, own) = (self.team, self.what.describe());
        match theirs {
            What::NOTHING => format!("it was given something wrong for a collective of {team:?}, here {own}"),
            What(word) if word == self.what.0 | What::GIVEN_UP => {
                format!(
                    "it has given up {own} of {team:?}, for another member is in something else or a poll failed"
                )
            }
            theirs => format!(
                "it is in {}, and this rank in {own}: in another collective of {team:?}, or with another number of values",
                theirs.describe()
            ),
        }
    }

    /// Whether, of the members from one on, all that have posted are in the same collective; up to which that is so now. Those that do nothing count.
    pub fn check(&self, from: u32) -> Result<u32, Stop> {
        for member in from..self.size() {
            match self.board.posted(member, self.number) {
                Ok(Some(word)) if word == self.what.0 || word == What::NOTHING.0 => {}
                posted => match self.not_posted(member, posted) {
                    Err(Stop::Waits(_)) => return Ok(member),
                    other => other?,
                },
            }
        }
        self.board.wait_for_nothing(self.number);
        Ok(self.size())
    }

    /// Begins a round of pieces, where there is [room](Self::room).
    pub fn begin_pieces(&self, progress: Progress) {
        self.say(self.what.0, &progress.to_bytes());
    }

    /// Says how far this member is in a round of pieces.
    #[inline]
    pub fn advance(&self, progress: Progress) {
        if self.board.advance(self.number, progress) {
            self.shared.ring();
        }
        kill_point!("collective.piece");
    }

    /// Where a member's piece of that number lies.
    #[inline]
    pub fn piece(&self, member: u32, number: u32) -> VolatileSlice<'a> {
        self.board.piece(member, self.number, number).unwrap_or(VolatileSlice::EMPTY)
    }

    /// Waits until a member has posted so many pieces. One that is in something else, or has given up, is an error.
    #[inline]
    pub fn wait_for_pieces(&self, member: u32, posted: u32) -> Result<(), Stop> {
        self.wait_for(member)?;
        match self.board.progress(member, self.number) {
            progress if progress.posted >= posted && progress != Progress::GIVEN_UP => Ok(()),
            progress => self.has_not_advanced(member, progress),
        }
    }

    #[cold]
    fn has_not_advanced(&self, member: u32, seen: Progress) -> Result<(), Stop> {
        if seen == Progress::GIVEN_UP {
            return self.not_posted(member, Ok(Some(self.what.0 | What::GIVEN_UP)));
        }
        self.board.wait_for_progress(self.number, member, seen);
        Err(Stop::Waits(self.members.rank_of(member)))
    }

    /// Waits until a member has taken so many pieces, or is one that needs none. One that is in something else is an error.
    #[inline]
    pub fn wait_until_taken(&self, member: u32, taken: u32) -> Result<(), Stop> {
        match self.board.posted(member, self.number) {
            Ok(Some(word)) if word == self.what.0 => {
                let progress = self.board.progress(member, self.number);
                if progress.taken >= taken { Ok(()) } else { self.has_not_advanced(member, progress) }
            }
            Ok(Some(word)) if word == What::NOTHING.0 || word == self.what.0 | What::GIVEN_UP => Ok(()),
            posted => self.not_posted(member, posted),
        }
    }

    /// This rank will not go on, since another is in something else.
    pub fn give_up(&self, has_posted: bool) {
        // Without room those that wait for this rank are the others of an older one, which come to know by that.
        if !has_posted && self.board.may_begin(self.number) && self.board.has_room(self.number, 0) {
            self.say(self.what.0 | What::GIVEN_UP, &[]);
        }
    }

    /// What lies in a member's buffer, of `len` bytes that it has posted, if they do not lie in its line.
    #[inline]
    fn in_buffer(&self, member: u32, len: usize, (from, count): (usize, usize)) -> Option<VolatileSlice<'a>> {
        if len <= INLINE { None } else { self.board.buffer(member, self.number, len)?.slice(from, count) }
    }

    /// Copies some of the `len` bytes that a member has posted, from a place on.
    pub fn read(&self, member: u32, len: usize, from: usize, target: &mut [u8]) {
        match self.in_buffer(member, len, (from, target.len())) {
            Some(bytes) => bytes.read(target),
            None => self.board.read(member, self.number, from, target),
        }
    }

    /// The same, to memory that others may have access to.
    pub fn read_to(&self, member: u32, len: usize, from: usize, target: VolatileSlice<'_>) {
        match self.in_buffer(member, len, (from, target.len())) {
            Some(bytes) => bytes.copy_to(target),
            None => {
                let mut line = [0; INLINE];
                let line = &mut line[..target.len()];
                self.board.read(member, self.number, from, line);
                target.write(line);
            }
        }
    }

    /// This rank's part is over.
    pub fn finish(&self) {
        if self.board.finish(self.number) {
            self.shared.ring();
        }
    }
}
