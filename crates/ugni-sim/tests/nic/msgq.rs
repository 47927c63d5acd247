//! Shared message queues: who may do what when, who hears of what, and what those achieve who lie, hurry or go.

use super::moods::{is_met_by, is_well_by};
use super::*;
use gasworks_sync::atomic::Ordering::Relaxed;
use gasworks_ugni_sim::entry::{Body, Entry, Status};
use gasworks_ugni_sim::handle::Handle;
use gasworks_ugni_sim::mailbox::Word;
use gasworks_ugni_sim::msgq::{INSTANCES, Node, Plan};
use gasworks_ugni_sim::nic::{Message, Msgq, Received};
use gasworks_ugni_sim::station::{Shown, Station, There};
use proptest::prelude::*;
use std::collections::VecDeque;

/// How often a client looks for something before it gives up.
const LOOKS: usize = 300;
const CREDITS: u32 = 4;
const LONGEST: u32 = 48;

fn attributes(instances: u32) -> gni_msgq_attr_t {
    gni_msgq_attr_t {
        max_msg_sz: LONGEST,
        smsg_q_sz: CREDITS,
        rcv_pool_sz: 16,
        num_msgq_eps: 3,
        nloc_insts: instances,
        modes: 0,
        rcv_cq_sz: 32,
    }
}

/// An instance of a node.
struct Instance {
    place: (u32, u32),
    nic: Nic,
    home: Arc<Home>,
    arena: Arc<Arena>,
    events: Arc<Cq>,
    queue: Option<Msgq>,
    ends: Vec<Endpoint>,
    like: gni_msgq_attr_t,
}

/// The NICs of nodes of so many instances each, without queues. Numbers of instances say nothing of nodes.
fn begin(mood: Mood, chip: Chip, nodes: &[u32], faults: &str) -> Vec<Instance> {
    let (net, rules) = (Arc::new(Net::default()), Rules { chip, modes: 0 });
    let faults = Arc::new(Faults::parse(faults, 7, |_, _| true).unwrap());
    let all: Vec<_> =
        (0..).zip(nodes).flat_map(|(node, count)| (0..*count).map(move |at| (node, at))).collect();
    let count = all.len() as u32;
    let places = all.iter().map(|(node, at)| (address(*node), 100 * (7 - at) + node));
    let like = |node: u32| attributes(nodes[node as usize]);
    let mut ranks: Vec<Instance> = (0..)
        .zip(places.clone())
        .zip(&all)
        .map(|((rank, place), (node, _))| {
            let size = Plan::of(&like(*node)).unwrap().size();
            let words = size.div_ceil(8) as usize + 64;
            let arena = Arc::new(Arena::new(FIRST + APART * rank, words));
            let home = Arc::new(Home::new(chip, arena.clone(), 8, 8));
            net.0.lock().unwrap().insert(place, home.clone());
            let nic = Nic::new(rules, place, home.clone(), net.clone(), mood, faults.clone());
            let events = nic.queue(ENTRIES).unwrap();
            Instance { place, nic, home, arena, events, queue: None, ends: vec![], like: like(*node) }
        })
        .collect();
    for rank in &mut ranks {
        for place in places.clone().take(count as usize) {
            let end = rank.nic.endpoint(Some(&rank.events)).unwrap();
            end.bind(place.0, place.1).unwrap();
            rank.ends.push(end);
        }
    }
    ranks
}

/// The same with queues.
fn queues(mood: Mood, chip: Chip, nodes: &[u32], faults: &str) -> Vec<Instance> {
    let mut ranks = begin(mood, chip, nodes, faults);
    ranks.iter_mut().for_each(|rank| rank.init().unwrap());
    ranks
}

/// The first of a node's instances.
fn first(ranks: &[Instance], address: u32) -> &Instance {
    ranks.iter().find(|rank| rank.place.0 == address).unwrap()
}

fn addresses(ranks: &[Instance]) -> Vec<u32> {
    let mut all: Vec<_> = ranks.iter().map(|rank| rank.place.0).collect();
    all.dedup();
    all
}

/// Each node connects itself with each, itself too, by one of its instances.
fn connect(ranks: &[Instance]) {
    for one in addresses(ranks) {
        for other in addresses(ranks) {
            let (told, _) = first(ranks, other).queue().assign(one).unwrap();
            first(ranks, one).queue().assign(other).unwrap();
            first(ranks, one).queue().connect(other, &told).unwrap();
        }
    }
}

fn connected(mood: Mood, chip: Chip, nodes: &[u32]) -> Vec<Instance> {
    let ranks = queues(mood, chip, nodes, "");
    connect(&ranks);
    ranks
}

impl Instance {
    fn init(&mut self) -> Result<(), gni_return_t> {
        self.queue = Some(self.nic.msgq(&self.like, self.arena.first(), Some(&self.events))?);
        Ok(())
    }

    fn queue(&self) -> &Msgq {
        self.queue.as_ref().unwrap()
    }

