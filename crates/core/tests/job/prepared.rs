//! Negotiated payload: how much room is granted, commit, cancel, and errors.

use crate::fake::*;
use crate::in_every_mode;
use crate::messages::{SHORT, pattern};
use gasworks_core::{Ask, Category, Commit, Error, Outgoing, WireError};
use gasworks_sync::Par;

const COMMIT: Commit<'static> = Commit { handler: 0, args: &[1, 0, 0, 0], len: 0, landing: 32, source: None };

fn ask(category: Category, least: usize, most: usize) -> Ask {
    Ask { category, least, most, landing: None, source: None }
}

/// For every combination of category, bounds, landing and source: the committed bytes arrive, and all credits and room
/// come back.
#[test]
fn what_is_committed_arrives() {
    fn check<M: TestMode>() {
        let large = pattern(LONG);
        for (plan, to) in Plan::kinds().into_iter().flat_map(|plan| [(plan.clone(), 1), (plan, 0)]) {
            for category in [Category::Medium, Category::Long] {
                let is_long = category == Category::Long;
                let bounds =
                    [(0, MEDIUM), (1, 100), (MEDIUM, MEDIUM), (MEDIUM + 1, usize::MAX), (3, usize::MAX)];
                for (least, most) in bounds {
                    for (landing, source) in [(false, false), (true, false), (false, true), (true, true)] {
                        if least > MEDIUM && !is_long {
                            continue;
                        }
                        let (landing, source) =
                            ((landing && is_long).then_some(32), source.then_some(large.len()));
                        let ask = Ask { landing, source, ..ask(category, least, most) };
                        let what = format!(
                            "{ask:?} of {to}, {} sharing, {} descriptors",
                            plan.sharing, plan.descriptors
                        );
                        let job = Job::<M>::new(&plan);
                        let mapped = plan.sharing > 0 || to == 0;
                        let apart = is_long
                            && (mapped && (landing.is_some() || source.is_some())
                                || least > MEDIUM
                                || to == 0);
                        let prepared = job.engines[0].prepare(to, &ask);
                        if apart && !mapped && plan.descriptors == 0 {
                            let refused = Error::Unreachable { during: "prepare a long message", rank: 1 };
                            assert_eq!(prepared.map(drop), Err(refused), "{what}");
                            continue;
                        }
                        let prepared = prepared.expect("room");
                        let granted = most.min(if apart { LONG } else { MEDIUM });
                        assert_eq!(prepared.granted(), granted, "{what}");
                        let charged = if apart || to == 0 { 0 } else { granted as u64 };
                        let credit = u32::from(to != 0);
                        assert_eq!(job.engines[0].out(to), (credit, charged), "{what}");
                        // The client's own buffer is the room, or the library gives some.
                        assert_eq!(
                            prepared.room().len(),
                            if source.is_some() { 0 } else { granted },
                            "{what}"
                        );
                        let len = granted - granted / 3;
                        if source.is_none() {
                            prepared.room().write(&large[..len]);
                        }
                        let handler = REQUEST[category as usize];
                        assert_eq!(
                            prepared.commit(&Commit {
                                handler,
                                len,
                                source: source.map(|_| &large[..]),
                                ..COMMIT
                            }),
                            Ok(()),
                            "{what}"
                        );
                        if to != 0 {
                            let charged = if charged > 0 { len as u64 } else { 0 };
                            assert_eq!(job.engines[0].out(to), (1, charged), "{what}");
                        }
                        job.poll();
                        let landed = is_long.then_some(32);
                        let args = COMMIT.args.to_vec();
                        let payload = large[..len].to_vec();
                        let seen = Seen { at: to, from: 0, handler, args, payload, landed, is_request: true };
                        assert_eq!(job.seen(), [seen], "{what}");
                        job.assert_quiet();
                    }
                }
            }
        }
    }
    in_every_mode!(check);
}

