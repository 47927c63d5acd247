//! The public names of the C interface, each used.

use super::capi::laid_out;
use crate::exec::Log;
use crate::names;
use crate::rows::Row;
use crate::world::World;
use anyhow::{Result, ensure};

pub fn rows() -> Vec<Row> {
    vec![Row::new("capi/names", all)]
}

/// A use of every name compiles in each mode and language, links if the list says that the name works, and the book says
/// the same.
fn all(world: &World, log: &Log) -> Result<()> {
    let (place, scratch) = (laid_out(world, log)?, world.scratch("capi/names")?);
    let report = names::report(&place, &scratch, &|cmd| log.run(cmd))?;
    let wrong: Vec<_> = report.wrong().into_iter().chain(names::differs(&report)?).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
