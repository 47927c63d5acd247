//! What takes modules of this program: the public names of the C interface, each used, and what operations take over uGNI.

use crate::gni_report::{self, Programs};
use crate::names;
use crate::rows::Row;
use crate::world::World;
use anyhow::{Result, ensure};
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::{Log, Need};

pub fn rows() -> Vec<Row> {
    vec![Row::new("capi/names", all), Row::new("gni/report", report).need(Need::PkgConfig)]
}

/// A use of every name compiles in each mode and language, links if the list says that the name works, and the book says
/// the same.
fn all(world: &World, log: &Log) -> Result<()> {
    let (place, scratch) = (world.fixture(Fixture::C)?, world.scratch("capi/names")?);
    let report = names::report(&place, &scratch, &|cmd| log.run(cmd))?;
    let wrong: Vec<_> = report.wrong().into_iter().chain(names::differs(&report)?).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What each operation takes over uGNI: within its limits, and as the book says.
fn report(world: &World, log: &Log) -> Result<()> {
    let prefix = world.fixture(Fixture::Nic)?;
    let clock = world.release()?.program("ugni-clock")?;
    let programs = Programs::of(&world.debug()?, &clock, &prefix)?;
    let run = |command: &_| log.run_ok(command).map(|ended| ended.output);
    let report = gni_report::measure(&programs, &world.scratch("gni/report")?, run)?;
    let wrong = [gni_report::broken(&report), gni_report::differs(&report)?].concat();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
