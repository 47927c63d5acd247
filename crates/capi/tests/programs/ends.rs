//! How a job of a program in C ends: by any call or signal, and by a panic of the library.

use crate::program::{Program, start};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::c::{MODES, compiler, linked_name};
use gasworks_testkit::programs::{self, Fixture};
use gasworks_testkit::{Case, Cmd, Log, c};

/// Ways for a job to end: the way of `ends.c`, the job's exit code, and how many of its ranks run their handler of `SIGQUIT`.
pub const ENDS: [(&str, i32, usize); 11] = [
    ("exit-before-attach", 5, 0),
    ("return", 3, 0),
    ("exit", 4, 0),
    ("all-well", 0, 0),
    ("in-a-handler", 7, 0),
    ("exit-by-all", 6, 0),
    ("told-to-end", 128 + 15, 0),
    ("told-to-end-chosen", 21, 1),
    ("told-to-end-not-chosen", 128 + 15, 1),
    ("broken-pipe", 128 + 13, 0),
    ("broken-pipe-chosen", 21, 1),
];

/// Panics of the library: the kill point as `POINT@RANK`, the way of `ends.c` that passes it, and who reports the panic.
pub const PANICS: [(&str, &str, &str); 4] = [
    // In a call; in a handler's reply; on threads of the library, as the job ends and before.
    ("barrier.arrive.counted@1", "all-poll", "defect of Gasworks: "),
    ("inbox.send.placed@1", "reply-to-reply", "defect of Gasworks: "),
    ("keeper.wished@2", "in-a-handler", "thread gasworks-keeper: "),
    ("progress.serves@1", "all-poll", "thread gasworks-1: "),
];
/// The code of a job of which `SIGABRT` ended one rank.
const ABORTED: i32 = 128 + 6;

pub fn cases() -> Vec<Case> {
    let ends = MODES.into_iter().enumerate().flat_map(|(mode, (name, _))| {
        ENDS.map(|(way, code, handlers)| {
            Case::new(format!("ends/{way}/{name}"), move |log| ends_with(log, mode, way, code, handlers))
        })
    });
    let panics = PANICS.map(|(at, way, says)| {
        let point = at.split_once('@').map_or(at, |(point, _)| point);
        Case::new(format!("panics/{point}"), move |log| panics_at(log, at, way, says))
    });
    ends.chain(panics).collect()
}

/// The exit code of a job is the launcher's, and the launcher had to kill no rank.
fn ends_with(log: &Log, mode: usize, way: &str, code: i32, handlers: usize) -> Result<()> {
    let ended = log.run(&Program::usual("ends", mode).job(log, &log.scratch()?, 3)?.arg(way))?;
    let found = ended.status.and_then(|status| status.code());
    ensure!(found == Some(code), "{}, not code {code}", ended.how());
    ensure!(!ended.output.contains("was killed"), "it did not end by itself");
    let ran = ended.output.matches("handler of SIGQUIT").count();
    ensure!(ran == handlers, "{ran} handlers of SIGQUIT ran, not {handlers}");
    Ok(())
}

/// A panic of the library, on a thread of the program or its own, ends the process by `SIGABRT`, and so the job.
fn panics_at(log: &Log, at: &str, way: &str, says: &str) -> Result<()> {
    let (point, _) = at.split_once('@').context("no rank")?;
    let progress = if point.starts_with("progress.") { "1" } else { "0" };
    let job = with_kill_points(log)?.arg(way).limit(75);
    let ended = log.run(&job.env("GASWORKS_PROGRESS_THREAD", progress).env("GASWORKS_PANIC_AT", at))?;
    let code = ended.status.and_then(|status| status.code());
    ensure!(code == Some(ABORTED), "{}, not with code {ABORTED}", ended.how());
    for said in [says, &format!("asked to at {point}"), "SIGABRT"] {
        ensure!(ended.output.contains(said), "nobody says {said:?}");
    }
    Ok(())
}

/// A job of `ends.c`, linked with the archive of the dev profile, which has kill points.
fn with_kill_points(log: &Log) -> Result<Cmd> {
    let (mode, define) = MODES[2];
    let archive = programs::debug()?.program(&format!("libgasworks_gasnet_{mode}.a"))?;
    let program = log.scratch()?.join("ends");
    // The archive has one name by which objects link, for all conduits.
    let any = format!("gasworks_linked_{mode}_{}", c::INTERFACE);
    let name = format!("-Wl,--defsym={}={any},--undefined={any}", linked_name("smp", mode));
    let compile = compiler("gcc", "smp", define, &Fixture::C.get()?).arg(crate::program::source("ends"));
    let link = compile.arg("-o").arg(&program).arg(name).arg(archive).words(c::SYSTEM).limit(120);
    log.run_ok(&link)?;
    start(&program, 3)
}
