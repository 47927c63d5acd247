//! The teams, endpoints and segments that C has handles of.
//!
//! A handle is looked for by its address, and what it leads to is not read: so one that is of nothing, or of what was destroyed, is told of.
//! The headers read what it leads to; the latest objects that were destroyed are kept for that.
//!
//! # Invariants
//! As in the crate.

use crate::layout::{Endpoint, Kind, Memvec, Object, PAIRS, Segment, Team};
use crate::meeting::Meeting;
use gasworks::ThreadMode;
use gasworks_core::{Members, Rank, TeamRows};
use gasworks_extended::{Barrier, team};
use gasworks_memory::{RegionId, Row};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

/// A team that C has a handle of.
pub(crate) struct Known<M: ThreadMode> {
    /// Its number on this rank, which its barriers' events have.
    pub(crate) number: usize,
    pub(crate) handle: *mut Team,
    pub(crate) team: Arc<team::Team>,
    pub(crate) meeting: Meeting,
    /// `None`: the job's.
    pub(crate) barrier: Option<Barrier<M>>,
    /// Its members' rows, if they are not the table's own.
    pub(crate) rows: Option<TeamRows<'static>>,
    pub(crate) scratch: Memvec,
}

impl<M: ThreadMode> Known<M> {
    /// Everyone.
    pub(crate) fn everyone(handle: *mut Team, team: Arc<team::Team>) -> Self {
        let (meeting, scratch) = (Meeting::default(), Memvec::NONE);
        Self { number: 0, handle, team, meeting, barrier: None, rows: None, scratch }
    }

    pub(crate) fn members(&self) -> &Members {
        self.team.members()
    }

    /// The rank of a member; its row opens, if its segment has been reached since the team was made.
    fn rank_of(&self, member: u32) -> Option<Rank> {
        let rank = self.members().rank_of(member)?;
        if let Some(rows) = &self.rows {
            rows.view().update(member, rank);
        }
        Some(rank)
    }

    /// Whether its barriers are phases of one.
    pub(crate) fn has_phases(&self) -> bool {
        self.barrier.is_none() || self.team.shared().is_some()
    }
}

/// A team that was found.
pub(crate) enum Found<'a, M: ThreadMode> {
    Everyone(&'a Known<M>),
    Other(Arc<Known<M>>),
}

impl<M: ThreadMode> Deref for Found<'_, M> {
    type Target = Known<M>;

    fn deref(&self) -> &Known<M> {
        match self {
            Self::Everyone(known) => known,
            Self::Other(known) => known,
        }
    }
}

/// The teams beside everyone.
pub(crate) struct Teams<M: ThreadMode> {
    /// By their numbers less one.
    known: Vec<Option<Arc<Known<M>>>>,
    numbers: BTreeMap<usize, usize>,
    gone: Gone<Team>,
}

impl<M: ThreadMode> Default for Teams<M> {
    fn default() -> Self {
        Self { known: Vec::new(), numbers: BTreeMap::new(), gone: Gone::default() }
    }
}

impl<M: ThreadMode> Teams<M> {
    pub(crate) fn by_number(&self, number: usize) -> Option<&Arc<Known<M>>> {
        self.known.get(number.checked_sub(1)?)?.as_ref()
    }

    pub(crate) fn by_handle(&self, handle: *const Team) -> Option<&Arc<Known<M>>> {
        self.by_number(*self.numbers.get(&handle.addr())?)
    }

    /// The rank of a member of a team, or how many members it has; `None`: there is no such team.
    pub(crate) fn rank_of(&self, handle: *const Team, member: u32) -> Option<Result<Rank, u32>> {
        let known = self.by_handle(handle)?;
        Some(known.rank_of(member).ok_or_else(|| known.members().size()))
    }

    /// Takes the lowest number that is free.
    pub(crate) fn add(&mut self, known: impl FnOnce(usize) -> Known<M>) {
        let free = self.known.iter().position(Option::is_none).unwrap_or(self.known.len());
        let known = known(free + 1);
        if free == self.known.len() {
            self.known.push(None);
        }
        self.numbers.insert(known.handle.addr(), free + 1);
        self.known[free] = Some(Arc::new(known));
    }

