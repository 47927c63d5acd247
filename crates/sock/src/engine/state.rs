//! What a sock is inside: its life, its descriptor and its two sides, and the events of what ends there.
//!
//! Each side, read and write, has at most one operation posted, and each may come to its end by itself: the peer may have
//! sent its last byte and still be listening, or the connection may be dead for writing while bytes that came before can
//! still be read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use gasworks_sync::atomic::{AtomicU64, Ordering};
use nix::sys::epoll::EpollEvent;
use parking_lot::Mutex;

use super::attempts::Connecting;
use super::core::{Item, interest};
use super::memory::Memory;
use crate::{Class, Error, Event, Op, SockId};

/// Called on a thread that waits, each time that a part of a posted operation was transferred and it is not done yet: with
/// the bytes of that part and the sock's user word.
///
/// No lock of the engine is held. The calls for one operation come one after the other, and all have returned before its
/// event is delivered. It may post and close; it must not wait for the same set.
pub type Progress = Box<dyn FnMut(usize, u64) + Send>;

/// One of the two ways that bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    Read,
    /// To the peer.
    Write,
}

/// The set of these socks.
pub(crate) type Core = super::core::Core<Shared>;
/// Where events of these socks go.
pub(crate) type Sink<'a> = super::core::Sink<'a, Shared>;

/// What the handles of a sock share.
pub(crate) struct Shared {
    pub(crate) id: SockId,
    pub(crate) core: Arc<Core>,
    pub(crate) user: AtomicU64,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) life: Life,
    pub(crate) native: Option<Native>,
    /// Who is at the other end, for messages.
    pub(crate) peer: Option<String>,
    pub(crate) read: Side,
    pub(crate) write: Side,
    /// Whether the set tells when there is room for writing. Only asked for when there was none: a Unix socket would tell
    /// of each message that its peer takes.
    pub(crate) tells_room: bool,
}

pub(crate) enum Life {
    /// Boxed, since it is large, and most socks are open: what they need is to be found together.
    Connecting(Box<Connecting>),
    Open,
    /// Nothing but readiness.
    Watched,
    Listening(Listening),
    /// A close is posted; a listener keeps accepting until it is delivered.
    Closing(Option<Listening>),
    Closed,
}

/// What a listener has to know.
#[derive(Default)]
pub(crate) struct Listening {
    /// A connection that the accept event promised.
    pub(crate) ahead: Option<OwnedFd>,
    /// An accept event was given and not answered by an accept yet.
    pub(crate) announced: bool,
}

/// A descriptor and what has to be known of it.
pub(crate) struct Native {
    pub(crate) fd: OwnedFd,
    /// It is a socket.
    pub(crate) socket: bool,
    /// It is a TCP socket: it tells of room only after there was none.
    pub(crate) tcp: bool,
    /// A read or write of fewer bytes than asked means that no more can be had now.
    pub(crate) exact: bool,
    /// The system can tell when it is ready. A plain file always is.
    pub(crate) pollable: bool,
}

#[derive(Default)]
pub(crate) struct Side {
    pub(crate) slot: Slot,
    /// Trying is worth a call. The set tells only of changes, so this is remembered until the system says "not now".
    pub(crate) ready: bool,
    /// The system told of an end or an error: it will not tell again, so `ready` outlasts a short transfer.
    pub(crate) hung: bool,
    /// Why nothing can be transferred any more.
    pub(crate) end: Option<Error>,
}

#[derive(Default)]
pub(crate) enum Slot {
    #[default]
    Empty,
    Posted(Posted),
    /// Waits for readiness alone.
    Ready,
    /// A thread calls the operation's progress function just now, and holds it.
    Busy,
}

pub(crate) struct Posted {
    pub(crate) memory: Memory,
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) done: usize,
    pub(crate) progress: Option<Progress>,
}

impl State {
    pub(crate) fn new(life: Life, native: Option<Native>) -> Self {
        let ready = native.as_ref().is_some_and(|native| !native.pollable);
        Self {
            life,
            native,
            peer: None,
            read: Side { ready, ..Side::default() },
            write: Side { ready: true, ..Side::default() },
            tells_room: false,
        }
    }

