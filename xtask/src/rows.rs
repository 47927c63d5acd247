//! The rows of the matrix that are no ordinary tests, and how they are run.
//!
//! Tidiness and the builds that all others need come first. Then rows run in two lanes beside each other. In the first, one at
//! a time and at low priority, go those that compute: builds, checkers, lints. In the second, several at a time, go those that
//! mostly wait: jobs of processes, launchers, and the ordinary tests, whose watchdogs so see a quiet machine. When both lanes are
//! through, jobs run whose ranks look for each other's messages all the time.

use crate::report::{Outcome, Report};
use crate::world::World;
use anyhow::{Result, bail};
use gasworks_testkit::needs::{ExpectedSkips, Machine, Need};
use gasworks_testkit::{Log, matches};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

type Work = Box<dyn Fn(&World, &Log) -> Result<()> + Send + Sync>;

/// Where a row runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// One at a time, before all others: they need it, or are not worth their time where it fails.
    First,
    /// One at a time, at low priority: it uses all processors.
    Compute,
    /// Beside others: it waits more than it computes.
    Wait,
    /// With nothing beside it: its ranks wait for each other by looking, and take the longer the less they run.
    Alone,
}

/// One check.
pub struct Row {
    /// The group, a slash, and what is checked.
    pub name: String,
    /// Where it runs.
    pub lane: Lane,
    needs: Vec<Need>,
    is_single: bool,
    work: Work,
}

impl Row {
    /// A row of the lane of those that compute, which passes if `work` returns without an error.
    pub fn new(
        name: impl Into<String>,
        work: impl Fn(&World, &Log) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            needs: Vec::new(),
            lane: Lane::Compute,
            is_single: false,
            work: Box::new(work),
        }
    }

    /// Something without which it cannot run.
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// It hardly uses more than one processor, so that another such row may run beside it.
    pub fn single(mut self) -> Self {
        self.is_single = true;
        self
    }

    /// It comes before all others.
    pub fn first(mut self) -> Self {
        self.lane = Lane::First;
        self
    }

    /// It mostly waits.
    pub fn waits(mut self) -> Self {
        self.lane = Lane::Wait;
        self
    }

    /// It wants all processors.
    pub fn alone(mut self) -> Self {
        self.lane = Lane::Alone;
        self
    }

    /// The part of the name before the slash.
    pub fn group(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(group, _)| group)
    }
}

/// The rows that `pattern` means, or all.
pub fn select(rows: Vec<Row>, pattern: Option<&str>) -> Result<Vec<Row>> {
    let Some(pattern) = pattern else { return Ok(rows) };
    let (chosen, rest): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| matches(pattern, &row.name));
    if chosen.is_empty() {
        let mut groups: Vec<_> = rest.iter().map(Row::group).collect();
        groups.dedup();
        bail!(
            "no row matches {pattern:?}; `cargo xtask test --list` shows all; groups: {}; \
             `cargo nextest run -p PACKAGE NAME` runs one test",
            groups.join(", ")
        );
    }
    Ok(chosen)
}

/// Rows of the lane of those that wait that run at once.
const WAITING: usize = 2;

/// Runs rows, those of a lane in order.
pub fn run(rows: &[Row], world: &World, skips: &ExpectedSkips, report: &Report) {
    let of = |lane| Mutex::new(rows.iter().filter(|row| row.lane == lane).collect::<VecDeque<_>>());
    let (first, compute, wait, alone) = (of(Lane::First), of(Lane::Compute), of(Lane::Wait), of(Lane::Alone));
    while let Some(row) = next(&first) {
        one(row, world, skips, report);
    }
    let room = Room::default();
    std::thread::scope(|scope| {
        for _ in 0..COMPUTING {
            scope.spawn(|| {
                while let Some((row, _room)) = room.take(&compute) {
                    one(row, world, skips, report);
                }
            });
        }
        for _ in 0..WAITING {
            scope.spawn(|| {
                while let Some(row) = next(&wait) {
                    one(row, world, skips, report);
                }
            });
        }
    });
    world.end_clusters();
    while let Some(row) = next(&alone) {
        one(row, world, skips, report);
    }
}

/// The next row of a lane.
fn next<'a>(lane: &Mutex<VecDeque<&'a Row>>) -> Option<&'a Row> {
    lane.lock().unwrap_or_else(|e| e.into_inner()).pop_front()
}

/// Rows of the lane of those that compute that run at once, if each computes in one thread.
const COMPUTING: usize = 2;

/// How many threads of that lane's are in use. A row that uses all processors waits until there is none.
#[derive(Default)]
struct Room {
    used: Mutex<usize>,
    freed: Condvar,
}

struct Taken<'a>(&'a Room, usize);

