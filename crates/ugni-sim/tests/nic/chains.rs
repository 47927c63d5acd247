//! Chains: what they are held to, what they do, and who hears of it.

use super::moods::{await_event, is_met, is_well};
use super::*;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::nic::{Link, Part};

/// A chain of three of a kind, eight bytes each, between the first words of both memories, changed so.
struct Chain<'a> {
    ranks: &'a [Rank],
    first: gni_post_descriptor_t,
    links: Vec<Link<'a>>,
}

fn chain(ranks: &[Rank], kind: gni_post_type_t) -> Chain<'_> {
    let mut first = ranks[0].descriptor(&ranks[1], kind, 8);
    first.amo_cmd = GNI_FMA_ATOMIC_FADD;
    first.first_operand = 1;
    let links = (1..3).map(|i| link(ranks, &first, 8 * i)).collect();
    Chain { ranks, first, links }
}

/// The link that does what a descriptor would, so many bytes further on.
fn link<'a>(ranks: &'a [Rank], like: &gni_post_descriptor_t, offset: u64) -> Link<'a> {
    let (remote_mem_hndl, local_mem_hndl, length) = (like.remote_mem_hndl, like.local_mem_hndl, like.length);
    let (remote_addr, local_addr) = (like.remote_addr + offset, like.local_addr + offset);
    let part = match like.r#type {
        GNI_POST_FMA_PUT => Part::Put(gni_ct_put_post_descriptor_t {
            length,
            remote_addr,
            remote_mem_hndl,
            local_addr,
            ..Default::default()
        }),
        GNI_POST_FMA_GET => Part::Get(gni_ct_get_post_descriptor_t {
            length,
            remote_addr,
            remote_mem_hndl,
            local_addr,
            local_mem_hndl,
            ..Default::default()
        }),
        GNI_POST_CQWRITE => Part::CqWrite(gni_ct_cqw_post_descriptor_t {
            remote_mem_hndl,
            cqwrite_value: like.cqwrite_value + offset,
            ..Default::default()
        }),
        _ => Part::Atomic(gni_ct_amo_post_descriptor_t {
            length,
            remote_addr,
            remote_mem_hndl,
            local_addr,
            local_mem_hndl,
            amo_cmd: like.amo_cmd,
            first_operand: like.first_operand + offset,
            ..Default::default()
        }),
    };
    Link { endpoint: Some(&ranks[0].endpoints[1]), part }
}

impl Chain<'_> {
    fn post(&self) -> Result<(), gni_return_t> {
        let way = if self.first.r#type == GNI_POST_CQWRITE { Way::CqWrite } else { Way::Fma };
        self.ranks[0].endpoints[1].post_chain(&self.first, self.links.iter().copied(), way, 5)
    }
}

type Change = fn(&mut Chain);

/// The code of a chain that was changed so; one that is refused has done nothing.
fn code(chip: Chip, modes: u32, kind: gni_post_type_t, change: Change) -> gni_return_t {
    let ranks = job(chip, modes, 2);
    ranks[0].write(0, &[7; 24]);
    let mut chain = chain(&ranks, kind);
    change(&mut chain);
    let code = chain.post().err().unwrap_or(GNI_RC_SUCCESS);
    if code != GNI_RC_SUCCESS {
        assert!(nothing(&ranks[0].events) && ranks[1].bytes(0, 24) == [0; 24]);
    }
    code
}

fn both(kind: gni_post_type_t, change: Change) -> [gni_return_t; 2] {
    Chip::ALL.map(|chip| code(chip, MODES, kind, change))
}

const KINDS: [gni_post_type_t; 4] = [GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_AMO, GNI_POST_CQWRITE];
const INVALID: [gni_return_t; 2] = [GNI_RC_INVALID_PARAM; 2];

