//! The cache against a plain model of it, with a NIC that counts and a watcher that tells what it is told to.

use super::*;
use crate::nic::{Abilities, Completion, NicError, Post};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a [`Told`] watcher knows.
#[derive(Debug, Default)]
pub(crate) struct Knows {
    /// What has happened, to be told at the next look.
    pub gone: VecDeque<Gone>,
    /// Something is being changed.
    pub changing: bool,
    /// Pages that are watched, by their first byte.
    pub watched: BTreeSet<usize>,
    /// From this address on nothing can be watched, and from that on not everything is told.
    pub limits: Option<(usize, usize)>,
    /// How often somebody has asked whether all is settled.
    pub looks: usize,
    /// What was to be watched no more.
    pub forgotten: Vec<Span>,
}

/// A watcher that tells what it is told to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(Arc<Mutex<Knows>>);

const PAGE: usize = 16;

impl Told {
    pub fn knows(&self) -> MutexGuard<'_, Knows> {
        self.0.lock().expect("no thread panicked")
    }

    /// Memory is unmapped, as the kernel does it.
    fn unmap(&self, span: Span) {
        self.knows().watched.retain(|&page| page < span.start || page >= span.end);
        self.knows().gone.push_back(Gone::Unmapped(span));
    }
}

impl Watch for Told {
    fn is_settled(&mut self) -> bool {
        self.knows().looks += 1;
        !self.knows().changing
    }
    fn next(&mut self) -> Option<Gone> {
        self.knows().gone.pop_front()
    }
    fn watch(&mut self, pages: Span) -> bool {
        let mut knows = self.knows();
        let admits = knows.limits.is_none_or(|(refused, _)| pages.end <= refused);
        if admits {
            knows.watched.extend((pages.start..pages.end).step_by(PAGE));
        }
        admits
    }
    fn tells_all(&mut self, pages: Span) -> bool {
        self.knows().limits.is_none_or(|(_, silent)| pages.end <= silent)
    }
    fn forget(&mut self, pages: Span) {
        assert!(pages.start < pages.end, "nothing is forgotten");
        self.knows().forgotten.push(pages);
        self.knows().watched.retain(|&page| page < pages.start || page >= pages.end);
    }
}

/// A NIC that only registers.
#[derive(Default)]
pub(crate) struct Counting {
    /// By key: where, and until it is ended.
    pub made: RefCell<Vec<(Span, bool)>>,
    /// The most at a time.
    pub limit: Option<usize>,
    /// How often it was asked for one.
    pub asked: Cell<usize>,
    /// Memory that may only be read.
    pub read_only: Cell<Option<Span>>,
}

impl Counting {
    pub fn number(key: &Key) -> usize {
        usize::from_le_bytes(key.0[..].try_into().expect("a key of ours"))
    }

    fn there(&self) -> Vec<Span> {
        let mut there: Vec<Span> =
            self.made.borrow().iter().filter(|made| made.1).map(|made| made.0).collect();
        there.sort_by_key(|span| (span.start, span.end));
        there
    }
}

impl Nic for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }
    fn abilities(&self) -> Abilities {
        Abilities::PLAIN
    }
    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError> {
        self.asked.set(self.asked.get() + 1);
        let may_be_written = !self.read_only.get().is_some_and(|span| span.contains(Span::of(bytes)));
        if !may_be_written || self.limit.is_some_and(|most| self.there().len() >= most) {
            return Err(NicError::Registration { len: bytes.len(), why: "refused" });
        }
        self.made.borrow_mut().push((Span::of(bytes), true));
        Ok(Key((self.made.borrow().len() - 1).to_le_bytes().to_vec()))
    }
    unsafe fn register_source(&self, bytes: RawSlice) -> Result<Key, NicError> {
        let read_only = self.read_only.take();
        // SAFETY: the caller promises of the bytes what `register` asks, which only notes where they are.
        let made = unsafe { self.register(bytes) };
        self.read_only.set(read_only);
        made
    }
    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        let was = std::mem::replace(&mut self.made.borrow_mut()[Self::number(key)].1, false);
        assert!(was, "ended twice");
        Ok(())
    }
    unsafe fn post(&self, _post: &Post<'_>) -> Result<(), NicError> {
        Err(NicError::Busy)
    }
    fn poll(&self, _burst: usize, _sink: &mut dyn FnMut(Completion)) -> usize {
        0
    }
}

