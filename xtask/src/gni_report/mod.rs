//! `cargo xtask gni-report`: what each operation takes over uGNI, as the witness and the clock of the software NIC have it, and what
//! memory messages take.
//!
//! `gasworks-operations` does the operations and makes marks; here what lies between two marks is divided by how often something
//! was done there. A program in C does the same with the posts of GASNet's conduit.

mod comparison;
mod limits;
mod page;

use crate::world::World;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use gasworks_testkit::files::empty;
use gasworks_testkit::nic::dressed;
use gasworks_testkit::programs::{self, Fixture};
use gasworks_testkit::{Cmd, Log};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use page::{differs, write};

/// The chips.
pub const CHIPS: [&str; 2] = ["aries", "gemini"];

/// What to do with the report.
#[derive(Args)]
pub struct ReportArgs {
    /// Write the book's page too
    #[arg(long)]
    write: bool,
}

/// What an operation takes of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Posts of any kind, and their bytes.
    pub posts: u64,
    pub bytes: u64,
    /// Events that this rank took of its own posts, and those by which it was called.
    pub own: u64,
    pub called: u64,
    pub registrations: u64,
    pub copies: u64,
    pub locks: u64,
}

/// What an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// What it is: its kind, then its bytes, then where these are.
    pub operation: String,
    /// Of who begins it, and of the other rank.
    pub here: Side,
    pub there: Side,
    /// Registrations the first time.
    pub first: u64,
    /// Nanoseconds that it would take.
    pub time: f64,
}

/// Bytes that messages take of each rank's memory before anybody has talked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub ranks: u64,
    /// Registered with the NIC, and tables.
    pub own: u64,
    /// The library's queue.
    pub queue: u64,
}

/// All of it, by chip.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub costs: BTreeMap<&'static str, Vec<Cost>>,
    pub memory: BTreeMap<&'static str, Vec<Memory>>,
    /// What the posts of GASNet's conduit take, on [`COMPARED`].
    pub conduit: Vec<Cost>,
}

/// The chip on which ours is compared with GASNet's conduit, which is for this one.
pub const COMPARED: &str = CHIPS[0];

/// The programs that make it.
#[derive(Debug)]
pub struct Programs {
    /// `gasworks-operations` as two ranks, and what it says of memory: of a build that counts.
    pub ranks: Cmd,
    pub memory: Cmd,
    /// The clock.
    pub clock: PathBuf,
    /// What starts a program that does what GASNet's conduit does, and the NIC that this is linked with.
    gasrun: PathBuf,
    prefix: PathBuf,
}

/// Where that program is.
const CONDUIT: &str = "crates/ugni-sim-capi/tests/clients/c/conduit.c";

impl Programs {
    /// Of a build that counts, over the software NIC that is laid out at `prefix`.
    pub fn of(counting: &programs::Programs, clock: &Path, prefix: &Path) -> Result<Self> {
        let ranks = counting.gasrun(2, "gasworks-operations")?;
        Ok(Self {
            ranks: dressed(ranks, prefix),
            memory: Cmd::new(counting.program("gasworks-operations")?).arg("--memory"),
            clock: clock.to_owned(),
            gasrun: counting.program("gasrun")?,
            prefix: prefix.to_owned(),
        })
    }

    /// The program with the posts of GASNet's conduit, compiled into a folder.
    fn conduit(&self, scratch: &Path, run: &impl Fn(&Cmd) -> Result<String>) -> Result<Cmd> {
        let (program, lib) = (scratch.join("conduit"), self.prefix.join("lib"));
        let cc = Cmd::new("cc").words("-std=c11 -D_GNU_SOURCE -O1 -o").arg(&program).arg(CONDUIT);
        let cc = cc.arg(format!("-I{}", self.prefix.join("include").display()));
        run(&cc.arg(format!("-L{}", lib.display())).words("-lugni -lpmi").limit(60))?;
        let job = Cmd::new(&self.gasrun).words("-n 2 --timeout 120 --").arg(&program).limit(150).job();
        Ok(job.env("LD_LIBRARY_PATH", lib).env("GASWORKS_UGNI_STRICT", "1"))
    }
}

