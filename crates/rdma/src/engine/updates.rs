//! Atomic operations, against the same fake NIC.

use super::fake::*;
use super::*;
use proptest::prelude::*;

/// All operations on all types.
fn all() -> Atomics {
    Atomics { of: Type::ALL.map(Type::operations), mixes: false }
}

fn operation() -> impl Strategy<Value = Update> {
    let bits: Vec<Ops> = Ops::all().iter().collect();
    // Miri draws what the language leaves open of floating-point numbers, here and there each for itself.
    let types: Vec<_> = Type::ALL.into_iter().filter(|of| !cfg!(miri) || !of.is_float()).collect();
    let rest = (prop::sample::select(types), prop::sample::select(bits), 0u64..8);
    rest.prop_filter_map("bits of a floating-point number", |(of, bit, by)| Update::new(of, bit, [by, 0]))
}

/// What is where nothing was written.
const UNTOUCHED: u8 = 0xa5;
/// Words that they are done on.
const WORDS: usize = 4;

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else if cfg!(gasworks_tsan) { 20 } else { 1024 }, failure_persistence: None,
        ..ProptestConfig::default() })]
    /// Each is done once or fails, and brings back what the word was, where that is wanted, and nothing else.
    #[test]
    fn each_is_done_once(
        mut asked in prop::collection::vec((operation(), 0..WORDS), 1..40),
        registers_local: bool, depth in 1usize..5, descriptors in 1usize..6, faults in prop::sample::select(vec![0u64, 5]),
        seed: u64, has_immediate: bool,
    ) {
        let abilities = Abilities { registers_local, depth, get_alignment: 4, atomics: all(), ..GENEROUS };
        for (token, (update, word)) in asked.iter_mut().enumerate() {
            // A word is used with one width.
            *word = *word / 2 * 2 + usize::from(update.width() == 4);
            update.operands[1] = token as u64; // of most nothing, and its name here
        }
        let (mut remote, mut memory) = (vec![0u64; WORDS], vec![0u64; if has_immediate { 512 } else { 8 }]);
        let mut results = vec![[UNTOUCHED; 8]; asked.len()];
        // Once: who borrows them anew takes them from those that were handed out.
        let targets = results.as_mut_ptr();
        let key = Key(vec![7]);
        let nic = Fake { faults, ..Fake::new(abilities, raw_words(&mut remote), seed) };
        let tuning = Tuning { descriptors, ..Tuning::default() };
        let given = if registers_local { raw_words(&mut memory) } else { RawSlice::EMPTY };
        let engine = tuned(nic, given, &tuning).unwrap();
        let mut ended = Results::new();
        for (token, (update, word)) in asked.iter().enumerate() {
            let offset = 8 * *word as u64;
            let target = if update.fetches { targets.wrapping_add(token).cast() } else { std::ptr::null_mut() };
            loop {
                // SAFETY: engine.1: `target` is this operation's own of `results`, which outlives the engine, or nothing is fetched.
                match unsafe { engine.update(there(&key, offset), *update, target, token as u64) } {
                    Ok(()) => break,
                    Err(error) => assert_eq!(error, EngineError::Busy { descriptors }),
                }
                engine.poll(4, &mut |token, progress| note(&mut ended, token, progress, &|_| ()));
            }
        }
        drain(&engine, &mut ended);
        let done = engine.nic().updated.take();
        prop_assert_eq!(ended.len(), asked.len());
        ended.sort_unstable_by_key(|(token, _)| *token);
        // What was done, one after the other. Of those that failed nothing was.
        let (mut words, mut was_done) = ([0u64; WORDS], vec![false; asked.len()]);
        for (update, offset, was) in done {
            let token = update.operands[1] as usize;
            prop_assert_eq!((update, offset / 8), asked[token]);
            prop_assert!(!std::mem::replace(&mut was_done[token], true), "twice");
            prop_assert_eq!(ended[token], (token as u64, Ok(())));
            let word = &mut words[offset / 8];
            let low = u64::MAX >> (64 - 8 * update.width());
            prop_assert!(was == *word & low || !update.fetches);
            *word = *word & !low | update.apply(*word);
            let wanted = if update.fetches { was.to_le_bytes() } else { [UNTOUCHED; 8] };
            prop_assert_eq!(&results[token][..update.width()], &wanted[..update.width()]);
            prop_assert_eq!(&results[token][update.width()..], &[UNTOUCHED; 8][update.width()..]);
        }
        for (token, was_done) in was_done.into_iter().enumerate() {
            prop_assert!(was_done || ended[token].1.is_err() && results[token] == [UNTOUCHED; 8]);
        }
        prop_assert!(faults > 0 || ended.iter().all(|(_, result)| result.is_ok()));
    }
}

#[test]
fn what_the_network_cannot_do_is_refused() {
    let adds = Atomics { of: Type::ALL.map(|_| Ops::ADD), mixes: false };
    let abilities = Abilities { atomics: adds, registers_local: true, ..GENEROUS };
    let (mut remote, mut memory) = (vec![0u64; 8], vec![0u64; 512]);
    let tuning = Tuning { descriptors: 2, ..Tuning::default() };
    let key = Key(vec![7]);
    let started = |engine: &Engine<_, _>, bit, offset| {
        let update = Update::new(Type::U64, bit, [1, 0]).unwrap();
        let mut target = 0u64;
        // SAFETY: engine.1: nothing is started, or it fetches nothing, so that `target` is not written.
        unsafe { engine.update(there(&key, offset), update, (&raw mut target).cast(), 1) }
    };
    let engine =
        tuned(Fake::new(abilities, raw_words(&mut remote), 1), raw_words(&mut memory), &tuning).unwrap();
    assert_eq!(engine.atomics(), adds);
    let other = started(&engine, Ops::FADD, 0).unwrap_err();
    assert_eq!(other, EngineError::NoSuchAtomic { of: Type::U64, operation: Ops::FADD });
    let askew = started(&engine, Ops::ADD, 12).unwrap_err();
    assert_eq!(askew, EngineError::UnalignedWord { offset: 12, width: 8 });
    assert_eq!(engine.pending(), 0);
    started(&engine, Ops::ADD, 8).unwrap();
    drain(&engine, &mut Results::new());
    assert_eq!(engine.nic().updated.borrow().len(), 1);
    // A word that comes back has to lie somewhere.
    for (bytes, atomics) in [(4, Atomics::NONE), (7, Atomics::NONE), (8, adds)] {
        let little = raw_words(&mut memory).slice(0, bytes).unwrap();
        let engine = tuned(Fake::new(abilities, raw_words(&mut remote), 1), little, &tuning).unwrap();
        assert_eq!(engine.atomics(), atomics, "{bytes} bytes");
        let one = started(&engine, Ops::ADD, 8);
        let other = EngineError::NoSuchAtomic { of: Type::U64, operation: Ops::ADD };
        assert_eq!(one, if bytes < 8 { Err(other) } else { Ok(()) });
        drain(&engine, &mut Results::new());
    }
}
