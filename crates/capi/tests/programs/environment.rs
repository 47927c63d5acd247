//! Variables of the environment that programs in C know, and programs that start their own job.

use crate::program::{Program, comes_to_its_end, start};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::c::{CONDUITS, MODES};
use gasworks_testkit::pairwise::product;
use gasworks_testkit::{Case, Cmd, Ended, Log, programs};
use std::path::{Path, PathBuf};

/// What `settings.c` says of a rank that a signal kills.
const FATAL: &str = "*** FATAL SIGNAL: SIGSEGV (11) on rank 0 of 3\n";
/// A line of a backtrace.
const FRAME: &str = "main+0x";

/// A job of three ranks of `settings.c`.
struct Setting {
    name: &'static str,
    /// The program's arguments.
    words: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Whether it comes to its end, with code 0.
    ends_well: bool,
    /// What the ranks say.
    says: &'static [&'static str],
    /// What no rank says.
    silent: &'static [&'static str],
}

const SETTING: Setting =
    Setting { name: "", words: "", variables: &[], ends_well: true, says: &[], silent: &[] };

const SETTINGS: [Setting; 19] = [
    Setting { name: "none", says: &["ranks 3, threads 4294967295, segment "], ..SETTING },
    Setting {
        name: "max-threads",
        variables: &[("GASNET_MAX_THREADS", "17")],
        says: &["threads 17,"],
        ..SETTING
    },
    Setting {
        name: "max-segment",
        variables: &[("GASNET_MAX_SEGSIZE", "3M/P")],
        says: &["segment 3145728\n"],
        ..SETTING
    },
    Setting {
        name: "limit-in-the-program",
        words: "own-limit 5M/P",
        says: &["segment 5242880\n"],
        ..SETTING
    },
    Setting {
        name: "limit-in-the-program-and-variable",
        words: "own-limit 5M/P",
        variables: &[("GASNET_MAX_SEGSIZE", "3M/P")],
        says: &["segment 3145728\n"],
        ..SETTING
    },
    Setting {
        name: "wrong-limit-in-the-program",
        words: "own-limit much",
        ends_well: false,
        says: &["segments are limited to \"much\", which is no size"],
        ..SETTING
    },
    Setting {
        name: "verbose",
        variables: &[("GASNET_VERBOSEENV", "1"), ("GASNET_MAX_THREADS", "17"), ("GASNET_EXITTIMEOUT", "7")],
        says: &[
            "ENV parameter: GASNET_MAX_THREADS = 17\n",
            "ENV parameter: GASNET_EXITTIMEOUT = 7\n",
            "ENV parameter: GASNET_MAX_SEGSIZE = 0.85/H               (default)\n",
            "ENV parameter: GASNET_FREEZE = 0                    (default)\n",
            "ENV parameter: GASNET_BACKTRACE = 0                    (default)\n",
            "ENV parameter: GASNET_OF_THE_PROGRAM = usual",
        ],
        ..SETTING
    },
    Setting {
        name: "wrong-max-threads",
        variables: &[("GASNET_MAX_THREADS", "none")],
        ends_well: false,
        says: &["GASNET_MAX_THREADS=\"none\""],
        ..SETTING
    },
    Setting {
        name: "backtrace-of-an-error",
        words: "fail",
        variables: &[("GASNET_BACKTRACE", "1"), ("GASNET_BACKTRACE_TYPE", "EXECINFO")],
        ends_well: false,
        says: &["*** FATAL ERROR: ", FRAME],
        ..SETTING
    },
    Setting {
        name: "no-backtrace",
        words: "crash",
        ends_well: false,
        says: &[FATAL, "was killed by signal 11"],
        silent: &[FRAME],
        ..SETTING
    },
    Setting {
        name: "backtrace",
        words: "crash",
        variables: &[("GASNET_BACKTRACE", "1")],
        ends_well: false,
        says: &[FATAL, FRAME],
        ..SETTING
    },
    Setting {
        name: "backtrace-of-this-rank",
        words: "crash",
        variables: &[("GASNET_BACKTRACE", "1"), ("GASNET_BACKTRACE_NODES", "0-1")],
        ends_well: false,
        says: &[FATAL, FRAME],
        ..SETTING
    },
    Setting {
        name: "backtrace-of-other-ranks",
        words: "crash",
        variables: &[("GASNET_BACKTRACE", "1"), ("GASNET_BACKTRACE_NODES", "1-2")],
        ends_well: false,
        says: &[FATAL],
        silent: &[FRAME],
    },
    Setting {
        name: "signals-not-caught",
        words: "crash",
        variables: &[("GASNET_BACKTRACE", "1"), ("GASNET_NO_CATCH_SIGNAL", "SIGBUS,SEGV")],
        ends_well: false,
        says: &["was killed by signal 11"],
        silent: &["FATAL"],
    },
    Setting {
        name: "no-signal-caught",
        words: "told-to-end",
        variables: &[("GASNET_NO_CATCH_SIGNAL", "*")],
        ends_well: false,
        says: &["was killed by signal 15"],
        ..SETTING
    },
    Setting {
        name: "thread-stacks",
        words: "stack",
        variables: &[
            ("GASWORKS_PROGRESS_THREAD", "1"),
            ("GASNET_THREAD_STACK_MIN", "24M"),
            ("GASNET_THREAD_STACK_PAD", "1M"),
        ],
        says: &["ranks 3"],
        ..SETTING
    },
    Setting {
        name: "usual-thread-stacks",
        words: "stack",
        variables: &[("GASWORKS_PROGRESS_THREAD", "1")],
        ends_well: false,
        says: &["is_mapped"],
        ..SETTING
    },
    Setting {
        name: "without-effect",
        variables: &[("GASNET_DISABLE_MUNMAP", "1"), ("GASNET_FS_SYNC", "1")],
        says: &["ranks 3"],
        ..SETTING
    },
    Setting {
        name: "another-signal-not-caught",
        words: "crash",
        variables: &[("GASNET_NO_CATCH_SIGNAL", "SIGBUS")],
        ends_well: false,
        says: &[FATAL],
        ..SETTING
    },
];

