//! A split-phase barrier: the ranks count themselves, and whoever comes last at a count goes on to the next.
//!
//! A few ranks share one count, on which all of them wait; for two it costs the passage of one line to and fro. Many
//! have a tree of counts, a group of ranks at each, and wait on the one at its top, which only the last of all writes.
//! So it is always known who comes last, and that rank alone wakes those that sleep: they ask for it in the very word
//! that it counts itself in ([`EventCount`]).
//!
//! # Protocol
//! - barrier.1: a count only grows: in phase `p`, from 1, a group of `n` brings it from `(p - 1) * n` to `p * n`. A rank arrives
//!   in a phase when it knows that the last one is complete.
//! - barrier.2: the names of phase `p` are gathered in word `p % 3`, before each rank counts itself. Rank 0 clears the word of the
//!   next phase as it arrives: then all have arrived in phase `p - 1`, and so nobody reads the names of `p - 2` any more,
//!   and nobody can have come to `p + 1`.
//! - barrier.3: a meeting has an owner, who alone lets a group of ranks use it, one group after the other. A rank that leaves its group
//!   for good says so at each of the group's meetings ([`Meeting::leave`]), and touches none of them any more. When all have left, the
//!   owner makes the meeting as good as new ([`Meeting::renew`]).

use crate::eventcount::{Counted, EventCount};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
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

/// A count, and the names that the ranks come by. Zero words are one where nobody has arrived.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Meeting {
    arrivals: EventCount,
    names: [AtomicU64; 3],
    /// How many ranks have left.
    left: AtomicU64,
}

impl Meeting {
    /// Nobody has arrived.
    pub fn new() -> Self {
        let names = core::array::from_fn(|_| AtomicU64::new(0));
        Self { arrivals: EventCount::new(), names, left: AtomicU64::new(0) }
    }

    /// Says that one of the ranks that meet here has left for good (barrier.3).
    pub fn leave(&self) {
        // Release: the owner, who sees that all have left, knows what each of them did here.
        self.left.fetch_add(1, ord!("barrier.leave", Release));
        kill_point!("barrier.leave.left");
    }

    /// Makes the meeting as good as new if just so many ranks have left; whether it is. Called by its owner (barrier.3).
    pub fn renew(&self, ranks: u64) -> bool {
        let all_left = self.left.load(ord!("barrier.renew", Acquire)) == ranks;
        if all_left {
            self.arrivals.reset();
            self.names.iter().chain([&self.left]).for_each(|word| word.store(0, Relaxed));
        }
        all_left
    }

    /// The names of a phase.
    #[inline]
    fn name(&self, phase: u64) -> &AtomicU64 {
        &self.names[(phase % 3) as usize]
    }

    #[cold]
    fn enter(&self, phase: u64, name: Name) {
        // Relaxed: the count that follows carries it.
        let agree = |so_far| Some(Name::decode(so_far).and(name).encode());
        let _ = self.name(phase).fetch_update(Relaxed, Relaxed, agree); // it cannot fail
    }
}

impl Default for Meeting {
    fn default() -> Self {
        Self::new()
    }
}

/// A count, and how many come to it.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    at: &'a Meeting,
    group: u64,
}

impl Step<'_> {
    /// The count at the end of a phase.
    #[inline]
    fn full(&self, phase: u64) -> u64 {
        phase.wrapping_mul(self.group)
    }
}

/// One rank's view of the barrier. One thread at a time arrives, and none asks whether that phase is done before the
/// call has returned; any may ask and [arm](Self::arm).
#[derive(Debug)]
pub struct Barrier<'a> {
    /// From the count of this rank's group up to the top.
    way: Box<[Step<'a>]>,
    top: Step<'a>,
    /// Whether this rank clears the names of the next phase.
    clears: bool,
    /// The phase of the last arrival; this rank's own.
    phase: AtomicU64,
    /// The last phase that this rank has seen complete; this rank's own.
    finished: AtomicU64,
}

