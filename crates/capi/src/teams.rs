//! Teams: made of others, and destroyed.
//!
//! # Invariants
//! As in the crate.

use crate::face::{Face, FaceMode, fail, went};
use crate::job::give;
use crate::known::Known;
use crate::layout::{Flags, GLOBALLY_QUIESCED, Kind, Location, Memvec, PAIRS, RANK_IS_JOBRANK, Team};
use crate::meeting::Meeting;
use crate::talk::may_talk;
use crate::{barrier, event};
use gasworks_core::TeamRows;
use gasworks_extended::Barrier;
use gasworks_extended::barrier::{TeamBarrier, Way};
use gasworks_extended::team;
use gasworks_memory::Row;
use gasworks_sync::Lock;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

impl<M: FaceMode> Face<M> {
    /// Makes C's handle of a new team.
    fn keep(&'static self, team: team::Team, scratch: Memvec, flags: Flags) -> *mut Team {
        let (job_teams, _) = self.job.teams();
        let team = Arc::new(team);
        let members = team.members();
        let size_of_row = size_of::<Row>() as isize;
        let all = self.engine().peers().rows().as_ptr();
        let (rows, first, pitch) = match members.as_stride() {
            Some((first, step)) => (None, all.wrapping_add(first as usize), step as isize * size_of_row),
            None => {
                let rows = TeamRows::new(members.clone(), self.engine().peers());
                let rows = went("gex_TM_Split", rows);
                let first = rows.view().rows().as_ptr();
                (Some(rows), first, size_of_row)
            }
        };
        let object = Team {
            cdata: std::ptr::null(),
            kind: Kind::Team as u32,
            flags,
            client: self.client,
            ep: self.ep,
            rows: first,
            pitch,
            rank: team.own(),
            size: members.size(),
        };
        let handle = Box::into_raw(Box::new(object));
        let barrier = Some(Barrier::new(Way::Team(TeamBarrier::new(job_teams.clone(), team.clone()))));
        let meeting = Meeting::default();
        self.teams.with(|teams| {
            teams.add(|number| Known { number, handle, team, meeting, barrier, rows, scratch })
        });
        handle
    }
}

/// `GEX_FLAG_TM_SCRATCH_SIZE_MIN` and `_RECOMMENDED`: how much scratch is wanted, is asked.
const ASKS: Flags = 1 << 0 | 1 << 1;
/// What is answered: none is used, and programs take 0 for an error.
const SCRATCH: usize = 64;

/// `gex_TM_Split`. Without a place for its handle this rank gets no team.
///
/// # Safety
/// capi.1.
pub unsafe fn split<M: FaceMode>(
    place: *mut *mut Team,
    parent: *const Team,
    (color, key): (c_int, c_int),
    (scratch, len): (*mut c_void, usize),
    flags: Flags,
) -> usize {
    const CALL: &str = "gex_TM_Split";
    let face = M::slot().of(CALL);
    let parent = face.team(CALL, parent);
    if flags & ASKS != 0 {
        return SCRATCH;
    }
    may_talk::<M>(CALL);
    let (teams, _) = face.job.teams();
    let color = (!place.is_null()).then_some(color.cast_unsigned());
    let team = went(CALL, teams.split(face.engine(), &parent.team, color, key.into()));
    if let Some(team) = team {
        let handle = face.keep(team, Memvec { at: scratch, len }, flags);
        // SAFETY: capi.1: C has room for the handle there.
        unsafe { give(place, handle) };
    }
    0
}

/// What `gex_TM_Create` is given of members, and of memory for them.
#[derive(Clone, Copy, Debug)]
pub struct New {
    /// The members.
    pub members: *const Location,
    /// How many there are.
    pub count: usize,
    /// Memory for the team: one address, or each member's.
    pub scratch: *const *mut c_void,
    /// Bytes there.
    pub len: usize,
}

