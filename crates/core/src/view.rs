//! What calls on a team are made with.
//!
//! [`TeamRows`] are a team's [`Members`] and the rows by which puts and gets find their segments; a [`View`] of them is what a call takes. So is
//! one of a region, whose rows are those of the region in the place of the segments'.

use crate::team::{Members, TeamError};
use crate::{Error, Rank};
use gasworks_memory::{MemoryError, OwnRows, RegionHandle, RegionId, RegionTable, Rows};
use gasworks_sync::VolatileSlice;
use std::sync::Arc;

/// The most members of a stride whose rows are copied.
const MAX_COPIED: u32 = 256;

/// A team's members, and the rows of their segments: the table's own for everyone, copies for others. A stride of more than 256 members has no copies, so that
/// its memory does not grow with its size: the slow path finds its members' rows in the table.
#[derive(Debug)]
pub struct TeamRows<'a> {
    members: Arc<Members>,
    peers: &'a RegionTable,
    own: Option<OwnRows<'a>>,
    stride: Option<Stride<'a>>,
}

/// Where the rows of a stride's members are: the table's rows, the first member's rank, and how far on each next one's is.
#[derive(Clone, Copy, Debug)]
struct Stride<'a> {
    rows: Rows<'a>,
    first: Rank,
    step: i32,
    size: u32,
}

impl<'a> TeamRows<'a> {
    /// Of all ranks of this table.
    pub fn everyone(peers: &'a RegionTable) -> Self {
        Self { members: Arc::new(Members::everyone(peers.ranks())), peers, own: None, stride: None }
    }

    /// Of members who are ranks of this table.
    ///
    /// # Errors
    /// One is not.
    pub fn new(members: Arc<Members>, peers: &'a RegionTable) -> Result<Self, TeamError> {
        let ranks = peers.ranks();
        if let Some((member, rank)) = (0..).zip(members.iter()).find(|&(_, rank)| rank >= ranks) {
            return Err(TeamError::NoSuchRank { member, rank: rank.into(), ranks });
        }
        let (own, stride) = match (members.is_everyone(), members.as_stride()) {
            (true, _) => (None, None),
            (false, Some((first, step))) if members.size() > MAX_COPIED => {
                let stride = Stride { rows: peers.rows(), first, step, size: members.size() };
                (Some(peers.rows_of([])), Some(stride))
            }
            (false, _) => (Some(peers.rows_of(members.iter())), None),
        };
        Ok(Self { members, peers, own, stride })
    }

    /// The members.
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// What calls are made with.
    pub fn view(&self) -> View<'_> {
        match &self.own {
            None => View::everyone(self.peers),
            Some(own) => View { rows: own.rows(), direct: 0, of: Some(self), region: None },
        }
    }
}

/// What a call on a team is made with: the rows of the members' segments, and the members' ranks.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    rows: Rows<'a>,
    /// Numbers below this are ranks themselves, and offsets are of their segments: of everyone's members all, of another team's or a region's
    /// none.
    direct: u32,
    /// `None` for everyone.
    of: Option<&'a TeamRows<'a>>,
    /// The region of which offsets are.
    region: Option<RegionId>,
}

impl<'a> View<'a> {
    /// Of all ranks.
    pub fn everyone(peers: &'a RegionTable) -> Self {
        Self { rows: peers.rows(), direct: peers.ranks(), of: None, region: None }
    }

    /// Of all ranks' parts of a region; `None` if there is no such region.
    pub fn region(peers: &'a RegionTable, id: RegionId) -> Option<Self> {
        Some(Self { rows: peers.rows_in(id)?, direct: 0, of: None, region: Some(id) })
    }

    /// The region that stands in the place of the segments, if one does.
    pub fn in_region(&self) -> Option<RegionId> {
        self.region
    }

