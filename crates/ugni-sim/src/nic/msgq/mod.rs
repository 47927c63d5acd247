//! Shared message queues (MSGQ): those of a node that has one send to each instance of the nodes that it is connected with.
//!
//! What their memory holds, and who changes it, is in [`msgq`](crate::msgq). Messages are those of mailboxes, and go over
//! lanes that are opened when they are first needed. The client hears of its messages alone; credit goes back where it looks
//! for messages.

mod node;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use gasworks_gni_sys::*;
use parking_lot::Mutex;

use self::node::{Neighbour, Table};
use super::endpoint::{Endpoint, Outstanding, Peer};
use super::smsg::{Care, Connection, Kind, Message};
use super::{Cq, Next, Nic};
use crate::entry::{Body, Entry};
use crate::msgq::{Head, INSTANCES, Node, Plan, Progress, told_size};
use crate::station::PAGE;

/// Requests for credit that may be on their way.
const RETURNS: u32 = 128;

/// A queue of shared messages, until this is dropped (`GNI_MsgqRelease`).
pub struct Msgq {
    nic: Nic,
    plan: Plan,
    handle: gni_mem_handle_t,
    /// Where its memory begins.
    first: u64,
    /// Who hears of messages that were sent.
    events: Arc<Cq>,
    /// Nobody hears of these.
    returns: Arc<Cq>,
    arrivals: Arc<Cq>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The connections that were used.
    connections: BTreeMap<u32, Connected>,
    /// Lanes that may hold messages, by the values of their events, each once.
    waiting: VecDeque<u64>,
}

struct Connected {
    address: u32,
    /// It is of this turn (msgq.4), and the place of this instance is this.
    turn: u32,
    place: u32,
    node: Node,
    lanes: BTreeMap<u32, Arc<Connection>>,
    outstanding: Arc<Outstanding>,
}

/// A message that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The node that it is from.
    pub address: u32,
    /// The instance there.
    pub instance: u32,
    /// Its tag.
    pub tag: u8,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// What a look at a lane gives.
enum Look {
    Message(Received),
    /// There is none.
    Nothing,
    /// The connection is not there yet.
    Later,
}

