//! Transfers on the NIC: puts, gets, atomic operations, and Longs whose payload goes first.
//!
//! # Invariants
//! - put.1: the local side of a transfer stays mapped and is not used otherwise until the operation has completed: the caller of
//!   [`Engine::transfer`] or [`Engine::transfer_and_wait`] promises it; a Long request borrows its payload and returns only when the
//!   put is over; a Long reply's put has a copy that the operation keeps.

use super::by_message::ByMessage;
use super::by_process::ByProcess;
use super::machines::{Machine, Turned};
use super::send::Way;
use super::{Engine, Outgoing, thread};
use crate::message::{Encoded, Returned};
use crate::ops::{After, Finished, Keep, NotStarted, Ops, Sent};
use crate::wire::{Class, Reservation, Wire, WireError};
use crate::{Categories, CoreMode, Domains, Error, OpId, Rank, Rdma};
use gasworks_memory::atomic::{Change, Update};
use gasworks_memory::{RegionId, Rights};
use gasworks_rdma::{Atomics, Direction, EngineError, NicError, Progress, Source, There};
use gasworks_sync::RawSlice;
use gasworks_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

/// A step that could not be done at once and is tried again at every poll.
enum Late {
    /// The header of a Long whose payload has landed.
    Header { to: Rank, class: Class, head: Encoded, own: Returned },
    /// A Long reply, for whose put there was no free descriptor when its handler ran.
    Reply { to: Rank, offset: u64, payload: Arc<[u8]>, head: Encoded, own: Returned },
}

/// What is under way on the NIC, or by messages in its place.
pub(super) struct Transfers<M: CoreMode> {
    rdma: Domains<M>,
    /// How regions are reached that are not mapped, where there is no NIC.
    by_message: OnceLock<ByMessage<M>>,
    /// And how that is faster, where the system allows it.
    by_process: OnceLock<ByProcess>,
    ops: Ops<M>,
    /// How many queries were sent and not answered.
    queries: AtomicUsize,
}

impl<M: CoreMode> Transfers<M> {
    pub(super) fn new(rdma: Domains<M>) -> Self {
        let (by_message, by_process) = (OnceLock::new(), OnceLock::new());
        Self { rdma, by_message, by_process, ops: Ops::default(), queries: AtomicUsize::new(0) }
    }

    /// The engines of the network interface.
    #[inline(always)]
    pub(super) fn rdma(&self) -> &Domains<M> {
        &self.rdma
    }

    /// Has regions that are not mapped be reached by messages of so many bytes.
    pub(super) fn open_messages(&self, max_medium: usize) -> Result<(), EngineError> {
        if self.by_message.get().is_none() {
            // Another thread may have been as fast.
            let _ = self.by_message.set(ByMessage::new(max_medium)?);
        }
        Ok(())
    }

    /// And in their processes, where they allow it; nothing else is to be had if the system has no random bytes.
    pub(super) fn open_processes(&self) -> Option<&ByProcess> {
        if self.by_process.get().is_none() {
            let _ = self.by_process.set(ByProcess::new().ok()?);
        }
        self.by_process.get()
    }

    /// How many transfers are under way.
    fn pending(&self) -> usize {
        self.rdma.pending() + self.by_message.get().map_or(0, |by_message| by_message.rdma.pending())
    }

    /// Counts queries that are sent, and those that are answered or were not sent after all.
    pub(super) fn queries(&self) -> &AtomicUsize {
        &self.queries
    }

    /// Enters an operation, alone or in a set.
    pub(super) fn start(
        &self,
        set: Option<OpId>,
        after: Option<After>,
        counts: Categories,
        keep: Option<Keep<M>>,
    ) -> Result<OpId, NotStarted<M>> {
        match set {
            None => Ok(self.ops.start(after, counts, keep)),
            Some(set) => {
                self.ops.start_in(set, after, counts, keep).map_err(|(unknown, keep)| (unknown.into(), keep))
            }
        }
    }

    /// What the operations are entered in.
    pub(super) fn ops(&self) -> &Ops<M> {
        &self.ops
    }
}

