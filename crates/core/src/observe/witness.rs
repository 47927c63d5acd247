//! How a rank stands, seen from a thread that takes no part: for a job that hangs.

use crate::Rank;

/// How far a rank is in the barriers of its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How many it has begun.
    pub begun: u64,
    /// Whether it has not been told yet that the last one is over.
    pub waiting: bool,
}

/// What knows how a rank stands in its barriers. Any thread may ask, at any time, and disturbs nobody.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// How this rank stands.
    fn standing(&self) -> Standing;
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { begun, waiting } = self;
        match waiting {
            true => write!(f, "in barrier {begun}"),
            false => write!(f, "in no barrier, after {begun}"),
        }
    }
}

/// Ranks in few words: `ranks 0-2, 5`. They are in rising order.
pub fn ranks(ranks: &[Rank]) -> String {
    let mut runs: Vec<(Rank, Rank)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let text = |&(a, b): &(Rank, Rank)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", runs.iter().map(text).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_in_runs() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[0, 1, 2, 5, 7, 8]), "ranks 0-2, 5, 7-8");
    }

    #[test]
    fn a_standing_is_told_in_words() {
        let told = |waiting| Standing { begun: 3, waiting }.to_string();
        assert_eq!([told(true), told(false)], ["in barrier 3", "in no barrier, after 3"]);
    }
}
