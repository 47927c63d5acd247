//! Bad input as a user meets it: one clear error, in bounded time, and nothing left running or lying about. What can
//! only be provoked from inside a program is among the packages' own tests.

mod launcher;

use anyhow::{Result, bail, ensure};
use gasworks_testkit::output::told_once;
use gasworks_testkit::programs::{self, Programs};
use gasworks_testkit::{Case, Cmd, Log, Need, cases};
use std::process::ExitCode;

type Make = fn(&Programs) -> Result<Cmd>;

/// A job that fails: the case's name, how it is started, the code with which it ends, and the texts that a rank or the
/// launcher must say, each once.
struct Failure {
    name: &'static str,
    make: Make,
    code: i32,
    says: &'static [&'static str],
}

const FAILURES: &[Failure] = &[
    Failure {
        name: "wrong-setting",
        make: |programs| Ok(job(programs, 2, "hello")?.env("GASWORKS_SEGMENT_SIZE", "lots")),
        code: 1,
        says: &["setting GASWORKS_SEGMENT_SIZE=\"lots\"", "wanted a size such as 64M"],
    },
    Failure {
        name: "setting-out-of-limits",
        make: |programs| Ok(job(programs, 2, "hello")?.env("GASNET_NETWORKDEPTH_TOTAL", "0")),
        code: 1,
        says: &["setting GASNET_NETWORKDEPTH_TOTAL=\"0\"", "wanted a whole number from 1 to 65536"],
    },
    Failure {
        name: "no-time-to-start",
        make: |programs| Ok(job(programs, 2, "hello")?.env("GASWORKS_BOOTSTRAP_TIMEOUT", "0")),
        code: 1,
        says: &["setting GASWORKS_BOOTSTRAP_TIMEOUT=\"0\"", "wanted a number of seconds from"],
    },
    Failure {
        name: "segment-larger-than-memory",
        make: |programs| Ok(job(programs, 2, "hello")?.env("GASWORKS_SEGMENT_SIZE", "32T")),
        code: 1,
        says: &["GASWORKS_SEGMENT_SIZE", "take 35184372088832 bytes", "MemAvailable"],
    },
    Failure {
        name: "tables-differ",
        make: |programs| Ok(job(programs, 3, "gasworks-conformance")?.arg("--tables-differ")),
        code: 1,
        says: &["the handler tables differ", "only.here", "must register the same handlers"],
    },
    Failure {
        name: "no-such-program",
        make: |programs| Ok(gasrun(programs)?.words("-n 2 -- ./no-such-program")),
        code: 127,
        says: &["start rank 0: ./no-such-program", "No such file"],
    },
    Failure {
        name: "no-ranks",
        make: |programs| Ok(gasrun(programs)?.words("-n 0 -- true")),
        code: 2,
        says: &["--ranks", "wanted a whole number from 1 to"],
    },
    Failure {
        name: "no-descriptors",
        make: |programs| Ok(in_shell("ulimit -n 8; exec", &job(programs, 4, "hello")?, "")),
        code: 1,
        says: &["open descriptors, and the limit (ulimit -Hn) is 8"],
    },
    Failure {
        name: "full-standard-output",
        make: |programs| Ok(in_shell("exec", &job(programs, 2, "hello")?, ">/dev/full")),
        code: 1,
        says: &["gasrun: write standard output: No space left on device"],
    },
    Failure {
        name: "a-rank-dies",
        make: |programs| Ok(gasrun(programs)?.words("-n 2 -- sh -c").arg("kill -9 $$")),
        code: 137,
        says: &["gasrun: rank ", "was killed by signal 9 (SIGKILL)"],
    },
    Failure {
        name: "a-rank-fails",
        make: |programs| {
            let script = "if [ \"$PMI_RANK\" = 1 ]; then exit 7; fi; sleep 60";
            Ok(gasrun(programs)?.words("-n 2 -- sh -c").arg(script))
        },
        code: 7,
        says: &["gasrun: rank 1 (pid ", "exited with code 7"],
    },
    Failure {
        name: "too-slow",
        make: |programs| Ok(gasrun(programs)?.words("-n 2 --timeout 1 -- sleep 60")),
        code: 124,
        says: &["did not end within 1 s", "still running: ranks 0-1"],
    },
    Failure {
        name: "no-descriptors-for-a-rank",
        make: |programs| {
            let script = format!("ulimit -n 5; exec {}", programs.program("hello")?.display());
            Ok(gasrun(programs)?.words("-n 2 --label -- sh -c").arg(script))
        },
        code: 1,
        says: &["joining the job", "Too many open files"],
    },
    Failure {
        name: "ranks-without-a-launcher",
        make: |programs| Ok(Cmd::new(programs.program("hello")?).env("PMI_SIZE", "2")),
        code: 1,
        says: &["PMI_SIZE=2 says there are other ranks, but no launcher has left a way in (PMI_FD, PMI_PORT"],
    },
    Failure {
        name: "descriptor-is-no-socket",
        make: |programs| {
            let hello = programs.program("hello")?.display().to_string();
            let script = format!("PMI_FD=5 PMI_RANK=0 PMI_SIZE=2 exec {hello} 5</dev/null");
            Ok(Cmd::new("sh").arg("-c").arg(script))
        },
        code: 1,
        says: &["PMI_FD=5 is no connection to the launcher (it is not a socket)", "--pmi-port"],
    },
    // Last, since it builds the demo.
    Failure {
        name: "no-such-input-file",
        make: |_| Ok(Cmd::cargo("--quiet xtask demo --input ./no-such-reads.fa").limit(900)),
        code: 1,
        says: &["no-such-reads.fa"],
    },
];