    fn plan(&self) -> Plan {
        Plan::of(&self.like).unwrap()
    }

    /// Where messages are written.
    fn scratch(&self) -> u64 {
        self.arena.first() + self.arena.len() - 256
    }

    fn send(&self, to: usize, bytes: &[u8], id: u32, tag: u8) -> Result<(), gni_return_t> {
        self.arena.write(self.scratch(), bytes).unwrap();
        let header = bytes.len() as u32 / 3;
        let (header, data) =
            ((self.scratch(), header), (self.scratch() + u64::from(header), bytes.len() as u32 - header));
        let sent = self.queue().send(&self.ends[to], &Message { header, data, id, tag });
        // It was taken: nobody minds.
        self.arena.write(self.scratch(), &[0xee; 256]).unwrap();
        sent
    }

    /// The name of the next message of which an event tells, and how it ended.
    fn told(&self, chip: Chip) -> Option<(u32, Status)> {
        let Next::Event(event) = self.events.next() else { return None };
        match Entry::decode(event.word, chip).unwrap().body {
            Body::Message { kind, id } if u64::from(kind) == GNI_CQ_EVENT_TYPE_MSGQ => {
                Some((id, event.status))
            }
            body => panic!("{body:?} is of no message"),
        }
    }

    fn await_told(&self, chip: Chip) -> Option<(u32, Status)> {
        (0..LOOKS).find_map(|_| self.told(chip))
    }
}

/// The next message of an instance, while all others do their part.
fn await_message(ranks: &[Instance], who: usize) -> Option<Received> {
    (0..LOOKS).find_map(|_| {
        ranks.iter().for_each(|rank| rank.nic.progress());
        ranks[who].queue().next().unwrap()
    })
}

fn for_both(test: impl Fn(Chip)) {
    Chip::ALL.into_iter().for_each(test);
}

#[test]
fn a_message_arrives_and_its_sender_is_told() {
    for_both(|chip| {
        let ranks = connected(Mood::Plain, chip, &[2, 3]);
        for (from, to) in (0..5).flat_map(|from| (0..5).map(move |to| (from, to))) {
            let text = format!("{from} to {to}").into_bytes();
            ranks[from].send(to, &text, 0xffff_fff0 + to as u32, 9).unwrap();
            let (address, instance) = ranks[from].place;
            let message = Received { address, instance, tag: 9, data: text };
            for (other, rank) in ranks.iter().enumerate() {
                let wanted = (other == to).then(|| message.clone());
                assert_eq!(rank.queue().next(), Ok(wanted), "{from} to {to}, at {other}");
            }
            assert_eq!(ranks[from].told(chip), Some((0xffff_fff0 + to as u32, Status::Ok)));
        }
        assert!(ranks.iter().all(|rank| rank.told(chip).is_none() && rank.queue().idle() == Ok(())));
    });
}

#[test]
fn attributes_that_cannot_be_are_refused() {
    let good = attributes(2);
    assert!(Plan::of(&good).is_ok());
    let most = gni_msgq_attr_t { max_msg_sz: 128, smsg_q_sz: 8, nloc_insts: 128, ..good };
    assert!(Plan::of(&most).is_ok());
    for bad in [
        gni_msgq_attr_t { max_msg_sz: 0, ..good },
        gni_msgq_attr_t { max_msg_sz: 129, ..good },
        gni_msgq_attr_t { smsg_q_sz: 0, ..good },
        gni_msgq_attr_t { smsg_q_sz: 0x1_0000, ..good },
        gni_msgq_attr_t { rcv_pool_sz: 0, ..good },
        gni_msgq_attr_t { num_msgq_eps: 0, ..good },
        gni_msgq_attr_t { num_msgq_eps: u32::MAX, ..good },
        gni_msgq_attr_t { nloc_insts: 0, ..good },
        gni_msgq_attr_t { nloc_insts: 129, ..good },
        gni_msgq_attr_t { modes: 2, ..good },
        gni_msgq_attr_t { rcv_cq_sz: 0, ..good },
    ] {
        assert_eq!(Plan::of(&bad), Err(GNI_RC_INVALID_PARAM));
    }
}

/// Each byte of the memory is for one thing.
#[test]
fn nothing_lies_over_anything_else() {
    for (lane, connections) in [((1, 1), 1), ((128, 1), 2), ((48, 4), 3), ((17, 1000), 5)] {
        let like = attributes(2);
        let like =
            gni_msgq_attr_t { max_msg_sz: lane.0, smsg_q_sz: lane.1, num_msgq_eps: connections, ..like };
        let plan = Plan::of(&like).unwrap();
        let heads = (0..connections).map(|at| (plan.head(at), 16));
        let lists = (0..connections).map(|at| (plan.list(at), 16 + 32 * u64::from(INSTANCES)));
        let lanes = (0..connections).flat_map(|at| {
            (0..INSTANCES).map(move |place| (plan.value_of(at, place) * 64, plan.lane.stride()))
        });
        let mut end = 0;
        for (start, len) in heads.chain(lists).chain(lanes) {
            assert!(start >= end, "{start} is before {end}");
            end = start + len;
        }
        assert_eq!(end, plan.size());
        for (at, place) in [(0, 0), (connections - 1, 127), (0, 5)] {
            let value = plan.value_of(at, place);
            assert_eq!(plan.lane_of(value), Some((at, place)));
            let between = plan.lane.stride() > 64;
            assert!(!between || plan.lane_of(value + 1).is_none(), "an event tells of no half lane");
        }
        assert_eq!(plan.lane_of(plan.first_lane(0) / 64 - 1), None);
        assert_eq!(plan.lane_of(plan.size() / 64), None);
        let first = plan.lane.mailbox(4096).unwrap();
        assert!(first.bytes + first.room <= 4096 + plan.lane.stride());
    }
}