impl Nic {
    /// A queue of shared messages (`GNI_MsgqInit`), in memory that begins with a page, and holds as many zeros as its
    /// [`Plan`] takes bytes. `events` hears of messages that were sent.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: there cannot be such a queue, others of the node have queues of another kind, or `events` is another
    /// NIC's, or no queue of endpoints. `GNI_RC_INVALID_STATE`: this NIC has one, or all instances of the node have.
    /// `GNI_RC_ERROR_NOMEM`: the NIC has no room for what it takes.
    pub fn msgq(
        &self,
        attributes: &gni_msgq_attr_t,
        memory: u64,
        events: Option<&Arc<Cq>>,
    ) -> Result<Msgq, gni_return_t> {
        let plan = Plan::of(attributes)?;
        let foreign = events.is_some_and(|events| !events.is_of(self));
        if foreign || !memory.is_multiple_of(PAGE) {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let node = self.node();
        if node.iter().any(|other| other.plan != plan) {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let taken = node.iter().any(|other| other.instance == self.instance());
        if taken || node.len() >= plan.instances as usize {
            return Err(GNI_RC_INVALID_STATE);
        }
        if let Some(events) = events {
            events.become_source()?;
        }
        let (returns, arrivals) = (self.queue(RETURNS), self.queue(attributes.rcv_cq_sz));
        let (returns, arrivals) = returns.and_then(|returns| Ok((returns, arrivals?))).map_err(no_room)?;
        let handle = self.register((memory, plan.size()), Some(&arrivals), 0).map_err(no_room)?;
        let events = Arc::clone(events.unwrap_or(&returns));
        let (nic, state) = (self.clone(), Mutex::default());
        // Should it not be shown, all this is given back.
        let queue = Msgq { nic, plan, handle, first: memory, events, returns, arrivals, state };
        if self.show(Some((handle, plan))) { Ok(queue) } else { Err(GNI_RC_INVALID_STATE) }
    }
}

fn no_room(_: gni_return_t) -> gni_return_t {
    GNI_RC_ERROR_NOMEM
}

impl Msgq {
    fn own(&self) -> Result<Table<'_>, gni_return_t> {
        Table::enter(&*self.nic.0.home)?.ok_or(GNI_RC_INVALID_STATE)
    }

    /// Assigns a connection of the whole node to the one at an address, if none is, and says what that one has to be told, and how
    /// many bytes of it (`GNI_MsgqGetConnAttrs`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_STATE`: not all instances of this node have their queues, or one has gone.
    /// `GNI_RC_ERROR_RESOURCE`: all connections are assigned.
    pub fn assign(&self, address: u32) -> Result<(gni_msgq_ep_attr_t, u32), gni_return_t> {
        let node = self.nic.node();
        if node.len() != self.plan.instances as usize {
            return Err(GNI_RC_INVALID_STATE);
        }
        let mut told = gni_msgq_ep_attr_t {
            pe_addr: self.nic.address(),
            max_msg_sz: self.plan.lane.longest,
            smsg_q_sz: self.plan.lane.credits.into(),
            num_insts: self.plan.instances,
            ..gni_msgq_ep_attr_t::zeroed()
        };
        for (place, (Neighbour { instance, station, .. }, told)) in
            (0..).zip(node.iter().zip(&mut told.insts))
        {
            let table = Table::enter(&**station)?.ok_or(GNI_RC_INVALID_STATE)?;
            let connection = table.assign(address, place)?;
            (told.id, told.mdh, told.mdh_off) = (*instance, table.told, table.plan.first_lane(connection));
        }
        Ok((told, told_size(self.plan.instances)))
    }

    /// Connects this whole node with the one at an address, whose client was told this (`GNI_MsgqConnect`).
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: no node at that address says so. `GNI_RC_NO_MATCH`: nothing is [assigned](Self::assign) to it.
    /// `GNI_RC_INVALID_STATE`: they are connected.
    pub fn connect(&self, address: u32, told: &gni_msgq_ep_attr_t) -> Result<(), gni_return_t> {
        Node::read(told, address)?;
        let mut news = self.own()?.connect(address, told)?;
        for Neighbour { station, .. } in self.nic.node() {
            // Who has gone meanwhile does not keep the others from it.
            let table = Table::enter(&*station).ok().flatten();
            news |= table.is_some_and(|table| table.connect(address, told) == Ok(true));
        }
        if news { Ok(()) } else { Err(GNI_RC_INVALID_STATE) }
    }

    /// Ends the connection of this whole node with the one at an address (`GNI_MsgqConnRelease`).
    ///
    /// # Errors
    /// `GNI_RC_NO_MATCH`: there is none. `GNI_RC_NOT_DONE`: of what this instance has sent over it, events are to be taken, or
    /// credit is on its way back.
    pub fn disconnect(&self, address: u32) -> Result<(), gni_return_t> {
        self.settle();
        let mut state = self.state.lock();
        let (connection, head) = self.own()?.find(address)?.ok_or(GNI_RC_NO_MATCH)?;
        let used = state.connections.get(&connection).filter(|used| used.turn == head.turn);
        if used.is_some_and(|used| !used.outstanding.is_none()) {
            return Err(GNI_RC_NOT_DONE);
        }
        self.own()?.free(address)?;
        for Neighbour { station, .. } in self.nic.node() {
            if let Ok(Some(table)) = Table::enter(&*station) {
                let _ = table.free(address);
            }
        }
        state.connections.remove(&connection);
        Ok(())
    }

    /// Whether nothing is to be heard of what was sent, and no credit is on its way back (`GNI_MsgqIdle`).
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE`: there is.
    pub fn idle(&self) -> Result<(), gni_return_t> {
        self.settle();
        let busy = self.state.lock().connections.values().any(|used| !used.outstanding.is_none());
        if busy { Err(GNI_RC_NOT_DONE) } else { Ok(()) }
    }

    /// Sends a message to the peer of an endpoint (`GNI_MsgqSend`). Its memory may be used again at once.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: the endpoint has no peer, or is another NIC's; or the message is not mapped.
    /// `GNI_RC_SIZE_ERROR`: it is too long, for this node or that one. `GNI_RC_NO_MATCH`: there is no connection, or no such
    /// instance at its other end. `GNI_RC_NOT_DONE`: the peer has no room, as far as one knows here, or the table of requests is full.
    /// `GNI_RC_INVALID_STATE`: an earlier message to this peer did not get through, or it has gone, or written nonsense.
    pub fn send(&self, endpoint: &Endpoint, message: &Message) -> Result<(), gni_return_t> {
        let (address, instance) = endpoint.leads_to(&self.nic).ok_or(GNI_RC_INVALID_PARAM)?;
        if u64::from(message.header.1) + u64::from(message.data.1) > self.plan.lane.longest.into() {
            return Err(GNI_RC_SIZE_ERROR);
        }
        self.settle();
        let mut state = self.state.lock();
        let (connection, head) = self.own()?.find(address)?.ok_or(GNI_RC_NO_MATCH)?;
        let used = self.used(&mut state, connection, head)?.ok_or(GNI_RC_NO_MATCH)?;
        let place = used.node.place_of(instance).ok_or(GNI_RC_NO_MATCH)?;
        let (_, value) = used.node.lane_at(&used.node.members[place as usize], used.place);
        let lane = self.lane(used, connection, place).ok_or(GNI_RC_INVALID_STATE)?;
        drop(state);
        lane.send(message, value).map_err(|code| match code {
            GNI_RC_ERROR_RESOURCE => GNI_RC_SIZE_ERROR,
            GNI_RC_NOT_DONE if lane.is_lost() => GNI_RC_INVALID_STATE,
            code => code,
        })
    }

    /// The next message (`GNI_MsgqProgress`). Those of one sender come in the order in which it has sent them; those of several by
    /// turns.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_STATE`: a peer has written nonsense; the others' messages can be taken after that.
    pub fn next(&self) -> Result<Option<Received>, gni_return_t> {
        self.settle();
        let mut state = self.state.lock();
        let heads = self.own()?.heads()?;
        self.hear(&mut state, &heads);
        for _ in 0..state.waiting.len() {
            let Some(value) = state.waiting.pop_front() else { break };
            match self.look(&mut state, &heads, value)? {
                Look::Message(message) => {
                    state.waiting.push_back(value);
                    return Ok(Some(message));
                }
                Look::Later => state.waiting.push_back(value),
                // With the next message comes an event.
                Look::Nothing => {}
            }
        }
        Ok(None)
    }

    /// Takes the events of credit, which makes room for more.
    fn settle(&self) {
        while let Next::Event(_) = self.returns.next() {}
    }

    /// Takes note of the lanes of which events tell.
    fn hear(&self, state: &mut State, heads: &[Head]) {
        let State { waiting, .. } = state;
        let mut wait = |value: u64| {
            if self.plan.lane_of(value).is_some() && !waiting.contains(&value) {
                waiting.push_back(value);
            }
        };
        while let Next::Event(event) = self.arrivals.next() {
            if event.overrun {
                // Any may have been told of.
                for (connection, _) in (0..).zip(heads).filter(|(_, head)| head.progress != Progress::Free) {
                    (0..INSTANCES).for_each(|place| wait(self.plan.value_of(connection, place)));
                }
            }
            if let Some(Entry { body: Body::Remote(value), .. }) =
                Entry::decode(event.word, self.nic.0.rules.chip)
            {
                wait(value);
            }
        }
    }

    fn look(&self, state: &mut State, heads: &[Head], value: u64) -> Result<Look, gni_return_t> {
        let Some((connection, place)) = self.plan.lane_of(value) else { return Ok(Look::Nothing) };
        let head = heads[connection as usize];
        let Some(used) = self.used(state, connection, head)? else {
            let assigned = matches!(head.progress, Progress::Assigned(_));
            return Ok(if assigned { Look::Later } else { Look::Nothing });
        };
        let Some(instance) = used.node.members.get(place as usize).map(|member| member.instance) else {
            return Ok(Look::Nothing);
        };
        let lane = self.lane(used, connection, place).ok_or(GNI_RC_INVALID_STATE)?;
        let arrival = match lane.next(GNI_SMSG_ANY_TAG) {
            Ok(arrival) => arrival,
            Err(GNI_RC_NOT_DONE) => return Ok(Look::Nothing),
            Err(code) => return Err(code),
        };
        let mut data = vec![0; arrival.length as usize];
        self.nic.memory().read(arrival.address, &mut data).map_err(|_| GNI_RC_INVALID_STATE)?;
        lane.release()?;
        Ok(Look::Message(Received { address: used.address, instance, tag: arrival.tag, data }))
    }

    /// What is known of a connection of which the table says this; `None`: it is not there.
    fn used<'a>(
        &self,
        state: &'a mut State,
        connection: u32,
        head: Head,
    ) -> Result<Option<&'a mut Connected>, gni_return_t> {
        let Progress::Connected(address) = head.progress else { return Ok(None) };
        let Head { turn, place, .. } = head;
        if state.connections.get(&connection).is_none_or(|used| used.turn != turn) {
            let told = self.own()?.list(connection)?;
            let node = Node::read(&told, address).map_err(|_| GNI_RC_INVALID_STATE)?;
            let (lanes, outstanding) = (BTreeMap::new(), Outstanding::none());
            let new = Connected { address, turn, place, node, lanes, outstanding };
            state.connections.insert(connection, new);
        }
        Ok(state.connections.get_mut(&connection))
    }

    /// The lane of the instance at a place of another node, and that of this one there.
    fn lane(&self, used: &mut Connected, connection: u32, place: u32) -> Option<Arc<Connection>> {
        if let Some(lane) = used.lanes.get(&place) {
            return Some(Arc::clone(lane));
        }
        let member = used.node.members.get(place as usize)?;
        let (there, _) = used.node.lane_at(member, used.place);
        let here = self.first + self.plan.first_lane(connection) + self.plan.lane.stride() * u64::from(place);
        let kind = Kind {
            events: GNI_CQ_EVENT_TYPE_MSGQ,
            care: Care::Copy,
            queue: Arc::clone(&self.events),
            credit: Arc::clone(&self.returns),
            outstanding: Arc::clone(&used.outstanding),
            returning: Arc::clone(&used.outstanding),
        };
        let peer = Peer { address: used.address, instance: member.instance, station: None };
        let there = (used.node.lane.mailbox(there)?, member.memory);
        let lane = Connection::new(&self.nic, kind, self.plan.lane.mailbox(here)?, there, peer);
        let lane = Arc::new(lane);
        used.lanes.insert(place, Arc::clone(&lane));
        Some(lane)
    }
}

impl Drop for Msgq {
    fn drop(&mut self) {
        self.nic.show(None);
        let _ = self.nic.deregister(&self.handle);
        for used in self.state.get_mut().connections.values() {
            self.events.cancel(&used.outstanding);
            self.returns.cancel(&used.outstanding);
        }
    }
}
