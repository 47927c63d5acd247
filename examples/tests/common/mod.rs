//! Runs this package's programs, alone and under gasrun.
#![allow(dead_code, reason = "each test program uses a part of it")]

use gasworks_testkit::{Cmd, Ended, programs};

/// Runs a program as so many ranks, with a watchdog, and sees that nothing is left of it.
pub fn gasrun(ranks: usize, program: &str, args: &[&str]) -> Ended {
    run(programs::debug().and_then(|programs| programs.gasrun(ranks, program)), args)
}

/// Runs a program on its own.
pub fn alone(program: &str, args: &[&str]) -> Ended {
    run(programs::debug().and_then(|programs| Ok(Cmd::new(programs.program(program)?).job())), args)
}

/// Runs a command to its end, well or not.
pub fn run(cmd: anyhow::Result<Cmd>, args: &[&str]) -> Ended {
    let ended =
        cmd.and_then(|cmd| cmd.args(args).limit(60).run()).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(ended.status.is_some(), "{}: {}; it said:\n{}", ended.shown, ended.how(), ended.output);
    ended
}

/// The example ends well, and says so in the words with which it reports its check.
pub fn verified(ended: &Ended, words: &str, ranks: usize) {
    assert!(ended.ok(), "{ranks} ranks: {}: {}", ended.how(), ended.output);
    let said = ended.output.lines().filter(|line| line.contains(words)).count();
    assert_eq!(said, 1, "{ranks} ranks: {}", ended.output);
}