/// How a program that no launcher has started finds `gasrun`.
#[derive(Clone, Copy)]
enum Found {
    /// The variable of the library names it.
    Variable,
    /// It is on the `PATH`.
    Path,
    /// It is on the `PATH`, and the variable names a file that is not there.
    PathAlone,
    /// It is nowhere.
    Nowhere,
}

/// A program that starts its own job.
struct Alone {
    name: &'static str,
    /// The number of ranks that `GASNET_PSHM_NODES` asks for.
    ranks: &'static str,
    found: Found,
    /// The program's arguments.
    args: &'static [&'static str],
    /// The value of `GASWORKS_BOOTSTRAP`.
    bootstrap: Option<&'static str>,
    ends_well: bool,
    says: &'static [&'static str],
}

const ALONE: Alone = Alone {
    name: "",
    ranks: "3",
    found: Found::Variable,
    args: &[],
    bootstrap: None,
    ends_well: true,
    says: &["ranks 3"],
};

const STARTS: [Alone; 9] = [
    Alone { name: "four-ranks", ranks: "4", says: &["ranks 4"], ..ALONE },
    Alone { name: "one-rank", ranks: "1", says: &["ranks 1"], ..ALONE },
    Alone { name: "arguments", ranks: "2", args: &["arguments", "a b"], says: &["ranks 2"], ..ALONE },
    Alone { name: "crash", args: &["crash"], ends_well: false, says: &["was killed by signal 11"], ..ALONE },
    Alone { name: "single-bootstrap", ranks: "4", bootstrap: Some("single"), says: &["ranks 1"], ..ALONE },
    Alone { name: "gasrun-on-the-path", found: Found::Path, ..ALONE },
    Alone { name: "gasrun-on-the-path-alone", found: Found::PathAlone, ..ALONE },
    Alone {
        name: "no-gasrun",
        found: Found::Nowhere,
        ends_well: false,
        says: &["gasrun: No such file", "GASWORKS_GASRUN says where it is"],
        ..ALONE
    },
    Alone {
        name: "no-number",
        ranks: "many",
        ends_well: false,
        says: &["GASNET_PSHM_NODES=\"many\""],
        ..ALONE
    },
];