impl<'a> Barrier<'a> {
    /// A view for rank `me` of as many ranks as there are `meetings`, of which only some are used: one if at most
    /// `radix` ranks meet, or it is 0, else those of a tree in which so many (but at least 3) meet at each. `None` if
    /// there is no such rank.
    pub fn new(meetings: impl IntoIterator<Item = &'a Meeting>, me: usize, radix: usize) -> Option<Self> {
        let meetings: Box<[_]> = meetings.into_iter().collect();
        let ranks = meetings.len();
        if me >= ranks {
            return None;
        }
        let radix = if radix == 0 { ranks } else { radix.max(3) };
        let (mut way, mut members, mut place, mut first) = (Vec::new(), ranks, me, 0);
        while members > 1 || way.is_empty() {
            let group = place / radix;
            let size = radix.min(members - group * radix);
            way.push(Step { at: meetings[first + group], group: size as u64 });
            let groups = members.div_ceil(radix);
            (members, place, first) = (groups, group, first + groups);
        }
        let root = way.last().copied()?;
        let mut top = root;
        if way.len() > 1 {
            // All wait on the top, so that they are not in the way of those that still count. There is one left: with
            // three or more to a group, a tree has fewer counts than ranks.
            top = Step { at: meetings.get(first)?, group: 1 };
            way.push(top);
        }
        let (phase, finished) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Self { way: way.into(), top, clears: me == 0, phase, finished })
    }

    /// Announces this rank's arrival in the next phase, by this name. Whether it is the last and somebody may be asleep:
    /// then all bells must ring.
    #[inline]
    #[must_use = "somebody may be asleep"]
    pub fn arrive(&self, name: Name) -> bool {
        let phase = self.phase.load(Relaxed) + 1;
        self.phase.store(phase, Relaxed);
        if self.clears && self.top.at.name(phase + 1).load(Relaxed) != 0 {
            self.top.at.name(phase + 1).store(0, Relaxed);
        }
        if name != Name::Any {
            self.top.at.enter(phase, name);
        }
        kill_point!("barrier.arrive.before");
        let mut wake = false;
        for step in &self.way {
            // What this rank did before it arrived, and what those did whom it has found here, goes up with it.
            let Counted { index, wanted } = step.at.arrivals.count();
            kill_point!("barrier.arrive.counted");
            if index + 1 != step.full(phase) {
                return false;
            }
            wake = wanted;
        }
        if wake {
            self.top.at.arrivals.disarm();
        }
        wake
    }

    /// Once everybody has arrived in the phase of the last arrival here, the name they agree on. Before the first it is
    /// done.
    #[inline]
    pub fn done(&self) -> Option<Name> {
        let (phase, name) = self.complete()?;
        // Another thread of this rank may have finished this phase meanwhile, and a later one.
        self.finished.fetch_max(phase, Relaxed);
        Some(name)
    }

    /// As [`done`](Self::done), without a bus lock, where one thread is the only one that asks.
    #[inline]
    pub fn done_alone(&self) -> Option<Name> {
        let (phase, name) = self.complete()?;
        self.finished.store(phase, Relaxed);
        Some(name)
    }

    #[inline]
    fn complete(&self) -> Option<(u64, Name)> {
        let phase = self.phase.load(Relaxed);
        // What every rank did before it arrived is there, its name included.
        (self.top.at.arrivals.events() >= self.top.full(phase))
            .then(|| (phase, Name::decode(self.top.at.name(phase).load(Relaxed))))
    }

    /// How many phases this rank has begun, and whether it has not seen yet that the last is complete: for whoever looks
    /// from outside.
    pub fn standing(&self) -> (u64, bool) {
        let begun = self.phase.load(Relaxed);
        (begun, self.finished.load(Relaxed) != begun)
    }

    /// Whether the counts on this rank's way can be: no phase that is complete is missing in them, and nobody is two ahead of
    /// this rank. A barrier where they cannot is passed too early or never.
    #[cold]
    pub fn is_sound(&self) -> bool {
        self.way.iter().all(|step| {
            // In this order: whose arrivals are counted, and this rank's own before them, are known then.
            let finished = self.finished.load(Relaxed);
            let arrivals = step.at.arrivals.events();
            let phase = self.phase.load(Relaxed);
            (step.full(finished)..=step.full(phase + 1)).contains(&arrivals)
        })
    }

    /// Asks to be woken when all have arrived, if this rank waits for that; whether it may sleep.
    #[cold]
    pub fn arm(&self) -> bool {
        let phase = self.phase.load(Relaxed);
        self.finished.load(Relaxed) == phase || self.top.at.arrivals.arm() < self.top.full(phase)
    }
}

