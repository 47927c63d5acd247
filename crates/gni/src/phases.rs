//! The phases of a barrier: what a rank does next, and what it has heard.
//!
//! By puts, `GNIDISSEM`: in step `s` of a phase every rank puts a word to the rank 2^s further on, and waits for that of the one 2^s before.
//! After the last step it has heard, directly or not, of all. A step is one post, and calls nobody.
//!
//! A rank is at most one phase ahead of any other, so there are words for two phases.
//!
//! Or by the NIC's collective engines, `GNICE`: every rank gives them a word, and has from them the bits that all words have.

use gasworks_core::Name;
use gasworks_core::observe::{Standing, Witness};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::ops::Range;
use std::sync::Arc;

/// Steps that the largest job has.
pub(crate) const MOST_STEPS: u32 = 32;
/// The bit of a word that was put; below it is the name that those agree on for whom it speaks.
const HERE: u64 = 1 << 63;

/// A name as a word of which the bits that all ranks' words have are the name that all agree on, as a word: an identifier beside its
/// complement. Where two differ, some bit is in neither half.
fn spread(name: Name) -> u64 {
    match name {
        Name::Any => u64::MAX,
        Name::Is(number) => u64::from(number) | u64::from(!number) << 32,
        Name::Mismatch => 0,
    }
}

/// The name that such a word is.
fn gathered(word: u64) -> Name {
    match (word as u32, (word >> 32) as u32) {
        (u32::MAX, u32::MAX) => Name::Any,
        (number, complement) if number == !complement => Name::Is(number),
        _ => Name::Mismatch,
    }
}

/// How far this rank is, for whoever looks from outside.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    begun: AtomicU64,
    finished: AtomicU64,
}

