//! Teams: who is in them, what is done by their members' numbers, and what is refused.
//!
//! # Invariants
//! - teams.1: local memory of a raw form is a vector of the function that uses it, which waits before it touches that again or returns.

use super::handlers::Count;
use super::pattern::{check, made, tag, value};
use super::wrong::refused;
use super::{Failure, LANDING, Stage, SuiteMode, require};
use gasworks::{
    Agent, AtomicOp, AtomicOps, Categories, Error, Favor, GlobalPtr, LocalCompletion, Name, Par, Team,
};

/// Whether a team has just these members, of which this rank is one.
fn is_made_of<M: SuiteMode>(stage: &Stage<'_, M>, team: &Team<'_, M>, ranks: &[u32]) -> Result<(), Failure> {
    let found: Vec<u32> = team.iter().collect();
    require!(found == ranks && team.size() as usize == ranks.len(), "a team of {found:?}, not of {ranks:?}");
    require!(team.rank_of(team.member()) == Some(stage.rank()), "this rank is not member {}", team.member());
    for rank in 0..stage.ranks() + 1 {
        let member = ranks.iter().position(|&of| of == rank).map(|member| member as u32);
        require!(team.member_of(rank) == member, "rank {rank} of {ranks:?} is {:?}", team.member_of(rank));
    }
    require!(team.rank_of(team.size()).is_none(), "a member beyond the last");
    let agent = stage.agent.on(team);
    require!((agent.rank(), agent.ranks()) == (team.member(), team.size()), "the agent has other numbers");
    // They agree on the number, which is not everyone's.
    let number = stage.open(stage.rank()).cast::<u64>();
    agent.barrier()?;
    stage.agent.put_value(number, team.number())?;
    agent.barrier()?;
    for &rank in ranks {
        let theirs = stage.agent.get_value(number.on(rank))?;
        require!(theirs == team.number(), "team {:#x} is {theirs:#x} on rank {rank}", team.number());
    }
    require!(team.number() != stage.job.everyone().number(), "a new team has the number of everyone");
    Ok(agent.barrier()?)
}

fn some<M: SuiteMode>(team: Result<Option<Team<'_, M>>, Error>) -> Result<Team<'_, M>, Failure> {
    team?.ok_or_else(|| Failure::Wrong("a member has no team".into()))
}

/// By parity, by keys that go down, within a team of a team; one rank alone; without a colour.
pub(super) fn splits<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone, me, ranks) = (&stage.agent, stage.job.everyone(), stage.rank(), stage.ranks());
    require!(everyone.iter().eq(0..ranks) && everyone.member() == me, "everyone is not everyone");
    let like = |rank: &u32| rank % 2 == me % 2;
    let half = some(everyone.split(agent, Some(me % 2), 0))?;
    is_made_of(stage, &half, &(0..ranks).filter(like).collect::<Vec<_>>())?;
    let down = some(everyone.split(agent, Some(7), -i64::from(me)))?;
    is_made_of(stage, &down, &(0..ranks).rev().collect::<Vec<_>>())?;
    // Equal keys leave the order of the old team.
    let again = some(down.split(agent, Some(me % 2), i64::MIN))?;
    is_made_of(stage, &again, &(0..ranks).rev().filter(like).collect::<Vec<_>>())?;
    let alone = some(again.split(agent, Some(me), i64::MAX))?;
    is_made_of(stage, &alone, &[me])?;
    let alone = some(alone.split(agent, Some(u32::MAX), 0))?;
    is_made_of(stage, &alone, &[me])?;
    let none = everyone.split(agent, (me != 0).then_some(0), 0)?;
    require!(
        none.is_some() == (me != 0),
        "a rank without a colour has a team, or one with a colour has none"
    );
    if let Some(others) = none {
        is_made_of(stage, &others, &(1..ranks).collect::<Vec<_>>())?;
    }
    require!(half.split(agent, None, 0)?.is_none(), "a team of nobody");
    Ok(())
}

/// An order that follows no stride where there are three ranks: the odd ones going down, then the even ones.
fn shuffled(ranks: u32) -> Vec<u32> {
    (0..ranks).rev().filter(|rank| rank % 2 == 1).chain((0..ranks).filter(|rank| rank % 2 == 0)).collect()
}

