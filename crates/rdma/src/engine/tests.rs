//! The engine against a fake NIC that keeps a NIC's rules, refuses now and then, and completes in any order.

use super::fake::*;
use super::*;
use crate::cache::tests::Told;
use crate::stale::Gone;
use gasworks_sync::{Par, Seq};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

#[derive(Clone, Debug)]
struct Ask {
    put: bool,
    offset: usize,
    len: usize,
    source: Source,
}

/// What the case is run on: few descriptors, few and small buffers, tight limits, and generous ones.
#[derive(Clone, Debug)]
struct Setup {
    abilities: Abilities,
    tuning: Tuning,
    memory: usize,
    faults: u64,
    seed: u64,
    /// Local memory is registered, so that the NIC can use it.
    registered: bool,
}

const REMOTE: usize = 1024;
/// More bytes than are copied to where the NIC can have them: fewer more under Miri, to which each is a millisecond.
const LONG: usize = if cfg!(miri) { 4200 } else { 9000 };
/// Transfers are of one thread: the thread sanitizer sees nothing in more of them.
const CASES: u32 = if cfg!(miri) {
    1
} else if cfg!(gasworks_tsan) {
    20
} else {
    2000
};

fn abilities() -> impl Strategy<Value = Abilities> {
    let alignment = || prop::sample::select(vec![1usize, 4, 8]);
    let rest = (0usize..200, 0usize..300, any::<bool>(), any::<bool>(), 1usize..5);
    (alignment(), alignment(), rest).prop_map(|(get_alignment, local, rest)| {
        let (extra, short, registers_local, tells_source, depth) = rest;
        let largest = get_alignment + extra;
        let local_alignment = local.min(get_alignment);
        Abilities {
            largest,
            get_alignment,
            local_alignment,
            short,
            registers_local,
            tells_source,
            depth,
            keeps_registrations: extra % 3 == 0,
            ..Abilities::PLAIN
        }
    })
}

fn tuning() -> impl Strategy<Value = Tuning> {
    let sizes = || (0usize..300, 0usize..300);
    let registrations = prop::sample::select(vec![None, Some(1), Some(2)]);
    let space = prop::sample::select(vec![0usize, 8192, 1 << 20]);
    (1usize..6, sizes(), sizes(), registrations, space).prop_map(
        |(descriptors, (put_short, get_short), (put_bounce, get_bounce), registrations, space)| Tuning {
            descriptors,
            put_short,
            get_short,
            put_bounce,
            get_bounce,
            registrations,
            registration_space: space,
            bounce_space: 0,
            least_buffer: 0,
        },
    )
}

fn setup() -> impl Strategy<Value = Setup> {
    let faults = prop::sample::select(vec![0u64, 0, 6]);
    (abilities(), tuning(), 1usize..4, faults, any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(abilities, tuning, buffers, faults, seed, registered, immediate)| {
            let immediate = if immediate { tuning.descriptors * crate::settings::IMMEDIATE } else { 0 };
            // About `buffers` buffers, for the size is at most the largest transfer.
            let room = immediate + abilities.largest.max(8) * buffers;
            let memory = if abilities.registers_local { room } else { 0 };
            Setup { abilities, tuning, memory, faults, seed, registered }
        },
    )
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let source = prop::sample::select(vec![Source::Kept, Source::WantedBack]);
    let ask = (any::<bool>(), 0usize..REMOTE, 0usize..400, source)
        .prop_map(|(put, offset, len, source)| Ask { put, offset, len: len.min(REMOTE - offset), source });
    prop::collection::vec(ask, 1..12)
}

