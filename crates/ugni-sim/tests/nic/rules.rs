//! What is refused, with which code, on which chip.

use super::*;

type Change = fn(&mut gni_post_descriptor_t);

/// The code of a put, get or atomic of eight aligned bytes, changed so.
fn code(chip: Chip, modes: u32, kind: gni_post_type_t, change: Change) -> gni_return_t {
    let ranks = job(chip, modes, 2);
    let mut descriptor = ranks[0].descriptor(&ranks[1], kind, 8);
    descriptor.amo_cmd = GNI_FMA_ATOMIC_FADD;
    // In the same line as the bytes.
    descriptor.sync_flag_addr = match kind {
        GNI_POST_FMA_PUT_W_SYNCFLAG => ranks[1].at(8),
        _ => ranks[0].at(8),
    };
    change(&mut descriptor);
    ranks[0].post(1, &descriptor).err().unwrap_or(GNI_RC_SUCCESS)
}

fn both(kind: gni_post_type_t, change: Change) -> [gni_return_t; 2] {
    Chip::ALL.map(|chip| code(chip, MODES, kind, change))
}

const GOOD: [gni_return_t; 2] = [GNI_RC_SUCCESS; 2];
const INVALID: [gni_return_t; 2] = [GNI_RC_INVALID_PARAM; 2];
const UNALIGNED: [gni_return_t; 2] = [GNI_RC_ALIGNMENT_ERROR; 2];

const FMA: [gni_post_type_t; 6] = [
    GNI_POST_FMA_PUT,
    GNI_POST_FMA_PUT_W_SYNCFLAG,
    GNI_POST_FMA_GET,
    GNI_POST_FMA_GET_W_FLAG,
    GNI_POST_AMO,
    GNI_POST_AMO_W_FLAG,
];

#[test]
fn every_kind_is_taken_as_it_should_be() {
    for kind in FMA.into_iter().chain([GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_CQWRITE]) {
        assert_eq!(both(kind, |_| ()), GOOD, "type {kind}");
    }
}

#[test]
fn fma_has_no_local_event() {
    for kind in FMA {
        assert_eq!(both(kind, |d| d.cq_mode |= GNI_CQMODE_LOCAL_EVENT), INVALID, "type {kind}");
    }
}

#[test]
fn two_events_need_a_domain_for_them() {
    let dual = |d: &mut gni_post_descriptor_t| d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    for kind in [GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET] {
        assert_eq!(both(kind, dual), GOOD);
        assert_eq!(Chip::ALL.map(|chip| code(chip, 0, kind, dual)), INVALID);
    }
}

#[test]
fn a_put_may_have_no_bytes_but_not_by_the_engine() {
    for kind in [GNI_POST_FMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG] {
        assert_eq!(both(kind, |d| d.length = 0), GOOD);
    }
    let others = [GNI_POST_FMA_GET, GNI_POST_FMA_GET_W_FLAG, GNI_POST_AMO, GNI_POST_AMO_W_FLAG];
    for kind in others.into_iter().chain([GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET]) {
        assert_eq!(both(kind, |d| d.length = 0), INVALID, "type {kind}");
    }
}

#[test]
fn a_put_has_no_alignment() {
    for kind in [GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT] {
        let odd = |d: &mut gni_post_descriptor_t| {
            (d.local_addr, d.remote_addr, d.length) = (d.local_addr + 3, d.remote_addr + 1, 5)
        };
        assert_eq!(both(kind, odd), GOOD);
    }
}

#[test]
fn a_get_is_of_words_and_from_words() {
    for kind in [GNI_POST_FMA_GET, GNI_POST_RDMA_GET] {
        assert_eq!(both(kind, |d| d.remote_addr += 2), UNALIGNED);
        assert_eq!(both(kind, |d| d.length = 6), UNALIGNED);
        // To any address on Aries alone.
        assert_eq!(both(kind, |d| d.local_addr += 2), [GNI_RC_ALIGNMENT_ERROR, GNI_RC_SUCCESS]);
        assert_eq!(
            both(kind, |d| (d.local_addr, d.remote_addr, d.length) =
                (d.local_addr + 4, d.remote_addr + 4, 4)),
            GOOD
        );
    }
}

