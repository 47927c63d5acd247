//! The memory of an endpoint by which peers say that something has come: a bit for each connection, and a doorbell.
//!
//! Each peer maps it. What lies in it are hints: a peer that writes nonsense there causes looks for nothing, or delays others' messages until the endpoint looks without a
//! hint ([`Endpoint`](crate::endpoint::Endpoint)).
//!
//! # Invariants
//! - wakeups.1: the places lie in the mapping, which is there as long as they, and stays where it is when this is moved.

use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_os::{OsError, Result};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::ready::Ready;
use gasworks_shmem::view::{self, Place, Shared};
use gasworks_sync::atomic::AtomicU64;
use std::os::fd::{AsFd, OwnedFd};

/// Connections of an endpoint.
const CONNECTIONS: usize = 1 << 16;
/// Where the summary and the bits are; the doorbell comes first.
const SUMMARY: usize = 128;
const BITS: usize = 4096;
const LEN: usize = BITS + 8 * Ready::words(CONNECTIONS);
const _: () = assert!(SUMMARY + 8 * Ready::summary_words(CONNECTIONS) <= BITS);

/// Such memory, of this endpoint or of a peer.
#[derive(Debug)]
pub(crate) struct Wakeups {
    bell: Place<Doorbell>,
    summary: Place<AtomicU64>,
    bits: Place<AtomicU64>,
    /// What keeps it.
    _mapping: Mapping,
}

impl Wakeups {
    /// Makes an endpoint's own; and its file, for peers.
    pub(crate) fn create() -> Result<(Self, MemFd)> {
        let file = memfd::create("gasworks-cci-wakeups", LEN)?;
        Ok((Self::of(file.map()?)?, file))
    }

    /// Maps a peer's.
    pub(crate) fn map(file: &OwnedFd) -> Result<Self> {
        if !memfd::is_sealed(file.as_fd()) {
            return Err(OsError::other("map", "a peer's memory", "its size can change"));
        }
        Self::of(memfd::map(file.as_fd(), LEN)?)
    }

    fn of(mapping: Mapping) -> Result<Self> {
        fn place<T: Shared>(mapping: &Mapping, at: usize, count: usize) -> Result<Place<T>> {
            let place = view::slice(mapping.bytes(), at, count).map(Place::of);
            place.ok_or_else(|| OsError::other("use", "an endpoint's memory", "it is too small"))
        }
        Ok(Self {
            bell: place(&mapping, 0, 1)?,
            summary: place(&mapping, SUMMARY, Ready::summary_words(CONNECTIONS))?,
            bits: place(&mapping, BITS, Ready::words(CONNECTIONS))?,
            _mapping: mapping,
        })
    }

    /// The doorbell.
    pub(crate) fn bell(&self) -> Option<&Doorbell> {
        // SAFETY: wakeups.1: the bell lies in the mapping, which is borrowed with this.
        unsafe { self.bell.get() }.first()
    }

    /// The bits.
    #[inline]
    pub(crate) fn ready(&self) -> Option<Ready<'_>> {
        // SAFETY: wakeups.1: the words lie in the mapping, which is borrowed with this.
        let (summary, bits) = unsafe { (self.summary.get(), self.bits.get()) };
        Ready::new(summary.first_chunk::<{ Ready::summary_words(CONNECTIONS) }>()?, bits)
    }

    /// Says that a connection of the endpoint has something; whether the endpoint is asleep, so that it is to be sent a datagram.
    #[must_use = "the endpoint may be asleep"]
    pub(crate) fn signal(&self, connection: u16) -> bool {
        let (Some(ready), Some(bell)) = (self.ready(), self.bell()) else { return false };
        ready.set(connection.into());
        bell.ring()
    }
}
