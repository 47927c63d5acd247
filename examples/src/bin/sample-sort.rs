//! Sorts numbers that are distributed over the ranks, by samples, with one exchange by puts.
//!
//! Every rank sorts its own and puts a few samples on rank 0. Rank 0 sorts those and puts the splitters on every rank.
//! The ranks tell each other how many numbers will come, put the numbers where there is room for them, and sort.
//!
//! ```text
//! gasrun -n 4 sample-sort --size 100000
//! ```

use anyhow::{Result, ensure};
use clap::Parser;
use gasworks::{Config, Job, Seq, Table};
use gasworks_examples::rng::Rng;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "Sorts numbers that are distributed over the ranks")]
struct Args {
    /// Numbers on each rank
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    size: u64,
}

/// Samples that each rank gives: enough that no rank gets much more than its share.
const SAMPLES: u64 = 64;

fn main() -> ExitCode {
    gasworks_examples::end("sample-sort", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let room = 3 * args.size + 1024;
    // Numbers, and for up to 256 ranks samples, splitters, counts and sums.
    let segment = 8 * (room + (SAMPLES + 4) * 256) + 4096;
    let job = Job::open(Config::from_env()?.segment(segment), Table::<Seq>::new())?;
    let agent = job.agent()?;
    let (rank, ranks) = (u64::from(agent.rank()), u64::from(agent.ranks()));
    let everyone = 0..agent.ranks();

    let incoming = job.alloc::<u64>(room)?;
    let samples = job.alloc::<u64>(SAMPLES * ranks)?;
    let splitters = job.alloc::<u64>(ranks)?;
    let counts = job.alloc::<u64>(ranks)?;
    let sums = job.alloc::<[u64; 2]>(ranks)?;

    let mut rng = Rng::new(rank + 1);
    let mut numbers: Vec<u64> = (0..args.size).map(|_| rng.next_u64()).collect();
    let sum = |numbers: &[u64]| numbers.iter().fold(0u64, |sum, &n| sum.wrapping_add(n ^ n >> 29));
    let sum_before = sum(&numbers);
    agent.barrier()?;
    let start = Instant::now();

    numbers.sort_unstable();
    let mine: Vec<u64> = (0..SAMPLES).map(|i| numbers[(i * args.size / SAMPLES) as usize]).collect();
    agent.put(samples.on(0).add(rank * SAMPLES)?, &mine)?;
    agent.barrier()?;
    if rank == 0 {
        let mut all = vec![0; (SAMPLES * ranks) as usize];
        agent.get(samples, &mut all)?;
        all.sort_unstable();
        let chosen: Vec<u64> = (1..ranks).map(|i| all[(i * SAMPLES) as usize]).chain([u64::MAX]).collect();
        everyone.clone().try_for_each(|to| agent.put(splitters.on(to), &chosen))?;
    }
    agent.barrier()?;

    // What goes to whom, and how many come from whom.
    let mut bounds = vec![0; ranks as usize];
    agent.get(splitters, &mut bounds)?;
    let mut rest = &numbers[..];
    let mut parts = Vec::new();
    for (to, &bound) in everyone.clone().zip(&bounds) {
        let (part, more) = rest.split_at(rest.partition_point(|&n| n <= bound));
        agent.put_value(counts.on(to).add(rank)?, part.len() as u64)?;
        parts.push(part);
        rest = more;
    }
    agent.barrier()?;

    // Every rank works out where in each segment its part begins: after those of the lower ranks.
    let mut table = vec![vec![0; ranks as usize]; ranks as usize];
    agent.scope(|scope| {
        everyone.clone().zip(&mut table).try_for_each(|(of, row)| scope.get(counts.on(of), row))
    })?;
    let total: u64 = table[rank as usize].iter().sum();
    for (of, row) in table.iter().enumerate() {
        ensure!(row.iter().sum::<u64>() <= room, "rank {of} would get more numbers than it has room for");
    }
    agent.scope(|scope| {
        for (to, (part, row)) in everyone.clone().zip(parts.iter().zip(&table)) {
            let before: u64 = row[..rank as usize].iter().sum();
            scope.put(incoming.on(to).add(before)?, part)?;
        }
        Ok(())
    })?;
    agent.barrier()?;
    let mut sorted = vec![0; total as usize];
    agent.get(incoming, &mut sorted)?;
    sorted.sort_unstable();
    let seconds = start.elapsed().as_secs_f64();

    // The check: nothing is lost, and every rank's numbers are within its splitters.
    let lower = rank.checked_sub(1).map(|below| bounds[below as usize]);
    ensure!(
        sorted.first().is_none_or(|&n| lower.is_none_or(|low| n > low)),
        "a number is on too high a rank"
    );
    ensure!(sorted.last().is_none_or(|&n| n <= bounds[rank as usize]), "a number is on too low a rank");
    let difference = sum(&sorted).wrapping_sub(sum_before);
    agent.put_value(sums.on(0).add(rank)?, [total, difference])?;
    agent.barrier()?;
    if rank == 0 {
        let mut all = vec![[0; 2]; ranks as usize];
        agent.get(sums, &mut all)?;
        let count: u64 = all.iter().map(|s| s[0]).sum();
        ensure!(count == args.size * ranks, "{count} numbers came out of {}", args.size * ranks);
        ensure!(all.iter().fold(0u64, |sum, s| sum.wrapping_add(s[1])) == 0, "the numbers came out changed");
        let most = all.iter().map(|s| s[0]).max().unwrap_or(0) as f64 / args.size as f64;
        println!(
            "sample-sort: {count} numbers over {ranks} ranks in {seconds:.3} s, at most {most:.2} shares on one; sorted"
        );
    }
    Ok(job.close()?)
}
