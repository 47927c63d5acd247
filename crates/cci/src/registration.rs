//! Registered memory, and how peers learn what is registered: a table that its owner alone can write, and that every peer can read.
//!
//! # Invariants
//! - registration.1: bytes that were registered stay mapped, readable and writable, and without references to them but atomics, until they are deregistered and no call that uses them is under way:
//!   whoever registers memory of its own promises it, and memory of the library's is its.

use crate::datagram::RegistrationId;
use bitflags::bitflags;
use gasworks_os::memfd::{self, Mapping, MemFd, Published};
use gasworks_os::{OsError, Result};
use gasworks_shmem::{entry, view};
use gasworks_sync::atomic::AtomicU64;
use gasworks_sync::{RawSlice, VolatileSlice};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Registrations that an endpoint can have at once.
pub const MAX_REGISTRATIONS: usize = 4096;
/// Words of an entry: generation and rights, address, length, and nothing yet.
const ENTRY: usize = 4;
const WORDS: usize = ENTRY * MAX_REGISTRATIONS;

bitflags! {
    /// What peers may do with registered memory. Nothing at all makes it the local side of transfers alone.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RmaRights: u32 {
        /// Read it.
        const READ = 1;
        /// Write it.
        const WRITE = 2;
    }
}

/// In the low half of an entry's first word, beside the rights: the entry is one; its memory lies in a file that peers can ask for.
const TAKEN: u64 = 1 << 31;
const IN_FILE: u64 = 1 << 30;

/// The name of registered memory: what a program passes to its peers, by a message for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RmaHandle {
    pub(crate) tag: u32,
    pub(crate) registration: RegistrationId,
    len: u64,
}

impl RmaHandle {
    /// As words, to be sent.
    pub fn to_words(self) -> [u64; 4] {
        let Self { tag, registration: RegistrationId { index, generation }, len } = self;
        [u64::from(tag) << 32 | u64::from(index), generation.into(), len, 0]
    }

    /// From the words of [`to_words`](Self::to_words). Any words are a handle; whether it is one of somebody's is found when it is used.
    pub fn from_words([names, generation, len, _]: [u64; 4]) -> Self {
        let registration = RegistrationId { index: names as u32, generation: generation as u32 };
        Self { tag: (names >> 32) as u32, registration, len }
    }

    /// The bytes of the memory.
    pub fn len(self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// Where registered memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) rights: RmaRights,
    /// Whether it lies in a file that peers can map.
    pub(crate) in_file: bool,
}

impl Extent {
    /// Whether it has these bytes.
    pub(crate) fn has(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }
}

/// Memory of the library's, in a file that peers map.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) mapping: Mapping,
    pub(crate) file: MemFd,
}

/// What registered memory is.
#[derive(Debug)]
pub(crate) enum Memory {
    /// The program's.
    Given(RawSlice),
    /// The program's, which lies in a memory file of its own, from an offset on.
    InFile(RawSlice, OwnedFd, u64),
    /// The library's.
    Shared(Arc<Shared>),
}

impl Memory {
    pub(crate) fn bytes(&self) -> VolatileSlice<'_> {
        match self {
            // SAFETY: registration.1: they are registered as long as this is there.
            Self::Given(bytes) | Self::InFile(bytes, ..) => unsafe { bytes.borrow() },
            Self::Shared(shared) => shared.mapping.bytes(),
        }
    }

    /// The file that peers may map, and where in it the memory begins.
    pub(crate) fn file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        use std::os::fd::AsFd;
        match self {
            Self::Given(_) => None,
            Self::InFile(_, file, offset) => Some((file.as_fd(), *offset)),
            Self::Shared(shared) => Some((shared.file.as_fd(), 0)),
        }
    }
}

/// The registrations of an endpoint.
#[derive(Debug)]
pub(crate) struct Registrations {
    tag: u32,
    table: Mapping,
    file: MemFd,
    places: Vec<(u32, Option<(Memory, RmaRights)>)>,
    free: Vec<u32>,
}

impl Registrations {
    pub(crate) fn create(tag: u32) -> Result<Self> {
        let (file, table) = memfd::create_published("gasworks-cci-registrations", 8 * WORDS)?;
        Ok(Self { tag, table, file, places: Vec::new(), free: Vec::new() })
    }

    /// The table's file, for peers.
    pub(crate) fn file(&self) -> &MemFd {
        &self.file
    }

    fn entry(&self, index: u32) -> Option<&[AtomicU64; 3]> {
        view::slice(self.table.bytes(), 8 * ENTRY * index as usize, ENTRY)?.first_chunk()
    }

