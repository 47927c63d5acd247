//! Endpoints: what connects, sends messages and moves bytes.
//!
//! An endpoint works in the calls of its program: it has no thread. Events come by [`Endpoint::event`], which is called again and again, or when the endpoint's descriptor is readable
//! ([`EndpointConfig::wakes`]). One thread at a time uses an endpoint; several may in turn.

mod config;
mod connection;
mod event;
mod fifo;
mod operation;
mod options;
mod peer;
mod sleep;
mod socket;
mod traffic;
#[allow(unsafe_code)]
mod transfer;

pub use crate::registration::{RmaHandle, RmaRights};
pub use config::{Backend, EndpointConfig, RmaWays, default_base};
pub use event::{
    Buffer, CallError, CreateError, Event, Failure, Message, OperationId, Request, RequestId, SendFlags,
};
pub use operation::RmaKind;
pub use transfer::RmaMemory;

use crate::channel::{Half, MAX_SEND, Scratch};
use crate::datagram::{Attribute, ConnectRequest, MAX_DATA, Nonce, Party};
use crate::directory::{Directory, DirectoryError};
use crate::fifo::Fifo;
use crate::handshake::{ConnectionEvent as On, ConnectionState as In};
use crate::header::ConnectionId;
use crate::link::OwnHalf;
use crate::registration::Registrations;
use crate::table::Table;
use crate::uri::Uri;
use crate::wakeups::Wakeups;
use connection::{Connection, Opening};
use gasworks_os::alarm::Alarm;
use gasworks_os::datagram::{DatagramSocket, Inquirer};
use gasworks_os::memfd::MemFd;
use gasworks_os::{clock, random};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::kill_point;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// An endpoint: an address at which processes of this host connect, and from which this one does.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    /// The number that this endpoint's handles have.
    tag: u32,
    /// A number that peers read, and write again, in this process's memory.
    mark: Box<[AtomicU64; 2]>,
    wakeups: Wakeups,
    wakeups_file: MemFd,
    registrations: Registrations,
    ways: transfer::Ways,
    peers: peer::Peers,
    connections: Table<Connection>,
    /// Connections that this program asked for, and that clients did, by the requests' nonces.
    asked: HashMap<Nonce, ConnectionId>,
    offered: HashMap<Nonce, ConnectionId>,
    /// Connections of which one side may not know yet that they are there.
    openings: usize,
    traffic: traffic::Traffic,
    scratch: Scratch,
    events: VecDeque<Event>,
    /// How operations have ended that the program asks for itself.
    outcomes: BTreeMap<OperationId, Result<(), Failure>>,
    operations: u64,
    /// Messages that the program has or that are in the queue, and operations that are not over.
    held: usize,
    under_way: operation::UnderWay,
    buffers: traffic::Buffers,
    timers: BinaryHeap<sleep::Timer>,
    rest: sleep::Rest,
    unsent: VecDeque<socket::Unsent>,
    /// What connections work by where they do by FIFOs.
    fifo: Option<Fifo>,
    inquirer: Inquirer,
    socket: DatagramSocket,
    alarm: Option<Alarm>,
    /// Dropped last: its files go when nobody finds a socket behind them any more.
    directory: Directory,
}

impl Endpoint {
    /// Makes an endpoint.
    ///
    /// # Errors
    /// [`CreateError`]. Nothing is left behind.
    pub fn create(config: EndpointConfig) -> Result<Self, CreateError> {
        if !(1..=MAX_SEND).contains(&config.max_send) {
            return Err(CreateError::MaxSend { len: config.max_send });
        }
        let directory = directory(&config)?;
        let socket = DatagramSocket::bind(&directory.uri().socket())?;
        kill_point!("cci.endpoint.bound");
        let by_fifo = config.backend == Backend::Fifo;
        let fifo = by_fifo.then(|| Fifo::create(&directory.uri().directory())).transpose()?;
        let readable: Vec<_> =
            std::iter::once(socket.as_fd()).chain(fifo.as_ref().map(AsFd::as_fd)).collect();
        let alarm = config.wakes.then(|| Alarm::new(&readable)).transpose()?;
        let (wakeups, wakeups_file) = Wakeups::create()?;
        let nonce = random::nonce()?;
        let tag = u32::from_le_bytes([nonce[0], nonce[1], nonce[2], nonce[3]]);
        let mut endpoint = Self {
            tag,
            mark: Box::new(bytemuck::cast::<Nonce, [u64; 2]>(random::nonce()?).map(AtomicU64::new)),
            wakeups,
            wakeups_file,
            registrations: Registrations::create(tag)?,
            ways: transfer::Ways::default(),
            peers: peer::Peers::default(),
            connections: Table::new(),
            asked: HashMap::new(),
            offered: HashMap::new(),
            openings: 0,
            traffic: traffic::Traffic::default(),
            scratch: Scratch::default(),
            events: VecDeque::new(),
            outcomes: BTreeMap::new(),
            operations: 0,
            held: 0,
            under_way: operation::UnderWay::default(),
            buffers: traffic::Buffers::default(),
            timers: BinaryHeap::new(),
            rest: sleep::Rest::default(),
            unsent: VecDeque::new(),
            fifo,
            inquirer: Inquirer::new()?,
            socket,
            alarm,
            directory,
            config,
        };
        if let Some(alarm) = &mut endpoint.alarm {
            alarm.set(None)?;
        }
        Ok(endpoint)
    }

