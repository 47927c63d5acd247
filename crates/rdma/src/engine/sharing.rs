//! An engine that several threads share, and several engines that share their registrations, over one fake NIC.

use super::fake::{Fake, GENEROUS, raw, there};
use super::*;
use crate::cache::tests::Told;
use crate::nic::{Completion, Post};
use gasworks_sync::{Par, Seq};
use std::rc::Rc;

/// One that two engines drive, one after the other.
struct Both(Rc<Fake>);

impl Nic for Both {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }
    unsafe fn register(&self, bytes: RawBytes) -> Result<Key, NicError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.register(bytes) }
    }
    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        self.0.deregister(key)
    }
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.post(post) }
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        self.0.poll(burst, sink)
    }
}

#[test]
fn engines_of_a_rank_find_each_other_s_registrations() {
    let abilities = Abilities { registers_local: true, ..GENEROUS };
    let (mut remote, source, mut memory) = (vec![5u8; 9000], vec![6u8; 9000], vec![0u8; 1 << 16]);
    let all = raw(&mut memory);
    let (tuning, told) = (Tuning { descriptors: 32, ..Tuning::default() }, Told::default());
    let fake = Rc::new(Fake::new(abilities, raw(&mut remote), 5));
    let registry = Registry::watched(&tuning, false, Box::new(told.clone()));
    let engine = |half: usize| {
        let part = all.slice(half << 15, 1 << 15).unwrap();
        Engine::<Seq, Both>::sharing(Box::new(Both(fake.clone())), part, &tuning, &registry).unwrap()
    };
    let (first, second) = (engine(0), engine(1));
    drop(registry);
    let key = Key(vec![7]);
    let put = |engine: &Engine<Seq, Both>| {
        // SAFETY: `source` outlives the engine and is only read (E1).
        unsafe { engine.put(there(&key, 0), source.as_ptr(), 9000, Source::Kept, 0) }.unwrap();
        while engine.pending() > 0 {
            engine.poll(4, &mut |_, progress| {
                assert!(matches!(progress, Progress::Copied | Progress::Done(Ok(()))))
            });
        }
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

#[test]
fn an_engine_for_several_threads_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine<Par, dyn Nic + Send + Sync>>();
}
