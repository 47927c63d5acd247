//! `cargo xtask bench`: every bench of gasperf, our figures beside those of other libraries in the same run, and the
//! limits.
//!
//! - [`plan`]: what is measured against what, as data; [`place`]: under which conditions;
//! - [`ours`], [`peers`]: running gasperf, and the programs under `perf/peers`; [`c`]: gasperf-c, beside gasperf;
//! - [`turns`]: blocks in turns; `testkit::stats`, [`judge`]: ratios, intervals, verdicts; [`baseline`]: recorded figures;
//! - [`jobs`]: start-up and memory; [`launchers`]: how jobs are wired up; [`sizes`], [`svg`]: figures against size and their plots;
//! - [`record`], [`compare`], [`page`]: the file of a run, two of them compared, and the book's page.

mod baseline;
mod c;
mod compare;
mod jobs;
mod judge;
mod launchers;
mod ours;
mod page;
mod peers;
mod place;
mod plan;
mod record;
mod sizes;
pub mod svg;
mod turns;

pub use peers::{PEERS, Peer};

use anyhow::{Context, Result, bail, ensure};
use baseline::{Baseline, Probe};
use clap::Args;
use gasworks_testkit::command::Cmd;
use judge::{DISTURBED, Judge, shown};
use ours::Ours;
use peers::{LINE, Running, build};
use place::Place;
use plan::{GROUPS, Group, SET};
use record::{Record, Row, Verdict};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};
use turns::{Asked, Prober};

/// What `cargo xtask bench` takes.
#[derive(Args, Debug, Default)]
pub struct BenchArgs {
    /// Measure MPICH, Open MPI, UCX and libfabric in the same run, and write the book's page of results
    #[arg(long)]
    peers: bool,
    /// Fewer turns and fewer sizes: below a minute and a half, and no page
    #[arg(long)]
    quick: bool,
    /// Measure how launchers wire jobs up instead, and write that into the page
    #[arg(long, exclusive = true)]
    launchers: bool,
    /// Measure what programs in C see, beside the same from Rust, and nothing else
    #[arg(long, conflicts_with_all = ["peers", "svg"])]
    from_c: bool,
    /// Measure only the groups whose names contain this (may be given several times), and nothing else
    #[arg(long, value_name = "TEXT", conflicts_with = "svg")]
    only: Vec<String>,
    /// Write everything measured into this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw latency and bandwidth against size into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Say what has changed since the run that wrote this file
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

/// Turns of a group that shall count and how many are taken for them at most, rounds of sizes, and gasperf's blocks in its
/// whole tables.
struct Effort {
    turns: usize,
    most: usize,
    pairs: usize,
    rounds: usize,
    blocks: u32,
}

/// The folder with the peers' programs.
pub fn folder() -> PathBuf {
    crate::root().join("target/peers")
}

/// Runs it.
pub fn run(args: &BenchArgs) -> Result<()> {
    if args.launchers {
        return launchers::run();
    }
    let begun = Instant::now();
    let earlier = args.compare.as_deref().map(Record::load).transpose()?;
    let all = || GROUPS.iter().chain(c::GROUPS);
    ensure!(all().any(|group| is_named(&args.only, group)), "no group has a name with {:?}", args.only);
    let mut bench = Bench::start(args)?;
    let whole = args.only.is_empty();
    if !args.from_c {
        if whole {
            bench.set()?;
        }
        let verdicts = bench.groups(GROUPS);
        bench.record.verdicts.extend(verdicts);
        if whole {
            bench.jobs();
        }
    }
    if whole {
        bench.c_set()?;
    }
    bench.record.from_c = bench.groups(c::GROUPS);
    if whole && (args.peers || args.svg.is_some()) {
        eprintln!("by size, {} rounds", bench.effort.rounds);
        if let Err(error) = bench.by_size() {
            bench.record.verdicts.push(failed("figures by size", &error));
        }
    }
    if whole && !args.quick && !args.from_c {
        bench.crowd();
    }
    let Bench { record, .. } = bench;
    report(&record);
    if let Some(path) = &args.json {
        record.save(path)?;
    }
    if let Some(dir) = &args.svg {
        println!("plots in {}: {}", dir.display(), sizes::draw(&record, dir)?.join(", "));
    }
    if whole && args.peers && !args.quick {
        page::write(&record)?;
        println!("wrote {}", page::path().display());
    }
    if let Some(earlier) = &earlier {
        compare::print(earlier, &record);
    }
    println!("took {:.0} s", begun.elapsed().as_secs_f64());
    let broken: Vec<_> =
        record.verdicts.iter().chain(&record.from_c).filter(|v| v.verdict.starts_with(FAILED)).collect();
    ensure!(broken.is_empty(), "{} measurements failed: see above", broken.len());
    Ok(())
}

/// Whether a group's name contains one of these, if there are any.
fn is_named(only: &[String], group: &Group) -> bool {
    only.is_empty() || only.iter().any(|text| group.name.contains(text.as_str()))
}

/// The commit that is measured; of a tree that has been changed it says so.
fn commit() -> String {
    let read = Cmd::new("git").words("describe --always --dirty --exclude *").read();
    read.unwrap_or_default().trim().into()
}

/// What a verdict starts with if the measurement itself broke.
const FAILED: &str = "failed: ";

struct Bench {
    ours: Ours,
    baseline: Baseline,
    effort: Effort,
    quick: bool,
    only: Vec<String>,
    folder: PathBuf,
    line: Running,
    /// The peers that could be built, those that are up on two ranks, and those that are up on as many as the last group
    /// with more had, which the next is likely to have, too.
    built: Vec<&'static Peer>,
    two: Vec<Running>,
    more: (u32, Vec<Running>),
    record: Record,
}

impl Bench {
    fn start(args: &BenchArgs) -> Result<Self> {
        let folder = folder();
        let mut notes = Vec::new();
        let ours = Ours::build(c::GROUPS.iter().any(|group| is_named(&args.only, group)))?;
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        if !LINE.there() {
            bail!("{}: the machine itself is measured by a program in C", LINE.missing());
        }
        LINE.compile(&folder.join(LINE.name)).show()?;
        let built = if args.peers { build(&folder, true, &mut notes)? } else { Vec::new() };
        if args.peers && args.only.is_empty() {
            jobs::install_hydra(&folder, &mut notes);
        }
        if !place::real_time() {
            notes.push("no right to real-time priority: other work on the cores disturbs".into());
        }
        let line = Running::start(&LINE, Place::RealTime, 2, &folder)?;
        let two = peers::start_all(built.iter().copied(), Place::RealTime, 2, &folder, &mut notes);
        let record = Record {
            when: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            machine: gasworks_testkit::machine::describe(),
            commit: commit(),
            peers: two.iter().map(|p| p.version.clone()).collect(),
            notes,
            ..Record::default()
        };
        // What is to be quick does not wait for a quiet machine.
        let effort = match args.quick {
            true => Effort { turns: 3, most: 3, pairs: 3, rounds: 2, blocks: 3 },
            false => Effort {
                turns: 17,
                most: 3 * 17,
                pairs: gasworks_testkit::stats::LEAST_PAIRS,
                rounds: 5,
                blocks: 15,
            },
        };
        let baseline = Baseline::load()?;
        let (quick, only, more) = (args.quick, args.only.clone(), (0, Vec::new()));
        Ok(Self { ours, baseline, effort, quick, only, folder, line, built, two, more, record })
    }

