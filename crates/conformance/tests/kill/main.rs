//! A rank killed at each kill point that the sources name: the job must end, say so, and leave nothing.
//!
//! A case is a point. `points` says in which jobs a rank is killed there; the case fails if the rank does not pass the point
//! in one of them, so that no job is run for nothing. Those of `collectives` are a collective, in which a rank is killed at each of its steps.

mod collectives;
mod judge;
mod points;
mod scenario;

use anyhow::Result;
use gasworks_testkit::scan::Tree;
use gasworks_testkit::{Case, cases};
use std::collections::BTreeSet;
use std::process::ExitCode;

fn main() -> ExitCode {
    let names = match names() {
        Ok(names) => names,
        Err(error) => {
            eprintln!("looking for kill points: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let point = |name: &String| {
        let name = name.clone();
        Case::new(name.clone(), move |log| {
            let part = if cases::is_nightly() { "" } else { points::part(&name) };
            points::scenarios(&name).iter().try_for_each(|job| job.kill(log, &name, part))
        })
    };
    let mut table: Vec<_> = names.iter().map(point).collect();
    table.extend(collectives::cases());
    table.extend(judge::cases(names));
    cases::main("conformance/kill", table)
}

/// What the names of points begin with that only connected endpoints pass, which are no ranks: `crates/cci/tests/processes` has processes killed there.
const OF_ENDPOINTS: [&str; 4] = ["cci.", "entry.", "flag.", "ready."];

/// The names of all kill points of the product that ranks pass.
fn names() -> Result<BTreeSet<String>> {
    let mut tree = Tree::load()?;
    tree.files.retain(|file| file.text.contains("kill_point!"));
    let names = tree.sites(&["kill_point"]).into_iter().map(|site| site.name);
    Ok(names.filter(|name| !OF_ENDPOINTS.iter().any(|start| name.starts_with(start))).collect())
}
