//! Bad input as a user meets it: one clear error, in bounded time, and nothing left running or lying about. What can
//! only be provoked from inside a program is among the packages' own tests.

use crate::exec::{Cmd, Log};
use crate::leftovers::{Leftovers, processes_with};
use crate::needs::Need;
use crate::rows::Row;
use crate::world::{Build, Built, World};
use anyhow::{Result, ensure};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

type Make = fn(&Built, &Path) -> Result<Cmd>;

/// A case: its name, how it is brought about, and what the error must say.
struct Case {
    name: &'static str,
    make: Make,
    says: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        name: "wrong-setting",
        make: |built, _| Ok(built.gasrun(2, "hello")?.env("GASWORKS_SEGMENT_SIZE", "lots")),
        says: &["GASWORKS_SEGMENT_SIZE", "lots", "wanted a size"],
    },
    Case {
        name: "setting-out-of-limits",
        make: |built, _| Ok(built.gasrun(2, "hello")?.env("GASNET_NETWORKDEPTH_TOTAL", "0")),
        says: &["GASNET_NETWORKDEPTH_TOTAL", "least allowed value is 1"],
    },
    Case {
        name: "segment-larger-than-memory",
        make: |built, _| Ok(built.gasrun(2, "hello")?.env("GASWORKS_SEGMENT_SIZE", "32T")),
        says: &["segment", "memory"],
    },
    Case {
        name: "tables-differ",
        make: |built, _| Ok(built.gasrun(3, "gasworks-conformance")?.words("--tables-differ")),
        says: &["handler", "rank 0"],
    },
    Case {
        name: "no-such-program",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- ./no-such-program")),
        says: &["no-such-program"],
    },
    Case {
        name: "no-ranks",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 0 -- true")),
        says: &["--ranks"],
    },
    Case {
        name: "no-descriptors",
        make: |built, _| Ok(limited("ulimit -n 8", built.gasrun(4, "hello")?)),
        says: &["open files"],
    },
    Case {
        name: "a-rank-dies",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- sh -c").arg("kill -9 $$")),
        says: &["rank", "SIGKILL"],
    },
    Case {
        name: "a-rank-fails",
        make: |built, _| {
            let script = "if [ \"$PMI_RANK\" = 1 ]; then exit 7; fi; sleep 60";
            Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- sh -c").arg(script))
        },
        says: &["rank 1", "7"],
    },
    Case {
        name: "too-slow",
        make: |built, _| Ok(Cmd::new(built.program("gasrun")?).words("-n 2 --timeout 1 -- sleep 60")),
        says: &["1 s"],
    },
    Case {
        name: "no-descriptors-for-a-rank",
        make: |built, _| {
            let script = format!("ulimit -n 5; exec {}", built.program("hello")?.display());
            Ok(Cmd::new(built.program("gasrun")?).words("-n 2 -- sh -c").arg(script))
        },
        says: &["open files"],
    },
    Case {
        name: "launcher-talks-nonsense",
        make: |built, _| talks_to(built, "no line that PMI-2 knows\n", true),
        says: &["PMI", "no line that"],
    },
    Case {
        name: "launcher-cuts-a-message",
        make: |built, _| {
            talks_to(built, "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n    90cmd=full", false)
        },
        says: &["the launcher closed the connection"],
    },
    Case {
        name: "launcher-hangs-up",
        make: |built, _| talks_to(built, "", false),
        says: &["the launcher closed the connection"],
    },
    Case {
        name: "descriptor-is-no-socket",
        make: |built, _| {
            let hello = built.program("hello")?.display().to_string();
            Ok(Cmd::new("sh")
                .arg("-c")
                .arg(format!("PMI_FD=5 PMI_RANK=0 PMI_SIZE=2 exec {hello} 5</dev/null")))
        },
        says: &["5", "not a socket"],
    },
    Case {
        name: "no-such-input-file",
        make: |_, _| Ok(Cmd::cargo("xtask demo --input ./no-such-reads.fa")),
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
    rows
}

/// A rank whose launcher says `words`, and then hangs up or goes on listening.
fn talks_to(built: &Built, words: &str, listens: bool) -> Result<Cmd> {
    let (rank, mut launcher) = UnixStream::pair()?;
    launcher.write_all(words.as_bytes())?;
    let hello =
        Cmd::new(built.program("hello")?).env("PMI_FD", "0").env("PMI_RANK", "0").env("PMI_SIZE", "2");
    Ok(hello.socket(rank, listens.then_some(launcher)))
}

/// `cmd` under a shell that first sets a limit.
fn limited(limit: &str, cmd: Cmd) -> Cmd {
    Cmd::new("sh").arg("-c").arg(format!("{limit}; exec {}", cmd.shown()))
}

fn provoke(world: &World, log: &Log, case: &Case) -> Result<()> {
    let dir = world.scratch(&format!("bad-input/{}", case.name))?;
    let leftovers = Leftovers::before();
    let ended = log.run(&(case.make)(&*world.built(Build::Debug)?, &dir)?.limit(60))?;
    ensure!(ended.status.is_some(), "no end within {} s", ended.took.as_secs());
    ensure!(!ended.ok(), "it ended well");
    ensure!(!ended.output.contains("panicked at"), "it panicked");
    for text in case.says {
        ensure!(ended.output.contains(text), "no line says {text:?}");
    }
    leftovers.check()
}

/// Whoever kills `gasrun` outright must not have to look for its ranks.
fn gasrun_is_killed(world: &World, log: &Log) -> Result<()> {
    let gasrun = world.built(Build::Debug)?.program("gasrun")?.display().to_string();
    let leftovers = Leftovers::before();
    // A duration that no other sleep on the machine has.
    let word = format!("31415.{}", std::process::id());
    let script = format!("{gasrun} -n 2 -- sleep {word} & sleep 1; kill -9 $!; wait");
    log.run(&Cmd::new("sh").arg("-c").arg(script).limit(30))?;
    for _ in 0..100 {
        if processes_with(&word).is_empty() {
            return leftovers.check();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    anyhow::bail!("ranks go on without their launcher: {:?}", processes_with(&word))
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
