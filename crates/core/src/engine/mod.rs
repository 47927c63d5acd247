//! The engine of active messages: one for each job in each process.

#[allow(unsafe_code)]
mod attach;
#[allow(unsafe_code)]
pub mod by_message;
#[allow(unsafe_code)]
mod by_process;
mod calls;
mod credit;
mod dispatch;
#[allow(unsafe_code)]
mod domains;
mod failure;
mod incoming;
mod machines;
mod negotiate;
mod own;
mod pace;
mod peek;
#[allow(unsafe_code)]
mod put;
#[allow(unsafe_code)]
pub mod query;
mod send;
mod thread;
mod wait;

pub use domains::Domains;
pub use machines::{Machine, Turned};
pub use peek::Peek;
pub use put::{Transfer, counts_of};
pub use thread::message_in_hand;
pub(crate) use thread::{Held, this_thread};
pub use wait::Waiting;

pub use incoming::{Incoming, Received, Token};
pub use negotiate::{Ask, Commit, Prepared, PreparedReply};

use crate::flow::{Flow, Patience};
use crate::handlers::Handlers;
use crate::observe::{LongWait, LongWaits, Observer};
use crate::router::Router;
use crate::view::View;
use crate::{Category, CoreMode, Error, Limits, Rank, Wire, WordReduction};
use credit::Account;
use failure::Failure;
use gasworks_memory::RegionTable;
use gasworks_sync::atomic::{AtomicBool, Ordering};
use own::ToItself;
use pace::Pace;
use std::marker::PhantomPinned;
use std::sync::Arc;
use wait::Waits;

/// What is put together to make an engine.
pub struct Parts<M: CoreMode> {
    /// This rank.
    pub rank: Rank,
    /// The transports.
    pub wires: Vec<Box<M::Wire>>,
    /// For each rank the number of the transport that reaches it.
    pub route: Vec<u8>,
    /// Where each rank's segment is.
    pub peers: RegionTable,
    /// The engines of the network interface, if there is one.
    pub rdma: Domains<M>,
    /// How this rank waits.
    pub patience: Patience,
    /// Whether memory that ranks give to regions is reached by `process_vm_*`, where there is no network and the system allows it.
    pub process_vm: bool,
    /// The handler table.
    pub handlers: Handlers<M>,
    /// Who observes this rank, if anybody does.
    pub observer: Option<Arc<Observer>>,
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

/// The engine of active messages.
pub struct Engine<M: CoreMode> {
    rank: Rank,
    router: Router<M>,
    /// What every transport carries: what is beyond has to be compared with the limits of the one that reaches its target.
    least: Limits,
    /// Before the table of peers, which keeps mapped what it has registered (attach.1).
    transfers: put::Transfers<M>,
    peers: RegionTable,
    account: Account<M>,
    pace: Pace,
    waits: Waits,
    /// What takes long, for a job that hangs.
    long_waits: LongWaits,
    process_vm: bool,
    handlers: Handlers<M>,
    failure: Failure<M>,
    /// Whether the job has ended in good order, so that nothing goes on.
    over: AtomicBool,
    machines: machines::Machines<M>,
    own: ToItself<M>,
    /// Who is told of what goes by a call of a transport, and of messages of this rank to itself.
    observer: Option<Arc<Observer>>,
    /// A thread may look at an engine from outside ([`Engine::peek`]), so nobody may take one out of its box.
    _pinned: PhantomPinned,
}

impl<M: CoreMode> Engine<M> {
    /// Puts an engine together.
    ///
    /// # Panics
    /// If a route names a transport that is not among the parts, or there is none at all.
    pub fn new(parts: Parts<M>) -> Self {
        let Parts { rank, wires, route, peers, rdma, patience, process_vm, handlers, observer } = parts;
        let router = Router::<M>::new(wires, route, observer.is_none());
        let max_burst = router.attributes().iter().map(|wire| wire.burst).max().unwrap_or(1);
        let own = router.attributes_to(rank).limits;
        Self {
            rank,
            least: router.least(),
            pace: Pace::new(max_burst, !rdma.is_empty()),
            transfers: put::Transfers::new(rdma),
            account: Account::new(router.route(), router.attributes().iter().map(|wire| wire.flow)),
            router,
            waits: Waits::new(patience),
            long_waits: LongWaits::default(),
            process_vm,
            over: AtomicBool::new(false),
            handlers,
            failure: Failure::none(),
            machines: machines::Machines::new(),
            own: ToItself::new(observer.is_some(), own.max_medium),
            observer,
            _pinned: PhantomPinned,
            peers,
        }
    }

    /// Who is told of what this rank does, in a job that is observed.
    #[inline]
    pub fn observer(&self) -> Option<&Observer> {
        self.observer.as_deref()
    }

    /// A thread of this rank, or a machine, waits for something since long: the number by which it [says](Self::waits_for) more of that.
    pub fn begin_long_wait(&self, wait: LongWait) -> u64 {
        self.long_waits.add(wait)
    }

    /// Another rank is waited for.
    pub fn waits_for(&self, number: u64, rank: Option<Rank>) {
        self.long_waits.change(number, rank);
    }

    /// It is over.
    pub fn end_long_wait(&self, number: u64) {
        self.long_waits.remove(number);
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

    /// The reduction of words that a network has, if one does.
    pub fn reduction(&self) -> Option<&dyn WordReduction> {
        self.router.wires().find_map(Wire::reduction)
    }

    /// Where each rank's segment is.
    #[inline]
    pub fn peers(&self) -> &RegionTable {
        &self.peers
    }

    /// The largest payload of a Medium, request or reply, to any rank.
    pub fn max_medium(&self) -> usize {
        self.least.max_medium
    }

    /// The largest payload of a Long, request or reply, to any rank.
    pub fn max_long(&self) -> u64 {
        self.least.max_long
    }

    /// What the transport that reaches `to` carries.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn limits(&self, to: Rank) -> Result<Limits, Error> {
        self.peer_exists("limits query", to)?;
        Ok(self.limits_to(to))
    }

    /// How much may be under way to `to`, and to all that the same transport reaches.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn flow(&self, to: Rank) -> Result<Flow, Error> {
        self.peer_exists("flow control query", to)?;
        Ok(self.router.attributes_to(to).flow)
    }

    fn limits_to(&self, to: Rank) -> Limits {
        self.router.attributes_to(to).limits
    }

    /// Requests out to a peer and not yet answered, with their bytes.
    pub fn out(&self, peer: Rank) -> (u32, u64) {
        self.account.left().out(peer)
    }

    /// The handler table.
    pub fn handlers(&self) -> &Handlers<M> {
        &self.handlers
    }

    /// Whether a handler is running on this thread.
    pub fn in_handler() -> bool {
        thread::is_handling()
    }

    /// The view of all ranks.
    pub fn everyone(&self) -> View<'_> {
        View::everyone(&self.peers)
    }

    /// The job has ended in good order.
    pub fn end(&self) {
        self.peers.close();
        self.over.store(true, Ordering::Relaxed);
        // What other threads wait for does not come any more: they look, and find that it is over.
        self.note_work();
    }

    /// Whether it has.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn peer_exists(&self, during: &'static str, rank: Rank) -> Result<(), Error> {
        if rank < self.ranks() {
            return Ok(());
        }
        Err(Error::memory(during)(gasworks_memory::MemoryError::NoSuchRank { rank, ranks: self.ranks() }))
    }
}
