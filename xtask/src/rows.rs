//! The matrix: rows, how they are run, and what is printed of them.

use crate::budget::Budgets;
use crate::exec::Log;
use crate::needs::{ExpectedSkips, Machine, Need};
use crate::world::World;
use anyhow::{Context, Result, bail};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

type Work = Box<dyn Fn(&World, &Log) -> Result<()> + Send + Sync>;

/// One cell of the matrix.
pub struct Row {
    /// Its name: the group, a slash, and the cell.
    pub name: String,
    needs: Vec<Need>,
    exclusive: bool,
    work: Work,
}

impl Row {
    /// A row that passes if `work` returns without an error.
    pub fn new(
        name: impl Into<String>,
        work: impl Fn(&World, &Log) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), needs: Vec::new(), exclusive: true, work: Box::new(work) }
    }

    /// Something without which it cannot run.
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// It may run beside another row of its group.
    pub fn beside(mut self) -> Self {
        self.exclusive = false;
        self
    }

    /// The part of the name before the slash.
    pub fn group(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(group, _)| group)
    }
}

/// How a row ended.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Whether `name` is meant by `pattern`: `*` stands for any text; without one, any part of the name will do.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let (Some(first), true) = (parts.next(), pattern.contains('*')) else { return name.contains(pattern) };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The rows that `pattern` means, or all.
pub fn select(rows: Vec<Row>, pattern: Option<&str>) -> Result<Vec<Row>> {
    let Some(pattern) = pattern else { return Ok(rows) };
    let (chosen, rest): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| matches(pattern, &row.name));
    if chosen.is_empty() {
        let mut groups: Vec<_> = rest.iter().map(Row::group).collect();
        groups.dedup();
        bail!(
            "no row matches {pattern:?}; `cargo xtask test --list` shows all; groups: {}",
            groups.join(", ")
        );
    }
    Ok(chosen)
}

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    passed: usize,
    /// What was printed of each row that failed.
    failed: Vec<String>,
    skipped: usize,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped)
    }
}

/// Runs rows in order, prints a line for each, and last the summary; an error if any failed.
pub fn run(rows: &[Row], world: &World, width: usize, budgets: &Budgets) -> Result<()> {
    let skips = ExpectedSkips::load()?;
    let mut out = std::io::stdout();
    let summary = run_all(rows, world, &skips, budgets, width, &mut out)?;
    // Once more at the end, where people look, and where a log cut at its head still has them.
    for failure in &summary.failed {
        writeln!(out, "{failure}").context("printing")?;
    }
    writeln!(out, "{summary}").context("printing")?;
    if !summary.failed.is_empty() {
        // The summary is the last line: nothing is said after it.
        std::process::exit(1);
    }
    Ok(())
}

fn run_all(
    rows: &[Row],
    world: &World,
    skips: &ExpectedSkips,
    budgets: &Budgets,
    width: usize,
    out: &mut (impl Write + Send),
) -> Result<Summary> {
    let begun = Instant::now();
    let summary = Mutex::new(Summary::default());
    let mut report = Report { summary: &summary, out: Mutex::new(out) };
    for group in rows.chunk_by(|a, b| a.group() == b.group()) {
        let group_begun = Instant::now();
        for batch in group.chunk_by(|a, b| !a.exclusive && !b.exclusive) {
            let next = Mutex::new(batch.iter());
            let take = || next.lock().unwrap_or_else(|e| e.into_inner()).next();
            std::thread::scope(|scope| {
                for _ in 0..width.min(batch.len()) {
                    scope.spawn(|| {
                        while let Some(row) = take() {
                            let begun = Instant::now();
                            let (outcome, tail) = run_one(row, world, skips, &world.machine);
                            report.row(&row.name, outcome, &tail, begun.elapsed());
                        }
                    });
                }
            });
        }
        world.end_group();
        if let Some(group) = group.first().map(Row::group) {
            report.budget(group, budgets, group_begun.elapsed());
        }
    }
    report.line(&format!("took {}", minutes(begun.elapsed())));
    Ok(summary.into_inner().unwrap_or_else(|e| e.into_inner()))
}

fn run_one(row: &Row, world: &World, skips: &ExpectedSkips, machine: &Machine) -> (Outcome, Vec<String>) {
    if let Some(need) = machine.lacks(&row.needs) {
        return match skips.judge(&row.name, need) {
            Ok(reason) => (Outcome::Skipped(reason), Vec::new()),
            Err(error) => (Outcome::Failed(error.to_string()), Vec::new()),
        };
    }
    let log = match Log::create(world.log_path(&row.name)) {
        Ok(log) => log,
        Err(error) => return (Outcome::Failed(format!("{error:#}")), Vec::new()),
    };
    let _patience = Patience::start(&row.name);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (row.work)(world, &log))) {
        Ok(Ok(())) => (Outcome::Passed, Vec::new()),
        Ok(Err(error)) => {
            (Outcome::Failed(format!("{error:#} (log: {})", world.shown(log.path()))), log.tail(25))
        }
        Err(_) => (Outcome::Failed("the row itself panicked: see above".into()), log.tail(25)),
    }
}

