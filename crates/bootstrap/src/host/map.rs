//! Which rank is on which host, where a job has several.

use crate::host::Host;
use crate::{Bootstrap, BootstrapError};

/// Which ranks are on which host, the same on every rank. Hosts are numbered from 0 in the order of their lowest ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// For each rank the leader of its host: all else follows from that, and is not kept.
    leader_of: Vec<u32>,
    count: u32,
}

impl Hosts {
    /// All of `size` ranks on one host.
    pub fn one(size: u32, leader: u32) -> Self {
        Self { leader_of: vec![leader; size as usize], count: 1 }
    }

    /// From the leader of each rank.
    ///
    /// # Panics
    /// A leader is no rank, or is led by another.
    pub fn led_by(leader_of: Vec<u32>) -> Self {
        assert!(leader_of.iter().all(|&leader| leads(&leader_of, leader)), "a leader that leads nobody");
        let count = (0..).zip(&leader_of).filter(|(rank, leader)| rank == *leader).count() as u32;
        Self { leader_of, count }
    }

    /// Finds out. Collective over all ranks of the job.
    ///
    /// Every rank puts the number of its leader. So that the leaders need not ask for each of them, ranks at even
    /// distances collect the numbers of those behind them first. It uses the keys `leader` and `leaders`.
    ///
    /// # Errors
    /// The launcher fails, or a rank of this host is lost meanwhile.
    pub fn find(job: &dyn Bootstrap, host: &Host) -> Result<Self, BootstrapError> {
        let size = job.size();
        if host.ranks().len() == size as usize {
            return Ok(Self::one(size, host.leader()));
        }
        let (me, step) = (job.rank(), size.isqrt().max(1));
        job.put("leader", &host.leader().to_le_bytes())?;
        job.fence()?;
        if me.is_multiple_of(step) {
            let mut block = Vec::new();
            for rank in me..(me + step).min(size) {
                block.extend(job.get(rank, "leader")?);
            }
            job.put("leaders", &block)?;
        }
        job.fence()?;
        let blocks = || (0..size).step_by(step as usize).map(|rank| job.get(rank, "leaders"));
        let whole = host.leads().then(|| blocks().collect::<Result<Vec<_>, _>>()).transpose();
        let whole = whole.inspect_err(|e| host.fail(e))?;
        let whole = whole.map(|blocks| super::Parcel { bytes: blocks.concat(), fds: Vec::new() });
        let all = host.hand_out(whole, None)?.bytes;
        let leader_of: Vec<u32> =
            all.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        if leader_of.len() != size as usize || !leader_of.iter().all(|&leader| leads(&leader_of, leader)) {
            let what = format!(
                "{} numbers came of {size} ranks, or some name a leader that is none",
                leader_of.len()
            );
            return Err(BootstrapError::protocol("find the hosts of the job", what));
        }
        Ok(Self::led_by(leader_of))
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.leader_of.len() as u32
    }

    /// How many hosts there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The leader of a rank's host.
    ///
    /// # Panics
    /// The job has no such rank.
    pub fn leader(&self, rank: u32) -> u32 {
        self.leader_of[rank as usize]
    }

    /// The ranks of the host with this leader, in rising order.
    pub fn ranks(&self, leader: u32) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.leader_of).filter(move |(_, of)| **of == leader).map(|(rank, _)| rank)
    }

    /// The leader of each host, and for each rank the number of its host.
    pub fn numbered(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut leaders, mut numbers) = (Vec::new(), vec![None; self.leader_of.len()]);
        let number = |&leader: &u32| {
            *numbers[leader as usize].get_or_insert_with(|| {
                leaders.push(leader);
                leaders.len() as u32 - 1
            })
        };
        let of = self.leader_of.iter().map(number).collect();
        (leaders, of)
    }
}

/// Whether a rank is led by itself.
fn leads(leader_of: &[u32], leader: u32) -> bool {
    leader_of.get(leader as usize) == Some(&leader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbered_by_their_lowest_ranks() {
        let hosts = Hosts::led_by(vec![4, 1, 4, 1, 4, 5]);
        assert_eq!(hosts.numbered(), (vec![4, 1, 5], vec![0, 1, 0, 1, 0, 2]));
        assert_eq!((hosts.size(), hosts.count(), hosts.leader(2)), (6, 3, 4));
        assert_eq!(hosts.ranks(4).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(Hosts::one(3, 1), Hosts::led_by(vec![1, 1, 1]));
    }
}
