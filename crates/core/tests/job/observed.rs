//! Observed jobs, over shared memory and over a network.

use crate::fake::*;
use crate::in_every_mode;
use crate::messages::pattern;
use gasworks_core::observe::{Event, Observed, Observer, Op, Recorder, Recording, Tally, What, create};
use gasworks_core::{Category, Class, Outgoing, Wire, WireError};
use gasworks_os::memfd::MemFd;
use gasworks_sync::Par;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

fn recorders(ranks: u32) -> (Vec<MemFd>, Vec<std::sync::Arc<Recorder>>) {
    let join = |rank| {
        let file = create(1000).expect("a file");
        let recorder = Recorder::join(file.as_fd(), rank).expect("a recorder");
        (file, recorder)
    };
    (0..ranks).map(join).unzip()
}

/// Each message is counted at its sender and at its receiver, with the same number.
#[test]
fn what_an_observed_job_does_is_recorded() {
    fn check<M: TestMode>() {
        for plan in Plan::kinds() {
            let (files, recorders) = recorders(2);
            let job = Job::<M>::new(&Plan { recorders, ..plan.clone() });
            for to in [1, 0] {
                for (category, len) in CATEGORIES.into_iter().zip([0, 100, 300]) {
                    let (payload, landing) = (pattern(len), 16);
                    job.answer(Some(Answer { category, args: vec![], payload: payload.clone(), landing }));
                    let handler = REQUEST[category as usize];
                    let request = Outgoing { category, handler, args: &[], payload: &payload, landing };
                    assert_eq!(job.engines[0].request(to, &request), Ok(()));
                    // Where headers leave beside their payloads, they do so though they are observed.
                    if category == Category::Long && plan.beside && to == 1 {
                        assert_eq!(job.wire(0).cancelled, 0);
                    }
                    job.poll();
                }
            }
            assert_eq!(job.seen().len(), 12);
            job.assert_quiet();
            let [mine, theirs] =
                [&files[0], &files[1]].map(|file| Recording::read(file).expect("a recording"));
            let requests = [Op::RequestShort, Op::RequestMedium, Op::RequestLong];
            let replies = [Op::ReplyShort, Op::ReplyMedium, Op::ReplyLong];
            let handled = [Op::HandledRequestShort, Op::HandledRequestMedium, Op::HandledRequestLong];
            let got = [Op::HandledReplyShort, Op::HandledReplyMedium, Op::HandledReplyLong];
            let totals = |all: &Recording, ops: [Op; 3]| ops.map(|op| all.total(op));
            let (once, twice) = ([(1, 0), (1, 100), (1, 300)], [(2, 0), (2, 200), (2, 600)]);
            assert_eq!((totals(&mine, requests), totals(&mine, got)), (twice, twice));
            assert_eq!((totals(&mine, replies), totals(&mine, handled)), (once, once), "of its own");
            assert_eq!((totals(&theirs, replies), totals(&theirs, handled)), (once, once));
            assert_eq!((totals(&theirs, requests), totals(&theirs, got)), ([(0, 0); 3], [(0, 0); 3]));
            // What left one rank for the other is what the other handled, in order.
            let flows = |all: &Recording, what: What, peer| {
                let about = |event: &&Event| event.what == what && event.peer == Some(peer);
                let of = |event: &Event| (event.flow, event.category, event.handler, event.bytes);
                all.events.iter().filter(about).map(of).collect::<Vec<_>>()
            };
            for (sent, handled) in
                [(What::SendRequest, What::HandleRequest), (What::SendReply, What::HandleReply)]
            {
                for ((a, peer), (b, from)) in
                    [((&mine, 1), (&theirs, 0)), ((&theirs, 0), (&mine, 1)), ((&mine, 0), (&mine, 0))]
                {
                    let flows = (flows(a, sent, peer), flows(b, handled, from));
                    assert_eq!(flows.0, flows.1);
                    assert!(flows.0.iter().all(|flow| flow.0 != 0));
                }
            }
        }
    }
    in_every_mode!(check);
}

