//! Events, values, descriptors, handles: what software relies on.

use super::*;
use gasworks_ugni_sim::entry::{Body, Entry, Source, Status};
use gasworks_ugni_sim::handle::{Flags, Handle, PAGES_UNSAID};

fn entry(event: &Event, chip: Chip) -> Entry {
    Entry::decode(event.word, chip).expect("an event")
}

/// The value of an event here, and of one at the target.
fn value(event: &Event, chip: Chip) -> u64 {
    match entry(event, chip).body {
        Body::Local { instance, .. } => instance.into(),
        Body::Message { id, .. } => id.into(),
        Body::Remote(data) => data,
    }
}

#[test]
fn an_empty_queue_gives_nothing() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    assert!(nothing(&rank.events) && !rank.events.holds_event());
    assert_eq!(rank.events.completed(0), Err(GNI_RC_DESCRIPTOR_ERROR));
}

#[test]
fn a_put_is_there_and_both_sides_are_told() {
    for chip in Chip::ALL {
        let ranks = job(chip, MODES, 2);
        ranks[0].write(0, b"over the wire");
        for (kind, source) in [(GNI_POST_FMA_PUT, Source::Answer), (GNI_POST_RDMA_PUT, Source::Answer)] {
            let mut put = ranks[0].descriptor(&ranks[1], kind, 13);
            put.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
            put.remote_addr += 3;
            ranks[0].post(1, &put).unwrap();
            assert_eq!(ranks[1].bytes(3, 13), b"over the wire");
            let there = event(&ranks[1].arrivals);
            assert_eq!(
                (value(&there, chip), there.transaction),
                (0, None),
                "the value is the poster's instance"
            );
            assert!(ranks[0].events.holds_event());
            let here = event(&ranks[0].events);
            assert_eq!(value(&here, chip), 1, "the value is the peer's instance");
            assert_eq!(here.transaction, Some((1077, 77)), "token and name come back");
            assert_eq!((here.status, here.overrun, entry(&here, chip).source), (Status::Ok, false, source));
            assert_eq!(ranks[0].events.completed(here.word), Ok((1077, Status::Ok)));
            assert!(nothing(&ranks[0].events) && nothing(&ranks[1].arrivals));
        }
    }
}

#[test]
fn a_flag_is_there_after_the_bytes() {
    let ranks = job(Chip::Gemini, MODES, 2);
    ranks[0].write(0, &[7; 16]);
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT_W_SYNCFLAG, 16);
    (put.sync_flag_addr, put.sync_flag_value) = (ranks[1].at(64), 0x0123_4567_89ab_cdef);
    ranks[0].post(1, &put).unwrap();
    assert_eq!(ranks[1].bytes(0, 16), [7; 16]);
    assert_eq!(ranks[1].bytes(64, 8), 0x0123_4567_89ab_cdef_u64.to_le_bytes());
    // Without bytes it is a flag alone.
    (put.length, put.sync_flag_value) = (0, 5);
    ranks[0].post(1, &put).unwrap();
    assert_eq!(ranks[1].bytes(64, 8), 5u64.to_le_bytes());
    put.sync_flag_addr += 4;
    ranks[0].post(1, &put).unwrap();
    let statuses: Vec<_> = (0..3).map(|_| event(&ranks[0].events).status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Ok, Status::Alignment]);
}

#[test]
fn a_get_with_flag_brings_both() {
    let ranks = job(Chip::Aries, MODES, 2);
    ranks[1].write(0, &[9; 60]);
    let mut get = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_GET_W_FLAG, 60);
    (get.sync_flag_addr, get.sync_flag_value) = (ranks[0].at(60), 0xffff_ffff_1234_5678);
    ranks[0].post(1, &get).unwrap();
    assert_eq!(ranks[0].bytes(0, 60), [9; 60]);
    assert_eq!(ranks[0].bytes(60, 8), [0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0], "four bytes alone");
}

