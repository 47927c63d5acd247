//! The rows of the matrix, a file for each kind.

mod conformance;
mod input;
mod kill;
mod models;
mod programs;
mod sanitizers;
mod statics;
mod units;

use crate::rows::Row;
use anyhow::Result;

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
        input::rows(),
        kill::rows()?,
        models::rows(extent)?,
        sanitizers::rows(extent)?,
    ];
    Ok(groups.into_iter().flatten().collect())
}
