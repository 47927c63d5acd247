//! A NIC for the tests: it keeps a NIC's rules, refuses now and then, and completes in any order.
//!
//! # Invariants
//! - fake.1: what it is given are vectors of a test, which keeps them until the engine is gone or done with them, and looks at them only
//!   then or through the engine. No two of them overlap.

use super::*;
use crate::cache::tests::Told;
use crate::nic::{Completion, Post, Stage, Way};
use gasworks_sync::Seq;
use std::cell::{Cell, RefCell};

/// A small generator: what a NIC decides depends on the seed alone.
pub(super) struct Dice(pub Cell<u64>);

impl Dice {
    pub fn roll(&self, sides: u64) -> u64 {
        let mut x = self.0.get() | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        (x >> 11) % sides
    }
}

/// A post that the NIC took.
pub(super) struct Posted {
    direction: Direction,
    local: RawSlice,
    pub(super) there: RawSlice,
    token: u64,
    /// Whether it is to be said when the source may be used again.
    tells: bool,
    /// The source, once that was said.
    kept: Option<Vec<u8>>,
    /// What the peer is told in the end.
    told: Option<u32>,
}

pub(super) struct Fake {
    pub abilities: Abilities,
    /// The peer's registration, whose key is `[7]`.
    pub remote: RawSlice,
    /// Registrations of this rank; the key is the index.
    pub mine: RefCell<Vec<RawSlice>>,
    pub under_way: RefCell<Vec<Posted>>,
    pub dice: Dice,
    /// One post in this many fails when it completes; 0 for none.
    pub faults: u64,
    pub refuse_registration: bool,
    /// It takes nothing more.
    pub stuck: Cell<bool>,
    /// It has room for whatever comes.
    pub roomy: bool,
    /// What it will say once more, at a later poll.
    pub late: Cell<Option<Completion>>,
    /// How many posts of each way it took, and registrations it made.
    pub took: Cell<[usize; 3]>,
    /// How many posts were to say when their source is free.
    pub apart: Cell<usize>,
    /// The most registrations at a time.
    pub most: Cell<usize>,
    /// What the peer was told, whether that had landed, and what could be seen there then; and how often by a post.
    pub told: RefCell<Vec<(u32, bool, Vec<u8>)>>,
    pub told_by_posts: Cell<usize>,
    /// The atomic operations that it did, where, and what the words were.
    pub updated: RefCell<Vec<(Update, usize, u64)>>,
}

impl Fake {
    pub fn new(abilities: Abilities, remote: RawSlice, seed: u64) -> Self {
        Fake {
            abilities,
            remote,
            mine: RefCell::default(),
            under_way: RefCell::default(),
            dice: Dice(Cell::new(seed)),
            faults: 0,
            refuse_registration: false,
            stuck: Cell::new(false),
            roomy: false,
            late: Cell::default(),
            took: Cell::default(),
            apart: Cell::default(),
            most: Cell::default(),
            told: RefCell::default(),
            told_by_posts: Cell::default(),
            updated: RefCell::default(),
        }
    }

    /// How many registrations there are.
    pub fn registered(&self) -> usize {
        self.mine.borrow().iter().filter(|bytes| !bytes.is_empty()).count()
    }

    fn count(&self, what: usize) {
        let mut took = self.took.get();
        took[what] += 1;
        self.took.set(took);
    }
}

fn number(key: &Key) -> Option<usize> {
    Some(u32::from_le_bytes(key.0.get(..4)?.try_into().ok()?) as usize)
}

