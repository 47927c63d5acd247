//! Negotiated payload, replies made in place, tokens, locks that handlers take, handlers that come later.

use super::handlers::Count;
use super::pattern::{made, tag, value};
use super::{Failure, LANDING, Stage, SuiteMode, require};

/// The arguments of the handlers that these cases send to, and their number.
type Three = [u32; 3];
const THREE: u64 = 3;

/// Mediums whose payload is made in the library's room: less than was granted, all of it, nothing.
pub(super) fn medium<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, handler) = (&stage.agent, stage.rank(), stage.handlers.n3.medium);
    let mut due = stage.state.get(Count::Answered);
    for to in stage.peers() {
        let (tag, max) = (tag(me, to, THREE), agent.max_medium_to(to)?);
        for len in [0, 1, 8, 100, 128, 129, 512, max / 2, max] {
            for most in [len, max, usize::MAX] {
                let mut room = agent.prepare_medium(to, len..=most)?;
                let granted = room.granted();
                require!(granted >= len && granted <= max, "{granted} bytes granted of {len} to {most}");
                let (start, end) = (len / 3, made(tag, len));
                room.write(0, &end[..start])?;
                room.write(start, &end[start..])?;
                require!(room.write(granted, &[1]).is_err(), "a byte beyond {granted} granted was written");
                room.commit::<Three>(handler, value(tag), len)?;
                due += 1;
                stage.answered(to, due, "the reply to a negotiated medium")?;
            }
        }
    }
    Ok(())
}

/// Longs whose payload is made where it lands.
pub(super) fn long<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, handler) = (&stage.agent, stage.rank(), stage.handlers.n3.long);
    let mut due = stage.state.get(Count::Answered);
    for to in stage.peers() {
        let (tag, landing) = (tag(me, to, THREE), stage.landing_at(to, 0));
        for len in [0, 1, agent.max_medium_to(to)? / 2, agent.max_medium_to(to)?] {
            let mut room = agent.prepare_long(landing, len..=LANDING as usize)?;
            require!(room.granted() >= len, "{} bytes granted, {len} asked for", room.granted());
            room.write(0, &made(tag, len))?;
            room.commit::<Three>(handler, value(tag), len)?;
            due += 1;
            stage.answered(to, due, "the reply to a negotiated long")?;
        }
        // One of no bytes delivers its address, wherever that is.
        let beyond = gasworks::GlobalPtr::<u8>::new(to, landing.offset() + agent.segment(to)?.len());
        agent.prepare_long(beyond, 0..=0)?.commit::<Three>(handler, value(tag), 0)?;
        agent.prepare_long_from(beyond, &[], 0)?.commit::<Three>(handler, value(tag), 0)?;
        agent.request_long::<Three>(handler, value(tag), &[], beyond)?;
        due += 3;
        stage.answered(to, due, "the reply to a long of no bytes beyond the segment")?;
    }
    Ok(())
}

/// The payload is the program's own buffer, or kept by the operation.
pub(super) fn from_buffer<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let (medium, long) = (stage.handlers.n3.medium, stage.handlers.n3.long);
    let mut due = stage.state.get(Count::Answered);
    for to in stage.peers() {
        let (tag, landing) = (tag(me, to, THREE), stage.landing_at(to, 0));
        for len in [0, 1, 700, LANDING as usize] {
            let payload = made(tag, len);
            let room = agent.prepare_medium_from(to, &payload, 0)?;
            let part = room.granted();
            require!(part == len.min(agent.max_medium_to(to)?), "{part} bytes granted of {len}");
            room.commit::<Three>(medium, value(tag), part)?;
            due += 1;
            stage.answered(to, due, "the reply to a medium from a buffer")?;
            let room = agent.prepare_long_from(landing, &payload, len)?;
            room.commit::<Three>(long, value(tag), len)?;
            due += 1;
            stage.answered(to, due, "the reply to a long from a buffer")?;
            let mut event =
                agent.request_long_owned::<Three, _>(long, value(tag), payload.clone(), landing)?;
            due += 1;
            stage.answered(to, due, "the reply to a long that keeps its payload")?;
            stage.wait_for("the payload", || event.test().unwrap_or(true))?;
            require!(event.wait(agent)? == payload, "a payload of {len} bytes came back changed");
            let group = agent.implicit();
            group.request_long_owned::<Three, _>(long, value(tag), payload, landing)?;
            due += 1;
            stage.answered(to, due, "the reply to a long whose payload is a group's")?;
            group.wait(agent, gasworks::Categories::LOCAL)?;
        }
    }
    Ok(())
}

