//! `cargo xtask bench --launchers`: what it takes to wire a job up, ours and other launchers in turns; and how that grows
//! with the job, by a simulation whose messages can be counted.
//!
//! The ranks are those of `crates/bootstrap/examples/wireup.rs` under every launcher, so that the launcher is all that
//! differs.

use super::judge::{judged, shown};
use super::page;
use super::record::{Record, Verdict};
use super::svg::{Across, Line, Plot};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::command::Cmd;
use gasworks_testkit::hosts::{self, Cluster, HYDRA5};
use gasworks_testkit::stats::{LEAST_PAIRS, median, ratios, undisturbed};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The part of the book's page that this writes.
const PART: &str = "xtask bench --launchers";

/// What ranks are started for.
struct Work {
    what: &'static str,
    words: &'static str,
    ranks: u32,
    /// Whether the whole job is timed from start to end, and not what rank 0 says.
    whole: bool,
    turns: usize,
    /// Whether Slurm, which starts no job as fast as the others, is asked as well.
    slurm: bool,
}

const WORK: &[Work] = &[
    Work {
        what: "64 ranks that fence once, from start to end",
        words: "fence",
        ranks: 64,
        whole: true,
        turns: 31,
        slurm: false,
    },
    Work {
        what: "256 ranks ask the launcher for 1 KiB from each",
        words: "ask 1024",
        ranks: 256,
        whole: false,
        // A turn takes half a minute and more.
        turns: 7,
        slurm: true,
    },
    Work {
        what: "256 ranks exchange 1 KiB from each",
        words: "exchange 1024",
        ranks: 256,
        whole: false,
        turns: LEAST_PAIRS,
        slurm: true,
    },
];

/// A launcher: the words before the number of ranks, and whether it is started on the cluster.
struct Launcher {
    name: &'static str,
    cmd: Cmd,
    slurm: bool,
}

impl Launcher {
    fn cmd(&self, cluster: Option<&Cluster>, work: &Work, program: &Path) -> Cmd {
        let cmd = self.cmd.clone().words(&format!("-n {}", work.ranks)).arg(program).words(work.words);
        match cluster.filter(|_| self.slurm) {
            Some(cluster) => cluster.on_h0(cmd),
            None => cmd,
        }
    }
}

/// Runs it, prints what came of it, and writes the book's part.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    Cmd::cargo("build --release -p gasworks-launch -p gasworks-bootstrap --bins --examples").show()?;
    let release = gasworks_testkit::programs::target().join("release");
    let program = release.join("examples/wireup");
    let mut notes = Vec::new();
    let cluster = slurm(&mut notes);
    let launchers = launchers(&release, cluster.as_ref(), &mut notes);
    let mut verdicts = Vec::new();
    for work in WORK {
        verdicts.extend(measure(work, &launchers, cluster.as_ref(), &program)?);
    }
    let when = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let record = Record {
        when: when.map_or(0, |since| since.as_secs()),
        machine: gasworks_testkit::machine::describe(),
        commit: super::commit(),
        notes,
        verdicts,
        ..Record::default()
    };
    super::report(&record);
    eprintln!("how a server and a tree of servers grow, up to 10,000 ranks");
    let table = Cmd::new(release.join("examples/pmi_growth")).read()?;
    let drawn = draw(&growth(&table)?, &page::plots())?;
    let mut part = page::head_and_limits(&record);
    for (file, title) in drawn {
        writeln!(part, "![{title}](results/{file})\n")?;
    }
    write!(part, "```text\n{}```\n", table)?;
    page::put(PART, &part)?;
    println!("wrote {}; took {:.0} s", page::path().display(), begun.elapsed().as_secs_f64());
    Ok(())
}

/// A Slurm, where one can be had.
fn slurm(notes: &mut Vec<String>) -> Option<Cluster> {
    let up = || {
        ensure!(hosts::slurm_is_there(), "it is not installed");
        let cluster = Cluster::up()?;
        cluster.slurm()?;
        Ok(cluster)
    };
    up().map_err(|error| notes.push(format!("without Slurm: {error:#}"))).ok()
}

fn launchers(release: &Path, cluster: Option<&Cluster>, notes: &mut Vec<String>) -> Vec<Launcher> {
    let launcher = |name, cmd| Launcher { name, cmd, slurm: false };
    let mut all = vec![launcher("gasrun", Cmd::new(release.join("gasrun")).words("--timeout 120"))];
    let hydra_4 = Cmd::new("mpiexec.hydra");
    if HYDRA5.there() {
        all.push(launcher("hydra 5", HYDRA5.program("mpiexec.hydra")));
    } else if hydra_4.clone().arg("--version").works() {
        notes.push("hydra 5 cannot be had: Debian's stands in".into());
        all.push(launcher("hydra 4", hydra_4));
    } else {
        notes.push("without hydra: it cannot be had".into());
    }
    if cluster.is_some() {
        let cmd = Cmd::new("srun").words("--quiet --mpi=pmi2 --overcommit -N 3");
        all.push(Launcher { name: "Slurm (3 hosts)", cmd, slurm: true });
    }
    all
}