/// An observed transport passes every call on, and returns what the inner one returns.
#[test]
fn an_observed_transport_is_the_one_inside() {
    let (files, recorders) = recorders(2);
    let job = Job::<Par>::new(&Plan { beside: true, ..Plan::default() });
    let wire = Observed::new(Arc::new(Observer::new(recorders[0].clone(), 0, 2)), job.net(0));
    let tally = |tally| Recording::read(&files[0]).expect("a recording").tally(tally);
    let limits = wire.limits();
    assert_eq!(
        (wire.name(), limits.max_medium, limits.max_long, limits.packed_long),
        ("net", MEDIUM, LONG as u64, PACKED)
    );
    assert_eq!((wire.is_of_first_domain(), wire.is_settled()), (false, true));
    job.wire(0).of_first_domain = true;
    job.wire(0).unsettled = 1;
    assert_eq!((wire.is_of_first_domain(), wire.is_settled()), (true, false));
    wire.wake();
    wire.closed();
    let log = job.wire(0);
    assert_eq!((log.woken, log.closed), (1, 1));
    drop(log);
    assert!(wire.queues().is_none());
    // The number of a header's room is the transport's.
    let mut room = wire.reserve(1, Class::Request, 8).expect("room");
    assert_eq!(wire.beside(&mut room), Some(room.ticket[0] as u32));
    wire.cancel(room);
    assert_eq!((job.wire(0).cancelled, tally(Tally::Cancelled)), (1, 1));
    job.wire(0).beside = false;
    let mut room = wire.reserve(1, Class::Request, 8).expect("room");
    assert_eq!(wire.beside(&mut room), None);
    // What is refused is not counted as sent; that there was no room is.
    job.wire(0).refuse_commit.push_back(WireError::PeerGone { rank: 1 });
    assert!(wire.commit(room, &[0; 8]).is_err());
    for (refused, busy) in [(WireError::PeerGone { rank: 1 }, 0), (WireError::Busy { to: 1 }, 1)] {
        job.wire(0).refuse_room.push_back(refused.clone());
        assert_eq!(wire.reserve(1, Class::Request, 8).map(drop), Err(refused.clone()));
        assert_eq!(tally(Tally::Busy), 2 * busy - busy);
        job.wire(0).refuse_room.push_back(refused.clone());
        assert_eq!(wire.send(1, Class::Request, 0, &[], &[]), Err(refused));
        assert_eq!(tally(Tally::Busy), 2 * busy);
    }
    assert!(Recording::read(&files[0]).expect("a recording").events.is_empty());
    // Looks that find nothing, and what is no head: the engine is about to find out.
    assert_eq!((wire.poll(3, &mut |_| ()), tally(Tally::Polls), tally(Tally::EmptyPolls)), (Ok(0), 1, 1));
    job.fabric.post(1, 0, &[1, 2, 3], &[]);
    let mut heads = Vec::new();
    assert_eq!(wire.poll(3, &mut |arrived| heads.push(arrived.head.to_vec())), Ok(1));
    assert_eq!((heads, tally(Tally::Polls), tally(Tally::EmptyPolls)), (vec![vec![1, 2, 3]], 2, 1));
    job.wire(0).broken = Some(WireError::PeerGone { rank: 1 });
    assert!(wire.poll(3, &mut |_| ()).is_err());
    assert_eq!((&job.wire(0).bursts[..], tally(Tally::Polls)), (&[3, 3, 3][..], 2));
    wire.sleep(Duration::from_secs(7), &|| false).expect("slept");
    assert_eq!(job.wire(0).slept, [(Duration::from_secs(7), false)]);
    let all = Recording::read(&files[0]).expect("a recording");
    let slept = all.events.iter().find(|event| event.what == What::Sleep).expect("a sleep");
    assert_eq!((all.tally(Tally::Sleeps), all.tally(Tally::SleepTime)), (1, slept.end - slept.start));
    assert_eq!(all.total(Op::RequestShort), (0, 0));
}