#[test]
fn puts_gets_atomics_and_values_may_be_chained() {
    for kind in KINDS {
        assert_eq!(both(kind, |_| ()), [GNI_RC_SUCCESS; 2], "type {kind}");
        assert_eq!(both(kind, |chain| chain.links.clear()), [GNI_RC_SUCCESS; 2], "a chain of one");
    }
    for kind in [
        GNI_POST_FMA_PUT_W_SYNCFLAG,
        GNI_POST_FMA_GET_W_FLAG,
        GNI_POST_AMO_W_FLAG,
        GNI_POST_RDMA_PUT,
        GNI_POST_RDMA_GET,
        GNI_POST_CE,
    ] {
        assert_eq!(both(kind, |chain| chain.links.clear()), INVALID, "type {kind}");
    }
    let ranks = job(Chip::Aries, MODES, 2);
    let put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    assert_eq!(ranks[0].endpoints[1].post_chain(&put, [], Way::CqWrite, 0), Err(GNI_RC_INVALID_PARAM));
}

#[test]
fn all_links_are_of_the_kind_of_the_first() {
    for kind in KINDS {
        for other in KINDS.into_iter().filter(|other| *other != kind) {
            let ranks = job(Chip::Aries, MODES, 2);
            let mut mixed = chain(&ranks, kind);
            mixed.links[1] = chain(&ranks, other).links[1];
            assert_eq!(mixed.post(), Err(GNI_RC_INVALID_PARAM), "{kind} and {other}");
        }
    }
}

#[test]
fn every_link_has_an_endpoint_of_this_nic_that_is_bound() {
    for kind in KINDS {
        assert_eq!(both(kind, |chain| chain.links[1].endpoint = None), INVALID);
        assert_eq!(
            both(kind, |chain| chain.links[1].endpoint = Some(&chain.ranks[1].endpoints[0])),
            INVALID,
            "another NIC's"
        );
    }
    let ranks = job(Chip::Gemini, MODES, 2);
    let unbound = ranks[0].nic.endpoint(Some(&ranks[0].events)).unwrap();
    let mut chain = chain(&ranks, GNI_POST_FMA_PUT);
    chain.links[0].endpoint = Some(&unbound);
    assert_eq!(chain.post(), Err(GNI_RC_INVALID_PARAM));
}

#[test]
fn each_link_is_held_to_the_rules_of_its_kind() {
    const UNALIGNED: [gni_return_t; 2] = [GNI_RC_ALIGNMENT_ERROR; 2];
    fn get(chain: &mut Chain, change: fn(&mut gni_ct_get_post_descriptor_t)) {
        let Part::Get(part) = &mut chain.links[1].part else { panic!("a get") };
        change(part);
    }
    let kind = GNI_POST_FMA_GET;
    assert_eq!(both(kind, |chain| get(chain, |get| get.remote_addr += 2)), UNALIGNED);
    assert_eq!(
        both(kind, |chain| get(chain, |get| get.local_addr += 2)),
        [GNI_RC_ALIGNMENT_ERROR, GNI_RC_SUCCESS]
    );
    assert_eq!(both(kind, |chain| get(chain, |get| get.length = 0)), INVALID);
    assert_eq!(
        both(kind, |chain| get(chain, |get| get.local_mem_hndl = gni_mem_handle_t::zeroed())),
        INVALID,
        "memory here is registered"
    );
    for kind in KINDS {
        assert_eq!(both(kind, |chain| chain.first.cq_mode |= GNI_CQMODE_LOCAL_EVENT), INVALID);
        assert_eq!(both(kind, |chain| chain.first.dlvr_mode = GNI_DLVMODE_ORDERED_TAIL), INVALID);
    }
}

/// All of a chain together, not each link.
#[test]
fn a_chain_has_so_many_bytes_at_most() {
    for (modes, most) in [(MODES, 1u64 << 30), (MODES | GNI_CDM_MODE_FMA_SHARED, 1 << 20)] {
        for chip in Chip::ALL {
            let ranks = job(chip, modes, 2);
            let mut chain = chain(&ranks, GNI_POST_FMA_PUT);
            let lengths = |chain: &mut Chain, lengths: [u64; 3]| {
                chain.first.length = lengths[0];
                for (link, length) in chain.links.iter_mut().zip(&lengths[1..]) {
                    let Part::Put(part) = &mut link.part else { panic!("a put") };
                    part.length = *length;
                }
            };
            lengths(&mut chain, [most / 2, most / 4, most / 4]);
            assert_eq!(chain.post(), Ok(()));
            assert_eq!(event(&ranks[0].events).status, Status::Bounds, "so large no memory here is");
            for more in [[most / 2, most / 4, most / 4 + 1], [most + 1, 0, 0], [u64::MAX, 1, 1]] {
                lengths(&mut chain, more);
                assert_eq!(chain.post(), Err(GNI_RC_SIZE_ERROR), "{more:?}");
            }
        }
    }
}

