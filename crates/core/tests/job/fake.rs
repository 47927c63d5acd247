//! A job of a few ranks in one process, over fake transports and a fake network.
//!
//! - [`ShmemWire`] connects ranks that share memory. It uses the real queues of `gasworks-shmem`, here on the heap.
//! - [`NetWire`] connects the other ranks. It has no mapped queues, and it fails where its [`WireLog`] says so.
//! - [`FakeNic`] moves bytes between segments when it is polled, in order, unless its [`NicLog`] holds it.
//!
//! A test builds a [`Job`] from a [`Plan`], sends messages, [polls](Job::poll) every rank by hand, and compares what the
//! handlers have [seen](Job::seen). [`with_peers`] lets the peers run during a call that waits.
//!
//! # Invariants
//! - fake.1: the fabric owns the heap memory of segments, reservations and queues, which is made of atomics. Every wire, NIC
//!   and peer table holds the fabric, so the memory outlives every description of it.

mod blocks;
#[allow(unsafe_code)]
mod nic;

pub use blocks::{BLOCKS, LEN as BLOCK};
pub use nic::FakeNic;

use blocks::FakeBlocks;

use gasworks_core::message::decode;
use gasworks_core::observe::{Observer, Recorder};
use gasworks_core::{
    Also, Arrived, Attributes, Category, Class, CoreMode, Domains, Engine, Entry, Error, Flow, Handlers,
    Incoming, Limits, Outgoing, Parts, Patience, Policy, Rank, Rdma, Received, Reservation, Signature, Wait,
    Wire, WireError,
};
use gasworks_memory::atomic::{Ops, Type};
use gasworks_memory::{Peer, PeerFlags, RegionTable, Rights};
use gasworks_rdma::{Abilities, Atomics, Completion, Direction, Key, Nic, NicError, Post, Stage, Tuning};
use gasworks_shmem::blocks::Lent;
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::inbox::{Block, Control, Inbox, MAX_INLINE, Message, Payload, Slot};
use gasworks_shmem::queues::{Queues, Seat};
use gasworks_shmem::ranks::Ranks;
use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::{Mode, Par, ParSync, RawSlice, Seq, VolatileSlice};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Sizes in bytes: the largest Medium, the largest Long, the largest Long that travels in its message, a segment.
pub const MEDIUM: usize = 512;
pub const LONG: usize = 2048;
pub const PACKED: usize = 256;
pub const SEGMENT: usize = 4096;
/// Slots of one rank's queue of requests in shared memory.
pub const SLOTS: usize = 8;
/// Indices of the handlers that every job registers, by category. They take any number of arguments, record what they
/// receive, and reply with the job's answer.
pub const REQUEST: [u8; 3] = [200, 201, 202];
pub const REPLY: [u8; 3] = [210, 211, 212];

type Words = Box<[AtomicU64]>;

fn words(bytes: usize) -> Words {
    (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect()
}

fn bytes_of(words: &Words, len: usize) -> VolatileSlice<'_> {
    VolatileSlice::from_words(words).slice(0, len).expect("as many bytes")
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub fn read(bytes: VolatileSlice<'_>) -> Vec<u8> {
    let mut all = vec![0; bytes.len()];
    bytes.read(&mut all);
    all
}

/// Controls one rank's transports, and records what the engine asked of them.
#[derive(Default)]
pub struct WireLog {
    /// Errors that the next reservations and commits return.
    pub refuse_room: VecDeque<WireError>,
    pub refuse_commit: VecDeque<WireError>,
    /// The error that the next poll returns.
    pub broken: Option<WireError>,
    /// Whether `Wire::beside` returns a number.
    pub beside: bool,
    /// `Wire::is_settled` returns false for so many polls.
    pub unsettled: u32,
    /// Reservations that are neither committed nor cancelled.
    pub held: i32,
    pub cancelled: u32,
    /// Target, class and head of every message that was committed.
    pub sent: Vec<(Rank, Class, Vec<u8>)>,
    /// The limit of messages that each poll was given.
    pub bursts: Vec<usize>,
    /// How often the engine was about to sleep.
    pub armed: u32,
    pub closed: u32,
}

/// A post that has not completed.
struct Posted {
    direction: Direction,
    peer: Rank,
    offset: u64,
    local: RawSlice,
    tells: Option<u32>,
    apart: bool,
    token: u64,
}

/// Which completions a NIC holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    #[default]
    Nothing,
    /// The ends of transfers, but not the local completions of puts.
    Ends,
    All,
}

