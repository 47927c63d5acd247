//! What a client may not rely on: each mistake goes unnoticed in the plain mood, and is met in the adversarial one within 64
//! seeds; who does not make it is never met.

use super::*;
use gasworks_ugni_sim::entry::{Body, Entry, Source, Status};

const SEEDS: u64 = 64;
/// How often a client looks for something before it gives up.
const LOOKS: usize = 200;

/// What a client finds: whether all was as it expected.
pub type Client = fn(&[Rank]) -> bool;

/// A mistake: it goes well in the plain mood, and not always in the other.
pub fn is_met_by<R>(ranks: impl Fn(Mood) -> Vec<R>, client: impl Fn(&[R]) -> bool) {
    assert!(client(&ranks(Mood::Plain)), "it goes well in the plain mood");
    let met = (0..SEEDS).any(|seed| !client(&ranks(Mood::Adversarial { seed })));
    assert!(met, "it is met within {SEEDS} seeds");
}

fn is_met_with(client: Client, modes: u32) {
    is_met_by(|mood| job_in(mood, Chip::Aries, modes, 2), client);
}

pub fn is_met(client: Client) {
    is_met_with(client, MODES);
}

/// No mistake.
pub fn is_well_by<R>(ranks: impl Fn(Mood) -> Vec<R>, client: impl Fn(&[R]) -> bool) {
    assert!(client(&ranks(Mood::Plain)));
    for seed in 0..SEEDS {
        assert!(client(&ranks(Mood::Adversarial { seed })), "seed {seed}");
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

#[test]
fn a_remote_event_may_come_before_the_bytes() {
    is_met(|ranks| {
        let put = put(ranks, GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT);
        ranks[0].post(1, &put).unwrap();
        await_event(ranks, &ranks[1].arrivals).is_some() && arrived(ranks)
    });
    // Unless all go the same way.
    is_well(|ranks| {
        let put = put(ranks, GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT);
        ranks[0].post(1, &gni_post_descriptor_t { dlvr_mode: GNI_DLVMODE_IN_ORDER, ..put }).unwrap();
        await_event(ranks, &ranks[1].arrivals).is_some() && arrived(ranks)
    });
}

fn flagged(ranks: &[Rank]) -> gni_post_descriptor_t {
    let put = put(ranks, GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t { sync_flag_addr: ranks[1].at(64), sync_flag_value: 9, ..put }
}

fn raised(ranks: &[Rank]) -> bool {
    ranks[1].bytes(64, 1) == [9]
}

#[test]
fn a_flag_comes_after_the_bytes_and_maybe_after_the_event() {
    is_met(|ranks| {
        ranks[0].post(1, &flagged(ranks)).unwrap();
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
