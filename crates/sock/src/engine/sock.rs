//! One descriptor of a set: what may be asked of it, and how it is posted.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use gasworks_sync::atomic::Ordering;
use nix::errno::Errno;
use nix::poll::PollFlags;

use super::core::Item;
use super::memory::{MOST_PARTS, Memory};
use super::state::{Direction, Life, Native, Posted, Progress, Shared, Sink, Slot, State};
use super::{drive, sys};
use crate::{Class, Error, Op, SetId, SockId};

/// A descriptor in a set (`MPIDU_Sock_t`): a connection, a listener, or whatever was adopted. Clones are the same sock.
///
/// It lives until its [`Op::Close`] event is delivered; dropping handles does not close it.
#[derive(Clone)]
pub struct Sock(pub(crate) Arc<Shared>);

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
            (false, _) if direction == Direction::Write => self.0.tell_room(&mut state),
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
            self.0.tell_room(state);
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

impl std::fmt::Debug for Sock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sock({} in set {})", self.0.id, self.0.core.id)
    }
}
