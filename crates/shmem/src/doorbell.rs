//! The word on which a rank's threads sleep, and which nobody writes while they do not.
//!
//! It counts rings, and its lowest bit says that somebody may be asleep. Who wants to sleep takes a ticket, asks to be
//! woken wherever an event may come from ([`EventCount`](crate::eventcount::EventCount)), and sleeps while the word
//! holds the ticket. Every ring makes all tickets void that were taken before. The call that sleeps (a futex) belongs
//! to whoever uses this.

use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{kill_point, ord};

const ASLEEP: u32 = 1;
/// How often a ring is tried while the word changes. Where others ring as well, one of them succeeds each time; only who writes nonsense changes it so often.
const MAX_TRIES: u32 = 1 << 10;

/// A doorbell. A zero word is one that has never rung, with nobody asleep.
#[derive(Debug)]
#[repr(transparent)]
pub struct Doorbell {
    word: AtomicU32,
}

impl Doorbell {
    /// A bell that has never rung, with nobody asleep.
    pub fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// The word to sleep on while it holds a [ticket](Self::ticket).
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Says that this thread is about to sleep. Arm what is to end the sleep, and look for work once more, before
    /// sleeping.
    #[inline]
    pub fn ticket(&self) -> u32 {
        // Acquire: who rang before this has taken its sleepers' bits away before, so those set from now on stay.
        let ticket = self.word.fetch_or(ASLEEP, ord!("doorbell.ticket", Acquire)) | ASLEEP;
        kill_point!("doorbell.ticket.taken");
        ticket
    }

    /// To be called when an event has been made visible for which somebody may be asleep: whether all that sleep on
    /// [`word`](Self::word) must now be woken.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn ring(&self) -> bool {
        let mut word = self.word.load(Relaxed);
        for _ in 0..MAX_TRIES {
            if word & ASLEEP == 0 {
                return false;
            }
            // Release: see `ticket`. Adding one to an odd number ends the sleep and counts the ring.
            let rung = ord!("doorbell.ring", Release);
            match self.word.compare_exchange_weak(word, word.wrapping_add(ASLEEP), rung, Relaxed) {
                Ok(_) => {
                    kill_point!("doorbell.ring.rung");
                    return true;
                }
                Err(now) => word = now,
            }
        }
        // The word is no ticket any more, and a sleeper is woken for nothing at worst.
        true
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_what_the_word_holds_until_the_bell_rings() {
        let bell = Doorbell::new();
        for _ in 0..3 {
            assert!(!bell.ring(), "nobody sleeps");
            let tickets = [bell.ticket(), bell.ticket()];
            assert_eq!(tickets, [bell.word().load(Relaxed); 2], "they sleep on one word");
            assert!(bell.ring(), "somebody may sleep");
            assert_ne!(bell.word().load(Relaxed), tickets[0]);
        }
    }

    #[test]
    fn a_bell_that_has_rung_very_often_starts_again() {
        let bell = Doorbell { word: AtomicU32::new(u32::MAX) };
        let ticket = bell.ticket();
        assert!(bell.ring() && !bell.ring());
        assert!(ticket == u32::MAX && bell.word().load(Relaxed) == 0);
    }
}
