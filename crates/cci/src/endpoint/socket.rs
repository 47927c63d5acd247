//! The endpoint's socket: datagrams of the handshake, and what the states of connections want to be done.

use super::connection::{Connection, Keepalive, Opening};
use super::event::{Buffer, Event, Failure, Request, RequestId};
use super::peer::{Peer, PeerMemory};
use super::{Endpoint, sleep};
use crate::channel::{Half, MAX_SEND};
use crate::datagram::{ConnectRequest, Datagram, MAX_LEN, Nonce, Party};
use crate::fifo::PeerFiles;
use crate::handshake::{ConnectionAction as Do, ConnectionEvent as On, ConnectionState as In};
use crate::header::{ConnectionId, HeaderType};
use crate::link::{Link, PeerHalf};
use crate::uri::Uri;
use gasworks_os::clock;
use gasworks_os::datagram::{Received, Sent};
use gasworks_os::unix::Credentials;
use gasworks_sync::kill_point;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Datagrams that are taken from the socket at once.
const BATCH: usize = 64;
/// Datagrams that wait for room in the receivers' queues. Beyond these the oldest is dropped: it is sent again, as any that is lost.
const MAX_UNSENT: usize = 4096;

/// A datagram for which the receiver had no room.
#[derive(Debug)]
pub(super) struct Unsent {
    to: PathBuf,
    bytes: Vec<u8>,
    /// Whose memory goes with it.
    memory_of: Option<ConnectionId>,
}

impl Endpoint {
    /// Handles datagrams that have come; whether there were any, or one was sent that had waited for room.
    pub(super) fn read_socket(&mut self) -> bool {
        let has_sent = self.send_unsent();
        let mut bytes = [0; MAX_LEN + 1];
        for count in 0..BATCH {
            match self.socket.receive(&mut bytes) {
                Ok(Some(received)) if received.len == 0 => {}
                Ok(Some(received)) => self.arrive(&bytes[..received.len.min(bytes.len())], received),
                Ok(None) => return count > 0 || has_sent,
                // Descriptors were dropped, since this process has too many: the datagram comes again.
                Err(_) => {}
            }
        }
        true
    }

    fn arrive(&mut self, bytes: &[u8], Received { fds, from, .. }: Received) {
        let own = nix::unistd::geteuid().as_raw();
        let is_friend = from.uid == own || from.uid == 0;
        let Ok(datagram) = Datagram::decode(bytes) else { return };
        match datagram {
            Datagram::Request(request) => self.request_arrives(request, fds, from, is_friend),
            _ if !is_friend => {}
            Datagram::Reply { nonce, party } => self.reply_arrives(nonce, party, fds, from),
            Datagram::Refusal { nonce } => self.answer_arrives(nonce, true, On::Refusal),
            Datagram::Ack { nonce } => self.answer_arrives(nonce, false, On::Ack),
            Datagram::Gone { nonce } => self.answer_arrives(nonce, false, On::PeerGone),
            Datagram::FileRequest { registration, uri } => self.file_is_wanted(registration, &uri),
            Datagram::File { tag, registration, offset } => {
                self.file_arrives((from.pid, tag), registration, offset, fds);
            }
        }
    }

    fn answer_arrives(&mut self, nonce: Nonce, to_client: bool, event: On) {
        let known = if to_client { &self.asked } else { &self.offered };
        if let Some(id) = known.get(&nonce).copied() {
            self.on(id, event);
        }
    }

