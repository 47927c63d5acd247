//! Put and get.
//!
//! To a mapped peer a put is a `memcpy`: no descriptor, no event, nothing to poll. To an unmapped one it is a
//! transfer of the engine below. Local addresses may lie anywhere. Zero bytes are legal, at any offset up to the
//! segment's end.
//!
//! # Invariants
//! E1. The local side of a transfer stays mapped, and is not used otherwise, until the transfer completes: a blocking
//!     call does not return before; a non-blocking one passes the obligation to its caller, or keeps the buffer in
//!     the operation.

use crate::Error;
use gasworks_core::{CoreMode, Engine, OpId};
use gasworks_rdma::Direction;
use std::task::{Context, Poll};

/// The event of an operation that was started and may not be done: the specification's `gex_Event_t`.
#[derive(Debug)]
#[must_use = "an event that is not done is tested, waited for, or abandoned"]
pub struct Event(pub(crate) Option<OpId>);

impl Event {
    /// The event of an operation that is done already.
    pub const DONE: Event = Event(None);

    /// Whether the operation was done when it was started.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }
}

/// What is left of a finished operation: the buffer it kept, if any.
pub type Kept<M> = Option<Box<<M as CoreMode>::Keep>>;

/// Puts `source` at `offset` of `rank`'s segment, and returns when it can be seen there.
///
/// # Errors
/// The rank or the range is wrong, or the network failed.
#[inline(always)]
pub fn put<M: CoreMode>(engine: &Engine<M>, rank: u32, offset: u64, source: &[u8]) -> Result<(), Error> {
    match engine.peers().locate(rank, offset, source.len()) {
        Ok(Some(target)) => {
            target.write(source);
            Ok(())
        }
        _ => put_far(engine, rank, offset, source),
    }
}

/// Gets the bytes at `offset` of `rank`'s segment into `target`.
///
/// # Errors
/// The rank or the range is wrong, or the network failed.
#[inline(always)]
pub fn get<M: CoreMode>(engine: &Engine<M>, rank: u32, offset: u64, target: &mut [u8]) -> Result<(), Error> {
    match engine.peers().locate(rank, offset, target.len()) {
        Ok(Some(source)) => {
            source.read(target);
            Ok(())
        }
        _ => get_far(engine, rank, offset, target),
    }
}

/// A put to a peer that is not mapped, or to nowhere: out of line, so that the way to a mapped one stays short.
#[cold]
#[inline(never)]
fn put_far<M: CoreMode>(engine: &Engine<M>, rank: u32, offset: u64, source: &[u8]) -> Result<(), Error> {
    let (start, len) = (source.as_ptr().cast_mut(), source.len());
    // SAFETY: E1: the borrow lasts until the wait returns.
    let event = unsafe { transfer(engine, Direction::Put, rank, offset, start, len, None)? };
    finish_borrowed(engine, event)
}

/// As [`put_far`].
#[cold]
#[inline(never)]
fn get_far<M: CoreMode>(engine: &Engine<M>, rank: u32, offset: u64, target: &mut [u8]) -> Result<(), Error> {
    let (start, len) = (target.as_mut_ptr(), target.len());
    // SAFETY: E1: the exclusive borrow lasts until the wait returns.
    let event = unsafe { transfer(engine, Direction::Get, rank, offset, start, len, None)? };
    finish_borrowed(engine, event)
}

/// Starts a put of `len` bytes at `source`. `keep` lives until it is done.
///
/// # Safety
/// E1, for `len` bytes at `source`, readable.
///
/// # Errors
/// The rank or the range is wrong, or the network failed.
#[inline]
pub unsafe fn put_nb<M: CoreMode>(
    engine: &Engine<M>,
    rank: u32,
    offset: u64,
    source: *const u8,
    len: usize,
    keep: Option<Box<M::Keep>>,
) -> Result<(Event, Kept<M>), Error> {
    if let Ok(Some(target)) = engine.peers().locate(rank, offset, len) {
        // SAFETY: `target` is mapped for `len` bytes (P1 of gasworks_memory), `source` by the caller's promise.
        unsafe { gasworks_sync::racy::copy_in(target.as_ptr(), source, len) };
        return Ok((Event::DONE, keep));
    }
    // SAFETY: the caller's promise.
    let event = unsafe { transfer(engine, Direction::Put, rank, offset, source.cast_mut(), len, keep)? };
    Ok((event, None))
}

