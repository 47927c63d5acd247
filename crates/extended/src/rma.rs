//! Put and get.
//!
//! To a mapped peer a put is a `memcpy`: no descriptor, no event, nothing to poll. To an unmapped one it is a
//! transfer of the engine below. Local addresses may lie anywhere, nothing need be aligned, and zero bytes are legal, at
//! any offset up to the segment's end.
//!
//! Each comes in three forms: blocking; with an [`Event`] of its own (`_nb`); and implicit (`_nbi`), as part of an
//! [`Implicit`] set.
//!
//! # Invariants
//! - rma.1: the local side of a transfer stays mapped, and is not used otherwise, until the transfer completes: a blocking
//!   call does not return before; a non-blocking one passes the obligation to its caller, or keeps the buffer in
//!   the operation.

use crate::Error;
use crate::event::{self, Event, Kept};
use crate::implicit::Implicit;
use gasworks_core::{Categories, CoreMode, Engine, OpId, RemoteAddr, Transfer};
use gasworks_memory::{Access, Rights};
use gasworks_rdma::Direction;
use gasworks_sync::racy;

/// When the source of a put may be used again: the specification's local-completion option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Local {
    /// When the call returns: `GEX_EVENT_NOW`.
    Now,
    /// When the put is done: `GEX_EVENT_DEFER`.
    #[default]
    Defer,
    /// When the leaf of the put's event says so, or the local category of its set: a pointer to an event, or
    /// `GEX_EVENT_GROUP`.
    Apart,
}

/// What may be asked of a put or get beside the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// When the source of a put may be used again. A get has no use for it.
    pub local: Local,
    /// Rather give up, with [`Error::is_busy`], than wait for resources: `GEX_FLAG_IMMEDIATE`.
    pub immediate: bool,
}

/// Of a put whose source must be free on return, so many bytes are copied; for more, the put is waited for.
const COPIED: usize = 64 << 10;

/// Puts `source`, and returns when it can be seen there.
///
/// # Errors
/// The rank or the range is wrong, or the network failed.
#[inline(always)]
pub fn put<M: CoreMode>(engine: &Engine<M>, place: RemoteAddr<'_>, source: &[u8]) -> Result<(), Error> {
    // SAFETY: `source` is borrowed until the call returns, so its bytes are readable and nobody writes them.
    unsafe { put_from(engine, place, source.as_ptr(), source.len(), false) }
}

/// Gets the bytes there into `target`.
///
/// # Errors
/// The rank or the range is wrong, or the network failed.
#[inline(always)]
pub fn get<M: CoreMode>(engine: &Engine<M>, place: RemoteAddr<'_>, target: &mut [u8]) -> Result<(), Error> {
    // SAFETY: `target` is borrowed exclusively until the call returns, so its bytes are writable and nobody else's.
    unsafe { get_to(engine, place, target.as_mut_ptr(), target.len(), false) }
}

/// Puts `len` bytes at `source`, which may be anywhere, and returns when they can be seen.
///
/// # Safety
/// `source` is readable for `len` bytes, and nobody writes them meanwhile.
///
/// # Errors
/// The rank or the range is wrong, or the network failed; if `immediate`, also [`Error::is_busy`].
#[inline(always)]
pub unsafe fn put_from<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    source: *const u8,
    len: usize,
    immediate: bool,
) -> Result<(), Error> {
    match place.open(len) {
        Some(target) => {
            // SAFETY: `target` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that `source` is readable and
            // not written to.
            unsafe { racy::copy_in(target.as_ptr(), source, len) };
            Ok(())
        }
        // SAFETY: rma.1: the caller promises `len` bytes at `source` for this call, which returns when the put is over.
        None => unsafe { far(engine, place, Direction::Put, source.cast_mut(), len, immediate) },
    }
}

/// Gets `len` bytes to `target`, which may be anywhere.
///
/// # Safety
/// `target` is writable for `len` bytes, and nobody else uses them meanwhile.
///
/// # Errors
/// The rank or the range is wrong, or the network failed; if `immediate`, also [`Error::is_busy`].
#[inline(always)]
pub unsafe fn get_to<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    target: *mut u8,
    len: usize,
    immediate: bool,
) -> Result<(), Error> {
    match place.open(len) {
        Some(source) => {
            // SAFETY: `source` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that `target` is writable and
            // nobody else's.
            unsafe { racy::copy_out(target, source.as_ptr(), len) };
            Ok(())
        }
        // SAFETY: rma.1: the caller promises `len` bytes at `target` for this call, which returns when the get is over.
        None => unsafe { far(engine, place, Direction::Get, target, len, immediate) },
    }
}

