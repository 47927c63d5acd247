//! A split-phase barrier: every rank announces the phase it has reached in a line of its own, and reads the others'.
//!
//! No word is written by two ranks, so there is no read-modify-write and no fence; for two ranks it costs the passage
//! of one line each way, at the same time. A rank may be one phase ahead of those that have not looked yet, so its line
//! has a word for the odd phases and one for the even. With its phase a rank announces the barrier's [`Name`].

use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{kill_point, ord};

/// By what name a rank comes to a barrier; of several ranks, the name that they agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Name {
    /// Any: the specification's anonymous barrier.
    #[default]
    Any,
    /// This one.
    Is(u32),
    /// There is none that all agree on.
    Mismatch,
}

impl Name {
    /// What two ranks agree on.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, name) | (name, Self::Any) => name,
            (Self::Is(mine), Self::Is(theirs)) if mine == theirs => self,
            _ => Self::Mismatch,
        }
    }

    /// In 34 bits; zero is [`Any`](Self::Any).
    pub const fn encode(self) -> u64 {
        match self {
            Self::Any => 0,
            Self::Is(id) => 1 << 32 | id as u64,
            Self::Mismatch => 2 << 32,
        }
    }

    /// What [`encode`](Self::encode) made; from a hostile rank, a mismatch.
    pub const fn decode(bits: u64) -> Self {
        match bits >> 32 {
            0 if bits == 0 => Self::Any,
            1 => Self::Is(bits as u32),
            _ => Self::Mismatch,
        }
    }
}

const NAME_BITS: u32 = 34;
/// Phases are counted in the bits that a name leaves.
const PHASES: u32 = u32::MAX >> (NAME_BITS - 32);

/// A rank's announcements: a phase and a name, of the even phases and of the odd. Zero words are a rank that has not
/// arrived anywhere.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Arrival {
    words: [AtomicU64; 2],
}

impl Arrival {
    /// A rank that has not arrived anywhere.
    pub fn new() -> Self {
        Self { words: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// The word of a phase, whoever is ahead.
    #[inline]
    fn word(&self, phase: u32) -> &AtomicU64 {
        &self.words[(phase % 2) as usize]
    }

    /// The name by which this rank came to `phase`, if it has come.
    #[inline]
    fn came(&self, phase: u32) -> Option<u64> {
        // Acquire: what that rank did before it arrived is there.
        let word = self.word(phase).load(ord!("barrier.done", Acquire));
        (word >> NAME_BITS == u64::from(phase)).then_some(word & ((1 << NAME_BITS) - 1))
    }
}

impl Default for Arrival {
    fn default() -> Self {
        Self::new()
    }
}

/// One rank's view of the barrier. One thread at a time arrives, and none asks whether that phase is done before the
/// call has returned; any may ask and [look](Self::complete).
#[derive(Debug)]
pub struct Barrier<'a> {
    ranks: Box<[&'a Arrival]>,
    me: usize,
    /// The phase of the last arrival; this rank's own.
    phase: AtomicU32,
    /// How many ranks, from the first, are known to have arrived, and above that in which phase and whether one of them
    /// came by a name; this rank's own. A thread that is late with an older phase only has the count begun again.
    seen: AtomicU64,
}

/// The bit of `seen` that says that a rank came by a name.
const NAMED: u64 = 1 << 31;

impl<'a> Barrier<'a> {
    /// A view for rank `me`, which has arrived nowhere; `None` if there is no such rank.
    pub fn new(ranks: impl IntoIterator<Item = &'a Arrival>, me: usize) -> Option<Self> {
        let ranks: Box<[_]> = ranks.into_iter().collect();
        let seen = AtomicU64::new(ranks.len() as u64);
        (me < ranks.len()).then_some(Self { ranks, me, phase: AtomicU32::new(0), seen })
    }

    /// Announces this rank's arrival in the next phase.
    #[inline]
    pub fn arrive(&self, name: Name) {
        let phase = self.phase.load(Relaxed).wrapping_add(1) & PHASES;
        self.phase.store(phase, Relaxed);
        kill_point!("barrier.arrive.before");
        let word = u64::from(phase) << NAME_BITS | name.encode();
        // Release: what this rank did before it arrived is there for whoever leaves.
        self.ranks[self.me].word(phase).store(word, ord!("barrier.arrive", Release));
        kill_point!("barrier.arrive.arrived");
    }

    /// Once everybody has arrived in the phase of the last arrival here, the name they agree on. Before the first it is
    /// done.
    #[inline]
    pub fn done(&self) -> Option<Name> {
        let phase = self.phase.load(Relaxed);
        let mut seen = self.seen.load(Relaxed);
        if seen >> 32 != u64::from(phase) {
            seen = u64::from(phase) << 32;
        }
        while let Some(rank) = self.ranks.get((seen as u32 & !(NAMED as u32)) as usize) {
            let Some(name) = rank.came(phase) else {
                self.seen.store(seen, Relaxed);
                return None;
            };
            seen = (seen + 1) | if name == 0 { 0 } else { NAMED };
        }
        self.seen.store(seen, Relaxed);
        Some(if seen & NAMED == 0 { Name::Any } else { self.agreed(phase) })
    }

    /// The name that the ranks agree on, all of which have come.
    #[cold]
    fn agreed(&self, phase: u32) -> Name {
        let names = self.ranks.iter().filter_map(|rank| rank.came(phase)).map(Name::decode);
        names.fold(Name::Any, Name::and)
    }

    /// Whether this rank has arrived and has not yet been told that all have.
    #[inline]
    pub fn waiting(&self) -> bool {
        let (seen, phase) = (self.seen.load(Relaxed), self.phase.load(Relaxed));
        seen >> 32 != u64::from(phase) || ((seen & (NAMED - 1)) as usize) < self.ranks.len()
    }

    /// As [`done`](Self::done), for a thread that does not drive the barrier.
    pub fn complete(&self) -> bool {
        let phase = self.phase.load(Relaxed);
        self.ranks.iter().all(|rank| rank.came(phase).is_some())
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_agree_whatever_the_order() {
        let names = [Name::Any, Name::Is(0), Name::Is(7), Name::Is(u32::MAX), Name::Mismatch];
        for a in names {
            assert_eq!(Name::decode(a.encode()), a);
            assert!(a.encode() < 1 << NAME_BITS);
            assert_eq!((a.and(a), a.and(Name::Any), a.and(Name::Mismatch)), (a, a, Name::Mismatch));
            for b in names {
                assert_eq!(a.and(b), b.and(a));
                names.iter().for_each(|&c| assert_eq!(a.and(b).and(c), a.and(b.and(c))));
            }
        }
        assert_eq!(Name::Is(1).and(Name::Is(2)), Name::Mismatch);
        assert_eq!(Name::decode(5), Name::Mismatch, "what nobody encodes");
    }

    #[test]
    fn phases_wrap_round() {
        let arrivals = [Arrival::new(), Arrival::new()];
        let ranks = [0, 1].map(|me| Barrier::new(&arrivals, me).expect("a rank"));
        ranks.iter().for_each(|rank| rank.phase.store(PHASES - 2, Relaxed));
        for round in 0..6 {
            ranks[0].arrive(Name::Is(round));
            assert!(ranks[0].waiting() && ranks[0].done().is_none());
            ranks[1].arrive(if round == 4 { Name::Is(9) } else { Name::Any });
            let agreed = if round == 4 { Name::Mismatch } else { Name::Is(round) };
            assert_eq!((ranks[0].done(), ranks[1].done()), (Some(agreed), Some(agreed)));
            assert!(ranks[0].complete() && !ranks[0].waiting());
        }
    }
}
