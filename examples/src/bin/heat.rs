//! Heat spreads over a square plate: a stencil in two dimensions with halo exchange by puts.
//!
//! Each rank has a band of rows. In every step it puts its first and last row into its neighbours' segments, begins a
//! barrier, computes the rows that need no neighbour, waits for the barrier, and computes the two that do. The rows of
//! odd and even steps land in different places, so nobody overwrites what a slower neighbour still reads.
//!
//! ```text
//! gasrun -n 4 heat --size 256 --steps 500 --out heat.png
//! ```

use anyhow::{Result, ensure};
use clap::Parser;
use gasworks::{Agent, Config, GlobalPtr, Job, Seq, Table};
use gasworks_examples::{picture, report::write_file};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Heat spreads over a plate, computed by all ranks")]
struct Args {
    /// Points along a side of the plate
    #[arg(long, default_value_t = 192, value_parser = clap::value_parser!(u64).range(64..=8192))]
    size: u64,
    /// Steps in time
    #[arg(long, default_value_t = 500)]
    steps: u32,
    /// Where to write the picture, as PNG
    #[arg(long)]
    out: Option<PathBuf>,
}

/// The plate at the start: two hot discs and a warm edge.
fn start(size: usize, row: usize, column: usize) -> f64 {
    let from = |x: f64, y: f64| (column as f64 / size as f64 - x).hypot(row as f64 / size as f64 - y);
    match () {
        () if row == 0 => 0.6,
        () if from(0.3, 0.35) < 0.12 || from(0.7, 0.65) < 0.18 => 1.0,
        () => 0.0,
    }
}

/// One row of the next step from three rows of this one. The ends stay as they are.
fn step(above: &[f64], row: &[f64], below: &[f64], next: &mut [f64]) {
    let last = row.len() - 1;
    (next[0], next[last]) = (row[0], row[last]);
    for i in 1..last {
        next[i] = row[i] + 0.2 * (above[i] + below[i] + row[i - 1] + row[i + 1] - 4.0 * row[i]);
    }
}

/// The same computation by one rank, to compare with.
fn alone(size: usize, steps: u32) -> Vec<f64> {
    let mut plate: Vec<f64> = (0..size * size).map(|i| start(size, i / size, i % size)).collect();
    let mut next = plate.clone();
    for _ in 0..steps {
        for row in 1..size - 1 {
            let at = |row: usize| &plate[row * size..(row + 1) * size];
            step(at(row - 1), at(row), at(row + 1), &mut next[row * size..(row + 1) * size]);
        }
        std::mem::swap(&mut plate, &mut next);
    }
    plate
}

/// A band of rows, with one more row above and one below: the neighbours' rows.
struct Band {
    size: usize,
    first: usize,
    rows: usize,
    values: Vec<f64>,
    next: Vec<f64>,
}

impl Band {
    fn new(size: usize, first: usize, rows: usize) -> Self {
        let values: Vec<f64> = (0..(rows + 2) * size)
            .map(|i| start(size, (first + i / size).saturating_sub(1), i % size))
            .collect();
        Self { size, first, rows, next: values.clone(), values }
    }

    /// Row `i` of the band, 1 to `rows`; 0 and `rows + 1` are the neighbours'.
    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.size..(i + 1) * self.size]
    }

    fn compute(&mut self, i: usize) {
        let plate_row = self.first + i - 1;
        if plate_row > 0 && plate_row < self.size - 1 {
            let at = |i: usize| &self.values[i * self.size..(i + 1) * self.size];
            step(at(i - 1), at(i), at(i + 1), &mut self.next[i * self.size..(i + 1) * self.size]);
        }
    }
}

/// One step: exchange of the halo, hidden behind the inner rows.
fn advance(agent: &Agent<'_, Seq>, halo: GlobalPtr<f64>, band: &mut Band, odd: u64) -> Result<()> {
    let (rank, ranks, size) = (agent.rank(), agent.ranks(), band.size);
    // Four rows in each segment: from above and from below, for even and for odd steps.
    let place = |rank: u32, below: u64| halo.on(rank).add((odd * 2 + below) * size as u64);
    if rank > 0 {
        agent.put(place(rank - 1, 1)?, band.row(1))?;
    }
    if rank + 1 < ranks {
        agent.put(place(rank + 1, 0)?, band.row(band.rows))?;
    }
    let all_have_put = agent.barrier_begin()?;
    (2..band.rows).for_each(|i| band.compute(i));
    all_have_put.wait(agent)?;
    let rows = band.rows;
    if rank > 0 {
        agent.get(place(rank, 0)?, &mut band.values[..size])?;
    }
    if rank + 1 < ranks {
        agent.get(place(rank, 1)?, &mut band.values[(rows + 1) * size..])?;
    }
    band.compute(1);
    band.compute(rows);
    std::mem::swap(&mut band.values, &mut band.next);
    Ok(())
}

fn main() -> ExitCode {
    gasworks_examples::end("heat", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let size = args.size as usize;
    // Rank 0 has room for the whole plate as well; memory that is not touched costs nothing.
    let segment = 8 * args.size * (args.size + 5) + 4096;
    let job = Job::open(Config::from_env()?.segment(segment), Table::<Seq>::new())?;
    let agent = job.agent()?;
    let (rank, ranks) = (agent.rank() as usize, agent.ranks() as usize);
    ensure!(size >= 2 * ranks, "{ranks} ranks need a plate of at least {} rows", 2 * ranks);

    let halo = job.alloc::<f64>(4 * args.size)?;
    let plate = job.alloc::<f64>(args.size * args.size)?;
    let (first, end) = (size * rank / ranks, size * (rank + 1) / ranks);
    let mut band = Band::new(size, first, end - first);
    agent.barrier()?;
    for i in 0..args.steps {
        advance(&agent, halo, &mut band, u64::from(i % 2))?;
    }

    agent.put(plate.on(0).add((first * size) as u64)?, &band.values[size..(band.rows + 1) * size])?;
    agent.barrier()?;
    if rank == 0 {
        let mut together = vec![0.0; size * size];
        agent.get(plate.on(0), &mut together)?;
        let different = together.iter().zip(alone(size, args.steps)).filter(|(a, b)| **a != *b).count();
        ensure!(different == 0, "{different} points differ from the computation by one rank");
        println!(
            "heat: {size} x {size} points, {} steps over {ranks} ranks; equal to one rank's",
            args.steps
        );
        if let Some(path) = &args.out {
            write_file(path, &picture::png(size, &together)?)?;
            println!("heat: wrote {}", path.display());
        }
    }
    Ok(job.close()?)
}