/// Every operation gets its own part of the remote memory, `slot` bytes from the last, so that results do not depend
/// on the order.
fn check<M: Mode>(setup: &Setup, asks: &[Ask]) {
    let slot = REMOTE + 64;
    let mut remote: Vec<u8> = (0..asks.len() * slot).map(|i| (i * 7 % 251) as u8).collect();
    let before = remote.clone();
    let mut locals: Vec<Vec<u8>> =
        asks.iter().enumerate().map(|(i, a)| vec![if a.put { i as u8 + 1 } else { 0xEE }; a.len]).collect();
    // Aligned as the auxiliary segment is.
    let mut bounce = vec![0u64; setup.memory.div_ceil(8)];
    let bounce_raw = RawSlice::new(bounce.as_mut_ptr().cast(), setup.memory);
    let remote_raw = raw(&mut remote);
    let mut results = Vec::new();
    let mut fake = Fake::new(setup.abilities, remote_raw, setup.seed);
    fake.faults = setup.faults;
    let engine = watched::<M>(fake, bounce_raw, &setup.tuning, Told::default()).unwrap();
    let local_raws: Vec<RawSlice> = locals.iter_mut().map(|local| raw(local)).collect();
    if setup.registered {
        for &local in &local_raws {
            // SAFETY: the vector that `local` lies in was made before the engine, and is there when that is dropped.
            unsafe { engine.register(local) }.unwrap();
        }
    }
    let mut refused = 0;
    let reused = RefCell::new(vec![false; asks.len()]);
    // A source that may be used again is spoilt at once: what arrives must have been copied before.
    let reuse = |token: u64| {
        assert!(asks[token as usize].put);
        assert!(!std::mem::replace(&mut reused.borrow_mut()[token as usize], true), "it is said once");
        // SAFETY: the engine has said that it does not use the source any more, which has `len` bytes, and is the test's again.
        unsafe { local_raws[token as usize].as_ptr().write_bytes(0xDD, asks[token as usize].len) };
    };
    for (i, ask) in asks.iter().enumerate() {
        let offset = (i * slot + ask.offset) as u64;
        let (key, token, ptr) = (Key(vec![7]), i as u64, local_raws[i].as_ptr());
        loop {
            // SAFETY: engine.1: `ptr` is of a vector of `ask.len` bytes, which outlives the engine and is not touched meanwhile.
            let started = unsafe {
                match ask.put {
                    true => engine.put(there(&key, offset), ptr, ask.len, ask.source, token),
                    false => engine.get(there(&key, offset), ptr, ask.len, token),
                }
            };
            match started {
                Ok(()) => break,
                Err(EngineError::Busy { descriptors }) => {
                    assert_eq!(descriptors, setup.tuning.descriptors);
                    refused += 1;
                    assert!(refused < 1_000_000, "a descriptor never becomes free");
                    engine.poll(2, &mut |token, progress| note(&mut results, token, progress, &reuse));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    drain_reusing(&engine, &mut results, &reuse);
    let lasting = usize::from(setup.abilities.registers_local)
        + if setup.registered { asks.iter().filter(|ask| ask.len > 0).count() } else { 0 };
    let nic = engine.nic();
    let kept = engine.registrations().kept;
    let may_keep = setup.tuning.registration_space > 0 && !setup.abilities.keeps_registrations;
    assert!(kept == 0 || may_keep, "{kept} registrations are kept");
    assert_eq!(
        nic.registered(),
        lasting + kept,
        "what was registered for a transfer alone is registered no more"
    );
    let temporary = setup.tuning.registrations.map_or(usize::MAX, |most| lasting + most);
    assert!(nic.most.get() <= temporary.max(lasting), "{} registrations at a time", nic.most.get());
    assert!((0..engine.descriptors()).all(|_| engine.free.take().is_some()), "descriptors are lost");
    drop(engine);
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
        // Nobody else has written to a source.
        let left = if reused.borrow()[i] { 0xDD } else { i as u8 + 1 };
        assert!(!ask.put || here.iter().all(|&byte| byte == left), "the source of {ask:?}");
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
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None,
        ..ProptestConfig::default() })]
    #[test]
    fn any_transfer_arrives_whole_and_alone(setup in setup(), asks in asks(), is_parallel: bool) {
        if is_parallel { check::<Par>(&setup, &asks) } else { check::<Seq>(&setup, &asks) }
    }
}

#[test]
fn depth_one_and_a_pool_of_one_move_everything() {
    let abilities = Abilities { largest: 8, get_alignment: 4, registers_local: true, depth: 1, ..GENEROUS };
    let asks: Vec<Ask> = (0..8)
        .map(|i| Ask { put: i % 2 == 0, offset: i * 3, len: 50 + i, source: Source::WantedBack })
        .collect();
    for seed in 1..if cfg!(miri) { 2 } else { 100 } {
        let tuning = Tuning {
            descriptors: 1,
            registrations: Some(0),
            put_bounce: 8,
            get_bounce: 8,
            ..Tuning::default()
        };
        check::<Seq>(&Setup { abilities, tuning, memory: 8, faults: 0, seed, registered: false }, &asks);
    }
}

/// What was fetched to another place than its own, and not moved back because the rest failed, is nobody's business any more.
#[test]
fn a_get_that_failed_leaves_nothing_to_the_next() {
    #[repr(align(8))]
    struct Words([u8; 256]);
    let abilities = Abilities { get_alignment: 4, local_alignment: 4, ..GENEROUS };
    for seed in 1..if cfg!(miri) { 2 } else { 20 } {
        let (mut remote, mut target, mut other) = (vec![5u8; 256], Words([0; 256]), [0u8; 4]);
        let fake = Fake { faults: 1, ..Fake::new(abilities, raw(&mut remote), seed) };
        let mut engine =
            tuned(fake, RawSlice::EMPTY, &Tuning { get_bounce: 0, ..Tuning::default() }).unwrap();
        let (key, mut results) = (Key(vec![7]), Vec::new());
        let askew = target.0.as_mut_ptr().wrapping_add(1);
        // SAFETY: engine.1: `target` has 250 bytes behind its first, outlives the engine, and is looked at when that is drained.
        unsafe { engine.get(there(&key, 0), askew, 250, 0) }.unwrap();
        drain(&engine, &mut results);
        assert!(results[0].1.is_err());
        engine.nic.faults = 0;
        // SAFETY: the get is over, so that these 250 bytes of `target` are the test's again.
        unsafe { askew.write_bytes(0, 250) };
        target.0[8] = 1;
        let before = target.0;
        // SAFETY: engine.1: `other` has 4 bytes, outlives the engine, and is looked at when that is drained.
        unsafe { engine.get(there(&key, 0), other.as_mut_ptr(), 4, 1) }.unwrap();
        drain(&engine, &mut results);
        assert_eq!((results[1], other, target.0), ((1, Ok(())), [5; 4], before));
    }
}

#[test]
fn without_free_descriptors_an_operation_is_refused_and_later_taken() {
    let mut remote = vec![0u8; 64];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 3), RawSlice::EMPTY, 2).unwrap();
    let (key, source, mut results) = (Key(vec![7]), [9u8; 8], Vec::new());
    // SAFETY: engine.1: `source` has 8 bytes, is there when the engine is dropped, below, and is only read.
    let put = |token| unsafe { engine.put(there(&key, token * 8), source.as_ptr(), 8, Source::Kept, token) };
    assert_eq!((put(0), put(1), engine.descriptors()), (Ok(()), Ok(()), 2));
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
    nothing_to_move::<Seq>();
    // What is handed back is handed back outside of the lock.
    nothing_to_move::<Par>();
}

