//! The launchers under which jobs end.

use anyhow::Result;
use gasworks_conformance::ends;
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::{Fixture, Programs};
use gasworks_testkit::{Cmd, Need};

/// What starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `gasrun`.
    Gasrun,
    /// `gasrun` over two hosts, whose ranks talk over uGNI.
    GasrunHosts,
    /// MPICH's `mpiexec.hydra`.
    Hydra,
    /// The same, which leaves the other ranks alone when one fails: they have to end by themselves.
    HydraWithoutCleanup,
}

/// The shell script that starts a rank under [`Launcher::HydraWithoutCleanup`]. The option alone is not enough: Hydra still
/// kills the others when a rank is killed by a signal, so the shell turns that into an exit code, and it sends them `SIGUSR1`
/// when a rank has failed, which the shell ignores.
const ALONE: &str = r#"trap "" USR1; "$@"; exit $?"#;

/// Where [`Launcher::GasrunHosts`] starts ranks, and what they get of the environment.
const HOSTS: &str = "--hosts h1:1,h2:2 --rsh /run/rsh -x LD_LIBRARY_PATH -x GASWORKS_BOOTSTRAP -x GASWORKS_NETWORK \
                     -x GASNET_EXITTIMEOUT -x GASNET_CATCH_EXIT";

impl Launcher {
    /// All of them.
    pub const ALL: [Launcher; 4] =
        [Launcher::Gasrun, Launcher::GasrunHosts, Launcher::Hydra, Launcher::HydraWithoutCleanup];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Launcher::Gasrun => "gasrun",
            Launcher::GasrunHosts => "gasrun-hosts",
            Launcher::Hydra => "hydra",
            Launcher::HydraWithoutCleanup => "hydra-without-cleanup",
        }
    }

    /// What it needs.
    pub fn need(self) -> Option<Need> {
        match self {
            Launcher::Gasrun => None,
            Launcher::GasrunHosts => Some(Need::Hosts),
            Launcher::Hydra | Launcher::HydraWithoutCleanup => Some(Need::Hydra),
        }
    }

    /// Whether the job's code is the launcher's own choice: Hydra kills the other ranks when one ends that has not said so
    /// before, and takes the code of any of them. Of a host whose leader is stopped the launcher is ordered to see to the end, for which
    /// Cray's PMI has no code.
    pub fn has_own_codes(self, end: &ends::Case) -> bool {
        let by_itself = ["exit-after-close", "exit-while-opening", "return-not-caught-after-exit-zero"];
        if self == Launcher::GasrunHosts {
            return ["stopped", "stopped-zero"].contains(&end.name);
        }
        self != Launcher::Gasrun && (by_itself.contains(&end.name) || end.vanishes())
    }

    /// Whether a job can end so: Hydra takes no notice of a rank that has not joined the job or has left it.
    pub fn runs(self, end: &ends::Case) -> bool {
        match self {
            Launcher::Gasrun | Launcher::GasrunHosts => true,
            Launcher::Hydra => !["exit-before-open", "signal-in-exit-hook"].contains(&end.name),
            // Ranks that have closed their jobs do not hear of the failure either.
            Launcher::HydraWithoutCleanup => Launcher::Hydra.runs(end) && end.name != "exit-after-close",
        }
    }

    /// A job of `gasworks-ends`, of which only that program's arguments are missing.
    pub fn cmd(self, programs: &Programs) -> Result<Cmd> {
        let (launcher, before) = match self {
            Launcher::Gasrun | Launcher::GasrunHosts => {
                (Cmd::new(programs.program("gasrun")?).arg("-v"), &[][..])
            }
            Launcher::Hydra => (Cmd::new("mpiexec.hydra"), &[][..]),
            Launcher::HydraWithoutCleanup => {
                (Cmd::new("mpiexec.hydra").arg("-disable-auto-cleanup"), &["sh", "-c", ALONE, "rank"][..])
            }
        };
        let launcher = launcher.arg("-n").arg(ends::RANKS.to_string());
        let launcher = if self == Launcher::GasrunHosts { launcher.words(HOSTS) } else { launcher };
        let job = launcher.args(before).arg(programs.program("gasworks-ends")?).job();
        Ok(match self {
            // Who ends in the middle of a job leaves what is registered.
            Launcher::GasrunHosts => dressed(job, &Fixture::Nic.get()?).env("GASWORKS_UGNI_STRICT", "0"),
            _ => job,
        })
    }
}