/// A commit that exceeds what was granted sends nothing and gives the room back, as drop and cancel do.
#[test]
fn what_does_not_fit_is_given_back() {
    let medium = ask(Category::Medium, 8, 64);
    let long = Ask { landing: Some(32), ..ask(Category::Long, 8, 64) };
    for (plan, to) in Plan::kinds().into_iter().flat_map(|plan| [(plan.clone(), 1), (plan, 0)]) {
        let job = Job::<Par>::new(&plan);
        let commit = Commit { handler: REQUEST[1], len: 64, ..COMMIT };
        let too_large = |category| Error::PayloadTooLarge { category, to, len: 65, max: 64 };
        let rows = [
            (medium, Commit { len: 65, ..commit }, too_large(Category::Medium)),
            (medium, Commit { args: &[0; 68], ..commit }, Error::Arguments { bytes: 68 }),
            (medium, Commit { args: &[0; 3], ..commit }, Error::Arguments { bytes: 3 }),
            (long, Commit { len: 65, ..commit }, too_large(Category::Long)),
            (long, Commit { landing: 33, ..commit }, Error::Landing { to, asked: 32, landing: 33 }),
        ];
        for (ask, commit, refused) in rows {
            let prepared = job.engines[0].prepare(to, &ask).expect("room");
            assert_eq!(prepared.commit(&commit), Err(refused));
            job.assert_quiet();
            drop(job.engines[0].prepare(to, &ask).expect("room"));
            job.engines[0].prepare(to, &ask).expect("room").cancel();
            job.assert_quiet();
        }
        let args = [7; 64];
        let prepared = job.engines[0].prepare(to, &medium).expect("room");
        assert_eq!(
            prepared.commit(&Commit { args: &args, ..commit }),
            Ok(()),
            "16 arguments are not too many"
        );
        job.poll();
        assert_eq!(job.seen().pop().map(|seen| seen.args), Some(args.to_vec()));
    }
}

#[test]
fn more_than_any_message_holds_is_refused() {
    let source = [0u8; 100];
    for plan in Plan::kinds() {
        let job = Job::<Par>::new(&plan);
        let by_source = Ask { source: Some(source.len()), ..ask(Category::Medium, 0, MEDIUM) };
        let rows = [
            (ask(Category::Medium, MEDIUM + 1, usize::MAX), Some(MEDIUM as u64)),
            (ask(Category::Medium, 10, 9), Some(9)),
            (ask(Category::Medium, 9, 9), None),
            (Ask { least: 101, ..by_source }, Some(100)),
            (Ask { least: 100, ..by_source }, None),
        ];
        for (ask, max) in rows {
            let granted = job.engines[0].prepare(1, &ask).map(|prepared| prepared.granted());
            let (category, len) = (Category::Medium, ask.least);
            match max {
                Some(max) => assert_eq!(granted, Err(Error::PayloadTooLarge { category, to: 1, len, max })),
                None => assert_eq!(granted, Ok(len.max(ask.most.min(100)))),
            }
        }
        let nobody = job.engines[0].prepare(2, &ask(Category::Medium, 0, 1)).map(drop).expect_err("nobody");
        assert!(nobody.to_string().starts_with("prepare an active message request: "), "{nobody}");
        job.assert_quiet();
    }
}

