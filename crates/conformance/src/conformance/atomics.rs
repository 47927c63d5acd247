//! Atomic operations: what each does, that none is lost, and what is refused; by whoever does them in this job.

use super::wrong::refused;
use super::{Failure, Stage, SuiteMode, require};
use gasworks::AtomicOp::{self, Add, And, CompareSwap, Dec, Get, Inc, Max, Min, Mult, Or, Set, Sub, Xor};
use gasworks::{Atomic, AtomicOps as Ops, Atomics, Categories, Event, Favor, GlobalPtr};

/// An operation, its bit and its fetching partner's, what the value was and what it is then.
type Row<T> = (Ops, Ops, AtomicOp<T>, T, T);

/// Bytes around the value that is changed.
const GUARD: u8 = 0x5a;

fn arithmetic<T>(by: T, old: T, becomes: [T; 7]) -> Vec<Row<T>>
where
    T: Atomic,
{
    let [sum, difference, product, smaller, greater, more, less] = becomes;
    vec![
        (Ops::ADD, Ops::FADD, Add(by), old, sum),
        (Ops::SUB, Ops::FSUB, Sub(by), old, difference),
        (Ops::MULT, Ops::FMULT, Mult(by), old, product),
        (Ops::MIN, Ops::FMIN, Min(by), old, smaller),
        (Ops::MAX, Ops::FMAX, Max(by), old, greater),
        (Ops::INC, Ops::FINC, Inc, old, more),
        (Ops::DEC, Ops::FDEC, Dec, old, less),
        (Ops::SET, Ops::SWAP, Set(by), old, by),
        (Ops::CAS, Ops::FCAS, CompareSwap { current: old, new: by }, old, by),
        (Ops::CAS, Ops::FCAS, CompareSwap { current: by, new: by }, old, old),
    ]
}

macro_rules! integers {
    ($of:ty) => {{
        let mut rows: Vec<Row<$of>> = Vec::new();
        let small: $of = 2;
        // With all bits but two: of those with a sign it is below 0.
        let large: $of = !5;
        for (old, by) in [(small, large), (large, small), (0, large), (<$of>::MAX, small)] {
            rows.extend(arithmetic(
                by,
                old,
                [
                    old.wrapping_add(by),
                    old.wrapping_sub(by),
                    old.wrapping_mul(by),
                    old.min(by),
                    old.max(by),
                    old.wrapping_add(1),
                    old.wrapping_sub(1),
                ],
            ));
            rows.push((Ops::AND, Ops::FAND, And(by), old, old & by));
            rows.push((Ops::OR, Ops::FOR, Or(by), old, old | by));
            rows.push((Ops::XOR, Ops::FXOR, Xor(by), old, old ^ by));
        }
        rows
    }};
}

macro_rules! floats {
    ($of:ty) => {{
        let mut rows: Vec<Row<$of>> = Vec::new();
        for (old, by) in [(2.5, -4.25), (-4.25, 2.5), (0.0, 1e30)] as [($of, $of); 3] {
            let becomes = [old + by, old - by, old * by, old.min(by), old.max(by), old + 1.0, old - 1.0];
            rows.extend(arithmetic(by, old, becomes));
        }
        rows
    }};
}

/// Each operation on each type, alone and among all, whoever does it: what the value is then, and what comes back.
pub(super) fn every_operation<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    on_type::<M, i32>(stage, &integers!(i32), Ops::all())?;
    on_type::<M, u32>(stage, &integers!(u32), Ops::all())?;
    on_type::<M, i64>(stage, &integers!(i64), Ops::all())?;
    on_type::<M, u64>(stage, &integers!(u64), Ops::all())?;
    on_type::<M, f32>(stage, &floats!(f32), Ops::all() - Ops::BITWISE)?;
    on_type::<M, f64>(stage, &floats!(f64), Ops::all() - Ops::BITWISE)
}

