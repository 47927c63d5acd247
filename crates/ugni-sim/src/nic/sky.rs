//! The transactions of a NIC that are on their way, in a mood in which nothing happens at once.

use std::collections::BTreeMap;

use super::flight::Flight;
use super::mood::{Delays, Mood, Step, delays, is_ordered};
use crate::post::Way;

/// Transactions, and the time: calls of the client.
#[derive(Default)]
pub(super) struct Sky {
    now: u64,
    posted: u64,
    flights: Vec<Scheduled>,
    /// When the last step is due of what went by the block transfer engine.
    engine: u64,
    /// The same of what goes in order, by peer.
    ordered: BTreeMap<usize, u64>,
}

struct Scheduled {
    number: u64,
    /// When each step is due.
    due: Delays,
    /// Which steps were taken.
    taken: [bool; Step::ALL.len()],
    flight: Flight,
}

impl Sky {
    pub(super) fn take_on(&mut self, flight: Flight, mood: Mood, instance: u32) {
        self.posted += 1;
        let (number, post) = (self.posted, *flight.post());
        let late = delays(mood, instance, number, &post);
        let start = if post.fenced { self.engine.max(self.now) } else { self.now };
        let mut due = late.map(|late| start + late);
        if is_ordered(&post) {
            // Of steps that are due at the same time those of the earlier transaction come first.
            let before = self.ordered.entry(flight.peer()).or_default();
            due = due.map(|at| at.max(*before));
            *before = due[Step::There as usize];
        }
        self.flights.push(Scheduled { number, due, taken: [false; Step::ALL.len()], flight });
        if post.way == Way::Bte {
            self.engine = self.engine.max(due[Step::Global as usize]);
        }
    }

    /// One call later: takes all steps that are due, in the order in which they are.
    pub(super) fn progress(&mut self) {
        self.now += 1;
        let mut due: Vec<_> = Vec::new();
        for (place, scheduled) in self.flights.iter().enumerate() {
            for step in Step::ALL {
                let at = scheduled.due[step as usize];
                if at <= self.now && !scheduled.taken[step as usize] {
                    due.push((at, scheduled.number, step, place));
                }
            }
        }
        due.sort_unstable();
        for (_, _, step, place) in due {
            let scheduled = &mut self.flights[place];
            scheduled.flight.take(step);
            scheduled.taken[step as usize] = true;
        }
        self.flights.retain(|scheduled| !scheduled.taken[Step::Global as usize]);
    }
}
