//! RMA: bytes moved between registered memory of two endpoints.
//!
//! The initiator moves them alone where it can: by plain copies, if the target's memory lies in a file that it has mapped, or by the system's calls for another process's memory. Whether
//! these work is tried with the peer itself, and one that fails is not used again. Else bytes go in fragments by the connection's blocks, each behind a header in a cache line of its own, and
//! the target copies them.
//!
//! # Invariants
//! - transfer.1: what is written here are bytes of registered memory, which nobody has references to (registration.1); what is written in a peer's process are bytes that it has registered
//!   for that, as its table says.

use super::connection::Waiting;
use super::event::{CallError, Failure, OperationId, SendFlags};
use super::operation::{Fragment, Pending, RmaKind, Transfer};
use super::peer::{Peer, PeerKey};
use super::{Endpoint, nanoseconds};
use crate::channel::{BLOCKS, MAX_SEND, Sent};
use crate::datagram::{Attribute, Datagram, RegistrationId};
use crate::handshake::ConnectionEvent as On;
use crate::header::{ConnectionId, Header, HeaderType, LINE};
use crate::link::{Link, copy};
use crate::registration::{Extent, Memory, Registrations, RmaHandle, RmaRights, Shared};
use crate::uri::Uri;
use gasworks_os::maps;
use gasworks_os::memfd::{self, Mapping};
use gasworks_os::remote::{self, Refused, Remote};
use gasworks_os::{OsError, clock};
use gasworks_sync::{RawSlice, VolatileSlice, kill_point};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The most bytes of a fragment.
const MAX_FRAGMENT: u64 = (MAX_SEND - LINE) as u64;
/// How long a process counts as the peer's after it was proved to be: its number may be another's after its end.
const PROOF: u64 = std::time::Duration::from_millis(100).as_nanos() as u64;
/// Files of peers that are mapped at once.
const MAX_FILES: usize = 256;
/// Peers of which it is known whether the system's calls reach them.
const MAX_KNOWN: usize = 1 << 16;

/// How the target has fared with a fragment, as the acknowledgement says.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Status {
    Done = 0,
    Handle = 1,
    Operation = 2,
}

/// What became of the first transfer that waits.
pub(super) enum Pushed {
    Sent(Sent),
    Full,
    /// All of it was sent.
    Over,
}

/// A peer's file.
#[derive(Debug)]
enum File {
    /// It was asked for.
    Asked,
    /// It is mapped, and the memory begins at an offset.
    Mapped(Mapping, usize),
}

/// By which ways peers' memory is reached.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// What the system's calls reach, and when that was proved.
    by_system: Recent<PeerKey, (u64, Option<Remote>)>,
    files: Recent<(PeerKey, RegistrationId), File>,
}

impl Ways {
    /// Drops what was kept for a peer that no connection leads to any more.
    pub(super) fn forget(&mut self, peer: PeerKey) {
        self.by_system.0.retain(|(known, _)| *known != peer);
        self.files.0.retain(|((known, _), _)| *known != peer);
    }
}