#[test]
fn a_nic_has_one_queue_and_a_node_as_many_as_it_says() {
    let mut ranks = begin(Mood::Plain, Chip::Aries, &[3], "");
    for rank in &mut ranks {
        rank.like.nloc_insts = 2;
    }
    ranks[0].init().unwrap();
    assert_eq!(ranks[0].init(), Err(GNI_RC_INVALID_STATE), "it has one");
    ranks[1].like.max_msg_sz = 32;
    assert_eq!(ranks[1].init(), Err(GNI_RC_INVALID_PARAM), "the node's are of another kind");
    ranks[1].like.max_msg_sz = LONGEST;
    let foreign = ranks[0].events.clone();
    let refused = ranks[1].nic.msgq(&ranks[1].like, ranks[1].arena.first(), Some(&foreign)).err();
    assert_eq!(refused, Some(GNI_RC_INVALID_PARAM), "another's queue");
    let refused = ranks[1].nic.msgq(&ranks[1].like, ranks[1].arena.first() + 64, None).err();
    assert_eq!(refused, Some(GNI_RC_INVALID_PARAM), "no page begins there");
    let arrivals = ranks[1].nic.queue(4).unwrap();
    let bytes = (ranks[1].scratch(), 8);
    ranks[1].nic.register(bytes, Some(&arrivals), 0).unwrap();
    let refused = ranks[1].nic.msgq(&ranks[1].like, ranks[1].arena.first(), Some(&arrivals)).err();
    assert_eq!(refused, Some(GNI_RC_INVALID_PARAM), "others write there");
    assert_eq!(ranks[0].queue().assign(1).err(), Some(GNI_RC_INVALID_STATE), "one is missing");
    ranks[1].init().unwrap();
    assert_eq!(ranks[2].init(), Err(GNI_RC_INVALID_STATE), "all are there");
    assert!(ranks[0].queue().assign(1).is_ok());
    ranks[1].queue = None;
    assert_eq!(ranks[0].queue().assign(1).err(), Some(GNI_RC_INVALID_STATE), "one has gone");
    assert_eq!(ranks[2].init(), Ok(()), "and there is room for another");
    ranks[1].like.rcv_cq_sz = u32::MAX;
    ranks[2].queue = None;
    assert_eq!(ranks[1].init(), Err(GNI_RC_ERROR_NOMEM), "there are no such queues");
    ranks[1].like.rcv_cq_sz = 4;
    assert_eq!(ranks[1].init(), Ok(()), "of what is refused nothing is left");
}

/// Whichever instance does it, and however often, all get the same.
#[test]
fn a_connection_is_the_whole_nodes() {
    for_both(|chip| {
        let ranks = queues(Mood::Plain, chip, &[3, 2], "");
        let [one, two] = [address(0), address(1)];
        let (told, size) = ranks[0].queue().assign(two).unwrap();
        assert_eq!(
            (told.pe_addr, told.max_msg_sz, told.smsg_q_sz, told.num_insts),
            (one, LONGEST, CREDITS, 3)
        );
        assert_eq!(size, 16 + 3 * 32);
        let ids: Vec<u32> = told.insts[..3].iter().map(|instance| instance.id).collect();
        assert_eq!(ids, [500, 600, 700], "in the order of their numbers");
        for rank in &ranks[..3] {
            let (same, _) = rank.queue().assign(two).unwrap();
            assert_eq!(Node::read(&same, one), Node::read(&told, one));
            assert_eq!(rank.send(3, b"x", 1, 0), Err(GNI_RC_NO_MATCH), "it is assigned, not connected");
        }
        let (others, _) = ranks[4].queue().assign(one).unwrap();
        assert_eq!(ranks[1].queue().connect(two, &others), Ok(()));
        for rank in &ranks[..3] {
            assert_eq!(rank.queue().connect(two, &others), Err(GNI_RC_INVALID_STATE), "it is there");
        }
        assert_eq!(ranks[3].queue().connect(one, &told), Ok(()));
        for from in 0..3 {
            assert_eq!(ranks[from].send(4, &[from as u8], 1, 0), Ok(()));
            assert_eq!(ranks[4].queue().next().unwrap().unwrap().instance, ranks[from].place.1);
            assert_eq!(
                ranks[from].send(0, b"x", 1, 0),
                Err(GNI_RC_NO_MATCH),
                "with itself it is not connected"
            );
        }
    });
}

