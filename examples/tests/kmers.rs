//! The k-mer counter: against the serial count, and on input that is wrong.

mod common;
#[path = "common/folder.rs"]
mod folder;

use common::{alone, gasrun};
use flate2::{Compression, write::GzEncoder};
use folder::{Folder, text};
use gasworks_examples::report::Report;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const COUNT: &str = "kmer-count";

/// A file in the folder with this content.
fn file(folder: &Folder, name: &str, content: &[u8]) -> PathBuf {
    fs::write(folder.path(name), content).unwrap();
    folder.path(name)
}

/// What one process counts.
fn serial(folder: &Folder, input: &Path, k: &str) -> Report {
    folder.report(|out| alone("kmer-serial", &["--input", text(input), "-k", k, "--out", out]))
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
        let serial = serial(&folder, &reads, k);
        for ranks in [1, 2, 4, 7] {
            let count = folder.distributed(ranks, &reads, k);
            same(&count, &serial);
            assert_eq!(count.ranks as usize, ranks);
            assert_eq!(count.sequences, fs::read_to_string(&reads).unwrap().lines().count() as u64 / 4);
        }
    }
}

#[test]
fn fasta_and_gzip_are_read_too() {
    let folder = Folder::new();
    let fastq = fs::read(folder.reads()).unwrap();
    let serial = serial(&folder, &folder.path("reads.fastq"), "21");
    let zipped = file(&folder, "reads.fastq.gz", &gzip(&fastq));
    same(&folder.distributed(3, &zipped, "21"), &serial);
    let lines: Vec<_> = std::str::from_utf8(&fastq).unwrap().lines().collect();
    let fasta: String =
        lines.chunks(4).map(|r| format!(">{}\n{}\n{}\n", r[0], &r[1][..40], &r[1][40..])).collect();
    same(&folder.distributed(3, &file(&folder, "reads.fa", fasta.as_bytes()), "21"), &serial);
}

#[test]
fn the_spectrum_is_drawn() {
    let folder = Folder::new();
    let (reads, svg) = (folder.reads(), folder.path("spectrum.svg"));
    let ended = gasrun(2, COUNT, &["--input", text(&reads), "--plot", "--svg", text(&svg)]);
    assert!(ended.ok(), "{}", ended.output);
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
        assert!(!ended.ok(), "{args:?} on {ranks} ranks: {}", ended.output);
        assert_eq!(ended.output.matches(reason).count(), 1, "{args:?} on {ranks} ranks: {}", ended.output);
        assert!(!ended.output.contains("panicked"), "{}", ended.output);
    }
}

#[test]
fn wrong_input_gets_one_clear_error() {
    let folder = Folder::new();
    let input = |name: &str, content: &[u8]| text(&file(&folder, name, content)).to_owned();
    refused(&["--input", "/nonexistent/reads"], "cannot read /nonexistent/reads: No such file");
    refused(&["--input", text(&folder.path(""))], "it is a directory");
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
        let bad = file(&folder, "bad.fastq", &lines.join(&b'\n'));
        let reason = format!("bad.fastq: record {}: byte 0x37 ('7') is not a base", record + 1);
        refused(&["--input", text(&bad)], &reason);
    }
}

#[test]
fn a_full_disk_is_reported() {
    let folder = Folder::new();
    let reads = folder.reads();
    refused(&["--input", text(&reads), "--out", "/dev/full"], "cannot write /dev/full: No space left");
    let ended = alone("draw-reads", &["--genome-size", "5000", "--out", "/dev/full"]);
    assert!(!ended.ok());
    assert!(ended.output.contains("cannot write /dev/full: No space left"), "{}", ended.output);
}
