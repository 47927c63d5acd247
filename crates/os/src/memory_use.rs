//! How much memory this process uses, and of what kind (`/proc/self/smaps_rollup`), and how it uses less.
//!
//! # Invariants
//! - memory_use.1: the allocator's own functions may be called at any time, by any thread outside of signal handlers.

use crate::{OsError, Result};
use std::fs;

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it has in memory, shared or not.
    pub resident: u64,
    /// The same, with what is shared divided among those who share it.
    pub proportional: u64,
    /// What it alone has mapped and has changed.
    pub private_dirty: u64,
    /// What it alone has mapped and has not changed.
    pub private_clean: u64,
    /// What of it is of no file. Pages of a program that was just built count as changed, whoever reads them: these do not.
    pub anonymous: u64,
    /// What others have mapped too and somebody has changed.
    pub shared_dirty: u64,
    /// What others have mapped too and nobody has changed: programs and libraries above all.
    pub shared_clean: u64,
    /// What of it is shared memory, by whatever name above: a page of it that was only read counts as clean there.
    pub shared_memory: u64,
    /// The kernel's page tables for it.
    pub page_tables: u64,
}

impl MemoryUse {
    /// What another process of the same program costs: private memory, and shared memory that was written.
    pub fn private_and_shared_dirty(&self) -> u64 {
        self.private_dirty + self.private_clean + self.shared_dirty
    }
}

/// What this process uses now.
///
/// # Errors
/// `/proc` is not there or does not say.
pub fn own() -> Result<MemoryUse> {
    let read = |path: &str| fs::read_to_string(path).map_err(|e| OsError::new("read", path, e));
    let (rollup, status) = (read("/proc/self/smaps_rollup")?, read("/proc/self/status")?);
    parse(&rollup, &status)
        .map_err(|name| OsError::other("read", "the memory of this process", format!("no {name}")))
}

/// Has the C library's allocator give back to the system what nobody uses any more.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: memory_use.1: the call takes the number of bytes to keep, and locks what it looks at.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn parse(rollup: &str, status: &str) -> std::result::Result<MemoryUse, &'static str> {
    let field = |text: &str, name: &'static str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        number.and_then(|kib| kib.checked_mul(1024)).ok_or(name)
    };
    Ok(MemoryUse {
        resident: field(rollup, "Rss")?,
        proportional: field(rollup, "Pss")?,
        private_dirty: field(rollup, "Private_Dirty")?,
        private_clean: field(rollup, "Private_Clean")?,
        anonymous: field(rollup, "Anonymous")?,
        shared_dirty: field(rollup, "Shared_Dirty")?,
        shared_clean: field(rollup, "Shared_Clean")?,
        shared_memory: field(status, "RssShmem")?,
        page_tables: field(status, "VmPTE")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;

    #[test]
    fn fields_are_found_by_their_names() {
        let rollup = "55-7f ---p 0 00:00 0 [rollup]\nRss: 100 kB\nPss: 50 kB\nPss_Dirty: 7 kB\nShared_Clean: 1 kB\n\
                      Shared_Dirty: 2 kB\nPrivate_Clean: 3 kB\nPrivate_Dirty: 4 kB\nAnonymous: 8 kB\n";
        let status = "Name: x\nRssShmem:\t5 kB\nVmPTE:\t6 kB\n";
        let found = parse(rollup, status).expect("all are there");
        assert_eq!(found.private_and_shared_dirty(), 9 << 10);
        assert_eq!((found.resident, found.page_tables, found.shared_memory), (100 << 10, 6 << 10, 5 << 10));
        assert_eq!(found.anonymous, 8 << 10);
        assert_eq!(parse("Rss: 1 kB\n", status), Err("Pss"));
        assert_eq!(parse(rollup, "VmPTE: 18446744073709551615 kB\nRssShmem: 1 kB\n"), Err("VmPTE"));
    }

    #[test]
    fn what_is_touched_is_counted() {
        let len = 32 << 20;
        let before = own().expect("told");
        let file = memfd::create("touched", len).expect("a file");
        let map = file.map().expect("a map");
        let bytes = map.bytes();
        bytes.write(&vec![1; len]);
        let after = own().expect("told");
        // Tests beside this one give theirs back meanwhile, which is less.
        assert!(after.shared_memory >= before.shared_memory + len as u64 / 2, "{before:?} {after:?}");
    }
}
