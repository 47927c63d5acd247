//! The ranks of a job that share memory, and their numbers among those.

/// Ranks of a job. The *number* of one is its place among them, from 0.
///
/// Launchers mostly put ranks that follow each other on a host: then a number is a difference, and nothing is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    first: u32,
    count: usize,
    /// All of them, where one does not follow the other.
    listed: Box<[u32]>,
}

impl Ranks {
    /// These, which rise; `None` if they do not, or there are none.
    pub fn new(ranks: &[u32]) -> Option<Self> {
        let (first, count) = (*ranks.first()?, ranks.len());
        let follow = ranks.iter().zip(first..).all(|(&rank, next)| rank == next);
        let listed = if follow { &[] } else { ranks };
        ranks.is_sorted_by(|a, b| a < b).then(|| Self { first, count, listed: listed.into() })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of a rank; one that none of them has, if it is not among them.
    #[inline(always)]
    pub fn number(&self, rank: u32) -> usize {
        if self.listed.is_empty() { rank.wrapping_sub(self.first) as usize } else { self.look_up(rank) }
    }

    #[inline(never)]
    fn look_up(&self, rank: u32) -> usize {
        self.listed.binary_search(&rank).unwrap_or(usize::MAX)
    }

    /// The rank that has this number; one that is not among them, if none has.
    #[inline(always)]
    pub fn rank(&self, number: u16) -> u32 {
        if self.listed.is_empty() { self.first.wrapping_add(number.into()) } else { self.listed_at(number) }
    }

    #[inline(never)]
    fn listed_at(&self, number: u16) -> u32 {
        self.listed.get(usize::from(number)).copied().unwrap_or(u32::MAX)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> {
        let following = |number| self.first.wrapping_add(number as u32);
        (0..self.count)
            .map(move |number| self.listed.get(number).copied().unwrap_or_else(|| following(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_ranks() {
        for ranks in [&[0][..], &[0, 1, 2], &[7, 8], &[0, 2, 4], &[1, 5, 6, 1 << 20], &[u32::MAX - 1]] {
            let named = Ranks::new(ranks).expect("they rise");
            assert!(named.iter().eq(ranks.iter().copied()), "{ranks:?}");
            assert_eq!(named.count(), ranks.len());
            // Nothing is looked up where each follows the last.
            let follow = ranks.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            assert_eq!(named.listed.is_empty(), follow, "{ranks:?}");
            for (number, &rank) in (0..).zip(ranks) {
                assert_eq!((named.number(rank), named.rank(number)), (usize::from(number), rank));
            }
            let others = (0..100).chain([u32::MAX]).filter(|rank| !ranks.contains(rank));
            assert!(others.into_iter().all(|rank| named.number(rank) >= ranks.len()), "{ranks:?}");
            assert!(!ranks.contains(&named.rank(ranks.len() as u16)));
        }
        for wrong in [&[][..], &[1, 1], &[2, 1], &[0, 5, 4]] {
            assert_eq!(Ranks::new(wrong), None, "{wrong:?}");
        }
    }
}