fn tuning(registrations: Option<usize>, registration_space: usize) -> Tuning {
    Tuning { registrations, registration_space, ..Tuning::default() }
}

/// Memory of so many pages, and the address of the first.
struct Memory(Vec<u8>);

impl Memory {
    fn of(pages: usize) -> Self {
        Self(vec![0; (pages + 1) * PAGE])
    }
    fn first(&self) -> usize {
        self.0.as_ptr().addr().next_multiple_of(PAGE)
    }
    fn bytes(&mut self, start: usize, len: usize) -> RawSlice {
        let skip = self.first() - self.0.as_ptr().addr();
        RawSlice::new(self.0.as_mut_ptr().wrapping_add(skip + start), len)
    }
}

struct Bench {
    memory: Memory,
    told: Told,
    nic: Counting,
    cache: Cache,
}

impl Bench {
    fn new(registrations: Option<usize>, space: usize, limit: Option<usize>) -> Self {
        let told = Told::default();
        let cache = Cache::new(&tuning(registrations, space), true, PAGE, Box::new(told.clone()));
        Self { memory: Memory::of(32), told, nic: Counting { limit, ..Counting::default() }, cache }
    }
    fn take(&mut self, start: usize, len: usize) -> Result<Lease, Refused> {
        self.take_for(Direction::Get, start, len)
    }
    fn take_for(&mut self, direction: Direction, start: usize, len: usize) -> Result<Lease, Refused> {
        let bytes = self.memory.bytes(start, len);
        // SAFETY: the NIC of these tests counts, and looks at no bytes; they stay as long as the bench.
        unsafe { self.cache.take(&self.nic, bytes, direction) }
    }
    fn give(&mut self, lease: Lease) {
        self.cache.give(&self.nic, lease);
    }
    /// Takes and gives back: the number of the registration.
    fn touch(&mut self, start: usize, len: usize) -> usize {
        let lease = self.take(start, len).expect("registered");
        let number = self.number(&lease);
        self.give(lease);
        number
    }
    fn number(&self, lease: &Lease) -> usize {
        Counting::number(self.cache.key(lease).expect("in use"))
    }
    fn span(&self, start: usize, end: usize) -> Span {
        Span { start: self.memory.first() + start, end: self.memory.first() + end }
    }
    /// What is registered, from the first page on.
    fn there(&self) -> Vec<(usize, usize)> {
        let first = self.memory.first();
        self.nic.there().iter().map(|span| (span.start - first, span.end - first)).collect()
    }
}

/// The source of a put that may only be read is registered for that put, and not found by a get, nor by the next put.
#[test]
fn what_may_only_be_read_is_registered_for_one_put() {
    let mut bench = Bench::new(None, 1 << 20, None);
    let kept = bench.touch(0, 1);
    bench.nic.read_only.set(Some(bench.span(2 * PAGE, 4 * PAGE)));
    for made in [kept + 1, kept + 2] {
        let lease = bench.take_for(Direction::Put, 2 * PAGE + 3, 8).expect("it only reads");
        assert_eq!(bench.number(&lease), made);
        let there = [(0, PAGE), (2 * PAGE + 3, 2 * PAGE + 11)];
        assert_eq!(bench.there(), there, "its bytes alone, and nothing gives way to them");
        bench.give(lease);
        assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![(0, PAGE)], 1));
    }
    assert_eq!(bench.take(2 * PAGE, 8).expect_err("a get writes there"), Refused::Nic);
}

#[test]
fn what_was_registered_is_found_by_its_pages() {
    let mut bench = Bench::new(None, 1 << 20, None);
    let first = bench.touch(20, 30);
    assert_eq!(bench.there(), [(16, 64)]);
    for (start, len) in [(20, 30), (16, 48), (16, 1), (63, 1)] {
        assert_eq!(bench.touch(start, len), first);
    }
    // A byte more at either end is in another page.
    assert_ne!(bench.touch(15, 2), first);
    assert_ne!(bench.touch(63, 2), first);
    assert_eq!(bench.there(), [(0, 32), (16, 64), (48, 80)]);
    let counts = bench.cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.kept, counts.evicted), (4, 3, 3, 0));
    // One that holds others takes their place.
    let whole = bench.touch(10, 60);
    assert_eq!((bench.there(), bench.touch(20, 30)), (vec![(0, 80)], whole));
    bench.cache.close(&bench.nic);
    assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![], 0));
}

