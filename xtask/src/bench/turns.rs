//! Taking turns: in each, every system measures one block, and the machine's state is taken before and after.

use super::ours::Ours;
use super::peers::{Answer, Running, SAMPLES, Sampling};
use super::plan::Group;
use super::record::Row;
use anyhow::{Result, ensure};
use gasworks_testkit::machine::{describe, stolen};
use gasworks_testkit::stats::median;
use std::ops::RangeInclusive;

/// One system's blocks, one for each turn; nothing where the block does not count.
#[derive(Clone, Debug)]
pub struct Series {
    /// The row without its figures.
    pub row: Row,
    /// Which of the group's launches it comes from; nothing for a peer.
    pub launch: Option<usize>,
    /// The blocks.
    pub blocks: Vec<Option<f64>>,
}

impl Series {
    /// The row with its figures.
    pub fn summed(&self) -> Row {
        let kept: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        let dropped = (self.blocks.len() - kept.len()) as u32;
        self.row.clone().of_blocks(kept, dropped)
    }

    /// The median of its blocks.
    pub fn median(&self) -> Option<f64> {
        let kept: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        median(&kept)
    }
}

/// What came of a group's turns.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Every system's.
    pub series: Vec<Series>,
    /// What each probe found in each turn.
    pub states: Vec<State>,
    /// How many turns there were.
    pub count: usize,
}

/// What a probe of the machine's state found, turn by turn.
#[derive(Clone, Debug)]
pub struct State {
    /// What it measures.
    pub bench: String,
    /// Of which size.
    pub bytes: u64,
    /// Nanoseconds.
    pub values: Vec<Option<f64>>,
}

impl Turns {
    fn note(&mut self, turn: usize, launch: Option<usize>, row: Row, value: Option<f64>) {
        let row = Row { machine: describe(), ..row };
        let found = self.series.iter().position(|s| s.launch == launch && s.row.key() == row.key());
        let at = found.unwrap_or_else(|| {
            self.series.push(Series { row, launch, blocks: Vec::new() });
            self.series.len() - 1
        });
        let blocks = &mut self.series[at].blocks;
        blocks.resize(turn, None);
        blocks.push(value);
    }

    /// The state of the machine in each turn, by this probe.
    pub fn state(&self, bench: &str, bytes: u64) -> Option<&State> {
        self.states.iter().find(|state| state.bench == bench && state.bytes == bytes)
    }

    /// Leaves out the turns in another state of the machine than most, and blocks far off.
    fn leave_out_far(&mut self) {
        let most = self.states.first().map(|state| majority(&state.values));
        for series in &mut self.series {
            series.blocks.resize(self.count, None);
            if let Some(most) = &most {
                series
                    .blocks
                    .iter_mut()
                    .zip(most)
                    .filter(|(_, most)| !**most)
                    .for_each(|(block, _)| *block = None);
            }
            series.blocks = gasworks_testkit::stats::undisturbed(&series.blocks);
        }
    }

    /// How many turns count: with a block of every system, none of them left out.
    fn good(&self) -> usize {
        let mut kept = self.clone();
        kept.leave_out_far();
        let whole = |turn: usize| kept.series.iter().all(|s| s.blocks.get(turn).is_some_and(Option::is_some));
        (0..kept.count).filter(|&turn| whole(turn)).count()
    }
}

/// Which turns were in the state that most were in. The processors of a virtual machine move: what they pass between
/// them costs four times as much in one hour, or second, as in another, and ratios of one state are not those of another.
pub fn majority(values: &[Option<f64>]) -> Vec<bool> {
    let alike = |a: f64, b: f64| a.max(b) <= STEADY * a.min(b);
    let there = || values.iter().flatten().copied();
    let middle = there().max_by_key(|&value| there().filter(|&other| alike(value, other)).count());
    values.iter().map(|value| value.zip(middle).is_some_and(|(value, middle)| alike(value, middle))).collect()
}

/// How much the machine's state may change within a turn, and differ between turns.
const STEADY: f64 = 1.25;

/// What measures the machine's state.
pub struct Prober<'a> {
    /// The program without a library.
    pub line: &'a mut Running,
    /// What it is asked: bench, size, iterations of a sample. The first tells the machine's state.
    pub questions: Vec<(String, u64, u64)>,
}

impl Prober<'_> {
    /// What each question is answered now.
    pub fn take(&mut self) -> Result<Vec<Option<f64>>> {
        let mut found = Vec::new();
        for (bench, bytes, iterations) in &self.questions {
            found.push(match self.line.ask(bench, *bytes, *iterations, SAMPLES)? {
                Answer::Row(row) => Some(row.p50),
                Answer::None => None,
            });
        }
        Ok(found)
    }
}

