//! Descriptions of runs in a message: groups of runs of one length at one distance from each other.
//!
//! A group is two words, the place of its first run, and the length and the number of runs; a third has the distance, if there are several.

use gasworks_memory::{RegionTable, Rights};
use gasworks_sync::VolatileSlice;

/// The most words of a description.
pub(super) const MAX_WORDS: usize = 512;
/// The most words by which a run makes it longer.
pub(super) const GROUP_WORDS: usize = 2;

/// Runs of one length, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    place: u64,
    len: u32,
    count: u32,
    stride: i64,
}

impl Group {
    /// The lowest offset, and how many bytes there are from that to the end of the highest run.
    fn extent(&self) -> Option<(u64, usize)> {
        let last = i128::from(self.place) + i128::from(self.stride) * i128::from(self.count.checked_sub(1)?);
        let (low, high) = (last.min(self.place.into()), last.max(self.place.into()) + i128::from(self.len));
        u64::try_from(high).ok()?;
        Some((u64::try_from(low).ok()?, usize::try_from(high - low).ok()?))
    }

    /// How many bytes it has.
    fn bytes(&self) -> Option<usize> {
        (self.len as usize).checked_mul(self.count as usize).filter(|&bytes| bytes > 0)
    }
}

/// A description that is being made.
pub(super) struct Description {
    words: [u64; MAX_WORDS],
    len: usize,
    max: usize,
    /// The last group, which begins at this word.
    last: Option<(usize, Group)>,
}

impl Description {
    /// An empty one, of no more than so many words.
    pub fn new(max: usize) -> Self {
        Self { words: [0; MAX_WORDS], len: 0, max: max.min(MAX_WORDS), last: None }
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// Whether any run has room.
    pub fn has_room(&self) -> bool {
        self.len + GROUP_WORDS <= self.max
    }

    /// Appends a run, for which there is [room](Self::has_room).
    pub fn push(&mut self, place: u64, len: u32) {
        if let Some((at, last)) = &mut self.last {
            let step = place.wrapping_sub(last.place) as i64;
            if last.len == len && last.count == 1 {
                (last.count, last.stride) = (2, step);
                self.words[*at + 1] = u64::from(len) | 2 << 32;
                self.words[self.len] = step as u64;
                self.len += 1;
                return;
            }
            let follows = last.stride.checked_mul(last.count.into()) == Some(step);
            if last.len == len
                && follows
                && let Some(count) = last.count.checked_add(1)
            {
                last.count = count;
                self.words[*at + 1] = u64::from(len) | u64::from(count) << 32;
                return;
            }
        }
        self.last = Some((self.len, Group { place, len, count: 1, stride: 0 }));
        self.words[self.len..][..GROUP_WORDS].copy_from_slice(&[place, u64::from(len) | 1 << 32]);
        self.len += GROUP_WORDS;
    }
}

/// Takes the first group off a description that another rank has sent.
fn next(words: &mut &[u64]) -> Option<Group> {
    let (&[place, shape], mut rest) = words.split_first_chunk()?;
    let (len, count, mut stride) = (shape as u32, (shape >> 32) as u32, 0);
    if count > 1 {
        let (first, others) = rest.split_first()?;
        (stride, rest) = (*first as i64, others);
    }
    *words = rest;
    Some(Group { place, len, count, stride })
}

/// Whose memory a description is of, and what is to be done there.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    pub peers: &'a RegionTable,
    pub rank: u32,
    pub rights: Rights,
}

impl<'a> Owner<'a> {
    /// Tells `act` each group, and its bytes from the lowest on; `None` if one is not as it must be.
    fn each(
        self,
        mut words: &[u64],
        mut act: impl FnMut(Group, u64, VolatileSlice<'a>) -> Option<()>,
    ) -> Option<()> {
        while !words.is_empty() {
            let group = next(&mut words)?;
            let (low, extent) = group.extent()?;
            let there = self.peers.reach(self.rank, low, extent, self.rights).ok().flatten()?;
            act(group, low, there)?;
        }
        Some(())
    }

    /// How many bytes the runs have together, no more than `max`; `None` if one is outside, or anything else is wrong with the description.
    pub fn measure(self, words: &[u64], max: usize) -> Option<usize> {
        let mut total = 0usize;
        self.each(words, |group, _, _| {
            total = total.checked_add(group.bytes()?).filter(|&total| total <= max)?;
            Some(())
        })?;
        Some(total)
    }

    /// Tells `act` the bytes of each run; `None` if one is outside.
    pub fn runs(self, words: &[u64], mut act: impl FnMut(VolatileSlice<'a>) -> Option<()>) -> Option<()> {
        self.each(words, |group, low, there| {
            let mut place = group.place;
            for _ in 0..group.count {
                act(there.slice(place.wrapping_sub(low) as usize, group.len as usize)?)?;
                place = place.wrapping_add_signed(group.stride);
            }
            Some(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(mut words: &[u64]) -> Vec<(u64, u32, u32, i64)> {
        let mut groups = Vec::new();
        while !words.is_empty() {
            let Group { place, len, count, stride } = next(&mut words).expect("a group");
            groups.push((place, len, count, stride));
        }
        groups
    }

    #[test]
    fn runs_at_one_distance_are_one_group() {
        let mut description = Description::new(MAX_WORDS);
        let runs =
            [(100, 8), (90, 8), (80, 8), (70, 8), (61, 8), (200, 4), (u64::MAX - 9, 9), (3, 9), (17, 9)];
        runs.into_iter().for_each(|(place, len)| description.push(place, len));
        let wanted =
            [(100, 8, 4, -10), (61, 8, 1, 0), (200, 4, 1, 0), (u64::MAX - 9, 9, 2, 13), (17, 9, 1, 0)];
        assert_eq!(groups(description.words()), wanted);
        assert_eq!(description.words().len(), 3 + 2 + 2 + 3 + 2);
    }

    #[test]
    fn a_description_takes_what_it_has_room_for() {
        let mut description = Description::new(7);
        for place in [0, 1, 4, 9, 16, 25] {
            if description.has_room() {
                description.push(place, 1);
            }
        }
        assert_eq!(groups(description.words()), [(0, 1, 2, 1), (4, 1, 2, 5)]);
        assert!(!description.has_room());
    }

    #[test]
    fn what_goes_beyond_an_address_has_no_extent() {
        let group = Group { place: 8, len: 4, count: 3, stride: -4 };
        assert_eq!(group.extent(), Some((0, 12)));
        let bad = [
            Group { place: 7, ..group },
            Group { count: 0, ..group },
            Group { place: u64::MAX, ..group },
            Group { count: u32::MAX, stride: i64::MAX, ..group },
            Group { count: u32::MAX, stride: i64::MIN, ..group },
        ];
        assert!(bad.iter().all(|group| group.extent().is_none()));
        let empty = [Group { len: 0, ..group }, Group { count: 0, ..group }];
        assert!(empty.iter().all(|group| group.bytes().is_none()));
        for words in [&[1][..], &[1, 8 | 2 << 32], &[1, 8 | 1 << 32, 5]] {
            let mut words = words;
            assert!(next(&mut words).and_then(|_| next(&mut words)).is_none());
        }
    }
}
