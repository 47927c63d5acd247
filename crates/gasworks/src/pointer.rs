//! Typed addresses in the segments of a job.

use crate::Error;
use bytemuck::Pod;
use gasworks_core::{RemoteAddr, View};
use gasworks_memory::RegionId;
use std::marker::PhantomData;

/// The place of a `T` in some rank's segment, or in a [`Region`](crate::Region) of its: a rank and an offset in bytes. It is checked when it is
/// used. On the agent of a [team](crate::Team) the rank is the number of a member; on the agent of a region
/// ([`Agent::on_region`](crate::Agent::on_region)) an offset in a segment is one in the region.
pub struct GlobalPtr<T> {
    rank: u32,
    offset: u64,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> GlobalPtr<T> {
    /// The place `offset` bytes into the segment of `rank`.
    pub const fn new(rank: u32, offset: u64) -> Self {
        Self { rank, offset, of: PhantomData }
    }

    /// Whose segment it is in.
    pub const fn rank(self) -> u32 {
        self.rank
    }

    /// Where in that segment, in bytes. Of a place in a region it is a number that names the region as well.
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// As the layer below takes it: a rank of the job and an offset.
    ///
    /// # Errors
    /// The view has no such member.
    #[inline]
    pub(crate) fn place(self, view: View<'_>) -> Result<(u32, u64), Error> {
        Ok(view.place_of(self.rank, self.offset)?)
    }

    /// What a put or get on a view is for.
    #[inline(always)]
    pub(crate) fn remote(self, view: View<'_>) -> RemoteAddr<'_> {
        view.at(self.rank, self.offset)
    }

    /// The same place for calls that are not on the view, but for its numbers of ranks.
    ///
    /// # Errors
    /// Those of [`place`](Self::place).
    #[inline]
    pub(crate) fn known(self, view: View<'_>) -> Result<Self, Error> {
        Ok(Self::new(self.rank, self.place(view)?.1))
    }

    /// The same place in another rank's segment, or its part of the same region.
    #[must_use]
    pub const fn on(self, rank: u32) -> Self {
        Self::new(rank, self.offset)
    }

    /// The place `count` values further on.
    ///
    /// # Errors
    /// The offset would not fit 64 bits, or be in another region.
    #[expect(clippy::should_implement_trait, reason = "named like a raw pointer's, and it can fail")]
    #[inline(always)]
    pub fn add(self, count: u64) -> Result<Self, Error> {
        let offset =
            count.checked_mul(size_of::<T>() as u64).and_then(|bytes| self.offset.checked_add(bytes));
        match offset {
            Some(offset) if RegionId::is_same(self.offset, offset) => Ok(Self::new(self.rank, offset)),
            _ => Err(self.beyond(count)),
        }
    }

    #[cold]
    fn beyond(self, count: u64) -> Error {
        Error::Pointer(format!("{self:?} + {count} values is beyond the largest offset"))
    }

    /// The same place, taken for another type.
    #[must_use]
    pub const fn cast<U: Pod>(self) -> GlobalPtr<U> {
        GlobalPtr::new(self.rank, self.offset)
    }

    /// As three words that fit the arguments of a message.
    pub const fn to_words(self) -> [u32; 3] {
        [self.rank, self.offset as u32, (self.offset >> 32) as u32]
    }

    /// From the words of [`to_words`](Self::to_words).
    pub const fn from_words(words: [u32; 3]) -> Self {
        Self::new(words[0], words[1] as u64 | (words[2] as u64) << 32)
    }
}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for GlobalPtr<T> {}
impl<T> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.rank, self.offset) == (other.rank, other.offset)
    }
}
impl<T> Eq for GlobalPtr<T> {}
impl<T> std::fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, of) = (self.rank, std::any::type_name::<T>());
        match RegionId::of(self.offset) {
            Some((id, offset)) => write!(f, "rank {rank} region {id} byte {offset} ({of})"),
            None => write!(f, "rank {rank} byte {} ({of})", self.offset),
        }
    }
}

/// How many bytes so many values take.
///
/// # Errors
/// They are more than an address counts.
pub(crate) fn bytes_of<T>(count: usize) -> Result<usize, Error> {
    let too_many = || {
        Error::Pointer(format!("{count} values of {} bytes are more than an address counts", size_of::<T>()))
    };
    count.checked_mul(size_of::<T>()).ok_or_else(too_many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_arithmetic() {
        let p = GlobalPtr::<u64>::new(3, u64::MAX - 20);
        assert_eq!(GlobalPtr::from_words(p.to_words()), p);
        assert_eq!(p.add(2).map(|p| p.offset()).ok(), Some(u64::MAX - 4));
        assert!(p.add(3).is_err_and(|e| e.to_string().contains("largest offset")));
        assert!(p.add(u64::MAX).is_err());
        assert_eq!(p.on(1).rank(), 1);
        let id = RegionId { index: 70, generation: 2 };
        let at = |offset| GlobalPtr::<u64>::new(3, id.place(offset).expect("it is no farther"));
        assert_eq!(at(8).add(3).ok(), Some(at(32)));
        assert_eq!(format!("{:?}", at(8)), "rank 3 region 70.2 byte 8 (u64)");
        for (place, count) in [(at(8), RegionId::MAX_LEN / 8), (GlobalPtr::new(3, 0), 1 << 59)] {
            assert!(place.add(count).is_err(), "{place:?}");
        }
    }
}