/// A peer that takes part.
pub struct Asked<'a> {
    /// The peer.
    pub running: &'a mut Running,
    /// How it is asked.
    pub sampling: Sampling,
}

/// Takes turns until as many count as `wanted` begins with, but no more than it ends with. `blocks` is how many blocks gasperf makes
/// in a turn, the median of which counts.
pub fn take(
    ours: &Ours,
    group: &Group,
    asked: &mut [Asked<'_>],
    prober: &mut Prober<'_>,
    wanted: RangeInclusive<usize>,
    blocks: u32,
) -> Result<Turns> {
    let state = |(bench, bytes, _): &(String, u64, u64)| State {
        bench: bench.clone(),
        bytes: *bytes,
        values: Vec::new(),
    };
    let mut turns = Turns { states: prober.questions.iter().map(state).collect(), ..Turns::default() };
    // The first warms up.
    for launch in group.launches {
        ours.launch(group.place, launch, 1)?;
    }
    while turns.good() < *wanted.start() && turns.count < *wanted.end() {
        let turn = turns.count;
        let before = prober.take()?;
        let systems = group.launches.len() + asked.len();
        // Everybody goes first in turn, and every second turn goes round the other way.
        let order = (0..systems).map(|at| (at + turn / 2) % systems);
        let order: Vec<_> = if turn.is_multiple_of(2) { order.collect() } else { order.rev().collect() };
        for system in order {
            let stolen_before = stolen();
            let mut rows = Vec::new();
            if let Some(launch) = group.launches.get(system) {
                rows = ours.launch(group.place, launch, blocks)?;
            } else if let (Some(peer), Some((bench, bytes, _))) =
                (asked.get_mut(system - group.launches.len()), group.question)
                && let Answer::Row(row) =
                    peer.running.ask(bench, bytes, peer.sampling.iterations, peer.sampling.samples)?
            {
                row.sane()?;
                rows.push(Row { place: group.place.name().into(), threads: 1, ..*row });
            }
            let launch = (system < group.launches.len()).then_some(system);
            let whole = stolen() == stolen_before;
            for row in rows {
                let value = Some(row.p50).filter(|_| whole);
                turns.note(turn, launch, row, value);
            }
        }
        let after = prober.take()?;
        for (at, state) in turns.states.iter_mut().enumerate() {
            let both = before[at].zip(after[at]);
            // The first tells the state: a turn in which it changed was in none.
            let steady = at > 0 || both.is_none_or(|(a, b)| a.max(b) <= STEADY * a.min(b));
            state.values.push(both.filter(|_| steady).map(|(a, b)| (a + b) / 2.0));
        }
        turns.count += 1;
    }
    ensure!(!turns.series.is_empty(), "{}: nothing was measured", group.name);
    turns.leave_out_far();
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::example;

    #[test]
    fn a_series_keeps_its_turns() {
        let mut turns = Turns::default();
        let row = || example("barrier", "pshm", 0, &[]);
        turns.note(0, Some(0), row(), Some(1.0));
        turns.note(2, Some(0), row(), Some(3.0));
        turns.note(2, None, example("barrier", "mpich", 0, &[]), None);
        assert_eq!(turns.series.len(), 2);
        assert_eq!(turns.series[0].blocks, [Some(1.0), None, Some(3.0)]);
        assert_eq!(turns.series[1].blocks, [None, None, None]);
        assert_eq!(turns.series[0].median(), Some(2.0));
        let summed = turns.series[0].summed();
        assert_eq!((summed.p50, summed.dropped, summed.blocks.len()), (2.0, 1, 2));
        turns.count = 4;
        assert_eq!(turns.good(), 0);
        turns.leave_out_far();
        assert_eq!(turns.series[1].blocks.len(), 4);
    }

    #[test]
    fn only_the_state_that_most_turns_were_in_counts() {
        let values = [Some(138.0), Some(500.0), Some(140.0), None, Some(150.0), Some(560.0)];
        assert_eq!(majority(&values), [true, false, true, false, true, false]);
        assert!(majority(&[]).is_empty());
        let state = State { bench: "am-latency".into(), bytes: 8, values: values.to_vec() };
        let mut turns = Turns { states: vec![state], ..Turns::default() };
        for turn in 0..6 {
            turns.note(turn, Some(0), example("barrier", "pshm", 0, &[]), Some(1.0));
        }
        turns.count = 6;
        assert_eq!(turns.good(), 3);
        turns.leave_out_far();
        assert_eq!(turns.series[0].blocks.iter().flatten().count(), 3);
    }
}
