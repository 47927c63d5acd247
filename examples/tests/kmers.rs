//! The k-mer counter: against the serial count, against jellyfish, and on input that is wrong.

mod common;

use common::{alone, gasrun};
use flate2::{Compression, write::GzEncoder};
use gasworks_examples::kmer::{K, letters, scan};
use gasworks_examples::reads::Reads;
use gasworks_examples::report::Report;
use gasworks_examples::table::KmerTable;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const COUNT: &str = env!("CARGO_BIN_EXE_kmer-count");

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::with_prefix("kmers-").unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// Reads of a random genome of 20,000 bases.
    fn reads(&self) -> PathBuf {
        let path = self.path("reads.fastq");
        let args = ["--genome-size", "20000", "--seed", "5", "--out", text(&path)];
        let ended = alone(env!("CARGO_BIN_EXE_draw-reads"), &args);
        assert!(ended.status.success(), "{}", ended.output);
        path
    }

    fn report(&self, run: impl FnOnce(&str) -> gasworks_testkit::processes::Ended) -> Report {
        let out = self.path("report.json");
        let ended = run(text(&out));
        assert!(ended.status.success(), "{}", ended.output);
        let report = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        fs::remove_file(out).unwrap();
        report
    }

    fn serial(&self, input: &Path, k: &str) -> Report {
        let program = env!("CARGO_BIN_EXE_kmer-serial");
        self.report(|out| alone(program, &["--input", text(input), "-k", k, "--out", out]))
    }

    fn distributed(&self, ranks: u32, input: &Path, k: &str) -> Report {
        self.report(|out| gasrun(ranks, COUNT, &["--input", text(input), "-k", k, "--out", out]))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn same(one: &Report, other: &Report) {
    let key = |r: &Report| (r.k, r.kmers, r.distinct, r.checksum.clone(), r.spectrum.clone());
    assert_eq!(key(one), key(other));
    assert!(one.kmers > 0);
}

#[test]
fn any_number_of_ranks_counts_what_one_process_does() {
    let folder = Folder::new();
    let reads = folder.reads();
    for k in ["1", "21", "31"] {
        let serial = folder.serial(&reads, k);
        for ranks in [1, 2, 4, 7] {
            let count = folder.distributed(ranks, &reads, k);
            same(&count, &serial);
            assert_eq!(count.ranks, ranks);
            assert_eq!(count.sequences, fs::read_to_string(&reads).unwrap().lines().count() as u64 / 4);
        }
    }
}

#[test]
fn fasta_and_gzip_are_read_too() {
    let folder = Folder::new();
    let fastq = fs::read(folder.reads()).unwrap();
    let serial = folder.serial(&folder.path("reads.fastq"), "21");
    let zipped = folder.file("reads.fastq.gz", &gzip(&fastq));
    same(&folder.distributed(3, &zipped, "21"), &serial);
    let lines: Vec<_> = std::str::from_utf8(&fastq).unwrap().lines().collect();
    let fasta: String =
        lines.chunks(4).map(|r| format!(">{}\n{}\n{}\n", r[0], &r[1][..40], &r[1][40..])).collect();
    same(&folder.distributed(3, &folder.file("reads.fa", fasta.as_bytes()), "21"), &serial);
}

#[test]
fn the_spectrum_is_drawn() {
    let folder = Folder::new();
    let (reads, svg) = (folder.reads(), folder.path("spectrum.svg"));
    let ended = gasrun(2, COUNT, &["--input", text(&reads), "--plot", "--svg", text(&svg)]);
    assert!(ended.status.success(), "{}", ended.output);
    assert!(ended.output.contains('█') && ended.output.contains("by multiplicity"), "{}", ended.output);
    let peak = ended.output.split("gather at multiplicity ").nth(1).and_then(|rest| rest.trim().parse().ok());
    assert!(peak.is_some_and(|peak: u32| (19..=27).contains(&peak)), "{}", ended.output);
    let svg = fs::read_to_string(svg).unwrap();
    assert!(
        svg.starts_with("<svg")
            && svg.trim_end().ends_with("</svg>")
            && svg.contains("21-mers of reads.fastq")
    );
}

/// What is said to be wrong is said once, by rank 0 alone, and every rank ends.
fn refused(args: &[&str], reason: &str) {
    for ranks in [1, 3] {
        let ended = gasrun(ranks, COUNT, args);
        assert!(!ended.status.success(), "{args:?} on {ranks} ranks: {}", ended.output);
        assert_eq!(ended.output.matches(reason).count(), 1, "{args:?} on {ranks} ranks: {}", ended.output);
        assert!(!ended.output.contains("panicked"), "{}", ended.output);
    }
}

#[test]
fn wrong_input_gets_one_clear_error() {
    let folder = Folder::new();
    let input = |name: &str, content: &[u8]| text(&folder.file(name, content)).to_owned();
    refused(&["--input", "/nonexistent/reads"], "cannot read /nonexistent/reads: No such file");
    refused(&["--input", text(folder.0.path())], "it is a directory");
    refused(&["--input", &input("empty", b"")], "empty is empty: expected sequences");
    refused(&["--input", &input("words", b"some words\n")], "words is neither FASTA nor FASTQ");
    refused(&["--input", &input("short", b"@r\nACGT\n+\nIII\n")], "record 1: 4 bases but 3 qualities");
    let reads = fs::read(folder.reads()).unwrap();
    let zipped = gzip(&reads);
    refused(&["--input", &input("cut.gz", &zipped[..zipped.len() / 2])], "the gzip file is cut short");
    let good = input("good", b">a\nACGTACGTACGTACGTACGTACGTACGT\n");
    refused(&["--input", &good, "-k", "0"], "k-mer length 0 is out of range");
    refused(&["--input", &good, "-k", "32"], "k-mer length 32 is out of range");
    refused(
        &["--input", &good, "--out", "/nonexistent/report.json"],
        "cannot write /nonexistent/report.json",
    );
    refused(&["--input", &good, "--nonsense"], "unexpected argument '--nonsense'");
}

#[test]
fn a_byte_that_is_no_base_is_found_wherever_it_is() {
    let folder = Folder::new();
    let clean = fs::read(folder.reads()).unwrap();
    let records = clean.iter().filter(|&&b| b == b'\n').count() / 4;
    for record in [0, records / 2, records - 1] {
        let mut lines: Vec<Vec<u8>> = clean.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines[4 * record + 1][70] = b'7';
        let bad = folder.file("bad.fastq", &lines.join(&b'\n'));
        let reason = format!("bad.fastq: record {}: byte 0x37 ('7') is not a base", record + 1);
        refused(&["--input", text(&bad)], &reason);
    }
}

#[test]
fn a_full_disk_is_reported() {
    let folder = Folder::new();
    let reads = folder.reads();
    refused(&["--input", text(&reads), "--out", "/dev/full"], "cannot write /dev/full: No space left");
    let ended = alone(env!("CARGO_BIN_EXE_draw-reads"), &["--genome-size", "5000", "--out", "/dev/full"]);
    assert!(!ended.status.success());
    assert!(ended.output.contains("cannot write /dev/full: No space left"), "{}", ended.output);
}

/// Without jellyfish there is nothing to compare with; the matrix has a row that requires it where it is installed.
#[test]
fn jellyfish_counts_the_same() {
    if Command::new("jellyfish").arg("--version").output().is_err() {
        eprintln!("skipped: jellyfish is not installed");
        return;
    }
    let folder = Folder::new();
    let (reads, counted) = (folder.reads(), folder.path("counted.jf"));
    let jellyfish = |args: &[&str]| {
        let output = Command::new("jellyfish").args(args).output().unwrap();
        assert!(output.status.success(), "jellyfish {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for k in ["5", "21", "31"] {
        jellyfish(&["count", "-m", k, "-C", "-s", "1M", "-t", "2", "-o", text(&counted), text(&reads)]);
        let histogram: Vec<(usize, u64)> = jellyfish(&["histo", text(&counted)])
            .lines()
            .filter_map(|line| line.split_once(' ').map(|(m, n)| (m.parse().unwrap(), n.parse().unwrap())))
            .collect();
        assert_eq!(folder.distributed(4, &reads, k).spectrum, histogram);

        // And k-mer by k-mer, with the table that the ranks use.
        let dump = jellyfish(&["dump", "-c", text(&counted)]);
        let theirs: HashMap<&str, u32> = dump
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(s, n)| (s, n.parse().unwrap()))
            .collect();
        let k = K::new(k.parse().unwrap()).unwrap();
        let (mut table, mut block, mut kmers) =
            (KmerTable::with_room_for(0).unwrap(), Vec::new(), Vec::new());
        let mut file = Reads::open(&reads, k).unwrap();
        while file.next_block(&mut block, 1 << 16).unwrap().is_some() {
            scan(&block, k, |kmer| kmers.push(kmer)).unwrap();
        }
        table.add_all(&kmers).unwrap();
        assert_eq!(table.len(), theirs.len());
        assert!(table.iter().all(|(kmer, count)| theirs.get(letters(kmer, k).as_str()) == Some(&count)));
    }
}
