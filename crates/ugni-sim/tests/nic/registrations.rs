//! Registrations: those that are named by their place in a block, and what a client learns of its own.

use super::*;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::handle::{Flags, Handle};
use gasworks_ugni_sim::nic::rebuilt;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How a put of a word ends, or the code with which it is refused.
fn put(from: &Rank, peer: usize, there: u64, handle: gni_mem_handle_t) -> Result<Status, gni_return_t> {
    let mut put = from.descriptor(from, GNI_POST_FMA_PUT, 8);
    (put.remote_addr, put.remote_mem_hndl) = (there, handle);
    from.post(peer, &put)?;
    Ok(from.events.completed(event(&from.events).word).unwrap().1)
}

#[test]
fn a_handle_at_a_place_says_so() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    rank.nic.set_apart(3).unwrap();
    for place in [2, 0] {
        let handle = rank.nic.register_virtually(place, (rank.at(0), 64), None, GNI_MEM_READ_ONLY).unwrap();
        let named = Handle::open(&handle).unwrap();
        assert_eq!((u32::from(named.descriptor), named.entropy), (place, 0));
        assert!(named.flags.has(Flags::VMDH.and(Flags::READ_ONLY)) && !named.flags.has(Flags::NEW_FORMAT));
    }
}

#[test]
fn the_first_handles_of_a_node_s_nics_are_not_all_alike() {
    let ranks = job(Chip::Aries, 0, 4);
    let first = |rank: &Rank| Handle::open(&rank.handle).unwrap().descriptor;
    assert!(ranks.iter().any(|rank| first(rank) != first(&ranks[0])));
}

#[test]
fn a_block_is_set_apart_once_and_has_its_places() {
    let rank = &job(Chip::Gemini, MODES, 1)[0];
    let bytes = (rank.at(0), 8);
    let at = |place| rank.nic.register_virtually(place, bytes, None, 0);
    assert_eq!(at(0).err(), Some(GNI_RC_INVALID_PARAM), "there is no block");
    assert_eq!(rank.nic.set_apart(0), Err(GNI_RC_INVALID_PARAM));
    // One of the eight is the job's.
    assert_eq!(rank.nic.set_apart(8), Err(GNI_RC_ERROR_NOMEM));
    assert_eq!(rank.nic.set_apart(1 << 16 | 3), Err(GNI_RC_ERROR_NOMEM));
    assert_eq!(rank.nic.set_apart(3), Ok(()));
    assert_eq!(rank.nic.set_apart(3), Err(GNI_RC_INVALID_STATE));
    assert_eq!(at(3).err(), Some(GNI_RC_INVALID_PARAM), "there is no such place");
    assert_eq!(at(u32::MAX).err(), Some(GNI_RC_INVALID_PARAM));
    let first = at(1).unwrap();
    assert_eq!(at(1).err(), Some(GNI_RC_INVALID_PARAM), "the place is taken");
    // The others have what is left, and never a place of the block.
    let others: Vec<_> = (0..4).map(|_| rank.nic.register(bytes, None, 0).unwrap()).collect();
    assert_eq!(rank.nic.register(bytes, None, 0).err(), Some(GNI_RC_ERROR_RESOURCE));
    assert!(at(0).is_ok() && at(2).is_ok());
    assert_eq!(rank.nic.deregister(&first), Ok(()));
    assert_eq!(rank.nic.register(bytes, None, 0).err(), Some(GNI_RC_ERROR_RESOURCE));
    assert!(at(1).is_ok());
    assert!(others.iter().all(|other| rank.nic.deregister(other).is_ok()));
}

