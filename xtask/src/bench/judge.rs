//! From the turns of a group to its verdicts: ratios of pairs, their intervals, and whether limits are met.

use super::baseline::{Baseline, Probe, RECORDED, void};
use super::plan::{Against, Check, Group, Pick};
use super::record::Verdict;
use super::turns::{Series, Turns};
use gasworks_testkit::stats::{Interval, WIDEST, differences, median, quantile, ratios, sorted};

/// The verdict on what ran, and of which no turn counts: the machine had other work, or changed its state, in each.
pub const DISTURBED: &str = "disturbed in every turn";

/// A system on the other side of a ratio.
struct Other {
    name: String,
    blocks: Vec<Option<f64>>,
}

impl Other {
    fn median(&self) -> Option<f64> {
        let kept: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        median(&kept)
    }
}

/// What is said of a group's turns.
pub struct Judge<'a> {
    baseline: &'a Baseline,
    group: &'a Group,
    turns: &'a Turns,
    pairs: usize,
}

impl<'a> Judge<'a> {
    /// For these turns. A ratio counts from so many `pairs` on.
    pub fn new(baseline: &'a Baseline, group: &'a Group, turns: &'a Turns, pairs: usize) -> Self {
        Self { baseline, group, turns, pairs }
    }

    /// The verdict on each limit.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.group.checks.iter().map(|check| self.verdict(check)).collect()
    }

    /// The recorded peer's figure in each turn, scaled by the state of the machine in that turn.
    pub fn recorded(&self) -> Option<Vec<Option<f64>>> {
        let (bench, bytes, ranks) = self.group.question?;
        let (bench, bytes) = self.group.recorded.unwrap_or((bench, bytes));
        let figure = self.baseline.figure(RECORDED, bench, bytes, ranks)?;
        let at = |turn: usize| {
            self.baseline
                .scaled(figure, |probe| *self.turns.state(&probe.bench, probe.bytes)?.values.get(turn)?)
        };
        Some((0..self.turns.count).map(at).collect())
    }

    /// The peers whose rows are void, with the figure that they should have reached.
    pub fn void(&self) -> Vec<(String, f64)> {
        let Some((bench, bytes, ranks)) = self.group.question else { return Vec::new() };
        let state = |probe: &Probe| {
            let values = &self.turns.state(&probe.bench, probe.bytes)?.values;
            median(&values.iter().flatten().copied().collect::<Vec<f64>>())
        };
        let judged = |series: &Series| {
            let figure = self.baseline.figure(&series.row.transport, bench, bytes, ranks)?;
            let scaled = self.baseline.reachable(figure, state)?;
            void(series.median()?, scaled).then(|| (series.row.transport.clone(), scaled))
        };
        self.turns.series.iter().filter(|s| s.launch.is_none()).filter_map(judged).collect()
    }

    fn best_peer(&self) -> Option<Other> {
        let void = self.void();
        let peers = self.turns.series.iter().filter(|s| s.launch.is_none());
        let peers = peers.filter(|s| !void.iter().any(|(name, _)| *name == s.row.transport));
        let peers = peers.map(|s| Other { name: s.row.transport.clone(), blocks: s.blocks.clone() });
        let all = peers.chain(self.recorded_other());
        all.filter(|o| o.median().is_some())
            .min_by(|a, b| a.median().partial_cmp(&b.median()).unwrap_or(std::cmp::Ordering::Equal))
    }

    fn recorded_other(&self) -> Option<Other> {
        Some(Other { name: format!("{RECORDED} (recorded, scaled)"), blocks: self.recorded()? })
    }

    /// The series that `pick` means.
    fn meant(&self, pick: Pick) -> impl Iterator<Item = &Series> {
        self.turns.series.iter().filter(move |s| {
            s.launch == Some(pick.launch)
                && s.row.bench == pick.bench
                && s.row.bytes == pick.bytes
                && (pick.variant.is_empty() || s.row.variant == pick.variant)
        })
    }

    fn picked(&self, pick: Pick) -> Option<&Series> {
        let all = self.meant(pick).filter(|s| s.median().is_some());
        all.min_by(|a, b| a.median().partial_cmp(&b.median()).unwrap_or(std::cmp::Ordering::Equal))
    }

    fn verdict(&self, check: &Check) -> Verdict {
        let base = Verdict { what: check.what.into(), limit: check.limit, ..Verdict::default() };
        let Some(ours) = self.picked(check.ours) else {
            let ran = self.meant(check.ours).next().is_some();
            return Verdict { verdict: if ran { DISTURBED } else { "nothing was measured" }.into(), ..base };
        };
        let base = Verdict { ours: ours.median().map_or_else(String::new, shown), ..base };
        let other = match check.against {
            Against::Nothing => None,
            Against::BestPeer => self.best_peer(),
            Against::Recorded => self.recorded_other(),
            Against::Own(pick) | Against::Beside(pick) | Against::Local(pick) => {
                self.picked(pick).map(|s| Other { name: named(s), blocks: s.blocks.clone() })
            }
        };
        let figures = match (check.against, &other) {
            (Against::Nothing, _) => ours.blocks.iter().flatten().copied().collect(),
            (Against::Beside(_), Some(other)) => differences(&ours.blocks, &other.blocks),
            (_, Some(other)) => ratios(&ours.blocks, &other.blocks),
            (_, None) => return Verdict { verdict: "nothing to compare with in this run".into(), ..base },
        };
        let noise = match (check.against, &other) {
            (Against::Local(_), Some(local)) => noise(&local.blocks),
            _ => 0.0,
        };
        let base = Verdict { limit: check.limit + noise, ..base };
        // A difference may be next to nothing: how sure it is goes by what it is a difference of.
        let whole = match (check.against, &other) {
            (Against::Beside(_), Some(other)) => other.median(),
            _ => None,
        };
        let against = other.map_or_else(String::new, |o| {
            format!("{} {}", o.name, o.median().map_or_else(String::new, shown))
        });
        judged_as(Verdict { against, ..base }, &figures, self.pairs, whole)
    }
}

