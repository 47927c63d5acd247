//! Mappings that others write to, which stay until nobody does any more.
//!
//! # Invariants
//! - kept.1: a mapping that is kept is dropped once, when nobody writes to it any more.

use gasworks_os::memfd::Mapping;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Says that nobody writes here any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed(Arc<AtomicU32>);

impl Closed {
    pub fn set(&self) {
        self.0.store(1, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}

/// A mapping that others write to. It goes only once they do not any more: a rank whose job is dropped in the middle may be put to
/// as long as its process lives.
#[derive(Debug)]
pub(crate) struct Kept<T = Mapping> {
    /// What keeps it mapped.
    mapping: ManuallyDrop<T>,
    closed: Closed,
}

impl<T> Kept<T> {
    pub fn new(mapping: T, closed: Closed) -> Self {
        Self { mapping: ManuallyDrop::new(mapping), closed }
    }

    pub fn get(&self) -> &T {
        &self.mapping
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if self.closed.is_set() {
            // SAFETY: kept.1: nobody writes to it, and this is its only drop.
            unsafe { ManuallyDrop::drop(&mut self.mapping) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that is dropped in the middle leaves what others write to where it is.
    #[test]
    #[cfg(not(miri))]
    fn memory_stays_until_nobody_writes_to_it() {
        let there = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("what is mapped");
            maps.lines().any(|line| line.starts_with(&format!("{address:x}-")))
        };
        for is_closed in [false, true] {
            let closed = Closed::default();
            let file = gasworks_os::memfd::create("kept", 4096).expect("a file");
            let kept = Kept::new(file.map().expect("mapped"), closed.clone());
            let address = kept.mapping.as_ptr().addr();
            assert!(there(address));
            if is_closed {
                closed.set();
            }
            drop(kept);
            assert_eq!(there(address), !is_closed);
        }
    }
}
