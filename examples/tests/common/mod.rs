//! Runs this package's programs, alone and under gasrun.

mod run;

use gasworks_testkit::{Cmd, Ended, programs};
use run::run;

/// Runs a program as so many ranks, with a watchdog, and sees that nothing is left of it.
pub fn gasrun(ranks: usize, program: &str, args: &[&str]) -> Ended {
    run(programs::debug().and_then(|programs| programs.gasrun(ranks, program)), args)
}

/// Runs a program on its own.
pub fn alone(program: &str, args: &[&str]) -> Ended {
    run(programs::debug().and_then(|programs| Ok(Cmd::new(programs.program(program)?).job())), args)
}
