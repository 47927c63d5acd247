//! Short messages: what is refused, what is promised, who hears of what, and what a peer that lies achieves.

use super::moods::{is_met_by, is_well_by};
use super::*;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_ugni_sim::entry::{Body, Entry, Status};
use gasworks_ugni_sim::mailbox::{Layout, Word, size_needed};
use gasworks_ugni_sim::memory::Fault;
use gasworks_ugni_sim::nic::Message;

/// Words of each memory; where the mailbox of the first rank is, how far the others' are apart, and where messages are written.
const PLENTY: usize = 2048;
const APIECE: u32 = 1024;
const SCRATCH: u64 = 8 * 1024;
pub const TYPES: [gni_smsg_type_t; 2] = [GNI_SMSG_TYPE_MBOX, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT];
pub const ANY: u8 = GNI_SMSG_ANY_TAG;

/// A memory that cannot be written by NICs so many times.
#[derive(Default)]
pub struct Faults(AtomicU32);

impl Faults {
    pub fn next(&self, writes: u32) {
        self.0.store(writes, Relaxed);
    }
}

struct Faulty(Arc<Arena>, Arc<Faults>);

impl Memory for Faulty {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.0.read(address, into)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        let failed = self.1.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if failed.is_ok() { Err(Fault::Unmapped) } else { self.0.write(address, from) }
    }
}

pub fn attributes(kind: gni_smsg_type_t, credits: u16, longest: u32) -> gni_smsg_attr_t {
    let sized = gni_smsg_attr_t {
        msg_type: kind,
        mbox_maxcredit: credits,
        msg_maxsize: longest,
        ..Default::default()
    };
    gni_smsg_attr_t { buff_size: size_needed(&sized).unwrap(), ..sized }
}

/// The mailbox of a rank for what a peer sends.
pub fn mailbox(rank: &Rank, peer: usize, like: &gni_smsg_attr_t) -> gni_smsg_attr_t {
    gni_smsg_attr_t {
        msg_buffer: std::ptr::without_provenance_mut(rank.at(0) as usize),
        mbox_offset: APIECE * peer as u32,
        mem_hndl: rank.handle,
        ..*like
    }
}

/// Ranks that all have mailboxes for each other, and themselves.
pub fn connected(mood: Mood, chip: Chip, ranks: u32, like: &gni_smsg_attr_t) -> (Vec<Rank>, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let reached = |arena| Arc::new(Faulty(arena, Arc::clone(&faults))) as Arc<dyn Memory>;
    let ranks = job_of(mood, chip, MODES, ranks, PLENTY, reached);
    for (here, rank) in ranks.iter().enumerate() {
        for (there, peer) in ranks.iter().enumerate() {
            let (own, others) = (mailbox(rank, there, like), mailbox(peer, here, like));
            rank.endpoints[there].smsg_init(&own, &others).unwrap();
        }
    }
    (ranks, faults)
}

fn two(chip: Chip, like: &gni_smsg_attr_t) -> Vec<Rank> {
    connected(Mood::Plain, chip, 2, like).0
}

impl Rank {
    /// Sends some bytes, which lie where no other message of a name near this one does.
    pub fn send(&self, peer: usize, bytes: &[u8], id: u32, tag: u8) -> Result<(), gni_return_t> {
        let at = SCRATCH + 128 * u64::from(id % 32);
        self.write(at, bytes);
        let (header, data) = (bytes.len() / 3, bytes.len() - bytes.len() / 3);
        let header = (self.at(at), header as u32);
        let data = (self.at(at) + u64::from(header.1), data as u32);
        self.endpoints[peer].smsg_send(&Message { header, data, id, tag })
    }

    /// The first bytes of the next message, and its tag.
    pub fn peek(&self, peer: usize, wanted: u8, len: usize) -> Result<(Vec<u8>, u8), gni_return_t> {
        let (address, tag) = self.endpoints[peer].smsg_next(wanted)?;
        Ok((self.bytes(address - self.at(0), len), tag))
    }

    /// Takes the next message.
    pub fn receive(&self, peer: usize, len: usize) -> Result<Vec<u8>, gni_return_t> {
        let (bytes, _) = self.peek(peer, ANY, len)?;
        self.endpoints[peer].smsg_release().map(|()| bytes)
    }
}

/// What an event says: the name of a message, and how it ended.
pub fn sent(event: &Event, chip: Chip) -> (u32, Status) {
    match Entry::decode(event.word, chip).unwrap().body {
        Body::Message { kind, id } if u64::from(kind) == GNI_CQ_EVENT_TYPE_SMSG => (id, event.status),
        body => panic!("{body:?} is of no message"),
    }
}

