//! Views of teams, above a table whose ranks share memory.
#![allow(unsafe_code)]

use gasworks_core::{Members, TeamRows};
use gasworks_memory::{Peer, PeerFlags, RegionTable};
use gasworks_sync::RawSlice;
use std::sync::Arc;

/// The most members of a stride whose rows are copied.
const MAX_COPIED: u32 = 256;

/// A table of so many ranks, each of which has as many bytes of one array.
fn table(ranks: u32, bytes: &'static mut [u8]) -> RegionTable {
    let (len, start) = (bytes.len() / ranks as usize, bytes.as_mut_ptr());
    let peer = |rank| Peer {
        mapped: RawSlice::new(start.wrapping_add(rank as usize * len), len),
        len: len as u64,
        remote_base: 0,
        key: Vec::new(),
        flags: if rank == 0 { PeerFlags::SELF | PeerFlags::MAPPED } else { PeerFlags::MAPPED },
    };
    // SAFETY: table.1 of `gasworks_memory`: the array is there for good, and nobody else has references to it.
    unsafe { RegionTable::new((0..ranks).map(peer), Arc::new(())) }
}

/// A stride's members are found in the table or by copies of rows, whichever way it goes, and nobody else is.
#[test]
fn members_of_a_stride_are_found_however_many_they_are() {
    const RANKS: u32 = 1000;
    const LEN: u64 = 8;
    let peers = table(RANKS, vec![0; (RANKS as u64 * LEN) as usize].leak());
    for (first, step, size) in
        [(0, 2, 500), (999, -3, 333), (5, 1, MAX_COPIED), (5, 1, MAX_COPIED + 1), (999, -1, 1000), (7, 9, 2)]
    {
        let members = Members::stride(first, step, size, RANKS).expect("they are ranks");
        let rows = TeamRows::new(Arc::new(members), &peers).expect("they are ranks");
        let view = rows.view();
        assert_eq!(view.size(), size);
        let by_stride = view.open_by_stride(size - 1, 0, 8).is_some();
        assert_eq!(by_stride, size > MAX_COPIED, "{size} members");
        for member in (0..size).step_by(11).chain([size - 1]) {
            let rank = first.wrapping_add_signed(step * member as i32);
            let open = |offset, len| {
                view.at(member, offset).open(len).or_else(|| view.open_by_stride(member, offset, len))
            };
            let at = |offset, len| open(offset, len).map(|open| open.as_ptr());
            assert_eq!(
                at(3, 5),
                peers.rows().open(rank, 3, 5).map(|open| open.as_ptr()),
                "{member} of {size}"
            );
            assert!(at(3, 5).is_some() && at(3, 6).is_none() && at(8, 1).is_none());
            assert_eq!(view.at(member, 3).of_rank().ok(), Some((rank, 3)));
        }
        for beyond in [size, size + 1, u32::MAX] {
            assert!(view.at(beyond, 0).open(1).is_none() && view.open_by_stride(beyond, 0, 1).is_none());
            assert!(view.at(beyond, 0).of_rank().is_err());
        }
    }
    let list = Members::list([3, 1, 2], RANKS).expect("they are ranks");
    let rows = TeamRows::new(Arc::new(list), &peers).expect("they are ranks");
    assert!(rows.view().at(1, 0).open(8).is_some() && rows.view().open_by_stride(1, 0, 8).is_none());
}
