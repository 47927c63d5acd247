//! Time: what runs out, whether peers are alive, and sleeping until there is something to do.

use super::connection::{Connection, KEEPALIVE_LOOKS, Keepalive, Waiting};
use super::event::{CallError, Event, Failure};
use super::operation::Pending;
use super::peer::Peer;
use super::{Endpoint, nanoseconds};
use crate::fifo::Fifo;
use crate::handshake::ConnectionState as In;
use crate::header::{ConnectionId, HeaderType};
use crate::link::Link;
use gasworks_os::{OsError, clock};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take to say that it has been told of being accepted, and how long a rejected request is remembered.
pub(super) const ACCEPT_TIME: u64 = Duration::from_secs(10).as_nanos() as u64;
pub(super) const REJECTED_TIME: u64 = Duration::from_secs(5).as_nanos() as u64;
/// The shortest and the longest time until a datagram is sent again.
pub(super) const SHORTEST_INTERVAL: u64 = Duration::from_millis(1).as_nanos() as u64;
pub(super) const LONGEST_INTERVAL: u64 = Duration::from_secs(1).as_nanos() as u64;
/// How often it is looked whether peers are alive on which something waits, and whether all others are: of these a quarter each time.
const LISTED_LOOK: u64 = Duration::from_millis(100).as_nanos() as u64;
const SWEEP: u64 = Duration::from_secs(1).as_nanos() as u64;
const SWEEPS: usize = 4;
const LEAST_SWEPT: usize = 64;
/// How long datagrams, and headers, without room in the receiver's queue wait.
const UNSENT_LOOK: u64 = Duration::from_millis(1).as_nanos() as u64;
/// Steps without anything until a waiting thread yields, and then sleeps; and for how long.
const SPINS: u32 = 100;
const YIELDS: u32 = 200;
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// When a timer of a connection runs out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Timer {
    at: u64,
    id: ConnectionId,
}

impl Ord for Timer {
    /// The earliest is the largest, which a heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.id).cmp(&(self.at, self.id))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// When peers are looked at next, and which of the connections first.
#[derive(Debug, Default)]
pub(super) struct Rest {
    listed: u64,
    sweep: u64,
    first: usize,
    /// When the clock was looked at last.
    pub(super) now: u64,
}

impl Keepalive {
    pub(super) fn new(time: Duration, now: u64) -> Self {
        let look = nanoseconds(time) / u64::from(KEEPALIVE_LOOKS);
        Self { time, next: now.saturating_add(look), heard: false, missed: 0 }
    }
}

impl Connection {
    /// When the next of its timers runs out.
    fn next_timer(&self) -> u64 {
        let opening = self.opening.as_ref().map_or(u64::MAX, |opening| {
            let deadline = opening.deadline.unwrap_or(u64::MAX);
            match self.state {
                In::Requested | In::Accepting => deadline.min(opening.again),
                In::Rejected => deadline,
                _ => u64::MAX,
            }
        });
        // Of a connection that is not there, or not any more, no sign of life is waited for.
        let keepalive = self.keepalive.as_ref().filter(|_| self.state == In::Ready);
        let keepalive = keepalive.map_or(u64::MAX, |keepalive| keepalive.next);
        let lost = self.first_deadline().unwrap_or(u64::MAX);
        opening.min(keepalive).min(lost)
    }

    /// When the first operation counts as lost. The program may change how long they may take, so any of them can be.
    fn first_deadline(&self) -> Option<u64> {
        if !self.out.has_deadlines {
            return None;
        }
        let sent = self.out.sent.iter().map(|(_, pending)| pending);
        let waiting = self.out.waiting.iter().map(Waiting::pending);
        let transfers = self.out.transfers.iter().map(|transfer| &transfer.pending);
        sent.chain(waiting).chain(transfers).filter_map(|pending| pending.deadline).min()
    }
}

impl Waiting {
    fn pending(&self) -> &Pending {
        match self {
            Self::Message(_, pending) => pending,
            Self::Transfer(transfer) => &transfer.pending,
        }
    }
}

impl Endpoint {
    /// Has a connection's timers be looked at in time.
    pub(super) fn schedule(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let due = connection.next_timer();
        if due < connection.due {
            connection.due = due;
            self.timers.push(Timer { at: due, id });
        }
    }