/// A blocking transfer that is more than a copy, or with nowhere: out of line, so that the way to a mapped peer stays
/// short.
///
/// # Safety
/// rma.1, for `len` bytes at `local`, while the call lasts.
#[cold]
#[inline(never)]
unsafe fn far<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    direction: Direction,
    local: *mut u8,
    len: usize,
    immediate: bool,
) -> Result<(), Error> {
    let whole = whole(place, direction, local, len)?;
    // SAFETY: rma.1: the caller promises `len` bytes at `local` while the call lasts, and a copy is over before.
    if unsafe { copied(engine, place, &whole) }? {
        return Ok(());
    }
    // SAFETY: rma.1: the caller promises `len` bytes at `local` while the call lasts, which ends with the transfer.
    let done = unsafe { engine.transfer_and_wait(&whole, immediate) };
    done.map_err(|error| place.explain(error).into())
}

/// A transfer alone, whose source is not asked for apart.
fn whole(place: RemoteAddr<'_>, direction: Direction, local: *mut u8, len: usize) -> Result<Transfer, Error> {
    let (peer, offset) = place.of_rank()?;
    Ok(Transfer { direction, peer, offset, local, len, set: None, local_apart: false })
}

/// Starts a put of `len` bytes at `source`. `keep` lives until it is done. The leaf for the source is asked of the event.
///
/// # Safety
/// rma.1, for `len` bytes at `source`, readable, until the options say that they may be used again.
///
/// # Errors
/// The rank or the range is wrong, or the network failed; if immediate, also [`Error::is_busy`].
#[inline]
pub unsafe fn put_nb<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    source: *const u8,
    len: usize,
    keep: Option<Box<M::Keep>>,
    options: Options,
) -> Result<(Event, Kept<M>), Error> {
    if let Some(target) = place.open(len) {
        // SAFETY: `target` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that `source` is readable and not
        // written to.
        unsafe { racy::copy_in(target.as_ptr(), source, len) };
        return Ok((Event::DONE, keep));
    }
    let whole = whole(place, Direction::Put, source.cast_mut(), len)?;
    let whole = Transfer { local_apart: options.local == Local::Apart, ..whole };
    // SAFETY: rma.1: the caller promises `len` bytes at `source`, which `whole` names, until `options` say that they may be used again.
    unsafe { start(engine, place, &whole, keep, options) }
}

/// Starts a get of `len` bytes to `target`. `keep` lives until it is done.
///
/// # Safety
/// rma.1, for `len` bytes at `target`, writable, until the event is done.
///
/// # Errors
/// The rank or the range is wrong, or the network failed; if `immediate`, also [`Error::is_busy`].
#[inline]
pub unsafe fn get_nb<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    target: *mut u8,
    len: usize,
    keep: Option<Box<M::Keep>>,
    immediate: bool,
) -> Result<(Event, Kept<M>), Error> {
    if let Some(source) = place.open(len) {
        // SAFETY: `source` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that `target` is writable and
        // nobody else's.
        unsafe { racy::copy_out(target, source.as_ptr(), len) };
        return Ok((Event::DONE, keep));
    }
    let whole = whole(place, Direction::Get, target, len)?;
    // SAFETY: rma.1: the caller promises `len` bytes at `target`, which `whole` names, until the event is done.
    unsafe { start(engine, place, &whole, keep, Options { immediate, ..Options::default() }) }
}

/// Starts a put of `len` bytes at `source` in a set. `keep` lives until it is done.
///
/// # Safety
/// As for [`put_nb`].
///
/// # Errors
/// Those of [`put_nb`].
#[inline]
pub unsafe fn put_nbi<M: CoreMode>(
    engine: &Engine<M>,
    implicit: &Implicit,
    place: RemoteAddr<'_>,
    source: *const u8,
    len: usize,
    keep: Option<Box<M::Keep>>,
    options: Options,
) -> Result<(), Error> {
    if let Some(target) = place.open(len) {
        // SAFETY: `target` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that `source` is readable and not
        // written to.
        unsafe { racy::copy_in(target.as_ptr(), source, len) };
        return Ok(());
    }
    let (whole, set) = (whole(place, Direction::Put, source.cast_mut(), len)?, Some(implicit.joined(engine)));
    let whole = Transfer { set, local_apart: options.local == Local::Apart, ..whole };
    // SAFETY: rma.1: the caller promises `len` bytes at `source`, which `whole` names, until the set or its local category is done, as
    // `options` say.
    unsafe { start(engine, place, &whole, keep, options) }.map(|_| ())
}

/// Starts a get of `len` bytes to `target` in a set. `keep` lives until it is done.
///
/// # Safety
/// As for [`get_nb`].
///
/// # Errors
/// Those of [`get_nb`].
#[inline]
pub unsafe fn get_nbi<M: CoreMode>(
    engine: &Engine<M>,
    implicit: &Implicit,
    place: RemoteAddr<'_>,
    target: *mut u8,
    len: usize,
    immediate: bool,
) -> Result<(), Error> {
    if let Some(source) = place.open(len) {
        // SAFETY: `source` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that `target` is writable and
        // nobody else's.
        unsafe { racy::copy_out(target, source.as_ptr(), len) };
        return Ok(());
    }
    let whole = whole(place, Direction::Get, target, len)?;
    let whole = Transfer { set: Some(implicit.joined(engine)), ..whole };
    // SAFETY: rma.1: the caller promises `len` bytes at `target`, which `whole` names, until the gets of the set are done.
    unsafe { start(engine, place, &whole, None, Options { immediate, ..Options::default() }) }.map(|_| ())
}