/// By a stride, by a list, of one; of members of a team.
pub(super) fn created<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone, me, ranks) = (&stage.agent, stage.job.everyone(), stage.rank(), stage.ranks());
    let mut lists = vec![(0..ranks).step_by(2).collect(), (0..ranks).rev().step_by(3).collect::<Vec<_>>()];
    lists.extend([shuffled(ranks), vec![ranks - 1], (0..ranks).collect()]);
    for list in lists {
        let team = everyone.create(agent, list.iter().copied())?;
        require!(team.is_some() == list.contains(&me), "{list:?} is a team of others");
        let Some(team) = team else { continue };
        is_made_of(stage, &team, &list)?;
        let inner: Vec<u32> = (0..team.size()).rev().step_by(2).collect();
        if let Some(inner_team) = team.create(agent, inner.iter().copied())? {
            let ranks: Vec<u32> = inner.iter().map(|&member| list[member as usize]).collect();
            is_made_of(stage, &inner_team, &ranks)?;
        }
    }
    Ok(())
}

/// Every call that takes a rank, by the numbers of a team's members: of a list, of a stride, and of part of the ranks.
pub(super) fn operations<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (everyone, ranks) = (stage.job.everyone(), stage.ranks());
    for list in [shuffled(ranks), (0..ranks).rev().collect(), (ranks / 2..ranks).collect()] {
        if let Some(team) = everyone.create(&stage.agent, list)? {
            let agent = stage.agent.on(&team);
            for member in stage.peers().into_iter().filter(|&member| member < team.size()) {
                requests(stage, &agent, &team, member)?;
            }
            let next = (team.member() + 1) % team.size();
            agent.barrier()?;
            transfers(stage, &agent, next, team.rank_of(next).unwrap_or(u32::MAX))?;
            agent.barrier()?;
            atomics(stage, &agent, next)?;
            agent.barrier()?;
        }
        stage.agent.barrier()?;
    }
    Ok(())
}

/// Active messages to a member; the handlers check that they have come to its rank.
fn requests<M: SuiteMode>(
    stage: &Stage<'_, M>,
    agent: &Agent<'_, M>,
    team: &Team<'_, M>,
    member: u32,
) -> Result<(), Failure> {
    let (six, me) = (&stage.handlers.n1, stage.rank());
    let to = team.rank_of(member).unwrap_or(u32::MAX);
    let (tag, landing) = (tag(me, to, 1), stage.landing_at(to, 0).on(member));
    let mut due = stage.state.get(Count::Answered);
    let mut answered = |what: &str| {
        due += 1;
        stage.answered(to, due, what)
    };
    let (small, large) = (made(tag, 8), made(tag, LANDING as usize));
    agent.request_short(member, six.short, value(tag))?;
    answered("the reply to a member's short request")?;
    agent.request_medium(member, six.medium, value(tag), &small)?;
    answered("the reply to a member's medium request")?;
    agent.request_long(six.long, value(tag), &large, landing)?;
    answered("the reply to a member's long request")?;
    agent.request_long_owned(six.long, value(tag), large.clone(), landing)?.wait(agent)?;
    answered("the reply to a member's long request that owns its payload")?;
    agent.implicit().request_long_owned(six.long, value(tag), small.clone(), landing)?;
    answered("the reply to a member's long request in a set")?;
    let mut prepared = agent.prepare_medium(member, 8..=8)?;
    prepared.write(0, &small)?;
    prepared.commit(six.medium, value(tag), 8)?;
    answered("the reply to a member's prepared medium request")?;
    agent.prepare_medium_from(member, &small, 8)?.commit(six.medium, value(tag), 8)?;
    answered("the reply to a member's medium request from a buffer")?;
    let mut prepared = agent.prepare_long(landing, 8..=8)?;
    prepared.write(0, &small)?;
    prepared.commit(six.long, value(tag), 8)?;
    answered("the reply to a member's prepared long request")?;
    agent.prepare_long_from(landing, &small, 8)?.commit(six.long, value(tag), 8)?;
    answered("the reply to a member's long request from a buffer")
}