#[test]
fn there_are_so_many_connections() {
    let ranks = queues(Mood::Plain, Chip::Aries, &[2], "");
    for node in 1..4 {
        let lanes: Vec<u64> =
            (0..2).map(|rank| ranks[rank].queue().assign(node).unwrap().0.insts[0].mdh_off).collect();
        assert_eq!(lanes, [ranks[0].plan().first_lane(node - 1); 2], "each has its own lanes");
    }
    assert_eq!(ranks[1].queue().assign(4).err(), Some(GNI_RC_ERROR_RESOURCE));
    assert_eq!(ranks[0].queue().disconnect(4), Err(GNI_RC_NO_MATCH));
    assert_eq!(ranks[0].queue().disconnect(2), Ok(()));
    assert_eq!(ranks[1].queue().disconnect(2), Err(GNI_RC_NO_MATCH), "for all of the node");
    let (told, _) = ranks[1].queue().assign(4).unwrap();
    assert_eq!(told.insts[1].mdh_off, ranks[0].plan().first_lane(1), "its place is free");
}

#[test]
fn what_no_node_says_is_refused() {
    let ranks = queues(Mood::Plain, Chip::Aries, &[1, 2], "");
    let good = ranks[1].queue().assign(address(0)).unwrap().0;
    let two = address(1);
    assert_eq!(ranks[0].queue().connect(two, &good), Err(GNI_RC_NO_MATCH), "nothing is assigned to it");
    ranks[0].queue().assign(two).unwrap();
    let member = |change: &dyn Fn(&mut gni_msgq_rem_inst_t)| {
        let mut bad = good;
        change(&mut bad.insts[1]);
        bad
    };
    let handle = Handle::open(&good.insts[1].mdh).unwrap();
    let read_only = ranks[1].nic.register((handle.first(), 1 << 17), None, GNI_MEM_READ_ONLY).unwrap();
    for (number, bad) in [
        gni_msgq_ep_attr_t { pe_addr: address(0), ..good },
        gni_msgq_ep_attr_t { max_msg_sz: 0, ..good },
        gni_msgq_ep_attr_t { max_msg_sz: 129, ..good },
        gni_msgq_ep_attr_t { smsg_q_sz: 0, ..good },
        gni_msgq_ep_attr_t { num_insts: 0, ..good },
        gni_msgq_ep_attr_t { num_insts: 129, ..good },
        gni_msgq_ep_attr_t { num_insts: 3, ..good },
        member(&|instance| instance.id = good.insts[0].id),
        member(&|instance| instance.id = 0),
        member(&|instance| instance.mdh = gni_mem_handle_t::zeroed()),
        member(&|instance| instance.mdh = read_only),
        member(&|instance| instance.mdh_off += 1),
        member(&|instance| instance.mdh_off = 1 << 33),
        member(&|instance| instance.mdh_off = !63),
        member(&|instance| instance.mdh_off += 1 << 20),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(ranks[0].queue().connect(two, &bad), Err(GNI_RC_INVALID_PARAM), "case {number}");
    }
    assert_eq!(ranks[0].queue().connect(two, &good), Ok(()));
}

#[test]
fn a_message_is_no_longer_than_both_nodes_have_it() {
    let mut ranks = begin(Mood::Plain, Chip::Aries, &[1, 1], "");
    ranks[1].like.max_msg_sz = 16;
    ranks.iter_mut().for_each(|rank| rank.init().unwrap());
    connect(&ranks);
    assert_eq!(ranks[0].send(1, &[1; 17], 1, 0), Err(GNI_RC_SIZE_ERROR));
    assert_eq!(ranks[0].send(1, &[1; 16], 1, 0), Ok(()));
    assert_eq!(ranks[1].send(0, &[2; 17], 1, 0), Err(GNI_RC_SIZE_ERROR), "more than its own queue has");
    assert_eq!(ranks[0].send(0, &[3; 49], 1, 0), Err(GNI_RC_SIZE_ERROR));
    assert_eq!(ranks[0].send(0, &[3; 48], 1, 0), Ok(()));
    let huge = Message { header: (0, u32::MAX), data: (0, u32::MAX), ..Message::default() };
    assert_eq!(ranks[0].queue().send(&ranks[0].ends[1], &huge), Err(GNI_RC_SIZE_ERROR));
    assert_eq!(ranks[1].queue().next().unwrap().unwrap().data, [1; 16]);
    assert_eq!(ranks[0].queue().next().unwrap().unwrap().data, [3; 48]);
}

