//! The memory of a process, as a NIC reaches it.
//!
//! # Invariants
//! P1. Where a client says that its NIC may write, it may: no reference of this program's leads there, and nothing of it lies
//!     there but what the client put there to be written. Who attaches a NIC to a client's memory promises that.
//! P2. What a client posts stays mapped, and is nobody's alone, until the call that posts it returns. Promised as P1.
//! P3. What is written to another process is checked against what its client registered, and is nothing of this program's. One
//!     that is made by number is never this process; a twin is, and P1 holds for it.

use gasworks_os::OsError;
use gasworks_os::remote::{self, Refused, Remote};
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::memory::{Fault, Memory, PIECE};

/// The memory of a process: this one, or another of this host.
#[derive(Debug)]
pub struct Process {
    remote: Remote,
    own: bool,
    gone: AtomicBool,
}

impl Process {
    /// This process's.
    ///
    /// # Safety
    /// P1 and P2 hold for all addresses that are registered with a NIC whose memory this is, and for those that are posted to it.
    ///
    /// # Errors
    /// The system does not let a process reach even itself.
    pub unsafe fn own() -> Result<Self, OsError> {
        let pid = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        Ok(Self { remote: Remote::open(pid)?, own: true, gone: AtomicBool::new(false) })
    }

    /// That of another process.
    ///
    /// # Errors
    /// There is none, or the system keeps it from this one; or it is this one, whose memory only [`own`](Self::own) gives.
    pub fn other(pid: i32) -> Result<Self, OsError> {
        if i64::from(pid) == i64::from(std::process::id()) {
            return Err(OsError::other("reach the memory of process", pid, "it is this process"));
        }
        Ok(Self { remote: Remote::open(pid)?, own: false, gone: AtomicBool::new(false) })
    }

    /// The same process as the NIC of another of its clients sees it, who has promised the same.
    pub(crate) fn twin(&self) -> Self {
        Self { remote: self.remote, own: false, gone: AtomicBool::new(false) }
    }

    /// It has ended: another may have its number soon, which nothing is to reach from here.
    pub fn give_up(&self) {
        self.gone.store(true, Relaxed);
    }

    /// Whether it has ended, for all that is known here.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Whether the system knows it by this number.
    pub(crate) fn is_of(&self, pid: i32) -> bool {
        self.remote.pid() == pid
    }

    /// Whether both are the same process.
    pub fn is(&self, other: &Process) -> bool {
        self.remote == other.remote
    }

    /// By what the system knows it.
    pub(crate) fn remote(&self) -> Remote {
        self.remote
    }

    fn ask(&self, reach: impl FnOnce() -> Result<(), Refused>) -> Result<(), Fault> {
        if self.is_gone() {
            return Err(Fault::Gone);
        }
        reach().map_err(|refused| match refused {
            Refused::Unmapped => Fault::Unmapped,
            Refused::Gone | Refused::Forbidden => {
                self.give_up();
                Fault::Gone
            }
        })
    }

    /// Copies bytes from another process; `None` if neither is this one.
    pub(crate) fn copy(
        &self,
        to: u64,
        (source, from): (&Process, u64),
        len: u64,
    ) -> Option<Result<(), Fault>> {
        if source.own {
            // SAFETY: P3: the caller has checked the range against what the other process registered; where that is a twin, P1 says that
            // nothing of this program's lies there.
            Some(self.ask(|| unsafe { self.remote.write_from(to, from, len) }))
        } else if self.own {
            // SAFETY: P1.
            Some(source.ask(|| unsafe { source.remote.read_to(from, to, len) }))
        } else {
            None
        }
    }
}

impl Memory for Process {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.ask(|| self.remote.read(address, into))
    }

    fn load(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        if !self.own || into.len() > PIECE {
            return self.read(address, into);
        }
        // SAFETY: P2.
        self.ask(|| unsafe { remote::read_here(address, into) })
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        // SAFETY: P3: as in `copy`, the range was checked against what was registered; P1 where the process is a twin of this one.
        self.ask(|| unsafe { self.remote.write(address, from) })
    }

    fn process(&self) -> Option<&Process> {
        Some(self)
    }
}

// Which Miri has no call for.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn only_who_promises_reaches_this_process() {
        let refused = Process::other(std::process::id() as i32).expect_err("it is this one").to_string();
        assert!(refused.ends_with("it is this process"), "{refused}");
    }
}
