//! The software NIC as its clients find it: laid out, found by pkg-config, linked, and run with many seeds.

use super::Extent;
use crate::exec::{Cmd, Log};
use crate::needs::Need;
use crate::rows::Row;
use crate::sources::MPICH;
use crate::ugni;
use crate::world::{Build, World};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

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
        Extent::Everyday => (32, 1),
        // Some 10,000 in all.
        Extent::Nightly => (834, 64),
    };
    let install = Row::new("ugni-sim/install", install).need(Need::PkgConfig);
    let linked = Row::new("ugni-sim/linked", linked);
    let programs = PROGRAMS.iter().map(|&(name, ranks, nodes)| {
        let row = move |world: &World, log: &Log| with_seeds(world, log, name, (ranks, nodes), seeds);
        Row::new(format!("ugni-sim/{name}"), row).need(Need::PkgConfig).beside()
    });
    let apart = PROGRAMS.iter().map(|&(name, ..)| {
        let row = move |world: &World, log: &Log| on_three_hosts(world, log, name, seeds_apart);
        Row::new(format!("ugni-sim/three-hosts/{name}"), row).need(Need::PkgConfig).need(Need::Hosts)
    });
    let foreign = (extent == Extent::Nightly).then(|| {
        let client = Row::new("ugni-sim/libfabric", move |world, log| libfabric(world, log, seeds_apart));
        let own = Row::new("ugni-sim/libfabric-itself", libfabric_itself);
        let built = |row: Row| row.need(Need::PkgConfig).need(Need::MpichSource).need(Need::Criterion);
        [built(client), built(own).need(Need::Namespaces)]
    });
    let foreign = foreign.into_iter().flatten();
    [install, linked].into_iter().chain(programs).chain(apart).chain(foreign).collect()
}

/// Where libfabric is built, and what it and the NIC lay out.
struct Libfabric {
    build: PathBuf,
    prefix: PathBuf,
    nic: PathBuf,
}

impl Libfabric {
    /// Builds it with its provider for uGNI and the tests of that, from unchanged sources of others, once for all rows.
    fn build(world: &World, log: &Log) -> Result<Self> {
        let (nic, build) = (lay_out(world, log)?, prefix(world).with_file_name("libfabric"));
        let built = Self { prefix: build.join("prefix"), build, nic };
        world.once("libfabric", || {
            std::fs::create_dir_all(&built.build)?;
            let configure = Cmd::new(MPICH.top()?.join("modules/libfabric/configure"))
                .words("--enable-only --enable-gni=yes --disable-xpmem --with-kdreg=no --with-criterion=/usr")
                .arg(format!("--prefix={}", built.prefix.display()))
                // By its own flags it hides what it is for, without the versions of symbols that this copy lacks.
                .arg("CFLAGS=-O1 -w");
            for step in [configure, Cmd::new("make").words("-j2 install")] {
                let step = step
                    .env("PKG_CONFIG_PATH", built.all("lib/pkgconfig"))
                    .env("LD_LIBRARY_PATH", built.all("lib"));
                log.run_ok(&step.dir(&built.build).limit(900))?;
            }
            Ok(())
        })?;
        Ok(built)
    }

    /// A list of folders below both.
    fn all(&self, below: &str) -> String {
        [&self.prefix, &self.nic].map(|path| path.join(below).display().to_string()).join(":")
    }
}

/// What libfabric's tests want of a host: an interface of Cray's name with the host's own address; and that functions are where they
/// were in the process that has started the test.
const LIKE_CRAYS: &str = r#"ip link set lo up && ip link add ipogif0 type veth peer name far0 &&
    ip addr add 10.128.0.5/24 dev ipogif0 && ip link set ipogif0 up && ip link set far0 up &&
    echo "10.128.0.5 $(hostname)" > "$1" && mount --bind "$1" /etc/hosts && shift && exec setarch -R "$@""#;

/// The tests that libfabric's provider has of itself. What is left out is of Cray's machines and not of the NIC: their huge pages, and a
/// file of their system's.
fn libfabric_itself(world: &World, log: &Log) -> Result<()> {
    const ALL: &str = "!(mbox_creation_*|rdm_multi_r*|api_c*|rdm_api_*)/*";
    const OF_CRAYS_SYSTEM: &str = "utils::proc";
    // The first take the last event of receives for that of a message, if it is there before the last send's; the others end their
    // endpoints while a thread of libfabric's uses them, now and then for good.
    const HASTY: [&str; 3] = ["rdm_multi_r*/*", "api_c*/*", "rdm_api_*/*"];
    const TRIES: usize = 20;
    let built = Libfabric::build(world, log)?;
    let run = |tests: &str, limit: u64| -> Result<Summary> {
        let tests = Cmd::new("unshare")
            .words("--user --map-root-user --net --mount --pid --fork --kill-child --mount-proc sh -c")
            .arg(LIKE_CRAYS)
            .arg("sh")
            .arg(built.build.join("hosts"))
            .arg(built.build.join("prov/gni/test/gnitest"))
            .words("-j1 --timeout 120 --filter")
            .arg(tests)
            .env("LD_LIBRARY_PATH", built.all("lib"))
            .env("GNIX_DISABLE_XPMEM", "1")
            .env("UGNI_FMA_SHARED", "0");
        Summary::of(&log.run(&tests.limit(limit))?.output)
    };
    let mut all = run(ALL, 900)?;
    all.failed.retain(|name| name != OF_CRAYS_SYSTEM);
    ensure!(all.tested > 800, "{} tests were run, of more than 800", all.tested);
    ensure!(all.failed.is_empty(), "{} failed", all.failed.join(", "));
    for tests in HASTY {
        let well = |_| run(tests, 60).is_ok_and(|once| once.tested > 0 && once.failed.is_empty());
        ensure!((0..TRIES).any(well), "{tests} never went well in {TRIES} times");
    }
    Ok(())
}

