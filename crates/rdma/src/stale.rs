//! Where the thread that is told of unmapped memory leaves word for the engine. Neither waits for the other: that thread must not, for
//! whoever unmaps memory waits for it, and may hold any lock meanwhile; and the engine need not, for it can do without the word.
//!
//! # Invariants
//! - stale.1: a slot is the writer's from when the reader has taken what was in it until it is entered again, and the reader's from then
//!   on.
//!
//! # Protocol
//! - stale.2: `state` is twice the number of words entered since the beginning, and one more while the writer is reading events. It
//!   becomes odd before an event is read, and even once that is entered. So who has learnt by the system that an event was read, and
//!   then finds `state` even, finds the word.
//! - stale.3: the writer neither allocates, frees nor waits. Words for which there is no room are counted as lost, and stand for
//!   everything.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::cell::UnsafeCell;
use gasworks_sync::ord;
use std::sync::Arc;

/// Addresses from one on, and up to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub start: usize,
    /// The one after the last.
    pub end: usize,
}

/// What is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Here nothing is mapped any more, or something else.
    Unmapped(Span),
    /// The memory here has gone; what is mapped has not.
    Emptied(Span),
    /// Perhaps everything, somehow.
    All,
}

#[derive(Debug)]
struct Shared {
    state: AtomicU64,
    /// Words taken since the beginning.
    taken: AtomicU64,
    /// Words for which there was no room.
    lost: AtomicU64,
    slots: Box<[UnsafeCell<Gone>]>,
}

// SAFETY: stale.1: there are one writer and one reader, which say by `state` and `taken` whose a slot is.
unsafe impl Sync for Shared {}

/// Enters words.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    entered: u64,
    lost: u64,
}

/// Takes them.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    taken: u64,
    lost: u64,
}

/// Both ends of room for so many words.
pub fn pair(slots: usize) -> (Writer, Reader) {
    let slots = (0..slots).map(|_| UnsafeCell::new(Gone::All)).collect();
    let zero = || AtomicU64::new(0);
    let shared = Arc::new(Shared { state: zero(), taken: zero(), lost: zero(), slots });
    (Writer { shared: Arc::clone(&shared), entered: 0, lost: 0 }, Reader { shared, taken: 0, lost: 0 })
}

impl Shared {
    fn slot(&self, number: u64) -> &UnsafeCell<Gone> {
        &self.slots[(number % self.slots.len() as u64) as usize]
    }
}

impl Writer {
    /// Enters what `read` reads from the system, until it finds nothing more or a good deal has come.
    pub fn enter(&mut self, mut read: impl FnMut() -> Option<Gone>) {
        let (shared, size) = (&*self.shared, self.shared.slots.len() as u64);
        // Release: it says again what was entered before. That it is there before the event is read is the system's to order, as all
        // that comes before a call is there for whoever learns what the call did.
        shared.state.store(self.entered * 2 + 1, ord!("stale.reading", Release));
        for _ in 0..size {
            let Some(gone) = read() else { break };
            // Acquire: stale.1: the reader is done with what was there.
            if self.entered - shared.taken.load(ord!("stale.room", Acquire)) < size {
                // SAFETY: stale.1: fewer words than slots are entered and not taken, so the reader is done with this slot.
                shared.slot(self.entered).with_mut(|slot| unsafe { *slot = gone });
                self.entered += 1;
            } else {
                self.lost += 1;
                shared.lost.store(self.lost, Relaxed);
            }
        }
        // Release: stale.2, with what is in the slots and how much was lost.
        shared.state.store(self.entered * 2, ord!("stale.entered", Release));
    }
}

impl Reader {
    /// Whether no event is being read. Then [`next`](Self::next) gives all that were read before.
    pub fn is_settled(&self) -> bool {
        // Relaxed: `next` looks at it later, and finds this value or one that came after.
        self.shared.state.load(Relaxed).is_multiple_of(2)
    }

    /// The next word.
    #[allow(clippy::should_implement_trait)] // it does not end for good
    pub fn next(&mut self) -> Option<Gone> {
        // Acquire: what was entered.
        let entered = self.shared.state.load(ord!("stale.see", Acquire)) / 2;
        if self.taken < entered {
            // SAFETY: stale.1: this word was entered, and is not taken, so the writer leaves its slot alone.
            let gone = self.shared.slot(self.taken).with(|slot| unsafe { *slot });
            self.taken += 1;
            // Release: stale.1: it may be entered again.
            self.shared.taken.store(self.taken, ord!("stale.taken", Release));
            return Some(gone);
        }
        let lost = self.shared.lost.load(Relaxed);
        (std::mem::replace(&mut self.lost, lost) != lost).then_some(Gone::All)
    }
}

#[cfg(not(gasworks_loom))]
#[cfg(test)]
mod tests {
    use super::*;

    fn word(start: usize) -> Gone {
        Gone::Emptied(Span { start, end: start + 1 })
    }

    /// stale.2: `state` is odd from before the first event is read until all are entered, and says how many words were entered before.
    #[test]
    fn what_was_entered_is_there_while_more_is_read() {
        let (mut writer, mut reader) = pair(4);
        let shared = Arc::clone(&reader.shared);
        let mut entered = 0;
        for reads in [0, 1, 3, 2, 4, 4, 1] {
            let mut read = 0;
            writer.enter(|| {
                assert_eq!(shared.state.load(Relaxed), 2 * entered as u64 + 1);
                assert_eq!(
                    reader.next().is_some(),
                    read == 0 && entered > 0,
                    "one of each time is left till then"
                );
                read += 1;
                (read <= reads).then(|| word(entered + read))
            });
            entered += reads;
            assert_eq!((shared.state.load(Relaxed), reader.is_settled()), (2 * entered as u64, true));
            for number in 1..reads {
                assert_eq!(reader.next(), Some(word(entered - reads + number)));
            }
        }
    }

    /// Losses are told once, behind what was entered before them.
    #[test]
    fn what_is_lost_is_counted_and_told_once() {
        let (mut writer, mut reader) = pair(1);
        for round in 0..3 {
            for number in 0..4 {
                writer.enter(|| Some(word(round)));
                assert_eq!(reader.shared.lost.load(Relaxed), 3 * round as u64 + number);
            }
            assert_eq!(
                [reader.next(), reader.next(), reader.next()],
                [Some(word(round)), Some(Gone::All), None]
            );
        }
    }

    #[test]
    fn words_come_in_order_and_what_has_no_room_is_everything() {
        let (mut writer, mut reader) = pair(2);
        assert_eq!((reader.next(), reader.is_settled()), (None, true));
        for round in 0..3 {
            let mut some = [word(round), word(round + 10)].into_iter();
            writer.enter(|| {
                assert!(!reader.is_settled());
                some.next()
            });
            let mut more = std::iter::once(word(7));
            if round == 1 {
                writer.enter(|| more.next());
            }
            assert!(reader.is_settled());
            assert_eq!([reader.next(), reader.next()], [Some(word(round)), Some(word(round + 10))]);
            assert_eq!(reader.next(), (round == 1).then_some(Gone::All));
            assert_eq!(reader.next(), None);
        }
        // Something else waits for its turn while much is read.
        let mut read = 0;
        writer.enter(|| {
            read += 1;
            Some(word(read))
        });
        assert_eq!(read, 2);
    }
}
