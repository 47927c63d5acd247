//! Pairwise covering sets: few combinations in which every pair of values of two dimensions occurs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A combination: the index of the value chosen in each dimension.
pub type Pick = Vec<usize>;

/// All combinations of dimensions with these numbers of values.
pub fn product(sizes: &[usize]) -> Vec<Pick> {
    sizes.iter().fold(vec![Vec::new()], |picks, &size| {
        picks.iter().flat_map(|pick| (0..size).map(|v| pick.iter().copied().chain([v]).collect())).collect()
    })
}

/// Combinations in which every pair of values of two dimensions occurs at least once. Greedy: each next combination
/// is the one that covers the most pairs still open; of equals, the one whose values have been chosen least.
pub fn pairwise(sizes: &[usize]) -> Vec<Pick> {
    let all = product(sizes);
    let mut open: BTreeSet<_> = all.iter().flat_map(|pick| pairs(pick)).collect();
    let mut used: Vec<_> = sizes.iter().map(|&size| vec![0usize; size]).collect();
    let mut chosen = Vec::new();
    while !open.is_empty() {
        let gain = |pick: &Pick| pairs(pick).filter(|pair| open.contains(pair)).count();
        let use_so_far =
            |pick: &Pick| -> usize { pick.iter().zip(&used).map(|(&v, counts)| counts[v]).sum() };
        let Some(best) = all.iter().max_by_key(|pick| (gain(pick), Reverse(use_so_far(pick)))) else { break };
        for pair in pairs(best) {
            open.remove(&pair);
        }
        for (&value, counts) in best.iter().zip(&mut used) {
            counts[value] += 1;
        }
        chosen.push(best.clone());
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
    fn a_product_has_all() {
        assert_eq!(product(&[2, 3]).len(), 6);
        assert_eq!(product(&[]), vec![Vec::<usize>::new()]);
    }
}