#[test]
fn an_atomic_changes_the_word_and_brings_the_old_one() {
    let ranks = job(Chip::Aries, MODES, 2);
    ranks[1].write(8, &40u64.to_le_bytes());
    let mut amo = ranks[0].descriptor(&ranks[1], GNI_POST_AMO, 8);
    (amo.remote_addr, amo.first_operand, amo.second_operand) = (ranks[1].at(8), 2, 0);
    amo.amo_cmd = GNI_FMA_ATOMIC_FADD;
    ranks[0].post(1, &amo).unwrap();
    assert_eq!(
        (ranks[0].bytes(0, 8), ranks[1].bytes(8, 8)),
        (40u64.to_le_bytes().into(), 42u64.to_le_bytes().into())
    );
    // Without the old value memory here stays as it is.
    amo.amo_cmd = GNI_FMA_ATOMIC_ADD;
    ranks[0].post(1, &amo).unwrap();
    assert_eq!(
        (ranks[0].bytes(0, 8), ranks[1].bytes(8, 8)),
        (40u64.to_le_bytes().into(), 44u64.to_le_bytes().into())
    );
    // The upper half of a word.
    (amo.amo_cmd, amo.length, amo.remote_addr) = (GNI_FMA_ATOMIC2_FSWAP_S, 4, ranks[1].at(12));
    amo.first_operand = 0xffff_ffff_0000_0001;
    ranks[0].post(1, &amo).unwrap();
    assert_eq!(ranks[1].bytes(8, 8), (44u64 | 1 << 32).to_le_bytes());
    assert_eq!(ranks[0].bytes(0, 8), 0u64.to_le_bytes());
}

#[test]
fn a_value_of_48_bits_is_written_into_the_queue_of_a_registration() {
    for chip in Chip::ALL {
        let ranks = job(chip, MODES, 2);
        let mut write = ranks[0].descriptor(&ranks[1], GNI_POST_CQWRITE, 0);
        write.cqwrite_value = 0xaaaa_8123_4567_89ab;
        ranks[0].post(1, &write).unwrap();
        assert_eq!(value(&event(&ranks[1].arrivals), chip), 0x8123_4567_89ab);
        assert_eq!(event(&ranks[0].events).status, Status::Ok);
        // A registration without a queue takes none.
        write.remote_mem_hndl = ranks[1].nic.register((ranks[1].at(0), 8), None, 0).unwrap();
        ranks[0].post(1, &write).unwrap();
        assert_eq!(event(&ranks[0].events).status, Status::Descriptor);
        assert!(nothing(&ranks[1].arrivals));
    }
}

#[test]
fn values_are_those_of_the_time_of_the_post() {
    let ranks = job(Chip::Gemini, MODES, 2);
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    put.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
    ranks[0].endpoints[1].set_values(0x8000_0001, 0xffff_fffe);
    ranks[0].post(1, &put).unwrap();
    ranks[0].endpoints[1].set_values(5, 6);
    ranks[0].post(1, &put).unwrap();
    let here: Vec<_> = (0..2).map(|_| value(&event(&ranks[0].events), Chip::Gemini)).collect();
    let there: Vec<_> = (0..2).map(|_| value(&event(&ranks[1].arrivals), Chip::Gemini)).collect();
    assert_eq!((here, there), (vec![0x8000_0001, 5], vec![0xffff_fffe, 6]));
}

#[test]
fn on_aries_a_value_here_has_24_bits() {
    let ranks = job(Chip::Aries, MODES, 2);
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    put.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    ranks[0].endpoints[1].set_values(0xff12_3456, 0xff12_3456);
    ranks[0].post(1, &put).unwrap();
    assert_eq!(value(&event(&ranks[0].events), Chip::Aries), 0x12_3456);
    assert_eq!(value(&event(&ranks[1].arrivals), Chip::Aries), 0xff12_3456);
}

#[test]
fn local_comes_before_global_and_both_have_to_be_answered() {
    let ranks = job(Chip::Aries, MODES, 2);
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_RDMA_PUT, 8);
    put.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    ranks[0].post(1, &put).unwrap();
    let [first, second] = [event(&ranks[0].events), event(&ranks[0].events)];
    assert_eq!(
        [first, second].map(|event| entry(&event, Chip::Aries).source),
        [Source::Engine, Source::Answer]
    );
    assert_eq!(ranks[0].events.completed(first.word), Ok((1077, Status::Ok)));
    assert_eq!(ranks[0].events.completed(second.word), Ok((1077, Status::Ok)));
    assert_eq!(ranks[0].events.completed(second.word), Err(GNI_RC_INVALID_PARAM), "it is over");
}

#[test]
fn another_queue_may_be_told_than_the_endpoints() {
    let ranks = job(Chip::Aries, MODES, 2);
    let other = ranks[0].nic.queue(4).unwrap();
    let put = ranks[0].descriptor(&ranks[1], GNI_POST_RDMA_PUT, 8);
    ranks[0].endpoints[1].post(&put, Way::Bte, 5, Some(&other)).unwrap();
    assert!(nothing(&ranks[0].events));
    let here = event(&other);
    assert_eq!(here.transaction, Some((5, 77)));
    assert_eq!(ranks[0].events.completed(here.word), Err(GNI_RC_INVALID_PARAM), "it is of the other");
    assert_eq!(other.completed(here.word), Ok((5, Status::Ok)));
}

