//! Puts and gets that are more than a copy, and copies that the header does not do: by a pair, or where a segment has grown.
//!
//! # Invariants
//! As in the crate.

use crate::check::when;
use crate::face::{Face, FaceMode, by_address, fail};
use crate::layout::{Event, Flags, IMMEDIATE, Local, NO_OP, OK, Team, When};
use gasworks_core::{Categories, Rank, RemoteAddr};
use gasworks_extended::rma::{self, Local as Freed, Options};
use std::ffi::{c_int, c_void};
use std::fmt::Display;

/// What a transfer names, as C says it.
#[derive(Clone, Copy)]
struct There {
    call: &'static str,
    rank: Rank,
    address: *const c_void,
    offset: u64,
    len: usize,
}

impl There {
    fn of<M: FaceMode>(
        call: &'static str,
        (team, rank): (*const Team, u32),
        address: *const c_void,
        local: *const c_void,
        len: usize,
    ) -> (&'static Face<M>, Self) {
        let face = M::slot().of(call);
        let (rank, offset) = face.place(call, team, rank, address.cast());
        if local.is_null() && len > 0 {
            fail(call, format!("{len} bytes at no address of this rank"));
        }
        (face, Self { call, rank, address, offset, len })
    }

    fn place<M: FaceMode>(&self, face: &'static Face<M>) -> RemoteAddr<'static> {
        face.engine().everyone().at(self.rank, self.offset)
    }

    fn went<T, E: Display + 'static>(&self, result: Result<T, E>) -> T {
        let &Self { call, rank, address, len, .. } = self;
        let why = |error| format!("{len} bytes at {address:p} of rank {rank}: {}", by_address(&error));
        result.unwrap_or_else(|error| fail(call, why(error)))
    }

    /// Whether it is done; not if there is no room, and nobody is to wait for any.
    fn unless_busy<T>(&self, flags: Flags, result: Result<T, gasworks_extended::Error>) -> Option<T> {
        match result {
            Err(error) if flags & IMMEDIATE != 0 && error.is_busy() => None,
            other => Some(self.went(other)),
        }
    }

    fn freed(&self, local: Local) -> Freed {
        match when(self.call, local) {
            When::Now => Freed::Now,
            When::Defer => Freed::Defer,
            When::Group | When::At(_) => Freed::Apart,
        }
    }
}

/// `gex_RMA_PutBlocking`.
///
/// # Safety
/// capi.1.
pub unsafe fn put<M: FaceMode>(
    team: *const Team,
    rank: u32,
    dest: *mut c_void,
    source: *const c_void,
    len: usize,
    flags: Flags,
) -> c_int {
    let (face, there) = There::of::<M>("gex_RMA_PutBlocking", (team, rank), dest, source, len);
    let (engine, place, is_immediate) = (face.engine(), there.place(face), flags & IMMEDIATE != 0);
    // SAFETY: capi.1: C has `len` readable bytes at `source`, which nobody writes until this call returns.
    let done = unsafe { rma::put_from(engine, place, source.cast(), len, is_immediate) };
    there.unless_busy(flags, done).map_or(1, |()| OK)
}

/// `gex_RMA_GetBlocking`.
///
/// # Safety
/// capi.1.
pub unsafe fn get<M: FaceMode>(
    team: *const Team,
    dest: *mut c_void,
    rank: u32,
    source: *const c_void,
    len: usize,
    flags: Flags,
) -> c_int {
    let (face, there) = There::of::<M>("gex_RMA_GetBlocking", (team, rank), source, dest, len);
    let (engine, place, is_immediate) = (face.engine(), there.place(face), flags & IMMEDIATE != 0);
    // SAFETY: capi.1: C has `len` writable bytes at `dest`, which nobody else uses until this call returns.
    let done = unsafe { rma::get_to(engine, place, dest.cast(), len, is_immediate) };
    there.unless_busy(flags, done).map_or(1, |()| OK)
}

