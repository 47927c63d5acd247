//! What an endpoint knows of another one, whichever of its connections lead there.

use crate::datagram::{Nonce, Party};
use crate::fifo::PeerFiles;
use crate::link::PeerHalf;
use crate::registration::PeerRegistrations;
use crate::uri::Uri;
use crate::wakeups::Wakeups;
use gasworks_os::Result;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// A file, as the system knows it: device and inode.
pub(super) type FileId = (u64, u64);

/// A peer's process and tag.
pub(super) type PeerKey = (i32, u32);

/// Another endpoint.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its socket, and which file that was: another endpoint may come to have the path.
    pub(super) socket: PathBuf,
    file: Option<FileId>,
    /// Its process, as the kernel says.
    pub(super) pid: i32,
    pub(super) tag: u32,
    /// Where a number lies in its memory, and which.
    pub(super) mark: (u64, Nonce),
    /// The memory that it has passed. Not all that work by FIFOs have some.
    pub(super) memory: Option<PeerMemory>,
    /// Its files, if it works by FIFOs.
    files: Option<Arc<PeerFiles>>,
}

/// The memory of another endpoint.
#[derive(Debug)]
pub(super) struct PeerMemory {
    pub(super) wakeups: Wakeups,
    pub(super) registrations: PeerRegistrations,
}

impl PeerMemory {
    pub(super) fn map(wakeups: &OwnedFd, registrations: &OwnedFd) -> Result<Self> {
        Ok(Self { wakeups: Wakeups::map(wakeups)?, registrations: PeerRegistrations::map(registrations)? })
    }
}

impl Peer {
    pub(super) fn new(
        uri: &Uri,
        pid: i32,
        party: &Party,
        memory: Option<PeerMemory>,
        half: &PeerHalf,
    ) -> Self {
        let socket = uri.socket();
        let file = file_at(&socket);
        let files = match half {
            PeerHalf::Rings(_) => None,
            PeerHalf::Fifo(files) => Some(files.clone()),
        };
        Self { socket, file, pid, tag: party.tag, mark: (party.mark, party.marked), memory, files }
    }

    /// What a connection to this peer works by: files are opened once for all.
    pub(super) fn half(&self, half: PeerHalf) -> PeerHalf {
        match (half, &self.files) {
            (PeerHalf::Fifo(_), Some(files)) => PeerHalf::Fifo(files.clone()),
            (half, _) => half,
        }
    }

    /// By which it is known: its process, as the kernel says, and what it says itself. So no other process can be taken for it.
    pub(super) fn key(&self) -> PeerKey {
        (self.pid, self.tag)
    }

    /// Whether its socket is still the one that it was.
    pub(super) fn has_its_socket(&self) -> bool {
        file_at(&self.socket) == self.file
    }
}

fn file_at(path: &std::path::Path) -> Option<FileId> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The endpoints that connections lead to.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_socket: HashMap<(FileId, PeerKey), Weak<Peer>>,
    /// How many there may be until those that are gone are looked for.
    limit: usize,
}

impl Peers {
    /// A peer, which may be known by another connection: its memory is mapped once.
    pub(super) fn known(&mut self, peer: Peer) -> Arc<Peer> {
        let Some(file) = peer.file else { return Arc::new(peer) };
        if self.by_socket.len() >= self.limit {
            self.by_socket.retain(|_, peer| peer.strong_count() > 0);
            self.limit = 2 * self.by_socket.len() + 16;
        }
        let place = self.by_socket.entry((file, peer.key())).or_default();
        place.upgrade().unwrap_or_else(|| {
            let peer = Arc::new(peer);
            *place = Arc::downgrade(&peer);
            peer
        })
    }
}