/// A few values by key, the one that was used last found first.
#[derive(Debug)]
struct Recent<K, V>(Vec<(K, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> Recent<K, V> {
    #[inline]
    fn get(&mut self, key: &K) -> Option<&mut V> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        self.0.swap(0, at);
        self.0.first_mut().map(|(_, value)| value)
    }

    /// Keeps one more value, and no more than `most`: those that are dropped may be made again.
    fn insert(&mut self, most: usize, key: K, value: V) {
        if self.0.len() >= most {
            self.0.clear();
        }
        self.0.push((key, value));
    }
}

impl Endpoint {
    /// Registers memory of the program's, for transfers of this endpoint and, as `rights` say, of its peers. Where it lies in a sealed memory file of this process
    /// (`memfd_create(2)`), peers map that.
    ///
    /// # Errors
    /// [`CallError::Memory`]: there is no such memory, or too much is registered.
    ///
    /// # Safety
    /// registration.1: the bytes stay mapped, readable and writable, and nobody has references to them but to atomics, until they are deregistered and no transfer with them
    /// is under way, here or at a peer.
    pub unsafe fn register(&mut self, memory: RawSlice, rights: RmaRights) -> Result<RmaHandle, CallError> {
        let len = memory.len() as u64;
        let failed = |why| CallError::Memory { len, why };
        if memory.is_empty() || memory.as_ptr().is_null() {
            return Err(failed("there are none"));
        }
        let address = memory.as_ptr().addr() as u64;
        let found = maps::look(address, len);
        if found.access != maps::Access::Write {
            return Err(failed("they are not all mapped to be read and written"));
        }
        // Who is given a file can write to it.
        let lies = found.lies.filter(|_| self.config.ways.mapped && rights.contains(RmaRights::WRITE));
        let file = lies.and_then(|lies| Some((memfd::find(lies.file)?, lies.offset)));
        if self.config.ways.by_system && !rights.is_empty() {
            remote::admit_all();
        }
        let memory = match file {
            Some((file, offset)) => Memory::InFile(memory, file, offset),
            None => Memory::Given(memory),
        };
        self.registrations.add(memory, rights).ok_or_else(|| failed("too much is registered"))
    }

    /// Registers memory of the library's, which peers map, so that transfers are plain copies. It is zero.
    ///
    /// # Errors
    /// [`CallError::Memory`], [`CallError::System`].
    pub fn allocate(&mut self, len: usize, rights: RmaRights) -> Result<(RmaHandle, RmaMemory), CallError> {
        let failed = |why| CallError::Memory { len: len as u64, why };
        if len == 0 {
            return Err(failed("there are none"));
        }
        let file = memfd::create("gasworks-cci-memory", len)?;
        let shared = Arc::new(Shared { mapping: file.map()?, file });
        let handle = self.registrations.add(Memory::Shared(shared.clone()), rights);
        Ok((handle.ok_or_else(|| failed("too much is registered"))?, RmaMemory(shared)))
    }

    /// Takes a registration back: transfers that name it fail from now on.
    ///
    /// # Errors
    /// [`CallError::Handle`].
    pub fn deregister(&mut self, handle: RmaHandle) -> Result<(), CallError> {
        self.registrations.remove(handle).map(drop).ok_or(CallError::Handle { whose: "this endpoint's" })
    }

    /// Moves `len` bytes between memory of this endpoint and of the peer's, each given as a handle and an offset. [`Event::Sent`](super::Event::Sent) tells when they have arrived. With
    /// `message` the peer's program gets a message behind the bytes.
    ///
    /// # Errors
    /// [`CallError`]: nothing was moved.
    #[expect(clippy::too_many_arguments, reason = "CCI's call has them")]
    pub fn rma(
        &mut self,
        connection: ConnectionId,
        kind: RmaKind,
        local: (RmaHandle, u64),
        remote: (RmaHandle, u64),
        len: u64,
        message: Option<&[&[u8]]>,
        context: u64,
        flags: SendFlags,
    ) -> Result<OperationId, CallError> {
        let has_buffers = self.has_send_buffers();
        let found = self.connections.get(connection).ok_or(CallError::NoConnection)?;
        let Some(peer) = found.peer.clone().filter(|_| found.is_open()) else {
            return Err(self.not_open(connection));
        };
        if found.attribute == Attribute::Unreliable {
            return Err(CallError::Unreliable);
        }
        if found.channel.as_ref().is_none_or(Link::is_closed) {
            return Err(self.not_open(connection));
        }
        let told =
            message.map_or(0, |parts| parts.iter().fold(0usize, |len, part| len.saturating_add(part.len())));
        if told > found.max_send {
            return Err(CallError::TooLong { len: told, most: found.max_send });
        }
        if !has_buffers {
            return Err(CallError::NoRoom);
        }
        let has_transfers = found.out.has_transfers();
        let deadline =
            found.send_timeout.map(|timeout| clock::monotonic().saturating_add(nanoseconds(timeout)));
        local_part(&self.registrations, local, len)?;
        let extent = self.remote(&peer, kind, remote, len)?;
        // Behind transfers by fragments, order is kept by going the same way.
        let is_behind = has_transfers && (message.is_some() || flags.contains(SendFlags::FENCE));
        let moved =
            !is_behind && self.move_alone(&peer, kind, local, (remote.0.registration, extent), remote.1, len);
        self.operations += 1;
        self.under_way.begin(flags);
        let operation = OperationId(self.operations);
        let pending = Pending { operation, context, flags, deadline };
        let message = message.map(<[&[u8]]>::concat);
        let waiting = match (moved, message) {
            (true, None) => {
                self.complete(connection, pending, Ok(()));
                return Ok(operation);
            }
            (true, Some(message)) => Waiting::Message(message, pending),
            (false, message) => Waiting::Transfer(Transfer {
                pending,
                kind,
                local,
                remote: (remote.0.registration, remote.1),
                len,
                sent: 0,
                acknowledged: 0,
                failed: None,
                message,
                told: None,
            }),
        };
        if let Some(found) = self.connections.get_mut(connection) {
            found.out.has_deadlines |= deadline.is_some();
            found.out.waiting.push_back(waiting);
        }
        self.push(connection);
        self.finish_transfers(connection);
        self.list(connection);
        self.schedule(connection);
        Ok(operation)
    }

    /// Where the bytes of the peer's side are.
    fn remote(
        &self,
        peer: &Peer,
        kind: RmaKind,
        (handle, offset): (RmaHandle, u64),
        len: u64,
    ) -> Result<Option<Extent>, CallError> {
        const WHOSE: &str = "the peer's";
        let unknown = CallError::Handle { whose: WHOSE };
        if handle.tag != peer.tag {
            return Err(unknown);
        }
        // A peer that publishes nothing looks itself.
        let Some(memory) = &peer.memory else { return Ok(None) };
        let extent = memory.registrations.find(handle.registration).ok_or(unknown)?;
        let failed = |why| Err(CallError::Operation { whose: WHOSE, offset, len, why });
        match () {
            () if !extent.has(offset, len) => failed("there are not so many"),
            () if !extent.rights.contains(kind.rights()) => failed("it was not registered for that"),
            () => Ok(Some(extent)),
        }
    }

    /// Moves bytes without the target, if there is a way; whether they were moved.
    fn move_alone(
        &mut self,
        peer: &Peer,
        kind: RmaKind,
        local: (RmaHandle, u64),
        (registration, extent): (RegistrationId, Option<Extent>),
        offset: u64,
        len: u64,
    ) -> bool {
        let Some(extent) = extent else { return false };
        if len == 0 {
            return true;
        }
        if extent.in_file
            && self.config.ways.mapped
            && self.copy_mapped(peer, kind, local, registration, offset, len)
        {
            return true;
        }
        let reached = if self.config.ways.by_system { self.reach(peer) } else { None };
        let Some(remote) = reached else { return false };
        let Ok(here) = local_part(&self.registrations, local, len) else { return false };
        let (here, there) = (here.as_ptr().addr() as u64, extent.address.wrapping_add(offset));
        // SAFETY: transfer.1: `here` are bytes of registered memory, and `there` bytes that the peer has registered for this.
        let moved = unsafe {
            match kind {
                RmaKind::Read => remote.read_to(there, here, len),
                RmaKind::Write => remote.write_from(there, here, len),
            }
        };
        if moved == Err(Refused::Forbidden) {
            self.ways.by_system.get(&peer.key()).into_iter().for_each(|(_, reached)| *reached = None);
        }
        moved.is_ok()
    }

    /// Copies bytes by the mapping of the peer's file. One that is not there yet is asked for.
    fn copy_mapped(
        &mut self,
        peer: &Peer,
        kind: RmaKind,
        local: (RmaHandle, u64),
        registration: RegistrationId,
        offset: u64,
        len: u64,
    ) -> bool {
        let Some(File::Mapped(mapping, start)) = self.ways.files.get(&(peer.key(), registration)) else {
            self.ask_for_file(peer, registration);
            return false;
        };
        let there = offset.checked_add(*start as u64).and_then(|at| part(mapping.bytes(), at, len));
        let Some((there, Ok(here))) = there.map(|there| (there, local_part(&self.registrations, local, len)))
        else {
            return false;
        };
        match kind {
            RmaKind::Read => copy(there, here),
            RmaKind::Write => copy(here, there),
        }
        true
    }

    fn ask_for_file(&mut self, peer: &Peer, registration: RegistrationId) {
        if self.ways.files.get(&(peer.key(), registration)).is_none() {
            self.ways.files.insert(MAX_FILES, (peer.key(), registration), File::Asked);
            let request = Datagram::FileRequest { registration, uri: self.uri().to_string() };
            self.send_datagram(&peer.socket, request.encode(), None);
            kill_point!("cci.file.asked");
        }
    }

    /// A peer wants to map registered memory.
    pub(super) fn file_is_wanted(&mut self, registration: RegistrationId, uri: &str) {
        let Ok(uri) = Uri::parse(uri) else { return };
        let Some((memory, rights)) = self.registrations.find_own(registration) else { return };
        let Some((file, offset)) = memory.file().filter(|_| rights.contains(RmaRights::WRITE)) else {
            return;
        };
        let answer = Datagram::File { tag: self.tag, registration, offset }.encode();
        // One that finds no room is asked for again by nobody: transfers go another way.
        let _ = self.socket.send_to(&uri.socket(), &answer, &[file]);
        kill_point!("cci.file.sent");
    }

    /// A peer's memory file has come.
    pub(super) fn file_arrives(
        &mut self,
        from: PeerKey,
        registration: RegistrationId,
        offset: u64,
        fds: Vec<OwnedFd>,
    ) {
        let Ok([file]) = <[OwnedFd; 1]>::try_from(fds) else { return };
        let Some(place) = self.ways.files.get(&(from, registration)) else { return };
        if let (File::Asked, true, Ok(len)) =
            (&place, memfd::is_sealed(file.as_fd()), memfd::size_of_file(file.as_fd()))
            && let Ok(mapping) = memfd::map(file.as_fd(), len as usize)
        {
            *place = File::Mapped(mapping, offset as usize);
        }
    }

    /// Whether the system's calls reach the peer's memory: a number is read there and written there.
    fn reach(&mut self, peer: &Peer) -> Option<Remote> {
        let now = self.rest.now;
        match self.ways.by_system.get(&peer.key()) {
            Some((_, None)) => return None,
            Some((at, reached)) if now < *at + PROOF => return *reached,
            _ => {}
        }
        let (address, wanted) = peer.mark;
        let mut found = [0; 16];
        let reached = Remote::open(peer.pid).ok().filter(|remote| {
            let is_it = remote.read(address, &mut found).is_ok() && found == wanted;
            // SAFETY: transfer.1: it is the peer's number, as it was just read, which it keeps for this.
            is_it && unsafe { remote.write(address, &wanted) }.is_ok()
        });
        match self.ways.by_system.get(&peer.key()) {
            Some(proved) => *proved = (now, reached),
            None => self.ways.by_system.insert(MAX_KNOWN, peer.key(), (now, reached)),
        }
        reached
    }

    /// Sends the next fragment of the first transfer that waits, or the message behind the last.
    pub(super) fn push_fragment(&mut self, id: ConnectionId) -> Pushed {
        let Some(connection) = self.connections.get_mut(id) else { return Pushed::Over };
        let (out, Some(channel)) = (&mut connection.out, &mut connection.channel) else {
            return Pushed::Over;
        };
        let Some(Waiting::Transfer(transfer)) = out.waiting.front_mut() else { return Pushed::Over };
        // What was begun before is complete before a fence.
        if transfer.is_fenced() && transfer.sent == 0 && !out.transfers.is_empty() {
            return Pushed::Full;
        }
        if transfer.failed.is_none() && transfer.sent < transfer.len {
            let len = (transfer.len - transfer.sent).min(MAX_FRAGMENT);
            let at = transfer.sent;
            let Some((memory, _)) = self.registrations.find(transfer.local.0) else {
                transfer.fail(Failure::Handle);
                return Pushed::Over;
            };
            let here = part(memory.bytes(), transfer.local.1 + at, len).unwrap_or(VolatileSlice::EMPTY);
            if !channel.has_room() {
                return Pushed::Full;
            }
            let whole = LINE + len as usize;
            let Some(block) = channel.claim(whole) else { return Pushed::Full };
            let (registration, offset) = transfer.remote;
            let payload = (transfer.kind == RmaKind::Write).then_some(here);
            if !channel.fill(block, &fragment_line(registration, offset + at, len), payload) {
                channel.free_own(block);
                return Pushed::Full;
            }
            kill_point!("cci.fragment.filled");
            let header = Header {
                of: transfer.kind.header(),
                connection: connection.peer_id,
                offset: block as u16,
                length: whole as u32,
            };
            return match channel.send_fragment(header, block, whole) {
                Ok(sent) => {
                    let fragment = Fragment { operation: transfer.pending.operation, at, len };
                    let fragments = out.fragments.get_or_insert_with(|| Box::new([None; BLOCKS as usize]));
                    fragments.get_mut(block as usize).into_iter().for_each(|place| *place = Some(fragment));
                    transfer.sent += len;
                    Pushed::Sent(sent)
                }
                Err(_) => {
                    channel.free_own(block);
                    Pushed::Full
                }
            };
        }
        let mut pushed = Pushed::Over;
        if let (None, Some(message)) = (transfer.failed, &transfer.message) {
            // The target's program is told of bytes that are there, and not of some that the target refuses.
            if transfer.acknowledged < transfer.sent {
                return Pushed::Full;
            }
            let header = Header::of_message(connection.peer_id, message.len());
            match channel.send(header, &[message]) {
                Ok(sent) => {
                    (transfer.told, transfer.message) = (Some(sent.number), None);
                    pushed = Pushed::Sent(sent);
                }
                Err(_) => return Pushed::Full,
            }
        }
        if let Some(Waiting::Transfer(transfer)) = out.waiting.pop_front() {
            out.transfers.push(transfer);
        }
        pushed
    }

    /// A fragment has come, in a block of the peer's: moves its bytes, and says how that went.
    pub(super) fn fragment_arrives(&mut self, id: ConnectionId, header: Header, index: u32, len: usize) {
        let Some(channel) = self.connections.get(id).and_then(|connection| connection.channel.as_ref())
        else {
            return;
        };
        let Some((line, payload)) = channel.fragment_line(index, len) else {
            return self.on(id, On::PeerGone);
        };
        let [names, offset, len, ..] = bytemuck::cast::<_, [u64; LINE / 8]>(line).map(u64::from_le);
        let registration = RegistrationId { index: names as u32, generation: (names >> 32) as u32 };
        let is_read = header.of == HeaderType::RmaRead;
        let wanted = if is_read { RmaRights::READ } else { RmaRights::WRITE };
        let status = match self.registrations.find_own(registration) {
            None => Status::Handle,
            Some((_, rights)) if !rights.contains(wanted) => Status::Operation,
            Some((memory, _)) => match part(memory.bytes(), offset, len).filter(|_| len <= payload) {
                Some(here) if channel.move_fragment(index, here, is_read) => Status::Done,
                Some(_) => return self.on(id, On::PeerGone),
                None => Status::Operation,
            },
        };
        kill_point!("cci.fragment.moved");
        self.answer(id, HeaderType::RmaAck, index as u16, status as u32);
    }

    /// The target has moved the bytes of a fragment, or cannot.
    pub(super) fn fragment_is_over(&mut self, id: ConnectionId, header: Header) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (out, Some(channel)) = (&mut connection.out, &mut connection.channel) else { return };
        let place =
            out.fragments.as_mut().and_then(|fragments| fragments.get_mut(usize::from(header.offset)));
        // An acknowledgement of nothing is no honest peer's.
        let Some(Fragment { operation, at, len }) = place.and_then(Option::take) else {
            return self.on(id, On::PeerGone);
        };
        let waiting = out.waiting.iter_mut().filter_map(|waiting| match waiting {
            Waiting::Transfer(transfer) => Some(transfer),
            Waiting::Message(..) => None,
        });
        let mut transfers = waiting.chain(&mut out.transfers);
        if let Some(transfer) = transfers.find(|transfer| transfer.pending.operation == operation) {
            transfer.acknowledged += len;
            match header.length {
                done if done == Status::Done as u32 => {
                    let memory = self.registrations.find(transfer.local.0);
                    let here =
                        memory.and_then(|(memory, _)| part(memory.bytes(), transfer.local.1 + at, len));
                    match (transfer.kind, here) {
                        (RmaKind::Write, _) => {}
                        (RmaKind::Read, Some(here)) if channel.drain(header.offset.into(), here) => {}
                        (RmaKind::Read, Some(_)) => transfer.fail(Failure::Disconnected),
                        (RmaKind::Read, None) => transfer.fail(Failure::Handle),
                    }
                }
                handle if handle == Status::Handle as u32 => transfer.fail(Failure::Handle),
                _ => transfer.fail(Failure::Operation),
            }
        }
        kill_point!("cci.fragment.acknowledged");
        channel.free_own(header.offset.into());
        self.push(id);
        self.finish_transfers(id);
    }

    /// Completes transfers of which all fragments, and the message, are over.
    pub(super) fn finish_transfers(&mut self, id: ConnectionId) {
        while let Some(connection) = self.connections.get_mut(id) {
            let taken = connection.channel.as_mut().map_or(0, Link::taken);
            let transfers = &mut connection.out.transfers;
            let Some(at) = transfers.iter().position(|transfer| transfer.is_over(taken)) else { return };
            let Transfer { pending, failed, .. } = transfers.remove(at);
            self.complete(id, pending, failed.map_or(Ok(()), Err));
        }
    }
}