/// `gex_RMA_PutNB`.
///
/// # Safety
/// capi.1: the source, until it may be used again.
pub unsafe fn put_nb<M: FaceMode>(
    team: *const Team,
    rank: u32,
    dest: *mut c_void,
    source: *const c_void,
    len: usize,
    local: Local,
    flags: Flags,
) -> Event {
    let (face, there) = There::of::<M>("gex_RMA_PutNB", (team, rank), dest, source, len);
    let options = Options { local: there.freed(local), immediate: flags & IMMEDIATE != 0 };
    if When::of(local) == Some(When::Group) {
        fail(there.call, "GEX_EVENT_GROUP is for implicit puts");
    }
    let place = there.place(face);
    // SAFETY: capi.1: C leaves the `len` bytes at `source` as they are until they may be used again, as `local` says.
    let started = unsafe { rma::put_nb(face.engine(), place, source.cast(), len, None, options) };
    let Some((event, _)) = there.unless_busy(flags, started) else { return NO_OP };
    if let Some(When::At(place)) = When::of(local) {
        // SAFETY: capi.1: `place` is aligned (`check::when`), and C has room for an event there.
        unsafe { *place = event.leaf(Categories::LOCAL).into_bits() as Event };
    }
    event.into_bits() as Event
}

/// `gex_RMA_GetNB`.
///
/// # Safety
/// capi.1: the target, until the event is done.
pub unsafe fn get_nb<M: FaceMode>(
    team: *const Team,
    dest: *mut c_void,
    rank: u32,
    source: *const c_void,
    len: usize,
    flags: Flags,
) -> Event {
    let (face, there) = There::of::<M>("gex_RMA_GetNB", (team, rank), source, dest, len);
    let (place, is_immediate) = (there.place(face), flags & IMMEDIATE != 0);
    // SAFETY: capi.1: C has `len` writable bytes at `dest`, which nobody else uses until the event is done.
    let started = unsafe { rma::get_nb(face.engine(), place, dest.cast(), len, None, is_immediate) };
    there.unless_busy(flags, started).map_or(NO_OP, |(event, _)| event.into_bits() as Event)
}

/// `gex_RMA_PutNBI`.
///
/// # Safety
/// capi.1: the source, until it may be used again.
pub unsafe fn put_nbi<M: FaceMode>(
    team: *const Team,
    rank: u32,
    dest: *mut c_void,
    source: *const c_void,
    len: usize,
    local: Local,
    flags: Flags,
) -> c_int {
    let (face, there) = There::of::<M>("gex_RMA_PutNBI", (team, rank), dest, source, len);
    let options = Options { local: there.freed(local), immediate: flags & IMMEDIATE != 0 };
    if matches!(When::of(local), Some(When::At(_))) {
        fail(there.call, "an event for the source is for puts that have one of their own");
    }
    let place = there.place(face);
    let started = face.implicit(|set| {
        // SAFETY: capi.1: C leaves the `len` bytes at `source` as they are until this thread's set says that they may be used again.
        unsafe { rma::put_nbi(face.engine(), set, place, source.cast(), len, None, options) }
    });
    there.unless_busy(flags, started).map_or(1, |()| OK)
}

/// `gex_RMA_GetNBI`.
///
/// # Safety
/// capi.1: the target, until the set says that it is done.
pub unsafe fn get_nbi<M: FaceMode>(
    team: *const Team,
    dest: *mut c_void,
    rank: u32,
    source: *const c_void,
    len: usize,
    flags: Flags,
) -> c_int {
    let (face, there) = There::of::<M>("gex_RMA_GetNBI", (team, rank), source, dest, len);
    let (place, is_immediate) = (there.place(face), flags & IMMEDIATE != 0);
    let started = face.implicit(|set| {
        // SAFETY: capi.1: C has `len` writable bytes at `dest`, which nobody else uses until this thread's set says that the get is done.
        unsafe { rma::get_nbi(face.engine(), set, place, dest.cast(), len, is_immediate) }
    });
    there.unless_busy(flags, started).map_or(1, |()| OK)
}