fn nothing_to_move<M: Mode>() {
    let mut remote = vec![0u8; 8];
    let (fake, tuning) =
        (Fake::new(GENEROUS, raw(&mut remote), 3), Tuning { descriptors: 1, ..Tuning::default() });
    let engine = watched::<M>(fake, RawSlice::EMPTY, &tuning, Told::default()).unwrap();
    let key = Key(vec![7]);
    // SAFETY: engine.1: of no bytes nothing is read, at null as anywhere.
    unsafe { engine.put(there(&key, 3), std::ptr::null(), 0, Source::Kept, 5) }.unwrap();
    assert_eq!(engine.pending(), 1);
    let mut tokens = Vec::new();
    let handed = engine.poll(1, &mut |token, result| {
        // What is started here ends in a later poll, or this one would not end.
        // SAFETY: engine.1: of no bytes nothing is written, at null as anywhere.
        unsafe { engine.get(there(&key, 3), std::ptr::null_mut(), 0, 6) }.unwrap();
        note(&mut tokens, token, result, &|_| ());
    });
    assert_eq!((handed, engine.pending()), (1, 1));
    assert_eq!(tokens, [(5, Ok(()))]);
    drain(&engine, &mut tokens);
    assert_eq!(tokens[1].0, 6);
}

/// A peer is told once, when all is there, by the put itself where that is one post; and that nothing will come, where that failed.
#[test]
fn a_peer_is_told_once_and_when_all_is_there() {
    let tight = Abilities { largest: 64, short: 16, registers_local: true, tells_source: true, ..GENEROUS };
    for seed in 0..if cfg!(miri) { 4 } else { 200 } {
        for (len, faults) in [(0, 0), (1, 0), (64, 0), (65, 0), (700, 0), (700, 3), (64, 1)] {
            let (mut remote, mut memory) = (vec![0u8; 1000], vec![0u8; 4096]);
            let nic = Fake { faults, ..Fake::new(tight, raw(&mut remote), seed) };
            let engine = engine(nic, raw(&mut memory), 1 + seed as usize % 4).unwrap();
            let (source, mut results) = (vec![seed as u8 | 1; len], Vec::new());
            let how = if seed % 2 == 0 { Source::Kept } else { Source::WantedBack };
            let key = Key(vec![7]);
            // SAFETY: engine.1: `source` has `len` bytes, is there until the engine is drained, and is only read.
            unsafe { engine.put_and_tell(there(&key, 9), source.as_ptr(), len, how, 77, 5) }.unwrap();
            drain(&engine, &mut results);
            let told = engine.nic().told.borrow();
            let [(77, landed, seen)] = &told[..] else { panic!("{} times, {len} bytes", told.len()) };
            assert_eq!(*landed, results[0].1.is_ok());
            assert!(!landed || seen[9..9 + len] == source[..], "{len} bytes were not all there");
            assert_eq!(engine.nic().told_by_posts.get(), usize::from((1..=64).contains(&len)), "{len} bytes");
        }
    }
}

