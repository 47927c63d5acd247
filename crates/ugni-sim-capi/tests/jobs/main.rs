//! C programs as clients of the genuine libraries write them: compiled with what pkg-config says, linked with the software NIC's
//! libraries, and run as jobs on both chips.
//!
//! Daily, each program is run on Aries with plain delivery and on Gemini with adversarial delivery. Nightly runs take hundreds of
//! seeds, ranks on three hosts, ranks that are killed, and libfabric.

mod libfabric;

use anyhow::{Context, Result, ensure};
use gasworks_testkit::cases::{self, is_nightly};
use gasworks_testkit::hosts::Cluster;
use gasworks_testkit::programs::{Fixture, release, target};
use gasworks_testkit::{Case, Cmd, Log, Need};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The C programs that run with any seed, with how many ranks, and on how many nodes.
const PROGRAMS: [(&str, usize, u32); 16] = [
    ("transfers", 2, 1),
    ("atomics", 3, 1),
    ("messages", 3, 1),
    ("arrivals", 2, 1),
    ("datagrams", 3, 1),
    ("chains", 3, 1),
    ("overrun", 2, 1),
    ("errors", 2, 1),
    ("waiting", 2, 1),
    ("vmdh", 2, 1),
    ("segments", 2, 1),
    ("domains", 3, 1),
    ("channels", 2, 1),
    ("queries", 2, 1),
    ("collective", 4, 1),
    ("msgq", 4, 2),
];

/// As many ranks as the programs know.
const MAX_RANKS: usize = 8;

/// C programs that start their ranks themselves and kill some, with the delivery, and whether the NIC checks its clients strictly.
const KILLED: [(&str, &str, &str); 5] = [
    ("killed", "plain", "0"),
    ("killed", "adversarial", "0"),
    ("killed", "plain", "1"),
    ("killed_msgq", "plain", "0"),
    ("killed_msgq", "adversarial", "0"),
];

/// The modules that pkg-config finds.
const MODULES: [&str; 7] =
    ["cray-ugni", "cray-udreg", "cray-pmi", "cray-alps", "cray-alpslli", "cray-alpsutil", "cray-gni-headers"];

fn main() -> ExitCode {
    let mut all = vec![Case::new("pkg-config", |log| modules_are_found(log, &Fixture::Nic.get()?))];
    for (name, ranks, nodes) in PROGRAMS {
        all.push(Case::new(name, move |log| with_seeds(log, name, (ranks, nodes), 0..=1)));
    }
    if is_nightly() {
        all.extend(nightly());
    }
    let mut all: Vec<_> = all.into_iter().map(|case| case.need(Need::PkgConfig)).collect();
    all.push(Case::new("judge/criterion-is-read", |_| libfabric::criterion_is_read()));
    cases::main("ugni-sim-capi/jobs", all)
}

/// What only nightly runs take: some 10,000 jobs of C programs, and others' clients.
fn nightly() -> Vec<Case> {
    let mut cases = vec![Case::new("command", command), Case::new("linked", linked)];
    for (name, ranks, nodes) in PROGRAMS {
        cases.push(Case::new(format!("{name}/8-ranks"), move |log| {
            with_seeds(log, name, (MAX_RANKS, nodes), 0..=2)
        }));
        for seeds in pieces(2..=834, 49) {
            cases.push(Case::new(format!("{name}/seeds/{}-{}", seeds.start(), seeds.end()), move |log| {
                with_seeds(log, name, (ranks, nodes), seeds)
            }));
        }
        for seeds in pieces(0..=64, 13) {
            let case = format!("three-hosts/{name}/{}-{}", seeds.start(), seeds.end());
            cases.push(Case::new(case, move |log| on_three_hosts(log, name, seeds)).need(Need::Hosts));
        }
    }
    for (name, delivery, strict) in KILLED {
        let case = format!("{name}/{delivery}{}", if strict == "1" { "/strict" } else { "" });
        cases.push(Case::new(case, move |log| killed(log, name, delivery, strict)));
    }
    cases.extend(libfabric::cases());
    cases
}

/// A range of seeds, in pieces of so many.
fn pieces(seeds: RangeInclusive<u32>, size: usize) -> impl Iterator<Item = RangeInclusive<u32>> {
    let last = *seeds.end();
    seeds.step_by(size).map(move |first| first..=last.min(first + size as u32 - 1))
}

