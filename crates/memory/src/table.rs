//! The one table of memory.
//!
//! # Invariants
//! T1. Every entry describes memory that stays mapped until the entry is removed; whoever inserts promises it.
//! T2. A generation is odd while its entry is in use and even while it is free; it only grows. So a handle that has
//!     outlived its entry never matches again.

use crate::KindTag;
use bitflags::bitflags;
use gasworks_sync::RawBytes;
use thiserror::Error;

bitflags! {
    /// What may be done with a segment from afar.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rights: u32 {
        /// Peers may read it.
        const READ = 1;
        /// Peers may write it.
        const WRITE = 2;
    }
}

/// What is wrong with an address, a range or a handle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no such rank.
    #[error("rank {rank} is out of range: the job has {ranks} ranks")]
    NoSuchRank {
        /// The rank that was named.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// The range is not inside the segment.
    #[error(
        "bytes {offset} to {offset}+{len} are outside the segment of rank {rank}, which has {segment} bytes"
    )]
    OutsideSegment {
        /// Whose segment.
        rank: u32,
        /// The first byte that was named, from the start of the segment.
        offset: u64,
        /// The number of bytes.
        len: u64,
        /// The segment's length.
        segment: u64,
    },
    /// The handle does not name a segment, or no longer does.
    #[error("segment {index}.{generation} does not exist (any more)")]
    StaleSegment {
        /// The handle's index.
        index: u32,
        /// The handle's generation.
        generation: u32,
    },
    /// The segment does not admit the access.
    #[error("segment {index} admits {has:?}, not {wanted:?}")]
    NoRight {
        /// The segment's index.
        index: u32,
        /// What it admits.
        has: Rights,
        /// What was wanted.
        wanted: Rights,
    },
    /// The segment has the length that it has.
    #[error(
        "the segment of rank {rank} cannot grow to {len} bytes: its transport maps segments of a fixed length"
    )]
    FixedSegment {
        /// Whose segment.
        rank: u32,
        /// The length that was asked for.
        len: u64,
    },
    /// The segment cannot grow so far.
    #[error("the segment of rank {rank} cannot grow from {from} to {to} bytes: {cause}")]
    CannotGrow {
        /// Whose segment.
        rank: u32,
        /// Its length.
        from: u64,
        /// The length that was asked for.
        to: u64,
        /// What is in the way, and what to do.
        cause: String,
    },
    /// A copy between runs of different lengths.
    #[error("a copy of {source_len} bytes to {target} bytes")]
    LengthsDiffer {
        /// The length of the target.
        target: usize,
        /// The length of the source.
        source_len: usize,
    },
}

/// A segment's handle: an index, and which of the segments that have had this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentId {
    /// The place in the table.
    pub index: u32,
    /// Which use of that place.
    pub generation: u32,
}

/// What the table knows of a segment.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its bytes in this process.
    pub bytes: RawBytes,
    /// What peers may do with it.
    pub rights: Rights,
    /// Its kind of memory.
    pub kind: KindTag,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    view: Option<View>,
    key: Vec<u8>,
}

/// The table of segments of one job in one process.
#[derive(Debug, Default)]
pub struct SegmentTable {
    entries: Vec<Entry>,
}

