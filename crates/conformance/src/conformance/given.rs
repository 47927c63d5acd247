//! Regions of memory that the ranks give: used like others, and wrong in as many ways as memory can be.
//!
//! # Invariants
//! - given.1: memory that is named by its address is a vector of atomics, which is dropped once its region was withdrawn, and kept for good if
//!   the case fails before.

use super::handlers::Count;
use super::pattern::{check, made, tag, value};
use super::regions::{LEN, exchange, refused};
use super::{Failure, LANDING, Stage, SuiteMode, require};
use gasworks::{AtomicOp, AtomicOps, Categories, Favor, Part, Region, Rights};
use gasworks_core::flow;
use gasworks_os::{process, remote::Remote};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Words of the memory that is given.
const WORDS: usize = LEN as usize / 8;

/// Memory of this process that the library does not own.
fn lent() -> ManuallyDrop<Vec<AtomicU64>> {
    ManuallyDrop::new((0..WORDS).map(|_| AtomicU64::new(0)).collect())
}

fn part_at(memory: &ManuallyDrop<Vec<AtomicU64>>) -> Part {
    // SAFETY: given.1: atomics, dropped when the region was withdrawn, by whoever has no call under way and nothing borrowed then.
    unsafe { Part::at(memory.as_ptr().cast_mut().cast(), size_of_val(&memory[..])) }
}

/// Puts and gets all of the neighbour's part at once, in each way.
fn whole<M: SuiteMode>(stage: &Stage<'_, M>, region: &Region<'_, M>, which: u64) -> Result<(), Failure> {
    let (agent, me, next, previous) = (&stage.agent, stage.rank(), stage.next(), stage.previous());
    let place = region.at::<u8>(next, 0, LEN)?;
    let own = agent.local(region.at::<u8>(me, 0, LEN)?, LEN as usize)?;
    let (mut found, mut back) = (vec![0; LEN as usize], vec![0; LEN as usize]);
    let implicit = agent.implicit();
    let landed = stage.state.get(Count::Stormed);
    for way in 0..6 {
        let bytes = made(tag(me, next, which + way), LEN as usize);
        let arrived = landed + way.saturating_sub(3);
        let gust = [0, LEN as u32, 0];
        match way {
            0 => agent.put(place, &bytes)?,
            1 => drop(agent.put_owned(place, bytes)?.wait(agent)?),
            2 => {
                implicit.put(place, &bytes)?;
                implicit.wait(agent, Categories::PUT)?;
            }
            3 => agent.request_long(stage.handlers.gust_long, gust, &bytes, place)?,
            4 => {
                agent.request_long_owned(stage.handlers.gust_long, gust, bytes, place)?.wait(agent)?;
            }
            _ => {
                let room = agent.prepare_long_from(place, &bytes, LEN as usize)?;
                room.commit(stage.handlers.gust_long, gust, LEN as usize)?;
            }
        }
        if way > 2 {
            stage.wait_for("a long of a whole region", || stage.state.get(Count::Stormed) > arrived)?;
        }
        agent.barrier()?;
        own.read(0, &mut found);
        check("what was put to given memory", tag(previous, me, which + way), &found)?;
        agent.get(place, &mut back)?;
        check("what was got from given memory", tag(me, next, which + way), &back)?;
        let got = agent.get_owned(place, LEN as usize)?.wait(agent)?;
        check("what was got from given memory", tag(me, next, which + way), &got)?;
        agent.barrier()?;
    }
    Ok(())
}

