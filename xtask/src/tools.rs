//! The checkers, each as a command: what it needs is installed by name, and what is run is said.

use crate::rows::Row;
use crate::world::{Build, TestProgram, World};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use gasworks_testkit::needs::{Machine, Need};
use gasworks_testkit::{Cmd, Log};

/// Arguments that are handed on.
#[derive(Args, Debug)]
pub struct Pass {
    /// Handed on to the program that does the work
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// What to fuzz, and for how long.
#[derive(Args, Debug)]
pub struct FuzzArgs {
    /// The target; without it, each in turn
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Miri's settings; no isolation, because the clock and threads are used.
const MIRIFLAGS: &str = "-Zmiri-symbolic-alignment-check -Zmiri-disable-isolation";
/// The strictest, and what a lock of others needs under contention: it keeps a pointer in an integer.
const STRICT: &str = "-Zmiri-strict-provenance";
const WITH_LOCKS: &str = "-Zmiri-permissive-provenance";

/// A package whose tests Miri runs.
#[derive(Clone, Copy, Debug)]
pub struct MiriPackage {
    /// The folder of the package.
    pub package: &'static str,
    flags: &'static str,
    /// Which of its test programs.
    words: &'static str,
    /// Which of its tests by day, where fewer: the broadest of each module that has unsafe code.
    daily: Option<&'static str>,
}

/// Miri, on what holds the unsafe code that needs no system: the structures that live in shared memory, on the heap, for
/// it cannot map shared files; the table of memory, the engine of transfers, and the core; and the logic of the software
/// NIC, all in one process. And on the socket engine over pipes, the only descriptors that Miri knows to be adopted. What takes
/// longest comes first.
///
/// A test program remembers the environment that it was built in, and so the mark of the row that built it: so each package is one row.
pub const MIRI: [MiriPackage; 7] = [
    MiriPackage { package: "ugni-sim", flags: STRICT, words: "--lib --test nic", daily: None },
    MiriPackage {
        package: "rdma",
        flags: STRICT,
        words: "--lib",
        daily: Some("--lib -- any_transfer cache:: completion::tests::what each_is_done_once pool:: stale::"),
    },
    MiriPackage {
        package: "shmem",
        flags: STRICT,
        words: "--lib --test heap --test model",
        daily: Some("--lib --test heap"),
    },
    MiriPackage { package: "core", flags: STRICT, words: "--lib", daily: None },
    MiriPackage { package: "memory", flags: STRICT, words: "--lib", daily: None },
    MiriPackage { package: "sync", flags: STRICT, words: "--lib", daily: None },
    MiriPackage { package: "sock", flags: WITH_LOCKS, words: "--test pipes", daily: None },
];

/// The package that is for others to be tried on: Miri, for which it takes longest, and the thread sanitizer look at it in the night.
pub const BY_NIGHT: &str = "ugni-sim";

/// What the thread sanitizer looks at: what threads share, on the heap or in one process. The packages, with their tests that
/// have several threads: it does not see what processes share.
const TSAN: [(&str, &str); 5] = [
    ("gasworks-shmem", "--test heap"),
    ("gasworks-rdma", ""),
    ("gasworks-pshm", ""),
    ("gasworks-sock", "--test engine --test pipes"),
    ("gasworks-ugni-sim", "--test nic"),
];

/// Those of [`TSAN`] that it looks at by day, or all.
fn tsan(is_nightly: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let by_night = format!("gasworks-{BY_NIGHT}");
    TSAN.into_iter().filter(move |(package, _)| is_nightly || *package != by_night)
}

/// The packages of the thread sanitizer.
pub fn tsan_packages(is_nightly: bool) -> Vec<&'static str> {
    tsan(is_nightly).map(|(package, _)| package).collect()
}

/// What cargo builds for it.
pub fn tsan_targets(is_nightly: bool) -> String {
    tsan(is_nightly).map(|(package, tests)| format!("-p {package} {tests} ")).collect::<String>() + "--lib"
}

/// The packages that hold what threads and processes share: by night their tests run optimised as well.
pub const SHARED_PACKAGES: &[&str] = &[
    "gasworks-sync",
    "gasworks-shmem",
    "gasworks-memory",
    "gasworks-sock",
    "gasworks-rdma",
    "gasworks-core",
    "gasworks-extended",
    "gasworks-pshm",
];

/// What the address sanitizer leaves out: tests that start cargo themselves would start it with its flags.
pub const NOT_UNDER_ASAN: &[&str] = &[
    "xtask",
    "gasworks-examples",
    "gasworks",
    "gasworks-testkit",
    "gasworks-conformance",
    "gasworks-capi",
    "gasworks-gni",
    "gasworks-launch",
    "gasworks-perf",
    "gasworks-sock-capi",
    "gasworks-cci-capi",
    "gasworks-ugni-sim-capi",
    "gasworks-tools-capi",
    "gasworks-capi-seq",
    "gasworks-capi-par",
    "gasworks-capi-parsync",
];

/// loom's models.
pub fn loom(pass: &Pass) -> Result<()> {
    show_each(Build::Loom, pass, |world| Ok(models(world)?.iter().map(model).collect()))
}

/// The programs that hold loom's models.
pub fn models(world: &World) -> Result<Vec<TestProgram>> {
    let mut models = world.built(Build::Loom)?.tests.clone();
    models.retain(|p| p.target == "loom");
    ensure!(!models.is_empty(), "no package has tests/loom.rs");
    Ok(models)
}

/// Runs such a program. Two or three threads at capacity two need no more than three preemptions to go wrong in any way
/// known: the bound finds every planted bug, and without it the larger models take hours.
pub fn model(program: &TestProgram) -> Cmd {
    program.cmd().env("LOOM_MAX_PREEMPTIONS", "3")
}

/// Shows the programs of a build, one after the other. The rows run the same ones, into their logs.
fn show_each(build: Build, pass: &Pass, cmds: impl Fn(&World) -> Result<Vec<Cmd>>) -> Result<()> {
    let (mut world, name) = (World::new(), build.name());
    world.is_nightly = true;
    eprintln!("building for {name}; what the compiler says goes to target/xtask/build-of-{name}.log");
    for cmd in cmds(&world)? {
        cmd.args(&pass.rest).show()?;
    }
    Ok(())
}

/// Miri.
pub fn miri(pass: &Pass) -> Result<()> {
    install(&[Need::Nightly, Need::Miri])?;
    MIRI.iter().try_for_each(|&one| miri_cmd(one, true).args(&pass.rest).show())
}

/// Miri's command for one of the packages, for all of its tests or for those of every day.
pub fn miri_cmd(one: MiriPackage, is_nightly: bool) -> Cmd {
    let words = one.daily.filter(|_| !is_nightly).unwrap_or(one.words);
    let test = Cmd::cargo("+nightly miri test").arg(format!("-pgasworks-{}", one.package)).words(words);
    test.env("MIRIFLAGS", format!("{MIRIFLAGS} {}", one.flags))
        .env("CARGO_TARGET_DIR", crate::root().join("target/miri"))
}

/// The thread sanitizer.
pub fn thread_sanitizer(pass: &Pass) -> Result<()> {
    install(&[Need::Nightly, Need::RustSrc])?;
    show_each(Build::Tsan, pass, |world| sanitized_tests(world, Build::Tsan, None))
}

/// The address sanitizer.
pub fn asan(pass: &Pass) -> Result<()> {
    install(&[Need::Nightly])?;
    show_each(Build::Asan, pass, |world| sanitized_tests(world, Build::Asan, None))
}

/// The test programs of a package, or of all, as a build with a sanitizer made them.
pub fn sanitized_tests(world: &World, build: Build, package: Option<&str>) -> Result<Vec<Cmd>> {
    let built = world.built(build)?;
    let wanted = |t: &&TestProgram| t.target != "loom" && package.is_none_or(|dir| t.package == dir);
    let programs: Vec<_> = built.tests.iter().filter(wanted).collect();
    ensure!(
        !programs.is_empty(),
        "the {} build has no tests of {}",
        build.name(),
        package.unwrap_or("any package")
    );
    Ok(programs.iter().map(|t| sanitized(build.dress(t.cmd()).limit(300))).collect())
}

/// A race ends the program. Faults on a segment are our own handler's, and what tests leak on purpose is no error.
pub fn sanitized(cmd: Cmd) -> Cmd {
    let cmd = cmd.env("TSAN_OPTIONS", "halt_on_error=1");
    cmd.env("ASAN_OPTIONS", "handle_sigbus=0:allow_user_segv_handler=1:detect_leaks=0")
}

/// Rows for the tests of [`SHARED_PACKAGES`], optimised: the optimiser may show what the dev profile hides.
pub fn optimised_tests() -> Vec<Row> {
    let row = |package: &&'static str| {
        let dir = package.trim_start_matches("gasworks-");
        Row::new(format!("optimised/{dir}"), move |world: &World, log: &Log| {
            let mut tests = 0;
            for program in
                world.built(Build::Optimised)?.tests.iter().filter(|p| p.package == dir && p.target != "loom")
            {
                tests += passed(&log.run_ok(&program.cmd().limit(300))?.output);
            }
            ensure!(tests > 0, "no test ran");
            Ok(())
        })
    };
    SHARED_PACKAGES.iter().map(row).collect()
}

