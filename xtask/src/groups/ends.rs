//! Every way in which a job can end, under each launcher that is there.

use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::needs::Need;
use crate::rows::Row;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};

/// Where a thread of the library is made to panic, in which program that does what, and what that thread is called.
const PANICS: [(&str, &str, &str, &str); 6] = [
    ("progress.serves@1", "gasworks-conformance", "--mode par", "gasworks-1"),
    ("keeper.star@1", "gasworks-conformance", "--mode seq", "gasworks-keeper"),
    ("keeper.bye@2", "gasworks-conformance", "--mode seq", "gasworks-keeper"),
    ("keeper.wished@1", "gasworks-ends", "act exit 1", "gasworks-keeper"),
    ("keeper.verdict@0", "gasworks-ends", "act exit 1", "gasworks-keeper"),
    ("keeper.finish@2", "gasworks-ends", "act exit 1", "gasworks-keeper"),
];
/// The code of a job of which one rank ended so, by SIGABRT.
const ABORTED: i32 = 128 + 6;

/// Ways to end, each with two ranks that act: as many as there are at least, under `gasrun` and under others.
const ENDS: usize = 92;

pub fn rows() -> Vec<Row> {
    let row = |launcher: &'static str| {
        Row::new(format!("exit/{launcher}"), move |world, log| {
            let built = world.built(Build::Debug)?;
            let (program, leftovers) = (built.program("gasworks-ends")?, Leftovers::before());
            let check = Cmd::new(program).words("check --launcher").arg(launcher).limit(240);
            let ended = log.run_ok(&check)?;
            leftovers.check()?;
            enough(&ended.output)
        })
    };
    vec![
        row("gasrun"),
        row("hydra").need(Need::Hydra),
        // Where nobody ends the others when one is gone, they end by themselves.
        row("hydra-without-care").need(Need::Hydra),
        Row::new("exit/panics", panics),
    ]
}

/// A panic on a thread of the library's own, that no program could catch, ends its rank and so the job.
fn panics(world: &World, log: &Log) -> Result<()> {
    let built = world.built(Build::Debug)?;
    for (at, program, args, thread) in PANICS {
        let says = format!("the thread {thread} panicked: this process ends");
        panics_at(log, built.gasrun(3, program)?.words(args), at, &says)?;
    }
    Ok(())
}

/// Runs `job`, of which a rank is to panic `at` a place, as `place@rank`: it ends by that alone, and says so.
pub fn panics_at(log: &Log, job: Cmd, at: &str, says: &str) -> Result<()> {
    let leftovers = Leftovers::before();
    let progress = if at.starts_with("progress.") { "1" } else { "0" };
    let job = job.env("GASWORKS_PROGRESS_THREAD", progress).env("GASWORKS_PANIC_AT", at).limit(20);
    let ended = log.run(&job)?;
    let code = ended.status.and_then(|status| status.code());
    ensure!(code == Some(ABORTED), "{at}: {}, not with code {ABORTED}", ended.how());
    let (place, _) = at.split_once('@').context("a rank")?;
    for said in [says, &format!("asked to at {place}"), "SIGABRT"] {
        ensure!(ended.output.contains(said), "{at}: {said:?} is not said");
    }
    leftovers.check().with_context(|| at.to_owned())
}

fn enough(output: &str) -> Result<()> {
    let last = output.lines().last().unwrap_or_default();
    let count = last.strip_suffix(" cases passed").and_then(|count| count.parse::<usize>().ok());
    let count = count.with_context(|| format!("the last line does not count the cases: {last:?}"))?;
    ensure!(count >= ENDS, "{count} ends were tried; there are {ENDS} or more");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_table_that_got_shorter_is_found() {
        assert!(super::enough("case exit by rank 0 ok (0.1 s)\n92 cases passed\n").is_ok());
        assert!(super::enough("91 cases passed\n").is_err());
        assert!(super::enough("92 cases passed\nbut\n").is_err());
    }
}
