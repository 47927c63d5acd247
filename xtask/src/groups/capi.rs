//! Programs in C and C++ against the C interface as it is laid out for them, in all thread modes.

mod environment;
mod links;
mod wrong;

use super::{ends, ugni};
use crate::capi::{CONDUITS, MODES, built, compiler, lay_out, linking};
use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::matrix::{pairwise, product};
use crate::needs::Need;
use crate::rows::Row;
use crate::ugni::dressed;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// Programs that go around with any number of ranks, and whether they have threads.
const PROGRAMS: [(&str, bool); 6] = [
    ("memory", false),
    ("messages", false),
    ("legacy", false),
    ("granted", false),
    ("allowed", false),
    ("threads", true),
];
const RANKS: [usize; 4] = [1, 2, 4, 7];
/// Compilers with their language, and how they are called in rows.
pub const LANGUAGES: [(&str, &str, &str); 8] = [
    ("c99", "gcc", "-x c -std=c99 -pedantic"),
    ("c11", "gcc", "-x c -std=c11 -pedantic"),
    ("c2x", "gcc", "-x c -std=c2x -pedantic"),
    ("c++11", "g++", "-x c++ -std=c++11 -pedantic"),
    ("c++23", "g++", "-x c++ -std=c++2b -pedantic"),
    ("clang-c99", "clang", "-x c -std=c99 -pedantic"),
    ("clang-c2x", "clang", "-x c -std=c2x -pedantic"),
    ("clang-c++23", "clang++", "-x c++ -std=c++2b -pedantic"),
];
/// What sees in a running program whether it uses what is not its own, or what the language leaves undefined.
const SANITIZED: &str = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all";
/// Optimised, or with what the headers check in debug builds.
const BUILDS: [(&str, &str); 2] = [("optimised", "-O2"), ("debug", "-O0 -g -DGASNET_DEBUG=1")];

/// Ways for a job to end: the job's code, and how many of its ranks have their handler of SIGQUIT run.
const ENDS: [(&str, i32, usize); 11] = [
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

/// Where the library is made to panic, in what ends.c does meanwhile: and who says so.
const PANICS: [(&str, &str, &str); 4] = [
    // In a call; in a handler's reply; on threads of the library, as the job ends and before.
    ("barrier.arrive.counted@1", "all-poll", "defect of Gasworks: "),
    ("inbox.send.placed@1", "reply-to-reply", "defect of Gasworks: "),
    ("keeper.wished@2", "in-a-handler", "thread gasworks-keeper: "),
    ("progress.serves@1", "all-poll", "thread gasworks-1: "),
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
    let sizes = [PROGRAMS.len(), MODES.len(), LANGUAGES.len(), BUILDS.len(), RANKS.len(), CONDUITS.len()];
    let cells = pairwise(&sizes).into_iter().filter_map(|pick| {
        let ((name, has_threads), (mode, _)) = (PROGRAMS[pick[0]], MODES[pick[1]]);
        if has_threads && mode != "par" {
            return None;
        }
        let (language, build, ranks, conduit) = (pick[2], pick[3], RANKS[pick[4]], CONDUITS[pick[5]]);
        let ((spoken, cc, words), (kind, flags)) = (LANGUAGES[language], BUILDS[build]);
        let shown = format!("capi/{name}/{conduit}/{mode}/{spoken}/{kind}/{ranks}");
        let program = Program { name, conduit, mode: pick[1], cc, words, flags };
        let row = Row::new(shown, move |world: &World, log: &Log| passes(world, log, &program, ranks));
        Some(if cc.starts_with("clang") { row.need(Need::Clang) } else { row })
    });
    let sanitized = product(&[PROGRAMS.len(), MODES.len()]).into_iter().filter_map(|pick| {
        let ((name, has_threads), (mode, _)) = (PROGRAMS[pick[0]], MODES[pick[1]]);
        if has_threads && mode != "par" {
            return None;
        }
        let program = Program { flags: SANITIZED, ..Program::usual(name, pick[1]) };
        let shown = format!("capi/{name}/smp/{mode}/sanitized/3");
        Some(Row::new(shown, move |world: &World, log: &Log| passes(world, log, &program, 3)))
    });
    let rest = [
        Row::new("capi/ends", ends),
        Row::new("capi/panics", panics),
        Row::new("capi/bad-input", wrong::wrong),
        Row::new("capi/debug-names", wrong::calls),
        Row::new("capi/refused", refused),
    ];
    let further = links::rows().into_iter().chain(environment::rows());
    rest.into_iter().chain(further).chain(cells).chain(sanitized).collect()
}

/// Where it is laid out, once for all rows.
pub fn laid_out(world: &World, log: &Log) -> Result<PathBuf> {
    let place = crate::root().join("target/xtask/capi");
    world.once("capi", || {
        // What the libraries are made of was built before.
        world.built(Build::Release)?;
        log.run_ok(&crate::capi::build())?;
        lay_out(&place, &built(), &CONDUITS, |cmd| log.run_ok(cmd).map(drop))
    })?;
    Ok(place)
}

fn source(name: &str) -> PathBuf {
    crate::root().join(format!("crates/capi/tests/c/{name}.c"))
}

/// A program of ours, and how it is compiled.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    conduit: &'static str,
    mode: usize,
    cc: &'static str,
    words: &'static str,
    flags: &'static str,
}

