//! The job: how it begins, its segment, how it ends.
//!
//! # Invariants
//! As in the crate.

use crate::face::{Face, FaceMode, fail, went};
use crate::layout::{
    Client, ERR_BAD_ARG, ERR_RESOURCE, Endpoint, Flags, OK, Objects, RankInfo, Segment, Team,
};
use gasworks::{Config, Job, Table};
use gasworks_os::memfd::page_size;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// What `gex_Client_Init` gives back.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// `gex_Client_t *`.
    pub client: *mut *mut Client,
    /// `gex_EP_t *`.
    pub ep: *mut *mut Endpoint,
    /// `gex_TM_t *`.
    pub tm: *mut *mut Team,
}

/// Stores what C asked for.
///
/// # Safety
/// C1: there is room, or none is wanted.
pub(crate) unsafe fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: C1.
        unsafe { place.write(value) };
    }
}

/// `gex_Client_Init`, of a program that was compiled as it says, and whose segment is at most so large, if it says that (not 0). What it
/// makes is in `objects`, too.
///
/// # Safety
/// C1, C3.
pub unsafe fn init<M: FaceMode>(
    objects: *mut Objects,
    places: Places,
    name: *const c_char,
    flags: Flags,
    compiled: *const c_char,
    most: u64,
) -> c_int {
    const CALL: &str = "gex_Client_Init";
    // SAFETY: C1: it is the header's.
    let compiled = unsafe { CStr::from_ptr(compiled) }.to_string_lossy();
    let own = format!("THREADMODEL={},", M::MODEL);
    if !compiled.contains(&own) {
        fail(CALL, format!("the program was compiled as {compiled}, and its library is of {own}"));
    }
    if M::slot().get().is_some() {
        fail(CALL, "the job has begun: there is one client, once");
    }
    // SAFETY: C1.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    let config = went(CALL, Config::from_env()).segment_later();
    let config = if most > 0 { config.segment_max(most) } else { config };
    let job = went(CALL, Job::<M>::open(config, Table::new()));
    let peers = job.parts().0.peers();
    let (near, rank, size) = (peers.near(), job.rank(), job.ranks());
    // All of it stays until the process ends (C2).
    let leak = |client: Client| Box::into_raw(Box::new(client));
    let client = leak(Client { cdata: std::ptr::null(), name: CString::from(name).into_raw(), flags });
    let ep = Endpoint { cdata: std::ptr::null(), client, segment: null_mut(), flags: 0, index: 0 };
    let ep = Box::into_raw(Box::new(ep));
    let team = Team { cdata: std::ptr::null(), client, ep, near, rank, size, flags: 0 };
    let team = Box::into_raw(Box::new(team));
    let segment = Segment { cdata: std::ptr::null(), client, address: null_mut(), size: 0, flags: 0 };
    let segment = Box::into_raw(Box::new(segment));
    let entries = Box::new(std::array::from_fn(|_| Default::default()));
    let neighbours = (0..size).map(|rank| RankInfo { rank }).collect();
    M::slot().set(Face { job, ep, team, segment, entries, meeting: Default::default(), neighbours });
    // SAFETY: C1.
    unsafe {
        objects.write(Objects { client, ep, tm: team });
        give(places.client, client);
        give(places.ep, ep);
        give(places.tm, team);
    }
    OK
}

/// `gex_Segment_Attach`; `hook` is told of it.
///
/// # Safety
/// C1.
pub unsafe fn attach<M: FaceMode>(
    place: *mut *mut Segment,
    team: *const Team,
    size: usize,
    hook: Option<unsafe extern "C" fn(*mut c_void, usize)>,
) -> c_int {
    const CALL: &str = "gex_Segment_Attach";
    let face = M::slot().of(CALL);
    if team != face.team {
        fail(CALL, format!("{team:p} is not the team of all ranks"));
    }
    if size == 0 || !size.is_multiple_of(page_size()) {
        crate::query::say(format!("{CALL}: {size} bytes: wanted a multiple of {}, and not 0", page_size()));
        return ERR_BAD_ARG;
    }
    // SAFETY: C2: it is there; and C attaches once, by one thread.
    let (ep, segment) = unsafe { (&mut *face.ep, &mut *face.segment) };
    if !ep.segment.is_null() {
        crate::query::say(format!("{CALL}: there is a segment: one is attached, once"));
        return ERR_RESOURCE;
    }
    let engine = face.engine();
    went(CALL, face.job.grow(size as u64));
    (segment.address, segment.size) = (face.own(0).cast(), size);
    ep.segment = segment;
    // SAFETY: C1.
    unsafe { give(place, ep.segment) };
    went(CALL, face.agent(CALL).barrier());
    // How long the others' segments are now, the inline functions see in the table.
    (0..engine.ranks()).for_each(|rank| _ = engine.peers().len_of(rank));
    if let Some(hook) = hook {
        // SAFETY: C1: it is C's.
        unsafe { hook(segment.address, size) };
    }
    went(CALL, face.agent(CALL).barrier());
    OK
}

/// `gasnet_exit`.
pub fn exit(code: c_int) -> ! {
    gasworks::exit(code)
}