/// What criterion says at the end, and of what failed.
#[derive(Debug, PartialEq)]
struct Summary {
    tested: usize,
    failed: Vec<String>,
}

impl Summary {
    fn of(output: &str) -> Result<Self> {
        let failed = output.lines().filter_map(|line| line.strip_prefix("[FAIL] ")?.split_once(": "));
        let tested = output.lines().rev().find_map(|line| line.split_once("Tested: ")?.1.split(' ').next());
        let tested = tested.context("the tests did not come to their end")?.parse()?;
        Ok(Self { tested, failed: failed.map(|(name, _)| name.to_owned()).collect() })
    }
}

/// A client of libfabric, whose provider was written for Aries.
fn libfabric(world: &World, log: &Log, seeds: u32) -> Result<()> {
    let built = Libfabric::build(world, log)?;
    const LIBRARIES: &str = "libfabric cray-ugni cray-udreg cray-pmi cray-alpslli cray-alpsutil";
    let program = compile_with(log, &built.prefix, "libfabric", LIBRARIES, &built.all("lib/pkgconfig"))?;
    for ranks in [2, 4] {
        for seed in (0..=2 * seeds).step_by(2) {
            let job = job(world, &program, &format!("-n {ranks}"), seed)?;
            let job = job.env("LD_LIBRARY_PATH", built.all("lib"));
            check(log, &job, seed)?;
            check(log, &job.env("GASWORKS_UGNI_STRICT", "1"), seed)?;
        }
    }
    Ok(())
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

/// A client in Rust is linked with the libraries, and finds in each all that is declared of it.
fn linked(world: &World, log: &Log) -> Result<()> {
    let lib = lay_out(world, log)?.join("lib");
    // Told to the program's compilation alone: nothing else is built anew for it.
    let build = Cmd::cargo("rustc -q --release -p gasworks-gni-sys --example linked --features linked --");
    log.run_ok(&build.arg(format!("-Lnative={}", lib.display())).limit(600))?;
    let program = crate::demo::target()?.join("release/examples/linked");
    let output = log.run_ok(&job(world, &program, "-n 2", 1)?)?.output;
    for said in ["rank 0 of 2 has a NIC of Gemini", "rank 1 of 2 has a NIC of Gemini", "Udreg are linked too"]
    {
        ensure!(output.contains(said), "it does not say {said:?}");
    }
    Ok(())
}

/// Lays the library out once for all rows.
pub(super) fn lay_out(world: &World, log: &Log) -> Result<PathBuf> {
    let prefix = prefix(world);
    world.once("the software NIC", || {
        log.run_ok(&ugni::build())?;
        ugni::lay_out(&prefix)
    })?;
    Ok(prefix)
}

/// Compiles a program against it.
fn compile(world: &World, log: &Log, name: &str) -> Result<PathBuf> {
    let prefix = lay_out(world, log)?;
    let found_by = prefix.join("lib/pkgconfig").display().to_string();
    compile_with(log, &prefix, name, "cray-ugni cray-pmi", &found_by)
}

/// Compiles a program against some libraries, into a folder.
fn compile_with(log: &Log, into: &Path, name: &str, libraries: &str, found_by: &str) -> Result<PathBuf> {
    let program = into.join(name);
    let source = crate::root().join("crates/ugni-sim-capi/tests/clients/c").join(name).with_extension("c");
    // As a client's own makefile would.
    let line = r#"cc -std=c11 -D_GNU_SOURCE -O1 -o "$1" "$2" $(pkg-config --cflags --libs $3)"#;
    let cc = Cmd::new("sh").arg("-c").arg(line).arg("sh").arg(&program).arg(&source).arg(libraries);
    log.run_ok(&cc.env("PKG_CONFIG_PATH", found_by))?;
    Ok(program)
}

pub(super) fn prefix(world: &World) -> PathBuf {
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
    (0..=seeds).try_for_each(|seed| go(world, log, &program, ranks, seed))?;
    // As many ranks as the programs know, on each chip.
    (0..=2).try_for_each(|seed| go(world, log, &program, (8, ranks.1), seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_criterion_says_is_read() {
        let said = "[----] Warning! The test `a::b` crashed during its setup or teardown.\n\
                    [FAIL] suite::one: (0.00s)\n[FAIL] suite::two: CRASH!\n\
                    [====] Synthesis: Tested: 12 | Passing: 10 | Failing: 2 | Crashing: 1 \n";
        let failed = ["suite::one", "suite::two"].map(String::from).to_vec();
        assert_eq!(Summary::of(said).expect("whole"), Summary { tested: 12, failed });
        assert!(Summary::of("[FAIL] suite::one: (0.00s)\n").is_err());
    }
}
