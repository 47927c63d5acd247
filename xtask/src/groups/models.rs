//! loom, and the weakened orderings that it must find.

use crate::rows::Row;
use crate::tools;
use crate::world::{Build, TestProgram, World};
use anyhow::{Context, Result, bail, ensure};
use gasworks_testkit::{Log, scan};

pub fn rows() -> Result<Vec<Row>> {
    let mut rows = vec![Row::new("loom/build", |world, _| world.built(Build::Loom).map(drop))];
    rows.push(super::command("loom/command", "cargo xtask loom --list"));
    rows.extend(crate::packages_with("tests/loom.rs").into_iter().map(|package| {
        let dir = package.trim_start_matches("gasworks-").to_owned();
        Row::new(format!("loom/{dir}"), move |world, log| {
            for program in tools::models(world)?.iter().filter(|p| p.package == dir) {
                clean(world, log, program)?;
            }
            Ok(())
        })
    }));
    rows.extend(scan::orderings()?.into_iter().map(|site| {
        Row::new(format!("mutation/{}", site.name), move |world, log| mutate(world, log, &site))
    }));
    Ok(rows)
}

/// Seconds that the models have with a bug in place, and the tenth of it that they have without.
const LIMIT: u64 = 400;
const CLEAN_LIMIT: u64 = LIMIT / 10;

/// Runs the models without a bug, once for all rows: that they then pass is what makes a failure tell something.
fn clean(world: &World, log: &Log, program: &TestProgram) -> Result<()> {
    world.once(&format!("models of {}", program.package), || {
        let ended = log.run_ok(&tools::model(program).limit(300))?;
        ensure!(tools::passed(&ended.output) > 0, "no model ran");
        let seconds = ended.took.as_secs();
        ensure!(
            seconds < CLEAN_LIMIT,
            "the models took {seconds} s; {CLEAN_LIMIT} s is what tells them from a hang"
        );
        Ok(())
    })
}

/// Passes if the checks fail with the planted bug `site` in place. A hang is a failure too: without the bug the same
/// models end in a tenth of the time.
fn mutate(world: &World, log: &Log, site: &scan::Site) -> Result<()> {
    let mut models = tools::models(world)?;
    // The models of the crate in which the bug is planted are the likeliest to notice.
    models.sort_by_key(|p| p.package != site.package);
    for program in &models {
        clean(world, log, program).context("undecided, for the models fail without the bug")?;
        let spoilt = tools::model(program).env("GASWORKS_MUTATION", &site.name).limit(LIMIT);
        // The models are named after the structures, and the structure's own are nearly always enough.
        let structure = site.name.split('.').next().unwrap_or_default();
        for cmd in [spoilt.clone().arg(structure), spoilt] {
            if !log.run(&cmd)?.ok() {
                return Ok(());
            }
        }
    }
    bail!("survived: {} is spoilt and no check notices ({}:{})", site.name, site.file, site.line)
}