/// What takes more than it may, in words.
pub fn broken(report: &Report) -> Vec<String> {
    [limits::broken(report), comparison::broken(report)].concat()
}

/// The command.
pub fn run(args: &ReportArgs) -> Result<()> {
    let world = World::new();
    eprintln!("building; what the compiler says goes to target/xtask/prepare-*.log");
    let (counting, prefix) = (world.debug()?, world.fixture(Fixture::Nic)?);
    let clock = world.release()?.program("ugni-clock")?;
    let scratch = crate::root().join("target/gni-report");
    let log = Log::create(scratch.join("log"))?;
    let report = measure(&Programs::of(&counting, &clock, &prefix)?, &scratch, |command| {
        eprintln!("+ {}", command.shown());
        let ended = log.run(command)?;
        if !ended.ok() {
            eprint!("{}", ended.output);
        }
        Ok(ended.check()?.output)
    })?;
    print!("{}", page::text(&report));
    if args.write {
        write(&report)?;
    }
    let broken = broken(&report);
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

/// Has the programs run by `run`, and reads what they have written to `scratch`.
pub fn measure(programs: &Programs, scratch: &Path, run: impl Fn(&Cmd) -> Result<String>) -> Result<Report> {
    let mut report = Report::default();
    // The barrier by engines is another job's.
    let jobs = CHIPS.map(|chip| (chip, None)).into_iter().chain([("aries", Some("GNICE"))]);
    for (chip, barrier) in jobs {
        let place = scratch.join(chip).join(barrier.unwrap_or("usual"));
        let job = programs.ranks.clone();
        let job = match barrier {
            Some(way) => job.env("GASNET_BARRIER", way).words("--only barrier"),
            None => job,
        };
        let costs = measured(programs, job, chip, &place, &run)?.into_iter().map(|cost| match barrier {
            Some(way) => Cost { operation: format!("{} ({way})", cost.operation), ..cost },
            None => cost,
        });
        report.costs.entry(chip).or_default().extend(costs);
    }
    empty(scratch.join("conduit").as_path())?;
    let conduit = programs.conduit(&scratch.join("conduit"), &run)?;
    report.conduit = measured(programs, conduit, COMPARED, &scratch.join("conduit/seen"), &run)?;
    let said = run(&programs.memory)?;
    for line in said.lines() {
        let words: Vec<_> = line.split('\t').collect();
        let numbers: Vec<u64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
        let (Some(chip), &[ranks, registered, tables, queue]) =
            (CHIPS.into_iter().find(|chip| words.first() == Some(chip)), &numbers[..])
        else {
            bail!("what memory messages take: {line:?}");
        };
        let own = registered + tables;
        report.memory.entry(chip).or_default().push(Memory { ranks, own, queue });
    }
    Ok(report)
}

/// Has a job of two ranks do operations on a chip; what each takes, by what the NIC and the clock have written to `place`.
fn measured(
    programs: &Programs,
    job: Cmd,
    chip: &str,
    place: &Path,
    run: &impl Fn(&Cmd) -> Result<String>,
) -> Result<Vec<Cost>> {
    empty(place)?;
    let job = job.env("GASWORKS_UGNI_CHIP", chip).env("GASWORKS_UGNI_WITNESS", place.join("seen"));
    let said = run(&job.env("GASWORKS_UGNI_TRACE", place.join("seen")))?;
    let ranks = processes(&said)?;
    let traces = ranks.map(|process| place.join(format!("seen.{process}.trace")));
    let clock = Cmd::new(&programs.clock).arg(chip).arg("--marks").args(&traces);
    let clock = times(&run(&clock)?, &traces[0])?;
    let [here, there] = ranks.map(|process| witness(&place.join(format!("seen.{process}.json"))));
    costs(&said, [here?, there?], &clock)
}

/// What a NIC had counted at each mark.
type Marks = BTreeMap<u64, Value>;

fn witness(path: &Path) -> Result<Marks> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut all: Value =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let marks = all["marks"].as_array_mut().map(std::mem::take).unwrap_or_default();
    marks
        .into_iter()
        .map(|seen| Ok((seen["mark"].as_u64().context("a mark without a number")?, seen)))
        .collect()
}

