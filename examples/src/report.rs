//! What a count leaves behind as JSON, for people and for the demo.

use crate::spectrum::Spectrum;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// One count of one file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Report {
    /// The program that counted.
    pub program: String,
    /// The file.
    pub input: String,
    /// Length of a k-mer.
    pub k: u32,
    /// Ranks that took part.
    pub ranks: u32,
    /// Sequences in the file; 0 if the program does not say.
    pub sequences: u64,
    /// Time from the first byte read to the finished spectrum.
    pub seconds: f64,
    /// K-mers counted in a second, all ranks together.
    pub rate: f64,
    /// K-mers counted.
    pub kmers: u64,
    /// Distinct k-mers.
    pub distinct: u64,
    /// Sum over every k-mer with its count, in hexadecimal.
    pub checksum: String,
    /// Memory of all tables together, in bytes; 0 if there was none.
    pub table_bytes: u64,
    /// (multiplicity, distinct k-mers), the last bin holding all that are seen more often.
    pub spectrum: Vec<(usize, u64)>,
}

impl Report {
    /// Describes a count.
    pub fn new(program: &str, input: &Path, k: u32, ranks: u32, seconds: f64, spectrum: &Spectrum) -> Self {
        Self {
            program: program.to_owned(),
            input: input.display().to_string(),
            k,
            ranks,
            sequences: 0,
            seconds,
            rate: spectrum.total() as f64 / seconds.max(1e-9),
            kmers: spectrum.total(),
            distinct: spectrum.distinct(),
            checksum: format!("{:016x}", spectrum.checksum()),
            table_bytes: 0,
            spectrum: spectrum.bins().collect(),
        }
    }

    /// Writes the report to a file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).context("cannot print the report as JSON")?;
        write_file(path, (text + "\n").as_bytes())
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "{:.1} M {}-mers, {:.1} M distinct, in {:.2} s: {:.1} M k-mers/s, checksum {}",
            self.kmers as f64 / 1e6,
            self.k,
            self.distinct as f64 / 1e6,
            self.seconds,
            self.rate / 1e6,
            self.checksum
        )
    }
}

/// Writes a whole file, or says which one could not be written and why.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_file_and_a_bad_path_is_named() {
        let spectrum = Spectrum::of([(1, 1), (9, 3)].into_iter());
        let report = Report::new("test", Path::new("reads.fa"), 21, 4, 2.0, &spectrum);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        report.write(&path).unwrap();
        let read: Report = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, report);
        assert_eq!(read.rate, 2.0);
        let error = report.write(&folder.path().join("none/report.json")).unwrap_err();
        assert!(format!("{error:#}").contains("cannot write"));
        assert!(format!("{error:#}").contains("No such file"));
    }
}
