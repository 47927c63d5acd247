//! The transport: messages wait in the receiver's inbox until the poll that chance has chosen.

use super::block::Block;
use super::dice::Choice;
use super::net::{Arrival, Meeting, Message};
use super::{SimConfig, SimRank};
use gasworks_core::message::MAX_HEAD;
use gasworks_core::{
    Arrived, Attributes, Class, Flow, Limits, Name, Reservation, SharedBarrier, Wait, Wire, WireError,
};
use gasworks_sync::Mode;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "simnet";

/// A rank's transport.
#[derive(Clone)]
pub struct SimWire(pub(super) SimRank, Flow);

impl SimWire {
    pub(super) fn new(rank: SimRank) -> Self {
        Self(rank, Flow::SEED)
    }

    /// With so much under way at most.
    #[must_use]
    pub fn with_flow(self, flow: Flow) -> Self {
        Self(self.0, flow)
    }

    fn corrupt(&self, what: String) -> WireError {
        WireError::Corrupt { transport: NAME, at: self.0.rank, what }
    }

    /// The error that follows from who is gone.
    fn whole(&self) -> Result<(), WireError> {
        self.0.net.broken().map_or(Ok(()), |broken| Err(WireError::PeerGone { rank: broken.rank }))
    }

    fn take(&self, reservation: &Reservation<'_>) -> Result<Block, WireError> {
        let block = self.0.seat().outbox.lock().reserved.remove(&reservation.ticket[0]);
        block.ok_or_else(|| {
            self.corrupt(format!("ticket {} was never given, or used twice", reservation.ticket[0]))
        })
    }

    /// Hands one message to the sink and then frees it.
    fn deliver(&self, message: Message, sink: &mut dyn FnMut(Arrived<'_>)) {
        if message.class == Class::Request {
            self.0.seat().outbox.lock().replies_due[message.from as usize] += 1;
        }
        sink(Arrived { from: message.from, head: &message.head, payload: message.payload.bytes() });
        if message.class == Class::Request {
            self.0.seat().inbox.lock().requests -= 1;
        }
    }
}

impl<M: Mode> Wire<M> for SimWire {
    fn attributes(&self) -> Attributes {
        let SimConfig { max_medium, max_long, .. } = self.0.net.config;
        Attributes::new(NAME, Limits { max_medium, max_long, packed_long: max_medium }, self.1)
    }

    fn reserve(&self, to: u32, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        let config = &self.0.net.config;
        self.whole()?;
        let peer = self.0.net.seats.get(to as usize).ok_or(WireError::PeerGone { rank: to })?;
        if payload > config.max_medium {
            return Err(WireError::TooLarge { transport: NAME, len: payload, max: config.max_medium });
        }
        if class == Class::Credit && payload > 0 {
            return Err(self.corrupt(format!("a return of credits with a payload of {payload} bytes")));
        }
        let mut outbox = self.0.seat().outbox.lock();
        if class == Class::Request {
            outbox.reserves += 1;
            let unwilling = self.0.dice().chance(Choice::WireBusy, outbox.reserves, config.busy);
            let mut inbox = peer.inbox.lock();
            if unwilling || inbox.requests >= config.queue {
                return Err(WireError::Busy { to });
            }
            inbox.requests += 1;
        } else if outbox.replies_due[to as usize] == 0 {
            // Every request brought room for one answer, whichever it is: a second one has none.
            return Err(self.corrupt(format!("a {class:?} to rank {to} without a request of its")));
        } else {
            outbox.replies_due[to as usize] -= 1;
        }
        outbox.next_ticket += 1;
        let ticket = outbox.next_ticket;
        let block = Block::new(payload);
        // SAFETY: block.1: the block, whose words do not move, stays until this reservation is committed or cancelled, which takes it; and
        // nobody has the bytes longer.
        let bytes = unsafe { block.bytes().raw().borrow() };
        outbox.reserved.insert(ticket, block);
        Ok(Reservation::new(to, class, bytes, [ticket, 0]))
    }