fn on_type<M: SuiteMode, T: Atomic + std::fmt::Debug + PartialEq>(
    stage: &Stage<'_, M>,
    rows: &[Row<T>],
    all: Ops,
) -> Result<(), Failure> {
    let (agent, width, ranks) = (&stage.agent, size_of::<T>(), stage.ranks());
    // Itself, a neighbour, and one far away: all ways that there are to anybody.
    let mut peers = [0, 1, ranks / 2].map(|step| (stage.rank() + step) % ranks).to_vec();
    peers.dedup();
    for peer in peers {
        // Its own place at each peer, with guards beside it.
        let zone = stage.open(peer).add(64 * u64::from(stage.rank()))?;
        agent.put(zone, &[GUARD; 64])?;
        let place: GlobalPtr<T> = zone.add(24)?.cast();
        // Hardly a network has all of them, so among all it is done as if it were to be near.
        let among_all = agent.atomics::<T>(all, Favor::Far)?;
        for &(plain, fetching, change, old, becomes) in rows {
            let alone = |favor| agent.atomics::<T>(plain | fetching | Ops::SET | Ops::GET, favor);
            let ways = [&alone(Favor::Far)?, &alone(Favor::Near)?, &among_all];
            for (number, atomics) in ways.into_iter().enumerate() {
                // By each who may do it, once.
                if ways[..number].iter().all(|before| before.by() != atomics.by()) {
                    does(stage, atomics, place, (change, old, becomes))?;
                }
            }
        }
        let mut around = [0; 64];
        agent.get(zone, &mut around)?;
        around[24..24 + width].fill(GUARD);
        require!(around == [GUARD; 64], "an operation on {width} bytes changed others: {around:x?}");
    }
    Ok(())
}

fn does<M: SuiteMode, T: Atomic + std::fmt::Debug + PartialEq>(
    stage: &Stage<'_, M>,
    atomics: &Atomics<'_, M, T>,
    place: GlobalPtr<T>,
    (change, old, becomes): (AtomicOp<T>, T, T),
) -> Result<(), Failure> {
    let (agent, by) = (&stage.agent, atomics.by());
    atomics.apply(agent, place, Set(old))?;
    atomics.apply(agent, place, change)?;
    let found = atomics.load(agent, place)?;
    require!(found == becomes, "{old:?} by {change:?} became {found:?} in place of {becomes:?} (by {by:?})");
    atomics.apply(agent, place, Set(old))?;
    let was = atomics.fetch(agent, place, change)?;
    require!(was == old, "{change:?} brought {was:?} in place of {old:?} (by {by:?})");
    let found = atomics.load(agent, place)?;
    require!(found == becomes, "{old:?} by fetching {change:?} became {found:?} (by {by:?})");
    Ok(())
}

/// How often each rank counts in each way.
const TIMES: u64 = 24;

/// All ranks count at once, in every way to start an operation: none is lost, none is done twice, and no two fetch the same.
pub(super) fn none_is_lost<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, ranks) = (&stage.agent, u64::from(stage.ranks()));
    let (at_zero, home) = (stage.open(0), stage.rank() == 0);
    let all = 4 * TIMES * ranks;
    for (round, favor) in [Favor::Far, Favor::Near].into_iter().enumerate() {
        let counter: GlobalPtr<u64> = at_zero.cast();
        let seen: GlobalPtr<u32> = at_zero.add(64)?.cast();
        if home {
            agent.local(at_zero, 64 + 4 * all as usize)?.write(0, &vec![0u8; 64 + 4 * all as usize]);
        }
        agent.barrier()?;
        let counting = agent.atomics::<u64>(Ops::FADD | Ops::FINC | Ops::INC | Ops::GET, favor)?;
        let marking = agent.atomics::<u32>(Ops::ADD | Ops::INC, favor)?;
        let mut mine = Vec::new();
        let mut events: Vec<Event<'_, M, u64>> = Vec::new();
        for _ in 0..TIMES {
            mine.push(counting.fetch(agent, counter, Inc)?);
            events.push(counting.start_fetch(agent, counter, Add(1))?);
            events.push(counting.start_fetch(agent, counter, Inc)?);
        }
        for _ in 0..TIMES {
            mine.push(agent.block_on(counting.start_fetch(agent, counter, Inc)?)?);
        }
        mine.extend(Event::all(agent, events)?);
        require!(counting.load(agent, counter)? >= mine.len() as u64, "it counts less than this rank has");
        // Where each number was fetched, one mark.
        let implicit = agent.implicit();
        for number in &mine {
            require!(*number < all, "{number} was fetched, and no more than {all} were counted");
            implicit.atomic(&marking, seen.add(*number)?, if number % 2 == 0 { Inc } else { Add(1) })?;
        }
        implicit.wait(agent, Categories::UPDATE)?;
        agent.barrier()?;
        if home {
            let total = counting.load(agent, counter)?;
            require!(total == all, "{total} in place of {all} were counted (round {round})");
        }
        agent.barrier()?;
        let mut marks = vec![0u32; all as usize];
        agent.get(seen, &mut marks)?;
        let wrong = marks.iter().position(|mark| *mark != 1);
        require!(wrong.is_none(), "numbers fetched other than once, the first is {wrong:?} (round {round})");
        agent.barrier()?;
    }
    Ok(())
}

