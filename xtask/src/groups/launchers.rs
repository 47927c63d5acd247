//! Every launcher there is starts ranks, on one host and on three: all join, what they tell each other arrives, and
//! however the job ends, all of it does.

use crate::cluster::{HYDRA5, PRRTE};
use crate::exec::{Cmd, Ended, Log};
use crate::needs::Need;
use crate::rows::Row;
use crate::world::{Build, Built, World};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds after which a job is ended, and how long one may take that loses a rank.
const LIMIT: u64 = 20;
const LONGEST: Duration = Duration::from_secs(10);

/// Who starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launcher {
    Gasrun,
    Slurm,
    Hydra4,
    Hydra5,
    Gforker,
    OpenMpi,
    Prrte,
}

use Launcher::{Gasrun, Gforker, Hydra4, Hydra5, OpenMpi, Prrte, Slurm};

impl Launcher {
    fn name(self) -> &'static str {
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

    fn need(self) -> Option<Need> {
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
    fn cmd(self, built: &Built) -> Result<Cmd> {
        Ok(match self {
            Gasrun => Cmd::new(built.program("gasrun")?),
            // Without its remarks on why it waits.
            Slurm => Cmd::new("srun").words("--quiet"),
            Hydra4 => Cmd::new("mpiexec.hydra"),
            Hydra5 => HYDRA5.program("mpiexec.hydra"),
            Gforker => HYDRA5.program("mpiexec.gforker"),
            OpenMpi => Cmd::new("mpirun.openmpi").words("--allow-run-as-root --oversubscribe"),
            Prrte => {
                let prefixes = ["OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX"];
                let prterun = PRRTE.program("prterun").words("--allow-run-as-root --map-by :OVERSUBSCRIBE");
                prefixes.iter().fold(prterun, |cmd, name| cmd.env(name, PRRTE.prefix()))
            }
        })
    }
}

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It ends well.
    Well,
    /// It fails, with one of these codes, and its ranks are given these words.
    Fails(&'static str, &'static [i32]),
}

use Fate::{Fails, Well};

/// A job: what the row is called, the launcher with its words, where the ranks are to find themselves, in rank order,
/// and how they end.
struct Case {
    name: &'static str,
    launcher: Launcher,
    words: &'static str,
    hosts: &'static str,
    fate: Fate,
}

const fn case(
    launcher: Launcher,
    name: &'static str,
    words: &'static str,
    hosts: &'static str,
    fate: Fate,
) -> Case {
    Case { name, launcher, words, hosts, fate }
}

/// Where six ranks are, two on each host.
const BLOCK: &str = "h1 h1 h2 h2 h3 h3";
const CYCLIC: &str = "h1 h2 h3 h1 h2 h3";
/// Six on the host of the launcher.
const HERE: &str = "h0 h0 h0 h0 h0 h0";

const SLURM_PMI2: &str = "--mpi=pmi2 -N 3 -n 6 --ntasks-per-node=2";
const PRETEND: &str = "-launcher fork -hosts a,b,c -ppn 2 -n 6";
const REMOTE: &str = "-launcher ssh -launcher-exec /run/rsh -hosts h1,h2,h3 -ppn 2 -n 6";

