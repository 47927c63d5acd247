//! Scattered put and get: vectors, indexed blocks and strided arrays.
//!
//! # Invariants
//! As in the crate.

use crate::face::{Face, FaceMode, by_address, fail};
use crate::layout::{Event, Flags, IMMEDIATE, Memvec, NO_OP, Team};
use gasworks_core::View;
use gasworks_extended::Error;
use gasworks_extended::rma::{Local, Options};
use gasworks_extended::scattered::{self, Blocks, Dimension, Lists, Peer, Runs, Side, Strided, Way};
use std::cell::Cell;
use std::ffi::c_void;

/// `GEX_FLAG_ENABLE_LEAF_LC`.
const LEAF: Flags = 1 << 11;
/// `GEX_VIS_MAX_PEERCOMPLETION`.
const MAX_COMPLETION: usize = 127;
/// The first index of the program's handlers.
const FIRST_HANDLER: u8 = 128;

/// What becomes of a transfer when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It is done.
    Blocking,
    /// There is an event.
    Nb,
    /// It is one of this thread's implicit operations.
    Nbi,
}

/// A call: its name, which way bytes go, and its form.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The name.
    pub name: &'static str,
    /// Which way.
    pub way: Way,
    /// The form.
    pub form: Form,
}

impl Call {
    /// A put.
    pub const fn put(name: &'static str, form: Form) -> Self {
        Self { name, way: Way::Put, form }
    }
    /// A get.
    pub const fn get(name: &'static str, form: Form) -> Self {
        Self { name, way: Way::Get, form }
    }
}

/// The rank that a call names, and the address of its memory that is offset 0.
fn peer<M: FaceMode>(call: &str, (team, rank): (*const Team, u32)) -> (&'static Face<M>, Peer<'static>, u64) {
    let face = M::slot().of(call);
    let (region, rank, base) = face.origin(call, team, rank);
    let everyone = || face.engine().everyone();
    // A region that was found stays.
    let view = region.and_then(|id| View::region(face.engine().peers(), id)).unwrap_or_else(everyone);
    (face, Peer { view, member: rank }, base)
}

/// An array of C's.
///
/// # Safety
/// capi.1: there are so many, which nobody writes while they are in use.
unsafe fn array<'a, T>(call: &str, what: &str, first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    if first.is_null() || !first.is_aligned() {
        fail(call, format!("{count} {what} at {first:p}, where none can be"));
    }
    // SAFETY: capi.1: `first` is aligned and not null, and C has `count` there, which nobody writes while they are in use.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// The pieces of a vector here.
#[derive(Clone, Copy)]
struct Here<'a>(&'a [Memvec]);

// SAFETY: runs.1 of `gasworks_extended`: nobody writes C's list while it is in use (capi.1).
unsafe impl Side<*mut u8> for Here<'_> {
    #[inline]
    fn piece(&self, number: usize) -> Option<(*mut u8, usize)> {
        self.0.get(number).map(|piece| (piece.at.cast(), piece.len))
    }
}

/// Those of a rank whose memory begins at this address.
#[derive(Clone, Copy)]
struct There<'a> {
    pieces: &'a [Memvec],
    base: u64,
}

// SAFETY: runs.1 of `gasworks_extended`: nobody writes C's list while it is in use (capi.1).
unsafe impl Side<u64> for There<'_> {
    #[inline]
    fn piece(&self, number: usize) -> Option<(u64, usize)> {
        self.pieces.get(number).map(|piece| ((piece.at.addr() as u64).wrapping_sub(self.base), piece.len))
    }
}

/// Blocks of a rank whose memory begins at this address.
#[derive(Clone, Copy)]
struct BlocksThere<'a> {
    places: &'a [*mut c_void],
    len: usize,
    base: u64,
}

