//! The table against its promises, and against a plain model.

use super::*;
use crate::NicError;
use gasworks_sync::Seq;
use proptest::prelude::*;
use std::any::Any;

/// An action is the number of a rank here.
type Ops = Completions<Seq, u32, Box<dyn Any>, NicError>;

#[test]
fn an_event_is_good_once() {
    let ops = Ops::default();
    let id = ops.start(None, Categories::GET, Some(Box::new(7u32)));
    assert!(matches!(ops.test(id), Ok(None)));
    assert!(ops.complete(id.to_bits(), Ok(())).is_some());
    assert!(ops.complete(id.to_bits(), Ok(())).is_none(), "a second completion is ignored");
    let finished = ops.test(id);
    assert!(matches!(&finished, Ok(Some((Ok(()), Some(kept)))) if kept.downcast_ref() == Some(&7u32)));
    assert_eq!(ops.test(id).err(), Some(Unknown));
    let next = ops.start(None, Categories::GET, None);
    assert_ne!(next, id);
    assert_eq!(ops.test(id).err(), Some(Unknown));
}

#[test]
fn what_an_abandoned_operation_keeps_lives_until_it_completes() {
    let ops = Ops::default();
    let kept = std::rc::Rc::new(());
    let id = ops.start(None, Categories::GET, Some(Box::new(kept.clone())));
    ops.abandon(id);
    assert_eq!(std::rc::Rc::strong_count(&kept), 2);
    assert!(ops.complete(id.to_bits(), Err(NicError::Busy)).is_some());
    assert_eq!(std::rc::Rc::strong_count(&kept), 1);
}

#[test]
fn numbers_name_operations_and_their_leaves() {
    let ops = Ops::default();
    let id = ops.start(None, Categories::PUT, None);
    assert!(id.to_bits() > 1 && OpId::from_bits(id.to_bits()) == Some(id));
    assert_eq!((OpId::from_bits(0), OpId::from_bits(1)), (None, None));
    let leaf = id.leaf(Categories::LOCAL);
    assert_eq!((leaf, leaf.root(), leaf.leaf_of()), (id.leaf(Categories::LOCAL), id, Categories::LOCAL));
    assert_eq!(leaf.leaf(Categories::LOCAL), leaf);
    ops.complete_locally(id.to_bits());
    assert!(matches!(ops.test(leaf), Ok(Some(_))) && matches!(ops.test(leaf), Ok(Some(_))));
    assert!(matches!(ops.test(id), Ok(None)));
    assert!(ops.complete(id.to_bits(), Ok(())).is_some());
    assert!(matches!(ops.test(id), Ok(Some(_))));
    assert_eq!(ops.test(leaf).err(), Some(Unknown), "a leaf dies with its root");
}

#[test]
fn an_answer_is_taken_once_and_if_it_is_the_one() {
    let ops = Ops::default();
    for ended in [Ok(()), Err(NicError::BadKey { peer: 3 })] {
        let id = ops.start(Some(3), Categories::UPDATE, None);
        let answer = |token, wanted: Option<_>| ops.answer(token, |&asked| wanted.filter(|_| asked == 3));
        assert!(
            !answer(id.to_bits(), None) && !answer(id.to_bits() + 1, Some(ended)) && !answer(0, Some(ended))
        );
        assert!(matches!(ops.test(id), Ok(None)));
        assert!(answer(id.to_bits(), Some(ended)));
        assert!(!answer(id.to_bits(), Some(ended)), "a second time");
        assert!(matches!(ops.test(id), Ok(Some((result, None))) if result == ended));
    }
    let put = ops.start(None, Categories::PUT, None);
    assert!(!ops.answer(put.to_bits(), |_| Some(Ok(()))), "nobody was asked anything");
    assert!(matches!(ops.test(put), Ok(None)));
}

#[test]
fn the_end_of_a_request_has_its_action_though_its_payload_was_free_before() {
    let ops = Ops::default();
    let id = ops.start(Some(7), Categories::LOCAL, None);
    ops.complete_locally(id.to_bits());
    assert!(matches!(ops.test(id), Ok(None)), "its header has not left");
    assert!(matches!(ops.complete(id.to_bits(), Ok(())), Some(Some(7))));
    assert!(matches!(ops.test(id), Ok(Some(_))));
}