/// Memory of each sort beside each other: owned by the region as bytes or as words, at an address, and the library's.
pub(super) fn used<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, next) = (&stage.agent, stage.rank(), stage.next());
    for round in 0..4u64 {
        let memory = lent();
        let sort = |rank: u32| (u64::from(rank) + round) % 4;
        let part = match sort(me) {
            0 => Part::of(vec![me as u8 + 1; LEN as usize].into_boxed_slice()),
            1 => Part::of(vec![u64::from(me) + 1; WORDS].into_boxed_slice()),
            2 => {
                memory[WORDS - 1].store(u64::from(me) + 1, Ordering::Relaxed);
                part_at(&memory)
            }
            _ => Part::new(LEN),
        };
        let region = stage.job.create_region_of(part)?;
        // What was there before is there still.
        let last = agent.get_value::<u64>(region.at(next, LEN - 8, 1)?)?;
        let wanted = match sort(next) {
            0 => u64::from_ne_bytes([next as u8 + 1; 8]),
            1 | 2 => u64::from(next) + 1,
            _ => 0,
        };
        require!(last == wanted, "the last word given by rank {next} is {last:#x} instead of {wanted:#x}");
        agent.barrier()?;
        exchange(stage, &region, 20_000 + 1000 * round)?;
        whole(stage, &region, 20_500 + 1000 * round)?;
        region.withdraw()?;
        if sort(me) == 2 {
            let word = memory[5000].load(Ordering::Relaxed);
            require!(word != 0, "what was put is not in the memory that was given");
        }
        drop(ManuallyDrop::into_inner(memory));
    }
    Ok(())
}

/// Memory of any length: a network may get whole words only, and the last of them is not all there.
pub(super) fn odd<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, next) = (&stage.agent, stage.rank(), stage.next());
    for len in [1, 2, 3, 63, 1001, 70_007u64] {
        let memory = lent();
        // SAFETY: given.1: these bytes are in `memory`, which is dropped below, once the region was withdrawn.
        let part = unsafe { Part::at(memory.as_ptr().cast_mut().cast(), len as usize) };
        let region = stage.job.create_region_of(part)?;
        let (place, bytes) = (region.at::<u8>(next, 0, len)?, made(tag(me, next, len), len as usize));
        agent.put(place, &bytes)?;
        let (mut all, mut last) = (vec![0; len as usize], [0]);
        agent.get(place, &mut all)?;
        check("what was got from memory of an odd length", tag(me, next, len), &all)?;
        agent.get(region.at(next, len - 1, 1)?, &mut last)?;
        require!(Some(&last[0]) == bytes.last(), "the last of {len} bytes is {}", last[0]);
        let got = agent.get_owned(place, len as usize)?.wait(agent)?;
        require!(got == bytes, "{len} bytes were not got whole");
        require!(region.at::<u8>(next, len, 1).is_err(), "a byte beyond the last one");
        agent.barrier()?;
        region.withdraw()?;
        drop(ManuallyDrop::into_inner(memory));
    }
    Ok(())
}

/// Whether the ranks of a job without a network reach the memory that the next one gave by the system, or by messages; which it was is as
/// the setting and the system want it.
fn by_process<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<bool, Failure> {
    let (agent, next, own) = (&stage.agent, stage.next(), std::process::id());
    let region = stage.job.create_region_of(Part::of(Box::new([own])))?;
    let pid = agent.get_value::<u32>(region.at(next, 0, 1)?)?;
    agent.barrier()?;
    region.withdraw()?;
    let engine = stage.job.engine();
    // The ranks of SimNet are of one process.
    let wanted = !engine.has_network()
        && pid != own
        && flow::process_vm().map_err(gasworks::Error::from)?
        && Remote::open(pid as i32).and(process::open(pid as i32).map(drop)).is_ok();
    let peek = engine.peek();
    let found = peek.by_process.contains(&next);
    require!(found == wanted, "by process_vm: {found}, and it was to be {wanted}: {:?}", peek.by_message);
    Ok(found)
}

/// Its owner takes no part: each rank puts and gets while the next one sleeps, and polls nothing.
pub(super) fn asleep<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    if !by_process(stage)? {
        return Ok(());
    }
    let (agent, me, next, previous) = (&stage.agent, stage.rank(), stage.next(), stage.previous());
    let memory = lent();
    memory[0].store(u64::from(me) + 1, Ordering::Relaxed);
    let region = stage.job.create_region_of(part_at(&memory))?;
    let events = (1..4).map(|at| {
        let bytes = vec![u64::from(me) * 4 + at; 1000];
        agent.put_owned(region.at(next, 8000 * at, 1000)?, bytes)
    });
    events.collect::<Result<Vec<_>, _>>()?.into_iter().try_for_each(|mut event| {
        require!(event.test()?, "what a sleeping rank was put is not done at once");
        Ok::<_, Failure>(())
    })?;
    let first = agent.get_value::<u64>(region.at(next, 0, 1)?)?;
    require!(first == u64::from(next) + 1, "got {first} of rank {next}");
    // The last of it: who sees this sees all.
    agent.put_value(region.at::<u64>(next, 32_000, 1)?, 1)?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while memory[4000].load(Ordering::Acquire) == 0 {
        require!(Instant::now() < deadline, "rank {previous} could not put while this one slept");
        std::thread::sleep(Duration::from_millis(1));
    }
    for at in 1..4 {
        let found = memory[1000 * at as usize + 999].load(Ordering::Relaxed);
        require!(found == u64::from(previous) * 4 + at, "rank {previous} put {found}");
    }
    agent.barrier()?;
    region.withdraw()?;
    drop(ManuallyDrop::into_inner(memory));
    Ok(())
}

