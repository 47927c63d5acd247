//! Put, get and the dissemination barrier on engines put together by hand, below the facade.
#![allow(unsafe_code)]

mod sim;

use gasworks_conformance::simnet::{self, SimConfig, SimRank};
use gasworks_core::{
    Also, Category, Domains, Engine, Entry, Error as CoreError, Flow, Handlers, Incoming, Name, Outgoing,
    Parts, Patience, Policy, Signature, Wire,
};
use gasworks_extended::barrier::Way;
use gasworks_extended::barrier::messages::{Algorithm, Messages};
use gasworks_extended::{Barrier, Error, rma};
use gasworks_memory::{Peer, PeerFlags, RegionTable};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::{Par, RawSlice, Seq};
use std::sync::Arc;
use std::time::Duration;

/// An engine over the net's wire, without a NIC; peers are mapped or not as the net has it.
fn engine(rank: &SimRank, algorithm: Algorithm) -> Result<(Engine<Seq>, Barrier<Seq>), CoreError> {
    let ranks = rank.config().ranks;
    let peer = |number| {
        let mapped = rank.peer_segment(number);
        let mut flags = PeerFlags::empty();
        flags.set(PeerFlags::SELF, number == rank.rank());
        flags.set(PeerFlags::MAPPED, mapped.is_some());
        let len = rank.segment().len() as u64;
        let mapped = mapped.map_or(RawSlice::EMPTY, |mapped| mapped.raw());
        Peer { mapped, len, remote_base: 0, key: Vec::new(), flags }
    };
    let handlers = Handlers::new();
    let state = Messages::register::<Seq>(algorithm, rank.rank(), ranks, &handlers, |state| {
        Box::new(move |step: &Incoming<'_, Seq>| {
            state.hear(step.args());
            Ok(())
        })
    })?;
    // SAFETY: `rank` holds the net, of which the segments are blocks, and the table is given a clone of it to keep.
    let peers = unsafe { RegionTable::new((0..ranks).map(peer), Arc::new(rank.clone())) };
    let engine = sim::engine(rank, handlers, peers);
    Ok((engine, Barrier::new(Way::Messages(state))))
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come() {
    let jobs = [(1, 0), (2, 1), (3, 2), (4, 3), (7, 4)];
    let ways = [Algorithm::Dissemination, Algorithm::Central];
    for ((ranks, seed), way) in jobs.into_iter().flat_map(|job| ways.map(|way| (job, way))) {
        let arrived = AtomicU64::new(0);
        let result = simnet::run(SimConfig::varied(ranks, seed), |rank| {
            let (engine, barrier) = engine(&rank, way)?;
            for phase in 1..=40u64 {
                arrived.fetch_add(1, Ordering::Relaxed);
                // In turn: nobody names it, one rank does, all agree, one does not, one knows of a mismatch.
                let odd = u64::from(rank.rank()) == phase % u64::from(ranks);
                let (name, agreed) = match phase % 5 {
                    0 => (Name::Any, Name::Any),
                    1 => (if odd { Name::Is(7) } else { Name::Any }, Name::Is(7)),
                    2 => (Name::Is(u32::MAX), Name::Is(u32::MAX)),
                    3 => (Name::Is(odd.into()), if ranks == 1 { Name::Is(1) } else { Name::Mismatch }),
                    _ => (if odd { Name::Mismatch } else { Name::Any }, Name::Mismatch),
                };
                let number = barrier.begin(&engine, name)?;
                assert_eq!(number, phase);
                let twice = barrier.begin(&engine, name);
                assert!(twice.is_err_and(|e| e.to_string().contains("begun twice")));
                assert_eq!(barrier.under_way(), Some((phase, name)));
                let found = if phase == 10 {
                    assert_eq!(
                        barrier.wait(&engine, number, Name::Is(1))?,
                        Name::Mismatch,
                        "ended by another"
                    );
                    agreed
                } else {
                    barrier.wait(&engine, number, name)?
                };
                assert_eq!(found, agreed, "phase {phase} of {ranks} ranks, {way:?}");
                let seen = arrived.load(Ordering::Relaxed);
                assert!(seen >= phase * u64::from(ranks), "phase {phase}: {seen} arrivals of {ranks} ranks");
                assert!(barrier.test(&engine, number, name).is_err(), "a finished phase is tested again");
            }
            Ok::<_, Error>(())
        });
        let ended = result.unwrap_or_else(|error| panic!("{error}"));
        ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
    }
}

/// A rank that has begun a phase and polls for other reasons passes the word on: the others need not wait until it asks.
#[test]
fn a_phase_goes_on_while_nobody_asks_about_it() {
    let (asked, polled) = (AtomicU64::new(0), AtomicU64::new(0));
    let result = simnet::run(SimConfig::varied(3, 9), |rank| {
        let (engine, barrier) = engine(&rank, Algorithm::Dissemination)?;
        for phase in 1..=20 {
            let number = barrier.begin(&engine, Name::Any)?;
            if rank.rank() == 0 {
                // All others are through before it asks.
                while asked.load(Ordering::SeqCst) < 2 * phase {
                    engine.poll()?;
                    std::thread::yield_now();
                }
                assert_eq!(barrier.wait(&engine, number, Name::Any)?, Name::Any);
                polled.store(phase, Ordering::SeqCst);
            } else {
                barrier.wait(&engine, number, Name::Any)?;
                asked.fetch_add(1, Ordering::SeqCst);
                while polled.load(Ordering::SeqCst) < phase {
                    engine.poll()?;
                    std::thread::yield_now();
                }
            }
        }
        Ok::<_, Error>(())
    });
    let ended = result.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}