fn for_all(test: impl Fn(Chip, gni_smsg_type_t)) {
    for chip in Chip::ALL {
        TYPES.into_iter().for_each(|kind| test(chip, kind));
    }
}

#[test]
fn a_message_arrives_and_both_sides_are_told() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 4, 64));
        let (header, data) = ((ranks[0].at(SCRATCH), 5), (ranks[0].at(SCRATCH + 64), 4));
        ranks[0].write(SCRATCH, b"head,");
        ranks[0].write(SCRATCH + 64, b"tail");
        ranks[0].endpoints[1].set_values(1, 0xfedc_ba98);
        let message = Message { header, data, id: 0xffff_fffe, tag: 3 };
        ranks[0].endpoints[1].smsg_send(&message).unwrap();
        let there = event(&ranks[1].arrivals);
        assert_eq!(Entry::decode(there.word, chip).unwrap().body, Body::Remote(0xfedc_ba98));
        assert_eq!(ranks[1].peek(0, ANY, 9), Ok((b"head,tail".to_vec(), 3)));
        let here = event(&ranks[0].events);
        assert_eq!((sent(&here, chip), here.transaction), ((0xffff_fffe, Status::Ok), None));
        assert_eq!(ranks[0].events.completed(here.word), Err(GNI_RC_DESCRIPTOR_ERROR), "it is no post");
        ranks[1].endpoints[0].smsg_release().unwrap();
        assert_eq!(ranks[1].peek(0, ANY, 0), Err(GNI_RC_NOT_DONE));
        for rank in &ranks {
            assert!(nothing(&rank.events) && nothing(&rank.arrivals), "of credit nobody hears");
            assert!(rank.endpoints.iter().all(|endpoint| endpoint.idle() == Ok(())));
        }
    });
}

#[test]
fn the_value_at_the_receiver_is_the_senders_instance() {
    let ranks = two(Chip::Gemini, &attributes(GNI_SMSG_TYPE_MBOX, 4, 64));
    ranks[1].send(0, b"x", 1, 0).unwrap();
    let there = event(&ranks[0].arrivals);
    assert_eq!(Entry::decode(there.word, Chip::Gemini).unwrap().body, Body::Remote(1));
}

#[test]
fn a_message_may_have_no_bytes() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 2, 64));
        for tag in 0..5 {
            ranks[0].endpoints[1].smsg_send(&Message { tag, ..Message::default() }).unwrap();
            assert_eq!(ranks[1].peek(0, ANY, 0), Ok((vec![], tag)));
            ranks[1].endpoints[0].smsg_release().unwrap();
            assert!(nothing(&ranks[1].events));
            event(&ranks[0].events);
        }
    });
}

#[test]
fn mailboxes_need_a_peer_and_come_once() {
    let ranks = job(Chip::Aries, MODES, 1);
    let (rank, own) = (&ranks[0], mailbox(&ranks[0], 0, &attributes(GNI_SMSG_TYPE_MBOX, 1, 16)));
    let endpoint = rank.nic.endpoint(Some(&rank.events)).unwrap();
    assert_eq!(endpoint.smsg_init(&own, &own), Err(GNI_RC_INVALID_STATE), "it is not bound");
    endpoint.bind(address(0), 0).unwrap();
    let all = || {
        [endpoint.smsg_send(&Message::default()), endpoint.smsg_next(ANY).map(drop), endpoint.smsg_release()]
    };
    assert_eq!(all(), [Err(GNI_RC_INVALID_PARAM); 3], "there are none");
    assert_eq!(endpoint.smsg_init(&own, &own), Ok(()));
    assert_eq!(endpoint.smsg_init(&own, &own), Err(GNI_RC_INVALID_STATE), "there are some");
    endpoint.unbind().unwrap();
    endpoint.bind(address(0), 0).unwrap();
    assert_eq!(all(), [Err(GNI_RC_INVALID_PARAM); 3], "they went with the peer");
    let silent = rank.nic.endpoint(None).unwrap();
    silent.bind(address(0), 0).unwrap();
    assert_eq!(silent.smsg_init(&own, &own), Err(GNI_RC_INVALID_PARAM), "it has no queue");
}