/// Starts a transfer that is not open to a plain copy. What is over at once, as with a mapped peer of a job that is
/// observed or whose segment has grown, gives back what it would have kept.
///
/// # Safety
/// rma.1, until the options say that the source may be used again, or the event that the target may.
unsafe fn start<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    whole: &Transfer,
    keep: Option<Box<M::Keep>>,
    options: Options,
) -> Result<(Event, Kept<M>), Error> {
    // SAFETY: rma.1: the caller promises the local bytes that `whole` names for longer than this call, in which a copy is over.
    if unsafe { copied(engine, place, whole) }? {
        return Ok((Event::DONE, keep));
    }
    let now = whole.direction == Direction::Put && options.local == Local::Now && keep.is_none();
    if !now {
        // SAFETY: rma.1: the caller promises the local bytes until the operation is done, or what it gives in `keep` owns them.
        let id = unsafe { post(engine, place, whole, keep, options.immediate) }?;
        return Ok((Event(Some(id)), None));
    }
    if whole.len <= COPIED || options.immediate {
        let mut copy = vec![0u8; whole.len];
        // SAFETY: the caller promises that the local bytes are readable and not written to; `copy` is of this function and has as many.
        unsafe { racy::copy_out(copy.as_mut_ptr(), whole.local, whole.len) };
        let mine = Transfer { local: copy.as_mut_ptr(), ..*whole };
        // SAFETY: rma.1: the operation keeps `copy`, whose heap block does not move with the vector and is not used otherwise.
        let id = unsafe { post(engine, place, &mine, Some(M::keep(copy)), options.immediate) }?;
        return Ok((Event(Some(id)), None));
    }
    let alone = Transfer { set: None, local_apart: true, ..*whole };
    // SAFETY: rma.1: the caller promises the source while this call lasts, which waits below until the source is free.
    let event = Event(Some(unsafe { post(engine, place, &alone, None, false) }?));
    if whole.set.is_none() {
        // Whatever else a poll finds wrong is said once the source is free; nobody is given the event then.
        return match event::finish_borrowed(engine, &event.leaf(Categories::LOCAL)) {
            Ok(()) => Ok((event, None)),
            Err(error) => {
                event::abandon(engine, event);
                Err(explained(place, error))
            }
        };
    }
    event::finish_borrowed(engine, &event).map_err(|error| explained(place, error))?;
    Ok((Event::DONE, None))
}

/// Does a transfer if load and store reach the peer, and notes it in a job that is observed; whether it is done.
///
/// # Safety
/// `local` is mapped for `len` bytes, and nobody else uses them in the wrong way meanwhile.
unsafe fn copied<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    whole: &Transfer,
) -> Result<bool, Error> {
    let &Transfer { direction, peer, offset, local, len, .. } = whole;
    let put = direction == Direction::Put;
    let during = if put { "put" } else { "get" };
    let memory = |cause| Error::Core(place.explain(gasworks_core::Error::Memory { during, cause }));
    let rights = if put { Rights::WRITE } else { Rights::READ };
    let reached = engine.peers().reach(peer, offset, len, rights).map_err(memory)?;
    let mut copy = || {
        let Some(there) = reached else { return };
        // SAFETY: `there` is mapped for `len` bytes (table.1 of `gasworks_memory`); the caller promises that as many at `local` are mapped
        // and nobody uses them in the wrong way.
        unsafe {
            if put {
                racy::copy_in(there.as_ptr(), local, len);
            } else {
                racy::copy_out(local, there.as_ptr(), len);
            }
        }
    };
    match engine.peers().watch() {
        Some(watch) => watch.accesses(if put { Access::Put } else { Access::Get }, peer, len, &mut copy),
        None => copy(),
    }
    if reached.is_some() {
        place.reached(peer);
    }
    Ok(reached.is_some())
}

/// What went wrong with a call to there, or with a poll meanwhile.
#[cold]
fn explained(place: RemoteAddr<'_>, error: Error) -> Error {
    if let Error::Core(error) = error { place.explain(error).into() } else { error }
}

/// Hands a transfer to the engine below, polling while no descriptor is free, unless it is immediate.
///
/// # Safety
/// rma.1.
unsafe fn post<M: CoreMode>(
    engine: &Engine<M>,
    place: RemoteAddr<'_>,
    whole: &Transfer,
    mut keep: Option<Box<M::Keep>>,
    immediate: bool,
) -> Result<OpId, Error> {
    let mut sleeper = engine.sleeper();
    loop {
        // SAFETY: rma.1: the caller promises the local bytes of `whole` until the operation is done; a transfer that is refused has not
        // used them.
        match unsafe { engine.transfer(whole, keep) } {
            Ok(id) => return Ok(id),
            Err((error, kept)) if error.is_busy() && !immediate => {
                keep = kept;
                engine.turn(&mut sleeper)?;
            }
            Err((error, _)) => return Err(place.explain(error).into()),
        }
    }
}
