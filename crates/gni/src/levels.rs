//! The barrier in two levels, where ranks share memory and have a barrier there: they meet in it, the first of each such group, its leader,
//! meets the other leaders over the network, and then all meet in it once more, where the leader comes by the name that all agree on.

use crate::phases::Seen;
use gasworks_core::{Name, SharedBarrier};
use std::sync::Arc;

/// How far a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// In no phase; what all agreed on in the last.
    Idle(Name),
    /// Until those that share memory have come.
    Gathering,
    /// Until the leaders have met: a leader alone.
    Between,
    /// Until the leader has come back, and all others have been told.
    Again,
}

/// A rank's part in it.
pub(crate) struct Levels<B: ?Sized> {
    near: Box<B>,
    leads: bool,
    stage: Stage,
    seen: Arc<Seen>,
}

impl<B: SharedBarrier + ?Sized> Levels<B> {
    pub fn new(near: Box<B>, leads: bool) -> Self {
        Self { near, leads, stage: Stage::Idle(Name::Any), seen: Arc::default() }
    }

    pub fn seen(&self) -> Arc<Seen> {
        self.seen.clone()
    }

    /// This rank has come, by this name.
    pub fn arrive(&mut self, name: Name) {
        self.seen.begin();
        self.near.arrive(name);
        self.stage = Stage::Gathering;
    }

    /// Goes as far as it can; the name that all agree on, once all have come. A leader begins the barrier of the leaders by a name, and asks what
    /// these agree on.
    pub fn turn(&mut self, begin: impl Fn(Name), agreed: impl Fn() -> Option<Name>) -> Option<Name> {
        loop {
            self.stage = match self.stage {
                Stage::Idle(name) => return Some(name),
                Stage::Gathering => {
                    let name = self.near.done()?;
                    if self.leads {
                        begin(name);
                        Stage::Between
                    } else {
                        self.near.arrive(Name::Any);
                        Stage::Again
                    }
                }
                Stage::Between => {
                    self.near.arrive(agreed()?);
                    Stage::Again
                }
                Stage::Again => {
                    let name = self.near.done()?;
                    self.seen.finish();
                    Stage::Idle(name)
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A barrier of some ranks, of which each knows how many times it has come.
    #[derive(Default)]
    struct Place {
        ranks: usize,
        come: usize,
        phase: usize,
        name: Name,
        agreed: Name,
    }

    impl Place {
        fn of(ranks: usize) -> Rc<RefCell<Self>> {
            Rc::new(RefCell::new(Self { ranks, ..Self::default() }))
        }

        fn come(&mut self, name: Name) {
            (self.name, self.come) = (self.name.and(name), self.come + 1);
            if self.come == self.ranks {
                (self.agreed, self.name, self.come) = (self.name, Name::Any, 0);
                self.phase += 1;
            }
        }
    }

    #[derive(Clone)]
    struct Seat(Rc<RefCell<Place>>, Rc<RefCell<usize>>);

    impl SharedBarrier for Seat {
        fn arrive(&self, name: Name) {
            *self.1.borrow_mut() += 1;
            self.0.borrow_mut().come(name);
        }

        fn done(&self) -> Option<Name> {
            let place = self.0.borrow();
            (place.phase >= *self.1.borrow()).then_some(place.agreed)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 300 }, failure_persistence: None,
            ..ProptestConfig::default() })]
        /// Groups of any sizes, turned in any order: nobody goes on before all have come, and all hear the same name.
        #[test]
        fn all_meet(groups in prop::collection::vec(1usize..4, 1..4), order in prop::collection::vec(any::<u8>(), 400),
            names in prop::collection::vec(0u32..2, 12)) {
            let leaders = Place::of(groups.len());
            let mut ranks = Vec::new();
            for size in &groups {
                let place = Place::of(*size);
                for number in 0..*size {
                    let far = Seat(leaders.clone(), Rc::default());
                    let near = Box::new(Seat(place.clone(), Rc::default()));
                    ranks.push((Levels::new(near, number == 0), far, 0usize));
                }
            }
            let count = ranks.len();
            let name = |phase: usize, rank: usize| Name::Is(if phase.is_multiple_of(2) { 7 } else { names[rank % 12] });
            for step in order.iter().copied().chain((0..count as u8 * 8).map(|n| n % count as u8)) {
                let at = usize::from(step) % count;
                let least = ranks.iter().map(|rank| rank.2).min().unwrap_or(0);
                let (levels, far, phases) = &mut ranks[at];
                if let Some(found) = levels.turn(|name| far.arrive(name), || far.done()) {
                    let all = |phase| (0..count).map(|rank| name(phase, rank)).fold(Name::Any, Name::and);
                    prop_assert!(*phases == 0 || least + 1 >= *phases, "somebody has gone on alone");
                    prop_assert_eq!(found, if *phases == 0 { Name::Any } else { all(*phases - 1) });
                    levels.arrive(name(*phases, at));
                    *phases += 1;
                }
            }
        }
    }
}
