//! Regions that are created while the job runs: used like segments, and wrong in as many ways as a place can be.

use super::handlers::Count;
use super::pattern::{check, made, tag};
use super::{Failure, Stage, SuiteMode, require};
use gasworks::{AtomicOp, AtomicOps, Favor, GlobalPtr, Part, Region, Rights};

/// The length of a rank's part where all have the same.
pub(super) const LEN: u64 = 100_000;

pub(super) fn refused<T>(
    what: &str,
    result: Result<T, gasworks::Error>,
    words: &[&str],
) -> Result<(), Failure> {
    let text = result.err().map(|error| error.to_string());
    let Some(text) = text else { return Err(Failure::Wrong(format!("{what} was not refused"))) };
    require!(words.iter().all(|word| text.contains(word)), "{what}: {text:?} does not say {words:?}");
    Ok(())
}

/// Puts to the neighbour's part in each way that there is, and looks whether the bytes are there.
pub(super) fn exchange<M: SuiteMode>(
    stage: &Stage<'_, M>,
    region: &Region<'_, M>,
    which: u64,
) -> Result<(), Failure> {
    let (agent, me, next, previous) = (&stage.agent, stage.rank(), stage.next(), stage.previous());
    let bytes = |part: u64| made(tag(me, next, which + part), 4096);
    let place = |part: u64| region.at::<u8>(next, part * 5000 + 1, 4096);
    agent.put(place(0)?, &bytes(0))?;
    let scoped = bytes(1);
    agent.scope(|scope| scope.put(place(1)?, &scoped).map(drop))?;
    agent.put_owned(place(2)?, bytes(2))?.wait(agent)?;
    agent.put_copy(place(3)?, &bytes(3))?.wait(agent)?;
    let landed = stage.state.get(Count::Stormed);
    agent.barrier()?;
    agent.request_long(stage.handlers.gust_long, [0, 4096, 0], &bytes(4), place(4)?)?;
    stage.wait_for("a long to a region", || stage.state.get(Count::Stormed) > landed)?;
    let word = region.at::<u64>(next, 40_000, 1)?;
    agent.put_value(word, 7u64)?;
    let add = agent.atomics::<u64>(AtomicOps::FADD | AtomicOps::GET, Favor::Near)?;
    let was = add.fetch(agent, word, AtomicOp::Add(u64::from(me) + 1))?;
    require!(was == 7, "a word of a region was {was} instead of 7");
    agent.barrier()?;
    for part in 0..5 {
        let here = region.at::<u8>(me, part * 5000 + 1, 4096)?;
        let mut found = vec![0; 4096];
        agent.local(here, 4096)?.read(0, &mut found);
        check("what was put to a region", tag(previous, me, which + part), &found)?;
        let mut back = vec![0; 4096];
        agent.get(place(part)?, &mut back)?;
        check("what was got from a region", tag(me, next, which + part), &back)?;
    }
    require!(agent.get_value::<u64>(word)? == 8 + u64::from(me), "a word of a region after an addition");
    agent.barrier()?;
    Ok(())
}

/// Puts, gets, values, Longs and atomic operations; its bytes are zero in the beginning, and no others change.
pub(super) fn used<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    for round in 0..3 {
        let region = stage.job.create_region(LEN)?;
        require!(region.len(stage.next())? == LEN, "a region of another length");
        let own = stage.agent.local(region.at::<u8>(stage.rank(), 0, LEN)?, LEN as usize)?;
        let mut found = vec![1; LEN as usize];
        own.read(0, &mut found);
        require!(found.iter().all(|&byte| byte == 0), "a new region is not zero in round {round}");
        stage.agent.barrier()?;
        exchange(stage, &region, 100 * round)?;
        region.withdraw()?;
    }
    Ok(())
}