/// All launchers in turns; our figure to each other's.
fn measure(
    work: &Work,
    launchers: &[Launcher],
    cluster: Option<&Cluster>,
    program: &Path,
) -> Result<Vec<Verdict>> {
    let begun = Instant::now();
    let taking: Vec<_> = launchers.iter().filter(|l| work.slurm || !l.slurm).collect();
    let mut times = vec![Vec::new(); taking.len()];
    // The first turn warms up.
    for turn in 0..=work.turns {
        for at in 0..taking.len() {
            let at = (at + turn) % taking.len();
            let time = once(work, &taking[at].cmd(cluster, work, program));
            let time = time.with_context(|| format!("{} under {}", work.what, taking[at].name))?;
            if turn > 0 {
                times[at].push(Some(time));
            }
        }
    }
    let times: Vec<_> = times.iter().map(|times| undisturbed(times)).collect();
    // Ours is the first of them.
    let (Some((_, others)), Some((ours, theirs))) = (taking.split_first(), times.split_first()) else {
        return Ok(Vec::new());
    };
    let middle = |times: &[Option<f64>]| {
        median(&times.iter().flatten().copied().collect::<Vec<_>>()).map_or_else(String::new, shown)
    };
    let verdict = |(launcher, theirs): (&&Launcher, &Vec<Option<f64>>)| {
        let base = Verdict {
            what: work.what.into(),
            ours: middle(ours),
            against: format!("{} {}", launcher.name, middle(theirs)),
            limit: 1.0,
            ..Verdict::default()
        };
        judged(base, &ratios(ours, theirs), LEAST_PAIRS.min(work.turns))
    };
    let verdicts: Vec<_> = others.iter().zip(theirs).map(verdict).collect();
    for v in &verdicts {
        eprintln!("{}: {} to {}, {} {}", v.what, v.ours, v.against, page::ratio(v), v.verdict);
    }
    eprintln!("{:.0} s", begun.elapsed().as_secs_f64());
    Ok(verdicts)
}

/// One job's figure in nanoseconds.
fn once(work: &Work, cmd: &Cmd) -> Result<f64> {
    let begun = Instant::now();
    let said = cmd.read()?;
    let whole = begun.elapsed().as_nanos() as f64;
    let inside = inside(&said, work.ranks)?;
    Ok(if work.whole { whole } else { inside })
}

/// The nanoseconds that rank 0 said it took.
fn inside(said: &str, ranks: u32) -> Result<f64> {
    let of_all = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, of, figure] if of == ranks.to_string() => figure.parse().ok(),
        _ => None,
    };
    said.lines().find_map(of_all).with_context(|| format!("no figure of {ranks} ranks in {said:?}"))
}

/// A line of what `pmi_growth` prints.
#[derive(Debug, PartialEq)]
struct Grown {
    ranks: f64,
    /// Which work by which shape.
    name: String,
    /// Messages and bytes at the busiest server, milliseconds of all together.
    figures: [f64; 3],
}

fn growth(table: &str) -> Result<Vec<Grown>> {
    let read = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (ranks, shape) = (words.first()?.parse().ok()?, words.get(1)?);
        let (name, figures) = words.get(2..)?.split_at(words.len().checked_sub(9)?);
        let figure = |at: usize| figures.get(at)?.parse().ok();
        Some(Grown {
            ranks,
            name: format!("{}, {shape}", name.join(" ")),
            figures: [figure(4)?, figure(5)?, figure(6)?],
        })
    };
    let grown: Vec<_> = table.lines().filter_map(read).collect();
    ensure!(grown.len() > 6, "pmi_growth printed no table: {table}");
    Ok(grown)
}

const PLOTS: [(&str, &str, &str); 3] = [
    ("growth-messages.svg", "Messages at the busiest server", "messages"),
    ("growth-bytes.svg", "Bytes at the busiest server", "bytes"),
    ("growth-time.svg", "Time of all servers together, in one process", "ms"),
];

/// Draws a plot of each figure; returns the files and their titles.
fn draw(grown: &[Grown], dir: &Path) -> Result<Vec<(&'static str, &'static str)>> {
    let mut names: Vec<&str> = grown.iter().map(|g| g.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for (at, (file, title, unit)) in PLOTS.into_iter().enumerate() {
        let line = |(colour, name): (usize, &&str)| Line {
            name: (*name).into(),
            colour,
            points: grown.iter().filter(|g| g.name == **name).map(|g| (g.ranks, g.figures[at])).collect(),
        };
        let lines = names.iter().enumerate().map(line).collect();
        let plot = Plot { title: title.into(), across: Across::Ranks, unit: unit.into(), lines };
        let svg = plot.draw().with_context(|| format!("too few figures for {file}"))?;
        let path: PathBuf = dir.join(file);
        std::fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(PLOTS.map(|(file, title, _)| (file, title)).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_0s_figure_is_found_by_the_number_of_ranks() {
        assert_eq!(inside("a word\nask 256 1234567\n", 256).unwrap(), 1_234_567.0);
        assert!(inside("ask 25 1234567\n", 256).is_err());
        assert!(inside("", 256).is_err());
    }

    #[test]
    fn the_table_of_growth_is_read_by_its_columns() {
        let line = |ranks, name| format!(" {ranks}  tree {name}  32  512  1  2  7  880  0.5\n");
        let table = [16, 64, 256, 1024].map(|r| line(r, "fence") + &line(r, "exchange each")).concat();
        let grown =
            growth(&format!("each rank gives 64 bytes\n\n ranks shape what messages\n{table}")).unwrap();
        assert_eq!(grown.len(), 8);
        let figures = [7.0, 880.0, 0.5];
        assert_eq!(grown[1], Grown { ranks: 16.0, name: "exchange each, tree".into(), figures });
        assert!(growth("nothing").is_err());
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(draw(&grown, dir.path()).unwrap().len(), 3);
        let svg = std::fs::read_to_string(dir.path().join("growth-bytes.svg")).unwrap();
        assert!(svg.contains("ranks</text>") && svg.contains("exchange each, tree"), "{svg}");
    }
}