#[test]
fn an_atomic_is_of_its_word() {
    assert_eq!(both(GNI_POST_AMO, |d| d.remote_addr += 4), UNALIGNED);
    assert_eq!(both(GNI_POST_AMO, |d| d.length = 4), UNALIGNED);
    let half: Change =
        |d| (d.amo_cmd, d.length, d.remote_addr) = (GNI_FMA_ATOMIC2_FIADD_S, 4, d.remote_addr + 4);
    assert_eq!(both(GNI_POST_AMO, half), [GNI_RC_ILLEGAL_OP, GNI_RC_SUCCESS]);
    let odd: Change =
        |d| (d.amo_cmd, d.length, d.remote_addr) = (GNI_FMA_ATOMIC2_FIADD_S, 4, d.remote_addr + 2);
    assert_eq!(both(GNI_POST_AMO, odd), [GNI_RC_ILLEGAL_OP, GNI_RC_ALIGNMENT_ERROR]);
    assert_eq!(both(GNI_POST_AMO, |d| d.amo_cmd = 7), INVALID);
}

#[test]
fn a_flagged_answer_fits_a_line_with_its_flag() {
    assert_eq!(
        both(GNI_POST_FMA_GET_W_FLAG, |d| (d.length, d.sync_flag_addr) = (60, d.local_addr + 60)),
        GOOD
    );
    assert_eq!(both(GNI_POST_FMA_GET_W_FLAG, |d| d.length = 64), INVALID);
    for kind in [GNI_POST_FMA_GET_W_FLAG, GNI_POST_AMO_W_FLAG] {
        assert_eq!(both(kind, |d| d.sync_flag_addr = d.local_addr + 62), UNALIGNED);
        assert_eq!(both(kind, |d| d.sync_flag_addr = d.local_addr + 64), UNALIGNED);
        assert_eq!(both(kind, |d| d.local_addr += 60), UNALIGNED);
    }
}

#[test]
fn a_fence_needs_a_single_channel() {
    let fence: Change = |d| d.rdma_mode = GNI_RDMAMODE_FENCE;
    assert_eq!(both(GNI_POST_RDMA_PUT, fence), INVALID);
    let single = GNI_CDM_MODE_BTE_SINGLE_CHANNEL;
    assert_eq!(Chip::ALL.map(|chip| code(chip, single, GNI_POST_RDMA_PUT, fence)), GOOD);
}

#[test]
fn a_type_belongs_to_its_function() {
    let ranks = job(Chip::Aries, MODES, 1);
    for (kind, way) in [
        (GNI_POST_FMA_PUT, Way::Bte),
        (GNI_POST_RDMA_PUT, Way::Fma),
        (GNI_POST_CQWRITE, Way::Fma),
        (GNI_POST_FMA_PUT, Way::CqWrite),
        (0, Way::Fma),
        (99, Way::Bte),
    ] {
        let descriptor = ranks[0].descriptor(&ranks[0], kind, 8);
        assert_eq!(
            ranks[0].endpoints[0].post(&descriptor, way, 0, None),
            Err(GNI_RC_INVALID_PARAM),
            "{kind} {way:?}"
        );
    }
}

#[test]
fn the_collective_engine_is_on_aries_alone() {
    assert_eq!(code(Chip::Gemini, MODES, GNI_POST_CE, |_| ()), GNI_RC_ILLEGAL_OP);
}

