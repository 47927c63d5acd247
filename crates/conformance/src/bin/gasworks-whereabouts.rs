//! A rank that joins its job, tells the others values and checks theirs, says where it is, and ends the job in one of
//! several ways.

use clap::Parser;
use gasworks_conformance::whereabouts::{End, run};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    about = "Joins a job under any launcher, checks what the ranks tell each other, and says where this rank is"
)]
struct Args {
    /// This rank kills itself at the end
    #[arg(long, value_name = "RANK", group = "end")]
    kill: Option<u32>,
    /// This rank aborts the job at the end, with this code
    #[arg(long, num_args = 2, value_names = ["RANK", "CODE"], group = "end")]
    abort: Option<Vec<u32>>,
    /// That rank waits until this file is there
    #[arg(long, value_name = "FILE", requires = "abort")]
    when: Option<PathBuf>,
    /// This rank ends without a word at the end
    #[arg(long, value_name = "RANK", group = "end")]
    desert: Option<u32>,
    /// All but these ranks call exit(0) at the end
    #[arg(long, value_name = "RANK", num_args = 1.., group = "end")]
    linger: Vec<u32>,
    /// All ranks stay at the end until somebody ends them
    #[arg(long, group = "end")]
    stay: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let end = match (args.kill, args.abort.as_deref(), args.desert) {
        (Some(rank), ..) => End::Killed(rank),
        (_, Some(&[rank, code]), _) => End::Aborted(rank, code as i32, args.when),
        (_, _, Some(rank)) => End::Deserted(rank),
        _ if !args.linger.is_empty() => End::Lingering(args.linger),
        _ if args.stay => End::Awaited,
        _ => End::Well,
    };
    match run(end) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            gasworks_os::say(&format!("gasworks-whereabouts: {error}"));
            ExitCode::FAILURE
        }
    }
}
