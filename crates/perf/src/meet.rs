//! Barriers, teams, and atomic operations.

use crate::raw;
use crate::session::{PerfMode, Plan, Session, Who, since};
use anyhow::{Context, Result, ensure};
use gasworks::{AtomicOp, AtomicOps, Categories, Favor};
use std::hint::black_box;
use std::time::Instant;

/// The barrier of all ranks; that of another team of the same ranks; and how long it takes to make and drop such a team.
pub fn barrier<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let (everyone, key) = (session.job.everyone(), -i64::from(session.rank()));
    let split = || everyone.split(&session.agent, Some(0), key);
    for variant in ["shared", "team", "split"].into_iter().filter(|variant| session.wants(variant)) {
        let team = split()?.context("a rank with a colour has a team")?;
        let within = session.agent.on(&team);
        let agent = if variant == "team" { &within } else { &session.agent };
        let plan = Plan { who: Who::First, single: true, ..Plan::new("barrier", variant, 0) };
        session.measure(&plan, |block| {
            let begin = Instant::now();
            block.begin();
            for _ in 0..block.n {
                match variant {
                    "split" => drop(split()?),
                    _ => agent.barrier()?,
                }
                block.done();
            }
            Ok(since(begin))
        })?;
    }
    Ok(())
}

/// Fetch-and-add on a word of the partner's, and sums that nothing is fetched of; where the network does them, also by processors. Then the
/// processor's own.
pub fn atomic<M: PerfMode>(session: &Session<'_, M>) -> Result<()> {
    let (agent, word) = (&session.agent, session.job.alloc::<u64>(1)?);
    let mut before = None;
    for (suffix, favor) in [("", Favor::Far), ("-near", Favor::Near)] {
        let atomics = agent.atomics::<u64>(AtomicOps::FADD | AtomicOps::ADD | AtomicOps::GET, favor)?;
        if before.replace(atomics.by()) == Some(atomics.by()) {
            continue;
        }
        let own = word.on(session.rank());
        agent.put_value(own, 0)?;
        agent.barrier()?;
        let place = black_box(session.partner().map_or(own, |partner| word.on(partner)));
        let mut sum = 0;
        for fetches in [true, false] {
            let variant = format!("{}{suffix}", if fetches { "fetch-add" } else { "add-flood" });
            if !session.wants(&variant) {
                continue;
            }
            let plan = Plan { single: fetches, ..Plan::new("atomic", variant, 8) };
            session.measure(&plan, |block| {
                if !session.leads() {
                    return Ok(0.0);
                }
                let mut wrong = 0u64;
                let begin = Instant::now();
                block.begin();
                if fetches {
                    for _ in 0..block.n {
                        wrong |= atomics.fetch(agent, place, AtomicOp::Add(3))? ^ sum;
                        sum += 3;
                        block.done();
                    }
                } else {
                    let flood = agent.implicit();
                    for _ in 0..block.n {
                        flood.atomic(&atomics, place, AtomicOp::Add(3))?;
                        sum += 3;
                        block.done();
                    }
                    flood.wait(agent, Categories::UPDATE)?;
                }
                let took = since(begin);
                let found = atomics.load(agent, place)?;
                ensure!(wrong == 0 && found == sum, "the word is {found}, not {sum}");
                Ok(took)
            })?;
        }
        agent.barrier()?;
    }
    raw::atomics(session)
}