/// pkg-config finds all modules of an installation, and a program that is compiled as it says runs.
fn modules_are_found(log: &Log, prefix: &Path) -> Result<()> {
    for name in MODULES {
        let asked = Cmd::new("pkg-config").words("--exists --print-errors").arg(name);
        log.run_ok(&asked.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
    }
    let program = compile(log, prefix, "waiting")?;
    check(log, &job(&program, "-n 2", prefix, 0)?, 0)
}

/// `cargo xtask ugni-sim` lays out such an installation.
fn command(log: &Log) -> Result<()> {
    // Beside the folder of the case, which the compilation of a program empties.
    let prefix = log.path().with_extension("prefix");
    let command = Cmd::cargo("xtask ugni-sim --prefix").arg(&prefix).env("CARGO_TARGET_DIR", target());
    log.run_ok(&command.limit(900))?;
    modules_are_found(log, &prefix)
}

/// A client in Rust is linked with the libraries, and finds in each all functions that are declared of it.
fn linked(log: &Log) -> Result<()> {
    let prefix = Fixture::Nic.get()?;
    // The folder is told to the program's compilation alone: nothing else is built anew for it.
    let build = Cmd::cargo("rustc -q --release -p gasworks-gni-sys --example linked --features linked --");
    let build = build.arg(format!("-Lnative={}", prefix.join("lib").display()));
    log.run_ok(&build.env("CARGO_TARGET_DIR", target()).limit(600))?;
    let output = log.run_ok(&job(&target().join("release/examples/linked"), "-n 2", &prefix, 1)?)?.output;
    for said in ["rank 0 of 2 has a NIC of Gemini", "rank 1 of 2 has a NIC of Gemini", "Udreg are linked too"]
    {
        ensure!(output.contains(said), "it does not say {said:?}");
    }
    Ok(())
}

/// Compiles a program against the installation at `prefix`.
fn compile(log: &Log, prefix: &Path, name: &str) -> Result<PathBuf> {
    let found_by = prefix.join("lib/pkgconfig").display().to_string();
    compile_with(log, name, "cray-ugni cray-pmi", &found_by)
}

/// Compiles a program against some modules, into the case's folder.
fn compile_with(log: &Log, name: &str, modules: &str, found_by: &str) -> Result<PathBuf> {
    let program = log.scratch()?.join(name);
    let source = format!("crates/ugni-sim-capi/tests/clients/c/{name}.c");
    // As a client's own makefile would.
    let line = r#"cc -std=c11 -D_GNU_SOURCE -O1 -o "$1" "$2" $(pkg-config --cflags --libs $3)"#;
    let cc = Cmd::new("sh").arg("-c").arg(line).arg("sh").arg(&program).arg(&source).arg(modules);
    log.run_ok(&cc.env("PKG_CONFIG_PATH", found_by))?;
    Ok(program)
}

/// A job of a program with options for `gasrun`, which say how many ranks: with plain delivery for seed 0, otherwise adversarial.
fn job(program: &Path, options: &str, prefix: &Path, seed: u32) -> Result<Cmd> {
    let gasrun = Cmd::new(release()?.program("gasrun")?).words(&format!("{options} --timeout 200 --"));
    Ok(gasrun
        .arg(program)
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .env("GASWORKS_UGNI_CHIP", if seed.is_multiple_of(2) { "aries" } else { "gemini" })
        .env("GASWORKS_UGNI_MOOD", if seed == 0 { "plain" } else { "adversarial" })
        .env("GASWORKS_UGNI_SEED", seed.to_string())
        .limit(220)
        .job())
}

/// An error unless the program says that it found all as it should be.
fn check(log: &Log, job: &Cmd, seed: u32) -> Result<()> {
    let output = log.run_ok(job).with_context(|| format!("seed {seed}"))?.output;
    ensure!(output.contains("all is well"), "seed {seed}: it does not say that all is well");
    Ok(())
}

fn with_seeds(
    log: &Log,
    name: &str,
    (ranks, nodes): (usize, u32),
    mut seeds: RangeInclusive<u32>,
) -> Result<()> {
    let prefix = Fixture::Nic.get()?;
    let program = compile(log, &prefix, name)?;
    seeds.try_for_each(|seed| {
        let job = job(&program, &format!("-n {ranks}"), &prefix, seed)?;
        check(log, &job.env("GASWORKS_UGNI_NODES", nodes.to_string()), seed)
    })
}

/// Two ranks on each host: those of one host share memory, the others do not.
fn on_three_hosts(log: &Log, name: &str, mut seeds: RangeInclusive<u32>) -> Result<()> {
    let (prefix, cluster) = (Fixture::Nic.get()?, Cluster::up()?);
    let program = compile(log, &prefix, name)?;
    let options = "-n 6 --hosts h1:2,h2:2,h3:2 --rsh /run/rsh -x LD_LIBRARY_PATH";
    seeds.try_for_each(|seed| check(log, &cluster.on_h0(job(&program, options, &prefix, seed)?), seed))
}

/// The others of a job go on when some are killed.
fn killed(log: &Log, name: &str, delivery: &str, strict: &str) -> Result<()> {
    let prefix = Fixture::Nic.get()?;
    let program =
        Cmd::new(compile(log, &prefix, name)?).env("LD_LIBRARY_PATH", prefix.join("lib")).limit(120);
    let program = program.env("GASWORKS_UGNI_MOOD", delivery).env("GASWORKS_UGNI_STRICT", strict);
    check(log, &program.job(), 0)
}
