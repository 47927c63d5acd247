//! Shared message queues (MSGQ): what the memory of one holds. Each instance of a node has such memory, registered; who is of the
//! same node keeps a table in it, and instances of other nodes put their messages there.
//!
//! # Protocol
//! - msgq.1: a connection joins two nodes. It has the same place in no two tables, and an entry in that of each instance: nobody at
//!   all; assigned to an address; or connected, and then the entry lists the instances there.
//! - msgq.2: the instances of a node change each other's tables, and read them, under the lock of the window of the table's owner. They
//!   find each other by the names of their NICs and a sign in their windows, which is changed under the same lock.
//! - msgq.3: an instance has a lane for each instance of each connection: a [mailbox](crate::mailbox) into which that one alone puts. The
//!   lane of a sender is at the place that it has among the instances of its node, in the order of their numbers; the nodes tell
//!   each other of these in what their clients trade.
//! - msgq.4: the lanes of a connection are zeros when it is assigned. Each time that it is, it has another turn, so that what was
//!   begun over an older one is told from it.
//! - msgq.5: the value of a message's event says where its lane begins.
//!
//! What others have written is copied once and checked, and then the copy is used.

use gasworks_gni_sys::*;

use crate::chip::LINE;
use crate::handle::{Flags, Handle};
use crate::mailbox::{Layout, size_needed};

/// The most instances of a node.
pub const INSTANCES: u32 = GNI_MSGQ_NODE_INSTS_MAX as u32;
/// Lanes begin at multiples of this.
const UNIT: u64 = 64;
/// Bytes of what a table says first of each connection.
pub const HEAD: u64 = 16;
/// Bytes of an instance in a list, and of what is before them.
const MEMBER: usize = 32;
const BEFORE: usize = 16;
/// Bytes of the list of a connection's instances.
pub const LIST: u64 = (BEFORE + MEMBER * INSTANCES as usize).next_multiple_of(UNIT as usize) as u64;

/// The kind of messages that go over a lane, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The longest.
    pub longest: u32,
    /// How many there may be.
    pub credits: u16,
}

impl Lane {
    /// `None`: there are none so long, or without credit.
    fn of(longest: u32, credits: u32) -> Option<Self> {
        let credits = u16::try_from(credits).ok().filter(|credits| *credits > 0)?;
        (1..=GNI_MSGQ_MSG_SZ_MAX).contains(&longest).then_some(Self { longest, credits })
    }

    fn attributes(self, address: u64) -> gni_smsg_attr_t {
        let sized = gni_smsg_attr_t {
            msg_type: GNI_SMSG_TYPE_MBOX,
            mbox_maxcredit: self.credits,
            msg_maxsize: self.longest,
            msg_buffer: std::ptr::without_provenance_mut(address as usize),
            ..Default::default()
        };
        // One more than there is credit for, each of the longest: what is left out at the end is less, so that credit alone counts.
        let (longest, credits) = (self.longest.next_multiple_of(16), u32::from(self.credits));
        let more = longest + (credits - 1) * (longest - longest.min(LINE as u32));
        gni_smsg_attr_t { buff_size: size_needed(&sized).map_or(0, |size| size + more), ..sized }
    }

    /// From the beginning of one to that of the next.
    pub fn stride(self) -> u64 {
        u64::from(self.attributes(0).buff_size).next_multiple_of(UNIT)
    }

    /// The mailbox of the one that begins at an address.
    pub fn mailbox(self, address: u64) -> Option<Layout> {
        Layout::of(&self.attributes(address)).map(Layout::strictly)
    }
}

/// What a client wants of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The lanes in its memory.
    pub lane: Lane,
    /// How many connections there may be.
    pub connections: u32,
    /// How many instances its node has.
    pub instances: u32,
}

impl Plan {
    /// Of a client's attributes.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: there cannot be such a queue.
    pub fn of(attributes: &gni_msgq_attr_t) -> Result<Self, gni_return_t> {
        let gni_msgq_attr_t { max_msg_sz, smsg_q_sz, rcv_pool_sz, num_msgq_eps, nloc_insts, modes, .. } =
            *attributes;
        let lane = Lane::of(max_msg_sz, smsg_q_sz).ok_or(GNI_RC_INVALID_PARAM)?;
        let known = rcv_pool_sz > 0 && attributes.rcv_cq_sz > 0 && modes & !GNI_MSGQ_MODE_BLOCKING == 0;
        if !known {
            return Err(GNI_RC_INVALID_PARAM);
        }
        Self::sound(lane, num_msgq_eps, nloc_insts).ok_or(GNI_RC_INVALID_PARAM)
    }

