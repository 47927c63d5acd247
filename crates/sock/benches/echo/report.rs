//! The table.

use gasworks_testkit::stats::{median, shown};
use std::time::Duration;

use crate::Case;
use crate::servers::KINDS;

/// The head of the table.
pub fn head() {
    println!(
        "{:>8} {:>6}  {:<6} {:>12}  {:>24}  {:>10}",
        "bytes", "conns", "server", "us for one", "ratio (95 % interval)", "calls"
    );
}

/// The rows of one case: time for one echo, ratio to plain epoll turn by turn, system calls for one echo.
pub fn row(case: &Case, times: &[Vec<Duration>], calls: &[Option<f64>]) {
    let echoes = (case.rounds * case.connections) as f64;
    for (kind, name) in KINDS.iter().enumerate() {
        let each: Vec<f64> = times[kind].iter().map(|t| t.as_secs_f64() * 1e6 / echoes).collect();
        let ratios: Vec<f64> = times[kind]
            .iter()
            .zip(&times[0])
            .map(|(own, plain)| own.as_secs_f64() / plain.as_secs_f64())
            .collect();
        let ratio = shown(&ratios, 3);
        let calls = calls[kind].map_or("-".into(), |calls| format!("{calls:.3}"));
        let (size, connections, each) = (case.size, case.connections, median(&each).unwrap_or(f64::NAN));
        println!("{size:>8} {connections:>6}  {name:<6} {each:>12.2}  {ratio:>24}  {calls:>10}");
    }
}