/// Where transfers are still under way, the network may go on using what their operations keep; it is never freed then.
impl<M: CoreMode> Drop for Transfers<M> {
    fn drop(&mut self) {
        if self.pending() > 0 {
            self.ops.leak();
        }
    }
}

/// A put, a get or an atomic operation to be started.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// The other rank.
    pub peer: Rank,
    /// Where in its segment.
    pub offset: u64,
    /// The bytes here; of an atomic operation, where what the word was goes, if it is fetched.
    pub local: *mut u8,
    /// How many; of an atomic operation, as many as the word has.
    pub len: usize,
    /// The set that it is part of, if it has no event of its own.
    pub set: Option<OpId>,
    /// Whether the local completion of a put is asked for apart from the rest.
    pub local_apart: bool,
}

impl<M: CoreMode> Engine<M> {
    /// Starts a transfer with the segment of an unmapped peer. The operation that comes back must be tested until it is
    /// done, or abandoned, unless it is part of a set; `keep` lives until the transfer completes.
    ///
    /// # Safety
    /// `local` stays mapped for `len` bytes until the operation completes, unchanged for a put and untouched for a
    /// get, and for an atomic operation that fetches.
    ///
    /// # Errors
    /// [`Error::is_busy`] if no descriptor is free; the rank or range is wrong; there is no network; the set is unknown.
    pub unsafe fn transfer(
        &self,
        transfer: &Transfer,
        keep: Option<Box<M::Keep>>,
    ) -> Result<OpId, NotStarted<M>> {
        let (set, counts) = (transfer.set, counts_as(transfer));
        let rdma = match self.may_transfer(transfer) {
            Ok(rdma) => rdma,
            Err(error) => return Err((error, keep)),
        };
        let id = self.transfers.start(set, None, counts, keep)?;
        // SAFETY: put.1: the caller promises that `local` stays mapped and is not used otherwise until the operation has completed.
        let started = unsafe { self.hand_over(rdma, transfer, id.to_bits()) };
        started.map(|()| id).map_err(|error| (error, self.transfers.ops.withdraw(id)))
    }

    /// As [`transfer`](Self::transfer), and returns when it is over, whatever else goes wrong meanwhile: that is said after it.
    ///
    /// # Safety
    /// `local` is mapped for `len` bytes, unchanged for a put and untouched otherwise, while the call lasts.
    ///
    /// # Errors
    /// Those of [`transfer`](Self::transfer), but [`Error::is_busy`] only if `immediate`; the network failed; whatever a poll finds wrong.
    pub unsafe fn transfer_and_wait(&self, transfer: &Transfer, immediate: bool) -> Result<(), Error> {
        let rdma = self.may_transfer(transfer)?;
        let (mut sleeper, mut other) = (self.sleeper(), None);
        let id = self.transfers.ops.start(None, counts_as(transfer), None);
        loop {
            // SAFETY: put.1: the caller promises `local` for this call, which ends when the transfer has ended, or was never started.
            let refused = match unsafe { self.hand_over(rdma, transfer, id.to_bits()) } {
                Ok(()) => break,
                // What is named may have been withdrawn meanwhile.
                Err(error) if error.is_busy() && !immediate => {
                    self.turn(&mut sleeper).and_then(|()| self.may_transfer(transfer).map(drop)).err()
                }
                Err(error) => Some(error),
            };
            if let Some(error) = refused {
                self.transfers.ops.withdraw(id);
                return Err(error);
            }
        }
        loop {
            if let Some((ended, _)) = self.transfers.ops.test(id)? {
                let during = during(transfer.direction);
                return ended.map_err(|cause| Error::Nic { during, cause }).and(other.map_or(Ok(()), Err));
            }
            if let Err(error) = self.turn(&mut sleeper) {
                other.get_or_insert(error);
            }
        }
    }

    /// Whether it may be started, by which engine.
    fn may_transfer(&self, transfer: &Transfer) -> Result<&Rdma<M, M::Nic>, Error> {
        let &Transfer { direction, peer, offset, len, .. } = transfer;
        let during = during(direction);
        thread::may_communicate(during)?;
        if self.is_over() && !self.has_network() {
            // Nobody answers messages any more.
            return Err(Error::Over);
        }
        self.peers.reach(peer, offset, len, rights(direction)).map_err(Error::memory(during))?;
        self.rdma_to(offset).ok_or(Error::Unreachable { during, rank: peer })
    }

