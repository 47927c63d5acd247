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

/// The blocks without those in which the machine was elsewhere: time was stolen, or they took twice the median. What is
/// left has at least nine blocks if there were so many.
pub fn undisturbed(blocks: &[f64], stolen: &[bool]) -> Vec<f64> {
    let honest = |limit: f64| {
        let kept = blocks.iter().zip(stolen).filter(|&(&b, &s)| !s && b <= limit).map(|(&b, _)| b);
        kept.collect::<Vec<_>>()
    };
    let all = honest(f64::INFINITY);
    let limit = FAR * quantile(&sorted(if all.is_empty() { blocks.to_vec() } else { all }), 0.5);
    let kept = honest(limit);
    if kept.len() >= LEAST.min(blocks.len()) {
        return kept;
    }
    // So little is undisturbed that the least disturbed must do.
    let mut best = blocks.to_vec();
    best.sort_by(f64::total_cmp);
    best.truncate(LEAST);
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
        assert_eq!(kept.len(), 13, "the far one and the stolen one are gone: {kept:?}");
        assert!(kept.contains(&12.0) && !kept.contains(&25.0));
    }

    #[test]
    fn where_all_is_disturbed_the_least_disturbed_stay() {
        let blocks: Vec<f64> = (1..=15).map(f64::from).collect();
        assert_eq!(undisturbed(&blocks, &[true; 15]), (1..=9).map(f64::from).collect::<Vec<_>>());
        assert_eq!(undisturbed(&[5.0, 6.0], &[true, true]), [5.0, 6.0]);
        assert!(undisturbed(&[], &[]).is_empty());
    }
}
