//! Pairwise covering sets: few combinations in which every pair of values of two dimensions occurs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A combination: the index of the value chosen in each dimension.
pub type Pick = Vec<usize>;

/// All combinations of dimensions with these numbers of values.
pub fn product(sizes: &[usize]) -> Vec<Pick> {
    sizes.iter().fold(vec![Vec::new()], |picks, &size| {
        picks.iter().flat_map(|pick| (0..size).map(|v| pick.iter().copied().chain([v]).collect())).collect()
    })
}

/// Combinations of dimensions with these numbers of values, in which every pair of values of two dimensions occurs at least
/// once.
pub fn pairwise(sizes: &[usize]) -> Vec<Pick> {
    covering(&product(sizes))
}

/// Those of the combinations `all` in which every pair of values that occurs in `all` occurs at least once. Greedy: each next
/// combination is the one that covers the most pairs still open; of equals, the one whose values have been chosen least.
pub fn covering(all: &[Pick]) -> Vec<Pick> {
    // Pairs go by numbers, since every start of a test program with such a table computes it anew.
    let mut numbers = BTreeMap::new();
    let mut number = |pair| {
        let next = numbers.len();
        *numbers.entry(pair).or_insert(next)
    };
    let pairs_of: Vec<Vec<usize>> = all.iter().map(|pick| pairs(pick).map(&mut number).collect()).collect();
    let mut open = vec![true; numbers.len()];
    let values = all.iter().flatten().max().map_or(0, |most| most + 1);
    let mut used = vec![vec![0usize; values]; all.first().map_or(0, Vec::len)];
    let mut chosen = Vec::new();
    while open.contains(&true) {
        let gain = |at: usize| pairs_of[at].iter().filter(|&&pair| open[pair]).count();
        let use_so_far =
            |at: usize| -> usize { all[at].iter().zip(&used).map(|(&v, counts)| counts[v]).sum() };
        let best = (0..all.len()).max_by_key(|&at| (gain(at), Reverse(use_so_far(at))));
        let Some(best) = best else { break };
        for &pair in &pairs_of[best] {
            open[pair] = false;
        }
        for (&value, counts) in all[best].iter().zip(&mut used) {
            counts[value] += 1;
        }
        chosen.push(all[best].clone());
    }
    chosen
}

/// The pairs of (dimension, value) in a combination.
fn pairs(pick: &[usize]) -> impl Iterator<Item = [(usize, usize); 2]> {
    let n = pick.len();
    (0..n).flat_map(move |a| (a + 1..n).map(move |b| [(a, pick[a]), (b, pick[b])]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_is_covered_by_few() {
        for sizes in [&[3, 2, 4, 2][..], &[2, 2, 2, 2, 2], &[4, 4, 4], &[5, 1, 3]] {
            let chosen = pairwise(sizes);
            for a in 0..sizes.len() {
                for b in a + 1..sizes.len() {
                    for x in 0..sizes[a] {
                        for y in 0..sizes[b] {
                            assert!(
                                chosen.iter().any(|p| p[a] == x && p[b] == y),
                                "{sizes:?}: {a}={x} {b}={y}"
                            );
                        }
                    }
                }
            }
            assert!(chosen.len() * 2 <= product(sizes).len() + 15, "{sizes:?}: {} rows", chosen.len());
        }
        assert!(pairwise(&[3, 2, 4, 2]).len() <= 14);
    }

    #[test]
    fn pairs_that_cannot_occur_are_left_out_and_all_others_covered() {
        let possible: Vec<Pick> =
            product(&[3, 3, 4, 2]).into_iter().filter(|p| p[0] != 2 || p[1] == 2).collect();
        let chosen = covering(&possible);
        assert!(chosen.iter().all(|pick| possible.contains(pick)));
        let covered: BTreeSet<_> = chosen.iter().flat_map(|pick| pairs(pick)).collect();
        assert!(possible.iter().flat_map(|pick| pairs(pick)).all(|pair| covered.contains(&pair)));
        assert!(chosen.len() <= 16, "{} combinations", chosen.len());
    }

    #[test]
    fn a_product_has_all() {
        assert_eq!(product(&[2, 3]).len(), 6);
        assert_eq!(product(&[]), vec![Vec::<usize>::new()]);
    }
}