    /// The endpoint's address.
    pub fn uri(&self) -> &Uri {
        self.directory.uri()
    }

    /// How it is set up.
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Asks the endpoint at `uri` for a connection, with some data for its program. [`Event::Connected`] tells how that ends, at the latest after `timeout` if there is one.
    ///
    /// # Errors
    /// [`CallError::Uri`], [`CallError::Foreign`], [`CallError::TooMuchData`], [`CallError::NoIds`], [`CallError::System`]: nothing was asked.
    pub fn connect(
        &mut self,
        uri: &str,
        data: &[u8],
        attribute: Attribute,
        context: u64,
        timeout: Option<Duration>,
    ) -> Result<ConnectionId, CallError> {
        let peer = Uri::parse(uri)?;
        if !is_trusted(&peer) {
            return Err(CallError::Foreign { uri: uri.into() });
        }
        if data.len() > MAX_DATA {
            return Err(CallError::TooMuchData { len: data.len() });
        }
        let (now, nonce) = (clock::monotonic(), random::nonce()?);
        let (half, file) = self.own_half()?;
        let request = ConnectRequest {
            nonce,
            // Its number is known in a moment.
            party: self.party(ConnectionId { index: 0, generation: 0 }),
            attribute,
            uri: self.uri().to_string(),
            data: data.to_vec(),
        };
        let interval = interval(&self.config);
        let opening = Opening {
            half: Some(half),
            file,
            peer_half: None,
            socket: peer.socket(),
            request: Some(request),
            again: now.saturating_add(interval),
            interval,
            deadline: timeout.map(|timeout| now.saturating_add(nanoseconds(timeout))),
            early: Vec::new(),
        };
        let timeout = self.config.send_timeout;
        let connection = Connection::new(In::Requested, attribute, nonce, opening, timeout);
        let id = self.connections.insert(now, connection).ok_or(CallError::NoIds)?;
        if let Some(connection) = self.connections.get_mut(id) {
            connection.context = context;
            let request = connection.opening.as_mut().and_then(|opening| opening.request.as_mut());
            request.into_iter().for_each(|request| request.party.connection = id);
        }
        self.openings += 1;
        self.asked.insert(nonce, id);
        self.send_request(id);
        self.schedule(id);
        Ok(id)
    }

    /// Accepts a request. [`Event::Accepted`] tells when the client knows, or that it never will.
    ///
    /// # Errors
    /// [`CallError::NoRequest`], [`CallError::System`].
    pub fn accept(&mut self, request: RequestId, context: u64) -> Result<ConnectionId, CallError> {
        let id = request.0;
        let is_offered = |connection: &&mut Connection| connection.state == In::Offered;
        self.connections.get_mut(id).filter(is_offered).ok_or(CallError::NoRequest)?;
        let (half, file) = self.own_half()?;
        let connection = self.connections.get_mut(id).ok_or(CallError::NoRequest)?;
        connection.context = context;
        if let Some(opening) = &mut connection.opening {
            (opening.half, opening.file) = (Some(half), file);
            opening.again = clock::monotonic() + opening.interval;
            opening.deadline = Some(clock::monotonic() + sleep::ACCEPT_TIME);
        }
        self.join(id);
        kill_point!("cci.accept.joined");
        self.on(id, On::Accept);
        self.schedule(id);
        Ok(id)
    }

    /// Rejects a request.
    ///
    /// # Errors
    /// [`CallError::NoRequest`].
    pub fn reject(&mut self, request: RequestId) -> Result<(), CallError> {
        let id = request.0;
        let is_offered = |connection: &&mut Connection| connection.state == In::Offered;
        let connection = self.connections.get_mut(id).filter(is_offered).ok_or(CallError::NoRequest)?;
        if let Some(opening) = &mut connection.opening {
            opening.deadline = Some(clock::monotonic() + sleep::REJECTED_TIME);
            opening.peer_half = None;
        }
        self.on(id, On::Reject);
        self.schedule(id);
        Ok(())
    }

