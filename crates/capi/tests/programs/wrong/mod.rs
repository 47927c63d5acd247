//! Wrong calls. A debug build says where the call stands. An optimised build does what the book promises; of puts and gets, where it is
//! told to look at ranks and bounds.

mod calls;

use crate::ends::ENDS;
use crate::program::{CHECKED, DEBUG, Language, Program, source};
use anyhow::{Context, Result, ensure};
use calls::{GROUPS, Optimised, Wrong};
use gasworks_testkit::c::MODES;
use gasworks_testkit::output::told_once;
use gasworks_testkit::{Case, Cmd, Log};
use std::collections::BTreeSet;

/// The way of `ends.c` whose call stands nowhere: the function is called, and not the macro.
const UNPLACED: &str = "unplaced-call";

pub fn cases() -> Vec<Case> {
    let groups = GROUPS.into_iter().enumerate().flat_map(|(number, (name, calls))| {
        [
            Case::new(format!("wrong-calls/{name}/debug"), move |log| in_debug_builds(log, number, calls)),
            Case::new(format!("wrong-calls/{name}/optimised"), move |log| in_optimised_builds(log, calls)),
        ]
    });
    let judges = [
        Case::new("judge/the-line-of-a-call-is-found", |_| {
            let text = "if (is(\"a\")) f();\nif (is(\"b\")) g();\n/* at b, c */ h();\n";
            let lines = ["a", "b", "c"].map(|way| line_of(text, way).unwrap());
            assert_eq!(lines, [1, 3, 3]);
            assert!(line_of(text, "d").is_err());
            Ok(())
        }),
        Case::new("judge/every-way-is-tried-once", |_| every_way_is_tried_once()),
    ];
    let overrun = Case::new("wrong-calls/overrun", overrun_is_stopped);
    groups.chain([overrun]).chain(judges).collect()
}

/// Of a put that nobody looks at, beyond the end of a segment.
fn overrun_is_stopped(log: &Log) -> Result<()> {
    let job = Program::usual("ends", 0).job(log, 3)?.arg("outside");
    ends_with(log, &job, 128 + libc::SIGSEGV, &["was killed by signal 11 (SIGSEGV)"])
}

/// The program of a wrong call in a debug build. The calls of a group take turns with two languages and modes, those of the
/// next group with the next two.
fn debug_program(group: usize, call: usize) -> Program {
    let languages: Vec<_> = Language::of_gcc().collect();
    let number = (group + call % 2) % languages.len();
    Program { language: languages[number], options: DEBUG, ..Program::usual("ends", number % MODES.len()) }
}

/// Each rank that makes the call reports it once, with the line where it stands, and the job ends.
fn in_debug_builds(log: &Log, group: usize, calls: &[Wrong]) -> Result<()> {
    let text = std::fs::read_to_string(source("ends"))?;
    let jobs = [debug_program(group, 0).job(log, 3)?, debug_program(group, 1).job(log, 3)?];
    for (number, &(way, says, _)) in calls.iter().enumerate() {
        // No line is reported for a call of the function itself, least of all that of another call.
        let place = match way {
            UNPLACED => "FATAL ERROR: gex".to_owned(),
            _ => format!("ends.c:{}: ", line_of(&text, way)?),
        };
        ends_with(log, &jobs[number % 2].clone().arg(way), 1, &[&place, says]).context(way)?;
    }
    Ok(())
}

/// Each call has the effect that the table says, in the modes in turn.
fn in_optimised_builds(log: &Log, calls: &[Wrong]) -> Result<()> {
    let [seq, par] = [0, 2].map(|mode| Program { options: CHECKED, ..Program::usual("ends", mode) });
    let jobs = [par.job(log, 3)?, seq.job(log, 3)?];
    for (number, &(way, says, effect)) in calls.iter().enumerate() {
        // A lock is empty in `seq`.
        let job = if way.contains("lock") { &jobs[0] } else { &jobs[number % 2] };
        let job = job.clone().arg(way);
        match effect {
            Optimised::Same => ends_with(log, &job, 1, &[says]),
            // The error may be found only when the program goes on.
            Optimised::Says(other) => ends_with(log, &job.arg("goes-on"), 1, &[other]),
            Optimised::GoesOn => ends_with(log, &job.arg("goes-on"), 0, &[]),
            Optimised::Code(code) => ends_with(log, &job, code, &[]),
            Optimised::Untried => Ok(()),
        }
        .context(way)?;
    }
    Ok(())
}

/// The job ends with this code, and some rank has said all of this, once.
fn ends_with(log: &Log, job: &Cmd, code: i32, says: &[&str]) -> Result<()> {
    let ended = log.run(job)?;
    let found = ended.status.and_then(|status| status.code());
    ensure!(found == Some(code), "{}, not code {code}", ended.how());
    if says.is_empty() { Ok(()) } else { told_once(&ended.output, says) }
}

/// The ways that a comment of `ends.c` places on its line.
fn names_at(line: &str) -> impl Iterator<Item = &str> {
    let (_, rest) = line.split_once("/* at ").unwrap_or_default();
    rest.split_once(" */").map_or("", |(names, _)| names).split(", ").filter(|name| !name.is_empty())
}

/// The line of `ends.c` on which the wrong call of a way stands.
fn line_of(text: &str, way: &str) -> Result<usize> {
    let here = format!("is(\"{way}\")");
    let of = |found: &dyn Fn(&str) -> bool| text.lines().position(found).map(|at| at + 1);
    let line =
        of(&|line| names_at(line).any(|name| name == way)).or_else(|| of(&|line| line.contains(&here)));
    line.with_context(|| format!("the program knows no way {way:?}"))
}

/// Every way that `ends.c` knows is in one of the tables, and in one of them alone.
fn every_way_is_tried_once() -> Result<()> {
    let text = std::fs::read_to_string(source("ends"))?;
    let wrong = GROUPS.into_iter().flat_map(|(_, calls)| calls.iter().map(|(way, ..)| *way));
    let mut tried = BTreeSet::new();
    for way in wrong.chain(ENDS.map(|(way, ..)| way)) {
        ensure!(tried.insert(way), "{way:?} is tried twice");
    }
    let known: BTreeSet<_> = text
        .match_indices("is(\"")
        .filter_map(|(at, begin)| text[at + begin.len()..].split('"').next())
        .collect();
    let untried: Vec<_> = known.difference(&tried).collect();
    ensure!(known.len() > 100 && untried.is_empty(), "of {} ways, {untried:?} are not tried", known.len());
    Ok(())
}
