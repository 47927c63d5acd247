//! Segments that grow, with ranks that ask for too much, at once, or lie.

use super::fake::{self, CONFIG, SEGMENT, Watchdog};
use crate::{Config, Memory};
use gasworks_memory::{MemoryError, RegionTable, Rights};
use gasworks_os::settings::Share;
use gasworks_sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use gasworks_sync::{Par, Seq};

const ROOM: u64 = 4 * SEGMENT;

/// Where ranks wait for one another, and give up when one has failed.
pub(super) struct Step {
    ranks: u32,
    came: AtomicU32,
}

impl Step {
    pub(super) fn of(ranks: u32) -> Self {
        Self { ranks, came: AtomicU32::new(0) }
    }

    pub(super) fn wait(&self) {
        let watchdog = Watchdog::new();
        let last = self.came.fetch_add(1, AcqRel) / self.ranks * self.ranks + self.ranks;
        while self.came.load(Acquire) < last {
            watchdog.check(|| format!("waiting for all {} ranks", self.ranks));
        }
    }
}

fn roomy(memory: Memory) -> Config {
    Config { memory: Memory { room: Some(Share::bytes(ROOM)), ..memory }, ..CONFIG }
}

#[test]
fn peers_see_growth_at_once_and_only_when_it_was_announced() {
    let step = Step::of(3);
    fake::run::<Seq, _>(3, roomy(CONFIG.memory), |me, opened| {
        let peers = &opened.peers;
        let beyond = |rank| peers.reach(rank, SEGMENT, 8, Rights::all());
        assert!((0..3).all(|rank| beyond(rank).is_err() && peers.len_of(rank) == Some(SEGMENT)));
        step.wait();
        if me == 1 {
            assert_eq!(peers.grow(SEGMENT + 1), Ok(SEGMENT + 4096), "whole pages");
            beyond(1).expect("inside").expect("mapped").write(&7u64.to_le_bytes());
        }
        step.wait();
        let mut found = [0; 8];
        beyond(1).expect("inside").expect("mapped").read(&mut found);
        assert_eq!(u64::from_le_bytes(found), 7);
        let refused =
            peers.reach(1, SEGMENT + 4090, 8, Rights::all()).expect_err("beyond the new end").to_string();
        assert!(refused.contains(&(SEGMENT + 4096).to_string()), "{refused}");
        assert!(beyond(0).is_err() && beyond(2).is_err(), "only rank 1 grew");
        step.wait();
    });
}

#[test]
fn growth_stops_at_the_room_and_at_the_limit() {
    let limited = Memory { limit: Some(Share::bytes(2 * SEGMENT)), ..CONFIG.memory };
    for (memory, most) in [(CONFIG.memory, ROOM), (limited, 2 * SEGMENT)] {
        fake::run::<Seq, _>(1, roomy(memory), |_, opened| {
            let peers = &opened.peers;
            for wanted in [most + 1, u64::MAX - 10_000, u64::MAX] {
                let refused = peers.grow(wanted).expect_err("too far");
                assert!(
                    matches!(&refused, MemoryError::CannotGrow { rank: 0, from: SEGMENT, to, .. } if *to == wanted)
                );
                let words = match wanted {
                    u64::MAX => ["cannot grow", "no address space"],
                    _ if wanted > ROOM => ["GASWORKS_SEGMENT_MAX", "Config::segment_max"],
                    _ => ["GASWORKS_SEGMENT_LIMIT", "bytes"],
                };
                let text = refused.to_string();
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            }
            assert_eq!(peers.len_of(0), Some(SEGMENT));
            assert_eq!(peers.grow(most), Ok(most));
            assert!(
                peers.reach(0, most - 1, 1, Rights::all()).is_ok()
                    && peers.reach(0, most, 1, Rights::all()).is_err()
            );
        });
    }
    fake::run::<Seq, _>(1, CONFIG, |_, opened| {
        let refused = opened.peers.grow(SEGMENT + 1).expect_err("no room was asked for").to_string();
        assert!(refused.contains("GASWORKS_SEGMENT_MAX"), "{refused}");
    });
}

#[test]
fn threads_that_grow_at_once_agree() {
    fake::run::<Par, _>(1, roomy(CONFIG.memory), |_, opened| {
        let peers = &opened.peers;
        std::thread::scope(|scope| {
            for thread in 1..=4u64 {
                scope.spawn(move || {
                    for step in 1..=20 {
                        let wanted = SEGMENT + (thread + 4 * step) * 4096;
                        assert!(peers.grow(wanted).is_ok_and(|len| len >= wanted));
                        assert!(
                            peers.reach(0, wanted - 8, 8, Rights::all()).is_ok_and(|found| found.is_some())
                        );
                    }
                });
            }
        });
        assert_eq!(peers.len_of(0), Some(SEGMENT + 84 * 4096));
    });
}

#[test]
fn a_length_beyond_the_room_is_not_believed() {
    let step = Step::of(2);
    fake::run::<Seq, _>(2, roomy(CONFIG.memory), |me, opened| {
        if me == 1 {
            opened.wire.host.length(opened.wire.host.me).expect("its own").store(u64::MAX, Relaxed);
        }
        step.wait();
        assert!(opened.peers.reach(1, ROOM - 8, 8, Rights::all()).is_ok());
        for (offset, len) in [(ROOM - 7, 8), (ROOM, 1), (u64::MAX - 7, 8), (u64::MAX, 1)] {
            assert!(opened.peers.reach(1, offset, len, Rights::all()).is_err(), "{len} bytes at {offset}");
        }
        step.wait();
        if me == 1 {
            opened.wire.host.length(opened.wire.host.me).expect("its own").store(0, Relaxed);
        }
        step.wait();
        assert!(
            opened.peers.reach(1, SEGMENT - 8, 8, Rights::all()).is_ok(),
            "a segment never shrinks for a peer"
        );
        assert_eq!(opened.peers.len_of(0), Some(SEGMENT));
        step.wait();
    });
}

#[test]
fn what_is_populated_or_tried_works_like_the_rest() {
    let memory = Memory { populate: true, huge_pages: crate::HugePages::Try, ..CONFIG.memory };
    fake::run::<Seq, _>(2, roomy(memory), |me, opened| {
        let last = |peers: &RegionTable| {
            let last = peers
                .reach(me, peers.len_of(me).unwrap_or(0) - 8, 8, Rights::all())
                .expect("inside")
                .expect("mapped");
            // Only a page that has memory lies somewhere.
            gasworks_os::numa::node_of(last.raw())
        };
        assert!(last(&opened.peers).is_ok(), "the segment was not populated");
        assert_eq!(opened.peers.grow(ROOM), Ok(ROOM));
        assert!(last(&opened.peers).is_ok(), "what is new was not populated");
    });
}
