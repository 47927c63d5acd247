//! A rank of a job that ends in one of the ways of `gasworks_conformance::ends`.

use clap::{Parser, Subcommand};
use gasworks_conformance::ends::{act, collective};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Is a rank of a job that ends in one of many ways")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Be a rank of one of the cases
    Act {
        /// The case
        case: String,
        /// The rank that acts
        victim: u32,
    },
    /// Be a rank of a job of one collective
    Collective {
        /// Which
        kind: String,
    },
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Act { case, victim } => act(&case, victim),
        Command::Collective { kind } => collective(&kind),
    }
}
