//! Messages: sending, receiving, and finding out which have been taken.
//!
//! A few connections, of which something has come lately, are looked at directly. The others are asked to set their bit ([`Wakeups`](crate::wakeups::Wakeups)), so that a poll costs the same
//! however many there are.

use super::connection::{Connection, Outgoing, Waiting};
use super::event::{Buffer, CallError, Event, Failure, Message, OperationId, SendFlags};
use super::operation::Pending;
use super::{Endpoint, nanoseconds, transfer};
use crate::channel::{MAX_INLINE, Payload, SendError};
use crate::datagram::Attribute;
use crate::handshake::{ConnectionEvent as On, ConnectionState as In};
use crate::header::{ConnectionId, Header, HeaderType};
use crate::link::Link;
use gasworks_os::clock;
use std::collections::{BTreeMap, VecDeque};

/// Connections that are looked at directly.
const WATCHED: usize = 4;
/// After how many looks at one that finds nothing another may have its place.
const QUIET: u32 = 64;
/// Messages that are taken from a connection at once.
const BATCH: usize = 4;
/// Connections with something under way that are looked at in a step.
const LISTED: usize = 4;
/// How many steps without a message are waited for before these are looked at, and after how many with one they are anyhow. The line that tells of them changes a moment after the peer
/// has sent its answer, and who asks for it then has the answer later.
const PATIENCE: u32 = 32;
const SILENT_PATIENCE: u32 = 4096;
const BUSY: u32 = 64;
/// Messages that are given to the program without a look at anything else.
const AT_ONCE: u32 = 16;
/// After how many looks that find nothing a peer is told what was taken although a message has told it: that may not have been read.
const FORGOTTEN: u32 = 1024;
/// Answers to a peer that wait for room in its ring. An honest one has fewer.
pub(super) const MAX_ANSWERS: usize = 64;
/// Steps from one look at the socket and the clock to the next, and how many are followed by such a look after a datagram has come or has found room.
const CALM: u32 = 4096;
const EAGER: u32 = 64;

/// Which connections are looked at.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Those that are looked at directly, and how often in turn nothing was found.
    watched: Vec<(ConnectionId, u32)>,
    /// Those that are to be looked at once more.
    again: VecDeque<ConnectionId>,
    /// Those with something under way, and which is next.
    listed: Vec<ConnectionId>,
    next: usize,
    /// Whether they are looked at in each step, for some has to wait for room or is waited for; and else after how many steps, with how many messages.
    is_urgent: bool,
    patience: u32,
    busy: u32,
    /// How many messages were taken without a look at anything else.
    at_once: u32,
    /// Of which connection the last of these was.
    told_by: Option<ConnectionId>,
    /// The word of the bits that is taken next.
    word: usize,
    /// Steps until the socket and the clock are looked at, and how many such looks follow each other.
    until_look: u32,
    eager: u32,
}

impl Traffic {
    /// Has the endpoint look after a connection that has something under way.
    fn list(&mut self, id: ConnectionId, out: &mut Outgoing) {
        if !out.is_listed && !out.is_idle() {
            out.is_listed = true;
            self.listed.push(id);
        }
        self.is_urgent = true;
    }

    /// Has a connection be looked at once more, which it is whatever how often that is wanted.
    pub(super) fn look_at(&mut self, id: ConnectionId, connection: &mut Connection) {
        if !std::mem::replace(&mut connection.is_next, true) {
            self.again.push_back(id);
        }
    }

    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.watched.retain(|(watched, _)| *watched != id);
        self.listed.retain(|listed| *listed != id);
    }

    pub(super) fn listed(&self) -> &[ConnectionId] {
        &self.listed
    }

    /// Whether a look has to follow that nothing announces.
    pub(super) fn is_pending(&self) -> bool {
        !self.again.is_empty()
    }
}

/// Buffers of messages that were given back.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    small: Vec<Vec<u64>>,
    large: Vec<Vec<u64>>,
}