    /// Takes a team away, whose handle C does not use any more: whoever does reaches the closed row.
    pub(crate) fn remove(&mut self, handle: *const Team, closed: *const Row) -> Option<Arc<Known<M>>> {
        let known = self.known.get_mut(self.numbers.remove(&handle.addr())? - 1)?.take()?;
        // SAFETY: capi.1: the object is the library's again, and stays; nobody uses the team.
        unsafe {
            (&raw mut (*known.handle).rows).write(closed);
            (&raw mut (*known.handle).pitch).write(0);
        }
        self.gone.put(known.handle);
        Some(known)
    }
}

/// This rank's endpoints and segments, and what it knows of the others'.
pub(crate) struct Endpoints {
    /// This rank's, by their numbers.
    pub(crate) own: Vec<*mut Endpoint>,
    /// The publications of each number.
    pub(crate) published: Vec<Vec<Publication>>,
    /// The segments that C has made, by where their objects lie.
    pub(crate) segments: BTreeMap<usize, Created>,
    pub(crate) gone: Gone<Segment>,
}

/// Endpoints of one number that members of a team have made known to each other: a region.
pub(crate) struct Publication {
    pub(crate) region: RegionId,
    pub(crate) members: Arc<Members>,
    /// Whether this rank's is among them.
    pub(crate) has_own: bool,
}

impl Publication {
    /// Whether all these know this rank's by it.
    pub(crate) fn tells(&self, members: &Members) -> bool {
        let has = |rank| self.members.member_of(rank).is_some();
        self.has_own && (self.members.is_everyone() || *self.members == *members || members.iter().all(has))
    }
}

/// A segment that C has made.
pub(crate) struct Created {
    /// Where the library has mapped it, if C gave no memory.
    pub(crate) _mapping: Option<memmap2::MmapMut>,
    /// The number of the endpoint that it is bound to.
    pub(crate) bound: Option<usize>,
}

impl Endpoints {
    /// The first, alone.
    pub(crate) fn first(endpoint: *mut Endpoint) -> Self {
        let published = std::iter::repeat_with(Vec::new).take(PAIRS).collect();
        let (segments, gone) = (BTreeMap::new(), Gone::default());
        Self { own: vec![endpoint], published, segments, gone }
    }

    /// The number of an endpoint of this rank.
    pub(crate) fn number(&self, endpoint: *const Endpoint) -> Option<usize> {
        self.own.iter().position(|own| std::ptr::eq(*own, endpoint))
    }

    /// The number of the endpoint elsewhere that a pair is with: [`PAIRS`] for all that there cannot be. `None`: it is no pair.
    pub(crate) fn of_pair(&self, team: *const Team) -> Option<usize> {
        self.own.iter().find_map(|own| {
            // SAFETY: capi.2: endpoints stay, and where their pairs are never changes.
            let pairs = unsafe { (**own).pairs };
            let at = team.addr().wrapping_sub(pairs.addr());
            let number = at / size_of::<Team>();
            (at.is_multiple_of(size_of::<Team>()) && number <= PAIRS).then_some(number)
        })
    }
}

/// Objects that C has destroyed: the latest, so that a debug build can tell what a handle of one was.
pub(crate) struct Gone<T> {
    objects: VecDeque<*mut T>,
}

/// So many are kept of a sort.
const KEPT: usize = 64;

impl<T> Default for Gone<T> {
    fn default() -> Self {
        Self { objects: VecDeque::new() }
    }
}

impl<T> Gone<T> {
    /// Takes an object that came from a box, begins as all do, and is C's no more.
    pub(crate) fn put(&mut self, object: *mut T) {
        // SAFETY: capi.1: it is C's no more, so nobody reads it meanwhile; all objects begin with the fields of `Object`.
        unsafe { (&raw mut (*object.cast::<Object>()).kind).write(Kind::Gone as u32) };
        self.objects.push_back(object);
        if self.objects.len() > KEPT
            && let Some(oldest) = self.objects.pop_front()
        {
            // SAFETY: capi.1: it came from a box, C uses it no more, and nobody else has it but this list.
            drop(unsafe { Box::from_raw(oldest) });
        }
    }
}
