//! Where the ranks of a job are.

use std::collections::HashMap;

/// The host and the neighbourhood of each rank: a neighbourhood are ranks of one host that share memory. Both are numbered in the order of
/// their lowest ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    hosts: Vec<u32>,
    neighbourhoods: Vec<u32>,
}

impl Places {
    /// Of ranks on these hosts, of which as many as follow each other share memory; all of a host, if `together` is 0.
    pub(crate) fn new(hosts: Vec<u32>, together: u32) -> Self {
        let (mut seen, mut numbers) = (HashMap::new(), HashMap::new());
        let neighbourhoods = hosts.iter().map(|&host| {
            let before = seen.entry(host).or_insert(0u32);
            let parcel = before.checked_div(together).unwrap_or(0);
            *before += 1;
            let next = numbers.len() as u32;
            *numbers.entry((host, parcel)).or_insert(next)
        });
        let neighbourhoods = neighbourhoods.collect();
        Self { hosts, neighbourhoods }
    }

    /// The number of each rank's neighbourhood, if there are several and some have several ranks.
    pub(crate) fn neighbourhoods(&self) -> Option<Box<[u32]>> {
        let count = self.counts().1 as usize;
        (count > 1 && count < self.neighbourhoods.len()).then(|| self.neighbourhoods.as_slice().into())
    }

    /// The number of a rank's host; `None` if there is no such rank.
    pub fn host(&self, rank: u32) -> Option<u32> {
        self.hosts.get(rank as usize).copied()
    }

    /// The number of a rank's neighbourhood; `None` if there is no such rank.
    pub fn neighbourhood(&self, rank: u32) -> Option<u32> {
        self.neighbourhoods.get(rank as usize).copied()
    }

    /// How many hosts there are, and how many neighbourhoods.
    pub fn counts(&self) -> (u32, u32) {
        let count = |all: &[u32]| all.iter().max().map_or(0, |last| last + 1);
        (count(&self.hosts), count(&self.neighbourhoods))
    }

    /// The ranks on the host of a rank, in rising order.
    pub fn on_host_of(&self, rank: u32) -> Vec<u32> {
        Self::alike(&self.hosts, rank)
    }

    /// The ranks of the neighbourhood of a rank, in rising order.
    pub fn around(&self, rank: u32) -> Vec<u32> {
        Self::alike(&self.neighbourhoods, rank)
    }

    fn alike(numbers: &[u32], rank: u32) -> Vec<u32> {
        let own = numbers.get(rank as usize);
        (0..).zip(numbers).filter(|(_, number)| Some(*number) == own).map(|(rank, _)| rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_of_one_host_and_follow_each_other() {
        let places = Places::new(vec![0, 1, 0, 0, 1, 0], 2);
        assert_eq!(places.neighbourhoods, [0, 1, 0, 2, 1, 2]);
        assert_eq!(places.counts(), (2, 3));
        assert_eq!(
            (places.on_host_of(2), places.around(2), places.around(5)),
            (vec![0, 2, 3, 5], vec![0, 2], vec![3, 5])
        );
        assert_eq!((places.host(4), places.neighbourhood(3), places.host(6)), (Some(1), Some(2), None));
        let all = Places::new(vec![0, 0, 1], 0);
        assert_eq!(all.neighbourhoods, [0, 0, 1]);
        assert_eq!((all.around(7), Places::default().counts()), (vec![], (0, 0)));
    }
}