/// Controls one rank's NIC, and records what the engine asked of it.
#[derive(Default)]
pub struct NicLog {
    pub hold: Hold,
    /// Errors with which the next transfers end.
    pub fail: VecDeque<NicError>,
    posted: VecDeque<Posted>,
    /// Every post: its direction, peer, length and remote key.
    pub posts: Vec<(Direction, Rank, usize, Vec<u8>)>,
    pub polls: u32,
    pub registered: Vec<usize>,
}

impl NicLog {
    /// How many posts have not completed.
    pub fn under_way(&self) -> usize {
        self.posted.len()
    }
}

/// A message in flight.
struct Packet {
    from: Rank,
    head: Vec<u8>,
    payload: Vec<u8>,
    /// The receiver takes it only after the sender's NIC has told this number.
    waits: Option<u32>,
}

#[derive(Default)]
struct InFlight {
    mailboxes: Vec<VecDeque<Packet>>,
    rooms: HashMap<u64, Words>,
    /// Numbers that were told before their messages were committed.
    told: HashMap<u32, bool>,
    next: u64,
}

/// The queues and the doorbell of one rank.
struct RankQueues {
    queues: [(Control, Box<[Slot]>); 2],
    bell: Arc<Doorbell>,
}

/// What the ranks of a job share.
pub struct Fabric {
    segments: Vec<Words>,
    queues: Vec<RankQueues>,
    pub blocks: FakeBlocks,
    in_flight: Mutex<InFlight>,
}

impl Fabric {
    fn new(ranks: u32) -> Arc<Self> {
        let queue = |slots| (Control::new(), (0..slots).map(|_| Slot::new()).collect());
        let home = |_| RankQueues { queues: [queue(SLOTS), queue(1024)], bell: Arc::default() };
        let mailboxes = (0..ranks).map(|_| VecDeque::new()).collect();
        Arc::new(Self {
            segments: (0..ranks).map(|_| words(SEGMENT)).collect(),
            queues: (0..ranks).map(home).collect(),
            blocks: FakeBlocks::new(),
            in_flight: Mutex::new(InFlight { mailboxes, next: 70, ..InFlight::default() }),
        })
    }

    pub fn segment(&self, rank: Rank) -> VolatileSlice<'_> {
        bytes_of(&self.segments[rank as usize], SEGMENT)
    }

    /// Allocates the payload of a reservation; returns its number, too.
    fn room(&self, len: usize) -> (u64, VolatileSlice<'_>) {
        let mut in_flight = lock(&self.in_flight);
        let (number, room) = (in_flight.next, words(len));
        // SAFETY: the words are on the heap, and `rooms` keeps them until the reservation gives its number back to `leave`.
        let bytes = unsafe { bytes_of(&room, len).raw().borrow() };
        in_flight.next += 1;
        in_flight.rooms.insert(number, room);
        (number, bytes)
    }

    /// Frees the payload of a reservation; returns its content.
    fn leave(&self, number: u64, bytes: VolatileSlice<'_>) -> Vec<u8> {
        let content = read(bytes);
        lock(&self.in_flight).rooms.remove(&number).expect("it is held");
        content
    }

    /// Sends a message with any head and payload, as a hostile peer may.
    pub fn post(&self, from: Rank, to: Rank, head: &[u8], payload: &[u8]) {
        self.deliver(to, Packet { from, head: head.to_vec(), payload: payload.to_vec(), waits: None });
    }

    /// As [`post`](Self::post), through the queue of requests in shared memory, with the name of a block.
    pub fn post_block(&self, from: Rank, to: Rank, head: &[u8], block: Block) {
        let (control, slots) = &self.queues[to as usize].queues[0];
        let inbox = Inbox::new(control, slots).expect("a power of two");
        inbox.reserve(1).expect("room");
        assert!(!inbox.send(from as u16, head, Payload::Block(block)), "nobody sleeps");
    }

    fn deliver(&self, to: Rank, mut packet: Packet) {
        let mut in_flight = lock(&self.in_flight);
        let told = packet.waits.and_then(|number| in_flight.told.remove(&number));
        packet.waits = packet.waits.filter(|_| told.is_none());
        if told != Some(false) {
            in_flight.mailboxes[to as usize].push_back(packet);
        }
    }

    fn tell(&self, peer: Rank, number: u32, landed: bool) {
        let mut in_flight = lock(&self.in_flight);
        let waiting = &mut in_flight.mailboxes[peer as usize];
        match waiting.iter().position(|packet| packet.waits == Some(number)) {
            Some(at) if landed => waiting[at].waits = None,
            Some(at) => _ = waiting.remove(at),
            None => _ = in_flight.told.insert(number, landed),
        }
    }

    /// How many messages to `rank` have not been taken.
    pub fn waiting(&self, rank: Rank) -> usize {
        lock(&self.in_flight).mailboxes[rank as usize].len()
    }
}

