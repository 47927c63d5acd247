//! A rank killed at each place that the sources name: the job must end, say so, and leave nothing. And the tests that
//! only a build with kill points has.

use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::rows::Row;
use crate::scan;
use crate::world::{Build, Built, World};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

const RANKS: usize = 3;

/// Seconds after which a job is ended, and how long one may take: a rank's death is told in no time.
const LIMIT: u64 = 15;
const LONGEST: Duration = Duration::from_secs(10);

/// The code of a job with a rank that was killed.
const KILLED: i32 = 128 + 9;
/// The code with which the suite aborts its job when it is told to, and what gasrun then says.
const ABORT_CODE: i32 = 42;
const ABORTED: &str = "aborted the job: asked to";

/// A job in which somebody is killed.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    /// The conformance suite, with this rank as the victim.
    Suite { mode: &'static str, victim: usize },
    /// A program without a launcher.
    Alone,
    /// A job that rank 0 aborts, and that kills itself on the way.
    Aborts,
    /// A job that rank 1 ends with a code of its own.
    Exits { victim: usize },
}

/// That code.
const EXIT_CODE: i32 = 7;

/// Ranks differ in what they do at start and end, modes in their locks.
const SCENARIOS: &[Scenario] = &[
    Scenario::Suite { mode: "seq", victim: RANKS - 1 },
    Scenario::Suite { mode: "seq", victim: 0 },
    Scenario::Suite { mode: "par", victim: 1 },
    Scenario::Alone,
    Scenario::Aborts,
    Scenario::Exits { victim: 0 },
    Scenario::Exits { victim: 1 },
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
            Scenario::Suite { victim, .. } | Scenario::Exits { victim } => victim,
            Scenario::Alone | Scenario::Aborts => 0,
        }
    }

    fn cmd(self, built: &Built) -> Result<Cmd> {
        let suite = "gasworks-conformance";
        Ok(match self {
            Scenario::Suite { mode, .. } => built.gasrun(RANKS, suite)?.words(&format!("--mode {mode}")),
            Scenario::Alone => Cmd::new(built.program(suite)?).words("--mode seq"),
            Scenario::Aborts => built.gasrun(RANKS, suite)?.words("--mode seq --abort"),
            Scenario::Exits { .. } => {
                built.gasrun(RANKS, "gasworks-ends")?.words("act exit 1").env("GASWORKS_SPAWN_VERBOSE", "1")
            }
        })
    }

    /// Runs the job with a victim. Whether the victim passed the point; an error if the job did not end as it must.
    fn hits(self, built: &Built, log: &Log, name: &str) -> Result<bool> {
        let (victim, leftovers) = (self.victim(), Leftovers::before());
        let cmd = self.cmd(built)?.env("GASWORKS_KILL_AT", format!("{name}@{victim}")).limit(LIMIT);
        let ended = log.run(&cmd)?;
        leftovers.check()?;
        ensure!(
            ended.took <= LONGEST,
            "{self:?}: the job took {:.1} s: {}",
            ended.took.as_secs_f64(),
            ended.how()
        );
        let Some(status) = ended.status else { bail!("{self:?}: {}", ended.how()) };
        // A shell's way to put a signal into a code, which is also how gasrun passes it on.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        self.judge(name, code, &ended.output).with_context(|| format!("{self:?}"))
    }

    /// Whether somebody was killed at `name`, by the code and the output; an error unless they tell one story.
    fn judge(self, name: &str, code: i32, output: &str) -> Result<bool> {
        let said: Vec<_> = output.lines().filter(|line| line.starts_with("gasrun:")).collect();
        let one_line = |texts: &[&str]| -> Result<()> {
            let [line] = said[..] else { bail!("gasrun said {} lines, not one: {said:?}", said.len()) };
            match texts.iter().find(|text| !line.contains(**text)) {
                Some(text) => bail!("no {text:?} in {line:?}"),
                None => Ok(()),
            }
        };
        let who = format!("rank {} (pid ", self.victim());
        match (self, code) {
            // All end with one code, whoever is killed on the way; each end is told.
            (Scenario::Exits { .. }, KILLED | EXIT_CODE) => {
                return Ok(said.iter().any(|line| line.contains(&who) && line.contains("SIGKILL")));
            }
            (Scenario::Aborts, KILLED) if name == "bootstrap.abort" => one_line(&[&who, ABORTED])?,
            // The order goes out while the keeper is at work.
            (Scenario::Aborts, KILLED) if name.starts_with("keeper.") => one_line(&[&who])?,
            (Scenario::Aborts, ABORT_CODE) => one_line(&[&who, ABORTED])?,
            (Scenario::Alone, KILLED | 0) => {
                ensure!(said.is_empty(), "gasrun spoke in a job without it: {said:?}")
            }
            (Scenario::Suite { .. }, 0) => ensure!(said.is_empty(), "gasrun spoke and ended well: {said:?}"),
            (_, KILLED) => one_line(&[&who, "SIGKILL"])?,
            _ => bail!("the job failed, and not because {who}...) was killed: exit code {code}"),
        }
        Ok(code == KILLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: Scenario = Scenario::Suite { mode: "seq", victim: 2 };
    const DEAD: &str = "case a ok\ngasrun: rank 2 (pid 71) was killed by signal 9 (SIGKILL)\n";

    #[test]
    fn a_death_needs_its_code_and_one_line_that_names_it() {
        assert!(SUITE.judge("p", 137, DEAD).unwrap());
        assert!(!SUITE.judge("p", 0, "3 cases passed\n").unwrap());
        let wrong = |code, output: &str| SUITE.judge("p", code, output).unwrap_err().to_string();
        assert!(wrong(0, DEAD).contains("ended well"));
        assert!(wrong(1, DEAD).contains("exit code 1"));
        assert!(wrong(137, "").contains("0 lines"));
        assert!(
            wrong(137, &format!("{DEAD}gasrun: rank 1 (pid 70) exited with code 1\n")).contains("2 lines")
        );
        assert!(wrong(137, &DEAD.replace("rank 2", "rank 1")).contains("rank 2 (pid "));
        assert!(wrong(137, &DEAD.replace("SIGKILL", "SIGTERM")).contains("SIGKILL"));
    }

    #[test]
    fn an_abort_must_be_told_with_its_text() {
        let said = "gasrun: rank 0 (pid 71) aborted the job: asked to\n";
        assert!(!Scenario::Aborts.judge("job.open.greeted", 42, said).unwrap());
        assert!(Scenario::Aborts.judge("bootstrap.abort", 137, said).unwrap());
        let killed = "gasrun: rank 0 (pid 71) was killed by signal 9 (SIGKILL)\n";
        assert!(Scenario::Aborts.judge("job.open.greeted", 137, killed).unwrap());
        for (name, code, output) in [
            ("bootstrap.abort", 137, killed),
            ("bootstrap.abort", 0, said),
            ("job.open.greeted", 42, "gasrun: rank 0 (pid 71) exited with code 42\n"),
            ("job.open.greeted", 2, "gasrun: rank 0 (pid 71) exited with code 2\n"),
        ] {
            assert!(Scenario::Aborts.judge(name, code, output).is_err(), "{name} {code} {output}");
        }
    }

    #[test]
    fn an_end_with_a_victim_is_told_whatever_its_code() {
        let exits = Scenario::Exits { victim: 1 };
        let killed = "gasrun: rank 1 (pid 71) was killed by signal 9 (SIGKILL)\n";
        for code in [KILLED, EXIT_CODE] {
            assert!(exits.judge("keeper.finish", code, killed).unwrap());
            assert!(!exits.judge("keeper.finish", code, &killed.replace("rank 1", "rank 2")).unwrap());
        }
        assert!(exits.judge("keeper.finish", 0, killed).is_err());
    }

    #[test]
    fn without_a_launcher_the_signal_alone_tells() {
        assert!(Scenario::Alone.judge("p", 137, "").unwrap());
        assert!(!Scenario::Alone.judge("p", 0, "").unwrap());
        assert!(Scenario::Alone.judge("p", 1, "").is_err());
    }
}
