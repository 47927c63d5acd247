//! The k-mer counter against jellyfish.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/folder.rs"]
mod folder;

use folder::{Folder, text};
use gasworks_examples::kmer::{K, letters, scan};
use gasworks_examples::reads::Reads;
use gasworks_examples::table::KmerTable;
use gasworks_testkit::{Case, Cmd, Need, cases};
use std::collections::HashMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let same = |k| {
        Case::check(format!("counts-the-same-{k}-mers"), move || counts_the_same(k)).need(Need::Jellyfish)
    };
    cases::main("examples/jellyfish", [5, 21, 31].map(same).into())
}

fn jellyfish(args: &[&str]) -> String {
    Cmd::new("jellyfish").args(args).read().unwrap()
}

fn counts_the_same(k: u32) {
    let folder = Folder::new();
    let (reads, counted, length) = (folder.reads(), folder.path("counted.jf"), k.to_string());
    let count = ["count", "-m", &length, "-C", "-s", "1M", "-t", "2", "-o", text(&counted), text(&reads)];
    jellyfish(&count);
    let histogram: Vec<(usize, u64)> = jellyfish(&["histo", text(&counted)])
        .lines()
        .filter_map(|line| line.split_once(' ').map(|(m, n)| (m.parse().unwrap(), n.parse().unwrap())))
        .collect();
    assert_eq!(folder.distributed(4, &reads, &length).spectrum, histogram);

    // And k-mer by k-mer, with the table that the ranks use.
    let dump = jellyfish(&["dump", "-c", text(&counted)]);
    let theirs: HashMap<&str, u32> = dump
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(s, n)| (s, n.parse().unwrap()))
        .collect();
    let k = K::new(k).unwrap();
    let (mut table, mut block, mut kmers) = (KmerTable::with_room_for(0).unwrap(), Vec::new(), Vec::new());
    let mut file = Reads::open(&reads, k).unwrap();
    while file.next_block(&mut block, 1 << 16).unwrap().is_some() {
        scan(&block, k, |kmer| kmers.push(kmer)).unwrap();
    }
    table.add_all(&kmers).unwrap();
    assert!(!theirs.is_empty(), "jellyfish found nothing");
    assert_eq!(table.len(), theirs.len());
    assert!(table.iter().all(|(kmer, count)| theirs.get(letters(kmer, k).as_str()) == Some(&count)));
}
