//! The table that counts k-mers: open addressing over buckets of one cache line, so that most k-mers cost one miss.
//!
//! A bucket holds five k-mers with their counts. The bucket of a k-mer is the high part of its hash times the number
//! of buckets, so the buckets lie in the order of the hashes, and a table that grows copies itself from front to back
//! instead of scattering its entries over memory.

use crate::kmer;
use crate::prefetch::prefetch;
use bytemuck::{Pod, Zeroable};
use memmap2::{Advice, MmapMut};
use std::io;

const SLOTS: usize = 5;

/// How many k-mers ahead the bucket is asked for: enough to keep as many fetches under way as a core can.
const AHEAD: usize = 64;

/// K-mers between two looks at whether the table must grow.
const GROUP: usize = 1024;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    /// The k-mer plus one; 0 is an empty slot. Slots fill from the front.
    keys: [u64; SLOTS],
    counts: [u32; SLOTS],
    spare: u32,
}

/// How often each k-mer was seen.
pub struct KmerTable {
    /// Buckets, as bytes. A mapping of our own, because the system can be asked to back it by huge pages: most of the
    /// time of a random access to a large table goes into finding out where its page is.
    memory: MmapMut,
    used: usize,
    /// The table grows when `used` passes this.
    limit: usize,
}

impl KmerTable {
    /// An empty table with room for about `expected` distinct k-mers; it grows beyond as needed.
    pub fn with_room_for(expected: usize) -> io::Result<Self> {
        Self::with_buckets((expected / 4).max(16))
    }

    fn with_buckets(count: usize) -> io::Result<Self> {
        // Zero already: the system hands it out as buckets are first touched.
        let memory = MmapMut::map_anon(count * size_of::<Bucket>())?;
        // Refused where huge pages are switched off, and then it is only slower.
        let _ = memory.advise(Advice::HugePage);
        Ok(Self { memory, used: 0, limit: count * SLOTS * 4 / 5 })
    }

    fn buckets(&self) -> &[Bucket] {
        bytemuck::cast_slice(&self.memory)
    }

    /// Distinct k-mers.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether nothing was counted yet.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Counts each of `kmers` once more. Fails if the table cannot grow.
    pub fn add_all(&mut self, kmers: &[u64]) -> io::Result<()> {
        for group in kmers.chunks(GROUP) {
            while self.used + group.len() > self.limit {
                self.grow()?;
            }
            let buckets: &mut [Bucket] = bytemuck::cast_slice_mut(&mut self.memory);
            let count = buckets.len();
            for &kmer in &group[..AHEAD.min(group.len())] {
                prefetch(&buckets[home(kmer, count)]);
            }
            for (i, &kmer) in group.iter().enumerate() {
                // The bucket of a k-mer is worked out twice, which is cheaper than to remember it.
                if let Some(&later) = group.get(i + AHEAD) {
                    prefetch(&buckets[home(later, count)]);
                }
                self.used += usize::from(add(buckets, home(kmer, count), kmer + 1, 1));
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> io::Result<()> {
        // By half: the old table and the new one exist at the same time.
        let mut larger = Self::with_buckets(self.buckets().len() * 3 / 2)?;
        let buckets: &mut [Bucket] = bytemuck::cast_slice_mut(&mut larger.memory);
        for (kmer, count) in self.iter() {
            add(buckets, home(kmer, buckets.len()), kmer + 1, count);
        }
        larger.used = self.used;
        *self = larger;
        Ok(())
    }

    /// Every k-mer with its count, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.buckets()
            .iter()
            .flat_map(|b| b.keys.into_iter().zip(b.counts))
            .filter(|&(key, _)| key != 0)
            .map(|(key, count)| (key - 1, count))
    }
}

/// The bucket in which the search for a k-mer begins.
#[inline]
fn home(kmer: u64, buckets: usize) -> usize {
    ((u128::from(kmer::mix(kmer)) * buckets as u128) >> 64) as usize
}

/// Adds to the count of `key`, looking from bucket `at` on; true if it is new.
#[inline]
fn add(buckets: &mut [Bucket], mut at: usize, key: u64, count: u32) -> bool {
    loop {
        let bucket = &mut buckets[at];
        if let Some(i) = position(&bucket.keys, key) {
            bucket.counts[i] = bucket.counts[i].saturating_add(count);
            return false;
        }
        if let Some(i) = position(&bucket.keys, 0) {
            bucket.keys[i] = key;
            bucket.counts[i] = count;
            return true;
        }
        at = if at + 1 == buckets.len() { 0 } else { at + 1 };
    }
}

/// Where `key` is, by comparing all slots: no branch for each, so nothing to mispredict but the outcome.
#[inline]
fn position(keys: &[u64; SLOTS], key: u64) -> Option<usize> {
    let mut hits = 0u32;
    for (i, &k) in keys.iter().enumerate() {
        hits |= u32::from(k == key) << i;
    }
    (hits != 0).then(|| hits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn check(kmers: &[u64], room: usize) {
        let mut table = KmerTable::with_room_for(room).unwrap();
        let mut model = HashMap::new();
        for part in kmers.chunks(7) {
            table.add_all(part).unwrap();
        }
        for &kmer in kmers {
            *model.entry(kmer).or_insert(0u32) += 1;
        }
        assert_eq!(table.len(), model.len());
        assert_eq!(table.is_empty(), model.is_empty());
        assert_eq!(table.iter().collect::<HashMap<_, _>>(), model);
        assert_eq!(table.iter().count(), model.len());
    }

    proptest! {
        #[test]
        fn few_k_mers_often(kmers in prop::collection::vec(0u64..50, 0..2000)) {
            check(&kmers, 0);
        }

        #[test]
        fn many_k_mers_and_growth(kmers in prop::collection::vec(0u64..1 << 62, 0..3000), room in 0usize..5000) {
            check(&kmers, room);
        }
    }

    #[test]
    fn a_bucket_is_a_cache_line_and_counts_do_not_wrap() {
        assert_eq!(size_of::<Bucket>(), 64);
        let mut buckets = [Bucket::zeroed(); 4];
        assert!(add(&mut buckets, 3, 10, u32::MAX));
        assert!(!add(&mut buckets, 3, 10, 1));
        assert_eq!((buckets[3].keys[0], buckets[3].counts[0]), (10, u32::MAX));
    }

    #[test]
    fn buckets_overflow_into_the_next_and_around_the_end() {
        let mut buckets = [Bucket::zeroed(); 4];
        for key in 1..=12 {
            assert!(add(&mut buckets, 3, key, 1));
        }
        for key in 1..=12 {
            assert!(!add(&mut buckets, 3, key, 1));
        }
        assert_eq!(buckets.map(|b| b.counts), [[2; 5], [2, 2, 0, 0, 0], [0; 5], [2; 5]]);
    }
}