/// The processes of both ranks.
fn processes(said: &str) -> Result<[u64; 2]> {
    let mut ranks = [None; 2];
    for line in said.lines() {
        if let ["process", rank, process] = line.split('\t').collect::<Vec<_>>()[..]
            && let Some(place) = rank.parse().ok().and_then(|rank: usize| ranks.get_mut(rank))
        {
            *place = process.parse().ok();
        }
    }
    let [Some(here), Some(there)] = ranks else { bail!("the ranks have not said which processes they are") };
    Ok([here, there])
}

/// When a process came to its marks, in nanoseconds.
fn times(said: &str, trace: &Path) -> Result<BTreeMap<u64, f64>> {
    let trace = trace.display().to_string();
    let lines = said.lines().filter_map(|line| line.strip_suffix(&trace)?.trim().split_once(' '));
    lines
        .map(|(at, mark)| Ok((mark.parse()?, at.parse()?)))
        .collect::<Result<_>>()
        .context("the clock's times")
}

/// Marks of an operation: each of three times before it, behind its first and behind its last; and where all of it ends.
const BEFORE: [u64; 4] = [0, 3, 6, 9];
/// Behind the first and the last of most of them.
const TIMED: [u64; 2] = [7, 8];

/// What each operation takes, by what the ranks say that they have done.
fn costs(said: &str, witnesses: [Marks; 2], clock: &BTreeMap<u64, f64>) -> Result<Vec<Cost>> {
    let mut costs: Vec<Cost> = Vec::new();
    let lines = said.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let done = lines.filter(|words| words.first() == Some(&"operation"));
    let (first, second): (Vec<_>, Vec<_>) = done.partition(|words| words.get(1) == Some(&"0"));
    ensure!(!first.is_empty() && first.len() == second.len(), "the ranks have not done the same");
    for (here, there) in first.iter().zip(&second) {
        let operation = here.get(2).copied().unwrap_or_default().to_owned();
        ensure!(there.get(2) == Some(&operation.as_str()), "the ranks have not done the same");
        let side = |rank: usize, words: &[&str]| {
            side(&witnesses[rank], words).with_context(|| format!("{operation}, rank {rank}"))
        };
        let (here, begun, times) = side(0, here)?;
        let (there, ..) = side(1, there)?;
        let at = |mark: u64| clock.get(&(begun + mark)).copied().context("the clock does not know a mark");
        let time = (at(TIMED[1])? - at(TIMED[0])?) / (2 * times - 1) as f64;
        let registered = |mark: u64| {
            let seen = witnesses[0].get(&(begun + mark)).context("the witness does not know a mark")?;
            Ok::<_, anyhow::Error>(counted(seen).registrations)
        };
        let first = registered(BEFORE[1])? - registered(BEFORE[0])?;
        costs.push(Cost { operation, here, there, first, time });
    }
    Ok(costs)
}

/// What an operation takes of a rank that says this of it; its first mark; and how often it was done.
fn side(witness: &Marks, words: &[&str]) -> Result<(Side, u64, u64)> {
    let numbers: Vec<u64> = words.iter().skip(3).filter_map(|word| word.parse().ok()).collect();
    let [begun, times, copies, locks] = numbers[..] else { bail!("it says {words:?}") };
    ensure!(times > 0, "it was never done");
    let at =
        |mark: u64| witness.get(&(begun + mark)).map(counted).context("the witness does not know a mark");
    let [_, some, twice, end] = BEFORE.map(at);
    let (some, twice, end) = (some?, twice?, end?);
    // What comes once, such as the ranks' meetings, is in both.
    let each = |what: &str, of: fn(&Side) -> u64| {
        let more = (of(&end) - of(&twice)).checked_sub(of(&twice) - of(&some));
        divided(what, more, times)
    };
    let side = Side {
        posts: each("posts", |side| side.posts)?,
        bytes: each("bytes", |side| side.bytes)?,
        own: each("events of its posts", |side| side.own)?,
        called: each("events of others'", |side| side.called)?,
        registrations: each("registrations", |side| side.registrations)?,
        copies: divided("copies", Some(copies), times)?,
        locks: divided("locks", Some(locks), times)?,
    };
    Ok((side, begun, times))
}