/// Buffers that are kept.
const KEPT_SMALL: usize = 1024;
const KEPT_LARGE: usize = 16;

/// What was taken of a connection.
enum Taken {
    Nothing,
    Message(Message),
    /// Something that the program has no message of, or may not have yet.
    Other,
}

/// A payload, without its borrow.
enum Other {
    Bytes(Buffer),
    /// A block's number, and how many bytes of it.
    Block(u32, usize),
    /// Where it lies in the peer's file, in cache lines, and how many bytes it has.
    File(u16, usize),
}

impl Other {
    fn of(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Copy(bytes) => {
                let mut buffer = Buffer::of(Vec::new(), bytes.len());
                buffer.bytes_mut().copy_from_slice(bytes);
                Self::Bytes(buffer)
            }
            Payload::Block { index, bytes } => Self::Block(index, bytes.len()),
            Payload::File { offset, len } => Self::File(offset, len),
        }
    }
}

impl Buffers {
    #[inline]
    fn copy_of(&mut self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.get(bytes.len());
        buffer.bytes_mut().copy_from_slice(bytes);
        buffer
    }

    #[inline]
    fn get(&mut self, len: usize) -> Buffer {
        let (from, least) =
            if len <= MAX_INLINE { (&mut self.small, MAX_INLINE) } else { (&mut self.large, len) };
        Buffer::of(from.pop().unwrap_or_else(|| vec![0; least.div_ceil(8)]), len)
    }

    #[inline]
    pub(super) fn put(&mut self, buffer: Buffer) {
        let words = buffer.into_words();
        let (to, most) = if words.len() * 8 <= MAX_INLINE {
            (&mut self.small, KEPT_SMALL)
        } else {
            (&mut self.large, KEPT_LARGE)
        };
        if to.len() < most && !words.is_empty() {
            to.push(words);
        }
    }
}

impl Endpoint {
    /// Sends a message, whose parts follow each other. [`Event::Sent`] tells when it was delivered, which means that the peer's endpoint has taken it; on an unreliable connection, that it was sent.
    /// The bytes can be used again when this returns.
    ///
    /// # Errors
    /// [`CallError`]: nothing was sent.
    #[inline]
    pub fn send(
        &mut self,
        to: ConnectionId,
        parts: &[&[u8]],
        context: u64,
        flags: SendFlags,
    ) -> Result<OperationId, CallError> {
        let has_buffers = self.has_send_buffers();
        let connection = self.connections.get_mut(to).ok_or(CallError::NoConnection)?;
        let len = parts.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        if len > connection.max_send {
            return Err(too_long(connection, len));
        }
        if !has_buffers {
            return Err(CallError::NoRoom);
        }
        let Some(channel) = connection.channel.as_mut().filter(|channel| !channel.is_closed()) else {
            return Err(self.not_open(to));
        };
        if !matches!(connection.state, In::Ready | In::Accepting) {
            return Err(self.not_open(to));
        }
        self.operations += 1;
        let operation = OperationId(self.operations);
        let pending = Pending { operation, context, flags, deadline: None };
        let sent = match connection.out.waiting.is_empty() {
            true => channel.send(Header::of_message(connection.peer_id, len), parts),
            false => Err(SendError::Full),
        };
        let (Ok(sent), None, false) =
            (sent, connection.send_timeout, connection.attribute == Attribute::Unreliable)
        else {
            self.send_otherwise(to, sent, parts, pending);
            return Ok(operation);
        };
        connection.out.sent.push_back((sent.number, pending));
        self.under_way.begin(flags);
        if !connection.out.is_listed {
            connection.out.is_listed = true;
            self.traffic.listed.push(to);
        }
        self.traffic.is_urgent |= flags.contains(SendFlags::AWAITED);
        if sent.wakes {
            self.signal(to);
        }
        Ok(operation)
    }

