//! A folder of reads, and what programs count in them.

use crate::common::{alone, gasrun};
use gasworks_examples::report::Report;
use gasworks_testkit::Ended;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary folder.
pub struct Folder(TempDir);

impl Folder {
    /// An empty one.
    pub fn new() -> Self {
        Self(TempDir::with_prefix("kmers-").unwrap())
    }

    /// The path of a file in it, or of the folder with an empty name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Reads of a random genome of 20,000 bases.
    pub fn reads(&self) -> PathBuf {
        let path = self.path("reads.fastq");
        let ended = alone("draw-reads", &["--genome-size", "20000", "--seed", "5", "--out", text(&path)]);
        assert!(ended.ok(), "{}", ended.output);
        path
    }

    /// The report that a program writes to the path it is given.
    pub fn report(&self, run: impl FnOnce(&str) -> Ended) -> Report {
        let out = self.path("report.json");
        let ended = run(text(&out));
        assert!(ended.ok(), "{}", ended.output);
        let report = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        fs::remove_file(out).unwrap();
        report
    }

    /// What so many ranks count.
    pub fn distributed(&self, ranks: usize, input: &Path, k: &str) -> Report {
        self.report(|out| gasrun(ranks, "kmer-count", &["--input", text(input), "-k", k, "--out", out]))
    }
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
