//! The memory of a process, as a NIC reaches it.
//!
//! # Invariants
//! - process.1: where a client says that its NIC may write, it may: no reference of this program's leads there, and nothing of it lies
//!   there but what the client put there to be written. Who attaches a NIC to a client's memory promises that.
//! - process.2: what a client posts stays mapped, and is nobody's alone, until the call that posts it returns. Promised as process.1.
//! - process.3: what is written to another process is checked against what its client registered, and is nothing of this program's. One
//!   that is made by number is never this process; a twin is, and process.1 holds for it.

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
    /// process.1 and process.2 hold for all addresses that are registered with a NIC whose memory this is, and for those that are
    /// posted to it.
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
            // SAFETY: process.3: the range at `to` was checked against what the process registered; where that is this one, or its twin, no
            // reference of this program's leads there (process.1). What lies at `from` is read alone.
            Some(self.ask(|| unsafe { self.remote.write_from(to, from, len) }))
        } else if self.own {
            // SAFETY: process.1: `to` is in this process, where its client says that its NIC may write; no reference leads there.
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
        // SAFETY: process.2: the client of this process has named the bytes, keeps them mapped, and holds no exclusive reference.
        self.ask(|| unsafe { remote::read_here(address, into) })
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        // SAFETY: process.3: the range was checked against what the process registered; where that is this one, or its twin, no
        // reference of this program's leads there (process.1).
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
