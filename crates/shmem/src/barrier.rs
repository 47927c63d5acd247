//! A split-phase barrier: every rank announces the phase it has reached in a line of its own, and reads the others'.
//!
//! No word is written by two ranks, so there is no read-modify-write and no fence; for two ranks it costs the passage
//! of one line each way, at the same time. A rank may be one phase ahead of those that have not looked yet.

use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{kill_point, ord};

/// A rank's announcement. A zero word is a rank that has not arrived anywhere.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Arrival {
    phase: AtomicU32,
}

impl Arrival {
    /// A rank that has not arrived anywhere.
    pub fn new() -> Self {
        Self { phase: AtomicU32::new(0) }
    }
}

impl Default for Arrival {
    fn default() -> Self {
        Self::new()
    }
}

/// One rank's view of the barrier. One thread at a time arrives and asks whether it is done; any may
/// [look](Self::complete).
#[derive(Debug)]
pub struct Barrier<'a> {
    ranks: Box<[&'a Arrival]>,
    me: usize,
    /// The phase of the last arrival; this rank's own.
    phase: AtomicU32,
    /// How many ranks, from the first, are known to have arrived; this rank's own.
    seen: AtomicU32,
}

impl<'a> Barrier<'a> {
    /// A view for rank `me`; `None` if there is no such rank.
    pub fn new(ranks: impl IntoIterator<Item = &'a Arrival>, me: usize) -> Option<Self> {
        let ranks: Box<[_]> = ranks.into_iter().collect();
        let own = ranks.get(me)?;
        let phase = AtomicU32::new(own.phase.load(Relaxed));
        let seen = AtomicU32::new(ranks.len() as u32);
        Some(Self { ranks, me, phase, seen })
    }

    /// Announces this rank's arrival in the next phase.
    #[inline]
    pub fn arrive(&self) {
        let phase = self.phase.load(Relaxed).wrapping_add(1);
        self.phase.store(phase, Relaxed);
        self.seen.store(0, Relaxed);
        kill_point!("barrier.arrive.before");
        // Release: what this rank did before it arrived is there for whoever leaves.
        self.ranks[self.me].phase.store(phase, ord!("barrier.arrive", Release));
        kill_point!("barrier.arrive.arrived");
    }

    /// Whether everybody has arrived in the phase of the last arrival here. True before the first.
    #[inline]
    pub fn done(&self) -> bool {
        let phase = self.phase.load(Relaxed);
        let mut seen = self.seen.load(Relaxed) as usize;
        while let Some(rank) = self.ranks.get(seen) {
            if !reached(rank, phase) {
                break;
            }
            seen += 1;
        }
        self.seen.store(seen as u32, Relaxed);
        seen == self.ranks.len()
    }

    /// Whether this rank has arrived and has not yet been told that all have.
    #[inline]
    pub fn waiting(&self) -> bool {
        (self.seen.load(Relaxed) as usize) < self.ranks.len()
    }

    /// As [`done`](Self::done), for a thread that does not drive the barrier.
    pub fn complete(&self) -> bool {
        let phase = self.phase.load(Relaxed);
        self.ranks.iter().all(|rank| reached(rank, phase))
    }
}

#[inline]
fn reached(rank: &Arrival, phase: u32) -> bool {
    // Acquire: what that rank did before it arrived is there. It may be a phase ahead, and phases wrap round.
    let theirs = rank.phase.load(ord!("barrier.done", Acquire));
    theirs.wrapping_sub(phase) < 1 << 31
}