/// Puts and gets of every form, to and from a member.
fn transfers<M: SuiteMode>(
    stage: &Stage<'_, M>,
    agent: &Agent<'_, M>,
    next: u32,
    rank: u32,
) -> Result<(), Failure> {
    const PART: usize = 3000;
    let (me, whose) = (stage.rank(), "what a member was given");
    let part = |which: u64| stage.open(next).add(which * PART as u64);
    let bytes = |which: u64| made(tag(me, rank, 60 + which), PART);
    require!(agent.segment(next)?.rank() == next, "the segment of another");
    require!(agent.segment(next)?.len() == stage.agent.segment(rank)?.len(), "the segment of another rank");
    let mine = agent.local(stage.open(agent.rank()), PART)?;
    require!(mine.as_ptr() == stage.agent.local(stage.open(me), PART)?.as_ptr(), "this rank is elsewhere");
    agent.put(part(0)?, &bytes(0))?;
    agent.put_copy(part(1)?, &bytes(1))?.wait(agent)?;
    agent.put_owned(part(2)?, bytes(2))?.wait(agent)?;
    let scoped = bytes(3);
    agent.scope(|scope| scope.put(part(3)?, &scoped))?;
    let set = agent.implicit();
    set.put(part(4)?, &bytes(4))?;
    set.put_owned(part(5)?, bytes(5))?;
    set.wait(agent, Categories::all())?;
    agent.region(|set| set.put(part(6)?, &bytes(6)))?.1.wait(agent)?;
    let raw = bytes(7);
    // SAFETY: teams.1: `raw` has as many bytes, and is not changed before the wait behind the call.
    unsafe { agent.put_raw(part(7)?, raw.as_ptr(), PART)? }.wait(agent)?;
    let raw = bytes(8);
    // SAFETY: teams.1: by `LocalCompletion::Now` nobody reads `raw` any more when this returns.
    unsafe { set.put_raw(part(8)?, raw.as_ptr(), PART, LocalCompletion::Now)? };
    set.wait(agent, Categories::all())?;
    let word = stage.open(next).add(9 * PART as u64)?.cast::<u64>();
    agent.put_value(word, u64::from(me))?;
    require!(agent.get_value(word)? == u64::from(me), "a value that was put is not there");
    let there = stage.agent.get_value(word.on(rank))?;
    require!(there == u64::from(me), "the value is not at rank {rank}: {there}");
    for which in 0..9 {
        let (mut got, tag, from) = (vec![0; PART], tag(me, rank, 60 + which), part(which)?);
        agent.get(from, &mut got)?;
        check(whose, tag, &got)?;
        check(whose, tag, &agent.get_owned(from, PART)?.wait(agent)?)?;
        got.fill(0);
        agent.scope(|scope| scope.get(from, &mut got))?;
        check(whose, tag, &got)?;
        got.fill(0);
        // SAFETY: teams.1: `got` has as many bytes, and is looked at only after the wait behind the call.
        unsafe { agent.get_raw(from, got.as_mut_ptr(), PART)? }.wait(agent)?;
        check(whose, tag, &got)?;
        got.fill(0);
        // SAFETY: teams.1: `got` has as many bytes, and is looked at only after the wait for the set.
        unsafe { set.get_raw(from, got.as_mut_ptr(), PART)? };
        set.wait(agent, Categories::all())?;
        check(whose, tag, &got)?;
        // Rank and member are the same bytes.
        stage.agent.get(from.on(rank), &mut got)?;
        check(whose, tag, &got)?;
    }
    Ok(())
}

