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

/// A collective as `gasworks-ends` calls it.
struct Kind {
    name: &'static str,
    /// The steps that the victim has at least, by messages.
    by_messages: Option<usize>,
    /// Who the victim is on a board, and how many steps it has there at least.
    on_a_board: Option<(usize, usize)>,
}

const fn kind(name: &'static str, by_messages: usize, on_a_board: Option<usize>) -> Kind {
    let on_a_board = match on_a_board {
        Some(victim) => Some((victim, POSTED_AND_THROUGH)),
        None => None,
    };
    Kind { name, by_messages: Some(by_messages), on_a_board }
}

/// One that goes by pieces on a board.
const fn pieces(name: &'static str, victim: usize, steps: usize) -> Kind {
    Kind { name, by_messages: None, on_a_board: Some((victim, steps)) }
}

/// The steps of a short one on a board.
const POSTED_AND_THROUGH: usize = 2;

const KINDS: &[Kind] = &[
    kind("broadcast", 3, Some(ROOT)),
    kind("broadcast-long", 7, None),
    kind("reduce", 3, Some(INNER)),
    kind("reduce-all", 5, Some(INNER)),
    kind("scan", 4, Some(INNER)),
    kind("gather", 3, Some(INNER)),
    kind("gather-each", 2, None),
    kind("scatter", 3, Some(ROOT)),
    kind("scatter-each", 2, None),
    kind("all-gather", 5, Some(INNER)),
    kind("all-to-all", 5, Some(INNER)),
    kind("all-to-all-each", 7, None),
    kind("team", 9, None),
    pieces("broadcast-pieces", ROOT, 4),
    pieces("gather-pieces", INNER, 4),
    pieces("all-gather-pieces", INNER, 4),
    pieces("scan-pieces", INNER, 4),
];

/// The cases.
pub fn cases() -> impl Iterator<Item = Case> {
    KINDS.iter().flat_map(|&Kind { name, by_messages, on_a_board }| {
        let case = move |way: &str, by_messages, (victim, steps)| {
            let job = Scenario::Collective { kind: name, by_messages, victim };
            Case::new(format!("collective/{name}/{way}"), move |log| at_each_step(log, job, steps))
        };
        let by_messages = by_messages.map(|steps| case("by-messages", true, (INNER, steps)));
        by_messages.into_iter().chain(on_a_board.map(|board| case("on-a-board", false, board)))
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
