//! Makes input for the counter: reads drawn from a genome as a sequencing machine would, errors included.

use crate::kmer::{self, K, SEPARATOR};
use crate::reads::Reads;
use crate::rng::Rng;
use anyhow::{Result, bail, ensure};
use std::io::{self, Write};
use std::path::Path;

/// How reads are drawn.
#[derive(Clone, Debug)]
pub struct Draw {
    /// How often each base of the genome is covered, on average.
    pub coverage: f64,
    /// The part of bases that is read wrongly.
    pub error: f64,
    /// The shortest and the longest read; all lengths between are alike.
    pub lengths: (u64, u64),
    /// Fixes everything that is drawn.
    pub seed: u64,
}

impl Default for Draw {
    fn default() -> Self {
        Self { coverage: 30.0, error: 0.005, lengths: (100, 150), seed: 1 }
    }
}

/// What was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Reads written.
    pub reads: u64,
    /// Bases in them.
    pub bases: u64,
    /// Bases changed on purpose.
    pub errors: u64,
}

/// A random genome of `size` bases.
pub fn random_genome(size: u64, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ 0x6765_6e6f_6d65);
    let mut genome = Vec::with_capacity(size as usize);
    while (genome.len() as u64) < size {
        let mut bits = rng.next_u64();
        for _ in 0..32.min(size as usize - genome.len()) {
            genome.push(b"ACGT"[bits as usize & 3]);
            bits >>= 2;
        }
    }
    genome
}

/// The sequences of a FASTA or FASTQ file, one after the other, each ended by [`SEPARATOR`].
pub fn read_genome(path: &Path) -> Result<Vec<u8>> {
    let (mut genome, mut block) = (Vec::new(), Vec::new());
    // With k = 1 blocks repeat nothing, so putting them together gives the sequences back.
    let mut reads = Reads::open(path, K::new(1)?)?;
    let mut record = 0;
    while let Some(first) = reads.next_block(&mut block, 1 << 20)? {
        if !genome.is_empty() && first != record {
            genome.push(SEPARATOR);
        }
        genome.extend_from_slice(&block);
        record = first + block.iter().filter(|&&b| b == SEPARATOR).count() as u64;
    }
    genome.make_ascii_uppercase();
    Ok(genome)
}

impl Draw {
    /// Draws reads from both strands of `genome` and writes them as FASTQ.
    /// Calls `progress` now and then with the part that is done, from 0 to 1.
    pub fn write(&self, genome: &[u8], out: &mut impl Write, mut progress: impl FnMut(f64)) -> Result<Drawn> {
        self.check(genome)?;
        let mut rng = Rng::new(self.seed);
        let wanted = (genome.len() as f64 * self.coverage) as u64;
        let mut drawn = Drawn::default();
        let (mut read, mut quality) = (Vec::new(), Vec::new());
        let mut refused = 0u64;
        // Errors are far apart: draw the distance to the next instead of one number for each base.
        let mut to_error = self.gap(&mut rng);
        while drawn.bases < wanted {
            let length = self.lengths.0 + rng.below(self.lengths.1 - self.lengths.0 + 1);
            let length = length.min(genome.len() as u64);
            let start = rng.below(genome.len() as u64 - length + 1) as usize;
            let source = &genome[start..start + length as usize];
            if source.contains(&SEPARATOR) {
                // Across the end of a sequence there is nothing to read. Genomes of only short sequences do not
                // keep us here for ever.
                refused += 1;
                ensure!(refused < 1_000_000 || refused < 100 * drawn.reads, "no sequence has {length} bases");
                continue;
            }
            read.clear();
            if rng.next_u64() & 1 == 0 {
                read.extend_from_slice(source);
            } else {
                read.extend(source.iter().rev().map(|&b| complement(b)));
            }
            quality.clear();
            quality.resize(read.len(), b'I');
            while to_error < read.len() as u64 {
                let at = to_error as usize;
                if let Some(old) = kmer::base(read[at]) {
                    read[at] = b"ACGT"[(usize::from(old) + 1 + rng.below(3) as usize) % 4];
                    quality[at] = b'5';
                    drawn.errors += 1;
                }
                to_error += 1 + self.gap(&mut rng);
            }
            to_error -= read.len() as u64;
            drawn.reads += 1;
            drawn.bases += length;
            record(out, drawn.reads, &read, &quality)?;
            if drawn.reads % 4096 == 0 {
                progress(drawn.bases as f64 / wanted as f64);
            }
        }
        out.flush()?;
        progress(1.0);
        Ok(drawn)
    }

