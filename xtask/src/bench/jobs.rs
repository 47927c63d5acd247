//! Whole jobs: how long an empty one takes, and how memory grows with their size.

use super::judge::{judged, shown};
use super::ours::Ours;
use super::place::Place;
use super::record::{Row, Verdict};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::command::Cmd;
use gasworks_testkit::stats::{median, ratios, undisturbed};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The launcher that ours is held against, where only Debian's is there: hydra 4.
const HYDRA: &str = "mpiexec.hydra";

/// Installs hydra 5, which Debian does not have, where Python's installer can; else a note says that it is missing.
pub fn install_hydra(folder: &Path, notes: &mut Vec<String>) {
    if hydra_5(folder).exists() {
        return;
    }
    let pip =
        Cmd::new("python3").words("-m pip install --quiet --no-deps --target").arg(folder.join("hydra5"));
    if pip.arg("mpich==5.0.2").limit(120).show().is_err() || !hydra_5(folder).exists() {
        notes.push("hydra 5 cannot be had (python3 -m pip install mpich==5.0.2)".into());
    }
}

fn hydra_5(folder: &Path) -> PathBuf {
    folder.join("hydra5/bin/mpiexec")
}

/// A kind of job that is timed from its start to its end.
struct Timed {
    transport: &'static str,
    variant: &'static str,
    command: Box<dyn Fn() -> Command>,
    times: Vec<Option<f64>>,
}

/// Starts and ends jobs of four ranks in turns; adds the rows and returns the verdict.
pub fn startup(
    ours: &Ours,
    peers: &Path,
    turns: usize,
    rows: &mut Vec<Row>,
    pairs: usize,
) -> Result<Vec<Verdict>> {
    let mut kinds = Vec::new();
    let mut kind = |transport, variant, command: Box<dyn Fn() -> Command>| {
        kinds.push(Timed { transport, variant, command, times: Vec::new() });
    };
    let (one, other) = (ours.clone(), ours.clone());
    kind("pshm", "empty job", Box::new(move || one.job(Place::Plain, 4, "gasperf startup --empty")));
    kind("pshm", "true", Box::new(move || other.job(Place::Plain, 4, "true")));
    let fifth = hydra_5(peers);
    let (program, name) = if fifth.exists() { (fifth, "hydra 5") } else { (PathBuf::from(HYDRA), "hydra 4") };
    let hydra = move || {
        let mut command = Command::new(&program);
        command.args(["-n", "4", "true"]);
        command
    };
    let there = hydra().stdin(Stdio::null()).status().is_ok_and(|s| s.success());
    if there {
        kind(name, "true", Box::new(hydra));
    }
    for peer in super::peers::PEERS.iter().filter(|p| p.ranks(4) && peers.join(p.name).exists() && p.there())
    {
        let program = peers.join(peer.name);
        let command = move || peer.command(Place::Plain, 4, &program, &["--empty"]);
        kind(peer.name, "empty job", Box::new(command));
    }
    for kind in &mut kinds {
        run(kind)?;
    }
    for turn in 0..turns {
        // Launchers that take a tenth of a second and more only take part in some turns.
        for kind in kinds.iter_mut().filter(|k| turn % 3 == 0 || ["pshm", name].contains(&k.transport)) {
            let time = run(kind)?;
            kind.times.resize(turn, None);
            kind.times.push(time);
        }
    }
    for kind in &mut kinds {
        let taken = kind.times.iter().flatten().count();
        kind.times = undisturbed(&kind.times);
        let kept: Vec<f64> = kind.times.iter().flatten().copied().collect();
        let dropped = (taken - kept.len()) as u32;
        let row = Row {
            bench: "startup".into(),
            variant: kind.variant.into(),
            transport: kind.transport.into(),
            mode: "seq".into(),
            ranks: 4,
            threads: 1,
            unit: "ns".into(),
            machine: gasworks_testkit::machine::describe(),
            place: "from start to end".into(),
            ..Row::default()
        };
        rows.push(row.of_blocks(kept, dropped));
    }
    let of = |transport: &str, variant: &str| {
        kinds.iter().find(|k| k.transport == transport && k.variant == variant).map(|k| k.times.clone())
    };
    let middle = |times: &[Option<f64>]| {
        median(&times.iter().flatten().copied().collect::<Vec<_>>()).map_or_else(String::new, shown)
    };
    let base = Verdict {
        what: "gasrun -n 4, empty job, to hydra's `true`".into(),
        limit: 2.0,
        ..Verdict::default()
    };
    let empty = of("pshm", "empty job").unwrap_or_default();
    let base = Verdict { ours: middle(&empty), ..base };
    let Some(hydra) = of(name, "true") else {
        return Ok(vec![Verdict { verdict: "nothing to compare with: no hydra".into(), ..base }]);
    };
    let base = Verdict { against: format!("{name}, true {}", middle(&hydra)), ..base };
    Ok(vec![judged(base, &ratios(&empty, &hydra), pairs)])
}