impl SegmentTable {
    /// An empty table.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Enters a segment, with the NIC's key for it (empty without a NIC).
    pub fn insert(&mut self, view: View, key: Vec<u8>) -> SegmentId {
        let index = self.entries.iter().position(|e| e.view.is_none() && e.generation < u32::MAX - 1);
        let index = index.unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, view: None, key: Vec::new() });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        entry.generation += 1; // odd: in use (T2)
        entry.view = Some(view);
        entry.key = key;
        SegmentId { index: index as u32, generation: entry.generation }
    }

    /// Takes a segment out.
    ///
    /// # Errors
    /// The handle names none.
    pub fn remove(&mut self, id: SegmentId) -> Result<View, MemoryError> {
        let entry = self.entry_mut(id)?;
        entry.generation += 1; // even: free (T2)
        entry.key.clear();
        entry.view.take().ok_or(stale(id))
    }

    /// What the table knows of a segment.
    ///
    /// # Errors
    /// The handle names none.
    pub fn view(&self, id: SegmentId) -> Result<View, MemoryError> {
        let entry = self.entries.get(id.index as usize).filter(|e| e.generation == id.generation);
        entry.and_then(|e| e.view).ok_or(stale(id))
    }

    /// The NIC's key for a segment.
    ///
    /// # Errors
    /// The handle names none.
    pub fn key(&self, id: SegmentId) -> Result<&[u8], MemoryError> {
        self.view(id)?;
        Ok(&self.entries[id.index as usize].key)
    }

    /// The bytes `offset..offset + len` of a segment, if `wanted` is among its rights. `rank` is who owns it, for
    /// the message.
    ///
    /// # Errors
    /// The handle is stale, the right is missing, or the range is not inside.
    pub fn locate(
        &self,
        id: SegmentId,
        rank: u32,
        offset: u64,
        len: u64,
        wanted: Rights,
    ) -> Result<RawBytes, MemoryError> {
        let view = self.view(id)?;
        if !view.rights.contains(wanted) {
            return Err(MemoryError::NoRight { index: id.index, has: view.rights, wanted });
        }
        let outside = MemoryError::OutsideSegment { rank, offset, len, segment: view.bytes.len() as u64 };
        match (usize::try_from(offset), usize::try_from(len)) {
            (Ok(offset), Ok(len)) => view.bytes.slice(offset, len).ok_or(outside),
            _ => Err(outside),
        }
    }

    fn entry_mut(&mut self, id: SegmentId) -> Result<&mut Entry, MemoryError> {
        let entry = self.entries.get_mut(id.index as usize);
        entry.filter(|e| e.generation == id.generation && e.view.is_some()).ok_or(stale(id))
    }
}

