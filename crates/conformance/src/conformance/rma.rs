//! Put and get: every alignment, every size that matters, local memory of every kind, and nothing beside it.
//!
//! # Invariants
//! - rma.1: the raw forms are used on this rank's own segment alone, which stays mapped while the job is open, on a part that
//!   nobody else uses, and the event is waited for before that part is touched again.

use super::pattern::{check, fill, made, tag};
use super::{Failure, OPEN, Stage, SuiteMode, require};
use gasworks::GlobalPtr;

const LENS: [usize; 15] = [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 511, 512, 4095, 4096, (1 << 20) + 3];
const GUARD: u8 = 0xA5;

/// What the first `len` bytes of a rank's own zone hold before a case: so a byte beside the target of a put is seen.
fn clear<M: SuiteMode>(stage: &Stage<'_, M>, len: usize) -> Result<(), Failure> {
    stage.agent.local(stage.open(stage.rank()), len)?.write(0, &vec![GUARD; len]);
    Ok(stage.agent.barrier()?)
}

/// Whether the zone holds `len` bytes of `tag` at `offset`, and guards around them.
fn inspect<M: SuiteMode>(
    stage: &Stage<'_, M>,
    of: u32,
    offset: usize,
    tag: u64,
    len: usize,
) -> Result<(), Failure> {
    // The guards near by are what a wrong edge would hit.
    let (from, to) = (offset.saturating_sub(256), (offset + len + 256).min(OPEN as usize));
    let mut bytes = vec![0; to - from];
    stage.agent.get(stage.open(of).add(from as u64)?, &mut bytes)?;
    let inner = &bytes[offset - from..offset - from + len];
    check("what was put", tag, inner)?;
    let beside = bytes[..offset - from].iter().chain(&bytes[offset - from + len..]).position(|&b| b != GUARD);
    require!(beside.is_none(), "a put of {len} bytes at {offset} changed bytes beside them");
    Ok(())
}

/// Blocking put and get at every alignment within a cache line, in every size.
pub(super) fn blocking<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    clear(stage, OPEN as usize)?;
    let (me, to, agent) = (stage.rank(), stage.next(), &stage.agent);
    for len in LENS {
        let offsets: &[usize] =
            if len > 4096 { &[0, 1, 67] } else { &[0, 1, 2, 3, 4, 5, 7, 8, 13, 63, 64, 129] };
        for &offset in offsets {
            for shift in [0, 1, 3] {
                let tag = tag(me, to, (len * 1000 + offset * 8 + shift) as u64);
                let mut local = vec![GUARD; len + 8];
                fill(tag, &mut local[shift..shift + len]);
                let place = stage.open(to).add(offset as u64)?;
                agent.put(place, &local[shift..shift + len])?;
                inspect(stage, to, offset, tag, len)?;
                let mut back = vec![GUARD; len + 8];
                agent.get(place, &mut back[shift..shift + len])?;
                require!(back == local, "a get of {len} bytes at {offset} to alignment {shift} differs");
                // The guards go back, for the next one.
                agent.put(place, &vec![GUARD; len])?;
            }
        }
    }
    Ok(())
}

/// Local addresses on the stack, on the heap, in static memory, and in this rank's own segment.
pub(super) fn local_memory<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    clear(stage, 4096)?;
    static WORDS: [u64; 128] = [0x0123_4567_89AB_CDEF; 128];
    let (me, to, agent) = (stage.rank(), stage.next(), &stage.agent);
    let place: GlobalPtr<u64> = stage.open(to).cast();

    let mut stack = [0u64; 128];
    fill(tag(me, to, 1), bytemuck::bytes_of_mut(&mut stack));
    agent.put(place, &stack)?;
    let mut heap = vec![0u64; 128];
    agent.get(place, &mut heap)?;
    require!(heap[..] == stack[..], "from the stack and to the heap");

    agent.put(place, &WORDS)?;
    let mut back = [0u64; 128];
    agent.get(place, &mut back)?;
    require!(back == WORDS, "from static memory and to the stack");

    let mine = stage.landing_at(me, 1).cast::<u64>();
    let view = agent.local(mine, 128)?;
    fill(tag(me, to, 2), bytemuck::cast_slice_mut(&mut heap));
    view.write(0, &heap);
    // SAFETY: rma.1: `view` is the 128 words at `mine`, a part of this rank's segment that is written again only when the event is done.
    unsafe { agent.put_raw(place, view.as_ptr(), 128)? }.wait(agent)?;
    view.write(0, &[0; 128]);
    // SAFETY: rma.1: `view` is the 128 words at `mine`, which no rank puts to, and is read only when the event is done.
    unsafe { agent.get_raw(place, view.as_ptr(), 128)? }.wait(agent)?;
    let mut back = vec![0u64; 128];
    view.read(0, &mut back);
    require!(back == heap, "from and to this rank's own segment");
    Ok(())
}

