//! Flow control: credits run out and come back, replies always get through.

use super::handlers::Count;
use super::pattern::{Random, made, tag};
use super::{Failure, Stage, SuiteMode, require};
use gasworks::{GlobalPtr, Par};

/// Many more requests than credits, to handlers that do not reply: the credits come back all the same.
pub(super) fn without_replies<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (count, sum) = (stage.state.get(Count::Plain), stage.state.get(Count::PlainSum));
    stage.agent.barrier()?;
    for value in 0..300 {
        for to in stage.peers() {
            stage.agent.request_short(to, stage.handlers.plain, value)?;
        }
    }
    let due = 300 * stage.peers().len() as u64;
    stage.wait_for("requests without replies", || stage.state.get(Count::Plain) - count == due)?;
    let sum = stage.state.get(Count::PlainSum) - sum;
    require!(sum == (0..300).sum::<u64>() * stage.peers().len() as u64, "the sum is {sum}");
    Ok(())
}

/// A rank that does not poll runs out of credits, is told so at once, and loses nothing.
pub(super) fn busy<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, to) = (&stage.agent, stage.next());
    sends_dry(stage, Count::Plain, || agent.try_request_short(to, stage.handlers.plain, 1))
}

/// The same with Longs.
pub(super) fn busy_with_longs<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (agent, handler, place) = (&stage.agent, stage.handlers.gust_long, stage.landing_at(stage.next(), 0));
    sends_dry(stage, Count::Stormed, || agent.try_request_long(handler, [1, 16, 0], &[7; 16], place))
}

/// Sends to the next rank without polling until it is refused, again and again; all that was sent is counted there.
fn sends_dry<M: SuiteMode>(
    stage: &Stage<'_, M>,
    count: Count,
    send: impl Fn() -> Result<(), gasworks::Error>,
) -> Result<(), Failure> {
    let (before, mut sent, mut refused) = (stage.state.get(count), 0u64, 0u64);
    let (ends, due) = (stage.state.get(Count::StormEnds), stage.state.get(Count::StormDue));
    stage.agent.barrier()?;
    for _ in 0..2000 {
        match send() {
            Ok(()) => sent += 1,
            Err(error) if error.is_busy() => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let total = u64::from(stage.job.flow(stage.next())?.total);
    // None at all is possible: another rank's messages may fill a small queue. A progress thread polls whenever it likes.
    require!(
        stage.job.has_progress_thread() || (refused > 0 && sent <= total),
        "{sent} requests were sent without a poll, {refused} refused"
    );
    // How many the rank before sent is not known here: it says so.
    stage.agent.request_short(stage.next(), stage.handlers.storm_end, [sent, 0])?;
    stage.wait_for("the neighbour's count", || stage.state.get(Count::StormEnds) == ends + 1)?;
    let due = stage.state.get(Count::StormDue) - due;
    stage.wait_for("what was sent without polling", || stage.state.get(count) - before == due)
}

/// Everybody asks everybody for large replies without waiting for any.
pub(super) fn flood_of_replies<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (before, me) = (stage.state.get(Count::Flooded), stage.rank());
    let len = stage.agent.max_medium().min(3000) as u32;
    let rounds = if stage.ranks() > 8 { 20 } else { 150 };
    for round in 0..rounds {
        for to in stage.peers() {
            let question = made(tag(me, to, 21), round % 40);
            stage.agent.request_medium(to, stage.handlers.flood, len - round as u32, &question)?;
        }
    }
    let due = (rounds * stage.peers().len()) as u64;
    stage.wait_for("a flood of replies", || stage.state.get(Count::Flooded) - before == due)
}

/// Every rank uses up its credits to everybody else without polling; all must still reply to all.
pub(super) fn starved_ranks_reply<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let others: Vec<_> = stage.peers().iter().copied().filter(|&to| to != stage.rank()).collect();
    let mut most = 0;
    for &to in &others {
        most = most.max(3 * u64::from(stage.job.flow(to)?.total));
    }
    for round in 1..=10u64 {
        let (echoed, sum) = (stage.state.get(Count::Echoed), stage.state.get(Count::EchoSum));
        let (mut sent, mut expected) = (0, 0);
        for value in 0..most {
            let to = others[value as usize % others.len()];
            match stage.agent.try_request_short(to, stage.handlers.echo, value * round) {
                Ok(()) => {
                    sent += 1;
                    expected += value * round;
                }
                Err(error) if error.is_busy() => {}
                Err(error) => return Err(error.into()),
            }
        }
        require!(stage.job.has_progress_thread() || sent < most, "credits never ran out");
        stage.wait_for("replies of starved ranks", || stage.state.get(Count::Echoed) - echoed == sent)?;
        let sum = stage.state.get(Count::EchoSum) - sum;
        require!(sum == expected, "the echoes' sum is {sum} instead of {expected}");
        stage.agent.barrier()?;
    }
    Ok(())
}

