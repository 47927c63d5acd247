//! The main job: counting the k-mers of real sequencing reads on one, two and four ranks, and checking the count.

use crate::world::optimised;
use crate::{root, tools};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use gasworks_testkit::command::Cmd;
use gasworks_testkit::programs::target;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The genome of an Escherichia coli, as Debian ships it.
const GENOME: &str = "/usr/share/doc/bowtie/examples/genomes/NC_008253.fna.gz";
const PACKAGE: &str = "bowtie-examples";

/// Bases of the genome that is made up where there is no real one, and how often reads cover it. Fewer times than the
/// real one, which is a tenth of its size, so that a machine with two cores is done in time.
const MADE_UP: u64 = 50_000_000;
const MADE_UP_COVERAGE: f64 = 8.0;

/// What `cargo xtask demo` takes.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Count this FASTA or FASTQ file, plain or gzip, instead of reads drawn from a genome
    #[arg(long)]
    input: Option<PathBuf>,
    /// Length of a k-mer, 1 to 31
    #[arg(long, short, default_value_t = 21)]
    k: u32,
    /// Numbers of ranks to count with; the first draws the spectrum
    #[arg(long, value_delimiter = ',', default_value = "4,1,2")]
    ranks: Vec<u32>,
    /// Draw the reads from a random genome of so many bases instead of the real one
    #[arg(long, conflicts_with = "input")]
    genome_size: Option<u64>,
    /// How often the reads cover each base of the genome [default: 30, or 8 for the random genome]
    #[arg(long)]
    coverage: Option<f64>,
    /// Fixes the reads that are drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where spectrum.svg and demo.json go [default: out in the repository]
    #[arg(long)]
    out_dir: Option<PathBuf>,
    /// Keep the reads that were drawn
    #[arg(long)]
    keep_reads: bool,
    /// Install the Debian package with the real genome, where it is missing
    #[arg(long)]
    install: bool,
    /// Leave jellyfish out, even where it is installed
    #[arg(long)]
    no_jellyfish: bool,
}

/// What cargo builds for it.
const TARGETS: &str = "--bin gasrun --bin draw-reads --bin kmer-count --bin kmer-serial";

/// Runs the demo.
pub fn run(args: DemoArgs) -> Result<()> {
    let start = Instant::now();
    ensure!((1..=31).contains(&args.k), "k-mer length {} is out of range: it must be 1 to 31", args.k);
    ensure!(!args.ranks.is_empty() && !args.ranks.contains(&0), "a count needs at least one rank");
    let out = args.out_dir.clone().unwrap_or_else(|| root().join("out"));
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let out = fs::canonicalize(&out).with_context(|| format!("finding {}", out.display()))?;
    let input =
        args.input.as_ref().map(|path| fs::canonicalize(path).with_context(|| path.display().to_string()));
    let input = input.transpose().context("reading the input")?;

    Cmd::cargo(&optimised(TARGETS)).show()?;
    let demo = Demo { bin: target().join("release"), out, k: args.k };
    let reads = match input {
        Some(path) => {
            let title = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            Reads { what: path.display().to_string(), title, path, drawn: false }
        }
        None => demo.draw(&args)?,
    };
    let outcome = demo.count_and_check(&args, &reads, start);
    if reads.drawn && !args.keep_reads {
        fs::remove_file(&reads.path).with_context(|| format!("removing {}", reads.path.display()))?;
    }
    outcome
}

/// What is counted.
struct Reads {
    path: PathBuf,
    /// In words, and in fewer.
    what: String,
    title: String,
    drawn: bool,
}

struct Demo {
    bin: PathBuf,
    out: PathBuf,
    k: u32,
}

impl Demo {
    /// Draws reads from the real genome, or from a random one if it cannot be had.
    fn draw(&self, args: &DemoArgs) -> Result<Reads> {
        let real = args.genome_size.is_none() && real_genome(args.install)?;
        let size = args.genome_size.unwrap_or(MADE_UP);
        let coverage = args.coverage.unwrap_or(if real { 30.0 } else { MADE_UP_COVERAGE });
        let path = self.out.join("reads.fastq");
        let genome = if real {
            format!("the genome of E. coli ({GENOME}, from Debian's {PACKAGE})")
        } else {
            format!("a random genome of {size} bases")
        };
        let what = format!("reads drawn at {coverage}-fold coverage, with errors, from {genome}");
        println!("input: {what}");
        let mut draw = self.program("draw-reads");
        draw.arg("--out").arg(&path).args([
            "--coverage",
            &coverage.to_string(),
            "--seed",
            &args.seed.to_string(),
        ]);
        match real {
            true => draw.args(["--genome", GENOME]),
            false => draw.args(["--genome-size", &size.to_string()]),
        };
        let drawn = watch("drawing reads", &mut draw);
        if drawn.is_err() {
            // What is there is not whole, and may be what filled the disk.
            let _ = fs::remove_file(&path);
        }
        drawn?;
        let genome = if real { "the E. coli genome" } else { "a random genome" };
        let title = format!("reads of {genome}, {coverage}-fold, with errors");
        Ok(Reads { path, what, title, drawn: true })
    }