    /// Every bench of gasperf, once, with its whole table. That these run is what the rest rests on.
    fn set(&mut self) -> Result<()> {
        for (at, &(bench, ranks, place)) in SET.iter().enumerate() {
            let begun = Instant::now();
            let rows =
                self.ours.gasperf(place, ranks, &format!("{bench} --blocks {}", self.effort.blocks))?;
            eprintln!(
                "[{:>2}/{}] gasperf {bench} on {ranks} ranks: {} rows, {:.1} s",
                at + 1,
                SET.len(),
                rows.len(),
                begun.elapsed().as_secs_f64()
            );
            self.record.rows.extend(rows);
        }
        Ok(())
    }

    /// Every bench of gasperf-c, once.
    fn c_set(&mut self) -> Result<()> {
        for launch in &c::SET {
            let rows = self.ours.launch(Place::RealTime, launch, self.effort.blocks)?;
            eprintln!("gasperf-c {}: {} rows", launch.args, rows.len());
            self.record.rows.extend(rows);
        }
        Ok(())
    }

    fn groups(&mut self, all: &'static [Group]) -> Vec<Verdict> {
        let wanted = |g: &&Group| is_named(&self.only, g) && (g.quick || !self.quick);
        let groups: Vec<_> = all.iter().filter(wanted).collect();
        let mut found = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let begun = Instant::now();
            let mut outcome = self.group(group);
            // A peer that does not answer is left out from then on.
            while let (Err(error), true) =
                (&outcome, self.two.iter().chain(&self.more.1).any(|peer| peer.broken))
            {
                self.record.notes.push(format!("left out from {} on: {error:#}", group.name));
                self.two.retain(|peer| !peer.broken);
                self.more.1.retain(|peer| !peer.broken);
                outcome = self.group(group);
            }
            let verdicts = outcome.unwrap_or_else(|error| vec![failed(group.name, &error)]);
            let said: Vec<_> = verdicts.iter().map(|v| format!("{} {}", page::ratio(v), v.verdict)).collect();
            eprintln!(
                "[{:>2}/{}] {}: {}, {:.1} s",
                at + 1,
                groups.len(),
                group.name,
                said.join("; "),
                begun.elapsed().as_secs_f64()
            );
            found.extend(verdicts);
        }
        self.more = (0, Vec::new());
        found
    }

