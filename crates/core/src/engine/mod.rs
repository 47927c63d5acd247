//! The engine of active messages: one for each job in each process.

#[allow(unsafe_code)]
mod attach;
mod credit;
mod dispatch;
#[allow(unsafe_code)]
mod domains;
mod flag;
mod incoming;
mod negotiate;
mod own;
mod peek;
mod progress;
#[allow(unsafe_code)]
mod put;
#[allow(unsafe_code)]
pub mod query;
mod send;
mod thread;

pub use domains::Domains;
pub use peek::Peek;
pub use progress::Task;
pub use put::{Transfer, counts_of};
pub use thread::message_in_hand;
pub(crate) use thread::{Held, this_thread};

pub use incoming::{Incoming, Received, Token};
pub use negotiate::{Ask, Commit, Prepared, PreparedReply};

use crate::flow::{Flow, Patience, WaitMode};
use crate::handlers::Handlers;
use crate::ops::Ops;
use crate::router::Router;
use crate::{Category, CoreMode, Error, Limits, Rank, Wire};
use crossbeam_queue::SegQueue;
use gasworks_memory::PeerTable;
use gasworks_shmem::credit::{Credits, Owed};
use gasworks_shmem::eventcount::EventCount;
use gasworks_sock::sleeper::{Policy, Sleeper, Step};
use gasworks_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use gasworks_sync::{Lock, Room};
use std::marker::PhantomPinned;

/// The part of a peer's volume that is returned at once: small, so that a sender of large payloads copies the next ones
/// while the last are read, instead of waiting until all are.
const VOLUME_PARTS: u64 = 4;
/// Every so many polls all credits owed are returned, however busy this rank is.
const RETURN_EVERY: u32 = 32;

/// What is put together to make an engine.
pub struct Parts<M: CoreMode> {
    /// This rank.
    pub rank: Rank,
    /// The transports.
    pub wires: Vec<Box<M::Wire>>,
    /// For each rank the number of the transport that reaches it.
    pub route: Vec<u8>,
    /// Where each rank's segment is.
    pub peers: PeerTable,
    /// The engines of the network interface, if there is one.
    pub rdma: Domains<M>,
    /// Flow control.
    pub flow: Flow,
    /// How this rank waits.
    pub patience: Patience,
    /// The handler table.
    pub handlers: Handlers<M>,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Its category.
    pub category: Category,
    /// The index of the handler at the target.
    pub handler: u8,
    /// The arguments: at most 64 bytes, a multiple of 4.
    pub args: &'a [u8],
    /// The payload: none for a Short.
    pub payload: &'a [u8],
    /// For a Long, where the payload lands in the target's segment.
    pub landing: u64,
}

/// What a waiting loop keeps: how long it has been idle, and what it has seen of other threads' work.
#[derive(Debug)]
pub struct Waiting {
    sleeper: Sleeper,
    seen: u64,
}

/// The engine of active messages.
pub struct Engine<M: CoreMode> {
    rank: Rank,
    router: Router<M>,
    limits: Limits,
    /// Before the table of peers, which keeps mapped what it has registered (attach.1).
    rdma: Domains<M>,
    peers: PeerTable,
    ops: Ops<M>,
    /// What calls that wait for one transfer wait for.
    flags: flag::Flags<M>,
    credits: Credits<M>,
    owed: Owed<M>,
    flow: Flow,
    /// As many credits owed to a peer, or as many bytes, are returned by a message of their own.
    return_at: (u32, u64),
    polls: AtomicU32,
    /// How many messages the next poll takes of each transport, and the most that any of them allows.
    burst: AtomicU32,
    max_burst: u32,
    /// Polls that did something, in `Par`, and turns of tasks that did.
    worked: EventCount,
    patience: Patience,
    /// A [`WaitMode`].
    wait_mode: AtomicU32,
    handlers: Handlers<M>,
    /// What is tried again at every poll.
    late: SegQueue<put::Late>,
    failure: M::Lock<Option<Error>>,
    /// Whether there is a `failure`.
    failed: AtomicBool,
    /// Whether the job has ended in good order, so that nothing goes on.
    over: AtomicBool,
    /// Whether a poll has more to look at than the transports: transfers, tasks, a failure. It stays so.
    restless: AtomicBool,
    tasks: progress::Tasks<M>,
    /// Whether messages of this rank to itself are observed.
    sees_own: bool,
    /// Room for the payloads of Mediums of this rank to itself, too long for the stack.
    own_rooms: M::Lock<Vec<Room>>,
    /// A thread may look at an engine from outside ([`Engine::peek`]), so nobody may take one out of its box.
    _pinned: PhantomPinned,
}

impl<M: CoreMode> Engine<M> {
    /// Puts an engine together.
    ///
    /// # Panics
    /// If a route names a transport that is not among the parts, or there is none at all.
    pub fn new(parts: Parts<M>) -> Self {
        let Parts { rank, wires, route, peers, rdma, flow, patience, handlers } = parts;
        let limits = wires.iter().map(|wire| wire.limits()).reduce(|a, b| Limits {
            max_medium: a.max_medium.min(b.max_medium),
            max_long: a.max_long.min(b.max_long),
            packed_long: a.packed_long.min(b.packed_long),
        });
        let limits = limits.unwrap_or(Limits { max_medium: 0, max_long: 0, packed_long: 0 });
        let limits = Limits { packed_long: limits.packed_long.min(limits.max_medium), ..limits };
        let flow = flow.within(limits.max_medium);
        let max_burst = wires.iter().map(|wire| wire.burst()).max().unwrap_or(1).max(1);
        let sees_own = wires.iter().any(|wire| wire.sees_own());
        let router = Router::new(wires, route);
        let ranks = peers.ranks();
        Self {
            rank,
            max_burst,
            router,
            limits,
            restless: AtomicBool::new(!rdma.is_empty()),
            rdma,
            ops: Ops::new(),
            flags: flag::Flags::new(),
            credits: Credits::for_mode(ranks, flow.depth, flow.total, flow.volume),
            owed: Owed::for_mode(ranks),
            return_at: ((flow.depth / 2).max(1), (flow.volume / VOLUME_PARTS).max(1)),
            flow,
            polls: AtomicU32::new(0),
            burst: AtomicU32::new(1),
            worked: EventCount::new(),
            wait_mode: AtomicU32::new(patience.mode as u32),
            over: AtomicBool::new(false),
            patience,
            handlers,
            late: SegQueue::new(),
            failure: Lock::new(None),
            failed: AtomicBool::new(false),
            tasks: progress::Tasks::new(),
            sees_own,
            own_rooms: Lock::new(Vec::new()),
            _pinned: PhantomPinned,
            peers,
        }
    }

