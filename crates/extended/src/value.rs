//! Put and get of a value: up to eight bytes, the low-order ones of a word, least significant first.
//!
//! # Invariants
//! - value.1: a value on its way to a peer that is not mapped lies in a copy that the operation keeps.

use crate::Error;
use crate::event::Event;
use crate::implicit::Implicit;
use crate::rma::{self, Local, Options};
use gasworks_core::{CoreMode, Engine};

/// The largest value, in bytes.
pub const MAX: usize = 8;

#[inline(always)]
fn check(bytes: usize) -> Result<(), Error> {
    if (1..=MAX).contains(&bytes) { Ok(()) } else { Err(Error::ValueSize { bytes }) }
}

/// Puts the low-order `bytes` bytes of `value`, and returns when they can be seen.
///
/// # Errors
/// Those of [`rma::put`]; there are not 1 to 8 bytes.
#[inline(always)]
pub fn put<M: CoreMode>(
    engine: &Engine<M>,
    rank: u32,
    offset: u64,
    value: u64,
    bytes: usize,
) -> Result<(), Error> {
    check(bytes)?;
    rma::put(engine, rank, offset, &value.to_le_bytes()[..bytes])
}

/// Gets a value of `bytes` bytes, with zeros above.
///
/// # Errors
/// Those of [`rma::get`]; there are not 1 to 8 bytes.
#[inline(always)]
pub fn get<M: CoreMode>(engine: &Engine<M>, rank: u32, offset: u64, bytes: usize) -> Result<u64, Error> {
    check(bytes)?;
    let mut value = [0; MAX];
    rma::get(engine, rank, offset, &mut value[..bytes])?;
    Ok(u64::from_le_bytes(value))
}

const fn options(immediate: bool) -> Options {
    Options { local: Local::Now, immediate }
}

/// Starts a put of the low-order `bytes` bytes of `value`.
///
/// # Errors
/// Those of [`rma::put_nb`]; there are not 1 to 8 bytes.
#[inline]
pub fn put_nb<M: CoreMode>(
    engine: &Engine<M>,
    place: (u32, u64),
    value: u64,
    bytes: usize,
    immediate: bool,
) -> Result<Event, Error> {
    check(bytes)?;
    let value = value.to_le_bytes();
    // SAFETY: value.1: by `Local::Now` the operation uses a copy of `value` when this returns; `bytes`, checked, are no more than its 8.
    let started = unsafe { rma::put_nb(engine, place, value.as_ptr(), bytes, None, options(immediate)) };
    started.map(|(event, _)| event)
}

/// Starts a put of the low-order `bytes` bytes of `value` in a set.
///
/// # Errors
/// Those of [`rma::put_nbi`]; there are not 1 to 8 bytes.
#[inline]
pub fn put_nbi<M: CoreMode>(
    engine: &Engine<M>,
    implicit: &Implicit,
    place: (u32, u64),
    value: u64,
    bytes: usize,
    immediate: bool,
) -> Result<(), Error> {
    check(bytes)?;
    let value = value.to_le_bytes();
    // SAFETY: value.1: by `Local::Now` the operation of the set uses a copy of `value` when this returns; `bytes`, checked, are no more
    // than its 8.
    unsafe { rma::put_nbi(engine, implicit, place, value.as_ptr(), bytes, None, options(immediate)) }
}
