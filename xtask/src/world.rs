//! What rows share: the machine, where logs go, and builds that are made once.

use anyhow::{Result, anyhow, bail};
use gasworks_testkit::hosts::Cluster;
use gasworks_testkit::needs::Machine;
use gasworks_testkit::programs::{Fixture, Programs, target};
use gasworks_testkit::{Cmd, Log, root};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::ThreadId;

/// The target that sanitizers are built for: naming it keeps their flags away from build scripts.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The standard library, instrumented as well, and optimised, as is what takes most of the time: many threads on few processors
/// would crawl, and tests take that for a hang.
const WHOLE: &str = "-Zbuild-std --config profile.dev.package.std.opt-level=1 \
                     --config profile.dev.package.core.opt-level=1 \
                     --config profile.dev.package.alloc.opt-level=1 \
                     --config profile.dev.package.gasworks-sync.opt-level=1 \
                     --config profile.dev.package.gasworks-shmem.opt-level=1 \
                     --config profile.dev.package.gasworks-pshm.opt-level=1 \
                     --config profile.dev.package.gasworks-conformance.opt-level=1";

/// What models run of others' code is optimised a little; the rest of it costs its build more than it saves them.
const MODELS: &str = "--config profile.release.package.'*'.opt-level=0 --config profile.release.package.loom.opt-level=1 \
                      --config profile.release.package.generator.opt-level=1";

/// What is optimised: the libraries for C, and the programs that tests start.
pub const OPTIMISED: &str = "--lib --bin ugni-clock --bin gasrun --bin gasperf --bin gascount --bin gasworks-conformance --bin gasworks-man \
                             --bin hello";

/// The cargo command that builds such targets. All packages are named, since those that are built alone have dependencies with other
/// features, which are built once more.
pub fn optimised(targets: &str) -> String {
    format!("build --release --workspace --exclude xtask {targets}")
}

/// Parts of it, each of which is a row, so that nothing single takes minutes: their names, and the targets, each of which has some
/// dependencies more than those before. The whole builds the rest.
pub const OPTIMISED_PARTS: [(&str, &str); 6] = [
    ("nic", "--bin ugni-clock"),
    ("programs", "--bin hello"),
    ("gasrun", "--bin gasrun"),
    ("suite", "--bin gasworks-conformance"),
    ("counts", "--bin gascount"),
    ("libraries", "--lib"),
];

/// What builds all programs, and the libraries for C, as the dev profile has them: with kill points.
pub const PROGRAMS: &str = "build --workspace --exclude xtask --lib --bins --examples";

/// A way to build tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// All ordinary tests, as the dev profile has them.
    Tests,
    /// The tests of what threads and processes share, optimised.
    Optimised,
    /// The loom models.
    Loom,
    /// What runs under the thread sanitizer.
    Tsan,
    /// The suite of transports, for the same.
    TsanSuite,
    /// What runs under the address sanitizer.
    Asan,
}

impl Build {
    /// Its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Build::Tests => "tests",
            Build::Optimised => "optimised",
            Build::Loom => "loom",
            Build::Tsan => "tsan",
            Build::TsanSuite => "tsan-suite",
            Build::Asan => "asan",
        }
    }

    /// The cargo command that makes it, without the flags of [`Build::dress`].
    fn words(self, is_nightly: bool) -> String {
        let packages = |names: &[&str]| names.iter().map(|p| format!(" -p {p}")).collect::<String>();
        match self {
            Build::Tests => "test --workspace --no-run --lib --bins --tests".into(),
            Build::Optimised => format!("test --release --no-run{}", packages(crate::tools::SHARED_PACKAGES)),
            Build::Loom => {
                let models: String =
                    crate::packages_with("tests/loom.rs").iter().map(|p| format!(" -p {p}")).collect();
                format!("test --release --no-run{models} --test loom {MODELS}")
            }
            Build::Tsan => format!(
                "+nightly test {WHOLE} --target {TARGET} --no-run {}",
                crate::tools::tsan_targets(is_nightly)
            ),
            Build::TsanSuite => format!(
                "+nightly build {WHOLE} --target {TARGET} -p gasworks-conformance --bin gasworks-conformance"
            ),
            Build::Asan => {
                let without: String =
                    crate::tools::NOT_UNDER_ASAN.iter().map(|p| format!(" --exclude {p}")).collect();
                format!("+nightly test --target {TARGET} --no-run --workspace{without} --lib --tests")
            }
        }
    }

    /// Adds the flags and the target directory of this way to build.
    pub fn dress(self, cmd: Cmd) -> Cmd {
        let (flags, dir) = match self {
            Build::Tests | Build::Optimised => return cmd,
            Build::Loom => ("--cfg gasworks_loom", "loom"),
            Build::Tsan | Build::TsanSuite => ("-Zsanitizer=thread --cfg gasworks_tsan", "tsan"),
            Build::Asan => ("-Zsanitizer=address", "asan"),
        };
        // Models are small: what optimising saves them it costs their build twice.
        let cmd = if self == Build::Loom { cmd.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1") } else { cmd };
        cmd.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", target().join(dir))
    }
}