    /// The rows of the members' segments.
    #[inline(always)]
    pub fn rows(&self) -> Rows<'a> {
        self.rows
    }

    /// The number of members.
    #[inline]
    pub fn size(&self) -> u32 {
        self.of.map_or(self.rows.count(), |of| of.members.size())
    }

    /// Whether a number is that of a member and of its rank alike.
    #[inline(always)]
    pub(crate) fn is_direct(&self, member: u32) -> bool {
        member < self.direct
    }

    /// [`RemoteAddr::open`] for a member of a large stride, by the table's row of its rank, for cold functions. `None` for all others.
    #[inline(never)]
    pub fn open_by_stride(&self, member: u32, offset: u64, len: usize) -> Option<VolatileSlice<'a>> {
        let Stride { rows, first, step, size } = self.of?.stride?;
        // Every member is a rank, whose number is one of 32 bits, whichever way it is reached.
        let rank = first.wrapping_add_signed(step.wrapping_mul(member.cast_signed()));
        if member < size { rows.open(rank, offset, len) } else { None }
    }

    /// An offset in a member's segment.
    #[inline(always)]
    pub fn at(self, member: u32, offset: u64) -> RemoteAddr<'a> {
        RemoteAddr { view: self, member, offset }
    }

    /// The rank of a member. Of everyone's, numbers that are no rank's are returned as they are: the call that they are for says so.
    ///
    /// # Errors
    /// There is no such member.
    #[inline]
    pub fn rank_of(&self, member: u32) -> Result<Rank, Error> {
        if member < self.direct { Ok(member) } else { self.rank_of_other(member) }
    }

    /// A member's rank, and the place that an offset is there.
    ///
    /// # Errors
    /// There is no such member, or the offset is beyond every region's end.
    #[inline]
    pub fn place_of(&self, member: u32, offset: u64) -> Result<(Rank, u64), Error> {
        if member < self.direct { Ok((member, offset)) } else { self.place_of_other(member, offset) }
    }

    #[cold]
    fn place_of_other(&self, member: u32, offset: u64) -> Result<(Rank, u64), Error> {
        let owner = self.rank_of_other(member)?;
        // A place in a region says itself which one.
        let Some(id) = self.region.filter(|_| RegionId::of(offset).is_none()) else {
            return Ok((owner, offset));
        };
        let region = RegionHandle { owner, id };
        let beyond = MemoryError::OutsideRegion { region, offset, len: 1, size: RegionId::MAX_LEN };
        Ok((owner, id.place(offset).ok_or(Error::memory("place in a region")(beyond))?))
    }

    #[cold]
    fn rank_of_other(&self, member: u32) -> Result<Rank, Error> {
        let Some(TeamRows { members, .. }) = self.of else { return Ok(member) };
        let size = members.size();
        Ok(members.rank_of(member).ok_or(TeamError::NoSuchMember { member, size })?)
    }

    /// What went wrong with a call to a member: with the number that the caller knows it by, where that is not its rank alone.
    #[cold]
    pub fn explain(&self, member: u32, error: Error) -> Error {
        if self.of.is_none() || error.is_busy() {
            error
        } else {
            Error::Member { member, cause: Box::new(error) }
        }
    }

    /// Opens a member's row as far as its rank's segment is known to be by now.
    #[cold]
    pub fn update(&self, member: u32, rank: Rank) {
        if let Some(own) = self.of.and_then(|of| of.own.as_ref()) {
            own.update(member, rank);
        }
    }
}

/// Where a put or get goes: an offset in the segment of a view's member, or in its part of a region.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAddr<'a> {
    view: View<'a>,
    member: u32,
    offset: u64,
}

impl<'a> RemoteAddr<'a> {
    /// `len` bytes there, where load and store reach them and nothing else is to be done.
    #[inline(always)]
    pub fn open(&self, len: usize) -> Option<VolatileSlice<'a>> {
        self.view.rows.open(self.member, self.offset, len)
    }

    /// The member's rank, and the place in its memory.
    ///
    /// # Errors
    /// There is no such member, or the offset is beyond every region's end.
    #[inline]
    pub fn of_rank(&self) -> Result<(Rank, u64), Error> {
        self.view.place_of(self.member, self.offset)
    }

    /// What went wrong with a call to there ([`View::explain`]).
    #[cold]
    pub fn explain(&self, error: Error) -> Error {
        self.view.explain(self.member, error)
    }

    /// Load and store reach it, in the memory of this rank: the next call is to find it open.
    #[cold]
    pub fn reached(&self, rank: Rank) {
        self.view.update(self.member, rank);
    }
}