/// What each takes of what so many more have taken.
fn divided(what: &str, more: Option<u64>, times: u64) -> Result<u64> {
    let more = more.with_context(|| format!("{what}: twice as many operations have fewer"))?;
    ensure!(more.is_multiple_of(times), "{what}: {more} of {times} operations: not each takes the same");
    Ok(more / times)
}

/// What a NIC has counted.
fn counted(seen: &Value) -> Side {
    let sum = |of: &Value, part: &str| -> u64 {
        let all = of.as_object().into_iter().flat_map(|all| all.values());
        all.map(|one| if part.is_empty() { one } else { &one[part] }).filter_map(Value::as_u64).sum()
    };
    let events = |kind: &str| sum(&seen["events"][kind], "");
    Side {
        posts: sum(&seen["posted"], "posts"),
        bytes: sum(&seen["posted"], "bytes"),
        own: events("local") + events("global"),
        called: events("remote") + events("cqwrite") + events("message"),
        registrations: seen["registrations"]["made"].as_u64().unwrap_or(0),
        copies: 0,
        locks: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What has been counted after so many puts, each with two events, and so many meetings.
    fn seen(mark: u64, puts: u64, meetings: u64) -> Value {
        json!({
            "mark": mark,
            "posted": { "A": { "posts": puts, "bytes": 8 * puts }, "B": { "posts": meetings, "bytes": 0 } },
            "events": { "global": { "ok": puts + meetings }, "local": { "ok": puts - 1, "error": 1 } },
            "registrations": { "made": 3 + u64::from(puts > 1) },
        })
    }

    fn marks(all: impl IntoIterator<Item = Value>) -> Marks {
        all.into_iter().map(|seen| (seen["mark"].as_u64().expect("it has one"), seen)).collect()
    }

    #[test]
    fn what_an_operation_takes_is_a_difference() {
        let witness = || marks([seen(10, 1, 1), seen(13, 2, 3), seen(16, 6, 5), seen(19, 14, 7)]);
        let said = "process\t0\t77\noperation\t1\tput 8\t10\t4\t0\t0\noperation\t0\tput 8\t10\t4\t8\t12\nprocess\t1\t78\n";
        let clock = times("100.5 17 /t\n5.0 17 /other\n170.5 18 /t\n", Path::new("/t")).unwrap();
        let costs = costs(said, [witness(), witness()], &clock).unwrap();
        let side = Side { posts: 1, bytes: 8, own: 2, ..Side::default() };
        let here = Side { copies: 2, locks: 3, ..side };
        let wanted = Cost { operation: "put 8".into(), here, there: side, first: 1, time: 10.0 };
        assert_eq!((costs, processes(said).unwrap()), (vec![wanted], [77, 78]));
        assert!(processes("process\t0\t77\n").is_err());
    }

    #[test]
    fn what_does_not_come_with_each_is_not_rounded_away() {
        let odd = marks([seen(0, 1, 1), seen(3, 2, 3), seen(6, 6, 5), seen(9, 15, 7)]);
        let error = side(&odd, &["operation", "0", "put", "0", "4", "0", "0"]).unwrap_err();
        assert!(error.to_string().contains("5 of 4"), "{error}");
        let fewer = marks([seen(0, 1, 1), seen(3, 2, 3), seen(6, 6, 5), seen(9, 7, 7)]);
        assert!(side(&fewer, &["operation", "0", "put", "0", "4", "0", "0"]).is_err());
        assert!(side(&fewer, &["operation", "0", "put", "0", "0", "0", "0"]).is_err());
    }
}