/// There are as many requests as entries, or half as many where each may have two events; one is free when all its events
/// were taken and answered.
#[test]
fn the_table_of_requests_fills_up() {
    for (modes, most) in [(0, ENTRIES), (MODES, ENTRIES / 2)] {
        let ranks = job(Chip::Gemini, modes, 2);
        let put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
        for _ in 0..most {
            assert_eq!(ranks[0].post(1, &put), Ok(()));
        }
        assert_eq!(ranks[0].post(1, &put), Err(GNI_RC_ERROR_RESOURCE));
        let first = event(&ranks[0].events);
        assert_eq!(ranks[0].post(1, &put), Err(GNI_RC_ERROR_RESOURCE), "taken, not answered");
        assert_eq!(ranks[0].events.completed(first.word), Ok((1077, Status::Ok)));
        assert_eq!(ranks[0].post(1, &put), Ok(()));
        // Who wants no event needs no request.
        let silent = gni_post_descriptor_t { cq_mode: GNI_CQMODE_SILENT, ..put };
        assert_eq!(ranks[0].post(1, &silent), Ok(()));
    }
}

#[test]
fn a_queue_that_overran_says_so_on_both_sides() {
    for chip in Chip::ALL {
        let ranks = job(chip, MODES, 2);
        let mut write = ranks[0].descriptor(&ranks[1], GNI_POST_CQWRITE, 0);
        for i in 0..u64::from(ENTRIES) + 2 {
            write.cqwrite_value = i;
            if i > u64::from(ENTRIES) {
                // The event of a put is lost just as well, though its bytes are not.
                write.r#type = GNI_POST_FMA_PUT;
                write.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
            }
            ranks[0].post(1, &write).unwrap();
            let here = event(&ranks[0].events);
            assert_eq!(entry(&here, chip).remote_overrun, i >= u64::from(ENTRIES), "event {i}");
            assert_eq!(here.status, Status::Ok);
            ranks[0].events.completed(here.word).unwrap();
        }
        let first = event(&ranks[1].arrivals);
        assert_eq!((first.overrun, entry(&first, chip).overrun, value(&first, chip)), (true, true, 0));
        for i in 1..u64::from(ENTRIES) {
            let next = event(&ranks[1].arrivals);
            assert_eq!((next.overrun, value(&next, chip)), (false, i));
        }
        assert!(nothing(&ranks[1].arrivals));
    }
}

#[test]
fn a_failed_transaction_has_one_event_that_says_why() {
    let ranks = job(Chip::Aries, MODES, 2);
    let good = ranks[0].descriptor(&ranks[1], GNI_POST_RDMA_PUT, 8);
    let named = Handle::open(&good.remote_mem_hndl).unwrap();
    let with = |handle: Handle| gni_post_descriptor_t { remote_mem_hndl: handle.seal(), ..good };
    let mut cases = vec![
        (with(Handle { descriptor: (named.descriptor + 1) % 8, ..named }), Status::Descriptor),
        (with(Handle { descriptor: 500, ..named }), Status::Descriptor),
        (with(Handle { entropy: named.entropy ^ 1, ..named }), Status::Descriptor),
        (with(Handle { page: named.page + 1, ..named }), Status::Descriptor),
        (gni_post_descriptor_t { remote_mem_hndl: gni_mem_handle_t::zeroed(), ..good }, Status::Descriptor),
        (gni_post_descriptor_t { remote_addr: good.remote_addr - 1, ..good }, Status::Bounds),
        // Registrations end with a page, mappings need not.
        (gni_post_descriptor_t { remote_addr: good.remote_addr + 4089, ..good }, Status::Bounds),
        (gni_post_descriptor_t { remote_addr: good.remote_addr + 4088, ..good }, Status::Translation),
        (gni_post_descriptor_t { remote_addr: u64::MAX - 3, ..good }, Status::Bounds),
    ];
    let mut tampered = good;
    tampered.remote_mem_hndl.qword1 ^= 1;
    cases.push((tampered, Status::Descriptor));
    for (mut descriptor, status) in cases {
        descriptor.cq_mode = GNI_CQMODE_DUAL_EVENTS | GNI_CQMODE_REMOTE_EVENT;
        ranks[0].post(1, &descriptor).unwrap();
        let here = event(&ranks[0].events);
        assert_eq!((here.status, entry(&here, Chip::Aries).source), (status, Source::Answer));
        assert_eq!(ranks[0].events.completed(here.word), Ok((1077, status)));
        assert!(nothing(&ranks[0].events) && nothing(&ranks[1].arrivals));
        assert_eq!(ranks[0].endpoints[1].idle(), Ok(()));
    }
}

