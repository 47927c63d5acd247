//! Ranks in a grid: every rank adds up a number of each rank of its row, and of each of its column, by their numbers there.
//!
//! ```text
//! gasrun -n 6 grid
//! ```

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gasworks::{Agent, Config, Error, GlobalPtr, Job, Seq, Table, Team};
use std::io::{Write, stdout};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Sums over the rows and the columns of a grid of ranks")]
struct Args {
    /// Ranks in a row; as near to a square as there are ranks for, unless it is given
    #[arg(long)]
    width: Option<u32>,
}

fn main() -> ExitCode {
    gasworks_examples::end("grid", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let job = Job::open(Config::from_env()?.segment(1 << 16), Table::<Seq>::new())?;
    let (agent, everyone) = (job.agent()?, job.everyone());
    let (rank, ranks) = (agent.rank(), agent.ranks());
    let width = args.width.unwrap_or(ranks.isqrt()).clamp(1, ranks);

    // Ranks of one colour are a team, in the order of their keys: from the left, and from the top.
    let (line, place) = (rank / width, rank % width);
    let row = everyone.split(&agent, Some(line), place.into())?.context("a row")?;
    let column = everyone.split(&agent, Some(place), line.into())?.context("a column")?;

    let number: GlobalPtr<u64> = job.alloc(1)?;
    agent.put_value(number, u64::from(rank) * u64::from(rank))?;
    agent.barrier()?;
    let (in_row, in_column) = (sum(&agent, &row, number)?, sum(&agent, &column, number)?);
    let squares =
        |team: &Team<'_, Seq>| team.iter().map(|rank| u64::from(rank) * u64::from(rank)).sum::<u64>();
    ensure!(
        in_row == squares(&row) && in_column == squares(&column),
        "rank {rank} has {in_row}, {in_column}"
    );
    agent.barrier()?;
    if rank == 0 {
        let lines = ranks.div_ceil(width);
        writeln!(stdout(), "grid: {width} columns and {lines} rows: all sums are right")?;
    }
    Ok(job.close()?)
}

/// The sum of a number that each member of a team has at the same place. On a team's agent a member's number stands where a rank's would.
fn sum(agent: &Agent<'_, Seq>, team: &Team<'_, Seq>, place: GlobalPtr<u64>) -> Result<u64, Error> {
    let agent = agent.on(team);
    (0..agent.ranks()).map(|member| agent.get_value(place.on(member))).sum()
}
