//! A rank's side: counting, and recording events in the ring.

use super::layout::{
    COUNTERS, EVENT_WORDS, EVENTS_AT, MAGIC, NAME_WORDS, NAMES_AT, Op, Tally, What, class_of, counter_at,
    file_len, head,
};
use super::words::Words;
use crate::Rank;
use gasworks_os::clock;
use gasworks_os::settings::{Kind, Setting, SettingError};
use gasworks_os::{OsError, inherited, process};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::racy::store_words;
use std::os::fd::AsFd;
use std::sync::Arc;
use thiserror::Error;

/// The descriptor of the file in which a rank records.
pub(crate) const OBSERVE_FD: Setting = Setting {
    name: "GASWORKS_OBSERVE_FD",
    aliases: &[],
    kind: Kind::Number { min: 0, max: i32::MAX as u64 },
    default: "",
    unit: "",
    meaning: "the descriptor of the file in which a rank records, set by gasrun for --stats and --trace; unset: nothing \
              is recorded",
    reader: "core",
};

/// Two empty polls further apart than this are not one time of waiting: the program did something else in between.
const APART: u64 = 1_000_000;
/// The bits of an event's bytes; the thread is above them.
pub(super) const BYTES_BITS: u32 = 40;

/// Why a rank cannot record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The setting is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The file cannot be mapped.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The file is not one for recording.
    #[error(
        "record in the inherited file: {0}; unset GASWORKS_OBSERVE_FD, or use the gasrun of this release"
    )]
    File(String),
}

/// Where one rank of a job records. It counts always; it records events if the file has room for any.
#[derive(Debug)]
pub struct Recorder {
    words: Words,
    capacity: u64,
    /// Which of this process's jobs records, from 0: on every rank the same.
    job: u64,
    idle: Idle,
}

/// Polls, one after the other, that found nothing.
#[derive(Debug, Default)]
struct Idle {
    since: AtomicU64,
    last: AtomicU64,
    polls: AtomicU64,
}

/// What goes on for a while and is recorded when it is over; what is open when a rank dies is known all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Open {
    Barrier,
    Handler,
    Sleep,
    /// The latest that was begun.
    Collective,
}

impl Open {
    pub(super) const ALL: [Open; 4] = [Open::Barrier, Open::Handler, Open::Sleep, Open::Collective];
}

/// What an event was about.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub what: What,
    /// A handler's category and index.
    pub category: u8,
    pub handler: u8,
    pub peer: Rank,
    pub bytes: u64,
    /// Which message it was: the same number where it was sent and where it was handled, 0 for none.
    pub flow: u64,
}

impl About {
    pub(super) fn plain(what: What) -> Self {
        Self { what, category: 0, handler: 0, peer: Rank::MAX, bytes: 0, flow: 0 }
    }

    fn word(self) -> u64 {
        u64::from(self.what as u8)
            | u64::from(self.category) << 8
            | u64::from(self.handler) << 16
            | u64::from(self.peer) << 32
    }
}

impl Recorder {
    /// Where this process was told to record, if it was.
    ///
    /// # Errors
    /// The setting is wrong, or what it names is no file for recording.
    pub fn from_settings(rank: Rank) -> Result<Option<Arc<Self>>, ObserveError> {
        let Some(number) = OBSERVE_FD.number()? else { return Ok(None) };
        let file = inherited::memory(i32::try_from(number).unwrap_or(i32::MAX))?;
        Self::join(file, rank).map(Some)
    }

    /// Records in `file` from now on.
    ///
    /// # Errors
    /// It is no file for recording.
    pub fn join(file: impl AsFd, rank: Rank) -> Result<Arc<Self>, ObserveError> {
        let words = Words::map(file.as_fd())?;
        let all = words.get();
        let word = |at: usize| all.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        if word(head::MAGIC) != MAGIC {
            return Err(ObserveError::File("it does not begin as one for recording".into()));
        }
        let capacity = word(head::CAPACITY);
        let wanted = u32::try_from(capacity).map_or(usize::MAX, file_len);
        if all.len() * 8 < wanted {
            return Err(ObserveError::File(format!("{capacity} events do not fit into {} words", all.len())));
        }
        let job = all.get(head::JOBS).map_or(0, |jobs| jobs.fetch_add(1, Ordering::Relaxed));
        let this = Self { words, capacity, job, idle: Idle::default() };
        this.set(head::RANK, rank.into());
        this.set(head::MONOTONIC, clock::monotonic());
        this.set(head::REALTIME, clock::realtime());
        this.set(head::PID, std::process::id().into());
        Ok(Arc::new(this))
    }

    /// Where the job begins to number its messages, in 32 bits. However many jobs there are, these lie far apart, so that no
    /// message of one has the number of a message of another.
    pub(super) fn first_number(&self) -> u64 {
        // 2^32 by the golden ratio: the multiples of no other number are spread so evenly.
        self.job.wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF
    }

