//! Runs the conformance suite: under `gasrun` over shared memory, or alone over `SimNet`.

use anyhow::{Result, anyhow, bail};
use clap::{Parser, ValueEnum};
use gasworks::{Config, Job, Par, ParSync, Seq};
use gasworks_conformance::conformance::special::{SPECIALS, STACK, odd_table, suite_on};
use gasworks_conformance::conformance::{Stage, State, SuiteMode, cases, memory, run_case, segment};
use gasworks_conformance::simnet::SimConfig;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// One thread communicates.
    Seq,
    /// Several may, one at a time.
    Parsync,
    /// Several may.
    Par,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Net {
    /// The job that this process was started in.
    Pshm,
    /// A simulated network in this process.
    Simnet,
}

#[derive(Parser)]
#[command(about = "Runs the conformance suite over a transport, checking what arrives")]
struct Args {
    /// The thread mode
    #[arg(long, value_enum, default_value = "seq")]
    mode: Mode,
    /// Only cases whose names contain this
    #[arg(long, default_value = "")]
    case: String,
    /// No cases whose names contain this
    #[arg(long)]
    without: Option<String>,
    /// Print the names of the cases and end
    #[arg(long)]
    list: bool,
    /// Over which transport
    #[arg(long, value_enum, default_value = "pshm")]
    transport: Net,
    /// Ranks of a simulated network
    #[arg(long, default_value_t = 4)]
    ranks: u32,
    /// Seeds of simulated networks, from A up to but without B
    #[arg(long, value_name = "A..B", value_parser = seeds, default_value = "0..4")]
    seeds: Range<u64>,
    /// Ranks of a simulated network reach each other's memory through its NIC alone
    #[arg(long)]
    unmapped: bool,
    /// Seconds that one simulated network may take
    #[arg(long, default_value_t = 120)]
    watchdog: u64,
    /// Bytes of stack for each rank
    #[arg(long, default_value_t = STACK)]
    stack: usize,
    /// Bytes of each rank's segment, instead of what the suite needs
    #[arg(long)]
    segment: Option<u64>,
    /// Attach the segment when the job is open
    #[arg(long)]
    attach: bool,
    /// Open a job whose tables differ, which must fail
    #[arg(long)]
    tables_differ: bool,
    /// Open a job that only meets, with the segment that the settings ask for, and print what memory each rank has and uses
    #[arg(long)]
    silent: bool,
    /// Open a job and have rank 0 abort it with code 42
    #[arg(long)]
    abort: bool,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("{text:?}: wanted two numbers, such as 0..10");
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) if from < to => Ok(from..to),
        _ => Err(wanted()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match args.mode {
        Mode::Seq => run::<Seq>(&args),
        Mode::Parsync => run::<ParSync>(&args),
        Mode::Par => run::<Par>(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without its chain of causes: the messages of Gasworks' errors contain theirs.
            gasworks_os::say(&format!("gasworks-conformance: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run<M: SuiteMode>(args: &Args) -> Result<()> {
    if args.list {
        cases::<M>().iter().for_each(|case| println!("{} (from {} ranks)", case.name, case.ranks));
        SPECIALS.iter().for_each(|(name, _)| println!("{name} (simnet alone)"));
        return Ok(());
    }
    match args.transport {
        Net::Pshm => on_small_stack(args, in_job::<M>),
        Net::Simnet => simulated::<M>(args),
    }
}

/// Ranks that meet and say nothing to each other.
fn silent<M: SuiteMode>(job: &Job<M>) -> Result<()> {
    let agent = job.agent()?;
    for _ in 0..20 {
        agent.barrier()?;
    }
    let used = gasworks_os::memory_use::own()?;
    agent.barrier()?;
    let segment = (job.segment().len(), job.max_local_segment(), job.max_global_segment());
    println!("silent {} {segment:?} {}", job.rank(), used.private_and_shared_dirty());
    println!("{used:?}");
    Ok(agent.barrier()?)
}

/// A job of processes runs in a thread as well, so that it has the stack that is asked for.
fn on_small_stack(args: &Args, body: fn(&Args) -> Result<()>) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("rank".into()).stack_size(args.stack);
        let running = thread.spawn_scoped(scope, || body(args));
        let running = running.map_err(|error| anyhow!("starting the rank's thread: {error}"))?;
        running.join().unwrap_or_else(|_| bail!("the rank's thread panicked"))
    })
}

/// Gives a job its segments, which are of no use before.
fn attached<M: SuiteMode>(job: &Job<M>, size: u64) -> Result<()> {
    let (rank, agent) = (job.rank(), job.agent()?);
    let next = (rank + 1) % job.ranks();
    let place = gasworks::GlobalPtr::<u8>::new(next, size - 1);
    if agent.put(place, &[1]).is_ok() {
        bail!("a put to a segment that is not attached");
    }
    agent.barrier()?;
    let len = job.attach(size)?;
    if len < size || job.segment().len() != len || agent.segment(next)?.len() < size {
        bail!("{size} bytes became {len}");
    }
    Ok(())
}

fn in_job<M: SuiteMode>(args: &Args) -> Result<()> {
    if args.tables_differ {
        // Before the job is open, only the launcher's variable says which rank this is.
        let rank = gasworks_bootstrap::SETTINGS.iter().find(|row| row.name == "PMI_RANK");
        let rank = rank.map_or(Ok(None), |row| row.number())?.unwrap_or(0);
        drop(Job::open(Config::from_env()?, odd_table(rank as u32)?)?);
        bail!("a job whose tables differ was opened");
    }
    let state = Arc::new(State::default());
    let (table, handlers) = M::table(&state)?;
    if args.silent {
        let job = Job::open(Config::from_env()?, table)?;
        silent(&job)?;
        return Ok(job.close()?);
    }
    let size = args.segment.unwrap_or(segment(64));
    let config = Config::from_env()?;
    let job = if args.attach {
        let job = Job::open(config.segment_later(), table)?;
        attached(&job, size)?;
        job
    } else {
        Job::open(config.segment(size).segment_max(size.saturating_add(memory::ROOM)), table)?
    };
    if args.abort {
        if job.rank() == 0 {
            job.abort(42, "asked to");
        }
        job.agent()?.wait_until(|| false)?; // until the launcher ends this rank
    }
    let (rank, mut run) = (job.rank(), 0);
    {
        let stage = Stage::new(&job, &handlers, &state)?;
        let is_left_out = |name: &str| args.without.as_ref().is_some_and(|part| name.contains(part));
        let is_asked_for = |name: &str| name.contains(&args.case) && !is_left_out(name);
        for case in cases::<M>().iter().filter(|case| case.ranks <= job.ranks() && is_asked_for(case.name)) {
            run_case(&stage, case)?;
            run += 1;
            if stage.rank() == 0 {
                println!("case {} ok", case.name);
            }
        }
        if run == 0 {
            bail!("no case of at most {} ranks has {:?} in its name", job.ranks(), args.case);
        }
    }
    job.close()?;
    if rank == 0 {
        passed(run);
    }
    Ok(())
}

/// The last line of a suite that passed: whoever started it can tell how much it was.
fn passed(cases: usize) {
    println!("{cases} cases passed");
}

fn simulated<M: SuiteMode>(args: &Args) -> Result<()> {
    let specials: Vec<_> = SPECIALS.iter().filter(|(name, _)| name.contains(&args.case)).collect();
    let own =
        cases::<M>().iter().filter(|case| case.ranks <= args.ranks && case.name.contains(&args.case)).count();
    if own + specials.len() == 0 {
        bail!("no case of at most {} ranks has {:?} in its name", args.ranks, args.case);
    }
    let count = Mutex::new(0);
    let case_passed = |name: &str| {
        println!("case {name} ok");
        *count.lock().unwrap_or_else(|e| e.into_inner()) += 1;
    };
    for seed in args.seeds.clone() {
        let mapped = !args.unmapped;
        println!("simnet seed {seed}, {} ranks, {}", args.ranks, if mapped { "mapped" } else { "unmapped" });
        if own > 0 {
            let watchdog = Duration::from_secs(args.watchdog);
            let config = SimConfig { mapped, watchdog, ..SimConfig::varied(args.ranks, seed) };
            suite_on::<M>(config, &args.case, &case_passed)?;
        }
        for (name, special) in &specials {
            special(seed).map_err(|error| anyhow!("case {name}, seed {seed}: {error}"))?;
            case_passed(name);
        }
    }
    passed(count.into_inner().unwrap_or_else(|e| e.into_inner()));
    Ok(())
}