/// `gex_TM_Create`: of several teams at once, each member of which passes its own.
///
/// # Safety
/// capi.1.
pub unsafe fn create<M: FaceMode>(
    place: *mut *mut Team,
    count: usize,
    parent: *const Team,
    new: New,
    flags: Flags,
) -> usize {
    const CALL: &str = "gex_TM_Create";
    let face = M::slot().of(CALL);
    let parent = face.team(CALL, parent);
    if count > 1 {
        fail(CALL, format!("{count} new teams: a rank makes one at a time, or none"));
    }
    if flags & ASKS != 0 {
        return SCRATCH;
    }
    may_talk::<M>(CALL);
    if count == 1 && (place.is_null() || new.members.is_null() || new.count == 0) {
        fail(CALL, "a team without a member, or no place for its handle");
    }
    let number = if count == 1 { new.count } else { 0 };
    let member = |at: usize| {
        // SAFETY: capi.1: C has as many members there, and `at` is less.
        let Location { rank, index } = unsafe { new.members.add(at).read() };
        if index != 0 {
            fail(
                CALL,
                format!("member {at} is endpoint {index} of rank {rank}: teams are of first endpoints"),
            );
        }
        match flags & RANK_IS_JOBRANK {
            0 => rank,
            _ => parent.members().member_of(rank).unwrap_or_else(|| {
                fail(CALL, format!("member {at} is rank {rank} of the job, which is none of the old team's"))
            }),
        }
    };
    let members: Vec<u32> = (0..number).map(member).collect();
    let (teams, _) = face.job.teams();
    let team = went(CALL, teams.create_apart(face.engine(), &parent.team, &members));
    if number > 0 && team.is_none() {
        fail(CALL, "this rank is none of the members that it passed");
    }
    if let Some(team) = team {
        let scratch = Memvec::of_member(CALL, new, flags, &team);
        let handle = face.keep(team, scratch, flags);
        // SAFETY: capi.1: C has room for the handle there: `place` is not null, as was seen above.
        unsafe { give(place, handle) };
    }
    0
}

/// `gex_TM_Destroy`: 1 and the program's scratch, if it has given some. Its members meet before, unless they say that they have.
///
/// # Safety
/// capi.1.
pub unsafe fn destroy<M: FaceMode>(team: *const Team, place: *mut Memvec, flags: Flags) -> c_int {
    const CALL: &str = "gex_TM_Destroy";
    let face = M::slot().of(CALL);
    if team == face.team {
        fail(CALL, "the team of all ranks stays as long as the job");
    }
    let known = face.team(CALL, team);
    may_talk::<M>(CALL);
    if flags & GLOBALLY_QUIESCED == 0 {
        event::wait::<M>(barrier::begin::<M>(CALL, team));
    }
    let (asked, over) = known.meeting.state.with(|state| (state.asked, state.over));
    if asked != over {
        fail(CALL, format!("barrier {asked} of the team is under way: its event was not waited for"));
    }
    drop(known);
    // SAFETY: capi.2: the pairs of the first endpoint stay, and the row of those that there cannot be never changes.
    let closed = unsafe { (*face.pairs.wrapping_add(PAIRS)).rows };
    let Some(known) = face.teams.with(|teams| teams.remove(team, closed)) else {
        fail(CALL, "another thread destroys the team, too");
    };
    match known.scratch {
        Memvec { len: 0, .. } => 0,
        scratch => {
            // SAFETY: capi.1: `place` is null or C's room for an address and a length.
            unsafe { give(place, scratch) };
            1
        }
    }
}

impl Memvec {
    /// What this member of a new team has.
    fn of_member(call: &str, new: New, flags: Flags, team: &team::Team) -> Self {
        /// `GEX_FLAG_TM_GLOBAL_SCRATCH`: there is an address for each member, and not for this one alone.
        const GLOBAL: Flags = 1 << 2;
        if new.len == 0 {
            return Self::NONE;
        }
        if new.scratch.is_null() {
            fail(call, format!("{} bytes of scratch at no address", new.len));
        }
        let at = if flags & GLOBAL != 0 { team.own() as usize } else { 0 };
        // SAFETY: capi.1: C has the address for each member there, or one.
        Self { at: unsafe { new.scratch.add(at).read() }, len: new.len }
    }
}