    /// What remains to be done of a message that did not fit, may be lost, or has a time limit.
    fn send_otherwise(
        &mut self,
        to: ConnectionId,
        sent: Result<crate::channel::Sent, SendError>,
        parts: &[&[u8]],
        mut pending: Pending,
    ) {
        self.under_way.begin(pending.flags);
        let Some(connection) = self.connections.get_mut(to) else { return };
        let timeout = connection.send_timeout;
        connection.out.has_deadlines |= timeout.is_some();
        pending.deadline = timeout.map(|timeout| clock::monotonic().saturating_add(nanoseconds(timeout)));
        let is_unreliable = connection.attribute == Attribute::Unreliable;
        let wakes = sent.is_ok_and(|sent| sent.wakes);
        match sent {
            // An unreliable message for which there is no room is lost.
            _ if is_unreliable => self.complete(to, pending, Ok(())),
            Ok(sent) => connection.out.sent.push_back((sent.number, pending)),
            Err(_) => connection.out.waiting.push_back(Waiting::Message(parts.concat(), pending)),
        }
        if wakes {
            self.signal(to);
        }
        self.list(to);
        self.schedule(to);
    }

    #[cold]
    pub(super) fn not_open(&mut self, id: ConnectionId) -> CallError {
        let Some(connection) = self.connections.get(id) else { return CallError::NoConnection };
        match connection.state {
            In::Requested | In::Offered | In::Rejected | In::Over => CallError::NoConnection,
            _ => {
                // What the peer sent before it closed the connection comes first.
                self.look_later(id);
                CallError::Disconnected
            }
        }
    }

    /// Has the endpoint look after a connection that has something under way.
    pub(super) fn list(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        self.traffic.list(id, &mut connection.out);
    }

    /// Ends an operation.
    pub(super) fn complete(
        &mut self,
        connection: ConnectionId,
        pending: Pending,
        result: Result<(), Failure>,
    ) {
        self.under_way.end(pending.flags);
        end(&mut self.events, &mut self.outcomes, connection, pending, result);
    }

    /// Moves everything on by a bounded amount.
    #[inline]
    pub(super) fn step(&mut self) {
        if self.fifo.is_some() {
            self.read_fifo();
        }
        let (mut at, mut is_quiet) = (0, true);
        while let Some((id, quiet)) = self.traffic.watched.get(at).copied() {
            let has_come = self.receive(id);
            is_quiet &= !has_come;
            if let Some(watched) = self.traffic.watched.get_mut(at).filter(|watched| watched.0 == id) {
                watched.1 = if has_come { 0 } else { quiet.saturating_add(1) };
                if watched.1 == FORGOTTEN {
                    self.acknowledge_surely(id);
                }
                at += 1;
            }
        }
        if self.wakeups.ready().is_some_and(|ready| ready.is_any()) || !self.traffic.again.is_empty() {
            self.look_around();
        }
        if !self.traffic.listed.is_empty() && self.traffic.is_time(is_quiet, self.under_way.are_silent()) {
            self.look_after_listed();
        }
        match self.traffic.until_look.checked_sub(1) {
            Some(left) => self.traffic.until_look = left,
            None => self.look_outside(),
        }
    }

    /// Looks at connections that have been announced.
    fn look_around(&mut self) {
        for _ in 0..self.traffic.again.len().min(BATCH) {
            if let Some(id) = self.traffic.again.pop_front() {
                self.connections.get_mut(id).into_iter().for_each(|connection| connection.is_next = false);
                self.look(id);
            }
        }
        let word = self.traffic.word;
        let Some((word, bits)) = self.wakeups.ready().and_then(|ready| ready.take(word)) else { return };
        self.traffic.word = word + 1;
        for bit in (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1) {
            // Who sets a bit without having a connection wants nothing.
            if let Some(id) = self.connections.id(word * u64::BITS as usize + bit as usize) {
                self.look(id);
            }
        }
    }