    fn request_arrives(
        &mut self,
        request: ConnectRequest,
        fds: Vec<OwnedFd>,
        from: Credentials,
        is_friend: bool,
    ) {
        if let Some(id) = self.offered.get(&request.nonce).copied() {
            return self.on(id, On::Request);
        }
        let Ok(uri) = Uri::parse(&request.uri) else { return };
        let refusal = Datagram::Refusal { nonce: request.nonce };
        let by_fifo = self.party(ConnectionId { index: 0, generation: 0 }).by_fifo;
        let passed =
            (is_friend && request.party.by_fifo == by_fifo).then(|| self.passed(fds, &uri)).flatten();
        let Some((half, memory)) = passed else {
            return self.send_datagram(&uri.socket(), refusal.encode(), None);
        };
        let peer = self.peers.known(Peer::new(&uri, from.pid, &request.party, memory, &half));
        let half = peer.half(half);
        let interval = super::interval(&self.config);
        let opening = Opening { peer_half: Some(half), socket: uri.socket(), interval, ..Opening::default() };
        let timeout = self.config.send_timeout;
        let mut connection = Connection::new(In::Offered, request.attribute, request.nonce, opening, timeout);
        connection.peer_id = request.party.connection;
        connection.max_send = self.longest(&request.party);
        connection.peer = Some(peer);
        let Some(id) = self.connections.insert(clock::monotonic(), connection) else {
            return self.send_datagram(&uri.socket(), refusal.encode(), None);
        };
        self.openings += 1;
        self.offered.insert(request.nonce, id);
        let mut data = Buffer::of(Vec::new(), request.data.len());
        data.bytes_mut().copy_from_slice(&request.data);
        let (id, attribute, pid) = (RequestId(id), request.attribute, from.pid);
        self.events.push_back(Event::Requested(Box::new(Request { id, attribute, data, uri, pid })));
        kill_point!("cci.request.taken");
    }

    fn reply_arrives(&mut self, nonce: Nonce, party: Party, fds: Vec<OwnedFd>, from: Credentials) {
        let Some(id) = self.asked.get(&nonce).copied() else { return };
        let (longest, uri) = (self.longest(&party), self.peer_uri(id));
        let Some(connection) = self.connections.get(id) else { return };
        if connection.state == In::Requested {
            let Some(uri) = uri else { return };
            let Some((half, memory)) = self.passed(fds, &uri) else { return };
            let peer = self.peers.known(Peer::new(&uri, from.pid, &party, memory, &half));
            let half = peer.half(half);
            let Some(connection) = self.connections.get_mut(id) else { return };
            (connection.peer_id, connection.max_send, connection.peer) =
                (party.connection, longest, Some(peer));
            if let Some(opening) = &mut connection.opening {
                opening.peer_half = Some(half);
            }
            self.join(id);
            kill_point!("cci.reply.joined");
        }
        self.on(id, On::Reply);
    }

    fn longest(&self, party: &Party) -> usize {
        self.config.max_send.min(party.max_send as usize).min(MAX_SEND)
    }

    fn peer_uri(&self, id: ConnectionId) -> Option<Uri> {
        let opening = self.connections.get(id)?.opening.as_ref()?;
        let path = opening.socket.parent()?.to_str()?;
        Uri::parse(&format!("{}{path}", crate::uri::SCHEME)).ok()
    }

    /// Puts a connection's memory together, when both sides' are there.
    pub(super) fn join(&mut self, id: ConnectionId) {
        let (keepalive, now) = (self.config.keepalive, clock::monotonic());
        let Some(connection) = self.connections.get_mut(id) else { return };
        let halves =
            connection.opening.as_mut().and_then(|opening| opening.half.take().zip(opening.peer_half.take()));
        let link = halves.and_then(|(own, peer)| Link::join(own, peer, id, connection.peer_id));
        if let Some(mut channel) = link {
            let early = connection.opening.as_mut().map(|opening| std::mem::take(&mut opening.early));
            for header in early.unwrap_or_default() {
                // It is looked at below.
                let _ = channel.arrive(header);
            }
            // From now on the peer says so when it sends.
            let is_empty = channel.arm();
            connection.channel = Some(channel);
            connection.keepalive = keepalive.map(|time| Box::new(Keepalive::new(time, now)));
            if !is_empty {
                self.look_later(id);
            }
        }
    }

