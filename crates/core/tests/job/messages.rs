//! Requests and replies: delivery, transfer mode, size limits and credits.

use crate::fake::*;
use crate::in_every_mode;
use gasworks_core::message::{MAX_ARGS, decode};
use gasworks_core::{Ask, Category, Class, Error, Flow, Outgoing, Rank, WireError};
use gasworks_memory::MemoryError;
use gasworks_shmem::inbox::MAX_INLINE;
use gasworks_sync::{Par, Seq};

pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + len) as u8 | 1).collect()
}

fn message<'a>(category: Category, args: &'a [u8], payload: &'a [u8]) -> Outgoing<'a> {
    Outgoing { category, handler: REQUEST[category as usize], args, payload, landing: 64 }
}

pub const SHORT: Outgoing<'static> =
    Outgoing { category: Category::Short, handler: REQUEST[0], args: &[], payload: &[], landing: 0 };

fn arrives<M: TestMode>(plan: &Plan, to: Rank) {
    let sizes = [
        (Category::Short, vec![0]),
        (Category::Medium, vec![0, 1, MAX_INLINE, MAX_INLINE + 1, MEDIUM]),
        (Category::Long, vec![0, 1, MAX_INLINE, PACKED, PACKED + 1, MEDIUM, MEDIUM + 1, LONG]),
    ];
    for (category, lens) in sizes {
        for (len, nargs) in lens.into_iter().zip([0, 1, 7, MAX_ARGS].into_iter().cycle()) {
            let job = Job::<M>::new(plan);
            let (args, payload) = (pattern(4 * nargs), pattern(len));
            let (landing, back) = (64, 128);
            job.answer(Some(Answer {
                category,
                args: args.clone(),
                payload: payload.clone(),
                landing: back,
            }));
            let sent = job.engines[0].try_request(to, &message(category, &args, &payload));
            let what = format!("{category} of {len} bytes, {nargs} arguments, to {to}");
            if category == Category::Long
                && len > MEDIUM
                && plan.descriptors == 0
                && plan.sharing <= to
                && to > 0
            {
                let refused = Error::Unreachable { during: "long message", rank: to };
                assert_eq!(sent, Err(refused), "{what}");
                job.assert_quiet();
                continue;
            }
            assert_eq!(sent, Ok(()), "{what}");
            job.poll();
            assert_eq!(job.replied(), [Ok(())], "{what}");
            let is_long = category == Category::Long;
            let wanted = |at, from, handler, landing, is_request| Seen {
                at,
                from,
                handler,
                args: args.clone(),
                payload: payload.clone(),
                landed: is_long.then_some(landing),
                is_request,
            };
            let at = category as usize;
            let wanted = [wanted(to, 0, REQUEST[at], landing, true), wanted(0, to, REPLY[at], back, false)];
            assert_eq!(job.seen(), wanted, "{what}");
            job.assert_quiet();
            // Nothing lies anywhere but where a Long has landed.
            for (rank, at) in [(to, landing as usize), (0, back as usize)] {
                let segment = read(job.fabric.segment(rank));
                let len = if is_long { len } else { 0 };
                let strays = segment
                    .iter()
                    .enumerate()
                    .filter(|&(i, &byte)| byte != 0 && !(at..at + len).contains(&i));
                assert!(to == 0 || strays.count() == 0, "{what}");
            }
        }
    }
}

#[test]
fn messages_arrive_as_they_were_sent() {
    for plan in Plan::kinds() {
        for to in [1, 0] {
            arrives::<Seq>(&plan, to);
            arrives::<gasworks_sync::ParSync>(&plan, to);
            arrives::<Par>(&plan, to);
        }
    }
    // Both kinds of transports in one job.
    let mixed = Plan { ranks: 3, sharing: 2, descriptors: 16, ..Plan::default() };
    (1..3).for_each(|to| arrives::<Par>(&mixed, to));
}

