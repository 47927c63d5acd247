//! Bad input as a user meets it: one clear error, in bounded time, and nothing left running or lying about. What can
//! only be provoked from inside a program is among the packages' own tests.

use crate::exec::{Cmd, Log};
use crate::leftovers::Leftovers;
use crate::needs::Need;
use crate::rows::Row;
use crate::world::{Build, Built, World};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;

type Make = fn(&Built, &Path) -> Result<Cmd>;

/// A case: its name, how it is brought about, the code with which it ends, and what the error must say: each text once
/// for each rank that fails.
struct Case {
    name: &'static str,
    make: Make,
    code: i32,
    says: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        name: "wrong-setting",
        make: |built, _| Ok(job(built, 2, "hello")?.env("GASWORKS_SEGMENT_SIZE", "lots")),
        code: 1,
        says: &["setting GASWORKS_SEGMENT_SIZE=\"lots\"", "wanted a size such as 64M"],
    },
    Case {
        name: "setting-out-of-limits",
        make: |built, _| Ok(job(built, 2, "hello")?.env("GASNET_NETWORKDEPTH_TOTAL", "0")),
        code: 1,
        says: &["setting GASNET_NETWORKDEPTH_TOTAL=\"0\"", "wanted a whole number from 1 to"],
    },
    Case {
        name: "no-time-to-start",
        make: |built, _| Ok(job(built, 2, "hello")?.env("GASWORKS_BOOTSTRAP_TIMEOUT", "0")),
        code: 1,
        says: &["setting GASWORKS_BOOTSTRAP_TIMEOUT=\"0\"", "wanted a number of seconds from"],
    },
    Case {
        name: "segment-larger-than-memory",
        make: |built, _| Ok(job(built, 2, "hello")?.env("GASWORKS_SEGMENT_SIZE", "32T")),
        code: 1,
        says: &["GASWORKS_SEGMENT_SIZE", "take 35184372088832 bytes", "MemAvailable"],
    },
    Case {
        name: "tables-differ",
        make: |built, _| Ok(job(built, 3, "gasworks-conformance")?.words("--tables-differ")),
        code: 1,
        says: &["the handler tables differ", "must register the same handlers"],
    },
    Case {
        name: "no-such-program",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- ./no-such-program")),
        code: 127,
        says: &["start rank 0: ./no-such-program", "No such file"],
    },
    Case {
        name: "no-ranks",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 0 -- true")),
        code: 2,
        says: &["--ranks", "wanted a whole number from 1 to"],
    },
    Case {
        name: "no-descriptors",
        make: |built, _| Ok(in_shell("ulimit -n 8; exec", &job(built, 4, "hello")?, "")),
        code: 1,
        says: &["open descriptors, and the limit (ulimit -Hn) is 8"],
    },
    Case {
        name: "full-standard-output",
        make: |built, _| Ok(in_shell("exec", &job(built, 2, "hello")?, ">/dev/full")),
        code: 1,
        says: &["gasrun: write standard output: No space left on device"],
    },
    Case {
        name: "a-rank-dies",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- sh -c").arg("kill -9 $$")),
        code: 137,
        says: &["gasrun: rank ", "was killed by signal 9 (SIGKILL)"],
    },
    Case {
        name: "a-rank-fails",
        make: |built, _| {
            let script = "if [ \"$PMI_RANK\" = 1 ]; then exit 7; fi; sleep 60";
            Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- sh -c").arg(script))
        },
        code: 7,
        says: &["gasrun: rank 1 (pid ", "exited with code 7"],
    },
    Case {
        name: "too-slow",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 2 --timeout 1 -- sleep 60")),
        code: 124,
        says: &["did not end within 1 s", "still running: ranks 0-1"],
    },
    Case {
        name: "no-descriptors-for-a-rank",
        make: |built, _| {
            let script = format!("ulimit -n 5; exec {}", built.program("hello")?.display());
            Ok(Cmd::new(built.program("gasrun")?).words("-n 2 --label -- sh -c").arg(script))
        },
        code: 1,
        says: &["joining the job", "Too many open files"],
    },
    Case {
        name: "ranks-without-a-launcher",
        make: |built, _| Ok(Cmd::new(built.program("hello")?).env("PMI_SIZE", "2")),
        code: 1,
        says: &["PMI_SIZE=2 says there are other ranks, but no launcher has left a way in (PMI_FD, PMI_PORT"],
    },
    Case {
        name: "descriptor-is-no-socket",
        make: |built, _| {
            let hello = built.program("hello")?.display().to_string();
            Ok(Cmd::new("sh")
                .arg("-c")
                .arg(format!("PMI_FD=5 PMI_RANK=0 PMI_SIZE=2 exec {hello} 5</dev/null")))
        },
        code: 1,
        says: &["use the inherited descriptor: 5: it is not a socket"],
    },
    Case {
        name: "no-such-input-file",
        make: |_, _| Ok(Cmd::cargo("--quiet xtask demo --input ./no-such-reads.fa")),
        code: 1,
        says: &["no-such-reads.fa"],
    },
];

pub fn rows() -> Vec<Row> {
    let mut rows: Vec<_> = CASES
        .iter()
        .map(|case| Row::new(format!("bad-input/{}", case.name), move |world, log| provoke(world, log, case)))
        .collect();
    rows.push(Row::new("bad-input/gasrun-is-killed", gasrun_is_killed));
    rows.push(Row::new("bad-input/full-temp-directory", full_directory).need(Need::Namespaces));
    rows.push(Row::new("bad-input/rank-killed-for-memory", killed_for_memory).need(Need::MemoryGroup));
    rows
}