#[test]
fn a_wrong_key_fails_the_operation_and_nothing_else() {
    let mut remote = vec![0u8; 64];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 5), RawSlice::EMPTY, 4).unwrap();
    let (source, mut results) = ([1u8; 64], Vec::new());
    for (token, key, offset) in [(0, 7, 0), (1, 8, 0), (2, 7, 32)] {
        let (key, len) = (Key(vec![key]), 64 - offset as usize);
        // SAFETY: engine.1: `source` has 64 bytes, no fewer than `len`, is there until the engine is drained, and is only read.
        unsafe { engine.put(there(&key, offset), source.as_ptr(), len, Source::Kept, token) }.unwrap();
    }
    // SAFETY: engine.1: these are all 64 bytes of `source`, which is there until the engine is drained.
    unsafe { engine.put(there(&Key(vec![7]), 32), source.as_ptr(), 64, Source::Kept, 3) }.unwrap();
    drain(&engine, &mut results);
    results.sort_by_key(|r| r.0);
    let bad = Err(NicError::BadKey { peer: 1 });
    assert_eq!(results, [(0, Ok(())), (1, bad), (2, Ok(())), (3, bad)]);
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    let nic = || Fake::new(Abilities { registers_local: true, ..GENEROUS }, RawSlice::EMPTY, 1);
    assert_eq!(
        engine(nic(), RawSlice::EMPTY, 4).err(),
        Some(EngineError::NoBounceMemory { given: 0, least: 1 })
    );
    let mut bounce = vec![0u8; 64];
    let refuses = Fake { refuse_registration: true, ..nic() };
    assert_eq!(
        engine(refuses, raw(&mut bounce), 4).err(),
        Some(EngineError::Registration(NicError::Registration { len: 64, why: "refused" }))
    );
    let aligned = Abilities { put_alignment: 8, largest: 4, ..GENEROUS };
    assert!(engine(Fake::new(aligned, RawSlice::EMPTY, 1), RawSlice::EMPTY, 1).is_err());
    let aligned = Abilities { put_alignment: 8, ..GENEROUS };
    let engine = engine(Fake::new(aligned, RawSlice::EMPTY, 1), RawSlice::EMPTY, 1).unwrap();
    // SAFETY: a put to offset 4 is refused here, before anybody looks at the address, null.
    let put = unsafe { engine.put(there(&Key::default(), 4), std::ptr::null(), 8, Source::Kept, 0) };
    assert_eq!(put, Err(EngineError::UnalignedPut { offset: 4, len: 8, alignment: 8 }));
    assert_eq!(engine.pending(), 0);
    assert!(engine.deregister(&Key(vec![3])).is_err());
}

/// Descriptors, what the NIC can do, and whether that is enough to move a byte.
#[test]
fn an_engine_needs_a_descriptor_and_a_nic_that_moves_something() {
    let rules = |get_alignment, put_alignment, largest, depth| Abilities {
        get_alignment,
        put_alignment,
        largest,
        depth,
        ..Abilities::PLAIN
    };
    for (descriptors, abilities, is_usable) in [
        (0, GENEROUS, false),
        (1, GENEROUS, true),
        (1, rules(1, 1, 64, 0), false),
        (1, rules(1, 1, 64, 1), true),
        (1, rules(1, 1, 0, 1), false),
        (1, rules(0, 0, 0, 1), false),
        (1, rules(1, 1, 1, 1), true),
        (1, rules(8, 1, 7, 1), false),
        (1, rules(8, 1, 8, 1), true),
        (1, rules(1, 8, 7, 1), false),
        (1, rules(1, 8, 8, 1), true),
        (usize::MAX, GENEROUS, false),
    ] {
        let found = engine(Fake::new(abilities, RawSlice::EMPTY, 1), RawSlice::EMPTY, descriptors);
        let Abilities { largest, depth, .. } = abilities;
        let unusable = EngineError::Unusable { descriptors, depth, largest };
        assert_eq!(found.err(), (!is_usable).then_some(unusable));
    }
}