    /// What moves bytes to and from a place that is not mapped, if anything does.
    pub(super) fn rdma_to(&self, place: u64) -> Option<&Rdma<M, M::Nic>> {
        let by_message =
            || RegionId::of(place).and_then(|_| self.by_message()).map(|by_message| &by_message.rdma);
        self.transfers.rdma.mine().or_else(by_message)
    }

    /// What reaches other processes, where there is no network.
    pub(super) fn by_process(&self) -> Option<&ByProcess> {
        self.transfers.by_process.get()
    }

    /// What moves them by messages, where there is no network.
    pub(super) fn by_message(&self) -> Option<&ByMessage<M>> {
        self.transfers.by_message.get()
    }

    /// Gives it to the engine below.
    ///
    /// # Safety
    /// put.1, for `local`.
    unsafe fn hand_over(&self, rdma: &Rdma<M, M::Nic>, transfer: &Transfer, token: u64) -> Result<(), Error> {
        let &Transfer { direction, peer, offset, local, len, local_apart, .. } = transfer;
        // SAFETY: put.1: the caller promises `len` bytes at `local` until `token` comes back, which is when this has returned.
        let copied = unsafe { self.copy_by_process(direction, peer, offset, RawSlice::new(local, len)) };
        if let Some(result) = copied {
            self.go_on(token, Progress::Done(result));
            self.note_work();
            return Ok(());
        }
        let (there, source) =
            (self.at(peer, offset), if local_apart { Source::WantedBack } else { Source::Kept });
        // SAFETY: put.1: the caller promises `len` bytes at `local`, or those of the word if it fetches, until `token` comes back.
        let started = unsafe {
            match direction {
                Direction::Put => rdma.put(there, local, len, source, token),
                Direction::Get => rdma.get(there, local, len, token),
                Direction::Update(update) => rdma.update(there, update, local, token),
            }
        };
        if let Some(by_message) = self.by_message().filter(|_| started.is_ok()) {
            by_message.go_on(self);
        }
        started.map_err(|error| nic_error(during(direction), peer, error))
    }

    /// The atomic operations that the network does.
    pub fn atomics(&self) -> Atomics {
        self.transfers.rdma.mine().map_or(Atomics::NONE, |rdma| rdma.atomics())
    }

    /// A set of operations, in which there are none yet. It is tested, waited for and abandoned like one of them.
    pub fn open_set(&self) -> OpId {
        self.transfers.ops.open()
    }

    /// As [`open_set`](Self::open_set), and keeps something until all of it is over.
    pub fn open_set_keeping(&self, keep: Box<M::Keep>) -> OpId {
        self.transfers.ops.open_keeping(keep)
    }

    /// An operation of a layer above, which [ends](Self::end_operation) it, and keeps something until then. It has no leaves.
    pub fn start_operation(&self, keep: Option<Box<M::Keep>>) -> OpId {
        // As something: what counts as nothing is over.
        self.transfers.ops.start(None, Categories::UPDATE, keep)
    }

    /// It is over; if not `well`, for a reason that is told otherwise.
    pub fn end_operation(&self, id: OpId, well: bool) {
        let result = if well { Ok(()) } else { Err(NicError::Failed) };
        self.transfers.ops.complete(id.to_bits(), result);
    }

    /// Whether an operation, a set or a leaf of one has finished; one that is not a leaf is forgotten then, with its leaves.
    /// Does not poll.
    ///
    /// # Errors
    /// The event is unknown here.
    pub fn test(&self, id: OpId) -> Result<Option<Finished<M>>, Error> {
        Ok(self.transfers.ops.test(id)?)
    }

    /// Like [`test`](Self::test), and has `waker` woken by the poll that completes it if it has not finished.
    ///
    /// # Errors
    /// The event is unknown here.
    pub fn test_or_wake(&self, id: OpId, waker: &Waker) -> Result<Option<Finished<M>>, Error> {
        Ok(self.transfers.ops.test_or_wake(id, waker)?)
    }