impl Program {
    /// As most clients are.
    fn usual(name: &'static str, mode: usize) -> Self {
        let ((_, cc, words), (_, flags)) = (LANGUAGES[0], BUILDS[0]);
        Self { name, conduit: CONDUITS[0], mode, cc, words, flags }
    }

    fn compiled(&self, world: &World, log: &Log) -> Result<PathBuf> {
        let Self { name, conduit, mode, cc, words, flags } = *self;
        let (place, (mode, define)) = (laid_out(world, log)?, MODES[mode]);
        let called: String = [words, flags].concat().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let program = place.join(format!("{name}-{conduit}-{mode}-{cc}-{called}"));
        let compile = compiler(cc, conduit, define, &place).words(words).words(flags).arg(source(name));
        log.run_ok(&linking(compile.words("-x none -o").arg(&program), conduit, mode, &place))?;
        Ok(program)
    }

    /// A job of it.
    fn job(&self, world: &World, log: &Log, ranks: usize) -> Result<Cmd> {
        let gasrun = Cmd::new(world.built(Build::Release)?.program("gasrun")?);
        let job = gasrun.words(&format!("-n {ranks} --timeout 60 --label --"));
        let job = job.arg(self.compiled(world, log)?).limit(90);
        Ok(match self.conduit {
            "smp" => job,
            // The program says which network it is for.
            chip => {
                let dressed = dressed(job, &ugni::lay_out(world, log)?).env("GASWORKS_NETWORK", "pshm");
                // These programs end as most do in C, in the middle of their job: what is registered goes with the process.
                dressed.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_STRICT", "0")
            }
        })
    }
}

fn passes(world: &World, log: &Log, program: &Program, ranks: usize) -> Result<()> {
    let leftovers = Leftovers::before();
    let ended = log.run_ok(&program.job(world, log, ranks)?)?;
    ensure!(ended.output.contains(&format!("{}: done", program.name)), "it did not come to its end");
    leftovers.check()
}

/// However a job ends, its code is the launcher's.
fn ends(world: &World, log: &Log) -> Result<()> {
    for (mode, (name, _)) in MODES.into_iter().enumerate() {
        let program = Program::usual("ends", mode);
        for (way, code, quits) in ENDS {
            let leftovers = Leftovers::before();
            let ended = log.run(&program.job(world, log, 3)?.arg(way))?;
            let found = ended.status.and_then(|status| status.code());
            ensure!(found == Some(code), "{way} in {name}: {}, not code {code}", ended.how());
            ensure!(!ended.output.contains("was killed"), "{way} in {name}: it did not end by itself");
            let ran = ended.output.matches("handler of SIGQUIT").count();
            ensure!(ran == quits, "{way} in {name}: {ran} handlers of SIGQUIT ran, not {quits}");
            leftovers.check().with_context(|| way.to_owned())?;
        }
    }
    Ok(())
}

/// A panic in the library, of a thread of the program or its own, ends the process by a signal, and so the job.
fn panics(world: &World, log: &Log) -> Result<()> {
    let place = crate::root().join("target/xtask/capi-faults");
    // The same with places to panic at.
    let faults = world.built(Build::Debug)?;
    log.run_ok(&Build::Debug.dress(Cmd::cargo("build --workspace --exclude xtask --lib").limit(900)))?;
    lay_out(&place, &crate::root().join("target/faults/debug"), &["smp"], |cmd| log.run_ok(cmd).map(drop))?;
    let (mode, define) = MODES[2];
    let program = place.join("ends");
    let compile = compiler("gcc", "smp", define, &place).arg(source("ends")).arg("-o").arg(&program);
    log.run_ok(&linking(compile, "smp", mode, &place))?;
    for (at, way, says) in PANICS {
        let job = Cmd::new(faults.program("gasrun")?).words("-n 3 --timeout 15 --").arg(&program).arg(way);
        ends::panics_at(log, job, at, says)?;
    }
    Ok(())
}

/// What contradicts itself does not compile.
fn refused(world: &World, log: &Log) -> Result<()> {
    let place = laid_out(world, log)?;
    for (flags, says) in REFUSED {
        let compile = compiler("gcc", "smp", "NOTHING_ELSE", &place).words("-fsyntax-only -x c").words(flags);
        let ended = log.run(&compile.arg(source("memory")))?;
        ensure!(!ended.ok() && ended.output.contains(says), "{flags:?}: {says:?} is not said");
    }
    Ok(())
}