/// Longs to it that are replied to by Longs to it, which have no more bytes than a Medium where they go by messages.
pub(super) fn longs<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me, handler) = (&stage.agent, stage.rank(), stage.handlers.n1.long);
    let large = stage.job.engine().has_network() || by_process(stage)?;
    // Each rank has a slot in the part of each other: half for its requests, half for replies.
    let slots = 2 * stage.ranks() as usize * LANDING as usize;
    let memory = vec![0u64; (slots + agent.max_medium()) / 8 + 1].into_boxed_slice();
    let region = stage.job.create_region_of(Part::of(memory))?;
    let mut due = stage.state.get(Count::Answered);
    let lens = [1, agent.max_medium() / 2, agent.max_medium(), agent.max_medium() + 1];
    let lens = &lens[..if large { 4 } else { 3 }];
    for to in stage.peers() {
        for &len in lens {
            let tags = (tag(me, to, 1), tag(to, me, 1));
            let landing = region.at::<u8>(to, 2 * LANDING * u64::from(me), len as u64)?;
            let bytes = made(tags.0, len);
            if len == 1 {
                // Room for more than a Medium, of which less is sent.
                let bytes = [bytes, vec![0; agent.max_medium()]].concat();
                let room = agent.prepare_long_from(landing, &bytes, bytes.len())?;
                room.commit::<[u32; 1]>(handler, value(tags.0), len)?;
            } else {
                agent.request_long::<[u32; 1]>(handler, value(tags.0), &bytes, landing)?;
            }
            due += 1;
            stage.answered(to, due, "the reply to a long to given memory")?;
            let replied = region.at::<u8>(me, LANDING * u64::from(2 * to + 1), len as u64)?;
            let mut found = vec![0; len];
            agent.local(replied, len)?.read(0, &mut found);
            check("a long reply to given memory", tags.1, &found)?;
            agent.get(landing, &mut found)?;
            check("a long to given memory", tags.0, &found)?;
        }
    }
    agent.barrier()?;
    Ok(region.withdraw()?)
}

/// Some give memory, some ask for it, and some do neither; none at all is a part like others.
pub(super) fn mixed<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let len = |rank: u32| [24u64, 0, 4096, 0][rank as usize % 4];
    let part = match me % 4 {
        0 => Part::of(Box::new([7u64; 3])),
        1 => Part::of::<u8>(Box::new([])),
        2 => Part::new(len(me)),
        _ => Part::new(0),
    };
    let region = stage.job.create_region_of(part)?;
    for to in stage.peers() {
        require!(region.len(to)? == len(to), "the part of rank {to} has {} bytes", region.len(to)?);
        let (start, name) = (region.at::<u8>(to, 0, 0)?, region.handle(to).to_string());
        agent.put(start, &[])?;
        if len(to) == 0 {
            refused("a put to no memory", agent.put(start, &[1]), &[&name, "has no bytes"])?;
            continue;
        }
        let add = agent.atomics::<u64>(AtomicOps::FADD, Favor::Near)?;
        let was = add.fetch(agent, region.at(to, 16, 1)?, AtomicOp::Add(1))?;
        let first = if to % 4 == 0 { 7 } else { 0 };
        require!((first..first + u64::from(stage.ranks())).contains(&was), "a word given was {was}");
        refused(
            "a put beyond the end",
            agent.put(start, &vec![0; len(to) as usize + 1]),
            &[&name, "outside"],
        )?;
    }
    agent.barrier()?;
    Ok(region.withdraw()?)
}