    /// Nobody will ask for this operation any more; it goes on, and what it keeps stays alive until it completes.
    pub fn abandon(&self, id: OpId) {
        self.transfers.ops.abandon(id);
    }

    /// A place in the segment or a region of a rank that exists.
    fn at(&self, peer: Rank, place: u64) -> There<'_> {
        let (key, base, offset) =
            if self.has_network() { self.peers.remote(peer, place) } else { (&[][..], 0, place) };
        There { peer, key, base, offset }
    }

    /// Polls until nothing is under way on the NIC or in other processes, nothing is postponed, all queries are answered, and all that was
    /// sent has arrived.
    ///
    /// # Errors
    /// Whatever a poll finds wrong.
    pub fn drain(&self) -> Result<(), Error> {
        self.by_process().into_iter().for_each(ByProcess::settle);
        let settled = || self.router.wires().all(Wire::is_settled);
        let answered = || self.transfers.queries.load(Relaxed) == 0 && self.transfers.pending() == 0;
        self.wait_until(|| self.machines.busy() == 0 && answered() && settled())
    }

    /// Whether what this rank has sent may still be on its way when it has met the others for the last time.
    pub fn has_network(&self) -> bool {
        !self.transfers.rdma.is_empty()
    }

    /// All ranks have met, after each had [drained](Self::drain): nobody sends anything any more.
    pub fn closed(&self) {
        self.router.wires().for_each(Wire::closed);
    }

    /// Whether something is under way that only polling moves.
    #[inline(never)]
    pub(super) fn is_busy(&self) -> bool {
        self.machines.busy() > 0 || self.transfers.rdma.pending() > 0
    }

    /// Moves transfers on, those of this thread's domain or of all, and does what is to be done after those that have completed.
    pub(super) fn poll_rdma(&self, around: bool) -> usize {
        if self.transfers.rdma.is_empty() {
            return 0;
        }
        let completed = self.transfers.rdma.poll(around, &mut |token, progress| self.go_on(token, progress));
        if completed > 0 {
            // Whatever this thread waits for itself, the operation may be one that another thread waits for.
            self.note_work();
        }
        completed
    }

    /// A transfer has come so far.
    pub(super) fn go_on(&self, token: u64, progress: Progress) {
        match progress {
            Progress::Copied => self.transfers.ops.complete_locally(token),
            Progress::Done(result) => self.act(self.transfers.ops.complete(token, result), result),
        }
    }

    /// Does what is to be done after an operation that ended so; `None` if its end was told before.
    fn act(&self, after: Option<Option<After>>, result: Result<(), NicError>) {
        match (after, result) {
            (Some(Some(After::Reply { to, head, own })), Ok(())) => {
                self.send_header(to, Class::Reply, head, own);
            }
            (Some(Some(After::Request { to, head })), Ok(())) => {
                self.send_header(to, Class::Request, head, Returned::default());
            }
            // Whoever has the event is told.
            (Some(Some(After::Request { to, .. })), Err(_)) => self.give_back(to, 0),
            (Some(Some(After::Reply { to, own, .. })), Err(cause)) => {
                self.reply_failed(to, own, Error::Nic { during: "put of a long reply", cause });
            }
            // The header is there already, and who could have asked has been told that the payload is free.
            (Some(Some(After::Beside)) | None, Err(cause)) => {
                self.fail_later(Error::Nic { during: "put of a long message", cause });
            }
            (Some(None | Some(After::Answer { .. } | After::Beside)) | None, _) => {}
        }
    }

    pub(super) fn send_header(&self, to: Rank, class: Class, mut head: Encoded, own: Returned) {
        if self.try_header(to, class, &mut head, own) == Turned::Busy {
            self.postpone(Late::Header { to, class, head, own });
        }
    }

    /// Sends the header of a Long whose payload has landed, if there is room.
    fn try_header(&self, to: Rank, class: Class, head: &mut Encoded, own: Returned) -> Turned {
        match self.transmit_head(to, class, head, own) {
            Ok(()) => {}
            Err(WireError::Busy { .. }) => return Turned::Busy,
            Err(error) if class == Class::Reply => self.reply_failed(to, own, error.into()),
            Err(error) => {
                self.give_back(to, 0);
                self.fail_later(error.into());
            }
        }
        Turned::Ended
    }

    /// The requester gets its credit back all the same.
    fn reply_failed(&self, to: Rank, own: Returned, error: Error) {
        self.account.owed().owe(to, own.bytes);
        self.fail_later(error);
    }

    fn postpone(&self, late: Late) {
        self.start_machine(Arc::new(late));
    }

    /// Room for the header of a Long, which is to leave beside its payload, and the number that the NIC tells when that has landed; `None`
    /// where the header has to wait for it.
    fn beside(&self, to: Rank, class: Class) -> Result<Option<(Reservation<'_>, u32)>, WireError> {
        let mut room = self.reserve(to, class, 0)?;
        match self.router.to(to).beside(&mut room) {
            Some(number) => Ok(Some((room, number))),
            None => {
                self.cancel(room);
                Ok(None)
            }
        }
    }

    /// A header leaves whose payload is on its way; what is wrong with that the next poll tells.
    fn send_beside(&self, room: Reservation, head: &mut Encoded, own: Returned) {
        self.send_reserved(room, head, own).unwrap_or_else(|error| self.fail_later(error.into()));
    }

    /// A Long request whose payload goes by messages: returns when the header has left. It has no credit before: each message takes one.
    pub(super) fn request_by_messages(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        let (peer, offset, payload) = (to, message.landing, message.payload);
        let (direction, local) = (Direction::Put, payload.as_ptr().cast_mut());
        let whole =
            Transfer { direction, peer, offset, local, len: payload.len(), set: None, local_apart: false };
        // SAFETY: put.1: the payload is borrowed until this returns, which is when the put is over.
        unsafe { self.transfer_and_wait(&whole, false) }?;
        let mut sleeper = self.sleeper();
        loop {
            let sent = self.take_credit(to, 0).and_then(|()| {
                let own = Returned::default();
                let sent = self.transmit(to, Class::Request, message, Way::Nic, &[], own);
                sent.inspect_err(|_| self.give_back(to, 0))
            });
            match sent {
                Err(error) if error.is_busy() => self.turn(&mut sleeper)?,
                sent => return sent,
            }
        }
    }

    /// A Long request by the NIC: puts the payload, waits until the source may be used again (completions only; no
    /// messages are dispatched), and has the header leave beside the payload, or when it has landed.
    pub(super) fn put_then_request(&self, to: Rank, message: &Outgoing<'_>) -> Result<(), Error> {
        let Some(rdma) = self.transfers.rdma.mine() else {
            return Err(Error::Unreachable { during: "long message", rank: to });
        };
        let room = self.beside(to, Class::Request)?;
        let is_beside = room.is_some();
        let (counts, source) = match is_beside {
            true => (Categories::LOCAL, Source::WantedBack),
            false => (Categories::PUT_ALONE, Source::Kept),
        };
        let id = self.transfers.ops.start(None, counts, None);
        let (there, number) = (self.at(to, message.landing), room.as_ref().map(|(_, number)| *number));
        // SAFETY: put.1: the payload is borrowed until this returns, which is once its source is free, or at once if nothing was started.
        let started = unsafe { put(rdma, there, message.payload, source, number, id) };
        let mut head = self.encode(message, false, false);
        if let Err(error) = started {
            self.transfers.ops.withdraw(id);
            room.into_iter().for_each(|(room, _)| self.cancel(room));
            return Err(nic_error("put of a long message", to, error));
        }
        room.into_iter().for_each(|(room, _)| self.send_beside(room, &mut head, Returned::default()));
        let result = loop {
            self.poll_rdma(false);
            match self.transfers.ops.test(id)? {
                Some((result, _)) => break result,
                None => gasworks_sync::spin(),
            }
        };
        // The header may be there: without its payload nobody takes it.
        result.map_err(|cause| Error::Nic { during: "put of a long message", cause })?;
        if !is_beside {
            self.send_header(to, Class::Request, head, Returned::default());
        }
        Ok(())
    }

    /// Sends a request whose payload may be in use on return: where it goes by the NIC, the operation that comes back is
    /// done when the payload may be used again (the specification's local completion, as an event). Otherwise the payload
    /// has been copied, and there is none; what was to be kept comes back. With a `set` the operation is part of that, and
    /// nobody asks for it alone.
    ///
    /// # Safety
    /// put.1, for the payload of `message`: `'static` bytes, or kept by `keep`, or the caller waits for the operation.
    ///
    /// # Errors
    /// [`Error::is_busy`] if a credit, room or a descriptor is short, and those of [`request`](Self::request).
    pub unsafe fn try_request_nb(
        &self,
        to: Rank,
        message: &Outgoing<'_>,
        set: Option<OpId>,
        keep: Option<Box<M::Keep>>,
    ) -> Result<Sent<M>, NotStarted<M>> {
        let by_nic = thread::may_communicate("active message request")
            .and_then(|()| self.peer_exists("active message request", to))
            .and_then(|()| {
                Ok(to != self.rank && self.has_network() && matches!(self.check(to, message)?, Way::Nic))
            });
        let by_nic = match by_nic {
            Ok(by_nic) => by_nic,
            Err(error) => return Err((error, keep)),
        };
        if !by_nic {
            return match self.try_request(to, message) {
                Ok(()) => Ok(Err(keep)),
                Err(error) => Err((error, keep)),
            };
        }
        if let Err(error) = self.take_credit(to, 0) {
            return Err((error, keep));
        }
        // SAFETY: put.1: the caller promises that the payload stays as it is until the operation says so: `'static`, kept by `keep`, or
        // waited for.
        unsafe { self.start_request(to, message, set, keep) }.map(Ok).inspect_err(|_| self.give_back(to, 0))
    }

    /// Starts a Long request by the NIC, for which a credit has been taken.
    ///
    /// # Safety
    /// put.1, for the payload of `message`.
    unsafe fn start_request(
        &self,
        to: Rank,
        message: &Outgoing<'_>,
        set: Option<OpId>,
        keep: Option<Box<M::Keep>>,
    ) -> Result<OpId, NotStarted<M>> {
        let Some(rdma) = self.transfers.rdma.mine() else {
            return Err((Error::Unreachable { during: "long message", rank: to }, keep));
        };
        let room = match self.beside(to, Class::Request) {
            Ok(room) => room,
            Err(error) => return Err((error.into(), keep)),
        };
        let mut head = self.encode(message, false, false);
        let number = room.as_ref().map(|(_, number)| *number);
        let cancel = |room: Option<(Reservation, u32)>| {
            room.into_iter().for_each(|(room, _)| self.cancel(room));
        };
        let after = room.is_none().then_some(After::Request { to, head });
        let id = match self.transfers.start(set, after, Categories::LOCAL, keep) {
            Ok(id) => id,
            Err(not_started) => {
                cancel(room);
                return Err(not_started);
            }
        };
        let there = self.at(to, message.landing);
        // SAFETY: put.1: the caller promises that the payload stays mapped and unchanged until the operation is done.
        let started = unsafe { put(rdma, there, message.payload, Source::WantedBack, number, id) };
        if let Err(error) = started {
            cancel(room);
            return Err((nic_error("put of a long message", to, error), self.transfers.ops.withdraw(id)));
        }
        room.into_iter().for_each(|(room, _)| self.send_beside(room, &mut head, Returned::default()));
        Ok(id)
    }

    /// A Long reply by the NIC. A handler must not wait, so the payload is copied, and the header leaves beside it, or by completion
    /// action.
    pub(super) fn put_then_reply(
        &self,
        to: Rank,
        message: &Outgoing<'_>,
        own: Returned,
    ) -> Result<(), Error> {
        let mut head = self.encode(message, true, false);
        let (offset, payload) = (message.landing, message.payload.into());
        if self.start_reply(to, offset, &payload, &mut head, own)? == Turned::Busy {
            self.postpone(Late::Reply { to, offset, payload, head, own });
        }
        Ok(())
    }

    /// Starts the put of a Long reply, if there is a descriptor.
    fn start_reply(
        &self,
        to: Rank,
        offset: u64,
        payload: &Arc<[u8]>,
        head: &mut Encoded,
        own: Returned,
    ) -> Result<Turned, Error> {
        let Some(rdma) = self.transfers.rdma.mine() else {
            return Err(Error::Unreachable { during: "long reply", rank: to });
        };
        let room = self.beside(to, Class::Reply)?;
        let number = room.as_ref().map(|(_, number)| *number);
        let after = if room.is_some() { After::Beside } else { After::Reply { to, head: *head, own } };
        let id = self.transfers.ops.start(Some(after), Categories::PUT_ALONE, Some(M::keep(payload.clone())));
        self.transfers.ops.abandon(id); // nobody asks for it; the copy lives until it completes
        // SAFETY: put.1: the operation keeps a share of `payload`, the copy, until the put is over; nobody writes to it.
        let started = unsafe { put(rdma, self.at(to, offset), payload, Source::Kept, number, id) };
        match started {
            Ok(()) => {
                room.into_iter().for_each(|(room, _)| self.send_beside(room, head, own));
                Ok(Turned::Ended)
            }
            Err(error) => {
                self.transfers.ops.withdraw(id);
                room.into_iter().for_each(|(room, _)| self.cancel(room));
                match error {
                    EngineError::Busy { .. } => Ok(Turned::Busy),
                    error => Err(nic_error("put of a long reply", to, error)),
                }
            }
        }
    }
}