    fn check(&self, genome: &[u8]) -> Result<()> {
        let (shortest, longest) = self.lengths;
        ensure!(
            shortest >= 1 && shortest <= longest,
            "reads of {shortest} to {longest} bases cannot be drawn"
        );
        ensure!(
            self.coverage > 0.0 && self.coverage <= 10_000.0,
            "coverage {} is out of range",
            self.coverage
        );
        ensure!((0.0..1.0).contains(&self.error), "error rate {} is out of range: 0 to 1", self.error);
        if !genome.iter().any(|&b| kmer::base(b).is_some()) {
            bail!("the genome holds no bases");
        }
        Ok(())
    }

    fn gap(&self, rng: &mut Rng) -> u64 {
        if self.error == 0.0 { u64::MAX / 2 } else { (rng.unit().ln() / (1.0 - self.error).ln()) as u64 }
    }
}

fn record(out: &mut impl Write, number: u64, read: &[u8], quality: &[u8]) -> io::Result<()> {
    writeln!(out, "@r{number}")?;
    out.write_all(read)?;
    out.write_all(b"\n+\n")?;
    out.write_all(quality)?;
    out.write_all(b"\n")
}

fn complement(base: u8) -> u8 {
    match base {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        b'T' => b'A',
        _ => b'N',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(genome: &[u8], how: &Draw) -> (Drawn, String) {
        let mut out = Vec::new();
        let drawn = how.write(genome, &mut out, |_| ()).unwrap();
        (drawn, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_seed_fixes_the_reads_and_they_look_right() {
        let genome = random_genome(20_000, 1);
        let how = Draw { coverage: 10.0, ..Draw::default() };
        let (drawn, text) = draw(&genome, &how);
        assert_eq!(draw(&genome, &how).1, text);
        assert_ne!(draw(&genome, &Draw { seed: 2, ..how }).1, text);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len() as u64, 4 * drawn.reads);
        assert!(lines.chunks(4).all(|r| (100..=150).contains(&r[1].len()) && r[1].len() == r[3].len()));
        assert!((200_000..200_200).contains(&drawn.bases));
        let rate = drawn.errors as f64 / drawn.bases as f64;
        assert!((0.004..0.006).contains(&rate), "{rate}");
    }

    #[test]
    fn reads_without_errors_are_pieces_of_either_strand() {
        let genome = random_genome(3_000, 5);
        let other: Vec<u8> = genome.iter().rev().map(|&b| complement(b)).collect();
        let strands = [String::from_utf8(genome.clone()).unwrap(), String::from_utf8(other).unwrap()];
        let (drawn, text) = draw(&genome, &Draw { error: 0.0, ..Draw::default() });
        let mut each = [0u64; 2];
        for read in text.lines().skip(1).step_by(4) {
            let strand = strands.iter().position(|s| s.contains(read)).unwrap();
            each[strand] += 1;
        }
        assert_eq!(each[0] + each[1], drawn.reads);
        assert!(each.iter().all(|&n| n > drawn.reads / 3), "{each:?}");
    }

    #[test]
    fn no_read_crosses_from_one_sequence_to_the_next() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (a, b) = ("A".repeat(400), "C".repeat(400));
        std::fs::write(file.path(), format!(">a\n{a}\n>b\n{}\n", b.to_lowercase())).unwrap();
        let genome = read_genome(file.path()).unwrap();
        assert_eq!(genome, format!("{a}\n{b}").into_bytes());
        let (_, text) = draw(&genome, &Draw { error: 0.0, ..Draw::default() });
        for read in text.lines().skip(1).step_by(4) {
            let first = read.as_bytes()[0];
            assert!(read.bytes().all(|b| b == first), "{read}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let refuse =
            |genome: &[u8], how: Draw| how.write(genome, &mut Vec::new(), |_| ()).unwrap_err().to_string();
        assert!(refuse(b"NNNN", Draw::default()).contains("no bases"));
        assert!(refuse(b"ACGT", Draw { error: 1.5, ..Draw::default() }).contains("error rate 1.5"));
        assert!(refuse(b"ACGT", Draw { coverage: -1.0, ..Draw::default() }).contains("coverage -1"));
        assert!(refuse(b"ACGT", Draw { lengths: (9, 3), ..Draw::default() }).contains("9 to 3"));
    }
}