#[test]
fn the_oldest_goes_first_and_none_that_is_in_use() {
    let mut bench = Bench::new(Some(3), 1 << 20, None);
    let used = bench.take(0, 1).expect("registered");
    bench.touch(32, 1);
    bench.touch(64, 1);
    bench.touch(32, 1);
    bench.touch(96, 1);
    assert_eq!(bench.there(), [(0, 16), (32, 48), (96, 112)]);
    let more = [bench.take(32, 1).expect("found"), bench.take(96, 1).expect("found")];
    assert_eq!(bench.take(128, 1).err(), Some(Refused::Full));
    let again = bench.take(32, 1).expect("found");
    more.into_iter().for_each(|lease| bench.give(lease));
    assert_eq!(bench.touch(128, 1), 4);
    assert_eq!(bench.there(), [(0, 16), (32, 48), (128, 144)]);
    bench.give(again);
    bench.give(used);
    // Two pages of space: what is larger is not kept, and the rest makes room for each other.
    let mut bench = Bench::new(None, 2 * PAGE, None);
    let ends = |bench: &mut Bench, start, len| {
        bench.touch(start, len);
        bench.there()
    };
    assert_eq!(ends(&mut bench, 0, 3 * PAGE), []);
    assert_eq!(ends(&mut bench, 0, 2 * PAGE), [(0, 32)]);
    assert_eq!(ends(&mut bench, 64, 1), [(64, 80)]);
    let held = bench.take(64, 1).expect("found");
    let alone = bench.take(100, 2 * PAGE).expect("registered");
    assert_eq!(bench.there(), [(64, 80), (100, 132)]);
    bench.give(alone);
    bench.give(held);
    assert_eq!(bench.there(), [(64, 80)]);
}

#[test]
fn a_nic_without_room_is_asked_again_when_there_is_some() {
    let mut bench = Bench::new(None, 1 << 20, Some(2));
    bench.touch(0, 1);
    bench.touch(32, 1);
    let first = bench.take(64, 1).expect("registered");
    assert_eq!(bench.there(), [(32, 48), (64, 80)]);
    let second = bench.take(96, 1).expect("registered");
    assert_eq!(bench.take(128, 1).err(), Some(Refused::Nic));
    assert_eq!(bench.told.knows().watched.len(), 2);
    bench.give(first);
    bench.give(second);
    // As many bytes go as are wanted, or all.
    bench.touch(128, 40);
    assert_eq!(bench.there(), [(128, 176)]);
    // What overlaps with one that goes is watched all the same.
    let mut bench = Bench::new(None, 1 << 20, Some(1));
    bench.touch(0, 32);
    bench.touch(16, 32);
    assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![(16, 48)], 2));
}

#[test]
fn a_nic_without_room_is_asked_no_more_than_it_takes() {
    let mut bench = Bench::new(None, 1 << 20, Some(2));
    let held = [0, 32].map(|start| bench.take(start, 1).expect("registered"));
    // Nothing can be given up for it.
    assert_eq!((bench.take(64, 1).err(), bench.nic.asked.take()), (Some(Refused::Nic), 3));
    assert_eq!(bench.told.knows().watched.len(), 2);
    held.into_iter().for_each(|lease| bench.give(lease));
    // A page goes for a page, and no more.
    bench.touch(64, 1);
    assert_eq!((bench.there(), bench.nic.asked.take()), (vec![(32, 48), (64, 80)], 2));
    // It refuses all the same: what was given up for it is enough.
    bench.nic.limit = Some(0);
    assert_eq!((bench.take(96, 1).err(), bench.nic.asked.take()), (Some(Refused::Nic), 2));
    assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![(64, 80)], 1));
    let counts = bench.cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.evicted, counts.kept), (0, 5, 2, 1));
}