/// A job whose lines say from which rank they are.
fn job(built: &Built, ranks: usize, program: &str) -> Result<Cmd> {
    built.gasrun_with(ranks, "--label", program)
}

/// `cmd` in a shell, between `before` and `after`.
fn in_shell(before: &str, cmd: &Cmd, after: &str) -> Cmd {
    Cmd::new("sh").arg("-c").arg(format!("{before} {} {after}", cmd.shown()))
}

fn provoke(world: &World, log: &Log, case: &Case) -> Result<()> {
    let dir = world.scratch(&format!("bad-input/{}", case.name))?;
    let leftovers = Leftovers::before();
    let ended = log.run(&(case.make)(&*world.built(Build::Debug)?, &dir)?.limit(60))?;
    let Some(status) = ended.status else { bail!("no end within {} s", ended.took.as_secs()) };
    ensure!(status.code() == Some(case.code), "{}, not exit code {}", ended.how(), case.code);
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    told_once(&ended.output, case.says)?;
    leftovers.check()
}

/// An error unless some rank (or who else spoke) says every text, and none says any of them twice. Not every rank must
/// speak: the first that fails ends the others, maybe in the middle of a line.
pub(super) fn told_once(output: &str, says: &[&str]) -> Result<()> {
    let mut speakers = BTreeMap::<&str, String>::new();
    for line in output.lines() {
        let labelled = line.strip_prefix('[').and_then(|l| l.split_once("] "));
        let labelled = labelled.filter(|(rank, _)| rank.bytes().all(|b| b.is_ascii_digit()));
        let (who, said) = labelled.unwrap_or(("", line));
        let text = speakers.entry(who).or_default();
        text.push_str(said);
        text.push('\n');
    }
    for (who, said) in &speakers {
        let twice = says.iter().find(|text| said.matches(**text).count() > 1);
        ensure!(twice.is_none(), "rank {who:?} says {:?} more than once", twice.unwrap_or(&""));
    }
    let all = |said: &String| says.iter().all(|text| said.contains(text));
    let missing = says.iter().find(|text| !output.contains(**text));
    ensure!(missing.is_none(), "no line says {:?}", missing.unwrap_or(&""));
    ensure!(speakers.values().any(all), "no rank says all of {says:?}");
    Ok(())
}

/// Whoever kills `gasrun` outright must not have to look for its ranks: that they end is what a log checks of everything
/// that is run into it.
fn gasrun_is_killed(world: &World, log: &Log) -> Result<()> {
    let gasrun = world.built(Build::Debug)?.program("gasrun")?.display().to_string();
    let leftovers = Leftovers::before();
    let script = format!("{gasrun} -n 2 -- sleep 314 & sleep 1; kill -9 $!; wait $!; test $? = 137");
    log.run_ok(&Cmd::new("sh").arg("-c").arg(script).limit(30))?;
    leftovers.check()
}

/// The case of the launcher's own tests that needs the right to limit memory.
fn killed_for_memory(world: &World, log: &Log) -> Result<()> {
    let built = world.built(Build::Debug)?;
    let tests = built.tests.iter().find(|t| t.package == "launch" && t.target == "gasrun" && t.integration);
    let tests = tests.context("the package launch has no test program gasrun")?;
    let ended = log.run_ok(&tests.cmd().words("--only a_rank_killed_for_memory").limit(90))?;
    ensure!(ended.output.contains("test result: 1 passed; 0 failed"), "the case did not run");
    Ok(())
}

/// Nothing of a job is in a temporary directory; a program that writes says which file it could not write.
fn full_directory(world: &World, log: &Log) -> Result<()> {
    let built = world.built(Build::Release)?;
    let dir = world.scratch("bad-input/full")?;
    let full = format!(
        "mount -t tmpfs -o size=4k none {0} && cd {0} && (cat /dev/zero > fill; true)",
        dir.display()
    );
    let inside = |cmd: Cmd| {
        let script = format!("{full}; TMPDIR={} exec {}", dir.display(), cmd.shown());
        Cmd::new("unshare").words("--user --map-root-user --mount sh -c").arg(script)
    };
    log.run_ok(&inside(built.gasrun(2, "hello")?))?;
    let ended = log.run(&inside(built.gasrun(2, "heat")?.words("--out heat.png")))?;
    ensure!(!ended.ok(), "a picture was written to a full directory");
    ensure!(ended.output.to_lowercase().contains("no space"), "no line says that there is no space");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_is_missing_or_told_twice_is_found() {
        let says = ["setting X=\"y\"", "wanted a size"];
        let cause = "setting X=\"y\": wanted a size";
        let told = |output: String| told_once(&output, &says).map_err(|e| e.to_string());
        // Once for each rank, and the second rank was ended early.
        told(format!("[0] Error: {cause}\n[1] Error: {cause}\ngasrun: rank 0 failed\n")).unwrap();
        told(format!("[0] Error: setting X=\"y\": wan\n[1] Error: {cause}\n")).unwrap();
        let twice = told(format!("[0] Error: {cause}\n[0] \n[0] Caused by:\n[0]    {cause}\n")).unwrap_err();
        assert!(twice.contains("rank \"0\"") && twice.contains("more than once"), "{twice}");
        assert!(told(format!("{cause}\n{cause}\n")).is_err());
        assert!(told("[0] setting X=\"y\"\n".into()).unwrap_err().contains("wanted a size"));
        assert!(
            told("[0] setting X=\"y\"\n[1] wanted a size\n".into()).unwrap_err().contains("no rank says")
        );
        assert!(told(String::new()).is_err());
    }
}
