//! The result of a count: how many distinct k-mers were seen once, twice, and so on, and a checksum of them all.

use crate::kmer;

/// Multiplicities above this share the last bin, as in `jellyfish histo`.
pub const HIGHEST: usize = 10_000;

/// Numbers in a spectrum's flat form: total, distinct, checksum, and the bins for 0 to [`HIGHEST`] + 1.
pub const FLAT: usize = 3 + HIGHEST + 2;

/// A spectrum of multiplicities. Spectra of disjoint sets of k-mers add up, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spectrum {
    flat: Vec<u64>,
}

impl Default for Spectrum {
    fn default() -> Self {
        Self { flat: vec![0; FLAT] }
    }
}

impl Spectrum {
    /// Adds one distinct k-mer that was seen `count` times.
    #[inline]
    pub fn add(&mut self, kmer: u64, count: u32) {
        let count = u64::from(count);
        self.flat[0] += count;
        self.flat[1] += 1;
        let print = kmer::mix(kmer::mix(kmer).wrapping_add(count));
        self.flat[2] = self.flat[2].wrapping_add(print);
        self.flat[3 + (count as usize).min(HIGHEST + 1)] += 1;
    }

    /// The spectrum of all of `entries`.
    pub fn of(entries: impl Iterator<Item = (u64, u32)>) -> Self {
        let mut spectrum = Self::default();
        entries.for_each(|(kmer, count)| spectrum.add(kmer, count));
        spectrum
    }

    /// Adds another spectrum in its flat form.
    pub fn merge(&mut self, flat: &[u64]) {
        for (mine, theirs) in self.flat.iter_mut().zip(flat) {
            *mine = mine.wrapping_add(*theirs);
        }
    }

    /// The spectrum as [`FLAT`] numbers, to be sent.
    pub fn flat(&self) -> &[u64] {
        &self.flat
    }

    /// All k-mers counted.
    pub fn total(&self) -> u64 {
        self.flat[0]
    }

    /// Distinct k-mers.
    pub fn distinct(&self) -> u64 {
        self.flat[1]
    }

    /// A sum over every k-mer with its count, the same in whatever order they come.
    pub fn checksum(&self) -> u64 {
        self.flat[2]
    }

    /// How many distinct k-mers were seen `multiplicity` times.
    pub fn bin(&self, multiplicity: usize) -> u64 {
        self.flat[3 + multiplicity.min(HIGHEST + 1)]
    }

    /// The bins that are not empty, as (multiplicity, distinct k-mers).
    pub fn bins(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.flat[3..].iter().copied().enumerate().filter(|&(_, n)| n != 0)
    }

    /// The multiplicity at which the k-mers of the genome itself gather: the highest bin past the first valley, if it
    /// holds enough of all k-mers to be more than a few repeats.
    pub fn peak(&self) -> Option<usize> {
        let valley = (1..HIGHEST).find(|&m| self.bin(m + 1) > self.bin(m))?;
        let peak = (valley..=HIGHEST).max_by_key(|&m| (self.bin(m), HIGHEST - m))?;
        (peak as u64 * self.bin(peak) * 100 > self.total()).then_some(peak)
    }

    /// The multiplicity up to which all but three in a hundred of the k-mers counted lie.
    pub fn extent(&self) -> usize {
        let mut below = 0;
        for (multiplicity, n) in self.bins() {
            below += multiplicity as u64 * n;
            if below as f64 >= self.total() as f64 * 0.97 {
                return multiplicity;
            }
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_parts_is_counting_the_whole() {
        let entries = [(1, 1), (2, 1), (3, 40), (4, 41), (5, 41), (6, 20_000)];
        assert_eq!(Spectrum::of(entries.into_iter()).peak(), None);
        let whole = Spectrum::of(entries.into_iter());
        let mut parts = Spectrum::of(entries[3..].iter().copied());
        parts.merge(Spectrum::of(entries[..3].iter().rev().copied()).flat());
        assert_eq!(whole, parts);
        assert_eq!((whole.total(), whole.distinct()), (20_124, 6));
        assert_eq!(whole.bins().collect::<Vec<_>>(), [(1, 2), (40, 1), (41, 2), (HIGHEST + 1, 1)]);
        assert_eq!(Spectrum::of(entries[..5].iter().copied()).peak(), Some(41));
    }

    #[test]
    fn the_checksum_tells_counts_and_k_mers_apart() {
        let one = Spectrum::of([(1, 2), (2, 1)].into_iter());
        let other = Spectrum::of([(1, 1), (2, 2)].into_iter());
        assert_eq!(one.total(), other.total());
        assert_ne!(one.checksum(), other.checksum());
    }

    #[test]
    fn an_empty_spectrum_has_no_peak() {
        assert_eq!(Spectrum::default().peak(), None);
        assert_eq!(Spectrum::default().extent(), 1);
    }
}