/// A Long to an unmapped segment travels in its message up to `packed_long`, beyond that by the NIC if there is one.
#[test]
fn a_long_goes_in_its_message_as_far_as_it_may() {
    for descriptors in [0, 16] {
        for (len, by_nic) in [(PACKED, false), (PACKED + 1, true), (MEDIUM, true), (MEDIUM + 1, true)] {
            let job = Job::<Par>::new(&Plan { descriptors, ..Plan::default() });
            let payload = pattern(len);
            let sent = job.engines[0].request(1, &message(Category::Long, &[], &payload));
            assert_eq!(sent.is_ok(), descriptors > 0 || len <= MEDIUM, "{len} bytes");
            let posts = if by_nic && descriptors > 0 { 1 } else { 0 };
            assert_eq!(job.nic(0).posts.len(), posts, "{len} bytes");
            if posts > 0 {
                assert_eq!(job.nic(0).posts[0].3, [2], "the key of rank 1");
                assert_eq!(job.engines[0].out(1), (1, 0), "nothing in the message");
            } else if sent.is_ok() {
                assert_eq!(job.engines[0].out(1), (1, len as u64));
            }
        }
    }
}

/// Payloads up to `MAX_INLINE` go through the mapped queues, larger ones through `Wire::send`.
#[test]
fn what_a_slot_holds_goes_by_the_queues() {
    for (len, sent) in [(0, 0), (MAX_INLINE - 1, 0), (MAX_INLINE, 0), (MAX_INLINE + 1, 1)] {
        let job = Job::<Par>::new(&Plan::kinds()[0]);
        assert_eq!(job.engines[0].request(1, &message(Category::Medium, &[], &pattern(len))), Ok(()));
        assert_eq!(job.wire(0).sent.len(), sent, "{len} bytes");
    }
}

/// Ranks 0 and 1 share memory, rank 2 is reached by the network.
#[test]
fn each_transport_has_its_own_limits_and_flow() {
    fn check<M: TestMode>() {
        let near = Flow { depth: 6, total: 64, volume: 6 * 1000 };
        let far = Flow { depth: 2, total: 64, volume: 2 * MEDIUM as u64 };
        let job = Job::<M>::new(&Plan {
            ranks: 3,
            sharing: 2,
            flow: far,
            near: Some((near, 1000)),
            ..Plan::default()
        });
        let engine = &job.engines[0];
        let limits = [0, 1, 2].map(|to| engine.limits(to).expect("it is there").max_medium);
        assert_eq!((limits, engine.max_medium()), ([1000, 1000, MEDIUM], MEDIUM), "to any: the least");
        assert_eq!([0, 1, 2].map(|to| engine.flow(to)), [Ok(near), Ok(near), Ok(far)]);
        assert!(engine.limits(3).is_err() && engine.flow(3).is_err());
        let payload = pattern(1000);
        let medium = |len: usize| message(Category::Medium, &[], &payload[..len]);
        let refused = |to, len| engine.try_request(to, &medium(len)).expect_err("it is too large");
        let max = 1000;
        let too_large = Error::PayloadTooLarge { category: Category::Medium, to: 1, len: 1001, max };
        assert_eq!(engine.request(1, &message(Category::Medium, &[], &pattern(1001))), Err(too_large));
        assert!(!refused(2, MEDIUM + 1).is_busy());
        let ask = Ask { category: Category::Medium, least: 0, most: 5000, landing: None, source: None };
        for to in [1, 2] {
            assert_eq!(engine.prepare(to, &ask).expect("room").granted(), limits[to as usize]);
        }
        // Neither runs out with the other.
        let fill = |to, times: u32| {
            (0..times).for_each(|_| assert_eq!(engine.try_request(to, &medium(limits[to as usize])), Ok(())));
            assert!(engine.try_request(to, &medium(0)).expect_err("no credit is left").is_busy());
        };
        fill(2, 2);
        fill(1, 6);
        let out_to = vec![(1, (6, 6), 6000), (2, (2, 2), 2 * MEDIUM as u64)];
        assert_eq!((engine.peek().out, engine.peek().out_to), ((8, 128), out_to));
        job.poll();
        let mut lens: Vec<_> = job.seen().iter().map(|seen| (seen.at, seen.payload.len())).collect();
        lens.sort_unstable();
        assert_eq!(lens, [[(1, 1000); 6].to_vec(), [(2, MEDIUM); 2].to_vec()].concat());
        job.assert_quiet();
        // A quarter of the volume that may be under way to the one that returns it, and no less.
        assert_eq!((job.credits_sent(1), job.credits_sent(2)), (vec![(0, 2); 3], vec![(0, 1); 2]));
    }
    in_every_mode!(check);
}

