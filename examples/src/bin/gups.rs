//! Random updates of a table that is distributed over the ranks (the GUPS benchmark: giga-updates per second).
//!
//! Two ways: batches of updates as active messages, applied by the owner, where none is lost; and a get and a put for
//! each update, where ranks may overwrite each other's, and up to one in a hundred may go wrong. An update is an
//! exclusive or, so doing all of them twice must give back the first table.
//!
//! ```text
//! gasrun -n 4 gups --size 20
//! ```

use anyhow::{Result, ensure};
use clap::Parser;
use gasworks::{Agent, Config, GlobalPtr, Job, Payload, Request, Seq, Table};
use gasworks_examples::rng::Rng;
use std::cell::{Cell, RefCell};
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

/// This rank's updates: the owner, the word there, and the value.
fn updates(args: &Args, rank: u32, ranks: u32) -> impl Iterator<Item = (u32, u64, u64)> + use<> {
    let (words, mut rng) = (1u64 << args.size, Rng::new(u64::from(rank) + 1));
    (0..words * args.updates).map(move |_| {
        let value = rng.next_u64();
        (rng.below(u64::from(ranks)) as u32, value & (words - 1), value)
    })
}

fn main() -> Result<()> {
    let args = Args::parse();
    let words = 1usize << args.size;

    // For the messages the table is plain memory of the owner: only its handler touches it.
    let owned = Rc::new(RefCell::new((0..words as u64).collect::<Vec<_>>()));
    let applied = Rc::new(Cell::new(0u64));
    let mut table = Table::<Seq>::new();
    let (theirs, count) = (owned.clone(), applied.clone());
    let apply =
        table.medium_request("apply", move |_: Request<'_, Seq>, _: [u32; 0], batch: Payload<'_>| {
            let mut theirs = theirs.borrow_mut();
            let mut values = [0u64; BATCH];
            let values = &mut values[..(batch.len() / 8).min(BATCH)];
            batch.copy_range_to(0, values)?;
            for value in values.iter() {
                theirs[*value as usize & (words - 1)] ^= value;
            }
            count.set(count.get() + values.len() as u64);
            Ok::<(), gasworks::Error>(())
        })?;

    let job = Job::open(Config::from_env()?.segment((words as u64 * 8).max(1 << 16) + 4096), table)?;
    let agent = job.agent()?;
    let (rank, ranks) = (agent.rank(), agent.ranks());

    // By messages, twice.
    agent.barrier()?;
    let start = Instant::now();
    let received: Vec<u64> = (0..ranks)
        .map(|from| updates(&args, from, ranks).filter(|&(to, ..)| to == rank).count() as u64)
        .collect();
    let expected = received.iter().sum::<u64>();
    let counting = start.elapsed();
    agent.barrier()?;
    let start = Instant::now();
    for round in 1..=2 {
        let mut batches = vec![Vec::with_capacity(BATCH); ranks as usize];
        for (to, _, value) in updates(&args, rank, ranks) {
            let batch = &mut batches[to as usize];
            batch.push(value);
            if batch.len() == BATCH {
                agent.request_medium(to, apply, [], bytemuck::cast_slice(batch))?;
                batch.clear();
            }
        }
        for (to, batch) in batches.iter().enumerate() {
            agent.request_medium(to as u32, apply, [], bytemuck::cast_slice(batch))?;
        }
        agent.wait_until(|| applied.get() >= expected * round)?;
        agent.barrier()?;
    }
    let by_messages = start.elapsed().as_secs_f64() / 2.0;
    let wrong = owned.borrow().iter().enumerate().filter(|&(i, &word)| word != i as u64).count();
    ensure!(wrong == 0, "{wrong} of {words} words are wrong after all updates by messages were undone");

    // By a get and a put for each, and back again by messages to see how many got lost.
    let place = job.alloc::<u64>(words as u64)?;
    let local = agent.local(place, words)?;
    (0..words).for_each(|i| local.set(i, i as u64));
    agent.barrier()?;
    let start = Instant::now();
    by_get_and_put(&agent, &args, place)?;
    agent.barrier()?;
    let by_get_put = start.elapsed().as_secs_f64();
    for from in 0..ranks {
        for (_, at, value) in updates(&args, from, ranks).filter(|&(to, ..)| to == rank) {
            local.set(at as usize, local.get(at as usize) ^ value);
        }
    }
    let lost = (0..words).filter(|&i| local.get(i) != i as u64).count();
    ensure!(lost * 100 <= words, "{lost} of {words} words are wrong after updates by get and put");
    agent.barrier()?;
    if rank == 0 {
        let rate = |seconds: f64| (words as u64 * args.updates * u64::from(ranks)) as f64 / seconds / 1e6;
        println!(
            "gups: {ranks} ranks, {:.1} M updates/s by messages, {:.1} M/s by get and put ({lost} of {words} words of \
             rank 0 lost a race); the table is right (expected counts in {counting:.1?})",
            rate(by_messages),
            rate(by_get_put)
        );
    }
    drop(agent);
    Ok(job.close()?)
}

fn by_get_and_put(agent: &Agent<'_, Seq>, args: &Args, place: GlobalPtr<u64>) -> Result<()> {
    for (to, at, value) in updates(args, agent.rank(), agent.ranks()) {
        let word = place.on(to).add(at)?;
        agent.put_value(word, agent.get_value(word)? ^ value)?;
    }
    Ok(())
}
