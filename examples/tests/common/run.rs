//! Running a command of a test.

use gasworks_testkit::{Cmd, Ended};

/// Runs a command to its end, well or not.
pub fn run(cmd: anyhow::Result<Cmd>, args: &[&str]) -> Ended {
    let ended =
        cmd.and_then(|cmd| cmd.args(args).limit(60).run()).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(ended.status.is_some(), "{}: {}; it said:\n{}", ended.shown, ended.how(), ended.output);
    ended
}