/// A list that bites its own tail is not followed for ever.
#[test]
fn no_more_links_are_asked_for_than_fit() {
    const FIT: u32 = (1 << 20) / 8;
    let ranks = job(Chip::Aries, MODES | GNI_CDM_MODE_FMA_SHARED, 2);
    let chain = chain(&ranks, GNI_POST_FMA_PUT);
    let mut asked = 0;
    let endless = std::iter::repeat_with(|| {
        asked += 1;
        assert!(asked <= FIT, "they are");
        chain.links[0]
    });
    assert_eq!(ranks[0].endpoints[1].post_chain(&chain.first, endless, Way::Fma, 0), Err(GNI_RC_SIZE_ERROR));
    assert_eq!(asked, FIT);
}

#[test]
fn a_chain_does_all_that_its_links_say_and_tells_once() {
    for chip in Chip::ALL {
        let ranks = job(chip, MODES, 3);
        ranks[0].write(0, &[1; 24]);
        ranks[2].write(0, &[2; 24]);
        let mut puts = chain(&ranks, GNI_POST_FMA_PUT);
        puts.links.push(link(&ranks, &gni_post_descriptor_t { length: 0, ..puts.first }, 0));
        puts.post().unwrap();
        assert_eq!(ranks[1].bytes(0, 32), [[1; 24].as_slice(), &[0; 8]].concat());
        let mut gets = chain(&ranks, GNI_POST_FMA_GET);
        // One of them from elsewhere.
        gets.links[0].endpoint = Some(&ranks[0].endpoints[2]);
        let Part::Get(part) = &mut gets.links[0].part else { panic!("a get") };
        (part.remote_addr, part.remote_mem_hndl) = (ranks[2].at(8), ranks[2].handle);
        gets.post().unwrap();
        assert_eq!(ranks[0].bytes(0, 24), [[1; 8], [2; 8], [1; 8]].concat());
        ranks[1].write(0, &[0; 24]);
        chain(&ranks, GNI_POST_AMO).post().unwrap();
        assert_eq!([ranks[1].bytes(0, 1), ranks[1].bytes(8, 1), ranks[1].bytes(16, 1)], [[1], [9], [17]]);
        for _ in 0..3 {
            let told = event(&ranks[0].events);
            assert_eq!((told.transaction, told.status), (Some((5, 77)), Status::Ok));
            assert_eq!(ranks[0].events.completed(told.word), Ok((5, Status::Ok)));
        }
        assert!(nothing(&ranks[0].events));
        assert!(ranks[0].endpoints.iter().all(|endpoint| endpoint.idle() == Ok(())));
    }
}

#[test]
fn a_chain_of_values_fills_the_queue_in_its_order() {
    let ranks = job(Chip::Gemini, MODES, 2);
    chain(&ranks, GNI_POST_CQWRITE).post().unwrap();
    for value in [0, 8, 16] {
        assert_eq!(event(&ranks[1].arrivals).word & 0xffff_ffff, value);
    }
    assert_eq!(event(&ranks[0].events).transaction, Some((5, 77)));
    assert!(nothing(&ranks[0].events) && nothing(&ranks[1].arrivals));
}

#[test]
fn a_chain_takes_one_request() {
    let ranks = job(Chip::Aries, MODES, 2);
    for _ in 0..ENTRIES / 2 {
        assert_eq!(chain(&ranks, GNI_POST_FMA_PUT).post(), Ok(()));
    }
    ranks[0].write(0, &[3; 8]);
    assert_eq!(chain(&ranks, GNI_POST_FMA_PUT).post(), Err(GNI_RC_ERROR_RESOURCE));
    assert_eq!(ranks[1].bytes(0, 8), [0; 8], "what is refused does nothing");
}