impl Room {
    /// The next row, when there is room for it: rows begin in order.
    fn take<'a>(&'a self, rows: &Mutex<VecDeque<&'a Row>>) -> Option<(&'a Row, Taken<'a>)> {
        let mut rows = rows.lock().unwrap_or_else(|e| e.into_inner());
        let row = rows.pop_front()?;
        let wanted = if row.is_single { 1 } else { COMPUTING };
        let used = self.used.lock().unwrap_or_else(|e| e.into_inner());
        let full = |used: &mut usize| *used + wanted > COMPUTING;
        *self.freed.wait_while(used, full).unwrap_or_else(|e| e.into_inner()) += wanted;
        Some((row, Taken(self, wanted)))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.used.lock().unwrap_or_else(|e| e.into_inner()) -= self.1;
        self.0.freed.notify_all();
    }
}

/// Runs one row and reports it.
fn one(row: &Row, world: &World, skips: &ExpectedSkips, report: &Report) {
    report.begin(&row.name, row.lane);
    let begun = Instant::now();
    let outcome = run_one(row, world, skips, &world.machine);
    report.end(&row.name, outcome, begun.elapsed());
}

fn run_one(row: &Row, world: &World, skips: &ExpectedSkips, machine: &Machine) -> Outcome {
    if let Some(need) = machine.lacks(&row.needs) {
        return match skips.judge(&row.name, need) {
            Ok(reason) => Outcome::Skipped(reason),
            Err(error) => Outcome::Failed(error.to_string()),
        };
    }
    let log = match Log::create(world.log_path(&row.name)) {
        Ok(log) => log.nice(row.lane == Lane::Compute),
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    let failed = |why: String| {
        let tail: String = log.tail(25).iter().map(|line| format!("\n    | {line}")).collect();
        Outcome::Failed(format!("{why} (log: {}){tail}", world.shown(log.path())))
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (row.work)(world, &log))) {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(error)) => failed(format!("{error:#}")),
        Err(_) => failed("the row itself panicked: see above".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_testkit::needs::Machine;

    fn outcomes(rows: &[Row], world: &World) -> (String, String) {
        let report = Report::silent();
        run(rows, world, &ExpectedSkips::load().unwrap(), &report);
        (report.summary().to_string(), report.shown())
    }

    #[test]
    fn a_pattern_that_means_nothing_is_an_error() {
        let rows = vec![Row::new("unit/a", |_, _| Ok(())), Row::new("unit/b", |_, _| Ok(()))];
        let error = select(rows, Some("uint")).err().unwrap().to_string();
        assert!(error.contains("\"uint\"") && error.contains("groups: unit"), "{error}");
    }

    #[test]
    fn every_outcome_is_printed_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let world = World::at(dir.path().to_owned());
        let rows = [
            Row::new("t/good", |_, _| Ok(())).waits(),
            Row::new("t/bad", |_, log| {
                log.note("the last words")?;
                bail!("it broke")
            }),
            Row::new("t/panics", |_, _| panic!("on purpose")).alone(),
        ];
        let (summary, text) = outcomes(&rows, &world);
        assert_eq!(summary, "1 passed, 2 failed, 0 skipped");
        assert!(text.contains("passed t/good (0.0 s)\n"), "{text}");
        assert!(
            text.contains("failed t/bad: it broke (log: ") && text.contains("    | the last words\n"),
            "{text}"
        );
        assert!(text.contains("failed t/panics: the row itself panicked"), "{text}");
    }

    #[test]
    fn a_row_that_measures_has_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let world = World::at(dir.path().to_owned());
        // How many rows run, and how many ran beside another at most.
        let counts = std::sync::Arc::new(Mutex::new((0, 0)));
        let row = |name: &str| {
            let counts = counts.clone();
            let alone = name == "t/alone";
            Row::new(name, move |_, _| {
                let begun = {
                    let mut counts = counts.lock().unwrap();
                    counts.0 += 1;
                    counts.1 = counts.1.max(counts.0);
                    counts.0
                };
                std::thread::sleep(std::time::Duration::from_millis(20));
                let mut counts = counts.lock().unwrap();
                let left = counts.0;
                counts.0 -= 1;
                anyhow::ensure!(!alone || (begun, left) == (1, 1), "something ran beside it");
                Ok(())
            })
        };
        let rows = [row("t/alone").alone(), row("t/a"), row("t/b").waits(), row("t/c").waits()];
        assert_eq!(outcomes(&rows, &world).0, "4 passed, 0 failed, 0 skipped");
        assert!(counts.lock().unwrap().1 > 1, "the lanes do not overlap");
    }

    #[test]
    fn a_skip_that_is_not_expected_fails() {
        let dir = tempfile::tempdir().unwrap();
        let mut world = World::at(dir.path().to_owned());
        world.machine = Machine::without(Need::Gpu);
        let row = || [Row::new("t/gpu", |_, _| Ok(())).need(Need::Gpu)];
        let (summary, text) = outcomes(&row(), &world);
        assert_eq!(summary, "0 passed, 1 failed, 0 skipped");
        assert!(text.contains("does not let this row be skipped for `no-gpu`"), "{text}");
        // The same row runs where there is what it needs.
        world.machine = Machine::without(Need::Jellyfish);
        assert_eq!(outcomes(&row(), &world).0, "1 passed, 0 failed, 0 skipped");
    }
}
