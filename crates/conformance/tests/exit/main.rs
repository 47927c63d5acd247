//! Jobs of three ranks that end in every way of `gasworks_conformance::ends`, under each launcher that is there; and jobs in
//! which a thread of the library panics.

mod judge;
mod launcher;
mod panics;

use gasworks_conformance::ends::{self, CASES};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::hosts::Cluster;
use gasworks_testkit::{Case, Log, cases, programs};
use launcher::Launcher;
use std::process::ExitCode;

/// Seconds that starting a job, and the machine's other work, may add to its end.
const SLACK: u64 = 10;

fn main() -> ExitCode {
    let mut table = Vec::new();
    for launcher in Launcher::ALL {
        let ends = CASES.iter().enumerate().filter(|(_, end)| launcher.runs(end));
        table.extend(ends.flat_map(|(turn, end)| cases_of((launcher, turn), end)));
    }
    table.extend(panics::cases());
    table.extend(judge::cases());
    cases::main("conformance/exit", table)
}

/// Rank 0, which collects what the ranks of its host say, and one of the others in the part of the one that acts. Over hosts every rank is, by
/// day one of them in turn: the leader of the first host, that of the other, and a rank of that.
fn cases_of((launcher, turn): (Launcher, usize), end: &'static ends::Case) -> Vec<Case> {
    let victims = match launcher {
        Launcher::GasrunHosts if is_nightly() => 0..ends::RANKS,
        Launcher::GasrunHosts => turn as u32 % ends::RANKS..turn as u32 % ends::RANKS + 1,
        _ => 0..2,
    };
    let case = |victim| {
        let name = format!("{}/{}/rank-{victim}", launcher.name(), end.name);
        let case = Case::new(name, move |log| check(log, launcher, end, victim));
        launcher.need().into_iter().fold(case, Case::need)
    };
    victims.map(case).collect()
}

/// Runs a job in which `victim` acts, and judges its end.
fn check(log: &Log, launcher: Launcher, end: &ends::Case, victim: u32) -> anyhow::Result<()> {
    let job = launcher.cmd(&programs::debug()?)?.arg("act").arg(end.name).arg(victim.to_string());
    let job = job
        .env("GASNET_EXITTIMEOUT", end.timeout().to_string())
        .env("GASNET_CATCH_EXIT", if end.leaves() { "0" } else { "1" })
        .limit((2.5 * end.timeout()).ceil() as u64 + SLACK);
    let cluster = (launcher == Launcher::GasrunHosts).then(Cluster::up).transpose()?;
    let ended = match &cluster {
        Some(cluster) => log.run(&cluster.on_h0(job))?,
        None => log.run(&job)?,
    };
    let code = ended.status.and_then(|status| status.code());
    judge::judge(launcher, end, code, &ended.output).map_err(|error| error.context(ended.how()))
}