// SAFETY: runs.1 of `gasworks_extended`: nobody writes C's list while it is in use (capi.1).
unsafe impl Side<u64> for BlocksThere<'_> {
    #[inline]
    fn piece(&self, number: usize) -> Option<(u64, usize)> {
        Some(((self.places.get(number)?.addr() as u64).wrapping_sub(self.base), self.len))
    }
    fn each(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// The same of this rank.
fn blocks_here(places: &[*mut c_void], len: usize) -> Blocks<'_, *mut u8> {
    // SAFETY: pointers to anything and pointers to bytes have one layout.
    let places = unsafe { std::slice::from_raw_parts(places.as_ptr().cast::<*mut u8>(), places.len()) };
    Blocks { places, len }
}

/// `gex_VIS_Vector{Put,Get}{Blocking,NB,NBI}`: an event, or whether it was not started.
///
/// # Safety
/// capi.1: the pieces and the bytes here, until the transfer is done.
pub unsafe fn vector<M: FaceMode>(
    call: Call,
    of: (*const Team, u32),
    (here_count, here): (usize, *const Memvec),
    (there_count, there): (usize, *const Memvec),
    flags: Flags,
) -> Event {
    // SAFETY: capi.1: C has so many pieces in each list, which it leaves as they are until the transfer is done.
    let (here, pieces) = unsafe {
        (array(call.name, "pieces", here, here_count), array(call.name, "pieces", there, there_count))
    };
    let (face, peer, base) = peer::<M>(call.name, of);
    let lists = Lists { local: Here(here), remote: There { pieces, base } };
    nowhere(call.name, here.iter().find(|piece| piece.len > 0 && piece.at.is_null()).map(|piece| piece.len));
    // SAFETY: capi.1: C leaves the bytes of the pieces here as they are, or to the transfer, until that is done.
    unsafe { transfer(face, call, peer, &lists, flags) }
}

/// `gex_VIS_Indexed{Put,Get}{Blocking,NB,NBI}`: an event, or whether it was not started.
///
/// # Safety
/// capi.1: the lists and the bytes here, until the transfer is done.
pub unsafe fn indexed<M: FaceMode>(
    call: Call,
    of: (*const Team, u32),
    (here_count, here, here_len): (usize, *const *mut c_void, usize),
    (there_count, there, there_len): (usize, *const *mut c_void, usize),
    flags: Flags,
) -> Event {
    // SAFETY: capi.1: C has so many addresses in each list, which it leaves as they are until the transfer is done.
    let (here, places) = unsafe {
        (array(call.name, "addresses", here, here_count), array(call.name, "addresses", there, there_count))
    };
    let (face, peer, base) = peer::<M>(call.name, of);
    let remote = BlocksThere { places, len: there_len, base };
    let lists = Lists { local: blocks_here(here, here_len), remote };
    nowhere(call.name, here.iter().any(|place| place.is_null()).then_some(here_len));
    // SAFETY: capi.1: C leaves the bytes of the blocks here as they are, or to the transfer, until that is done.
    unsafe { transfer(face, call, peer, &lists, flags) }
}

/// A side of a strided array: its first element and its strides.
pub type Array = (*mut c_void, *const isize);

/// `gex_VIS_Strided{Put,Get}{Blocking,NB,NBI}`: an event, or whether it was not started.
///
/// # Safety
/// capi.1: the strides and counts during the call, and the bytes here until the transfer is done.
pub unsafe fn strided<M: FaceMode>(
    call: Call,
    of: (*const Team, u32),
    (here, strides_here): Array,
    (there, strides_there): Array,
    (element, counts, levels): (usize, *const usize, usize),
    flags: Flags,
) -> Event {
    // SAFETY: capi.1: C has a count and two strides for each level, which it leaves as they are during this call.
    let (counts, strides_here, strides_there) = unsafe {
        (
            array(call.name, "counts", counts, levels),
            array(call.name, "strides", strides_here, levels),
            array(call.name, "strides", strides_there, levels),
        )
    };
    let (face, peer, base) = peer::<M>(call.name, of);
    let dimensions = counts.iter().zip(strides_here).zip(strides_there);
    let dimensions = dimensions.map(|((&count, &local), &remote)| Dimension { count, local, remote });
    let first = (here.cast(), (there.addr() as u64).wrapping_sub(base));
    let array =
        Strided::new(first, element, dimensions).unwrap_or_else(|error| wrong(call.name, peer, &error));
    let moves = matches!(array.measure(), Ok(Some(_)));
    nowhere(call.name, (moves && here.is_null()).then_some(element));
    // SAFETY: capi.1: C leaves the bytes of the elements here as they are, or to the transfer, until that is done.
    unsafe { transfer(face, call, peer, &array, flags) }
}

