//! How the clocks of hosts go with each other.

/// How the monotonic clock of a host goes with that of `gasrun`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// What is added to the time there to get that of `gasrun` (ns).
    pub(crate) offset: i64,
    /// By how much that may be wrong (ns).
    pub(crate) uncertainty: u64,
}

impl Clock {
    /// From one round trip: a question left at `asked` and was answered by `now`; it was `theirs` where `gasrun` answered it, at a moment
    /// between the two, which is taken for the middle.
    pub(crate) fn of_trip(asked: u64, theirs: u64, now: u64) -> Self {
        let half = now.saturating_sub(asked).div_ceil(2);
        Self { offset: theirs.wrapping_sub(asked.wrapping_add(half)) as i64, uncertainty: half }
    }

    /// The one of two that is more exact: of the shorter trip.
    pub(crate) fn better(self, other: Option<Self>) -> Self {
        other.filter(|other| other.uncertainty <= self.uncertainty).unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_trip_counts() {
        // Whatever part of the way there the trip took, the true offset is as near as is said.
        for (there, back) in [(0, 10), (10, 0), (5, 5), (1, 2), (0, 0)] {
            for ahead in [-3_000_i64, 0, 7, 1 << 40] {
                let (asked, now) = (10_000_u64, 10_000 + there + back);
                let theirs = (asked + there).wrapping_add_signed(ahead);
                let clock = Clock::of_trip(asked, theirs, now);
                assert!(clock.offset.abs_diff(ahead) <= clock.uncertainty, "{clock:?} {ahead}");
                assert_eq!(clock.uncertainty, (there + back).div_ceil(2));
            }
        }
        let [long, short] = [40, 4].map(|now| Clock::of_trip(0, 100, now));
        assert_eq!(
            [long.better(Some(short)), short.better(Some(long)), long.better(None)],
            [short, short, long]
        );
        // What no clock says is taken, too.
        assert_eq!(Clock::of_trip(9, u64::MAX, 3), Clock { offset: -10, uncertainty: 0 });
    }
}