pub fn cases() -> Vec<Case> {
    let settings = SETTINGS.into_iter().map(|setting| {
        Case::new(format!("settings/{}", setting.name), move |log| has_its_effect(log, &setting))
    });
    let starts = STARTS.into_iter().map(|alone| {
        Case::new(format!("starts-by-itself/{}", alone.name), move |log| starts_by_itself(log, &alone))
    });
    let rest = [Case::new("starts-by-itself/not-in-a-job", not_in_a_job), Case::new("frozen", frozen)];
    let signals = product(&[MODES.len(), CONDUITS.len()]).into_iter().map(|pick| {
        let (mode, conduit) = (pick[0], CONDUITS[pick[1]]);
        Case::new(format!("signals/{conduit}/{}", MODES[mode].0), move |log| {
            signals_are_the_programs(log, conduit, mode)
        })
    });
    settings.chain(starts).chain(rest).chain(signals).collect()
}

/// `signals.c`, with all threads that the library can have.
fn signals_are_the_programs(log: &Log, conduit: &'static str, mode: usize) -> Result<()> {
    let program = Program { conduit, options: "-O1 -rdynamic", ..Program::usual("signals", mode) };
    let progress = if MODES[mode].0 == "par" { "1" } else { "0" };
    let job = program.job(log, 3)?.env("GASWORKS_PROGRESS_THREAD", progress);
    comes_to_its_end(log, &job, "signals")
}

/// `settings.c`, which exports its names, so that a backtrace has them.
fn compiled(log: &Log) -> Result<PathBuf> {
    Program { options: "-O1 -rdynamic", ..Program::usual("settings", 2) }.compile(log)
}

fn judge(ended: &Ended, ends_well: bool, says: &[&str]) -> Result<()> {
    ensure!(ended.ok() == ends_well, "{}", ended.how());
    let done = ended.output.contains("settings: done");
    ensure!(done == ends_well, "it came to its end: {done}");
    let missing = says.iter().find(|text| !ended.output.contains(**text));
    ensure!(missing.is_none(), "nobody says {:?}", missing.unwrap_or(&""));
    Ok(())
}

fn has_its_effect(log: &Log, setting: &Setting) -> Result<()> {
    let job = start(&compiled(log)?, 3)?.words(setting.words);
    let job = setting.variables.iter().fold(job, |job, (name, value)| job.env(name, value));
    let ended = log.run(&job)?;
    judge(&ended, setting.ends_well, setting.says)?;
    let said = setting.silent.iter().find(|text| ended.output.contains(**text));
    ensure!(said.is_none(), "somebody says {:?}", said.unwrap_or(&""));
    Ok(())
}

/// A program that is frozen at its start goes on after `SIGCONT`.
fn frozen(log: &Log) -> Result<()> {
    let program = compiled(log)?;
    let dir = program.parent().context("the folder of the program")?;
    let script = "GASNET_FREEZE=1 \"$0\" 2>frozen.err & pid=$!
        for i in $(seq 200); do grep -q 'frozen for a debugger' frozen.err && break; sleep 0.05; done
        grep -q 'frozen for a debugger' frozen.err || exit 9
        sleep 0.3; kill -0 $pid || exit 8
        kill -CONT $pid; wait $pid";
    let ended = log.run(&Cmd::new("sh").arg("-c").arg(script).arg(&program).dir(dir).limit(60).job())?;
    judge(&ended, true, &["ranks 1"])
}

/// A program that no launcher has started runs `gasrun`.
fn starts_by_itself(log: &Log, alone: &Alone) -> Result<()> {
    let (program, gasrun) = (compiled(log)?, programs::release()?.program("gasrun")?);
    let cmd = Cmd::new(program).args(alone.args).env("GASNET_PSHM_NODES", alone.ranks).limit(60).job();
    let cmd = alone.bootstrap.into_iter().fold(cmd, |cmd, value| cmd.env("GASWORKS_BOOTSTRAP", value));
    let folder: &Path = gasrun.parent().context("the folder of gasrun")?;
    let ended = log.run(&match alone.found {
        Found::Variable => cmd.env("GASWORKS_GASRUN", &gasrun),
        Found::Path => cmd.env("PATH", folder),
        Found::PathAlone => cmd.env("PATH", folder).env("GASWORKS_GASRUN", "/nowhere/gasrun"),
        Found::Nowhere => cmd.env("PATH", "/nowhere"),
    })?;
    judge(&ended, alone.ends_well, alone.says)
}

/// A rank of a job starts no job.
fn not_in_a_job(log: &Log) -> Result<()> {
    let ended = log.run(&start(&compiled(log)?, 2)?.env("GASNET_PSHM_NODES", "5"))?;
    judge(&ended, true, &["ranks 2"])
}