/// What is registered for transfers alone is kept where the NIC does not do that itself, and what happens to it can be told.
#[cfg(not(miri))]
#[test]
fn an_engine_keeps_registrations_unless_its_nic_does() {
    let (mut remote, source) = (vec![5u8; LONG], vec![6u8; LONG]);
    let mut memory = vec![0u64; 1 << 12];
    let tuning = Tuning { descriptors: 32, ..Tuning::default() };
    for keeps_registrations in [false, true] {
        let abilities = Abilities { registers_local: true, keeps_registrations, ..GENEROUS };
        let fake = Fake::new(abilities, raw(&mut remote), 5);
        // SAFETY: engine.3: `memory` is the engine's alone, and is dropped after it.
        let engine =
            unsafe { Engine::<Seq, Fake>::new(Box::new(fake), raw_words(&mut memory), &tuning) }.unwrap();
        let (key, mut results) = (Key(vec![7]), Vec::new());
        // The memory's neighbours on its pages may just now be changing.
        for round in 0..1000 {
            // SAFETY: engine.1: `source` has `LONG` bytes, outlives the engine, and is only read.
            unsafe { engine.put(there(&key, 0), source.as_ptr(), LONG, Source::Kept, round) }.unwrap();
            drain(&engine, &mut results);
            if engine.registrations().kept > 0 {
                break;
            }
        }
        let is_kept = !keeps_registrations && crate::cache::real::is_admitted();
        assert_eq!(engine.registrations().kept, usize::from(is_kept));
        assert_eq!(engine.nic().registered(), 1 + usize::from(is_kept));
    }
}

/// A registration that ended is not used again; the others are.
#[test]
fn the_key_of_a_registration_that_ended_is_not_used() {
    let abilities = Abilities { registers_local: true, ..GENEROUS };
    let (mut remote, mut memory) = (vec![5u8; LONG], vec![0u64; 1 << 12]);
    let mut locals = [vec![1u8; LONG], vec![2u8; LONG], vec![3u8; LONG]];
    let tuning = Tuning { descriptors: 32, registration_space: 0, ..Tuning::default() };
    let fake = Fake::new(abilities, raw(&mut remote), 5);
    let engine = tuned(fake, raw_words(&mut memory), &tuning).unwrap();
    let locals = locals.each_mut().map(|local| raw(local));
    let key = Key(vec![7]);
    // How many registrations a put takes that works.
    let registers = |local: RawSlice| {
        let (before, mut results) = (engine.nic().took.get()[2], Vec::new());
        // SAFETY: engine.1: `local` is one of `locals`, whose vectors outlive the engine, and is only read.
        unsafe { engine.put(there(&key, 0), local.as_ptr(), local.len(), Source::Kept, 0) }.unwrap();
        drain(&engine, &mut results);
        assert_eq!(results, [(0, Ok(()))]);
        engine.nic().took.get()[2] - before
    };
    // SAFETY: the vectors that `locals` are of were made before the engine, and are dropped after it.
    let keys = [0, 1].map(|at| unsafe { engine.register(locals[at]) }.unwrap());
    assert_eq!((locals.map(registers), engine.nic().registered()), ([0, 0, 1], 3));
    assert_eq!(engine.deregister(&keys[0]), Ok(()));
    assert_eq!((locals.map(registers), engine.nic().registered()), ([1, 0, 1], 2));
    let ended = engine.deregister(&keys[0]);
    assert_eq!(ended, Err(EngineError::Registration(NicError::BadKey { peer: 0 })));
    // Its place is the next one's.
    // SAFETY: the third vector, too, is dropped after the engine.
    let third = unsafe { engine.register(locals[2]) }.unwrap();
    assert_eq!((locals.map(registers), engine.nic().registered()), ([1, 0, 0], 3));
    assert_eq!(engine.deregister(&keys[1]), Ok(()));
    assert_eq!((locals.map(registers), engine.nic().registered()), ([1, 1, 0], 2));
    assert_eq!(engine.deregister(&third), Ok(()));
    assert_eq!((locals.map(registers), engine.nic().registered()), ([1, 1, 1], 1));
}

