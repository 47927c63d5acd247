//! How a job of a program in C ends: by any call or signal, and by a panic of the library.

use crate::program::{DEBUG, LANGUAGES, Language, Program, comes_to_its_end, start};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::c::{CONDUITS, MODES, compiler, linked_name};
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
/// Ways for a job of `left.c` to end: the way, the job's code, and whether libc's `exit` ends the program, which has handlers run.
const LEFT: [(&str, i32, bool); 10] = [
    ("return", 0, true),
    ("exit", 0, true),
    ("exit-5", 5, true),
    ("slow", 0, true),
    ("for-ever", 0, true),
    ("another", 6, true),
    ("one-slow", 8, true),
    ("gasnet-exit", 0, false),
    ("gasnet-exit-4", 4, false),
    ("reads", 0, false),
];

/// Ways of `left.c` in which a job ends well in the middle of the program.
const GIVEN_UP: [&str; 3] = ["return", "exit", "gasnet-exit"];

/// Variables of the environment and their values.
type Variables = &'static [(&'static str, &'static str)];

/// A signal, a setting, and whether it ends the process by another thread; for signals that are caught.
const HANDLED: [(i32, Variables, bool); 16] = [
    (0, &[], false),
    (libc::SIGSEGV, &[], false),
    (libc::SIGSEGV, &[("GASNET_BACKTRACE", "1")], false),
    (libc::SIGSEGV, &[("GASNET_FREEZE_ON_ERROR", "1")], false),
    (libc::SIGBUS, &[("GASNET_BACKTRACE", "1"), ("GASNET_FREEZE_ON_ERROR", "1")], false),
    (libc::SIGFPE, &[("GASNET_BACKTRACE", "1"), ("GASNET_FREEZE_ON_ERROR", "1")], false),
    (libc::SIGILL, &[("GASNET_BACKTRACE", "1"), ("GASNET_FREEZE_ON_ERROR", "1")], false),
    (libc::SIGABRT, &[("GASNET_BACKTRACE", "1"), ("GASNET_FREEZE_ON_ERROR", "1")], false),
    (libc::SIGUSR1, &[("GASNET_BACKTRACE_SIGNAL", "SIGUSR1")], false),
    (libc::SIGUSR1, &[("GASNET_FREEZE_SIGNAL", "SIGUSR1")], false),
    (libc::SIGUSR2, &[("GASWORKS_INSPECT_SIGNAL", "12")], false),
    (libc::SIGHUP, &[], true),
    (libc::SIGINT, &[], true),
    (libc::SIGPIPE, &[], true),
    (libc::SIGQUIT, &[], true),
    (libc::SIGTERM, &[], true),
];

/// What is written over the beginning of another rank's queues, and how many times.
const DAMAGED: [(u8, usize); 5] = [(0, 64), (255, 64), (255, 256), (85, 1024), (0, 20_000)];

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
    let left = LEFT.into_iter().flat_map(|(way, code, by_exit)| {
        [LANGUAGES[0], LANGUAGES[3]].map(|language| {
            let case = move |log: &Log| leaves_nothing(log, way, code, by_exit, language);
            Case::new(format!("left/{way}/{}", language.name), case)
        })
    });
    let closes = ["closes", "reuses", "reuses-and-exits"]
        .map(|way| Case::new(format!("closes/{way}"), move |log| closed_early(log, way)));
    let handled = HANDLED.map(|(signal, settings, by_another)| {
        let shown: String = settings.iter().map(|(name, _)| format!("/{name}")).collect();
        let case = move |log: &Log| handler_allocates_nothing(log, signal, settings, by_another);
        Case::new(format!("handlers/{signal}{shown}"), case)
    });
    let damaged = DAMAGED.map(|(byte, bytes)| {
        let case = move |log: &Log| damage_is_found(log, byte, bytes);
        Case::new(format!("damaged/{byte}-{bytes}"), case)
    });
    let second = MODES.into_iter().enumerate().map(|(mode, (name, _))| {
        Case::new(format!("second-thread/{name}"), move |log| second_thread(log, mode))
    });
    let given_up = GIVEN_UP.into_iter().flat_map(|way| {
        MODES.into_iter().enumerate().map(move |(mode, (name, _))| {
            Case::new(format!("gives-up/{way}/aries-{name}"), move |log| gives_all_up(log, way, mode))
        })
    });
    let faults = damaged.into_iter().chain(second).chain(given_up);
    ends.chain(panics).chain(left).chain(closes).chain(handled).chain(faults).collect()
}