impl super::connection::Outgoing {
    fn has_transfers(&self) -> bool {
        !self.transfers.is_empty()
            || self.waiting.iter().any(|waiting| matches!(waiting, Waiting::Transfer(_)))
    }
}

/// Memory of the library's that was [registered](Endpoint::allocate). It stays as long as this, also where it is not registered any more.
#[derive(Clone, Debug)]
pub struct RmaMemory(Arc<Shared>);

impl RmaMemory {
    /// Its bytes, which peers may read and write as they were given the right to.
    pub fn bytes(&self) -> VolatileSlice<'_> {
        self.0.mapping.bytes()
    }
}

/// The line before a fragment's bytes.
fn fragment_line(RegistrationId { index, generation }: RegistrationId, offset: u64, len: u64) -> [u8; LINE] {
    let words = [u64::from(generation) << 32 | u64::from(index), offset, len, 0, 0, 0, 0, 0];
    bytemuck::cast(words.map(u64::to_le))
}

/// The bytes of an endpoint's own side of a transfer.
fn local_part(
    registrations: &Registrations,
    (handle, offset): (RmaHandle, u64),
    len: u64,
) -> Result<VolatileSlice<'_>, CallError> {
    const WHOSE: &str = "this endpoint's";
    let (memory, _) = registrations.find(handle).ok_or(CallError::Handle { whose: WHOSE })?;
    let why = "there are not so many";
    part(memory.bytes(), offset, len).ok_or(CallError::Operation { whose: WHOSE, offset, len, why })
}

fn part(bytes: VolatileSlice<'_>, offset: u64, len: u64) -> Option<VolatileSlice<'_>> {
    bytes.slice(usize::try_from(offset).ok()?, usize::try_from(len).ok()?)
}

impl From<crate::channel::HalfError> for CallError {
    fn from(error: crate::channel::HalfError) -> Self {
        match error {
            crate::channel::HalfError::System(error) => Self::System(error),
            shape @ crate::channel::HalfError::Shape => {
                Self::System(OsError::other("make", "a connection's memory", shape.to_string()))
            }
        }
    }
}
