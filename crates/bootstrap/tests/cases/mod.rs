//! Tests of a program that is also its own ranks. Each runs in a process of its own, as nextest runs all tests: no descriptor
//! that one leaves open for its ranks gets to those of another.

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::{Command, ExitCode, Stdio};

/// A test and its name.
pub type Case = (&'static str, fn());

/// Runs the tests that the command line chooses. One of them may be `ignored` on this machine.
pub fn run(cases: &[Case], ignored: Option<&str>) -> ExitCode {
    let args = Arguments::from_args();
    let is_alone = args.exact;
    let trial = |&(name, body): &Case| {
        let work = move || {
            if !is_alone {
                return in_a_process(name);
            }
            body();
            Ok(())
        };
        Trial::test(name, work).with_ignored_flag(ignored == Some(name))
    };
    libtest_mimic::run(&args, cases.iter().map(trial).collect()).exit_code()
}

fn in_a_process(name: &str) -> Result<(), Failed> {
    let this = std::env::current_exe()?;
    let output =
        Command::new(this).args([name, "--exact", "--include-ignored"]).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(String::from_utf8_lossy(&said).into_owned().into())
}
