//! A row of results: what `--json` prints one to a line, and the columns of the table.

use serde::{Deserialize, Serialize};

/// What one measurement gave. Times are in nanoseconds for each operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The name of the bench; `raw-...` for the machine itself.
    pub bench: String,
    /// The way it was done, where there are several.
    pub variant: String,
    /// `pshm`; `raw` for shared memory without the library, `local` for memory of one process.
    pub transport: String,
    /// `seq` or `par`.
    pub mode: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// Threads in each rank.
    pub threads: u32,
    /// Bytes that an operation moves, 0 if it is not about bytes.
    pub bytes: u64,
    /// `ns` or `B`.
    pub unit: String,
    /// The best block.
    pub min: f64,
    /// The median of the blocks.
    pub p50: f64,
    /// Of single operations where they are long enough to be timed alone, else of blocks.
    pub p99: f64,
    /// The same.
    pub p999: f64,
    /// Each block's figure: a time for each operation, blocks in which the machine was elsewhere left out.
    pub blocks: Vec<f64>,
    /// Blocks left out.
    pub dropped: u32,
    /// What passing a line from one rank to the other cost meanwhile, in nanoseconds: the median; 0 but in a job of two.
    pub line: f64,
    /// The same just before each block.
    pub lines: Vec<f64>,
    /// Whether this is the best of the variants of a `raw` measurement with these bytes.
    pub best: bool,
    /// The machine.
    pub machine: String,
}

/// The table's head, to which [`Row::line`] fits.
pub fn head() -> String {
    format!(
        "{:<15} {:<38} {:>9} {:>11} {:>11} {:>11} {:>11} {:>13} {:>5}\n",
        "bench", "variant", "bytes", "min", "p50", "p99", "p999", "rate", "line"
    )
}

impl Row {
    /// The row as a line of the table.
    pub fn line(&self) -> String {
        let star = if self.best { " *" } else { "" };
        format!(
            "{:<15} {:<38} {:>9} {:>11} {:>11} {:>11} {:>11} {:>13} {:>5}\n",
            self.bench,
            format!("{}{star}", self.variant),
            if self.bytes == 0 { "-".into() } else { self.bytes.to_string() },
            self.shown(self.min),
            self.shown(self.p50),
            self.shown(self.p99),
            self.shown(self.p999),
            self.rate(),
            if self.line > 0.0 { format!("{:.0}", self.line) } else { String::new() }
        )
    }

    fn shown(&self, figure: f64) -> String {
        match self.unit.as_str() {
            "1" => format!("{figure:.3}"),
            "B" => format!("{:.1} KiB", figure / 1024.0),
            _ if figure < 100.0 => format!("{figure:.2} ns"),
            _ if figure < 100e3 => format!("{figure:.0} ns"),
            _ if figure < 100e6 => format!("{:.1} us", figure / 1e3),
            _ => format!("{:.1} ms", figure / 1e6),
        }
    }

    fn rate(&self) -> String {
        if self.unit != "ns" || self.p50 <= 0.0 {
            String::new()
        } else if self.bytes >= 64 {
            format!("{:.2} GB/s", self.bytes as f64 / self.p50)
        } else {
            format!("{:.3} M/s", 1e3 / self.p50)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64, p50: f64) -> Row {
        Row {
            bench: "am-rate".into(),
            variant: "short".into(),
            transport: "pshm".into(),
            mode: "seq".into(),
            ranks: 2,
            threads: 1,
            bytes,
            unit: "ns".into(),
            min: p50,
            p50,
            p99: p50,
            p999: 1.5e6,
            blocks: vec![p50],
            dropped: 0,
            line: 61.0,
            lines: vec![61.0],
            best: true,
            machine: "here".into(),
        }
    }

    #[test]
    fn a_row_survives_json_with_every_field() {
        let json = serde_json::to_value(row(8, 50.0)).expect("it is plain data");
        let names: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
        for name in
            ["bench", "transport", "mode", "ranks", "bytes", "unit", "min", "p50", "p99", "p999", "machine"]
        {
            assert!(names.contains(&name), "{name} is missing among {names:?}");
        }
        assert_eq!(serde_json::from_value::<Row>(json).expect("a row"), row(8, 50.0));
    }

    #[test]
    fn lines_fit_the_head_and_say_rates() {
        let line = row(0, 50.0).line();
        assert_eq!(line.len(), head().len(), "{line}");
        assert!(
            line.contains("short *") && line.contains("20.000 M/s") && line.contains("1500.0 us"),
            "{line}"
        );
        assert!(row(4096, 400.0).line().contains("10.24 GB/s"));
    }
}
