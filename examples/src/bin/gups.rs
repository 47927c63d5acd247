//! Random updates of a table that is distributed over the ranks (the GUPS benchmark: giga-updates per second).
//!
//! Two ways: batches of updates as active messages, applied by the owner, where none is lost; and a get and a put for
//! each update, where ranks may overwrite each other's, and up to one word in a hundred may go wrong. An update is an
//! exclusive or, so doing all of them twice must give back the first table, and a third time is what the gets and puts
//! are compared with.
//!
//! ```text
//! gasrun -n 4 gups --size 20
//! ```

use anyhow::{Result, ensure};
use clap::Parser;
use gasworks::{Agent, Config, GlobalPtr, Job, MediumRequest, Payload, Request, Seq, Table};
use gasworks_examples::rng::Rng;
use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "Random updates of a distributed table")]
struct Args {
    /// Each rank keeps 2 to this power of words
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..=26))]
    size: u32,
    /// Updates that each rank makes, for each word of its part of the table
    #[arg(long, default_value_t = 4)]
    updates: u64,
}

/// Updates in a message.
const BATCH: usize = 1024;

/// This rank's updates: the owner, the word there, and the value. The same each time.
fn updates(args: &Args, agent: &Agent<'_, Seq>) -> impl Iterator<Item = (u32, u64, u64)> + use<> {
    let (words, ranks) = (1u64 << args.size, u64::from(agent.ranks()));
    let mut rng = Rng::new(u64::from(agent.rank()) + 1);
    (0..words * args.updates).map(move |_| {
        let value = rng.next_u64();
        (rng.below(ranks) as u32, value & (words - 1), value)
    })
}

/// Sends all updates in batches. Returns how many are on their way to this rank.
fn by_messages(
    agent: &Agent<'_, Seq>,
    args: &Args,
    apply: MediumRequest<[u32; 0]>,
    counts: GlobalPtr<u64>,
) -> Result<u64> {
    let (rank, ranks) = (agent.rank(), agent.ranks() as usize);
    let mut batches = vec![Vec::with_capacity(BATCH); ranks];
    let mut sent = vec![0; ranks];
    for (to, _, value) in updates(args, agent) {
        let batch = &mut batches[to as usize];
        batch.push(value);
        sent[to as usize] += 1;
        if batch.len() == BATCH {
            agent.request_medium(to, apply, [], bytemuck::cast_slice(batch))?;
            batch.clear();
        }
    }
    for (to, batch) in (0..).zip(&batches) {
        agent.request_medium(to, apply, [], bytemuck::cast_slice(batch))?;
        agent.put_value(counts.on(to).add(rank.into())?, sent[to as usize])?;
    }
    agent.barrier()?;
    let mut received = vec![0; ranks];
    agent.get(counts, &mut received)?;
    Ok(received.iter().sum())
}

fn by_get_and_put(agent: &Agent<'_, Seq>, args: &Args, table: GlobalPtr<u64>) -> Result<()> {
    for (to, at, value) in updates(args, agent) {
        let word = table.on(to).add(at)?;
        agent.put_value(word, agent.get_value(word)? ^ value)?;
    }
    Ok(agent.barrier()?)
}

fn main() -> ExitCode {
    gasworks_examples::end("gups", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let words = 1usize << args.size;

    // For the messages the table is plain memory of the owner: only its handler touches it.
    let owned = Rc::new(RefCell::new((0..words as u64).collect::<Vec<_>>()));
    let applied = Rc::new(Cell::new(0u64));
    let mut table = Table::<Seq>::new();
    let (mine, count) = (owned.clone(), applied.clone());
    let apply =
        table.medium_request("apply", move |_: Request<'_, Seq>, _: [u32; 0], batch: Payload<'_>| {
            let (mut mine, mut values) = (mine.borrow_mut(), [0u64; BATCH]);
            let values = &mut values[..(batch.len() / 8).min(BATCH)];
            batch.copy_range_to(0, values)?;
            values.iter().for_each(|&value| mine[value as usize & (words - 1)] ^= value);
            count.set(count.get() + values.len() as u64);
            Ok::<(), gasworks::Error>(())
        })?;

    // For gets and puts it is in the segment.
    let job = Job::open(Config::from_env()?.segment(words as u64 * 8 + (64 << 10)), table)?;
    let agent = job.agent()?;
    let (rank, ranks) = (agent.rank(), agent.ranks());
    let segment = job.alloc::<u64>(words as u64)?;
    let counts = job.alloc::<u64>(ranks.into())?;
    let local = agent.local(segment, words)?;
    (0..words).for_each(|i| local.set(i, i as u64));
    agent.barrier()?;

    let mut expected = 0;
    let mut messages = || -> Result<f64> {
        let start = Instant::now();
        expected += by_messages(&agent, &args, apply, counts)?;
        agent.wait_until(|| applied.get() == expected)?;
        agent.barrier()?;
        Ok(start.elapsed().as_secs_f64())
    };
    let seconds = messages()?;
    messages()?;
    let wrong = owned.borrow().iter().enumerate().filter(|&(i, &word)| word != i as u64).count();
    ensure!(wrong == 0, "{wrong} of {words} words are wrong after all updates by messages were undone");
    // A rank takes messages in its barriers too: none may send the third round while another has yet to look.
    agent.barrier()?;
    messages()?;

    let start = Instant::now();
    by_get_and_put(&agent, &args, segment)?;
    let apart = start.elapsed().as_secs_f64();
    let lost = owned.borrow().iter().enumerate().filter(|&(i, &word)| local.get(i) != word).count();
    ensure!(lost * 100 <= words, "{lost} of {words} words are wrong after updates by get and put");
    if rank == 0 {
        let rate = |seconds: f64| (words as u64 * args.updates * u64::from(ranks)) as f64 / seconds / 1e6;
        println!(
            "gups: {ranks} ranks, {:.1} M updates/s by messages, {:.1} M/s by get and put; the table is right \
             ({lost} of {words} words of rank 0 lost a race)",
            rate(seconds),
            rate(apart)
        );
    }
    Ok(job.close()?)
}