/// Ranks whose memory lies elsewhere, and who have made different things before, agree on places alone.
#[test]
fn a_handle_that_is_rebuilt_reaches_the_place_of_the_peer() {
    for chip in Chip::ALL {
        let ranks = job(chip, MODES, 2);
        let _shifts_the_block = ranks[1].nic.register((ranks[1].at(0), 8), None, 0).unwrap();
        let handles = [0, 1].map(|rank: usize| {
            ranks[rank].nic.set_apart(2 + rank as u32).unwrap();
            [0, 1].map(|place| {
                let bytes = (ranks[rank].at(0), if place == 0 { 16 } else { 512 });
                ranks[rank].nic.register_virtually(place, bytes, None, 0).unwrap()
            })
        });
        let made = rebuilt(&handles[0][1], 0).unwrap();
        assert_eq!(Handle::open(&made).map(|named| named.descriptor), Ok(0));
        ranks[0].write(0, &7u64.to_le_bytes());
        // Addresses count from where the handle says that the memory begins: the sender's own.
        assert_eq!(put(&ranks[0], 1, ranks[0].at(8), made), Ok(Status::Ok));
        assert_eq!(ranks[1].bytes(8, 8), 7u64.to_le_bytes());
        assert_eq!(put(&ranks[0], 1, ranks[0].at(4096), made), Ok(Status::Bounds));
        // A place where nothing is, one that is not, and one that was left.
        assert_eq!(put(&ranks[0], 1, ranks[0].at(8), rebuilt(&made, 2).unwrap()), Ok(Status::Descriptor));
        assert_eq!(put(&ranks[0], 1, ranks[0].at(8), rebuilt(&made, 3).unwrap()), Ok(Status::Descriptor));
        ranks[1].nic.deregister(&handles[1][0]).unwrap();
        assert_eq!(put(&ranks[0], 1, ranks[0].at(8), made), Ok(Status::Descriptor));
    }
}

#[test]
fn only_a_handle_of_a_place_is_rebuilt() {
    let rank = &job(Chip::Aries, MODES, 1)[0];
    assert_eq!(rebuilt(&rank.handle, 0).err(), Some(GNI_RC_INVALID_STATE));
    rank.nic.set_apart(1).unwrap();
    let handle = rank.nic.register_virtually(0, (rank.at(0), 8), None, 0).unwrap();
    assert_eq!(rebuilt(&handle, 1 << 12).err(), Some(GNI_RC_INVALID_PARAM));
    assert!(rebuilt(&handle, (1 << 12) - 1).is_ok());
    // One of a place that the block has not is no registration of this NIC.
    let beyond = rebuilt(&handle, 1).unwrap();
    assert_eq!(rank.nic.registration_after(Some(&beyond)).err(), Some(GNI_RC_INVALID_PARAM));
    let changed = gni_mem_handle_t { qword1: handle.qword1 ^ 1, ..handle };
    assert_eq!(rebuilt(&changed, 0).err(), Some(GNI_RC_INVALID_PARAM));
}

/// What libfabric makes of the parts that it has passed on: how the NIC finds the memory is not among them.
#[test]
fn a_handle_of_page_and_descriptor_reaches_its_registration() {
    let ranks = job(Chip::Aries, 0, 2);
    let whole = Handle::open(&ranks[1].handle).unwrap();
    let made = Handle { flags: Flags::default(), pages: gasworks_ugni_sim::handle::PAGES_UNSAID, ..whole };
    assert_eq!(put(&ranks[0], 1, ranks[1].at(0), made.seal()), Ok(Status::Ok));
    // Who leaves out that memory is to be read only is told so by the target.
    let read_only = ranks[1].nic.register((ranks[1].at(0), 64), None, GNI_MEM_READ_ONLY).unwrap();
    let made = Handle { flags: Flags::default(), ..Handle::open(&read_only).unwrap() };
    assert_eq!(put(&ranks[0], 1, ranks[1].at(0), made.seal()), Ok(Status::Permission));
}