/// Of a job over uGNI that ends well in the middle of its program, every rank gives up what it has taken of the NIC, which is strict.
fn gives_all_up(log: &Log, way: &str, mode: usize) -> Result<()> {
    let folder = log.scratch()?;
    let program = Program { conduit: CONDUITS[1], ..Program::usual("left", mode) };
    let job = program.job(log, 2)?.arg(way).arg(&folder);
    log.run_ok(&job.env("GASWORKS_UGNI_WITNESS", folder.join("seen")))?;
    let mut ranks = 0;
    for entry in std::fs::read_dir(&folder)?.flatten() {
        if entry.file_name().to_string_lossy().ends_with(".json") {
            let text = std::fs::read_to_string(entry.path())?;
            let number = |name: &str| -> Option<u64> {
                let (_, rest) =
                    text.split_once("\"registrations\"")?.1.split_once(&format!("\"{name}\": "))?;
                rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            };
            let (made, ended) = (number("made"), number("ended"));
            ensure!(made.is_some() && made == ended, "{made:?} registrations were made, {ended:?} ended");
            ensure!(text.contains("\"GNI_CdmDestroy\": {\"GNI_RC_SUCCESS\": 1}"), "its domain is left");
            ranks += 1;
        }
    }
    ensure!(ranks == 2, "{ranks} ranks have written what they took");
    Ok(())
}

/// The exit code of a job is the launcher's, and the launcher had to kill no rank.
fn ends_with(log: &Log, mode: usize, way: &str, code: i32, handlers: usize) -> Result<()> {
    let ended = log.run(&Program::usual("ends", mode).job(log, 3)?.arg(way))?;
    let found = ended.status.and_then(|status| status.code());
    ensure!(found == Some(code), "{}, not code {code}", ended.how());
    ensure!(!ended.output.contains("was killed"), "it did not end by itself");
    let ran = ended.output.matches("handler of SIGQUIT").count();
    ensure!(ran == handlers, "{ran} handlers of SIGQUIT ran, not {handlers}");
    Ok(())
}

/// What the program has written is in its files, whether or not it closed them; its functions for the end ran, if `exit` does it.
fn leaves_nothing(log: &Log, way: &str, code: i32, by_exit: bool, language: Language) -> Result<()> {
    let folder = log.scratch()?;
    let job = Program { language, ..Program::usual("left", 2) }.job(log, 2)?;
    let ended = log.run(&job.arg(way).arg(&folder).env("GASNET_EXITTIMEOUT", "3"))?;
    let found = ended.status.and_then(|status| status.code());
    ensure!(found == Some(code), "{}, not code {code}", ended.how());
    ensure!(!ended.output.contains("gasrun: "), "the launcher spoke though the program ended as it wished");
    let is_cut = way == "for-ever";
    let read = |name: &str, rank: usize| {
        std::fs::read_to_string(folder.join(format!("{name}-{rank}"))).unwrap_or_default()
    };
    for rank in 0..2 {
        let object = by_exit && !is_cut && language.cc == "g++";
        let said = format!("said by rank {rank}");
        ensure!(ended.output.contains(&said), "nobody says {said:?}");
        let files = [("file", true), ("after", by_exit), ("before", by_exit && !is_cut), ("object", object)];
        for (name, wanted) in files {
            let content = read(name, rank);
            ensure!(!wanted || content == "data\n", "rank {rank}: {name} holds {content:?}");
            let may_be = wanted || is_cut || name == "object";
            ensure!(may_be || content.is_empty(), "rank {rank}: {name} was written");
        }
    }
    Ok(())
}