#[cfg(all(test, not(gasworks_loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_that_cannot_be_are_found() {
        let meetings: [Meeting; 5] = core::array::from_fn(|_| Meeting::new());
        let ranks: Vec<_> = (0..5).filter_map(|me| Barrier::new(&meetings, me, 3)).collect();
        let all_sound = || ranks.iter().all(Barrier::is_sound);
        for phase in 0..10 {
            for rank in &ranks {
                assert!(all_sound(), "before another arrives in phase {phase}");
                let _ = rank.arrive(Name::Any);
            }
            assert!(all_sound(), "phase {phase} is complete");
            // Who is the first to see it may be in the next before the others have looked.
            let look = |rank: &Barrier<'_>| assert!(rank.done().is_some());
            if phase % 2 == 0 { ranks.iter().for_each(look) } else { look(&ranks[0]) }
        }
        ranks.iter().for_each(|rank| assert!(rank.done().is_some()));
        for meeting in &meetings {
            let word = meeting.arrivals.word();
            for wrong in [0, 9, 34, u64::MAX] {
                let before = word.swap(wrong, Relaxed);
                let found = ranks.iter().any(|rank| !rank.is_sound());
                // Two counts are groups', one is their own, one the top; the fifth is nobody's.
                assert!(found || before == 0, "{wrong} in place of {before}");
                word.store(before, Relaxed);
            }
        }
        assert!(all_sound());
    }

    #[test]
    fn names_agree_whatever_the_order() {
        let names = [Name::Any, Name::Is(0), Name::Is(7), Name::Is(u32::MAX), Name::Mismatch];
        for a in names {
            assert_eq!(Name::decode(a.encode()), a);
            assert_eq!((a.and(a), a.and(Name::Any), a.and(Name::Mismatch)), (a, a, Name::Mismatch));
            for b in names {
                assert_eq!(a.and(b), b.and(a));
                names.iter().for_each(|&c| assert_eq!(a.and(b).and(c), a.and(b.and(c))));
            }
        }
        assert_eq!(Name::Is(1).and(Name::Is(2)), Name::Mismatch);
        assert_eq!(Name::decode(5), Name::Mismatch, "what nobody encodes");
    }

    /// Every tree has room, its groups are as large as those that come to them, and each count belongs to one group.
    #[test]
    fn trees_fit_into_as_many_counts_as_there_are_ranks() {
        // One thread is all it takes.
        let is_short = cfg!(any(miri, gasworks_tsan));
        for ranks in (1..200).filter(|ranks| !is_short || [1, 6].contains(ranks)) {
            for radix in [0, 1, 2, 3, 4, 8, 64, 1000].into_iter().filter(|&r| !is_short || r < 3) {
                let meetings: Vec<_> = (0..ranks).map(|_| Meeting::new()).collect();
                let at = |step: &Step<'_>| (&raw const *step.at).addr();
                let all: Vec<_> =
                    (0..ranks).map(|me| Barrier::new(&meetings, me, radix).expect("a rank")).collect();
                let mut comers = std::collections::HashMap::<usize, std::collections::HashSet<usize>>::new();
                for (me, barrier) in all.iter().enumerate() {
                    let mut from = me + (1 << 60); // a rank, told apart from a count
                    for step in &barrier.way {
                        comers.entry(at(step)).or_default().insert(from);
                        from = at(step);
                    }
                    assert_eq!((from, barrier.top.group), (at(&all[0].top), all[0].top.group));
                }
                // A tree has a count of its own for those that wait, which the last of all writes alone.
                let tree = radix != 0 && ranks > radix.max(3);
                assert_eq!(all[0].top.group, if tree { 1 } else { ranks as u64 }, "{ranks} ranks, {radix}");
                for step in all.iter().flat_map(|barrier| &barrier.way) {
                    assert_eq!(comers[&at(step)].len() as u64, step.group, "{ranks} ranks, radix {radix}");
                    assert!(radix == 0 || step.group <= radix.max(3) as u64);
                }
            }
        }
    }

    #[test]
    fn names_of_a_phase_are_its_own() {
        let meetings = [Meeting::new(), Meeting::new()];
        let ranks = [0, 1].map(|me| Barrier::new(&meetings, me, 0).expect("a rank"));
        let names = [Name::Is(3), Name::Any, Name::Is(4), Name::Mismatch, Name::Any, Name::Any, Name::Is(5)];
        for (round, name) in names.into_iter().cycle().take(50).enumerate() {
            let (first, second) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
            assert!(!ranks[first].arrive(name) && ranks[first].done().is_none());
            assert!(!ranks[second].arrive(Name::Any));
            assert_eq!((ranks[0].done(), ranks[1].done()), (Some(name), Some(name)), "round {round}");
        }
    }

    /// barrier.2: the other ranks leave the word, and with it its cache line, alone.
    #[test]
    fn rank_0_alone_clears_the_names_of_the_next_phase() {
        let meetings = [Meeting::new(), Meeting::new()];
        let [first, second] = [0, 1].map(|me| Barrier::new(&meetings, me, 0).expect("a rank"));
        for name in [Name::Is(3), Name::Any] {
            assert!(!first.arrive(name) && !second.arrive(Name::Any));
            assert_eq!((first.done(), second.done()), (Some(name), Some(name)));
        }
        let names = || meetings[0].name(4).load(Relaxed);
        assert!(!second.arrive(Name::Any));
        assert_eq!(names(), Name::Is(3).encode(), "phase 1 used the same word");
        assert!(!first.arrive(Name::Any));
        assert_eq!(names(), 0);
    }

    #[test]
    fn a_rank_alone_agrees_with_itself_in_every_phase() {
        let meetings = [Meeting::new()];
        let rank = Barrier::new(&meetings, 0, 0).expect("a rank");
        for name in [Name::Is(1), Name::Any, Name::Any, Name::Any, Name::Mismatch, Name::Is(2)].repeat(3) {
            assert!(!rank.arrive(name));
            assert_eq!(rank.done(), Some(name));
        }
    }

    #[test]
    fn a_phase_is_open_until_the_rank_has_seen_its_end() {
        type Look = fn(&Barrier<'_>) -> Option<Name>;
        let looks: [Look; 2] = [|rank| rank.done(), |rank| rank.done_alone()];
        for (look, other_look) in [(looks[0], looks[1]), (looks[1], looks[0])] {
            let meetings = [Meeting::new(), Meeting::new()];
            let [rank, other] = [0, 1].map(|me| Barrier::new(&meetings, me, 0).expect("a rank"));
            assert_eq!((rank.standing(), look(&rank)), ((0, false), Some(Name::Any)));
            for phase in 1..=5 {
                assert!(!rank.arrive(Name::Is(7)) && look(&rank).is_none());
                assert_eq!((rank.standing(), other.standing()), ((phase, true), (phase - 1, false)));
                assert!(!other.arrive(Name::Any));
                assert_eq!((rank.standing(), other.standing()), ((phase, true), (phase, true)));
                assert_eq!((look(&rank), other_look(&other)), (Some(Name::Is(7)), Some(Name::Is(7))));
                assert_eq!((rank.standing(), other.standing()), ((phase, false), (phase, false)));
                assert!(rank.arm(), "it waits for nothing");
            }
        }
    }

    #[test]
    fn the_last_to_arrive_is_told_of_a_sleeper_and_nobody_else() {
        for radix in [0, 3] {
            let meetings: Vec<_> = (0..7).map(|_| Meeting::new()).collect();
            let ranks: Vec<_> =
                (0..7).map(|me| Barrier::new(&meetings, me, radix).expect("a rank")).collect();
            assert!(ranks[3].arm(), "it waits for nothing");
            for sleeper in 0..6 {
                for rank in &ranks[..6] {
                    assert!(!rank.arrive(Name::Any));
                }
                assert!(ranks[sleeper].arm(), "not all have come");
                assert!(ranks[6].arrive(Name::Any), "the last knows of the sleeper");
                assert!(!ranks[sleeper].arm(), "all have come");
                assert!(ranks.iter().all(|rank| rank.done() == Some(Name::Any) && rank.arm()));
                // That last look left the bit: the next to come last rings for nobody, once.
                ranks.iter().for_each(|rank| _ = rank.arrive(Name::Any));
                assert!(ranks.iter().all(|rank| rank.done().is_some()));
            }
        }
    }
}