/// By an agent on the region: its pointers are offsets there, also where nothing is mapped or not all is allowed.
pub(super) fn agents<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, next, previous) = (&stage.agent, stage.rank(), stage.next(), stage.previous());
    let parts = [
        Part::new(LEN),
        Part::new(LEN).with_rights(Rights::all()),
        Part::of(vec![0u64; LEN as usize / 8].into_boxed_slice()),
    ];
    for (round, part) in (0..).zip(parts) {
        let region = stage.job.create_region_of(part)?;
        let within = agent.on_region(&region)?;
        let there = within.segment(next)?;
        require!((there.len(), within.rank(), within.ranks()) == (LEN, me, stage.ranks()), "{there:?}");
        // What the segment has at these offsets stays as it is.
        let outside = agent.local(stage.open(me), 64)?;
        let mut before = [0; 64];
        outside.read(0, &mut before);
        let bytes = |part: u64| made(tag(me, next, 100 * round + part), 4096);
        let place = |part: u64| there.at::<u8>(part * 5000 + 1, 4096);
        within.put(place(0)?, &bytes(0))?;
        let scoped = bytes(1);
        within.scope(|scope| scope.put(place(1)?, &scoped).map(drop))?;
        within.put_owned(place(2)?, bytes(2))?.wait(&within)?;
        let implicit = within.implicit();
        implicit.put(place(3)?, &bytes(3))?;
        implicit.wait(&within, gasworks::Categories::all())?;
        let landed = stage.state.get(Count::Stormed);
        within.barrier()?;
        within.request_long(stage.handlers.gust_long, [0, 4096, 0], &bytes(4), place(4)?)?;
        within
            .request_long_owned(stage.handlers.gust_long, [0, 4096, 0], bytes(5), place(5)?)?
            .wait(&within)?;
        let mut room = within.prepare_long(place(6)?, 4096..=4096);
        if let Ok(room) = &mut room {
            room.write(0, &bytes(6))?;
        }
        // Where nothing is mapped there is room for a Medium's bytes alone, if for as many.
        match room {
            Ok(room) => room.commit(stage.handlers.gust_long, [0, 4096, 0], 4096)?,
            Err(_) => {
                let (bytes, handler) = (bytes(6), stage.handlers.gust_long);
                within.prepare_long_from(place(6)?, &bytes, 4096)?.commit(handler, [0, 4096, 0], 4096)?;
            }
        }
        stage.wait_for("longs to a region", || stage.state.get(Count::Stormed) >= landed + 3)?;
        let word = there.at::<u64>(40_000, 1)?;
        within.put_value(word, 7u64)?;
        let add = within.atomics::<u64>(AtomicOps::FADD | AtomicOps::GET, Favor::Near)?;
        let was = add.fetch(&within, word, AtomicOp::Add(u64::from(me) + 1))?;
        require!(was == 7, "a word of a region was {was} instead of 7");
        let full = region.at::<u64>(next, 40_000, 1)?;
        require!(
            [within.get_value(word)?, within.get_value(full)?] == [8 + u64::from(me); 2],
            "a word of a region"
        );
        within.barrier()?;
        for part in 0..7 {
            let mut found = vec![0; 4096];
            within.local(place(part)?.on(me), 4096)?.read(0, &mut found);
            check("what was put on a region's agent", tag(previous, me, 100 * round + part), &found)?;
            within.get(place(part)?, &mut found)?;
            check("what was got on a region's agent", tag(me, next, 100 * round + part), &found)?;
            agent.get(region.at(next, part * 5000 + 1, 4096)?, &mut found)?;
            check("what was got from a region", tag(me, next, 100 * round + part), &found)?;
        }
        let mut after = [0; 64];
        outside.read(0, &mut after);
        require!(before == after, "the segment has changed");
        let name = region.handle(next).to_string();
        let end = GlobalPtr::<u8>::new(next, LEN);
        refused("a put beyond the region", within.put_value(end, 1), &[&name, "are outside"])?;
        refused("a get beyond the region", within.get(end, &mut [0]), &[&name, "are outside"])?;
        let beyond = GlobalPtr::<u8>::new(next, gasworks::RegionId::MAX_LEN);
        refused("a put beyond all regions", within.put_value(beyond, 1), &[&name, "are outside"])?;
        let nobody = place(0)?.on(stage.ranks());
        refused("a put to nobody", within.put_value(nobody, 1), &["out of range"])?;
        stage.agent.barrier()?;
        region.withdraw()?;
        let words = [&*name, "was withdrawn"];
        refused("a put to what was withdrawn", within.put_value(place(0)?, 1), &words)?;
        refused("a get from what was withdrawn", within.get_value(place(0)?), &words)?;
        refused("an addition to what was withdrawn", add.fetch(&within, word, AtomicOp::Add(1)), &words)?;
    }
    Ok(())
}