    /// Has a connection go through an event, and does what that asks for.
    pub(super) fn on(&mut self, id: ConnectionId, event: On) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (next, actions) = connection.state.on(event);
        connection.state = next;
        for action in actions {
            self.act(id, *action);
        }
    }

    fn act(&mut self, id: ConnectionId, action: Do) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (context, nonce) = (connection.context, connection.nonce);
        let connected = |result| Event::Connected { connection: id, context, result };
        let accepted = |result| Event::Accepted { connection: id, context, result };
        let event = match action {
            Do::SendRequest => return self.send_request(id),
            Do::SendReply => {
                // A client that has the reply has no need of another one.
                if connection.opening.is_some() {
                    let reply = Datagram::Reply { nonce, party: self.party(id) };
                    self.send_about(id, &reply, true);
                    kill_point!("cci.reply.sent");
                }
                return;
            }
            Do::SendRefusal => return self.send_about(id, &Datagram::Refusal { nonce }, false),
            Do::SendAck => {
                let ack = Datagram::Ack { nonce }.encode();
                let to = connection.peer.as_ref().map(|peer| peer.socket.clone());
                // A client may look away for long now. Where its datagram finds no room, whatever comes by the connection itself says that it has the reply.
                if to.is_some_and(|to| self.try_send(&to, &ack, None) != Some(Sent::Queued)) {
                    self.answer(id, HeaderType::KeepaliveAck, 0, 0);
                }
                return kill_point!("cci.ack.sent");
            }
            Do::Connected => {
                connection.opening = None;
                self.openings -= 1;
                self.schedule(id);
                connected(Ok(()))
            }
            Do::Refused => connected(Err(Failure::Refused)),
            Do::TimedOut => connected(Err(Failure::TimedOut)),
            Do::Accepted => {
                connection.opening = None;
                self.openings -= 1;
                self.schedule(id);
                accepted(Ok(()))
            }
            Do::AcceptFailed => accepted(Err(Failure::Disconnected)),
            Do::Abort => {
                let is_told = connection.state == In::Broken;
                self.abort(id);
                if !is_told {
                    return;
                }
                Event::Closed { connection: id }
            }
            Do::Close => return self.close(id),
            Do::Release => return self.release(id),
        };
        self.events.push_back(event);
    }

    fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(channel) = &mut connection.channel else { return };
        // Nobody looks at the connection again: what this side has taken, the peer has to know before it finds it closed.
        channel.acknowledge();
        if channel.close() {
            self.signal(id);
            kill_point!("cci.close.signalled");
        }
    }

    fn release(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(id, clock::monotonic()) else { return };
        self.openings -= usize::from(connection.opening.is_some());
        self.asked.remove(&connection.nonce);
        self.offered.remove(&connection.nonce);
        self.traffic.forget(id);
        if let (true, Some(opening)) = (connection.is_client, &connection.opening) {
            // The server may have accepted meanwhile.
            let gone = Datagram::Gone { nonce: connection.nonce }.encode();
            self.send_datagram(&opening.socket, gone, None);
        }
        if let Some(peer) = connection.peer.filter(|peer| std::sync::Arc::strong_count(peer) == 1) {
            self.ways.forget(peer.key());
        }
        if let (Some(fifo), Some(Link::Fifo(link))) = (&mut self.fifo, connection.channel) {
            fifo.close_later(id, link);
        }
    }

    /// Ends a connection whose peer has no socket any more, once all that it sent was taken.
    pub(super) fn peer_is_gone(&mut self, id: ConnectionId) {
        let link = self.connections.get_mut(id).and_then(|connection| connection.channel.as_mut());
        let (waits, comes_later) = link.map_or((false, false), |link| (link.waits(), link.break_off()));
        if waits {
            self.look_later(id);
        } else if !comes_later {
            self.on(id, On::PeerGone);
        }
    }

    /// Wakes the peer of a connection, if it has asked for that.
    #[cold]
    pub(super) fn signal(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else { return };
        let Some(peer) = connection.peer.clone() else { return };
        let rings =
            peer.memory.as_ref().is_some_and(|memory| memory.wakeups.signal(connection.peer_id.index));
        kill_point!("cci.signal.set");
        // One that finds no room finds a socket that is readable.
        if rings && matches!(self.socket.send_to(&peer.socket, &[], &[]), Ok(Sent::Nobody)) {
            self.peer_is_gone(id);
        }
        kill_point!("cci.signal.sent");
    }

    pub(super) fn send_request(&mut self, id: ConnectionId) {
        let opening = self.connections.get(id).and_then(|connection| connection.opening.as_ref());
        let Some(request) = opening.and_then(|opening| opening.request.clone()) else { return };
        self.send_about(id, &Datagram::Request(request), true);
        kill_point!("cci.request.sent");
    }

    /// Sends a datagram to the peer of a connection, with this side's memory if it is to map that.
    fn send_about(&mut self, id: ConnectionId, datagram: &Datagram, memory: bool) {
        let Some(connection) = self.connections.get(id) else { return };
        let to = match (&connection.peer, &connection.opening) {
            (Some(peer), _) => peer.socket.clone(),
            (None, Some(opening)) => opening.socket.clone(),
            (None, None) => return,
        };
        self.send_datagram(&to, datagram.encode(), memory.then_some(id));
    }

    /// Sends a datagram; with the memory of a connection's this side.
    pub(super) fn send_datagram(&mut self, to: &Path, bytes: Vec<u8>, memory_of: Option<ConnectionId>) {
        match self.try_send(to, &bytes, memory_of) {
            Some(Sent::Full) => {
                // One that waits already is not sent twice where there is so little room.
                if self.unsent.iter().any(|unsent| unsent.to == to && unsent.bytes == bytes) {
                    return;
                }
                if self.unsent.len() >= MAX_UNSENT {
                    self.unsent.pop_front();
                }
                self.unsent.push_back(Unsent { to: to.into(), bytes, memory_of });
            }
            Some(Sent::Nobody) => {
                if let Some(id) = memory_of {
                    self.on(id, On::PeerGone);
                }
            }
            _ => {}
        }
    }

    fn try_send(&self, to: &Path, bytes: &[u8], memory_of: Option<ConnectionId>) -> Option<Sent> {
        let mut fds: Vec<BorrowedFd<'_>> = Vec::new();
        if let Some(id) = memory_of {
            let file = self.connections.get(id)?.opening.as_ref()?.file.as_ref();
            fds.extend(file.map(AsFd::as_fd));
            fds.extend([self.wakeups_file.as_fd(), self.registrations.file().as_fd()]);
        }
        self.socket.send_to(to, bytes, &fds).ok()
    }

    /// Sends what has waited for room; whether there was some. Behind a datagram for which there is none yet, those to the same socket wait on.
    fn send_unsent(&mut self) -> bool {
        let mut full: Vec<PathBuf> = Vec::new();
        let before = self.unsent.len();
        for _ in 0..before {
            let Some(Unsent { to, bytes, memory_of }) = self.unsent.pop_front() else { break };
            let is_full = full.contains(&to) || self.try_send(&to, &bytes, memory_of) == Some(Sent::Full);
            if is_full {
                if !full.contains(&to) {
                    full.push(to.clone());
                }
                self.unsent.push_back(Unsent { to, bytes, memory_of });
            }
        }
        self.unsent.len() < before
    }

    /// What of a connection's timers has run out.
    pub(super) fn time_is_up(&mut self, id: ConnectionId, now: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if let Some(opening) = &mut connection.opening {
            if opening.deadline.is_some_and(|deadline| deadline <= now) {
                opening.deadline = None;
                return self.on(id, On::Deadline);
            }
            if opening.again <= now {
                opening.interval = (opening.interval * 2).min(sleep::LONGEST_INTERVAL);
                opening.again = now + opening.interval;
                self.on(id, On::Retransmit);
            }
        }
        self.keep_alive(id, now);
        self.expire(id, now);
    }

    /// What a peer's side of a connection works by, and its memory, of what came with a datagram of the handshake.
    fn passed(&self, fds: Vec<OwnedFd>, uri: &Uri) -> Option<(PeerHalf, Option<PeerMemory>)> {
        if self.fifo.is_none() {
            let [half, wakeups, registrations]: [OwnedFd; 3] = fds.try_into().ok()?;
            let memory = PeerMemory::map(&wakeups, &registrations).ok()?;
            return Some((PeerHalf::Rings(Half::map(&half).ok()?), Some(memory)));
        }
        // Who passes nothing does RMA by fragments.
        let memory = match fds.is_empty() {
            true => None,
            false => {
                let [wakeups, registrations]: [OwnedFd; 2] = fds.try_into().ok()?;
                Some(PeerMemory::map(&wakeups, &registrations).ok()?)
            }
        };
        let files = PeerFiles::open(&uri.directory()).ok()?;
        Some((PeerHalf::Fifo(Arc::new(files)), memory))
    }
}