    fn count_and_check(&self, args: &DemoArgs, reads: &Reads, start: Instant) -> Result<()> {
        let svg = self.out.join("spectrum.svg");
        let mut counts = Vec::new();
        for (i, &ranks) in args.ranks.iter().enumerate() {
            println!("\ncounting {}-mers on {}", self.k, plural(ranks.into()));
            let mut gasrun = self.program("gasrun");
            gasrun
                .args(["-n", &ranks.to_string(), "--timeout", "250", "--"])
                .arg(self.bin.join("kmer-count"));
            if i == 0 {
                gasrun.arg("--plot").arg("--svg").arg(&svg).args(["--title", &reads.title]);
            }
            counts.push(self.count(&mut gasrun, reads, &format!("counting on {}", plural(ranks.into())))?);
        }
        println!("\ncounting once more, in one process, by sorting");
        let serial = self.count(&mut self.program("kmer-serial"), reads, "sorting")?;
        let jellyfish = match args.no_jellyfish {
            true => Jellyfish::No("left out"),
            false => self.jellyfish(reads)?,
        };

        println!("\n{}", reads.what);
        for count in &counts {
            row(
                &format!("gasworks, {}", plural(count["ranks"].as_u64().unwrap_or(0))),
                seconds(count),
                rate(count),
                agrees(count, &serial),
            );
        }
        row("serial, by sorting", seconds(&serial), rate(&serial), true);
        let mut all_agree = counts.iter().all(|count| agrees(count, &serial));
        match &jellyfish {
            Jellyfish::Ran { seconds, spectrum } => {
                let same = *spectrum == serial["spectrum"];
                all_agree &= same;
                row(
                    "jellyfish count -t 2",
                    *seconds,
                    serial["kmers"].as_f64().unwrap_or(0.0) / seconds,
                    same,
                );
            }
            Jellyfish::No(why) => println!("  jellyfish             {why}"),
        }
        let summary = json!({
            "input": reads.what, "k": self.k, "agree": all_agree, "counts": counts, "serial": serial,
            "jellyfish_seconds": match &jellyfish { Jellyfish::Ran { seconds, .. } => Some(*seconds), _ => None },
            "seconds": start.elapsed().as_secs_f64(),
        });
        let path = self.out.join("demo.json");
        fs::write(&path, format!("{summary}\n")).with_context(|| format!("writing {}", path.display()))?;
        println!("wrote {} and {}", svg.display(), path.display());
        if !all_agree {
            bail!("the counts differ: see {}", path.display());
        }
        println!(
            "every count is the same as the serial one; all done in {:.0} s",
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// Runs a counter and reads its report.
    fn count(&self, command: &mut Command, reads: &Reads, what: &str) -> Result<Value> {
        let report = self.out.join("report.json");
        command.arg("--input").arg(&reads.path).args(["--k", &self.k.to_string()]).arg("--out").arg(&report);
        watch(what, command)?;
        let text = fs::read_to_string(&report).with_context(|| format!("reading {}", report.display()))?;
        fs::remove_file(&report).with_context(|| format!("removing {}", report.display()))?;
        serde_json::from_str(&text).with_context(|| format!("understanding {}", report.display()))
    }

    fn jellyfish(&self, reads: &Reads) -> Result<Jellyfish> {
        if !Cmd::new("jellyfish").arg("--version").works() {
            return Ok(Jellyfish::No("not installed (apt-get install jellyfish)"));
        }
        let start_of_file = {
            let mut head = [0; 2];
            let read =
                fs::File::open(&reads.path).and_then(|mut file| std::io::Read::read(&mut file, &mut head));
            read.with_context(|| format!("reading {}", reads.path.display()))?;
            head
        };
        if start_of_file == [0x1f, 0x8b] {
            return Ok(Jellyfish::No("does not read gzip files"));
        }
        println!("\ncounting with jellyfish, for comparison");
        let counted = self.out.join("reads.jf");
        let k = self.k.to_string();
        let begun = Instant::now();
        let mut count = Command::new("jellyfish");
        count.args(["count", "-m", &k, "-C", "-s", "200M", "-t", "2", "-o"]).arg(&counted).arg(&reads.path);
        let outcome = watch("jellyfish", &mut count);
        let seconds = begun.elapsed().as_secs_f64();
        let histogram = outcome.and_then(|()| Cmd::new("jellyfish").arg("histo").arg(&counted).read());
        let _ = fs::remove_file(&counted);
        let bins = histogram?.lines().map(bin).collect::<Result<Vec<_>>>()?;
        Ok(Jellyfish::Ran { seconds, spectrum: json!(bins) })
    }

    fn program(&self, name: &str) -> Command {
        Command::new(self.bin.join(name))
    }
}

enum Jellyfish {
    Ran { seconds: f64, spectrum: Value },
    No(&'static str),
}

/// A line of `jellyfish histo`: the multiplicity and the number of k-mers.
fn bin(line: &str) -> Result<(u64, u64)> {
    let split = line.split_once(' ').and_then(|(m, n)| Some((m.parse().ok()?, n.trim().parse().ok()?)));
    split.with_context(|| format!("understanding jellyfish's line {line:?}"))
}

/// Whether two counts found the same k-mers the same number of times.
fn agrees(one: &Value, other: &Value) -> bool {
    ["kmers", "distinct", "checksum", "spectrum"]
        .iter()
        .all(|&key| !one[key].is_null() && one[key] == other[key])
}

fn seconds(count: &Value) -> f64 {
    count["seconds"].as_f64().unwrap_or(f64::NAN)
}

fn rate(count: &Value) -> f64 {
    count["rate"].as_f64().unwrap_or(f64::NAN)
}

fn plural(ranks: u64) -> String {
    format!("{ranks} {}", if ranks == 1 { "rank" } else { "ranks" })
}

fn row(what: &str, seconds: f64, rate: f64, agrees: bool) {
    let verdict = if agrees { "agrees" } else { "DIFFERS" };
    println!("  {what:<21} {seconds:>7.2} s  {:>7.1} M k-mers/s  {verdict}", rate / 1e6);
}

/// Whether the real genome is there, after trying to install it where that is wished for.
fn real_genome(install: bool) -> Result<bool> {
    if Path::new(GENOME).exists() {
        return Ok(true);
    }
    // Without it the demo goes on with a random genome, so a failure to install is only said.
    println!("the genome of E. coli is in Debian's package {PACKAGE}, which is not installed");
    if !install {
        println!("`cargo xtask demo --install` installs it (6 MB, as root), and reads are drawn from that");
        return Ok(false);
    }
    match tools::apt(PACKAGE) {
        Ok(_) => Ok(Path::new(GENOME).exists()),
        Err(error) => {
            println!("it cannot be installed: {error:#}");
            Ok(false)
        }
    }
}

/// Runs a program to its end, and shows the progress that it reports on its error output as `progress N %`.
fn watch(what: &str, command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = Path::new(&name).file_name().map_or(name.clone(), |file| file.to_string_lossy().into_owned());
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {name}"))?;
    let mut shown: Option<Instant> = None;
    let on_terminal = std::io::stderr().is_terminal();
    if let Some(errors) = child.stderr.take() {
        for line in BufReader::new(errors).lines() {
            let line = line.with_context(|| format!("reading what {name} says"))?;
            match line.strip_prefix("progress ") {
                None => eprintln!("{line}"),
                Some(part) if on_terminal => {
                    eprint!("\r\x1b[K{what}: {part}");
                    let _ = std::io::stderr().flush();
                    shown = Some(Instant::now());
                }
                Some(part) if shown.is_none_or(|at| at.elapsed() > Duration::from_secs(2)) => {
                    eprintln!("{what}: {part}");
                    shown = Some(Instant::now());
                }
                Some(_) => {}
            }
        }
    }
    if on_terminal && shown.is_some() {
        eprint!("\r\x1b[K");
    }
    let status = child.wait().with_context(|| format!("waiting for {name}"))?;
    ensure!(status.success(), "{what}: {name} failed ({status})");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_only_if_all_of_it_is_the_same() {
        let count = json!({"kmers": 5, "distinct": 2, "checksum": "ab", "spectrum": [[1, 1], [4, 1]], "seconds": 1.0});
        let mut other = count.clone();
        other["seconds"] = json!(2.0);
        assert!(agrees(&count, &other));
        for (key, value) in
            [("checksum", json!("ac")), ("spectrum", json!([[1, 1], [5, 1]])), ("kmers", Value::Null)]
        {
            let mut other = count.clone();
            other[key] = value;
            assert!(!agrees(&count, &other), "{key}");
        }
        assert!(!agrees(&json!({}), &json!({})));
    }

    #[test]
    fn lines_of_a_histogram_are_read() {
        assert_eq!(bin("3 4485").ok(), Some((3, 4485)));
        assert!(bin("three").is_err_and(|e| e.to_string().contains("three")));
    }

    #[test]
    fn a_program_that_fails_is_named() {
        assert!(watch("trying", &mut Command::new("true")).is_ok());
        let failed = watch("trying", &mut Command::new("false")).err().map(|e| e.to_string());
        assert!(failed.is_some_and(|text| text.starts_with("trying: false failed")));
        let missing = watch("trying", &mut Command::new("/nonexistent/program")).err().map(|e| e.to_string());
        assert_eq!(missing.as_deref(), Some("starting program"));
    }
}
