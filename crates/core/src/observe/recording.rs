//! The reader's side: what is in a file that a rank recorded in. Nothing in it is trusted.

use super::layout::{
    CLASSES, EVENT_WORDS, EVENTS_AT, MAGIC, NAME_WORDS, NAMES_AT, Op, Tally, What, counter_at, file_len, head,
};
use super::recorder::{BYTES_BITS, Open};
use super::words::Words;
use crate::Rank;
use gasworks_os::memfd::{self, MemFd};
use gasworks_os::{OsError, Result};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::racy::load_words;
use std::os::fd::AsFd;

/// Makes a file for a rank to record in: counts, and the last `events` events.
///
/// # Errors
/// The system gives no such file.
pub fn create(events: u32) -> Result<MemFd> {
    let file = memfd::create("gasworks-observe", file_len(events))?;
    let words = Words::map(file.as_fd())?;
    words.get()[head::CAPACITY].store(events.into(), Ordering::Relaxed);
    words.get()[head::MAGIC].store(MAGIC, Ordering::Relaxed);
    Ok(file)
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it was.
    pub what: What,
    /// When it began, in nanoseconds of that host's monotonic clock.
    pub start: u64,
    /// When it ended; not before it began.
    pub end: u64,
    /// Whether the rank ended before it did: then `end` is the last time known of the rank.
    pub unfinished: bool,
    /// The category of a message: 0 Short, 1 Medium, 2 Long.
    pub category: u8,
    /// The index of a message's handler.
    pub handler: u8,
    /// The other rank, if there is one.
    pub peer: Option<Rank>,
    /// Bytes of payload; for [`What::Idle`] the number of polls.
    pub bytes: u64,
    /// The thread, as the system numbers it.
    pub thread: u32,
    /// The number that a message has where it was sent and where it was handled; 0 for none.
    pub flow: u64,
}

/// How many bytes from the beginning of a file that [`create`] made hold all that was recorded in it.
///
/// # Errors
/// The system does not map the file.
pub fn used_len(file: &MemFd) -> Result<usize> {
    let words = Words::map(file.as_fd())?;
    let all = words.get();
    let recorded = all.get(head::EVENTS).map_or(0, |word| word.load(Ordering::Relaxed));
    Ok(file.len().min(file_len(u32::try_from(recorded).unwrap_or(u32::MAX))))
}

/// What one rank recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The process; 0 if none has joined the job.
    pub pid: u32,
    /// The monotonic clock when it joined, in nanoseconds.
    pub monotonic: u64,
    /// The time of day then.
    pub realtime: u64,
    /// Events that are lost because the ring was full.
    pub overwritten: u64,
    /// Events in the order in which they were recorded, that is, in which they ended.
    pub events: Vec<Event>,
    names: Vec<String>,
    counts: Vec<(u64, u64)>,
    tallies: Vec<u64>,
}

impl Recording {
    /// Reads a file that [`create`] made. The rank should have ended: what it writes meanwhile may be missed.
    ///
    /// # Errors
    /// The system does not map the file.
    pub fn read(file: &MemFd) -> Result<Self> {
        let words = Words::map(file.as_fd())?;
        // As many as the file has room for, whatever the rank wrote over the number.
        let capacity = words.get().len().saturating_sub(EVENTS_AT) / EVENT_WORDS;
        Self::of(words.get(), capacity as u64)
    }

    /// Reads the first bytes of such a file, which has room for `events` events: what lies behind them is missing.
    ///
    /// # Errors
    /// They do not even have all counts.
    pub fn from_bytes(bytes: &[u8], events: u32) -> Result<Self> {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let words: Vec<AtomicU64> = bytes.chunks_exact(8).map(|bytes| AtomicU64::new(word(bytes))).collect();
        Self::of(&words, events.into())
    }

