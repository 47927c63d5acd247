//! An MPICH program from Debian's compiler under `gasrun`.

use crate::rows::Row;
use crate::world::World;
use anyhow::{Result, ensure};
use gasworks_testkit::Need;
use gasworks_testkit::command::{Cmd, Ended, Log};

/// What the row is called, how many ranks, and the words of `gasrun`. On several hosts MPICH over UCX often does not come out of
/// `MPI_Finalize`, under its own hydra as well: one rank waits for the launcher's barrier, in which it does nothing else, and the others for
/// its part in closing their connections. A job that has come so far is tried with an end by `MPI_Abort`.
const WAYS: [(&str, usize, &str); 3] = [
    ("one-host", 4, ""),
    ("one-host-port", 4, "--pmi-port"),
    ("three-hosts", 3, "--hosts h1,h2,h3 --rsh /run/rsh"),
];

pub fn rows() -> Vec<Row> {
    let row = |(name, ranks, words): (&str, usize, &'static str)| {
        let name = format!("launcher/gasrun/mpich/{name}");
        Row::new(name.clone(), move |world, log| run(world, log, &name, ranks, words))
            .need(Need::Hosts)
            .need(Need::Mpicc)
    };
    WAYS.into_iter().map(row).collect()
}

fn run(world: &World, log: &Log, name: &str, ranks: usize, words: &str) -> Result<()> {
    let (built, cluster) = (world.debug()?, world.cluster()?);
    let program = world.scratch(name)?.join("ring");
    let compile = Cmd::new("mpicc.mpich").words("-O1 -o").arg(&program);
    log.run_ok(&compile.arg(crate::root().join("crates/launch/tests/programs/ring.c")))?;
    let job = Cmd::new(built.program("gasrun")?).words(&format!("-n {ranks} {words} --")).arg(program);
    let job = cluster.on_h0(job.limit(30));
    let said = |rank| format!("rank {rank} of {ranks}: sum {}, word 4711", ranks * (ranks - 1) / 2);
    let silent = |ended: &Ended| -> Vec<usize> {
        (0..ranks).filter(|&rank| !ended.output.lines().any(|line| line == said(rank))).collect()
    };
    let ended = log.run(&job)?;
    if ended.status.is_none() && words.contains("--hosts") && silent(&ended).is_empty() {
        log.note(
            "all ranks were at their end, and MPICH did not come out of MPI_Finalize: an abort instead",
        )?;
        let aborted = log.run(&job.arg("7"))?;
        ensure!(aborted.status.and_then(|status| status.code()) == Some(7), "{}", aborted.how());
        return Ok(());
    }
    ensure!(ended.status.is_some_and(|status| status.success()), "{}", ended.how());
    let silent = silent(&ended);
    ensure!(silent.is_empty(), "ranks {silent:?} did not say what they have heard");
    Ok(())
}
