//! Limits of the shell and of the settings, for `limits.c`: room that nobody has asked for gives way to them, what is promised can be had
//! later, and what cannot is refused in words that help.

use crate::program::{Program, start};
use anyhow::{Result, ensure};
use gasworks_testkit::{Case, Cmd, Log, Need};

/// A job of `limits.c`.
struct Limit {
    name: &'static str,
    ranks: usize,
    /// What the shell does before it becomes the job.
    shell: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// The size of the segment.
    segment: &'static str,
    /// What the job says; with `limits: done` it ends well.
    says: &'static [&'static str],
}

const LIMIT: Limit =
    Limit { name: "", ranks: 2, shell: ":", variables: &[], segment: "65536", says: &["limits: done"] };
const LITTLE: &str = "little is shown\n";

const LIMITS: [Limit; 15] = [
    Limit { name: "none", says: &[LITTLE, "limits: done"], ..LIMIT },
    Limit { name: "all-that-is-promised", segment: "most", ..LIMIT },
    Limit { name: "addresses", ranks: 4, shell: "ulimit -v 2000000", ..LIMIT },
    Limit { name: "addresses/all", ranks: 4, shell: "ulimit -v 2000000", segment: "most", ..LIMIT },
    Limit {
        name: "addresses/too-few",
        shell: "ulimit -v 80000",
        says: &["ulimit -v", "raise that limit"],
        ..LIMIT
    },
    Limit {
        name: "addresses/too-much",
        shell: "ulimit -v 2000000",
        segment: "4294967296",
        says: &["cannot grow from 0 to 4294967296 bytes: the limit on addresses (ulimit -v) allows "],
        ..LIMIT
    },
    Limit { name: "files", shell: "ulimit -f 100000", ..LIMIT },
    Limit { name: "files/all", shell: "ulimit -f 100000", segment: "most", ..LIMIT },
    Limit {
        name: "files/too-much",
        shell: "ulimit -f 100000",
        segment: "4294967296",
        says: &["the limit on the size of files (ulimit -f) allows "],
        ..LIMIT
    },
    Limit {
        name: "setting/too-much",
        variables: &[("GASNET_MAX_SEGSIZE", "32K")],
        says: &["the setting GASNET_MAX_SEGSIZE (32768 bytes) allows 32768 bytes"],
        ..LIMIT
    },
    Limit {
        name: "setting/our-own",
        variables: &[("GASWORKS_SEGMENT_LIMIT", "32K")],
        says: &["the setting GASWORKS_SEGMENT_LIMIT (32768 bytes) allows 32768 bytes"],
        ..LIMIT
    },
    // As GASNet reckons.
    Limit {
        name: "of-a-host/1",
        ranks: 1,
        variables: &[("GASNET_MAX_SEGSIZE", "200MB/H")],
        segment: "most",
        says: &["at most 209715200,", "limits: done"],
        ..LIMIT
    },
    Limit {
        name: "of-a-host/7",
        ranks: 7,
        variables: &[("GASNET_MAX_SEGSIZE", "100MB/H")],
        segment: "most",
        says: &["at most 14983168,", "limits: done"],
        ..LIMIT
    },
    Limit {
        name: "of-each",
        variables: &[("GASNET_MAX_SEGSIZE", "1000001/P")],
        segment: "most",
        says: &["at most 1003520,", "limits: done"],
        ..LIMIT
    },
    Limit { name: "descriptors", ranks: 32, shell: "ulimit -Sn 64", ..LIMIT },
];

/// The cases.
pub fn cases() -> Vec<Case> {
    let limits =
        LIMITS.iter().map(|limit| Case::new(format!("limits/{}", limit.name), move |log| holds(log, limit)));
    let valgrind = Case::new("limits/valgrind", |log| {
        let checked =
            Cmd::new("valgrind").words("--error-exitcode=9 --leak-check=no").arg(compiled(log)?).arg("65536");
        let ended = log.run_ok(&checked.limit(60).job())?;
        ensure!(ended.output.contains("limits: done"), "it did not come to its end");
        Ok(())
    });
    // No file of the system is there, but for the program's.
    let bare = Case::new("limits/no-proc", |log| {
        let job = start(&compiled(log)?, 2)?.arg("65536");
        let script = format!("mount -t tmpfs none /proc && exec {}", job.shown());
        let shell =
            Cmd::new("unshare").words("--user --map-root-user --mount sh -c").arg(script).limit(60).job();
        let ended = log.run_ok(&shell)?;
        ensure!(ended.output.contains("limits: done"), "it did not come to its end");
        Ok(())
    });
    limits.chain([valgrind.need(Need::Valgrind), bare.need(Need::Namespaces)]).collect()
}

fn compiled(log: &Log) -> Result<std::path::PathBuf> {
    Program::usual("limits", 0).compile(log)
}

fn holds(log: &Log, limit: &Limit) -> Result<()> {
    let job = start(&compiled(log)?, limit.ranks)?.arg(limit.segment);
    let script = format!("{} && exec {}", limit.shell, job.shown());
    let shell = Cmd::new("bash").arg("-c").arg(script).limit(60).job();
    let ended =
        log.run(&limit.variables.iter().fold(shell, |shell, (name, value)| shell.env(name, value)))?;
    let missing = limit.says.iter().find(|text| !ended.output.contains(**text));
    ensure!(missing.is_none(), "nobody says {:?}", missing.unwrap_or(&""));
    ensure!(ended.ok() == limit.says.contains(&"limits: done"), "{}", ended.how());
    Ok(())
}