/// How many tests passed, by what the test harness printed.
pub fn passed(output: &str) -> usize {
    let passed =
        |line: &str| line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse::<usize>().ok();
    output.lines().filter_map(passed).sum()
}

/// libFuzzer, on one target or each.
pub fn fuzz(args: &FuzzArgs) -> Result<()> {
    install(&[Need::Nightly, Need::CargoFuzz])?;
    let all = fuzz_targets()?;
    let chosen = match &args.target {
        Some(target) if !all.contains(target) => {
            bail!("no fuzz target {target:?}; there are {}", all.join(", "))
        }
        Some(target) => vec![target.clone()],
        None => all,
    };
    for target in chosen {
        fuzz_cmd(&target, args.seconds)?.show()?;
    }
    Ok(())
}

/// Fuzzes one target. What it finds goes to a folder that is not committed; the committed corpus is only read.
pub fn fuzz_cmd(target: &str, seconds: u64) -> Result<Cmd> {
    let (root, grown) = (crate::root(), crate::root().join("target/fuzz-corpus").join(target));
    std::fs::create_dir_all(&grown).with_context(|| format!("making {}", grown.display()))?;
    let cmd =
        Cmd::cargo("+nightly fuzz run").arg(target).arg(grown).arg(root.join("fuzz/corpus").join(target));
    Ok(cmd.arg("--").arg(format!("-max_total_time={seconds}")).limit(seconds + 900))
}

