//! A rank killed at each step of each collective, by messages and on a board: a step is what a point of the product that begins with `collective.` is for, as
//! a message that has left or come, or what was posted.

use crate::scenario::{Scenario, WATCHDOG};
use anyhow::{Context, Result, bail, ensure};
use gasworks_testkit::programs;
use gasworks_testkit::{Case, Log};
use std::time::Duration;

/// The ranks of a job: as many as there have to be for one of them to be neither first nor last of a tree.
pub const RANKS: usize = 4;
/// The root, and a member that both hears and sends along a tree.
const ROOT: usize = 0;
const INNER: usize = 2;
/// How soon all have learnt of a death.
const SECOND: Duration = Duration::from_secs(1);
/// The most steps of a member.
const MAX_STEPS: usize = 20;

/// A collective as `gasworks-ends` calls it, the steps that the victim has at least, by messages, and who the victim is on a board, if it is one for that.
const KINDS: &[(&str, usize, Option<usize>)] = &[
    ("broadcast", 3, Some(ROOT)),
    ("broadcast-long", 7, None),
    ("reduce", 3, Some(INNER)),
    ("reduce-all", 5, Some(INNER)),
    ("scan", 4, Some(INNER)),
    ("gather", 3, Some(INNER)),
    ("gather-each", 2, None),
    ("scatter", 3, Some(ROOT)),
    ("scatter-each", 2, None),
    ("all-gather", 5, Some(INNER)),
    ("all-to-all", 5, Some(INNER)),
    ("all-to-all-each", 7, None),
    ("team", 9, None),
];
/// The steps on a board: it has posted, and is through.
const ON_BOARD: usize = 2;

/// The cases.
pub fn cases() -> impl Iterator<Item = Case> {
    KINDS.iter().flat_map(|&(kind, steps, on_board)| {
        let case = move |way: &str, by_messages, victim, steps| {
            let job = Scenario::Collective { kind, by_messages, victim };
            Case::new(format!("collective/{kind}/{way}"), move |log| at_each_step(log, job, steps))
        };
        let by_messages = case("by-messages", true, INNER, steps);
        [by_messages].into_iter().chain(on_board.map(|victim| case("on-a-board", false, victim, ON_BOARD)))
    })
}

/// Kills the victim at its first step, at its second, and so on, until it has none left and the job ends well: then there must have been so many, and half of the
/// other jobs must have ended within a second more than it takes.
fn at_each_step(log: &Log, job: Scenario, least: usize) -> Result<()> {
    let mut killed = Vec::new();
    for step in 1..=MAX_STEPS {
        let at = format!("collective.*@{}#{step}", job.victim());
        let ended =
            log.run(&job.cmd(&programs::debug()?, "")?.env("GASWORKS_KILL_AT", &at).limit(WATCHDOG))?;
        let code = ended.code().with_context(|| format!("{at}: {}", ended.how()))?;
        if job.judge("collective.", code, &ended.output).with_context(|| at.clone())? {
            killed.push((at, ended.took));
            continue;
        }
        // Half of them: a busy machine may hold up one or another.
        killed.sort_by_key(|(_, took)| *took);
        if let Some((at, took)) = killed.get(killed.len() / 2).filter(|(_, took)| *took > ended.took + SECOND)
        {
            bail!("killed at {at} the job took {took:?}, and otherwise {:?}", ended.took);
        }
        log.note(&format!("killed at each of {} steps", killed.len()))?;
        ensure!(killed.len() >= least, "{job:?} has {} steps, not {least}", killed.len());
        return Ok(());
    }
    bail!("{job:?} has more than {MAX_STEPS} steps")
}