fn main() -> ExitCode {
    let mut table = launcher::cases();
    table.push(Case::new("gasrun-is-killed", gasrun_is_killed));
    table.push(Case::new("full-temp-directory", full_directory).need(Need::Namespaces));
    for (name, spaces) in NAME_SPACES {
        let case = move |log: &Log| own_name_spaces(log, spaces);
        table.push(Case::new(format!("name-spaces/{name}"), case).need(Need::Namespaces));
    }
    table.extend(FAILURES.iter().map(|failure| Case::new(failure.name, |log| provoke(log, failure))));
    cases::main("launch/bad_input", table)
}

fn gasrun(programs: &Programs) -> Result<Cmd> {
    Ok(Cmd::new(programs.program("gasrun")?).limit(60).job())
}

/// A job whose lines say from which rank they are.
fn job(programs: &Programs, ranks: usize, program: &str) -> Result<Cmd> {
    Ok(programs.gasrun_with(ranks, "--label", program)?.limit(60))
}

/// `cmd` in a shell, between `before` and `after`.
fn in_shell(before: &str, cmd: &Cmd, after: &str) -> Cmd {
    Cmd::new("sh").arg("-c").arg(format!("{before} {} {after}", cmd.shown())).limit(60)
}

fn provoke(log: &Log, failure: &Failure) -> Result<()> {
    let ended = log.run(&(failure.make)(&programs::debug()?)?.job())?;
    let Some(status) = ended.status else { bail!("no end within {} s", ended.took.as_secs()) };
    ensure!(status.code() == Some(failure.code), "{}, not exit code {}", ended.how(), failure.code);
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    told_once(&ended.output, failure.says)
}

/// `gasrun` is killed, and its ranks end: no process of a case may be left.
fn gasrun_is_killed(log: &Log) -> Result<()> {
    let gasrun = programs::debug()?.program("gasrun")?.display().to_string();
    // The ranks are there when the file is.
    let script = format!(
        "{gasrun} -n 2 -- sh -c 'touch $0/$PMI_RANK; exec sleep 314' \"$0\" & \
         until test -e \"$0/0\" -a -e \"$0/1\"; do sleep 0.02; done; \
         kill -9 $!; wait $!; test $? = 137"
    );
    log.run_ok(&Cmd::new("sh").arg("-c").arg(script).arg(log.scratch()?).limit(60).job()).map(drop)
}

/// Name spaces that each rank has for itself.
const NAME_SPACES: [(&str, &str); 3] = [
    ("network", "--user --map-root-user --net"),
    ("user", "--user"),
    (
        "all",
        "--user --map-root-user --net --ipc --uts --cgroup --mount --pid --fork --kill-child --mount-proc",
    ),
];

/// Ranks that have name spaces of their own share memory like any others of one host.
fn own_name_spaces(log: &Log, spaces: &str) -> Result<()> {
    let programs = programs::debug()?;
    let gasrun = Cmd::new(programs.program("gasrun")?).words("-n 3 unshare").words(spaces);
    let ended = log.run_ok(&gasrun.arg(programs.program("hello")?).limit(60).job())?;
    let hellos = ended.output.matches("hello from rank").count();
    ensure!(hellos == 3, "{hellos} ranks say hello, not 3");
    Ok(())
}

/// A job needs no room in a full temporary directory; a program that writes there says which file it could not write.
fn full_directory(log: &Log) -> Result<()> {
    let (programs, dir) = (programs::debug()?, log.scratch()?);
    let fill =
        "mount -t tmpfs -o size=4k none . && cd \"$PWD\" && { cat /dev/zero >fill 2>/dev/null; true; }";
    let inside = |cmd: Cmd| {
        let script = format!("{fill} && TMPDIR=$PWD exec {}", cmd.shown());
        let shell = Cmd::new("unshare").words("--user --map-root-user --mount sh -c").arg(script);
        shell.dir(&dir).limit(60).job()
    };
    log.run_ok(&inside(programs.gasrun(2, "hello")?))?;
    let ended = log.run(&inside(programs.gasrun(2, "heat")?.words("--size 64 --steps 20 --out heat.png")))?;
    ensure!(!ended.ok(), "a picture was written to a full directory");
    told_once(&ended.output, &["cannot write heat.png: No space left on device"])
}
