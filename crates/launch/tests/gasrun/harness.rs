//! Runs cases one after the other, each with a watchdog.

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No case may take longer.
const WATCHDOG: Duration = Duration::from_secs(60);

pub type Case = (&'static str, fn());

/// Runs the cases whose name has the word given, or all; `lacking` says what a case needs and this machine lacks.
pub fn run(cases: &[Case], lacking: fn(&str) -> Option<String>, words: &[String]) -> ExitCode {
    let wanted = words.iter().find(|word| !word.starts_with('-'));
    if words.iter().any(|word| word == "--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, body) in
        cases.iter().filter(|(name, _)| wanted.is_none_or(|wanted| name.contains(wanted.as_str())))
    {
        if let Some(lacking) = lacking(name) {
            println!("test {name} ... skipped ({lacking})");
            skipped += 1;
            continue;
        }
        let start = Instant::now();
        let (done, wait) = mpsc::channel();
        let body = *body;
        std::thread::spawn(move || done.send(catch_unwind(body).is_ok()));
        let verdict = match wait.recv_timeout(WATCHDOG) {
            Ok(true) => "ok",
            Ok(false) => "FAILED",
            Err(_) => "FAILED (the watchdog bit)",
        };
        println!("test {name} ... {verdict} ({:.2} s)", start.elapsed().as_secs_f64());
        if verdict == "ok" { passed += 1 } else { failed += 1 }
    }
    println!("\ntest result: {passed} passed; {failed} failed; {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
