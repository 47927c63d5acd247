//! Opening, and what it says when it cannot.

use super::fake::{self, CONFIG, Watchdog};
use super::messages::{check, send};
use crate::{Beside, Config, HugePages, Joined, Memory, PshmError, join, open};
use gasworks_bootstrap::{Bootstrap, Hosts, Together};
use gasworks_core::{Class, Name, SharedBarrier, Wire, WireError};
use gasworks_memory::{Growth, Peer, PeerFlags};
use gasworks_os::limits::Limit;
use gasworks_sync::{Par, Seq};

#[test]
fn a_segment_larger_than_memory_is_refused_on_every_rank() {
    let errors = fake::each(3, |rank| {
        let segment = if rank.rank() == 1 { 1 << 45 } else { 4096 };
        open::<Seq>(&rank, &Config { memory: Memory::of(segment), ..CONFIG })
            .expect_err("too large")
            .to_string()
    });
    for (rank, error) in errors.iter().enumerate() {
        assert!(error.contains("GASWORKS_SEGMENT_SIZE") && error.contains("35184372088832"), "{error}");
        assert_eq!(error.contains("rank 1 could not set it up"), rank != 1, "{error}");
    }
}

/// What is required of the kernel's pool is held against that alone.
#[test]
fn a_segment_larger_than_the_pool_of_huge_pages_is_refused_or_lies_elsewhere() {
    let [required, tried] = [HugePages::Require, HugePages::Try].map(|huge_pages| {
        let memory = Memory { huge_pages, ..Memory::of(1 << 42) };
        let refuse = |rank| open::<Seq>(&rank, &Config { memory, ..CONFIG }).expect_err("too large");
        fake::each(1, refuse).remove(0)
    });
    assert!(matches!(required, PshmError::HugePages { .. }), "{required}");
    assert!(matches!(tried, PshmError::Memory { .. }), "{tried}");
}

#[test]
fn segments_that_are_too_large_together_are_refused_on_every_rank() {
    // Each fits, four do not; the margin allows for memory that comes and goes meanwhile.
    let each = gasworks_os::limits::available_memory().bytes / 2;
    let errors = fake::each(4, |rank| {
        open::<Par>(&rank, &Config { memory: Memory::of(each), ..CONFIG }).expect_err("too large together")
    });
    for error in errors {
        assert!(matches!(error, PshmError::Memory { ranks: 4, asked, have, .. } if asked > have), "{error}");
    }
}

#[test]
fn segments_may_differ_and_may_be_empty() {
    let lens = fake::each(3, |rank| {
        let config = Config { memory: Memory::of(u64::from(rank.rank()) * 5000), ..CONFIG };
        let opened = open::<Seq>(&rank, &config).expect("open");
        let peers = &opened.peers;
        assert!(peers.flags(rank.rank()) == Some(PeerFlags::SELF | PeerFlags::MAPPED));
        (0..3).map(|rank| peers.len_of(rank).expect("a peer")).collect::<Vec<_>>()
    });
    assert!(lens.iter().all(|lens| lens == &[0, 8192, 12288]), "{lens:?}");
}

#[test]
fn ranks_on_several_hosts_are_told_that_nothing_joins_them() {
    for rank in Together::on(Hosts::led_by(vec![0, 0, 2])).expect("a job") {
        let error = open::<Seq>(&rank, &CONFIG).expect_err("two hosts").to_string();
        assert!(error.contains("on 2 hosts (rank 2 shares no memory with rank 0)"), "{error}");
    }
}

/// Ranks of two hosts that do not follow each other, at most two of which share memory: they reach those, by their ranks in the
/// job, and nobody else.
#[test]
fn ranks_join_those_of_their_host_in_groups() {
    let groups = [vec![0, 2], vec![1, 3], vec![4], vec![5]];
    let group_of = |rank: u32| groups.iter().find(|group| group.contains(&rank)).expect("a group");
    let limit = Limit { bytes: 1 << 40, who: "the network".into() };
    let beside = Beside { most: 2, limit, search: true, again: true };
    let joined = |rank: Together| {
        let me = rank.rank();
        let config = Config { memory: Memory::of(u64::from(me) * 65536), ..CONFIG };
        let Joined { wire, segments, barrier, .. } =
            join::<Seq>(&rank, &config, Some(&beside)).expect("join");
        let wanted: Vec<_> = group_of(me).iter().map(|&rank| (rank, u64::from(rank) * 65536)).collect();
        let found: Vec<_> = segments.peers().map(|(rank, peer)| (rank, peer.len)).collect();
        assert_eq!(found, wanted);
        let own = |(rank, peer): (u32, Peer)| peer.flags.contains(PeerFlags::SELF) == (rank == me);
        assert!(segments.peers().all(own));
        for other in 0..7 {
            let sent = send(&wire, other, Class::Request, b'q', u64::from(me));
            match group_of(me).contains(&other) {
                true => sent.expect("room"),
                false => assert_eq!(sent, Err(WireError::PeerGone { rank: other })),
            }
        }
        barrier.arrive(Name::Is(me / 2 % 2 * 7));
        let watchdog = Watchdog::new();
        let name = loop {
            watchdog.check(|| format!("rank {me} waits in the barrier"));
            if let Some(name) = barrier.done() {
                break name;
            }
        };
        assert_eq!(name, if me < 4 { Name::Mismatch } else { Name::Is(me / 2 % 2 * 7) });
        // By now each has announced it.
        let length = |other| found.iter().find(|near| near.0 == other).map_or(0, |near| near.1);
        assert!((0..7).all(|other| segments.length(other) == length(other)));
        let mut from = Vec::new();
        while wire.poll(9, &mut |message| from.push((message.from, check(&message)))).expect("healthy") > 0 {}
        from.sort_unstable();
        let wanted = group_of(me).iter().map(|&rank| (rank, (b'q', u64::from(rank))));
        assert!(from.iter().copied().eq(wanted), "{me}: {from:?}");
    };
    let ranks = Together::on(Hosts::led_by(vec![0, 1, 0, 1, 0, 1])).expect("a job");
    std::thread::scope(|scope| ranks.into_iter().for_each(|rank| _ = scope.spawn(|| joined(rank))));
}

#[test]
fn a_rank_that_does_not_come_is_named_to_all() {
    let errors = fake::each(3, |rank| match rank.rank() {
        2 => None,
        _ => Some(open::<Seq>(&rank, &CONFIG).expect_err("rank 2 does not come").to_string()),
    });
    for error in errors.into_iter().flatten() {
        let wanted = "rank 2, on this host, is gone (GASWORKS_ATTACH_TIMEOUT allows 60 s)";
        assert!(error.contains(wanted), "{error}");
    }
}
