//! The ordinary tests, which `cargo nextest run` runs as well: run by nextest where it is installed, else as cargo would
//! run them, and reported one by one.

use crate::report::{Outcome, Report};
use crate::rows::Lane;
use crate::world::{Build, TestProgram, World};
use anyhow::{Context, Result, ensure};
use gasworks_testkit::needs::ExpectedSkips;
use gasworks_testkit::programs::Fixture;
use gasworks_testkit::{Cmd, Log, cases};
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

/// Which of the tests: nextest's profiles of these names say which tables need optimised programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Those that need nothing but the dev profile.
    Early,
    /// Those that run optimised programs, the C interface or the software NIC.
    Late,
    /// Those that daily runs leave out.
    Night,
    /// The libraries' own tests and the suite of transports, of the documented subset.
    Quick,
}

impl Part {
    /// The name of nextest's profile.
    pub fn name(self) -> &'static str {
        match self {
            Part::Early => "early",
            Part::Late => "late",
            Part::Night => "night",
            Part::Quick => "quick",
        }
    }

    /// Where its row runs. Beside builds the jobs over uGNI took about twice as long.
    pub fn lane(self) -> Lane {
        if self == Part::Late { Lane::Alone } else { Lane::Wait }
    }

    fn fixtures(self) -> &'static [Fixture] {
        match self {
            Part::Early | Part::Night | Part::Quick => &[Fixture::Debug],
            Part::Late => &Fixture::ALL,
        }
    }
}

/// Whether nextest is installed.
pub fn has_nextest() -> bool {
    Cmd::cargo("nextest --version").works()
}

/// Runs a part, of which `only` says which tests, by name; all, if it says nothing.
pub fn run(world: &World, log: &Log, report: &Report, part: Part, only: Option<&[String]>) -> Result<()> {
    world.built(Build::Tests)?;
    for &fixture in part.fixtures() {
        world.fixture(fixture)?;
    }
    let _alone = world.ordinary.lock().unwrap_or_else(|e| e.into_inner());
    let skips = ExpectedSkips::load()?;
    let told = |test: &Test| report.test(&test.name, test.outcome(&skips), test.took);
    let count = if has_nextest() {
        by_nextest(world, log, part, only, told)?
    } else {
        by_cargo(world, log, part, only, told)?
    };
    ensure!(count > 0 || only.is_some(), "no test ran");
    Ok(())
}

/// Tests at once: most of those that run beside each other wait more than they compute.
fn width() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// The command, which is told what has been prepared, and which products tables have.
fn prepared(cmd: Cmd, world: &World, part: Part) -> Cmd {
    let cmd = if world.is_nightly { cmd.env(cases::NIGHTLY, "1") } else { cmd };
    part.fixtures().iter().fold(cmd, |cmd, fixture| cmd.env(fixture.variable(), "1"))
}

/// A test that has ended.
#[derive(Clone, Debug, PartialEq)]
struct Test {
    /// Package, target and name, with slashes between.
    name: String,
    ended: Ended,
    took: Duration,
}

#[derive(Clone, Debug, PartialEq)]
enum Ended {
    Well,
    Badly(String),
    Ignored,
}

impl Test {
    /// An ignored test is a skip only where `ci/expected-skips` knows it: nothing is ignored for good.
    fn outcome(&self, skips: &ExpectedSkips) -> Outcome {
        match &self.ended {
            Ended::Well => Outcome::Passed,
            Ended::Badly(said) => Outcome::Failed(said.clone()),
            Ended::Ignored => match skips.reason(&self.name) {
                Some(reason) => Outcome::Skipped(reason),
                None => Outcome::Failed("it is ignored, and ci/expected-skips has no line for it".into()),
            },
        }
    }
}

fn by_nextest(
    world: &World,
    log: &Log,
    part: Part,
    only: Option<&[String]>,
    told: impl Fn(&Test),
) -> Result<usize> {
    let mut cmd = Cmd::new("env")
        .words("--default-signal=INT,QUIT cargo nextest run --workspace --no-fail-fast --message-format libtest-json")
        .words(&format!("--profile {} --test-threads {} --no-tests pass", part.name(), width()))
        .env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    if let Some(only) = only {
        cmd = cmd.arg("-E").arg(filter(only));
    }
    let cmd = prepared(cmd, world, part);
    log.note(&format!("+ {}", cmd.shown()))?;
    let mut child = cmd.spawn_into(log)?;
    let out = child.stdout.take().context("nextest's output")?;
    let (mut count, mut failed) = (0, Vec::new());
    for line in BufReader::new(out).lines() {
        let line = line.context("reading nextest's output")?;
        if let Some(test) = event(&line) {
            count += usize::from(test.ended != Ended::Ignored);
            if let Ended::Badly(_) = &test.ended { failed.push(test) } else { told(&test) }
        }
    }
    let code = finish(&mut child)?;
    // What tests of other harnesses than the usual one said is not in the messages, but at the end of the log.
    let output = log.tail(usize::MAX).join("\n");
    for mut test in failed {
        let name = test.name.splitn(3, '/').last().unwrap_or_default();
        if test.ended == Ended::Badly(String::new()) {
            test.ended = Ended::Badly(said_by(&output, name));
        }
        told(&test);
    }
    // 100: tests failed, and each has been reported.
    ensure!([0, 100].contains(&code), "nextest ended with code {code}");
    Ok(count)
}