impl<M: CoreMode> Machine<M> for Late {
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error> {
        Ok(match *self {
            Self::Header { to, class, mut head, own } => engine.try_header(to, class, &mut head, own),
            Self::Reply { to, offset, ref payload, mut head, own } => {
                engine.start_reply(to, offset, payload, &mut head, own).unwrap_or_else(|error| {
                    engine.reply_failed(to, own, error);
                    Turned::Ended
                })
            }
        })
    }
}

fn during(direction: Direction) -> &'static str {
    match direction {
        Direction::Put => "put",
        Direction::Get => "get",
        Direction::Update(_) => "atomic operation",
    }
}

fn counts_as(transfer: &Transfer) -> Categories {
    match transfer.direction {
        Direction::Put if transfer.local_apart => Categories::PUT,
        Direction::Put => Categories::PUT_ALONE,
        Direction::Get => Categories::GET,
        Direction::Update(update) => counts_of(&update),
    }
}

fn rights(direction: Direction) -> Rights {
    match direction {
        Direction::Put => Rights::WRITE,
        Direction::Get => Rights::READ,
        Direction::Update(_) => Rights::ATOMIC,
    }
}

/// What an atomic operation counts as: one that only writes as a put, one that only reads as a get.
pub fn counts_of(update: &Update) -> Categories {
    match update.change {
        Change::Get => Categories::GET,
        Change::Set if !update.fetches => Categories::PUT_ALONE,
        _ => Categories::UPDATE,
    }
}

/// Starts the put of a Long's payload, which tells the number of its header's room.
///
/// # Safety
/// put.1, for the payload.
unsafe fn put<M: CoreMode>(
    rdma: &Rdma<M, M::Nic>,
    there: There<'_>,
    payload: &[u8],
    source: Source,
    beside: Option<u32>,
    id: OpId,
) -> Result<(), EngineError> {
    let (from, len, token) = (payload.as_ptr(), payload.len(), id.to_bits());
    // SAFETY: put.1: the caller promises that the payload stays mapped and unchanged until the token comes back.
    unsafe {
        match beside {
            Some(number) => rdma.put_and_tell(there, from, len, source, number, token),
            None => rdma.put(there, from, len, source, token),
        }
    }
}

pub(super) fn nic_error(during: &'static str, peer: Rank, error: EngineError) -> Error {
    match error {
        EngineError::Busy { .. } => Error::Busy { to: peer, what: "no post descriptor is free" },
        cause => Error::Rdma { during, peer, cause },
    }
}
