//! Variables of the environment that programs in C know, and jobs that a program starts by itself.

use super::Program;
use crate::exec::{Cmd, Ended, Log};
use crate::leftovers::Leftovers;
use crate::rows::Row;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};

/// What a rank says that a signal kills.
const FATAL: &str = "*** FATAL SIGNAL: SIGSEGV (11) on rank 0 of 3\n";

/// How a program is called, what is set, whether it comes to its end, and what is said of three ranks.
type Case = (&'static str, &'static [(&'static str, &'static str)], bool, &'static [&'static str]);
const CASES: [Case; 17] = [
    ("", &[], true, &["ranks 3, threads 4294967295, segment "]),
    ("", &[("GASNET_MAX_THREADS", "17")], true, &["threads 17,"]),
    ("", &[("GASNET_MAX_SEGSIZE", "3M/P")], true, &["segment 3145728\n"]),
    ("own-limit 5M/P", &[], true, &["segment 5242880\n"]),
    ("own-limit 5M/P", &[("GASNET_MAX_SEGSIZE", "3M/P")], true, &["segment 3145728\n"]),
    ("own-limit much", &[], false, &["segments are limited to \"much\", which is no size"]),
    (
        "",
        &[("GASNET_VERBOSEENV", "1"), ("GASNET_MAX_THREADS", "17")],
        true,
        &["GASNET_MAX_THREADS = 17", "ENV parameter: GASNET_OF_THE_PROGRAM = usual"],
    ),
    ("", &[("GASNET_MAX_THREADS", "none")], false, &["GASNET_MAX_THREADS=\"none\""]),
    (
        "fail",
        &[("GASNET_BACKTRACE", "1"), ("GASNET_BACKTRACE_TYPE", "EXECINFO")],
        false,
        &["*** FATAL ERROR: ", "main+0x"],
    ),
    ("crash", &[("GASNET_BACKTRACE", "1"), ("GASNET_BACKTRACE_NODES", "0-1")], false, &[FATAL, "main+0x"]),
    ("crash", &[], false, &[FATAL, "was killed by signal 11"]),
    ("crash", &[("GASNET_BACKTRACE", "1")], false, &[FATAL, "main+0x"]),
    (
        "crash",
        &[("GASNET_BACKTRACE", "1"), ("GASNET_NO_CATCH_SIGNAL", "SIGBUS,SEGV")],
        false,
        &["was killed by signal 11"],
    ),
    ("told-to-end", &[("GASNET_NO_CATCH_SIGNAL", "*")], false, &["was killed by signal 15"]),
    (
        "stack",
        &[
            ("GASWORKS_PROGRESS_THREAD", "1"),
            ("GASNET_THREAD_STACK_MIN", "24M"),
            ("GASNET_THREAD_STACK_PAD", "1M"),
        ],
        true,
        &["ranks 3"],
    ),
    ("stack", &[("GASWORKS_PROGRESS_THREAD", "1")], false, &["is_mapped"]),
    ("", &[("GASNET_DISABLE_MUNMAP", "1"), ("GASNET_FS_SYNC", "1")], true, &["ranks 3"]),
];

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("capi/settings", settings),
        Row::new("capi/frozen", frozen),
        Row::new("capi/starts-by-itself", by_itself),
    ]
}

/// Names are in what a backtrace says if the program exports them.
fn program() -> Program {
    Program { flags: "-O1 -rdynamic", ..Program::usual("settings", 2) }
}

fn judge(ended: &Ended, ends_well: bool, says: &[&str]) -> Result<()> {
    ensure!(ended.ok() == ends_well, "it {}", ended.how());
    ensure!(ended.output.contains("settings: done") == ends_well, "whether it came to its end");
    for text in says {
        ensure!(ended.output.contains(text), "nobody says {text:?}");
    }
    Ok(())
}

fn settings(world: &World, log: &Log) -> Result<()> {
    for (words, variables, ends_well, says) in CASES {
        let (leftovers, job) = (Leftovers::before(), program().job(world, log, 3)?.words(words));
        let job = variables.iter().fold(job, |job, (name, value)| job.env(name, value));
        let ended = log.run(&job)?;
        let told = judge(&ended, ends_well, says).and_then(|()| leftovers.check());
        told.with_context(|| format!("{words:?} with {variables:?}"))?;
    }
    let crash = program().job(world, log, 3)?.arg("crash").env("GASNET_BACKTRACE", "1");
    let elsewhere = log.run(&crash.env("GASNET_BACKTRACE_NODES", "1-2"))?;
    ensure!(elsewhere.output.contains(FATAL) && !elsewhere.output.contains("main+0x"), "rank 0 is not named");
    let left_alone = program().job(world, log, 3)?.arg("crash").env("GASNET_NO_CATCH_SIGNAL", "SEGV");
    ensure!(!log.run(&left_alone)?.output.contains("FATAL"), "a signal that is to be left alone is caught");
    Ok(())
}

/// A program that is frozen at its start goes on when it is told to.
fn frozen(world: &World, log: &Log) -> Result<()> {
    let (program, leftovers) = (program().compiled(world, log)?, Leftovers::before());
    let script = "GASNET_FREEZE=1 \"$0\" 2>frozen.err & pid=$!
        for i in $(seq 200); do grep -q 'frozen for a debugger' frozen.err && break; sleep 0.05; done
        grep -q 'frozen for a debugger' frozen.err || exit 9
        sleep 0.3; kill -0 $pid || exit 8
        kill -CONT $pid; wait $pid";
    let place = world.scratch("frozen")?;
    let ended = log.run(&Cmd::new("sh").arg("-c").arg(script).arg(&program).dir(&place).limit(60))?;
    judge(&ended, true, &["ranks 1"])?;
    leftovers.check()
}

/// A program that nobody has started with others starts them.
fn by_itself(world: &World, log: &Log) -> Result<()> {
    let program = program().compiled(world, log)?;
    let gasrun = world.built(Build::Release)?.program("gasrun")?.to_owned();
    let alone = |ranks: &str| Cmd::new(&program).env("GASNET_PSHM_NODES", ranks).limit(60);
    let found = |ranks: &str| alone(ranks).env("GASWORKS_GASRUN", &gasrun);
    let run = |cmd: Cmd, ends_well, says: &[&str]| {
        let (leftovers, ended) = (Leftovers::before(), log.run(&cmd)?);
        judge(&ended, ends_well, says).and_then(|()| leftovers.check()).with_context(|| format!("{cmd:?}"))
    };
    run(found("4"), true, &["ranks 4"])?;
    run(found("1"), true, &["ranks 1"])?;
    run(found("2").arg("arguments").arg("a b"), true, &["ranks 2"])?;
    run(found("3").arg("crash"), false, &["was killed by signal 11"])?;
    run(found("4").env("GASWORKS_BOOTSTRAP", "single"), true, &["ranks 1"])?;
    let on_path = std::env::join_paths([gasrun.parent().unwrap_or(&gasrun)])?;
    run(alone("3").env("PATH", &on_path), true, &["ranks 3"])?;
    run(alone("3").env("PATH", &on_path).env("GASWORKS_GASRUN", "/nowhere/gasrun"), true, &["ranks 3"])?;
    run(
        alone("3").env("PATH", "/nowhere"),
        false,
        &["gasrun: No such file", "GASWORKS_GASRUN says where it is"],
    )?;
    run(found("many"), false, &["GASNET_PSHM_NODES=\"many\""])?;
    // Whoever is in a job is not asked.
    let job = self::program().job(world, log, 2)?.env("GASNET_PSHM_NODES", "5");
    run(job, true, &["ranks 2"])
}