/// Ends the job if so many bytes are to be at no address of this rank.
fn nowhere(call: &str, len: Option<usize>) {
    if let Some(len) = len.filter(|len| *len > 0) {
        fail(call, format!("{len} bytes at no address of this rank"));
    }
}

#[cold]
fn wrong(call: &str, peer: Peer<'_>, error: &Error) -> ! {
    fail(call, format!("rank {}: {}", peer.member, by_address(error)))
}

/// Starts or does a transfer.
///
/// # Safety
/// capi.1: the runs here, until the transfer is done.
unsafe fn transfer<M: FaceMode>(
    face: &'static Face<M>,
    call: Call,
    peer: Peer<'static>,
    runs: &impl Runs,
    flags: Flags,
) -> Event {
    let (engine, immediate) = (face.engine(), flags & IMMEDIATE != 0);
    let local = if flags & LEAF != 0 { Local::Apart } else { Local::Defer };
    let options = Options { local, immediate };
    let armed = if call.way == Way::Put { ARMED.take() } else { None };
    // A put that tells its target is waited for: the message leaves once all bytes are there.
    let form = if armed.is_some() { Form::Blocking } else { call.form };
    // SAFETY: scattered.1 of `gasworks_extended`: capi.1: C leaves the runs here until this returns, or its event or set is done.
    let started = unsafe {
        match form {
            Form::Blocking => scattered::transfer(engine, peer, call.way, runs, immediate).map(|()| 0),
            Form::Nb => scattered::transfer_nb(engine, peer, call.way, runs, None, options)
                .map(|(event, _)| event.into_bits() as Event),
            Form::Nbi => face
                .implicit(|set| scattered::transfer_nbi(engine, set, peer, call.way, runs, options))
                .map(|()| 0),
        }
    };
    let told = started.and_then(|event| {
        let Some(Armed { handler, len, bytes }) = armed else { return Ok(event) };
        scattered::complete(engine, peer, handler, &bytes[..len]).map(|()| event)
    });
    match told {
        Ok(event) => event,
        Err(error) if immediate && error.is_busy() => {
            ARMED.set(armed);
            NO_OP
        }
        Err(error) => wrong(call.name, peer, &error),
    }
}

/// What the target of this thread's next put is to run.
#[derive(Clone, Copy)]
struct Armed {
    handler: u8,
    len: usize,
    bytes: [u8; MAX_COMPLETION],
}

thread_local! {
    static ARMED: Cell<Option<Armed>> = const { Cell::new(None) };
}

/// `gex_VIS_SetPeerCompletionHandler`.
///
/// # Safety
/// capi.1.
pub unsafe fn arm<M: FaceMode>(handler: u8, source: *const c_void, len: usize) {
    const CALL: &str = "gex_VIS_SetPeerCompletionHandler";
    M::slot().of(CALL);
    if handler == 0 {
        return ARMED.set(None);
    }
    if handler < FIRST_HANDLER {
        fail(CALL, format!("index {handler} is the library's: programs use {FIRST_HANDLER} to 255"));
    }
    if len > MAX_COMPLETION {
        fail(CALL, format!("{len} bytes: GEX_VIS_MAX_PEERCOMPLETION is {MAX_COMPLETION}"));
    }
    // SAFETY: capi.1: C has `len` readable bytes at `source`, which nobody writes during this call.
    let given: &[u8] = unsafe { array(CALL, "bytes", source.cast(), len) };
    let mut bytes = [0; MAX_COMPLETION];
    bytes[..len].copy_from_slice(given);
    ARMED.set(Some(Armed { handler, len, bytes }));
}