#[test]
fn what_the_engine_uses_here_is_registered() {
    let ranks = job(Chip::Aries, MODES, 2);
    for kind in [GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_FMA_GET, GNI_POST_AMO] {
        let mut descriptor = ranks[0].descriptor(&ranks[1], kind, 8);
        descriptor.amo_cmd = GNI_FMA_ATOMIC_FADD;
        descriptor.local_addr = ranks[1].at(0);
        assert_eq!(ranks[0].post(1, &descriptor), Err(GNI_RC_INVALID_PARAM), "type {kind}");
        descriptor.local_mem_hndl = gni_mem_handle_t::zeroed();
        assert_eq!(ranks[0].post(1, &descriptor), Err(GNI_RC_INVALID_PARAM), "type {kind}");
    }
    // The processor reads what it puts, and an atomic that brings nothing back writes nothing.
    let mut descriptor = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    descriptor.local_mem_hndl = gni_mem_handle_t::zeroed();
    assert_eq!(ranks[0].post(1, &descriptor), Ok(()));
    (descriptor.r#type, descriptor.amo_cmd) = (GNI_POST_AMO, GNI_FMA_ATOMIC_ADD);
    assert_eq!(ranks[0].post(1, &descriptor), Ok(()));
}

#[test]
fn the_engine_takes_so_much_at_a_time() {
    let ranks = job(Chip::Aries, MODES, 1);
    let large = ranks[0].nic.register((ranks[0].at(0), 1 << 34), None, 0).unwrap();
    let put = gni_post_descriptor_t {
        local_mem_hndl: large,
        remote_mem_hndl: large,
        ..ranks[0].descriptor(&ranks[0], GNI_POST_RDMA_PUT, u64::from(u32::MAX))
    };
    assert_eq!(ranks[0].post(0, &put), Ok(()));
    let put = gni_post_descriptor_t { length: 1 << 32, ..put };
    assert_eq!(ranks[0].post(0, &put), Err(GNI_RC_INVALID_PARAM));
}

#[test]
fn read_only_memory_is_not_written() {
    let ranks = job(Chip::Gemini, MODES, 2);
    let registered = |rank: &Rank| rank.nic.register((rank.at(0), 64), None, GNI_MEM_READ_ONLY).unwrap();
    let (here, there) = (registered(&ranks[0]), registered(&ranks[1]));
    for kind in [GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_AMO] {
        let mut descriptor = ranks[0].descriptor(&ranks[1], kind, 8);
        descriptor.amo_cmd = GNI_FMA_ATOMIC_FADD;
        descriptor.remote_mem_hndl = there;
        assert_eq!(ranks[0].post(1, &descriptor), Err(GNI_RC_PERMISSION_ERROR), "type {kind}");
    }
    for kind in [GNI_POST_FMA_GET, GNI_POST_RDMA_GET] {
        let mut descriptor = ranks[0].descriptor(&ranks[1], kind, 8);
        descriptor.remote_mem_hndl = there;
        assert_eq!(ranks[0].post(1, &descriptor), Ok(()), "type {kind}");
        descriptor.local_mem_hndl = here;
        assert_eq!(ranks[0].post(1, &descriptor), Err(GNI_RC_PERMISSION_ERROR), "type {kind}");
    }
}

#[test]
fn queues_are_of_endpoints_or_of_memory() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    assert_eq!(rank.nic.endpoint(Some(&rank.arrivals)).err(), Some(GNI_RC_INVALID_PARAM));
    let registered = rank.nic.register((rank.at(0), 8), Some(&rank.events), 0);
    assert_eq!(registered.err(), Some(GNI_RC_INVALID_PARAM));
    let descriptor = rank.descriptor(rank, GNI_POST_RDMA_PUT, 8);
    let posted = rank.endpoints[0].post(&descriptor, Way::Bte, 0, Some(&rank.arrivals));
    assert_eq!(posted, Err(GNI_RC_INVALID_PARAM));
    assert_eq!(rank.nic.queue(0).err(), Some(GNI_RC_INVALID_PARAM));
}

#[test]
fn events_need_a_queue_and_posts_a_peer() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    let mut descriptor = rank.descriptor(rank, GNI_POST_FMA_PUT, 8);
    let endpoint = rank.nic.endpoint(None).unwrap();
    assert_eq!(endpoint.post(&descriptor, Way::Fma, 0, None), Err(GNI_RC_INVALID_PARAM), "it has no peer");
    endpoint.bind(address(0), 0).unwrap();
    assert_eq!(endpoint.bind(address(0), 0), Err(GNI_RC_INVALID_PARAM));
    assert_eq!(endpoint.post(&descriptor, Way::Fma, 0, None), Err(GNI_RC_INVALID_PARAM), "it has no queue");
    descriptor.cq_mode = GNI_CQMODE_SILENT;
    assert_eq!(endpoint.post(&descriptor, Way::Fma, 0, None), Ok(()));
}

#[test]
fn a_registration_has_bytes_and_there_are_only_so_many() {
    let rank = &job(Chip::Gemini, MODES, 1)[0];
    for (address, len) in [(rank.at(0), 0), (u64::MAX, 2)] {
        assert_eq!(rank.nic.register((address, len), None, 0).err(), Some(GNI_RC_INVALID_PARAM));
    }
    // One of the eight is the job's.
    let mut handles: Vec<_> = (0..7).map(|_| rank.nic.register((rank.at(0), 8), None, 0).unwrap()).collect();
    assert_eq!(rank.nic.register((rank.at(0), 8), None, 0).err(), Some(GNI_RC_ERROR_RESOURCE));
    let queue = rank.nic.queue(3).unwrap();
    assert_eq!(rank.nic.register((rank.at(0), 8), Some(&queue), 0).err(), Some(GNI_RC_ERROR_RESOURCE));
    assert!(
        rank.nic.endpoint(Some(&queue)).is_ok(),
        "what was refused has not decided what the queue is for"
    );
    let last = handles.pop().unwrap();
    assert_eq!(rank.nic.deregister(&last), Ok(()));
    assert_eq!(rank.nic.deregister(&last), Err(GNI_RC_INVALID_PARAM), "it is none any more");
    assert!(rank.nic.register((rank.at(0), 8), None, 0).is_ok());
    assert_eq!(rank.nic.deregister(&gni_mem_handle_t::zeroed()), Err(GNI_RC_INVALID_PARAM));
}