    /// Has a connection be looked at once more.
    pub(super) fn look_later(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id) {
            self.traffic.look_at(id, connection);
        }
    }

    /// Looks at a connection that may have something, and has it looked at again, directly or when it is announced.
    fn look(&mut self, id: ConnectionId) {
        let has_come = self.receive(id);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(channel) = &mut connection.channel else { return };
        if channel.is_over() {
            return self.on(id, On::PeerGone);
        }
        if channel.is_closed() {
            // Nobody announces the end once more.
            return self.look_later(id);
        }
        if connection.is_watched {
            return;
        }
        if has_come && let Some(place) = self.traffic.place() {
            connection.is_watched = true;
            match place {
                Some(evicted) => {
                    let (before, _) = std::mem::replace(&mut self.traffic.watched[evicted], (id, 0));
                    self.unwatch(before);
                }
                None => self.traffic.watched.push((id, 0)),
            }
        } else {
            self.announce(id);
        }
    }

    /// Has the peer of a connection know what was taken, by a way that it need not read messages for.
    #[cold]
    fn acknowledge_surely(&mut self, id: ConnectionId) {
        let channel = self.connections.get_mut(id).and_then(|connection| connection.channel.as_mut());
        if channel.is_some_and(Link::acknowledge_surely) {
            self.signal(id);
        }
    }

    /// Has a connection be announced when something comes. Nobody looks at it until then, so the peer learns now what was taken.
    fn announce(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(channel) = &mut connection.channel else { return };
        let (wakes, has_come) = (channel.acknowledge_surely(), !channel.arm());
        if has_come {
            self.look_later(id);
        }
        if wakes {
            self.signal(id);
        }
    }

    /// Has all connections that are looked at directly be announced again.
    pub(super) fn unwatch_all(&mut self) {
        for (id, _) in std::mem::take(&mut self.traffic.watched) {
            self.unwatch(id);
        }
    }

    /// Has a connection be announced again. What has come in between is looked at once more.
    fn unwatch(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_watched = false;
        self.announce(id);
    }

    /// Takes what has come by a connection, a few messages at most, and completes what these say was taken; whether there was anything.
    #[inline]
    fn receive(&mut self, id: ConnectionId) -> bool {
        let has_come = self.take_some(id);
        if has_come {
            self.end_what_was_taken(id);
        }
        has_come
    }

    #[inline]
    fn take_some(&mut self, id: ConnectionId) -> bool {
        let mut taken = self.take_one(id);
        if let Taken::Nothing = taken {
            let channel = self.connections.get_mut(id).and_then(|connection| connection.channel.as_mut());
            if channel.is_some_and(Link::acknowledge) {
                self.signal(id);
            }
            return false;
        }
        for _ in 0..BATCH {
            let Taken::Message(message) = taken else { break };
            self.events.push_back(Event::Received(message));
            taken = self.take_one(id);
        }
        // One more than a batch is taken by then.
        if let Taken::Message(message) = taken {
            self.events.push_back(Event::Received(message));
        }
        true
    }

    /// The next message of the connection of which one has come last, without a look at anything else. From time to time it gives none, so that other things are looked at.
    #[inline]
    pub(super) fn take_at_once(&mut self) -> Option<Event> {
        let (id, _) = *self.traffic.watched.first()?;
        self.traffic.at_once += 1;
        if self.traffic.at_once <= AT_ONCE
            && let Taken::Message(message) = self.take_one(id)
        {
            if let Some((_, quiet)) = self.traffic.watched.first_mut() {
                *quiet = 0;
            }
            // What it says of this side's own messages has time until the program has it.
            self.traffic.told_by = Some(id);
            return Some(Event::Received(message));
        }
        self.traffic.at_once = 0;
        if let Some(id) = self.traffic.told_by.take() {
            self.end_what_was_taken(id);
        }
        None
    }

    /// Takes the next message of a connection, if one has come and the program may have it; or does what else has come.
    #[inline(always)]
    fn take_one(&mut self, id: ConnectionId) -> Taken {
        let Some(connection) = self.connections.get_mut(id) else { return Taken::Nothing };
        let Connection { channel: Some(channel), state, keepalive, peer_id, out, .. } = connection else {
            return Taken::Nothing;
        };
        if !channel.waits() {
            return Taken::Nothing;
        }
        // Who waits for an operation of its own gets what comes before it.
        if self.held >= self.config.receive_buffers && !self.under_way.is_awaited() {
            self.acknowledge_surely(id);
            return Taken::Other;
        }
        let (header, payload) = match channel.receive(&mut self.scratch) {
            Ok(Some(found)) => found,
            Ok(None) => return Taken::Other,
            Err(_) => {
                self.on(id, On::PeerGone);
                return Taken::Other;
            }
        };
        if let Some(keepalive) = keepalive {
            keepalive.heard = true;
        }
        if header.of != HeaderType::Send || header.connection != id || *state == In::Accepting {
            let other = Other::of(payload);
            self.receive_other(id, header, other);
            return Taken::Other;
        }
        let bytes = match payload {
            Payload::Copy(bytes) => self.buffers.copy_of(bytes),
            Payload::Block { index, bytes } => {
                let mut buffer = self.buffers.get(bytes.len());
                bytes.read(buffer.bytes_mut());
                channel.free(index);
                buffer
            }
            Payload::File { .. } => {
                let found = take_file(channel, header, &mut self.buffers);
                let Some(buffer) = found.filter(|_| out.answers.len() < MAX_ANSWERS) else {
                    self.on(id, On::PeerGone);
                    return Taken::Other;
                };
                // Acknowledgements of several messages are written at once.
                out.answers.push_back(acknowledgement(header, *peer_id));
                self.traffic.list(id, out);
                buffer
            }
        };
        self.held += 1;
        Taken::Message(Message { connection: id, bytes })
    }

    /// Handles what is no message on a connection that both sides know to be there.
    #[cold]
    fn receive_other(&mut self, id: ConnectionId, header: Header, other: Other) {
        if header.connection != id {
            return;
        }
        self.on(id, On::Data);
        match (header.of, other) {
            (HeaderType::Send, Other::Bytes(bytes)) => self.deliver(id, bytes),
            (HeaderType::Send, Other::Block(index, len)) => {
                let Some(channel) =
                    self.connections.get(id).and_then(|connection| connection.channel.as_ref())
                else {
                    return;
                };
                let mut buffer = self.buffers.get(len);
                channel.read_block(index, buffer.bytes_mut());
                channel.free(index);
                self.deliver(id, buffer);
            }
            (HeaderType::Send, Other::File(..)) => {
                let Some(connection) = self.connections.get(id) else { return };
                let (channel, peer_id) = (connection.channel.as_ref(), connection.peer_id);
                let found = channel.and_then(|channel| take_file(channel, header, &mut self.buffers));
                let Some(buffer) = found else { return self.on(id, On::PeerGone) };
                let answer = acknowledgement(header, peer_id);
                self.answer(id, answer.of, answer.offset, answer.length);
                self.deliver(id, buffer);
            }
            (HeaderType::RmaWrite | HeaderType::RmaRead, Other::File(offset, len)) => {
                self.fragment_arrives(id, header, offset.into(), len);
            }
            (HeaderType::RmaWrite | HeaderType::RmaRead, Other::Block(index, len)) => {
                self.fragment_arrives(id, header, index, len);
            }
            (HeaderType::RmaWrite | HeaderType::RmaRead, Other::Bytes(_)) => self.on(id, On::PeerGone),
            (HeaderType::RmaAck, _) => self.fragment_is_over(id, header),
            (HeaderType::Keepalive, _) => self.answer(id, HeaderType::KeepaliveAck, 0, 0),
            (HeaderType::SendAck | HeaderType::KeepaliveAck | HeaderType::Disconnect, _) => {}
        }
    }

    fn deliver(&mut self, connection: ConnectionId, bytes: Buffer) {
        self.held += 1;
        self.events.push_back(Event::Received(Message { connection, bytes }));
    }

    /// Sends a header without a payload, before everything that waits.
    pub(super) fn answer(&mut self, id: ConnectionId, of: HeaderType, offset: u16, length: u32) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.out.answers.len() >= MAX_ANSWERS {
            return self.on(id, On::PeerGone);
        }
        let header = Header { of, connection: connection.peer_id, offset, length };
        connection.out.answers.push_back(header);
        self.push(id);
        self.list(id);
    }

    fn look_after_listed(&mut self) {
        let mut is_urgent = self.under_way.is_awaited();
        for _ in 0..LISTED.min(self.traffic.listed.len()) {
            let next = if self.traffic.next >= self.traffic.listed.len() { 0 } else { self.traffic.next };
            self.traffic.next = next;
            let Some(id) = self.traffic.listed.get(next).copied() else { return };
            self.look_after(id);
            let is_idle = match self.connections.get_mut(id) {
                Some(connection) if connection.out.is_idle() => {
                    connection.out.is_listed = false;
                    true
                }
                Some(connection) => {
                    is_urgent |= connection.out.has_more();
                    false
                }
                None => true,
            };
            // One that is gone has left the list.
            match self.traffic.listed.get(next) == Some(&id) {
                true if is_idle => drop(self.traffic.listed.swap_remove(next)),
                _ => self.traffic.next = next + 1,
            }
        }
        self.traffic.is_urgent = is_urgent;
    }

    /// Completes what the peer has taken, and sends what waits.
    pub(super) fn look_after(&mut self, id: ConnectionId) {
        if let Some(channel) = self.connections.get_mut(id).and_then(|connection| connection.channel.as_mut())
        {
            channel.taken();
        }
        self.end_what_was_taken(id);
        if self.connections.get(id).is_some_and(|connection| connection.out.has_more()) {
            self.push(id);
            self.finish_transfers(id);
        }
    }

    /// Completes what the peer is known to have taken.
    #[inline]
    pub(super) fn end_what_was_taken(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Connection { channel: Some(channel), out, .. } = connection else { return };
        let taken = channel.known_taken();
        while let Some((_, pending)) = out.sent.pop_front_if(|(number, _)| *number < taken) {
            self.under_way.end(pending.flags);
            end(&mut self.events, &mut self.outcomes, id, pending, Ok(()));
        }
    }

    /// Whether one more operation may be under way.
    #[inline]
    pub(super) fn has_send_buffers(&mut self) -> bool {
        let has = |end: &Self| end.under_way.all() < end.config.send_buffers;
        has(self) || {
            self.look_after_listed();
            has(self)
        }
    }

    /// Sends what waits for room, as far as there is some.
    pub(super) fn push(&mut self, id: ConnectionId) {
        let mut wakes = false;
        while let Some(connection) = self.connections.get_mut(id) {
            let Connection { out, channel: Some(channel), peer_id, .. } = connection else { break };
            let sent = if !out.answers.is_empty() {
                channel.send_answers(&mut out.answers)
            } else {
                match out.waiting.front_mut() {
                    None => break,
                    Some(Waiting::Message(bytes, _)) => {
                        let header = Header::of_message(*peer_id, bytes.len());
                        let sent = channel.send(header, &[bytes]);
                        if let (Ok(sent), Some(Waiting::Message(_, pending))) =
                            (sent, sent.ok().and_then(|_| out.waiting.pop_front()))
                        {
                            out.sent.push_back((sent.number, pending));
                        }
                        sent
                    }
                    Some(Waiting::Transfer(_)) => match self.push_fragment(id) {
                        transfer::Pushed::Sent(sent) => Ok(sent),
                        transfer::Pushed::Full => Err(SendError::Full),
                        transfer::Pushed::Over => continue,
                    },
                }
            };
            match sent {
                Ok(sent) => wakes |= sent.wakes,
                Err(_) => break,
            }
        }
        if wakes {
            self.signal(id);
        }
    }

    /// Fails what is under way on a connection.
    pub(super) fn abort(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let taken = connection.channel.as_mut().map_or(0, Link::taken);
        if let Some(channel) = &mut connection.channel {
            channel.send_last_answers(&mut connection.out.answers);
        }
        let out = std::mem::take(&mut connection.out);
        connection.out.is_listed = out.is_listed;
        for (number, pending) in out.sent {
            // What the peer has taken was delivered.
            let result = if number < taken { Ok(()) } else { Err(Failure::Disconnected) };
            self.complete(id, pending, result);
        }
        let waiting = out.waiting.into_iter().map(|waiting| match waiting {
            Waiting::Message(_, pending) => pending,
            Waiting::Transfer(transfer) => transfer.pending,
        });
        for pending in waiting.chain(out.transfers.into_iter().map(|transfer| transfer.pending)) {
            self.complete(id, pending, Err(Failure::Disconnected));
        }
    }

    /// Looks at the socket and the clock.
    #[cold]
    fn look_outside(&mut self) {
        let has_come = self.read_socket();
        self.look_at_clock();
        let (traffic, waits) = (&mut self.traffic, self.openings > 0 || !self.unsent.is_empty());
        traffic.eager = if has_come { EAGER } else { traffic.eager.saturating_sub(1) };
        traffic.until_look = match traffic.eager {
            0 if waits => EAGER,
            0 => CALM,
            _ => 0,
        };
    }
}

