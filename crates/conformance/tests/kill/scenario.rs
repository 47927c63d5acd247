//! The jobs in which a rank is killed, and judging how they end.

use crate::collectives;
use anyhow::{Context, Result, bail, ensure};
use gasworks_testkit::programs::{self, Fixture, Programs};
use gasworks_testkit::{Cmd, Log, nic};

/// The ranks of a job.
pub const RANKS: usize = 3;
const SUITE: &str = "gasworks-conformance";

/// Seconds after which a job that has not ended is killed, and its case fails.
pub const WATCHDOG: u64 = 30;

/// The exit code of a job with a rank that was killed.
pub const KILLED: i32 = 128 + 9;
/// The code with which the suite aborts its job when it is told to, and what `gasrun` says of it.
const ABORT_CODE: i32 = 42;
const ABORTED: &str = "aborted the job: asked to";
/// The code with which rank 1 ends the job of [`Scenario::Exits`], and how `gasrun` calls that rank.
pub const EXIT_CODE: i32 = 7;
const EXITS: &str = "rank 1 (pid ";

/// A job in which a rank is killed.
#[derive(Clone, Copy, Debug)]
pub enum Scenario {
    /// The conformance suite. Segments are attached late in the thread mode `par`.
    Suite { mode: &'static str, victim: usize },
    /// The suite with a progress thread. Some cases need ranks that do not make progress by themselves, and fail there: it is
    /// for points that are passed before them.
    ProgressThread { victim: usize },
    /// The suite over uGNI, on the software NIC, where so many ranks share memory, with this algorithm of the barrier.
    Gni { mode: &'static str, victim: usize, together: usize, barrier: &'static str },
    /// The suite in a program without a launcher.
    Alone,
    /// A job that rank 0 aborts; rank 0 is the victim.
    Aborts,
    /// A job that rank 1 ends with a code of its own.
    Exits { victim: usize },
    /// A job of one collective, of ranks that have a board or do not.
    Collective { kind: &'static str, by_messages: bool, victim: usize },
}

impl Scenario {
    /// The rank that is killed.
    pub fn victim(self) -> usize {
        match self {
            Scenario::Suite { victim, .. }
            | Scenario::ProgressThread { victim }
            | Scenario::Gni { victim, .. }
            | Scenario::Exits { victim }
            | Scenario::Collective { victim, .. } => victim,
            Scenario::Alone | Scenario::Aborts => 0,
        }
    }

    /// How it is started, with a part of the suite if it is that.
    pub fn cmd(self, programs: &Programs, part: &str) -> Result<Cmd> {
        let suite = || anyhow::Ok(programs.gasrun(RANKS, SUITE)?.arg("--case").arg(part));
        Ok(match self {
            Scenario::Suite { mode, .. } => {
                let attach = if mode == "par" { "--attach" } else { "" };
                suite()?.words(&format!("--mode {mode} {attach}"))
            }
            Scenario::ProgressThread { .. } => {
                suite()?.words("--mode par").env("GASWORKS_PROGRESS_THREAD", "1")
            }
            Scenario::Gni { mode, together, barrier, .. } => {
                nic::dressed(suite()?.arg("--mode").arg(mode), &Fixture::Nic.get()?)
                    .env(nic::TOGETHER, together.to_string())
                    .env("GASNET_BARRIER", barrier)
            }
            Scenario::Alone => Cmd::new(programs.program(SUITE)?).words("--mode seq --case").arg(part).job(),
            Scenario::Aborts => suite()?.words("--mode seq --abort"),
            Scenario::Exits { .. } => programs
                .gasrun(RANKS, "gasworks-ends")?
                .words("act exit 1")
                .env("GASWORKS_SPAWN_VERBOSE", "1"),
            Scenario::Collective { kind, by_messages, .. } => programs
                .gasrun(collectives::RANKS, "gasworks-ends")?
                .words("collective")
                .arg(kind)
                .env("GASNET_BARRIER", if by_messages { "AMDISSEM" } else { "PSHM" }),
        })
    }

    /// Runs the job, with a part of the suite, and a victim that is killed at `point`; an error unless it is, and the job ends as
    /// it must.
    pub fn kill(self, log: &Log, point: &str, part: &str) -> Result<()> {
        let job = self
            .cmd(&programs::debug()?, part)?
            .env("GASWORKS_KILL_AT", format!("{point}@{}", self.victim()));
        let ended = log.run(&job.limit(WATCHDOG))?;
        let killed = match ended.code() {
            Some(code) => self.judge(point, code, &ended.output),
            None => bail!("{self:?}: {}", ended.how()),
        };
        let is_killed = killed.with_context(|| format!("{self:?}"))?;
        ensure!(is_killed, "{self:?} does not pass {point}: mend its line in tests/kill/points.rs");
        Ok(())
    }

    /// Whether the victim was killed at `point`, by the job's code and output; an error unless these agree.
    pub fn judge(self, point: &str, code: i32, output: &str) -> Result<bool> {
        let said: Vec<_> = output.lines().filter(|line| line.starts_with("gasrun:")).collect();
        let one_line = |texts: &[&str]| -> Result<()> {
            let [line] = said[..] else { bail!("gasrun said {} lines, not one: {said:?}", said.len()) };
            match texts.iter().find(|text| !line.contains(**text)) {
                Some(text) => bail!("no {text:?} in {line:?}"),
                None => Ok(()),
            }
        };
        let victim = format!("rank {} (pid ", self.victim());
        match (self, code) {
            (Scenario::Exits { .. }, KILLED | EXIT_CODE) => return judge_exit(&said, &victim, code),
            (Scenario::Aborts, KILLED) if point == "bootstrap.abort" => one_line(&[&victim, ABORTED])?,
            // The exit coordinator's order and the abort reach the launcher in any order.
            (Scenario::Aborts, KILLED) if point.starts_with("keeper.") => one_line(&[&victim])?,
            (Scenario::Aborts, ABORT_CODE) => one_line(&[&victim, ABORTED])?,
            (Scenario::Alone, KILLED | 0) => {
                ensure!(said.is_empty(), "gasrun spoke in a job without it: {said:?}")
            }
            (Scenario::Suite { .. } | Scenario::Gni { .. } | Scenario::Collective { .. }, 0) => {
                ensure!(said.is_empty(), "gasrun spoke and ended well: {said:?}")
            }
            (_, KILLED) => one_line(&[&victim, "SIGKILL"])?,
            _ => bail!("the job failed, and not because {victim}...) was killed: exit code {code}"),
        }
        Ok(code == KILLED)
    }
}

/// Whether `victim` was killed in a job that rank 1 ends, by what `gasrun` `said`: how each rank ended, and once more the end
/// that was the job's.
fn judge_exit(said: &[&str], victim: &str, code: i32) -> Result<bool> {
    let with = |text: &str| said.iter().copied().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let (killed, exited) = (with("SIGKILL"), with(&format!("exited with code {EXIT_CODE}")));
    let is_another = killed.iter().any(|line| !line.contains(victim));
    ensure!(!is_another, "another rank was killed than {victim}...): {said:?}");
    if code == KILLED {
        ensure!(killed.len() == 2, "code {code}, and a death was told {} times: {said:?}", killed.len());
        return Ok(true);
    }
    // The job's code is rank 1's, whoever is killed on the way.
    ensure!(killed.len() < 2, "code {code}, and a death was told as the job's end: {said:?}");
    let told = RANKS - killed.len() + 1;
    ensure!(exited.len() == told, "{} ends with code {code} were told, not {told}: {said:?}", exited.len());
    ensure!(
        exited.iter().any(|line| line.contains(EXITS)),
        "nobody said that the end was {EXITS}...)'s: {said:?}"
    );
    Ok(!killed.is_empty())
}