#[test]
fn attributes_that_contradict_are_refused() {
    for chip in Chip::ALL {
        let ranks = job_of(Mood::Plain, chip, MODES, 2, PLENTY, |arena| arena);
        let like = attributes(GNI_SMSG_TYPE_MBOX, 4, 64);
        let good = [mailbox(&ranks[0], 1, &like), mailbox(&ranks[1], 0, &like)];
        let read_only = |rank: &Rank| rank.nic.register((rank.at(0), 4096), None, GNI_MEM_READ_ONLY).unwrap();
        let read_only = [read_only(&ranks[0]), read_only(&ranks[1])];
        for side in 0..2 {
            let bad = [
                gni_smsg_attr_t { msg_type: GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, ..good[side] },
                gni_smsg_attr_t { msg_type: GNI_SMSG_TYPE_INVALID, ..good[side] },
                gni_smsg_attr_t { mbox_maxcredit: 0, ..good[side] },
                gni_smsg_attr_t { msg_maxsize: GNI_SMSG_MAX_SIZE + 1, ..good[side] },
                gni_smsg_attr_t { buff_size: 64, ..good[side] },
                gni_smsg_attr_t { mbox_offset: 1 << 20, ..good[side] },
                gni_smsg_attr_t { mem_hndl: gni_mem_handle_t::zeroed(), ..good[side] },
                gni_smsg_attr_t { mem_hndl: read_only[side], ..good[side] },
            ];
            for (number, bad) in bad.into_iter().enumerate() {
                let mut both = good;
                both[side] = bad;
                let code = ranks[0].endpoints[1].smsg_init(&both[0], &both[1]);
                assert_eq!(code, Err(GNI_RC_INVALID_PARAM), "side {side}, case {number}");
            }
        }
        // Sizes may differ: each mailbox has its own.
        let larger = mailbox(&ranks[1], 0, &attributes(GNI_SMSG_TYPE_MBOX, 3, 100));
        assert_eq!(ranks[0].endpoints[1].smsg_init(&good[0], &larger), Ok(()));
        assert_eq!(ranks[0].send(1, &[0; 100], 1, 0), Ok(()));
        // The header adds to that, and neither it nor the data are longer.
        let send = |header, data| {
            let at = ranks[0].at(0);
            let message = Message { header: (at, header), data: (at, data), ..Message::default() };
            ranks[0].endpoints[1].smsg_send(&message)
        };
        ranks[0].write(0, &[7; 100]);
        assert_eq!(send(64, 100), Ok(()));
        for (header, data) in [(65, 100), (0, 101), (101, 0), (100, 65)] {
            assert_eq!(send(header, data), Err(GNI_RC_ERROR_RESOURCE), "{header} and {data}");
        }
        assert_eq!(ranks[1].endpoints[0].smsg_init(&larger, &good[0]), Ok(()));
        let got = ranks[1].receive(0, 100).and_then(|first| Ok((first, ranks[1].receive(0, 164)?)));
        assert_eq!(got, Ok((vec![0; 100], [[7; 64].as_slice(), &[7; 100]].concat())));
    }
}

#[test]
fn a_message_that_is_too_long_is_an_error_and_no_matter_of_waiting() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 1, 64));
        for _ in 0..2 {
            assert_eq!(ranks[0].send(1, &[1; 129], 1, 0), Err(GNI_RC_ERROR_RESOURCE));
            let _ = ranks[0].send(1, &[1; 64], 2, 0);
        }
        let huge = Message { header: (0, u32::MAX), data: (0, u32::MAX), ..Message::default() };
        assert_eq!(ranks[0].endpoints[1].smsg_send(&huge), Err(GNI_RC_ERROR_RESOURCE));
        assert_eq!(ranks[1].receive(0, 64), Ok(vec![1; 64]));
    });
}

#[test]
fn there_are_so_many_messages_in_a_mailbox() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 3, 64));
        for id in 0..3 {
            ranks[0].send(1, &[id as u8], id, 0).unwrap();
        }
        assert_eq!(ranks[0].send(1, &[3], 3, 0), Err(GNI_RC_NOT_DONE));
        for id in 3..20 {
            assert_eq!(ranks[1].receive(0, 1), Ok(vec![id - 3]));
            assert_eq!(sent(&event(&ranks[0].events), chip), (u32::from(id) - 3, Status::Ok));
            assert!(nothing(&ranks[1].events), "and so credit goes back");
            assert_eq!(ranks[0].send(1, &[id], id.into(), 0), Ok(()));
            assert_eq!(ranks[0].send(1, &[0], 99, 0), Err(GNI_RC_NOT_DONE), "one credit for one message");
        }
    });
}

