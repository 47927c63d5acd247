//! What the ranks of a net share.

use super::SimConfig;
use super::block::Block;
use super::lock::{Condvar, Mutex, RwLock};
use gasworks_sync::RawSlice;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gasworks_core::wire::ring;
use gasworks_core::{Class, Name};
use gasworks_memory::RegionId;
use gasworks_memory::atomic::Update;
use gasworks_os::eventfd::EventFd;
use gasworks_shmem::doorbell::Doorbell;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub from: u32,
    pub class: Class,
    pub head: Vec<u8>,
    pub payload: Block,
    /// It may not be delivered before its receiver has been told this number.
    pub beside: Option<u32>,
    /// The receiver's poll in which it may be delivered at the earliest; then, the order among equals. Sorting by
    /// both reorders freely and starves nobody.
    pub when: (u64, u64),
}

impl Message {
    fn content(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.payload.bytes().len()];
        self.payload.bytes().read(&mut bytes);
        bytes
    }

    /// The same message once more.
    pub fn twin(&self) -> Self {
        let payload = Block::new(self.payload.bytes().len());
        payload.bytes().write(&self.content());
        Self { head: self.head.clone(), payload, ..*self }
    }

    /// Flips a bit of the payload, or of the last argument where there is none.
    pub fn flip(&mut self, chance: u64) {
        let mut bytes = self.content();
        let target = if bytes.is_empty() { &mut self.head[..] } else { &mut bytes[..] };
        let at = target.len() - 1 - chance as usize % target.len().min(4);
        target[at] ^= 1 << ((chance >> 8) % 8);
        self.payload.bytes().write(&bytes);
    }
}

/// What has been sent to a rank.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// How often the rank has polled.
    pub polls: u64,
    /// How many messages have ever come.
    pub arrived: u64,
    /// Room taken by requests: reserved, under way, or being handled.
    pub requests: usize,
    pub messages: Vec<Message>,
    /// What NICs have told, and who: numbers that no message has been waiting for so far, and whether the payload has landed. Without it the
    /// message is void.
    pub told: HashMap<(u32, u32), bool>,
    /// Told to wake though nothing has come.
    pub woken: bool,
}

/// What a rank has begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Calls of `reserve` and commits: the numbers of the wire's decisions.
    pub reserves: u64,
    pub commits: u64,
    pub next_ticket: u64,
    pub reserved: HashMap<u64, Block>,
    /// For each peer, requests of its that were delivered here, less the replies and credit messages that went back:
    /// each may use the room of one request.
    pub replies_due: Vec<u64>,
}

/// A post that is under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub put: bool,
    /// What it does, if it is an atomic operation.
    pub update: Option<Update>,
    pub local: RawSlice,
    /// Whether it is to be said when the source may be used again.
    pub tells: bool,
    /// What the peer is told in the end.
    pub told: Option<u32>,
    /// The bytes, once that was said.
    pub kept: Option<Vec<u8>>,
    pub peer: u32,
    pub registration: (u32, u32),
    pub offset: usize,
    pub token: u64,
    pub number: u64,
    pub when: (u64, u64),
}

/// A rank's side of the NIC.
#[derive(Debug, Default)]
pub(super) struct NicSide {
    pub posts: u64,
    pub polls: u64,
    pub flights: Vec<Flight>,
}

/// A place for a registration, and how often it has been used.
#[derive(Debug, Default)]
pub(super) struct Registration {
    pub generation: u32,
    pub bytes: Option<RawSlice>,
}

/// What a rank sleeps on: some have a doorbell, others a descriptor.
pub(super) enum Arrival {
    Bell(Arc<Doorbell>),
    Descriptor(EventFd),
}

impl Arrival {
    fn new(rank: usize) -> Self {
        // Miri has no `ppoll`.
        let event = if rank % 2 == 1 && !cfg!(miri) { EventFd::new().ok() } else { None };
        event.map_or_else(|| Self::Bell(Arc::default()), Self::Descriptor)
    }

