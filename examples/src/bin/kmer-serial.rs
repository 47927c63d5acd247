//! Counts the k-mers of a file in one process by sorting: the check of `kmer-count`.

use anyhow::Result;
use clap::Parser;
use gasworks_examples::{kmer::K, report::Report, serial};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(about = "Counts the k-mers of a FASTA or FASTQ file by sorting, to check kmer-count")]
struct Args {
    /// File of sequences, plain or gzip
    #[arg(long)]
    input: PathBuf,
    /// Length of a k-mer, 1 to 31
    #[arg(long, short, default_value_t = 21)]
    k: u32,
    /// Where to write the report as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    gasworks_examples::end("kmer-serial", run())
}

fn run() -> Result<()> {
    let args = Args::parse();
    let k = K::new(args.k)?;
    let start = Instant::now();
    let mut shown = start;
    let spectrum = serial::count(&args.input, k, |part| {
        if shown.elapsed() >= Duration::from_secs(1) {
            shown = Instant::now();
            eprintln!("progress {:.0} %", part * 100.0);
        }
    })?;
    let report = Report::new("kmer-serial", &args.input, args.k, 1, start.elapsed().as_secs_f64(), &spectrum);
    println!("{}", report.line());
    args.out.map_or(Ok(()), |path| report.write(&path))
}