#[test]
fn mapped_puts_and_gets_are_done_at_once() {
    let config = SimConfig { mapped: true, ..SimConfig::varied(2, 5) };
    let result = simnet::run(config, |rank| {
        let (engine, barrier) = engine(&rank, Algorithm::Dissemination)?;
        let other = 1 - rank.rank();
        let at = |rank, offset| engine.everyone().at(rank, offset);
        let mine = [rank.rank() as u8 + 1; 33];
        rma::put(&engine, at(other, 7), &mine)?;
        let number = barrier.begin(&engine, Name::Any)?;
        barrier.wait(&engine, number, Name::Any)?;
        let mut back = [0u8; 33];
        rma::get(&engine, at(rank.rank(), 7), &mut back)?;
        assert_eq!(back, [other as u8 + 1; 33]);
        // SAFETY: rma.1: the peer is mapped, so the get is over when the call returns; `back` has its 33 bytes and is not used meanwhile.
        let (event, kept) =
            unsafe { rma::get_nb(&engine, at(other, 7), back.as_mut_ptr(), 33, None, false)? };
        assert!(event.is_done() && kept.is_none());
        assert_eq!(back, mine);
        let len = engine.peers().len_of(other).unwrap_or(0);
        let outside = rma::put(&engine, at(other, len - 32), &mine).map_err(|e| e.to_string());
        assert!(outside.is_err_and(|e| e.contains("outside the segment of rank")));
        assert_eq!(rma::put(&engine, at(other, len), &[]), Ok(()));
        Ok::<_, Error>(())
    });
    let ended = result.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}

#[test]
fn an_unmapped_peer_without_a_network_is_an_error() {
    let config = SimConfig { mapped: false, ..SimConfig::varied(2, 6) };
    let result = simnet::run(config, |rank| {
        let (engine, _) = engine(&rank, Algorithm::Dissemination)?;
        let error =
            rma::put(&engine, engine.everyone().at(1 - rank.rank(), 0), &[1]).map_err(|e| e.to_string());
        assert!(error.is_err_and(|e| e.contains("is not mapped here and no network transport is open")));
        Ok::<_, Error>(())
    });
    let ended = result.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}

/// Sleeps are a minute here, so a thread that is not woken by what another one handled breaks the watchdog. The net
/// refuses nothing by chance: nothing would end a sleep after that.
#[test]
fn a_thread_that_sleeps_is_woken_by_what_another_handles() {
    woken(false);
}

/// The thread that handles learns of the failure; what was done before it failed was done all the same.
#[test]
fn a_thread_that_sleeps_is_woken_by_what_another_fails_to_handle() {
    woken(true);
}

fn woken(fails: bool) {
    let config =
        SimConfig { mapped: true, busy: 0, watchdog: Duration::from_secs(10), ..SimConfig::varied(1, 7) };
    let result = simnet::run(config, |rank| {
        let handled = Arc::new(AtomicU64::new(0));
        let handlers = Handlers::<Par>::new();
        let count = handled.clone();
        let signature = Signature {
            name: "count".into(),
            category: Category::Short,
            reply: false,
            nargs: 0,
            also: Also::empty(),
        };
        let function = Box::new(move |_: &Incoming<'_, Par>| {
            // Long enough that the other thread, woken by the arrival, finds nothing and falls asleep again.
            std::thread::sleep(Duration::from_micros(300));
            count.fetch_add(1, Ordering::Relaxed);
            let what = "as it was told to".into();
            if fails { Err(CoreError::Handler { from: 0, what }.into()) } else { Ok(()) }
        });
        let expected = |outcome: Result<(), CoreError>| match outcome {
            Err(CoreError::Handler { .. }) if fails => Ok(()),
            other => other,
        };
        let handler = handlers.register(None, Entry { signature, function })?;
        let minute = Duration::from_secs(60);
        let own =
            Peer { mapped: RawSlice::EMPTY, len: 0, remote_base: 0, key: Vec::new(), flags: PeerFlags::SELF };
        let parts = Parts {
            rank: 0,
            wires: vec![Box::new(rank.wire().with_flow(Flow { depth: 4, total: 4, volume: 0 }))
                as Box<dyn Wire<Par> + Send + Sync>],
            route: vec![0],
            // SAFETY: `own`, the only peer, maps no bytes, so there is nothing to keep.
            peers: unsafe { RegionTable::new(vec![own], Arc::new(())) },
            rdma: Domains::none(),
            patience: Patience::new(Policy {
                spins: 0,
                yields: 0,
                first_sleep: minute,
                longest_sleep: minute,
            }),
            process_vm: false,
            handlers,
            observer: None,
        };
        let engine = Engine::<Par>::new(parts);
        let message = Outgoing { category: Category::Short, handler, args: &[], payload: &[], landing: 0 };
        for round in 1..=200u64 {
            let done = || handled.load(Ordering::Relaxed) == round;
            std::thread::scope(|scope| {
                let sleeper = scope.spawn(|| engine.wait_until(done));
                std::thread::sleep(Duration::from_micros(200)); // time to fall asleep; not needed for the result
                engine.request(0, &message)?;
                while !done() {
                    expected(engine.poll().map(drop))?;
                }
                expected(sleeper.join().unwrap_or(Ok(())))
            })?;
        }
        Ok::<_, CoreError>(())
    });
    let ended = result.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}
