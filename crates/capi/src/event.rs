//! Events: tested, waited for, in arrays and in sets. A barrier's event is a number of its own kind.
//!
//! # Invariants
//! As in the crate.

use crate::barrier;
use crate::face::{Face, FaceMode, fail, went};
use crate::layout::{ERR_NOT_READY, Event, Flags, NO_OP, OK};
use crate::talk::may_talk;
use gasworks_core::Categories;
use gasworks_extended::event;
use std::ffi::{c_int, c_uint};

/// Whether an event is done; it is no more then.
fn is_done<M: FaceMode>(face: &Face<M>, call: &str, bits: Event) -> bool {
    match bits {
        0 => true,
        NO_OP => fail(call, "GEX_EVENT_NO_OP is no event: what it stands for was not started"),
        bits if barrier::is_one(bits) => barrier::is_done(face, call, bits),
        bits => {
            let event = went(call, event::Event::from_bits(bits as u64));
            went(call, event::test(face.engine(), &event)).is_some()
        }
    }
}

/// In a debug build, whether this thread may ask for these: what was never started is no communication. Elsewhere a test does no harm, and a wait
/// is told as it polls.
fn may_ask<M: FaceMode>(face: &Face<M>, call: &str, events: &[Event]) {
    if face.is_debug && events.iter().any(|bits| *bits != 0) {
        may_talk::<M>(call);
    }
}

/// Polls until something is so.
fn until<M: FaceMode>(face: &Face<M>, call: &str, mut is_so: impl FnMut() -> bool) {
    went(call, face.engine().wait_until(&mut is_so));
}

/// `gex_Event_Test`.
pub fn test<M: FaceMode>(event: Event) -> c_int {
    const CALL: &str = "gex_Event_Test";
    let face = M::slot().of(CALL);
    may_ask(face, CALL, &[event]);
    if is_done(face, CALL, event) { OK } else { ERR_NOT_READY }
}

/// `gex_Event_Wait`.
pub fn wait<M: FaceMode>(event: Event) {
    const CALL: &str = "gex_Event_Wait";
    let face = M::slot().of(CALL);
    may_ask(face, CALL, &[event]);
    until(face, CALL, || is_done(face, CALL, event));
}

/// Overwrites those that are done by none; whether that is all, or one of them if that is asked for.
fn sweep<M: FaceMode>(face: &Face<M>, call: &str, events: &mut [Event], all: bool) -> bool {
    let of_operations = |bits: Event| bits > NO_OP && !barrier::is_one(bits);
    let mut found = false;
    for event in events.iter_mut().filter(|bits| !of_operations(**bits)) {
        if *event != 0 && is_done(face, call, *event) {
            (*event, found) = (0, true);
        }
    }
    // Operations go together: a leaf is looked at before its root.
    let places: Vec<usize> = (0..events.len()).filter(|at| of_operations(events[*at])).collect();
    let operations = places.iter().map(|at| went(call, event::Event::from_bits(events[*at] as u64)));
    let mut operations: Vec<event::Event> = operations.collect();
    went(call, event::test_all(face.engine(), &mut operations));
    for (at, operation) in places.into_iter().zip(operations) {
        let bits = operation.into_bits() as Event;
        found |= bits == 0;
        events[at] = bits;
    }
    let is_empty = events.iter().all(|bits| *bits == 0);
    is_empty || found && !all
}

/// # Safety
/// capi.1.
unsafe fn array<'a>(call: &str, events: *mut Event, count: usize) -> &'a mut [Event] {
    if count == 0 {
        return &mut [];
    }
    if events.is_null() || !events.is_aligned() {
        fail(call, format!("{count} events at {events:p}, where none can be"));
    }
    // SAFETY: capi.1: `events` is aligned and not null, and the caller has `count` events there, which nobody else uses meanwhile.
    unsafe { std::slice::from_raw_parts_mut(events, count) }
}

/// `gex_Event_TestSome` and `gex_Event_TestAll`.
///
/// # Safety
/// capi.1.
pub unsafe fn test_array<M: FaceMode>(events: *mut Event, count: usize, all: c_int) -> c_int {
    let call = if all != 0 { "gex_Event_TestAll" } else { "gex_Event_TestSome" };
    // SAFETY: capi.1: C passes `count` events at `events`, which only this call uses until it returns.
    let events = unsafe { array(call, events, count) };
    let face = M::slot().of(call);
    may_ask(face, call, events);
    if sweep(face, call, events, all != 0) { OK } else { ERR_NOT_READY }
}

/// `gex_Event_WaitSome` and `gex_Event_WaitAll`.
///
/// # Safety
/// capi.1.
pub unsafe fn wait_array<M: FaceMode>(events: *mut Event, count: usize, all: c_int) {
    let call = if all != 0 { "gex_Event_WaitAll" } else { "gex_Event_WaitSome" };
    // SAFETY: capi.1: C passes `count` events at `events`, which no handler and no other thread uses while this call waits.
    let events = unsafe { array(call, events, count) };
    let face = M::slot().of(call);
    may_ask(face, call, events);
    until(face, call, || sweep(face, call, events, all != 0));
}

/// What a mask of `GEX_EC_*` names.
fn categories(mask: c_uint) -> Categories {
    let of = [
        (1 << 0, Categories::PUT),
        (1 << 1, Categories::LOCAL),
        (1 << 2, Categories::GET),
        (1 << 3, Categories::UPDATE),
    ];
    of.into_iter().filter(|(bit, _)| mask & bit != 0).fold(Categories::empty(), |all, (_, one)| all | one)
}

/// `gex_Event_QueryLeaf`.
pub fn leaf<M: FaceMode>(root: Event, mask: c_uint) -> Event {
    const CALL: &str = "gex_Event_QueryLeaf";
    if root == NO_OP && crate::place::is_known() {
        fail(CALL, "GEX_EVENT_NO_OP is no event: what it stands for was not started");
    }
    if root <= NO_OP || barrier::is_one(root) {
        return 0;
    }
    let event = went(CALL, event::Event::from_bits(root as u64));
    event.leaf(categories(mask)).into_bits() as Event
}

/// `gex_NBI_Test`.
pub fn nbi_test<M: FaceMode>(mask: c_uint, _flags: Flags) -> c_int {
    const CALL: &str = "gex_NBI_Test";
    let face = M::slot().of(CALL);
    let done = face.implicit(|set| set.test(face.engine(), categories(mask)));
    if went(CALL, done) { OK } else { ERR_NOT_READY }
}

/// `gex_NBI_Wait`.
pub fn nbi_wait<M: FaceMode>(mask: c_uint, _flags: Flags) {
    const CALL: &str = "gex_NBI_Wait";
    let face = M::slot().of(CALL);
    went(CALL, face.implicit(|set| set.wait(face.engine(), categories(mask))));
}

/// `gex_NBI_BeginAccessRegion`.
pub fn begin_region<M: FaceMode>(_flags: Flags) {
    const CALL: &str = "gex_NBI_BeginAccessRegion";
    went(CALL, M::slot().of(CALL).implicit(|set| set.begin_region()));
}

/// `gex_NBI_EndAccessRegion`.
pub fn end_region<M: FaceMode>(_flags: Flags) -> Event {
    const CALL: &str = "gex_NBI_EndAccessRegion";
    went(CALL, M::slot().of(CALL).implicit(|set| set.end_region())).into_bits() as Event
}