    /// Registers memory; `None` if there are too many registrations.
    pub(crate) fn add(&mut self, memory: Memory, rights: RmaRights) -> Option<RmaHandle> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.places.len() < MAX_REGISTRATIONS => {
                self.places.push((0, None));
                self.places.len() as u32 - 1
            }
            None => return None,
        };
        let (address, len) = (memory.bytes().as_ptr().addr() as u64, memory.bytes().len() as u64);
        let generation = self.places[index as usize].0;
        // Who is given a file can write to it.
        let is_open = memory.file().is_some() && rights.contains(RmaRights::WRITE);
        let in_file = if is_open { IN_FILE } else { 0 };
        let first = u64::from(generation) << 32 | TAKEN | in_file | u64::from(rights.bits());
        entry::publish(self.entry(index)?, first, [address, len]);
        self.places[index as usize].1 = Some((memory, rights));
        Some(RmaHandle { tag: self.tag, registration: RegistrationId { index, generation }, len })
    }

    /// Takes a registration back; what it was of, if there was one.
    pub(crate) fn remove(&mut self, handle: RmaHandle) -> Option<Memory> {
        self.find(handle)?;
        let RegistrationId { index, .. } = handle.registration;
        entry::withdraw(self.entry(index)?);
        let place = &mut self.places[index as usize];
        place.0 = place.0.wrapping_add(1);
        self.free.push(index);
        place.1.take().map(|(memory, _)| memory)
    }

    /// The memory of a handle of this endpoint, and what peers may do with it.
    pub(crate) fn find(&self, handle: RmaHandle) -> Option<(&Memory, RmaRights)> {
        if handle.tag != self.tag {
            return None;
        }
        self.find_own(handle.registration)
    }

    /// As [`find`](Self::find), by a name that a peer gives.
    pub(crate) fn find_own(
        &self,
        RegistrationId { index, generation }: RegistrationId,
    ) -> Option<(&Memory, RmaRights)> {
        let (now, memory) = self.places.get(index as usize)?;
        let (memory, rights) = memory.as_ref().filter(|_| *now == generation)?;
        Some((memory, *rights))
    }
}

impl Drop for Registrations {
    /// Peers keep their mapping of the table.
    fn drop(&mut self) {
        for index in 0..self.places.len() as u32 {
            self.entry(index).into_iter().for_each(entry::withdraw);
        }
    }
}

/// The registrations of a peer, as it publishes them.
#[derive(Debug)]
pub(crate) struct PeerRegistrations {
    table: Published,
}

impl PeerRegistrations {
    pub(crate) fn map(file: &OwnedFd) -> Result<Self> {
        use std::os::fd::AsFd;
        let table = memfd::map_published(file.as_fd(), WORDS);
        table
            .map(|table| Self { table })
            .map_err(|OsError { cause, .. }| OsError::other("map", "a peer's registrations", cause))
    }

    /// What a handle names; `None` if it is no registration of the peer's, or not any more.
    pub(crate) fn find(&self, RegistrationId { index, generation }: RegistrationId) -> Option<Extent> {
        let first = ENTRY * index as usize;
        let (state, [address, len]) = entry::read(|at| self.table.load(first + at))?;
        let is_it = state & TAKEN != 0 && (state >> 32) as u32 == generation;
        let rights = RmaRights::from_bits_truncate(state as u32);
        is_it.then_some(Extent { address, len, rights, in_file: state & IN_FILE != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn given(len: usize) -> Memory {
        Memory::Given(RawSlice::new(vec![0u8; len].leak().as_mut_ptr(), len))
    }

    #[test]
    fn a_peer_sees_what_is_registered_and_what_not_any_more() {
        let mut own = Registrations::create(7).expect("memory");
        let file = own.file().as_fd().try_clone_to_owned().expect("a descriptor");
        let peer = PeerRegistrations::map(&file).expect("the peer's");
        let one = own.add(given(100), RmaRights::READ).expect("room");
        assert_eq!(RmaHandle::from_words(one.to_words()), one);
        let extent = peer.find(one.registration).expect("it is there");
        assert_eq!((extent.len, extent.rights, extent.in_file), (100, RmaRights::READ, false));
        assert!(extent.has(0, 100) && extent.has(100, 0) && !extent.has(1, 100) && !extent.has(u64::MAX, 2));
        assert!(own.find(RmaHandle { tag: 8, ..one }).is_none(), "of another endpoint");
        assert!(own.remove(one).is_some() && own.remove(one).is_none());
        assert!(peer.find(one.registration).is_none() && own.find(one).is_none());
        let two = own.add(given(5), RmaRights::empty()).expect("room");
        assert_eq!((two.registration.index, two.registration.generation), (0, 1));
        assert!(peer.find(one.registration).is_none() && peer.find(two.registration).is_some());
        for index in [1, MAX_REGISTRATIONS as u32 - 1, MAX_REGISTRATIONS as u32, u32::MAX] {
            assert!(peer.find(RegistrationId { index, generation: 0 }).is_none(), "{index}");
        }
    }

    #[test]
    fn there_are_not_more_than_the_table_holds() {
        let mut own = Registrations::create(7).expect("memory");
        let mut last = None;
        for _ in 0..MAX_REGISTRATIONS {
            last = own.add(given(1), RmaRights::empty());
            assert!(last.is_some());
        }
        assert!(own.add(given(1), RmaRights::empty()).is_none());
        own.remove(last.expect("a handle"));
        assert!(own.add(given(1), RmaRights::empty()).is_some());
    }

    /// The table's file cannot be written by who is given it.
    #[test]
    fn peers_cannot_write_the_table() {
        let own = Registrations::create(7).expect("memory");
        assert!(memfd::map(own.file().as_fd(), 8 * WORDS).is_err());
        assert!(nix::unistd::write(own.file(), &[1]).is_err());
    }
}
