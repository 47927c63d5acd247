//! The table.

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
        let mut each: Vec<f64> = times[kind].iter().map(|t| t.as_secs_f64() * 1e6 / echoes).collect();
        let mut ratios: Vec<f64> = times[kind]
            .iter()
            .zip(&times[0])
            .map(|(own, plain)| own.as_secs_f64() / plain.as_secs_f64())
            .collect();
        let (low, high) = interval(&mut ratios);
        let ratio = format!("{:.3} ({low:.3} to {high:.3})", median(&mut ratios));
        let calls = calls[kind].map_or("-".into(), |calls| format!("{calls:.3}"));
        let (size, connections, each) = (case.size, case.connections, median(&mut each));
        println!("{size:>8} {connections:>6}  {name:<6} {each:>12.2}  {ratio:>24}  {calls:>10}");
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// The order statistics between which the median lies with at least 95 % (that of a fair coin's heads); all there is if
/// there are too few.
fn interval(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let (mut outside, mut term, mut rank) = (0.0, 0.5f64.powi(n as i32), 0);
    while outside + term <= 0.025 {
        outside += term;
        term *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    let low = rank.saturating_sub(1);
    (values[low], values[n - 1 - low])
}