    /// Does what is to be done at this time.
    pub(super) fn look_at_clock(&mut self) {
        let now = clock::monotonic();
        while self.timers.peek().is_some_and(|timer| timer.at <= now) {
            let Some(Timer { at, id }) = self.timers.pop() else { break };
            if let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.due == at) {
                connection.due = u64::MAX;
                self.time_is_up(id, now);
                self.schedule(id);
            }
        }
        self.rest.now = now;
        if self.rest.listed <= now {
            self.rest.listed = now + LISTED_LOOK;
            self.look_at_listed_peers();
        }
        if self.rest.sweep <= now {
            self.rest.sweep = now + SWEEP;
            self.sweep();
        }
    }

    /// Looks whether peers are alive that have not taken what they were sent.
    fn look_at_listed_peers(&mut self) {
        let mut stalled = Vec::new();
        for id in self.traffic.listed() {
            let Some(connection) = self.connections.get_mut(*id) else { continue };
            let taken = connection.channel.as_mut().map_or(0, Link::taken);
            if std::mem::replace(&mut connection.out.progress, taken) == taken {
                stalled.push(*id);
            }
        }
        self.look_whether_alive(&stalled);
    }

    /// Looks at some of all connections without a hint: whether their peers are alive, and whether something has come that nobody has announced.
    fn sweep(&mut self) {
        let ids: Vec<_> = self.connections.ids().collect();
        let count = (ids.len() / SWEEPS).max(LEAST_SWEPT).min(ids.len());
        let first = if self.rest.first < ids.len() { self.rest.first } else { 0 };
        self.rest.first = first + count;
        let swept: Vec<_> = ids.iter().cycle().skip(first).take(count).copied().collect();
        for id in &swept {
            if self
                .connections
                .get(*id)
                .is_some_and(|connection| connection.is_open() && !connection.is_watched)
            {
                self.look_later(*id);
            }
        }
        self.look_whether_alive(&swept);
        self.fifo.iter_mut().for_each(Fifo::sweep);
    }

    fn look_whether_alive(&mut self, ids: &[ConnectionId]) {
        let mut known: Vec<(*const Peer, bool)> = Vec::new();
        for id in ids {
            let Some(connection) = self.connections.get_mut(*id) else { continue };
            let Some(peer) = connection.peer.as_ref().filter(|_| connection.is_open()) else { continue };
            let at = Arc::as_ptr(peer);
            let is_alive = match known.iter().find(|(known, _)| *known == at) {
                Some((_, is_alive)) => *is_alive,
                None => {
                    let is_alive = peer.has_its_socket() && self.inquirer.is_open(&peer.socket);
                    known.push((at, is_alive));
                    is_alive
                }
            };
            if !is_alive {
                self.peer_is_gone(*id);
            }
        }
    }

    /// Tells the program of a peer of which nothing was heard, and asks it for a sign of life before.
    pub(super) fn keep_alive(&mut self, id: ConnectionId, now: u64) {
        let Some(connection) = self.connections.get_mut(id).filter(|found| found.state == In::Ready) else {
            return;
        };
        let Some(keepalive) = connection.keepalive.as_mut().filter(|keepalive| keepalive.next <= now) else {
            return;
        };
        keepalive.next = now.saturating_add(nanoseconds(keepalive.time) / u64::from(KEEPALIVE_LOOKS));
        keepalive.missed = if std::mem::take(&mut keepalive.heard) { 0 } else { keepalive.missed + 1 };
        match keepalive.missed {
            0 => {}
            KEEPALIVE_LOOKS.. => {
                connection.keepalive = None;
                self.events.push_back(Event::Silent { connection: id });
            }
            // One at a time: a peer that does not take it is not alive to more.
            _ if connection.out.answers.is_empty() => self.answer(id, HeaderType::Keepalive, 0, 0),
            _ => {}
        }
    }

