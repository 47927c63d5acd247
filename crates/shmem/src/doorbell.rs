//! The word on which a rank's threads sleep, and which nobody writes while they do not.
//!
//! The sleeper arms the bell and then looks once more whether there is work; the sender publishes its message and
//! then looks whether the bell is armed. A fence between the two steps on either side makes it impossible that both
//! look too early. The call that sleeps (a futex) belongs to whoever uses this.

use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{fence, kill_point, ord, planted};

const SILENT: u32 = 0;
/// What the word holds while somebody may be asleep on it.
pub const ARMED: u32 = 1;

/// A doorbell. A zero word is one that is not armed.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Doorbell {
    word: AtomicU32,
}

impl Doorbell {
    /// A bell that is not armed.
    pub fn new() -> Self {
        Self { word: AtomicU32::new(SILENT) }
    }

    /// The word to sleep on while it holds [`ARMED`].
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Arms the bell. Look for work once more before sleeping. It stays armed until it rings, since another thread
    /// may be asleep.
    #[inline]
    pub fn arm(&self) {
        self.word.store(ARMED, Relaxed);
        kill_point!("doorbell.arm.armed");
        // The look for work that follows must not be done before the bell is seen armed: a store, then a load, which
        // only this fence keeps in order. Its other half is in `ring`.
        fence(ord!("doorbell.arm", SeqCst));
    }

    /// To be called after publishing work: whether somebody must now be woken from [`word`](Self::word). Writes
    /// nothing unless the bell is armed.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn ring(&self) -> bool {
        settle();
        self.ring_settled()
    }

    /// As [`ring`](Self::ring), after one [`settle`] that serves for several bells.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn ring_settled(&self) -> bool {
        if self.word.load(Relaxed) != ARMED || planted!("doorbell.forget") {
            return false;
        }
        let armed = self.word.swap(SILENT, Relaxed) == ARMED;
        kill_point!("doorbell.ring.silenced");
        armed
    }
}

/// Makes work that was published before visible before any bell is looked at after.
#[inline]
pub fn settle() {
    // The look at the bell must not be done before the work can be seen: the other half of the fence in `arm`.
    fence(ord!("doorbell.ring", SeqCst));
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}
