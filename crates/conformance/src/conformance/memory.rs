//! Segments that grow while the job runs, or say that they do not.

use super::handlers::Count;
use super::pattern::{check, made, tag};
use super::{Failure, Stage, SuiteMode, require};
use gasworks::GlobalPtr;

/// How much a segment grows in a step: no multiple of any page.
const STEP: u64 = 100_001;

/// How much room to grow the suite needs beyond its segment, so that growth is tried and not its refusal alone.
pub const ROOM: u64 = 4 << 20;

/// Every rank grows, tells its neighbour by a message, and the neighbour uses what is new at once: by put, get and Long.
pub(super) fn growth<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (job, agent, me, next) = (stage.job, &stage.agent, stage.rank(), stage.next());
    let (old, room) = (job.segment().len(), job.segment_max());
    require!(
        job.grow(0)? == old && job.grow(old)? == old,
        "a segment that is long enough changed its length"
    );
    let refused = job.grow(room + 1).err().map(|error| error.to_string()).unwrap_or_default();
    let words = [&*format!("segment of rank {me}"), &*(room + 1).to_string()];
    require!(words.iter().all(|word| refused.contains(word)), "growth beyond the room: {refused:?}");
    require!(job.segment().len() == old, "growth was refused and changed the length");
    if room == old {
        return Ok(());
    }
    let (start, before) = (old, agent.segment(next)?.len());
    require!(
        agent.put(GlobalPtr::new(next, before), &[1u8]).is_err(),
        "a put beyond the end was not refused"
    );
    // Before anybody can have sent anything.
    let (told, landed) = (stage.state.get(Count::AfterPut), stage.state.get(Count::Stormed));
    agent.barrier()?;
    for round in 0..3u64 {
        let old = job.segment().len();
        let new = job.grow(old + STEP)?;
        require!(new >= old + STEP && new == job.segment().len(), "{old} + {STEP} became {new}");
        // By now the previous rank may know of it and be at work in it, but not in these bytes.
        let fresh = job.segment().at::<u8>(new - 8, 8)?;
        require!(agent.local(fresh, 8)?.get(3) == 0, "new bytes are not zero");
        agent.request_short(stage.previous(), stage.handlers.after_put, 0)?;
        stage
            .wait_for("word of the neighbour's growth", || stage.state.get(Count::AfterPut) > told + round)?;
        let place = GlobalPtr::<u8>::new(next, before + round * STEP);
        let bytes = made(tag(me, next, 40 + round), STEP as usize - 8);
        agent.put(place, &bytes)?;
        let mut back = vec![0; bytes.len()];
        agent.get(place, &mut back)?;
        require!(back == bytes, "new bytes differ from what was put there");
        let long = made(tag(me, next, 50 + round), 1000);
        agent.request_long(stage.handlers.gust_long, [0, 1000, 0], &long, place.add(STEP / 2)?)?;
        stage.wait_for("a long to new bytes", || stage.state.get(Count::Stormed) > landed + round)?;
        agent.barrier()?;
        let mut here = vec![0; STEP as usize - 8];
        let own = job.segment().at::<u8>(start + round * STEP, STEP - 8)?;
        agent.local(own, here.len())?.read(0, &mut here);
        let from = stage.previous();
        let (first, rest) = here.split_at((STEP / 2) as usize);
        check("a long to new bytes", tag(from, me, 50 + round), &rest[..1000])?;
        let expected = made(tag(from, me, 40 + round), here.len());
        require!(first == &expected[..first.len()], "a put before the long");
        require!(rest[1000..] == expected[first.len() + 1000..], "a put behind the long");
        agent.barrier()?;
    }
    let end = agent.segment(next)?.len();
    let beyond = agent.get(GlobalPtr::new(next, end - 1), &mut [0u8; 2]);
    require!(beyond.is_err(), "a get beyond the new end was not refused");
    let (local, global) = (job.max_local_segment(), job.max_global_segment());
    require!(global <= local && local > 0, "the largest segments are {local} here and {global} everywhere");
    Ok(())
}