/// All ranks change one value by comparing it: each change is seen by the next.
pub(super) fn compared<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, ranks) = (&stage.agent, u64::from(stage.ranks()));
    let last = stage.open(stage.ranks() - 1);
    for favor in [Favor::Far, Favor::Near] {
        let value: GlobalPtr<u64> = last.add(128)?.cast();
        if stage.rank() == stage.ranks() - 1 {
            agent.put_value(value, 0)?;
        }
        agent.barrier()?;
        let atomics = agent.atomics::<u64>(Ops::FCAS | Ops::GET, favor)?;
        let (mut current, mut done) = (atomics.load(agent, value)?, 0);
        while done < TIMES / 2 {
            let was = atomics.fetch(agent, value, CompareSwap { current, new: current + 3 })?;
            done += u64::from(was == current);
            current = if was == current { current + 3 } else { was };
            // Others come to it, too.
            agent.poll()?;
        }
        agent.barrier()?;
        let found = atomics.load(agent, value)?;
        require!(found == 3 * ranks * (TIMES / 2), "{found} after all ranks have changed it");
        agent.barrier()?;
    }
    Ok(())
}

/// What is in a set is waited for by what it counts as; what was dropped is done all the same.
pub(super) fn in_sets<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to) = (&stage.agent, stage.next());
    for favor in [Favor::Far, Favor::Near] {
        let atomics = agent.atomics::<i64>(Ops::SET | Ops::ADD | Ops::FADD | Ops::GET, favor)?;
        let place = |i: u64| Ok::<_, Failure>(stage.open(to).add(64 + 8 * i)?.cast::<i64>());
        let implicit = agent.implicit();
        for i in 0..16 {
            implicit.atomic(&atomics, place(i)?, Set(i as i64))?;
        }
        implicit.wait(agent, Categories::PUT)?;
        for i in 0..16 {
            implicit.atomic(&atomics, place(i)?, Add(-100))?;
        }
        require!(implicit.test(Categories::PUT)?, "sums are no puts");
        implicit.wait(agent, Categories::UPDATE)?;
        let (started, region) = agent.region(|region| {
            for i in 0..16 {
                region.atomic(&atomics, place(i)?, Add(7))?;
            }
            Ok(16)
        })?;
        region.wait(agent)?;
        for i in 0..started {
            let found = atomics.load(agent, place(i)?)?;
            require!(found == i as i64 - 93, "value {i} is {found}");
        }
        refused("a load in a set", implicit.atomic(&atomics, place(0)?, Get), &["load"])?;
        drop(atomics.start_fetch(agent, place(0)?, Add(93))?);
        drop(atomics.start(agent, place(1)?, Add(92))?);
        stage.wait_for("operations whose events were dropped", || {
            place(0).is_ok_and(|first| atomics.load(agent, first).is_ok_and(|value| value == 0))
                && place(1).is_ok_and(|second| atomics.load(agent, second).is_ok_and(|value| value == 0))
        })?;
        agent.barrier()?;
    }
    Ok(())
}