#[test]
fn what_no_message_holds_is_refused() {
    fn check<M: TestMode>() {
        for plan in Plan::kinds() {
            let job = Job::<M>::new(&plan);
            let engine = &job.engines[0];
            assert_eq!((engine.max_medium(), engine.max_long()), (MEDIUM, LONG as u64));
            let limits = engine.limits(1).expect("it is there");
            let max = CATEGORIES.map(|category| limits.max_payload(category));
            assert_eq!(max, [0, MEDIUM as u64, LONG as u64]);
            for to in [0, 1] {
                for (category, max) in CATEGORIES.into_iter().zip(max) {
                    let payload = pattern(max as usize + 1);
                    let refused = Error::PayloadTooLarge { category, to, len: payload.len(), max };
                    let sent = engine.request(to, &message(category, &[], &payload));
                    assert_eq!(sent.as_ref(), Err(&refused));
                    assert_eq!(engine.try_request(to, &message(category, &[], &payload)), sent);
                    for bytes in [1, 3, 63, 66, 4 * MAX_ARGS + 4] {
                        let refused = Err(Error::Arguments { bytes });
                        assert_eq!(engine.request(to, &message(category, &vec![0; bytes], &[])), refused);
                    }
                }
                let beyond =
                    Outgoing { landing: SEGMENT as u64 - 7, ..message(Category::Long, &[], &[1; 8]) };
                let refused = engine.request(to, &beyond).expect_err("outside");
                let outside = MemoryError::OutsideSegment { rank: to, offset: 4089, len: 8, segment: 4096 };
                assert_eq!(refused, Error::Memory { during: "long message", cause: outside });
            }
            for rank in [2, 3, u32::MAX] {
                let cause = MemoryError::NoSuchRank { rank, ranks: 2 };
                let refused = Error::Memory { during: "active message request", cause };
                assert_eq!(engine.request(rank, &SHORT), Err(refused));
            }
            job.assert_quiet();
            assert!(job.seen().is_empty());
            // A Long of no bytes lands nowhere: only its address is delivered.
            for to in [0, 1] {
                let nowhere = Outgoing { landing: u64::MAX, ..message(Category::Long, &[], &[]) };
                assert_eq!(engine.request(to, &nowhere), Ok(()));
                job.poll();
                assert_eq!(job.seen().pop().and_then(|seen| seen.landed), Some(u64::MAX));
            }
        }
    }
    in_every_mode!(check);
}

/// `try_request` names the limit that is reached, and `request` waits until the peer returns credits.
#[test]
fn a_request_waits_for_what_is_short() {
    fn check<M: TestMode>() {
        let usual = Flow { depth: 4, total: 64, volume: 0 };
        let (short, medium) = (message(Category::Short, &[], &[]), [5; MEDIUM]);
        let medium = message(Category::Medium, &[], &medium);
        let rows = [
            (usual, short, 4, "no credit left for that rank"),
            (Flow { total: 3, ..usual }, short, 3, "no credit left for any rank"),
            (usual, medium, 2, "too many bytes under way to that rank"),
        ];
        for (flow, message, fit, what) in rows {
            for plan in &Plan::kinds()[..2] {
                let job = Job::<M>::new(&Plan { flow, ..plan.clone() });
                let engine = &job.engines[0];
                (0..fit).for_each(|_| assert_eq!(engine.try_request(1, &message), Ok(())));
                let out = (fit, u64::from(fit) * message.payload.len() as u64);
                let busy = engine.try_request(1, &message).expect_err("it is short");
                assert_eq!((&busy, busy.is_busy()), (&Error::Busy { to: 1, what }, true));
                assert_eq!(engine.out(1), out);
                let peek = engine.peek();
                assert_eq!((peek.out.0, peek.out_to), (fit, vec![(1, (out.0, 4), out.1)]));
                let other = job.engines[1].clone();
                let turn = move || _ = other.poll().expect("nothing is wrong");
                assert_eq!(with_peers(turn, || engine.request(1, &message)), Ok(()));
                job.poll();
                assert_eq!(job.seen().len(), fit as usize + 1);
                job.assert_quiet();
            }
        }
    }
    in_every_mode!(check);
}