#[test]
fn no_more_is_forgotten_than_was_watched() {
    let mut bench = Bench::new(None, 1 << 20, None);
    let forgotten = |bench: &Bench| {
        let (first, spans) = (bench.memory.first(), std::mem::take(&mut bench.told.knows().forgotten));
        spans.into_iter().map(|span| (span.start - first, span.end - first)).collect::<Vec<_>>()
    };
    // Around the hole, which the system does not watch any more.
    for (hole, wanted) in [
        ((32, 48), vec![(16, 32), (48, 80)]),
        ((0, 32), vec![(32, 80)]),
        ((64, 96), vec![(16, 64)]),
        ((16, 80), vec![]),
        ((0, 96), vec![]),
    ] {
        bench.touch(16, 64);
        bench.told.unmap(bench.span(hole.0, hole.1));
        bench.cache.tend(&bench.nic);
        assert_eq!(forgotten(&bench), wanted, "{hole:?} was unmapped");
        assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![], 0));
    }
    // All of what was emptied, but what another registration needs.
    let (first, second) = (bench.touch(16, 64), bench.touch(48, 64));
    assert_ne!(first, second);
    bench.told.knows().gone.push_back(Gone::Emptied(bench.span(16, 17)));
    bench.cache.tend(&bench.nic);
    assert_eq!((bench.there(), forgotten(&bench)), (vec![(48, 112)], vec![(16, 48)]));
    // Nothing is watched for what is not kept: while something changes, and what is too large.
    bench.told.knows().changing = true;
    bench.touch(160, 1);
    bench.told.knows().changing = false;
    assert_eq!((bench.there(), forgotten(&bench)), (vec![(48, 112)], vec![]));
    bench.cache.close(&bench.nic);
    assert_eq!(forgotten(&bench), [(48, 112)]);
    let mut bench = Bench::new(None, 2 * PAGE, None);
    bench.touch(16, 64);
    assert_eq!(forgotten(&bench), []);
}

#[test]
fn what_something_happened_to_is_not_found() {
    let mut bench = Bench::new(None, 1 << 20, None);
    let first = bench.touch(16, 64);
    let in_use = bench.take(16, 64).expect("found");
    // Before it and behind it.
    bench.told.unmap(bench.span(0, 16));
    bench.told.unmap(bench.span(80, 96));
    assert_eq!(bench.touch(16, 64), first);
    bench.told.unmap(bench.span(64, 80));
    // It is told of at a look for something else, and ended with its last user.
    bench.touch(256, 1);
    assert_eq!((bench.there(), bench.cache.counts().stale), (vec![(16, 80), (256, 272)], 1));
    let second = bench.touch(16, 16);
    assert_ne!(second, first);
    bench.give(in_use);
    assert_eq!(bench.there(), [(16, 32), (256, 272)]);
    // At a poll what nobody uses is ended at once.
    let emptied = Gone::Emptied(bench.span(16, 17));
    bench.told.knows().gone.push_back(emptied);
    bench.cache.tend(&bench.nic);
    assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![(256, 272)], 1));
    bench.told.knows().gone.push_back(Gone::All);
    bench.cache.tend(&bench.nic);
    assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![], 0));
    // While something changes nothing is found, nor kept.
    let third = bench.touch(16, 1);
    bench.told.knows().changing = true;
    assert_ne!(bench.touch(16, 1), third);
    bench.told.knows().changing = false;
    assert_eq!(bench.touch(16, 1), third);
}

#[test]
fn what_cannot_be_watched_is_not_kept() {
    let mut bench = Bench::new(None, 1 << 20, None);
    bench.told.knows().limits = Some((bench.memory.first() + 64, bench.memory.first() + 32));
    for (start, len) in [(60, 10), (20, 20), (64, 16)] {
        let held = bench.take(start, len).expect("registered");
        assert_eq!(bench.there().len(), 1);
        bench.give(held);
        assert_eq!((bench.there(), bench.told.knows().watched.len()), (vec![], 0), "{len} from {start} on");
    }
    bench.touch(0, 32);
    assert_eq!(bench.there(), [(0, 32)]);
    // Without space nobody is asked.
    let told = Told::default();
    for (space, keeps) in [(0, true), (1 << 20, false)] {
        let mut cache = Cache::new(&tuning(None, space), keeps, PAGE, Box::new(told.clone()));
        // SAFETY: the NIC of these tests counts, and looks at no bytes; they stay as long as the bench.
        let lease = unsafe { cache.take(&bench.nic, bench.memory.bytes(64, 1), Direction::Get) };
        let lease = lease.expect("registered");
        assert_eq!((bench.there().len(), told.knows().watched.len()), (2, 0));
        cache.give(&bench.nic, lease);
        assert_eq!((bench.there().len(), told.knows().looks), (1, 0));
        assert_eq!(cache.counts(), Registrations { misses: 1, ..Registrations::default() });
    }
}

