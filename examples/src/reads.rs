//! Reads FASTA and FASTQ files, plain or gzip, and cuts them into blocks of bare sequence.
//!
//! A block holds sequences ended by [`SEPARATOR`]; headers and qualities are left behind. A sequence that does not fit
//! is continued in the next block, which repeats its last k - 1 bases, so the k-mers of the blocks together are the
//! k-mers of the file. Whoever gets a block needs to know nothing of the file's format.

use crate::kmer::{K, SEPARATOR};
use anyhow::{Context, Result, bail};
use flate2::bufread::MultiGzDecoder;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The longest line that is taken for sequence rather than for rubbish.
const MAX_LINE: u64 = 1 << 29;

const BUFFER: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Fasta,
    Fastq,
}

/// A file of sequences, being read.
pub struct Reads {
    path: PathBuf,
    source: Box<dyn BufRead>,
    format: Format,
    k: K,
    /// Bytes of the file that were read, compressed if it is, and its size.
    position: Rc<Cell<u64>>,
    size: u64,
    record: u64,
    line: Vec<u8>,
    /// How much of `line`, a line of sequence, is in a block already.
    taken: usize,
    carry: Vec<u8>,
    header: Vec<u8>,
    quality: Vec<u8>,
}

impl Reads {
    /// Opens a file and looks at its first bytes.
    pub fn open(path: &Path, k: K) -> Result<Self> {
        let cannot = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(cannot)?;
        let meta = file.metadata().with_context(cannot)?;
        if meta.is_dir() {
            bail!("cannot read {}: it is a directory", path.display());
        }
        let position = Rc::new(Cell::new(0));
        let mut raw = BufReader::with_capacity(BUFFER, Counted { file, position: Rc::clone(&position) });
        let zipped = raw.fill_buf().with_context(cannot)?.starts_with(&[0x1f, 0x8b]);
        let mut source: Box<dyn BufRead> = if zipped {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw)))
        } else {
            Box::new(raw)
        };
        let first = source.fill_buf().map_err(|e| unpacking(path, e))?.first().copied();
        let format = match first {
            Some(b'>') => Format::Fasta,
            Some(b'@') => Format::Fastq,
            None => bail!("{} is empty: expected sequences in FASTA or FASTQ", path.display()),
            Some(byte) => bail!(
                "{} is neither FASTA nor FASTQ: it begins with '{}', not with '>' or '@'",
                path.display(),
                byte.escape_ascii()
            ),
        };
        Ok(Self {
            path: path.to_owned(),
            source,
            format,
            k,
            position,
            size: meta.len(),
            record: 0,
            line: Vec::new(),
            taken: 0,
            carry: Vec::new(),
            header: Vec::new(),
            quality: Vec::new(),
        })
    }

    /// How much of the file was read, from 0 to 1.
    pub fn progress(&self) -> f64 {
        if self.size == 0 { 1.0 } else { (self.position.get() as f64 / self.size as f64).min(1.0) }
    }

    /// Sequences begun so far.
    pub fn records(&self) -> u64 {
        self.record
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `block` with up to `capacity` bytes of sequence; returns the number of its first record, counted from 1,
    /// or `None` at the end of the file.
    pub fn next_block(&mut self, block: &mut Vec<u8>, capacity: usize) -> Result<Option<u64>> {
        debug_assert!(capacity >= 2 * self.k.get() as usize, "a block must move on past what it repeats");
        block.clear();
        block.append(&mut self.carry);
        let mut first = self.record;
        let repeated = block.len();
        loop {
            if block.len() >= capacity {
                self.keep_tail(block);
                return Ok(Some(first));
            }
            let rest = &self.line[self.taken..];
            let part = rest.len().min(capacity - block.len());
            block.extend_from_slice(&rest[..part]);
            self.taken += part;
            if part > 0 {
                continue;
            }
            match self.next_line()? {
                Next::Continued => {}
                Next::Begun if block.is_empty() => first = self.record,
                Next::Begun => block.push(SEPARATOR),
                Next::End if self.record == 0 || block.len() == repeated => return Ok(None),
                Next::End => return Ok(Some(first)),
            }
        }
    }

    /// Remembers the last k - 1 bases of a sequence that the next block may continue.
    fn keep_tail(&mut self, block: &[u8]) {
        let longest = self.k.get() as usize - 1;
        let tail = &block[block.len() - longest..];
        let start = tail.iter().rposition(|&b| b == SEPARATOR).map_or(0, |at| at + 1);
        self.carry.extend_from_slice(&tail[start..]);
    }

    /// Fetches the next line of sequence into `line`.
    fn next_line(&mut self) -> Result<Next> {
        self.taken = 0;
        match self.format {
            Format::Fasta => self.next_fasta(),
            Format::Fastq => self.next_fastq(),
        }
    }

    fn next_fasta(&mut self) -> Result<Next> {
        if !read_line(&mut self.source, &mut self.line, &self.path)? {
            return Ok(Next::End);
        }
        if self.line.first() == Some(&b'>') {
            self.line.clear();
            self.record += 1;
            return Ok(Next::Begun);
        }
        Ok(Next::Continued)
    }

    fn next_fastq(&mut self) -> Result<Next> {
        self.line.clear();
        while self.line.is_empty() {
            if !read_line(&mut self.source, &mut self.line, &self.path)? {
                return Ok(Next::End);
            }
        }
        self.record += 1;
        let (path, record) = (&self.path, self.record);
        let wrong = |what: &str| anyhow::anyhow!("{}: record {record}: {what}", path.display());
        if self.line[0] != b'@' {
            return Err(wrong("a FASTQ record must begin with '@'"));
        }
        let whole = read_line(&mut self.source, &mut self.line, path)?
            && read_line(&mut self.source, &mut self.header, path)?
            && read_line(&mut self.source, &mut self.quality, path)?;
        if !whole {
            self.line.clear();
            return Err(wrong("the file ends inside the record"));
        }
        if self.header.first() != Some(&b'+') {
            return Err(wrong("the line after the sequence must begin with '+'"));
        }
        if self.line.len() != self.quality.len() {
            let (bases, qualities) = (self.line.len(), self.quality.len());
            return Err(wrong(&format!("{bases} bases but {qualities} qualities")));
        }
        Ok(Next::Begun)
    }
}