/// A request that finds no room in the transport gives its credit back, and owed credits stay owed.
#[test]
fn a_message_without_room_takes_nothing() {
    let flow = Flow { depth: 64, total: 640, volume: 0 };
    let job = Job::<Seq>::new(&Plan { flow, ..Plan::kinds()[0].clone() });
    assert_eq!(job.engines[1].try_request(0, &SHORT), Ok(()));
    assert_eq!(job.engines[0].poll(), Ok(1));
    assert_eq!(job.engines[0].peek().owed_to, [(1, 1)]);
    let mut sent = 0;
    let full = loop {
        match job.engines[0].try_request(1, &SHORT) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((sent, full), (SLOTS, Error::Wire(WireError::Busy { to: 1 })));
    assert_eq!(job.engines[0].peek().owed_to, vec![], "it went with the first");
    // Owed again, and not lost with a message that finds no room.
    assert_eq!(job.engines[1].try_request(0, &SHORT), Ok(()));
    assert_eq!(job.engines[0].poll(), Ok(1));
    assert!(job.engines[0].try_request(1, &SHORT).is_err_and(|error| error.is_busy()));
    assert_eq!((job.engines[0].peek().owed_to, job.engines[0].out(1).0), (vec![(1, 1)], SLOTS as u32));
    job.engines[1].poll().expect("one is taken");
    assert_eq!(job.engines[1].peek().owed_to, [(0, 1)]);
    job.wire(1).refuse_room.push_back(WireError::Busy { to: 0 });
    let medium = message(Category::Medium, &[], &[1; MAX_INLINE + 1]);
    assert_eq!(job.engines[1].try_request(0, &medium), Err(Error::Wire(WireError::Busy { to: 0 })));
    assert_eq!((job.engines[1].peek().owed_to, job.engines[1].out(0)), (vec![(0, 1)], (1, 0)));
    job.poll();
    job.assert_quiet();
    assert_eq!(job.seen().len(), SLOTS + 2);
}

/// When the transport refuses a reply, the credits that it carried stay owed.
#[test]
fn a_reply_that_does_not_leave_returns_nothing() {
    let gone = WireError::PeerGone { rank: 0 };
    let job = Job::<Par>::new(&Plan { flow: Flow { depth: 16, total: 64, volume: 0 }, ..Plan::default() });
    let medium = message(Category::Medium, &[], &[1; 10]);
    for _ in 0..2 {
        assert_eq!(job.engines[0].try_request(1, &medium), Ok(()));
        assert_eq!(job.engines[1].poll(), Ok(1));
    }
    let answer = |category| Answer { category, args: vec![], payload: vec![], landing: 0 };
    for (category, owed) in CATEGORIES.into_iter().zip(3..) {
        job.answer(Some(answer(category)));
        job.wire(1).refuse_commit.push_back(gone.clone());
        assert_eq!(job.engines[0].try_request(1, &medium), Ok(()));
        assert_eq!(job.engines[1].poll(), Ok(1));
        assert_eq!(job.replied(), [Err(Error::Wire(gone.clone()))], "{category}");
        assert_eq!(job.engines[1].peek().owed_to, [(0, owed)], "{category}");
    }
    // One that leaves takes along what is owed.
    assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(()));
    job.answer(None);
    job.engines[1].poll().expect("it is handled");
    job.answer(Some(answer(Category::Short)));
    assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(()));
    job.engines[1].poll().expect("it is handled");
    let head = job.wire(1).sent.pop().expect("a reply").2;
    assert_eq!(decode(&head).expect("a head").returned.count, 7);
    job.poll();
    job.assert_quiet();
}

