//! What is left of many figures: medians, and intervals that hold the true median in at least 95 of 100 cases.

/// Pairs that a ratio needs before it counts.
pub const LEAST_PAIRS: usize = 15;
/// The width, as a share of the median, over which an interval does not count.
pub const WIDEST: f64 = 0.10;

/// A median with the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Figures it was made of.
    pub count: usize,
}

impl Interval {
    /// Of figures in any order; `None` if there are fewer than six, for then no two of them enclose the median with
    /// the certainty wanted.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let sorted = sorted(figures);
        let below = enclosing(sorted.len())?;
        let (low, high) = (sorted[below], sorted[sorted.len() - 1 - below]);
        Some(Self { median: median_of_sorted(&sorted), low, high, count: sorted.len() })
    }

    /// Its width as a share of this figure: the median, for most.
    pub fn width_of(&self, whole: f64) -> f64 {
        (self.high - self.low) / whole.abs()
    }

    /// Whether it lies below this limit or includes it.
    pub fn reaches(&self, limit: f64) -> bool {
        self.low <= limit
    }
}

/// How many figures at each end of `count` sorted ones may be left out so that the rest still encloses the median of
/// what they were drawn from with a probability of at least 95 %: each figure is below that median with probability one
/// half, whatever its distribution.
fn enclosing(count: usize) -> Option<usize> {
    let mut term = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut outside, mut left_out) = (0.0, None);
    for below in 0..count.div_ceil(2) {
        outside += 2.0 * term;
        if outside > 0.05 {
            break;
        }
        left_out = Some(below);
        term *= (count - below) as f64 / (below + 1) as f64;
    }
    left_out
}

/// The figures in order.
pub fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median; `None` of nothing.
pub fn median(figures: &[f64]) -> Option<f64> {
    (!figures.is_empty()).then(|| median_of_sorted(&sorted(figures)))
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// The figure below which the share `q` of the sorted figures lies: that of the nearest rank. Not a number, of nothing.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

/// The median of these figures and the interval around it, as `MEDIAN [LOW to HIGH]` with this many decimals. Of fewer than six
/// figures the median alone.
pub fn shown(figures: &[f64], decimals: usize) -> String {
    match (Interval::of(figures), median(figures)) {
        (Some(Interval { median, low, high, .. }), _) => {
            format!("{median:.decimals$} [{low:.decimals$} to {high:.decimals$}]")
        }
        (None, Some(median)) => format!("{median:.decimals$}"),
        (None, None) => "-".to_owned(),
    }
}

/// The ratios of the pairs of which both are there.
pub fn ratios(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Vec<f64> {
    let both = ours.iter().zip(theirs).filter_map(|(a, b)| Some((a.as_ref()?, b.as_ref()?)));
    both.filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b).collect()
}

/// How much the first of each pair is more than the second, of the pairs of which both are there.
pub fn differences(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Vec<f64> {
    ours.iter().zip(theirs).filter_map(|(a, b)| Some((*a)? - (*b)?)).collect()
}

/// The figures without those that took more than twice the median: the machine was elsewhere.
pub fn undisturbed(figures: &[Option<f64>]) -> Vec<Option<f64>> {
    let there: Vec<f64> = figures.iter().flatten().copied().collect();
    let limit = median(&there).map_or(f64::INFINITY, |median| 2.0 * median);
    figures.iter().map(|figure| figure.filter(|&f| f <= limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_left_out_as_the_sign_test_allows() {
        // The tables of the sign test: 2 P(X <= k) <= 0.05 for n = 5, 6, 9, 12, 15, 20, 25 and 30.
        let known = [(5, None), (6, Some(0)), (9, Some(1)), (12, Some(2)), (15, Some(3)), (20, Some(5))];
        for (count, left_out) in known.into_iter().chain([(25, Some(7)), (30, Some(9)), (0, None), (1, None)])
        {
            assert_eq!(enclosing(count), left_out, "{count}");
        }
    }

    #[test]
    fn an_interval_of_fifteen_goes_from_the_fourth_to_the_twelfth() {
        let figures: Vec<f64> = (1..=15).rev().map(f64::from).collect();
        let interval = Interval::of(&figures).unwrap();
        assert_eq!((interval.low, interval.median, interval.high, interval.count), (4.0, 8.0, 12.0, 15));
        assert_eq!((interval.width_of(interval.median), interval.width_of(-4.0)), (1.0, 2.0));
        assert!(interval.reaches(4.0) && interval.reaches(9.0) && !interval.reaches(3.9));
        assert_eq!(Interval::of(&figures[..5]), None);
    }

    #[test]
    fn an_interval_holds_the_median_as_often_as_it_says() {
        // A fixed sequence of pseudo-random numbers between 0 and 1, whose median is one half.
        let mut state = 12_345_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut held = 0;
        for _ in 0..2_000 {
            let figures: Vec<f64> = (0..15).map(|_| next()).collect();
            let interval = Interval::of(&figures).unwrap();
            held += usize::from(interval.low <= 0.5 && 0.5 <= interval.high);
        }
        assert!((1_900..=1_970).contains(&held), "{held} of 2000");
    }

    #[test]
    fn medians_and_quantiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.999].map(|q| quantile(&hundred, q)), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!((quantile(&[7.0], 0.999), quantile(&[1.0, 2.0], 0.5)), (7.0, 1.0));
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_median_is_shown_with_its_interval() {
        assert_eq!(shown(&[6.0, 5.0, 1.0, 2.0, 3.0, 4.0], 1), "3.5 [1.0 to 6.0]");
        assert_eq!((shown(&[1.0, 2.0], 2), shown(&[], 2)), ("1.50".to_owned(), "-".to_owned()));
    }

    #[test]
    fn a_ratio_needs_both_of_a_pair() {
        let (ours, theirs) =
            ([Some(1.0), None, Some(3.0), Some(5.0)], [Some(2.0), Some(2.0), None, Some(0.0)]);
        assert_eq!(ratios(&ours, &theirs), [0.5]);
        assert_eq!(differences(&ours, &theirs), [-1.0, 5.0]);
    }

    #[test]
    fn what_took_twice_the_median_goes() {
        let figures = [Some(1.0), Some(1.1), Some(2.3), None, Some(0.9)];
        assert_eq!(undisturbed(&figures), [Some(1.0), Some(1.1), None, None, Some(0.9)]);
    }
}
