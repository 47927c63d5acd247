//! The launchers under which jobs end.

use anyhow::Result;
use gasworks_conformance::ends;
use gasworks_testkit::Cmd;
use gasworks_testkit::programs::Programs;

/// What starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `gasrun`.
    Gasrun,
    /// MPICH's `mpiexec.hydra`.
    Hydra,
    /// The same, which leaves the other ranks alone when one fails: they have to end by themselves.
    HydraWithoutCleanup,
}

/// The shell script that starts a rank under [`Launcher::HydraWithoutCleanup`]. The option alone is not enough: Hydra still
/// kills the others when a rank is killed by a signal, so the shell turns that into an exit code, and it sends them `SIGUSR1`
/// when a rank has failed, which the shell ignores.
const ALONE: &str = r#"trap "" USR1; "$@"; exit $?"#;

impl Launcher {
    /// All of them.
    pub const ALL: [Launcher; 3] = [Launcher::Gasrun, Launcher::Hydra, Launcher::HydraWithoutCleanup];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Launcher::Gasrun => "gasrun",
            Launcher::Hydra => "hydra",
            Launcher::HydraWithoutCleanup => "hydra-without-cleanup",
        }
    }

    /// Whether the job's code is the launcher's own choice: Hydra kills the other ranks when one ends that has not said so
    /// before, and takes the code of any of them.
    pub fn has_own_codes(self, end: &ends::Case) -> bool {
        let by_itself = ["exit-after-close", "exit-while-opening", "return-not-caught-after-exit-zero"];
        self != Launcher::Gasrun && (by_itself.contains(&end.name) || end.vanishes())
    }

    /// Whether a job can end so: Hydra takes no notice of a rank that has not joined the job or has left it.
    pub fn runs(self, end: &ends::Case) -> bool {
        match self {
            Launcher::Gasrun => true,
            Launcher::Hydra => !["exit-before-open", "signal-in-exit-hook"].contains(&end.name),
            // Ranks that have closed their jobs do not hear of the failure either.
            Launcher::HydraWithoutCleanup => Launcher::Hydra.runs(end) && end.name != "exit-after-close",
        }
    }

    /// A job of `gasworks-ends`, of which only that program's arguments are missing.
    pub fn cmd(self, programs: &Programs) -> Result<Cmd> {
        let (launcher, before) = match self {
            Launcher::Gasrun => (Cmd::new(programs.program("gasrun")?).arg("-v"), &[][..]),
            Launcher::Hydra => (Cmd::new("mpiexec.hydra"), &[][..]),
            Launcher::HydraWithoutCleanup => {
                (Cmd::new("mpiexec.hydra").arg("-disable-auto-cleanup"), &["sh", "-c", ALONE, "rank"][..])
            }
        };
        let launcher = launcher.arg("-n").arg(ends::RANKS.to_string()).args(before);
        Ok(launcher.arg(programs.program("gasworks-ends")?).job())
    }
}
