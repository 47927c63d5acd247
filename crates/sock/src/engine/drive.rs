//! Transfers: what a posted operation does when its descriptor is ready.

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use parking_lot::MutexGuard;

use super::state::{Core, Direction, Life, Posted, Shared, Sink, Slot, State};
use super::{connect, listen};
use crate::{Class, Error};

/// What one call brought.
pub(crate) enum Outcome {
    Moved(usize),
    Blocked,
    Ended(Error),
}

/// Learns from the result of a call that asked for `asked` bytes.
#[inline(always)]
pub(crate) fn note(
    shared: &Shared,
    state: &mut State,
    direction: Direction,
    operation: &'static str,
    asked: usize,
    result: nix::Result<usize>,
) -> Outcome {
    let exact = state.native.as_ref().is_some_and(|native| native.exact);
    let pollable = state.native.as_ref().is_some_and(|native| native.pollable);
    match result {
        Ok(0) if direction == Direction::Read => {
            let error = shared.error(state, Class::ConnClosed, operation);
            state.read.end = Some(error.clone());
            Outcome::Ended(error)
        }
        Ok(bytes) => {
            let side = state.side(direction);
            // The set tells of changes after the call. An end that came before it, it has told already.
            if bytes < asked && exact && !side.hung && pollable {
                side.ready = false;
            }
            Outcome::Moved(bytes)
        }
        Err(Errno::EAGAIN) => {
            state.side(direction).ready = false;
            Outcome::Blocked
        }
        Err(e) => Outcome::Ended(failed(shared, state, direction, operation, e)),
    }
}

#[cold]
fn failed(
    shared: &Shared,
    state: &mut State,
    direction: Direction,
    operation: &'static str,
    e: Errno,
) -> Error {
    let class = Class::of_transfer(e);
    let error = shared.error(state, class, operation).errno(e);
    // Want of memory, or a call that this descriptor does not take, is no end of the connection.
    if matches!(class, Class::ConnClosed | Class::ConnFailed) {
        // What came before the connection broke can still be read, until a read says that it is broken.
        if direction == Direction::Read {
            state.read.end = Some(error.clone());
        }
        state.write.end.get_or_insert_with(|| error.clone());
    }
    error
}

/// Does what can be done now for the operation posted in one direction.
#[inline]
pub(crate) fn drive(
    shared: &Shared,
    state: &mut MutexGuard<'_, State>,
    direction: Direction,
    sink: Sink<'_>,
) {
    // Compiled for each direction by itself: this is where an operation spends its time.
    match direction {
        _ if matches!(state.side(direction).slot, Slot::Empty | Slot::Busy) => {}
        Direction::Read => drive_reads(shared, state, sink),
        Direction::Write => drive_writes(shared, state, sink),
    }
}

fn drive_reads(shared: &Shared, state: &mut MutexGuard<'_, State>, sink: Sink<'_>) {
    drive_one(shared, state, Direction::Read, sink);
}

fn drive_writes(shared: &Shared, state: &mut MutexGuard<'_, State>, sink: Sink<'_>) {
    drive_one(shared, state, Direction::Write, sink);
}

#[inline(always)]
fn drive_one(shared: &Shared, state: &mut MutexGuard<'_, State>, direction: Direction, sink: Sink<'_>) {
    while state.side(direction).ready {
        match state.side(direction).slot {
            Slot::Posted(_) => {}
            Slot::Ready => return shared.tell_ready(state, direction, sink),
            Slot::Empty | Slot::Busy => return,
        }
        let Some((asked, result)) = transfer(state, direction) else {
            return shared.end(state, direction, Class::BadSock, sink);
        };
        match note(shared, state, direction, direction.name(), asked, result) {
            Outcome::Ended(error) => return shared.complete(state, direction, Some(error), sink),
            Outcome::Blocked => {}
            Outcome::Moved(bytes) if state.side(direction).moved(bytes) => {
                return shared.complete(state, direction, None, sink);
            }
            Outcome::Moved(bytes) => {
                if !report(shared, state, direction, bytes, sink) {
                    shared.end(state, direction, Class::SockClosed, sink);
                    return shared.idle_at_close(state, sink);
                }
            }
        }
    }
    if direction == Direction::Write && matches!(state.write.slot, Slot::Posted(_) | Slot::Ready) {
        shared.tell_room(state);
    }
}

/// One call for the rest of the operation posted in one direction: how many bytes it asked for, and what it brought;
/// `None` without a descriptor.
#[inline(always)]
fn transfer(state: &mut State, direction: Direction) -> Option<(usize, nix::Result<usize>)> {
    let (native, side) = match direction {
        Direction::Read => (&state.native, &mut state.read),
        Direction::Write => (&state.native, &mut state.write),
    };
    let (native, Slot::Posted(posted)) = (native.as_ref()?, &mut side.slot) else { return None };
    let (from, to) = (posted.done, posted.max);
    let result = match direction {
        Direction::Read => posted.memory.read(native.as_fd(), native.socket, from, to),
        Direction::Write => posted.memory.write(native.as_fd(), native.socket, from, to),
    };
    Some((to - from, result))
}

/// Calls the operation's progress function, without a lock; `false`: the sock was closed meanwhile.
#[cold]
fn report(
    shared: &Shared,
    state: &mut MutexGuard<'_, State>,
    direction: Direction,
    bytes: usize,
    sink: Sink<'_>,
) -> bool {
    let slot = &mut state.side(direction).slot;
    if !matches!(slot, Slot::Posted(Posted { progress: Some(_), .. })) {
        return true;
    }
    let mut held = std::mem::replace(slot, Slot::Busy);
    let user = shared.user();
    // What this thread has so far need not wait until the function returns.
    sink.share();
    if let Slot::Posted(Posted { progress: Some(progress), .. }) = &mut held {
        MutexGuard::unlocked(state, || progress(bytes, user));
    }
    state.side(direction).slot = held;
    matches!(state.life, Life::Open)
}

/// The set tells of a change of a sock's descriptor.
pub(crate) fn on_change(shared: &Shared, core: &Core, flags: EpollFlags, sink: Sink<'_>) {
    let mut state = shared.state.lock();
    let has = |any: EpollFlags| flags.intersects(any);
    let broken = has(EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR);
    let ended = broken || has(EpollFlags::EPOLLRDHUP);
    state.read.ready |= ended || has(EpollFlags::EPOLLIN);
    state.read.hung |= ended;
    state.write.ready |= broken || has(EpollFlags::EPOLLOUT);
    state.write.hung |= broken;
    match state.life {
        Life::Connecting(_) => connect::advance(shared, core, &mut state, sink),
        Life::Listening(_) => listen::announce(shared, &mut state, sink),
        Life::Open | Life::Watched => {
            drive(shared, &mut state, Direction::Read, sink);
            drive(shared, &mut state, Direction::Write, sink);
            if has(EpollFlags::EPOLLOUT) && matches!(state.write.slot, Slot::Empty) {
                shared.ignore_room(&mut state);
            }
        }
        Life::Closing(_) | Life::Closed => {}
    }
}

/// A thread that waits does what a poster left to it.
pub(crate) fn attend(shared: &Shared, core: &Core) {
    let sink = Sink::quiet(core);
    let mut state = shared.state.lock();
    if matches!(state.life, Life::Open) {
        drive(shared, &mut state, Direction::Read, sink);
        drive(shared, &mut state, Direction::Write, sink);
    }
}