/// `try_prepare` falls back to the least; `prepare` waits for credits and room, but returns other errors at once.
#[test]
fn room_that_is_short_is_waited_for() {
    fn check<M: TestMode>() {
        let (busy, gone) = (WireError::Busy { to: 1 }, WireError::PeerGone { rank: 1 });
        let volume = Error::Busy { to: 1, what: "too many bytes under way to that rank" };
        for plan in Plan::kinds() {
            let job = Job::<M>::new(&plan);
            let engine = &job.engines[0];
            let granted =
                |least, most| engine.try_prepare(1, &ask(Category::Medium, least, most)).map(|p| p.granted());
            // Of a volume of two Mediums 24 bytes are left.
            let medium =
                Outgoing { category: Category::Medium, handler: REQUEST[1], payload: &[0; 500], ..SHORT };
            (0..2).for_each(|_| assert_eq!(engine.try_request(1, &medium), Ok(())));
            assert_eq!((granted(20, 24), granted(20, 25)), (Ok(24), Ok(20)));
            assert_eq!((granted(24, 25), granted(25, 25)), (Ok(24), Err(volume.clone())));
            assert_eq!(granted(25, 26), Err(volume.clone()));
            assert_eq!(engine.out(1), (2, 1000));
            // No second try where less will not do, or where it is not room that is short.
            for (refused, asked, wanted) in [
                (&busy, (8, 9), Ok(8)),
                (&busy, (8, 8), Err(Error::Wire(busy.clone()))),
                (&gone, (8, 9), Err(Error::Wire(gone.clone()))),
            ] {
                job.wire(0).refuse_room.push_back(refused.clone());
                assert_eq!(granted(asked.0, asked.1), wanted);
                assert!(job.wire(0).refuse_room.is_empty());
            }
            job.wire(0).refuse_room.push_back(gone.clone());
            let refused = engine.prepare(1, &ask(Category::Medium, 8, 9)).map(drop);
            assert_eq!((refused, engine.out(1)), (Err(Error::Wire(gone.clone())), (2, 1000)));
            let other = job.engines[1].clone();
            let turn = move || _ = other.poll().expect("nothing is wrong");
            let waited =
                with_peers(turn, || engine.prepare(1, &ask(Category::Medium, 25, 25)).map(|p| p.granted()));
            assert_eq!(waited, Ok(25));
            job.poll();
            job.assert_quiet();
        }
    }
    in_every_mode!(check);
}

/// The commit of a Long in library memory waits for a post descriptor; if its put fails, the credit comes back.
#[test]
fn a_commit_waits_for_the_network() {
    let plan = Plan { descriptors: 1, ..Plan::default() };
    let job = Job::<Par>::new(&plan);
    let payload = pattern(LONG);
    let ask = Ask { source: Some(LONG), ..ask(Category::Long, LONG, LONG) };
    let commit = Commit { handler: REQUEST[2], len: LONG, landing: 0, source: Some(&payload), ..COMMIT };
    let (handler, landing) = (REQUEST[2], LONG as u64);
    let long = Outgoing { category: Category::Long, handler, args: &[], payload: &payload, landing };
    job.nic(0).hold = Hold::All;
    // SAFETY: `payload` outlives the job's transfers, which are all over at the end of the test, and is not changed.
    let first = unsafe { job.engines[0].try_request_nb(1, &long, None, None) };
    let first = first.map_err(|refused| refused.0).expect("started").expect("by the NIC");
    let prepared = job.engines[0].prepare(1, &ask).expect("a credit");
    assert_eq!(job.engines[0].out(1), (2, 0));
    let nic = job.nics[0].clone();
    let mut turns = 0;
    let turn = move || {
        turns += 1;
        if turns == 3 {
            lock(&nic).hold = Hold::Nothing;
        }
    };
    assert_eq!(with_peers(turn, || prepared.commit(&commit)), Ok(()));
    assert!(job.engines[0].test(first).is_ok_and(|done| done.is_some()));
    job.poll();
    assert_eq!(job.seen().iter().map(|seen| seen.payload == payload).collect::<Vec<_>>(), [true; 2]);
    job.assert_quiet();

    let failure = gasworks_rdma::NicError::PeerGone { peer: 1 };
    job.nic(0).fail.push_back(failure);
    let prepared = job.engines[0].prepare(1, &ask).expect("a credit");
    let refused = Error::Nic { during: "put of a long message", cause: failure };
    assert_eq!((prepared.commit(&commit), job.engines[0].out(1)), (Err(refused), (0, 0)));
    assert_eq!(job.engines[0].poll(), Ok(0));
}