/// Counting at a member, in every form.
fn atomics<M: SuiteMode>(stage: &Stage<'_, M>, agent: &Agent<'_, M>, next: u32) -> Result<(), Failure> {
    let operations = AtomicOps::ADD | AtomicOps::FADD | AtomicOps::GET | AtomicOps::SET;
    let counting = agent.atomics::<u64>(operations, Favor::Far)?;
    let counter = stage.open(next).add(32 << 10)?.cast::<u64>();
    counting.apply(agent, counter, AtomicOp::Set(5))?;
    counting.apply(agent, counter, AtomicOp::Add(1))?;
    counting.start(agent, counter, AtomicOp::Add(1))?.wait(agent)?;
    let (set, before) = (agent.implicit(), counting.fetch(agent, counter, AtomicOp::Add(10))?);
    set.atomic(&counting, counter, AtomicOp::Add(100))?;
    set.wait(agent, Categories::all())?;
    let was = counting.start_fetch(agent, counter, AtomicOp::Add(1000))?.wait(agent)?;
    let now = counting.load(agent, counter)?;
    require!((before, was, now) == (7, 117, 1117), "counted {before}, {was}, {now} at member {next}");
    let words = ["member", "the team has"];
    let nobody = counter.on(agent.ranks());
    if agent.ranks() < stage.ranks() {
        refused("counting at no member", counting.apply(agent, nobody, AtomicOp::Add(1)), &words)?;
    }
    Ok(())
}

/// The barriers of two teams under way at once, begun and ended in different orders by different ranks; teams made by ranks that are in two.
pub(super) fn two_at_once<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone, me) = (&stage.agent, stage.job.everyone(), stage.rank());
    // Each rank is in a pair with the one before, and in one with the one behind.
    let pairs = [me / 2, me.div_ceil(2)].map(|color| some(everyone.split(agent, Some(color), 0)));
    let [first, second] = pairs;
    let (mut pairs, is_odd) = ([first?, second?], me % 2 == 1);
    if is_odd {
        pairs.swap(0, 1);
    }
    let [first, second] = &pairs;
    for round in 0..30u32 {
        let (one, other) = (agent.on(first), agent.on(second));
        // Whoever is with this rank in either does them the other way round.
        let begun = one.barrier_begin_as(Name::Is(round))?;
        let also = other.barrier_begin()?;
        if round % 2 == 0 {
            also.wait(agent)?;
            begun.wait(agent)?;
        } else {
            require!(begun.wait(agent)? == Name::Is(round), "a pair agrees on another name");
            while !also.test(agent)? {
                stage.turn()?;
            }
        }
    }
    for round in 0..3 {
        // In a chain of pairs the last rank is in one alone, so that somebody can always go on.
        for pair in &pairs {
            let down = some(pair.split(agent, Some(round), -i64::from(me)))?;
            is_made_of(stage, &down, &pair.iter().collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>())?;
        }
    }
    // A phase that nobody waits for ends all the same, by polls.
    let _ = agent.on(first).barrier_begin()?;
    drop(pairs);
    Ok(agent.barrier()?)
}

/// More teams at once than have barriers in shared memory, teams of teams among them, which their members drop in different orders, some with
/// a phase for which nobody has waited. The barrier of each is its own all the time.
pub(super) fn many<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, everyone, me) = (&stage.agent, stage.job.everyone(), stage.rank());
    let mine = stage.agent.local(stage.open(me).cast::<u64>(), 1)?;
    mine.set(0, 0);
    agent.barrier()?;
    let (mut kept, mut at) = (Vec::new(), 0);
    for round in 1..=70u64 {
        let (color, key) = ((tag(me, 0, round) >> 7) as u32 % 2, (tag(me, 1, round) >> 7) as i64 % 4);
        // Who is in one team with this rank is in the same ones it was made of.
        let of = if round % 4 == 1 { &everyone } else { kept.last().unwrap_or(&everyone) };
        let team = some(of.split(agent, Some(color), key))?;
        let (within, name) = (agent.on(&team), Name::Is(round as u32));
        mine.set(0, round);
        let begun = within.barrier_begin_as(name)?;
        require!(begun.wait(&within)? == name, "the members agree on another name in round {round}");
        for member in 0..team.size() {
            let there = within.get_value(stage.open(member).cast::<u64>())?;
            require!(there >= round, "member {member} is in round {there}, before the barrier of {round}");
        }
        if round % 4 == 0 {
            let _ = within.barrier_begin_as(Name::Mismatch)?;
        }
        kept.push(team);
        if round > 30 {
            // Never the last, of which the next may be made.
            at = (at + 1 + me as usize) % (kept.len() - 1);
            drop(kept.swap_remove(at));
            let last = kept.len() - 1;
            kept.swap(at, last);
        }
    }
    drop(kept);
    Ok(agent.barrier()?)
}