    /// Its size goes into the 32 bits that there are for it.
    fn sound(lane: Lane, connections: u32, instances: u32) -> Option<Self> {
        let plan = Self { lane, connections, instances };
        let lanes = lane.stride().checked_mul(u64::from(INSTANCES) * u64::from(connections))?;
        let size = lanes.checked_add(plan.first_lane(0))?;
        let there = connections > 0 && (1..=INSTANCES).contains(&instances);
        (there && size <= u32::MAX.into()).then_some(plan)
    }

    /// How many bytes of memory that takes (`GNI_MsgqSize`).
    pub fn size(&self) -> u64 {
        self.first_lane(self.connections)
    }

    /// Where the table says first what there is to a connection, from the beginning of the memory.
    pub fn head(&self, connection: u32) -> u64 {
        HEAD * u64::from(connection)
    }

    /// Where its instances are listed.
    pub fn list(&self, connection: u32) -> u64 {
        self.head(self.connections).next_multiple_of(UNIT) + LIST * u64::from(connection)
    }

    /// Where its lanes begin.
    pub fn first_lane(&self, connection: u32) -> u64 {
        self.list(self.connections) + self.lane.stride() * u64::from(INSTANCES) * u64::from(connection)
    }

    /// Whose lane it is of which an event tells (msgq.5): the connection, and the place of the instance.
    pub fn lane_of(&self, value: u64) -> Option<(u32, u32)> {
        let from_first = (value * UNIT).checked_sub(self.first_lane(0))?;
        let number = from_first / self.lane.stride();
        let lane = (number / u64::from(INSTANCES), (number % u64::from(INSTANCES)) as u32);
        let inside = from_first.is_multiple_of(self.lane.stride()) && lane.0 < self.connections.into();
        inside.then_some((lane.0 as u32, lane.1))
    }

    /// What the events of a lane say.
    pub fn value_of(&self, connection: u32, place: u32) -> u64 {
        (self.first_lane(connection) + self.lane.stride() * u64::from(place)) / UNIT
    }

    /// As it stands in a window (msgq.2).
    pub fn encode(&self) -> [u64; 2] {
        let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [two(self.lane.longest, self.lane.credits.into()), two(self.connections, self.instances)]
    }

    /// `None`: there cannot be such a one.
    pub fn decode([lane, all]: [u64; 2]) -> Option<Self> {
        let lane = Lane::of((lane >> 32) as u32, lane as u32)?;
        Self::sound(lane, (all >> 32) as u32, all as u32)
    }
}

/// How far a connection is (msgq.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is none.
    Free,
    /// It is for the node at this address.
    Assigned(u32),
    /// It is there.
    Connected(u32),
}

/// What a table says first of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How far it is.
    pub progress: Progress,
    /// How often it was assigned (msgq.4).
    pub turn: u32,
    /// The place of the table's owner among the instances of its node (msgq.3).
    pub place: u32,
}

impl Head {
    /// The node that it is for.
    pub fn address(&self) -> Option<u32> {
        match self.progress {
            Progress::Free => None,
            Progress::Assigned(address) | Progress::Connected(address) => Some(address),
        }
    }

    /// As it stands in a table.
    pub fn encode(&self) -> [u8; HEAD as usize] {
        let (state, address) = match self.progress {
            Progress::Free => (0, 0),
            Progress::Assigned(address) => (1, address),
            Progress::Connected(address) => (2, address),
        };
        let words: [u32; 4] = [state, address, self.turn, self.place];
        let mut bytes = [0; HEAD as usize];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Nobody else writes anything else.
    pub fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| number(bytes, at, 4) as u32;
        let progress = match word(0) {
            1 => Progress::Assigned(word(4)),
            2 => Progress::Connected(word(4)),
            _ => Progress::Free,
        };
        Self { progress, turn: word(8), place: word(12) }
    }
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = bytes.get(at..at + len).unwrap_or(&[]);
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// An instance of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub instance: u32,
    /// Its memory.
    pub memory: Handle,
    /// Where in it the lanes are of the node that was told of it.
    pub lanes: u64,
}