/// Each target that the links name is told, by the value of the link's endpoint.
#[test]
fn each_target_of_a_chain_is_told() {
    let ranks = job(Chip::Aries, MODES, 3);
    let mut puts = chain(&ranks, GNI_POST_FMA_PUT);
    puts.first.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    ranks[0].endpoints[2].set_values(0, 99);
    puts.links[1].endpoint = Some(&ranks[0].endpoints[2]);
    let Part::Put(part) = &mut puts.links[1].part else { panic!("a put") };
    (part.remote_addr, part.remote_mem_hndl) = (ranks[2].at(0), ranks[2].handle);
    puts.post().unwrap();
    let values = [event(&ranks[1].arrivals), event(&ranks[1].arrivals), event(&ranks[2].arrivals)];
    assert_eq!(values.map(|event| event.word & 0xffff_ffff), [0, 0, 99]);
    assert!(nothing(&ranks[1].arrivals) && nothing(&ranks[2].arrivals));
}

#[test]
fn a_chain_fails_with_any_of_its_links() {
    for broken in 0..2 {
        let ranks = job(Chip::Gemini, MODES, 2);
        ranks[0].write(0, &[4; 24]);
        let mut puts = chain(&ranks, GNI_POST_FMA_PUT);
        let Part::Put(part) = &mut puts.links[broken].part else { panic!("a put") };
        part.remote_mem_hndl = gni_mem_handle_t::zeroed();
        puts.post().unwrap();
        let told = event(&ranks[0].events);
        assert_eq!((told.transaction, told.status), (Some((5, 77)), Status::Descriptor));
        assert!(nothing(&ranks[0].events));
        // The others are done.
        let others = if broken == 0 { [4, 0, 4] } else { [4, 4, 0] };
        assert_eq!(ranks[1].bytes(0, 24), others.map(|byte| [byte; 8]).concat());
    }
}

#[test]
fn a_silent_chain_tells_nobody() {
    let ranks = job(Chip::Aries, MODES, 2);
    ranks[0].write(0, &[4; 24]);
    let mut puts = chain(&ranks, GNI_POST_FMA_PUT);
    puts.first.cq_mode = GNI_CQMODE_SILENT;
    puts.post().unwrap();
    assert_eq!(ranks[1].bytes(0, 24), [4; 24]);
    assert!(nothing(&ranks[0].events));
    assert_eq!(ranks[0].endpoints[1].idle(), Ok(()));
}

fn put_three(ranks: &[Rank]) {
    ranks[0].write(0, &[1; 24]);
    chain(ranks, GNI_POST_FMA_PUT).post().unwrap();
}

fn all_arrived(ranks: &[Rank]) -> bool {
    ranks[1].bytes(0, 24) == [1; 24]
}

#[test]
fn the_sources_of_a_chain_are_left_alone_until_its_event() {
    is_met(|ranks| {
        put_three(ranks);
        ranks[0].write(16, &[2; 8]);
        await_event(ranks, &ranks[0].events).is_some() && all_arrived(ranks)
    });
    is_well(|ranks| {
        put_three(ranks);
        let told = await_event(ranks, &ranks[0].events).is_some();
        ranks[0].write(0, &[2; 24]);
        let once = (0..100).all(|_| nothing(&ranks[0].events));
        told && once && all_arrived(ranks)
    });
}

#[test]
fn the_first_of_a_chain_may_arrive_last() {
    is_met(|ranks| {
        put_three(ranks);
        let seen = (0..100).any(|_| {
            ranks[0].nic.progress();
            ranks[1].bytes(0, 1) == [1]
        });
        seen && all_arrived(ranks)
    });
    is_met(|ranks| {
        put_three(ranks);
        let seen = (0..100).any(|_| {
            ranks[0].nic.progress();
            ranks[1].bytes(16, 1) == [1]
        });
        seen && all_arrived(ranks)
    });
}
