//! Connecting: what a sock becomes when one of its attempts has succeeded, or all have failed.

use super::address::Address;
use super::state::{Core, Life, Native, Shared, Sink, State};
use crate::Op;

/// Looks how a connect stands, and goes on with it.
pub(crate) fn advance(shared: &Shared, core: &Core, state: &mut State, sink: Sink<'_>) {
    let Life::Connecting(connecting) = &mut state.life else { return };
    let Some(outcome) = connecting.go_on(shared.id, core) else { return };
    let Life::Connecting(connecting) = std::mem::replace(&mut state.life, Life::Open) else { return };
    let error = match outcome {
        Ok((fd, address)) => {
            state.peer = Some(address.to_string());
            state.native = Some(Native::made(fd, matches!(address, Address::Inet(_))));
            // Its changes were told while it connected, perhaps those of another attempt: it is worth one try.
            (state.read.ready, state.write.ready) = (true, true);
            state.tells_room = true;
            None
        }
        Err(error) => {
            let error = shared.about(state, error);
            state.read.end = Some(error.clone());
            state.write.end = Some(error.clone());
            Some(error)
        }
    };
    connecting.abandon(core);
    sink.tell(shared.event(Op::Connect, 0, error));
}
