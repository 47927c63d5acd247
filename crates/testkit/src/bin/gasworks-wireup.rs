//! A rank that finds its job, exchanges values with all others, and leaves; nothing above `gasworks-bootstrap`. It
//! joins any job: under every launcher, on one host or many. On success it prints one line, `rank 0 of 4: JOB`.

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use gasworks_bootstrap::{Bootstrap, BootstrapError, connect};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Finds the job and exchanges values in it.
#[derive(Debug, Parser)]
struct Args {
    /// How many jobs to join, one after the other.
    #[arg(long, default_value_t = 2)]
    jobs: u32,
    /// The longest value to exchange, in bytes.
    #[arg(long, default_value_t = 5000)]
    longest: usize,
    /// How the last job ends.
    #[arg(long, value_enum, default_value_t = End::Good)]
    end: End,
    /// The rank that ends it, where one does; the others wait for their end, at most a minute.
    #[arg(long, default_value_t = 0)]
    by: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum End {
    /// Every rank leaves in good order.
    Good,
    /// A rank aborts with code 42.
    Abort,
    /// A rank crashes.
    Crash,
    /// A rank ends with code 7 in the middle of the job.
    Exit,
    /// A rank waits in a fence for which nobody comes, and the others end with code 0 in the middle of the job.
    Fence,
}

/// What a rank gives in a round.
fn bytes(rank: u32, len: usize) -> Vec<u8> {
    (0..len + rank as usize).map(|i| (i * 7) as u8 ^ rank as u8).collect()
}

fn exchange(rank: &dyn Bootstrap, longest: usize) -> Result<()> {
    for len in [0, 1, 383, 384, 385, longest] {
        let all = rank.exchange(&format!("round-{len}"), &bytes(rank.rank(), len))?;
        ensure!(all.len() == rank.size() as usize, "{} values came from {} ranks", all.len(), rank.size());
        for (r, got) in (0..).zip(&all) {
            ensure!(*got == bytes(r, len), "the {len} bytes of rank {r} came back as others");
        }
        rank.barrier()?;
    }
    if let Some(hosts) = rank.host_hint()? {
        ensure!(hosts.len() == rank.size() as usize, "a hint about {} of {} ranks", hosts.len(), rank.size());
    }
    Ok(())
}

/// Checks that nobody leaves before the last has come: the clocks of the hosts must agree to a tenth of a second.
fn hold(rank: &dyn Bootstrap, name: &str, wait: impl Fn() -> Result<(), BootstrapError>) -> Result<()> {
    const LATE: Duration = Duration::from_millis(200);
    if rank.rank() == rank.size() - 1 {
        std::thread::sleep(LATE);
    }
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map(|now| now.as_nanos());
    let came = now()?;
    wait()?;
    let left = now()?;
    let times = rank.exchange(name, &[came.to_le_bytes(), left.to_le_bytes()].concat())?;
    let read = |bytes: &[u8]| bytes.try_into().map(u128::from_le_bytes).unwrap_or(0);
    let last = times.iter().map(|both| read(&both[..16])).max().unwrap_or(0);
    let first = times.iter().map(|both| read(&both[16..])).min().unwrap_or(0);
    ensure!(
        first + LATE.as_nanos() / 2 > last,
        "a rank left the {name} {} ns before the last came",
        last - first
    );
    Ok(())
}

fn end(rank: &dyn Bootstrap, args: &Args) -> Result<()> {
    let by = rank.rank() == args.by;
    match args.end {
        End::Good => return Ok(rank.finalize()?),
        End::Abort if by => rank.abort(42, "asked to"),
        End::Crash if by => std::process::abort(),
        End::Exit if by => gasworks_bootstrap::exit(7),
        End::Fence if !by => gasworks_bootstrap::exit(0),
        End::Fence => rank.fence()?,
        _ => std::thread::sleep(Duration::from_secs(60)),
    }
    Ok(())
}

fn main() -> Result<()> {
    let args = Args::parse();
    for job in 1..=args.jobs {
        let rank = connect()?;
        exchange(&*rank, args.longest)?;
        hold(&*rank, "fence", || rank.fence())?;
        hold(&*rank, "barrier", || rank.barrier())?;
        rank.started();
        rank.fence()?;
        println!("rank {} of {}: {}", rank.rank(), rank.size(), rank.job());
        if job == args.jobs { end(&*rank, &args)? } else { rank.finalize()? }
    }
    Ok(())
}
