//! Room for a message is filled before it is sent, and not after.

use gasworks_core::{Reservation, Wire, WireError};
use gasworks_sync::Seq;

fn send(wire: &dyn Wire<Seq>, room: Reservation<'_>) -> Result<(), WireError> {
    let payload = room.payload();
    wire.commit(room, &[])?;
    payload.write(&[1]);
    Ok(())
}

fn main() {
    let _ = send;
}
