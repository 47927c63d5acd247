//! The barrier, in two halves.

use super::handlers::Count;
use super::pattern::Random;
use super::{Failure, Stage, SuiteMode, require};
use gasworks::{Error, Name, WaitMode};
use nix::sys::resource::{UsageWho, getrusage};
use std::time::{Duration, Instant};

/// What was done before a begin is seen after the end, many times over, with work between the halves.
pub(super) fn split_phase<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let mine = agent.local(stage.open(me).cast::<u64>(), 2)?;
    for round in 1..=200u64 {
        // Two places in turn: a fast rank may be one round ahead.
        let place = stage.open(stage.next()).cast::<u64>().add(round % 2)?;
        agent.put_value(place, round)?;
        let phase = agent.barrier_begin()?;
        if round % 3 == 0 {
            while !phase.test(agent)? {
                stage.turn()?;
            }
        } else {
            phase.wait(agent)?;
        }
        let seen = mine.get((round % 2) as usize);
        require!(seen == round, "after barrier {round} the neighbour's put is {seen}");
    }
    Ok(())
}

/// Ranks that come at very different times; nobody leaves before the last has come.
pub(super) fn skewed<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, stage.rank(), stage.ranks());
    let mut random = Random(u64::from(me) + 99);
    let mine = agent.local(stage.open(me).cast::<u64>(), 1)?;
    mine.set(0, 0);
    agent.barrier()?;
    for round in 1..=20u64 {
        if round % u64::from(ranks) == u64::from(me) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        for _ in 0..random.below(50) {
            agent.poll()?;
        }
        mine.set(0, round);
        agent.barrier()?;
        for of in stage.peers() {
            let there = agent.get_value(stage.open(of).cast::<u64>())?;
            require!(
                (round..=round + 1).contains(&there),
                "after barrier {round} rank {of} is in round {there}"
            );
        }
    }
    Ok(())
}

/// Begun twice, or finished twice.
pub(super) fn out_of_turn<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let agent = &stage.agent;
    let phase = agent.barrier_begin()?;
    let twice = agent.barrier_begin().err().map(|e| e.to_string()).unwrap_or_default();
    require!(twice.contains("barrier"), "a barrier begun twice: {twice:?}");
    let mut polls = 0u64;
    while !phase.test(agent)? {
        stage.turn()?;
        polls += 1;
        require!(polls < 100_000_000, "a barrier begun twice never ends");
    }
    require!(phase.test(agent).is_err(), "a barrier was finished twice");
    Ok(())
}

/// A rank that waits at the barrier runs handlers and replies.
pub(super) fn serves_messages<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let agent = &stage.agent;
    if stage.rank() == 0 {
        let (before, sum) = (stage.state.get(Count::Echoed), stage.state.get(Count::EchoSum));
        for value in 0..100u64 {
            for to in stage.peers() {
                agent.request_short(to, stage.handlers.echo, value)?;
            }
        }
        let due = 100 * stage.peers().len() as u64;
        stage
            .wait_for("echoes of ranks at the barrier", || stage.state.get(Count::Echoed) - before == due)?;
        let sum = stage.state.get(Count::EchoSum) - sum;
        require!(sum == 4950 * stage.peers().len() as u64, "their sum is {sum}");
    }
    Ok(agent.barrier()?)
}

/// A rank that has begun a barrier and polls does its part of it: each in turn asks for the end only when another has written that is through.
pub(super) fn goes_on_by_polls<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, stage.rank(), stage.ranks());
    for slow in 0..ranks {
        let before = stage.state.get(Count::Plain);
        let phase = agent.barrier_begin()?;
        if me == slow {
            stage.wait_for("a message of a rank that is past the barrier", || {
                stage.state.get(Count::Plain) > before
            })?;
        }
        phase.wait(agent)?;
        if (me + 1) % ranks == slow {
            agent.request_short(slow, stage.handlers.plain, 1)?;
        }
        agent.barrier()?;
    }
    Ok(())
}

/// How late the first rank is for those that sleep; with other work on the machine it may be later.
const LATE: Duration = Duration::from_millis(100);