/// Starts one job and waits for its end. Of another launcher that fails now and then (hydra 4 does, by a broken pipe) the
/// turn is left out; enough such turns leave too few pairs to count.
fn run(kind: &Timed) -> Result<Option<f64>> {
    let mut command = (kind.command)();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().with_context(|| format!("starting a job of {}", kind.transport))?;
    let took = begun.elapsed().as_nanos() as f64;
    let ended = status.success();
    ensure!(ended || kind.transport != "pshm", "an empty job of {} ended with {status}", kind.transport);
    Ok(ended.then_some(took))
}

/// The most that each rank may keep for each further rank of a silent job, in bytes: for itself, and of what is shared.
const SLOPES: [(&str, f64); 2] = [("private-dirty", 256.0), ("shared-dirty", 128.0)];
/// How many ranks the jobs have in which that is measured.
const SIZES: [u32; 2] = [64, 512];

/// How much more each rank keeps for each rank that a silent job has more, by the rows of `memory`.
pub fn memory(rows: &[Row]) -> Vec<Verdict> {
    let slope = |kind: &str| {
        let of = |ranks| rows.iter().find(|r| r.bench == "memory" && r.variant == kind && r.ranks == ranks);
        let [few, many] = SIZES.map(of);
        let (few, many) = (few?, many?);
        Some((many.p50 - few.p50) / f64::from(many.ranks - few.ranks))
    };
    let verdict = |(kind, limit)| {
        let [few, many] = SIZES;
        let what = format!("memory, {kind}, bytes for each further rank, {few} to {many} ranks");
        let base = Verdict { what, limit, ..Verdict::default() };
        let Some(slope) = slope(kind) else {
            return Verdict { verdict: "nothing was measured".into(), ..base };
        };
        let verdict = if slope <= limit { "met" } else { "not met" };
        Verdict {
            ours: format!("{slope:.0} B"),
            ratio: slope,
            interval: [slope; 2],
            pairs: 1,
            verdict: verdict.into(),
            ..base
        }
    };
    SLOPES.map(verdict).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::example;

    #[test]
    fn memory_grows_by_the_slope() {
        let row = |kind: &str, ranks, bytes| Row {
            variant: kind.into(),
            ranks,
            unit: "B".into(),
            ..example("memory", "pshm", 0, &[bytes])
        };
        let rows = [
            row("private-dirty", 64, 1e6),
            row("private-dirty", 512, 1e6 + 448.0 * 219.0),
            row("shared-dirty", 64, 1e6),
            row("shared-dirty", 512, 1e6 + 448.0 * 129.0),
        ];
        let found = memory(&rows);
        assert_eq!((found[0].ours.as_str(), found[0].verdict.as_str()), ("219 B", "met"));
        assert_eq!(found[1].verdict, "not met");
        assert_eq!(memory(&rows[..3])[1].verdict, "nothing was measured");
    }
}