enum Next {
    Begun,
    Continued,
    End,
}

/// Reads one line without its end; false if there is none.
fn read_line(source: &mut Box<dyn BufRead>, line: &mut Vec<u8>, path: &Path) -> Result<bool> {
    line.clear();
    let read = source.take(MAX_LINE).read_until(b'\n', line).map_err(|e| unpacking(path, e))?;
    if read as u64 == MAX_LINE {
        bail!("{}: a line is longer than {} MiB", path.display(), MAX_LINE >> 20);
    }
    while line.last().is_some_and(|&b| b == b'\n' || b == b'\r') {
        line.pop();
    }
    Ok(read > 0)
}

fn unpacking(path: &Path, error: io::Error) -> anyhow::Error {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the gzip file is cut short".to_owned(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            format!("the gzip file is damaged: {error}")
        }
        _ => error.to_string(),
    };
    anyhow::anyhow!("cannot read {}: {what}", path.display())
}

/// A file that tells how far it was read.
struct Counted {
    file: File,
    position: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.position.set(self.position.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kmer::scan;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn kmers(content: &[u8], k: u32, capacity: usize) -> Result<(Vec<u64>, u64)> {
        let (file, k) = (file(content), K::new(k)?);
        let mut reads = Reads::open(file.path(), k)?;
        let (mut found, mut block) = (Vec::new(), Vec::new());
        while reads.next_block(&mut block, capacity)?.is_some() {
            assert!(block.len() <= capacity);
            scan(&block, k, |kmer| found.push(kmer))?;
        }
        assert!((reads.progress() - 1.0).abs() < 1e-9);
        Ok((found, reads.records()))
    }

    fn direct(sequences: &[String], k: u32) -> Vec<u64> {
        let mut found = Vec::new();
        scan(sequences.join("\n").as_bytes(), K::new(k).unwrap(), |kmer| found.push(kmer)).unwrap();
        found
    }

    proptest! {
        #[test]
        fn blocks_hold_the_k_mers_of_the_file(
            sequences in prop::collection::vec("[ACGTN]{0,150}", 1..12),
            k in 1u32..=31,
            capacity in 64usize..200,
            width in 1usize..80,
            fastq: bool,
            zipped: bool,
            crlf: bool,
        ) {
            let end = if crlf { "\r\n" } else { "\n" };
            let mut text = String::new();
            for s in &sequences {
                if fastq {
                    text += &format!("@r{end}{s}{end}+{end}{}{end}", "@".repeat(s.len()));
                } else {
                    text += &format!(">r{end}");
                    for line in s.as_bytes().chunks(width) {
                        text += &format!("{}{end}", std::str::from_utf8(line).unwrap());
                    }
                }
            }
            let content = if zipped { gzip(text.as_bytes()) } else { text.into_bytes() };
            let (found, records) = kmers(&content, k, capacity).unwrap();
            prop_assert_eq!(found, direct(&sequences, k));
            prop_assert_eq!(records, sequences.len() as u64);
        }

        #[test]
        fn no_bytes_make_it_panic(content in prop::collection::vec(any::<u8>(), 0..300), start in 0usize..3) {
            let mut bytes = [&b">"[..], b"@", b"\x1f\x8b"][start].to_vec();
            bytes.extend(content);
            let k = K::new(5).unwrap();
            let file = file(&bytes);
            if let Ok(mut reads) = Reads::open(file.path(), k) {
                let mut block = Vec::new();
                while let Ok(Some(_)) = reads.next_block(&mut block, 64) {}
            }
        }
    }

    fn message(content: &[u8]) -> String {
        let text = format!("{:#}", kmers(content, 3, 64).unwrap_err());
        text.split_once(": ").map_or(text.clone(), |(_, rest)| rest.to_owned())
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        assert_eq!(message(b"@r\nACGT\n+\nIII\n"), "record 1: 4 bases but 3 qualities");
        assert_eq!(message(b"@r\nACGT\n+\n"), "record 1: the file ends inside the record");
        assert_eq!(message(b"@r\nA\n+\nI\nx"), "record 2: a FASTQ record must begin with '@'");
        assert_eq!(message(b"@r\nA\nI\nI\n"), "record 1: the line after the sequence must begin with '+'");
        assert_eq!(message(b"hello"), "it begins with 'h', not with '>' or '@'");
        assert_eq!(message(b""), "expected sequences in FASTA or FASTQ");
        assert_eq!(message(&gzip(b"")), "expected sequences in FASTA or FASTQ");
        let whole = gzip(">r\nACGTACGGTA\n".repeat(20_000).as_bytes());
        assert_eq!(message(&whole[..whole.len() / 2]), "the gzip file is cut short");
        let mut damaged = whole.clone();
        let crc = damaged.len() - 8;
        damaged[crc] ^= 1;
        assert!(message(&damaged).contains("the gzip file is damaged"));
    }

    #[test]
    fn a_missing_file_and_a_directory_are_named() {
        let k = K::new(3).unwrap();
        let missing = Reads::open(Path::new("/nonexistent/reads"), k).err().unwrap();
        assert!(format!("{missing:#}").starts_with("cannot read /nonexistent/reads: No such file"));
        let folder = tempfile::tempdir().unwrap();
        let error = Reads::open(folder.path(), k).err().unwrap();
        assert!(format!("{error:#}").ends_with("it is a directory"));
    }

    #[test]
    fn several_gzip_members_are_one_file() {
        let mut two = gzip(b">a\nACGT\n");
        two.extend(gzip(b">b\nACGTT\n"));
        assert_eq!(kmers(&two, 3, 64).unwrap().0.len(), 5);
    }
}