/// Of teams: those of even and odd ranks create as many regions as they like, apart, beside regions of all; and give the same memory to all then.
pub(super) fn teams<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let everyone = stage.job.everyone();
    let half = everyone
        .split(agent, Some(me % 2), 0)?
        .ok_or_else(|| Failure::Wrong("a rank with a colour has no team".into()))?;
    let is_all = half.size() == stage.ranks();
    let memory = lent();
    let first = stage.job.create_region(LEN)?;
    // The even ranks have more regions than the odd ones, so that each half calls its next one by a name of its own.
    let further =
        (0..2 - me % 2).map(|_| stage.job.create_region_on(&half, Part::of(vec![me; 4].into_boxed_slice())));
    let further = further.collect::<Result<Vec<_>, _>>()?;
    let region = stage.job.create_region_on(&half, part_at(&memory))?;
    for to in half.iter() {
        let (word, given) = (region.at(to, 8 * u64::from(me), 1)?, further[0].at::<u32>(to, 12, 1)?);
        agent.put_value(word, u64::from(me) + 100)?;
        let found = (agent.get_value::<u64>(word)?, agent.get_value::<u32>(given)?);
        require!(found == (u64::from(me) + 100, to), "found {found:?} at rank {to}");
    }
    let other = (0..stage.ranks()).find(|rank| rank % 2 != me % 2);
    if let Some(other) = other {
        require!(region.len(other)? == 0, "rank {other} is no member and has a part");
        let name = region.handle(other).to_string();
        refused(
            "a put to who is no member",
            agent.put(region.at::<u8>(other, 0, 0)?, &[1]),
            &[&name, "has no bytes"],
        )?;
    }
    if !is_all {
        let refused_new = stage.job.create_region_on(&half, Part::new(8));
        refused("new memory of a team", refused_new, &["new memory is for regions of everyone"])?;
    }
    // To all then, and by another name than either half would have it.
    let again = stage.job.create_region_of(part_at(&memory))?;
    let (next, previous) = (stage.next(), stage.previous());
    agent.put_value(again.at(next, LEN - 8, 1)?, u64::from(me) + 7)?;
    agent.barrier()?;
    let found = (memory[WORDS - 1].load(Ordering::Relaxed), memory[me as usize].load(Ordering::Relaxed));
    require!(found == (u64::from(previous) + 7, u64::from(me) + 100), "found {found:?} in what was given");
    agent.barrier()?;
    // With other rights, or as a part of it, it is given already.
    let (rights, name) = (Rights::READ, region.handle(me).to_string());
    refused(
        "other rights",
        stage.job.create_region_on(&half, part_at(&memory).with_rights(rights)),
        &[&name, "overlaps"],
    )?;
    again.withdraw()?;
    require!(
        agent.get_value::<u64>(region.at(me, 8 * u64::from(me), 1)?)? == u64::from(me) + 100,
        "it is withdrawn"
    );
    region.withdraw()?;
    further.into_iter().try_for_each(Region::withdraw)?;
    first.withdraw()?;
    drop(ManuallyDrop::into_inner(memory));
    Ok(())
}