#[test]
fn to_whom_nothing_goes() {
    let ranks = connected(Mood::Plain, Chip::Aries, &[1, 2]);
    let end = ranks[0].nic.endpoint(None).unwrap();
    let send = |end: &Endpoint| ranks[0].queue().send(end, &Message::default());
    assert_eq!(send(&end), Err(GNI_RC_INVALID_PARAM), "it is not bound");
    assert_eq!(send(&ranks[1].ends[2]), Err(GNI_RC_INVALID_PARAM), "it is another NIC's");
    for (address, instance) in [(address(1), 5), (address(2), 700), (address(1), 700)] {
        end.bind(address, instance).unwrap();
        assert_eq!(send(&end), Err(GNI_RC_NO_MATCH), "{address:#x}, {instance}");
        end.unbind().unwrap();
    }
    let unmapped = Message { header: (8, 8), ..Message::default() };
    assert_eq!(ranks[0].queue().send(&ranks[0].ends[1], &unmapped), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(ranks[0].send(1, b"well", 1, 0), Ok(()), "nothing was used up");
}

#[test]
fn credit_is_for_one_sender_and_one_receiver() {
    for_both(|chip| {
        let ranks = connected(Mood::Plain, chip, &[2, 2]);
        for id in 0..CREDITS {
            ranks[0].send(2, &[id as u8], id, 0).unwrap();
        }
        assert_eq!(ranks[0].send(2, b"x", 9, 0), Err(GNI_RC_NOT_DONE));
        assert_eq!(ranks[0].send(3, b"x", 9, 0), Ok(()), "another receiver");
        assert_eq!(ranks[1].send(2, b"x", 9, 0), Ok(()), "another sender");
        assert_eq!(ranks[2].queue().next().unwrap().unwrap().data, [0]);
        assert_eq!(ranks[0].send(2, b"y", 9, 0), Ok(()), "it is given back at once");
        assert_eq!(ranks[0].send(2, b"z", 9, 0), Err(GNI_RC_NOT_DONE));
        // The other sender's turn comes.
        assert_eq!(ranks[2].queue().next().unwrap().unwrap().instance, ranks[1].place.1);
        let rest: Vec<_> = std::iter::from_fn(|| ranks[2].queue().next().unwrap()).collect();
        assert_eq!(
            rest.iter().map(|message| message.data.clone()).collect::<Vec<_>>(),
            [vec![1], vec![2], vec![3], b"y".to_vec()]
        );
    });
}

#[test]
fn a_message_takes_a_request_until_its_event_is_taken() {
    for_both(|chip| {
        let ranks = connected(Mood::Plain, chip, &[1, 1]);
        for id in 0..ENTRIES {
            ranks[0].send(1, &[], id, 0).unwrap();
            assert!(ranks[1].queue().next().unwrap().is_some());
            assert_eq!(ranks[0].queue().idle(), Err(GNI_RC_NOT_DONE));
        }
        assert_eq!(ranks[0].send(1, &[], 99, 0), Err(GNI_RC_NOT_DONE));
        assert_eq!(ranks[0].queue().disconnect(address(1)), Err(GNI_RC_NOT_DONE));
        assert_eq!(ranks[0].told(chip), Some((0, Status::Ok)));
        assert_eq!(ranks[0].send(1, &[], 99, 0), Ok(()));
        while ranks[0].told(chip).is_some() {}
        assert_eq!(ranks[0].queue().idle(), Ok(()));
        assert_eq!(ranks[0].queue().disconnect(address(1)), Ok(()));
    });
}

/// Who wants no events has none, and is held up by none.
#[test]
fn a_queue_of_events_is_not_needed() {
    let mut ranks = begin(Mood::Plain, Chip::Aries, &[1, 1], "");
    for rank in &mut ranks {
        rank.queue = Some(rank.nic.msgq(&rank.like, rank.arena.first(), None).unwrap());
    }
    connect(&ranks);
    for id in 0..1000 {
        ranks[0].send(1, &[id as u8], id, 0).unwrap();
        assert_eq!(ranks[1].queue().next().unwrap().unwrap().data, [id as u8]);
    }
    assert_eq!([ranks[0].queue().idle(), ranks[1].queue().idle()], [Ok(()); 2]);
    assert!(nothing(&ranks[0].events));
}

#[test]
fn a_message_may_come_before_its_receivers_node_is_connected() {
    let ranks = queues(Mood::Plain, Chip::Gemini, &[1, 2], "");
    let told: Vec<_> =
        [(0, 1), (1, 0)].map(|(own, other)| ranks[own].queue().assign(address(other)).unwrap().0).into();
    ranks[0].queue().connect(address(1), &told[1]).unwrap();
    ranks[0].send(2, b"early", 1, 0).unwrap();
    for _ in 0..5 {
        assert_eq!(ranks[2].queue().next(), Ok(None));
    }
    ranks[1].queue().connect(address(0), &told[0]).unwrap();
    assert_eq!(ranks[2].queue().next().unwrap().unwrap().data, b"early");
}

/// More events than there is room for: no message is lost, not even before there is a connection.
#[test]
fn a_receiver_whose_queue_overran_looks_everywhere() {
    for early in [false, true] {
        let mut ranks = begin(Mood::Plain, Chip::Aries, &[3, 1], "");
        ranks[3].like.rcv_cq_sz = 2;
        ranks.iter_mut().for_each(|rank| rank.init().unwrap());
        let there = ranks[3].queue().assign(address(0)).unwrap().0;
        let here = ranks[0].queue().assign(address(1)).unwrap().0;
        ranks[0].queue().connect(address(1), &there).unwrap();
        if !early {
            ranks[3].queue().connect(address(0), &here).unwrap();
        }
        for id in 0..CREDITS {
            (0..3).for_each(|from| ranks[from].send(3, &[from as u8, id as u8], id, 0).unwrap());
        }
        if early {
            assert_eq!(ranks[3].queue().next(), Ok(None));
            ranks[3].queue().connect(address(0), &here).unwrap();
        }
        let mut all: Vec<_> =
            std::iter::from_fn(|| ranks[3].queue().next().unwrap()).map(|message| message.data).collect();
        all.sort();
        let wanted: Vec<_> =
            (0..3).flat_map(|from| (0..CREDITS as u8).map(move |id| vec![from, id])).collect();
        assert_eq!(all, wanted);
    }
}

/// What was begun over an older connection is not taken for the new one's.
#[test]
fn a_connection_may_be_made_again() {
    let ranks = connected(Mood::Plain, Chip::Aries, &[2, 1]);
    for round in 0..6 {
        // Of the three of one round the last are left there; none of them comes after the first of the next.
        for id in 0..3 - 2 * (round & 1) {
            ranks[1].send(2, &[round, id], 1, 0).unwrap();
            assert!(ranks[1].told(Chip::Aries).is_some());
        }
        assert_eq!(ranks[2].queue().next().unwrap().unwrap().data, [round, 0]);
        assert!(round & 1 == 0 || ranks[2].queue().next() == Ok(None));
        assert_eq!(ranks[2].queue().idle(), Ok(()));
        // By the other instance.
        assert_eq!(ranks[0].queue().disconnect(address(1)), Ok(()));
        assert_eq!(ranks[1].send(2, &[], 1, 0), Err(GNI_RC_NO_MATCH));
        assert_eq!(ranks[2].queue().disconnect(address(0)), Ok(()));
        assert_eq!(ranks[2].queue().next(), Ok(None));
        let told = [(0, 1), (2, 0)].map(|(own, other)| ranks[own].queue().assign(address(other)).unwrap().0);
        ranks[0].queue().connect(address(1), &told[1]).unwrap();
        ranks[2].queue().connect(address(0), &told[0]).unwrap();
        assert_eq!(ranks[2].queue().next(), Ok(None), "nothing of it");
    }
}

#[test]
fn who_goes_is_an_error_to_its_peers_alone() {
    for_both(|chip| {
        let mut ranks = connected(Mood::Plain, chip, &[2, 2]);
        ranks[3].queue = None;
        ranks[0].send(3, b"x", 7, 0).unwrap();
        assert_eq!(ranks[0].await_told(chip), Some((7, Status::Descriptor)));
        assert_eq!(ranks[0].send(3, b"x", 8, 0), Err(GNI_RC_INVALID_STATE));
        assert_eq!(ranks[0].send(2, b"well", 9, 0), Ok(()));
        assert_eq!(ranks[2].queue().next().unwrap().unwrap().data, b"well");
        assert_eq!(ranks[2].queue().assign(5).err(), Some(GNI_RC_INVALID_STATE), "its node is not complete");
        assert_eq!(ranks[0].queue().assign(5).map(drop), Ok(()));
    });
}

/// Whoever comes and goes: what was told last counts.
#[test]
fn places_follow_who_is_there() {
    let mut ranks = begin(Mood::Plain, Chip::Aries, &[3], "");
    for rank in &mut ranks {
        rank.like.nloc_insts = 2;
    }
    ranks[2].init().unwrap();
    ranks[1].init().unwrap();
    ranks[1].queue().assign(address(0)).unwrap();
    ranks[2].queue = None;
    ranks[0].init().unwrap();
    let (told, _) = ranks[1].queue().assign(address(0)).unwrap();
    assert_eq!([told.insts[0].id, told.insts[1].id], [600, 700]);
    ranks[1].queue().connect(address(0), &told).unwrap();
    ranks[1].send(0, b"first", 1, 0).unwrap();
    assert_eq!(ranks[0].queue().next().unwrap().unwrap().instance, 600);
    ranks[0].send(0, b"second", 1, 0).unwrap();
    assert_eq!(ranks[0].queue().next().unwrap().unwrap().instance, 700);
}

#[test]
fn of_a_queue_that_has_gone_nobody_hears() {
    for_both(|chip| {
        let mut ranks = connected(Mood::Plain, chip, &[1, 1]);
        (0..CREDITS).for_each(|id| ranks[0].send(1, b"x", id, 0).unwrap());
        ranks[0].queue = None;
        assert_eq!(ranks[0].told(chip), None);
    });
}

/// The library sends it again.
#[test]
fn a_message_that_gets_lost_is_sent_again() {
    for_both(|chip| {
        let ranks = queues(Mood::Adversarial { seed: 5 }, chip, &[1, 1], "transaction:lost%20");
        connect(&ranks);
        for id in 0..50 {
            // Credit gets lost too.
            let send = |_| {
                assert_eq!(ranks[1].queue().next(), Ok(None));
                ranks[0].send(1, &[id as u8; 5], id, 0).is_ok()
            };
            assert!((0..LOOKS).any(send));
            // Where the sender looks at its events.
            assert_eq!(ranks[0].await_told(chip), Some((id, Status::Ok)));
            assert_eq!(await_message(&ranks, 1).expect("it is there").data, [id as u8; 5]);
        }
    });
}

/// A peer writes what none writes: its messages are at an end, and nobody else's.
#[test]
fn a_lane_full_of_nonsense_is_an_error_once() {
    let ranks = connected(Mood::Plain, Chip::Aries, &[1, 2]);
    let plan = ranks[0].plan();
    // The lane of the first of the two, in the memory of the only one.
    let told = ranks[0].queue().assign(address(1)).unwrap().0.insts[0];
    let lane = Handle::open(&told.mdh).unwrap().first() + told.mdh_off;
    let liar = ranks.iter().position(|rank| rank.place == (address(1), 601)).unwrap();
    let honest = 3 - liar;
    let word = plan.lane.mailbox(lane).unwrap().word(1);
    let lie = Word { number: 1, length: 49, tag: 0 };
    ranks[0].arena.write(word, &lie.encode().to_le_bytes()).unwrap();
    let window = ranks[0].home.window();
    let sign = window.messages().unwrap();
    let told = gni_mem_handle_t { qword1: sign[0].load(Relaxed), qword2: sign[1].load(Relaxed) };
    let queue = Handle::open(&told).unwrap();
    let tell = |value: u64| {
        let there = There { handle: queue, address: queue.first(), len: 0 };
        ranks[0].home.tell(there, Some(value)).unwrap().unwrap().unwrap();
    };
    // Events that tell of nothing, and of what is none.
    for value in [0, 1, u64::from(u32::MAX), (lane - queue.first()) / 64 + 1, plan.value_of(2, 127)] {
        tell(value);
        assert_eq!(ranks[0].queue().next(), Ok(None));
    }
    tell((lane - queue.first()) / 64);
    ranks[honest].send(0, b"well", 1, 0).unwrap();
    assert_eq!(ranks[0].queue().next(), Err(GNI_RC_INVALID_STATE));
    assert_eq!(ranks[0].queue().next().unwrap().unwrap().data, b"well");
    assert_eq!(ranks[0].queue().next(), Ok(None));
}

/// Messages may come late, events swapped; nothing that is promised is broken.
#[test]
fn in_any_mood_messages_of_one_sender_are_in_order() {
    for_both(|chip| {
        for seed in 0..20 {
            let ranks = connected(Mood::Adversarial { seed }, chip, &[2, 2]);
            let (mut sent, mut told, mut next) = ([0u8; 4], [0; 4], [[0u8; 4]; 4]);
            for _ in 0..3000 {
                for from in 0..4 {
                    let to = usize::from(sent[from]) % 4;
                    if sent[from] < 40
                        && ranks[from].send(to, &[from as u8, sent[from]], sent[from].into(), 0).is_ok()
                    {
                        sent[from] += 1;
                    }
                    told[from] += u32::from(ranks[from].told(chip).is_some());
                    while let Some(message) = ranks[from].queue().next().unwrap() {
                        let [sender, number] = message.data[..] else { panic!("{message:?}") };
                        let expected = &mut next[from][usize::from(sender)];
                        assert_eq!(usize::from(number), usize::from(*expected) * 4 + from, "seed {seed}");
                        *expected += 1;
                    }
                }
            }
            assert_eq!((sent, told, next), ([40; 4], [40; 4], [[10; 4]; 4]), "seed {seed}");
            assert!(ranks.iter().all(|rank| rank.queue().idle() == Ok(())), "seed {seed}");
        }
    });
}

#[test]
fn events_of_messages_may_be_swapped() {
    let client = |ranks: &[Instance]| {
        (0..3).for_each(|id| ranks[0].send(1, &[], id, 0).unwrap());
        let told: Option<Vec<_>> = (0..3).map(|_| ranks[0].await_told(Chip::Aries)).collect();
        told.unwrap().is_sorted_by_key(|(id, _)| *id)
    };
    is_met_by(|mood| connected(mood, Chip::Aries, &[1, 1]), client);
}

#[test]
fn messages_of_two_senders_come_in_any_order_until_the_first_is_told_of() {
    let client = |wait: bool| {
        move |ranks: &[Instance]| {
            ranks[0].send(2, b"1", 1, 0).unwrap();
            if wait {
                assert!(ranks[0].await_told(Chip::Aries).is_some());
            }
            ranks[1].send(2, b"2", 2, 0).unwrap();
            await_message(ranks, 2).unwrap().data == b"1"
        }
    };
    is_met_by(|mood| connected(mood, Chip::Aries, &[2, 1]), client(false));
    is_well_by(|mood| connected(mood, Chip::Aries, &[2, 1]), client(true));
}

/// Something that a client does.
#[derive(Clone, Debug)]
enum Step {
    Send(usize, usize, usize),
    Take(usize),
    Hear(usize),
    Idle(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..5usize, 0..5usize, 0..LONGEST as usize + 4).prop_map(|(from, to, len)| Step::Send(from, to, len)),
        3 => (0..5usize).prop_map(Step::Take),
        2 => (0..5usize).prop_map(Step::Hear),
        1 => (0..5usize).prop_map(Step::Idle),
    ]
}