    #[inline(always)]
    pub(crate) fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }

    pub(crate) fn busy(&self) -> bool {
        matches!(self.read.slot, Slot::Busy) || matches!(self.write.slot, Slot::Busy)
    }
}

impl Side {
    /// So many bytes more of the posted operation were transferred; whether that is enough.
    #[inline]
    pub(crate) fn moved(&mut self, bytes: usize) -> bool {
        let Slot::Posted(posted) = &mut self.slot else { return false };
        posted.done += bytes;
        posted.done >= posted.min
    }
}

impl Direction {
    pub(crate) fn op(self) -> Op {
        match self {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        }
    }

    /// What is done in this direction, in the infinitive.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }

    fn ready_op(self) -> Op {
        match self {
            Direction::Read => Op::Readable,
            Direction::Write => Op::Writable,
        }
    }
}

impl Shared {
    pub(crate) fn new(id: SockId, core: &Arc<Core>, user: u64, state: State) -> Self {
        Self { id, core: Arc::clone(core), user: AtomicU64::new(user), state: Mutex::new(state) }
    }

    pub(crate) fn user(&self) -> u64 {
        self.user.load(Ordering::Relaxed)
    }

    /// The set, unless it is gone.
    #[inline]
    pub(crate) fn core(&self, operation: &'static str) -> Result<&Core, Error> {
        match self.core.destroyed() {
            false => Ok(&self.core),
            true => Err(self.refusal(Class::BadSet, operation)),
        }
    }

    #[cold]
    pub(crate) fn error(&self, state: &State, class: Class, operation: &'static str) -> Error {
        self.about(state, Error::new(class, operation))
    }

    /// An error of this sock's, with who is at the other end.
    #[cold]
    pub(crate) fn about(&self, state: &State, error: Error) -> Error {
        error.sock(self.id).set(self.core.id).peer(state.peer.as_deref())
    }

    /// An error for which it does not matter who is at the other end.
    #[cold]
    pub(crate) fn refusal(&self, class: Class, operation: &'static str) -> Error {
        Error::new(class, operation).sock(self.id).set(self.core.id)
    }

    pub(crate) fn event(&self, op: Op, bytes: usize, error: Option<Error>) -> Event {
        let buffers = crate::Buffers::None;
        Event { op, sock: Some(self.id), user: self.user(), bytes, error, buffers }
    }

    /// Refuses what the state does not allow.
    #[inline]
    pub(crate) fn transferable(&self, state: &State, operation: &'static str) -> Result<(), Error> {
        let (class, why) = match &state.life {
            Life::Open => return Ok(()),
            Life::Connecting(_) => (Class::BadSock, "it is not connected yet; wait for its connect event"),
            Life::Listening(_) => (Class::BadSock, "it is a listener; accept from it"),
            Life::Watched => (Class::BadSock, "it is only watched; adopt it to transfer through the engine"),
            Life::Closing(_) => (Class::InProgress, "it is being closed"),
            Life::Closed => (Class::BadSock, "it is closed"),
        };
        Err(self.error(state, class, operation).cause(why))
    }

    /// Refuses a second operation in the same direction, and one on a side that came to its end.
    #[inline]
    pub(crate) fn free(
        &self,
        state: &mut State,
        direction: Direction,
        operation: &'static str,
    ) -> Result<(), Error> {
        let side = state.side(direction);
        match matches!(side.slot, Slot::Empty) && side.end.is_none() {
            true => Ok(()),
            false => Err(self.not_free(state, direction, operation)),
        }
    }

    #[cold]
    fn not_free(&self, state: &mut State, direction: Direction, operation: &'static str) -> Error {
        let side = state.side(direction);
        match &side.end {
            Some(end) if matches!(side.slot, Slot::Empty) => end.again(operation).sock(self.id),
            _ => {
                let error = self.error(state, Class::InProgress, operation);
                error.cause("an operation in this direction is posted; wait for its event")
            }
        }
    }
}