/// A rank that has closed the library's descriptors is told so before long, and its own files have nothing in them.
fn closed_early(log: &Log, way: &str) -> Result<()> {
    let folder = log.scratch()?;
    let file = folder.join("data");
    std::fs::write(&file, "").context("a file")?;
    let (way, exits) = way.split_once("-and-").map_or((way, None), |(way, exits)| (way, Some(exits)));
    let job = Program::usual("closes", 2).job(log, 2)?.arg(way).arg(&file);
    let ended = log.run(&exits.into_iter().fold(job, |job, exits| job.arg(exits)).limit(20))?;
    ensure!(ended.status.and_then(|status| status.code()) == Some(1), "{}, not code 1", ended.how());
    let said = "rank 1: the program has closed descriptor";
    ensure!(ended.output.contains(said), "nobody says {said:?}");
    ensure!(std::fs::read(&file).context("the file")?.is_empty(), "the library wrote into it");
    Ok(())
}

/// Where what queues and barrier are counted by cannot be, the rank that waits there says so.
fn damage_is_found(log: &Log, byte: u8, bytes: usize) -> Result<()> {
    let job = Program::usual("damaged", 0).job(log, 2)?;
    let ended = log.run(&job.arg(byte.to_string()).arg(bytes.to_string()).limit(20))?;
    ensure!(ended.status.and_then(|status| status.code()) == Some(1), "{}, not code 1", ended.how());
    ensure!(ended.output.contains("is corrupt: "), "nobody says what is corrupt");
    Ok(())
}

/// In a debug build of `seq` a second thread that communicates is named, and no other is.
fn second_thread(log: &Log, mode: usize) -> Result<()> {
    let program = Program { options: DEBUG, ..Program::usual("second", mode) };
    let ended = log.run(&program.job(log, 2)?)?;
    let is_seq = MODES[mode].0 == "seq";
    let found = ended.status.and_then(|status| status.code());
    ensure!(found == Some(is_seq.into()), "{}", ended.how());
    let text = std::fs::read_to_string(crate::program::source("second"))?;
    let line = 1 + text.lines().position(|line| line.contains("/* here */")).context("no call")?;
    let says = [format!("second.c:{line}: "), "in SEQ one thread does".to_owned()];
    let all = says.iter().all(|text| ended.output.contains(text));
    ensure!(all == is_seq, "of {says:?} all were said: {all}");
    Ok(())
}

/// The handler of a signal does without memory; a killed process is killed by its signal.
fn handler_allocates_nothing(log: &Log, signal: i32, settings: Variables, by_another: bool) -> Result<()> {
    let job = Program::usual("handlers", 2).job(log, 2)?.arg(signal.to_string());
    let job = if by_another { job.arg("waits") } else { job };
    let job = settings.iter().fold(job, |job, (name, value)| job.env(name, value));
    if [libc::SIGUSR1, libc::SIGUSR2].contains(&signal) {
        return comes_to_its_end(log, &job, "handlers");
    }
    let ended = log.run(&job.limit(30))?;
    let wanted = 128 + if signal == 0 { libc::SIGABRT } else { signal };
    let code = ended.status.and_then(|status| status.code());
    ensure!(code == Some(wanted), "{}, not with code {wanted}", ended.how());
    if !by_another {
        ensure!(ended.output.contains("*** FATAL SIGNAL: "), "nobody says which signal it was");
    }
    for (setting, said) in [("GASNET_BACKTRACE", "handlers"), ("GASNET_FREEZE_ON_ERROR", "*** frozen for")] {
        let is_set = settings.iter().any(|(name, _)| *name == setting);
        ensure!(!is_set || ended.output.contains(said), "{setting} does nothing");
    }
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
    // What the layout of the libraries adds to it: the names that say for which conduit, mode and build an object is.
    let own = linked_name("smp", mode);
    let build = format!("gasworks_linked_build_optimised_{}", c::INTERFACE);
    let name = format!("-Wl,--defsym={own}={any},--defsym={build}={any},--undefined={any}");
    let compile = compiler("gcc", "smp", define, &Fixture::C.get()?).arg(crate::program::source("ends"));
    let link = compile.arg("-o").arg(&program).arg(name).arg(archive).words(c::SYSTEM).limit(120);
    log.run_ok(&link)?;
    start(&program, 3)
}