const CASES: &[Case] = &[
    case(Gasrun, "one-host", "-n 6", HERE, Well),
    case(Slurm, "pmi2/block", "--mpi=pmi2 -N 3 -n 6 --ntasks-per-node=2 -m block", BLOCK, Well),
    case(Slurm, "pmi2/cyclic", "--mpi=pmi2 -N 3 -n 6 --ntasks-per-node=2 -m cyclic", CYCLIC, Well),
    case(
        Slurm,
        "pmi2/arbitrary",
        "--mpi=pmi2 -n 6 -m arbitrary -w h1,h2,h1,h3,h1,h2",
        "h1 h2 h1 h3 h1 h2",
        Well,
    ),
    case(Slurm, "pmi2/killed", "--mpi=pmi2 -K -N 3 -n 6 --ntasks-per-node=2", BLOCK, Fails("--kill 1", &[137])),
    case(Slurm, "pmi2/aborted", SLURM_PMI2, BLOCK, Fails("--abort 1 5", &[137])),
    case(Hydra4, "pmi2/one-host", "-launcher fork -n 6", HERE, Well),
    case(Hydra4, "pmi2/pretend-hosts", PRETEND, HERE, Well),
    case(Hydra4, "pmi2/three-hosts", REMOTE, BLOCK, Well),
    case(Hydra4, "pmi2/killed", REMOTE, BLOCK, Fails("--kill 1", &[1, 9, 137, 255])),
    case(Hydra4, "pmi2/aborted", REMOTE, BLOCK, Fails("--abort 1 5", &[5, 255])),
    case(Hydra5, "pmi2/one-host", "-launcher fork -n 6", HERE, Well),
    case(Hydra5, "pmi2/pretend-hosts", PRETEND, HERE, Well),
    case(Hydra5, "pmi2/three-hosts", REMOTE, BLOCK, Well),
    case(Hydra5, "pmi2/killed", REMOTE, BLOCK, Fails("--kill 1", &[1, 9, 137, 255])),
    case(Hydra5, "pmi2/aborted", REMOTE, BLOCK, Fails("--abort 1 5", &[1, 5])),
];

pub fn rows() -> Vec<Row> {
    CASES.iter().map(row).collect()
}

fn row(case: &'static Case) -> Row {
    let row = Row::new(format!("launcher/{}/{}", case.launcher.name(), case.name), |world, log| {
        run(world, log, case)
    });
    case.launcher.need().into_iter().fold(row.need(Need::Hosts), Row::need)
}

fn run(world: &World, log: &Log, case: &Case) -> Result<()> {
    let (built, cluster) = (world.built(Build::Debug)?, world.cluster()?);
    if case.launcher == Slurm {
        cluster.slurm()?;
    }
    let ends = if let Fails(words, _) = case.fate { words } else { "" };
    let cmd = case.launcher.cmd(&built)?.words(case.words).arg(built.program("gasworks-whereabouts")?).words(ends);
    let ended = log.run(&cluster.on_h0(cmd.limit(LIMIT)))?;
    placed(&ended.output, case.hosts)?;
    judge(&ended, case.fate)?;
    cluster.left()
}

/// An error unless each rank says once that all is well, and where it is to be.
fn placed(output: &str, hosts: &str) -> Result<()> {
    let wanted: BTreeMap<_, _> = hosts.split(' ').enumerate().map(|(rank, host)| (rank, host.to_owned())).collect();
    let mut found = BTreeMap::new();
    for line in output.lines() {
        let Some((who, rest)) = line.strip_prefix("rank ").and_then(|line| line.split_once(" of ")) else { continue };
        let rank: usize = who.parse().with_context(|| format!("no rank in {line:?}"))?;
        let told = rest.strip_suffix(": passed").and_then(|rest| rest.split_once(" on "));
        let (ranks, host) = told.with_context(|| format!("no host in {line:?}"))?;
        ensure!(ranks == wanted.len().to_string(), "a job of {} ranks: {line:?}", wanted.len());
        ensure!(found.insert(rank, host.to_owned()).is_none(), "rank {rank} spoke twice");
    }
    ensure!(found == wanted, "the ranks were to be on {wanted:?}; they are on {found:?}");
    Ok(())
}

fn judge(ended: &Ended, fate: Fate) -> Result<()> {
    let Some(status) = ended.status else { bail!("no end within {} s", ended.took.as_secs()) };
    let codes = if let Fails(_, codes) = fate { codes } else { &[0] };
    let code = status.code();
    ensure!(code.is_some_and(|code| codes.contains(&code)), "{}, and not one of {codes:?}", ended.how());
    ensure!(ended.took <= LONGEST, "it took {:.1} s to end", ended.took.as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_is_missing_misplaced_or_doubled_is_found() {
        let good = "rank 1 of 2 on h2: passed\nnoise\nrank 0 of 2 on h1: passed\n";
        placed(good, "h1 h2").unwrap();
        for (bad, why) in [
            ("rank 0 of 2 on h1: passed\n", "they are on"),
            (&good.replace("h2", "h1"), "they are on"),
            (&format!("{good}{good}"), "spoke twice"),
            (&good.replace("of 2", "of 3"), "a job of 2 ranks"),
        ] {
            let said = placed(bad, "h1 h2").unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