impl Nic for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn abilities(&self) -> Abilities {
        self.abilities
    }
    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError> {
        if self.refuse_registration {
            return Err(NicError::Registration { len: bytes.len(), why: "refused" });
        }
        self.count(2);
        self.mine.borrow_mut().push(bytes);
        self.most.set(self.most.get().max(self.registered()));
        Ok(Key((self.mine.borrow().len() as u32 - 1).to_le_bytes().to_vec()))
    }
    fn deregister(&self, key: &Key) -> Result<(), NicError> {
        let mut mine = self.mine.borrow_mut();
        let place = number(key).and_then(|number| mine.get_mut(number)).filter(|bytes| !bytes.is_empty());
        place.map(|bytes| *bytes = RawSlice::EMPTY).ok_or(NicError::BadKey { peer: 0 })
    }
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        let Abilities { largest, get_alignment, put_alignment, depth, local_alignment, short, .. } =
            self.abilities;
        let is_get = post.direction != Direction::Put;
        let (len, is_short) = (post.local.len(), post.way == Way::Short);
        let (alignment, longest) = match post.direction {
            Direction::Put => (put_alignment, if is_short { short } else { largest }),
            Direction::Get => (get_alignment, if is_short { short } else { largest }),
            Direction::Update(update) => (update.width(), update.width()),
        };
        if len == 0
            || len > longest
            || is_get && !post.local.as_ptr().addr().is_multiple_of(local_alignment)
            || !len.is_multiple_of(alignment)
            || !post.remote_offset.is_multiple_of(alignment as u64)
        {
            return Err(NicError::BadShape { len, offset: post.remote_offset });
        }
        if self.abilities.registers_local && (is_get || !is_short) {
            let mine = self.mine.borrow();
            let holder = number(post.local_key).and_then(|number| mine.get(number));
            let start = post.local.as_ptr().addr();
            if !holder
                .is_some_and(|h| h.as_ptr().addr() <= start && start + len <= h.as_ptr().addr() + h.len())
            {
                return Err(NicError::BadKey { peer: 0 });
            }
        }
        assert_eq!(post.remote_base, BASE);
        let there = self.remote.slice(post.remote_offset as usize, len).filter(|_| post.remote_key.0 == [7]);
        let there = there.ok_or(NicError::BadKey { peer: post.peer })?;
        let mut under_way = self.under_way.borrow_mut();
        assert!(under_way.len() < depth, "the engine exceeds the depth");
        if self.stuck.get() || !self.roomy && self.dice.roll(4) == 0 {
            return Err(NicError::Busy);
        }
        self.count(usize::from(!is_short));
        let Post { direction, local, token, .. } = *post;
        assert!(!(post.source_apart && is_get), "a get has no source here");
        self.apart.set(self.apart.get() + usize::from(post.source_apart));
        let tells = post.source_apart && self.abilities.tells_source && !is_short;
        under_way.push(Posted { direction, local, there, token, tells, kept: None, told: post.tells });
        Ok(())
    }
    fn tell(&self, peer: u32, number: u32, landed: bool) {
        assert_eq!(peer, 1);
        // SAFETY: fake.1: `remote` is a vector of the test, which does not look at it now; only this NIC writes there, and later.
        let seen = unsafe { std::slice::from_raw_parts(self.remote.as_ptr(), self.remote.len()) };
        self.told.borrow_mut().push((number, landed, seen.to_vec()));
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        let mut handed = 0;
        if self.stuck.get() {
            return 0;
        }
        // By now its descriptor may be another post's.
        if burst > 0
            && let Some(late) = self.late.take()
        {
            sink(late);
        }
        while handed < burst && self.dice.roll(3) != 0 {
            let count = self.under_way.borrow().len() as u64;
            if count == 0 {
                break;
            }
            let pick = self.dice.roll(count) as usize;
            if self.under_way.borrow()[pick].tells && self.dice.roll(2) == 0 {
                let mut under_way = self.under_way.borrow_mut();
                let post = &mut under_way[pick];
                // SAFETY: fake.1: the source is there; nothing was said of it yet, so that it is unchanged.
                let bytes = unsafe { std::slice::from_raw_parts(post.local.as_ptr(), post.local.len()) };
                (post.tells, post.kept) = (false, Some(bytes.to_vec()));
                let token = post.token;
                drop(under_way);
                sink(Completion { token, stage: Stage::Source, result: Ok(()) });
                handed += 1;
                continue;
            }
            let Posted { direction, mut local, there, token, mut kept, told, .. } =
                self.under_way.borrow_mut().swap_remove(pick);
            if let Some(kept) = &mut kept {
                local = raw(kept);
            }
            let failed = self.faults > 0 && self.dice.roll(self.faults) == 0;
            let result = if failed { Err(NicError::PeerGone { peer: 1 }) } else { Ok(()) };
            if !failed {
                let (to, from) = match direction {
                    Direction::Put => (there, local),
                    Direction::Get => (local, there),
                    Direction::Update(update) => {
                        // SAFETY: fake.1: `there` is a part of `remote`, which is there, and to which nobody has a reference now.
                        let was = update.at(unsafe { there.borrow() }).expect("a word");
                        let offset = there.as_ptr().addr() - self.remote.as_ptr().addr();
                        self.updated.borrow_mut().push((update, offset, was));
                        if update.fetches {
                            // SAFETY: fake.1: `local` is there, and nobody looks at it before the completion is handed out.
                            unsafe { local.borrow() }.write(&was.to_le_bytes()[..local.len()]);
                        }
                        (local, RawSlice::EMPTY)
                    }
                };
                // SAFETY: fake.1: both are there, equally long or `from` empty; one is a part of `remote`, and the other lies elsewhere.
                unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            }
            if let Some(number) = told {
                self.told_by_posts.set(self.told_by_posts.get() + 1);
                self.tell(1, number, !failed);
            }
            let whole = Completion { token, stage: Stage::Whole, result };
            sink(whole);
            // A NIC that repeats itself, at once or later.
            match self.dice.roll(5) {
                0 => sink(whole),
                1 => self.late.set(Some(whole)),
                _ => {}
            }
            handed += 1;
        }
        handed
    }
}

