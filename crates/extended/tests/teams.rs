//! Teams on engines put together by hand, below the facade, over a network on which messages overtake each other.
#![allow(unsafe_code)]

mod sim;

use gasworks_conformance::simnet::{self, SimConfig, SimRank};
use gasworks_core::{Category, Engine, Handlers, Incoming, Members, Name, Outgoing};
use gasworks_extended::barrier::{TeamBarrier, Way};
use gasworks_extended::collective::Combine;
use gasworks_extended::team::{Start, Team, TeamNumber, Teams};
use gasworks_extended::{Barrier, Error};
use gasworks_memory::{Peer, PeerFlags, RegionTable};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::{RawSlice, Seq};
use std::sync::Arc;

/// The index of a handler that fails.
const FAILS: u8 = 9;

/// A rank's engine, with its teams and a count of the messages that came for these.
struct Rank {
    engine: Engine<Seq>,
    teams: Arc<Teams>,
    everyone: Team,
    heard: Arc<AtomicU64>,
}

fn open(rank: &SimRank) -> Result<Rank, Error> {
    let (ranks, handlers, heard) = (rank.config().ranks, Handlers::new(), Arc::new(AtomicU64::new(0)));
    let counted = heard.clone();
    let teams = Teams::register::<Seq>(ranks, rank.teams(), None, &handlers, |state| {
        Box::new(move |piece: &Incoming<'_, Seq>| {
            counted.fetch_add(1, Ordering::Relaxed);
            state.hear(piece)
        })
    })?;
    let fails = |message: &Incoming<'_, Seq>| {
        let (from, what) = (message.source(), "on purpose".to_owned());
        Err(Box::new(gasworks_core::Error::Handler { from, what }))
    };
    handlers.register_internal(FAILS, "fails", (Category::Short, false, 0), Box::new(fails))?;
    let peer = |number| {
        let flags = if number == rank.rank() { PeerFlags::SELF } else { PeerFlags::empty() };
        Peer { mapped: RawSlice::EMPTY, len: 0, remote_base: 0, key: Vec::new(), flags }
    };
    // SAFETY: no peer maps any bytes, so there is nothing to keep.
    let peers = unsafe { RegionTable::new((0..ranks).map(peer), Arc::new(())) };
    let engine = sim::engine(rank, handlers, peers);
    Ok(Rank { engine, teams, everyone: Team::everyone(rank.rank(), ranks), heard })
}

/// Runs `body` on every rank of a net whose messages carry so many bytes, and whose ranks share memory or do not; what each returned.
fn on_ranks<R: Send>(
    ranks: u32,
    seed: u64,
    (max_medium, mapped): (usize, bool),
    body: impl Fn(&Rank) -> Result<R, Error> + Sync,
) -> Vec<R> {
    let config = SimConfig { max_medium, mapped, ..SimConfig::varied(ranks, seed) };
    let ended = simnet::run(config, |rank| {
        let rank = open(&rank)?;
        let result = body(&rank)?;
        // Nobody goes while another still needs it.
        rank.teams.split(&rank.engine, &rank.everyone, None, 0)?;
        Ok::<_, Error>(result)
    });
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().map(|result| result.unwrap_or_else(|error| panic!("seed {seed}: {error}"))).collect()
}

