//! An engine that several threads share, and several engines that share their registrations, over one fake NIC.
//!
//! # Invariants
//! - sharing.1: a fake NIC that several threads have is one engine's, which posts and polls under its lock; and nothing else is asked of
//!   it.

use super::fake::{Fake, GENEROUS, Results, drain, note, raw, raw_words, there};
use super::*;
use crate::cache::tests::Told;
use crate::nic::{Completion, Post};
use gasworks_sync::{Par, Seq};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Mutex;

/// A fake NIC that two engines drive, one after the other (`Rc`), or one engine of several threads (`Box`).
struct Driven<P>(P);

impl<P: Deref<Target = Fake>> Nic for Driven<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }
    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError> {
        // SAFETY: the caller promises that the bytes are mapped, and stay so while a post names them.
        unsafe { self.0.register(bytes) }
    }
    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        self.0.deregister(key)
    }
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        // SAFETY: the caller keeps `post.local` mapped, and of a get to itself, until the completion was polled.
        unsafe { self.0.post(post) }
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        self.0.poll(burst, sink)
    }
}

#[test]
#[cfg(not(miri))] // It counts registrations, for a quarter of a minute.
fn engines_of_a_rank_find_each_other_s_registrations() {
    let abilities = Abilities { registers_local: true, ..GENEROUS };
    let (mut remote, source, mut memory) = (vec![5u8; 9000], vec![6u8; 9000], vec![0u8; 1 << 16]);
    let all = raw(&mut memory);
    let (tuning, told) = (Tuning { descriptors: 32, ..Tuning::default() }, Told::default());
    let fake = Rc::new(Fake::new(abilities, raw(&mut remote), 5));
    let registry = Registry::watched(&tuning, false, Box::new(told.clone()));
    let engine = |half: usize| {
        let part = all.slice(half << 15, 1 << 15).unwrap();
        let nic = Box::new(Driven(fake.clone()));
        // SAFETY: engine.3: each engine has its half of `memory`, which is dropped after both.
        unsafe { Engine::<Seq, Driven<Rc<Fake>>>::sharing(nic, part, &tuning, &registry) }.unwrap()
    };
    let (first, second) = (engine(0), engine(1));
    drop(registry);
    let key = Key(vec![7]);
    let put = |engine: &Engine<Seq, Driven<Rc<Fake>>>| {
        // SAFETY: engine.1: `source` has 9000 bytes, is dropped after both engines, and is only read.
        unsafe { engine.put(there(&key, 0), source.as_ptr(), 9000, Source::Kept, 0) }.unwrap();
        while engine.pending() > 0 {
            engine.poll(4, &mut |_, progress| {
                assert!(matches!(progress, Progress::Copied | Progress::Done(Ok(()))))
            });
        }
        // What it would say once more is for this engine alone.
        fake.late.take();
    };
    for (engine, hits) in [(&first, 0), (&second, 1), (&first, 2), (&second, 3)] {
        put(engine);
        let counts = engine.registrations();
        assert_eq!((counts.kept, counts.misses, counts.hits), (1, 1, hits));
        assert_eq!(fake.registered(), 3, "two engines' memory, and what they put from");
    }
    drop(first);
    put(&second);
    assert_eq!((second.registrations().hits, fake.registered()), (4, 2), "it is kept for the other one");
    drop(second);
    assert!(told.knows().watched.is_empty());
    assert_eq!(fake.registered(), 0);
}

/// What the NIC may still use when an engine ends stays registered, and what nobody uses does not. Miri would take minutes.
#[cfg(not(miri))]
#[test]
fn an_engine_that_ends_with_posts_under_way_leaves_their_memory_registered() {
    for posts in 0..3 {
        ends_with::<Seq>(posts, false);
        ends_with::<Par>(posts, true);
    }
}

