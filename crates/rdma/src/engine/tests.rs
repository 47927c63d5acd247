//! The engine against a fake NIC that keeps a NIC's rules, refuses now and then, and completes in any order.

use super::*;
use crate::nic::{Completion, Post};
use gasworks_sync::{Par, Seq};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

/// A small generator: what a NIC decides depends on the seed alone.
struct Dice(Cell<u64>);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        let mut x = self.0.get() | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        (x >> 11) % sides
    }
}

struct Fake {
    abilities: Abilities,
    /// The peer's registration, whose key is `[7]`.
    remote: RawBytes,
    /// Registrations of this rank; the key is the index.
    mine: RefCell<Vec<RawBytes>>,
    under_way: RefCell<Vec<(Direction, RawBytes, RawBytes, u64)>>,
    dice: Dice,
    /// One post in this many fails when it completes; 0 for none.
    faults: u64,
    refuse_registration: bool,
}

impl Fake {
    fn new(abilities: Abilities, remote: RawBytes, seed: u64) -> Self {
        Fake {
            abilities,
            remote,
            mine: RefCell::default(),
            under_way: RefCell::default(),
            dice: Dice(Cell::new(seed)),
            faults: 0,
            refuse_registration: false,
        }
    }
}

impl Nic for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn abilities(&self) -> Abilities {
        self.abilities
    }
    unsafe fn register(&self, bytes: RawBytes) -> Result<Key, NicError> {
        if self.refuse_registration {
            return Err(NicError::Registration { len: bytes.len() });
        }
        self.mine.borrow_mut().push(bytes);
        Ok(Key(vec![self.mine.borrow().len() as u8 - 1]))
    }
    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        let mut mine = self.mine.borrow_mut();
        let place = key.0.first().and_then(|&i| mine.get_mut(i as usize));
        place.map(|bytes| *bytes = RawBytes::EMPTY).ok_or(NicError::BadKey { peer: 0 })
    }
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        let Abilities { largest, get_alignment, put_alignment, depth, .. } = self.abilities;
        let alignment = if post.direction == Direction::Get { get_alignment } else { put_alignment };
        let len = post.local.len();
        if len == 0
            || len > largest
            || !len.is_multiple_of(alignment)
            || !post.remote_offset.is_multiple_of(alignment as u64)
        {
            return Err(NicError::BadShape { len, offset: post.remote_offset });
        }
        if self.abilities.registers_local {
            let mine = self.mine.borrow();
            let holder = post.local_key.0.first().and_then(|&i| mine.get(i as usize));
            let start = post.local.as_ptr().addr();
            if !holder
                .is_some_and(|h| h.as_ptr().addr() <= start && start + len <= h.as_ptr().addr() + h.len())
            {
                return Err(NicError::BadKey { peer: 0 });
            }
        }
        let there = self.remote.slice(post.remote_offset as usize, len).filter(|_| post.remote_key.0 == [7]);
        let there = there.ok_or(NicError::BadKey { peer: post.peer })?;
        let mut under_way = self.under_way.borrow_mut();
        assert!(under_way.len() < depth, "the engine exceeds the depth");
        if self.dice.roll(4) == 0 {
            return Err(NicError::Busy);
        }
        under_way.push((post.direction, post.local, there, post.token));
        Ok(())
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        let mut handed = 0;
        while handed < burst && self.dice.roll(3) != 0 {
            let count = self.under_way.borrow().len() as u64;
            if count == 0 {
                break;
            }
            let pick = self.dice.roll(count) as usize;
            let (direction, local, there, token) = self.under_way.borrow_mut().swap_remove(pick);
            let failed = self.faults > 0 && self.dice.roll(self.faults) == 0;
            let result = if failed { Err(NicError::PeerGone { peer: 1 }) } else { Ok(()) };
            if !failed {
                let (to, from) = if direction == Direction::Put { (there, local) } else { (local, there) };
                // SAFETY: both runs are vectors of the test, which outlive the engine; they do not overlap.
                unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), local.len()) };
            }
            sink(Completion { token, result });
            if self.dice.roll(5) == 0 {
                sink(Completion { token, result }); // a NIC that repeats itself
            }
            handed += 1;
        }
        handed
    }
}