    /// Enters the name of a handler, for whoever reads the recording.
    pub fn name_handler(&self, index: u8, name: &str) {
        let at = NAMES_AT + usize::from(index) * NAME_WORDS;
        let longest = NAME_WORDS * 8 - 1;
        let cut = (0..=name.len().min(longest)).rev().find(|&n| name.is_char_boundary(n)).unwrap_or(0);
        store_words(&self.words.get()[at..at + NAME_WORDS], &name.as_bytes()[..cut]);
    }

    fn set(&self, at: usize, value: u64) {
        self.words.get()[at].store(value, Ordering::Relaxed);
    }

    fn add(&self, at: usize, value: u64) {
        self.words.get()[at].fetch_add(value, Ordering::Relaxed);
    }

    /// Whether events are recorded, not only counts.
    #[inline]
    pub(super) fn traces(&self) -> bool {
        self.capacity > 0
    }

    /// The time, where it is wanted: reading the clock takes longer than counting.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        if self.traces() { clock::monotonic() } else { 0 }
    }

    /// Counts an operation of so many bytes.
    pub fn count(&self, op: Op, bytes: u64) {
        let at = counter_at(op, class_of(bytes));
        debug_assert!(at < super::layout::COUNTERS_AT + 2 * COUNTERS);
        self.add(at, 1);
        self.add(at + 1, bytes);
    }

    /// Adds to a tally.
    pub(super) fn tally(&self, tally: Tally, value: u64) {
        self.add(head::TALLIES + tally as usize, value);
    }

    /// Records what began and ended.
    pub(super) fn event(&self, about: About, start: u64, end: u64) {
        if !self.traces() {
            return;
        }
        let words = self.words.get();
        let number = words[head::EVENTS].fetch_add(1, Ordering::Relaxed);
        let at = EVENTS_AT + EVENT_WORDS * (number % self.capacity) as usize;
        let [tag, place @ ..] = &words[at..at + EVENT_WORDS] else { return };
        // A process that is killed here leaves an event without its number, which is not read.
        tag.store(0, Ordering::Relaxed);
        let bytes = about.bytes.min((1 << BYTES_BITS) - 1);
        let thread = process::thread() as u64;
        let content = [start, end, about.word(), bytes | thread << BYTES_BITS, about.flow];
        for (word, value) in place.iter().zip(content) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: whoever reads the number after this process has ended reads the event too.
        tag.store(number + 1, Ordering::Release);
    }

    /// Something begins that is recorded by [`close`](Self::close), or by whoever [takes](Self::take_open) it.
    pub(super) fn open(&self, open: Open, about: About, start: u64) {
        self.set(head::OPEN_WHAT + open as usize, about.word());
        self.set(head::OPEN + open as usize, start);
    }

    /// It is over.
    pub(super) fn close(&self, open: Open, about: About, start: u64, end: u64) {
        self.set(head::OPEN + open as usize, 0);
        self.event(about, start, end);
    }

    /// When what is open began, if anything is; from now on it is not.
    pub(super) fn take_open(&self, open: Open) -> Option<u64> {
        let start = self.words.get()[head::OPEN + open as usize].swap(0, Ordering::Relaxed);
        (start != 0).then_some(start)
    }

    /// A poll found nothing.
    pub(super) fn polled_in_vain(&self) {
        if !self.traces() {
            return;
        }
        let (now, idle) = (clock::monotonic(), &self.idle);
        if now.saturating_sub(idle.last.load(Ordering::Relaxed)) > APART {
            self.worked();
        }
        if idle.since.load(Ordering::Relaxed) == 0 {
            idle.since.store(now, Ordering::Relaxed);
        }
        idle.last.store(now, Ordering::Relaxed);
        idle.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// A time of waiting goes on: this rank has just slept.
    pub(super) fn still_idle(&self, now: u64) {
        if self.idle.since.load(Ordering::Relaxed) != 0 {
            self.idle.last.store(now, Ordering::Relaxed);
        }
    }

    /// Something is being done: a time of waiting, if there was one, is over.
    pub(super) fn worked(&self) {
        let since = self.idle.since.swap(0, Ordering::Relaxed);
        let polls = self.idle.polls.swap(0, Ordering::Relaxed);
        let last = self.idle.last.load(Ordering::Relaxed);
        if since != 0 && polls > 1 && last > since {
            self.event(About { bytes: polls, ..About::plain(What::Idle) }, since, last);
        }
    }

    /// Counts and records a put, a get or an atomic operation that `act` does.
    pub fn transfer(&self, op: Op, peer: Rank, bytes: u64, act: impl FnOnce()) {
        self.worked();
        self.count(op, bytes);
        let start = self.time();
        act();
        let what = match op {
            Op::Get => What::Get,
            Op::Atomic => What::Atomic,
            _ => What::Put,
        };
        self.event(About { peer, bytes, ..About::plain(what) }, start, self.time());
    }
}