fn ends_with<M: Mode>(posts: usize, is_shared: bool) {
    let abilities = Abilities { registers_local: true, ..GENEROUS };
    let (mut remote, mut memory) = (vec![5u8; 9000], vec![0u64; 1 << 12]);
    let (long, idle, little) = (vec![6u8; 9000], vec![7u8; 9000], vec![9u8; 100]);
    let fake = Rc::new(Fake { roomy: true, ..Fake::new(abilities, raw(&mut remote), 5) });
    let (tuning, told) = (Tuning { descriptors: 32, ..Tuning::default() }, Told::default());
    let cache = if is_shared {
        Shelf::Shared(Registry::watched(&tuning, false, Box::new(told.clone())))
    } else {
        Shelf::Own(Box::new(Cache::new(&tuning, true, cache::page(), Box::new(told.clone()))))
    };
    let nic = Box::new(Driven(fake.clone()));
    // SAFETY: engine.3: `memory` is the engine's alone, and is dropped after it.
    let engine =
        unsafe { Engine::<M, Driven<Rc<Fake>>>::registering(nic, raw_words(&mut memory), &tuning, cache) };
    let (engine, key) = (engine.unwrap(), Key(vec![7]));
    // SAFETY: engine.1: `idle`, `little` and `long` are dropped after the engine and its NIC, which only read them.
    let put =
        |from: *const u8, len, source| unsafe { engine.put(there(&key, 0), from, len, source, 0) }.unwrap();
    put(idle.as_ptr(), 9000, Source::Kept);
    drain(&engine, &mut Results::new());
    assert_eq!((fake.registered(), engine.registrations().kept), (2, 1));
    // A put out of the engine's own memory, and one for which memory is registered.
    if posts > 0 {
        put(little.as_ptr(), 100, Source::WantedBack);
    }
    if posts > 1 {
        put(long.as_ptr(), 9000, Source::Kept);
    }
    assert_eq!(fake.under_way.borrow().len(), posts);
    drop(engine);
    assert_eq!(fake.registered(), posts, "the engine's memory, and what is put from");
    assert!(told.knows().watched.is_empty());
    // The NIC is not done yet, and all is there that it needs.
    while !fake.under_way.borrow().is_empty() {
        fake.poll(1, &mut |_| ());
    }
    drop(fake);
    let wanted: &[u8] = [&[7][..], &[9], &[6, 9]][posts];
    assert!(remote[..100].iter().all(|byte| wanted.contains(byte)));
}

// SAFETY: sharing.1: only the engine of `threads_put_by_one_engine` has this NIC, and it registers, posts and polls under its
// lock; the test reads nothing of the NIC while threads run.
unsafe impl Sync for Driven<Box<Fake>> {}

// Threads wait for a lock that keeps a pointer in an integer, which Miri's strict provenance refuses. The thread sanitizer
// runs it.
#[cfg(not(miri))]
#[test]
fn threads_put_by_one_engine() {
    const THREADS: usize = 3;
    const EACH: usize = 500;
    let mut remote = vec![0u8; THREADS * EACH * 8];
    let fake = Driven(Box::new(Fake::new(GENEROUS, raw(&mut remote), 5)));
    let (tuning, told) = (Tuning { descriptors: 4, ..Tuning::default() }, Told::default());
    let cache = Shelf::Own(Box::new(Cache::new(&tuning, true, cache::page(), Box::new(told))));
    // SAFETY: engine.3: no memory is given, so the engine allocates its own.
    let engine =
        unsafe { Engine::<Par, _>::registering(Box::new(fake), RawSlice::EMPTY, &tuning, cache) }.unwrap();
    let ended = Mutex::new(Results::new());
    let poll = || {
        let mut done = |token, progress| note(&mut ended.lock().unwrap(), token, progress, &|_| ());
        engine.poll(4, &mut done)
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, poll) = (&engine, &poll);
            scope.spawn(move || {
                let (key, source) = (Key(vec![7]), [thread as u8 + 1; 8]);
                for number in thread * EACH..(thread + 1) * EACH {
                    let place = there(&key, 8 * number as u64);
                    loop {
                        // SAFETY: engine.1: `source` is this thread's, is only read, and stays until nothing is pending, below.
                        let started =
                            unsafe { engine.put(place, source.as_ptr(), 8, Source::Kept, number as u64) };
                        let Err(error) = started else { break };
                        assert_eq!(error, EngineError::Busy { descriptors: 4 });
                        poll();
                    }
                }
                while engine.pending() > 0 {
                    poll();
                }
            });
        }
    });
    drop(engine);
    let mut ended = ended.into_inner().unwrap();
    ended.sort_by_key(|result| result.0);
    assert_eq!(ended, (0..(THREADS * EACH) as u64).map(|token| (token, Ok(()))).collect::<Vec<_>>());
    for (thread, theirs) in remote.chunks(EACH * 8).enumerate() {
        assert!(theirs.iter().all(|&byte| byte == thread as u8 + 1));
    }
}

#[test]
fn an_engine_for_several_threads_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine<Par, dyn Nic + Send + Sync>>();
}
