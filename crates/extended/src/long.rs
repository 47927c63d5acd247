//! Long requests whose payload may be in use when the call returns.
//!
//! # Invariants
//! - long.1: the payload stays mapped and unchanged until the event is done: the caller promises it, or the operation keeps
//!   what owns it.

use crate::event::{Event, Kept};
use crate::{Error, Implicit};
use gasworks_core::ops::Sent;
use gasworks_core::{CoreMode, Engine, Outgoing};

/// Sends a Long request, polling while credits are short. The event is done when the payload may be used again: the
/// specification's local completion by an event. `keep` lives until then.
///
/// # Safety
/// long.1, for the payload of `message`.
///
/// # Errors
/// Those of [`Engine::request`].
pub unsafe fn request_nb<M: CoreMode>(
    engine: &Engine<M>,
    to: u32,
    message: &Outgoing<'_>,
    keep: Option<Box<M::Keep>>,
) -> Result<(Event, Kept<M>), Error> {
    // SAFETY: long.1: the caller promises that the payload stays as it is until the event is done, itself or by what it gives to keep.
    Ok(match unsafe { send(engine, to, message, None, keep)? } {
        Ok(id) => (Event(Some(id)), None),
        Err(kept) => (Event::DONE, kept),
    })
}

/// As [`request_nb`], in a set: the specification's `GEX_EVENT_GROUP`.
///
/// # Safety
/// long.1, for the payload of `message`.
///
/// # Errors
/// Those of [`Engine::request`].
pub unsafe fn request_nbi<M: CoreMode>(
    engine: &Engine<M>,
    implicit: &Implicit,
    to: u32,
    message: &Outgoing<'_>,
    keep: Option<Box<M::Keep>>,
) -> Result<(), Error> {
    // SAFETY: long.1: the caller promises that the payload stays as it is until the set's local category is done, itself or by `keep`.
    unsafe { send(engine, to, message, Some(implicit), keep) }.map(|_| ())
}

/// # Safety
/// long.1, for the payload of `message`.
unsafe fn send<M: CoreMode>(
    engine: &Engine<M>,
    to: u32,
    message: &Outgoing<'_>,
    implicit: Option<&Implicit>,
    mut keep: Option<Box<M::Keep>>,
) -> Result<Sent<M>, Error> {
    let mut sleeper = engine.sleeper();
    loop {
        let set = implicit.map(|implicit| implicit.joined(engine));
        // SAFETY: long.1: the caller promises the payload until the operation is done; one that was refused has not begun to use it.
        match unsafe { engine.try_request_nb(to, message, set, keep) } {
            Ok(sent) => return Ok(sent),
            Err((error, kept)) if error.is_busy() => {
                keep = kept;
                engine.turn(&mut sleeper)?;
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}