/// Messages of all categories, with and without replies, between random ranks, far more than there are credits.
pub(super) fn storm<M: SuiteMode>(stage: &Stage<'_, M>) -> Result<(), Failure> {
    let (state, me, ranks) = (stage.state, stage.rank(), stage.ranks() as usize);
    let starts = [
        Count::Stormed,
        Count::StormSum,
        Count::StormReplies,
        Count::StormEnds,
        Count::StormDue,
        Count::StormDueSum,
    ]
    .map(|count| state.get(count));
    stage.agent.barrier()?;
    let mut random = Random(u64::from(me) * 77 + 5);
    let (mut sent, mut sums, mut replies) = (vec![0u64; ranks], vec![0u64; ranks], 0);
    let messages = if ranks > 8 { 100 } else { 600 };
    for number in 0..messages {
        let to = random.below(ranks as u64) as u32;
        let most = [8, 300, stage.agent.max_medium() as u64][random.below(3) as usize];
        let gust = [number, random.below(most + 1) as u32, random.below(2) as u32];
        let payload = made(tag(me, to, number.into()), gust[1] as usize);
        match random.below(3) {
            0 => stage.agent.request_short(to, stage.handlers.gust_short, gust)?,
            1 => stage.agent.request_medium(to, stage.handlers.gust_medium, gust, &payload)?,
            _ => {
                let place: GlobalPtr<u8> = stage.landing_at(to, 0);
                stage.agent.request_long(stage.handlers.gust_long, gust, &payload, place)?;
            }
        }
        sent[to as usize] += 1;
        sums[to as usize] += u64::from(number);
        replies += u64::from(gust[2]);
    }
    for to in 0..ranks {
        stage.agent.request_short(to as u32, stage.handlers.storm_end, [sent[to], sums[to]])?;
    }
    let since = |count, which: usize| state.get(count) - starts[which];
    stage.wait_for("the ends of a storm", || since(Count::StormEnds, 3) == ranks as u64)?;
    let due = since(Count::StormDue, 4);
    stage.wait_for("a storm", || since(Count::Stormed, 0) == due)?;
    stage.wait_for("a storm's replies", || since(Count::StormReplies, 2) == replies)?;
    let (sum, expected) = (since(Count::StormSum, 1), since(Count::StormDueSum, 5));
    require!(sum == expected, "the storm's sum is {sum} instead of {expected}");
    Ok(())
}

/// Several threads of each rank send, put, get and poll at the same time. Nobody looks at what their Longs bring.
pub(super) fn threads(stage: &Stage<'_, Par>) -> Result<(), Failure> {
    let before = stage.state.get(Count::Echoed);
    let (me, to, job, handlers) = (stage.rank(), stage.next(), stage.job, stage.handlers);
    let (open, landing) = (stage.open(to), stage.landing_at(to, 0));
    let replies = stage.state.get(Count::StormReplies);
    const THREADS: u64 = 3;
    const ROUNDS: u64 = 60;
    let work = |thread: u64| -> Result<(), Failure> {
        let agent = job.agent()?;
        let place = open.add(thread * 8192)?;
        for round in 0..ROUNDS {
            agent.request_short(to, handlers.echo, round)?;
            let long = made(tag(me, to, round), 4000 + round as usize * 16);
            agent.request_long(handlers.gust_long, [round as u32, long.len() as u32, 1], &long, landing)?;
            let bytes = made(tag(me, to, thread << 32 | round), 1 + round as usize * 31);
            agent.put(place, &bytes)?;
            let back = agent.get_owned(place, bytes.len())?.wait(&agent)?;
            require!(back == bytes, "thread {thread} does not read back what it has put");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        started.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Wrong("a thread panicked".into())))
        })
    })?;
    let due = THREADS * ROUNDS;
    stage.wait_for("the threads' echoes", || stage.state.get(Count::Echoed) - before == due)?;
    stage.wait_for("the replies to their Longs", || stage.state.get(Count::StormReplies) - replies == due)
}

/// A thread may wait for what another one has started, and may end before that is over.
pub(super) fn for_each_other(stage: &Stage<'_, Par>) -> Result<(), Failure> {
    const THREADS: u64 = 5;
    /// Of each thread: more than a bounce buffer holds, and what goes in one short post.
    const LENGTHS: [usize; 2] = [50_000, 24];
    let (me, to, job) = (stage.rank(), stage.next(), stage.job);
    let place = |thread: u64, which: usize| stage.open(to).add(thread << 17 | (which as u64) << 16);
    let bytes = |thread: u64, which: usize| made(tag(me, to, thread << 8 | which as u64), LENGTHS[which]);
    let panicked = |_| Failure::Wrong("a thread panicked".into());
    let in_turn = |which: usize| {
        std::thread::scope(|scope| -> Result<(), Failure> {
            let puts = (0..THREADS).map(|thread| {
                let target = place(thread, which)?;
                Ok(scope.spawn(move || job.agent()?.put_owned(target, bytes(thread, which))))
            });
            for put in puts.collect::<Result<Vec<_>, Failure>>()? {
                put.join().map_err(panicked)??.wait(&stage.agent)?;
            }
            let gets = (0..THREADS).map(|thread| {
                let get = stage.agent.get_owned(place(thread, which)?, LENGTHS[which])?;
                Ok((thread, scope.spawn(move || get.wait(&job.agent()?))))
            });
            for (thread, get) in gets.collect::<Result<Vec<_>, Failure>>()? {
                let back = get.join().map_err(panicked)??;
                require!(back == bytes(thread, which), "what thread {thread} has put is not there");
            }
            Ok(())
        })
    };
    (0..LENGTHS.len()).try_for_each(in_turn)
}
