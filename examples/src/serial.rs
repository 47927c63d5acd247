//! The check of the distributed count: one process, no communication, and no hash table. It sorts.

use crate::kmer::{K, scan};
use crate::reads::Reads;
use crate::spectrum::Spectrum;
use anyhow::{Context, Result};
use std::path::Path;

/// How many k-mers are sorted at a time: half a GiB of them.
const PASS: u64 = 1 << 26;

const BLOCK: usize = 1 << 18;

/// Counts the k-mers of a file: for each part of the k-mers, collects, sorts, and counts runs of equals.
/// Calls `progress` with the part of the work done, from 0 to 1.
pub fn count(path: &Path, k: K, mut progress: impl FnMut(f64)) -> Result<Spectrum> {
    let mut total = 0u64;
    each_block(path, k, |block, part| {
        progress(part * 0.1);
        scan(block, k, |_| total += 1)
    })?;
    let parts = total.div_ceil(PASS).max(1);
    let mut spectrum = Spectrum::default();
    let mut kmers = Vec::with_capacity((total / parts + total / parts / 8) as usize);
    for part in 0..parts {
        kmers.clear();
        each_block(path, k, |block, _| {
            scan(block, k, |kmer| {
                if part_of(kmer, parts) == part {
                    kmers.push(kmer);
                }
            })
        })?;
        progress(0.1 + 0.9 * (part as f64 + 0.3) / parts as f64);
        kmers.sort_unstable();
        for run in kmers.chunk_by(|a, b| a == b) {
            spectrum.add(run[0], u32::try_from(run.len()).unwrap_or(u32::MAX));
        }
        progress(0.1 + 0.9 * (part as f64 + 1.0) / parts as f64);
    }
    Ok(spectrum)
}

fn part_of(kmer: u64, parts: u64) -> u64 {
    (kmer.wrapping_mul(0xa076_1d64_78bd_642f) >> 40) % parts
}

fn each_block<E>(path: &Path, k: K, mut seen: impl FnMut(&[u8], f64) -> Result<(), E>) -> Result<()>
where
    Result<(), E>: InRecord,
{
    let mut reads = Reads::open(path, k)?;
    let mut block = Vec::with_capacity(BLOCK);
    while let Some(first) = reads.next_block(&mut block, BLOCK)? {
        seen(&block, reads.progress()).in_record(path, first)?;
    }
    Ok(())
}

/// Says in which record of which file a bad byte was.
pub trait InRecord {
    /// Adds the file and the record to an error; `first` is the number of the block's first record.
    fn in_record(self, path: &Path, first: u64) -> Result<()>;
}

impl InRecord for Result<(), crate::kmer::BadBase> {
    fn in_record(self, path: &Path, first: u64) -> Result<()> {
        self.map_err(|bad| (bad, first + bad.sequence))
            .map_err(|(bad, record)| anyhow::Error::new(bad).context(format!("record {record}")))
            .with_context(|| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::KmerTable;
    use std::io::Write;

    #[test]
    fn sorting_and_hashing_agree() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut rng = crate::rng::Rng::new(3);
        writeln!(file, ">random").unwrap();
        for _ in 0..500 {
            let line: String = (0..70).map(|_| char::from(b"ACGTN"[rng.below(401) as usize / 100])).collect();
            writeln!(file, "{line}").unwrap();
        }
        for k in [1, 6, 21, 31] {
            let k = K::new(k).unwrap();
            let mut table = KmerTable::with_room_for(100).unwrap();
            each_block(file.path(), k, |block, _| {
                let mut kmers = Vec::new();
                let result = scan(block, k, |kmer| kmers.push(kmer));
                table.add_all(&kmers).unwrap();
                result
            })
            .unwrap();
            let mut last = 0.0;
            let sorted = count(file.path(), k, |part| last = part).unwrap();
            assert_eq!(sorted, Spectrum::of(table.iter()));
            assert!(sorted.total() > 30_000);
            assert_eq!(last, 1.0);
        }
    }

    #[test]
    fn a_bad_byte_is_found_in_its_record() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b">a\nACGT\n>b\nAC!T\n").unwrap();
        let error = count(file.path(), K::new(3).unwrap(), |_| ()).unwrap_err();
        assert!(format!("{error:#}").ends_with("record 2: byte 0x21 ('!') is not a base"), "{error:#}");
    }
}
