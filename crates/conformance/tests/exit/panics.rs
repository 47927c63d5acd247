//! A panic on a thread of the library's own, which no program could catch, ends its rank and so the job.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::{Case, Log, programs};

/// Where a thread is made to panic, as `PLACE@RANK`, in which program with which arguments, and what the thread is called.
const PANICS: [(&str, &str, &str, &str); 6] = [
    ("progress.serves@1", "gasworks-conformance", "--mode par", "gasworks-1"),
    ("keeper.star@1", "gasworks-conformance", "--mode seq", "gasworks-keeper"),
    ("keeper.bye@2", "gasworks-conformance", "--mode seq", "gasworks-keeper"),
    ("keeper.wished@1", "gasworks-ends", "act exit 1", "gasworks-keeper"),
    ("keeper.verdict@0", "gasworks-ends", "act exit 1", "gasworks-keeper"),
    ("keeper.finish@2", "gasworks-ends", "act exit 1", "gasworks-keeper"),
];

/// The code of a job of which one rank ended by `SIGABRT`.
const ABORTED: i32 = 128 + 6;
/// The place that is passed when the job is ending already, with this code of rank 1: the launcher may hear of either first.
const ENDING: (&str, i32) = ("keeper.finish", 7);

/// A case for each place.
pub fn cases() -> impl Iterator<Item = Case> {
    PANICS.into_iter().map(|(at, program, args, thread)| {
        Case::new(format!("panic/{at}"), move |log| panics(log, at, program, args, thread))
    })
}

/// Runs a job of which a rank is to panic `at` a place: it ends by that alone, and says so.
fn panics(log: &Log, at: &str, program: &str, args: &str, thread: &str) -> Result<()> {
    let job = programs::debug()?.gasrun(3, program)?.words(args);
    let progress = if at.starts_with("progress.") { "1" } else { "0" };
    let job = job.env("GASWORKS_PROGRESS_THREAD", progress).env("GASWORKS_PANIC_AT", at).limit(20);
    let ended = log.run(&job)?;
    let code = ended.status.and_then(|status| status.code());
    let (place, _) = at.split_once('@').context("a rank")?;
    let by_the_other = (place, code) == (ENDING.0, Some(ENDING.1));
    ensure!(code == Some(ABORTED) || by_the_other, "{}, not code {ABORTED}", ended.how());
    let says = format!("the thread {thread} panicked: this process ends");
    let end = if by_the_other { "rank 1 (pid " } else { "SIGABRT" };
    for said in [says.as_str(), &format!("asked to at {place}"), end] {
        ensure!(ended.output.contains(said), "nobody says {said:?}");
    }
    Ok(())
}