fn finish(child: &mut Child) -> Result<i32> {
    child.wait().context("waiting for nextest")?.code().context("nextest was killed")
}

/// A filter expression of nextest's for tests by our names.
fn filter(names: &[String]) -> String {
    let one = |name: &String| {
        let mut parts = name.splitn(3, '/');
        let (package, target, test) = (parts.next()?, parts.next()?, parts.next()?);
        let package = if package == "gasworks" || package == "xtask" {
            package.to_owned()
        } else {
            format!("gasworks-{package}")
        };
        let binary = if target == "lib" { "kind(lib)".to_owned() } else { format!("binary(={target})") };
        Some(format!("(package(={package}) & {binary} & test(={test}))"))
    };
    let all: Vec<_> = names.iter().filter_map(one).collect();
    if all.is_empty() { "none()".into() } else { all.join(" | ") }
}

/// A test's end in a line of nextest's messages, whose format is that of libtest.
fn event(line: &str) -> Option<Test> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| message[key].as_str();
    if text("type")? != "test" {
        return None;
    }
    let ended = match text("event")? {
        "ok" => Ended::Well,
        "failed" | "timeout" => Ended::Badly(text("stdout").unwrap_or_default().trim().to_owned()),
        "ignored" => Ended::Ignored,
        _ => return None,
    };
    let took = Duration::from_secs_f64(message["exec_time"].as_f64().unwrap_or(0.0));
    Some(Test { name: named(text("name")?)?, ended, took })
}

/// Our name of a test, by nextest's: `PACKAGE::TARGET$TEST`, or `PACKAGE$TEST` of a library.
fn named(id: &str) -> Option<String> {
    let (binary, test) = id.split_once('$')?;
    let (package, target) = binary.split_once("::").unwrap_or((binary, "lib"));
    let package = package.strip_prefix("gasworks-").unwrap_or(package);
    let target = target.strip_prefix("bin/").unwrap_or(target);
    // A library's own name, or its package's twice.
    let target = if target.replace('_', "-") == format!("gasworks-{package}") { "lib" } else { target };
    Some(format!("{package}/{target}/{test}"))
}

/// Runs the same programs without nextest. What it can be told of a test's time is the program's.
fn by_cargo(
    world: &World,
    log: &Log,
    part: Part,
    only: Option<&[String]>,
    told: impl Fn(&Test),
) -> Result<usize> {
    // All go in one part: only nextest's profiles know which need what, and which run daily.
    if matches!(part, Part::Early | Part::Night) {
        return Ok(usize::from(only.is_none()));
    }
    let mut count = 0;
    let is_due = |program: &&TestProgram| {
        let TestProgram { package, target, .. } = *program;
        let is_library = target == "lib" && !package.starts_with("ugni-sim");
        program.target != "loom"
            && (part != Part::Quick || is_library || package == "pshm" || target == "conformance")
    };
    for program in world.built(Build::Tests)?.tests.iter().filter(is_due) {
        let prefix = format!("{}/{}/", program.package, program.target);
        let chosen: Option<Vec<&str>> =
            only.map(|only| only.iter().filter_map(|name| name.strip_prefix(&prefix)).collect());
        if chosen.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let cmd = program.cmd().words(&format!("--test-threads {}", width())).limit(1200);
        let cmd = prepared(cmd, world, part);
        // Test programs take one name each time, whichever harness they have.
        let cmds = match chosen {
            Some(chosen) => chosen.into_iter().map(|name| cmd.clone().arg("--exact").arg(name)).collect(),
            None => vec![cmd],
        };
        for cmd in cmds {
            let ended = log.run(&cmd)?;
            let tests = tests_in(&ended.output, &prefix, ended.took);
            let failed = tests.iter().any(|test| matches!(test.ended, Ended::Badly(_)));
            ensure!(
                ended.ok() || failed,
                "{}: {}, though no test failed",
                program.path.display(),
                ended.how()
            );
            count += tests.iter().filter(|test| test.ended != Ended::Ignored).count();
            tests.iter().for_each(&told);
        }
    }
    Ok(count)
}

