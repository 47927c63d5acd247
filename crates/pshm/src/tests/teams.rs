//! Barriers of teams, and their boards.

use super::fake::{self, CONFIG, Watchdog};
use crate::{Beside, Joined, Opened, join};
use gasworks_bootstrap::{Bootstrap, Hosts, Together};
use gasworks_core::wire::TEAM_SLOTS;
use gasworks_core::{Members, Name, SharedBarrier, SharedTeam, TeamBarriers, WaitSet, WireError};
use gasworks_os::limits::Limit;
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{Mode, Par, Seq};
use std::time::{Duration, Instant};

const ALL: u32 = (1 << TEAM_SLOTS) - 1;

fn team<const N: usize>(members: [u32; N]) -> Members {
    Members::list(members, 8).expect("a team")
}

/// Waits until all have come; the name.
fn pass(barrier: &dyn SharedBarrier, name: Name) -> Name {
    let watchdog = Watchdog::new();
    barrier.arrive(name);
    loop {
        watchdog.check(|| "somebody waits in a barrier".into());
        if let Some(agreed) = barrier.done() {
            return agreed;
        }
    }
}

/// Teams that have no member in common are in slots of the same number, others are not; a slot is free again when all members have left.
#[test]
fn a_slot_is_a_teams_until_its_last_member_has_left() {
    fake::run::<Seq, _>(4, CONFIG, |me, Opened { barrier, teams, .. }| {
        let everyone = || assert_eq!(pass(&barrier, Name::Any), Name::Any);
        assert_eq!(teams.free_slots(), ALL);
        for round in 0..5u32 {
            // Rank 1 is in two teams, of which the second has to be elsewhere.
            let pair = teams.open(0, &team(if me < 2 { [1, 0] } else { [2, 3] })).expect("free");
            assert_eq!((teams.free_slots(), teams.open(0, &team([me])).is_none()), (ALL - 1, true));
            let three = (me != 0).then(|| teams.open(5, &team([3, 1, 2])).expect("free"));
            let name = Name::Is(me / 2);
            assert_eq!(pass(&*pair, name), name);
            let agreed = three.as_deref().map(|three| pass(three, name));
            assert_eq!(agreed, (me != 0).then_some(Name::Mismatch));
            everyone();
            // One member leaves, another begins a phase that never ends, and looks at the last one.
            let pair = if me % 2 == 0 {
                drop(pair);
                everyone();
                None
            } else {
                everyone();
                Some(pair)
            };
            let taken = if me == 0 { 1 } else { 1 << 5 | 1 };
            assert_eq!(teams.free_slots(), ALL - taken, "the other member has not left");
            everyone();
            if let Some(pair) = pair {
                assert_eq!(pair.done(), Some(name));
                pair.arrive(Name::Is(round));
                assert_eq!(pair.done(), None);
            }
            everyone();
            assert_eq!(teams.free_slots() & 1, 1, "both have left");
            drop(three);
            everyone();
            assert_eq!(teams.free_slots(), ALL);
            everyone();
        }
    });
}

/// Many phases in two teams at once, begun by one thread and asked by another where there may be several.
fn two_at_once<M: Mode>(radix: bool) {
    let ranks: u32 = if radix { 40 } else { 3 };
    let all = || Members::list((0..ranks).rev(), ranks).expect("a team");
    fake::run::<M, _>(ranks, CONFIG, |me, Opened { teams, .. }| {
        let watchdog = Watchdog::new();
        let (slow, quick) =
            (teams.open(0, &all()).expect("free"), teams.open(1, &Members::everyone(ranks)).expect("free"));
        for round in 0..30 {
            slow.arrive(if me == round % ranks { Name::Is(round) } else { Name::Any });
            let mismatch = pass(&*quick, Name::Is(me));
            assert_eq!(mismatch, if ranks == 1 { Name::Is(me) } else { Name::Mismatch });
            let asked = || {
                while slow.done() != Some(Name::Is(round)) {
                    watchdog.check(|| format!("rank {me} waits for round {round}"));
                }
            };
            match M::PARALLEL {
                true => std::thread::scope(|scope| _ = scope.spawn(asked)),
                false => asked(),
            }
        }
    });
}

#[test]
fn two_teams_of_the_same_ranks_meet_at_once() {
    two_at_once::<Seq>(false);
    two_at_once::<Par>(false);
}

/// Their counts are a tree.
#[test]
fn two_teams_of_many_ranks_meet_at_once() {
    if !cfg!(gasworks_tsan) {
        two_at_once::<Seq>(true);
    }
}