/// The verdict on these figures: at least `pairs` of them are needed.
pub fn judged(base: Verdict, figures: &[f64], pairs: usize) -> Verdict {
    judged_as(base, figures, pairs, None)
}

/// The same; how wide an interval is goes by the median, or by another `whole`.
fn judged_as(base: Verdict, figures: &[f64], pairs: usize, whole: Option<f64>) -> Verdict {
    let Some(interval) = Interval::of(figures) else {
        return Verdict { verdict: format!("only {} pairs", figures.len()), pairs: figures.len(), ..base };
    };
    let width = interval.width_of(whole.unwrap_or(interval.median));
    let verdict = if interval.count < pairs {
        format!("does not count: {} pairs", interval.count)
    } else if width > WIDEST {
        format!("does not count: interval {:.0} % wide", 100.0 * width)
    } else if interval.reaches(base.limit) {
        "met".into()
    } else {
        "not met".into()
    };
    let (ratio, ends) = (interval.median, [interval.low, interval.high]);
    Verdict { ratio, interval: ends, pairs: interval.count, verdict, ..base }
}

/// Within which share of its median the middle half of these blocks lies.
fn noise(blocks: &[Option<f64>]) -> f64 {
    let blocks = sorted(&blocks.iter().flatten().copied().collect::<Vec<_>>());
    let noise = (quantile(&blocks, 0.75) - quantile(&blocks, 0.25)) / quantile(&blocks, 0.5);
    if noise.is_finite() { noise } else { 0.0 }
}

fn named(series: &Series) -> String {
    let Series { row, .. } = series;
    match row.transport.as_str() {
        "raw" => format!("{} ({})", row.bench, row.variant),
        "local" => "local memory".into(),
        _ => format!("{} {}, {} ranks, {}", row.bench, row.variant, row.ranks, row.mode),
    }
}

