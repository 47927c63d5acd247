//! Where the members of a team are, for trees by which as little as possible goes from one host to another.

use gasworks_core::Members;
use std::collections::HashMap;

/// The members of a team by neighbourhoods: of ranks that share memory. Neighbourhoods are numbered in the order of their lowest members.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Those of a neighbourhood one behind the other, in rising order.
    members: Box<[u32]>,
    /// Where each neighbourhood begins there, and where the last one ends.
    starts: Box<[u32]>,
    /// Where each member is there.
    positions: Box<[u32]>,
}

impl Layout {
    /// By the number of each rank's neighbourhood. `None` where a tree of all members crosses no less: all are in one, or each has its own.
    pub fn new(members: &Members, neighbourhoods: &[u32]) -> Option<Self> {
        let mut numbers = HashMap::new();
        let mut all: Vec<(u32, u32)> = Vec::with_capacity(members.size() as usize);
        for (member, rank) in (0..).zip(members.iter()) {
            let next = numbers.len() as u32;
            let neighbourhood = *neighbourhoods.get(rank as usize)?;
            all.push((*numbers.entry(neighbourhood).or_insert(next), member));
        }
        if numbers.len() <= 1 || numbers.len() == all.len() {
            return None;
        }
        all.sort_unstable();
        let count = numbers.len() as u32;
        let starts = (0..=count).map(|number| all.partition_point(|one| one.0 < number) as u32).collect();
        let mut positions = vec![0; all.len()];
        (0..).zip(&all).for_each(|(position, &(_, member))| positions[member as usize] = position);
        let members = all.into_iter().map(|(_, member)| member).collect();
        Some(Self { members, starts, positions: positions.into() })
    }

    /// Whether neighbours follow each other among the members.
    pub fn is_in_order(&self) -> bool {
        self.members.is_sorted()
    }

    /// How many neighbourhoods there are.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// How many members a neighbourhood has.
    pub fn size_of(&self, neighbourhood: u32) -> u32 {
        self.starts[neighbourhood as usize + 1] - self.starts[neighbourhood as usize]
    }

    /// How many members there are in so many neighbourhoods, from one on, around.
    pub fn size_of_some(&self, first: u32, count: u32) -> u32 {
        let (all, before, end) = (self.count(), self.starts[first as usize], first + count);
        match end.checked_sub(all) {
            None => self.starts[end as usize] - before,
            Some(end) => self.members.len() as u32 - before + self.starts[end as usize],
        }
    }

    /// The neighbourhood of a member, and which of its members that is.
    pub fn place_of(&self, member: u32) -> (u32, u32) {
        let position = self.positions[member as usize];
        let neighbourhood = self.starts.partition_point(|&start| start <= position) as u32 - 1;
        (neighbourhood, position - self.starts[neighbourhood as usize])
    }

    /// The member that is so far in its neighbourhood.
    pub fn member(&self, neighbourhood: u32, at: u32) -> u32 {
        self.members[(self.starts[neighbourhood as usize] + at) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_neighbourhoods() {
        let layout = Layout::new(&Members::everyone(6), &[7, 3, 7, 7, 3, 5]).expect("three of six");
        assert_eq!((layout.count(), layout.is_in_order()), (3, false));
        assert_eq!([0, 1, 2].map(|number| layout.size_of(number)), [3, 2, 1]);
        for first in 0..3 {
            for count in 0..=3 {
                let each = (first..first + count).map(|number| layout.size_of(number % 3));
                assert_eq!(layout.size_of_some(first, count), each.sum::<u32>(), "{count} from {first}");
            }
        }
        for member in 0..6 {
            let (neighbourhood, at) = layout.place_of(member);
            assert_eq!(layout.member(neighbourhood, at), member);
        }
        assert_eq!([0, 4, 5].map(|member| layout.place_of(member)), [(0, 0), (1, 1), (2, 0)]);
        assert!(Layout::new(&Members::everyone(4), &[0, 0, 1, 1]).expect("two of four").is_in_order());
    }

    #[test]
    fn there_is_none_where_it_would_change_nothing() {
        assert_eq!(Layout::new(&Members::everyone(3), &[0; 3]), None);
        assert_eq!(Layout::new(&Members::everyone(3), &[0, 1, 2]), None);
        assert_eq!(Layout::new(&Members::everyone(3), &[0, 0]), None, "a rank that nobody knows");
    }
}
