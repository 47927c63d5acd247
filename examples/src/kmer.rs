//! K-mers as numbers: two bits for a base, the first base highest, so that numbers compare as the strings do.

use thiserror::Error;

/// The longest k-mer: 62 bits, which leaves the table a value that no k-mer takes.
pub const MAX_K: u32 = 31;

/// Ends a sequence within a block of bases.
pub const SEPARATOR: u8 = b'\n';

/// A length of k-mer that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct K(u32);

/// The length asked for does not fit.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("k-mer length {0} is out of range: it must be 1 to {MAX_K}")]
pub struct BadK(pub u32);

/// A byte that no sequence holds.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("byte {byte:#04x} ('{}') is not a base", byte.escape_ascii())]
pub struct BadBase {
    /// The byte.
    pub byte: u8,
    /// How many sequences of the block ended before it.
    pub sequence: u64,
}

impl K {
    /// Checks that `k` is 1 to [`MAX_K`].
    pub fn new(k: u32) -> Result<Self, BadK> {
        if (1..=MAX_K).contains(&k) { Ok(Self(k)) } else { Err(BadK(k)) }
    }

    /// The length.
    pub fn get(self) -> u32 {
        self.0
    }
}

const BREAK: u8 = 4;
const BAD: u8 = 5;

/// What each byte means: a base, a break (ambiguity codes, gaps, the separator), or nothing a sequence may hold.
static CODE: [u8; 256] = {
    let mut code = [BAD; 256];
    let breaks = b"NRYKMSWBDHVXnrykmswbdhvx-.*\n";
    let mut i = 0;
    while i < breaks.len() {
        code[breaks[i] as usize] = BREAK;
        i += 1;
    }
    let bases = b"ACGTacgt";
    let mut i = 0;
    while i < bases.len() {
        code[bases[i] as usize] = (i % 4) as u8;
        i += 1;
    }
    code[b'U' as usize] = 3;
    code[b'u' as usize] = 3;
    code
};

/// The base's number, if the byte is one of A, C, G, T (or U) in either case.
pub fn base(byte: u8) -> Option<u8> {
    Some(CODE[usize::from(byte)]).filter(|&code| code < BREAK)
}

/// Calls `found` with each canonical k-mer of `block`: the lesser of the k-mer and its reverse complement.
///
/// Both strands roll along, a shift and an or for each base. What is not a base ends the sequence.
#[inline]
pub fn scan(block: &[u8], k: K, mut found: impl FnMut(u64)) -> Result<(), BadBase> {
    let mask = (1u64 << (2 * k.0)) - 1;
    let top = 2 * (k.0 - 1);
    let (mut forward, mut reverse, mut length) = (0u64, 0u64, 0u32);
    for (i, &byte) in block.iter().enumerate() {
        let code = CODE[usize::from(byte)];
        if code < BREAK {
            forward = ((forward << 2) | u64::from(code)) & mask;
            reverse = (reverse >> 2) | (u64::from(3 - code) << top);
            length += 1;
            if length >= k.0 {
                found(forward.min(reverse));
            }
        } else if code == BREAK {
            length = 0;
        } else {
            let sequence = block[..i].iter().filter(|&&b| b == SEPARATOR).count() as u64;
            return Err(BadBase { byte, sequence });
        }
    }
    Ok(())
}

/// The k-mer as letters.
pub fn letters(kmer: u64, k: K) -> String {
    (0..k.0).rev().map(|i| char::from(b"ACGT"[(kmer >> (2 * i)) as usize & 3])).collect()
}

/// Spreads a k-mer over 64 bits: one to one, so that distinct k-mers stay distinct.
#[inline]
pub fn mix(kmer: u64) -> u64 {
    let mut h = kmer.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h ^= h >> 32;
    h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^ (h >> 32)
}

/// The rank that owns a k-mer: the low half of its hash, since the table uses the high half.
#[inline]
pub fn owner(kmer: u64, ranks: u32) -> u32 {
    ((u64::from(mix(kmer) as u32) * u64::from(ranks)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical_by_strings(block: &str, k: usize) -> Vec<String> {
        let complement = |c| match c {
            'A' => 'T',
            'C' => 'G',
            'G' => 'C',
            _ => 'A',
        };
        let mut found = Vec::new();
        for run in block.split(|c| !"ACGT".contains(c)).filter(|run| run.len() >= k) {
            for i in 0..=run.len() - k {
                let kmer = run[i..i + k].to_string();
                let reverse: String = kmer.chars().rev().map(complement).collect();
                found.push(kmer.min(reverse));
            }
        }
        found
    }

    proptest! {
        #[test]
        fn scan_agrees_with_strings(block in "[ACGTN\n]{0,200}", k in 1u32..=MAX_K) {
            let k = K::new(k).unwrap();
            let mut found = Vec::new();
            scan(block.as_bytes(), k, |kmer| found.push(letters(kmer, k))).unwrap();
            prop_assert_eq!(found, canonical_by_strings(&block, k.get() as usize));
        }

        #[test]
        fn owners_are_ranks(kmer in any::<u64>(), ranks in 1u32..=64) {
            prop_assert!(owner(kmer, ranks) < ranks);
        }
    }

    #[test]
    fn lower_case_counts_and_other_bytes_are_named() {
        let k = K::new(3).unwrap();
        let mut upper = Vec::new();
        scan(b"ACGTT", k, |kmer| upper.push(kmer)).unwrap();
        let mut lower = Vec::new();
        scan(b"acguu", k, |kmer| lower.push(kmer)).unwrap();
        assert_eq!(upper, lower);
        let error = scan(b"ACG\nAC7", k, |_| ()).unwrap_err();
        assert_eq!(error, BadBase { byte: b'7', sequence: 1 });
        assert_eq!(error.to_string(), "byte 0x37 ('7') is not a base");
    }

    #[test]
    fn lengths_out_of_range_are_refused() {
        assert_eq!(K::new(0), Err(BadK(0)));
        assert_eq!(
            K::new(32).unwrap_err().to_string(),
            "k-mer length 32 is out of range: it must be 1 to 31"
        );
        assert_eq!(K::new(31).unwrap().get(), 31);
    }
}
