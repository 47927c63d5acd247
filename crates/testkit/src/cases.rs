//! Tables of cases as test programs: `cargo nextest run` and `cargo test` list, choose and run each case by name.
//!
//! A target with `harness = false` hands its cases to [`main`]. What a case needs of the machine it says by [`Case::need`];
//! a case is ignored where that is absent and `ci/expected-skips` allows it, and fails where the list does not.

use crate::command::Log;
use crate::needs::{ExpectedSkips, Machine, Need};
use crate::programs::target;
use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

type Work = Box<dyn FnOnce(&Log) -> Result<()> + Send>;

/// One case of a table.
pub struct Case {
    name: String,
    needs: Vec<Need>,
    work: Work,
}

impl Case {
    /// A case that passes if `work` returns without an error.
    pub fn new(name: impl Into<String>, work: impl FnOnce(&Log) -> Result<()> + Send + 'static) -> Self {
        Self { name: name.into(), needs: Vec::new(), work: Box::new(work) }
    }

    /// A case that passes unless `check` panics.
    pub fn check(name: impl Into<String>, check: impl FnOnce() + Send + 'static) -> Self {
        Self::new(name, move |_| {
            check();
            Ok(())
        })
    }

    /// Something without which it cannot run.
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What the nightly matrix sets: tables have their full products then.
pub const NIGHTLY: &str = "GASWORKS_TEST_NIGHTLY";

/// Whether this is a run of the nightly matrix.
pub fn is_nightly() -> bool {
    crate::programs::variable(NIGHTLY).is_some()
}

/// Runs the cases that the command line chooses. `table` names the list in `ci/expected-skips` and the folder of logs: the
/// package without its prefix, and the test target.
pub fn main(table: &'static str, cases: Vec<Case>) -> ExitCode {
    let args = Arguments::from_args();
    let machine = Arc::new(Machine::default());
    let chosen = |name: &str| match &args.filter {
        Some(filter) if args.exact => name == filter,
        Some(filter) => name.contains(filter.as_str()),
        None => true,
    };
    let skips = ExpectedSkips::load().map(Arc::new).map_err(|error| format!("{error:#}"));
    let trials = cases.into_iter().map(|case| {
        let lacks = if chosen(&case.name) { machine.lacks(&case.needs) } else { None };
        let Case { name, work, .. } = case;
        let log = log_path(table, &name);
        let Some(need) = lacks else {
            return Trial::test(name, move || run(log, work));
        };
        let row = format!("{table}/{name}");
        let judged =
            skips.clone().and_then(|skips| skips.judge(&row, need).map_err(|error| error.to_string()));
        let may_skip = judged.is_ok();
        let trial = Trial::test(name, move || Err(Failed::from(judged.unwrap_or_else(|error| error))));
        trial.with_ignored_flag(may_skip)
    });
    libtest_mimic::run(&args, trials.collect()).exit_code()
}

/// Where a case writes its log.
fn log_path(table: &str, name: &str) -> PathBuf {
    target().join("logs").join(table).join(format!("{}.log", name.replace(['/', ':', '@', ' '], "-")))
}

fn run(path: PathBuf, work: Work) -> Result<(), Failed> {
    let log = Log::create(path).map_err(|error| format!("{error:#}"))?;
    work(&log).map_err(|error| {
        let tail: String = log.tail(40).iter().map(|line| format!("\n    | {line}")).collect();
        Failed::from(format!("{error:#} (log: {}){tail}", log.path().display()))
    })
}
