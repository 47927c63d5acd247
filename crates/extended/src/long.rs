//! Long requests whose payload may be in use when the call returns.
//!
//! # Invariants
//! L1. The payload stays mapped and unchanged until the event is done: the caller promises it, or the operation keeps
//!     what owns it.

use crate::Error;
use crate::event::{Event, Kept};
use gasworks_core::{CoreMode, Engine, Outgoing};

/// Sends a Long request, polling while credits are short. The event is done when the payload may be used again: the
/// specification's local completion by an event. `keep` lives until then.
///
/// # Safety
/// L1, for the payload of `message`.
///
/// # Errors
/// Those of [`Engine::request`].
pub unsafe fn request_nb<M: CoreMode>(
    engine: &Engine<M>,
    to: u32,
    message: &Outgoing<'_>,
    mut keep: Option<Box<M::Keep>>,
) -> Result<(Event, Kept<M>), Error> {
    let mut sleeper = engine.sleeper();
    loop {
        // SAFETY: L1, the caller's promise.
        match unsafe { engine.try_request_nb(to, message, keep) } {
            Ok(Ok(id)) => return Ok((Event(Some(id)), None)),
            Ok(Err(kept)) => return Ok((Event::DONE, kept)),
            Err((error, kept)) if error.is_busy() => {
                keep = kept;
                engine.turn(&mut sleeper)?;
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}