/// A test program.
#[derive(Clone, Debug)]
pub struct TestProgram {
    /// The folder of its package, the last part of the path.
    pub package: String,
    /// The name of its target: `lib`, the program's, or the integration test's.
    pub target: String,
    /// Where its package is.
    pub dir: PathBuf,
    /// The program.
    pub path: PathBuf,
}

impl TestProgram {
    /// To run it as cargo would. Where this program was started in the background, interrupts are ignored, and a
    /// test of signals would be none.
    pub fn cmd(&self) -> Cmd {
        let program = Cmd::new("env").arg("--default-signal=INT,QUIT").arg(&self.path);
        program.dir(&self.dir).env("CARGO_MANIFEST_DIR", &self.dir)
    }
}

/// What a build made: programs by name, and test programs.
#[derive(Debug, Default)]
pub struct Built {
    programs: BTreeMap<String, PathBuf>,
    /// Test programs.
    pub tests: Vec<TestProgram>,
}

impl Built {
    /// The program `name`.
    pub fn program(&self, name: &str) -> Result<&Path> {
        let found = self.programs.get(name).map(PathBuf::as_path);
        found.ok_or_else(|| anyhow!("the build has no program {name}"))
    }

    /// What is in cargo's messages.
    fn of(messages: &str) -> Self {
        let mut built = Self::default();
        for line in messages.lines().filter(|l| l.starts_with('{')) {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let text = |at: &str| message.pointer(at).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            let (path, manifest) =
                (PathBuf::from(text("/executable")), PathBuf::from(text("/manifest_path")));
            let (Some(dir), false) = (manifest.parent(), path.as_os_str().is_empty()) else { continue };
            let package = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (kind, name) = (text("/target/kind/0"), text("/target/name"));
            if message.pointer("/profile/test").and_then(|v| v.as_bool()) == Some(true) {
                let target = if ["test", "bin"].contains(&kind.as_str()) { name } else { "lib".into() };
                built.tests.push(TestProgram { package, target, dir: dir.into(), path });
            } else {
                built.programs.insert(name, path);
            }
        }
        built
    }
}

type Once<T> = Arc<OnceLock<Result<T, String>>>;

/// What rows share.
#[derive(Debug)]
pub struct World {
    /// What the machine has.
    pub machine: Machine,
    /// Whether tables have their full products, and builds what is looked at by night.
    pub is_nightly: bool,
    logs: PathBuf,
    builds: Mutex<BTreeMap<Build, Once<Arc<Built>>>>,
    done: Mutex<BTreeMap<String, Once<()>>>,
    /// Held while ordinary tests run: one part after the other, for each uses the processors as it thinks fit.
    pub ordinary: Mutex<()>,
    clusters: Mutex<HashMap<ThreadId, Result<Arc<Cluster>, String>>>,
}

impl World {
    /// With logs under `target/xtask`.
    pub fn new() -> Self {
        Self::at(target().join("xtask"))
    }

    /// With logs in a folder.
    pub fn at(logs: PathBuf) -> Self {
        Self {
            machine: Machine::default(),
            is_nightly: false,
            logs,
            builds: Mutex::default(),
            done: Mutex::default(),
            ordinary: Mutex::default(),
            clusters: Mutex::default(),
        }
    }

    /// The file that remembers the last run.
    pub fn history(&self) -> PathBuf {
        self.logs.join("history.json")
    }