    fn commit(&self, reservation: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let config = &self.0.net.config;
        let mut payload = self.take(&reservation)?;
        payload.shorten(reservation.payload().len());
        if head.len() > MAX_HEAD {
            if reservation.class == Class::Request {
                self.0.net.seats[reservation.to as usize].inbox.lock().requests -= 1;
            }
            return Err(self.corrupt(format!("a head of {} bytes", head.len())));
        }
        let number = {
            let mut outbox = self.0.seat().outbox.lock();
            outbox.commits += 1;
            outbox.commits
        };
        if config.faults.gone.is_some_and(|(rank, after)| rank == self.0.rank && number > after) {
            self.0.net.give_up(self.0.rank, "as the configuration wants it".into());
        }
        self.whole()?;
        let dice = self.0.dice();
        let peer = &self.0.net.seats[reservation.to as usize];
        let mut inbox = peer.inbox.lock();
        inbox.arrived += 1;
        let when = match config.reorder {
            true => (
                inbox.polls + dice.up_to(Choice::WireDelay, number, config.max_delay),
                dice.number(Choice::WireOrder, number),
            ),
            false => (0, inbox.arrived),
        };
        let (from, class) = (self.0.rank, reservation.class);
        let [ticket, waits] = reservation.ticket;
        let beside = (waits == 1).then_some(ticket as u32);
        let mut message = Message { from, class, head: head.to_vec(), payload, beside, when };
        let faults = config.faults;
        if dice.chance(Choice::Corrupt, number, faults.corrupt) {
            message.flip(dice.number(Choice::Corrupt, number + 1));
        }
        if dice.chance(Choice::Double, number, faults.double) {
            inbox.messages.push(message.twin());
            inbox.requests += usize::from(class == Class::Request);
        }
        if !dice.chance(Choice::Lose, number, faults.lose) {
            inbox.messages.push(message);
        }
        drop(inbox);
        peer.arrival.ring();
        Ok(())
    }

    fn beside(&self, reservation: &mut Reservation<'_>) -> Option<u32> {
        let [ticket, waits] = &mut reservation.ticket;
        *waits = u64::from(self.0.net.config.beside);
        (*waits == 1).then_some(*ticket as u32)
    }

    fn cancel(&self, reservation: Reservation<'_>) {
        if self.take(&reservation).is_err() {
            return;
        }
        match reservation.class {
            Class::Request => self.0.net.seats[reservation.to as usize].inbox.lock().requests -= 1,
            Class::Reply | Class::Credit => {
                self.0.seat().outbox.lock().replies_due[reservation.to as usize] += 1;
            }
        }
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let seat = self.0.seat();
        let now = {
            let mut inbox = seat.inbox.lock();
            inbox.polls += 1;
            inbox.polls
        };
        let mut handed = 0;
        while handed < burst {
            let message = {
                let mut inbox = seat.inbox.lock();
                let told =
                    |m: &Message| m.beside.is_none_or(|number| inbox.told.contains_key(&(m.from, number)));
                let due = inbox.messages.iter().enumerate().filter(|(_, m)| m.when.0 <= now && told(m));
                let first = due.min_by_key(|(_, m)| m.when).map(|(i, _)| i);
                let message = first.map(|i| inbox.messages.swap_remove(i));
                let number = message.as_ref().and_then(|m| Some((m.from, m.beside?)));
                let landed = number.and_then(|number| inbox.told.remove(&number));
                if landed == Some(false) {
                    inbox.requests -= usize::from(message.is_some_and(|m| m.class == Class::Request));
                    continue;
                }
                message
            };
            let Some(message) = message else { break };
            self.deliver(message, sink); // no lock is held: a handler replies from in there
            handed += 1;
        }
        if handed == 0 {
            self.whole()?;
        }
        Ok(handed)
    }

    fn wait(&self) -> Wait<'_> {
        match &self.0.seat().arrival {
            Arrival::Bell(bell) => Wait::Bell(bell.clone()),
            Arrival::Descriptor(event) => Wait::Descriptor(event.as_fd()),
        }
    }

    fn arm(&self) -> Result<Duration, WireError> {
        if let Arrival::Descriptor(event) = &self.0.seat().arrival {
            event.clear();
        }
        // What is delayed comes by polling, not by sleeping; so do the NIC's completions.
        let is_busy = !self.0.seat().nic.lock().flights.is_empty();
        let mut inbox = self.0.seat().inbox.lock();
        let may_sleep = !std::mem::take(&mut inbox.woken) && !is_busy && inbox.messages.is_empty();
        Ok(if may_sleep { Duration::MAX } else { Duration::ZERO })
    }
}

/// A barrier in shared memory, for nets whose ranks are mapped.
pub struct SimBarrier {
    pub(super) rank: SimRank,
    pub(super) meeting: Arc<Meeting>,
    pub(super) mine: super::lock::Mutex<u64>,
}

impl SharedBarrier for SimBarrier {
    fn arrive(&self, name: Name) {
        let Meeting { members, arrivals } = &*self.meeting;
        let mut arrivals = arrivals.lock();
        *self.mine.lock() = arrivals.phase;
        arrivals.name = arrivals.name.and(name);
        arrivals.arrived += 1;
        if arrivals.arrived == members.len() {
            arrivals.arrived = 0;
            arrivals.phase += 1;
            arrivals.agreed = std::mem::take(&mut arrivals.name);
            for seat in members.iter().map(|&rank| &self.rank.net.seats[rank as usize]) {
                seat.inbox.lock().woken = true;
                seat.arrival.ring();
            }
        }
    }

    fn done(&self) -> Option<Name> {
        let arrivals = self.meeting.arrivals.lock();
        // A rank that has not looked has not begun the next phase, so no later one has been agreed on.
        (arrivals.phase > *self.mine.lock()).then_some(arrivals.agreed)
    }
}
