//! What rows share: the machine, where logs go, and builds that are made once.

use crate::cluster::Cluster;
use crate::exec::{Cmd, Log};
use crate::needs::Machine;
use anyhow::{Result, anyhow, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// The target that sanitizers are built for: naming it keeps their flags away from build scripts.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The standard library, instrumented as well, and what the dev profile does not optimise: many threads on few processors
/// would crawl, and tests take that for a hang.
const WHOLE: &str = "-Zbuild-std --config profile.dev.package.\"*\".opt-level=1 \
                     --config profile.dev.package.gasworks-os.opt-level=1 \
                     --config profile.dev.package.gasworks-sock.opt-level=1 \
                     --config profile.dev.package.gasworks-bootstrap.opt-level=1";

/// What builds everything that is optimised but tests: the libraries for C, too, since of those alone dependencies have other features, and are
/// built once more.
pub const OPTIMISED: &str = "build --release --workspace --exclude xtask --lib --bins --examples";

/// A way to build the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// Everything, as the dev profile has it, with places to be killed at.
    Debug,
    /// Everything, optimised.
    Release,
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
            Build::Debug => "debug",
            Build::Release => "release",
            Build::Loom => "loom",
            Build::Tsan => "tsan",
            Build::TsanSuite => "tsan-suite",
            Build::Asan => "asan",
        }
    }

    /// The cargo commands that make it. Each gets the flags of [`Build::dress`].
    fn commands(self) -> Vec<Cmd> {
        let slow: String = crate::tools::DEBUG_ONLY.iter().map(|p| format!(" --exclude {p}")).collect();
        let words = match self {
            Build::Debug => {
                vec!["build --workspace --bins --examples".into(), "test --workspace --no-run".into()]
            }
            Build::Release => vec![OPTIMISED.into(), format!("test --release --workspace{slow} --no-run")],
            Build::Loom => {
                let packages: String =
                    crate::packages_with("tests/loom.rs").iter().map(|p| format!(" -p {p}")).collect();
                vec![format!("test --release --no-run{packages} --test loom")]
            }
            Build::Tsan => vec![format!(
                "+nightly test {WHOLE} --target {TARGET} --no-run -p {} --lib --tests",
                crate::tools::TSAN_PACKAGES.join(" -p ")
            )],
            Build::TsanSuite => vec![format!(
                "+nightly build {WHOLE} --target {TARGET} -p gasworks-testkit --bin gasworks-conformance"
            )],
            Build::Asan => {
                let without: String =
                    crate::tools::NOT_UNDER_ASAN.iter().map(|p| format!(" --exclude {p}")).collect();
                vec![format!("+nightly test --target {TARGET} --no-run --workspace{without} --lib --tests")]
            }
        };
        words
            .iter()
            .map(|w| self.dress(Cmd::cargo(w).arg("--message-format=json-render-diagnostics").limit(1500)))
            .collect()
    }

    /// Adds the flags and the target directory of this way to build.
    pub fn dress(self, cmd: Cmd) -> Cmd {
        let (flags, dir) = match self {
            Build::Release => return cmd,
            Build::Debug => ("--cfg gasworks_faults", "faults"),
            Build::Loom => ("--cfg gasworks_loom", "loom"),
            Build::Tsan | Build::TsanSuite => ("-Zsanitizer=thread --cfg gasworks_tsan", "tsan"),
            Build::Asan => ("-Zsanitizer=address", "asan"),
        };
        cmd.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", crate::root().join("target").join(dir))
    }
}

/// A test program.
#[derive(Clone, Debug)]
pub struct TestProgram {
    /// The folder of its package, the last part of the path.
    pub package: String,
    /// The name of its target: the library's, or the integration test's.
    pub target: String,
    /// Whether it is a file of `tests/`, and not what a library or program has of tests in it.
    pub integration: bool,
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

/// What a build made.
#[derive(Debug, Default)]
pub struct Built {
    /// Programs by name.
    pub programs: BTreeMap<String, PathBuf>,
    /// The programs of the package `gasworks-examples`.
    pub examples: BTreeSet<String>,
    /// Test programs.
    pub tests: Vec<TestProgram>,
    /// The library `gasworks`, for what is compiled against it.
    pub face: Option<PathBuf>,
}

impl Built {
    /// The program `name`.
    pub fn program(&self, name: &str) -> Result<&Path> {
        self.programs
            .get(name)
            .map(PathBuf::as_path)
            .ok_or_else(|| anyhow!("the build has no program {name}"))
    }

    /// A command that runs the program `name` under `gasrun` on `ranks` ranks.
    pub fn gasrun(&self, ranks: usize, name: &str) -> Result<Cmd> {
        self.gasrun_with(ranks, "", name)
    }

