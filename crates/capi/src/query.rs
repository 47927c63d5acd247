//! What C may ask of a job, and how it makes progress.
//!
//! # Invariants
//! As in the crate.

use crate::codes::refused;
use crate::face::{FaceMode, fail, went};
use crate::job::give;
use crate::layout::*;
use gasworks::WaitMode;
use gasworks_core::engine::Waiting;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// `gex_System_QueryMaxThreads`: where there may be several there may be any number.
pub fn max_threads<M: FaceMode>() -> u64 {
    const CALL: &str = "gex_System_QueryMaxThreads";
    if M::MODEL == "SEQ" {
        return 1;
    }
    went(CALL, gasworks::settings::max_threads()).unwrap_or(u32::MAX.into())
}

/// `gex_System_QueryHiddenAMConcurrencyLevel`: 1 where a thread of the library may run handlers.
pub fn hidden_threads<M: FaceMode>() -> c_int {
    M::PARALLEL.into()
}

/// `gex_System_QueryProgressThreads`: a client that runs the library's threads itself asks for them, and there are none.
///
/// # Safety
/// capi.1.
pub unsafe fn progress_threads(
    client: *const Client,
    count: *mut c_uint,
    info: *mut *const c_void,
    flags: Flags,
) -> c_int {
    const CALL: &str = "gex_System_QueryProgressThreads";
    if client.is_null() || count.is_null() || info.is_null() || flags != 0 {
        return refused(
            CALL,
            "there is no client, no place for an answer, or a flag: it has none",
            ERR_BAD_ARG,
        );
    }
    // SAFETY: capi.1: `client` is not null, so it is the client that C was given, which stays (capi.2).
    if unsafe { (*client).flags } & DEFER_THREADS == 0 {
        return refused(CALL, "the client has not said GEX_FLAG_DEFER_THREADS", ERR_RESOURCE);
    }
    // SAFETY: capi.1: neither `count` nor `info` is null, and C has room for an answer at each.
    unsafe {
        count.write(0);
        info.write(std::ptr::null());
    }
    OK
}