    /// Closes a connection. What is under way on it fails; the peer may still take messages that it was sent, and finds that the connection is closed behind them.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn disconnect(&mut self, connection: ConnectionId) -> Result<(), CallError> {
        let found = self.connections.get(connection).ok_or(CallError::NoConnection)?;
        match found.state {
            In::Offered | In::Rejected => return Err(CallError::NoConnection),
            // Nobody has the memory yet, or whoever has is told.
            In::Requested | In::Accepting => self.on(connection, On::Deadline),
            _ => {
                self.on(connection, On::Disconnect);
                // The peer keeps its own mapping of this side's memory.
                self.on(connection, On::Drained);
            }
        }
        Ok(())
    }

    /// The next event, if there is one. Where the endpoint [wakes](EndpointConfig::wakes), its descriptor becomes readable after none was found.
    ///
    /// # Errors
    /// [`CallError::NoBuffers`]: the program has to give messages back. [`CallError::System`].
    #[inline]
    pub fn event(&mut self) -> Result<Option<Event>, CallError> {
        if self.events.is_empty() {
            if let Some(event) = self.take_at_once() {
                return Ok(Some(event));
            }
            if !self.events.is_empty() {
                return Ok(self.events.pop_front());
            }
            self.step();
            if self.events.is_empty() {
                return self.event_after_none();
            }
        }
        Ok(self.events.pop_front())
    }

    #[cold]
    fn event_after_none(&mut self) -> Result<Option<Event>, CallError> {
        if self.held >= self.config.receive_buffers {
            return Err(CallError::NoBuffers);
        }
        if self.config.wakes {
            self.prepare_to_sleep()?;
        }
        Ok(self.events.pop_front())
    }

    /// Moves on what is under way, without taking events.
    pub fn progress(&mut self) {
        self.step();
    }

    /// Moves on what is under way until there is an event, or `done` says that it is enough, or `most` is over. Whoever waits so yields its processor to others, then sleeps.
    ///
    /// # Errors
    /// As of [`event`](Self::event).
    pub fn wait(
        &mut self,
        most: Option<Duration>,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), CallError> {
        let end = most.map(|most| clock::monotonic().saturating_add(nanoseconds(most)));
        let mut idle = 0;
        loop {
            self.step();
            if done(self) || !self.events.is_empty() {
                return Ok(());
            }
            if self.held >= self.config.receive_buffers && !self.under_way.is_awaited() {
                return Err(CallError::NoBuffers);
            }
            if end.is_some_and(|end| clock::monotonic() >= end) {
                return Ok(());
            }
            self.pause(&mut idle, end)?;
        }
    }

    /// Gives a message back, so that another one may come in its place.
    pub fn give_back(&mut self, message: Message) {
        self.held = self.held.saturating_sub(1);
        self.buffers.put(message.bytes);
    }

    /// How an operation that is [awaited](SendFlags::AWAITED) has ended; `None` if it is not over. To be asked once.
    pub fn outcome(&mut self, operation: OperationId) -> Option<Result<(), Failure>> {
        self.outcomes.remove(&operation)
    }

    /// The longest message of a connection, in bytes.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn max_send(&self, connection: ConnectionId) -> Result<usize, CallError> {
        self.connections.get(connection).map(|found| found.max_send).ok_or(CallError::NoConnection)
    }

    /// How a connection delivers messages.
    ///
    /// # Errors
    /// [`CallError::NoConnection`].
    pub fn attribute(&self, connection: ConnectionId) -> Result<Attribute, CallError> {
        self.connections.get(connection).map(|found| found.attribute).ok_or(CallError::NoConnection)
    }

    /// Whether one more message or transfer may be under way.
    pub fn has_room(&mut self) -> bool {
        self.has_send_buffers()
    }

    /// How many connections there are, in whatever state.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// What this side of a connection works by; and its memory's file, for the peer.
    fn own_half(&self) -> Result<(OwnHalf, Option<MemFd>), CallError> {
        if let Some(fifo) = &self.fifo {
            return Ok((OwnHalf::Fifo(fifo.files()), None));
        }
        let (half, file) = Half::create()?;
        Ok((OwnHalf::Rings(half), Some(file)))
    }

    /// What this endpoint tells others of itself.
    fn party(&self, connection: ConnectionId) -> Party {
        Party {
            connection,
            by_fifo: self.config.backend == Backend::Fifo,
            max_send: self.config.max_send as u32,
            tag: self.tag,
            mark: std::ptr::from_ref(&*self.mark).addr() as u64,
            marked: bytemuck::cast(self.mark.each_ref().map(|word| word.load(Relaxed))),
        }
    }
}

impl AsRawFd for Endpoint {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for Endpoint {
    /// What becomes readable where the endpoint [wakes](EndpointConfig::wakes). Nobody but the endpoint reads from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_ref().map_or(self.socket.as_fd(), |alarm| alarm.as_fd())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        for id in self.connections.ids().collect::<Vec<_>>() {
            let _ = self.disconnect(id);
        }
        kill_point!("cci.endpoint.disconnected");
    }
}

/// The directory of a new endpoint.
fn directory(config: &EndpointConfig) -> Result<Directory, DirectoryError> {
    match config.service {
        Some((pid, id)) => Directory::create(&config.base, pid, id),
        None => Directory::create_next(&config.base, std::process::id()),
    }
}

/// Whether what is at an address may be given memory of this process's: a socket of this user or of root. Where nothing is, nobody is given anything.
fn is_trusted(peer: &Uri) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = nix::unistd::geteuid().as_raw();
    let found = std::fs::symlink_metadata(peer.socket());
    found.map_or(true, |found| found.uid() == own || found.uid() == 0)
}

/// The first time until a datagram is sent again.
fn interval(config: &EndpointConfig) -> u64 {
    nanoseconds(config.retransmit).clamp(sleep::SHORTEST_INTERVAL, sleep::LONGEST_INTERVAL)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