struct Report<'a, W> {
    summary: &'a Mutex<Summary>,
    out: Mutex<&'a mut W>,
}

impl<W: Write> Report<'_, W> {
    fn line(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(|e| e.into_inner());
        // Whoever reads this has gone: the exit code still tells.
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }

    fn row(&self, name: &str, outcome: Outcome, tail: &[String], took: Duration) {
        let mut summary = self.summary.lock().unwrap_or_else(|e| e.into_inner());
        let text = match outcome {
            Outcome::Passed => {
                summary.passed += 1;
                format!("passed {name} ({:.1} s)", took.as_secs_f64())
            }
            Outcome::Failed(reason) => {
                let mut text = format!("failed {name}: {reason}");
                for line in tail {
                    text.push_str("\n    | ");
                    text.push_str(line);
                }
                summary.failed.push(text.clone());
                text
            }
            Outcome::Skipped(reason) => {
                summary.skipped += 1;
                format!("skipped {name}: {reason}")
            }
        };
        self.line(&text);
    }

    fn budget(&mut self, group: &str, budgets: &Budgets, took: Duration) {
        match budgets.judge(group, took) {
            Ok(None) => {}
            Ok(Some(warning)) => self.line(&format!("warning: {warning}")),
            Err(error) => self.row(&format!("budget/{group}"), Outcome::Failed(error.to_string()), &[], took),
        }
    }
}

/// Says on the error stream, from two seconds on, what is being waited for.
struct Patience {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Patience {
    fn start(name: &str) -> Self {
        let (stop, stopped) = mpsc::channel();
        let name = name.to_owned();
        let thread = std::thread::spawn(move || {
            let (begun, terminal) = (Instant::now(), std::io::stderr().is_terminal());
            let mut pause = Duration::from_secs(2);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = format!("running {name} ({} s)", begun.elapsed().as_secs());
                if terminal {
                    eprint!("\r\x1b[K{line}");
                    pause = Duration::from_secs(1);
                } else {
                    eprintln!("{line}");
                    pause = Duration::from_secs(60);
                }
            }
            if terminal {
                eprint!("\r\x1b[K");
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It only prints; there is nothing to do about a panic in it.
            let _ = thread.join();
        }
    }
}

/// A duration as minutes and seconds.
pub fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), seconds % 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(rows: &[Row], world: &World) -> (Summary, String) {
        let skips = ExpectedSkips::load().unwrap();
        let mut out = Vec::new();
        let summary = run_all(rows, world, &skips, &Budgets::load().unwrap(), 2, &mut out).unwrap();
        (summary, String::from_utf8(out).unwrap())
    }

    #[test]
    fn patterns() {
        assert!(matches("loom", "mutation/loom-x"));
        assert!(matches("a/*/c", "a/b/c") && matches("*", "x") && matches("a/*", "a/"));
        assert!(!matches("a/*/c", "a/c") && !matches("b*", "ab") && !matches("*b", "bc"));
    }

    #[test]
    fn a_pattern_that_means_nothing_is_an_error() {
        let rows = vec![Row::new("unit/a", |_, _| Ok(())), Row::new("unit/b", |_, _| Ok(()))];
        let error = select(rows, Some("uint")).err().unwrap().to_string();
        assert!(error.contains("\"uint\"") && error.contains("groups: unit"), "{error}");
    }

    #[test]
    fn every_outcome_is_printed_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let world = World::at(dir.path().to_owned());
        let rows = [
            Row::new("t/good", |_, _| Ok(())).beside(),
            Row::new("t/bad", |_, log| {
                log.note("the last words")?;
                bail!("it broke")
            })
            .beside(),
            Row::new("t/panics", |_, _| panic!("on purpose")),
        ];
        let (summary, text) = run_text(&rows, &world);
        assert_eq!(summary.to_string(), "1 passed, 2 failed, 0 skipped");
        assert!(text.contains("passed t/good (0.0 s)\n"), "{text}");
        assert!(
            text.contains("failed t/bad: it broke (log: ") && text.contains("    | the last words\n"),
            "{text}"
        );
        assert!(text.contains("failed t/panics: the row itself panicked"), "{text}");
        let again = summary.failed.concat();
        assert!(again.contains("it broke") && again.contains("the last words"), "{again}");
        assert!(again.contains("failed t/panics") && !again.contains("t/good"), "{again}");
    }

    #[test]
    fn a_skip_that_is_not_expected_fails() {
        let dir = tempfile::tempdir().unwrap();
        let mut world = World::at(dir.path().to_owned());
        world.machine = Machine::without(Need::Gpu);
        let (summary, text) = run_text(&[Row::new("t/gpu", |_, _| Ok(())).need(Need::Gpu)], &world);
        assert_eq!(summary.to_string(), "0 passed, 1 failed, 0 skipped");
        assert!(text.contains("does not let this row be skipped for `no-gpu`"), "{text}");
        // The same row runs where there is what it needs.
        world.machine = Machine::without(Need::Jellyfish);
        let (summary, _) = run_text(&[Row::new("t/gpu", |_, _| Ok(())).need(Need::Gpu)], &world);
        assert_eq!(summary.to_string(), "1 passed, 0 failed, 0 skipped");
    }
}