/// Single values of all widths.
pub(super) fn values<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    clear(stage, 4096)?;
    let (agent, to) = (&stage.agent, stage.next());
    for offset in 0..20u64 {
        let place = stage.open(to).add(offset * 16)?;
        agent.put_value(place, 0x5Au8)?;
        require!(agent.get_value(place)? == 0x5A, "a byte at {offset}");
        agent.put_value(place.cast::<u16>(), 0xBEEFu16)?;
        require!(agent.get_value(place.cast::<u16>())? == 0xBEEF, "two bytes at {offset}");
        agent.put_value(place.add(1)?.cast::<u64>(), u64::MAX - offset)?;
        require!(
            agent.get_value(place.add(1)?.cast::<u64>())? == u64::MAX - offset,
            "eight bytes at {offset}+1"
        );
        require!(agent.get_value(place)? == 0xEF, "the byte before");
        agent.put_value(place.cast::<[f64; 2]>(), [1.5, -2.5])?;
        require!(agent.get_value(place.cast::<[f64; 2]>())? == [1.5, -2.5], "two floats at {offset}");
    }
    Ok(())
}

/// The first and the last bytes of a segment, and none at its end.
pub(super) fn edges<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to) = (&stage.agent, stage.next());
    let len = agent.segment(to)?.len();
    let end = GlobalPtr::<u8>::new(to, len);
    agent.put(end, &[])?;
    agent.get(end, &mut [])?;
    for bytes in 1..=17u64 {
        let place = GlobalPtr::<u8>::new(to, len - bytes);
        let there = made(tag(stage.rank(), to, bytes), bytes as usize);
        agent.put(place, &there)?;
        let mut back = vec![0; bytes as usize];
        agent.get(place, &mut back)?;
        require!(back == there, "the last {bytes} bytes of the segment");
    }
    let first = GlobalPtr::<u8>::new(to, 0);
    let mut kept = [0u8; 3];
    agent.get(first, &mut kept)?;
    agent.put(first, &kept)?;
    Ok(())
}

/// Many borrowed buffers at once: all are done when the scope ends, also when its body fails.
pub(super) fn scope<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    clear(stage, OPEN as usize)?;
    let (agent, me, to) = (&stage.agent, stage.rank(), stage.next());
    let sources: Vec<Vec<u8>> = (0..40).map(|i| made(tag(me, to, i), 1 + 331 * i as usize)).collect();
    let place = |i: usize| stage.open(to).add(16_000 * i as u64);
    agent
        .scope(|scope| sources.iter().enumerate().try_for_each(|(i, source)| scope.put(place(i)?, source)))?;
    let mut targets: Vec<Vec<u8>> = sources.iter().map(|source| vec![0; source.len()]).collect();
    agent.scope(|scope| {
        targets.iter_mut().enumerate().try_for_each(|(i, target)| scope.get(place(i)?, target))
    })?;
    require!(targets == sources, "what a scope has put and got differs");

    targets.iter_mut().for_each(|target| target.fill(0));
    let failed = agent.scope(|scope| {
        for (i, target) in targets.iter_mut().enumerate() {
            scope.get(place(i)?, target)?;
        }
        Err::<(), _>(gasworks::Error::Program("the body fails".into()))
    });
    require!(failed.is_err_and(|e| e.to_string() == "the body fails"), "the body's failure was lost");
    require!(targets == sources, "a scope whose body failed ended before its operations");
    Ok(())
}

/// Every rank puts to every other at once, each to its own place; then everybody reads everything.
pub(super) fn all_at_once<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let len = 10_007;
    stage.agent.barrier()?;
    let mut events = Vec::new();
    for to in stage.peers() {
        events.push(agent.put_owned(stage.landing_at(to, 0), made(tag(me, to, 9), len))?);
    }
    for event in events {
        event.wait(agent)?;
    }
    agent.barrier()?;
    for of in stage.peers() {
        // Who put there is at the same distance on the other side of the ring from `of` as `of` is from here.
        let mut bytes = vec![0; len];
        agent.get(stage.landing_at(of, 0), &mut bytes)?;
        check("what this rank has put", tag(me, of, 9), &bytes)?;
    }
    Ok(())
}