/// A rank returns credits when it owes half of the depth, in an idle poll, and in every 32nd poll.
#[test]
fn credits_come_back_by_halves_and_now_and_then() {
    for (depth, at) in [(1, 1), (2, 1), (3, 1), (8, 4), (9, 4)] {
        let flow = Flow { depth, total: 64, volume: 0 };
        let job = Job::<Seq>::new(&Plan { flow, ..Plan::default() });
        for handled in 1..=at {
            assert_eq!(job.credits_sent(1), vec![], "{handled} of {depth}");
            assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(()));
            assert_eq!(job.engines[1].poll(), Ok(1));
        }
        assert_eq!(job.credits_sent(1), [(0, at as u8)], "{depth}");
    }
    for plan in &Plan::kinds()[..2] {
        let flow = Flow { depth: 1000, total: 4000, volume: 0 };
        let job = Job::<Seq>::new(&Plan { flow, ..plan.clone() });
        for polls in 1..=64 {
            assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(()));
            assert_eq!(job.engines[1].poll(), Ok(1));
            assert_eq!(job.engines[1].peek().polls, polls);
            assert_eq!(job.credits_sent(1), [(0, 32); 2][..polls as usize / 32]);
        }
        assert_eq!(job.engines[0].try_request(1, &SHORT), Ok(()));
        assert_eq!((job.engines[1].poll(), job.credits_sent(1).len()), (Ok(1), 2));
        assert_eq!((job.engines[1].poll(), job.credits_sent(1).len()), (Ok(0), 3), "there is nothing to do");
    }
}

/// A message returns at most 255 credits, and the peers take turns.
#[test]
fn many_credits_come_back_in_turn() {
    let flow = Flow { depth: 2000, total: 60_000, volume: 0 };
    let job = Job::<Seq>::new(&Plan { ranks: 3, flow, ..Plan::default() });
    for _ in 0..300 {
        (0..2).for_each(|from| assert_eq!(job.engines[from].try_request(2, &SHORT), Ok(())));
    }
    // 1, 2, 4, 8 and 16 messages, then 20 at a time: before the 32nd poll none is returned.
    let polled = (0..31).map(|_| job.engines[2].poll().expect("nothing is wrong")).sum::<usize>();
    assert_eq!((polled, job.credits_sent(2)), (551, vec![]));
    assert_eq!(job.engines[2].peek().owed_to, [(0, 276), (1, 275)]);
    assert_eq!(job.engines[2].poll(), Ok(20));
    assert_eq!(job.credits_sent(2), [(0, 255), (1, 255), (0, 31), (1, 30)]);
    job.poll();
    job.assert_quiet();
}

/// A reply carries the credit of its request.
#[test]
fn a_reply_returns_the_credit_of_its_request() {
    for plan in Plan::kinds() {
        let job = Job::<Par>::new(&plan);
        for category in CATEGORIES {
            job.answer(Some(Answer { category, args: vec![], payload: vec![], landing: 0 }));
            assert_eq!(job.engines[0].try_request(1, &message(Category::Medium, &[], &[3; 9])), Ok(()));
            assert_eq!(job.engines[0].out(1), (1, 9));
            assert_eq!((job.engines[1].poll(), job.engines[1].peek().owed_to), (Ok(1), vec![]));
            assert_eq!((job.engines[0].poll(), job.engines[0].out(1)), (Ok(1), (0, 0)));
            assert!(job.engines[0].peek().owed_to.is_empty(), "a reply is owed nothing");
        }
        assert!(job.wire(1).sent.iter().all(|(_, class, _)| *class == Class::Reply));
    }
}