/// Of bytes there may be too few while messages are not.
#[test]
fn there_is_so_much_room_in_a_mailbox() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 5, 128));
        ranks[0].send(1, &[1; 128], 1, 0).unwrap();
        ranks[0].send(1, &[2; 128], 2, 0).unwrap();
        ranks[0].send(1, &[5; 128], 5, 0).unwrap();
        assert_eq!(ranks[0].send(1, &[3; 128], 3, 0), Err(GNI_RC_NOT_DONE));
        assert_eq!(ranks[0].send(1, &[4; 16], 4, 0), Ok(()), "there is credit, and a little room");
        assert_eq!(ranks[1].receive(0, 128), Ok(vec![1; 128]));
        assert_eq!(ranks[0].send(1, &[3; 128], 3, 0), Ok(()));
        let rest = [128, 128, 16, 128].map(|len| {
            assert!(nothing(&ranks[1].events));
            ranks[1].receive(0, len).unwrap()
        });
        assert_eq!(rest, [vec![2; 128], vec![5; 128], vec![4; 16], vec![3; 128]]);
    });
}

#[test]
fn a_message_takes_a_request_until_its_event_is_taken() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 16, 16));
        for id in 0..ENTRIES / 2 {
            ranks[0].send(1, &[], id, 0).unwrap();
        }
        assert_eq!(ranks[0].endpoints[1].unbind(), Err(GNI_RC_NOT_DONE));
        assert_eq!(ranks[0].send(1, &[], 99, 0), Err(GNI_RC_NOT_DONE));
        event(&ranks[0].events);
        assert_eq!(ranks[0].send(1, &[], 99, 0), Ok(()));
        let taken = (0..ENTRIES).map_while(|_| match ranks[1].receive(0, 0) {
            Ok(_) => Some(nothing(&ranks[1].events)),
            Err(_) => None,
        });
        assert_eq!(taken.count() as u32, ENTRIES / 2 + 1, "what was refused is not there");
    });
}

/// A client that has taken the events of its messages, and has released what it got, is done: of credit it need not know.
#[test]
fn an_endpoint_is_unbound_while_credit_is_on_its_way() {
    for mood in [Mood::Plain, Mood::Adversarial { seed: 2 }] {
        let (ranks, _) =
            connected(mood, Chip::Aries, 2, &attributes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 8, 64));
        ranks[0].send(1, &[1; 8], 1, 0).unwrap();
        assert_eq!(ranks[0].endpoints[1].unbind(), Err(GNI_RC_NOT_DONE), "there is an event to be taken");
        assert!(moods::await_event(&ranks, &ranks[0].events).is_some());
        assert_eq!(ranks[1].receive(0, 8), Ok(vec![1; 8]));
        for (rank, peer) in [(0, 1), (1, 0)] {
            assert_eq!(ranks[rank].endpoints[peer].unbind(), Ok(()), "{mood:?}");
        }
        // What is over then is nobody's.
        assert!(ranks.iter().all(|rank| moods::await_event(&ranks, &rank.events).is_none()));
    }
}

/// One put of credit is on its way at a time, and is over when its poster looks at its queue.
#[test]
fn who_takes_no_events_gives_no_credit_back() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 4, 16));
        (0..4).for_each(|id| ranks[0].send(1, &[], id, 0).unwrap());
        (0..4).for_each(|_| drop(ranks[1].receive(0, 0).unwrap()));
        assert_eq!(
            [ranks[0].send(1, &[], 4, 0), ranks[0].send(1, &[], 5, 0)],
            [Ok(()), Err(GNI_RC_NOT_DONE)]
        );
        assert_eq!(ranks[1].endpoints[0].idle(), Ok(()), "credit is no client's");
        assert!(nothing(&ranks[1].events));
        assert_eq!(ranks[1].endpoints[0].idle(), Ok(()));
        (5..8).for_each(|id| ranks[0].send(1, &[], id, 0).unwrap());
        assert_eq!(ranks[0].send(1, &[], 8, 0), Err(GNI_RC_NOT_DONE));
    });
}

#[test]
fn credit_waits_for_a_free_request() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 1, 16));
        ranks[0].send(1, &[], 1, 0).unwrap();
        let put = ranks[1].descriptor(&ranks[1], GNI_POST_FMA_PUT, 0);
        (0..ENTRIES / 2).for_each(|_| ranks[1].post(1, &put).unwrap());
        ranks[1].receive(0, 0).unwrap();
        assert_eq!(ranks[0].send(1, &[], 2, 0), Err(GNI_RC_NOT_DONE));
        let posted = event(&ranks[1].events);
        assert_eq!(ranks[0].send(1, &[], 2, 0), Err(GNI_RC_NOT_DONE), "taken, not answered");
        ranks[1].events.completed(posted.word).unwrap();
        event(&ranks[1].events);
        assert_eq!(ranks[0].send(1, &[], 2, 0), Ok(()));
    });
}