/// A number that only depends on these.
fn mix(seed: u64, round: u64, rank: u32) -> u64 {
    let mut x = seed << 40 ^ round << 20 ^ u64::from(rank) ^ 0x9E37_79B9_7F4A_7C15;
    for _ in 0..3 {
        x = (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    x ^ x >> 32
}

/// The ranks with this colour among these, by key, then in the order that they have.
fn model(of: &[u32], color: u32, said: impl Fn(u32) -> (Option<u32>, i64)) -> Vec<u32> {
    let mut ours: Vec<u32> = of.iter().copied().filter(|&rank| said(rank).0 == Some(color)).collect();
    ours.sort_by_key(|&rank| said(rank).1);
    ours
}

/// Teams of teams, six deep, are those of a model; all members call a team the same, and no two teams are called so.
#[test]
fn splits_are_as_in_a_plain_model() {
    for (ranks, seed, max_medium) in
        [(1, 1, 64), (2, 2, 24), (3, 3, 40), (5, 4, 100), (8, 5, 25), (13, 6, 64)]
    {
        let found =
            on_ranks(ranks, seed, (max_medium, seed % 2 == 0), |Rank { engine, teams, everyone, .. }| {
                let mut found = Vec::new();
                for start in 0..3 {
                    let (mut team, mut list) = (None::<Team>, (0..ranks).collect::<Vec<_>>());
                    for depth in 0..6u64 {
                        let round = 10 * start + depth;
                        let said = |rank| {
                            let chance = mix(seed, round, rank);
                            let color = (!chance.is_multiple_of(8)).then_some((chance >> 8) as u32 % 2);
                            (color, ((chance >> 16) % 5) as i64 - 2)
                        };
                        let (color, key) = said(engine.rank());
                        let split = teams.split(engine, team.as_ref().unwrap_or(everyone), color, key)?;
                        let Some(color) = color else {
                            assert!(split.is_none());
                            break;
                        };
                        let split = split.expect("a team");
                        list = model(&list, color, said);
                        assert_eq!(
                            **split.members(),
                            Members::list(list.iter().copied(), ranks).expect("ranks")
                        );
                        assert_eq!(list[split.own() as usize], engine.rank());
                        found.push((split.number(), list.clone()));
                        team = Some(split);
                    }
                }
                Ok(found)
            });
        let mut by_number = std::collections::BTreeMap::<TeamNumber, (Vec<u32>, usize)>::new();
        for (number, list) in found.into_iter().flatten() {
            assert_ne!(number, TeamNumber::EVERYONE);
            let (same, count) = by_number.entry(number).or_insert((list.clone(), 0));
            assert_eq!(*same, list, "{number:?}");
            *count += 1;
        }
        assert!(by_number.values().all(|(list, count)| list.len() == *count), "each member has it once");
    }
}

/// As many messages as members times doublings, where each is one piece.
#[test]
fn a_split_takes_a_message_of_each_member_for_each_doubling() {
    for (ranks, doublings) in [(1, 0), (2, 1), (3, 2), (4, 2), (7, 3), (16, 4)] {
        let heard = on_ranks(ranks, 7, (4096, false), |Rank { engine, teams, everyone, heard }| {
            teams.split(engine, everyone, Some(engine.rank() % 2), 0)?;
            Ok(heard.load(Ordering::Relaxed))
        });
        // Of the next split a rank may have heard as much.
        assert!(heard.iter().all(|heard| (doublings..=2 * doublings).contains(heard)), "{ranks}: {heard:?}");
    }
}

/// By messages and in shared memory; the names that members agree on are the same.
#[test]
fn nobody_leaves_the_barrier_of_a_team_before_its_last_has_come() {
    for mapped in [false, true] {
        let arrived = [AtomicU64::new(0), AtomicU64::new(0)];
        on_ranks(7, 8, (64, mapped), |Rank { engine, teams, everyone, heard }| {
            let parity = engine.rank() % 2;
            let key = -i64::from(engine.rank());
            let team = teams.split(engine, everyone, Some(parity), key)?.expect("a team");
            assert_eq!(team.shared().is_some(), mapped);
            let (team, size) = (Arc::new(team), 4 - u64::from(parity));
            let barrier = Barrier::<Seq>::new(Way::Team(TeamBarrier::new(teams.clone(), team.clone())));
            let before = heard.load(Ordering::Relaxed);
            for phase in 1..=40u64 {
                arrived[parity as usize].fetch_add(1, Ordering::Relaxed);
                let odd = u64::from(team.own()) == phase % size;
                let (name, agreed) = match phase % 4 {
                    0 => (Name::Any, Name::Any),
                    1 => (if odd { Name::Is(7) } else { Name::Any }, Name::Is(7)),
                    2 => (Name::Is(odd.into()), Name::Mismatch),
                    _ => (if odd { Name::Mismatch } else { Name::Any }, Name::Mismatch),
                };
                let number = barrier.begin(engine, name)?;
                assert!(barrier.begin(engine, name).is_err_and(|e| e.to_string().contains("begun twice")));
                assert_eq!(barrier.wait(engine, number, name)?, agreed, "phase {phase}");
                assert!(arrived[parity as usize].load(Ordering::Relaxed) >= phase * size, "phase {phase}");
            }
            // Some of the first phase and of the collectives before and after may be among them.
            let by_messages = heard.load(Ordering::Relaxed) - before;
            assert_eq!(by_messages < 70, mapped, "{by_messages} messages");
            Ok(())
        });
    }
}

/// Teams come and go in another order on each rank, some with a phase that nobody has finished, or not everybody begun; more of them are there at
/// once than ranks have slots. What each is and agrees on is the same as without shared memory.
#[test]
fn slots_are_used_again_when_all_have_left_and_else_a_team_meets_by_messages() {
    for (ranks, seed) in [(2, 20), (3, 21), (6, 22)] {
        let shared = AtomicU64::new(0);
        on_ranks(ranks, seed, (512, true), |Rank { engine, teams, everyone, .. }| {
            let mut kept = std::collections::VecDeque::new();
            for round in 0..60u32 {
                let color = mix(seed, round.into(), engine.rank()) as u32 % 2;
                let team = Arc::new(teams.split(engine, everyone, Some(color), 0)?.expect("a team"));
                shared.fetch_add(team.shared().is_some().into(), Ordering::Relaxed);
                let barrier = Barrier::<Seq>::new(Way::Team(TeamBarrier::new(teams.clone(), team)));
                for name in [Name::Is(color), Name::Any, Name::Is(round)] {
                    let number = barrier.begin(engine, name)?;
                    assert_eq!(barrier.wait(engine, number, name)?, name, "round {round}");
                }
                if (round + engine.rank()).is_multiple_of(3) {
                    let _ = barrier.begin(engine, Name::Mismatch)?;
                }
                kept.push_back(barrier);
                if kept.len() as u64 > mix(seed, round.into(), !engine.rank()) % 5 {
                    kept.pop_front();
                }
            }
            Ok(())
        });
        let (shared, all) = (shared.load(Ordering::Relaxed), u64::from(ranks) * 60);
        assert!((10..all).contains(&shared), "of {all} teams {shared} met in shared memory");
    }
}

#[test]
fn members_that_do_not_do_the_same_are_told_so_alike() {
    let said = on_ranks(5, 9, (4096, true), |Rank { engine, teams, everyone, .. }| {
        let rank = engine.rank();
        let create = |list: &[u32]| match teams.create(engine, everyone, list.iter().copied()) {
            Ok(team) => format!("{:?}", team.map(|team| team.own())),
            Err(error) => error.to_string(),
        };
        let differ = create(if rank < 3 { &[0, 1] } else { &[1, 0] });
        let longer = create(if rank == 4 { &[0, 1, 2] } else { &[0, 1] });
        let wrong = [create(&[]), create(&[1, 5]), create(&[2, 0, 2])];
        let kinds = match rank {
            2 => teams.split(engine, everyone, Some(1), 0).map(|_| ()),
            _ => teams.create(engine, everyone, [0]).map(|_| ()),
        };
        let kinds = kinds.map_err(|error| error.to_string()).expect_err("not the same");
        assert_eq!(
            create(&[3, 1]),
            format!("{:?}", [3, 1].iter().position(|&of| of == rank).map(|at| at as u32))
        );
        Ok([&[differ, longer][..], &wrong, &[kinds]].concat())
    });
    let different = "members 0 and 3 of a team passed different members for a new one";
    let wanted = [
        different,
        &different.replace('3', "4"),
        "a team without a member",
        "member 5 is out of range: the team has 5 members",
        "members 0 and 2 of a team would both be rank 2",
        "members 0 and 2 of a team called different collectives",
    ];
    for said in said {
        assert_eq!(said, wanted);
    }
}

/// Several teams made at once, each by lists of its own members; those of one who passed others for it are told so, and nobody else is.
#[test]
fn teams_that_have_no_members_in_common_are_made_at_once() {
    let said = on_ranks(6, 10, (4096, true), |Rank { engine, teams, everyone, .. }| {
        let rank = engine.rank();
        let create = |list: &[u32]| match teams.create_apart(engine, everyone, list) {
            Ok(team) => format!("{:?}", team.map(|team| team.members().iter().collect::<Vec<_>>())),
            Err(error) => error.to_string(),
        };
        let two = create(match rank {
            0 | 4 => &[4, 0],
            5 => &[],
            _ => &[1, 2, 3],
        });
        let differ = create(match rank {
            0 => &[0, 1],
            1 => &[1, 0],
            _ => &[2, 3, 4, 5],
        });
        let wrong = create(match rank {
            5 => &[5, 6],
            _ => &[],
        });
        Ok([two, differ, wrong])
    });
    let of = |list: &[u32]| format!("Some({list:?})");
    let none = "None".to_owned();
    let (left, middle, rest) = (of(&[4, 0]), of(&[1, 2, 3]), of(&[2, 3, 4, 5]));
    let different = |first, second| {
        format!("members {first} and {second} of a team passed different members for a new one")
    };
    let outside = "member 6 is out of range: the team has 6 members".to_owned();
    assert_eq!(said[0], [left.clone(), different(0, 1), none.clone()]);
    assert_eq!(said[1], [middle.clone(), different(1, 0), none.clone()]);
    assert_eq!(said[2], [middle.clone(), rest.clone(), none.clone()]);
    assert_eq!(said[3], [middle, rest.clone(), none.clone()]);
    assert_eq!(said[4], [left, rest.clone(), none.clone()]);
    assert_eq!(said[5], [none, rest, outside]);
}

/// A function of the program's that panics where a poll turns a collective does not unwind through that: the poll says so, and the event, and the members go on.
#[test]
fn a_panic_in_a_collective_is_an_error_of_the_poll() {
    struct Panics;
    impl Combine for Panics {
        fn element(&self) -> usize {
            1
        }
        fn combine(&mut self, _: &mut [u8], _: &mut [u8]) {
            panic!("on purpose");
        }
    }
    for mapped in [false, true] {
        let said = on_ranks(2, 3, (512, mapped), |Rank { engine, teams, everyone, .. }| {
            let mut bytes = [1u8];
            // SAFETY: the bytes stay until the collective is over, which is waited for below.
            let shared = unsafe { RawSlice::new(bytes.as_mut_ptr(), 1).borrow() };
            let begun =
                teams.begin_reduce(engine, everyone, Start::default(), Some(0), (shared, shared), Panics);
            let said = begun.map_err(|error| error.to_string()).and_then(|(event, _)| {
                let mut said = None;
                while said.is_none()
                    && gasworks_extended::event::test(engine, &event).is_ok_and(|done| done.is_none())
                {
                    said = engine.poll().err().map(|error| error.to_string());
                }
                if engine.rank() == 0 {
                    assert!(
                        gasworks_extended::event::wait(engine, &event).is_err(),
                        "its event says so, too"
                    );
                }
                said.map_or(Ok(()), Err)
            });
            let mut sum = [1u8];
            teams.broadcast(engine, everyone, 1, &mut sum)?;
            Ok(said.err())
        });
        assert!(
            said[0]
                .as_ref()
                .is_some_and(|text| text.contains("the function of a collective panicked: on purpose")),
            "{said:?}"
        );
        assert_eq!(said[1], None, "the other one has no part in that");
    }
}

/// A barrier on one side and a split on the other; pieces that no member sends.
#[test]
fn what_is_no_piece_of_a_collective_is_refused() {
    let config = SimConfig { mapped: false, ..SimConfig::varied(2, 10) };
    let ended = simnet::run(config, |rank| {
        let Rank { engine, teams, everyone, .. } = open(&rank)?;
        if rank.rank() == 0 {
            let split = teams.split(&engine, &everyone, Some(0), 0).map(|_| ());
            let said = split.expect_err("the other is in a barrier").to_string();
            assert!(said.contains("from rank 1") && said.contains("in another collective of"), "{said}");
            return Ok(());
        }
        let team = Arc::new(everyone);
        let barrier = Barrier::<Seq>::new(Way::Team(TeamBarrier::new(teams.clone(), team)));
        let number = barrier.begin(&engine, Name::Any)?;
        let said = barrier.wait(&engine, number, Name::Any).expect_err("the other splits").to_string();
        assert!(said.contains("from rank 0") && said.contains("in another collective of"), "{said}");
        // To itself: where it belongs, how many bytes there are of it, how many come.
        let send = |step: u32, offset: u32, total: u32, payload: &[u8]| {
            let args = [0, 0, 9, step, offset, total].map(u32::to_le_bytes).concat();
            let category = Category::Medium;
            engine.request(1, &Outgoing { category, handler: 4, args: &args, payload, landing: 0 })?;
            engine.poll().map(drop)
        };
        let refused = |outcome: Result<(), gasworks_core::Error>, what: &str| {
            let said = outcome.map_err(|error| error.to_string()).expect_err(what);
            assert!(said.contains("from rank 1: a piece of") && said.contains(what), "{said}");
        };
        refused(send(0, 4096, 5000, &[1; 72]), "not cleared to send");
        refused(send(0, 1, 48, &[1; 48]), "no part of it");
        refused(send(0, u32::MAX, 48, &[1; 48]), "no part of it");
        refused(send(0, 0, 0, &[]), "no part of it");
        send(1, 0, 48, &[1; 30])?;
        refused(send(1, 20, 48, &[1; 28]), "twice");
        // Whoever waits for that step is told.
        send(1, 30, 40, &[1; 10])?;
        send(1 << 31, 0, 0, &[])?;
        refused(send(1 << 31, 0, 0, &[]), "cleared to send twice");
        Ok::<_, Error>(())
    });
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}

/// A member that begins many collectives, and waits for none, sends no more than a window of them to one that has begun none.
#[test]
fn who_does_not_wait_gets_no_further_ahead() {
    const BEGUN: usize = 40;
    const WINDOW: u64 = 16;
    let may_begin = AtomicU64::new(0);
    let run = |rank: &Rank| {
        let Rank { engine, teams, everyone, heard } = rank;
        if everyone.own() == 1 {
            while may_begin.load(Ordering::Acquire) == 0 {
                engine.poll()?;
            }
            let kept = heard.load(Ordering::Relaxed);
            assert!((1..=WINDOW).contains(&kept), "{kept} messages came for collectives that were not begun");
            for number in 0..BEGUN {
                let mut bytes = [0; 8];
                teams.broadcast(engine, everyone, 0, &mut bytes)?;
                assert_eq!(bytes, [number as u8; 8]);
            }
            return Ok(());
        }
        let mut bytes: Vec<[u8; 8]> = (0..BEGUN).map(|number| [number as u8; 8]).collect();
        let begin = |bytes: &mut [u8; 8]| {
            // SAFETY: the vector is not touched before all events are done, nor dropped.
            let bytes = unsafe { RawSlice::new(bytes.as_mut_ptr(), bytes.len()).borrow() };
            let begun = teams.begin_broadcast(engine, everyone, Start::default(), 0, (None, bytes));
            begun.map(|(event, _)| event)
        };
        let events: Vec<_> = bytes.iter_mut().map(begin).collect::<Result<_, _>>()?;
        // On a network that holds messages back all that may leave has left after some time.
        for _ in 0..20_000 {
            engine.poll()?;
        }
        may_begin.store(1, Ordering::Release);
        events.iter().try_for_each(|event| gasworks_extended::event::wait(engine, event).map(drop))
    };
    for seed in 0..4 {
        may_begin.store(0, Ordering::Relaxed);
        on_ranks(2, seed, (512, false), run);
    }
}

/// The program's own error, which comes up while this rank waits for another, is told when its part is over.
#[test]
fn an_error_of_a_handler_leaves_no_collective_undone() {
    let run = |rank: &Rank| {
        let Rank { engine, teams, everyone, .. } = rank;
        let mut bytes = [everyone.own() as u8 + 5; 8];
        if everyone.own() == 0 {
            let (category, handler) = (Category::Short, FAILS);
            engine.request(1, &Outgoing { category, handler, args: &[], payload: &[], landing: 0 })?;
            for _ in 0..20_000 {
                engine.poll()?;
            }
        }
        let outcome = teams.broadcast(engine, everyone, 0, &mut bytes);
        let said = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!((bytes, said.contains("on purpose")), ([5; 8], everyone.own() == 1), "{said}");
        teams.broadcast(engine, everyone, 1, &mut bytes)
    };
    for seed in 0..4 {
        on_ranks(2, seed, (512, false), run);
    }
}
