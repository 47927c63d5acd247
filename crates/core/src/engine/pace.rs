//! How polls follow each other: how many messages each takes, and what it has to look at.

use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Every so many polls all credits owed are returned, however busy this rank is.
const RETURN_EVERY: u32 = 32;

/// A reason for a poll to look at more than the transports that stays. The machines that run are counted below it.
const ALWAYS: u32 = 1 << 31;

/// What polls leave each other. Whoever polls writes it, by plain stores: a poll that is forgotten is no harm.
pub(super) struct Pace {
    polls: AtomicU32,
    /// How many messages the next poll takes of each transport, and the most that any of them allows.
    burst: AtomicU32,
    max_burst: u32,
    /// Why a poll has more to look at than the transports: how many machines run, and [`ALWAYS`] for transfers and failures.
    restless: AtomicU32,
}

impl Pace {
    pub(super) fn new(max_burst: u32, restless: bool) -> Self {
        Self {
            polls: AtomicU32::new(0),
            burst: AtomicU32::new(1),
            max_burst: max_burst.max(1),
            restless: AtomicU32::new(if restless { ALWAYS } else { 0 }),
        }
    }

    /// How many messages this poll takes of each transport.
    #[inline(always)]
    pub(super) fn burst(&self) -> u32 {
        self.burst.load(Relaxed)
    }

    /// It has taken so many. One message first, then more and more where they follow each other: to look for another one right behind a
    /// message is to fetch a line that its sender is just writing. With the cores far apart, floods that are replied to are an eighth faster
    /// for it.
    #[inline(always)]
    pub(super) fn took(&self, handled: usize, burst: u32) {
        let is_full = handled == burst as usize;
        self.burst.store(if is_full { (2 * burst).min(self.max_burst) } else { 1 }, Relaxed);
    }

    /// It has found nothing at all.
    #[inline(always)]
    pub(super) fn idle(&self) {
        self.burst.store(1, Relaxed);
        self.count();
    }

    /// Counts it, and says whether it is one that returns all credits.
    #[inline(always)]
    pub(super) fn count(&self) -> bool {
        let polls = self.polls.load(Relaxed).wrapping_add(1);
        self.polls.store(polls, Relaxed);
        polls.is_multiple_of(RETURN_EVERY)
    }

    /// How many there were; wraps round.
    pub(super) fn polls(&self) -> u32 {
        self.polls.load(Relaxed)
    }

    /// Whether a poll has more to look at than the transports.
    #[inline(always)]
    pub(super) fn is_restless(&self) -> bool {
        self.restless.load(Relaxed) != 0
    }

    /// From now on a poll has.
    pub(super) fn excite(&self) {
        self.restless.fetch_or(ALWAYS, Relaxed);
    }

    /// A poll has, until [`machine_ended`](Self::machine_ended).
    pub(super) fn machine_began(&self) {
        self.restless.fetch_add(1, Relaxed);
    }

    /// One machine fewer runs.
    pub(super) fn machine_ended(&self) {
        self.restless.fetch_sub(1, Relaxed);
    }
}
