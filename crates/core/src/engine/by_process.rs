//! Transfers by the system: how memory that ranks give to regions is reached in other processes of this host (`process_vm_readv(2)`,
//! `process_vm_writev(2)`). Its owner takes no part in it.
//!
//! The key of a rank's part says which process it is, and where a nonce lies that only this process has. A number
//! may name another process here than there, as in another namespace of them; so it is used if the nonce is found. A rank that names another's
//! process reaches nothing that it could not reach itself, by the same calls. What the system does not allow goes by messages.
//!
//! # Invariants
//! - by_process.1: peers may read and write a rank's part of a region from when it is published until all ranks have withdrawn the region, or
//!   met to close the job: its owner frees nothing before. A copy holds the lock of [`ByProcess`] and has looked meanwhile that neither has
//!   begun here; who begins one takes the lock alone afterwards, and only then meets the others.
//! - by_process.2: the local bytes of a copy stay mapped while it lasts, unchanged for a put and nobody else's for a get.
//! - by_process.3: a [`Process`] is never this one, so nothing of this program's is written at an address of its.

use super::Engine;
use crate::{CoreMode, Error, Rank};
use gasworks_memory::{RegionId, Rights};
use gasworks_os::remote::{Refused, Remote};
use gasworks_os::{OsError, process, random};
use gasworks_rdma::{Direction, NicError};
use gasworks_sync::{RawSlice, kill_point};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

const NONCE: usize = 16;

/// What a rank says of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Card {
    pid: i32,
    nonce: [u8; NONCE],
    /// Where that lies.
    address: u64,
}

impl Card {
    /// That of a rank whose process nobody is to reach: no process has that number.
    const NONE: Self = Self { pid: 0, nonce: [0; NONCE], address: 0 };

    fn key(&self) -> Vec<u8> {
        [&self.pid.to_le_bytes()[..], &self.nonce, &self.address.to_le_bytes()].concat()
    }

    fn read(key: &[u8]) -> Option<Self> {
        let (pid, key) = key.split_first_chunk()?;
        let (&nonce, address) = key.split_first_chunk()?;
        let address = u64::from_le_bytes(address.try_into().ok()?);
        Some(Self { pid: i32::from_le_bytes(*pid), nonce, address })
    }
}

/// Another process of this host, which is the one that was meant.
#[derive(Debug)]
struct Process {
    remote: Remote,
    /// Tells of its end, after which the system may give its number to another.
    handle: OwnedFd,
}

impl Process {
    /// # Errors
    /// The number is another process's here, or the system does not allow it.
    fn open(card: &Card) -> Result<Self, OsError> {
        let Card { pid, nonce, address } = *card;
        let other = |why| Err(OsError::other("reach the memory of process", pid, why));
        if pid == Card::NONE.pid {
            return other("its rank has messages be used");
        }
        if i64::from(pid) == i64::from(std::process::id()) {
            return other("it is this process");
        }
        let (handle, mut found) = (process::open(pid)?, [0; NONCE]);
        let remote = Remote::open(pid)?;
        let read = remote.read(address, &mut found);
        // The handle is of the process that was read, if that has not ended before.
        if read.is_err() || found != nonce || process::has_ended(handle.as_fd()) {
            return other("here that number is another process's");
        }
        Ok(Self { remote, handle })
    }

    /// Copies between `local` and the bytes at an address of the process.
    ///
    /// # Safety
    /// by_process.1 and by_process.2, for these bytes.
    unsafe fn copy(&self, is_put: bool, peer: Rank, address: u64, local: RawSlice) -> Result<(), NicError> {
        let (here, len) = (local.as_ptr() as u64, local.len() as u64);
        // Numbers are given out in turn, so none is used again between this look and the copy.
        if process::has_ended(self.handle.as_fd()) {
            return Err(NicError::PeerGone { peer });
        }
        kill_point!("by_process.copy");
        let copied = if is_put {
            // SAFETY: by_process.3: it is another process, and by_process.1: whose rank lets these bytes be written.
            unsafe { self.remote.write_from(address, here, len) }
        } else {
            // SAFETY: by_process.2: nobody else uses the bytes from `here` on, as the caller promises.
            unsafe { self.remote.read_to(address, here, len) }
        };
        copied.map_err(|refused| match refused {
            Refused::Unmapped => NicError::Fault { peer },
            Refused::Gone => NicError::PeerGone { peer },
            Refused::Forbidden => {
                NicError::Unreachable { peer, why: "the system does not allow it any more" }
            }
        })
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whether no part is reached any more.
    closed: bool,
    /// The processes that were asked for, and why one cannot be reached.
    processes: BTreeMap<Rank, (Card, Result<Process, OsError>)>,
}

/// The processes of other ranks.
#[derive(Debug)]
pub(super) struct ByProcess {
    nonce: Box<[u8; NONCE]>,
    state: RwLock<State>,
}

impl ByProcess {
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn new() -> Result<Self, OsError> {
        Ok(Self { nonce: Box::new(random::nonce()?), state: RwLock::default() })
    }