/// Starts a get of `len` bytes to `target`. `keep` lives until it is done.
///
/// # Safety
/// E1, for `len` bytes at `target`, writable.
///
/// # Errors
/// The rank or the range is wrong, or the network failed.
#[inline]
pub unsafe fn get_nb<M: CoreMode>(
    engine: &Engine<M>,
    rank: u32,
    offset: u64,
    target: *mut u8,
    len: usize,
    keep: Option<Box<M::Keep>>,
) -> Result<(Event, Kept<M>), Error> {
    if let Ok(Some(source)) = engine.peers().locate(rank, offset, len) {
        // SAFETY: `source` is mapped for `len` bytes (P1 of gasworks_memory), `target` by the caller's promise.
        unsafe { gasworks_sync::racy::copy_out(target, source.as_ptr(), len) };
        return Ok((Event::DONE, keep));
    }
    // SAFETY: the caller's promise.
    let event = unsafe { transfer(engine, Direction::Get, rank, offset, target, len, keep)? };
    Ok((event, None))
}

/// Starts a transfer, polling while no descriptor is free.
///
/// # Safety
/// E1, for `len` bytes at `local`.
unsafe fn transfer<M: CoreMode>(
    engine: &Engine<M>,
    direction: Direction,
    rank: u32,
    offset: u64,
    local: *mut u8,
    len: usize,
    mut keep: Option<Box<M::Keep>>,
) -> Result<Event, Error> {
    let mut sleeper = engine.sleeper();
    loop {
        // SAFETY: the caller's promise.
        match unsafe { engine.transfer(direction, rank, offset, local, len, keep) } {
            Ok(id) => return Ok(Event(Some(id))),
            Err((error, kept)) if error.is_busy() => {
                keep = kept;
                engine.turn(&mut sleeper)?;
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}

/// Whether an operation is done. Does not poll. A done event must not be tested again.
///
/// # Errors
/// The transfer failed, or the event is not of this engine.
pub fn test<M: CoreMode>(engine: &Engine<M>, event: &Event) -> Result<Option<Kept<M>>, Error> {
    let Some(id) = event.0 else { return Ok(Some(None)) };
    match engine.test(id)? {
        None => Ok(None),
        Some((Ok(()), kept)) => Ok(Some(kept)),
        Some((Err(cause), _)) => Err(gasworks_core::Error::Nic { during: "put or get", cause }.into()),
    }
}

/// Like [`test()`], for a future: the waker is woken by the poll that completes the operation.
///
/// # Errors
/// Those of [`test()`].
pub fn poll_event<M: CoreMode>(
    engine: &Engine<M>,
    event: &Event,
    context: &mut Context<'_>,
) -> Poll<Result<Kept<M>, Error>> {
    let Some(id) = event.0 else { return Poll::Ready(Ok(None)) };
    match engine.test_or_wake(id, context.waker()) {
        Err(error) => Poll::Ready(Err(error.into())),
        Ok(None) => Poll::Pending,
        Ok(Some((Ok(()), kept))) => Poll::Ready(Ok(kept)),
        Ok(Some((Err(cause), _))) => {
            Poll::Ready(Err(gasworks_core::Error::Nic { during: "put or get", cause }.into()))
        }
    }
}

/// Waits for a transfer of borrowed memory. Whatever else goes wrong meanwhile, it returns only when the transfer is
/// over (E1), and the other failure after that.
pub fn finish_borrowed<M: CoreMode>(engine: &Engine<M>, event: Event) -> Result<(), Error> {
    let (mut sleeper, mut other) = (engine.sleeper(), None);
    loop {
        if test(engine, &event)?.is_some() {
            return other.map_or(Ok(()), Err);
        }
        if let Err(error) = engine.turn(&mut sleeper) {
            other.get_or_insert(error.into());
        }
    }
}

/// Forgets an event; what the operation keeps lives until it is done.
pub fn abandon<M: CoreMode>(engine: &Engine<M>, event: Event) {
    if let Event(Some(id)) = event {
        engine.abandon(id);
    }
}