#[test]
fn a_set_says_what_failed_in_it() {
    let ops = Ops::default();
    let set = ops.open();
    let ids = [(); 3].map(|()| ops.start_in(set, None, Categories::PUT, None).map_err(|e| e.0));
    for (id, result) in ids.into_iter().zip([Ok(()), Err(NicError::Busy), Ok(())]) {
        assert!(matches!(ops.test(set), Ok(None)));
        assert!(id.is_ok_and(|id| ops.complete(id.to_bits(), result).is_some()));
    }
    assert!(matches!(ops.test(set.leaf(Categories::PUT)), Ok(Some((Ok(()), None)))));
    assert!(matches!(ops.test(set), Ok(Some((Err(NicError::Busy), None)))));
    assert!(ops.start_in(set, None, Categories::PUT, None).is_err(), "it is gone");
}

#[test]
fn what_was_not_started_gives_back_what_it_was_to_keep() {
    let ops = Ops::default();
    let set = ops.open();
    for of in [None, Some(set)] {
        let keep = || Some(Box::new(7u32) as Box<dyn Any>);
        let id = match of {
            None => ops.start(None, Categories::PUT, keep()),
            Some(set) => ops.start_in(set, None, Categories::PUT, keep()).map_err(|e| e.0).expect("a set"),
        };
        assert!(ops.withdraw(id).is_some_and(|kept| kept.downcast_ref() == Some(&7u32)));
        assert!(ops.withdraw(id).is_none() && ops.test(id).is_err());
    }
    assert!(matches!(ops.test(set), Ok(Some((Ok(()), None)))));
}

/// Wakers that count, or panic.
struct Counting(gasworks_sync::atomic::AtomicU32, bool);

impl std::task::Wake for Counting {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, gasworks_sync::atomic::Ordering::Relaxed);
        assert!(!self.1, "a waker of the client's");
    }
}

#[test]
fn the_end_wakes_whoever_waits_and_survives_it() {
    let ops = Ops::default();
    for panics in [false, true] {
        let count = std::sync::Arc::new(Counting(gasworks_sync::atomic::AtomicU32::new(0), panics));
        let (waker, woken) =
            (Waker::from(count.clone()), || count.0.load(gasworks_sync::atomic::Ordering::Relaxed));
        let set = ops.open();
        let [one, two] = [(); 2].map(|()| ops.start_in(set, None, Categories::GET, None).map_err(|e| e.0));
        assert!(matches!(ops.test_or_wake(set, &waker), Ok(None)));
        assert!(one.is_ok_and(|id| ops.complete(id.to_bits(), Ok(())).is_some()));
        assert_eq!(woken(), 0);
        assert!(two.is_ok_and(|id| ops.complete(id.to_bits(), Ok(())).is_some()));
        assert_eq!(woken(), 1);
        assert!(matches!(ops.test_or_wake(set, &waker), Ok(Some(_))));
        let put = ops.start(None, Categories::PUT, None);
        assert!(matches!(ops.test_or_wake(put, &waker), Ok(None)));
        ops.complete_locally(put.to_bits());
        assert_eq!(woken(), 1, "it is not over");
        assert!(ops.complete(put.to_bits(), Ok(())).is_some());
        assert_eq!(woken(), 2);
        // Who does not ask any more is not woken.
        let put = ops.start(None, Categories::PUT, None);
        assert!(matches!(ops.test_or_wake(put, &waker), Ok(None)));
        ops.abandon(put);
        assert_eq!(std::sync::Arc::strong_count(&count), 2, "the waker is gone");
        assert!(ops.complete(put.to_bits(), Ok(())).is_some());
        assert_eq!(woken(), 2);
    }
}

// It leaks on purpose, which Miri takes for an error.
#[cfg(not(miri))]
#[test]
fn what_a_leaked_table_keeps_is_never_freed() {
    let (ops, kept) = (Ops::default(), std::rc::Rc::new(()));
    ops.start(None, Categories::GET, Some(Box::new(kept.clone())));
    ops.leak();
    drop(ops);
    assert_eq!(std::rc::Rc::strong_count(&kept), 2);
}

