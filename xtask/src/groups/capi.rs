//! Programs in C and C++ against the C interface as it is laid out for them, in all thread modes.

use super::input;
use crate::capi::{MODES, SYSTEM, compiler, is_public, lay_out, names};
use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::matrix::pairwise;
use crate::rows::Row;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Programs that go around with any number of ranks, and whether they have threads.
const PROGRAMS: [(&str, bool); 4] =
    [("memory", false), ("messages", false), ("legacy", false), ("threads", true)];
const RANKS: [usize; 4] = [1, 2, 4, 7];
/// Compilers with their language, and how they are called in rows.
const LANGUAGES: [(&str, &str, &str); 5] = [
    ("c99", "gcc", "-x c -std=c99 -pedantic"),
    ("c11", "gcc", "-x c -std=c11 -pedantic"),
    ("c2x", "gcc", "-x c -std=c2x -pedantic"),
    ("c++11", "g++", "-x c++ -std=c++11 -pedantic"),
    ("c++23", "g++", "-x c++ -std=c++2b -pedantic"),
];
/// Optimised, or with what the headers check in debug builds.
const BUILDS: [(&str, &str); 2] = [("optimised", "-O2"), ("debug", "-O0 -g -DGASNET_DEBUG=1")];

/// Ways for a job to end: the job's code.
const ENDS: [(&str, i32); 5] =
    [("exit-before-attach", 5), ("return", 3), ("exit", 4), ("all-well", 0), ("in-a-handler", 7)];

/// What is wrong with a call, and what is said of it.
const WRONG: [(&str, &str); 14] = [
    ("before-init", "gasnet_AMPoll: there is no job"),
    ("init-twice", "gex_Client_Init: the job has begun"),
    ("reply-twice", "gex_AM_ReplyShort: the request was replied to before"),
    ("poll-in-a-handler", "gasnet_AMPoll: poll: not allowed while a handler runs"),
    ("no-such-rank", "gex_RMA_PutBlocking: there is no rank 1000: the team has 3"),
    ("outside", "bytes 4093 to 4093+4 are outside the segment of rank 0, which has 4096 bytes"),
    ("not-in-the-segment", "gex_RMA_GetBlocking: 4 bytes at 0x"),
    ("no-such-handler", "no handler is registered at index 210"),
    ("wrong-count", "a short request with 1 arguments for handler 203 (\"poll\")"),
    ("too-long", "a payload of 1073741824 bytes, at most 65536 are allowed"),
    ("no-event", "gex_Event_Wait: GEX_EVENT_NO_OP is no event"),
    ("no-such-event", "gex_Event_Wait: the event does not belong to this job"),
    ("committed-for-nothing", "gex_AM_CommitRequestMedium: there is no source descriptor"),
    ("no-such-team", "gex_RMA_PutBlocking: the team is GEX_TM_INVALID"),
];

/// What does not compile, and what is said of it.
const REFUSED: [(&str, &str); 5] = [
    ("", "one of -DGASNET_SEQ, -DGASNET_PARSYNC and -DGASNET_PAR"),
    ("-DGASNET_SEQ -DGASNET_PAR", "one of -DGASNET_SEQ, -DGASNET_PARSYNC and -DGASNET_PAR"),
    ("-DGASNET_SEQ -DGASNET_DEBUG -DNDEBUG", "GASNET_DEBUG and NDEBUG contradict each other"),
    ("-DGASNET_SEQ -DGASNET_DEBUG -O2", "GASNET_DEBUG is for builds without optimisation"),
    ("-DGASNET_SEQ -DGASNET_SEGMENT_EVERYTHING", "GASNET_SEGMENT_FAST"),
];

pub fn rows() -> Vec<Row> {
    let sizes = [PROGRAMS.len(), MODES.len(), LANGUAGES.len(), BUILDS.len(), RANKS.len()];
    let cells = pairwise(&sizes).into_iter().filter_map(|pick| {
        let ((name, has_threads), (mode, _)) = (PROGRAMS[pick[0]], MODES[pick[1]]);
        if has_threads && mode != "par" {
            return None;
        }
        let (language, build, ranks) = (pick[2], pick[3], RANKS[pick[4]]);
        let shown = format!("capi/{name}/{mode}/{}/{}/{ranks}", LANGUAGES[language].0, BUILDS[build].0);
        let row = move |world: &World, log: &Log| {
            let program = compiled(world, log, name, pick[1], language, build)?;
            passes(world, log, &program, name, ranks)
        };
        Some(Row::new(shown, row))
    });
    let rest = [
        Row::new("capi/names-of-its-own", names_of_its_own),
        Row::new("capi/ends", ends),
        Row::new("capi/bad-input", wrong),
        Row::new("capi/another-mode", another_mode),
        Row::new("capi/refused", refused),
        Row::new("capi/declared", declared),
    ];
    rest.into_iter().chain(cells).collect()
}

/// Where it is laid out, once for all rows.
fn laid_out(world: &World, log: &Log) -> Result<PathBuf> {
    let place = crate::root().join("target/xtask/capi");
    world.once("capi", || {
        // What the libraries are made of was built before.
        world.built(Build::Release)?;
        log.run_ok(&crate::capi::build())?;
        lay_out(&place, |cmd| log.run_ok(cmd).map(drop))
    })?;
    Ok(place)
}

fn source(name: &str) -> PathBuf {
    crate::root().join(format!("crates/capi/tests/c/{name}.c"))
}