/// What there is at an instance: lanes by sender, in the order in which they are looked at, and events.
#[derive(Clone, Default)]
struct Model {
    lanes: [VecDeque<Vec<u8>>; 5],
    turns: VecDeque<usize>,
    events: VecDeque<u32>,
}

fn run(chip: Chip, steps: &[Step]) -> Result<(), TestCaseError> {
    let ranks = connected(Mood::Plain, chip, &[2, 3]);
    let mut model = vec![Model::default(); 5];
    for (id, step) in (0..).zip(steps) {
        match *step {
            Step::Send(from, to, len) => {
                let bytes: Vec<u8> = (0..len).map(|at| (at as u32 * 7 + id) as u8).collect();
                let wanted = match () {
                    () if len > LONGEST as usize => Err(GNI_RC_SIZE_ERROR),
                    () if model[to].lanes[from].len() == CREDITS as usize => Err(GNI_RC_NOT_DONE),
                    () if model[from].events.len() == ENTRIES as usize => Err(GNI_RC_NOT_DONE),
                    () => Ok(()),
                };
                prop_assert_eq!(ranks[from].send(to, &bytes, id, id as u8), wanted);
                if wanted.is_ok() {
                    model[from].events.push_back(id);
                    let there = &mut model[to];
                    there.lanes[from].push_back([vec![id as u8], bytes].concat());
                    if !there.turns.contains(&from) {
                        there.turns.push_back(from);
                    }
                }
            }
            Step::Take(who) => {
                let got = ranks[who].queue().next().unwrap();
                let there = &mut model[who];
                // A lane that was found empty is looked at no more.
                let empty = there.turns.iter().take_while(|from| there.lanes[**from].is_empty()).count();
                there.turns.drain(..empty);
                let wanted = there.turns.pop_front().map(|from| {
                    there.turns.push_back(from);
                    (ranks[from].place, there.lanes[from].pop_front().unwrap())
                });
                let got = got.map(|got| ((got.address, got.instance), [vec![got.tag], got.data].concat()));
                prop_assert_eq!(got, wanted);
            }
            Step::Hear(who) => {
                let wanted = model[who].events.pop_front().map(|id| (id, Status::Ok));
                prop_assert_eq!(ranks[who].told(chip), wanted);
            }
            Step::Idle(who) => {
                let wanted = if model[who].events.is_empty() { Ok(()) } else { Err(GNI_RC_NOT_DONE) };
                prop_assert_eq!(ranks[who].queue().idle(), wanted);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_programs_do_what_the_model_does(aries: bool, steps in prop::collection::vec(step(), 1..150)) {
        run(if aries { Chip::Aries } else { Chip::Gemini }, &steps)?;
    }

    /// A neighbour may write anything into a table: what comes of it is an error, or a message that nobody gets.
    #[test]
    fn a_table_of_nonsense_is_survived(
        heads in prop::collection::vec((0..4u32, 0..4u32, 0..3u32, prop_oneof![0..4u32, any::<u32>()]), 3),
        list in prop::collection::vec(any::<u8>(), 128),
        keep: bool,
    ) {
        let ranks = connected(Mood::Plain, Chip::Aries, &[2, 1]);
        let plan = ranks[0].plan();
        let base = ranks[0].arena.first();
        for (at, (state, node, turn, place)) in (0..).zip(heads) {
            let words = [state, address(0) + node, turn, place];
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            ranks[0].arena.write(base + plan.head(at), &bytes).unwrap();
        }
        if !keep {
            ranks[0].arena.write(base + plan.list(1), &list).unwrap();
        }
        for to in 0..3 {
            let _ = ranks[0].send(to, b"x", 1, 0);
            let _ = ranks[to].send(0, b"y", 1, 0);
        }
        (0..10).for_each(|_| drop((ranks[0].queue().next(), ranks[0].told(Chip::Aries))));
        for node in 0..4 {
            if let Ok((told, _)) = ranks[1].queue().assign(address(node)) {
                let _ = ranks[1].queue().connect(address(node), &told);
            }
            let _ = ranks[0].queue().disconnect(address(node));
        }
    }
}
