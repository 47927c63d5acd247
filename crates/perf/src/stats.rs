//! What is left of many figures.

/// The figure below which the share `q` of the sorted figures lies (the nearest rank); 0 if there is none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

/// The figures in order.
pub fn sorted(mut figures: Vec<f64>) -> Vec<f64> {
    figures.sort_by(f64::total_cmp);
    figures
}

/// How far above the median a block is taken for disturbed.
const FAR: f64 = 2.0;
/// Blocks that stay whatever they look like: with fewer there is nothing to say.
const LEAST: usize = 9;

/// The blocks by number without those in which the machine was elsewhere: time was stolen, or they took twice the median.
/// At least nine are left if there were so many.
pub fn undisturbed(blocks: &[f64], stolen: &[bool]) -> Vec<usize> {
    let honest = |limit: f64| -> Vec<usize> {
        (0..blocks.len()).filter(|&block| !stolen[block] && blocks[block] <= limit).collect()
    };
    let all = honest(f64::INFINITY);
    let figures = if all.is_empty() { blocks.to_vec() } else { all.iter().map(|&b| blocks[b]).collect() };
    let kept = honest(FAR * quantile(&sorted(figures), 0.5));
    if kept.len() >= LEAST.min(blocks.len()) {
        return kept;
    }
    // So little is undisturbed that the least disturbed must do: first those without stolen time, however slow.
    let mut best: Vec<usize> = (0..blocks.len()).collect();
    best.sort_by(|&a, &b| stolen[a].cmp(&stolen[b]).then(blocks[a].total_cmp(&blocks[b])));
    best.truncate(LEAST);
    best.sort_unstable();
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let figures: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(
            [0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&figures, q)),
            [1.0, 500.0, 990.0, 999.0, 1000.0]
        );
        assert_eq!(quantile(&[7.0], 0.999), 7.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.0);
    }

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
