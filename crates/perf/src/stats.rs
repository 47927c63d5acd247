//! Which blocks of a measurement count.

use gasworks_testkit::stats::{quantile, sorted};

/// A block that takes more than this many times the median was disturbed.
const DISTURBED: f64 = 2.0;
/// The fewest blocks that are kept, however disturbed they are.
const MIN_BLOCKS: usize = 9;

/// The numbers of the blocks in which nothing disturbed the measurement: no time was stolen, and they took at most twice the
/// median. At least nine are kept if there are so many.
pub fn undisturbed(blocks: &[f64], stolen: &[bool]) -> Vec<usize> {
    let honest = |limit: f64| -> Vec<usize> {
        (0..blocks.len()).filter(|&block| !stolen[block] && blocks[block] <= limit).collect()
    };
    let all = honest(f64::INFINITY);
    let figures = if all.is_empty() { blocks.to_vec() } else { all.iter().map(|&b| blocks[b]).collect() };
    let kept = honest(DISTURBED * quantile(&sorted(&figures), 0.5));
    if kept.len() >= MIN_BLOCKS.min(blocks.len()) {
        return kept;
    }
    // Too few are undisturbed. The least disturbed are kept, first those without stolen time, however slow.
    let mut best: Vec<usize> = (0..blocks.len()).collect();
    best.sort_by(|&a, &b| stolen[a].cmp(&stolen[b]).then(blocks[a].total_cmp(&blocks[b])));
    best.truncate(MIN_BLOCKS);
    best.sort_unstable();
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_blocks_go() {
        let mut blocks = vec![10.0; 15];
        (blocks[3], blocks[7]) = (25.0, 12.0);
        let mut stolen = vec![false; 15];
        stolen[0] = true;
        let kept = undisturbed(&blocks, &stolen);
        let wanted: Vec<usize> = (1..15).filter(|&block| block != 3).collect();
        assert_eq!(kept, wanted, "the far one and the stolen one are gone");
    }

    #[test]
    fn where_all_is_disturbed_the_least_disturbed_stay() {
        let blocks: Vec<f64> = (1..=15).rev().map(f64::from).collect();
        assert_eq!(undisturbed(&blocks, &[true; 15]), (6..15).collect::<Vec<_>>());
        let mut stolen = [true; 15];
        stolen[1] = false;
        let wanted: Vec<usize> = [1].into_iter().chain(7..15).collect();
        assert_eq!(undisturbed(&blocks, &stolen), wanted, "a slow block that nobody disturbed stays");
        assert_eq!(undisturbed(&[5.0, 6.0], &[true, true]), [0, 1]);
        assert!(undisturbed(&[], &[]).is_empty());
    }
}
