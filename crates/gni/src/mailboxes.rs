//! Mailboxes: room of this rank for the messages of those that talk to it, so that a message and its notification are one post.
//!
//! A rank that has never talked has none. They are made a few at a time, in memory that is registered then.
//!
//! # Invariants
//! - mailboxes.1: a slab keeps its mapping, and is dropped with the transport, which whoever uses its parts keeps.

use crate::domain::Network;
use crate::handle::Handle;
use crate::kept::{Closed, Kept};
use crate::region::Region;
use gasworks_os::memfd;
use gasworks_sync::VolatileSlice;

/// Granules of a mailbox: a set of them is a word.
pub(crate) const GRANULES: u32 = 64;
/// Mailboxes that are made at a time.
const TOGETHER: u32 = 16;

/// What mailboxes look like, the same in all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Letters at its start.
    pub tickets: u32,
    /// Bytes of a granule.
    pub granule: usize,
}

impl Shape {
    /// For requests of so many bytes in all, each at most `largest` bytes long with what goes with it.
    pub fn new(tickets: u32, volume: u64, largest: usize) -> Self {
        let room = usize::try_from(volume).unwrap_or(usize::MAX).clamp(2 * largest, 64 * largest);
        Self { tickets, granule: room.div_ceil(GRANULES as usize).next_power_of_two() }
    }

    /// Where a request's letter is.
    pub fn letter(&self, ticket: u32) -> usize {
        8 * ticket as usize
    }

    /// Where a granule is.
    pub fn granule(&self, number: u32) -> usize {
        (8 * self.tickets as usize).next_multiple_of(64) + self.granule * number as usize
    }

    /// Granules that hold so many bytes.
    pub fn count(&self, len: usize) -> u32 {
        len.div_ceil(self.granule) as u32
    }

    /// Bytes of a mailbox.
    pub fn len(&self) -> usize {
        self.granule(GRANULES)
    }

    /// Bytes that are registered for so many.
    pub fn len_of(&self, mailboxes: u32) -> u64 {
        u64::from(mailboxes).next_multiple_of(TOGETHER.into()) * self.len() as u64
    }
}

struct Slab {
    handle: Handle,
    bytes: VolatileSlice<'static>,
    /// It is here for mailboxes.1.
    _mapping: Kept,
}

/// All that this rank has.
pub(crate) struct Mailboxes {
    pub shape: Shape,
    slabs: Vec<Slab>,
    given: u32,
    most: u32,
    /// `GNI_MEM_*` of their registrations.
    flags: u32,
    closed: Closed,
}

impl Mailboxes {
    pub fn new(shape: Shape, most: u32, flags: u32, closed: Closed) -> Self {
        Self { shape, slabs: Vec::new(), given: 0, most, flags, closed }
    }

    /// Gives one away; `None` if there are no more, or no memory for one.
    pub fn give(&mut self, domain: &mut impl Network) -> Option<u32> {
        if self.given == self.most {
            return None;
        }
        if self.given as usize == self.slabs.len() * TOGETHER as usize && !self.grow(domain) {
            // What cannot be had now will not be asked for again and again.
            self.most = self.given;
            return None;
        }
        self.given += 1;
        Some(self.given - 1)
    }

    fn grow(&mut self, domain: &mut impl Network) -> bool {
        let len = self.shape.len() * TOGETHER as usize;
        let Ok(mapping) = memfd::create("gasworks-mailboxes", len).and_then(|file| file.map()) else {
            return false;
        };
        // SAFETY: mailboxes.1: the slab that is made next keeps the mapping.
        let bytes = unsafe { mapping.bytes().raw().borrow::<'static>() };
        // SAFETY: mailboxes.1: it stays mapped until the domain has ended.
        match unsafe { domain.register(bytes.raw(), true, self.flags) } {
            Ok(handle) => {
                self.slabs.push(Slab { handle, bytes, _mapping: Kept::new(mapping, self.closed.clone()) });
                true
            }
            Err(code) => {
                tracing::debug!(code, len, "mailboxes could not be registered: messages are fetched");
                false
            }
        }
    }

    /// A mailbox that was given away.
    pub fn get(&self, number: u32) -> Option<Region> {
        let slab = self.slabs.get((number / TOGETHER) as usize)?;
        let len = self.shape.len();
        Some(Region::new(slab.bytes.slice(len * (number % TOGETHER) as usize, len)?))
    }

    /// What its user has to know.
    pub fn told(&self, number: u32) -> Option<(u64, Handle)> {
        let slab = self.slabs.get((number / TOGETHER) as usize)?;
        Some((self.get(number)?.address(0), slab.handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_holds_what_may_be_under_way() {
        let shape = Shape::new(12, 12 << 10, 4160);
        assert_eq!((shape.granule, shape.len()), (256, 128 + 64 * 256));
        assert_eq!((shape.count(1), shape.count(256), shape.count(4160)), (1, 1, 17));
        assert!(shape.letter(11) + 8 <= shape.granule(0));
        // Two of the largest, whatever the volume says.
        let tight = Shape::new(64, 0, 65_600);
        assert!(tight.count(65_600) * 2 <= GRANULES);
        assert!(Shape::new(1, u64::MAX, 4160).len() < 1 << 20);
        let len = shape.len() as u64;
        assert_eq!([0, 1, 16, 17].map(|count| shape.len_of(count)), [0, 16 * len, 16 * len, 32 * len]);
    }
}