    fn of(all: &[AtomicU64], capacity: u64) -> Result<Self> {
        if all.len() < EVENTS_AT {
            return Err(OsError::new("read", "a recording", std::io::ErrorKind::UnexpectedEof));
        }
        let word = |at: usize| all[at].load(Ordering::Relaxed);
        let counts = Op::ALL.into_iter().flat_map(|op| (0..CLASSES.len()).map(move |class| (op, class)));
        let counts = counts.map(|(op, class)| (word(counter_at(op, class)), word(counter_at(op, class) + 1)));
        let tallies = Tally::ALL.into_iter().map(|tally| word(head::TALLIES + tally as usize)).collect();
        let names = (0..256).map(|index| name(&all[NAMES_AT + index * NAME_WORDS..][..NAME_WORDS])).collect();
        let ring = &all[EVENTS_AT..];
        let recorded = word(head::EVENTS);
        let first = recorded.saturating_sub(capacity);
        let events = (first..recorded).filter_map(|number| event(ring, capacity, number)).collect();
        let mut this = Self {
            pid: u32::try_from(word(head::PID)).unwrap_or(0),
            monotonic: word(head::MONOTONIC),
            realtime: word(head::REALTIME),
            overwritten: if capacity == 0 { 0 } else { first },
            events,
            names,
            counts: counts.collect(),
            tallies,
        };
        this.add_unfinished(word);
        Ok(this)
    }

    fn add_unfinished(&mut self, word: impl Fn(usize) -> u64) {
        let last = self.events.iter().map(|event| event.end).max().unwrap_or(self.monotonic);
        for open in Open::ALL {
            let start = word(head::OPEN + open as usize);
            let content = [start, last.max(start), word(head::OPEN_WHAT + open as usize), 0, 0];
            if start != 0
                && let Some(event) = decode(content)
            {
                self.events.push(Event { unfinished: true, thread: self.pid, ..event });
            }
        }
    }

    /// How many operations there were, and their bytes.
    pub fn count(&self, op: Op, class: usize) -> (u64, u64) {
        self.counts.get(op as usize * CLASSES.len() + class).copied().unwrap_or_default()
    }

    /// The same over all sizes.
    pub fn total(&self, op: Op) -> (u64, u64) {
        (0..CLASSES.len())
            .map(|class| self.count(op, class))
            .fold((0, 0), |sum, (count, bytes)| (sum.0.saturating_add(count), sum.1.saturating_add(bytes)))
    }

    /// A tally.
    pub fn tally(&self, tally: Tally) -> u64 {
        self.tallies.get(tally as usize).copied().unwrap_or(0)
    }

    /// The name of a handler; empty if it has none.
    pub fn handler(&self, index: u8) -> &str {
        self.names.get(usize::from(index)).map_or("", String::as_str)
    }
}

fn name(words: &[AtomicU64]) -> String {
    let mut bytes = [0; NAME_WORDS * 8];
    load_words(words, &mut bytes);
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).chars().filter(|c| !c.is_control()).collect()
}

fn event(ring: &[AtomicU64], capacity: u64, number: u64) -> Option<Event> {
    let at = EVENT_WORDS * usize::try_from(number % capacity).ok()?;
    let words = ring.get(at..at + EVENT_WORDS)?;
    // Acquire: the event was written before its number.
    if words[0].load(Ordering::Acquire) != number + 1 {
        return None;
    }
    decode(std::array::from_fn(|i| words[i + 1].load(Ordering::Relaxed)))
}

fn decode([start, end, what, size, flow]: [u64; 5]) -> Option<Event> {
    let peer = (what >> 32) as u32;
    Some(Event {
        what: What::from_number(what as u8)?,
        start,
        end: end.max(start),
        unfinished: false,
        category: (what >> 8) as u8,
        handler: (what >> 16) as u8,
        peer: (peer != u32::MAX).then_some(peer),
        bytes: size & ((1 << BYTES_BITS) - 1),
        thread: (size >> BYTES_BITS) as u32,
        flow,
    })
}