/// The registrations of a rank, as one asks for them.
fn listed(rank: &Rank) -> Vec<(gni_mem_handle_t, u64, u64)> {
    let mut all: Vec<(gni_mem_handle_t, u64, u64)> = Vec::new();
    loop {
        match rank.nic.registration_after(all.last().map(|last| &last.0)) {
            Ok(next) => {
                assert!(all.len() < 8, "it comes to no end");
                all.push(next);
            }
            Err(code) => {
                assert_eq!(code, GNI_RC_NO_MATCH);
                return all;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
    /// Registrations of both kinds come and go: what is listed is what there is.
    #[test]
    fn what_is_registered_is_listed(steps in prop::collection::vec((any::<bool>(), 0..9u32), 1..40)) {
        let rank = &job(Chip::Aries, MODES, 1)[0];
        rank.nic.set_apart(3).unwrap();
        let key = |handle: &gni_mem_handle_t| (handle.qword1, handle.qword2);
        let mut model = BTreeMap::from([(key(&rank.handle), (rank.at(0), rank.arena.len()))]);
        for (adds, which) in steps {
            if adds {
                let bytes = (rank.at(u64::from(which)), 8 + u64::from(which));
                let made = match which {
                    0..3 => rank.nic.register_virtually(which, bytes, None, 0),
                    _ => rank.nic.register(bytes, None, 0),
                };
                if let Ok(handle) = made {
                    model.insert(key(&handle), bytes);
                }
            } else if let Some((qword1, qword2)) = model.keys().nth(which as usize).copied() {
                let handle = gni_mem_handle_t { qword1, qword2 };
                prop_assert_eq!(rank.nic.deregister(&handle), Ok(()));
                model.remove(&(qword1, qword2));
                // It is not there any more, and the list goes on after it all the same.
                prop_assert!(rank.nic.registration_after(Some(&handle)).is_ok_and(|next| model.contains_key(&key(&next.0))) || rank.nic.registration_after(Some(&handle)).err() == Some(GNI_RC_NO_MATCH));
            }
            let found = listed(rank);
            prop_assert_eq!(found.len(), rank.nic.registrations().0);
            let found: BTreeMap<_, _> =
                found.iter().map(|(handle, first, len)| (key(handle), (*first, *len))).collect();
            prop_assert_eq!(&found, &model);
        }
    }
}

/// How many descriptors the NIC of a rank has.
const DESCRIPTORS: usize = 8;

fn ended(rank: &Rank) -> Status {
    rank.events.completed(event(&rank.events).word).unwrap().1
}

/// Three pieces of a rank's memory, out of order, as one.
fn scattered(rank: &Rank, queue: bool) -> gni_mem_handle_t {
    let pieces = [(rank.at(256), 24), (rank.at(0), 40), (rank.at(128), 64)];
    let queue = queue.then_some(&rank.arrivals);
    rank.nic.register_pieces(None, &pieces, queue, 0).expect("registered")
}

/// Where a byte of it lies in the rank's memory.
fn place_of(byte: u64) -> u64 {
    match byte {
        0..24 => 256 + byte,
        24..64 => byte - 24,
        _ => byte - 64 + 128,
    }
}

/// What is registered in pieces is one memory, whose bytes count from 0 on, here and at the peer.
#[test]
fn memory_in_pieces_is_addressed_from_0_on() {
    for chip in Chip::ALL {
        for (kind, way) in [
            (GNI_POST_FMA_PUT, Way::Fma),
            (GNI_POST_RDMA_PUT, Way::Bte),
            (GNI_POST_FMA_GET, Way::Fma),
            (GNI_POST_RDMA_GET, Way::Bte),
        ] {
            for (offset, length) in [(0, 128), (0, 24), (20, 8), (20, 80), (60, 8), (64, 64), (24, 40)] {
                for here_too in [false, true] {
                    let ranks = job(chip, MODES, 2);
                    let handles = [0, 1].map(|rank: usize| scattered(&ranks[rank], false));
                    for (rank, salt) in ranks.iter().zip([1u8, 101]) {
                        let bytes: Vec<u8> =
                            (0..512u32).map(|at| (at as u8).wrapping_mul(3) ^ salt).collect();
                        rank.write(0, &bytes);
                    }
                    // Without pieces here, the bytes after all of them.
                    let (local, local_handle) =
                        if here_too { (offset, handles[0]) } else { (ranks[0].at(384), ranks[0].handle) };
                    let put = gni_post_descriptor_t {
                        r#type: kind,
                        cq_mode: GNI_CQMODE_GLOBAL_EVENT,
                        local_addr: local,
                        local_mem_hndl: local_handle,
                        remote_addr: offset,
                        remote_mem_hndl: handles[1],
                        length,
                        ..Default::default()
                    };
                    let byte_here = |at| if here_too { place_of(offset + at) } else { 384 + at };
                    let (mut here, mut there) = (ranks[0].bytes(0, 512), ranks[1].bytes(0, 512));
                    for at in 0..length {
                        let (one, other) = (byte_here(at) as usize, place_of(offset + at) as usize);
                        match kind {
                            GNI_POST_FMA_PUT | GNI_POST_RDMA_PUT => there[other] = here[one],
                            _ => here[one] = there[other],
                        }
                    }
                    if way == Way::Fma && here_too && kind == GNI_POST_FMA_PUT {
                        // The processor reads what it puts, where the address says: there is nothing at 0.
                        continue;
                    }
                    ranks[0].endpoints[1].post(&put, way, 1, None).expect("posted");
                    assert_eq!(ended(&ranks[0]), Status::Ok);
                    assert!(ranks[0].bytes(0, 512) == here, "{kind} of {length} from {offset}");
                    assert!(ranks[1].bytes(0, 512) == there, "{kind} of {length} to {offset}");
                }
            }
        }
    }
}

#[test]
fn of_memory_in_pieces_nothing_is_reached_beyond_them_or_after_its_end() {
    let ranks = job(Chip::Aries, MODES, 2);
    let before = ranks[1].nic.registrations().0;
    let handle = scattered(&ranks[1], true);
    assert_eq!(ranks[1].nic.registrations().0, before + 1);
    // Its handle says whole pages; its pieces do not.
    for (address, status) in
        [(0, Status::Ok), (120, Status::Ok), (121, Status::Bounds), (4096, Status::Bounds)]
    {
        assert_eq!(put(&ranks[0], 1, address, handle), Ok(status), "{address}");
    }
    // Changes and events find it too.
    ranks[1].write(0, &5u64.to_le_bytes());
    let add = gni_post_descriptor_t {
        r#type: GNI_POST_AMO,
        cq_mode: GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
        amo_cmd: GNI_FMA_ATOMIC_ADD,
        first_operand: 2,
        remote_addr: 24,
        remote_mem_hndl: handle,
        length: 8,
        ..Default::default()
    };
    ranks[0].endpoints[1].post(&add, Way::Fma, 1, None).expect("posted");
    assert_eq!(ended(&ranks[0]), Status::Ok);
    assert_eq!(ranks[1].bytes(0, 8), 7u64.to_le_bytes());
    assert!(ranks[1].arrivals.holds_event());
    ranks[1].nic.deregister(&handle).expect("it was");
    assert_eq!(put(&ranks[0], 1, 0, handle), Ok(Status::Descriptor));
    // All descriptors come back, however often.
    for _ in 0..3 * DESCRIPTORS {
        let handle = scattered(&ranks[1], false);
        ranks[1].nic.deregister(&handle).expect("it was");
    }
    let refused = |pieces: &[(u64, u64)]| ranks[1].nic.register_pieces(None, pieces, None, 0).err();
    assert_eq!(refused(&[]), Some(GNI_RC_INVALID_PARAM));
    assert_eq!(refused(&[(8, 8), (16, 0)]), Some(GNI_RC_INVALID_PARAM));
    assert_eq!(refused(&[(8, 8), (u64::MAX, 2)]), Some(GNI_RC_INVALID_PARAM));
    assert_eq!(refused(&[(8, u64::MAX - 8), (8, 9)]), Some(GNI_RC_INVALID_PARAM));
    assert_eq!(refused(&[(ranks[1].at(0), 8); DESCRIPTORS]), Some(GNI_RC_ERROR_RESOURCE));
    assert_eq!(ranks[1].nic.registrations().0, before);
}

/// A place of the block names all of it.
#[test]
fn memory_in_pieces_may_be_named_by_a_place() {
    let ranks = job(Chip::Aries, MODES, 2);
    ranks[1].nic.set_apart(2).expect("a block");
    let pieces = [(ranks[1].at(64), 8), (ranks[1].at(0), 8)];
    let handle = ranks[1].nic.register_pieces(Some(1), &pieces, None, 0).expect("registered");
    ranks[0].write(0, &9u64.to_le_bytes());
    assert_eq!(put(&ranks[0], 1, 8, handle), Ok(Status::Ok));
    assert_eq!(ranks[1].bytes(0, 8), 9u64.to_le_bytes());
}