    /// The key of a rank's part of a region, which is as long if its process is not to be reached.
    pub(super) fn no_key() -> Vec<u8> {
        Card::NONE.key()
    }

    /// The key of this rank's part of a region.
    pub(super) fn key(&self) -> Vec<u8> {
        let pid = std::process::id() as i32;
        Card { pid, nonce: *self.nonce, address: self.nonce.as_ptr() as u64 }.key()
    }

    /// What `act` makes of the process of a rank, if that can be reached; it is asked for once.
    fn with<T>(&self, peer: Rank, card: &Card, act: impl FnOnce(&Process) -> Option<T>) -> Option<T> {
        let mut state = self.state.read();
        if !state.processes.contains_key(&peer) {
            drop(state);
            let ask = || (*card, Process::open(card));
            self.state.write().processes.entry(peer).or_insert_with(ask);
            state = self.state.read();
        }
        let (known, process) = state.processes.get(&peer)?;
        // A rank has one card.
        let usable = !state.closed && known == card;
        act(process.as_ref().ok().filter(|_| usable)?)
    }

    /// Waits until the copies have ended that other threads have begun. Those that begin later see what was withdrawn before this.
    pub(super) fn settle(&self) {
        drop(self.state.write());
    }

    /// Has everything go by messages from now on.
    pub(super) fn close(&self) {
        self.state.write().closed = true;
    }

    /// The ranks whose processes are reached; and the others that were asked for, with what is in the way.
    pub(super) fn standing(&self) -> (Vec<Rank>, Vec<(Rank, String)>) {
        let state = self.state.read();
        let reached = state.processes.iter().filter(|(_, (_, process))| process.is_ok());
        let refused = state
            .processes
            .iter()
            .filter_map(|(&rank, (_, process))| Some((rank, process.as_ref().err()?.to_string())));
        (reached.map(|(&rank, _)| rank).collect(), refused.collect())
    }
}

impl<M: CoreMode> Engine<M> {
    /// What `act` makes of the process of a rank and the address there of a place in a region, if that can be reached by the system.
    fn with_process<T>(
        &self,
        peer: Rank,
        place: u64,
        act: impl FnOnce(&Process, u64) -> Option<T>,
    ) -> Option<T> {
        let by_process = self.by_process()?;
        RegionId::of(place)?;
        let (key, base, offset) = self.peers.remote(peer, place);
        by_process.with(peer, &Card::read(key)?, |process| act(process, base.wrapping_add(offset)))
    }

    /// Whether a place is in a region, in a process that is reached by the system.
    pub(super) fn reaches_process(&self, peer: Rank, place: u64) -> bool {
        self.with_process(peer, place, |_, _| Some(())).is_some()
    }

    /// Copies between `local` and a place in a region; `None` if the system does not, and messages have to.
    ///
    /// # Safety
    /// by_process.2: the bytes of `local` stay mapped, unchanged for a put and nobody else's for a get, until this returns.
    pub(super) unsafe fn copy_by_process(
        &self,
        direction: Direction,
        peer: Rank,
        place: u64,
        local: RawSlice,
    ) -> Option<Result<(), NicError>> {
        let (is_put, rights) = match direction {
            Direction::Put => (true, Rights::WRITE),
            Direction::Get => (false, Rights::READ),
            Direction::Update(_) => return None,
        };
        self.with_process(peer, place, |process, address| {
            // Under the lock: whether it is withdrawn.
            let None = self.peers.reach(peer, place, local.len(), rights).ok()? else { return None };
            // SAFETY: by_process.1: the range is in a region that this rank has not withdrawn, and so not its owner, until the lock is free.
            // by_process.2: promised for `local` by the caller.
            Some(unsafe { process.copy(is_put, peer, address, local) })
        })
    }

    /// Puts the payload of a Long where it lands.
    pub(super) fn land_by_process(&self, to: Rank, landing: u64, payload: &[u8]) -> Result<(), Error> {
        const DURING: &str = "put of a long message";
        let local = RawSlice::new(payload.as_ptr().cast_mut(), payload.len());
        // SAFETY: by_process.2: the payload is borrowed, and a put only reads it.
        match unsafe { self.copy_by_process(Direction::Put, to, landing, local) } {
            Some(copied) => copied.map_err(|cause| Error::Nic { during: DURING, cause }),
            // What was found a moment ago was withdrawn meanwhile.
            None => Err(Error::Unreachable { during: DURING, rank: to }),
        }
    }

    /// Has memory that other ranks gave be reached by messages alone: before the ranks meet to close the job, after which it is freed.
    pub fn close_processes(&self) {
        self.by_process().into_iter().for_each(ByProcess::close);
    }
}

// Which Miri has no call for.
#[cfg(all(test, not(miri)))]
mod tests;
