//! Runs the tests of a program that is also its own ranks, each in a process of its own, as a test runner asks for them.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// A test and its name.
pub type Case = (&'static str, fn());

/// How many tests run at once: most of them wait, most of the time.
const AT_ONCE: usize = 4;

/// Lists the tests (`--list`), or runs those whose name has one of the words in it, or is one (`--exact`), or all. One of
/// them may be `ignored` on this machine, for a reason.
pub fn run(cases: &[Case], ignored: Option<(&str, &str)>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| words.iter().any(|word| word == option);
    let is_ignored = |name: &str| ignored.is_some_and(|(ignored, _)| ignored == name);
    if has("--list") {
        // With `--ignored` those alone.
        let listed = cases.iter().filter(|(name, _)| !has("--ignored") || is_ignored(name));
        listed.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str, word: &str| if has("--exact") { name == word } else { name.contains(word) };
    let is_chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|word| is_wanted(name, word));
    let is_run = |name: &str| is_chosen(name) && (!is_ignored(name) || has("--ignored"));
    let chosen: Vec<&Case> = cases.iter().filter(|(name, _)| is_run(name)).collect();
    if let Some((name, why)) = ignored.filter(|(name, _)| is_chosen(name) && !is_run(name)) {
        println!("test {name} ... ignored, {why}");
    }
    let failed = match chosen[..] {
        [(_, body)] if has("--exact") => {
            // A panic ends the process with an error.
            body();
            0
        }
        _ => run_beside(&chosen),
    };
    let (verdict, passed) = (if failed == 0 { "ok" } else { "FAILED" }, chosen.len() - failed);
    println!("\ntest result: {verdict}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs each in a process of its own: no descriptor that one leaves open for its ranks gets to those of another. Gives the
/// number of those that failed.
fn run_beside(cases: &[&Case]) -> usize {
    let (next, failed) = (Mutex::new(cases.iter()), Mutex::new(0));
    let this = std::env::current_exe().expect("a path");
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(cases.len()) {
            scope.spawn(|| {
                loop {
                    let Some((name, _)) = next.lock().expect("not poisoned").next() else { return };
                    let begun = Instant::now();
                    let mut command = Command::new(&this);
                    let output =
                        command.args([name, "--exact"]).stdin(Stdio::null()).output().expect("started");
                    let took = begun.elapsed().as_secs_f64();
                    let mut failed = failed.lock().expect("not poisoned");
                    if output.status.success() {
                        println!("test {name} ... ok ({took:.2} s)");
                    } else {
                        *failed += 1;
                        println!("test {name} ... FAILED ({took:.2} s)");
                        println!("{}", String::from_utf8_lossy(&output.stdout));
                        println!("{}", String::from_utf8_lossy(&output.stderr));
                    }
                }
            });
        }
    });
    failed.into_inner().expect("not poisoned")
}
