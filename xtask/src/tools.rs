//! The checkers, each as a command: what it needs is installed by name, and what is run is said.

use crate::exec::Cmd;
use crate::needs::{Machine, Need};
use crate::world::{Build, TARGET};
use anyhow::{Context, Result, bail};
use clap::Args;

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

/// Miri's strictest settings; no isolation, because the clock and threads are used.
pub const MIRIFLAGS: &str =
    "-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-disable-isolation";

/// Miri, on the structures that live in shared memory: on the heap, for it cannot map shared files.
pub const MIRI: &str = "+nightly miri test -p gasworks-shmem -p gasworks-sync --lib --test heap --test model";

/// What the thread sanitizer looks at: what threads share, on the heap or in one process.
pub const TSAN_PACKAGES: &[&str] = &["gasworks-shmem", "gasworks-pshm"];

/// What the address sanitizer leaves out: tests that start cargo themselves would start it with its flags.
pub const NOT_UNDER_ASAN: &[&str] =
    &["xtask", "gasworks-examples", "gasworks", "gasworks-testkit", "gasworks-launch"];

/// loom's models.
pub fn loom(pass: &Pass) -> Result<()> {
    let packages = crate::packages_with("tests/loom.rs");
    if packages.is_empty() {
        bail!("no package has tests/loom.rs");
    }
    let cmd = Cmd::cargo("test --release").args(packages.iter().flat_map(|p| ["-p", p])).words("--test loom");
    // A bound of three preemptions finds every planted bug; without it the larger models take hours.
    Build::Loom.dress(cmd).env("LOOM_MAX_PREEMPTIONS", "3").args(&pass.rest).show()
}

/// Miri.
pub fn miri(pass: &Pass) -> Result<()> {
    install(&[Need::Nightly, Need::Miri])?;
    miri_cmd().args(&pass.rest).show()
}

/// Miri's command.
pub fn miri_cmd() -> Cmd {
    let dir = crate::root().join("target/miri");
    Cmd::cargo(MIRI).env("MIRIFLAGS", MIRIFLAGS).env("CARGO_TARGET_DIR", dir)
}

/// The thread sanitizer.
pub fn tsan(pass: &Pass) -> Result<()> {
    install(&[Need::Nightly, Need::RustSrc])?;
    let cmd = Cmd::cargo("+nightly test -Zbuild-std --target").arg(TARGET);
    let cmd = cmd.args(TSAN_PACKAGES.iter().flat_map(|p| ["-p", p])).words("--lib --tests");
    Build::Tsan.dress(cmd).env("TSAN_OPTIONS", "halt_on_error=1").args(&pass.rest).show()
}

/// The address sanitizer.
pub fn asan(pass: &Pass) -> Result<()> {
    install(&[Need::Nightly])?;
    let cmd = Cmd::cargo("+nightly test --workspace --lib --tests --target").arg(TARGET);
    let cmd = cmd.args(NOT_UNDER_ASAN.iter().flat_map(|p| ["--exclude", p]));
    let cmd = cmd.env("ASAN_OPTIONS", "handle_sigbus=0:detect_leaks=0");
    Build::Asan.dress(cmd).args(&pass.rest).show()
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
    Cmd::cargo("llvm-cov --workspace --exclude xtask").args(&pass.rest).show()
}

/// The candidates for the queue of active messages, measured.
pub fn bench_queue(pass: &Pass) -> Result<()> {
    Cmd::cargo("bench -p gasworks-pshm --bench am_queue --").args(&pass.rest).show()
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
            Need::Namespaces | Need::MemoryGroup | Need::Gpu => {
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