fn stale(id: SegmentId) -> MemoryError {
    MemoryError::StaleSegment { index: id.index, generation: id.generation }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A view of bytes that are never touched here, only located.
    fn view(bytes: &mut [u8]) -> View {
        // SAFETY: the array outlives the table in every test, and is not used otherwise (Y1, Y2).
        let bytes = unsafe { RawBytes::new(bytes.as_mut_ptr(), bytes.len()) };
        View { bytes, rights: Rights::READ, kind: KindTag::Host }
    }

    #[test]
    fn a_handle_does_not_outlive_its_segment() {
        let (mut large, mut small) = ([0; 64], [0; 32]);
        let mut table = SegmentTable::new();
        let first = table.insert(view(&mut large), vec![1]);
        assert!(table.locate(first, 0, 60, 4, Rights::READ).is_ok());
        assert!(table.remove(first).is_ok());
        let second = table.insert(view(&mut small), vec![2]);
        assert_eq!(second.index, first.index);
        assert_eq!(table.view(first).err(), Some(stale(first)));
        assert_eq!(table.remove(first).err(), Some(stale(first)));
        assert_eq!(table.key(second), Ok(&[2u8][..]));
    }

    #[test]
    fn ranges_and_rights_are_checked() {
        let mut bytes = [0; 64];
        let mut table = SegmentTable::new();
        let id = table.insert(view(&mut bytes), Vec::new());
        assert!(table.locate(id, 3, 0, 65, Rights::READ).is_err_and(|e| e.to_string().contains("rank 3")));
        assert!(table.locate(id, 3, u64::MAX, 2, Rights::READ).is_err());
        assert!(matches!(table.locate(id, 3, 0, 1, Rights::WRITE), Err(MemoryError::NoRight { .. })));
        assert!(table.locate(id, 3, 64, 0, Rights::READ).is_ok());
        let first = table.view(id).map(|view| view.bytes.as_ptr()).expect("it is there");
        for (offset, len, is_inside) in [
            (0, 0, true),
            (0, 64, true),
            (0, 65, false),
            (63, 1, true),
            (63, 2, false),
            (64, 1, false),
            (65, 0, false),
            (1, u64::MAX, false),
            (u64::MAX, 0, false),
            (u64::MAX, 1, false),
        ] {
            let located = table.locate(id, 3, offset, len, Rights::READ);
            let located = located.map(|bytes| (bytes.as_ptr(), bytes.len() as u64));
            let outside = MemoryError::OutsideSegment { rank: 3, offset, len, segment: 64 };
            let wanted =
                if is_inside { Ok((first.wrapping_add(offset as usize), len)) } else { Err(outside) };
            assert_eq!(located, wanted);
        }
    }

    /// What a segment does not admit, of each set of rights.
    #[test]
    fn a_right_that_is_missing_is_named() {
        let mut bytes = [0; 8];
        let view = view(&mut bytes);
        let both = Rights::READ | Rights::WRITE;
        for has in [Rights::empty(), Rights::READ, Rights::WRITE, both] {
            let mut table = SegmentTable::new();
            let id = table.insert(View { rights: has, ..view }, Vec::new());
            for wanted in [Rights::empty(), Rights::READ, Rights::WRITE, both] {
                let found = table.locate(id, 0, 0, 8, wanted).map(|bytes| bytes.len());
                let missing = MemoryError::NoRight { index: 0, has, wanted };
                assert_eq!(found, if has & wanted == wanted { Ok(8) } else { Err(missing) });
            }
        }
    }

    /// T2, and that a place in use is nobody else's.
    #[test]
    fn a_handle_counts_the_uses_of_its_place() {
        let (mut large, mut small, mut third) = ([0; 64], [0; 32], [0; 16]);
        let mut table = SegmentTable::new();
        let len_of = |table: &SegmentTable, id| table.view(id).map(|view| view.bytes.len());
        let first = table.insert(view(&mut large), vec![1]);
        let second = table.insert(view(&mut small), vec![2, 2]);
        assert_eq!(
            (first, second),
            (SegmentId { index: 0, generation: 1 }, SegmentId { index: 1, generation: 1 })
        );
        assert_eq!((len_of(&table, first), len_of(&table, second)), (Ok(64), Ok(32)));
        assert_eq!(table.remove(first).map(|view| view.bytes.len()), Ok(64));
        let again = table.insert(view(&mut third), vec![3]);
        assert_eq!(again, SegmentId { index: 0, generation: 3 });
        // Those that are gone, those that never were, and the ones between two uses.
        for (index, generation) in [(0, 0), (0, 1), (0, 2), (0, 4), (1, 0), (1, 2), (2, 1), (u32::MAX, 1)] {
            let id = SegmentId { index, generation };
            assert_eq!(len_of(&table, id), Err(stale(id)));
            assert_eq!(table.key(id), Err(stale(id)));
            assert_eq!(table.remove(id).err(), Some(stale(id)));
            assert_eq!(table.locate(id, 0, 0, 1, Rights::READ).err(), Some(stale(id)));
        }
        assert_eq!((len_of(&table, again), len_of(&table, second)), (Ok(16), Ok(32)));
        assert_eq!((table.key(again), table.key(second)), (Ok(&[3u8][..]), Ok(&[2u8, 2][..])));
    }

    #[test]
    fn a_place_whose_generations_run_out_is_not_used_again() {
        let mut bytes = [0; 8];
        let view = view(&mut bytes);
        let mut table = SegmentTable::new();
        let first = table.insert(view, Vec::new());
        assert!(table.remove(first).is_ok());
        table.entries[0].generation = u32::MAX - 3;
        let last = table.insert(view, Vec::new());
        assert_eq!(last, SegmentId { index: 0, generation: u32::MAX - 2 });
        assert!(table.remove(last).is_ok());
        assert_eq!(table.insert(view, Vec::new()), SegmentId { index: 1, generation: 1 });
        assert_eq!(table.view(last).err(), Some(stale(last)));
    }
}