/// One thread begins the barrier of a team, and another waits for it; two of the rank's teams meanwhile.
pub(super) fn threads(stage: &Stage<'_, Par>) -> Result<(), Failure> {
    let (everyone, me, job) = (stage.job.everyone(), stage.rank(), stage.job);
    let teams = [some(everyone.split(&stage.agent, Some(0), -i64::from(me)))?, {
        some(everyone.split(&stage.agent, Some(me % 2), 0))?
    }];
    let panicked = |_| Failure::Wrong("a thread panicked".into());
    std::thread::scope(|scope| {
        let work = |team| -> Result<(), Failure> {
            for round in 0..60u32 {
                let phase = job.agent()?.on(team).barrier_begin_as(Name::Is(round))?;
                let waits = scope.spawn(move || -> Result<_, Failure> { Ok(phase.wait(&job.agent()?)?) });
                let agreed = waits.join().map_err(panicked)??;
                require!(agreed == Name::Is(round), "round {round} of a team agrees on {agreed:?}");
            }
            Ok(())
        };
        let started = teams.each_ref().map(|team| scope.spawn(move || work(team)));
        started.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })?;
    drop(teams);
    Ok(stage.agent.barrier()?)
}

/// As everyone's barrier: nobody leaves before the last has come, names are agreed on, and out of turn is refused.
pub(super) fn barriers<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (me, everyone) = (stage.rank(), stage.job.everyone());
    let team = some(everyone.split(&stage.agent, Some(me % 2), -i64::from(me)))?;
    let agent = stage.agent.on(&team);
    let (own, size) = (team.member(), team.size());
    let mine = stage.agent.local(stage.open(me).cast::<u64>(), 1)?;
    mine.set(0, 0);
    agent.barrier()?;
    for round in 1..=40u64 {
        if round % u64::from(size) == u64::from(own) {
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
        mine.set(0, round);
        let phase = agent.barrier_begin()?;
        refused("a barrier begun twice", agent.barrier_begin(), &["begun twice"])?;
        // Everyone's is another.
        if round == 20 {
            stage.agent.barrier()?;
        }
        phase.wait(&agent)?;
        for member in 0..size {
            let there = agent.get_value(stage.open(member).cast::<u64>())?;
            require!((round..=round + 1).contains(&there), "member {member} is in round {there} of {round}");
        }
    }
    for round in 0..10u32 {
        let odd = own == round % size;
        let (name, agreed) = match round % 4 {
            0 => (Name::Is(round), Some(Name::Is(round))),
            1 => (if odd { Name::Is(round) } else { Name::Any }, Some(Name::Is(round))),
            2 if size > 1 => (Name::Is(odd.into()), None),
            _ => (if odd { Name::Mismatch } else { Name::Is(1) }, None),
        };
        let found = match agent.barrier_as(name) {
            Err(Error::Mismatch) => None,
            other => Some(other?),
        };
        require!(found == agreed, "barrier {round} of a team by {name:?}: {found:?}");
    }
    Ok(())
}

/// Segments that grow are found by the numbers of a team that was made before.
pub(super) fn growth<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    const STEP: u64 = 50_000;
    let (job, everyone, ranks) = (stage.job, stage.job.everyone(), stage.ranks());
    let team = some(everyone.create(&stage.agent, shuffled(ranks)))?;
    let agent = stage.agent.on(&team);
    let next = (team.member() + 1) % team.size();
    let old = agent.segment(next)?.len();
    if job.segment_max() < job.segment().len() + STEP {
        return Ok(());
    }
    agent.barrier()?;
    job.grow(job.segment().len() + STEP)?;
    agent.barrier()?;
    for round in 0..2 {
        let place = GlobalPtr::<u64>::new(next, old + 8 * round);
        agent.put_value(place, round + 1)?;
        let got = agent.get_value(place)?;
        require!(got == round + 1, "{got} in bytes that are new");
    }
    let beyond = GlobalPtr::<u8>::new(next, agent.segment(next)?.len());
    refused("a put beyond the new end", agent.put(beyond, &[1]), &["outside the segment"])?;
    Ok(agent.barrier()?)
}