#[test]
fn numbers_go_round_and_leave_the_highest_bit() {
    const LAST: u32 = (1 << 27) - 1;
    assert_eq!([0, 1, LAST - 1, LAST].map(OpId::next_generation), [1, 2, LAST, 1]);
    let last = OpId::new(u32::MAX, LAST);
    assert_eq!((last.index(), last.generation()), (u32::MAX, LAST));
    assert_eq!(last.leaf(Categories::all()).to_bits(), u64::MAX >> 1);
    assert_eq!(OpId::from_bits(u64::MAX >> 1).map(OpId::root), Some(last));
    assert_eq!([1 << 63, (1 << 63) | (1 << 36), 1 << 35].map(OpId::from_bits), [None; 3]);
    let first = OpId::new(3, 1);
    assert_eq!(first.to_bits(), (1 << 36) | 3);
    assert_eq!(
        (format!("{first:?}"), first.leaf(Categories::GET).leaf_of()),
        ("operation 3.1".into(), Categories::GET)
    );
    assert_eq!(format!("{:?}", first.leaf(Categories::UPDATE)), "operation 3.1 Categories(UPDATE)");
}

/// What is done to the table, each to one of the operations or sets started so far.
#[derive(Clone, Debug)]
enum Step {
    /// Whether something is to be done when it completes, which then waits for its end.
    Start(Categories, bool),
    Open,
    StartIn(usize, Categories),
    Complete(usize, bool),
    CompleteLocally(usize),
    Withdraw(usize),
    Abandon(usize),
    Test(usize, Categories),
}

/// The plain model of an entry: an operation has at most one of each category, a set any number.
#[derive(Clone, Debug)]
struct Plain {
    pending: [u32; 4],
    set: Option<usize>,
    failed: bool,
    abandoned: bool,
    dead: bool,
    is_set: bool,
    acts: bool,
}

impl Plain {
    fn done(&self, of: Categories) -> bool {
        (0..4).all(|bit| of.bits() >> bit & 1 == 0 || self.pending[bit] == 0)
    }
}

