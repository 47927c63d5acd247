//! A rank killed at each place that the sources name: the job must end, say so, and leave nothing.

use super::ugni;
use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::rows::Row;
use crate::scan;
use crate::world::{Build, Built, World};
use anyhow::{Context, Result, bail, ensure};
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
    /// The same, with a thread that serves the others. Cases that count on nobody's polling fail there: it is for points at which
    /// it has not come so far.
    Served { victim: usize },
    /// The same over uGNI, on the software NIC; so many ranks share memory besides, and they meet so.
    Gni { mode: &'static str, victim: usize, together: usize, barrier: &'static str },
    /// A program without a launcher.
    Alone,
    /// A job that rank 0 aborts, and that kills itself on the way.
    Aborts,
    /// A job that rank 1 ends with a code of its own.
    Exits { victim: usize },
}

/// That code, and how that rank is called.
const EXIT_CODE: i32 = 7;
const EXITS: &str = "rank 1 (pid ";

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

/// What passes the points of the transport over uGNI.
const OVER_GNI: &[Scenario] = &[
    Scenario::Gni { mode: "seq", victim: RANKS - 1, together: 1, barrier: "AUTO" },
    Scenario::Gni { mode: "par", victim: 0, together: 2, barrier: "AUTO" },
    // One whose engine all others wait for.
    Scenario::Gni { mode: "seq", victim: 0, together: 1, barrier: "GNICE" },
];

/// What passes those of the thread that serves.
const SERVED: &[Scenario] = &[Scenario::Served { victim: RANKS - 1 }, Scenario::Served { victim: 0 }];

pub fn rows() -> Result<Vec<Row>> {
    let row = |point: scan::Site| {
        let name = point.name;
        Row::new(format!("kill/{name}"), move |world, log| kill(world, log, &name)).beside()
    };
    Ok(scan::kill_points()?.into_iter().map(row).collect())
}

/// Kills at the point `name` in every scenario that passes it, of which there must be one.
fn kill(world: &World, log: &Log, name: &str) -> Result<()> {
    let built = world.built(Build::Debug)?;
    let mut hits = 0;
    if name.starts_with("gni.") {
        ugni::lay_out(world, log)?;
    }
    let scenarios = match name.split('.').next() {
        Some("gni") => OVER_GNI,
        Some("progress") => SERVED,
        _ => SCENARIOS,
    };
    for scenario in scenarios {
        let cmd = scenario.cmd(world, &built)?;
        hits += usize::from(scenario.hits(cmd, log, name)?);
    }
    ensure!(hits > 0, "no scenario passes {name}, so nobody was killed");
    Ok(())
}

impl Scenario {
    fn victim(self) -> usize {
        match self {
            Scenario::Suite { victim, .. }
            | Scenario::Served { victim }
            | Scenario::Gni { victim, .. }
            | Scenario::Exits { victim } => victim,
            Scenario::Alone | Scenario::Aborts => 0,
        }
    }

    fn cmd(self, world: &World, built: &Built) -> Result<Cmd> {
        let suite = "gasworks-conformance";
        Ok(match self {
            // One of the modes attaches its segments late.
            Scenario::Suite { mode, .. } => {
                let attach = if mode == "par" { "--attach" } else { "" };
                built.gasrun(RANKS, suite)?.words(&format!("--mode {mode} {attach}"))
            }
            Scenario::Served { .. } => {
                built.gasrun(RANKS, suite)?.words("--mode par").env("GASWORKS_PROGRESS_THREAD", "1")
            }
            Scenario::Gni { mode, together, barrier, .. } => {
                let suite = built.gasrun(RANKS, suite)?.words(&format!("--mode {mode}"));
                crate::ugni::dressed(suite, &ugni::prefix(world))
                    .env(crate::ugni::TOGETHER, together.to_string())
                    .env("GASNET_BARRIER", barrier)
            }
            Scenario::Alone => Cmd::new(built.program(suite)?).words("--mode seq"),
            Scenario::Aborts => built.gasrun(RANKS, suite)?.words("--mode seq --abort"),
            Scenario::Exits { .. } => {
                built.gasrun(RANKS, "gasworks-ends")?.words("act exit 1").env("GASWORKS_SPAWN_VERBOSE", "1")
            }
        })
    }