thread_local! {
    /// What this thread keeps while it waits for what C looks at.
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// `gasnet_AMPoll`.
#[inline(always)]
pub fn poll<M: FaceMode>() -> c_int {
    match M::slot().get() {
        Some(face) if face.engine().poll_idle() => OK,
        _ => poll_more::<M>(),
    }
}

/// Apart, so that what is above needs no room on the stack.
#[inline(never)]
fn poll_more<M: FaceMode>() -> c_int {
    const CALL: &str = "gasnet_AMPoll";
    went(CALL, M::slot().of(CALL).engine().poll());
    OK
}

/// Before `GASNET_BLOCKUNTIL` waits.
pub fn wait_begin<M: FaceMode>() {
    let engine = M::slot().of("GASNET_BLOCKUNTIL").engine();
    WAITING.with(|waiting| *waiting.borrow_mut() = Some(engine.sleeper()));
}

/// A turn of it.
pub fn wait_turn<M: FaceMode>() {
    const CALL: &str = "GASNET_BLOCKUNTIL";
    let engine = M::slot().of(CALL).engine();
    let mut waiting = WAITING.with(|waiting| waiting.take()).unwrap_or_else(|| engine.sleeper());
    went(CALL, engine.turn(&mut waiting));
    WAITING.with(|place| *place.borrow_mut() = Some(waiting));
}

/// `gasnet_set_waitmode`.
pub fn set_wait_mode<M: FaceMode>(mode: c_int) -> c_int {
    let mode = match mode {
        0 => WaitMode::Spin,
        1 => WaitMode::Block,
        2 => WaitMode::SpinBlock,
        _ => {
            return refused("gasnet_set_waitmode", format!("{mode} is no way of waiting"), ERR_BAD_ARG);
        }
    };
    M::slot().of("gasnet_set_waitmode").job.set_wait_mode(mode);
    OK
}

/// The largest payload of a message to a rank, or to any, that programs are told of, for any options and number of arguments: they keep it in
/// an `int`.
pub fn max_payload<M: FaceMode>(call: &str, is_long: bool, to: Option<u32>) -> usize {
    let engine = M::slot().of(call).engine();
    match to {
        // What is longer than a segment is refused for that.
        _ if is_long => MOST_LONG,
        None => engine.max_medium(),
        Some(to) => went(call, engine.limits(to)).max_medium,
    }
}

/// The largest payload of a Long.
const MOST_LONG: usize = c_int::MAX as usize;

/// `gex_AM_LUB*`: what any message can carry in a program that was compiled as it says. It is the same before a job and in it.
///
/// # Safety
/// capi.1.
pub unsafe fn least_upper_bound(is_long: bool, compiled: *const c_char) -> usize {
    const CALL: &str = "gex_AM_LUB*";
    // SAFETY: capi.1: `compiled` is a literal: the configuration that the program's header has.
    let medium = unsafe { crate::job::max_medium_of(CALL, compiled) };
    if is_long { MOST_LONG } else { medium }
}

/// The same, towards a rank of a team, or any (`GEX_RANK_INVALID`), and with so many arguments.
pub fn max_for<M: FaceMode>(
    call: &str,
    is_long: bool,
    (team, rank): (*const Team, u32),
    local: *const Event,
    count: c_uint,
) -> usize {
    let (face, to) = (M::slot().of(call), (rank != u32::MAX).then_some(rank));
    // Of everyone no rank is looked at but by who asks.
    let is_plain = team == face.team && !face.is_debug;
    let to = if is_plain { to } else { to.map(|rank| face.rank(call, team, rank)) };
    if face.is_debug {
        face.rank(call, team, if rank == u32::MAX { 0 } else { rank });
        if count > 16 {
            fail(call, format!("{count} arguments: 16 are the most"));
        }
        if When::of(local.cast_mut()) == Some(When::Defer) {
            fail(call, "GEX_EVENT_DEFER is none of an active message's options");
        }
    }
    max_payload::<M>(call, is_long, to)
}

/// `gasnet_getMaxLocalSegmentSize`, and `Global` if it is to be all ranks'.
pub fn max_segment<M: FaceMode>(global: bool) -> usize {
    let job = &M::slot().of("gasnet_getMax*SegmentSize").job;
    let max = if global { job.max_global_segment() } else { job.max_local_segment() };
    usize::try_from(max).unwrap_or(usize::MAX)
}

/// Where a rank's segment is, here and there, and its length; `None`: it has none.
fn bound<M: FaceMode>(call: &str, team: *const Team, rank: u32) -> Option<(*mut c_void, *mut c_void, usize)> {
    let face = M::slot().of(call);
    let peers = face.engine().peers();
    let address = |base: u64| std::ptr::without_provenance_mut(base as usize);
    match face.rank_of_other(call, team, rank) {
        (rank, 0) => {
            // SAFETY: capi.2: the endpoint stays. Only `attach` writes its segment, and C does not call that while it asks for segments.
            if unsafe { (*face.ep).segment }.is_null() {
                return None;
            }
            let local = if peers.reaches(rank) { peers.mapped(rank).as_ptr().cast() } else { null_mut() };
            Some((address(peers.base(rank)?), local, peers.len_of(rank)? as usize))
        }
        (rank, number) => {
            let id = face.region_of(number, rank)?;
            let owner = address(peers.address(rank, id.place(0)?));
            // Memory that a rank gave no other has mapped.
            let local = if rank == face.job.rank() { owner } else { null_mut() };
            Some((owner, local, peers.len_in(id, rank)? as usize))
        }
    }
}

/// `gex_EP_QueryBoundSegmentNB`.
///
/// # Safety
/// capi.1.
pub unsafe fn query_bound<M: FaceMode>(
    team: *const Team,
    rank: u32,
    owner: *mut *mut c_void,
    local: *mut *mut c_void,
    size: *mut usize,
) -> Event {
    let found = bound::<M>("gex_EP_QueryBoundSegmentNB", team, rank).unwrap_or((null_mut(), null_mut(), 0));
    // SAFETY: capi.1: each of `owner`, `local` and `size` is null or C's room for such a value.
    unsafe {
        give(owner, found.0);
        give(local, found.1);
        give(size, found.2);
    }
    0
}

/// `gex_Segment_QueryBound`.
///
/// # Safety
/// capi.1.
pub unsafe fn segment_query_bound<M: FaceMode>(
    team: *const Team,
    rank: u32,
    owner: *mut *mut c_void,
    local: *mut *mut c_void,
    size: *mut usize,
) -> c_int {
    let Some(found) = bound::<M>("gex_Segment_QueryBound", team, rank) else { return 1 };
    // SAFETY: capi.1: C has room for the two addresses and the length, or passes null for what it does not want.
    unsafe {
        give(owner, found.0);
        give(local, found.1);
        give(size, found.2);
    }
    OK
}

/// `gex_TM_TranslateRankToJobrank`.
pub fn to_job_rank<M: FaceMode>(team: *const Team, rank: u32) -> u32 {
    const CALL: &str = "gex_TM_TranslateRankToJobrank";
    M::slot().of(CALL).rank_of_other(CALL, team, rank).0
}

/// `gex_TM_TranslateJobrankToRank`.
pub fn of_job_rank<M: FaceMode>(team: *const Team, rank: u32) -> u32 {
    const CALL: &str = "gex_TM_TranslateJobrankToRank";
    let face = M::slot().of(CALL);
    let member = match face.find(team) {
        Some(known) => known.members().member_of(rank),
        None if face.pair(team).is_some() => (rank < face.job.ranks()).then_some(rank),
        None => face.no_team(CALL, team),
    };
    member.unwrap_or(u32::MAX)
}

/// `gex_TM_TranslateRankToEP`.
pub fn to_endpoint<M: FaceMode>(team: *const Team, rank: u32) -> Location {
    const CALL: &str = "gex_TM_TranslateRankToEP";
    let (rank, number) = M::slot().of(CALL).rank_of_other(CALL, team, rank);
    Location { rank, index: number as u16 }
}

/// `gex_System_QueryNbrhdInfo`, or with `host` `gex_System_QueryHostInfo`.
///
/// # Safety
/// capi.1.
pub unsafe fn neighbours<M: FaceMode>(info: *mut *const RankInfo, count: *mut u32, me: *mut u32, host: bool) {
    let face = M::slot().of(if host { "gex_System_QueryHostInfo" } else { "gex_System_QueryNbrhdInfo" });
    let ranks = if host { &face.host } else { &face.neighbours };
    let own = ranks.iter().position(|info| info.rank == face.job.rank());
    // SAFETY: capi.1: each of `info`, `count` and `me` is null or C's room for such a value; the list is the face's, and stays (capi.2).
    unsafe {
        give(info, ranks.as_ptr());
        give(count, ranks.len() as u32);
        give(me, own.map_or(0, |own| own as u32));
    }
}

/// `gex_System_QueryMyPosition`.
///
/// # Safety
/// capi.1.
pub unsafe fn position<M: FaceMode>(places: [*mut u32; 4]) {
    let face = M::slot().of("gex_System_QueryMyPosition");
    let ((hosts, neighbourhoods), me) = (face.places.counts(), face.job.rank());
    let own = |number: Option<u32>| number.unwrap_or(0);
    let (near, host) = (own(face.places.neighbourhood(me)), own(face.places.host(me)));
    for (place, value) in places.into_iter().zip([neighbourhoods, near, hosts, host]) {
        // SAFETY: capi.1: each of the four is null or C's room for a number.
        unsafe { give(place, value) };
    }
}

/// `gasnet_getenv`: what every rank has of it is its launcher's.
///
/// # Safety
/// capi.1.
pub unsafe fn get_env(name: *const c_char) -> *mut c_char {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *mut c_char;
    }
    if name.is_null() {
        fail("gasnet_getenv", "the name is null");
    }
    // SAFETY: capi.1: `name` is not null here and ends with a zero; C does not change the environment meanwhile, as for its own `getenv`.
    unsafe { getenv(name) }
}