impl Seen {
    /// A phase has begun.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// It is over.
    pub fn finish(&self) {
        self.finished.store(self.begun.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Witness for Seen {
    fn standing(&self) -> Standing {
        let finished = self.finished.load(Ordering::Relaxed);
        let begun = self.begun.load(Ordering::Relaxed);
        Standing { begun, waiting: begun > finished }
    }
}

/// A rank's phases.
#[derive(Debug)]
pub(crate) struct Phases {
    /// This rank's number among those that meet so, and how many these are.
    me: u32,
    ranks: u32,
    /// Whether engines of the NIC find out what all agree on.
    by_engines: bool,
    begun: u64,
    finished: u64,
    step: u32,
    /// Whether the next rank has been told in this step, or the engines have.
    told: bool,
    /// What this rank and those that it has heard of agree on.
    name: Name,
    seen: Arc<Seen>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Put this word into this place of the [partner](Phases::partner) in this step.
    Tell { step: u32, place: u32, word: u64 },
    /// Look into the own place.
    Hear { place: u32 },
    /// Give the engines this word, for the reduction with this number.
    Give { number: u64, word: u64 },
    /// Look whether they have a result.
    Gather,
    /// No phase is under way.
    Nothing,
}

impl Phases {
    pub fn new(me: u32, ranks: u32, by_engines: bool) -> Self {
        let (begun, finished, step, told) = (0, 0, 0, false);
        Self { me, ranks, by_engines, begun, finished, step, told, name: Name::Any, seen: Arc::default() }
    }

    pub fn seen(&self) -> Arc<Seen> {
        self.seen.clone()
    }

    /// The steps of a phase by puts.
    pub fn steps(&self) -> Range<u32> {
        0..self.ranks.next_power_of_two().trailing_zeros()
    }

    /// The number of the rank that is told in a step.
    pub fn partner(&self, step: u32) -> u32 {
        ((u64::from(self.me) + (1 << step)) % u64::from(self.ranks)) as u32
    }

    /// This rank has come, by this name.
    pub fn begin(&mut self, name: Name) {
        self.begun += 1;
        (self.step, self.told, self.name) = (0, false, name);
        self.seen.begin();
        self.look();
    }

    /// After the last step all have come.
    fn look(&mut self) {
        if !self.steps().contains(&self.step) {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.finished = self.begun;
        self.seen.finish();
    }

    /// Where this phase's word of a step is.
    fn place(&self) -> u32 {
        (self.begun & 1) as u32 * MOST_STEPS + self.step
    }

    pub fn next(&self) -> Next {
        if self.finished == self.begun {
            return Next::Nothing;
        }
        match (self.by_engines, self.told) {
            (true, false) => return Next::Give { number: self.begun, word: spread(self.name) },
            (true, true) => return Next::Gather,
            (false, _) => {}
        }
        if self.told {
            return Next::Hear { place: self.place() };
        }
        Next::Tell { step: self.step, place: self.place(), word: HERE | self.name.encode() }
    }

    /// The word was put, or given.
    pub fn tell(&mut self) {
        self.told = true;
    }

    /// A word was there; zero is none.
    pub fn hear(&mut self, word: u64) {
        self.name = self.name.and(Name::decode(word & !HERE));
        (self.step, self.told) = (self.step + 1, false);
        self.look();
    }

    /// The engines have gathered this word.
    pub fn gather(&mut self, word: u64) {
        self.name = gathered(word);
        self.finish();
    }

    /// What all agree on, once all have come in the phase begun last.
    pub fn agreed(&self) -> Option<Name> {
        (self.finished == self.begun).then_some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ranks whose words wait in places, as they do in regions.
    struct Job {
        phases: Vec<Phases>,
        places: Vec<[u64; 2 * MOST_STEPS as usize]>,
        /// What the engines have been given, of which reduction and by whom.
        given: Vec<(u64, usize, u64)>,
        /// What they have for each.
        results: Vec<Option<u64>>,
    }

    impl Job {
        fn of(ranks: u32, by_engines: bool) -> Self {
            let phases = (0..ranks).map(|me| Phases::new(me, ranks, by_engines)).collect();
            let places = vec![[0; 2 * MOST_STEPS as usize]; ranks as usize];
            Self { phases, places, given: Vec::new(), results: vec![None; ranks as usize] }
        }

        /// A rank gives the engines a word; the last one makes the result.
        fn give(&mut self, rank: usize, number: u64, word: u64) {
            assert!(
                self.results[rank].is_none()
                    && self.given.iter().all(|(same, other, _)| { *same == number && *other != rank })
            );
            self.given.push((number, rank, word));
            if self.given.len() == self.phases.len() {
                let all = self.given.drain(..).fold(u64::MAX, |all, (.., word)| all & word);
                self.results.fill(Some(all));
            }
        }

        /// One step of a rank, if there is one to take.
        fn step(&mut self, rank: usize) -> bool {
            match self.phases[rank].next() {
                Next::Nothing => false,
                Next::Tell { step, place, word } => {
                    let to = self.phases[rank].partner(step);
                    let place = &mut self.places[to as usize][place as usize];
                    assert_eq!(
                        std::mem::replace(place, word),
                        0,
                        "a word was overwritten before it was read"
                    );
                    self.phases[rank].tell();
                    true
                }
                Next::Hear { place } => {
                    let word = std::mem::take(&mut self.places[rank][place as usize]);
                    if word != 0 {
                        self.phases[rank].hear(word);
                    }
                    word != 0
                }
                Next::Give { number, word } => {
                    self.give(rank, number, word);
                    self.phases[rank].tell();
                    true
                }
                Next::Gather => {
                    let result = self.results[rank].take();
                    result.into_iter().for_each(|word| self.phases[rank].gather(word));
                    result.is_some()
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// Whoever is taken next, nobody is through before all have come, all agree, and no word is lost.
        #[test]
        fn ranks_meet(ranks in 1u32..12, by_engines: bool, order in prop::collection::vec(any::<u16>(), 1500),
            odd in 0u32..40) {
            let mut job = Job::of(ranks, by_engines);
            let mut begun = vec![0u64; ranks as usize];
            let name = |rank: u32, phase: u64| match (u64::from(odd) == phase, rank % 3) {
                (true, 0) => Name::Is(7),
                (true, _) => Name::Any,
                (false, 0) => Name::Is(phase as u32),
                (false, _) => Name::Any,
            };
            for pick in order {
                let rank = usize::from(pick) % ranks as usize;
                if let Some(agreed) = job.phases[rank].agreed() {
                    let phase = begun[rank];
                    if phase > 0 {
                        prop_assert!(begun.iter().all(|other| *other >= phase), "through before all have come");
                        let all = (0..ranks).fold(Name::Any, |all, rank| all.and(name(rank, phase)));
                        prop_assert_eq!(agreed, all);
                    }
                    begun[rank] += 1;
                    job.phases[rank].begin(name(rank as u32, begun[rank]));
                } else {
                    job.step(rank);
                }
            }
            // Whoever is behind comes through in the end.
            let last = *begun.iter().max().expect("a rank");
            while let Some(rank) = (0..ranks as usize).find(|rank| {
                begun[*rank] < last || job.phases[*rank].agreed().is_none()
            }) {
                for (rank, begun) in begun.iter_mut().enumerate() {
                    while job.step(rank) {}
                    if *begun < last && job.phases[rank].agreed().is_some() {
                        *begun += 1;
                        job.phases[rank].begin(Name::Any);
                    }
                }
                prop_assert!(begun[rank] <= last);
            }
            prop_assert!(job.places.iter().all(|places| places.iter().all(|word| *word == 0)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_bits_of_all_are_what_all_agree_on(
            names in prop::collection::vec((0u32..4, prop::sample::select(vec![0, 1, 7, u32::MAX])), 0..6),
        ) {
            let names = names.into_iter().map(|(kind, number)| match kind {
                0 => Name::Mismatch,
                1 => Name::Any,
                _ => Name::Is(number),
            });
            let (agreed, bits) = names.fold((Name::Any, u64::MAX), |(agreed, bits), name| {
                (agreed.and(name), bits & spread(name))
            });
            prop_assert_eq!(gathered(bits), agreed);
        }
    }

    #[test]
    fn who_looks_from_outside_sees_who_waits() {
        let mut job = Job::of(2, false);
        let seen = job.phases[0].seen();
        assert_eq!(seen.standing(), Standing { begun: 0, waiting: false });
        job.phases[0].begin(Name::Any);
        assert_eq!(seen.standing(), Standing { begun: 1, waiting: true });
        job.phases[1].begin(Name::Mismatch);
        while job.step(1) || job.step(0) {}
        assert_eq!(seen.standing(), Standing { begun: 1, waiting: false });
        assert_eq!(job.phases[0].agreed(), Some(Name::Mismatch));
    }
}