#[test]
fn a_tag_has_to_match_or_any_will_do() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 4, 16));
        assert_eq!(ranks[1].peek(0, 7, 0), Err(GNI_RC_NOT_DONE));
        ranks[0].send(1, b"a", 1, 7).unwrap();
        ranks[0].send(1, b"b", 2, 8).unwrap();
        assert_eq!(ranks[1].peek(0, 8, 1), Err(GNI_RC_NO_MATCH), "the first decides");
        assert_eq!(ranks[1].peek(0, 7, 1), Ok((b"a".to_vec(), 7)));
        assert_eq!(ranks[1].peek(0, ANY, 1), Ok((b"a".to_vec(), 7)), "it is the same until it is released");
        ranks[1].endpoints[0].smsg_release().unwrap();
        assert_eq!(ranks[1].endpoints[0].smsg_release(), Err(GNI_RC_NOT_DONE), "nothing is being read");
        assert_eq!(ranks[1].peek(0, 7, 1), Err(GNI_RC_NO_MATCH));
        assert_eq!(ranks[1].peek(0, 8, 1), Ok((b"b".to_vec(), 8)));
    });
}

#[test]
fn a_queue_that_overran_lost_no_message() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 64, 16));
        for id in 0..ENTRIES + 4 {
            ranks[0].send(1, &id.to_le_bytes(), id, 0).unwrap();
            let here = event(&ranks[0].events);
            assert_eq!(sent(&here, chip), (id, Status::Ok));
            assert_eq!(Entry::decode(here.word, chip).unwrap().remote_overrun, id >= ENTRIES);
        }
        assert!(event(&ranks[1].arrivals).overrun);
        (1..ENTRIES).for_each(|_| assert!(!event(&ranks[1].arrivals).overrun));
        assert!(nothing(&ranks[1].arrivals));
        for id in 0..ENTRIES + 4 {
            assert_eq!(ranks[1].receive(0, 4), Ok(id.to_le_bytes().to_vec()));
        }
        assert_eq!(ranks[1].receive(0, 4), Err(GNI_RC_NOT_DONE));
    });
}

#[test]
fn the_first_message_may_come_before_its_receiver_begins() {
    let ranks = job_of(Mood::Plain, Chip::Aries, MODES, 2, PLENTY, |arena| arena);
    let like = attributes(GNI_SMSG_TYPE_MBOX, 4, 64);
    let boxes = [mailbox(&ranks[0], 1, &like), mailbox(&ranks[1], 0, &like)];
    ranks[0].endpoints[1].smsg_init(&boxes[0], &boxes[1]).unwrap();
    ranks[0].send(1, b"early", 1, 0).unwrap();
    ranks[1].endpoints[0].smsg_init(&boxes[1], &boxes[0]).unwrap();
    assert_eq!(ranks[1].receive(0, 5), Ok(b"early".to_vec()));
}

#[test]
fn one_may_send_to_oneself() {
    for_all(|chip, kind| {
        let ranks = two(chip, &attributes(kind, 1, 64));
        for id in 0..5 {
            ranks[0].send(0, b"me", id, 0).unwrap();
            assert_eq!(ranks[0].receive(0, 2), Ok(b"me".to_vec()));
            assert_eq!(sent(&event(&ranks[0].events), chip), (id, Status::Ok));
            assert!(nothing(&ranks[0].events));
        }
    });
}

#[test]
fn what_is_not_mapped_is_not_sent() {
    let ranks = two(Chip::Aries, &attributes(GNI_SMSG_TYPE_MBOX, 1, 64));
    for (header, data) in [((1, 8), (0, 0)), ((0, 0), (1, 8)), ((u64::MAX, 2), (0, 0))] {
        let message = Message { header, data, ..Message::default() };
        assert_eq!(ranks[0].endpoints[1].smsg_send(&message), Err(GNI_RC_INVALID_PARAM));
    }
    assert_eq!(ranks[0].send(1, b"well", 1, 0), Ok(()), "nothing was used up");
    assert_eq!(ranks[1].receive(0, 4), Ok(b"well".to_vec()));
}