/// What cannot be done is refused with the reason, and nothing is changed.
pub(super) fn refusals<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to, ranks) = (&stage.agent, stage.next(), stage.ranks());
    let len = agent.segment(to)?.len();
    for favor in [Favor::Far, Favor::Near] {
        refused("bits of a number", agent.atomics::<f64>(Ops::ADD | Ops::XOR, favor), &["XOR", "F64"])?;
        let adds = agent.atomics::<u64>(Ops::ADD | Ops::FADD, favor)?;
        let narrow = agent.atomics::<u32>(Ops::ADD, favor)?;
        let place: GlobalPtr<u64> = stage.open(to).cast();
        let other = ["SET", "ADD", "U64"];
        refused("another operation", adds.apply(agent, place, Set(1)), &other)?;
        refused("another operation", adds.start(agent, place, Set(1)), &other)?;
        refused("another operation", agent.implicit().atomic(&adds, place, Set(1)), &other)?;
        refused("what is not to be fetched", narrow.fetch(agent, place.cast(), Add(1)), &["FADD"])?;
        refused("a load", adds.load(agent, place), &["GET"])?;
        for askew in [1, 2, 4, 7] {
            let place = GlobalPtr::<u64>::new(to, place.offset() + askew);
            let words = ["8 bytes", &*format!("rank {to}"), &*place.offset().to_string()];
            refused("an odd place", adds.apply(agent, place, Add(1)), &words)?;
            refused("an odd place", adds.start_fetch(agent, place, Add(1)), &words)?;
        }
        refused("an odd place", narrow.apply(agent, GlobalPtr::new(to, 2), Inc), &["INC"])?;
        refused("an odd place", narrow.apply(agent, GlobalPtr::new(to, 2), Add(1)), &["4 bytes"])?;
        for offset in [len, len + 8, u64::MAX - 7] {
            let words = ["outside the segment", &*format!("rank {to}"), &*offset.to_string()];
            let place = GlobalPtr::new(to, offset);
            refused("a place beyond the end", adds.apply(agent, place, Add(1)), &words)?;
            refused("a place beyond the end", adds.start_fetch(agent, place, Add(1)), &words)?;
        }
        for nobody in [ranks, u32::MAX] {
            let words = [&*format!("rank {nobody}"), &*format!("{ranks} ranks")];
            refused("a place of nobody's", adds.fetch(agent, GlobalPtr::new(nobody, 0), Add(1)), &words)?;
        }
    }
    Ok(())
}

/// Threads of all ranks count at once.
pub(super) fn threads(stage: &Stage<'_, gasworks::Par>) -> Result<(), Failure> {
    const THREADS: u64 = 3;
    let (agent, ranks) = (&stage.agent, u64::from(stage.ranks()));
    let counter: GlobalPtr<u64> = stage.open(0).cast();
    for favor in [Favor::Far, Favor::Near] {
        if stage.rank() == 0 {
            agent.put_value(counter, 0)?;
        }
        agent.barrier()?;
        let job = stage.job;
        let count = || -> Result<(), Failure> {
            let agent = job.agent()?;
            let counting = agent.atomics::<u64>(Ops::FADD | Ops::GET, favor)?;
            let mut last = None;
            for _ in 0..TIMES {
                let was = counting.fetch(&agent, counter, Add(1))?;
                require!(last < Some(was), "{was} was fetched after {last:?}");
                last = Some(was);
                counting.start_fetch(&agent, counter, Add(1))?.wait(&agent)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(Failure::Wrong("a thread panicked".into())))
            })
        })?;
        agent.barrier()?;
        let found = agent.atomics::<u64>(Ops::FADD | Ops::GET, favor)?.load(agent, counter)?;
        require!(found == 2 * TIMES * THREADS * ranks, "{found} after {THREADS} threads of each rank");
        agent.barrier()?;
    }
    Ok(())
}
