//! Credits: what a request takes of them, and how those that are owed go back, with a message or by one of their own.

use super::Engine;
use crate::flow::Flow;
use crate::message::{Returned, credits_word};
use crate::wire::Class;
use crate::{CoreMode, Error, Rank};
use gasworks_os::Reserved;
use gasworks_shmem::credit::{Credits, Exhausted, Limits, OverReturned, Owed};
use gasworks_sync::atomic::AtomicU64;

/// The part of a peer's volume that is returned at once: small, so that a sender of large payloads copies the next ones
/// while the last are read, instead of waiting until all are.
const VOLUME_PARTS: u64 = 4;

/// What this rank may still send, of which each peer's word takes no memory before there is a message to it.
type Left<M> = Credits<M, Reserved<AtomicU64>, Reserved<u8>>;

/// What this rank may still send, and what it owes for what it was sent.
pub(super) struct Account<M: CoreMode> {
    left: Left<M>,
    owed: Owed<M, Reserved<AtomicU64>>,
    /// As many credits owed to a peer, or as many bytes, are returned by a message of their own: the least of all peers'.
    return_at: (u32, u64),
}

impl<M: CoreMode> Account<M> {
    /// Nothing is out, and nothing owed. `route[rank]` is the number of the transport that reaches it, and so of its flow.
    pub(super) fn new(route: &[u8], flows: impl Iterator<Item = Flow> + Clone) -> Self {
        let limits = |Flow { depth, total, volume }| Limits { depth, total, volume };
        let least = |a: (u32, u64), b: (u32, u64)| (a.0.min(b.0), a.1.min(b.1));
        Self {
            left: Credits::by_pool(
                route.into(),
                &flows.clone().map(limits).collect::<Vec<_>>(),
                Reserved::new,
            ),
            owed: Owed::over(Reserved::new(route.len())),
            return_at: flows.map(return_at).reduce(least).unwrap_or_default(),
        }
    }

    /// What may be sent.
    #[inline(always)]
    pub(super) fn left(&self) -> &Left<M> {
        &self.left
    }

    /// What is owed.
    #[inline(always)]
    pub(super) fn owed(&self) -> &Owed<M, Reserved<AtomicU64>> {
        &self.owed
    }

    /// Whether so much is owed that it may have to return by a message of its own.
    #[inline]
    pub(super) fn may_be_much(&self, (count, bytes): (u32, u64)) -> bool {
        count >= self.return_at.0 || bytes >= self.return_at.1
    }

    /// `own` and as much as fits of what is owed to a peer.
    #[inline]
    pub(super) fn with_owed(&self, to: Rank, own: Returned) -> Returned {
        let (count, bytes) = self.owed.collect(to, u32::from(u8::MAX - own.count));
        // Both fit: the count by the limit given, the bytes because a volume is at most u32::MAX.
        Returned { count: own.count + count as u8, bytes: own.bytes.saturating_add(bytes as u32) }
    }

    /// What a message was to return beside its `own` did not leave with it.
    #[cold]
    pub(super) fn owe_again(&self, to: Rank, returned: Returned, own: Returned) {
        let (count, bytes) = (returned.count - own.count, returned.bytes - own.bytes);
        self.owed.restore(to, count.into(), bytes.into());
    }

    /// Takes back what a peer returned.
    ///
    /// # Errors
    /// It is more than that ever had.
    #[inline]
    pub(super) fn take_back(&self, from: Rank, returned: Returned) -> Result<(), OverReturned> {
        self.left.give(from, u32::from(returned.count), u64::from(returned.bytes))
    }
}

/// The number of credits, and the bytes, at which they are returned by a message of their own.
fn return_at(flow: Flow) -> (u32, u64) {
    ((flow.depth / 2).max(1), (flow.volume / VOLUME_PARTS).max(1))
}

impl<M: CoreMode> Engine<M> {
    /// Takes what a request with so many bytes in its packet costs; one of this rank to itself costs nothing.
    #[inline]
    pub(super) fn take_credit(&self, to: Rank, bytes: u32) -> Result<(), Error> {
        if to == self.rank {
            return Ok(());
        }
        self.account.left.take(to, bytes).map_err(|short| Error::Busy { to, what: shortage(short) })
    }

    /// Gives back what was taken for a request of which nothing has left.
    #[cold]
    pub(super) fn give_back(&self, to: Rank, bytes: u32) {
        if to == self.rank {
            return;
        }
        // It was taken and nobody else gives it back, so it fits.
        let _ = self.account.left.give(to, 1, bytes.into());
    }

    /// Returns the credits owed to a peer if they are so much for it.
    #[inline(never)]
    pub(super) fn return_much(&self, to: Rank) -> Result<(), Box<Error>> {
        let (at, (count, bytes)) = (return_at(self.router.attributes_to(to).flow), self.account.owed.to(to));
        if count >= at.0 || bytes >= at.1 { self.return_credits(to) } else { Ok(()) }
    }

    /// Returns the credits owed to a peer by a message of their own: the seed's "hidden" message.
    pub(super) fn return_credits(&self, to: Rank) -> Result<(), Box<Error>> {
        let returned = self.account.with_owed(to, Returned::default());
        if returned.count == 0 {
            return Ok(()); // another thread has returned them
        }
        let sent = self.send_by_call(to, Class::Credit, credits_word(returned), &[], &[]);
        sent.map_err(|error| {
            self.account.owe_again(to, returned, Returned::default());
            Box::new(error.into())
        })
    }

    /// Returns all credits that are owed.
    pub(super) fn return_all_credits(&self) -> Result<(), Error> {
        let mut from = 0;
        while let Some(peer) = self.account.owed.next_owing(from) {
            self.return_credits(peer).map_err(|error| *error)?;
            from = peer + 1;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_sync::Seq;

    /// Whatever the number of transports: most ranks are reached by one of them.
    #[cfg(not(miri))]
    #[test]
    fn a_rank_that_nobody_talks_to_takes_no_memory() {
        const RANKS: usize = 1 << 20;
        let resident = || gasworks_os::memory_use::own().expect("known").anonymous;
        for flows in [1, 2] {
            let mut route = vec![0; RANKS];
            route[5] = flows as u8 - 1;
            let before = resident();
            let account = Account::<Seq>::new(&route, [Flow::SEED, Flow::SEED].into_iter().take(flows));
            for to in [5, 6] {
                assert_eq!(account.left().take(to, 3), Ok(()));
                account.owed().owe(to, 3);
            }
            let taken = resident().saturating_sub(before);
            assert!(taken < 1 << 20, "{taken} bytes of {flows} flows");
            assert_eq!((account.left().out(5), account.owed().to(6)), ((1, 3), (1, 3)));
        }
    }
}