#[test]
fn an_endpoint_that_goes_leaves_no_request() {
    let ranks = two(Chip::Gemini, &attributes(GNI_SMSG_TYPE_MBOX, 16, 16));
    let Rank { nic, arena, events, arrivals, handle, mut endpoints } = ranks.into_iter().next().unwrap();
    let rank = |endpoints| Rank {
        nic: nic.clone(),
        arena: arena.clone(),
        events: events.clone(),
        arrivals: arrivals.clone(),
        handle,
        endpoints,
    };
    let other = vec![endpoints.remove(0)];
    let going = rank(endpoints);
    (0..ENTRIES / 2).for_each(|id| going.send(0, &[], id, 0).unwrap());
    drop(going);
    assert!(nothing(&events));
    let staying = rank(other);
    (0..ENTRIES / 2).for_each(|id| staying.send(0, &[], id, 0).unwrap());
}

#[test]
fn a_client_that_goes_leaves_no_message() {
    for kind in TYPES {
        let like = attributes(kind, 4, 64);
        let (ranks, _) = connected(Mood::Adversarial { seed: 1 }, Chip::Aries, 2, &like);
        (0..4).for_each(|id| ranks[0].send(1, &[1; 9], id, 0).unwrap());
        (0..LOOKS).for_each(|_| ranks[0].nic.progress());
        let _ = (ranks[1].receive(0, 9).unwrap(), ranks[1].receive(0, 9).unwrap());
        let memories: Vec<_> = ranks.iter().map(|rank| Arc::downgrade(&rank.arena)).collect();
        for rank in ranks {
            rank.nic.detach();
        }
        assert!(memories.iter().all(|memory| memory.upgrade().is_none()));
    }
}

#[test]
fn routing_is_of_known_bits() {
    let ranks = two(Chip::Aries, &attributes(GNI_SMSG_TYPE_MBOX, 1, 16));
    for mode in [GNI_DLVMODE_PERFORMANCE, GNI_DLVMODE_IN_ORDER, GNI_DLVMODE_ADAPTIVE3] {
        assert_eq!(ranks[0].nic.set_smsg_delivery(mode), Ok(()));
    }
    assert_eq!(ranks[0].nic.set_smsg_delivery(0x200), Err(GNI_RC_INVALID_PARAM));
}

/// The library sends it again, and the client hears of the last try alone.
#[test]
fn a_message_is_sent_again_so_often() {
    for chip in Chip::ALL {
        for (most, writes) in [(10, 10), (10, 11), (3, 3), (3, 4), (0, 1)] {
            let like = attributes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 64);
            let (ranks, faults) = connected(Mood::Plain, chip, 2, &like);
            if most != 10 {
                ranks[0].nic.set_smsg_retransmissions(most);
            }
            faults.next(writes);
            ranks[0].send(1, b"again", 5, 0).unwrap();
            assert_eq!(ranks[1].peek(0, ANY, 5), Err(GNI_RC_NOT_DONE));
            let here = event(&ranks[0].events);
            if writes <= most.into() {
                assert_eq!(sent(&here, chip), (5, Status::Ok));
                assert_eq!(ranks[1].receive(0, 5), Ok(b"again".to_vec()));
                assert_eq!(ranks[0].send(1, b"more", 6, 0), Ok(()));
            } else {
                assert_eq!(sent(&here, chip), (5, Status::Translation));
                assert_eq!(
                    ranks[0].send(1, b"more", 6, 0),
                    Err(GNI_RC_INVALID_STATE),
                    "it would never be read"
                );
            }
            assert!(nothing(&ranks[0].events) == (writes > most.into()));
        }
    }
}

#[test]
fn without_retransmission_the_first_error_is_told() {
    for chip in Chip::ALL {
        let (ranks, faults) = connected(Mood::Plain, chip, 2, &attributes(GNI_SMSG_TYPE_MBOX, 4, 64));
        ranks[0].send(1, b"good", 4, 0).unwrap();
        faults.next(1);
        ranks[0].send(1, b"lost", 5, 0).unwrap();
        assert_eq!(sent(&event(&ranks[0].events), chip), (4, Status::Ok));
        assert_eq!(sent(&event(&ranks[0].events), chip), (5, Status::Translation));
        assert_eq!(ranks[0].send(1, b"more", 6, 0), Err(GNI_RC_INVALID_STATE));
        // What has arrived can be read, and the other direction still works.
        assert_eq!(ranks[1].receive(0, 4), Ok(b"good".to_vec()));
        assert_eq!(ranks[1].receive(0, 4), Err(GNI_RC_NOT_DONE));
        assert_eq!(ranks[1].send(0, b"back", 7, 0), Ok(()));
        assert_eq!(ranks[0].receive(1, 4), Ok(b"back".to_vec()));
    }
}