/// A NIC that has room gets all pieces of an operation when that is started; what was started later waits behind what waits.
#[test]
fn what_can_be_posted_is_posted_at_once_and_in_order() {
    let mut remote = vec![0u8; 512];
    let abilities = Abilities { largest: 64, ..GENEROUS };
    let fake = Fake { roomy: true, ..Fake::new(abilities, raw(&mut remote), 3) };
    let engine = engine(fake, RawSlice::EMPTY, 16).unwrap();
    let (key, source, first) = (Key(vec![7]), [9u8; 200], remote.as_ptr().addr());
    let put = |offset, len, token| {
        // SAFETY: engine.1: `source` has 200 bytes, no fewer than `len`, is there when the engine is dropped, and is only read.
        unsafe { engine.put(there(&key, offset), source.as_ptr(), len, Source::Kept, token) }.unwrap();
    };
    let posted = || -> Vec<(usize, usize)> {
        let under_way = engine.nic().under_way.borrow();
        under_way.iter().map(|post| (post.there.as_ptr().addr() - first, post.there.len())).collect()
    };
    put(0, 200, 0);
    let mut wanted = vec![(0, 64), (64, 64), (128, 64), (192, 8)];
    assert_eq!(posted(), wanted);
    engine.nic().stuck.set(true);
    put(200, 100, 1);
    engine.nic().stuck.set(false);
    put(300, 8, 2);
    assert_eq!(posted(), wanted, "it does not overtake what waits");
    engine.poll(0, &mut |_, _| panic!("nothing is over"));
    wanted.extend([(200, 64), (264, 36), (300, 8)]);
    assert_eq!(posted(), wanted);
    let mut results = Vec::new();
    drain(&engine, &mut results);
    results.sort_by_key(|result| result.0);
    assert_eq!(results, [(0, Ok(())), (1, Ok(())), (2, Ok(()))]);
    drop(engine);
    assert_eq!(remote, [[9u8; 308].to_vec(), vec![0; 204]].concat());
}

