//! Implicit operations, access regions, and events by the array.
//!
//! # Invariants
//! - implicit.1: the raw forms get into a vector that is not touched before the gets are done, and put from one that is not changed
//!   before its local completion.

use super::pattern::{Random, check, fill, made, tag};
use super::{Failure, OPEN, Stage, SuiteMode, require};
use gasworks::{Categories, Event, LocalCompletion};

/// Puts and gets without events: each category is waited for, and all is there.
pub(super) fn categories<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let implicit = agent.implicit();
    require!(implicit.test(Categories::all())?, "nothing was started");
    let place = |i: u64| stage.open(to).add(i * 3000);
    for round in 0..3u64 {
        for i in 0..20 {
            let mut source = made(tag(me, to, 100 * round + i), 5 + 149 * i as usize);
            match i % 3 {
                0 => implicit.put(place(i)?, &source)?,
                1 => implicit.put_owned(place(i)?, std::mem::take(&mut source))?,
                // SAFETY: implicit.1: by `LocalCompletion::Now` nobody reads `source` any more when this returns; it is changed below.
                _ => unsafe {
                    implicit.put_raw(place(i)?, source.as_ptr(), source.len(), LocalCompletion::Now)?;
                },
            }
            source.fill(0xDB); // it may be used again
        }
        implicit.put_value(place(20)?.cast(), round)?;
        implicit.wait(agent, Categories::PUT)?;
        let mut targets: Vec<Vec<u8>> = (0..20).map(|i| vec![0; 5 + 149 * i]).collect();
        for (i, target) in targets.iter_mut().enumerate() {
            // SAFETY: implicit.1: `target` has these bytes, on the heap, and is looked at only below the wait for all gets.
            unsafe { implicit.get_raw(place(i as u64)?, target.as_mut_ptr(), target.len())? };
        }
        require!(implicit.test(Categories::PUT)?, "gets are no puts");
        implicit.wait(agent, Categories::GET)?;
        for (i, target) in targets.iter().enumerate() {
            check("an implicit put and get", tag(me, to, 100 * round + i as u64), target)?;
        }
        require!(agent.get_value(place(20)?.cast::<u64>())? == round, "an implicit put of a value");
        require!(implicit.test(Categories::all())?, "all was waited for");
    }
    Ok(())
}

/// A source that is free before its put is done may be used for the next.
pub(super) fn local_completion<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let implicit = agent.implicit();
    for len in [1usize, 64, 5000, 70_000] {
        let mut source = vec![0; len];
        for i in 0..4u64 {
            fill(tag(me, to, i), &mut source);
            // SAFETY: implicit.1: `source` is not changed before the wait for the local category below.
            unsafe {
                let place = stage.open(to).add(i * 70_000)?;
                implicit.put_raw(place, source.as_ptr(), len, LocalCompletion::Apart)?;
            }
            implicit.wait(agent, Categories::LOCAL)?;
        }
        source.fill(0);
        implicit.wait(agent, Categories::PUT)?;
        for i in 0..4u64 {
            let got = agent.get_owned(stage.open(to).add(i * 70_000)?, len)?.wait(agent)?;
            check("a put whose source was used again", tag(me, to, i), &got)?;
        }
        let event = agent.put_owned(stage.open(to), made(tag(me, to, 9), len))?;
        let (mut failure, mut free) = (None, false);
        stage.wait_for("the source of a put", || {
            free = event.source_free().unwrap_or_else(|error| {
                failure = Some(error);
                true
            });
            free
        })?;
        failure.map_or(Ok(()), Err)?;
        check("what comes back", tag(me, to, 9), &event.wait(agent)?)?;
    }
    Ok(())
}

/// Access regions: one event for each, done when all in it is; apart from what was started outside.
pub(super) fn regions<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let mut events = Vec::new();
    for region in 0..6u64 {
        let (count, event) = agent.region(|operations| {
            for i in 0..region * 4 {
                let place = stage.open(to).add((region * 24 + i) * 700)?;
                operations.put(place, &made(tag(me, to, region * 24 + i), 690))?;
            }
            let inside = operations.test(Categories::all()).err().map(|e| e.to_string()).unwrap_or_default();
            Ok((region * 4, inside.contains("access region")))
        })?;
        require!(count == (region * 4, true), "tested inside a region: {count:?}");
        events.push(event);
    }
    Event::all(agent, events)?;
    for at in (1..6u64).flat_map(|region| (0..region * 4).map(move |i| region * 24 + i)) {
        let got = agent.get_owned(stage.open(to).add(at * 700)?, 690)?.wait(agent)?;
        check("a put in a region", tag(me, to, at), &got)?;
    }
    // What is forgotten may land at any time: at a place that no other case uses.
    let failed = agent.region(|operations| {
        operations.put(stage.open(to).add(OPEN - 500)?, &[1u8; 500])?;
        Err::<(), _>(gasworks::Error::Program("the body fails".into()))
    });
    let said = failed.err().map(|e| e.to_string());
    require!(said.as_deref() == Some("the body fails"), "a region whose body fails says {said:?}");
    Ok(())
}

/// Events in any order: some, then all, with their values.
pub(super) fn arrays<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    require!(Event::some(agent, &mut Vec::<Event<'_, M, ()>>::new())?.is_empty(), "some of none");
    let mut random = Random(u64::from(me) + 5);
    for round in 0..5u64 {
        let lens: Vec<usize> = (0..30).map(|_| random.below(3000) as usize).collect();
        let place = |i: usize| stage.open(to).add(3000 * i as u64);
        let mut puts = Vec::new();
        for (i, &len) in lens.iter().enumerate() {
            puts.push(agent.put_owned(place(i)?, made(tag(me, to, round * 30 + i as u64), len))?);
        }
        let mut taken = 0;
        while !puts.is_empty() {
            let done = Event::some(agent, &mut puts)?;
            require!(!done.is_empty(), "some of {} are none", puts.len());
            for at in done.into_iter().rev() {
                puts.swap_remove(at).wait(agent)?;
                taken += 1;
            }
        }
        require!(taken == lens.len(), "{taken} of {} were done", lens.len());
        let gets: Result<Vec<_>, Failure> =
            lens.iter().enumerate().map(|(i, &len)| Ok(agent.get_owned(place(i)?, len)?)).collect();
        for (i, bytes) in Event::all(agent, gets?)?.into_iter().enumerate() {
            require!(bytes.len() == lens[i], "the values are in another order");
            check("one of all", tag(me, to, round * 30 + i as u64), &bytes)?;
        }
    }
    Ok(())
}

/// A set that is dropped with operations under way: they go on.
pub(super) fn dropped<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    for i in 0..300u64 {
        let implicit = agent.implicit();
        let place = stage.open(to).add(i % 100 * 300)?;
        implicit.put(place, &made(tag(me, to, i % 100), 300))?;
    }
    for i in 0..100u64 {
        let place = stage.open(to).add(i * 300)?;
        let mut failure = None;
        stage.wait_for("a put whose set was dropped", || {
            match agent.get_owned(place, 300).and_then(|event| event.wait(agent)) {
                Ok(bytes) => check("", tag(me, to, i), &bytes).is_ok(),
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        })?;
        failure.map_or(Ok(()), Err)?;
    }
    Ok(())
}
