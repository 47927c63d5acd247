//! A rank killed at each place that the sources name: the job must end, say so, and leave nothing. And the tests that
//! only a build with kill points has.

use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::rows::Row;
use crate::scan;
use crate::world::{Build, Built, World};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;

const RANKS: usize = 3;

/// A job in which somebody is killed.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    /// The conformance suite, with this rank as the victim.
    Suite { mode: &'static str, victim: usize },
    /// A program without a launcher.
    Alone,
    /// A job that rank 0 aborts, and that kills itself on the way.
    Aborts,
}

/// Ranks differ in what they do at start and end, modes in their locks.
const SCENARIOS: &[Scenario] = &[
    Scenario::Suite { mode: "seq", victim: RANKS - 1 },
    Scenario::Suite { mode: "seq", victim: 0 },
    Scenario::Suite { mode: "par", victim: 1 },
    Scenario::Alone,
    Scenario::Aborts,
];

pub fn rows() -> Result<Vec<Row>> {
    let mut rows = vec![Row::new("kill/build", |world, _| world.built(Build::Faults).map(drop))];
    let points = scan::kill_points()?;
    for package in points.iter().map(|p| p.package.clone()).collect::<BTreeSet<_>>() {
        rows.push(Row::new(format!("kill/tests-of-{package}"), move |world, log| {
            super::units::run(world, log, Build::Faults, &package)
        }));
    }
    for point in points {
        let name = point.name;
        rows.push(Row::new(format!("kill/{name}"), move |world, log| kill(world, log, &name)).beside());
    }
    Ok(rows)
}

/// Kills at the point `name` in every scenario that passes it, of which there must be one.
fn kill(world: &World, log: &Log, name: &str) -> Result<()> {
    let built = world.built(Build::Faults)?;
    let mut hits = 0;
    for scenario in SCENARIOS {
        hits += usize::from(scenario.hits(&built, log, name)?);
    }
    ensure!(hits > 0, "no scenario passes {name}, so nobody was killed");
    Ok(())
}

impl Scenario {
    fn victim(self) -> usize {
        match self {
            Scenario::Suite { victim, .. } => victim,
            Scenario::Alone | Scenario::Aborts => 0,
        }
    }

    fn cmd(self, built: &Built) -> Result<Cmd> {
        let suite = "gasworks-conformance";
        Ok(match self {
            Scenario::Suite { mode, .. } => built.gasrun(RANKS, suite)?.words(&format!("--mode {mode}")),
            Scenario::Alone => Cmd::new(built.program(suite)?).words("--mode seq"),
            Scenario::Aborts => built.gasrun(RANKS, suite)?.words("--mode seq --abort"),
        })
    }

    /// Runs the job with a victim. Whether the victim passed the point; an error if the job did not end as it must.
    fn hits(self, built: &Built, log: &Log, name: &str) -> Result<bool> {
        let (victim, leftovers) = (self.victim(), Leftovers::before());
        let cmd = self.cmd(built)?.env("GASWORKS_KILL_AT", format!("{name}@{victim}")).limit(60);
        let ended = log.run(&cmd)?;
        let Some(status) = ended.status else {
            bail!("{self:?}: the job did not end within {} s", ended.took.as_secs())
        };
        let killed = match self {
            Scenario::Alone => std::os::unix::process::ExitStatusExt::signal(&status) == Some(9),
            _ => {
                let said = format!("rank {victim}");
                let killed = |line: &str| line.contains("SIGKILL") || line.contains("signal 9");
                ended.output.lines().any(|line| line.contains(&said) && killed(line))
            }
        };
        ensure!(!(killed && status.success()), "{self:?}: rank {victim} was killed and the job ended with 0");
        if !killed && !status.success() && !matches!(self, Scenario::Aborts) {
            bail!("{self:?}: the job failed, and not because rank {victim} was killed: {}", ended.how());
        }
        leftovers.check()?;
        Ok(killed)
    }
}
