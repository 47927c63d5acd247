//! Short, Medium and Long, requests and replies: arguments, sizes, places.

use super::handlers::{Count, Six, each_count};
use super::pattern::{check, fill, made, tag, value};
use super::{Failure, LANDING, Stage, SuiteMode, require};
use gasworks::Args;
use std::time::{Duration, Instant};

/// When a failure must have been told.
const LATEST: Duration = Duration::from_secs(20);

/// One message of each category to each peer, each replied to in kind.
fn exercise<M: SuiteMode, A: Args>(
    stage: &Stage<'_, M>,
    six: &Six<A>,
    lens: &[usize],
) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let count = size_of::<A>() as u64 / 4;
    for to in stage.peers() {
        let tag = tag(me, to, count);
        let mut due = stage.state.get(Count::Answered);
        let mut answered = |what: &str| {
            due += 1;
            stage.answered(to, due, what)
        };
        agent.request_short(to, six.short, value(tag))?;
        answered("the reply to a short request")?;
        for &len in lens {
            let payload = made(tag, len);
            if len <= agent.max_medium_to(to)? {
                agent.request_medium(to, six.medium, value(tag), &payload)?;
                answered("the reply to a medium request")?;
            }
            if len as u64 <= LANDING {
                agent.request_long(six.long, value(tag), &payload, stage.landing_at(to, 0))?;
                answered("the reply to a long request")?;
                // The reply's payload has landed here, in the room behind that of this peer's requests.
                let room = stage.landing_at(me, 1).offset() + 2 * LANDING * (u64::from(to))
                    - 2 * LANDING * u64::from(me);
                let mut landed = vec![0; len];
                let place = gasworks::GlobalPtr::<u8>::new(me, room);
                agent.local(place, len)?.read(0, &mut landed);
                check(
                    "payload of a long reply, where it landed",
                    super::pattern::tag(to, me, count),
                    &landed,
                )?;
            }
        }
    }
    Ok(())
}

/// Every number of arguments, in every category, there and back.
pub(super) fn arguments<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    macro_rules! visit {
        ($name:ident) => {
            exercise(stage, &stage.handlers.$name, &[5])?;
        };
    }
    each_count!(visit);
    Ok(())
}

/// Payloads of all sizes that matter: none, words, cache lines, the largest and its neighbours, several packets.
pub(super) fn sizes<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let max = stage.agent.max_medium();
    require!(max >= 512, "the largest medium is {max} bytes, at least 512 are due");
    let lens = [
        0,
        1,
        2,
        3,
        4,
        7,
        8,
        9,
        63,
        64,
        65,
        127,
        128,
        129,
        511,
        512,
        4095,
        4096,
        max - 1,
        max,
        max + 1,
        stage.agent.max_medium_to(stage.next())?,
        100_003,
    ];
    exercise(stage, &stage.handlers.n0, &lens)?;
    exercise(stage, &stage.handlers.n1, &lens)?;
    exercise(stage, &stage.handlers.n16, &lens)
}

/// One byte too many is refused, and nothing is sent.
pub(super) fn too_large<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, before) = (&stage.agent, stage.state.get(Count::Answered));
    let max = agent.max_medium_to(stage.next())?;
    for _ in 0..100 {
        // More often than there are credits: a refused message must not keep one.
        let large = agent.request_medium(stage.next(), stage.handlers.n1.medium, [1], &vec![0; max + 1]);
        let said = large.err().map(|e| e.to_string()).unwrap_or_default();
        require!(
            said.contains(&(max + 1).to_string()) && said.contains(&max.to_string()),
            "a medium of {} bytes where {max} are allowed: {said:?}",
            max + 1
        );
    }
    exercise(stage, &stage.handlers.n1, &[agent.max_medium()])?;
    let answered = stage.state.get(Count::Answered) - before;
    require!(answered == 3 * stage.peers().len() as u64, "{answered} messages were answered");
    Ok(())
}

/// A handler at a fixed index, and those that were given theirs, none of which is the same.
pub(super) fn fixed_index<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let handlers = stage.handlers;
    require!(handlers.fixed.index() == 200, "the handler asked for index 200 has {}", handlers.fixed.index());
    let mut indices = vec![handlers.fixed.index(), handlers.plain.index(), handlers.echo.index()];
    macro_rules! visit {
        ($name:ident) => {
            let six = &handlers.$name;
            indices.extend([six.short.index(), six.medium.index(), six.long.index()]);
        };
    }
    each_count!(visit);
    let given = indices.len();
    indices.sort_unstable();
    indices.dedup();
    require!(indices.len() == given && indices[0] >= 128, "indices {indices:?} of {given} handlers");
    for to in stage.peers() {
        stage.agent.request_short(to, handlers.fixed, stage.rank())?;
    }
    let due = stage.peers().len() as u64;
    stage.wait_for("messages to the fixed index", || stage.state.get(Count::Fixed) == due)
}

/// A handler whose reply is refused still gives the credit back.
pub(super) fn refused_reply<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (rounds, len) = (100, stage.agent.max_medium_to(stage.next())? as u32 + 1);
    for _ in 0..rounds {
        stage.agent.request_short(stage.next(), stage.handlers.refused, len)?;
    }
    stage.wait_for("replies that are refused", || stage.state.get(Count::Refused) == rounds)
}

/// A handler's failure comes out of the poll that ran it, with its words and the sender; then all goes on.
pub(super) fn handler_error<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let me = stage.rank();
    // To itself, so that no other rank's wait is what fails.
    let sent = stage.agent.request_short(me, stage.handlers.fails, 4711);
    let mut said = sent.err();
    let deadline = Instant::now() + LATEST;
    while said.is_none() {
        // A progress thread that ran the handler leaves its failure to our next poll.
        said = stage.agent.poll().err();
        require!(said.is_some() || Instant::now() < deadline, "the handler's failure was lost");
        std::thread::yield_now();
    }
    let said = said.map_or_else(String::new, |e| e.to_string());
    require!(said.contains("on purpose, with 4711") && said.contains(&format!("rank {me}")), "{said:?}");
    exercise(stage, &stage.handlers.n2, &[17])
}

/// What was put before a message was sent is there when its handler runs.
pub(super) fn after_put<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    for round in 0..20u64 {
        let len = 1 + 997 * round as usize;
        let mut bytes = vec![0; len];
        fill(tag(me, stage.next(), round), &mut bytes);
        let place = stage.open(stage.next());
        if round % 2 == 0 {
            agent.put(place, &bytes)?;
        } else {
            agent.put_copy(place, &bytes)?.wait(agent)?;
        }
        agent.request_short(stage.next(), stage.handlers.after_put, 0)?;
        stage.wait_for("the message after a put", || stage.state.get(Count::AfterPut) == round + 1)?;
        let mut here = vec![0; len];
        agent.local(stage.open(me), len)?.read(0, &mut here);
        check("bytes put before a message", tag(stage.previous(), me, round), &here)?;
        agent.barrier()?;
    }
    Ok(())
}
