//! The rows of the matrix, a file for each kind.

mod bench;
mod capi;
mod conformance;
mod counts;
mod ends;
mod gni;
mod hostile;
mod inline;
mod input;
mod install;
mod kill;
mod launchers;
mod limits;
mod models;
mod names;
mod programs;
mod sanitizers;
mod statics;
mod udreg;
mod ugni;
mod units;

use crate::exec::Cmd;
use crate::rows::Row;
use anyhow::{Result, ensure};

/// How much of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What every change goes through.
    Everyday,
    /// Full products, longer runs.
    Nightly,
}

/// All rows, in the order in which they run: what fails soonest and cheapest first.
pub fn all(extent: Extent) -> Result<Vec<Row>> {
    let groups = [
        statics::rows(),
        units::builds(),
        statics::tidy(),
        units::rows(),
        conformance::rows(extent),
        programs::rows(extent)?,
        bench::rows(),
        input::rows(),
        hostile::rows(),
        counts::rows(),
        ends::rows(),
        launchers::rows(extent),
        ugni::rows(extent),
        gni::rows(extent),
        install::rows(extent),
        capi::rows(),
        inline::rows(),
        names::rows(),
        kill::rows()?,
        models::rows(extent)?,
        sanitizers::rows(extent)?,
    ];
    Ok(groups.into_iter().flatten().collect())
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
