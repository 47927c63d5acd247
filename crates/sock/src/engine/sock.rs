//! One descriptor of a set: what may be asked of it in each state, and its operations.
//!
//! A sock has two sides, read and write; each has at most one operation posted, and each may come to its end by itself: the
//! peer may have sent its last byte and still be listening, or the connection may be dead for writing while bytes that
//! came before can still be read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use gasworks_sync::atomic::{AtomicU64, Ordering};
use nix::errno::Errno;
use nix::poll::PollFlags;
use parking_lot::Mutex;

use super::connect::Connecting;
use super::core::{Core, Item, Sink};
use super::listen::Listening;
use super::memory::{MOST_PARTS, Memory};
use super::{drive, sys};
use crate::{Class, Error, Event, Op, SetId, SockId};

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

/// A descriptor in a set (`MPIDU_Sock_t`): a connection, a listener, or whatever was adopted. Clones are the same sock.
///
/// It lives until its [`Op::Close`] event is delivered; dropping handles does not close it.
#[derive(Clone)]
pub struct Sock(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) id: SockId,
    pub(crate) core: Arc<Core>,
    user: AtomicU64,
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

    fn busy(&self) -> bool {
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
        self.refusal(class, operation).peer(state.peer.as_deref())
    }

    /// An error for which it does not matter who is at the other end.
    #[cold]
    fn refusal(&self, class: Class, operation: &'static str) -> Error {
        Error::new(class, operation).sock(self.id).set(self.core.id)
    }

    pub(crate) fn event(&self, op: Op, bytes: usize, error: Option<Error>) -> Event {
        let buffers = crate::Buffers::None;
        Event { op, sock: Some(self.id), user: self.user(), bytes, error, buffers }
    }

    /// Refuses what the state does not allow.
    #[inline]
    fn transferable(&self, state: &State, operation: &'static str) -> Result<(), Error> {
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
    fn free(&self, state: &mut State, direction: Direction, operation: &'static str) -> Result<(), Error> {
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

impl Sock {
    /// The sock's number (`MPIDU_Sock_getid`).
    pub fn id(&self) -> SockId {
        let _span = span!("sock_getid");
        self.0.id
    }

    /// The number of its set.
    pub fn set_id(&self) -> SetId {
        self.0.core.id
    }

    /// Sets the word that events of this sock carry from now on (`MPIDU_Sock_set_user_ptr`). Events that are already
    /// queued carry the old one.
    pub fn set_user(&self, user: u64) {
        let _span = span!("sock_set_user_ptr");
        self.0.user.store(user, Ordering::Relaxed);
    }

    /// The word that its events carry.
    pub fn user(&self) -> u64 {
        self.0.user()
    }

    /// Lends the descriptor, for what the engine does not do: names of the ends, credentials, options of its own. Not to
    /// close it or change whether it blocks, nor to transfer bytes, unless it is only [watched](crate::Set::watch).
    ///
    /// # Errors
    /// `BadSock` if there is none: the sock is being connected, or closed.
    pub fn with_fd<R>(&self, f: impl FnOnce(BorrowedFd<'_>) -> R) -> Result<R, Error> {
        let state = self.0.state.lock();
        match &state.native {
            Some(native) => Ok(f(native.as_fd())),
            None => Err(self.0.error(&state, Class::BadSock, "lend the descriptor").cause("there is none")),
        }
    }

    /// Reads what is there now (`MPIDU_Sock_read`); 0: nothing is.
    ///
    /// # Errors
    /// `InProgress` while a read is posted, `ConnClosed` at the end of the stream, and what the state does not allow.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Error> {
        let _span = span!("sock_read");
        let len = into.len();
        let read = |native: &Native| sys::read(native.fd.as_fd(), native.socket, into);
        self.now(Direction::Read, "read", len, read)
    }

    /// Like [`read`](Self::read), into several buffers (`MPIDU_Sock_readv`).
    pub fn readv(&self, into: &mut [std::io::IoSliceMut<'_>]) -> Result<usize, Error> {
        let _span = span!("sock_readv");
        let len = self.parts("readv", into.iter().map(|part| part.len()))?;
        self.now(Direction::Read, "readv", len, |native| sys::readv(native.fd.as_fd(), into))
    }

    /// Writes what there is room for now (`MPIDU_Sock_write`); 0: there is none.
    ///
    /// # Errors
    /// `InProgress` while a write is posted, `ConnClosed` if nobody reads any more, and what the state does not allow.
    pub fn write(&self, from: &[u8]) -> Result<usize, Error> {
        let _span = span!("sock_write");
        let write = |native: &Native| sys::write(native.fd.as_fd(), native.socket, from);
        self.now(Direction::Write, "write", from.len(), write)
    }

    /// Like [`write`](Self::write), from several buffers (`MPIDU_Sock_writev`).
    pub fn writev(&self, from: &[std::io::IoSlice<'_>]) -> Result<usize, Error> {
        let _span = span!("sock_writev");
        let len = self.parts("writev", from.iter().map(|part| part.len()))?;
        let write = |native: &Native| sys::writev(native.fd.as_fd(), native.socket, from);
        self.now(Direction::Write, "writev", len, write)
    }

    fn parts(
        &self,
        operation: &'static str,
        lens: impl ExactSizeIterator<Item = usize>,
    ) -> Result<usize, Error> {
        self.check_parts(operation, lens.len())?;
        Ok(lens.sum())
    }

    #[inline]
    fn check_parts(&self, operation: &'static str, parts: usize) -> Result<(), Error> {
        if (1..=MOST_PARTS).contains(&parts) { Ok(()) } else { Err(self.bad_parts(operation, parts)) }
    }

    #[cold]
    fn bad_parts(&self, operation: &'static str, parts: usize) -> Error {
        let why = format!("{parts} buffers were given; give 1 to {MOST_PARTS}");
        self.0.refusal(Class::BadLen, operation).cause(why)
    }

    fn now(
        &self,
        direction: Direction,
        operation: &'static str,
        len: usize,
        call: impl FnOnce(&Native) -> nix::Result<usize>,
    ) -> Result<usize, Error> {
        if len == 0 {
            let error = self.0.refusal(Class::BadLen, operation);
            return Err(error.cause("no bytes were asked for; give a buffer of at least one"));
        }
        self.0.core(operation)?;
        let state = &mut *self.0.state.lock();
        self.0.transferable(state, operation)?;
        self.0.free(state, direction, operation)?;
        let Some(native) = &state.native else {
            return Err(self.0.error(state, Class::BadSock, operation));
        };
        let result = call(native);
        match drive::note(&self.0, state, direction, operation, len, result) {
            drive::Outcome::Moved(bytes) => Ok(bytes),
            drive::Outcome::Blocked => Ok(0),
            drive::Outcome::Ended(error) => Err(error),
        }
    }

    /// Posts a read (`MPIDU_Sock_post_read`): it takes at least `min` and at most `max` bytes into the beginning of `into`,
    /// which comes back in the [`Op::Read`] event.
    ///
    /// Give `max` more than you expect: a read that does not fill its buffer has found all there is, which saves the call
    /// that would find nothing.
    ///
    /// # Errors
    /// `BadLen` unless 1 <= `min` <= `max` <= the buffer's length, `InProgress` while a read is posted, `ConnClosed` at the
    /// end of the stream, and what the state does not allow. The buffer is dropped then.
    pub fn post_read(
        &self,
        into: Vec<u8>,
        min: usize,
        max: usize,
        progress: Option<Progress>,
    ) -> Result<(), Error> {
        self.post_transfer(Direction::Read, Memory::One(into), min, max, progress)
    }

    /// Posts a read into several buffers, one after the other (`MPIDU_Sock_post_readv`): at least `min` bytes, at most as
    /// many as they hold.
    pub fn post_readv(
        &self,
        into: Vec<Vec<u8>>,
        min: usize,
        progress: Option<Progress>,
    ) -> Result<(), Error> {
        let memory = Memory::Many(into);
        let max = memory.len();
        self.post_transfer(Direction::Read, memory, min, max, progress)
    }

    /// Posts a write (`MPIDU_Sock_post_write`): at least `min` and at most `max` bytes from the beginning of `from`, which
    /// comes back in the [`Op::Write`] event. What can be written now is written now.
    ///
    /// # Errors
    /// As [`post_read`](Self::post_read).
    pub fn post_write(
        &self,
        from: Vec<u8>,
        min: usize,
        max: usize,
        progress: Option<Progress>,
    ) -> Result<(), Error> {
        self.post_transfer(Direction::Write, Memory::One(from), min, max, progress)
    }

    /// Posts a write from several buffers, one after the other (`MPIDU_Sock_post_writev`): at least `min` bytes, at most
    /// all.
    pub fn post_writev(
        &self,
        from: Vec<Vec<u8>>,
        min: usize,
        progress: Option<Progress>,
    ) -> Result<(), Error> {
        let memory = Memory::Many(from);
        let max = memory.len();
        self.post_transfer(Direction::Write, memory, min, max, progress)
    }

    #[inline(always)]
    pub(crate) fn post_transfer(
        &self,
        direction: Direction,
        memory: Memory,
        min: usize,
        max: usize,
        progress: Option<Progress>,
    ) -> Result<(), Error> {
        let _span = match (direction, memory.is_vectored()) {
            (Direction::Read, false) => span!("sock_post_read"),
            (Direction::Read, true) => span!("sock_post_readv"),
            (Direction::Write, false) => span!("sock_post_write"),
            (Direction::Write, true) => span!("sock_post_writev"),
        };
        let operation = match direction {
            Direction::Read => "post a read",
            Direction::Write => "post a write",
        };
        self.check_parts(operation, memory.parts())?;
        if min < 1 || min > max || max > memory.len() {
            let why = format!(
                "min {min}, max {max} and {} bytes of memory were given; give 1 <= min <= max <= memory",
                memory.len()
            );
            return Err(self.0.refusal(Class::BadLen, operation).cause(why));
        }
        let core = self.0.core(operation)?;
        let mut state = self.0.state.lock();
        self.0.transferable(&state, operation)?;
        self.0.free(&mut state, direction, operation)?;
        // A progress function is called by threads that wait, so all of its operation is left to them.
        let deferred = progress.is_some();
        let side = state.side(direction);
        side.slot = Slot::Posted(Posted { memory, min, max, done: 0, progress });
        match (side.ready, deferred) {
            (true, true) => core.push(Item::Attend(self.0.id)),
            (true, false) => drive::drive(&self.0, &mut state, direction, Sink::loud(core)),
            // The write before found no room for all it had.
            (false, _) if direction == Direction::Write => core.tell_room(&self.0, &mut state),
            (false, _) => {}
        }
        Ok(())
    }

    /// Posts a wait for bare readiness: a read, or a write, would not block. It ends with [`Op::Readable`] or
    /// [`Op::Writable`], at once if that is so already. For descriptors that are no streams of bytes, such as that of a
    /// process, and for those that are only [watched](crate::Set::watch).
    ///
    /// # Errors
    /// `InProgress` while an operation in this direction is posted, and what the state does not allow.
    pub fn post_ready(&self, direction: Direction) -> Result<(), Error> {
        const OPERATION: &str = "post a wait for readiness";
        let _span = span!("sock_post_ready");
        let core = self.0.core(OPERATION)?;
        let state = &mut *self.0.state.lock();
        if !matches!(state.life, Life::Watched) {
            self.0.transferable(state, OPERATION)?;
        }
        self.0.free(state, direction, OPERATION)?;
        state.side(direction).slot = Slot::Ready;
        if direction == Direction::Write {
            core.tell_room(&self.0, state);
        }
        // The set tells of changes only; this is how it stands now.
        let what = match direction {
            Direction::Read => PollFlags::POLLIN,
            Direction::Write => PollFlags::POLLOUT,
        };
        let ready = match &state.native {
            Some(native) => sys::is_ready(native.fd.as_fd(), what),
            None => Err(Errno::EBADF),
        };
        match ready {
            Ok(true) => self.0.tell_ready(state, direction, Sink::loud(core)),
            // Nobody has found out so far, if the descriptor is only watched.
            Ok(false) => state.side(direction).ready = false,
            Err(e) => {
                state.side(direction).slot = Slot::Empty;
                return Err(self.0.error(state, Class::Fail, OPERATION).errno(e));
            }
        }
        Ok(())
    }

    /// Closes the sock (`MPIDU_Sock_post_close`).
    ///
    /// Posted operations end with the error `SockClosed`, each in its own event, a pending connect in a connect event. The
    /// last event is [`Op::Close`]. A connection is closed at once. From a listener [`Set::accept`](crate::Set::accept)
    /// still takes what waits until that event is delivered; what is left then is reset and counted in its `bytes`.
    ///
    /// # Errors
    /// `BadSock` the second time.
    pub fn post_close(&self) -> Result<(), Error> {
        const OPERATION: &str = "post a close";
        let _span = span!("sock_post_close");
        let core = self.0.core(OPERATION)?;
        let state = &mut *self.0.state.lock();
        let sink = Sink::loud(core);
        let listening = match std::mem::replace(&mut state.life, Life::Closing(None)) {
            Life::Connecting(connecting) => {
                connecting.abandon(core);
                let error = self.closed(state, "connect");
                sink.tell(self.0.event(Op::Connect, 0, Some(error)));
                None
            }
            Life::Open | Life::Watched => None,
            Life::Listening(listening) => Some(listening),
            before @ (Life::Closing(_) | Life::Closed) => {
                state.life = before;
                let error = self.0.error(state, Class::BadSock, OPERATION);
                return Err(error.cause("it is closed, or being closed, already"));
            }
        };
        for direction in [Direction::Read, Direction::Write] {
            self.0.cancel(state, direction, sink);
        }
        match listening {
            Some(listening) => state.life = Life::Closing(Some(listening)),
            None => self.0.release(state, core),
        }
        if !state.busy() {
            sink.push(Item::Close(self.0.id));
        }
        Ok(())
    }

    fn closed(&self, state: &State, operation: &'static str) -> Error {
        self.0.error(state, Class::SockClosed, operation)
    }
}

impl Shared {
    /// Ends what is posted on one side, because the sock is closed. What a thread is busy with it ends itself.
    fn cancel(&self, state: &mut State, direction: Direction, sink: Sink<'_>) {
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
        let error = self.error(state, class, drive::name(direction));
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

impl std::fmt::Debug for Sock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sock({} in set {})", self.0.id, self.0.core.id)
    }
}