#[test]
fn credit_that_does_not_get_through_is_given_again() {
    for_all(|chip, kind| {
        let (ranks, faults) = connected(Mood::Plain, chip, 2, &attributes(kind, 1, 16));
        ranks[0].send(1, &[], 1, 0).unwrap();
        faults.next(3);
        ranks[1].receive(0, 0).unwrap();
        assert_eq!(ranks[0].send(1, &[], 2, 0), Err(GNI_RC_NOT_DONE));
        assert!(nothing(&ranks[1].events));
        assert_eq!(ranks[0].send(1, &[], 2, 0), Ok(()));
    });
}

/// What was sent before its sender went, or could not be told any more, can be read.
#[test]
fn the_last_messages_outlive_their_sender() {
    let ranks = two(Chip::Aries, &attributes(GNI_SMSG_TYPE_MBOX, 4, 16));
    (0..2).for_each(|id| ranks[0].send(1, &[id as u8], id, 0).unwrap());
    ranks[0].nic.deregister(&ranks[0].handle).unwrap();
    assert_eq!(ranks[1].receive(0, 1), Ok(vec![0]));
    assert!(nothing(&ranks[1].events));
    assert_eq!(ranks[1].receive(0, 1), Ok(vec![1]));
    assert_eq!(ranks[1].send(0, &[], 9, 0), Err(GNI_RC_INVALID_STATE), "nobody is there");
}

/// That its receiver cannot be told any more is no reason to send it again: the place may be another message's by then.
#[test]
fn a_message_that_has_arrived_is_not_sent_again() {
    let like = attributes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 64);
    let mut met = 0;
    for seed in 0..64 {
        let (ranks, _) = connected(Mood::Adversarial { seed }, Chip::Gemini, 2, &like);
        ranks[0].send(1, b"there", 7, 0).unwrap();
        while ranks[1].peek(0, ANY, 0).is_err() {
            ranks[0].nic.progress();
        }
        met += u32::from(!ranks[1].arrivals.holds_event());
        ranks[1].nic.deregister(&ranks[1].handle).unwrap();
        let told = (0..LOOKS).find_map(|_| match ranks[0].events.next() {
            Next::Event(event) => Some(sent(&event, Chip::Gemini)),
            Next::Nothing => None,
        });
        assert_eq!(told, Some((7, Status::Ok)), "seed {seed}");
    }
    assert!((1..64).contains(&met), "{met} events were still to come");
}

/// A peer that lies about a message or about credit breaks what it lies about, for good.
#[test]
fn a_peer_that_lies_is_not_believed() {
    for_all(|chip, kind| {
        let like = attributes(kind, 4, 64);
        for word in [u64::MAX, Word { number: 1, length: 129, tag: 0 }.encode(), 2] {
            let ranks = two(chip, &like);
            let layout = Layout::of(&mailbox(&ranks[1], 0, &like)).unwrap();
            let at = layout.word(1) - ranks[1].at(0);
            ranks[1].write(at, &word.to_le_bytes());
            assert_eq!(ranks[1].peek(0, ANY, 0), Err(GNI_RC_INVALID_STATE));
            ranks[1].write(at, &[0; 8]);
            assert_eq!(ranks[1].peek(0, ANY, 0), Err(GNI_RC_INVALID_STATE));
            assert_eq!(ranks[1].endpoints[0].smsg_release(), Err(GNI_RC_NOT_DONE));
            assert_eq!(ranks[1].send(0, &[], 1, 0), Ok(()), "of the other direction it is no matter");
        }
        for credit in [5u64, u64::MAX] {
            let ranks = two(chip, &like);
            (0..4).for_each(|id| ranks[1].send(0, &[], id, 0).unwrap());
            let layout = Layout::of(&mailbox(&ranks[1], 0, &like)).unwrap();
            ranks[1].write(layout.credit - ranks[1].at(0), &credit.to_le_bytes());
            assert_eq!(ranks[1].send(0, &[], 4, 0), Err(GNI_RC_INVALID_STATE));
            assert_eq!(ranks[1].send(0, &[], 4, 0), Err(GNI_RC_INVALID_STATE));
            assert_eq!(ranks[0].receive(1, 0), Ok(vec![]));
        }
    });
}

// What a client may not rely on.

