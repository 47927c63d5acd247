//! Events: owned buffers come back, a test says when, a future is woken, a dropped one harms nobody.

use super::pattern::{check, made, tag};
use super::{Failure, Stage, SuiteMode, require};

/// Operations that own their buffers and give them back.
pub(super) fn owned<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    for len in [0usize, 1, 8, 4097, 300_001] {
        let bytes = made(tag(me, to, len as u64), len);
        let back = agent.put_owned(stage.open(to), bytes.clone())?.wait(agent)?;
        require!(back == bytes, "the buffer of a put of {len} bytes came back different");
        let got = agent.get_owned(stage.open(to), len)?.wait(agent)?;
        check("an owned get", tag(me, to, len as u64), &got)?;
    }
    let words: Vec<u64> = (0..1000).map(|i| i * i).collect();
    agent.put_copy(stage.open(to).cast(), &words)?.wait(agent)?;
    let got = agent.get_owned::<u64>(stage.open(to).cast(), 1000)?.wait(agent)?;
    require!(got == words, "a put of a copy");
    Ok(())
}

/// Testing: without polls nothing need happen, with polls it does, and a done event stays done.
pub(super) fn test<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let mut events = Vec::new();
    for i in 0..30u64 {
        let place = stage.open(to).add(i * 2000)?;
        events.push(agent.put_owned(place, made(tag(me, to, i), 1999))?);
    }
    for (i, mut event) in events.into_iter().enumerate().rev() {
        let mut polls = 0u64;
        while !event.test()? {
            stage.turn()?;
            polls += 1;
            require!(polls < 10_000_000, "event {i} is never done");
        }
        require!(event.test()? && event.test()?, "a done event is not done any more");
        let bytes = event.wait(agent)?;
        check("a tested put", tag(me, to, i as u64), &bytes)?;
    }
    Ok(())
}

/// Events as futures, one after the other and several at once.
pub(super) fn awaited<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let got = agent.block_on(async {
        let first = agent.put_owned(stage.open(to), made(tag(me, to, 1), 5000))?;
        let second = agent.put_owned(stage.open(to).add(5000)?, made(tag(me, to, 2), 5000))?;
        second.await?;
        first.await?;
        let first = agent.get_owned(stage.open(to), 5000)?;
        let second = agent.get_owned(stage.open(to).add(5000)?, 5000)?;
        Ok((first.await?, second.await?))
    })?;
    check("the first awaited", tag(me, to, 1), &got.0)?;
    check("the second awaited", tag(me, to, 2), &got.1)
}

/// Events dropped at once: the operations go on, their buffers live until they are done, and many of them do not use
/// anything up.
pub(super) fn dropped<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    for i in 0..1500u64 {
        let place = stage.open(to).add(i % 100 * 300)?;
        drop(agent.put_copy(place, &made(tag(me, to, i % 100), 300))?);
        drop(agent.get_owned(place, 200)?);
    }
    // What was dropped is done before what comes after it is only certain once nothing is under way: so it is read
    // until it is there.
    for i in 0..100u64 {
        let place = stage.open(to).add(i * 300)?;
        let mut failure = None;
        stage.wait_for("a put whose event was dropped", || {
            let got = agent.get_owned(place, 300).and_then(|event| event.wait(agent));
            match got {
                Ok(bytes) => check("", tag(me, to, i), &bytes).is_ok(),
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        })?;
        if let Some(error) = failure {
            return Err(error.into());
        }
    }
    Ok(())
}
