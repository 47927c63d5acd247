//! What GASNet-1 has beyond what its header makes of GASNet-EX.
//!
//! # Invariants
//! As in the crate, and:
//! - legacy.1: a value that is fetched lies in a box, whose handle is given back once: until then the transfer may write it.

use crate::codes::refused;
use crate::face::{Face, FaceMode, fail, went};
use crate::handlers::{ANYTHING, register};
use crate::layout::{ERR_BAD_ARG, ERR_NOT_INIT, Entry, Event, OK};
use gasworks_extended::event::{self, Event as Started};
use gasworks_extended::rma::{self, Local, Options};
use gasworks_os::memfd::page_size;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// `gasnet_handlerentry_t`.
#[repr(C)]
pub struct LegacyEntry {
    index: u8,
    function: Option<unsafe extern "C" fn()>,
}

/// `gasnet_seginfo_t`.
#[repr(C)]
pub struct SegmentInfo {
    address: *mut c_void,
    size: usize,
}

/// `gasnet_nodeinfo_t`.
#[repr(C)]
pub struct NodeInfo {
    host: u32,
    supernode: u32,
    /// From where a segment is there to where it is mapped here.
    offset: usize,
}

/// `gasnet_attach`; `hook` is told of the segment.
///
/// # Safety
/// capi.1, capi.5.
pub unsafe fn attach<M: FaceMode>(
    table: *mut LegacyEntry,
    count: c_int,
    size: usize,
    hook: Option<unsafe extern "C" fn(*mut c_void, usize)>,
) -> c_int {
    let Some(face) = M::slot().get() else { return ERR_NOT_INIT };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > 256 || (table.is_null() && count > 0) {
        return refused("gasnet_attach", format!("there is no table of {count} handlers"), ERR_BAD_ARG);
    }
    let entry = |at: usize| {
        // SAFETY: capi.1: `table` has `count` entries, of which this is one: `at` is below `count`. Nobody writes them during the call.
        let LegacyEntry { index, function } = unsafe { &*table.add(at) };
        let (cdata, name) = (std::ptr::null(), std::ptr::null());
        Entry { index: *index, function: *function, flags: ANYTHING, nargs: 0, cdata, name }
    };
    let mut entries: Vec<Entry> = (0..count).map(entry).collect();
    // SAFETY: capi.1: `entries` is this function's own vector of `count` entries, without names. capi.5: their functions are C's handlers.
    let entered = unsafe { register::<M>(face.ep, entries.as_mut_ptr(), count) };
    if entered != OK {
        return entered;
    }
    for (at, entry) in entries.iter().enumerate() {
        // SAFETY: capi.1: `at` is below `count`, so this entry is one of C's table, which C gives to have its index written.
        unsafe { (*table.add(at)).index = entry.index };
    }
    // SAFETY: capi.1: the place is null, which asks for nothing, and `hook` a function that C has set for its segment.
    unsafe { crate::job::attach::<M>(null_mut(), face.team, size.max(page_size()), hook) }
}

/// Fills so many places, as far as there are ranks.
///
/// # Safety
/// capi.1.
unsafe fn fill<M: FaceMode, T>(
    call: &str,
    face: &Face<M>,
    (places, count): (*mut T, c_int),
    of: impl Fn(u32) -> T,
) -> c_int {
    let wanted = u32::try_from(count).ok().filter(|count| *count > 0 && !places.is_null());
    let Some(count) = wanted else {
        return refused(call, format!("{count} places at {places:p}"), ERR_BAD_ARG);
    };
    for rank in 0..count.min(face.job.ranks()) {
        // SAFETY: capi.1: `places` is not null and has room for `count` values; `rank` is below it.
        unsafe { places.add(rank as usize).write(of(rank)) };
    }
    OK
}

/// `gasnet_getSegmentInfo`.
///
/// # Safety
/// capi.1.
pub unsafe fn segments<M: FaceMode>(places: *mut SegmentInfo, count: c_int) -> c_int {
    let Some(face) = M::slot().get() else { return ERR_NOT_INIT };
    // SAFETY: capi.2: the endpoint stays. Only `attach` writes its segment, and C does not call that while it asks for segments.
    if unsafe { (*face.ep).segment }.is_null() {
        return ERR_NOT_INIT;
    }
    let peers = face.engine().peers();
    let of = |rank| {
        let base = peers.base(rank).unwrap_or(0) as usize;
        SegmentInfo {
            address: std::ptr::without_provenance_mut(base),
            size: peers.len_of(rank).unwrap_or(0) as usize,
        }
    };
    // SAFETY: capi.1: C has room for `count` segments at `places`, if that is not null.
    unsafe { fill("gasnet_getSegmentInfo", face, (places, count), of) }
}