pub(super) const GENEROUS: Abilities = Abilities { largest: 1 << 20, depth: 64, ..Abilities::PLAIN };

pub(super) fn raw(bytes: &mut [u8]) -> RawSlice {
    RawSlice::new(bytes.as_mut_ptr(), bytes.len())
}

/// Of words, which are aligned wherever they lie.
pub(super) fn raw_words(words: &mut [u64]) -> RawSlice {
    RawSlice::new(words.as_mut_ptr().cast(), size_of_val(words))
}

pub(super) fn engine(
    nic: Fake,
    bounce: RawSlice,
    descriptors: usize,
) -> Result<Engine<Seq, Fake>, EngineError> {
    tuned(nic, bounce, &Tuning { descriptors, ..Tuning::default() })
}

pub(super) fn tuned(nic: Fake, memory: RawSlice, tuning: &Tuning) -> Result<Engine<Seq, Fake>, EngineError> {
    watched(nic, memory, tuning, Told::default())
}

/// Told by `watch` what happens to memory.
pub(super) fn watched<M: Mode>(
    nic: Fake,
    memory: RawSlice,
    tuning: &Tuning,
    watch: Told,
) -> Result<Engine<M, Fake>, EngineError> {
    let cache = Cache::new(tuning, !nic.abilities.keeps_registrations, cache::page(), Box::new(watch));
    // SAFETY: fake.1: the test keeps `memory` until the engine is gone, and does not look at it.
    unsafe { Engine::registering(Box::new(nic), memory, tuning, Shelf::Own(Box::new(cache))) }
}

/// Where the peer's registration begins in its process.
const BASE: u64 = 4096;

/// A place of the peer.
pub(super) fn there(key: &Key, offset: u64) -> There<'_> {
    There { peer: 1, key: &key.0, base: BASE, offset }
}

/// How operations ended, by token.
pub(super) type Results = Vec<(u64, Result<(), NicError>)>;

/// Notes how an operation ended; `reuse` is told when its source may be used again.
pub(super) fn note(results: &mut Results, token: u64, progress: Progress, reuse: &dyn Fn(u64)) {
    match progress {
        Progress::Copied => {
            assert!(results.iter().all(|r| r.0 != token), "a source is free after the end");
            reuse(token);
        }
        Progress::Done(result) => results.push((token, result)),
    }
}

pub(super) fn drain<M: Mode, N: Nic>(engine: &Engine<M, N>, results: &mut Results) {
    drain_reusing(engine, results, &|_| ());
}

pub(super) fn drain_reusing<M: Mode, N: Nic>(
    engine: &Engine<M, N>,
    results: &mut Results,
    reuse: &dyn Fn(u64),
) {
    for _ in 0..1_000_000 {
        if engine.pending() == 0 {
            return;
        }
        engine.poll(4, &mut |token, progress| note(results, token, progress, reuse));
    }
    panic!("{} operations never finish", engine.pending());
}