    /// Fails what has taken too long.
    pub(super) fn expire(&mut self, id: ConnectionId, now: u64) {
        let is_lost = |pending: &Pending| pending.deadline.is_some_and(|deadline| deadline <= now);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let out = &mut connection.out;
        if !out.has_deadlines {
            return;
        }
        let mut lost = Vec::new();
        let (late, sent) =
            std::mem::take(&mut out.sent).into_iter().partition(|(_, pending)| is_lost(pending));
        out.sent = sent;
        lost.extend(VecDeque::into_iter(late).map(|(_, pending)| pending));
        for waiting in std::mem::take(&mut out.waiting) {
            match waiting {
                Waiting::Message(_, pending) if is_lost(&pending) => lost.push(pending),
                // Of a transfer whose fragments the peer has, the memory is in use until it answers.
                waiting => out.waiting.push_back(waiting),
            }
        }
        let transfers = out.waiting.iter_mut().filter_map(|waiting| match waiting {
            Waiting::Transfer(transfer) => Some(transfer),
            Waiting::Message(..) => None,
        });
        for transfer in transfers.chain(&mut out.transfers) {
            if is_lost(&transfer.pending) {
                transfer.fail(Failure::TimedOut);
                transfer.pending.deadline = None;
            }
        }
        for pending in lost {
            self.complete(id, pending, Err(Failure::TimedOut));
        }
        self.push(id);
        self.finish_transfers(id);
    }

    /// Has all peers wake this endpoint from now on. If something has come meanwhile, it is in the queue of events, or the descriptor is readable.
    pub(super) fn prepare_to_sleep(&mut self) -> Result<(), CallError> {
        self.read_socket();
        self.look_at_clock();
        if !self.events.is_empty() {
            return Ok(());
        }
        // Before anything is armed (eventcount.1).
        if let Some(bell) = self.wakeups.bell() {
            let _ticket = bell.ticket();
        }
        self.unwatch_all();
        for at in 0..self.traffic.listed().len() {
            let Some(id) = self.traffic.listed().get(at).copied() else { break };
            if let Some(channel) = self.connections.get(id).and_then(|connection| connection.channel.as_ref())
            {
                channel.arm_acknowledgement();
            }
            self.look_after(id);
        }
        let has_more =
            self.traffic.is_pending() || self.wakeups.ready().is_some_and(|ready| !ready.may_sleep());
        if has_more {
            self.step();
        }
        // What was looked at in this step has not been asked to wake the endpoint: the next call does that.
        self.set_alarm(has_more)
    }

    /// Has the descriptor be readable when there is something to be done at a time, or now.
    fn set_alarm(&mut self, now: bool) -> Result<(), CallError> {
        let Some(alarm) = &mut self.alarm else { return Ok(()) };
        let mut at = self.timers.peek().map_or(u64::MAX, |timer| timer.at);
        if self.connections.len() > 0 {
            at = at.min(self.rest.sweep);
        }
        if !self.traffic.listed().is_empty() {
            at = at.min(self.rest.listed);
        }
        if !self.unsent.is_empty() {
            at = at.min(clock::monotonic() + UNSENT_LOOK);
        }
        let (at_once, soon) = self.fifo.as_ref().map_or((false, false), Fifo::is_pending);
        if soon {
            at = at.min(clock::monotonic() + UNSENT_LOOK);
        }
        if now || at_once {
            at = 0;
        }
        Ok(alarm.set((at != u64::MAX).then_some(at))?)
    }

    /// Lets others have the processor while there is nothing to do.
    pub(super) fn pause(&mut self, idle: &mut u32, end: Option<u64>) -> Result<(), CallError> {
        *idle = idle.saturating_add(1);
        let left = |end: u64| Duration::from_nanos(end.saturating_sub(clock::monotonic()));
        match *idle {
            ..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ if self.config.wakes => {
                self.prepare_to_sleep()?;
                if self.events.is_empty() {
                    let most = end.map_or(PollTimeout::NONE, |end| {
                        PollTimeout::try_from(left(end).as_millis() + 1).unwrap_or(PollTimeout::MAX)
                    });
                    match poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], most) {
                        Ok(_) | Err(Errno::EINTR) => {}
                        Err(error) => {
                            return Err(OsError::new("wait for", "an endpoint's descriptor", error).into());
                        }
                    }
                }
            }
            count => {
                let doubled = SHORTEST_SLEEP * (1 << ((count - YIELDS) / 8).min(8));
                std::thread::sleep(doubled.min(LONGEST_SLEEP).min(end.map_or(LONGEST_SLEEP, left)));
            }
        }
        Ok(())
    }
}
