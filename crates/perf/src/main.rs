//! `gasperf`: see the library `gasworks_perf`.

use clap::Parser;
use gasworks_perf::options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    match gasworks_perf::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            gasworks_os::say(&format!("gasperf: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