/// The members alone are woken, and each keeps awake for a phase that is complete.
#[test]
fn a_sleeper_in_a_teams_barrier_is_woken_by_the_last_to_come() {
    let long = Duration::from_secs(20);
    let asleep = AtomicU32::new(0);
    fake::run::<Par, _>(3, CONFIG, |me, Opened { wire, barrier, teams, .. }| {
        let bell = || wire.host.bell(2).expect("rank 2").word().load(Relaxed);
        if me == 2 {
            // It would sleep for long, and is no member.
            let _ = wire.host.bell(2).expect("rank 2").ticket();
            assert_eq!((bell(), pass(&barrier, Name::Any)), (1, Name::Any));
            assert_eq!(pass(&barrier, Name::Any), Name::Any);
            assert_eq!(bell(), 1, "the bell of a rank that is in no team has rung");
            return;
        }
        let pair = teams.open(3, &team([0, 1])).expect("free");
        assert_eq!(pass(&barrier, Name::Any), Name::Any);
        let start = Instant::now();
        if me == 0 {
            let watchdog = Watchdog::new();
            while asleep.load(Relaxed) == 0 {
                watchdog.check(|| "rank 1 does not sleep".into());
            }
            std::thread::sleep(Duration::from_millis(20));
            pair.arrive(Name::Is(3));
        } else {
            pair.arrive(Name::Is(3));
            while pair.done().is_none() {
                let stay = || {
                    asleep.store(1, Relaxed);
                    true
                };
                WaitSet::new().sleep(std::iter::once(&wire), long, &stay).expect("slept");
            }
            assert!(
                start.elapsed() >= Duration::from_millis(20) && start.elapsed() < long,
                "it was not woken"
            );
        }
        assert_eq!(pair.done(), Some(Name::Is(3)));
        assert_eq!(pass(&barrier, Name::Any), Name::Any);
    });
}

#[test]
fn counts_of_a_team_that_cannot_be_are_found_by_who_waits() {
    for (wrong, is_found) in [(0, true), (1, true), (2, false), (3, false), (4, true), (u64::MAX, true)] {
        let Opened { wire, teams, .. } = fake::alone::<Seq>().expect("open");
        let alone = teams.open(7, &team([0])).expect("free");
        let sleep =
            || WaitSet::new().sleep::<Seq, _>(std::iter::once(&wire), Duration::from_millis(1), &|| true);
        for _ in 0..2 {
            assert_eq!(pass(&*alone, Name::Any), Name::Any);
        }
        sleep().expect("all is well");
        // A hostile peer reaches no more than the counts' bytes, which lie in the memory that all share.
        let at = wire.host.cards().team_meeting(7, 0);
        let words = wire.host.all.slice(at, 64).expect("inside");
        let write = |at: usize, value: u64| words.slice(at, 8).expect("a word").write(&value.to_le_bytes());
        write(0, wrong);
        let found = sleep();
        assert_eq!(found.is_err(), is_found, "{wrong}");
        if let Err(error) = found {
            assert!(matches!(error, WireError::Corrupt { at: 0, .. }));
            assert!(error.to_string().ends_with("a barrier counts arrivals that cannot be"), "{error}");
        }
        // What is no name is a mismatch; and what nobody has left is never free, nor what more have left than there are.
        write(0, 2);
        (8..32).step_by(8).for_each(|at| write(at, u64::MAX));
        assert_eq!(alone.done(), Some(Name::Mismatch));
        write(32, wrong);
        drop(alone);
        assert_eq!(teams.free_slots() >> 7 & 1, u32::from(wrong == 0));
        assert_eq!(teams.free_slots() | 1 << 7, ALL);
    }
}

/// Nobody opens a barrier with a rank that it does not reach, in whichever slot.
#[test]
fn a_team_of_several_hosts_has_none() {
    let limit = Limit { bytes: 1 << 40, who: "the network".into() };
    let beside = Beside { most: 2, limit, search: false, again: false };
    let joined = |rank: Together| {
        let me = rank.rank();
        let Joined { barrier, teams, .. } = join::<Seq>(&rank, &CONFIG, Some(&beside)).expect("join");
        let open = |slot, members: &Members| teams.open(slot, members);
        // Groups of two: 0 and 2, 1 and 3, 4.
        assert!(open(0, &team([0, 1, 2, 3, 4])).is_none() && open(0, &team([me, 7])).is_none());
        assert!(open(TEAM_SLOTS, &team([me])).is_none() && open(u32::MAX, &team([me])).is_none());
        assert_eq!(teams.free_slots(), ALL, "what nobody has opened");
        let near = if me == 4 { None } else { Some(team([me % 2, me % 2 + 2])) };
        let near = near.as_ref().map(|near| open(TEAM_SLOTS - 1, near).expect("it shares memory"));
        let name = Name::Is(me % 2);
        assert!(near.is_none_or(|near| pass(&*near, name) == name));
        assert_eq!(pass(&barrier, Name::Any), Name::Any);
    };
    let ranks = Together::on(Hosts::led_by(vec![0, 1, 0, 1, 0])).expect("a job");
    std::thread::scope(|scope| ranks.into_iter().for_each(|rank| _ = scope.spawn(|| joined(rank))));
}

