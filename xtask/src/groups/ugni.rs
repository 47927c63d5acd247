//! The software NIC as its clients find it: laid out, found by pkg-config, linked, and run with many seeds.

use super::Extent;
use crate::exec::{Cmd, Log};
use crate::needs::Need;
use crate::rows::Row;
use crate::ugni;
use crate::world::{Build, World};
use anyhow::{Result, ensure};
use std::path::PathBuf;

/// The C programs that go around with any seed, with how many ranks, and on how many nodes.
const PROGRAMS: &[(&str, usize, u32)] = &[
    ("transfers", 2, 1),
    ("atomics", 3, 1),
    ("messages", 3, 1),
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

pub fn rows(extent: Extent) -> Vec<Row> {
    let (seeds, seeds_apart) = match extent {
        Extent::Everyday => (64, 1),
        // Some 10,000 in all.
        Extent::Nightly => (834, 64),
    };
    let install = Row::new("ugni-sim/install", install).need(Need::PkgConfig);
    let programs = PROGRAMS.iter().map(|&(name, ranks, nodes)| {
        let row = move |world: &World, log: &Log| with_seeds(world, log, name, (ranks, nodes), seeds);
        Row::new(format!("ugni-sim/{name}"), row).need(Need::PkgConfig).beside()
    });
    let apart = PROGRAMS.iter().map(|&(name, ..)| {
        let row = move |world: &World, log: &Log| on_three_hosts(world, log, name, seeds_apart);
        Row::new(format!("ugni-sim/three-hosts/{name}"), row).need(Need::PkgConfig).need(Need::Hosts)
    });
    std::iter::once(install).chain(programs).chain(apart).collect()
}

/// The command does what the book says: pkg-config finds it all, and a program that is linked so runs.
fn install(world: &World, log: &Log) -> Result<()> {
    let prefix = world.scratch("ugni-sim/prefix")?;
    log.run_ok(&Cmd::cargo("xtask ugni-sim --prefix").arg(&prefix).limit(900))?;
    let all = [
        "cray-ugni",
        "cray-udreg",
        "cray-pmi",
        "cray-alps",
        "cray-alpslli",
        "cray-alpsutil",
        "cray-gni-headers",
    ];
    for name in all {
        let asked = Cmd::new("pkg-config").words("--exists --print-errors").arg(name);
        log.run_ok(&asked.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
    }
    let program = compile(world, log, "waiting")?;
    go(world, log, &program, (2, 1), 0)
}

/// Lays the library out once for all rows, and compiles a program against it.
fn compile(world: &World, log: &Log, name: &str) -> Result<PathBuf> {
    let prefix = prefix(world);
    world.once("the software NIC", || {
        log.run_ok(&ugni::build())?;
        ugni::lay_out(&prefix)
    })?;
    let program = prefix.join(name);
    let source = crate::root().join("crates/ugni-sim-capi/tests/clients/c").join(name).with_extension("c");
    // As a client's own makefile would.
    let line =
        r#"cc -std=c11 -D_GNU_SOURCE -O1 -o "$1" "$2" $(pkg-config --cflags --libs cray-ugni cray-pmi)"#;
    let cc = Cmd::new("sh").arg("-c").arg(line).arg("sh").arg(&program).arg(&source);
    log.run_ok(&cc.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
    Ok(program)
}

fn prefix(world: &World) -> PathBuf {
    world.log_path("ugni-sim").with_extension("")
}

/// A job of so many ranks, and what else `gasrun` is told: in the plain mood with seed 0, else in the adversarial one.
fn job(world: &World, program: &PathBuf, words: &str, seed: u32) -> Result<Cmd> {
    let gasrun = Cmd::new(world.built(Build::Release)?.program("gasrun")?);
    Ok(gasrun
        .words(&format!("{words} --timeout 200 --"))
        .arg(program)
        .env("LD_LIBRARY_PATH", prefix(world).join("lib"))
        .env("GASWORKS_UGNI_CHIP", if seed.is_multiple_of(2) { "aries" } else { "gemini" })
        .env("GASWORKS_UGNI_MOOD", if seed == 0 { "plain" } else { "adversarial" })
        .env("GASWORKS_UGNI_SEED", seed.to_string())
        .limit(220))
}

fn check(log: &Log, job: &Cmd, seed: u32) -> Result<()> {
    let output = log.run_ok(job)?.output;
    ensure!(output.contains("all is well"), "seed {seed}: it does not say that all is well");
    Ok(())
}

fn go(world: &World, log: &Log, program: &PathBuf, (ranks, nodes): (usize, u32), seed: u32) -> Result<()> {
    let job = job(world, program, &format!("-n {ranks}"), seed)?;
    check(log, &job.env("GASWORKS_UGNI_NODES", nodes.to_string()), seed)
}

/// Two ranks on each: those of a host are near, the others far.
fn on_three_hosts(world: &World, log: &Log, name: &str, seeds: u32) -> Result<()> {
    let program = compile(world, log, name)?;
    let cluster = world.cluster()?;
    let words = "-n 6 --hosts h1:2,h2:2,h3:2 --rsh /run/rsh -x LD_LIBRARY_PATH";
    (0..=seeds).try_for_each(|seed| check(log, &cluster.on_h0(job(world, &program, words, seed)?), seed))
}

fn with_seeds(world: &World, log: &Log, name: &str, ranks: (usize, u32), seeds: u32) -> Result<()> {
    let program = compile(world, log, name)?;
    (0..=seeds).try_for_each(|seed| go(world, log, &program, ranks, seed))
}