/// The tests that a test program names in its output.
fn tests_in(output: &str, prefix: &str, took: Duration) -> Vec<Test> {
    let line = |line: &str| {
        let (name, how) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let name = name.strip_suffix(" - should panic").unwrap_or(name).trim();
        let ended = match how.split(',').next()?.trim() {
            "ok" => Ended::Well,
            "FAILED" => Ended::Badly(said_by(output, name)),
            "ignored" => Ended::Ignored,
            _ => return None,
        };
        Some(Test { name: format!("{prefix}{name}"), ended, took })
    };
    output.lines().filter_map(line).collect()
}

/// What a failed test printed: the block under its name.
fn said_by(output: &str, name: &str) -> String {
    let block = [format!("---- {name} stdout ----"), format!("---- {name} ----")]
        .iter()
        .find_map(|head| output.split_once(head.as_str()).map(|(_, rest)| rest));
    let block = block.map(|rest| rest.split("\n---- ").next().unwrap_or(rest));
    let block = block.map(|rest| rest.split("\nfailures:").next().unwrap_or(rest));
    let block = block.map(|rest| rest.split("\n    failures:").next().unwrap_or(rest));
    block.map_or_else(|| "see the log".to_owned(), |said| said.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_package_target_and_test() {
        for (id, name) in [
            ("gasworks-shmem::heap$wraps", "shmem/heap/wraps"),
            ("gasworks-shmem$inbox::tests::x", "shmem/lib/inbox::tests::x"),
            ("gasworks$job::tests::y", "gasworks/lib/job::tests::y"),
            ("gasworks-launch::bin/gasrun$z", "launch/gasrun/z"),
            ("xtask::bin/xtask$tidy::w", "xtask/xtask/tidy::w"),
        ] {
            assert_eq!(named(id).as_deref(), Some(name));
        }
        assert_eq!(named("no dollar"), None);
    }

    #[test]
    fn events_are_read() {
        let ok = r#"{"type":"test","event":"ok","name":"gasworks-os$a","exec_time":0.25}"#;
        let test = event(ok).unwrap();
        assert_eq!(
            (test.name.as_str(), test.ended, test.took),
            ("os/lib/a", Ended::Well, Duration::from_millis(250))
        );
        let bad = r#"{"type":"test","event":"failed","name":"gasworks-os$a","exec_time":1,"stdout":"why\n"}"#;
        assert_eq!(event(bad).unwrap().ended, Ended::Badly("why".into()));
        for other in
            [r#"{"type":"suite","event":"ok"}"#, r#"{"type":"test","event":"started","name":"a$b"}"#, "x"]
        {
            assert_eq!(event(other), None);
        }
    }

    #[test]
    fn what_a_test_program_prints_is_read() {
        let output = "running 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\n\
                      test e ... ignored, for a reason\n\nfailures:\n\n---- d stdout ----\npanicked: no\n\n\
                      failures:\n    d\n\ntest result: FAILED. 2 passed; 1 failed; 1 ignored\n";
        let tests = tests_in(output, "p/t/", Duration::ZERO);
        let shown: Vec<_> = tests.iter().map(|t| (t.name.as_str(), t.ended.clone())).collect();
        assert_eq!(
            shown,
            [
                ("p/t/a::b", Ended::Well),
                ("p/t/c", Ended::Well),
                ("p/t/d", Ended::Badly("panicked: no".into())),
                ("p/t/e", Ended::Ignored)
            ]
        );
    }

    #[test]
    fn an_ignored_test_needs_a_line_of_its_own() {
        let skips = ExpectedSkips::load().unwrap();
        let ignored = |name: &str| Test { name: name.into(), ended: Ended::Ignored, took: Duration::ZERO };
        assert!(matches!(ignored("os/lib/whatever").outcome(&skips), Outcome::Failed(_)));
        assert!(matches!(ignored("perf/budget/put-8").outcome(&skips), Outcome::Skipped(_)));
    }

    #[test]
    fn a_filter_names_each_test() {
        let names = ["shmem/heap/wraps", "gasworks/lib/a::b"].map(String::from);
        assert_eq!(
            filter(&names),
            "(package(=gasworks-shmem) & binary(=heap) & test(=wraps)) | (package(=gasworks) & kind(lib) & test(=a::b))"
        );
        assert_eq!(filter(&["nonsense".into()]), "none()");
    }
}
