//! What a run of the matrix says while it runs and at its end, and what it remembers for the next.
//!
//! Every row and every test is reported here. The history, in `target/xtask/history.json`, holds how long each last took
//! and which failed: from it come the time that is left, the table of the longest, and `--failed`.

use crate::rows::Lane;
use anyhow::{Context, Result};
use gasworks_testkit::minutes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How a row or a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed, for this reason.
    Failed(String),
    /// It was skipped, for this reason.
    Skipped(String),
}

/// What is remembered of a row or a test.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
pub struct Last {
    /// Seconds.
    pub seconds: f64,
    /// Whether it failed.
    pub failed: bool,
}

/// What is remembered of all, by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct History(BTreeMap<String, Last>);

impl History {
    /// Reads it; nothing where there is none yet.
    pub fn load(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("reading {}", path.display())),
            Err(_) => Ok(Self::default()),
        }
    }

    fn save(&self, path: &Path) -> Result<()> {
        std::fs::write(path, serde_json::to_string_pretty(self)?)
            .with_context(|| format!("writing {}", path.display()))
    }

    /// The names of what failed last.
    pub fn failed(&self) -> Vec<&str> {
        self.0.iter().filter(|(_, last)| last.failed).map(|(name, _)| name.as_str()).collect()
    }

    /// The longest, in order, as rows of a table in Markdown.
    pub fn longest(&self, count: usize) -> String {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
        let rows = all.into_iter().take(count);
        rows.map(|(name, last)| format!("| `{name}` | {:.0} |\n", last.seconds)).collect()
    }

    fn seconds(&self, name: &str) -> f64 {
        self.0.get(name).map_or(0.0, |last| last.seconds)
    }
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Summary {
    /// Whether something ran and nothing failed.
    pub fn is_good(self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// A run over this is named in a warning: nothing single may take longer.
const LONG: Duration = Duration::from_secs(100);
/// A test that took at least this long gets a line of its own though it passed.
const NOTABLE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct State {
    results: Vec<(String, Outcome, Duration)>,
    running: BTreeMap<String, (Lane, Instant)>,
    /// Rows that have not begun, with their lanes.
    ahead: Vec<(String, Lane)>,
    shown: String,
}

/// What a run says. Threads share it.
pub struct Report {
    begun: Instant,
    history: History,
    prints: bool,
    state: Mutex<State>,
}

impl Report {
    /// One that prints, with what is remembered of the last run, of rows with these names.
    pub fn new(history: History, rows: impl IntoIterator<Item = (String, Lane)>) -> Self {
        let state = State { ahead: rows.into_iter().collect(), ..State::default() };
        Self { begun: Instant::now(), history, prints: true, state: Mutex::new(state) }
    }

    /// One that keeps what it would print, for tests.
    #[cfg(test)]
    pub fn silent() -> Self {
        Self { prints: false, ..Self::new(History::default(), []) }
    }

    /// What was printed.
    #[cfg(test)]
    pub fn shown(&self) -> String {
        self.lock().shown.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn line(&self, state: &mut State, text: &str) {
        if self.prints {
            let mut out = std::io::stdout();
            if std::io::stderr().is_terminal() {
                eprint!("\r\x1b[K");
            }
            // Where the reader has gone, the exit code still tells.
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        } else {
            let _ = writeln!(state.shown, "{text}");
        }
    }

    /// A row begins.
    pub fn begin(&self, name: &str, lane: Lane) {
        let mut state = self.lock();
        state.ahead.retain(|(row, _)| row != name);
        state.running.insert(name.to_owned(), (lane, Instant::now()));
    }

    /// A row has ended.
    pub fn end(&self, name: &str, outcome: Outcome, took: Duration) {
        let mut state = self.lock();
        state.running.remove(name);
        // Rows of that name are all tests of a part, each of which is looked at by itself.
        let warns = took > LONG && !name.starts_with("tests/");
        self.line(&mut state, &line_of(name, &outcome, took));
        if warns {
            let text = format!(
                "warning: {name} took {}; nothing single may take over {} s",
                minutes(took),
                LONG.as_secs()
            );
            self.line(&mut state, &text);
        }
        state.results.push((name.to_owned(), outcome, took));
    }

    /// An ordinary test has ended. One that passed has no line unless it took long.
    pub fn test(&self, name: &str, outcome: Outcome, took: Duration) {
        if took >= NOTABLE || outcome != Outcome::Passed {
            return self.end(name, outcome, took);
        }
        self.lock().results.push((name.to_owned(), outcome, took));
    }

    /// How many of each so far.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for (_, outcome, _) in &self.lock().results {
            *match outcome {
                Outcome::Passed => &mut summary.passed,
                Outcome::Failed(_) => &mut summary.failed,
                Outcome::Skipped(_) => &mut summary.skipped,
            } += 1;
        }
        summary
    }

    /// Prints what failed once more, where people look and where a log cut at its head still has it; then the summary, as
    /// the last line. Remembers what happened.
    pub fn close(self, history: &Path) -> Result<Summary> {
        let (summary, took, prints) = (self.summary(), self.begun.elapsed(), self.prints);
        let state = self.state.into_inner().unwrap_or_else(|e| e.into_inner());
        let mut remembered = self.history;
        for (name, outcome, took) in &state.results {
            let last = remembered.0.entry(name.clone()).or_default();
            last.failed = matches!(outcome, Outcome::Failed(_));
            if *outcome == Outcome::Passed {
                last.seconds = took.as_secs_f64();
            }
        }
        remembered.save(history)?;
        if !prints {
            return Ok(summary);
        }
        let mut out = std::io::stdout();
        writeln!(out, "took {}", minutes(took)).context("printing")?;
        for (name, outcome, took) in state.results.iter().filter(|(_, o, _)| matches!(o, Outcome::Failed(_)))
        {
            writeln!(out, "{}", line_of(name, outcome, *took)).context("printing")?;
        }
        writeln!(out, "{summary}").context("printing")?;
        Ok(summary)
    }

    /// The results as JUnit's XML, which other tools read: one suite for each package or group of rows.
    pub fn junit(&self) -> String {
        let state = self.lock();
        let mut suites: BTreeMap<&str, Vec<&(String, Outcome, Duration)>> = BTreeMap::new();
        for result in &state.results {
            suites.entry(result.0.split('/').next().unwrap_or_default()).or_default().push(result);
        }
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        for (suite, results) in suites {
            let count = |wanted: fn(&Outcome) -> bool| results.iter().filter(|(_, o, _)| wanted(o)).count();
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
                escaped(suite),
                results.len(),
                count(|o| matches!(o, Outcome::Failed(_))),
                count(|o| matches!(o, Outcome::Skipped(_)))
            );
            for (name, outcome, took) in results {
                let case = format!(
                    "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                    escaped(suite),
                    escaped(name),
                    took.as_secs_f64()
                );
                let _ = match outcome {
                    Outcome::Passed => writeln!(xml, "{case}/>"),
                    Outcome::Failed(why) => {
                        writeln!(xml, "{case}><failure>{}</failure></testcase>", escaped(why))
                    }
                    Outcome::Skipped(why) => {
                        writeln!(xml, "{case}><skipped message=\"{}\"/></testcase>", escaped(why))
                    }
                };
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }

    /// One line: what runs, how long it usually takes, and how much is left.
    fn progress(&self) -> String {
        let state = self.lock();
        let expected = |name: &str| self.history.seconds(name);
        let running = state.running.iter().map(|(name, (_, begun))| {
            let usual = expected(name);
            let usual = if usual > 0.0 { format!(" of about {usual:.0}") } else { String::new() };
            format!("{name} ({}{usual} s)", begun.elapsed().as_secs())
        });
        let running: Vec<_> = running.collect();
        let left = |wanted: Lane| -> f64 {
            let ahead =
                state.ahead.iter().filter(|(_, lane)| *lane == wanted).map(|(name, _)| expected(name));
            let now = state.running.iter().filter(|(_, (lane, _))| *lane == wanted);
            let now = now.map(|(name, (_, begun))| (expected(name) - begun.elapsed().as_secs_f64()).max(0.0));
            ahead.chain(now).sum()
        };
        let both = left(Lane::Compute).max(left(Lane::Wait) / 2.0);
        let lanes = left(Lane::First) + both + left(Lane::Alone);
        let rows = state.ahead.len() + state.running.len();
        let left = if lanes > 0.0 {
            format!("about {} left", minutes(Duration::from_secs_f64(lanes)))
        } else {
            "how long is not known yet".into()
        };
        format!("running {}; {} done, {rows} rows to go, {left}", running.join(", "), state.results.len())
    }
}

fn line_of(name: &str, outcome: &Outcome, took: Duration) -> String {
    match outcome {
        Outcome::Passed => format!("passed {name} ({:.1} s)", took.as_secs_f64()),
        Outcome::Failed(why) => format!("failed {name}: {why}"),
        Outcome::Skipped(why) => format!("skipped {name}: {why}"),
    }
}

/// Text in XML. Control characters, which XML has no way to write, become question marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// Runs `body` and says on the error stream, from two seconds on, what runs meanwhile: each second on a terminal, each
/// minute elsewhere.
pub fn with_progress<R>(report: &Report, body: impl FnOnce() -> R) -> R {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let terminal = std::io::stderr().is_terminal();
            let mut pause = Duration::from_secs(2);
            while stopped.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                if terminal {
                    eprint!("\r\x1b[K{}", report.progress());
                    pause = Duration::from_secs(1);
                } else {
                    eprintln!("{}", report.progress());
                    pause = Duration::from_secs(60);
                }
            }
            if terminal {
                eprint!("\r\x1b[K");
            }
        });
        let result = body();
        drop(stop);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn tests_that_pass_soon_have_no_line_but_count() {
        let report = Report::silent();
        report.test("a/lib/x", Outcome::Passed, seconds(1));
        report.test("a/lib/y", Outcome::Passed, seconds(11));
        report.test("a/lib/z", Outcome::Failed("it broke".into()), seconds(1));
        assert_eq!(report.shown(), "passed a/lib/y (11.0 s)\nfailed a/lib/z: it broke\n");
        assert_eq!(report.summary().to_string(), "2 passed, 1 failed, 0 skipped");
        assert!(!report.summary().is_good() && !Report::silent().summary().is_good(), "nothing ran");
    }

    #[test]
    fn what_takes_too_long_is_named() {
        let report = Report::silent();
        report.end("build/release", Outcome::Passed, seconds(101));
        report.end("tests/early", Outcome::Passed, seconds(200));
        report.end("build/debug", Outcome::Passed, seconds(100));
        assert_eq!(report.shown().matches("warning: ").count(), 1, "{}", report.shown());
        assert!(report.shown().contains("warning: build/release took 1 min 41 s"), "{}", report.shown());
    }

    #[test]
    fn the_history_knows_what_failed_and_what_was_longest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.json");
        let report = Report::silent();
        report.test("a", Outcome::Passed, seconds(3));
        report.test("b", Outcome::Failed("no".into()), seconds(5));
        report.test("c", Outcome::Passed, seconds(4));
        report.close(&path).unwrap();
        let history = History::load(&path).unwrap();
        assert_eq!(history.failed(), ["b"]);
        assert_eq!(history.longest(2), "| `c` | 4 |\n| `a` | 3 |\n");
        // A failure does not change how long it usually takes; a success takes it off the list.
        let report = Report { history, ..Report::silent() };
        report.test("b", Outcome::Passed, seconds(1));
        report.test("c", Outcome::Failed("no".into()), seconds(90));
        report.close(&path).unwrap();
        let history = History::load(&path).unwrap();
        assert_eq!((history.failed(), history.seconds("c")), (vec!["c"], 4.0));
        std::fs::write(&path, "{").unwrap();
        assert!(History::load(&path).is_err());
    }

    #[test]
    fn the_time_left_is_that_of_the_longer_lane() {
        let last = |seconds| Last { seconds, failed: false };
        let rows = [("x", 60.0, Lane::Compute), ("y", 400.0, Lane::Wait), ("z", 30.0, Lane::Alone)];
        let history = History(rows.iter().map(|(name, s, _)| ((*name).to_owned(), last(*s))).collect());
        let report = Report::new(history, rows.map(|(name, _, lane)| (name.to_owned(), lane)));
        let said = report.progress();
        assert!(said.contains("3 rows to go, about 3 min 50 s left"), "{said}");
        report.begin("x", Lane::Compute);
        assert!(report.progress().contains("x (0 of about 60 s)"), "{}", report.progress());
        assert!(Report::silent().progress().contains("not known yet"));
    }

    #[test]
    fn junit_is_well_formed() {
        let report = Report::silent();
        report.test("a/lib/x<y>", Outcome::Passed, seconds(1));
        report.test("a/lib/z", Outcome::Failed("1 & 2\u{1b}[0m \"so\"".into()), seconds(2));
        report.test("b/lib/w", Outcome::Skipped("no GPU".into()), seconds(0));
        let xml = report.junit();
        assert!(xml.contains("<testsuite name=\"a\" tests=\"2\" failures=\"1\" skipped=\"0\">"), "{xml}");
        assert!(xml.contains("name=\"a/lib/x&lt;y&gt;\" time=\"1.000\"/>"), "{xml}");
        assert!(xml.contains("<failure>1 &amp; 2?[0m &quot;so&quot;</failure>"), "{xml}");
        assert!(xml.contains("<skipped message=\"no GPU\"/>") && xml.ends_with("</testsuites>\n"), "{xml}");
    }
}