/// What all members post in a round, waited for in their order; then this one is through.
fn exchange(team: &dyn SharedTeam, me: u32, members: u32, round: u64) -> Vec<[u8; 8]> {
    let (watchdog, board) = (Watchdog::new(), team.board().expect("a board"));
    while !board.has_room(round, 8) {
        watchdog.check(|| format!("no room in round {round}"));
    }
    board.post(round, round, &(u64::from(me) << 32 | round).to_le_bytes());
    if board.has_sleepers() {
        team.ring();
    }
    let of = |member| {
        while board.posted(member, round).expect("nobody is ahead") != Some(round) {
            watchdog.check(|| format!("member {member} has not posted in round {round}"));
        }
        let mut bytes = [0; 8];
        board.read(member, round, 0, &mut bytes);
        bytes
    };
    let all = (0..members).map(of).collect();
    if board.finish(round) {
        team.ring();
    }
    all
}

fn wanted(members: u32, round: u64) -> Vec<[u8; 8]> {
    (0..members).map(|member| (u64::from(member) << 32 | round).to_le_bytes()).collect()
}

/// The board of a slot begins anew with each team that has it, and that of all ranks is another.
#[test]
fn a_board_is_as_good_as_new_for_each_team() {
    fake::run::<Seq, _>(3, CONFIG, |me, Opened { barrier, teams, .. }| {
        let everyone = teams.everyone(&Members::everyone(3)).expect("they share memory");
        assert!(teams.everyone(&Members::everyone(3)).is_none(), "there is one");
        let mut rounds = 0;
        for size in [3, 2, 3, 2, 2] {
            assert_eq!(teams.free_slots(), ALL);
            assert_eq!(pass(&barrier, Name::Any), Name::Any);
            let members = Members::list((0..size).rev(), 8).expect("a team");
            if let Some(own) = members.member_of(me) {
                let team = teams.open(1, &members).expect("free");
                for round in 1..=20 {
                    assert_eq!(exchange(&*team, own, size, round), wanted(size, round));
                }
            }
            for _ in 0..20 {
                rounds += 1;
                assert_eq!(exchange(&*everyone, me, 3, rounds), wanted(3, rounds));
            }
            assert_eq!(pass(&barrier, Name::Any), Name::Any);
        }
    });
}

/// Who waits for another to post sleeps, and is woken.
#[test]
fn a_sleeper_at_a_board_is_woken_by_who_posts() {
    let long = Duration::from_secs(20);
    let asleep = AtomicU32::new(0);
    fake::run::<Par, _>(2, CONFIG, |me, Opened { wire, barrier, teams, .. }| {
        let pair = teams.open(3, &team([0, 1])).expect("free");
        let everyone = teams.everyone(&Members::everyone(2)).expect("they share memory");
        for (number, at) in (1..).zip([&pair, &everyone]) {
            assert_eq!(pass(&barrier, Name::Any), Name::Any);
            let (start, board) = (Instant::now(), at.board().expect("a board"));
            if me == 0 {
                let watchdog = Watchdog::new();
                while asleep.load(Relaxed) != number {
                    watchdog.check(|| "rank 1 does not sleep".into());
                }
                std::thread::sleep(Duration::from_millis(20));
                board.post(1, 7, &[1; 8]);
                assert!(board.has_sleepers(), "somebody sleeps");
                at.ring();
            } else {
                while board.posted(0, 1) == Ok(None) {
                    board.wait_for(1, 0);
                    let stay = || {
                        asleep.store(number, Relaxed);
                        true
                    };
                    WaitSet::new().sleep(std::iter::once(&wire), long, &stay).expect("slept");
                }
                let took = start.elapsed();
                assert!(took >= Duration::from_millis(20) && took < long, "it was not woken");
            }
            let _ = board.finish(1);
        }
        assert_eq!(pass(&barrier, Name::Any), Name::Any);
    });
}