/// What both transports do in the same way.
pub struct Port {
    rank: Rank,
    fabric: Arc<Fabric>,
    log: Arc<Mutex<WireLog>>,
    flow: Flow,
    medium: usize,
    of_first_domain: bool,
}

impl Port {
    fn reserve(&self, to: Rank, class: Class, len: usize) -> Result<Reservation<'_>, WireError> {
        if let Some(refused) = lock(&self.log).refuse_room.pop_front() {
            return Err(refused);
        }
        lock(&self.log).held += 1;
        let (number, payload) = self.fabric.room(len);
        Ok(Reservation::new(to, class, payload, [number, 0]))
    }

    /// Ends a reservation; returns the payload.
    fn commit(&self, room: &Reservation<'_>, head: &[u8]) -> Result<Vec<u8>, WireError> {
        let payload = self.fabric.leave(room.ticket[0], room.payload());
        let mut log = lock(&self.log);
        log.held -= 1;
        if let Some(refused) = log.refuse_commit.pop_front() {
            return Err(refused);
        }
        log.sent.push((room.to, room.class, head.to_vec()));
        Ok(payload)
    }

    fn cancel(&self, room: &Reservation<'_>) {
        self.fabric.leave(room.ticket[0], room.payload());
        let mut log = lock(&self.log);
        (log.held, log.cancelled) = (log.held - 1, log.cancelled + 1);
    }

    fn polled(&self, burst: usize) -> Result<(), WireError> {
        let mut log = lock(&self.log);
        log.bursts.push(burst);
        log.unsettled = log.unsettled.saturating_sub(1);
        log.broken.take().map_or(Ok(()), Err)
    }

    /// The peers act in the place of a sleep.
    fn arm(&self) -> Duration {
        lock(&self.log).armed += 1;
        if run_peers() { Duration::ZERO } else { Duration::MAX }
    }
}

/// A transport without mapped queues.
pub struct NetWire(Port);

impl<M: Mode> Wire<M> for NetWire {
    fn attributes(&self) -> Attributes {
        let limits = Limits { max_medium: MEDIUM, max_long: LONG as u64, packed_long: PACKED };
        Attributes {
            is_of_first_domain: self.0.of_first_domain,
            ..Attributes::new("net", limits, self.0.flow)
        }
    }
    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        self.0.reserve(to, class, payload)
    }
    fn commit(&self, room: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let payload = self.0.commit(&room, head)?;
        let waits = (room.ticket[1] > 0).then_some(room.ticket[1] as u32);
        self.0.fabric.deliver(room.to, Packet { from: self.0.rank, head: head.to_vec(), payload, waits });
        Ok(())
    }
    fn beside(&self, room: &mut Reservation<'_>) -> Option<u32> {
        let number = room.ticket[0] as u32;
        lock(&self.0.log).beside.then(|| {
            room.ticket[1] = number.into();
            number
        })
    }
    fn cancel(&self, room: Reservation<'_>) {
        self.0.cancel(&room);
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let broken = self.0.polled(burst);
        let mut taken = 0;
        while taken < burst {
            let packet = {
                let mut in_flight = lock(&self.0.fabric.in_flight);
                let mine = &mut in_flight.mailboxes[self.0.rank as usize];
                mine.iter().position(|packet| packet.waits.is_none()).and_then(|at| mine.remove(at))
            };
            let Some(mut packet) = packet else { break };
            let payload = VolatileSlice::from_mut(&mut packet.payload);
            sink(Arrived { from: packet.from, head: &packet.head, payload });
            taken += 1;
        }
        broken.map(|()| taken)
    }
    fn wait(&self) -> Wait<'_> {
        Wait::Nothing
    }
    fn arm(&self) -> Result<Duration, WireError> {
        Ok(self.0.arm())
    }
    fn is_settled(&self) -> bool {
        lock(&self.0.log).unsettled == 0
    }
    fn closed(&self) {
        lock(&self.0.log).closed += 1;
    }
}

