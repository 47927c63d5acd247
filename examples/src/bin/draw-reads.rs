//! Draws sequencing reads from a genome, or from a random one, and writes them as FASTQ.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gasworks_examples::draw::{Draw, random_genome, read_genome};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(about = "Draws sequencing reads, errors included, from both strands of a genome")]
struct Args {
    /// Genome as FASTA, plain or gzip; without it a random one is made
    #[arg(long)]
    genome: Option<PathBuf>,
    /// Bases of the random genome
    #[arg(long, default_value_t = 50_000_000)]
    genome_size: u64,
    /// How often each base is covered, on average
    #[arg(long, default_value_t = 30.0)]
    coverage: f64,
    /// The part of bases that is read wrongly
    #[arg(long, default_value_t = 0.005)]
    error: f64,
    /// The same seed gives the same reads
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to write the reads
    #[arg(long)]
    out: PathBuf,
}

fn main() -> ExitCode {
    gasworks_examples::end("draw-reads", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    ensure!(args.genome_size <= 1 << 34, "a random genome of {} bases is too large", args.genome_size);
    let genome = match &args.genome {
        Some(path) => read_genome(path)?,
        None => random_genome(args.genome_size, args.seed),
    };
    let cannot = || format!("cannot write {}", args.out.display());
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&args.out).with_context(cannot)?);
    let how = Draw { coverage: args.coverage, error: args.error, seed: args.seed, ..Draw::default() };
    let mut shown = Instant::now();
    let drawn = how
        .write(&genome, &mut out, |part| {
            if shown.elapsed() >= Duration::from_secs(1) {
                shown = Instant::now();
                eprintln!("progress {:.0} %", part * 100.0);
            }
        })
        .with_context(cannot)?;
    println!(
        "{} reads, {} bases, {} of them wrong, from {} bases",
        drawn.reads,
        drawn.bases,
        drawn.errors,
        genome.len()
    );
    Ok(())
}