/// A rank that waits for a message sleeps, longer and longer, until that comes, whatever transports it has: it does not look in between.
pub(super) fn sleeps<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    // Sleeps are doubled up to 10 ms; a rank that naps does so a thousand times.
    const MOST: i64 = 80;
    let (agent, me) = (&stage.agent, stage.rank());
    let before = stage.state.get(Count::Plain);
    agent.barrier()?;
    if me == 0 {
        std::thread::sleep(LATE);
        for other in 1..stage.ranks() {
            agent.request_short(other, stage.handlers.plain, 1)?;
        }
    } else {
        // Miri knows no such count.
        let gives_way = || match getrusage(UsageWho::RUSAGE_THREAD) {
            Ok(usage) if !cfg!(miri) => usage.voluntary_context_switches(),
            _ => 0,
        };
        let (begun, since) = (gives_way(), Instant::now());
        agent.wait_until(|| stage.state.get(Count::Plain) > before)?;
        let (slept, waited) = (gives_way() - begun, since.elapsed());
        let most = MOST + MOST * (waited.as_millis() / LATE.as_millis()) as i64;
        require!(slept <= most || !is_told(), "rank {me} slept {slept} times in {waited:?}");
    }
    Ok(agent.barrier()?)
}

/// A rank that waits in a barrier sleeps as well, though a message has just ended a sleep of its.
pub(super) fn sleeps_in_barriers<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    // A nap is 50 us at least.
    const LEAST: Duration = Duration::from_micros(40);
    const MORE: u32 = 100;
    let (agent, me) = (&stage.agent, stage.rank());
    let before = stage.state.get(Count::Plain);
    agent.barrier()?;
    if me == 0 {
        std::thread::sleep(LATE / 4);
        for other in 1..stage.ranks() {
            agent.request_short(other, stage.handlers.plain, 1)?;
        }
        // Whose steps of the barrier wait for room here look for that all the time.
        let since = Instant::now();
        while since.elapsed() < LATE {
            agent.poll()?;
            std::thread::sleep(LATE / 100);
        }
        agent.barrier()?;
    } else {
        agent.wait_until(|| stage.state.get(Count::Plain) > before)?;
        let phase = agent.barrier_begin()?;
        let (mode, mut looks, since) = (stage.job.wait_mode(), 0, Instant::now());
        stage.job.set_wait_mode(WaitMode::Block);
        let mut outcome = Ok(false);
        let waited = agent.wait_until(|| {
            // Before, its steps may have waited for room.
            looks += u32::from(since.elapsed() > LATE / 4);
            outcome = phase.test(agent);
            !matches!(outcome, Ok(false))
        });
        stage.job.set_wait_mode(mode);
        waited?;
        outcome?;
        let waited = since.elapsed();
        let most = MORE + (waited.as_micros() / LEAST.as_micros()) as u32;
        require!(looks <= most || !is_told(), "rank {me} looked {looks} times in {waited:?}");
    }
    Ok(agent.barrier()?)
}

/// Whether a rank can sleep until it is told of something. One to which calls were lost looks for messages again and again: on purpose, or
/// since there is room for few. So does one whose transfers are held back.
fn is_told() -> bool {
    let lossy = ["GASWORKS_UGNI_FAULTS", "GASNET_GNI_AM_MAX_CQE"];
    !gasworks_os::environ::all().any(|(name, value)| {
        lossy.iter().any(|lossy| name == *lossy) || (name == "GASWORKS_UGNI_MOOD" && value == "unordered")
    })
}

/// By a name, by none, by two, by a declared mismatch: all agree on the outcome, and the next barrier is not harmed.
pub(super) fn named<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, stage.rank(), stage.ranks());
    for round in 0..40u32 {
        let odd = me == round % ranks;
        let (name, agreed) = match round % 5 {
            0 => (Name::Is(round), Ok(Name::Is(round))),
            1 => (if odd { Name::Is(round) } else { Name::Any }, Ok(Name::Is(round))),
            2 if ranks > 1 => (Name::Is(odd.into()), Err(())),
            3 => (if odd { Name::Mismatch } else { Name::Is(1) }, Err(())),
            _ => (Name::Any, Ok(Name::Any)),
        };
        let found = match agent.barrier_as(name) {
            Err(Error::Mismatch) => Err(()),
            other => Ok(other?),
        };
        require!(found == agreed, "barrier {round} by {name:?}: {found:?} in place of {agreed:?}");
    }
    let phase = agent.barrier_begin_as(Name::Is(me % 2))?;
    let outcome = loop {
        match phase.test(agent) {
            Ok(false) => stage.turn()?,
            other => break other,
        }
    };
    let mismatch = matches!(outcome, Err(Error::Mismatch));
    require!(mismatch == (ranks > 1), "two names for one barrier, tested: {outcome:?}");
    Ok(())
}