    /// Runs the job with a victim. Whether the victim passed the point; an error if the job did not end as it must.
    fn hits(self, cmd: Cmd, log: &Log, name: &str) -> Result<bool> {
        let (victim, leftovers) = (self.victim(), Leftovers::before());
        let cmd = cmd.env("GASWORKS_KILL_AT", format!("{name}@{victim}")).limit(LIMIT);
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
            (Scenario::Exits { .. }, KILLED | EXIT_CODE) => return exited(&said, &who, code),
            (Scenario::Aborts, KILLED) if name == "bootstrap.abort" => one_line(&[&who, ABORTED])?,
            // The order goes out while the keeper is at work.
            (Scenario::Aborts, KILLED) if name.starts_with("keeper.") => one_line(&[&who])?,
            (Scenario::Aborts, ABORT_CODE) => one_line(&[&who, ABORTED])?,
            (Scenario::Alone, KILLED | 0) => {
                ensure!(said.is_empty(), "gasrun spoke in a job without it: {said:?}")
            }
            (Scenario::Suite { .. } | Scenario::Gni { .. }, 0) => {
                ensure!(said.is_empty(), "gasrun spoke and ended well: {said:?}")
            }
            (_, KILLED) => one_line(&[&who, "SIGKILL"])?,
            _ => bail!("the job failed, and not because {who}...) was killed: exit code {code}"),
        }
        Ok(code == KILLED)
    }
}

/// Whether `who` was killed in a job that somebody ends, by what gasrun `said`: each rank's end, and once more the one
/// that was the job's.
fn exited(said: &[&str], who: &str, code: i32) -> Result<bool> {
    let with = |text: &str| said.iter().copied().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let (killed, exited) = (with("SIGKILL"), with(&format!("exited with code {EXIT_CODE}")));
    ensure!(killed.iter().all(|line| line.contains(who)), "another rank was killed than {who}...): {said:?}");
    if code == KILLED {
        ensure!(killed.len() == 2, "code {code}, and a death was told {} times: {said:?}", killed.len());
        return Ok(true);
    }
    // All end with one code, whoever is killed on the way.
    ensure!(killed.len() < 2, "code {code}, and a death was told as the job's end: {said:?}");
    let told = RANKS - killed.len() + 1;
    ensure!(exited.len() == told, "{} ends with code {code} were told, not {told}: {said:?}", exited.len());
    ensure!(
        exited.iter().any(|line| line.contains(EXITS)),
        "nobody said that the end was {EXITS}...)'s: {said:?}"
    );
    Ok(!killed.is_empty())
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
        let end = |rank: usize, how: &str| format!("gasrun: rank {rank} (pid 7{rank}) {how}\n");
        let killed = |rank| end(rank, "was killed by signal 9 (SIGKILL)");
        let exited = |rank| end(rank, "exited with code 7");
        let judge = |code, lines: &[String]| {
            Scenario::Exits { victim: 2 }.judge("keeper.finish", code, &lines.concat())
        };
        let terminated = |rank| end(rank, "exited with code 143");
        assert!(judge(KILLED, &[killed(2), killed(2), terminated(0), terminated(1)]).unwrap());
        assert!(judge(EXIT_CODE, &[exited(0), exited(1), exited(1), killed(2)]).unwrap());
        assert!(!judge(EXIT_CODE, &[exited(0), exited(1), exited(1), exited(2)]).unwrap());
        for (code, lines) in [
            // Nothing was said; nobody was killed, or another rank; the death was not the job's end.
            (KILLED, &[][..]),
            (KILLED, &[exited(0), exited(1), exited(1), exited(2)]),
            (KILLED, &[killed(1), killed(1), terminated(0), terminated(2)]),
            (KILLED, &[exited(0), exited(1), exited(1), killed(2)]),
            // Nothing was said; a rank ended otherwise, or another one was killed; the death was the job's end.
            (EXIT_CODE, &[]),
            (EXIT_CODE, &[terminated(0), exited(1), exited(1), exited(2)]),
            (EXIT_CODE, &[exited(0), exited(1), exited(1), killed(0)]),
            (EXIT_CODE, &[exited(0), exited(1), killed(2), killed(2)]),
            // The code was not said to be rank 1's.
            (EXIT_CODE, &[exited(0), exited(0), exited(2), exited(2)]),
            (0, &[exited(0), exited(1), exited(1), killed(2)]),
        ] {
            assert!(judge(code, lines).is_err(), "{code} {lines:?}");
        }
    }

    #[test]
    fn without_a_launcher_the_signal_alone_tells() {
        assert!(Scenario::Alone.judge("p", 137, "").unwrap());
        assert!(!Scenario::Alone.judge("p", 0, "").unwrap());
        assert!(Scenario::Alone.judge("p", 1, "").is_err());
    }
}