fn pair(kind: gni_smsg_type_t) -> impl Fn(Mood) -> Vec<Rank> {
    move |mood| connected(mood, Chip::Aries, 2, &attributes(kind, 8, 64)).0
}

const LOOKS: usize = 400;

/// Sends some messages, and takes what comes as is said after each event; which came.
fn by_events(ranks: &[Rank], take: impl Fn(&mut Vec<Vec<u8>>)) -> Vec<Vec<u8>> {
    for id in 0..6 {
        ranks[0].send(1, &[id as u8; 3], id, 0).unwrap();
    }
    let mut got = Vec::new();
    for _ in 0..LOOKS {
        while ranks[0].events.next() != Next::Nothing {}
        ranks[1].nic.progress();
        if let Next::Event(_) = ranks[1].arrivals.next() {
            take(&mut got);
        }
    }
    got
}

fn all_in_order(got: &[Vec<u8>]) -> bool {
    got.len() == 6 && (0..).zip(got).all(|(id, bytes)| bytes == &[id; 3])
}

fn one_for_each_event(ranks: &[Rank]) -> bool {
    all_in_order(&by_events(ranks, |got| got.extend(ranks[1].receive(0, 3).ok())))
}

#[test]
fn messages_are_taken_until_there_are_none_after_each_event() {
    for kind in TYPES {
        is_met_by(pair(kind), one_for_each_event);
        is_well_by(pair(kind), |ranks| {
            all_in_order(&by_events(ranks, |got| {
                got.extend(std::iter::from_fn(|| ranks[1].receive(0, 3).ok()))
            }))
        });
    }
    // Where all go the same way, it is one for each event.
    let in_order = |mood| {
        let ranks = pair(GNI_SMSG_TYPE_MBOX)(mood);
        ranks[0].nic.set_smsg_delivery(GNI_DLVMODE_IN_ORDER).unwrap();
        ranks
    };
    is_well_by(in_order, one_for_each_event);
}

#[test]
fn a_message_is_read_before_it_is_released() {
    let read = |release_first: bool| {
        move |ranks: &[Rank]| {
            ranks[0].send(1, b"read me", 1, 0).unwrap();
            let found = (0..LOOKS).find_map(|_| {
                ranks[0].nic.progress();
                ranks[1].endpoints[0].smsg_next(ANY).ok()
            });
            let (address, _) = found.expect("it comes");
            if release_first {
                ranks[1].endpoints[0].smsg_release().unwrap();
            }
            ranks[1].bytes(address - ranks[1].at(0), 7) == b"read me"
        }
    };
    for kind in TYPES {
        is_met_by(pair(kind), read(true));
        is_well_by(pair(kind), read(false));
    }
}

/// Sends a message and changes its memory, at once or after its event; whether it arrives as it was.
fn arrives_unchanged(ranks: &[Rank], after_event: bool) -> bool {
    ranks[0].send(1, &[1; 9], 0, 0).unwrap();
    if after_event {
        let told = (0..LOOKS).any(|_| ranks[0].events.next() != Next::Nothing);
        assert!(told);
    }
    ranks[0].write(SCRATCH, &[2; 9]);
    let found = (0..LOOKS).find_map(|_| {
        ranks[0].nic.progress();
        ranks[1].receive(0, 9).ok()
    });
    found == Some(vec![1; 9])
}

#[test]
fn what_may_be_sent_again_is_left_alone_until_its_event() {
    let [plain, auto] = TYPES.map(pair);
    is_met_by(&auto, |ranks| arrives_unchanged(ranks, false));
    is_well_by(&auto, |ranks| arrives_unchanged(ranks, true));
    is_well_by(&plain, |ranks| arrives_unchanged(ranks, false));
}

#[test]
fn credit_comes_late() {
    let refill = |looks: usize| {
        move |ranks: &[Rank]| {
            for id in 0..8 {
                assert!((0..LOOKS).any(|_| {
                    let _ = ranks[0].events.next();
                    ranks[0].send(1, &[], id, 0).is_ok()
                }));
            }
            let taken = (0..LOOKS).any(|_| {
                let _ = ranks[0].events.next();
                ranks[1].receive(0, 0).is_ok()
            });
            let refilled = (0..looks).any(|_| {
                let refilled = ranks[0].send(1, &[], 8, 0).is_ok();
                let _ = (ranks[0].events.next(), ranks[1].events.next());
                refilled
            });
            taken && refilled
        }
    };
    for kind in TYPES {
        is_met_by(pair(kind), refill(1));
        is_well_by(pair(kind), refill(LOOKS));
    }
}