/// What cannot be a part is an error on all ranks, which name the one that gave it; and what is right goes on.
pub(super) fn wrong<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, me) = (&stage.agent, stage.rank());
    let last = stage.ranks() - 1;
    let memory = lent();
    let given = stage.job.create_region_of(part_at(&memory))?;
    let new = stage.job.create_region(LEN)?;
    let own =
        |region: &Region<'_, M>| Ok::<_, Failure>(agent.local(region.at::<u64>(me, 8, 1)?, 1)?.as_ptr());
    let segment = agent.local(stage.open(me), 8)?.as_ptr();
    let rows: [(*mut u8, usize, &[&str]); 6] = [
        (std::ptr::null_mut(), 16, &["16 bytes at 0x0", "no memory at address 0"]),
        (std::ptr::without_provenance_mut(usize::MAX - 7), 16, &["16 bytes at", "wraps around"]),
        (segment.wrapping_add(4), 16, &["overlaps the segment"]),
        (own(&given)?.cast(), 8, &["overlaps", &given.handle(me).id.to_string()]),
        (own(&given)?.cast::<u8>().wrapping_sub(16), 9, &["overlaps", &given.handle(me).id.to_string()]),
        (own(&new)?.cast(), 8, &["overlaps", &new.handle(me).id.to_string()]),
    ];
    for (start, len, words) in rows {
        let part = match me == last {
            // SAFETY: given.1: what can be used of it is of a vector of atomics, or the library's own, and it is refused.
            true => unsafe { Part::at(start, len) },
            false => Part::of(vec![1u8; 64].into_boxed_slice()),
        };
        let created = stage.job.create_region_of(part);
        match me == last {
            true => {
                refused("memory that cannot be given", created, &[words, &["cannot be a region"]].concat())?
            }
            false => {
                let who = format!("rank {last}");
                refused("memory that another rank cannot give", created, &[&who, words[0]])?;
            }
        }
    }
    // Too much of it is an error of all ranks alike, before anything is made of it.
    let huge = stage.job.create_region(gasworks::RegionId::MAX_LEN + 1);
    refused("a region that is too large", huge, &["too large"])?;
    exchange(stage, &given, 30_000)?;
    exchange(stage, &new, 31_000)?;
    given.withdraw()?;
    // It is nobody's, and may be given again.
    let again = stage.job.create_region_of(part_at(&memory))?;
    exchange(stage, &again, 32_000)?;
    again.withdraw()?;
    new.withdraw()?;
    drop(ManuallyDrop::into_inner(memory));
    Ok(())
}

/// Rights, what was withdrawn, and words that are aligned in the region alone.
pub(super) fn refusals<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, next) = (&stage.agent, stage.next());
    let memory = lent();
    let part = Part::of(vec![3u32; 64].into_boxed_slice()).with_rights(Rights::READ);
    let region = stage.job.create_region_of(part)?;
    let (place, name) = (region.at::<u8>(next, 0, 256)?, region.handle(next).to_string());
    agent.get(place, &mut [0; 256])?;
    refused("a put to what may be read", agent.put(place, &[1]), &[&name, "does not allow it", "WRITE"])?;
    let add = agent.atomics::<u32>(AtomicOps::FADD, Favor::Near)?;
    let denied = add.fetch(agent, place.cast(), AtomicOp::Add(1));
    refused("an addition to what may be read", denied, &[&name, "does not allow it", "ATOMIC"])?;
    agent.barrier()?;
    let own = agent.local(region.at::<u32>(stage.rank(), 0, 64)?, 64)?;
    region.withdraw()?;
    // The region owned it, and whoever has a view of it may still use it.
    own.set(63, 99);
    require!((own.get(0), own.get(63)) == (3, 99), "what was borrowed cannot be used");
    refused("a get from what was withdrawn", agent.get(place, &mut [0]), &[&name, "was withdrawn"])?;
    // From the second byte on.
    // SAFETY: given.1: these bytes are in `memory`, which is dropped below, once the region was withdrawn.
    let odd = unsafe { Part::at(memory.as_ptr().cast::<u8>().cast_mut().wrapping_add(1), 64) };
    let created = stage.job.create_region_of(odd);
    if stage.job.engine().has_network() {
        refused("memory at an odd address, for a network", created, &["multiple of 8"])?;
        drop(ManuallyDrop::into_inner(memory));
        return Ok(());
    }
    let region = created?;
    let unaligned = add.fetch(agent, region.at::<u32>(next, 4, 1)?, AtomicOp::Add(1));
    refused("an addition to a word that is not aligned", unaligned, &[&format!("rank {next}"), "multiple"])?;
    require!(add.fetch(agent, region.at(next, 3, 1)?, AtomicOp::Add(1)).is_ok(), "an aligned word");
    agent.put_value(region.at::<u64>(next, 8, 1)?, 5)?;
    require!(agent.get_value::<u64>(region.at(next, 8, 1)?)? == 5, "a value that is not aligned");
    agent.barrier()?;
    region.withdraw()?;
    drop(ManuallyDrop::into_inner(memory));
    Ok(())
}
