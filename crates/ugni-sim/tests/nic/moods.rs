//! What a client may not rely on: each mistake goes unnoticed in the plain mood, and is met in the adversarial one within 64
//! seeds; who does not make it is never met.

use super::*;
use gasworks_ugni_sim::entry::{Body, Entry, Source, Status};
use gasworks_ugni_sim::nic::{Link, Part};

const SEEDS: u64 = 64;
/// How often a client looks for something before it gives up.
const LOOKS: usize = 200;

/// What a client finds: whether all was as it expected.
pub type Client = fn(&[Rank]) -> bool;

/// A mood with a seed.
type Seeded = fn(u64) -> Mood;
const ADVERSARIAL: Seeded = |seed| Mood::Adversarial { seed };
const UNORDERED: Seeded = |seed| Mood::Unordered { seed };

/// A mistake: it goes well in the plain mood, and not always in the others.
pub fn is_met_by<R>(ranks: impl Fn(Mood) -> Vec<R>, client: impl Fn(&[R]) -> bool) {
    assert!(client(&ranks(Mood::Plain)), "it goes well in the plain mood");
    for mood in [ADVERSARIAL, UNORDERED] {
        let met = (0..SEEDS).any(|seed| !client(&ranks(mood(seed))));
        assert!(met, "it is met within {SEEDS} seeds, {:?}", mood(0));
    }
}

/// A mistake that the unordered mood alone finds.
fn is_met_unordered(client: Client) {
    let ranks = |mood| job_in(mood, Chip::Aries, MODES, 2);
    let met = (0..SEEDS).any(|seed| !client(&ranks(Mood::Unordered { seed })));
    assert!(met, "it is met within {SEEDS} seeds");
    is_well_in(ADVERSARIAL, ranks, client);
}

fn is_met_with(client: Client, modes: u32) {
    is_met_by(|mood| job_in(mood, Chip::Aries, modes, 2), client);
}

pub fn is_met(client: Client) {
    is_met_with(client, MODES);
}

/// No mistake.
pub fn is_well_by<R>(ranks: impl Fn(Mood) -> Vec<R>, client: impl Fn(&[R]) -> bool) {
    for mood in [ADVERSARIAL, UNORDERED] {
        is_well_in(mood, &ranks, &client);
    }
}

fn is_well_in<R>(mood: Seeded, ranks: impl Fn(Mood) -> Vec<R>, client: impl Fn(&[R]) -> bool) {
    assert!(client(&ranks(Mood::Plain)));
    for seed in 0..SEEDS {
        assert!(client(&ranks(mood(seed))), "{:?}", mood(seed));
    }
}

fn is_well_with(client: Client, modes: u32) {
    is_well_by(|mood| job_in(mood, Chip::Aries, modes, 2), client);
}

pub fn is_well(client: Client) {
    is_well_with(client, MODES);
}

/// Waits for an event of a queue, while the other rank does its part.
pub fn await_event(ranks: &[Rank], queue: &Cq) -> Option<Event> {
    (0..LOOKS).find_map(|_| {
        ranks.iter().for_each(|rank| rank.nic.progress());
        match queue.next() {
            Next::Event(event) => Some(event),
            Next::Nothing => None,
        }
    })
}

fn source(event: &Event) -> Source {
    Entry::decode(event.word, Chip::Aries).expect("an event").source
}

fn put(ranks: &[Rank], kind: gni_post_type_t, mode: u16) -> gni_post_descriptor_t {
    ranks[0].write(0, &[1; 16]);
    gni_post_descriptor_t { cq_mode: mode, ..ranks[0].descriptor(&ranks[1], kind, 16) }
}

fn arrived(ranks: &[Rank]) -> bool {
    ranks[1].bytes(0, 16) == [1; 16]
}

