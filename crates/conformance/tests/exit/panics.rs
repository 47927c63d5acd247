//! A panic on a thread of the library's own, which no program could catch, ends its rank and so the job.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::{Case, Log, programs};

/// Where a thread is made to panic, as `PLACE@RANK`, in which program with which arguments, and what the thread is called.
const PANICS: [(&str, &str, &str, &str); 6] = [
    ("progress.serves@1", "gasworks-conformance", "--mode par", "gasworks-1"),
    ("keeper.star@1", "gasworks-conformance", "--mode seq", "gasworks-keeper"),
    ("keeper.bye@2", "gasworks-conformance", "--mode seq", "gasworks-keeper"),
    ("keeper.wished@1", ENDS, "act exit 1", "gasworks-keeper"),
    ("keeper.verdict@0", ENDS, "act exit 1", "gasworks-keeper"),
    ("keeper.finish@2", ENDS, "act exit 1", "gasworks-keeper"),
];

/// The code of a job of which one rank ended by `SIGABRT`.
const ABORTED: i32 = 128 + 6;
/// The program of which rank 1 ends the job with a code of its own. It waits a bounded time for the others, who may need
/// longer than that to say that they panicked: the launcher may hear of either first.
const ENDS: &str = "gasworks-ends";
/// That code.
const EXITED: i32 = 7;

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
    let (place, rank) = at.split_once('@').context("a rank")?;
    let by_the_other = program == ENDS && rank != "1" && code == Some(EXITED);
    ensure!(code == Some(ABORTED) || by_the_other, "{}, not code {ABORTED}", ended.how());
    let says = format!("the thread {thread} panicked: this process ends");
    let place = format!("asked to at {place}");
    // A rank that ended the job with a code of its own is left its own words.
    let end = if by_the_other { None } else { Some("SIGABRT") };
    for said in [says.as_str(), &place].into_iter().chain(end) {
        ensure!(ended.output.contains(said), "nobody says {said:?}");
    }
    Ok(())
}