/// A transport over shared memory: queues, and blocks for payloads that no slot holds.
pub struct ShmemWire<M: Mode> {
    port: Port,
    queues: Queues<'static, M>,
}

impl<M: Mode> ShmemWire<M> {
    /// Connects the first `sharing` ranks.
    fn new(port: Port, sharing: u32) -> Self {
        // SAFETY: fake.1: the wire's port keeps the fabric, in which the queues stay where they are, as long as the wire has them.
        let queues: &'static [RankQueues] = unsafe { &*std::ptr::from_ref(&port.fabric.queues[..]) };
        let inbox = |(control, slots): &'static (Control, Box<[Slot]>)| Inbox::new(control, slots);
        let seats = queues.iter().take(sharing as usize).map(|home| Seat {
            requests: inbox(&home.queues[0]).expect("a power of two"),
            replies: inbox(&home.queues[1]).expect("a power of two"),
            bell: &home.bell,
        });
        let ranks = Ranks::new(&(0..sharing).collect::<Vec<_>>()).expect("they rise");
        let queues = Queues::new(port.rank, ranks, seats, 1).expect("it is among them");
        Self { port, queues }
    }
}

impl<M: Mode> Wire<M> for ShmemWire<M> {
    fn attributes(&self) -> Attributes {
        let limits =
            Limits { max_medium: self.port.medium, max_long: LONG as u64, packed_long: self.port.medium };
        Attributes::new("shmem", limits, self.port.flow)
    }
    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        let room = self.port.reserve(to, class, payload)?;
        if class == Class::Request && self.queues.claim(to).is_err() {
            self.port.cancel(&room);
            return Err(WireError::Busy { to });
        }
        Ok(room)
    }
    fn commit(&self, room: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let payload = self.port.commit(&room, head)?;
        let (to, queue) = (room.to, room.class.queue());
        let wanted = if payload.len() <= MAX_INLINE {
            self.queues.send(to, queue, head, Payload::Bytes(&payload))
        } else {
            self.queues.send(to, queue, head, Payload::Block(self.port.fabric.blocks.fill(&payload)))
        };
        if wanted {
            gasworks_core::wire::ring(self.queues.bell(to));
        }
        Ok(())
    }
    fn cancel(&self, room: Reservation<'_>) {
        self.port.cancel(&room);
        if room.class == Class::Request {
            self.queues.cancel(room.to);
        }
    }
    fn queues(&self) -> Option<&Queues<'_, M>> {
        Some(&self.queues)
    }
    fn lend(&self, _: u16, _: Class, block: Block) -> Option<Lent<'_>> {
        self.port.fabric.blocks.lend(block)
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        self.port.polled(burst)?;
        let (mut message, mut taken) = (Message::new(), 0);
        while taken < burst {
            match self.queues.take(&mut message) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err((_, damage)) => panic!("{damage}"),
            }
            let (inline, len) = message.inline();
            let mut payload = vec![0; len];
            gasworks_sync::racy::load_words(inline, &mut payload);
            let lent = message.block.map(|block| self.port.fabric.blocks.lend(block).expect("a block"));
            let payload = match &lent {
                Some(lent) => lent.bytes(),
                None => VolatileSlice::from_mut(&mut payload),
            };
            sink(Arrived { from: self.queues.rank(message.from), head: message.head(), payload });
            taken += 1;
        }
        Ok(taken)
    }
    fn wait(&self) -> Wait<'_> {
        Wait::Bell(self.port.fabric.queues[self.port.rank as usize].bell.clone())
    }
    fn arm(&self) -> Result<Duration, WireError> {
        Ok(self.port.arm())
    }
}

