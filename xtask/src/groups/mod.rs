//! The rows of the matrix that are no ordinary tests, a file for each kind.

mod bench;
mod checkers;
mod install;
mod launchers;
mod models;
mod names;
mod programs;
mod statics;

use crate::ordinary::{self, Part};
use crate::report::Report;
use crate::rows::{Lane, Row};
use crate::world::{Build, OPTIMISED_PARTS, optimised};
use anyhow::{Result, ensure};
use gasworks_testkit::Cmd;
use gasworks_testkit::programs::Fixture;
use std::sync::Arc;

/// How much of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What a change of a few lines goes through while it is made.
    Quick,
    /// What every change goes through.
    Everyday,
    /// Full products, longer runs.
    Nightly,
}

/// Groups of rows that start one program after the other, few of which use more than one processor.
const SINGLE: [&str; 7] = ["capi", "demo", "documented", "gni", "install", "loom", "mutation"];

/// All rows, in the order in which those of a lane run: what fails soonest and cheapest first.
pub fn all(extent: Extent) -> Result<Vec<Row>> {
    let first = |rows: Vec<Row>| rows.into_iter().map(Row::first).collect::<Vec<_>>();
    // Programs and libraries first: so no single build takes minutes.
    let before = [builds(&[], &[Fixture::Debug]), builds(&[Build::Tests], &[]), statics::tidy()].map(first);
    let groups = match extent {
        Extent::Quick => vec![statics::quick(), launchers::quick()],
        Extent::Everyday | Extent::Nightly => vec![
            builds(&[], &[Fixture::Release, Fixture::C, Fixture::Nic]),
            launchers::rows(extent),
            statics::rows(),
            // Rows that use one processor run in pairs. Those of an installation wait until it is made, so that Miri's, which wait
            // for nothing, come between them.
            in_turn(checkers::miri(extent), install::rows(extent)),
            in_turn(bench::rows(), programs::rows(extent)?),
            names::rows(),
            models::rows()?,
            checkers::rows(extent)?,
        ],
    };
    let rows = before.into_iter().chain(groups).flatten();
    Ok(rows.map(|row| if SINGLE.contains(&row.group()) { row.single() } else { row }).collect())
}

/// A row of the one, a row of the other, and so on.
fn in_turn(some: Vec<Row>, others: Vec<Row>) -> Vec<Row> {
    let (mut some, mut others) = (some.into_iter(), others.into_iter());
    let next = || [some.next(), others.next()];
    std::iter::repeat_with(next)
        .take_while(|rows| rows.iter().any(Option::is_some))
        .flatten()
        .flatten()
        .collect()
}

/// The parts of the ordinary tests.
pub fn parts(extent: Extent) -> &'static [Part] {
    match extent {
        Extent::Quick => &[Part::Quick],
        Extent::Everyday => &[Part::Early, Part::Late],
        Extent::Nightly => &[Part::Early, Part::Night, Part::Late],
    }
}

/// The rows that run the ordinary tests; each test is reported by itself.
pub fn tests(extent: Extent, report: &Arc<Report>, only: Option<&Arc<Vec<String>>>) -> Vec<Row> {
    let row = |&part: &Part| {
        let (report, only) = (report.clone(), only.cloned());
        let row = Row::new(format!("tests/{}", part.name()), move |world, log| {
            ordinary::run(world, log, &report, part, only.as_ref().map(|only| only.as_slice()))
        });
        if part.lane() == Lane::Alone { row.alone() } else { row.waits() }
    };
    parts(extent).iter().map(row).collect()
}

/// The builds that most rows share, each a row of its own so that its time is seen.
fn builds(tests: &[Build], fixtures: &[Fixture]) -> Vec<Row> {
    let tests = tests.iter().map(|&build| {
        Row::new(format!("build/{}", build.name()), move |world, _| world.built(build).map(drop))
    });
    let parts =
        OPTIMISED_PARTS.iter().filter(|_| fixtures.contains(&Fixture::Release)).map(|&(name, targets)| {
            Row::new(format!("build/release/{name}"), move |_, log| {
                log.run_ok(&Cmd::cargo(&optimised(targets)).limit(900)).map(drop)
            })
        });
    let fixtures = fixtures.iter().map(|&fixture| {
        Row::new(format!("build/{}", fixture.name()), move |world, _| world.fixture(fixture).map(drop))
    });
    tests.chain(parts).chain(fixtures).collect()
}

/// A row for a command of this program whose work other rows do, by the same functions: the command itself only has to
/// get as far as naming the tests it would run.
fn command(name: &str, words: &'static str) -> Row {
    Row::new(name, move |_, log| {
        let ended = log.run_ok(&Cmd::new("sh").arg("-c").arg(words).limit(900))?;
        ensure!(names_tests(&ended.output), "`{words}` names no test");
        Ok(())
    })
}

/// Whether the test harness listed a test.
fn names_tests(output: &str) -> bool {
    output.lines().any(|line| line.ends_with(": test"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_that_names_no_test_is_found() {
        assert!(super::names_tests("building\ninbox::wraps: test\n\n1 test, 0 benchmarks"));
        assert!(!super::names_tests("building\n0 tests, 0 benchmarks"));
    }
}