impl Traffic {
    /// Whether those with something under way are looked at in this step.
    #[inline]
    fn is_time(&mut self, is_quiet: bool, are_silent: bool) -> bool {
        if self.is_urgent {
            return true;
        }
        if is_quiet || self.busy >= BUSY {
            self.patience += 1;
            if self.patience >= if are_silent { SILENT_PATIENCE } else { PATIENCE } {
                (self.patience, self.busy) = (0, 0);
                return true;
            }
        } else {
            (self.patience, self.busy) = (0, self.busy + 1);
        }
        false
    }

    /// A place for a connection that is to be looked at directly: a free one, or that of one of which nothing has come for long.
    #[expect(clippy::option_option, reason = "no place, a free place, or the place of another")]
    fn place(&self) -> Option<Option<usize>> {
        if self.watched.len() < WATCHED {
            return Some(None);
        }
        self.watched.iter().position(|(_, quiet)| *quiet >= QUIET).map(Some)
    }
}

/// Tells how an operation has ended, in the way that the program wants it told.
#[inline]
fn end(
    events: &mut VecDeque<Event>,
    outcomes: &mut BTreeMap<OperationId, Result<(), Failure>>,
    connection: ConnectionId,
    Pending { operation, context, flags, .. }: Pending,
    result: Result<(), Failure>,
) {
    if flags.contains(SendFlags::AWAITED) {
        outcomes.insert(operation, result);
    } else if !flags.contains(SendFlags::SILENT) || result.is_err() {
        events.push_back(Event::Sent { operation, connection, context, result });
    }
}

#[cold]
fn too_long(connection: &Connection, len: usize) -> CallError {
    match connection.state {
        In::Broken => CallError::Disconnected,
        In::Requested | In::Offered | In::Rejected | In::Closing | In::Over => CallError::NoConnection,
        _ => CallError::TooLong { len, most: connection.max_send },
    }
}

/// Copies a message out of a file of the peer's; `None` if it is not there.
#[cold]
fn take_file(channel: &Link, header: Header, buffers: &mut Buffers) -> Option<Buffer> {
    let mut buffer = buffers.get(header.length as usize);
    let is_there = channel.read_payload(header.offset, buffer.bytes_mut());
    is_there.then_some(buffer)
}

/// The header by which the peer learns that a message was taken.
fn acknowledgement(header: Header, peer: ConnectionId) -> Header {
    Header { of: HeaderType::SendAck, connection: peer, ..header }
}
