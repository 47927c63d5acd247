//! Counts the k-mers of a FASTA or FASTQ file with a hash table that is distributed over the ranks of a job.
//!
//! Rank 0 reads the file and deals it out in blocks: a Long carries each into a free slot of some rank's segment, and
//! a Short gives the slot back. While nobody has a free slot, rank 0 counts a block itself. Every k-mer is owned by
//! the rank that its hash names: a rank collects the k-mers of each owner and sends them as Mediums, whose handler
//! adds them to the owner's table. In the end every rank puts its part of the spectrum into rank 0's segment.
//!
//! ```text
//! gasrun -n 4 kmer-count --input reads.fastq --k 21 --plot
//! ```

mod state;
mod work;

use anyhow::{Context, Result};
use clap::Parser;
use gasworks::{Agent, Config, Job, Seq, Table};
use gasworks_examples::kmer::K;
use gasworks_examples::report::{Report, write_file};
use gasworks_examples::spectrum::Spectrum;
use gasworks_examples::{plot, table::KmerTable};
use state::{Handlers, State};
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;
use work::{ROW, Worker};

/// Room for the slots that blocks are dealt into, and on rank 0 for the spectra of 80 ranks.
const SEGMENT: u64 = 8 << 20;

#[derive(Parser)]
#[command(name = "kmer-count", about = "Counts the k-mers of a FASTA or FASTQ file over all ranks of a job")]
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
    /// Where to draw the spectrum as SVG
    #[arg(long)]
    svg: Option<PathBuf>,
    /// What the picture is headed with [default: the file's name]
    #[arg(long)]
    title: Option<String>,
    /// Draw the spectrum in the terminal
    #[arg(long)]
    plot: bool,
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("kmer-count: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    let mut table = Table::<Seq>::new();
    let state = Rc::new(State::new().context("no memory for the table")?);
    let handlers = Handlers::register(&mut table, &state)?;
    let job = Job::open(Config::from_env()?.segment(SEGMENT), table)?;
    // The command line is looked at when the job is open, so that one rank speaks for all.
    let code = match Args::try_parse() {
        Ok(args) => count(&job, &state, handlers, &args)?,
        Err(error) => {
            if job.rank() == 0 {
                error.print().context("cannot print the usage")?;
            }
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
        }
    };
    job.close()?;
    Ok(code)
}

fn count(job: &Job<Seq>, state: &Rc<State>, handlers: Handlers, args: &Args) -> Result<ExitCode> {
    let agent = job.agent()?;
    let first = agent.rank() == 0;
    let k = match K::new(args.k) {
        Ok(k) => k,
        Err(error) => {
            if first {
                eprintln!("kmer-count: {error}");
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    // One distinct k-mer for 16 bytes of a file is about right for reads; where it is not, the table grows.
    let size = std::fs::metadata(&args.input).map_or(0, |meta| meta.len());
    let room = size / 16 / u64::from(agent.ranks());
    state.table.replace(KmerTable::with_room_for(room as usize).context("no memory for the table")?);
    let mut worker = Worker::new(job, &agent, state, handlers, k)?;
    agent.barrier()?;

    let start = Instant::now();
    let mut sequences = 0;
    if first {
        match may_write(args) {
            Ok(()) => sequences = worker.deal(&args.input)?,
            Err(error) => worker.fail(format!("{error:#}"))?,
        }
        worker.end_dealing()?;
    } else {
        worker.work(&args.input)?;
    }
    if !worker.settle()? {
        if let Some(why) = state.why.take() {
            eprintln!("kmer-count: {why}");
        }
        return Ok(ExitCode::FAILURE);
    }
    let gathered = worker.gather()?;
    let Some((spectrum, table_bytes)) = gathered else { return Ok(ExitCode::SUCCESS) };
    let seconds = start.elapsed().as_secs_f64();
    let mut report = Report::new("kmer-count", &args.input, args.k, agent.ranks(), seconds, &spectrum);
    report.sequences = sequences;
    report.table_bytes = table_bytes;
    Ok(match publish(&agent, args, &report, &spectrum) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kmer-count: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Whether the files asked for can be written: better known before the work than after it.
fn may_write(args: &Args) -> Result<()> {
    for path in args.out.iter().chain(&args.svg) {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn publish(agent: &Agent<'_, Seq>, args: &Args, report: &Report, spectrum: &Spectrum) -> Result<()> {
    println!("{}", report.line());
    if args.plot {
        print!("{}", plot::terminal(spectrum, 80));
        if let Some(peak) = spectrum.peak() {
            println!("the genome's {}-mers gather at multiplicity {peak}", report.k);
        }
    }
    if let Some(path) = &args.svg {
        let file = args.input.file_name().unwrap_or(args.input.as_os_str()).to_string_lossy();
        let title = format!("{}-mers of {}", report.k, args.title.as_deref().unwrap_or(&file));
        let note = format!("{}; {} ranks", report.line(), agent.ranks());
        write_file(path, plot::svg(spectrum, &title, &note).as_bytes())?;
    }
    args.out.as_ref().map_or(Ok(()), |path| report.write(path))
}

const _: () = assert!(ROW as u64 * 8 * 64 + work::SLOTS * work::BLOCK as u64 <= SEGMENT);
