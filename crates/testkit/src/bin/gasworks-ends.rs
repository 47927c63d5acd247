//! Ends jobs in every way there is, and checks what comes of it.

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand, ValueEnum};
use gasworks_testkit::ends::{CASES, Launcher, act, check};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    about = "Ends jobs in every way there is, and checks that all ranks end, with which code, and in time"
)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Run the cases
    Check {
        /// Who starts the ranks
        #[arg(long, value_enum, default_value = "gasrun")]
        launcher: Name,
        /// Only cases whose names contain this
        #[arg(long, default_value = "")]
        case: String,
    },
    /// Be a rank of one of the cases
    Act {
        /// The case
        case: String,
        /// The rank that acts
        victim: u32,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Gasrun,
    Hydra,
    HydraWithoutCare,
}

fn main() -> Result<ExitCode> {
    match Args::parse().what {
        What::Act { case, victim } => Ok(act(&case, victim)),
        What::Check { launcher, case } => run(launcher, &case).map(|()| ExitCode::SUCCESS),
    }
}

fn run(launcher: Name, wanted: &str) -> Result<()> {
    let this = std::env::current_exe().context("looking for this program")?;
    let by = match launcher {
        Name::Gasrun => Launcher::Gasrun,
        Name::Hydra => Launcher::Hydra,
        Name::HydraWithoutCare => Launcher::HydraWithoutCare,
    };
    let (mut passed, mut failed) = (0, Vec::new());
    for case in CASES.iter().filter(|case| case.name.contains(wanted) && by.runs(case)) {
        // The leader of the star, and one of the others.
        for victim in [1, 0] {
            match check(case, victim, by, &this) {
                Ok(ended) => {
                    println!("case {} by rank {victim} ok ({:.2} s)", case.name, ended.took.as_secs_f64());
                    passed += 1;
                }
                Err(what) => {
                    println!("case {} by rank {victim} FAILED", case.name);
                    failed.push(format!("case {} by rank {victim}: {what}", case.name));
                }
            }
        }
    }
    // Last, where who shows the end of a long output shows it.
    if !failed.is_empty() || passed == 0 {
        bail!("{} cases failed, {passed} passed\n{}", failed.len(), failed.join("\n"));
    }
    println!("{passed} cases passed");
    Ok(())
}
