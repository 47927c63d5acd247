//! A token goes around the ring of ranks; each adds its number and passes it on.
//!
//! A handler cannot communicate, only reply. So it notes the token, and the rank's loop passes it on.
//!
//! ```text
//! gasrun -n 4 ring --laps 1000
//! ```

use anyhow::{Result, ensure};
use clap::Parser;
use gasworks::{Config, Job, Request, Seq, Table};
use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "A token goes around the ring of ranks")]
struct Args {
    /// How often around
    #[arg(long, alias = "size", default_value_t = 1000)]
    laps: u32,
}

fn main() -> ExitCode {
    gasworks_examples::end("ring", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let token = Rc::new(Cell::new(None));
    let mut table = Table::<Seq>::new();
    let arrived = token.clone();
    let pass =
        table.short_request("pass", move |_: Request<'_, Seq>, value: u64| arrived.set(Some(value)))?;

    let job = Job::open(Config::from_env()?, table)?;
    let agent = job.agent()?;
    let (rank, ranks) = (agent.rank(), agent.ranks());
    let next = (rank + 1) % ranks;
    agent.barrier()?;

    let start = Instant::now();
    let mut value = 0;
    for _ in 0..args.laps {
        if rank == 0 {
            agent.request_short(next, pass, value)?;
        }
        agent.wait_until(|| token.get().is_some())?;
        value = token.take().unwrap_or(0) + u64::from(rank);
        if rank != 0 {
            agent.request_short(next, pass, value)?;
        }
    }
    if rank == 0 {
        let expected = u64::from(args.laps) * (0..u64::from(ranks)).sum::<u64>();
        ensure!(value == expected, "the token came back as {value}, not {expected}");
        let hops = f64::from(args.laps) * f64::from(ranks);
        let each = start.elapsed().as_secs_f64() * 1e6 / hops.max(1.0);
        println!("ring: {hops} hops over {ranks} ranks, {each:.2} us each; the token is right");
    }
    Ok(job.close()?)
}
