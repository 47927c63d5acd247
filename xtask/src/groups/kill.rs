//! A rank killed at each place that the sources name: the job must end, say so, and leave nothing.

use super::Extent;
use crate::exec::Log;
use crate::rows::Row;
use crate::scan;
use crate::world::{Build, World};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;

const RANKS: usize = 3;

pub fn rows(extent: Extent) -> Result<Vec<Row>> {
    let mut rows = vec![Row::new("kill/build", |world, _| world.built(Build::Faults).map(drop))];
    for point in scan::kill_points()? {
        // Rank 0 and the last differ in what they do at start and end; a rank between is like the last.
        let ranks = if extent == Extent::Nightly { vec![0, 1, RANKS - 1] } else { vec![RANKS - 1] };
        for rank in ranks {
            let name = point.name.clone();
            rows.push(
                Row::new(format!("kill/{name}@{rank}"), move |world, log| kill(world, log, &name, rank))
                    .beside(),
            );
        }
    }
    Ok(rows)
}

/// Kills `rank` at the point `name` and looks at what remains.
fn kill(world: &World, log: &Log, name: &str, rank: usize) -> Result<()> {
    let built = world.built(Build::Faults)?;
    let before = left_behind();
    let cmd = built.gasrun(RANKS, "gasworks-conformance")?.words("--mode seq");
    let ended = log.run(&cmd.env("GASWORKS_KILL_AT", format!("{name}@{rank}")).limit(60))?;
    match ended.status {
        None => bail!("the job did not end within {} s", ended.took.as_secs()),
        Some(status) if status.success() => {
            bail!("the job ended well: no rank passed {name}, or nobody noticed")
        }
        Some(_) => {}
    }
    let said = format!("rank {rank}");
    ensure!(
        ended.output.lines().any(|l| l.contains(&said) && (l.contains("SIGKILL") || l.contains("signal 9"))),
        "no line says that rank {rank} was killed by SIGKILL: the point was not hit"
    );
    let remains: Vec<_> = left_behind().difference(&before).cloned().collect();
    ensure!(remains.is_empty(), "left behind: {}", remains.join(", "));
    Ok(())
}

/// What jobs could leave lying about.
fn left_behind() -> BTreeSet<String> {
    let names = |dir: &str| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let ours = entries.filter(|e| e.file_name().to_string_lossy().to_lowercase().contains("gas"));
        ours.map(|e| e.path().display().to_string()).collect()
    };
    ["/dev/shm", "/tmp"].into_iter().flat_map(names).collect()
}
