//! Observed jobs, over shared memory and over a network.

use crate::fake::*;
use crate::in_every_mode;
use crate::messages::pattern;
use gasworks_core::observe::{Event, Op, Recorder, Recording, Tally, What, create};
use gasworks_core::{Ask, Category, Commit, Outgoing, WireError};
use gasworks_os::memfd::MemFd;
use gasworks_sync::Par;
use std::os::fd::AsFd;
use std::sync::Arc;

fn recorders(ranks: u32) -> (Vec<MemFd>, Vec<Arc<Recorder>>) {
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

/// What a transport refuses, gives back or finds is told, once, and its answer is the engine's; one with mapped queues is called like any
/// other.
#[test]
fn what_transports_answer_is_told() {
    for sharing in [0, 2] {
        let (files, recorders) = recorders(2);
        let job = Job::<Par>::new(&Plan { sharing, recorders, ..Plan::default() });
        let tallies = || {
            let all = Recording::read(&files[0]).expect("a recording");
            [Tally::Busy, Tally::Cancelled, Tally::Polls, Tally::EmptyPolls].map(|tally| all.tally(tally))
        };
        let engine = &job.engines[0];
        let handler = REQUEST[Category::Medium as usize];
        let ask = Ask { category: Category::Medium, least: 8, most: 8, landing: None, source: None };
        let commit = Commit { handler, args: &[], len: 8, landing: 0, source: None };
        let request =
            Outgoing { category: Category::Medium, handler, args: &[], payload: &[1; 8], landing: 0 };
        engine.try_prepare(1, &ask).expect("room").cancel();
        assert_eq!((job.wire(0).cancelled, tallies()), (1, [0, 1, 0, 0]));
        // What is refused is not counted as sent; that there was no room is.
        job.wire(0).refuse_commit.push_back(WireError::PeerGone { rank: 1 });
        assert!(engine.try_prepare(1, &ask).expect("room").commit(&commit).is_err());
        for (refused, busy) in [(WireError::PeerGone { rank: 1 }, 0), (WireError::Busy { to: 1 }, 1)] {
            job.wire(0).refuse_room.push_back(refused.clone());
            assert_eq!(engine.try_prepare(1, &ask).map(drop), Err(refused.clone().into()));
            job.wire(0).refuse_room.push_back(refused);
            assert!(engine.try_request(1, &request).is_err());
            assert_eq!(tallies()[0], 2 * busy);
        }
        assert!(Recording::read(&files[0]).expect("a recording").events.is_empty());
        // Looks that find nothing, one that fails, and what is no head.
        assert_eq!((engine.poll(), tallies()), (Ok(0), [2, 1, 1, 1]));
        job.wire(0).broken = Some(WireError::PeerGone { rank: 1 });
        assert!(engine.poll().is_err() && tallies() == [2, 1, 1, 1]);
        if sharing == 0 {
            job.fabric.post(1, 0, &[1, 2, 3], &[]);
            assert!(engine.poll().is_err() && tallies() == [2, 1, 2, 1]);
        }
        let polls = std::cell::Cell::new(0);
        let done = || polls.replace(polls.get() + 1) > 1;
        assert_eq!(engine.wait_until(done), Ok(()));
        let slept = u64::from(job.wire(0).armed);
        let all = Recording::read(&files[0]).expect("a recording");
        let sleeps = all.events.iter().filter(|event| event.what == What::Sleep);
        let time = sleeps.clone().map(|event| event.end - event.start).sum::<u64>();
        assert_eq!((sleeps.count() as u64, all.tally(Tally::Sleeps)), (slept, slept));
        assert!(slept > 0 && all.tally(Tally::SleepTime) == time);
        assert_eq!(all.total(Op::RequestMedium), (0, 0));
    }
}

/// Ranks 0 and 1 share memory, and reach rank 2 by another transport: every message is told once, whatever carries it.
#[test]
fn messages_by_several_transports_are_told_once() {
    let (files, recorders) = recorders(3);
    let plan = Plan { ranks: 3, sharing: 2, recorders, ..Plan::default() };
    let job = Job::<Par>::new(&plan);
    job.answer(Some(Answer { category: Category::Short, args: vec![], payload: vec![], landing: 0 }));
    let handler = REQUEST[Category::Short as usize];
    let request = Outgoing { category: Category::Short, handler, args: &[], payload: &[], landing: 0 };
    for from in 0..3 {
        (0..3).filter(|&to| to != from).for_each(|to| {
            assert_eq!(job.engines[from as usize].request(to, &request), Ok(()));
        });
    }
    job.poll();
    assert_eq!(job.seen().len(), 12);
    let ops = [Op::RequestShort, Op::HandledRequestShort, Op::ReplyShort, Op::HandledReplyShort];
    for file in &files {
        let all = Recording::read(file).expect("a recording");
        assert_eq!(ops.map(|op| all.total(op)), [(2, 0); 4]);
    }
}
