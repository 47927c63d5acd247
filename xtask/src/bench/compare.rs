//! What has changed since an earlier run, beyond what two runs of the same thing differ by.

use super::record::{Record, Row};
use gasworks_testkit::stats::Interval;

/// A change smaller than this share is none, whatever the intervals say: the hour makes as much.
const LEAST: f64 = 0.05;

/// A row that is not what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which.
    pub what: String,
    /// Its median then and now.
    pub was: f64,
    /// The same, now.
    pub is: f64,
}

/// The rows whose intervals do not touch, in the order of the file, and how many rows are in both.
///
/// The machine's own rows (`raw`, `line`) come first in what is returned: where they have changed, the machine has.
pub fn changes(earlier: &Record, now: &Record) -> (Vec<Change>, usize) {
    let (mut found, mut both) = (Vec::new(), 0);
    for row in &now.rows {
        let Some(before) = earlier.rows.iter().find(|r| r.key() == row.key()) else { continue };
        both += 1;
        let (Some(was), Some(is)) = (spread(before), spread(row)) else { continue };
        let apart = was.high < is.low || is.high < was.low;
        if apart && (is.median / was.median - 1.0).abs() > LEAST {
            found.push((of_the_machine(row), Change { what: named(row), was: was.median, is: is.median }));
        }
    }
    found.sort_by_key(|(machine, _)| !machine);
    (found.into_iter().map(|(_, change)| change).collect(), both)
}

fn of_the_machine(row: &Row) -> bool {
    ["raw", "line", "local"].contains(&row.transport.as_str())
}

/// The interval of a row's blocks; of a row without blocks (memory) its median alone.
fn spread(row: &Row) -> Option<Interval> {
    let point = Interval { median: row.p50, low: row.min, high: row.p99, count: row.blocks.len() };
    Interval::of(&row.blocks).or((row.p50 > 0.0).then_some(point))
}

fn named(row: &Row) -> String {
    let variant = if row.variant.is_empty() { String::new() } else { format!(" {}", row.variant) };
    let threads = if row.threads > 1 { format!(", {} threads", row.threads) } else { String::new() };
    let place = if row.place.is_empty() { String::new() } else { format!(", {}", row.place) };
    let Row { bench, bytes, transport, mode, ranks, .. } = row;
    format!("{bench}{variant}, {bytes} B, {transport}, {mode}, {ranks} ranks{threads}{place}")
}

/// Prints them.
pub fn print(earlier: &Record, now: &Record) {
    let (changes, both) = changes(earlier, now);
    println!("\ncompared with the run of {} ({} rows in both):", earlier.commit, both);
    if earlier.machine != now.machine {
        println!("  another machine: {}", earlier.machine);
    }
    for Change { what, was, is } in &changes {
        println!(
            "  {what}: {} -> {} ({:+.0} %)",
            super::judge::shown(*was),
            super::judge::shown(*is),
            100.0 * (is / was - 1.0)
        );
    }
    if changes.is_empty() {
        println!("  no row has changed beyond its noise");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::example;

    fn record(rows: Vec<Row>) -> Record {
        Record { rows, ..Record::default() }
    }

    fn around(bench: &str, transport: &str, middle: f64) -> Row {
        let blocks: Vec<f64> = (0..15).map(|i| middle * (0.993 + f64::from(i) / 1000.0)).collect();
        example(bench, transport, 8, &blocks)
    }

    #[test]
    fn only_what_is_beyond_the_noise_is_a_change() {
        let before =
            record(vec![around("a", "pshm", 100.0), around("b", "pshm", 100.0), around("c", "raw", 50.0)]);
        let now = record(vec![
            around("a", "pshm", 101.0),
            around("b", "pshm", 120.0),
            around("c", "raw", 40.0),
            around("d", "pshm", 1.0),
        ]);
        let (found, both) = changes(&before, &now);
        assert_eq!(both, 3);
        assert_eq!(
            found.iter().map(|c| c.what.chars().next().unwrap()).collect::<String>(),
            "cb",
            "{found:?}"
        );
        assert!((found[1].was - 100.0).abs() < 1e-9 && (found[1].is - 120.0).abs() < 1e-9);
    }

    #[test]
    fn a_wide_row_does_not_change() {
        let wide: Vec<f64> = (0..15).map(|i| 50.0 + 10.0 * f64::from(i)).collect();
        let before = record(vec![example("a", "pshm", 8, &wide)]);
        assert!(changes(&before, &record(vec![around("a", "pshm", 100.0)])).0.is_empty());
    }

    #[test]
    fn other_conditions_are_another_row() {
        let mut row = around("a", "pshm", 500.0);
        row.place = "one core".into();
        assert_eq!(changes(&record(vec![around("a", "pshm", 100.0)]), &record(vec![row])).1, 0);
    }
}