impl Shared {
    /// Ends what is posted on one side, because the sock is closed. What a thread is busy with it ends itself.
    pub(crate) fn cancel(&self, state: &mut State, direction: Direction, sink: Sink<'_>) {
        let slot = &mut state.side(direction).slot;
        match slot {
            Slot::Empty | Slot::Busy => {}
            Slot::Posted(_) => self.end(state, direction, Class::SockClosed, sink),
            Slot::Ready => {
                *slot = Slot::Empty;
                let error = self.error(state, Class::SockClosed, "wait for readiness");
                sink.tell(self.event(direction.ready_op(), 0, Some(error)));
            }
        }
    }

    /// Delivers a posted operation that cannot go on.
    pub(crate) fn end(&self, state: &mut State, direction: Direction, class: Class, sink: Sink<'_>) {
        let error = self.error(state, class, direction.name());
        self.complete(state, direction, Some(error), sink);
    }

    /// Delivers a posted operation.
    #[inline]
    pub(crate) fn complete(
        &self,
        state: &mut State,
        direction: Direction,
        error: Option<Error>,
        sink: Sink<'_>,
    ) {
        let Slot::Posted(posted) = std::mem::take(&mut state.side(direction).slot) else { return };
        sink.tell(Event {
            op: direction.op(),
            sock: Some(self.id),
            user: self.user(),
            bytes: posted.done,
            error,
            buffers: posted.memory.into_buffers(),
        });
    }

    /// Ends a wait for readiness.
    pub(crate) fn tell_ready(&self, state: &mut State, direction: Direction, sink: Sink<'_>) {
        state.side(direction).slot = Slot::Empty;
        sink.tell(self.event(direction.ready_op(), 0, None));
    }

    /// The last busy thread of a sock that is being closed puts in the close event.
    pub(crate) fn idle_at_close(&self, state: &State, sink: Sink<'_>) {
        if !state.busy() {
            sink.push(Item::Close(self.id));
        }
    }

    /// Takes the descriptor out of the set and closes it.
    pub(crate) fn release(&self, state: &mut State, core: &Core) {
        if let Some(native) = state.native.take() {
            core.forget(native.fd.as_fd(), native.pollable);
            match core.options.reset && native.tcp {
                true => super::address::reset(native.fd),
                false => drop(native.fd),
            }
        }
    }

    /// Has the set tell when there is room for writing, now included.
    pub(crate) fn tell_room(&self, state: &mut State) {
        if !state.tells_room {
            state.tells_room = self.register(state, true);
        }
    }

    /// Not any more. TCP sockets only tell when a write found no room, so there the interest stays.
    pub(crate) fn ignore_room(&self, state: &mut State) {
        if state.tells_room && state.native.as_ref().is_some_and(|native| !native.tcp) {
            state.tells_room = !self.register(state, false);
        }
    }

    fn register(&self, state: &State, room: bool) -> bool {
        let Some(native) = state.native.as_ref().filter(|native| native.pollable) else { return false };
        self.core.epoll.modify(native.as_fd(), &mut EpollEvent::new(interest(room), self.id.0)).is_ok()
    }
}

impl Native {
    /// Finds out what kind of descriptor it is.
    pub(crate) fn of(fd: OwnedFd, flags: nix::fcntl::OFlag) -> nix::Result<Self> {
        use nix::sys::socket::{SockType, getsockopt, sockopt};
        use nix::sys::stat::{SFlag, fstat};
        let kind = SFlag::from_bits_truncate(fstat(&fd)?.st_mode) & SFlag::S_IFMT;
        let socket = kind == SFlag::S_IFSOCK;
        let stream = socket && getsockopt(&fd, sockopt::SockType)? == SockType::Stream;
        // A pipe of packets gives one at a time.
        let pipe = kind == SFlag::S_IFIFO && !flags.contains(nix::fcntl::OFlag::O_DIRECT);
        let tcp = stream && matches!(super::address::peer_of(&fd), Ok(Some(_)));
        Ok(Self { fd, socket, tcp, exact: stream || pipe, pollable: true })
    }

    /// A TCP or Unix socket that the engine made itself.
    pub(crate) fn made(fd: OwnedFd, tcp: bool) -> Self {
        Self { fd, socket: true, tcp, exact: true, pollable: true }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
