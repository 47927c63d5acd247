//! libfabric with its provider for uGNI, built from unchanged sources of others: a client of it, and its own tests. Nightly.

use crate::{check, compile_with, job, pieces};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::programs::{Fixture, target};
use gasworks_testkit::sources::MPICH;
use gasworks_testkit::{Case, Cmd, Log, Need};
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub fn cases() -> impl Iterator<Item = Case> {
    let clients = [2, 4].into_iter().flat_map(|ranks| {
        pieces(0..=64, 13).map(move |seeds| {
            let name = format!("libfabric/{ranks}/{}-{}", seeds.start(), seeds.end());
            Case::new(name, move |log| client(log, ranks, seeds))
        })
    });
    let own = Case::new("libfabric/own-tests", own_tests).need(Need::Namespaces);
    clients.chain([own]).map(|case| case.need(Need::MpichSource).need(Need::Criterion))
}

/// Where libfabric is built, and the installations of it and of the NIC.
struct Libfabric {
    build: PathBuf,
    prefix: PathBuf,
    nic: PathBuf,
}

impl Libfabric {
    /// Builds it with its provider for uGNI and the provider's tests. Cases that want it at the same time wait for each other; what
    /// is built is not built again.
    fn build(log: &Log) -> Result<Self> {
        let (nic, build) = (Fixture::Nic.get()?, target().join("libfabric"));
        let built = Self { prefix: build.join("prefix"), build, nic };
        std::fs::create_dir_all(&built.build).context("the folder of libfabric")?;
        let lock = std::fs::File::create(built.build.join("lock")).context("the lock of libfabric")?;
        lock.lock().context("the lock of libfabric")?;
        let configure = Cmd::new(MPICH.top()?.join("modules/libfabric/configure"))
            .words("--enable-only --enable-gni=yes --disable-xpmem --with-kdreg=no --with-criterion=/usr")
            .arg(format!("--prefix={}", built.prefix.display()))
            // By its own flags it hides what it is for, without the versions of symbols that this copy lacks.
            .arg("CFLAGS=-O1 -w");
        let make = Cmd::new("make").words("-j2 install");
        let steps = if built.build.join("Makefile").exists() { vec![make] } else { vec![configure, make] };
        for step in steps {
            let step = step
                .env("PKG_CONFIG_PATH", built.all("lib/pkgconfig"))
                .env("LD_LIBRARY_PATH", built.all("lib"));
            log.run_ok(&step.dir(&built.build).limit(900))?;
        }
        Ok(built)
    }

    /// A list of this folder in both installations.
    fn all(&self, below: &str) -> String {
        [&self.prefix, &self.nic].map(|path| path.join(below).display().to_string()).join(":")
    }
}

/// A client of libfabric, whose provider was written for Aries.
fn client(log: &Log, ranks: usize, seeds: RangeInclusive<u32>) -> Result<()> {
    const MODULES: &str = "libfabric cray-ugni cray-udreg cray-pmi cray-alpslli cray-alpsutil";
    let built = Libfabric::build(log)?;
    let program = compile_with(log, "libfabric", MODULES, &built.all("lib/pkgconfig"))?;
    // Seeds that are even, for these are run on Aries.
    for seed in seeds.map(|seed| 2 * seed) {
        let job = job(&program, &format!("-n {ranks}"), &built.nic, seed)?;
        let job = job.env("LD_LIBRARY_PATH", built.all("lib"));
        check(log, &job, seed)?;
        check(log, &job.env("GASWORKS_UGNI_STRICT", "1"), seed)?;
    }
    Ok(())
}

/// What libfabric's tests want of a host: an interface of Cray's name with the host's own address; and functions at the same
/// addresses as in the process that has started the test.
const LIKE_CRAYS: &str = r#"ip link set lo up && ip link add ipogif0 type veth peer name far0 &&
    ip addr add 10.128.0.5/24 dev ipogif0 && ip link set ipogif0 up && ip link set far0 up &&
    echo "10.128.0.5 $(hostname)" > "$1" && mount --bind "$1" /etc/hosts && shift && exec setarch -R "$@""#;

/// The tests that libfabric's provider has of itself. Those that are left out are about Cray's machines and not about the NIC: about
/// their huge pages, and a file of their system.
fn own_tests(log: &Log) -> Result<()> {
    const ALL: &str = "!(mbox_creation_*|rdm_multi_r*|api_c*|rdm_api_*)/*";
    const OF_CRAYS_SYSTEM: &str = "utils::proc";
    // The first take the last event of receives for that of a message, if it is there before the last send's; the others end their
    // endpoints while a thread of libfabric's uses them, and hang or crash now and then.
    const RACY: [&str; 3] = ["rdm_multi_r*/*", "api_c*/*", "rdm_api_*/*"];
    const TRIES: usize = 20;
    let built = Libfabric::build(log)?;
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
    for tests in RACY {
        let well = |_| run(tests, 60).is_ok_and(|once| once.tested > 0 && once.failed.is_empty());
        ensure!((0..TRIES).any(well), "{tests} never went well in {TRIES} times");
    }
    Ok(())
}

/// What criterion prints at the end, and the tests that it says failed.
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

/// Tests `Summary`.
pub fn criterion_is_read() -> Result<()> {
    let said = "[----] Warning! The test `a::b` crashed during its setup or teardown.\n\
                [FAIL] suite::one: (0.00s)\n[FAIL] suite::two: CRASH!\n\
                [====] Synthesis: Tested: 12 | Passing: 10 | Failing: 2 | Crashing: 1 \n";
    let failed = ["suite::one", "suite::two"].map(String::from).to_vec();
    assert_eq!(Summary::of(said)?, Summary { tested: 12, failed });
    assert!(Summary::of("[FAIL] suite::one: (0.00s)\n").is_err());
    Ok(())
}
