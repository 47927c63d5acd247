//! Regions as parts of the ranks' file, with threads as ranks.

use super::fake::{self, CONFIG};
use super::growth::Step;
use crate::{RegionFile, join};
use gasworks_bootstrap::Bootstrap;
use gasworks_memory::{Asked, Peer, RegionId, RegionMemory, Rights};
use gasworks_os::memfd::page_size;
use gasworks_sync::{Par, RawSlice};
use std::collections::BTreeMap;

fn id(number: u8) -> RegionId {
    RegionId { index: RegionId::FIRST + number, generation: 0 }
}

fn asked(lens: &[u64]) -> Vec<Asked> {
    lens.iter().map(|&len| Asked { len, rights: Rights::all(), given: None }).collect()
}

/// The last byte of a part; no pages beyond the asked ones are anybody's.
fn last(peer: &Peer) -> Option<RawSlice> {
    peer.mapped.slice(usize::try_from(peer.len).ok()?.checked_sub(1)?, 1)
}

fn put(peer: &Peer, value: u8) {
    // SAFETY: the region file of each test keeps it mapped, and it is used as a volatile slice alone.
    last(peer).into_iter().for_each(|place| unsafe { place.borrow() }.write(&[value]));
}

fn get(peer: &Peer) -> Option<u8> {
    let mut found = [0; 1];
    // SAFETY: the region file of each test keeps it mapped, and it is used as a volatile slice alone.
    unsafe { last(peer)?.borrow() }.read(&mut found);
    Some(found[0])
}

/// What one writes the others read, whatever the lengths; what is unmapped is private; what is freed takes no memory, and is zero for the
/// next one, which lies in the same part of the file.
#[test]
fn ranks_share_regions_until_they_are_unmapped() {
    let step = Step::of(3);
    fake::each(3, |rank| {
        let joined = join::<Par>(&rank, &CONFIG, None).expect("join");
        let (regions, me) = (&*joined.regions, rank.rank());
        let lens = [10_000, 0, 70_001];
        step.wait();
        let before = regions.memory();
        step.wait();
        for round in 0..3u8 {
            let peers = regions.create(id(0), &asked(&lens)).expect("there is memory");
            assert_eq!(peers.iter().map(|peer| peer.len).collect::<Vec<_>>(), lens);
            assert_eq!(regions.parts(), BTreeMap::from([(id(0), 12_288 + 73_728)]));
            assert!(peers.iter().all(|peer| get(peer).is_none_or(|byte| byte == 0)), "round {round}");
            step.wait();
            if me == 0 {
                put(&peers[2], 40 + round);
            }
            step.wait();
            assert_eq!([0, 1, 2].map(|of| get(&peers[of])), [Some(0), None, Some(40 + round)]);
            assert!(regions.memory() > before);
            step.wait();
            regions.unmap(id(0)).expect("it is there");
            assert_eq!(get(&peers[2]), Some(0), "of nobody");
            put(&peers[2], me as u8 + 1);
            step.wait();
            assert_eq!(get(&peers[2]), Some(me as u8 + 1), "nobody else's");
            regions.free(id(0)).expect("it is there");
            regions.free(id(0)).expect("nothing is left to do");
            step.wait();
            assert!(regions.parts().is_empty() && regions.memory() <= before, "round {round}");
            step.wait();
        }
    });
}

/// The parts of regions that are there at once do not overlap, and what was freed is found again.
#[test]
fn regions_lie_where_the_file_is_free() {
    let joined = fake::each(1, |rank| join::<Par>(&rank, &CONFIG, None).expect("join")).remove(0);
    let regions: &RegionFile = &joined.regions;
    let page = page_size() as u64;
    let create =
        |number, pages: u64| regions.create(id(number), &asked(&[pages * page])).map(|peers| peers[0].mapped);
    let end = |number| {
        regions.unmap(id(number)).expect("it is there");
        regions.free(id(number)).expect("it is there");
    };
    for number in 0..5 {
        create(number, 4).expect("there is memory");
    }
    let start = |number: u8| regions.starts()[&id(number)];
    let first = start(0);
    assert_eq!([0, 1, 2, 3, 4].map(start), [0, 4, 8, 12, 16].map(|pages| first + pages * page as usize));
    end(1);
    end(2);
    create(5, 8).expect("there is memory");
    assert_eq!(start(5), start(0) + 4 * page as usize, "between the others");
    end(5);
    create(6, 9).expect("there is memory");
    assert_eq!(start(6), start(4) + 4 * page as usize, "behind all others");
    // Neither so much memory nor so much of the file is there.
    for len in [1 << 39, RegionId::MAX_LEN, u64::MAX] {
        let refused = regions.create(id(7), &asked(&[len])).expect_err("too much").to_string();
        assert!(refused.contains("a region cannot be created"), "{refused}");
    }
    assert_eq!(regions.parts().len(), 4, "what is refused leaves nothing");
    assert!(create(7, 0).is_ok_and(|mapped| mapped.is_empty()), "no bytes");
    end(7);
}