    fn group(&mut self, group: &Group) -> Result<Vec<Verdict>> {
        let ranks = group.question.map_or(2, |(_, _, ranks)| ranks);
        if ranks != 2 && ranks != self.more.0 {
            // Those that are up end first.
            self.more = (ranks, Vec::new());
            let built = self.built.iter().copied();
            self.more.1 = peers::start_all(built, group.place, ranks, &self.folder, &mut self.record.notes);
        }
        let running = if ranks == 2 { &mut self.two } else { &mut self.more.1 };
        let mut asked = Vec::new();
        let mut probes = vec![self.baseline.state()];
        if let Some((bench, bytes, ranks)) = group.question {
            for running in running {
                if let Some(sampling) = running.settle(bench, bytes)? {
                    asked.push(Asked { running, sampling });
                }
            }
            probes.extend(self.baseline.probes(bench, bytes, ranks));
            let (bench, bytes) = group.recorded.unwrap_or((bench, bytes));
            probes.extend(self.baseline.probes(bench, bytes, ranks));
        }
        let questions = questions(&mut self.line, probes)?;
        let mut prober = Prober { line: &mut self.line, questions };
        let scatter = if group.scatters { 3 } else { 1 };
        let (wanted, most) = (scatter * self.effort.turns, scatter * self.effort.most);
        let turns = turns::take(&self.ours, group, &mut asked, &mut prober, wanted..=most, 2)?;
        let judge = Judge::new(&self.baseline, group, &turns, self.effort.pairs);
        let void = judge.void();
        for (peer, wanted) in &void {
            self.record.notes.push(format!(
                "{}: the row of {peer} is void, it should have reached {}",
                group.name,
                shown(*wanted)
            ));
        }
        let verdicts = judge.verdicts();
        for series in &turns.series {
            // The whole table was measured before; in turns it counts more.
            let mut row = series.summed();
            if series.launch.is_some_and(|launch| launch != 0)
                && c::GROUPS.iter().any(|g| g.name == group.name)
            {
                row.place = c::BESIDE.into();
            }
            row.void = series.launch.is_none() && void.iter().any(|(peer, _)| *peer == row.transport);
            if row.blocks.is_empty() {
                continue;
            }
            self.record.rows.retain(|r| r.key() != row.key());
            self.record.rows.push(row);
        }
        Ok(verdicts)
    }

    fn by_size(&mut self) -> Result<()> {
        let questions = questions(&mut self.line, vec![self.baseline.state()])?;
        let mut prober = Prober { line: &mut self.line, questions };
        sizes::measure(&self.ours, &mut self.two, &mut prober, self.effort.rounds, &mut self.record.rows)
    }

    fn jobs(&mut self) {
        let (turns, pairs) = (3 * self.effort.turns, self.effort.pairs);
        eprintln!("start-up and memory of whole jobs");
        let startup = jobs::startup(&self.ours, &self.folder, turns, &mut self.record.rows, pairs);
        let mut verdicts = startup.unwrap_or_else(|error| vec![failed("start-up", &error)]);
        verdicts.extend(jobs::memory(&self.record.rows));
        self.record.verdicts.extend(verdicts);
    }

    /// Every bench on 64 ranks ends.
    fn crowd(&mut self) {
        eprintln!("every bench on 64 ranks");
        let mut wrong = Vec::new();
        let benches = SET.iter().map(|s| s.0).filter(|b| *b != "startup");
        let mut done = std::collections::BTreeSet::new();
        for bench in benches.filter(|bench| done.insert(*bench)) {
            if let Err(error) = self.ours.gasperf(Place::Ordinary, 64, &format!("{bench} --blocks 1")) {
                wrong.push(format!("{error:#}"));
            }
        }
        let verdict = if wrong.is_empty() { "met".into() } else { format!("{FAILED}{}", wrong.join("; ")) };
        let what = "64 ranks on 2 cores: every bench ends".into();
        self.record.verdicts.push(Verdict {
            what,
            ours: format!("{} benches", done.len()),
            verdict,
            ..Verdict::default()
        });
    }
}