/// `gasnet_getNodeInfo`.
///
/// # Safety
/// capi.1.
pub unsafe fn nodes<M: FaceMode>(places: *mut NodeInfo, count: c_int) -> c_int {
    let Some(face) = M::slot().get() else { return ERR_NOT_INIT };
    let peers = face.engine().peers();
    let of = |rank| {
        let offset = match peers.base(rank) {
            Some(base) if peers.reaches(rank) => {
                peers.mapped(rank).as_ptr().addr().wrapping_sub(base as usize)
            }
            _ => 0,
        };
        let number = |number: Option<u32>| number.unwrap_or(0);
        let (host, supernode) = (number(face.places.host(rank)), number(face.places.neighbourhood(rank)));
        NodeInfo { host, supernode, offset }
    };
    face.show_mapped();
    // SAFETY: capi.1: C has room for `count` nodes at `places`, if that is not null.
    unsafe { fill("gasnet_getNodeInfo", face, (places, count), of) }
}

/// Bytes that are set at a time where a segment is mapped.
const PIECE: usize = 4096;

/// `gasnet_memset_nb`, or with `implicit` `gasnet_memset_nbi`.
pub fn set<M: FaceMode>(rank: u32, dest: *const u8, value: c_int, len: usize, implicit: bool) -> Event {
    const CALL: &str = "gasnet_memset";
    let face = M::slot().of(CALL);
    let (rank, engine) = (face.rank(CALL, face.team, rank), face.engine());
    let (offset, value) = (face.offset(rank, dest), value as u8);
    let at = |bytes: usize| engine.everyone().at(rank, offset + bytes as u64);
    if engine.peers().reaches(rank) {
        let piece = [value; PIECE];
        for done in (0..len).step_by(PIECE) {
            let count = PIECE.min(len - done);
            went(CALL, rma::put(engine, at(done), &piece[..count]));
        }
        return 0;
    }
    let bytes = vec![value; len];
    let (source, kept) = (bytes.as_ptr(), Some(M::keep(bytes)));
    let options = Options { local: Local::Defer, immediate: false };
    if implicit {
        // SAFETY: `source` leads to the bytes of the vector in `kept`, which neither move nor change; the operation keeps it to its end.
        let started =
            face.implicit(|set| unsafe { rma::put_nbi(engine, set, at(0), source, len, kept, options) });
        went(CALL, started);
        return 0;
    }
    // SAFETY: `kept` owns the bytes at `source`, and so does the operation until it is done, or this function if it is over at once.
    let started = unsafe { rma::put_nb(engine, at(0), source, len, kept, options) };
    went(CALL, started).0.into_bits() as Event
}

/// A value that is being fetched.
pub struct Fetched {
    value: u64,
    event: Started,
}

/// `gasnet_get_nb_val`.
pub fn fetch<M: FaceMode>(rank: u32, source: *const u8, len: usize) -> *mut Fetched {
    const CALL: &str = "gasnet_get_nb_val";
    let face = M::slot().of(CALL);
    if !(1..=size_of::<u64>()).contains(&len) {
        fail(CALL, format!("a value of {len} bytes: 1 to 8 are one"));
    }
    let (rank, engine) = (face.rank(CALL, face.team, rank), face.engine());
    let place = engine.everyone().at(rank, face.offset(rank, source));
    let fetched = Box::into_raw(Box::new(Fetched { value: 0, event: Started::DONE }));
    // SAFETY: legacy.1: `value` lies in the box made above, which stays to the transfer's end and has room for `len` bytes (8 at most).
    // The low-order bytes of a little-endian machine come first.
    let started = unsafe { rma::get_nb(engine, place, (&raw mut (*fetched).value).cast(), len, None, false) };
    let (event, _) = went(CALL, started);
    // SAFETY: legacy.1: the box is still there, as C has no handle of it yet; the transfer writes `value` alone.
    unsafe { (&raw mut (*fetched).event).write(event) };
    fetched
}

/// `gasnet_wait_syncnb_valget`.
///
/// # Safety
/// legacy.1.
pub unsafe fn fetched<M: FaceMode>(handle: *mut Fetched) -> u64 {
    const CALL: &str = "gasnet_wait_syncnb_valget";
    let face = M::slot().of(CALL);
    if handle.is_null() {
        fail(CALL, "there is no such handle");
    }
    // SAFETY: legacy.1: `handle` is not null, and its box was not given back; the transfer, which may not be over, writes `value` alone.
    let event = unsafe { (&raw const (*handle).event).read() };
    went(CALL, event::wait(face.engine(), &event));
    // SAFETY: legacy.1: the transfer is over, and C gives `handle` back this once: nobody has the box any more.
    unsafe { Box::from_raw(handle) }.value
}