#[test]
fn a_handle_that_does_not_say_how_large_its_memory_is_will_do() {
    let ranks = job(Chip::Aries, MODES, 2);
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    let named = Handle::open(&put.remote_mem_hndl).unwrap();
    put.remote_mem_hndl = Handle { pages: PAGES_UNSAID, ..named }.seal();
    ranks[0].post(1, &put).unwrap();
    assert_eq!(event(&ranks[0].events).status, Status::Ok);
    put.remote_mem_hndl = Handle { flags: named.flags.and(Flags::CLONE), ..named }.seal();
    ranks[0].post(1, &put).unwrap();
    assert_eq!(event(&ranks[0].events).status, Status::Descriptor);
}

#[test]
fn what_is_deregistered_is_reached_no_more() {
    let ranks = job(Chip::Gemini, MODES, 2);
    let put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    ranks[1].nic.deregister(&ranks[1].handle).unwrap();
    ranks[0].post(1, &put).unwrap();
    assert_eq!(event(&ranks[0].events).status, Status::Descriptor);
    // Nor by the next registration with the same descriptor, which has another entropy.
    let again = ranks[1].nic.register((ranks[1].at(0), ranks[1].arena.len()), None, 0).unwrap();
    ranks[0].post(1, &put).unwrap();
    assert_eq!(event(&ranks[0].events).status, Status::Descriptor);
    ranks[0].post(1, &gni_post_descriptor_t { remote_mem_hndl: again, ..put }).unwrap();
    assert_eq!(event(&ranks[0].events).status, Status::Ok);
}

#[test]
fn nobody_answers_where_nobody_is() {
    let ranks = job(Chip::Aries, MODES, 1);
    let endpoint = ranks[0].nic.endpoint(Some(&ranks[0].events)).unwrap();
    endpoint.bind(address(9), 9).unwrap();
    let put = ranks[0].descriptor(&ranks[0], GNI_POST_FMA_PUT, 8);
    endpoint.post(&put, Way::Fma, 1, None).unwrap();
    assert_eq!(event(&ranks[0].events).status, Status::Gone);
}

#[test]
fn an_endpoint_is_busy_until_its_events_are_taken_and_may_go_before() {
    let ranks = job(Chip::Aries, MODES, 2);
    let endpoint = ranks[0].nic.endpoint(Some(&ranks[0].events)).unwrap();
    endpoint.bind(address(1), 1).unwrap();
    let put = ranks[0].descriptor(&ranks[1], GNI_POST_FMA_PUT, 8);
    endpoint.post(&put, Way::Fma, 1, None).unwrap();
    assert_eq!((endpoint.idle(), endpoint.unbind()), (Err(GNI_RC_NOT_DONE), Err(GNI_RC_NOT_DONE)));
    event(&ranks[0].events);
    assert_eq!((endpoint.idle(), endpoint.unbind()), (Ok(()), Ok(())));
    endpoint.bind(address(1), 1).unwrap();
    // Whatever it left is nobody's event, and takes no room.
    for _ in 0..ENTRIES / 2 - 1 {
        endpoint.post(&put, Way::Fma, 1, None).unwrap();
    }
    drop(endpoint);
    assert!(nothing(&ranks[0].events));
    for _ in 0..ENTRIES / 2 {
        ranks[0].post(1, &put).unwrap();
    }
}

#[test]
fn a_descriptor_is_read_when_it_is_posted() {
    let ranks = job(Chip::Aries, MODES, 2);
    let mut put = ranks[0].descriptor(&ranks[1], GNI_POST_RDMA_PUT, 8);
    put.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    (put.first_operand, put.second_operand, put.sync_flag_value) = (1, 2, 3);
    ranks[0].post(1, &put).unwrap();
    (put.cq_mode, put.post_id, put.length) = (0, 0, 0);
    assert_eq!(
        [event(&ranks[0].events), event(&ranks[0].events)].map(|event| event.transaction),
        [Some((1077, 77)); 2]
    );
    assert_eq!((put.first_operand, put.second_operand, put.sync_flag_value), (1, 2, 3));
}

#[test]
fn a_nic_has_so_many_queues_and_takes_them_again() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    let mut queues: Vec<_> = (0..6).map(|_| rank.nic.queue(3).unwrap()).collect();
    assert_eq!(rank.nic.queue(3).err(), Some(GNI_RC_ERROR_RESOURCE));
    queues.pop();
    assert!(rank.nic.queue(3).is_ok());
    assert_eq!(rank.nic.queue(4).err(), Some(GNI_RC_ERROR_RESOURCE), "it is of another size");
}