thread_local! {
    static PEERS: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Runs the closure that [`with_peers`] was given, but not from inside itself; whether there is one.
fn run_peers() -> bool {
    let turn = PEERS.with(|others| others.borrow_mut().take());
    if let Some(mut turn) = turn {
        turn();
        PEERS.with(|others| *others.borrow_mut() = Some(turn));
        return true;
    }
    false
}

/// Runs `act`, and `turn` whenever `act` is about to sleep on a transport or polls a NIC on this thread.
pub fn with_peers<R>(turn: impl FnMut() + 'static, act: impl FnOnce() -> R) -> R {
    PEERS.with(|others| *others.borrow_mut() = Some(Box::new(turn)));
    let result = act();
    PEERS.with(|others| others.borrow_mut().take());
    result
}

/// A thread mode that the fakes can be used in.
pub trait TestMode: CoreMode {
    fn net(net: NetWire) -> Box<Self::Wire>;
    fn shmem(shmem: ShmemWire<Self>) -> Box<Self::Wire>;
    fn function<F>(function: F) -> Box<Self::Function>
    where
        F: for<'a> Fn(&Incoming<'a, Self>) -> Result<(), Box<Error>> + Send + Sync + 'static;
}

macro_rules! test_modes {
    ($($mode:ident)*) => {
        $(impl TestMode for $mode {
            fn net(net: NetWire) -> Box<Self::Wire> {
                Box::new(net)
            }
            fn shmem(shmem: ShmemWire<Self>) -> Box<Self::Wire> {
                Box::new(shmem)
            }
            fn function<F>(function: F) -> Box<Self::Function>
            where
                F: for<'a> Fn(&Incoming<'a, Self>) -> Result<(), Box<Error>> + Send + Sync + 'static,
            {
                Box::new(function)
            }
        })*
    };
}

test_modes!(Seq ParSync Par);

/// How to build a job.
#[derive(Clone)]
pub struct Plan {
    pub ranks: u32,
    /// The first so many ranks share memory.
    pub sharing: u32,
    /// Post descriptors of each NIC; 0 for a job without a network.
    pub descriptors: usize,
    /// Domains of each NIC, threads that use each, and the mask of polls (`Domains::several`); `None` for one domain.
    pub domains: Option<(u32, u32, u32)>,
    /// Whether the peer tables have no keys, as before segments are attached.
    pub is_keyless: bool,
    pub beside: bool,
    pub flow: Flow,
    /// That of the ranks which share memory, if it is another, and their largest Medium.
    pub near: Option<(Flow, usize)>,
    /// Whether the transport without mapped queues uses the first domain.
    pub of_first_domain: bool,
    pub policy: Policy,
    /// One for each rank of a job that is observed.
    pub recorders: Vec<Arc<Recorder>>,
}

impl Default for Plan {
    /// Two ranks without shared memory and without a NIC, which sleep in the first turn without work.
    fn default() -> Self {
        let policy = Policy { spins: 0, yields: 0, ..Policy::for_host(1, 1) };
        let flow = Flow { depth: 4, total: 64, volume: 0 };
        Self {
            ranks: 2,
            sharing: 0,
            descriptors: 0,
            domains: None,
            is_keyless: false,
            beside: false,
            flow,
            near: None,
            of_first_domain: false,
            policy,
            recorders: Vec::new(),
        }
    }
}

impl Plan {
    /// Shared memory; a network without a NIC; one with a NIC; one whose Long headers leave before their payloads land.
    pub fn kinds() -> [Self; 4] {
        let (plain, descriptors) = (Self::default, 16);
        [
            Self { sharing: 2, ..plain() },
            plain(),
            Self { descriptors, ..plain() },
            Self { descriptors, beside: true, ..plain() },
        ]
    }
}

/// A message, as its handler received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: Rank,
    pub from: Rank,
    pub handler: u8,
    pub args: Vec<u8>,
    /// The payload of a Medium, or of a Long in the segment.
    pub payload: Vec<u8>,
    /// The offset of a Long.
    pub landed: Option<u64>,
    pub is_request: bool,
}

/// The reply to every request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub category: Category,
    pub args: Vec<u8>,
    pub payload: Vec<u8>,
    pub landing: u64,
}

#[derive(Default)]
pub struct Handled {
    pub seen: Vec<Seen>,
    pub answer: Option<Answer>,
    /// What `Incoming::reply` returned.
    pub replied: Vec<Result<(), Error>>,
}

/// A job: `engines[rank]`, with the logs of its transports and its NIC.
pub struct Job<M: TestMode> {
    pub engines: Vec<Rc<Engine<M>>>,
    pub wires: Vec<Arc<Mutex<WireLog>>>,
    /// The NICs of the first domain by rank, then those of the next.
    pub nics: Vec<Arc<Mutex<NicLog>>>,
    pub fabric: Arc<Fabric>,
    pub handled: Arc<Mutex<Handled>>,
}