/// What one node tells another of itself, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The lanes of its instances.
    pub lane: Lane,
    /// In the order in which their own lanes are.
    pub members: Vec<Member>,
}

impl Node {
    /// Of what the client of a node at this address has traded.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: no node says so.
    pub fn read(attributes: &gni_msgq_ep_attr_t, address: u32) -> Result<Self, gni_return_t> {
        let node = Self::checked(attributes).filter(|_| attributes.pe_addr == address);
        node.ok_or(GNI_RC_INVALID_PARAM)
    }

    fn checked(attributes: &gni_msgq_ep_attr_t) -> Option<Self> {
        let lane = Lane::of(attributes.max_msg_sz, attributes.smsg_q_sz)?;
        let all = attributes.insts.get(..attributes.num_insts as usize).filter(|all| !all.is_empty())?;
        let member = |told: &gni_msgq_rem_inst_t| {
            let memory = Handle::open(&told.mdh).ok().filter(|memory| !memory.flags.has(Flags::READ_ONLY))?;
            let first = memory.first().checked_add(told.mdh_off)?;
            // Their events say where they begin, in 32 bits.
            let near = told.mdh_off.is_multiple_of(UNIT) && told.mdh_off <= u32::MAX.into();
            let inside = near && memory.covers(first, lane.stride() * u64::from(INSTANCES));
            inside.then_some(Member { instance: told.id, memory, lanes: told.mdh_off })
        };
        let members = all.iter().map(member).collect::<Option<Vec<_>>>()?;
        // In order, so no two are the same.
        members.is_sorted_by(|one, other| one.instance < other.instance).then_some(Self { lane, members })
    }

    /// The place of an instance.
    pub fn place_of(&self, instance: u32) -> Option<u32> {
        self.members.iter().position(|member| member.instance == instance).map(|place| place as u32)
    }

    /// Where the lane of the sender at this place is at a receiver: its address, and what its events say (msgq.5).
    pub fn lane_at(&self, receiver: &Member, place: u32) -> (u64, u32) {
        let offset = receiver.lanes + self.lane.stride() * u64::from(place);
        (receiver.memory.first() + offset, (offset / UNIT) as u32)
    }
}

/// What was traded, as it stands in a table.
pub fn encode(told: &gni_msgq_ep_attr_t) -> Vec<u8> {
    let gni_msgq_ep_attr_t { pe_addr, max_msg_sz, smsg_q_sz, num_insts, insts } = told;
    let mut bytes: Vec<u8> =
        [pe_addr, max_msg_sz, smsg_q_sz, num_insts].into_iter().flat_map(|word| word.to_le_bytes()).collect();
    for gni_msgq_rem_inst_t { id, mdh, mdh_off } in insts.iter().take(*num_insts as usize) {
        let words = [u64::from(*id), mdh.qword1, mdh.qword2, *mdh_off];
        bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
    }
    bytes
}

/// Reads it there.
pub fn decode(bytes: &[u8]) -> gni_msgq_ep_attr_t {
    let word = |at: usize| number(bytes, at, 4) as u32;
    let mut told = gni_msgq_ep_attr_t {
        pe_addr: word(0),
        max_msg_sz: word(4),
        smsg_q_sz: word(8),
        num_insts: word(12),
        ..gni_msgq_ep_attr_t::zeroed()
    };
    for (instance, bytes) in told.insts.iter_mut().zip(bytes.get(BEFORE..).unwrap_or(&[]).chunks(MEMBER)) {
        let word = |at: usize| number(bytes, at, 8);
        let mdh = gni_mem_handle_t { qword1: word(8), qword2: word(16) };
        *instance = gni_msgq_rem_inst_t { id: word(0) as u32, mdh, mdh_off: word(24) };
    }
    told
}

/// Bytes of what is traded of so many instances.
pub fn told_size(instances: u32) -> u32 {
    (BEFORE + MEMBER * instances as usize) as u32
}
