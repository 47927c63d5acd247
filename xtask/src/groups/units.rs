//! Every package's own tests, debug and release, and the examples in the documentation.

use crate::exec::{Cmd, Log};
use crate::rows::Row;
use crate::tools;
use crate::world::{Build, World};
use anyhow::{Result, ensure};

/// The builds that most rows share.
pub fn builds() -> Vec<Row> {
    let row = |build: Build| {
        Row::new(format!("build/{}", build.name()), move |world, _| world.built(build).map(drop))
    };
    vec![row(Build::Debug), row(Build::Release)]
}

/// Tests of packages.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for build in [Build::Debug, Build::Release] {
        let slow = |dir: &str| tools::DEBUG_ONLY.iter().any(|p| p.trim_start_matches("gasworks-") == dir);
        let tested = |dir: &String| (build == Build::Debug || !slow(dir)) && !crate::is_untested(dir);
        for package in crate::package_dirs().into_iter().filter(tested) {
            let name = format!("unit/{}/{package}", build.name());
            rows.push(Row::new(name, move |world, log| run(world, log, build, &package)).beside());
        }
    }
    rows.push(Row::new("doctest/debug", |_, log| {
        log.run_ok(&Build::Debug.dress(Cmd::cargo("test --workspace --doc").limit(900))).map(drop)
    }));
    rows
}

/// Runs the tests of a package as `build` made them.
fn run(world: &World, log: &Log, build: Build, package: &str) -> Result<()> {
    let built = world.built(build)?;
    let mut tests = 0;
    for program in built.tests.iter().filter(|t| t.package == package && t.target != "loom") {
        tests += passed(&log.run_ok(&build.dress(program.cmd()).limit(300))?.output);
    }
    ensure!(tests > 0, "the package has no test that ran");
    Ok(())
}

/// How many tests passed, by what the test harness printed.
pub fn passed(output: &str) -> usize {
    output
        .lines()
        .filter_map(|line| {
            line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse::<usize>().ok()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn passes_are_counted() {
        let text =
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 0";
        assert_eq!(super::passed(text), 5);
    }
}
