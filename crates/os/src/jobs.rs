//! The one registry that signal and exit hooks read: who this process is, and what its shared memory is called.
//!
//! It is the only mutable static below the C libraries. A hook may run between any two instructions, so everything
//! in it is a fixed table of atomics: no lock, no allocation. A slot is claimed (`BUSY`), filled, and published
//! (`LIVE`) by a store with release order; a reader that sees `LIVE` by a load with acquire order sees what was
//! filled in. A slot that is taken back while a hook reads it can make that hook's message wrong, nothing else.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use gasworks_sync::RawSlice;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use gasworks_sync::racy::{load_words, store_words};

use crate::hooks::{Act, Ending, Faults, Inquiries};

const FREE: u32 = 0;
const BUSY: u32 = 1;
const LIVE: u32 = 2;

/// The longest name a slot holds, in words of 8 bytes; longer ones are cut.
const NAME_WORDS: usize = 12;
/// Its length in bytes.
pub const NAME_LEN: usize = NAME_WORDS * 8;
/// How many ranges of memory can have a name at once: one for each rank of a host and some more.
const RANGES: usize = 4096 + 512;
/// How many jobs can be open at once in one process.
const JOBS: usize = 64;

/// A name with a range of addresses, or with none.
struct Slot {
    state: AtomicU32,
    name_len: AtomicU32,
    start: AtomicUsize,
    len: AtomicUsize,
    name: [AtomicU64; NAME_WORDS],
}

impl Slot {
    const fn empty() -> Slot {
        Slot {
            state: AtomicU32::new(FREE),
            name_len: AtomicU32::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            name: [const { AtomicU64::new(0) }; NAME_WORDS],
        }
    }

    fn try_fill(&self, start: usize, len: usize, name: &str) -> bool {
        if self.state.compare_exchange(FREE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let cut = (0..=name.len().min(NAME_LEN)).rev().find(|&n| name.is_char_boundary(n)).unwrap_or(0);
        store_words(&self.name, &name.as_bytes()[..cut]);
        self.name_len.store(cut as u32, Ordering::Relaxed);
        self.start.store(start, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.state.store(LIVE, Ordering::Release);
        true
    }

    fn is_live(&self) -> bool {
        self.state.load(Ordering::Acquire) == LIVE
    }

    fn name(&self) -> Name {
        let mut bytes = [0; NAME_LEN];
        load_words(&self.name, &mut bytes);
        Name { bytes, len: (self.name_len.load(Ordering::Relaxed) as usize).min(NAME_LEN) }
    }
}

/// A name copied out of the registry.
pub(crate) struct Name {
    bytes: [u8; NAME_LEN],
    len: usize,
}

impl Name {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

struct Registry {
    ranges: [Slot; RANGES],
    /// One above the highest range slot ever used, so that a hook looks no further.
    used: AtomicUsize,
    /// Where a free one is likely: a rank names the memory of each other one, and would look at all that it has named.
    free: AtomicUsize,
    jobs: [Slot; JOBS],
    faults: Faults,
    inquiries: Inquiries,
    ending: Ending,
    /// What one process has of a kind and keeps from job to job. Not for hooks: it is behind a lock.
    kept: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    /// What is to be done at the end of the process. For the exit hook, which runs where `exit` was called, and not for signals.
    acts: Mutex<Vec<Act>>,
}

static REGISTRY: Registry = Registry {
    ranges: [const { Slot::empty() }; RANGES],
    used: AtomicUsize::new(0),
    free: AtomicUsize::new(0),
    jobs: [const { Slot::empty() }; JOBS],
    faults: Faults::new(),
    inquiries: Inquiries::new(),
    ending: Ending::new(),
    kept: Mutex::new(None),
    acts: Mutex::new(Vec::new()),
};

pub(crate) fn faults() -> &'static Faults {
    &REGISTRY.faults
}

pub(crate) fn inquiries() -> &'static Inquiries {
    &REGISTRY.inquiries
}

pub(crate) fn ending() -> &'static Ending {
    &REGISTRY.ending
}

pub(crate) fn acts() -> &'static Mutex<Vec<Act>> {
    &REGISTRY.acts
}