/// Ten at once, of which every other is withdrawn before the rest.
pub(super) fn many<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let create = |number: u64| stage.job.create_region(LEN + 4096 * number);
    let mut regions = (0..10).map(create).collect::<Result<Vec<_>, _>>()?;
    for (number, region) in (0..).zip(&regions) {
        exchange(stage, region, 1000 + 100 * number)?;
    }
    for number in (0..10).rev().step_by(2) {
        regions.remove(number).withdraw()?;
    }
    regions.push(create(20)?);
    for (number, region) in (0..).zip(&regions) {
        exchange(stage, region, 3000 + 100 * number)?;
    }
    regions.into_iter().try_for_each(Region::withdraw)?;
    Ok(())
}

/// Each rank's part has another length, and that of the last has none.
pub(super) fn lengths<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, stage.rank(), stage.ranks());
    let len = |rank: u32| u64::from(ranks - 1 - rank) * 4097;
    let region = stage.job.create_region(len(me))?;
    for to in stage.peers() {
        let len = len(to);
        require!(region.len(to)? == len, "the part of rank {to} has {} bytes, not {len}", region.len(to)?);
        require!(region.at::<u8>(to, 0, len + 1).is_err(), "a place beyond the part of rank {to}");
        let start = region.at::<u8>(to, 0, 0)?;
        agent.put(start, &[])?;
        if len == 0 {
            let name = region.handle(to).to_string();
            refused("a put to a region of no bytes", agent.put(start, &[1]), &[&name, "has no bytes"])?;
            continue;
        }
        // The last bytes of each part, a byte of each rank's.
        let last = region.at::<u8>(to, len - u64::from(ranks) + u64::from(me), 1)?;
        agent.put_value(last, me as u8)?;
        require!(agent.get_value::<u8>(last)? == me as u8, "the end of the part of rank {to}");
    }
    let nobody = region.at::<u8>(ranks, 0, 0);
    refused("a place of nobody", nobody, &[&format!("rank {ranks}"), "out of range"])?;
    agent.barrier()?;
    Ok(region.withdraw()?)
}

/// Each mistake is an error on the rank that makes it, and nothing is lost by it.
pub(super) fn wrong<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, next, handlers) = (&stage.agent, stage.next(), stage.handlers);
    let region = stage.job.create_region(LEN)?;
    let name = region.handle(next).to_string();
    let all = |place: GlobalPtr<u8>, words: &[&str]| {
        refused("a put", agent.put(place, &[1, 2]), words)?;
        refused("a get", agent.get(place, &mut [1, 2]), words)?;
        refused("a put of a copy", agent.put_copy(place, &[1, 2]), words)?;
        refused("an owned get", agent.get_owned(place, 2), words)?;
        refused("a put in a scope", agent.scope(|scope| scope.put(place, &[1, 2]).map(drop)), words)?;
        refused("a long", agent.request_long(handlers.n1.long, [1], &[1, 2], place), words)?;
        let add = agent.atomics::<u32>(AtomicOps::FADD, Favor::Near)?;
        refused("an atomic operation", add.fetch(agent, place.cast(), AtomicOp::Add(1)), words)
    };
    let end = region.at::<u8>(next, LEN, 0)?;
    all(end, &[&name, "are outside", &LEN.to_string()])?;
    all(region.at(next, LEN - 1, 1)?, &[&name, "are outside"])?;
    let id = region.handle(next);
    let at = |place: Option<u64>| GlobalPtr::<u8>::new(next, place.unwrap_or(0));
    let later =
        gasworks::RegionHandle { id: gasworks::RegionId { generation: id.id.generation + 1, ..id.id }, ..id };
    all(at(later.id.place(0)), &[&later.to_string(), "does not exist"])?;
    let never = gasworks::RegionId { index: gasworks::RegionId::LAST, generation: 0 };
    all(at(never.place(0)), &["does not exist"])?;
    let ranks = stage.ranks();
    all(end.on(ranks), &[&format!("rank {ranks} is out of range")])?;
    let far = region.at::<u8>(next, 0, 0)?.add(1 << 40);
    require!(far.is_err(), "a pointer to another region was given: {far:?}");
    let other = region.at::<u8>(next, 0, 1)?;
    if next != stage.rank() {
        require!(agent.local(other, 1).is_err(), "another rank's part was lent");
    }
    // What is right goes on.
    exchange(stage, &region, 5000)?;
    Ok(region.withdraw()?)
}

