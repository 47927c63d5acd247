//! Wrong addresses: one clear error each, and the job goes on.

use super::{Failure, Stage, SuiteMode, require};
use gasworks::{Error, GlobalPtr};

pub(super) fn refused<T>(what: &str, result: Result<T, Error>, words: &[&str]) -> Result<(), Failure> {
    match result {
        Ok(_) => Err(Failure::Wrong(format!("{what} was not refused"))),
        Err(error) => {
            let said = error.to_string();
            require!(
                words.iter().all(|word| said.contains(word)),
                "{what} was refused without {words:?}: {said:?}"
            );
            Ok(())
        }
    }
}

/// A rank that does not exist.
pub(super) fn rank<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, handlers) = (&stage.agent, stage.handlers);
    for nobody in [stage.ranks(), u32::MAX] {
        let words = [&*format!("rank {nobody}"), &*format!("{} ranks", stage.ranks())];
        let place = GlobalPtr::<u8>::new(nobody, 0);
        refused("a short to nobody", agent.request_short(nobody, handlers.plain, 1), &words)?;
        refused("a short to nobody", agent.try_request_short(nobody, handlers.plain, 1), &words)?;
        refused("a medium to nobody", agent.request_medium(nobody, handlers.n1.medium, [1], &[1]), &words)?;
        refused("a long to nobody", agent.request_long(handlers.n1.long, [1], &[1], place), &words)?;
        refused("a put to nobody", agent.put(place, &[1]), &words)?;
        refused("a get from nobody", agent.get(place, &mut [1]), &words)?;
        refused("a put to nobody", agent.put_copy(place, &[1]), &words)?;
        refused("a put to nobody", agent.put_owned(place, vec![1]), &words)?;
        refused("a get from nobody", agent.get_owned(place, 1), &words)?;
        refused("a put to nobody", agent.scope(|scope| scope.put(place, &[1])), &words)?;
        refused("the segment of nobody", agent.segment(nobody), &words)?;
    }
    Ok(())
}

/// Bytes that are not in the segment.
pub(super) fn range<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to, handlers) = (&stage.agent, stage.next(), stage.handlers);
    let len = agent.segment(to)?.len();
    for offset in [len - 1, len, len + 1, u64::MAX] {
        let place = GlobalPtr::<u8>::new(to, offset);
        let words = ["outside the segment", &*format!("rank {to}"), &*offset.to_string()];
        refused("a put beyond the end", agent.put(place, &[1, 2]), &words)?;
        refused("a get beyond the end", agent.get(place, &mut [1, 2]), &words)?;
        refused("a put beyond the end", agent.put_copy(place, &[1, 2]), &words)?;
        refused("a get beyond the end", agent.get_owned(place, 2), &words)?;
        refused("a long beyond the end", agent.request_long(handlers.n1.long, [1], &[1, 2], place), &words)?;
    }
    let far = GlobalPtr::<u64>::new(to, u64::MAX - 8);
    require!(far.add(u64::MAX).is_err() && far.add(2).is_err(), "a pointer went round the end of the world");
    require!(agent.segment(to)?.at::<u64>(len - 8, 2).is_err(), "a typed pointer beyond the end was given");
    require!(agent.segment(to)?.at::<u64>(len - 8, 1).is_ok(), "the last eight bytes were refused");
    Ok(())
}

/// Another rank's memory as if it were local.
pub(super) fn local<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    if stage.ranks() > 1 {
        refused("another's memory as local", agent.local(stage.open(stage.next()), 1), &["not local"])?;
    }
    let end = GlobalPtr::<u64>::new(me, agent.segment(me)?.len() - 8);
    refused("local memory beyond the end", agent.local(end, 2), &["not inside the segment"])?;
    refused("local memory beyond all ends", agent.local(end, usize::MAX), &["not inside the segment"])?;
    require!(agent.local(end, 1)?.len() == 1, "the last value");
    Ok(())
}

/// More memory than the segment has.
pub(super) fn alloc<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let len = stage.job.segment().len();
    let words = ["segment of rank", "are left"];
    refused("an allocation of all and one more", stage.job.alloc::<u8>(len + 1), &words)?;
    refused("an allocation beyond all numbers", stage.job.alloc::<u64>(u64::MAX), &words)?;
    let one = stage.job.alloc::<u8>(1)?;
    let two = stage.job.alloc::<u64>(1)?;
    require!(
        one.offset() % 64 == 0 && two.offset() == one.offset() + 64,
        "allocations at {one:?} and {two:?}"
    );
    Ok(())
}
