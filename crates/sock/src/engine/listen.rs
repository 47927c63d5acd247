//! Listeners: one connection is accepted ahead, so that an accept event is never an empty promise.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;

use super::state::{Life, Listening, Native, Shared, Sink, State};
use super::{address, sys};
use crate::{Class, Error, Op};

/// Accepts ahead and puts in an accept event, unless there was one that nobody has answered.
pub(crate) fn announce(shared: &Shared, state: &mut State, sink: Sink<'_>) {
    let (Life::Listening(listening), Some(native)) = (&mut state.life, &state.native) else { return };
    if listening.announced || !state.read.ready {
        return;
    }
    match sys::accept(native.as_fd()) {
        Ok(fd) => listening.ahead = Some(fd),
        Err(Errno::EAGAIN) => {
            state.read.ready = false;
            return;
        }
        // The accept that answers finds the reason.
        Err(_) => {}
    }
    listening.announced = true;
    sink.tell(shared.event(Op::Accept, 0, None));
}

/// Takes a connection from a listener.
pub(crate) fn accept(listener: &Arc<Shared>) -> Result<(OwnedFd, bool), Error> {
    const OPERATION: &str = "accept";
    let core = listener.core(OPERATION)?;
    let state = &mut *listener.state.lock();
    let (Life::Listening(listening) | Life::Closing(Some(listening))) = &mut state.life else {
        let error = listener.error(state, Class::BadSock, OPERATION);
        return Err(error.cause("it is not a listener, or it is closed"));
    };
    let native = state.native.as_ref();
    let tcp = native.is_some_and(|native| native.tcp);
    let taken = match (listening.ahead.take(), native) {
        (Some(fd), _) => Ok(fd),
        (None, Some(native)) => sys::accept(native.as_fd()),
        (None, None) => Err(Errno::EBADF),
    };
    listening.announced = false;
    let fd = taken.map_err(|e| match e {
        Errno::EAGAIN => {
            state.read.ready = false;
            listener.error(state, Class::NoNewSock, OPERATION)
        }
        e => {
            let error = listener.error(state, Class::of_setup(e), OPERATION).errno(e);
            error.cause("the connection still waits; accept again when there is room for it")
        }
    })?;
    announce(listener, state, Sink::loud(core));
    Ok((fd, tcp))
}

impl Listening {
    /// Turns away all that still wait; how many there were.
    pub(crate) fn turn_away(self, native: &Native) -> usize {
        let mut turned = 0;
        let rest = std::iter::from_fn(|| sys::accept(native.fd.as_fd()).ok());
        for fd in self.ahead.into_iter().chain(rest) {
            address::reset(fd);
            turned += 1;
        }
        turned
    }
}
