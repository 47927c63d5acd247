//! `cargo xtask prepare`: builds what tests run and link. A test that needs it runs this command itself; nextest's set-up
//! scripts and the matrix run it before.

use crate::world::{OPTIMISED, PROGRAMS, World, compiled, optimised};
use anyhow::{Context, Result};
use clap::Args;
use gasworks_testkit::files::{empty, newest};
use gasworks_testkit::programs::{Fixture, variable};
use gasworks_testkit::{Cmd, Log, c::CONDUITS};
use std::io::Write;

/// What is prepared.
#[derive(Args, Debug)]
pub struct PrepareArgs {
    /// debug or release (programs), c (the C interface), nic (the software NIC)
    #[arg(required = true, value_parser = parse)]
    fixtures: Vec<Fixture>,
}

fn parse(name: &str) -> Result<Fixture, String> {
    let known = Fixture::ALL.map(Fixture::name).join(", ");
    Fixture::ALL.into_iter().find(|fixture| fixture.name() == name).ok_or(format!("wanted one of {known}"))
}

/// Prepares fixtures, and tells nextest so where it is nextest that asks.
pub fn run(args: &PrepareArgs) -> Result<()> {
    let world = World::new();
    for &fixture in &args.fixtures {
        if !fixture.is_prepared() {
            world.fixture(fixture)?;
        }
        if let Some(path) = variable("NEXTEST_ENV") {
            let mut file =
                std::fs::OpenOptions::new().append(true).open(&path).context("nextest's environment")?;
            writeln!(file, "{}=1", fixture.variable()).context("nextest's environment")?;
        }
    }
    Ok(())
}

/// Prepares one; what is up to date is left as it is.
pub fn fixture(world: &World, fixture: Fixture, log: &Log) -> Result<()> {
    let build = |words: &str| compiled(log, &Cmd::cargo(words).limit(1500)).map(drop);
    match fixture {
        Fixture::Debug => build(PROGRAMS),
        Fixture::Release => build(&optimised(OPTIMISED)),
        Fixture::C => {
            let built = world.fixture(Fixture::Release)?;
            let (to, done) = (fixture.path(), fixture.path().join("laid-out"));
            // It takes many seconds, and most tests of an interface change nothing of it.
            let changed = crate::capi::changed(&built)?;
            if newest(&done).is_ok_and(|done| changed < done) {
                return Ok(());
            }
            empty(&to)?;
            crate::capi::lay_out(&to, &built, &CONDUITS, |cmd| log.run_ok(cmd).map(drop))?;
            std::fs::write(&done, "").with_context(|| format!("writing {}", done.display()))
        }
        Fixture::Nic => {
            let (built, to) = (world.fixture(Fixture::Release)?, fixture.path());
            crate::ugni::lay_out(&to, &built, &to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_named() {
        assert_eq!(parse("nic"), Ok(Fixture::Nic));
        assert!(parse("cake").unwrap_err().contains("debug, release, c, nic"));
    }
}
