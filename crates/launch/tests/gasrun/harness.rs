//! Runs cases one after the other, each with a watchdog.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No case may take longer.
const WATCHDOG: Duration = Duration::from_secs(60);

pub type Case = (&'static str, fn());

/// Why a case was not run.
struct Skipped(&'static str);

/// Ends a case that needs what this machine does not have: it is reported as skipped, by name.
pub fn skip(why: &'static str) -> ! {
    resume_unwind(Box::new(Skipped(why)))
}

/// Runs the cases whose name has the word given, or all; or, with `--only NAME`, the one of that name, which may also
/// be one that is run `on_request` alone.
pub fn run(cases: &[Case], on_request: &[Case], words: &[String]) -> ExitCode {
    if words.iter().any(|word| word == "--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<&Case> = match words.iter().position(|word| word == "--only") {
        Some(at) => {
            let only = words.get(at + 1).map_or("", String::as_str);
            let chosen: Vec<_> = cases.iter().chain(on_request).filter(|(name, _)| *name == only).collect();
            if chosen.is_empty() {
                println!("--only: there is no case {only:?}");
                return ExitCode::FAILURE;
            }
            chosen
        }
        None => {
            let wanted = words.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
            cases.iter().filter(|(name, _)| name.contains(wanted)).collect()
        }
    };
    let (mut passed, mut skipped) = (0, 0);
    let mut failures = Vec::new();
    for (name, body) in chosen {
        let start = Instant::now();
        let (done, wait) = mpsc::channel();
        let body = *body;
        std::thread::spawn(move || done.send(catch_unwind(body)));
        let verdict = match wait.recv_timeout(WATCHDOG) {
            Ok(Ok(())) => {
                passed += 1;
                "ok".to_owned()
            }
            Ok(Err(why)) if why.is::<Skipped>() => {
                skipped += 1;
                format!("skipped: {}", why.downcast_ref::<Skipped>().map_or("", |skipped| skipped.0))
            }
            Ok(Err(why)) => {
                failures.push((name, said(&*why)));
                "FAILED".to_owned()
            }
            Err(_) => {
                failures.push((name, "the watchdog bit".to_owned()));
                "FAILED (the watchdog bit)".to_owned()
            }
        };
        println!("test {name} ... {verdict} ({:.2} s)", start.elapsed().as_secs_f64());
    }
    // Once more at the end, where who reads a long log looks, and where its last lines are shown alone.
    for (name, why) in &failures {
        println!("\n{name} failed: {why}");
    }
    println!("\ntest result: {passed} passed; {} failed; {skipped} skipped", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a panic said.
fn said(why: &(dyn Any + Send)) -> String {
    let text = why
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| why.downcast_ref::<&str>().map(|&text| text.to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}