pub fn signature(name: &str, category: Category, reply: bool, also: Also) -> Signature {
    Signature { name: name.into(), category, reply, nargs: 0, also }
}

pub const CATEGORIES: [Category; 3] = [Category::Short, Category::Medium, Category::Long];

impl<M: TestMode> Job<M> {
    pub fn new(plan: &Plan) -> Self {
        let fabric = Fabric::new(plan.ranks);
        let domains = plan.domains.map_or(1, |(domains, ..)| domains);
        let wires: Vec<Arc<Mutex<WireLog>>> = (0..plan.ranks).map(|_| Arc::default()).collect();
        let nics: Vec<Arc<Mutex<NicLog>>> = (0..plan.ranks * domains).map(|_| Arc::default()).collect();
        let engine = |rank: Rank| {
            let (log, far) = (&wires[rank as usize], (plan.flow, MEDIUM));
            lock(log).beside = plan.beside;
            let port = |(flow, medium)| {
                let (fabric, log, of_first_domain) = (fabric.clone(), log.clone(), plan.of_first_domain);
                Port { rank, fabric, log, flow, medium, of_first_domain }
            };
            let mapped = |peer: Rank| peer == rank || peer.max(rank) < plan.sharing;
            let shares = plan.sharing > 1 && rank < plan.sharing;
            let mut boxed = Vec::new();
            if shares {
                boxed.push(M::shmem(ShmemWire::new(port(plan.near.unwrap_or(far)), plan.sharing)));
            }
            if !shares || plan.sharing < plan.ranks {
                boxed.push(M::net(NetWire(port(far))));
            }
            let recorder = plan.recorders.get(rank as usize).cloned();
            let observer = recorder.map(|recorder| Arc::new(Observer::new(recorder, rank, plan.ranks)));
            let nic = |domain: u32| {
                let log = nics[(domain * plan.ranks + rank) as usize].clone();
                let tuning = Tuning { descriptors: plan.descriptors, ..Tuning::default() };
                let nic = M::box_nic(FakeNic { fabric: fabric.clone(), log });
                // SAFETY: `RawSlice::EMPTY` has no bytes, so there are none to keep mapped.
                unsafe { Rdma::new(nic, RawSlice::EMPTY, &tuning) }.expect("an engine")
            };
            let rdma = match plan.domains {
                Some((domains, threads, mask)) => {
                    Domains::several((0..domains).map(nic).collect(), threads, mask)
                }
                None if plan.descriptors > 0 => Domains::one(nic(0)),
                None => Domains::none(),
            };
            let last = boxed.len() as u8 - 1;
            let peer = |peer| {
                let key = if plan.is_keyless { Vec::new() } else { vec![peer as u8 + 1] };
                Peer { key, ..peer_of(&fabric, rank, peer, mapped(peer)) }
            };
            Engine::new(Parts {
                rank,
                route: (0..plan.ranks).map(|peer| if mapped(peer) { 0 } else { last }).collect(),
                wires: boxed,
                // SAFETY: fake.1: the segments are the fabric's, which the table is given as their owner, and are atomics.
                peers: unsafe { RegionTable::new((0..plan.ranks).map(peer), fabric.clone()) },
                rdma,
                patience: Patience::new(plan.policy),
                process_vm: false,
                handlers: Handlers::new(),
                observer,
            })
        };
        let engines = (0..plan.ranks).map(|rank| Rc::new(engine(rank))).collect();
        let this = Self { engines, wires, nics, fabric, handled: Arc::default() };
        this.register();
        this
    }

    fn register(&self) {
        for category in CATEGORIES {
            let at = category as usize;
            for (index, reply) in [(REQUEST[at], false), (REPLY[at], true)] {
                let handled = self.handled.clone();
                let name = format!("any {category}");
                self.handle(index, signature(&name, category, reply, Also::ANY_COUNT), move |message| {
                    look(message, &handled);
                    Ok(())
                });
            }
        }
    }