/// What this process keeps from job to job: its connection to the launcher. Made by the first who asks, at most once.
///
/// # Errors
/// That of `make`; it is tried again at the next call.
///
/// # Panics
/// If something of another type is kept.
pub fn kept<T: Any + Send + Sync, E>(make: impl FnOnce() -> Result<Arc<T>, E>) -> Result<Arc<T>, E> {
    let mut kept = REGISTRY.kept.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match &*kept {
        Some(found) => Arc::clone(found),
        None => {
            let made: Arc<dyn Any + Send + Sync> = make()?;
            *kept = Some(Arc::clone(&made));
            made
        }
    };
    match found.downcast() {
        Ok(found) => Ok(found),
        Err(_) => unreachable!("one layer keeps one type"),
    }
}

/// Takes an entry back when it is dropped.
#[derive(Debug)]
#[must_use = "the entry is taken back when this is dropped"]
pub struct Guard(Option<Entry>);

#[derive(Debug)]
enum Entry {
    Range(usize),
    Job(usize),
}

impl Drop for Guard {
    fn drop(&mut self) {
        let slot = match self.0 {
            Some(Entry::Range(i)) => {
                // The lowest one, so that a process in many jobs, one after the other, uses the same few.
                REGISTRY.free.fetch_min(i, Ordering::Relaxed);
                &REGISTRY.ranges[i]
            }
            Some(Entry::Job(i)) => &REGISTRY.jobs[i],
            None => return,
        };
        slot.state.store(FREE, Ordering::Release);
    }
}

/// Says who this process is in a job, for the messages of hooks: `rank 2`. With several jobs open, the one that was
/// entered into the lowest free slot speaks. Where the table is full nothing is entered.
pub fn enter(who: &str) -> Guard {
    Guard(REGISTRY.jobs.iter().position(|slot| slot.try_fill(0, 0, who)).map(Entry::Job))
}

/// Names a range of addresses; with a full table it stays unnamed.
pub(crate) fn enter_range(bytes: RawSlice, name: &str) -> Guard {
    let start = bytes.as_ptr() as usize;
    let likely = REGISTRY.free.load(Ordering::Relaxed).min(RANGES);
    let mut places = (likely..RANGES).chain(0..likely);
    let place = places.find(|&place| REGISTRY.ranges[place].try_fill(start, bytes.len(), name));
    if let Some(place) = place {
        REGISTRY.free.store(place + 1, Ordering::Relaxed);
        REGISTRY.used.fetch_max(place + 1, Ordering::AcqRel);
    }
    Guard(place.map(Entry::Range))
}

/// Who this process is, if it said so. Safe in a signal handler.
pub(crate) fn who() -> Option<Name> {
    REGISTRY.jobs.iter().find(|slot| slot.is_live()).map(Slot::name)
}

/// The named range that holds `address`: its name and the offset in it. Safe in a signal handler.
pub(crate) fn range_of(address: usize) -> Option<(Name, usize)> {
    let used = REGISTRY.used.load(Ordering::Acquire).min(RANGES);
    REGISTRY.ranges[..used].iter().filter(|slot| slot.is_live()).find_map(|slot| {
        let offset = address.checked_sub(slot.start.load(Ordering::Relaxed))?;
        (offset < slot.len.load(Ordering::Relaxed)).then(|| (slot.name(), offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go() {
        let mut bytes = [0u8; 64];
        // The registry never touches the bytes.
        let raw = RawSlice::new(bytes.as_mut_ptr(), 64);
        let at = raw.as_ptr() as usize;
        let guard = enter_range(raw, "a test's bytes");
        let (name, offset) = range_of(at + 63).expect("named");
        assert_eq!((name.as_bytes(), offset), (b"a test's bytes".as_slice(), 63));
        assert!(range_of(at + 64).is_none());
        drop(guard);
        assert!(range_of(at + 63).is_none());
        // Wherever one is free, in the end from the first on.
        let most: Vec<_> = (0..RANGES).map(|_| enter_range(raw, "one of many")).collect();
        assert!(enter_range(raw, "one too many").0.is_none());
        drop(most);
        let long = enter_range(raw, &"é".repeat(100));
        assert_eq!(range_of(at).map(|(n, _)| n.as_bytes().len()), Some(NAME_LEN));
        drop(long);
    }
}
