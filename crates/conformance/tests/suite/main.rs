//! The conformance suite over each transport, in each thread mode, with several numbers of ranks, and from each build; over
//! shared memory also with settings that change how ranks wait, with segments that are attached late, and observed.
//!
//! The nightly matrix runs every combination; otherwise every pair of two choices occurs in some combination.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::cases::is_nightly;
use gasworks_testkit::pairwise::{pairwise, product};
use gasworks_testkit::programs::{self, Programs};
use gasworks_testkit::suite::enough;
use gasworks_testkit::{Case, Cmd, Log, cases};
use std::process::ExitCode;

const SUITE: &str = "gasworks-conformance";
const TRANSPORTS: [&str; 3] = ["pshm", "simnet", "simnet-unmapped"];
const MODES: [&str; 3] = ["seq", "par", "parsync"];
const RANKS: [usize; 4] = [1, 2, 4, 7];
const BUILDS: [Build; 2] = [Build::Debug, Build::Release];

/// Settings under which the suite runs on two ranks: the case's name, the thread mode, the setting and its value.
const SETTINGS: [(&str, &str, &str, &str); 4] = [
    ("progress-thread", "par", "GASWORKS_PROGRESS_THREAD", "1"),
    ("wait-block", "seq", "GASWORKS_WAIT", "block"),
    ("wait-spin", "seq", "GASWORKS_WAIT", "spin"),
    ("given-by-messages", "par", "GASWORKS_PROCESS_VM", "0"),
];

/// What an observed job leaves: the file, and what must be in it.
const RECORDINGS: [(&str, &str); 4] = [
    ("counts.json", "short request handled"),
    ("counts.json", "atomic operation"),
    ("trace.json", "atomic operation"),
    ("trace.json", r#""ph":"s""#),
];

fn main() -> ExitCode {
    let cells = cells(is_nightly()).into_iter().map(|cell| Case::new(cell.name(), move |log| cell.run(log)));
    let settings = SETTINGS.into_iter().map(|(name, mode, setting, value)| {
        Case::new(format!("pshm/{mode}/2/{name}"), move |log| {
            run(log, &pshm(&programs::debug()?, mode, 2)?.env(setting, value), "pshm", 2)
        })
    });
    let attached = ["seq", "parsync"].into_iter().map(|mode| {
        Case::new(format!("pshm/{mode}/3/attached"), move |log| {
            run(log, &pshm(&programs::debug()?, mode, 3)?.arg("--attach"), "pshm", 3)
        })
    });
    let modes: &[&str] = if is_nightly() { &["par", "seq"] } else { &["par"] };
    let observed = modes
        .iter()
        .map(|&mode| Case::new(format!("pshm/{mode}/4/observed"), move |log| observed(log, mode)));
    let judge = [
        Case::check("judge/every-combination-by-night", every_combination_has_a_cell_by_night),
        Case::new("judge/a-recording-without-events-is-found", a_recording_without_events_is_found),
    ];
    cases::main(
        "conformance/suite",
        cells.chain(settings).chain(attached).chain(observed).chain(judge).collect(),
    )
}

/// A build of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Build {
    Debug,
    Release,
}

impl Build {
    fn programs(self) -> Result<Programs> {
        match self {
            Build::Debug => programs::debug(),
            Build::Release => programs::release(),
        }
    }
}

/// A combination in which the suite runs.
#[derive(Clone, Copy, Debug)]
struct Cell {
    transport: &'static str,
    mode: &'static str,
    ranks: usize,
    build: Build,
}

