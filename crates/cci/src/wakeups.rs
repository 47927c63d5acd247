//! The memory of an endpoint by which peers say that something has come: a bit for each connection, and a doorbell.
//!
//! Each peer maps it. What lies in it are hints: a peer that writes nonsense there causes looks for nothing, or delays others' messages until the endpoint looks without a
//! hint ([`Endpoint`](crate::endpoint::Endpoint)).

use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_os::{OsError, Result};
use gasworks_shmem::doorbell::Doorbell;
use gasworks_shmem::ready::Ready;
use gasworks_shmem::view;
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
    mapping: Mapping,
}

impl Wakeups {
    /// Makes an endpoint's own; and its file, for peers.
    pub(crate) fn create() -> Result<(Self, MemFd)> {
        let file = memfd::create("gasworks-cci-wakeups", LEN)?;
        Ok((Self { mapping: file.map()? }, file))
    }

    /// Maps a peer's.
    pub(crate) fn map(file: &OwnedFd) -> Result<Self> {
        if !memfd::is_sealed(file.as_fd()) {
            return Err(OsError::other("map", "a peer's memory", "its size can change"));
        }
        Ok(Self { mapping: memfd::map(file.as_fd(), LEN)? })
    }

    /// The doorbell.
    pub(crate) fn bell(&self) -> Option<&Doorbell> {
        view::slice::<Doorbell>(self.mapping.bytes(), 0, 1)?.first()
    }

    /// The bits.
    #[inline]
    pub(crate) fn ready(&self) -> Option<Ready<'_>> {
        let words = |at, count| view::slice::<AtomicU64>(self.mapping.bytes(), at, count);
        Ready::new(
            words(SUMMARY, Ready::summary_words(CONNECTIONS))?,
            words(BITS, Ready::words(CONNECTIONS))?,
        )
    }

    /// Says that a connection of the endpoint has something; whether the endpoint is asleep, so that it is to be sent a datagram.
    #[must_use = "the endpoint may be asleep"]
    pub(crate) fn signal(&self, connection: u16) -> bool {
        let (Some(ready), Some(bell)) = (self.ready(), self.bell()) else { return false };
        ready.set(connection.into());
        bell.ring()
    }
}
