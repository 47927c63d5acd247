//! Peer completion: a handler of the program's that runs where bytes were put, once they are there.

use super::Peer;
use crate::Error;
use gasworks_core::{Category, CoreMode, Engine, Handlers, Incoming, Outgoing};

/// The library's handler index for the message.
const ARRIVED: u8 = 13;
/// Bytes of its argument: the index of the program's handler.
const ARGS: usize = 4;

/// Has a peer run a handler of the program's with these bytes, for bytes that it has by now: as a Medium reply without arguments, or if the
/// handler takes none as such a request.
///
/// # Errors
/// There is no such rank, or they are more than a Medium carries.
pub fn complete<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    handler: u8,
    bytes: &[u8],
) -> Result<(), Error> {
    let args = u32::from(handler).to_le_bytes();
    let message =
        Outgoing { category: Category::Medium, handler: ARRIVED, args: &args, payload: bytes, landing: 0 };
    Ok(engine.request_in(&peer.view, peer.member, &message)?)
}

pub(super) fn register<M: CoreMode>(handlers: &Handlers<M>) -> Result<(), gasworks_core::Error> {
    let shape = (Category::Medium, false, ARGS);
    handlers.register_internal(ARRIVED, "gasworks.scattered.arrived", shape, M::box_function(pass))
}

fn pass<M: CoreMode>(arrived: &Incoming<'_, M>) -> Result<(), Box<gasworks_core::Error>> {
    arrived.pass_to(arrived.args().first().copied().unwrap_or(0))
}