#[test]
fn the_source_of_an_fma_put_is_left_alone_until_the_global_event() {
    is_met(|ranks| {
        let put = put(ranks, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
        ranks[0].post(1, &put).unwrap();
        ranks[0].write(0, &[2; 16]);
        await_event(ranks, &ranks[0].events).is_some() && arrived(ranks)
    });
    is_well(|ranks| {
        let put = put(ranks, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
        ranks[0].post(1, &put).unwrap();
        let told = await_event(ranks, &ranks[0].events).is_some();
        ranks[0].write(0, &[2; 16]);
        told && arrived(ranks)
    });
}

/// The ways to put, alone and as a link of a chain.
const PUTS: [(gni_post_type_t, bool); 4] = [
    (GNI_POST_FMA_PUT, false),
    (GNI_POST_FMA_PUT, true),
    (GNI_POST_RDMA_PUT, false),
    (GNI_POST_FMA_PUT_W_SYNCFLAG, false),
];

/// Puts in one of these ways into memory that was registered with `flags`; whether the bytes are there when the event is.
fn event_follows_bytes(
    ranks: &[Rank],
    (kind, is_chain): (gni_post_type_t, bool),
    flags: u32,
    dlvr_mode: u16,
) -> bool {
    let [here, there] = ranks else { panic!("two ranks") };
    let remote_mem_hndl =
        there.nic.register((there.arena.first(), there.arena.len()), Some(&there.arrivals), flags).unwrap();
    let sync_flag_addr = there.at(64);
    let put = gni_post_descriptor_t {
        remote_mem_hndl,
        dlvr_mode,
        sync_flag_addr,
        ..put(ranks, kind, GNI_CQMODE_REMOTE_EVENT)
    };
    if is_chain {
        // Each link has an event of its own, which follows its own bytes: of one that has no bytes none can be missed.
        let link = gni_ct_put_post_descriptor_t {
            length: 0,
            remote_addr: there.at(128),
            remote_mem_hndl,
            ..gni_ct_put_post_descriptor_t::zeroed()
        };
        let link = Link { endpoint: Some(&here.endpoints[1]), part: Part::Put(link) };
        here.endpoints[1].post_chain(&put, [link], Way::Fma, 1).unwrap();
        let both = [0, 1].map(|_| await_event(ranks, &there.arrivals).is_some());
        assert_eq!(both, [true; 2]);
    } else {
        here.post(1, &put).unwrap();
        assert!(await_event(ranks, &there.arrivals).is_some());
    }
    let arrived = arrived(ranks);
    (0..LOOKS).for_each(|_| here.nic.progress());
    there.nic.deregister(&remote_mem_hndl).unwrap();
    there.write(0, &[0; 16]);
    arrived
}

#[test]
fn a_remote_event_comes_after_the_bytes_but_in_the_unordered_mood() {
    is_met_unordered(|ranks| PUTS.iter().all(|put| event_follows_bytes(ranks, *put, 0, 0)));
    is_met_unordered(|ranks| event_follows_bytes(ranks, PUTS[0], GNI_MEM_RELAXED_PI_ORDERING, 0));
    is_met_unordered(|ranks| event_follows_bytes(ranks, PUTS[1], 0, 0));
    is_met_unordered(|ranks| event_follows_bytes(ranks, PUTS[2], 0, 0));
    is_met_unordered(|ranks| event_follows_bytes(ranks, PUTS[3], 0, 0));
    // Nor there where all go the same way, or the memory was registered so.
    is_well(|ranks| PUTS.iter().all(|put| event_follows_bytes(ranks, *put, 0, GNI_DLVMODE_IN_ORDER)));
    is_well(|ranks| {
        [GNI_MEM_STRICT_PI_ORDERING, GNI_MEM_PI_FLUSH, GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH]
            .iter()
            .all(|flags| PUTS.iter().all(|put| event_follows_bytes(ranks, *put, *flags, 0)))
    });
}

/// What a rank reads it has when the other one hears of that: only then may that one write there again.
#[test]
fn the_event_of_a_get_comes_after_the_bytes_are_read() {
    fn is_read(ranks: &[Rank], flags: u32) -> bool {
        let [here, there] = ranks else { panic!("two ranks") };
        there.write(0, &[3; 16]);
        let remote_mem_hndl =
            there.nic.register((there.arena.first(), 64), Some(&there.arrivals), flags).unwrap();
        let get = gni_post_descriptor_t {
            remote_mem_hndl,
            cq_mode: GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
            ..here.descriptor(there, GNI_POST_FMA_GET, 16)
        };
        here.post(1, &get).unwrap();
        let told = await_event(ranks, &there.arrivals).is_some();
        there.write(0, &[4; 16]);
        told && await_event(ranks, &here.events).is_some() && here.bytes(0, 16) == [3; 16]
    }
    is_met_unordered(|ranks| is_read(ranks, 0));
    is_well(|ranks| is_read(ranks, GNI_MEM_PI_FLUSH));
}

fn flagged(ranks: &[Rank]) -> gni_post_descriptor_t {
    let put = put(ranks, GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t { sync_flag_addr: ranks[1].at(64), sync_flag_value: 9, ..put }
}

/// The same into memory whose writes are ordered.
fn flagged_in_order(ranks: &[Rank]) -> gni_post_descriptor_t {
    let there = &ranks[1];
    let bytes = (there.arena.first(), there.arena.len());
    let handle = there.nic.register(bytes, Some(&there.arrivals), GNI_MEM_STRICT_PI_ORDERING).unwrap();
    gni_post_descriptor_t { remote_mem_hndl: handle, ..flagged(ranks) }
}

fn raised(ranks: &[Rank]) -> bool {
    ranks[1].bytes(64, 1) == [9]
}

#[test]
fn a_flag_comes_after_the_bytes_and_in_the_unordered_mood_maybe_after_the_event() {
    is_met_unordered(|ranks| {
        ranks[0].post(1, &flagged(ranks)).unwrap();
        await_event(ranks, &ranks[1].arrivals).is_some() && raised(ranks)
    });
    is_met_unordered(|ranks| {
        ranks[0].post(1, &flagged_in_order(ranks)).unwrap();
        await_event(ranks, &ranks[1].arrivals).is_some() && raised(ranks)
    });
    is_well(|ranks| {
        ranks[0].post(1, &flagged(ranks)).unwrap();
        let seen = (0..LOOKS).any(|_| {
            ranks[0].nic.progress();
            raised(ranks)
        });
        seen && arrived(ranks)
    });
}

#[test]
fn transactions_overtake_each_other() {
    is_met(|ranks| {
        for post_id in 1..=2 {
            let put = put(ranks, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
            ranks[0].post(1, &gni_post_descriptor_t { post_id, ..put }).unwrap();
        }
        let event = await_event(ranks, &ranks[0].events);
        event.and_then(|event| event.transaction) == Some((1001, 1))
    });
}

#[test]
fn values_for_a_queue_keep_their_order_only_without_adaptive_routing() {
    fn in_order(ranks: &[Rank], dlvr_mode: u16) -> bool {
        for cqwrite_value in 1..=3 {
            let write = gni_post_descriptor_t {
                cq_mode: GNI_CQMODE_SILENT,
                dlvr_mode,
                cqwrite_value,
                ..ranks[0].descriptor(&ranks[1], GNI_POST_CQWRITE, 0)
            };
            ranks[0].post(1, &write).unwrap();
        }
        (1..=3).all(|value| {
            let event = await_event(ranks, &ranks[1].arrivals).expect("it comes");
            Entry::decode(event.word, Chip::Aries).expect("an event").body == Body::Remote(value)
        })
    }
    is_met(|ranks| in_order(ranks, GNI_DLVMODE_PERFORMANCE));
    is_well(|ranks| in_order(ranks, GNI_DLVMODE_NO_ADAPT));
}

#[test]
fn a_source_that_is_free_tells_nothing_of_the_target() {
    is_met(|ranks| {
        ranks[0].post(1, &put(ranks, GNI_POST_RDMA_PUT, GNI_CQMODE_LOCAL_EVENT)).unwrap();
        await_event(ranks, &ranks[0].events).is_some() && arrived(ranks)
    });
    is_well(|ranks| {
        ranks[0].post(1, &put(ranks, GNI_POST_RDMA_PUT, GNI_CQMODE_DUAL_EVENTS)).unwrap();
        let first = await_event(ranks, &ranks[0].events).expect("the local one");
        ranks[0].write(0, &[2; 16]);
        let second = await_event(ranks, &ranks[0].events).expect("the global one");
        [first, second].map(|event| source(&event)) == [Source::Engine, Source::Answer] && arrived(ranks)
    });
}

#[test]
fn memory_stays_registered_until_it_is_not_needed() {
    is_met(|ranks| {
        let handle = ranks[0].nic.register((ranks[0].at(0), 64), None, 0).unwrap();
        let put = put(ranks, GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
        ranks[0].post(1, &gni_post_descriptor_t { local_mem_hndl: handle, ..put }).unwrap();
        ranks[0].nic.deregister(&handle).unwrap();
        await_event(ranks, &ranks[0].events).is_some_and(|event| event.status == Status::Ok)
    });
}

#[test]
fn who_only_asks_whether_there_is_an_event_makes_none_come() {
    is_met(|ranks| {
        ranks[0].post(1, &put(ranks, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT)).unwrap();
        (0..LOOKS).any(|_| ranks[0].events.holds_event())
    });
}

/// A transaction with a fence begins when those before it by the same engine are over.
#[test]
fn a_fence_keeps_the_order() {
    const ONE_CHANNEL: u32 = MODES | GNI_CDM_MODE_BTE_SINGLE_CHANNEL;
    fn second_is_there_last(ranks: &[Rank], rdma_mode: u16) -> bool {
        let first = put(ranks, GNI_POST_RDMA_PUT, GNI_CQMODE_SILENT);
        ranks[0].write(16, &[2; 16]);
        let second = gni_post_descriptor_t {
            local_addr: ranks[0].at(16),
            cq_mode: GNI_CQMODE_GLOBAL_EVENT,
            rdma_mode,
            ..first
        };
        ranks[0].post(1, &first).unwrap();
        ranks[0].post(1, &second).unwrap();
        let told = await_event(ranks, &ranks[0].events).is_some();
        (0..LOOKS).for_each(|_| ranks[0].nic.progress());
        told && ranks[1].bytes(0, 16) == [2; 16]
    }
    is_met_with(|ranks| second_is_there_last(ranks, 0), ONE_CHANNEL);
    is_well_with(|ranks| second_is_there_last(ranks, GNI_RDMAMODE_FENCE), ONE_CHANNEL);
}

/// It may come before bytes and flag, but not where they cannot.
#[test]
fn nobody_is_told_of_a_put_that_does_not_come() {
    is_well(|ranks| {
        let good = put(ranks, GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        let outside = ranks[1].at(0) - 8;
        let flag = gni_post_descriptor_t { sync_flag_addr: outside, ..good };
        let odd = gni_post_descriptor_t { sync_flag_addr: ranks[1].at(4), ..good };
        let bytes = gni_post_descriptor_t { remote_addr: outside, sync_flag_addr: ranks[1].at(64), ..good };
        [flag, odd, bytes].iter().all(|bad| {
            ranks[0].post(1, bad).unwrap();
            let ended = await_event(ranks, &ranks[0].events).expect("it ends");
            ended.status != Status::Ok && await_event(ranks, &ranks[1].arrivals).is_none()
        })
    });
}

/// The same seed and program give the same run.
#[test]
fn a_seed_is_a_run() {
    let run = |seed| {
        let ranks = job_in(Mood::Adversarial { seed }, Chip::Gemini, MODES, 2);
        for post_id in 0..6 {
            let put = put(&ranks, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
            ranks[0].post(1, &gni_post_descriptor_t { post_id, ..put }).unwrap();
        }
        let mut seen = Vec::new();
        for look in 0..LOOKS {
            for queue in [&ranks[0].events, &ranks[1].arrivals] {
                if let Next::Event(event) = queue.next() {
                    seen.push((look, event));
                }
            }
        }
        seen
    };
    assert_eq!(run(7), run(7));
    assert_eq!(run(7).len(), 12);
    assert!((0..SEEDS).any(|seed| run(seed) != run(7)));
}

/// A client that goes leaves nothing, whatever is on its way.
#[test]
fn what_is_on_its_way_is_lost_with_its_client() {
    let ranks = job_in(Mood::Adversarial { seed: 1 }, Chip::Aries, MODES, 2);
    for _ in 0..6 {
        ranks[0].post(1, &put(&ranks, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT)).unwrap();
    }
    let memories: Vec<_> = ranks.iter().map(|rank| Arc::downgrade(&rank.arena)).collect();
    for rank in ranks {
        rank.nic.detach();
    }
    assert!(memories.iter().all(|memory| memory.upgrade().is_none()));
}
