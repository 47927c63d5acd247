//! Runs this package's programs under gasrun.

use gasworks_testkit::processes::{Ended, Launch, program};
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

/// Runs a program as so many ranks, with a watchdog, and sees that nothing is left of it.
pub fn gasrun(ranks: u32, program: &str, args: &[&str]) -> Ended {
    build_gasrun();
    let job = Launch::new(ranks, Path::new(program)).unwrap().args(args).limit(Duration::from_secs(60));
    job.run().unwrap_or_else(|error| panic!("{program} {args:?} on {ranks} ranks: {error}"))
}

/// Runs a program on its own.
pub fn alone(program: &str, args: &[&str]) -> Ended {
    let job = Launch::plain(Path::new(program)).unwrap().args(args).limit(Duration::from_secs(60));
    job.run().unwrap_or_else(|error| panic!("{program} {args:?}: {error}"))
}

/// `cargo test -p gasworks-examples` does not build another package's program: build it where it is missing.
fn build_gasrun() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if program("gasrun").is_err() {
            let mut cargo = Command::new("cargo");
            cargo.args(["build", "--quiet", "--package", "gasworks-launch", "--bin", "gasrun"]);
            if env!("CARGO_BIN_EXE_hello").contains("/release/") {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success(), "gasrun cannot be built");
        }
    });
}