    /// Registers a handler on every rank.
    pub fn handle<F>(&self, index: u8, signature: Signature, function: F)
    where
        F: for<'a> Fn(&Incoming<'a, M>) -> Result<(), Box<Error>> + Clone + Send + Sync + 'static,
    {
        for engine in &self.engines {
            let entry = Entry { signature: signature.clone(), function: M::function(function.clone()) };
            assert_eq!(engine.handlers().register(Some(index), entry), Ok(index));
        }
    }

    pub fn wire(&self, rank: usize) -> MutexGuard<'_, WireLog> {
        lock(&self.wires[rank])
    }

    pub fn nic(&self, rank: usize) -> MutexGuard<'_, NicLog> {
        lock(&self.nics[rank])
    }

    /// Sets the reply to requests from now on; `None` for no reply.
    pub fn answer(&self, answer: Option<Answer>) {
        lock(&self.handled).answer = answer;
    }

    /// Takes the messages that handlers have received.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut lock(&self.handled).seen)
    }

    /// Takes what `Incoming::reply` returned.
    pub fn replied(&self) -> Vec<Result<(), Error>> {
        std::mem::take(&mut lock(&self.handled).replied)
    }

    /// Polls every rank until none makes progress.
    pub fn poll(&self) {
        let mut quiet = 0;
        for _ in 0..1000 {
            let moved =
                self.engines.iter().map(|engine| engine.poll().expect("nothing is wrong")).sum::<usize>();
            let is_quiet = self.engines.iter().all(|engine| engine.peek().owed_to.is_empty());
            // Twice, since what the last rank sends in a round the first takes in the next.
            quiet = if moved == 0 && is_quiet { quiet + 1 } else { 0 };
            if quiet == 2 {
                return;
            }
        }
        panic!("it goes on and on");
    }

    /// Asserts that no rank has requests out, owes credits, has postponed steps or holds reservations.
    pub fn assert_quiet(&self) {
        for (rank, engine) in self.engines.iter().enumerate() {
            let peek = engine.peek();
            assert_eq!(
                (peek.out.0, peek.out_to, peek.owed_to, peek.postponed),
                (0, vec![], vec![], 0),
                "rank {rank}"
            );
            assert_eq!(lock(&self.wires[rank]).held, 0, "rank {rank}");
            assert!((0..engine.ranks()).all(|peer| engine.out(peer) == (0, 0)), "rank {rank}");
        }
    }

    /// The credits that a rank returned by messages of their own, and to whom.
    pub fn credits_sent(&self, rank: usize) -> Vec<(Rank, u8)> {
        let log = self.wire(rank);
        let alone = log.sent.iter().filter(|(_, class, _)| *class == Class::Credit);
        alone.map(|(to, _, head)| (*to, decode(head).expect("a head").returned.count)).collect()
    }
}

fn peer_of(fabric: &Fabric, rank: Rank, peer: Rank, mapped: bool) -> Peer {
    let flags = if mapped { PeerFlags::MAPPED } else { PeerFlags::empty() };
    let flags = if peer == rank { flags | PeerFlags::SELF } else { flags };
    let bytes = if mapped { fabric.segment(peer).raw() } else { RawSlice::EMPTY };
    Peer { mapped: bytes, len: SEGMENT as u64, remote_base: 0, key: Vec::new(), flags }
}

/// Records a message, and replies if the job has an answer.
fn look<M: TestMode>(message: &Incoming<'_, M>, handled: &Mutex<Handled>) {
    let (payload, landed) = match message.received() {
        Received::Nothing => (Vec::new(), None),
        Received::Payload(lent) => {
            let mut all = vec![0; lent.len()];
            lent.read(&mut all);
            (all, None)
        }
        Received::Landed { offset, len } => {
            let own = message.engine().peers().reach(message.rank(), offset, len as usize, Rights::all());
            (own.ok().flatten().map(read).unwrap_or_default(), Some(offset))
        }
    };
    let (token, args) = (message.token(), message.args().to_vec());
    let seen = Seen {
        at: message.rank(),
        from: message.source(),
        handler: token.handler,
        args,
        payload,
        landed,
        is_request: message.is_request(),
    };
    let answer = {
        let mut handled = lock(handled);
        handled.seen.push(seen);
        handled.answer.clone().filter(|_| message.is_request())
    };
    if let Some(Answer { category, args, payload, landing }) = answer {
        let handler = REPLY[category as usize];
        let reply = Outgoing { category, handler, args: &args, payload: &payload, landing };
        let replied = message.reply(&reply);
        lock(handled).replied.push(replied);
    }
}
