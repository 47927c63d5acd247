//! loom, and the planted bugs that it must find.

use super::Extent;
use crate::exec::{Cmd, Log};
use crate::rows::Row;
use crate::scan;
use crate::world::{Build, TestProgram, World};
use anyhow::{Result, bail, ensure};

pub fn rows(_extent: Extent) -> Result<Vec<Row>> {
    let mut rows = vec![Row::new("loom/build", |world, _| world.built(Build::Loom).map(drop))];
    rows.extend(crate::packages_with("tests/loom.rs").into_iter().map(|package| {
        let dir = package.trim_start_matches("gasworks-").to_owned();
        Row::new(format!("loom/{dir}"), move |world, log| {
            for program in models(world)?.iter().filter(|p| p.package == dir) {
                let ended = log.run_ok(&loom(program))?;
                ensure!(super::units::passed(&ended.output) > 0, "no model ran");
            }
            Ok(())
        })
        .beside()
    }));
    rows.extend(scan::mutations()?.into_iter().map(|site| {
        Row::new(format!("mutation/{}", site.name), move |world, log| mutate(world, log, &site)).beside()
    }));
    Ok(rows)
}

fn models(world: &World) -> Result<Vec<TestProgram>> {
    let mut models = world.built(Build::Loom)?.tests.clone();
    models.retain(|p| p.target == "loom");
    ensure!(!models.is_empty(), "no package has a loom test");
    Ok(models)
}

/// Three threads at capacity two need no more than three preemptions to go wrong in any way known.
fn loom(program: &TestProgram) -> Cmd {
    program.cmd().env("LOOM_MAX_PREEMPTIONS", "3").limit(300)
}

/// Passes if the checks fail with the planted bug `site` in place.
fn mutate(world: &World, log: &Log, site: &scan::Site) -> Result<()> {
    let mut models = models(world)?;
    // The models of the crate in which the bug is planted are the likeliest to notice.
    models.sort_by_key(|p| p.package != site.package);
    for program in &models {
        let ended = log.run(&loom(program).env("GASWORKS_MUTATION", &site.name).limit(120))?;
        if !ended.ok() && ended.status.is_some() {
            return Ok(());
        }
        if ended.status.is_none() {
            bail!("undecided: {} did not end in time with the bug in place", program.target);
        }
    }
    bail!("survived: {} is spoilt and no check notices ({}:{})", site.name, site.file, site.line)
}