/// What someone sees of an operation of so many bytes: posts of each way, registrations, and whether the source came back early.
fn seen(abilities: Abilities, put: bool, offset: u64, len: usize, registered: bool) -> ([usize; 3], bool) {
    let abilities = Abilities { registers_local: true, short: 1 << 14, get_alignment: 4, ..abilities };
    let (mut remote, mut local) = (vec![5u8; 1 << 16], vec![6u8; len]);
    let mut memory = vec![0u64; 1 << 12];
    let parts = RawSlice::new(memory.as_mut_ptr().cast(), 1 << 15);
    let engine = tuned(
        Fake::new(abilities, raw(&mut remote), (len as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        parts,
        &Tuning { descriptors: 32, ..Tuning::default() },
    );
    let (engine, local, key) = (engine.unwrap(), raw(&mut local), Key(vec![7]));
    if registered {
        // SAFETY: `local` lies in a vector that was made before the engine, and is dropped after it.
        unsafe { engine.register(local) }.unwrap();
    }
    let before = engine.nic().took.get();
    // SAFETY: engine.1: `local` has `len` bytes, outlives the engine, and is not used meanwhile.
    let started = unsafe {
        match put {
            true => engine.put(there(&key, offset), local.as_ptr(), len, Source::WantedBack, 0),
            false => engine.get(there(&key, offset), local.as_ptr(), len, 0),
        }
    };
    started.unwrap();
    let (mut results, early) = (Vec::new(), Cell::new(false));
    drain_reusing(&engine, &mut results, &|_| early.set(true));
    assert_eq!(results, [(0, Ok(()))]);
    // Only who wants a source back has the NIC say when, and not of what was copied.
    let (apart, early_post) = (engine.nic().apart.get() > 0, put && len > 4096);
    assert_eq!(apart, early_post, "{len} bytes");
    let took = engine.nic().took.get();
    ([0, 1, 2].map(|at| took[at] - before[at]), early.get())
}

#[test]
#[cfg(not(miri))] // It counts posts and registrations, for a quarter of a minute.
fn transfers_take_no_more_posts_and_registrations_than_they_need() {
    let silent = GENEROUS;
    for (put, offset, len, registered, wanted) in [
        // Short ones: one post, wherever the bytes are.
        (true, 1, 8, false, [1, 0, 0]),
        (true, 0, 4096, true, [1, 0, 0]),
        (false, 4, 128, false, [1, 0, 0]),
        (false, 8, 4096, true, [1, 0, 0]),
        // Long ones: one post, and a registration where there is none.
        (true, 3, LONG, true, [0, 1, 0]),
        (true, 3, LONG, false, [0, 1, 1]),
        (false, 4, LONG, true, [0, 1, 0]),
        (false, 4, LONG, false, [0, 1, 1]),
        // Two posts more where the edges are askew.
        (false, 3, LONG, true, [2, 1, 0]),
        (false, 3, 9, false, [1, 0, 0]),
    ] {
        let (took, _) = seen(silent, put, offset, len, registered);
        assert_eq!(took, wanted, "put {put}, {len} bytes at {offset}, registered {registered}");
    }
}

/// Puts and gets from and to the same places, which are longer than what is registered at once.
#[test]
#[cfg(not(any(miri, gasworks_tsan)))] // As above; and of one thread.
fn a_transfer_that_was_made_before_registers_nothing() {
    let len = (9 << 20) + 5000;
    let abilities = Abilities { registers_local: true, largest: 1 << 30, ..GENEROUS };
    let (mut remote, mut local, mut other) = (vec![5u8; len + 8], vec![6u8; len + 1], vec![7u8; len]);
    let mut memory = vec![0u64; 1 << 12];
    let parts = RawSlice::new(memory.as_mut_ptr().cast(), 1 << 15);
    for (keeps, keeps_registrations) in [(true, false), (false, true)] {
        let abilities = Abilities { keeps_registrations, ..abilities };
        let tuning = Tuning { descriptors: 32, ..Tuning::default() };
        let engine = tuned(Fake::new(abilities, raw(&mut remote), 5), parts, &tuning).unwrap();
        let (key, before) = (Key(vec![7]), engine.nic().took.get()[2]);
        let pieces = len.div_ceil(8 << 20);
        for round in 0..3 {
            let mut results = Vec::new();
            // SAFETY: engine.1: `local` has `len` bytes behind its first, `other` has `len`; both outlive the engine, unused meanwhile.
            unsafe {
                engine.put(there(&key, 0), raw(&mut local).as_ptr().add(1), len, Source::Kept, 0).unwrap();
                engine.get(there(&key, 4), raw(&mut other).as_ptr(), len, 1).unwrap();
            }
            drain(&engine, &mut results);
            results.sort_by_key(|result| result.0);
            assert_eq!(results, [(0, Ok(())), (1, Ok(()))]);
            let wanted = if keeps { 2 * pieces } else { 2 * pieces * (round + 1) };
            assert_eq!(engine.nic().took.get()[2] - before, wanted);
            assert_eq!(engine.nic().registered(), 1 + if keeps { wanted } else { 0 });
        }
        let counts = engine.registrations();
        assert_eq!((counts.kept, counts.hits), if keeps { (2 * pieces, 4 * pieces as u64) } else { (0, 0) });
    }
}

#[test]
fn registrations_end_with_their_memory_and_with_the_engine() {
    let abilities = Abilities { registers_local: true, ..GENEROUS };
    let (mut remote, source, mut memory) = (vec![5u8; LONG], vec![6u8; LONG], vec![0u64; 1 << 12]);
    let parts = RawSlice::new(memory.as_mut_ptr().cast(), 1 << 15);
    let (tuning, told) = (Tuning { descriptors: 32, ..Tuning::default() }, Told::default());
    let fake = Fake::new(abilities, raw(&mut remote), 5);
    let engine = watched::<Seq>(fake, parts, &tuning, told.clone()).unwrap();
    let (key, mut results) = (Key(vec![7]), Vec::new());
    for kept in [1, 0, 1] {
        if kept == 0 {
            told.knows().gone.push_back(Gone::All);
            engine.poll(1, &mut |_, _| panic!("nothing was started"));
        } else {
            // SAFETY: engine.1: `source` has `LONG` bytes, is there when the engine is dropped, and is only read.
            unsafe { engine.put(there(&key, 0), source.as_ptr(), LONG, Source::Kept, 0) }.unwrap();
            drain(&engine, &mut results);
        }
        assert_eq!((engine.registrations().kept, engine.nic().registered()), (kept, 1 + kept));
        assert_eq!(told.knows().watched.is_empty(), kept == 0);
    }
    drop(engine);
    assert!(told.knows().watched.is_empty());
}

#[test]
fn a_source_comes_back_as_soon_as_it_can() {
    let tells = Abilities { tells_source: true, ..GENEROUS };
    // Copied at once, where there is room; else it takes the NIC to say so, which this one does for some seeds.
    assert!(seen(GENEROUS, true, 0, 8, false).1 && seen(GENEROUS, true, 0, 4000, true).1);
    let lengths = || LONG..LONG + if cfg!(miri) { 10 } else { 20 };
    assert!(lengths().all(|len| !seen(GENEROUS, true, 0, len, true).1));
    assert!(lengths().any(|len| seen(tells, true, 0, len, true).1));
}

#[test]
fn what_cannot_be_registered_goes_in_pieces() {
    let (mut remote, mut memory) = (vec![0u8; 1 << 16], vec![0u64; 1 << 12]);
    let abilities = Abilities { registers_local: true, short: 256, ..GENEROUS };
    let parts = RawSlice::new(memory.as_mut_ptr().cast(), 1 << 15);
    let tuning = Tuning { descriptors: 32, ..Tuning::default() };
    let mut engine = tuned(Fake::new(abilities, raw(&mut remote), 9), parts, &tuning).unwrap();
    engine.nic.refuse_registration = true;
    let len = 2 * LONG + 2000;
    let (source, key, mut results) = (vec![3u8; len], Key(vec![7]), Vec::new());
    // SAFETY: engine.1: `source`, all of which is put, is there when the engine is dropped, below, and is only read.
    unsafe { engine.put(there(&key, 5), source.as_ptr(), source.len(), Source::Kept, 1) }.unwrap();
    drain(&engine, &mut results);
    drop(engine);
    assert_eq!(results, [(1, Ok(()))]);
    assert_eq!((remote[4], &remote[5..len + 5], remote[len + 5]), (0, &source[..], 0));
}

/// A NIC that never has room, with nothing under way that would make some.
#[test]
fn an_operation_is_not_tried_for_ever() {
    let mut remote = vec![0u8; 64];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 3), RawSlice::EMPTY, 2).unwrap();
    engine.nic().stuck.set(true);
    let (key, source, mut results) = (Key(vec![7]), [9u8; 8], Vec::new());
    // SAFETY: engine.1: `source` has 8 bytes, is there until the engine is drained, and is only read.
    unsafe { engine.put(there(&key, 0), source.as_ptr(), 8, Source::Kept, 4) }.unwrap();
    drain(&engine, &mut results);
    assert_eq!(results, [(4, Err(NicError::Starved { times: super::state::TRIES }))]);
    engine.nic().stuck.set(false);
    // SAFETY: engine.1: these are the same 8 bytes of `source`, which is there until the engine is drained again.
    unsafe { engine.put(there(&key, 0), source.as_ptr(), 8, Source::Kept, 5) }.unwrap();
    drain(&engine, &mut results);
    assert_eq!(results[1], (5, Ok(())));
}

/// With something under way there may be room later, however long it takes.
#[test]
fn an_operation_waits_for_what_is_under_way() {
    let mut remote = vec![0u8; 64];
    let engine = engine(Fake::new(GENEROUS, raw(&mut remote), 3), RawSlice::EMPTY, 2).unwrap();
    let (key, source, mut results) = (Key(vec![7]), [9u8; 8], Vec::new());
    // SAFETY: engine.1: `source` has 8 bytes, is there until the engine is drained, below, and is only read.
    let put = |token| unsafe { engine.put(there(&key, 8 * token), source.as_ptr(), 8, Source::Kept, token) };
    put(0).unwrap();
    while engine.nic().under_way.borrow().is_empty() {
        engine.poll(0, &mut |_, _| ());
    }
    engine.nic().stuck.set(true);
    put(1).unwrap();
    for _ in 0..2 * super::state::TRIES {
        engine.poll(4, &mut |token, progress| note(&mut results, token, progress, &|_| ()));
    }
    assert_eq!(results, []);
    engine.nic().stuck.set(false);
    drain(&engine, &mut results);
    results.sort_by_key(|r| r.0);
    assert_eq!(results, [(0, Ok(())), (1, Ok(()))]);
}
