//! In which jobs a rank is killed at which points.

use crate::scenario::{RANKS, Scenario};
use Scenario::{Aborts, Alone, Exits, Gni, ProgressThread, Suite};
use std::collections::BTreeSet;

/// The suite: its last rank, its first, which leads the ranks of its host, and one of several threads.
const LAST: Scenario = Suite { mode: "seq", victim: RANKS - 1 };
const FIRST: Scenario = Suite { mode: "seq", victim: 0 };
const PAR: Scenario = Suite { mode: "par", victim: 1 };

/// The same over uGNI; in the last one, all others wait for the victim's collective engine.
const GNI_LAST: Scenario = Gni { mode: "seq", victim: RANKS - 1, together: 1, barrier: "AUTO" };
const GNI_PAR: Scenario = Gni { mode: "par", victim: 0, together: 2, barrier: "AUTO" };
const GNI_ENGINE: Scenario = Gni { mode: "seq", victim: 0, together: 1, barrier: "GNICE" };

/// What the name of a point begins with, and the jobs in which a rank is killed there: the first line that fits counts. Each of
/// these victims passes each of these points.
///
/// A death while a job starts looks the same in every program, so that only the suite is killed there; a program without a
/// launcher is where it holds memory that nobody else could remove.
const TABLE: &[(&str, &[Scenario])] = &[
    ("blocks.claim_alone.", &[LAST, FIRST]),
    ("bootstrap.abort", &[Aborts]),
    ("bootstrap.get", &[LAST, PAR]),
    ("bootstrap.put", &[FIRST]),
    ("bootstrap.single", &[Alone]),
    ("bootstrap.exit.", &[LAST, FIRST, PAR]),
    ("bootstrap.", &[LAST, FIRST]),
    ("gni.barrier.given", &[GNI_ENGINE]),
    ("gni.barrier.told", &[GNI_LAST, GNI_PAR]),
    ("gni.words.given", &[GNI_ENGINE]),
    ("gni.", &[GNI_LAST, GNI_PAR, GNI_ENGINE]),
    ("host.collected", &[FIRST]),
    ("host.welcomed", &[FIRST]),
    ("host.given", &[LAST, PAR]),
    ("host.handed", &[LAST, PAR]),
    ("host.met", &[LAST, PAR]),
    ("host.", &[LAST, FIRST]),
    ("job.attach.", &[PAR]),
    ("job.", &[LAST, FIRST, PAR, Alone]),
    ("keeper.finish", &[Exits { victim: 0 }, Exits { victim: 1 }]),
    ("keeper.ready", &[Exits { victim: 0 }, Exits { victim: 1 }]),
    ("keeper.verdict", &[Aborts, Exits { victim: 0 }, Exits { victim: 1 }]),
    ("keeper.wished", &[Aborts, Exits { victim: 1 }]),
    ("progress.", &[ProgressThread { victim: RANKS - 1 }, ProgressThread { victim: 0 }]),
    ("pshm.grow.", &[LAST, FIRST, PAR, Alone]),
    ("pshm.open.created", &[FIRST, Alone]),
    ("pshm.open.", &[LAST, FIRST, PAR, Alone]),
    ("pshm.region.", &[LAST, FIRST, PAR, Alone]),
    ("", &[LAST, FIRST, PAR]),
];

/// What the name of a point begins with, and the part of the suite that passes it; of what has no line, all. Daily, who is killed
/// at the end of a job need not have run everything before.
const PARTS: &[(&str, &str)] = &[
    ("barrier.leave.", "team"),
    ("board.", "collective"),
    ("by_process.", "region.given"),
    ("bootstrap.exit.", "barrier"),
    ("collective.", "collective"),
    ("core.sleep.", "wait"),
    ("doorbell.", "wait"),
    ("eventcount.", "wait"),
    ("gni.closed", "barrier"),
    ("gni.words.", "collective.numbers"),
    ("job.close.", "barrier"),
    ("keeper.bye", "barrier"),
    ("pshm.grow.", "memory"),
    ("pshm.region.", "region"),
];

/// The part of the suite that is run to be killed at `point`, by a part of its cases' names.
pub fn part(point: &str) -> &'static str {
    PARTS.iter().find(|(start, _)| point.starts_with(start)).map_or("", |(_, part)| part)
}

fn line(point: &str) -> usize {
    // The last line fits every name.
    TABLE.iter().position(|(start, _)| point.starts_with(start)).unwrap_or(TABLE.len() - 1)
}

/// The jobs in which a rank is killed at `point`.
pub fn scenarios(point: &str) -> &'static [Scenario] {
    TABLE[line(point)].1
}

/// The lines of the tables that are for none of these points.
pub fn unused(points: &BTreeSet<String>) -> Vec<&'static str> {
    let used: BTreeSet<_> = points.iter().map(|point| line(point)).collect();
    let unused = TABLE.iter().enumerate().filter(|(at, _)| !used.contains(at)).map(|(_, (start, _))| *start);
    let has_point = |start: &str| points.iter().any(|point| point.starts_with(start));
    unused.chain(PARTS.iter().map(|(start, _)| *start).filter(|start| !has_point(start))).collect()
}
