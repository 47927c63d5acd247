//! Arrays of events against a plain model: on a rank that puts and gets to itself through a simulated NIC, events are
//! started, roots, leaves and regions put into arrays in any order, and what testing an array does to each entry is
//! foretold from what its leaf for everything says beforehand.
#![allow(unsafe_code)]

use gasworks_conformance::simnet::{self, SimConfig, SimRank};
use gasworks_core::{Categories, Domains, Engine, Flow, Handlers, Parts, Patience, Policy, Rdma, Wire};
use gasworks_extended::event::{self, Event};
use gasworks_extended::rma::{self, Local, Options};
use gasworks_extended::{Error, Implicit};
use gasworks_memory::{Peer, PeerFlags, RegionTable};
use gasworks_sync::{RawSlice, Seq};
use proptest::prelude::*;
use std::sync::Arc;

/// An engine of one rank whose segment is reached by the NIC alone.
fn engine(rank: &SimRank) -> Result<Engine<Seq>, Error> {
    let nic: Box<dyn gasworks_rdma::Nic> = Box::new(rank.nic());
    let tuning = gasworks_rdma::Tuning { descriptors: 6, ..Default::default() };
    // SAFETY: the auxiliary memory is a block of the net, which the NIC in the engine holds; nobody else is given it.
    let rdma = unsafe { Rdma::<Seq, dyn gasworks_rdma::Nic>::new(nic, rank.aux().raw(), &tuning) };
    let rdma = rdma.expect("an engine");
    // SAFETY: the segment is a block of the net, which the NIC in the engine holds.
    let key = unsafe { rdma.register(rank.segment().raw()) }.expect("a registration");
    let (len, flags) = (rank.segment().len() as u64, PeerFlags::SELF);
    let own = Peer { mapped: RawSlice::EMPTY, len, remote_base: 0, key: key.0, flags };
    let parts = Parts {
        rank: 0,
        wires: vec![
            Box::new(rank.wire().with_flow(Flow { depth: 2, total: 3, volume: 0 })) as Box<dyn Wire<Seq>>
        ],
        route: vec![0],
        // SAFETY: `own`, the only peer, maps no bytes, so there is nothing to keep.
        peers: unsafe { RegionTable::new(vec![own], Arc::new(rank.clone())) },
        rdma: Domains::one(rdma),
        patience: Patience::new(Policy::for_host(1, 1)),
        process_vm: false,
        handlers: Handlers::new(),
        observer: None,
    };
    Ok(Engine::new(parts))
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, Local),
    Value(u64, usize),
    Get(usize),
    Region(usize),
    Leaf(usize, Categories),
    Poll(usize),
    TestAll(u64),
    TestSome(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let local = prop::sample::select(vec![Local::Now, Local::Defer, Local::Apart]);
    let part = prop::sample::select(vec![Categories::LOCAL, Categories::PUT, Categories::GET]);
    let step = prop_oneof![
        (0usize..4000, local).prop_map(|(len, local)| Step::Put(len, local)),
        (any::<u64>(), 1usize..=8).prop_map(|(value, bytes)| Step::Value(value, bytes)),
        (0usize..4000).prop_map(Step::Get),
        (0usize..5).prop_map(Step::Region),
        (any::<usize>(), part).prop_map(|(at, part)| Step::Leaf(at, part)),
        (0usize..4).prop_map(Step::Poll),
        any::<u64>().prop_map(Step::TestAll),
        any::<u64>().prop_map(Step::TestSome),
    ];
    prop::collection::vec(step, 1..50)
}

/// What puts are made of: it is never written, so it may be their source for as long as they like.
static SOURCE: [u8; 4000] = [0x5A; 4000];

/// Starts a put of the low-order bytes of a value, of which the operation keeps a copy.
fn value_nb(engine: &Engine<Seq>, value: u64, bytes: usize, immediate: bool) -> Result<Event, Error> {
    let (place, value, options) = (engine.everyone().at(0, 9), value.to_le_bytes(), now(immediate));
    // SAFETY: rma.1: by `Local::Now` the operation uses `value`, which has 8 bytes, no more when this returns.
    unsafe { rma::put_nb(engine, place, value.as_ptr(), bytes, None, options) }.map(|(event, _)| event)
}

/// The same in a set.
fn value_nbi(engine: &Engine<Seq>, set: &Implicit, offset: u64, immediate: bool) -> Result<(), Error> {
    let (place, value) = (engine.everyone().at(0, offset), 7u64.to_le_bytes());
    // SAFETY: rma.1: by `Local::Now` the operation uses `value`, which has 8 bytes, no more when this returns.
    unsafe { rma::put_nbi(engine, set, place, value.as_ptr(), 8, None, now(immediate)) }
}

fn now(immediate: bool) -> Options {
    Options { local: Local::Now, immediate }
}

fn shuffle(events: &mut [Event], mut seed: u64) {
    for i in (1..events.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        events.swap(i, (seed >> 33) as usize % (i + 1));
    }
}

/// Whether an entry will be found done: a root is where its leaf for everything is, and asking that takes nothing.
fn foretold(engine: &Engine<Seq>, entry: &Event) -> Result<bool, Error> {
    let is_root = *entry == entry.leaf(Categories::empty());
    let asked = entry.leaf(Categories::all());
    Ok(event::test(engine, if is_root { &asked } else { entry })?.is_some())
}