    /// This rank.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The number of ranks.
    #[inline]
    pub fn ranks(&self) -> u32 {
        self.peers.ranks()
    }

    /// Where each rank's segment is.
    #[inline]
    pub fn peers(&self) -> &PeerTable {
        &self.peers
    }

    /// The largest payload of a Medium, request or reply, to any rank.
    pub fn max_medium(&self) -> usize {
        self.limits.max_medium
    }

    /// The largest payload of a Long, request or reply, to any rank.
    pub fn max_long(&self) -> u64 {
        self.limits.max_long
    }

    /// How much may be under way.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Requests out to a peer and not yet answered, with their bytes.
    pub fn out(&self, peer: Rank) -> (u32, u64) {
        self.credits.out(peer)
    }

    /// The handler table.
    pub fn handlers(&self) -> &Handlers<M> {
        &self.handlers
    }

    /// Whether a handler is running on this thread.
    pub fn in_handler() -> bool {
        thread::is_handling()
    }

    /// Puts something on the progress list: it gets a turn at every poll from now on.
    ///
    /// # Errors
    /// The list is full.
    pub fn add_task(&self, task: Box<dyn Task<M>>) -> Result<(), Error> {
        self.tasks.add(task)?;
        self.restless.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Polls until `done` says so: spins, then yields, then sleeps.
    ///
    /// # Errors
    /// Whatever a poll finds wrong.
    #[inline]
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) -> Result<(), Error> {
        if done() {
            return Ok(());
        }
        let mut sleeper = self.sleeper();
        while !done() {
            self.turn(&mut sleeper)?;
        }
        Ok(())
    }

    /// How this rank waits from now on: the specification's `gasnet_set_waitmode`.
    pub fn set_wait_mode(&self, mode: WaitMode) {
        self.wait_mode.store(mode as u32, Ordering::Relaxed);
    }

    /// How this rank waits.
    pub fn wait_mode(&self) -> WaitMode {
        WaitMode::from_number(self.wait_mode.load(Ordering::Relaxed))
    }

    fn policy(&self) -> Policy {
        self.patience.policy(self.wait_mode())
    }

    /// What a waiting loop keeps from turn to turn. Made before the loop's condition is looked at for the first time.
    pub fn sleeper(&self) -> Waiting {
        Waiting { sleeper: Sleeper::new(self.policy()), seen: self.worked.events() }
    }

    /// One turn of a waiting loop: polls, and gives way if there was nothing to do.
    ///
    /// # Errors
    /// Whatever a poll finds wrong.
    #[inline]
    pub fn turn(&self, waiting: &mut Waiting) -> Result<(), Error> {
        let handled = self.poll()?;
        if handled > 0 {
            waiting.sleeper.worked();
        } else if self.is_over() {
            return Err(Error::Over);
        } else {
            let step = waiting.sleeper.step();
            if step != Step::Spin {
                self.rdma.look_around();
            }
            match step {
                Step::Spin => gasworks_sync::spin(),
                Step::Yield => std::thread::yield_now(),
                Step::Sleep(_) if self.busy_below() => std::thread::yield_now(),
                // Not if another thread has worked since the loop last looked: what it did may be what is waited for.
                Step::Sleep(longest) => {
                    self.router.sleep(longest, &|| self.worked.arm() == waiting.seen)?;
                }
            }
        }
        // Before the loop looks at its condition again: whoever has seen that another thread worked also sees what it
        // did.
        waiting.seen = self.worked.events();
        Ok(())
    }

    /// The job has ended in good order.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Wakes this rank's threads that sleep in a wait.
    pub fn wake(&self) {
        if self.worked.count().wanted {
            self.worked.disarm();
            self.router.wake();
        }
    }

    /// Says that a poll of this thread did something: another thread may sleep that waits for just that. In `Seq` there
    /// is none.
    #[inline]
    fn note_work(&self) {
        if M::PARALLEL {
            self.wake();
        }
    }

    /// Whether something is under way that only polling moves, so that sleeping would delay it.
    fn busy_below(&self) -> bool {
        !self.late.is_empty() || self.rdma.pending() > 0
    }

    fn peer_exists(&self, during: &'static str, rank: Rank) -> Result<(), Error> {
        if rank < self.ranks() {
            return Ok(());
        }
        Err(Error::memory(during)(gasworks_memory::MemoryError::NoSuchRank { rank, ranks: self.ranks() }))
    }
}

/// Where transfers are still under way, the network may go on using what their operations keep; it is never freed then.
impl<M: CoreMode> Drop for Engine<M> {
    fn drop(&mut self) {
        if self.rdma.pending() > 0 {
            self.ops.leak();
        }
    }
}