/// The fuzz targets: the files of `fuzz/fuzz_targets`.
pub fn fuzz_targets() -> Result<Vec<String>> {
    let dir = crate::root().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        targets.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    targets.sort();
    Ok(targets)
}

/// Coverage by tests, on the project's own toolchain: another one words the errors of compile-fail tests otherwise.
pub fn cov(pass: &Pass) -> Result<()> {
    if !Cmd::cargo("llvm-cov --version").works() {
        Cmd::cargo("install --locked cargo-llvm-cov").show()?;
    }
    Cmd::new("rustup").words("component add llvm-tools").show()?;
    Cmd::cargo("llvm-cov --workspace --exclude xtask --exclude gasworks-testkit").args(&pass.rest).show()
}

/// The candidates for the queue of active messages, measured.
pub fn bench_queue(pass: &Pass) -> Result<()> {
    Cmd::cargo("bench -p gasworks-shmem --bench am_queue --").args(&pass.rest).show()
}

/// Installs what is missing of `needs`.
fn install(needs: &[Need]) -> Result<()> {
    let machine = Machine::default();
    for &need in needs {
        if machine.has(need) {
            continue;
        }
        match need {
            Need::Nightly => {
                Cmd::new("rustup").words("toolchain install nightly --profile minimal").show()?
            }
            Need::Miri => component("miri rust-src")?,
            Need::RustSrc => component("rust-src")?,
            Need::CargoFuzz => Cmd::cargo("install --locked cargo-fuzz").show()?,
            Need::Jellyfish => {
                apt("jellyfish")?;
            }
            Need::Hydra => {
                apt("mpich")?;
            }
            Need::Valgrind => {
                apt("valgrind")?;
            }
            _ => {
                bail!("this machine has what {} names; nothing installs that", need.condition())
            }
        }
    }
    Ok(())
}

fn component(names: &str) -> Result<()> {
    Cmd::new("rustup").words("component add").words(names).words("--toolchain nightly").show()
}

/// Installs a Debian package, if this user may. Whether it did.
pub fn apt(package: &str) -> Result<bool> {
    if !nix::unistd::geteuid().is_root() || !Cmd::new("apt-get").arg("--version").works() {
        eprintln!("{package} is not installed: only root can, with apt-get install {package}");
        return Ok(false);
    }
    let quiet = |words: &str| Cmd::new("apt-get").words(words).env("DEBIAN_FRONTEND", "noninteractive");
    let install = quiet("install --yes --no-install-recommends").arg(package);
    if install.show().is_err() {
        // The lists of a fresh machine are empty.
        quiet("update").show()?;
        install.show()?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    #[test]
    fn daily_tests_of_miri_are_there() {
        for one in super::MIRI {
            let Some((_, names)) = one.daily.and_then(|words| words.split_once(" -- ")) else { continue };
            let dir = crate::root().join("crates").join(one.package).join("src");
            for name in names.split_whitespace() {
                // A module, as a file or a folder, or the beginning of a test's name.
                let of_module =
                    |module: &str| dir.join(module).exists() || dir.join(format!("{module}.rs")).exists();
                let is_there = match name.split_once("::") {
                    Some((module, _)) => of_module(module),
                    None => has_test(&dir, name),
                };
                assert!(is_there, "{}: no test is called {name}", one.package);
            }
        }
    }

    fn has_test(dir: &std::path::Path, name: &str) -> bool {
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
            true => has_test(&path, name),
            false => std::fs::read_to_string(&path).unwrap().contains(&format!("fn {name}")),
        })
    }

    #[test]
    fn passes_are_counted() {
        let text =
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 0";
        assert_eq!(super::passed(text), 5);
    }
}
