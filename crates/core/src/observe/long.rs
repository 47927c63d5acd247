//! What threads of a rank have waited for since long: for a job that hangs. It is told by whoever waits, off the hot path.

use super::layout::Collective;
use crate::Rank;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Lock, Mode, Par};
use std::fmt;

/// A collective that this rank is in since long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongWait {
    /// Which it is.
    pub kind: Collective,
    /// The bytes of each member, where these are as many on all.
    pub bytes: u64,
    /// What the team is called: the rank of a member, and a number of that.
    pub team: (Rank, u32),
    /// How many collectives the team had begun before.
    pub before: u64,
    /// The rank that is waited for, if it is one.
    pub rank: Option<Rank>,
}

impl fmt::Display for LongWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, bytes, team: (maker, counter), before, rank } = self;
        write!(f, "in {} of {bytes} bytes, collective {before} of ", kind.name())?;
        match (maker, counter) {
            (0, 0) => f.write_str("everyone")?,
            _ => write!(f, "team {maker}:{counter}")?,
        }
        rank.map_or(Ok(()), |rank| write!(f, ", which waits for rank {rank}"))
    }
}

/// All of them. Any thread may look.
#[derive(Default)]
pub(crate) struct LongWaits {
    list: <Par as Mode>::Lock<Vec<(u64, LongWait)>>,
    last: AtomicU64,
}

impl LongWaits {
    /// Adds one; its number, by which it is changed and taken away.
    pub fn add(&self, wait: LongWait) -> u64 {
        let number = self.last.fetch_add(1, Relaxed) + 1;
        self.list.with(|list| list.push((number, wait)));
        number
    }

    /// Another rank is waited for.
    pub fn change(&self, number: u64, rank: Option<Rank>) {
        self.list.with(|list| {
            list.iter_mut().filter(|(of, _)| *of == number).for_each(|(_, wait)| wait.rank = rank);
        });
    }

    /// It is over.
    pub fn remove(&self, number: u64) {
        self.list.with(|list| list.retain(|(of, _)| *of != number));
    }

    /// What there is now, in the order in which it was told.
    pub fn all(&self) -> Vec<LongWait> {
        self.list.with(|list| list.iter().map(|(_, wait)| *wait).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_until_they_are_over() {
        let (waits, kind) = (LongWaits::default(), Collective::ReduceAll);
        let one = LongWait { kind, bytes: 8, team: (0, 0), before: 12, rank: Some(5) };
        let other = LongWait { kind: Collective::Gather, team: (3, 1), before: 0, rank: None, ..one };
        let numbers = [waits.add(one), waits.add(other)];
        let said = waits.all().iter().map(LongWait::to_string).collect::<Vec<_>>();
        let wanted = [
            "in reduce_all of 8 bytes, collective 12 of everyone, which waits for rank 5",
            "in gather of 8 bytes, collective 0 of team 3:1",
        ];
        assert_eq!(said, wanted);
        waits.remove(numbers[0]);
        waits.change(numbers[1], Some(7));
        assert_eq!(waits.all(), [LongWait { rank: Some(7), ..other }]);
        waits.remove(numbers[1]);
        assert!(waits.all().is_empty());
    }
}