    /// Where the row `name` writes its log.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{}.log", name.replace(['/', ':', '@'], "-")))
    }

    /// The cluster of the thread that asks, which lasts until the rows that wait are through: rows that run beside each
    /// other have hosts of their own, and find there what their own jobs left.
    pub fn cluster(&self) -> Result<Arc<Cluster>> {
        let known = self.clusters().get(&std::thread::current().id()).cloned();
        let cluster = known.unwrap_or_else(|| {
            let up = Cluster::up().map(Arc::new).map_err(|e| format!("{e:#}"));
            self.clusters().insert(std::thread::current().id(), up.clone());
            up
        });
        cluster.map_err(|e| anyhow!("the cluster did not come up: {e}"))
    }

    fn clusters(&self) -> MutexGuard<'_, HashMap<ThreadId, Result<Arc<Cluster>, String>>> {
        self.clusters.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Ends the clusters.
    pub fn end_clusters(&self) {
        self.clusters().clear();
    }

    /// A folder of the row's own, empty.
    pub fn scratch(&self, name: &str) -> Result<PathBuf> {
        let dir = self.logs.join(name.replace(['/', ':', '@'], "-"));
        gasworks_testkit::files::empty(&dir)?;
        Ok(dir)
    }

    /// A path as seen from the repository's root.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(root()).unwrap_or(path).display().to_string()
    }

    /// The programs as the dev profile builds them.
    pub fn debug(&self) -> Result<Programs> {
        self.fixture(Fixture::Debug).map(Programs::at)
    }

    /// The programs, optimised.
    pub fn release(&self) -> Result<Programs> {
        self.fixture(Fixture::Release).map(Programs::at)
    }

    /// A fixture, prepared by the first who asks.
    pub fn fixture(&self, fixture: Fixture) -> Result<PathBuf> {
        let path = self.log_path(&format!("prepare-{}", fixture.name()));
        self.once(fixture.name(), || crate::prepare::fixture(self, fixture, &Log::create(path)?.nice(true)))?;
        Ok(fixture.path())
    }

    /// What this way to build makes; built by the first who asks.
    pub fn built(&self, build: Build) -> Result<Arc<Built>> {
        let once = self.builds.lock().unwrap_or_else(|e| e.into_inner()).entry(build).or_default().clone();
        let name = build.name();
        let mut first = false;
        let built = once.get_or_init(|| {
            first = true;
            self.build(build).map(Arc::new).map_err(|e| format!("{e:#}"))
        });
        built.clone().map_err(|e| match first {
            true => anyhow!("the {name} build failed: {e} (log: target/xtask/build-of-{name}.log)"),
            false => anyhow!("the {name} build failed, as said before"),
        })
    }

    /// Does what several rows need done before them; later callers get the same result.
    pub fn once(&self, what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let once =
            self.done.lock().unwrap_or_else(|e| e.into_inner()).entry(what.to_owned()).or_default().clone();
        once.get_or_init(|| work().map_err(|e| format!("{e:#}"))).clone().map_err(|e| anyhow!(e))
    }

    fn build(&self, build: Build) -> Result<Built> {
        let log = Log::create(self.log_path(&format!("build of {}", build.name()).replace(' ', "-")))?;
        let cmd = Cmd::cargo(&build.words(self.is_nightly))
            .arg("--message-format=json-render-diagnostics")
            .limit(1500);
        Ok(Built::of(&compiled(&log.nice(true), &build.dress(cmd))?))
    }
}

/// The output of a cargo command that builds; an error holds the compiler's first.
pub fn compiled(log: &Log, cmd: &Cmd) -> Result<String> {
    let ended = log.run(cmd)?;
    if !ended.ok() {
        let first = ended.output.lines().find(|l| l.starts_with("error")).unwrap_or("see the log");
        bail!("{}: {first}\n{}", ended.how(), ended.shown);
    }
    Ok(ended.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_messages_are_sorted_into_programs_and_tests() {
        let built = Built::of(concat!(
            "   Compiling a\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"t","kind":["test"]},"profile":{"test":true},"executable":"/t/t-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"a","kind":["rlib"]},"profile":{"test":true},"executable":"/t/a-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/examples/Cargo.toml","target":{"name":"hello","kind":["bin"]},"profile":{"test":false},"executable":"/t/hello"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"lib"},"profile":{"test":false},"executable":null}"#,
        ));
        let tests: Vec<_> = built.tests.iter().map(|t| (t.package.as_str(), t.target.as_str())).collect();
        assert_eq!(tests, [("a", "t"), ("a", "lib")]);
        assert_eq!(built.program("hello").unwrap(), Path::new("/t/hello"));
        assert!(built.program("gasrun").is_err_and(|e| e.to_string().contains("gasrun")));
    }
}