/// What is cancelled or dropped gives everything back; what is held makes others wait, and IMMEDIATE say so.
pub(super) fn cancelled<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let landing = stage.landing_at(to, 0);
    let max = agent.max_medium_to(to)?;
    for round in 0..300 {
        let len = [0, 64, 4000, max][round % 4].min(max);
        agent.prepare_medium(to, len..=len)?.cancel();
        drop(agent.prepare_long(landing, 1..=4096.min(max))?);
    }
    let mut held = Vec::new();
    let most = if to == me { 1000 } else { 100_000 };
    let refused = loop {
        match agent.try_prepare_medium(to, 64..=64) {
            Ok(room) if held.len() < most => held.push(room),
            Ok(_) => break None,
            Err(error) => break Some(error),
        }
    };
    // Nothing that a rank sends to itself has to wait.
    require!(
        refused.as_ref().is_some_and(|e| e.is_busy()) == (to != me),
        "after {}: {refused:?}",
        held.len()
    );
    drop(held);
    let (tag, due) = (tag(me, to, THREE), stage.state.get(Count::Answered) + 1);
    let payload = made(tag, 64);
    agent.request_medium::<Three>(to, stage.handlers.n3.medium, value(tag), &payload)?;
    stage.answered(to, due, "the reply to a medium after all that")
}

/// What cannot be had or sent is refused, and nothing is lost by it.
pub(super) fn refused<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to) = (&stage.agent, stage.next());
    let (medium, long) = (stage.handlers.n3.medium, stage.handlers.n3.long);
    let (max, landing) = (agent.max_medium_to(to)?, stage.landing_at(to, 0));
    let end = gasworks::GlobalPtr::<u8>::new(to, agent.segment(to)?.len());
    for _ in 0..100 {
        require!(agent.prepare_medium(to, max + 1..=usize::MAX).is_err(), "more than a medium carries");
        require!(agent.prepare_medium(stage.ranks(), 0..=1).is_err(), "a rank that there is not");
        require!(agent.prepare_long(end, 1..=1).is_err(), "beyond the segment's end");
        require!(agent.prepare_medium_from(to, &[0; 8], 9).is_err(), "more than the buffer has");
        let room = agent.prepare_medium(to, 64..=64)?;
        require!(room.commit::<Three>(medium, [0; 3], 65).is_err(), "more than was granted");
        let room = agent.prepare_long(landing, 64..=64)?;
        require!(room.commit::<Three>(long, [0; 3], 65).is_err(), "more than was granted");
    }
    Ok(())
}

/// Handlers registered while the job is open: they reply in place, look at their tokens, take a lock.
pub(super) fn later<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let late = M::later(stage.job, stage.state)?;
    agent.barrier()?;
    let lock = gasworks::HandlerLock::<M, u32>::new(0);
    let refused = lock.with(|_| agent.request_short(me, late.token, me).is_err() && agent.poll().is_err());
    require!(refused.is_ok_and(|both| both), "a thread that holds a handler-safe lock sends and polls");
    let mut due = stage.state.get(Count::Late);
    for to in stage.peers() {
        for len in [0, 1, 100, agent.max_medium_to(to)? as u32] {
            agent.request_short(to, late.in_place, len)?;
            due += 1;
            stage.wait_for("a reply made in place", || stage.state.get(Count::Late) == due)?;
        }
        agent.request_short(to, late.token, me)?;
        due += 1;
        stage.wait_for("a token", || stage.state.get(Count::Late) == due)?;
        agent.request_short(to, late.locked, me)?;
        due += 1;
        stage.wait_for("the reply after a lock", || stage.state.get(Count::Late) == due)?;
    }
    Ok(())
}

/// Every way of waiting serves messages.
pub(super) fn wait_modes<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    use gasworks::WaitMode::{Block, Spin, SpinBlock};
    let (agent, to) = (&stage.agent, stage.next());
    for mode in [Block, SpinBlock, Spin, SpinBlock] {
        // Ranks that only spin would take all day where they share a processor with many.
        if mode == Spin && stage.ranks() > 8 {
            continue;
        }
        stage.job.set_wait_mode(mode);
        let due = stage.state.get(Count::Echoed) + 5;
        for round in 0..5 {
            agent.request_short(to, stage.handlers.echo, round)?;
            stage.wait_for("an echo", || stage.state.get(Count::Echoed) >= due - 4 + round)?;
        }
        agent.barrier()?;
        if mode == Block && stage.ranks() > 1 {
            each_sleeps(stage)?;
        }
    }
    Ok(())
}

/// One rank after the other waits for a message that takes its time, so that it sleeps and its next rank wakes it: a rank that is
/// answered at once may never do either.
fn each_sleeps<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let due = stage.state.get(Count::Plain) + 1;
    for asleep in 0..stage.ranks().min(8) {
        stage.agent.barrier()?;
        if stage.rank() == asleep {
            stage.wait_for("a late message", || stage.state.get(Count::Plain) == due)?;
        } else if stage.previous() == asleep {
            std::thread::sleep(std::time::Duration::from_millis(20));
            stage.agent.request_short(asleep, stage.handlers.plain, 1)?;
        }
    }
    Ok(stage.agent.barrier()?)
}