fn compiled(
    world: &World,
    log: &Log,
    name: &str,
    mode: usize,
    language: usize,
    build: usize,
) -> Result<PathBuf> {
    let (place, (mode, define)) = (laid_out(world, log)?, MODES[mode]);
    let ((shown, cc, words), (kind, flags)) = (LANGUAGES[language], BUILDS[build]);
    let program = place.join(format!("{name}-{mode}-{shown}-{kind}"));
    let compile = compiler(cc, define, &place).words(words).words(flags).arg(source(name)).words("-x none");
    let compile = compile.arg("-o").arg(&program).arg(format!("-L{}", place.join("lib").display()));
    log.run_ok(&compile.arg(format!("-lgasnet-smp-{mode}")).words(SYSTEM).limit(120))?;
    Ok(program)
}

/// A job of it.
fn job(world: &World, program: &Path, ranks: usize) -> Result<Cmd> {
    let gasrun = Cmd::new(world.built(Build::Release)?.program("gasrun")?);
    Ok(gasrun.words(&format!("-n {ranks} --timeout 60 --label --")).arg(program).limit(90))
}

fn passes(world: &World, log: &Log, program: &Path, name: &str, ranks: usize) -> Result<()> {
    let leftovers = Leftovers::before();
    let ended = log.run_ok(&job(world, program, ranks)?)?;
    ensure!(ended.output.contains(&format!("{name}: done")), "it did not come to its end");
    leftovers.check()
}

/// A library shows its public names alone, and is one object.
fn names_of_its_own(world: &World, log: &Log) -> Result<()> {
    let lib = laid_out(world, log)?.join("lib");
    for (mode, _) in MODES {
        let library = lib.join(format!("libgasnet-smp-{mode}.a"));
        let (found, linked) = (names(&library)?, format!("gasworks_linked_{mode}_1"));
        let strange: Vec<_> = found.iter().filter(|name| !is_public(name)).collect();
        ensure!(strange.is_empty(), "{mode}: others see {strange:?}");
        ensure!(
            found.contains(&linked) && found.contains("gex_Segment_Attach"),
            "{mode}: {} names",
            found.len()
        );
        let members = Cmd::new("ar").arg("t").arg(&library).read()?;
        ensure!(members.lines().count() == 1, "{mode}: its members are {members:?}");
    }
    Ok(())
}

/// However a job ends, its code is the launcher's.
fn ends(world: &World, log: &Log) -> Result<()> {
    for (mode, (name, _)) in MODES.into_iter().enumerate() {
        let program = compiled(world, log, "ends", mode, 0, 0)?;
        for (way, code) in ENDS {
            let leftovers = Leftovers::before();
            let ended = log.run(&job(world, &program, 3)?.arg(way))?;
            let found = ended.status.and_then(|status| status.code());
            ensure!(found == Some(code), "{way} in {name}: {}, not code {code}", ended.how());
            leftovers.check().with_context(|| way.to_owned())?;
        }
    }
    Ok(())
}

/// Whatever is wrong with a call ends the job, and is told once by each rank that does it.
fn wrong(world: &World, log: &Log) -> Result<()> {
    // The headers look at handles in debug builds alone.
    let programs = [compiled(world, log, "ends", 0, 0, 0)?, compiled(world, log, "ends", 2, 3, 1)?];
    for (number, program) in programs.iter().enumerate() {
        for (way, says) in WRONG.iter().take(WRONG.len() - usize::from(number == 0)) {
            let leftovers = Leftovers::before();
            let ended = log.run(&job(world, program, 3)?.arg(way))?;
            ensure!(ended.status.is_some_and(|status| status.code() == Some(1)), "{way}: {}", ended.how());
            input::told_once(&ended.output, &[says]).with_context(|| (*way).to_owned())?;
            leftovers.check().with_context(|| (*way).to_owned())?;
        }
    }
    Ok(())
}

/// An object of one mode does not link with the library of another, whose name is said.
fn another_mode(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    for (own, other) in [(0, 2), (2, 0), (1, 2)] {
        let compile = compiler("gcc", MODES[own].1, &place).arg("-O2").arg(source("memory"));
        let compile =
            compile.arg("-o").arg(place.join("none")).arg(format!("-L{}", place.join("lib").display()));
        let ended = log.run(&compile.arg(format!("-lgasnet-smp-{}", MODES[other].0)).words(SYSTEM))?;
        ensure!(!ended.ok(), "{} links with {}", MODES[own].0, MODES[other].0);
        let name = format!("gasworks_linked_{}_1", MODES[own].0);
        ensure!(ended.output.contains(&name), "nobody says {name}");
    }
    Ok(())
}

/// What contradicts itself does not compile.
fn refused(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    for (flags, says) in REFUSED {
        let compile = compiler("gcc", "NOTHING_ELSE", &place).words("-fsyntax-only -x c").words(flags);
        let ended = log.run(&compile.arg(source("memory")))?;
        ensure!(!ended.ok() && ended.output.contains(says), "{flags:?}: {says:?} is not said");
    }
    Ok(())
}

/// Every name of the areas that only are declared so far is, in all languages.
fn declared(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    let folder = crate::root().join("crates/capi/tests/c/names");
    let mut sources: Vec<_> =
        std::fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    sources.sort();
    ensure!(sources.len() >= 6, "{} files of names", sources.len());
    for ((_, cc, words), (_, define)) in LANGUAGES.into_iter().zip(MODES.into_iter().cycle()) {
        for source in &sources {
            log.run_ok(&compiler(cc, define, &place).words(words).words("-O1 -fsyntax-only").arg(source))?;
        }
    }
    Ok(())
}