/// What a rank does not allow is refused at the others, and what it allows is not.
pub(super) fn rights<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, ranks) = (&stage.agent, stage.rank(), stage.ranks());
    let of = |rank: u32| [Rights::READ, Rights::WRITE, Rights::ATOMIC, Rights::all()][rank as usize % 4];
    let region = stage.job.create_region_with(4096, of(me))?;
    for to in stage.peers() {
        let (has, name) = (of(to), region.handle(to).to_string());
        let place = region.at::<u64>(to, 8 * u64::from(me), 1)?;
        let add = agent.atomics::<u64>(AtomicOps::FADD, Favor::Near)?;
        let rows = [
            (Rights::WRITE, "WRITE", agent.put(place, &[1])),
            (Rights::READ, "READ", agent.get(place, &mut [0])),
            (Rights::ATOMIC, "ATOMIC", add.fetch(agent, place, AtomicOp::Add(1)).map(drop)),
        ];
        for (right, word, result) in rows {
            match has.contains(right) {
                true => result?,
                false => refused(word, result, &[&name, "does not allow it", word])?,
            }
        }
    }
    agent.barrier()?;
    // The owner may do everything in place.
    let own = agent.local(region.at::<u64>(me, 0, u64::from(ranks))?, ranks as usize)?;
    let (wrote, added) = (of(me).contains(Rights::WRITE), of(me).contains(Rights::ATOMIC));
    let wanted = u64::from(wrote) + u64::from(added);
    require!(own.get(me as usize) == wanted, "{} instead of {wanted}", own.get(me as usize));
    agent.barrier()?;
    Ok(region.withdraw()?)
}

/// While ranks put to it a region is withdrawn: what was started is done, what comes later is an error, and what is still borrowed of it
/// is nobody's. The next region of the same column is zero.
pub(super) fn withdrawn<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, next) = (&stage.agent, stage.rank(), stage.next());
    let mut before = None;
    for round in 0..4u64 {
        let region = stage.job.create_region(LEN)?;
        let handle = region.handle(next);
        require!(before != Some(handle), "two regions are called {handle}");
        let place = region.at::<u8>(next, 0, LEN)?;
        let own = agent.local(region.at::<u8>(me, 0, LEN)?, LEN as usize)?;
        require!(own.get(17) == 0 && own.get(LEN as usize - 1) == 0, "a new region is not zero");
        stage.agent.barrier()?;
        let bytes = made(tag(me, next, 7000 + round), LEN as usize);
        let events = [0, 1, 2].map(|_| agent.put_owned(place, bytes.clone()));
        region.withdraw()?;
        for event in events {
            event?.wait(agent)?;
        }
        let words = [&*handle.to_string(), "was withdrawn"];
        refused("a put to what was withdrawn", agent.put(place, &[1]), &words)?;
        refused("a get from what was withdrawn", agent.get(place, &mut [1]), &words)?;
        refused("a view of what was withdrawn", agent.local(place.on(me), 1), &["not inside"])?;
        // Whoever has it may still use it: it is nobody else's.
        own.set(17, 99);
        require!(own.get(17) == 99, "what was borrowed cannot be used");
        before = Some(handle);
        stage.agent.barrier()?;
    }
    Ok(())
}