/// The combinations, and one with many ranks.
fn cells(is_nightly: bool) -> Vec<Cell> {
    let sizes = [TRANSPORTS.len(), MODES.len(), RANKS.len(), BUILDS.len()];
    let picks = if is_nightly { product(&sizes) } else { pairwise(&sizes) };
    let cell = |pick: &Vec<usize>| Cell {
        transport: TRANSPORTS[pick[0]],
        mode: MODES[pick[1]],
        ranks: RANKS[pick[2]],
        build: BUILDS[pick[3]],
    };
    let mut cells: Vec<_> = picks.iter().map(cell).collect();
    cells.sort_by_key(|c| (c.build, c.transport, c.mode, c.ranks));
    let many = if is_nightly { 64 } else { 16 };
    cells.push(Cell { transport: "pshm", mode: "seq", ranks: many, build: Build::Release });
    cells
}

impl Cell {
    fn name(&self) -> String {
        let build = if self.build == Build::Debug { "debug" } else { "release" };
        format!("{}/{}/{}/{build}", self.transport, self.mode, self.ranks)
    }

    fn run(&self, log: &Log) -> Result<()> {
        let programs = self.build.programs()?;
        let suite = match self.transport {
            "pshm" => pshm(&programs, self.mode, self.ranks)?,
            "simnet" => simnet(&programs, self.mode, self.ranks)?,
            _ => simnet(&programs, self.mode, self.ranks)?.arg("--unmapped"),
        };
        run(log, &suite, self.transport, self.ranks)
    }
}

/// The suite over shared memory.
fn pshm(programs: &Programs, mode: &str, ranks: usize) -> Result<Cmd> {
    Ok(programs.gasrun(ranks, SUITE)?.arg("--mode").arg(mode))
}

/// The suite over `SimNet`, whose ranks are threads of one process: by day with two seeds.
fn simnet(programs: &Programs, mode: &str, ranks: usize) -> Result<Cmd> {
    let seeds = if is_nightly() { 0..4 } else { 0..2 };
    let words =
        format!("--transport simnet --ranks {ranks} --mode {mode} --seeds {}..{}", seeds.start, seeds.end);
    Ok(Cmd::new(programs.program(SUITE)?).words(&words).limit(150).job())
}

/// Runs a suite: it must end well, count its cases and leave nothing.
fn run(log: &Log, suite: &Cmd, transport: &str, ranks: usize) -> Result<()> {
    enough(&log.run_ok(suite)?.output, transport, ranks)
}

/// Runs the suite observed: it passes as otherwise, and something is recorded.
fn observed(log: &Log, mode: &str) -> Result<()> {
    let dir = log.scratch()?;
    let options = "--stats=counts.json --trace trace.json";
    let suite = programs::debug()?.gasrun_with(4, options, SUITE)?.arg("--mode").arg(mode);
    run(log, &suite.dir(&dir), "pshm", 4)?;
    recorded(&dir)
}

/// An error unless the files of an observed job are in `dir` and have events in them.
fn recorded(dir: &std::path::Path) -> Result<()> {
    for (file, wanted) in RECORDINGS {
        let text = std::fs::read_to_string(dir.join(file)).with_context(|| format!("reading {file}"))?;
        ensure!(text.contains(wanted), "{file} holds no {wanted:?}: {} bytes", text.len());
    }
    Ok(())
}

fn every_combination_has_a_cell_by_night() {
    let names =
        |is_nightly| cells(is_nightly).iter().map(Cell::name).collect::<std::collections::BTreeSet<_>>();
    let (night, day) = (names(true), names(false));
    assert_eq!(night.len(), 3 * 3 * 4 * 2 + 1);
    // But for the one with many ranks, whose number is another.
    assert_eq!(day.difference(&night).count(), 1, "{day:?}");
    assert!(day.len() < night.len() / 2, "{day:?}");
}

fn a_recording_without_events_is_found(log: &Log) -> Result<()> {
    let dir = log.scratch()?;
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text);
    assert!(recorded(&dir).is_err(), "no files");
    write("counts.json", r#"["short request handled", "atomic operation"]"#)?;
    write("trace.json", r#"["atomic operation"]"#)?;
    assert!(recorded(&dir).unwrap_err().to_string().starts_with("trace.json holds no"));
    write("trace.json", r#"["atomic operation", {"ph":"s"}]"#)?;
    recorded(&dir)
}