fn over(plain: &mut [Plain], at: usize, part: Categories, failed: bool) {
    let set = plain[at].set;
    for bit in (0..4).filter(|bit| part.bits() >> bit & 1 != 0) {
        if plain[at].pending[bit] > 0 {
            plain[at].pending[bit] = 0;
            if let Some(set) = set {
                plain[set].pending[bit] -= 1;
            }
        }
    }
    plain[at].failed |= failed;
    if let Some(set) = set {
        plain[set].failed |= failed;
        let gone = plain[set].abandoned && plain[set].done(Categories::all());
        plain[set].dead |= gone;
    }
    let gone = plain[at].abandoned && plain[at].done(Categories::all());
    plain[at].dead |= gone;
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let counts = prop::sample::select(vec![
        Categories::GET,
        Categories::PUT,
        Categories::PUT_ALONE,
        Categories::LOCAL,
        Categories::UPDATE,
    ]);
    let part = (0u8..16).prop_map(Categories::from_bits_truncate);
    let step = prop_oneof![
        (counts.clone(), any::<bool>()).prop_map(|(counts, acts)| Step::Start(counts, acts)),
        Just(Step::Open),
        (any::<usize>(), counts).prop_map(|(at, counts)| Step::StartIn(at, counts)),
        (any::<usize>(), prop::bool::weighted(0.2)).prop_map(|(at, failed)| Step::Complete(at, failed)),
        any::<usize>().prop_map(Step::CompleteLocally),
        any::<usize>().prop_map(Step::Withdraw),
        any::<usize>().prop_map(Step::Abandon),
        (any::<usize>(), part).prop_map(|(at, part)| Step::Test(at, part)),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 60 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else if cfg!(gasworks_tsan) { 30 } else { 3000 }, failure_persistence: None,
        ..ProptestConfig::default() })]
    #[test]
    fn the_table_does_as_the_plain_model(steps in steps()) {
        let ops = Ops::default();
        let (mut ids, mut plain): (Vec<OpId>, Vec<Plain>) = Default::default();
        let fresh = |counts: Categories, set: Option<usize>, is_set: bool| Plain {
            pending: std::array::from_fn(|bit| u32::from(counts.bits() >> bit & 1)),
            set, failed: false, abandoned: set.is_some(), dead: false, is_set, acts: false,
        };
        for step in steps {
            let pick = |at: usize| if ids.is_empty() { None } else { Some(at % ids.len()) };
            match step {
                Step::Start(counts, acts) => {
                    ids.push(ops.start(acts.then_some(1), counts, None));
                    plain.push(Plain { acts, ..fresh(counts, None, false) });
                }
                Step::Open => {
                    ids.push(ops.open());
                    plain.push(fresh(Categories::empty(), None, true));
                }
                Step::StartIn(at, counts) => {
                    let Some(at) = pick(at).filter(|&at| plain[at].is_set) else { continue };
                    match ops.start_in(ids[at], None, counts, None) {
                        Ok(id) => {
                            prop_assert!(!plain[at].dead);
                            (0..4).for_each(|bit| plain[at].pending[bit] += u32::from(counts.bits() >> bit & 1));
                            ids.push(id);
                            plain.push(fresh(counts, Some(at), false));
                        }
                        Err((error, _)) => {
                            prop_assert!(plain[at].dead && error == Unknown);
                        }
                    }
                }
                Step::Complete(at, failed) => {
                    let Some(at) = pick(at).filter(|&at| !plain[at].is_set) else { continue };
                    let result = if failed { Err(NicError::Busy) } else { Ok(()) };
                    let counted = !plain[at].dead && !plain[at].done(Categories::all());
                    prop_assert_eq!(ops.complete(ids[at].to_bits(), result).is_some(), counted);
                    if counted {
                        over(&mut plain, at, Categories::all(), failed);
                    }
                }
                Step::CompleteLocally(at) => {
                    let Some(at) = pick(at).filter(|&at| !plain[at].is_set) else { continue };
                    ops.complete_locally(ids[at].to_bits());
                    // What is done in the end says all, where nothing else is counted.
                    let waits = plain[at].acts && plain[at].done(Categories::all() - Categories::LOCAL);
                    if !waits && !plain[at].done(Categories::LOCAL) {
                        over(&mut plain, at, Categories::LOCAL, false);
                    }
                }
                Step::Withdraw(at) => {
                    // Only what has not completed is ever withdrawn.
                    let whole = |p: &Plain| !p.is_set && !p.dead && !p.done(Categories::all());
                    let Some(at) = pick(at).filter(|&at| whole(&plain[at])) else { continue };
                    prop_assert!(ops.withdraw(ids[at]).is_none());
                    plain[at].abandoned = true;
                    over(&mut plain, at, Categories::all(), false);
                }
                Step::Abandon(at) => {
                    let Some(at) = pick(at).filter(|&at| plain[at].set.is_none()) else { continue };
                    ops.abandon(ids[at]);
                    plain[at].abandoned = true;
                    plain[at].dead |= plain[at].done(Categories::all());
                }
                Step::Test(at, part) => {
                    let Some(at) = pick(at).filter(|&at| plain[at].set.is_none()) else { continue };
                    match ops.test(ids[at].leaf(part)) {
                        Err(error) => prop_assert!(plain[at].dead && error == Unknown),
                        Ok(None) => {
                            let asked = if part.is_empty() { Categories::all() } else { part };
                            prop_assert!(!plain[at].dead && !plain[at].done(asked));
                        }
                        Ok(Some((result, _))) if part.is_empty() => {
                            prop_assert!(!plain[at].dead && plain[at].done(Categories::all()));
                            prop_assert_eq!(result.is_err(), plain[at].failed);
                            plain[at].dead = true;
                        }
                        Ok(Some((result, _))) => {
                            prop_assert!(!plain[at].dead && plain[at].done(part) && result.is_ok());
                        }
                    }
                }
            }
        }
        let live = plain.iter().filter(|plain| !plain.dead).count();
        prop_assert_eq!(ops.count(), live, "places that nobody uses any more are free");
    }
}
