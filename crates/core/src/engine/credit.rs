//! Credits: what a request takes of them, and how those that are owed go back, with a message or by one of their own.

use super::Engine;
use crate::message::{Returned, credits_word};
use crate::wire::{Class, Wire};
use crate::{CoreMode, Error, Rank};
use gasworks_shmem::credit::Exhausted;

impl<M: CoreMode> Engine<M> {
    /// Takes what a request with so many bytes in its packet costs; one of this rank to itself costs nothing.
    #[inline]
    pub(super) fn take_credit(&self, to: Rank, bytes: u32) -> Result<(), Error> {
        if to == self.rank {
            return Ok(());
        }
        self.credits.take(to, bytes).map_err(|short| Error::Busy { to, what: shortage(short) })
    }

    /// Gives back what was taken for a request of which nothing has left.
    #[cold]
    pub(super) fn give_back(&self, to: Rank, bytes: u32) {
        if to == self.rank {
            return;
        }
        // It was taken and nobody else gives it back, so it fits.
        let _ = self.credits.give(to, 1, bytes.into());
    }

    /// Returns the credits owed to a peer by a message of their own: the seed's "hidden" message.
    pub(super) fn return_credits(&self, to: Rank) -> Result<(), Box<Error>> {
        let returned = self.with_owed(to, Returned::default());
        if returned.count == 0 {
            return Ok(()); // another thread has returned them
        }
        let sent = self.router.to(to).send(to, Class::Credit, credits_word(returned), &[], &[]);
        sent.map_err(|error| {
            self.owe_again(to, returned, Returned::default());
            Box::new(error.into())
        })
    }

    /// What a message was to return beside its `own` did not leave with it.
    #[cold]
    pub(super) fn owe_again(&self, to: Rank, returned: Returned, own: Returned) {
        let (count, bytes) = (returned.count - own.count, returned.bytes - own.bytes);
        self.owed.restore(to, count.into(), bytes.into());
    }

    /// `own` and as much as fits of what is owed to a peer.
    #[inline]
    pub(super) fn with_owed(&self, to: Rank, own: Returned) -> Returned {
        let (count, bytes) = self.owed.collect(to, u32::from(u8::MAX - own.count));
        // Both fit: the count by the limit given, the bytes because a volume is at most u32::MAX.
        Returned { count: own.count + count as u8, bytes: own.bytes.saturating_add(bytes as u32) }
    }
}

/// Why a request must wait.
#[cold]
pub(super) fn shortage(short: Exhausted) -> &'static str {
    match short {
        Exhausted::Total => "no credit left for any rank",
        Exhausted::Peer => "no credit left for that rank",
        Exhausted::Volume => "too many bytes under way to that rank",
    }
}
