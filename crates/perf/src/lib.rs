//! `gasperf`: what the library's operations cost between the ranks of a job, beside what the machine itself can do.
//!
//! - [`options`]: the command line; [`row`]: what a measurement gives; [`stats`]: which blocks of it count;
//! - `session`: a job with its handlers, and how blocks are timed on all ranks together;
//! - `am`, `rma`, `scattered`, `given`, `meet`, `collective`, `gups`, `wake`, `jobs`: the benches; `raw`: the machine itself;
//! - `call`: the measurements in C, which are in `raw/`; `probe`: how near two ranks are.
#![deny(missing_docs)]

mod am;
#[allow(unsafe_code)]
mod call;
#[allow(unsafe_code)]
mod clock;
mod collective;
mod given;
mod gups;
#[allow(unsafe_code)]
mod handlers;
mod jobs;
mod meet;
pub mod options;
mod probe;
mod raw;
mod rma;
pub mod row;
#[allow(unsafe_code)]
mod scattered;
mod session;
pub mod stats;
mod wake;

use anyhow::{Result, ensure};
use gasworks::{Config, Job, Par, Seq, Table};
use options::{Bench, Mode, Options};
use session::{PerfMode, Session};
use std::sync::Arc;

/// Runs one bench as a rank of a job. Collective; rank 0 prints the rows.
///
/// # Errors
/// The job fails, it has too few ranks, or bytes arrived wrong.
pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    match options.mode {
        Mode::Seq => run_as::<Seq>(options),
        Mode::Par => run_as::<Par>(options),
    }
}

fn run_as<M: PerfMode>(options: &Options) -> Result<()> {
    let state = Arc::new(handlers::State::<M>::new());
    let mut table = Table::<M>::new();
    let handlers = M::register(&mut table, &state)?;
    let bootstrap_ranks = |job: &Job<M>| {
        let (bench, ranks) = (options.bench, job.ranks());
        ensure!(
            ranks >= bench.least_ranks(),
            "{} is measured between two ranks and this job has {ranks}: start it as `gasrun -n 2 gasperf {}`",
            bench.name(),
            bench.name()
        );
        Ok(())
    };
    if options.empty {
        let job = Job::open(Config::from_env()?.segment(jobs::SEGMENT), table)?;
        return Ok(job.close()?);
    }
    let config = Config::from_env()?;
    let job = Job::open(config.segment(rma::segment(options)), table)?;
    bootstrap_ranks(&job)?;
    let session = Session::new(&job, handlers, state, options)?;
    match options.bench {
        Bench::Raw => raw::run(&session)?,
        Bench::AmLatency => am::latency(&session)?,
        Bench::AmRate => am::rate(&session)?,
        Bench::AmBandwidth => am::bandwidth(&session)?,
        Bench::PutLatency => rma::latency(&session, rma::Way::Put)?,
        Bench::GetLatency => rma::latency(&session, rma::Way::Get)?,
        Bench::PutBandwidth => rma::bandwidth(&session, rma::Way::Put)?,
        Bench::GetBandwidth => rma::bandwidth(&session, rma::Way::Get)?,
        Bench::Strided => scattered::strided(&session)?,
        Bench::Given => given::run(&session)?,
        Bench::Barrier => meet::barrier(&session)?,
        Bench::Collective => collective::collective(&session)?,
        Bench::Atomic => meet::atomic(&session)?,
        Bench::Gups => gups::run(&session)?,
        Bench::Wake => wake::run(&session)?,
        Bench::Startup => jobs::startup(&session)?,
        Bench::Memory => jobs::memory(&session)?,
        Bench::Scale => jobs::scale(&session)?,
    }
    session.printed()?;
    drop(session);
    Ok(job.close()?)
}