    /// The same, with `options` for `gasrun`.
    pub fn gasrun_with(&self, ranks: usize, options: &str, name: &str) -> Result<Cmd> {
        let program = self.program(name)?;
        Ok(Cmd::new(self.program("gasrun")?)
            .words(&format!("-n {ranks} --timeout 120 {options} --"))
            .arg(program)
            .limit(150))
    }

    /// What is in cargo's messages.
    pub fn of(messages: &str) -> Self {
        let mut built = Self::default();
        built.add(messages);
        built
    }

    /// Takes in what cargo printed.
    fn add(&mut self, messages: &str) {
        for line in messages.lines().filter(|l| l.starts_with('{')) {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let text = |at: &str| message.pointer(at).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            if text("/target/name") == "gasworks" && message.pointer("/profile/test") == Some(&false.into()) {
                self.face = Some(PathBuf::from(text("/filenames/0")));
            }
            let (path, manifest) =
                (PathBuf::from(text("/executable")), PathBuf::from(text("/manifest_path")));
            let (Some(dir), false) = (manifest.parent(), path.as_os_str().is_empty()) else { continue };
            let package = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let target = text("/target/name");
            if message.pointer("/profile/test").and_then(|v| v.as_bool()) == Some(true) {
                let integration = text("/target/kind/0") == "test";
                self.tests.push(TestProgram { package, target, integration, dir: dir.into(), path });
            } else {
                if package == "examples" {
                    self.examples.insert(target.clone());
                }
                self.programs.insert(target, path);
            }
        }
    }
}

type Once<T> = Arc<OnceLock<Result<T, String>>>;

/// What rows share.
#[derive(Debug)]
pub struct World {
    /// What the machine has.
    pub machine: Machine,
    logs: PathBuf,
    builds: Mutex<BTreeMap<Build, Once<Arc<Built>>>>,
    done: Mutex<BTreeMap<String, Once<()>>>,
    cluster: Mutex<Option<Result<Arc<Cluster>, String>>>,
}

impl World {
    /// With logs under `target/xtask`.
    pub fn new() -> Self {
        Self::at(crate::root().join("target/xtask"))
    }

    /// With logs in a folder.
    pub fn at(logs: PathBuf) -> Self {
        Self {
            machine: Machine::default(),
            logs,
            builds: Mutex::default(),
            done: Mutex::default(),
            cluster: Mutex::default(),
        }
    }

    /// Where the row `name` writes its log.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{}.log", name.replace(['/', ':', '@'], "-")))
    }

    /// The cluster, which the first who asks brings up, and which lasts until the group of rows is through.
    pub fn cluster(&self) -> Result<Arc<Cluster>> {
        let mut cluster = self.cluster.lock().unwrap_or_else(|e| e.into_inner());
        let up = || Cluster::up().map(Arc::new).map_err(|e| format!("{e:#}"));
        cluster.get_or_insert_with(up).clone().map_err(|e| anyhow!("the cluster did not come up: {e}"))
    }

    /// Ends what the rows of a group share.
    pub fn end_group(&self) {
        drop(self.cluster.lock().unwrap_or_else(|e| e.into_inner()).take());
    }

    /// A folder of the row's own, empty.
    pub fn scratch(&self, name: &str) -> Result<PathBuf> {
        let dir = self.logs.join(name.replace(['/', ':', '@'], "-"));
        crate::files::empty(&dir)?;
        Ok(dir)
    }

    /// A path as seen from the repository's root.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(crate::root()).unwrap_or(path).display().to_string()
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
        let mut built = Built::default();
        for command in build.commands() {
            let ended = log.run(&command)?;
            if !ended.ok() {
                bail!("{}: {}\n{}", ended.how(), first_error(&ended.output), ended.shown);
            }
            built.add(&ended.output);
        }
        Ok(built)
    }
}

/// The first line of a compiler's output that says what is wrong.
fn first_error(output: &str) -> &str {
    output.lines().find(|l| l.starts_with("error")).unwrap_or("see the log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_messages_are_sorted_into_programs_and_tests() {
        let mut built = Built::default();
        built.add(concat!(
            "   Compiling a\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"t","kind":["test"]},"profile":{"test":true},"executable":"/t/t-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/examples/Cargo.toml","target":{"name":"hello"},"profile":{"test":false},"executable":"/t/hello"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"lib"},"profile":{"test":false},"executable":null}"#,
        ));
        assert_eq!((built.tests.len(), built.programs.len(), built.examples.len()), (1, 1, 1));
        assert_eq!((built.tests[0].package.as_str(), built.tests[0].target.as_str()), ("a", "t"));
        assert!(built.tests[0].integration);
        assert!(built.program("gasrun").is_err_and(|e| e.to_string().contains("gasrun")));
    }
}
