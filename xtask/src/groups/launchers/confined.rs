//! Jobs of ordinary users, with as little as containers leave them.

use crate::rows::Row;
use crate::world::World;
use anyhow::Result;
use gasworks_testkit::Need;
use gasworks_testkit::command::{Cmd, Log};
use gasworks_testkit::suite::enough;

const RANKS: usize = 4;

/// Starts something as somebody who owns nothing.
const AS_NOBODY: &str = "--reuid=65534 --regid=65534 --clear-groups --";

/// What the row is called, what it needs, and what starts the job: before it is nobody's, and after.
const WAYS: [(&str, &[Need], &str, &str); 3] = [
    // A network without so much as loopback, no processes but the job's, and no rights in any of it.
    (
        "namespaces",
        &[Need::Namespaces],
        "",
        "unshare --user --pid --ipc --net --mount --fork --kill-child --mount-proc",
    ),
    ("no-process-vm", &[Need::Python], "python3 /run/programs/confined.py", ""),
    ("ptrace-scope", &[Need::PtraceScope], "", ""),
];

pub fn rows() -> Vec<Row> {
    let row = |(name, needs, before, after): (&str, &'static [Need], &'static str, &'static str)| {
        let row = Row::new(format!("launcher/unprivileged/{name}"), move |world, log| {
            run(world, log, before, after)
        });
        needs.iter().fold(row.need(Need::Hosts), |row, &need| row.need(need))
    };
    WAYS.into_iter().map(row).collect()
}

fn run(world: &World, log: &Log, before: &str, after: &str) -> Result<()> {
    let (built, cluster) = (world.debug()?, world.cluster()?);
    // Nobody may read where this repository is.
    let copy = "rm -rf /run/programs; mkdir -m 755 /run/programs; cp \"$@\" /run/programs; chmod 755 /run/programs/*";
    let copy = Cmd::new("sh").arg("-c").arg(copy).arg("sh");
    let programs = [built.program("gasrun")?, built.program("gasworks-conformance")?];
    let copy = copy.args(programs).arg(crate::root().join("ci/launchers/confined.py"));
    log.run_ok(&cluster.on_h0(copy))?;
    let job = format!("/run/programs/gasrun -n {RANKS} -- /run/programs/gasworks-conformance --mode seq");
    let job = Cmd::new("env").words(before).words("setpriv").words(AS_NOBODY).words(after).words(&job);
    let ended = log.run_ok(&cluster.on_h0(job.limit(90)))?;
    enough(&ended.output, "pshm", RANKS)?;
    cluster.left()
}