const GENEROUS: Abilities =
    Abilities { largest: 1 << 20, get_alignment: 1, put_alignment: 1, registers_local: false, depth: 64 };

fn raw(bytes: &mut [u8]) -> RawBytes {
    // SAFETY: the tests keep the vectors until the engine is gone, and look at them only then or through the engine.
    unsafe { RawBytes::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn engine(nic: Fake, bounce: RawBytes, descriptors: usize) -> Result<Engine<Seq, Fake>, EngineError> {
    Engine::new(Box::new(nic), bounce, descriptors)
}

/// How operations ended, by token.
type Results = Vec<(u64, Result<(), NicError>)>;

/// Notes how an operation ended; `reuse` is told when its source may be used again.
fn note(results: &mut Results, token: u64, progress: Progress, reuse: &dyn Fn(u64)) {
    match progress {
        Progress::Copied => {
            assert!(results.iter().all(|r| r.0 != token), "a source is free after the end");
            reuse(token);
        }
        Progress::Done(result) => results.push((token, result)),
    }
}

fn drain(engine: &Engine<Seq, Fake>, results: &mut Results) {
    drain_reusing(engine, results, &|_| ());
}

fn drain_reusing(engine: &Engine<Seq, Fake>, results: &mut Results, reuse: &dyn Fn(u64)) {
    for _ in 0..1_000_000 {
        if engine.pending() == 0 {
            return;
        }
        engine.poll(4, &mut |token, progress| note(results, token, progress, reuse));
    }
    panic!("{} operations never finish", engine.pending());
}

#[derive(Clone, Debug)]
struct Ask {
    put: bool,
    offset: usize,
    len: usize,
}

/// What the case is run on: few descriptors, few and small buffers, tight limits, and generous ones.
#[derive(Clone, Debug)]
struct Setup {
    abilities: Abilities,
    descriptors: usize,
    bounce: usize,
    faults: u64,
    seed: u64,
    /// Local memory is registered, so that the NIC can use it.
    registered: bool,
}

const REMOTE: usize = 1024;

fn setup() -> impl Strategy<Value = Setup> {
    (
        prop::sample::select(vec![1usize, 4, 8]),
        0usize..200,
        any::<bool>(),
        1usize..5,
        1usize..6,
        1usize..4,
        prop::sample::select(vec![0u64, 0, 6]),
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(
            |(alignment, extra, registers_local, depth, descriptors, buffers, faults, seed, registered)| {
                Setup {
                    abilities: Abilities {
                        largest: alignment + extra,
                        get_alignment: alignment,
                        put_alignment: 1,
                        registers_local,
                        depth,
                    },
                    descriptors,
                    // About `buffers` buffers, for the size is at most the largest transfer.
                    bounce: if registers_local { (alignment + extra) * buffers } else { 0 },
                    faults,
                    seed,
                    registered,
                }
            },
        )
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (any::<bool>(), 0usize..REMOTE, 0usize..400).prop_map(|(put, offset, len)| Ask {
        put,
        offset,
        len: len.min(REMOTE - offset),
    });
    prop::collection::vec(ask, 1..12)
}

/// Every operation gets its own part of the remote memory, `slot` bytes from the last, so that results do not depend
/// on the order.
fn check(setup: &Setup, asks: &[Ask]) {
    let slot = REMOTE + 64;
    let mut remote: Vec<u8> = (0..asks.len() * slot).map(|i| (i * 7 % 251) as u8).collect();
    let before = remote.clone();
    let mut locals: Vec<Vec<u8>> =
        asks.iter().enumerate().map(|(i, a)| vec![if a.put { i as u8 + 1 } else { 0xEE }; a.len]).collect();
    let mut bounce = vec![0u8; setup.bounce];
    let (remote_raw, bounce_raw) = (raw(&mut remote), raw(&mut bounce));
    let mut results = Vec::new();
    let mut fake = Fake::new(setup.abilities, remote_raw, setup.seed);
    fake.faults = setup.faults;
    let engine = engine(fake, bounce_raw, setup.descriptors).unwrap();
    let local_raws: Vec<RawBytes> = locals.iter_mut().map(|local| raw(local)).collect();
    if setup.registered {
        for &local in &local_raws {
            // SAFETY: the vectors outlive the engine.
            unsafe { engine.register(local) }.unwrap();
        }
    }
    let mut refused = 0;
    let reused = Cell::new(0u64);
    // A source that may be used again is spoilt at once: what arrives must have been copied before.
    let reuse = |token: u64| {
        assert!(asks[token as usize].put);
        reused.set(reused.get() + 1);
        // SAFETY: the engine has said that it does not use the source any more.
        unsafe { local_raws[token as usize].as_ptr().write_bytes(0xDD, asks[token as usize].len) };
    };
    for (i, ask) in asks.iter().enumerate() {
        let offset = (i * slot + ask.offset) as u64;
        let (key, token, ptr) = (Key(vec![7]), i as u64, local_raws[i].as_ptr());
        loop {
            // SAFETY: the vectors outlive the engine and are not touched until it is drained (E1).
            let started = unsafe {
                match ask.put {
                    true => engine.put(1, &key, offset, ptr, ask.len, token),
                    false => engine.get(1, &key, offset, ptr, ask.len, token),
                }
            };
            match started {
                Ok(()) => break,
                Err(EngineError::Busy { descriptors }) => {
                    assert_eq!(descriptors, setup.descriptors);
                    refused += 1;
                    assert!(refused < 1_000_000, "a descriptor never becomes free");
                    engine.poll(2, &mut |token, progress| note(&mut results, token, progress, &reuse));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    drain_reusing(&engine, &mut results, &reuse);
    drop(engine);
    let puts = asks.iter().filter(|ask| ask.put && ask.len > 0).count() as u64;
    if setup.abilities.registers_local && !setup.registered && setup.faults == 0 {
        assert_eq!(reused.get(), puts, "every source is free before the end where all is copied");
    } else if !setup.abilities.registers_local || setup.registered {
        assert_eq!(reused.get(), 0, "a source is said to be copied that was not");
    }
    results.sort_by_key(|r| r.0);
    assert_eq!(results.iter().map(|r| r.0).collect::<Vec<_>>(), (0..asks.len() as u64).collect::<Vec<_>>());
    for (i, ask) in asks.iter().enumerate() {
        let part = i * slot..(i + 1) * slot;
        let (at, was) = (&remote[part.clone()], &before[part]);
        let end = ask.offset + ask.len;
        assert_eq!(
            (&at[..ask.offset], &at[end..]),
            (&was[..ask.offset], &was[end..]),
            "bytes around {ask:?}"
        );
        let (here, there) = (&locals[i][..], &at[ask.offset..end]);
        match (results[i].1, ask.put) {
            (Ok(()), true) => assert!(there.iter().all(|&byte| byte == i as u8 + 1), "put {ask:?}"),
            (Ok(()), false) => assert_eq!(here, &was[ask.offset..end], "get {ask:?}"),
            (Err(error), _) => {
                assert!(setup.faults > 0 && error == NicError::PeerGone { peer: 1 }, "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 2000 }, failure_persistence: None,
        ..ProptestConfig::default() })]
    #[test]
    fn any_transfer_arrives_whole_and_alone(setup in setup(), asks in asks()) {
        check(&setup, &asks);
    }
}

#[test]
fn depth_one_and_a_pool_of_one_move_everything() {
    let abilities =
        Abilities { largest: 8, get_alignment: 4, put_alignment: 1, registers_local: true, depth: 1 };
    let asks: Vec<Ask> = (0..8).map(|i| Ask { put: i % 2 == 0, offset: i * 3, len: 50 + i }).collect();
    for seed in 1..if cfg!(miri) { 2 } else { 100 } {
        check(&Setup { abilities, descriptors: 1, bounce: 8, faults: 0, seed, registered: false }, &asks);
    }
}

#[test]
fn without_free_descriptors_an_operation_is_refused_and_later_taken() {
    let mut remote = vec![0u8; 64];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 3), RawBytes::EMPTY, 2).unwrap();
    let (key, source, mut results) = (Key(vec![7]), [9u8; 8], Vec::new());
    // SAFETY: `source` outlives the engine and is only read (E1).
    let put = |token| unsafe { engine.put(1, &key, token * 8, source.as_ptr(), 8, token) };
    assert_eq!((put(0), put(1)), (Ok(()), Ok(())));
    let refused = put(2);
    assert_eq!(refused, Err(EngineError::Busy { descriptors: 2 }));
    assert!(refused.is_err_and(|e| e.to_string().contains("all 2 post descriptors are in use")));
    drain(&engine, &mut results);
    assert_eq!(put(2), Ok(()));
    drain(&engine, &mut results);
    drop(engine);
    assert_eq!(&remote[..24], &[9u8; 24]);
    assert_eq!(results.len(), 3);
}

#[test]
fn nothing_to_move_completes_at_the_next_poll() {
    let mut remote = vec![0u8; 8];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 3), RawBytes::EMPTY, 1).unwrap();
    let key = Key(vec![7]);
    // SAFETY: no bytes.
    unsafe { engine.put(1, &key, 3, std::ptr::null(), 0, 5) }.unwrap();
    assert_eq!(engine.pending(), 1);
    let mut tokens = Vec::new();
    let handed = engine.poll(1, &mut |token, result| {
        // What is started here ends in a later poll, or this one would not end.
        // SAFETY: no bytes.
        unsafe { engine.get(1, &key, 3, std::ptr::null_mut(), 0, 6) }.unwrap();
        note(&mut tokens, token, result, &|_| ());
    });
    assert_eq!((handed, engine.pending()), (1, 1));
    assert_eq!(tokens, [(5, Ok(()))]);
    drain(&engine, &mut tokens);
    assert_eq!(tokens[1].0, 6);
}

#[test]
fn a_wrong_key_fails_the_operation_and_nothing_else() {
    let mut remote = vec![0u8; 64];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 5), RawBytes::EMPTY, 4).unwrap();
    let (source, mut results) = ([1u8; 64], Vec::new());
    for (token, key, offset) in [(0, 7, 0), (1, 8, 0), (2, 7, 32)] {
        // SAFETY: `source` outlives the engine and is only read (E1).
        unsafe { engine.put(1, &Key(vec![key]), offset, source.as_ptr(), 64 - offset as usize, token) }
            .unwrap();
    }
    // SAFETY: as above.
    unsafe { engine.put(1, &Key(vec![7]), 32, source.as_ptr(), 64, 3) }.unwrap();
    drain(&engine, &mut results);
    results.sort_by_key(|r| r.0);
    let bad = Err(NicError::BadKey { peer: 1 });
    assert_eq!(results, [(0, Ok(())), (1, bad), (2, Ok(())), (3, bad)]);
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    let nic = || Fake::new(Abilities { registers_local: true, ..GENEROUS }, RawBytes::EMPTY, 1);
    assert_eq!(
        engine(nic(), RawBytes::EMPTY, 4).err(),
        Some(EngineError::NoBounceMemory { given: 0, least: 1 })
    );
    assert!(matches!(engine(nic(), RawBytes::EMPTY, 0).err(), Some(EngineError::Unusable { .. })));
    let mut bounce = vec![0u8; 64];
    let refuses = Fake { refuse_registration: true, ..nic() };
    assert_eq!(
        engine(refuses, raw(&mut bounce), 4).err(),
        Some(EngineError::Registration(NicError::Registration { len: 64 }))
    );
    let aligned = Abilities { put_alignment: 8, largest: 4, ..GENEROUS };
    assert!(engine(Fake::new(aligned, RawBytes::EMPTY, 1), RawBytes::EMPTY, 1).is_err());
    let aligned = Abilities { put_alignment: 8, ..GENEROUS };
    let engine = engine(Fake::new(aligned, RawBytes::EMPTY, 1), RawBytes::EMPTY, 1).unwrap();
    // SAFETY: refused before the address is used.
    let put = unsafe { engine.put(0, &Key::default(), 4, std::ptr::null(), 8, 0) };
    assert_eq!(put, Err(EngineError::UnalignedPut { offset: 4, len: 8, alignment: 8 }));
    assert_eq!(engine.pending(), 0);
    assert!(engine.deregister(&Key(vec![3])).is_err());
}

#[test]
fn an_engine_for_several_threads_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine<Par, dyn Nic + Send + Sync>>();
}