/// Members that there are not, places that they do not have, and teams that cannot be made: on all ranks alike.
pub(super) fn wrong<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (everyone, handlers, me, ranks) = (stage.job.everyone(), stage.handlers, stage.rank(), stage.ranks());
    let create = |list: &[u32]| everyone.create(&stage.agent, list.iter().copied());
    refused("a team of nobody", create(&[]), &["a team without a member"])?;
    let words = [&*format!("member {ranks} is out of range"), &*format!("the team has {ranks} members")];
    refused("a team of a rank that is not there", create(&[0, ranks]), &words)?;
    refused("a rank twice", create(&[ranks - 1, ranks - 1]), &["members 0 and 1", "both be rank"])?;
    if ranks > 1 {
        let words = ["members 0 and 1 of a team passed different members"];
        refused("different members", create(&[me.min(1)]), &words)?;
        let mixed = if me == 0 { create(&[0]) } else { everyone.split(&stage.agent, Some(0), 0) };
        refused("different collectives", mixed, &["members 0 and 1 of a team called different collectives"])?;
    }
    // All but the last, or the one that there is: number and rank differ where there are three.
    let list: Vec<u32> = (0..ranks.max(2) - 1).rev().collect();
    let Some(team) = create(&list)? else { return Ok(()) };
    let (agent, size) = (stage.agent.on(&team), team.size());
    for nobody in [size, u32::MAX] {
        let place = GlobalPtr::<u8>::new(nobody, 0);
        // A team of all ranks in order calls its members ranks.
        let words = match size == ranks {
            true => [format!("rank {nobody} is out of range"), format!("the job has {ranks} ranks")],
            false => [format!("member {nobody} is out of range"), format!("the team has {size} members")],
        };
        let words = [&*words[0], &*words[1]];
        refused("a short to nobody", agent.request_short(nobody, handlers.plain, 1), &words)?;
        refused("a short to nobody", agent.try_request_short(nobody, handlers.plain, 1), &words)?;
        refused("a medium to nobody", agent.request_medium(nobody, handlers.n1.medium, [1], &[1]), &words)?;
        refused("a long to nobody", agent.request_long(handlers.n1.long, [1], &[1], place), &words)?;
        refused("a put to nobody", agent.put(place, &[1]), &words)?;
        refused("a put to nobody", agent.put_value(place, 1), &words)?;
        refused("a get from nobody", agent.get(place, &mut [1]), &words)?;
        refused("a put to nobody", agent.put_copy(place, &[1]), &words)?;
        refused("a get from nobody", agent.get_owned(place, 1), &words)?;
        refused("a put to nobody", agent.scope(|scope| scope.put(place, &[1])), &words)?;
        refused("a put to nobody", agent.implicit().put(place, &[1]), &words)?;
        refused("room at nobody", agent.prepare_medium(nobody, 0..=1), &words)?;
        refused("the segment of nobody", agent.segment(nobody), &words)?;
    }
    if size == ranks {
        return Ok(());
    }
    let next = (team.member() + 1) % size;
    let (rank, end) = (team.rank_of(next).unwrap_or(u32::MAX), agent.segment(next)?.len());
    let place = GlobalPtr::<u8>::new(next, end);
    let words = [&*format!("member {next} of the team"), &*format!("the segment of rank {rank}")];
    refused("a put beyond the end", agent.put(place, &[1]), &words)?;
    refused("a put beyond the end", agent.put_value(place, 1), &words)?;
    refused("a get beyond the end", agent.get(place, &mut [1]), &words)?;
    refused("a put beyond the end", agent.put_copy(place, &[1]), &words)?;
    refused("a put beyond the end", agent.put_owned(place, vec![1]), &words)?;
    refused("a get beyond the end", agent.get_owned(place, 1), &words)?;
    refused("a put beyond the end", agent.scope(|scope| scope.put(place, &[1])), &words)?;
    refused("a put beyond the end", agent.implicit().put(place, &[1]), &words)?;
    refused("a long beyond the end", agent.request_long(handlers.n1.long, [1], &[1], place), &words)?;
    if size > 1 {
        refused("another's memory as local", agent.local(stage.open(next), 1), &["not local"])?;
    }
    Ok(agent.barrier()?)
}