/// What the program without a library is asked for these probes.
fn questions(line: &mut Running, probes: Vec<&Probe>) -> Result<Vec<(String, u64, u64)>> {
    let mut questions: Vec<(String, u64, u64)> = Vec::new();
    for probe in probes {
        if !questions.iter().any(|q| (&q.0, q.1) == (&probe.bench, probe.bytes)) {
            let sampling = line.settle(&probe.bench, probe.bytes)?;
            let sampling = sampling.with_context(|| format!("line.c has no {}", probe.bench))?;
            questions.push((probe.bench.clone(), probe.bytes, sampling.iterations.div_ceil(4)));
        }
    }
    Ok(questions)
}

fn failed(what: &str, error: &anyhow::Error) -> Verdict {
    Verdict { what: what.into(), verdict: format!("{FAILED}{error:#}"), ..Verdict::default() }
}

fn report(record: &Record) {
    println!("\n{}, commit {}", record.machine, record.commit);
    if !record.peers.is_empty() {
        println!("peers: {}", record.peers.join("; "));
    }
    println!("\n{:<74} {:>10}  {:<44} {:<24} {:>6}", "measure", "ours", "to", "ratio [95 %]", "limit");
    for v in record.verdicts.iter().chain(&record.from_c) {
        println!(
            "{:<74} {:>10}  {:<44} {:<24} {:>6}  {}",
            v.what,
            v.ours,
            v.against,
            page::ratio(v),
            page::number(v.limit),
            v.verdict
        );
    }
    if !record.from_c.is_empty() {
        let mut table = String::new();
        // Writing to a string does not fail.
        let _ = c::medians(&mut table, &record.rows);
        println!("\n{table}");
    }
    for note in &record.notes {
        println!("note: {note}");
    }
}

/// Compiles every peer's program into a folder, and asks each one small question of every kind that all have.
pub fn smoke(folder: &Path, log: &gasworks_testkit::command::Log) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for peer in PEERS.iter().chain([&LINE]) {
        log.run_ok(&peer.compile(&folder.join(peer.name)))?;
        let mut running = Running::start(peer, Place::Plain, 2, folder)?;
        log.note(&format!("{}: {}", peer.name, running.version))?;
        let mut rows = 0;
        for (bench, bytes) in
            [("am-latency", 8), ("am-latency", 4096), ("am-rate", 8), ("am-bandwidth", 65536)]
                .into_iter()
                .chain([
                    ("put-latency", 8),
                    ("get-latency", 4096),
                    ("atomic", 8),
                    ("barrier", 0),
                    ("copy", 64),
                    ("broadcast", 4),
                    ("reduce-all", 1024),
                    ("all-gather", 8),
                    ("all-to-all", 1024),
                ])
        {
            // So few that ranks which share a core with other work are done soon.
            if let peers::Answer::Row(row) = running.ask(bench, bytes, 20, 2)? {
                row.sane()?;
                rows += 1;
            }
        }
        // Those with launchers have collectives.
        let wanted = match peer.name {
            name if name == LINE.name => 4,
            _ if peer.ranks(4) => 12,
            _ => 7,
        };
        ensure!(rows >= wanted, "{} answered {rows} questions, not {wanted}", peer.title);
    }
    Ok(())
}

/// An error unless a record holds a sane row of every bench of the set.
pub fn whole(path: &Path) -> Result<()> {
    let record = Record::load(path)?;
    for &(bench, ranks, _) in SET {
        // The rows of `raw` are called after what they measure.
        let of = |r: &&Row| r.ranks == ranks && (r.bench == bench || bench == "raw" && r.transport == "raw");
        ensure!(record.rows.iter().any(|r| of(&r)), "no row of {bench} on {ranks} ranks");
    }
    record.rows.iter().try_for_each(Row::sane)?;
    c::whole(&record)?;
    for group in GROUPS.iter().chain(c::GROUPS).filter(|g| g.quick) {
        for check in group.checks {
            let verdict = record.verdicts.iter().chain(&record.from_c).find(|v| v.what == check.what);
            let verdict = verdict.with_context(|| format!("no verdict on {}", check.what))?;
            let ran = !verdict.ours.is_empty() || verdict.verdict == DISTURBED;
            ensure!(ran, "{}: {}", check.what, verdict.verdict);
        }
    }
    Ok(())
}