    /// Ends the rank's sleep.
    pub fn ring(&self) {
        match self {
            Self::Bell(bell) => ring(bell),
            // It cannot fail: a full one is readable already.
            Self::Descriptor(event) => _ = event.ring(),
        }
    }
}

/// One rank's part.
pub(super) struct Seat {
    pub inbox: Mutex<Inbox>,
    pub arrival: Arrival,
    pub outbox: Mutex<Outbox>,
    pub nic: Mutex<NicSide>,
    pub segment: Block,
    /// Memory for the engine of its NIC.
    pub aux: Block,
}

/// Key-value exchange and fences.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// Put since the last fence.
    pub fresh: BTreeMap<(u32, String), Vec<u8>>,
    pub known: BTreeMap<(u32, String), Vec<u8>>,
    pub waiting: u32,
    pub fences: u64,
    pub finalized: Vec<bool>,
}

/// Why the net does not work any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub rank: u32,
    pub why: String,
}

/// A barrier in shared memory.
#[derive(Debug)]
pub(super) struct Meeting {
    pub members: Box<[u32]>,
    pub arrivals: Mutex<Arrivals>,
}

impl Meeting {
    pub fn of(members: Box<[u32]>) -> Self {
        Self { members, arrivals: Mutex::default() }
    }
}

/// Who has come to it.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub phase: u64,
    pub arrived: usize,
    /// What those that have come agree on, and what all agreed on last.
    pub name: Name,
    pub agreed: Name,
}

/// A team's, in its members' slots of one number, until all have left it.
#[derive(Debug)]
pub(super) struct TeamMeeting {
    pub slot: u32,
    pub meeting: Arc<Meeting>,
    pub left: usize,
}

pub(super) struct Net {
    pub config: SimConfig,
    pub seats: Vec<Seat>,
    /// Registrations by rank. Copies run under the read lock: so none runs after a registration has ended.
    pub registrations: RwLock<Vec<Vec<Registration>>>,
    pub exchange: Mutex<Exchange>,
    pub fenced: Condvar,
    pub broken: Mutex<Option<Broken>>,
    pub everyone: Arc<Meeting>,
    pub teams: Mutex<Vec<TeamMeeting>>,
    /// What each rank has of each region that was ever created.
    pub regions: Mutex<HashMap<RegionId, Box<[Block]>>>,
    pub name: String,
}

impl Net {
    pub fn new(config: SimConfig) -> Self {
        let ranks = config.ranks as usize;
        let seat = |rank: usize| Seat {
            inbox: Mutex::default(),
            arrival: Arrival::new(rank),
            outbox: Mutex::new(Outbox { replies_due: vec![0; ranks], ..Outbox::default() }),
            nic: Mutex::default(),
            // Whole units of what a get fetches, or the last bytes could not be got.
            segment: Block::new(config.segment.next_multiple_of(config.nic.get_alignment.max(1))),
            aux: Block::new(if config.nic.registers_local { config.aux } else { 0 }),
        };
        Self {
            seats: (0..ranks).map(seat).collect(),
            registrations: RwLock::new(std::iter::repeat_with(Vec::new).take(ranks).collect()),
            exchange: Mutex::new(Exchange { finalized: vec![false; ranks], ..Exchange::default() }),
            fenced: Condvar::default(),
            broken: Mutex::new(None),
            everyone: Arc::new(Meeting::of((0..config.ranks).collect())),
            teams: Mutex::default(),
            regions: Mutex::default(),
            name: format!("simnet-{:x}", config.seed),
            config,
        }
    }

    /// Who has broken the net, if somebody has.
    pub fn broken(&self) -> Option<Broken> {
        self.broken.lock().clone()
    }

    /// Notes that a rank is gone and wakes everybody who waits for it. The first one counts.
    pub fn give_up(&self, rank: u32, why: String) {
        self.broken.lock().get_or_insert(Broken { rank, why });
        let _exchange = self.exchange.lock();
        self.fenced.notify_all();
        for seat in &self.seats {
            seat.inbox.lock().woken = true;
            seat.arrival.ring();
        }
    }
}
