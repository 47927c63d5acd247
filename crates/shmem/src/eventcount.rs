//! A count of events for which somebody may be asleep: it carries a bit by which a sleeper asks to be woken.
//!
//! Whoever makes an event counts it, whoever sleeps asks in the same word, so one of the two comes first in the word's
//! own order: either the counter finds the bit and wakes the sleeper, or the sleeper finds the event and stays awake.
//! No fence is needed, and nothing but a count that is made anyway is paid while nobody sleeps.
//!
//! # Protocol
//! - eventcount.1: a sleeper takes a ticket of its [`Doorbell`](crate::doorbell::Doorbell), then [arms](EventCount::arm) every count
//!   that it waits for, and sleeps only if none has moved and only while the bell holds the ticket.
//! - eventcount.2: who counts an event and is told that somebody may be asleep makes the event visible, [disarms](EventCount::disarm)
//!   and then rings the bell. So whoever clears a bit, be it that of a later sleeper, makes every ticket void that was
//!   taken before: a bit is never cleared without a ring that follows.

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{kill_point, ord};

const ARMED: u64 = 1 << 63;

/// A count of events, from 0, with room for the sleepers' bit. Zero bytes are no events and nobody asleep.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct EventCount {
    word: AtomicU64,
}

/// An event that has been counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How many events came before it.
    pub index: u64,
    /// Whether somebody may be asleep until it: see eventcount.2.
    pub wanted: bool,
}

impl EventCount {
    /// No events.
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Counts an event. It knows what was done before every earlier one.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn count(&self) -> Counted {
        // Release, for those who see the event; Acquire, for what comes after it: the slots that earlier counters knew
        // to be free, and the bells that sleepers armed before they asked.
        let word = self.word.fetch_add(1, ord!("eventcount.count", AcqRel));
        kill_point!("eventcount.count.counted");
        Counted { index: word & !ARMED, wanted: word & ARMED != 0 }
    }

    /// How many events there have been; what was done before them is there.
    #[inline]
    pub fn events(&self) -> u64 {
        self.word.load(ord!("eventcount.events", Acquire)) & !ARMED
    }

    /// Asks to be woken by the next event; how many there were before. If that is one too many, do not sleep. What was done before these events is there, so that who
    /// waits for something that events announce may look at that in place of the number.
    #[inline]
    #[must_use = "an event may have come"]
    pub fn arm(&self) -> u64 {
        // Release: the bell's ticket was taken before, for whoever finds the bit. Acquire: what the counters of earlier events did, which did not find the bit, is there for who
        // looks now and then sleeps.
        let before = self.word.fetch_or(ARMED, ord!("eventcount.arm", AcqRel));
        kill_point!("eventcount.arm.armed");
        before & !ARMED
    }

    /// Whether somebody may be asleep until the next event.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.word.load(Relaxed) & ARMED != 0
    }

    /// Takes the sleepers' bit away: the bell must ring afterwards (eventcount.2).
    #[cold]
    pub fn disarm(&self) {
        // Acquire: of a sleeper whose bit this takes, even of one that came later, the ticket is seen when the bell rings.
        self.word.fetch_and(!ARMED, ord!("eventcount.disarm", Acquire));
        kill_point!("eventcount.disarm.disarmed");
    }

    /// No events and nobody asleep, again: where nobody else has to do with this count.
    pub(crate) fn reset(&self) {
        self.word.store(0, Relaxed);
    }

    /// The word itself, for tests that play a hostile peer.
    pub fn word(&self) -> &AtomicU64 {
        &self.word
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_event_finds_who_asked_until_the_bit_is_taken_away() {
        let events = EventCount::new();
        assert_eq!((events.events(), events.count()), (0, Counted { index: 0, wanted: false }));
        assert_eq!((events.arm(), events.arm(), events.events()), (1, 1, 1));
        assert_eq!(events.count(), Counted { index: 1, wanted: true });
        assert_eq!(events.count(), Counted { index: 2, wanted: true }, "nobody has disarmed it");
        assert_eq!((events.events(), events.arm()), (3, 3));
        events.disarm();
        assert_eq!(events.count(), Counted { index: 3, wanted: false });
        assert_eq!((events.events(), events.word().load(Relaxed)), (4, 4));
    }
}