/// What is done to the cache.
#[derive(Clone, Debug)]
enum Step {
    Take(usize, usize),
    Give(usize),
    Unmap(usize, usize),
    Empty(usize, usize),
    Lose,
    Change(bool),
    Tend,
}

/// A registration as the model knows it.
struct Plain {
    /// By which the NIC knows it.
    number: usize,
    span: Span,
    kind: Kind,
    users: usize,
    used: u64,
}

/// The cache without its orders: it looks through all that there is.
struct Model {
    all: Vec<Plain>,
    made: usize,
    most: Option<usize>,
    space: usize,
    limit: Option<usize>,
    clock: u64,
    changing: bool,
    counts: Registrations,
}

impl Model {
    fn kept(&self) -> usize {
        self.all.iter().filter(|one| one.kind != Kind::Single).map(|one| one.span.len()).sum()
    }
    fn sweep(&mut self) {
        self.all.retain(|one| one.users > 0 || one.kind == Kind::Live);
    }
    fn evict(&mut self) -> bool {
        let idle = self.all.iter().enumerate().filter(|(_, one)| one.users == 0);
        let Some((oldest, _)) = idle.min_by_key(|(_, one)| one.used) else { return false };
        self.all.remove(oldest);
        self.counts.evicted += 1;
        true
    }
    fn gone(&mut self, span: Span) {
        for one in self.all.iter_mut().filter(|one| one.kind == Kind::Live) {
            if one.span.start < span.end && span.start < one.span.end {
                one.kind = Kind::Stale;
                self.counts.stale += 1;
            }
        }
        self.sweep();
    }
    /// The number of the one that is taken, and where it is.
    fn take(&mut self, exact: Span, pages: Span) -> Result<(usize, Span), Refused> {
        let keeps = !self.changing && self.space > 0;
        let holds = |one: &&mut Plain| keeps && one.kind == Kind::Live && one.span.contains(pages);
        let found = self.all.iter_mut().filter(holds).max_by_key(|one| one.span.start);
        if let Some(one) = found {
            one.users += 1;
            self.counts.hits += 1;
            return Ok((one.number, one.span));
        }
        while self.most.is_some_and(|most| self.all.len() >= most) {
            if !self.evict() {
                return Err(Refused::Full);
            }
        }
        self.counts.misses += 1;
        for is_last in [false, true] {
            let mut keeps = keeps && pages.len() <= self.space;
            while keeps && self.kept() + pages.len() > self.space {
                keeps = self.evict();
            }
            let span = if keeps { pages } else { exact };
            if self.limit.is_none_or(|limit| self.all.len() < limit) {
                for one in self.all.iter_mut().filter(|one| keeps && one.kind == Kind::Live) {
                    if span.contains(one.span) {
                        one.kind = Kind::Stale;
                        self.counts.evicted += 1;
                    }
                }
                self.sweep();
                let kind = if keeps { Kind::Live } else { Kind::Single };
                let number = self.made;
                self.all.push(Plain { number, span, kind, users: 1, used: 0 });
                self.made += 1;
                return Ok((number, span));
            }
            let before = self.kept();
            while before - self.kept() < span.len() && self.evict() {}
            if is_last || self.kept() == before {
                break;
            }
        }
        Err(Refused::Nic)
    }
    fn give(&mut self, number: usize) {
        self.clock += 1;
        let one = self.all.iter_mut().find(|one| one.number == number).expect("it is in use");
        one.users -= 1;
        one.used = self.clock;
        self.sweep();
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0usize..300, 1usize..120);
    let pages = || (0usize..22, 1usize..5).prop_map(|(first, pages)| (first * PAGE, (first + pages) * PAGE));
    let step = prop_oneof![
        8 => place().prop_map(|(start, len)| Step::Take(start, len)),
        6 => (0usize..8).prop_map(Step::Give),
        1 => pages().prop_map(|(start, end)| Step::Unmap(start, end)),
        1 => pages().prop_map(|(start, end)| Step::Empty(start, end)),
        1 => Just(Step::Tend),
        1 => any::<bool>().prop_map(Step::Change),
        1 => prop::sample::select(vec![Step::Lose, Step::Tend, Step::Tend]),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else if cfg!(gasworks_tsan) { 20 } else { 2000 }, failure_persistence: None,
        ..ProptestConfig::default() })]
    #[test]
    fn it_does_as_the_model(
        steps in steps(),
        most in prop::sample::select(vec![None, Some(1), Some(4)]),
        space in prop::sample::select(vec![0, 6 * PAGE, 1 << 20]),
        limit in prop::sample::select(vec![None, None, Some(1), Some(3)]),
    ) {
        let mut bench = Bench::new(most, space, limit);
        let mut model = Model {
            all: Vec::new(), made: 0, most, space, limit, clock: 0, changing: false, counts: Registrations::default(),
        };
        let mut held: Vec<Lease> = Vec::new();
        // When each page last lost its memory, and how many registrations there had been.
        let mut lost = [0usize; 40];
        let mut untold: Vec<Span> = Vec::new();
        for step in steps {
            let made = bench.nic.made.borrow().len();
            let mut happens = |bench: &Bench, (start, end): (usize, usize)| {
                lost[start / PAGE..end / PAGE].fill(made);
                untold.push(bench.span(start, end));
                bench.span(start, end)
            };
            match step {
                Step::Take(start, len) => {
                    untold.drain(..).for_each(|span| model.gone(span));
                    let exact = bench.span(start, start + len);
                    let first = start / PAGE * PAGE;
                    let pages = bench.span(first, (start + len).next_multiple_of(PAGE));
                    let wanted = model.take(exact, pages);
                    let taken = bench.take(start, len);
                    match (taken, wanted) {
                        (Ok(lease), Ok((wanted, span))) => {
                            let number = bench.number(&lease);
                            let (at, there) = bench.nic.made.borrow()[number];
                            prop_assert!(number == wanted && at == span && there && at.contains(exact));
                            // cache.2: it was registered after its pages lost their memory.
                            let touched = start / PAGE..(start + len).div_ceil(PAGE);
                            prop_assert!(lost[touched].iter().all(|&when| when <= number));
                            held.push(lease);
                        }
                        (taken, wanted) => prop_assert_eq!(taken.err(), wanted.err()),
                    }
                }
                Step::Give(which) => {
                    if held.is_empty() {
                        continue;
                    }
                    let lease = held.swap_remove(which % held.len());
                    model.give(bench.number(&lease));
                    bench.give(lease);
                }
                Step::Unmap(start, end) => {
                    let span = happens(&bench, (start, end));
                    bench.told.unmap(span);
                }
                Step::Empty(start, end) => {
                    let span = happens(&bench, (start, end));
                    bench.told.knows().gone.push_back(Gone::Emptied(span));
                }
                Step::Lose => {
                    untold.push(Span { start: 0, end: usize::MAX });
                    bench.told.knows().gone.push_back(Gone::All);
                }
                Step::Change(changing) => {
                    bench.told.knows().changing = changing;
                    model.changing = changing;
                }
                Step::Tend => {
                    untold.drain(..).for_each(|span| model.gone(span));
                    bench.cache.tend(&bench.nic);
                }
            }
            let mut wanted: Vec<Span> = model.all.iter().map(|one| one.span).collect();
            wanted.sort_by_key(|span| (span.start, span.end));
            prop_assert_eq!(bench.nic.there(), wanted);
            model.counts.kept = model.all.iter().filter(|one| one.kind == Kind::Live).count();
            prop_assert_eq!(bench.cache.counts(), model.counts);
            prop_assert_eq!(bench.cache.bytes, model.kept());
            // What is kept is watched and nothing else, but for what was unmapped and not told of yet.
            if untold.is_empty() {
                let live = model.all.iter().filter(|one| one.kind == Kind::Live);
                let pages: BTreeSet<usize> =
                    live.flat_map(|one| (one.span.start..one.span.end).step_by(PAGE)).collect();
                prop_assert_eq!(&bench.told.knows().watched, &pages);
            }
        }
        bench.cache.close(&bench.nic);
        prop_assert_eq!(bench.told.knows().watched.len(), 0);
        held.into_iter().for_each(|lease| bench.give(lease));
        prop_assert_eq!(bench.there(), vec![]);
    }
}
