//! The rows of a run, in the shape of gasperf's, and the file that holds them.

use anyhow::{Context, Result, ensure};
use gasworks_testkit::stats::{median, quantile, sorted};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One measurement of one system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The name of the bench.
    pub bench: String,
    /// The way it was done, where there are several.
    #[serde(default)]
    pub variant: String,
    /// `pshm` is ours, `c` ours from C; else the peer, or `raw`, `local`, `line`.
    pub transport: String,
    /// `seq` or `par`.
    pub mode: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// Threads in each rank.
    #[serde(default = "one")]
    pub threads: u32,
    /// Bytes that an operation moves.
    pub bytes: u64,
    /// `ns` or `B`.
    pub unit: String,
    /// The best block.
    pub min: f64,
    /// The median of the blocks.
    pub p50: f64,
    /// Of operations or blocks.
    pub p99: f64,
    /// The same.
    pub p999: f64,
    /// Each block's figure.
    #[serde(default)]
    pub blocks: Vec<f64>,
    /// Blocks left out.
    #[serde(default)]
    pub dropped: u32,
    /// Whether it is the best of the variants of a raw measurement.
    #[serde(default)]
    pub best: bool,
    /// A peer's that is below what it should have reached: it stands for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub void: bool,
    /// The machine.
    #[serde(default)]
    pub machine: String,
    /// The conditions, where they are not two pinned ranks at real-time priority: `one core`, `ordinary priority`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

fn one() -> u32 {
    1
}

impl Row {
    /// The same row, of these blocks.
    pub fn of_blocks(mut self, blocks: Vec<f64>, dropped: u32) -> Self {
        let order = sorted(&blocks);
        let middle = median(&blocks).unwrap_or(f64::NAN);
        (self.min, self.p50) = (quantile(&order, 0.0), middle);
        (self.p99, self.p999) = (quantile(&order, 0.99), quantile(&order, 0.999));
        (self.blocks, self.dropped) = (blocks, dropped);
        self
    }

    /// What is wrong with it, if anything is.
    pub fn sane(&self) -> Result<()> {
        let figures = [self.min, self.p50, self.p99, self.p999];
        let named =
            || format!("{} {} of {} bytes over {}", self.bench, self.variant, self.bytes, self.transport);
        ensure!(
            figures.iter().all(|f| f.is_finite() && *f >= 0.0),
            "{}: {figures:?} are no figures",
            named()
        );
        ensure!(self.min <= self.p50, "{}: the best is {} and the median {}", named(), self.min, self.p50);
        ensure!(self.p99 <= self.p999, "{}: p99 is {} and p999 {}", named(), self.p99, self.p999);
        ensure!((self.p50 > 0.0 || self.unit == "B") && self.ranks > 0, "{}: nothing was measured", named());
        ensure!(["ns", "B"].contains(&self.unit.as_str()), "{}: no unit {:?}", named(), self.unit);
        Ok(())
    }

    /// What makes two rows the same measurement.
    pub fn key(&self) -> (&str, &str, &str, &str, &str, u32, u32, u64) {
        let Self { bench, variant, transport, mode, place, ranks, threads, bytes, .. } = self;
        (bench, variant, transport, mode, place, *ranks, *threads, *bytes)
    }
}

/// How one of our figures stands to its limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What was measured.
    pub what: String,
    /// Ours, with its unit.
    pub ours: String,
    /// What it is compared with, and its figure.
    pub against: String,
    /// The median of the pairwise ratios, or our figure where the limit is one.
    pub ratio: f64,
    /// The ends of the interval.
    pub interval: [f64; 2],
    /// Pairs.
    pub pairs: usize,
    /// The most that it may be.
    pub limit: f64,
    /// `met`, `not met`, or why neither can be said.
    pub verdict: String,
}

/// What a run leaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since 1970.
    pub when: u64,
    /// The machine.
    pub machine: String,
    /// The commit that was measured.
    #[serde(default)]
    pub commit: String,
    /// The peers and their versions.
    pub peers: Vec<String>,
    /// What was said of the run: what was missing, what was skipped.
    pub notes: Vec<String>,
    /// Everything measured.
    pub rows: Vec<Row>,
    /// The limits.
    pub verdicts: Vec<Verdict>,
    /// The limits of what programs in C see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from_c: Vec<Verdict>,
}

impl Record {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is no file of `cargo xtask bench --json`", path.display()))
    }

    /// Writes a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("putting the rows into JSON")?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
    }
}

/// The rows among lines of a program's output; lines that are no objects are left alone.
pub fn rows_in(output: &str) -> Result<Vec<Row>> {
    let lines = output.lines().map(str::trim).filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).with_context(|| format!("understanding the row {line}")))
        .collect()
}

#[cfg(test)]
pub fn example(bench: &str, transport: &str, bytes: u64, blocks: &[f64]) -> Row {
    let row = Row {
        bench: bench.into(),
        transport: transport.into(),
        mode: "seq".into(),
        unit: "ns".into(),
        ranks: 2,
        threads: 1,
        bytes,
        ..Row::default()
    };
    row.of_blocks(blocks.to_vec(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        let row = example("am-latency", "pshm", 8, &[3.0, 1.0, 2.0]);
        let verdict = Verdict { what: "x".into(), interval: [0.5, 0.6], ..Verdict::default() };
        let record = Record { rows: vec![row], verdicts: vec![verdict], ..Record::default() };
        record.save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap(), record);
        std::fs::write(&path, "[]").unwrap();
        assert!(Record::load(&path).unwrap_err().to_string().contains("run.json"));
    }

    #[test]
    fn rows_of_gasperf_and_of_peers_are_read() {
        let output = concat!(
            "a line of the launcher\n",
            r#"{"bench":"barrier","variant":"all","transport":"pshm","mode":"seq","ranks":2,"threads":1,"bytes":0,"unit":"ns","min":1,"p50":2,"p99":3,"p999":4,"blocks":[2,2.5],"dropped":1,"best":true,"machine":"m"}"#,
            "\n",
            r#"{"bench":"barrier","transport":"mpich","mode":"seq","ranks":2,"bytes":0,"unit":"ns","min":1,"p50":2,"p99":3,"p999":4,"samples":5}"#,
        );
        let rows = rows_in(output).unwrap();
        assert_eq!((rows.len(), rows[0].dropped, rows[0].blocks.len(), rows[1].threads), (2, 1, 2, 1));
        assert!(rows.iter().all(|row| row.sane().is_ok()));
        assert!(rows_in("{\"bench\":1}").unwrap_err().to_string().contains("understanding the row"));
    }

    #[test]
    fn what_cannot_be_is_found() {
        let good = example("barrier", "pshm", 0, &[1.0, 2.0]);
        good.sane().unwrap();
        let wrong: [fn(&mut Row); 5] = [
            |row| row.p50 = f64::NAN,
            |row| row.min = 5.0,
            |row| row.p99 = 9.0,
            |row| (row.min, row.p50) = (0.0, 0.0),
            |row| row.unit = "s".into(),
        ];
        for spoil in wrong {
            let mut row = good.clone();
            spoil(&mut row);
            assert!(row.sane().is_err(), "{row:?}");
        }
    }
}