/// A time in a unit that fits it.
pub fn shown(ns: f64) -> String {
    match ns {
        _ if ns < 10.0 => format!("{ns:.2} ns"),
        _ if ns < 100.0 => format!("{ns:.1} ns"),
        _ if ns < 10e3 => format!("{ns:.0} ns"),
        _ if ns < 10e6 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::{Row, example};
    use crate::bench::turns::State;
    use gasworks_testkit::stats::LEAST_PAIRS;

    /// A group as the barrier's, with ours at `ours`, raw at 100, MPICH at 200 and Open MPI at `openmpi`.
    fn turns(ours: f64, openmpi: f64, probe: f64, count: usize) -> Turns {
        let series = |bench: &str, transport: &str, variant: &str, launch, value: f64| {
            let mut row = example(bench, transport, 0, &[]);
            row.variant = variant.into();
            let blocks = (0..count).map(|i| Some(value * (1.0 + i as f64 / 1000.0))).collect();
            Series { row, launch, blocks }
        };
        Turns {
            series: vec![
                series("barrier", "pshm", "shared", Some(0), ours),
                series("raw-barrier", "raw", "flags", Some(1), 100.0),
                series("raw-barrier", "raw", "counter", Some(1), 120.0),
                series("barrier", "mpich", "", None, 200.0),
                series("barrier", "openmpi", "", None, openmpi),
            ],
            states: vec![State { bench: "barrier".into(), bytes: 0, values: vec![Some(probe); count] }],
            count,
        }
    }

    fn verdicts(turns: &Turns) -> Vec<Verdict> {
        let group = crate::bench::plan::GROUPS.iter().find(|g| g.name == "barrier, 2 ranks").unwrap();
        Judge::new(&Baseline::load().unwrap(), group, turns, LEAST_PAIRS).verdicts()
    }

    #[test]
    fn a_ratio_is_to_the_best_variant_and_to_the_best_peer() {
        // The probe stands where it stood: the recorded barrier takes 317, and Open MPI's 380 were recorded.
        let found = verdicts(&turns(125.0, 150.0, 155.0, 15));
        assert_eq!(found[0].against, "raw-barrier (flags) 101 ns");
        assert!((found[0].ratio - 1.25).abs() < 1e-9 && found[0].verdict == "met", "{:?}", found[0]);
        assert!(found[1].against.starts_with("openmpi 15") && found[1].verdict == "met", "{:?}", found[1]);
        let found = verdicts(&turns(180.0, 150.0, 155.0, 15));
        assert_eq!((found[0].verdict.as_str(), found[1].verdict.as_str()), ("not met", "not met"));
    }

    #[test]
    fn the_noise_of_local_memory_is_its_middle_half() {
        let blocks: Vec<_> = (0..=100).map(|i| Some(100.0 + f64::from(i) / 10.0)).collect();
        assert!((noise(&blocks) - 5.0 / 105.0).abs() < 1e-9, "{}", noise(&blocks));
        assert_eq!((noise(&[]), noise(&[Some(1.0), None])), (0.0, 0.0));
    }

    #[test]
    fn a_void_peer_is_not_the_best() {
        // At a fifth of the recorded probe, with a software part that stays, Open MPI should take 256 and MPICH 816: 400
        // is void, 200 is not. The recorded peer would take 63.
        let turns = turns(60.0, 400.0, 31.0, 15);
        let baseline = Baseline::load().unwrap();
        let group = crate::bench::plan::GROUPS.iter().find(|g| g.name == "barrier, 2 ranks").unwrap();
        let void = Judge::new(&baseline, group, &turns, LEAST_PAIRS).void();
        assert_eq!(void.iter().map(|v| v.0.as_str()).collect::<Vec<_>>(), ["openmpi"]);
        assert_eq!(verdicts(&turns)[1].against, "gasnet-ex (recorded, scaled) 63.4 ns");
    }

    #[test]
    fn too_few_pairs_and_wide_intervals_do_not_count() {
        assert_eq!(verdicts(&turns(125.0, 150.0, 155.0, 5))[0].verdict, "only 5 pairs");
        assert_eq!(verdicts(&turns(125.0, 150.0, 155.0, 14))[0].verdict, "does not count: 14 pairs");
        let mut wide = turns(125.0, 150.0, 155.0, 20);
        for (at, block) in wide.series[0].blocks.iter_mut().enumerate() {
            *block = block.map(|b| if at % 2 == 0 { b } else { b * 1.5 });
        }
        assert!(
            verdicts(&wide)[0].verdict.starts_with("does not count: interval"),
            "{:?}",
            verdicts(&wide)[0]
        );
    }

    /// A flood from C that takes `more` nanoseconds longer than Rust's 40, give or take.
    fn beside(more: f64, scatter: f64) -> Verdict {
        let group = crate::bench::c::GROUPS.iter().find(|g| g.name == "Short flood, from C").unwrap();
        let series = |launch: usize, transport: &str, of: &dyn Fn(usize) -> f64| {
            let row = Row { variant: "short".into(), ..example("am-rate", transport, 0, &[]) };
            let blocks = (0..20).map(|turn| Some(of(turn))).collect();
            Series { row, launch: Some(launch), blocks }
        };
        // What both have in common is no difference.
        let hour = |turn: usize| 40.0 + turn as f64;
        let ours = |turn: usize| hour(turn) + more + if turn.is_multiple_of(2) { scatter } else { -scatter };
        let series = vec![series(0, "c", &ours), series(1, "pshm", &hour)];
        let turns = Turns { series, count: 20, ..Turns::default() };
        Judge::new(&Baseline::load().unwrap(), group, &turns, LEAST_PAIRS).verdicts().remove(0)
    }

    #[test]
    fn a_difference_is_of_pairs_and_as_sure_as_what_it_is_of() {
        let found = beside(3.0, 0.1);
        assert!((found.ratio - 3.0).abs() < 0.2 && found.verdict == "met", "{found:?}");
        assert_eq!(found.against, "am-rate short, 2 ranks, seq 49.5 ns");
        assert_eq!(beside(0.0, 0.1).verdict, "met");
        assert_eq!(beside(-4.0, 0.1).verdict, "met");
        assert_eq!(beside(5.5, 0.1).verdict, "not met");
        assert!(
            beside(3.0, 4.0).verdict.starts_with("does not count: interval 16 %"),
            "{:?}",
            beside(3.0, 4.0)
        );
    }

    #[test]
    fn what_was_disturbed_was_measured_all_the_same() {
        let mut disturbed = turns(125.0, 150.0, 155.0, 15);
        disturbed.series[0].blocks.fill(None);
        assert_eq!(verdicts(&disturbed)[0].verdict, DISTURBED);
        disturbed.series.remove(0);
        assert_eq!(verdicts(&disturbed)[0].verdict, "nothing was measured");
    }

    #[test]
    fn times_are_shown_in_fitting_units() {
        assert_eq!(
            [1.234, 61.0, 659.0, 12_345.0, 8.28e6, 45e6].map(shown).join(", "),
            "1.23 ns, 61.0 ns, 659 ns, 12.3 us, 8280.0 us, 45.0 ms"
        );
    }
}