fn follow(engine: &Engine<Seq>, steps: &[Step]) -> Result<(), Error> {
    let mut events: Vec<Event> = vec![Event::DONE];
    let put = |len: usize, local: Local| {
        let options = Options { local, immediate: false };
        // SAFETY: rma.1: `SOURCE` is static, has more than `len` bytes, and is never written.
        unsafe {
            rma::put_nb(engine, engine.everyone().at(0, len as u64), SOURCE.as_ptr(), len, None, options)
        }
    };
    for step in steps {
        match *step {
            Step::Put(len, local) => events.push(put(len, local)?.0),
            Step::Value(value, bytes) => events.push(value_nb(engine, value, bytes, false)?),
            Step::Get(len) => {
                let mut target = vec![0u8; len];
                let start = target.as_mut_ptr();
                // SAFETY: rma.1: the operation keeps `target`, whose heap block does not move with the vector and is not used otherwise.
                let (event, _) = unsafe {
                    rma::get_nb(
                        engine,
                        engine.everyone().at(0, 5),
                        start,
                        len,
                        Some(Box::new(target)),
                        false,
                    )?
                };
                events.push(event);
            }
            Step::Region(count) => {
                let implicit = Implicit::new();
                implicit.begin_region()?;
                assert!(implicit.begin_region().is_err(), "regions do not nest");
                for i in 0..count {
                    value_nbi(engine, &implicit, 16 * i as u64, false)?;
                }
                assert!(implicit.test(engine, Categories::all()).is_err(), "waited for inside a region");
                events.push(implicit.end_region()?);
                assert!(implicit.end_region().is_err() && implicit.test(engine, Categories::all())?);
            }
            Step::Leaf(at, part) => {
                let root = &events[at % events.len()];
                if *root == root.leaf(Categories::empty()) {
                    let leaf = root.leaf(part);
                    assert_eq!(leaf, root.leaf(part), "the same each time");
                    events.push(leaf);
                }
            }
            Step::Poll(times) => {
                for _ in 0..times {
                    engine.poll()?;
                }
            }
            Step::TestAll(seed) | Step::TestSome(seed) => {
                shuffle(&mut events, seed);
                let before: Vec<bool> = events.iter().map(Event::is_done).collect();
                let due =
                    events.iter().map(|entry| foretold(engine, entry)).collect::<Result<Vec<_>, _>>()?;
                let answer = match step {
                    Step::TestAll(_) => event::test_all(engine, &mut events)?,
                    _ => event::test_some(engine, &mut events)?,
                };
                let after: Vec<bool> = events.iter().map(Event::is_done).collect();
                assert_eq!(after, due, "exactly what is done is overwritten");
                let (all, some) = (!due.contains(&false), before != due);
                assert_eq!(answer, all || (some && matches!(step, Step::TestSome(_))));
            }
        }
    }
    let mut left = events.iter().filter(|entry| !entry.is_done()).count();
    while left > 0 {
        event::wait_some(engine, &mut events)?;
        let now = events.iter().filter(|entry| !entry.is_done()).count();
        assert!(now < left, "some of {left} are none");
        left = now;
    }
    event::wait_all(engine, &mut events)?;
    let mut seen = [0u8; 8];
    rma::put(engine, engine.everyone().at(0, 77), &[1, 2, 3, 4, 5, 6, 7, 8])?;
    rma::get(engine, engine.everyone().at(0, 77), &mut seen)?;
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arrays_do_as_the_plain_model(seed in 0u64..1000, steps in steps()) {
        let config = SimConfig { mapped: false, ..SimConfig::varied(1, seed) };
        let ended = simnet::run(config, |rank| {
            let engine = engine(&rank)?;
            follow(&engine, &steps)?;
            Ok::<_, Error>(engine.drain()?)
        });
        let ended = ended.unwrap_or_else(|error| panic!("{error}"));
        ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
    }
}

/// An immediate call gives up where another would wait; nothing of it is left.
#[test]
fn what_is_immediate_is_refused_rather_than_waited_for() {
    let config = SimConfig { mapped: false, ..SimConfig::varied(1, 3) };
    let ended = simnet::run(config, |rank| {
        let engine = engine(&rank)?;
        let (mut events, implicit) = (Vec::new(), Implicit::new());
        let refused = loop {
            match value_nb(&engine, 1, 8, true) {
                Ok(event) => events.push(event),
                Err(error) => break error,
            }
        };
        assert!(refused.is_busy() && events.len() == 6, "{refused} after {}", events.len());
        assert!(value_nbi(&engine, &implicit, 0, true).is_err_and(|e| e.is_busy()));
        assert!(implicit.test(&engine, Categories::all())?, "what was refused is not in the set");
        event::wait_all(&engine, &mut events)?;
        value_nbi(&engine, &implicit, 0, true)?;
        assert!(!implicit.test(&engine, Categories::PUT)? && implicit.test(&engine, Categories::GET)?);
        implicit.wait(&engine, Categories::PUT)?;
        assert_eq!(Event::from_bits(1).map(|_| ()), Err(gasworks_core::Error::UnknownEvent.into()), "NO_OP");
        Ok::<_, Error>(())
    });
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    ended.into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}
