//! How much memory of this rank is registered, and so pinned: no more than `GASNET_PHYSMEM_MAX` has for it.

use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What is left to be registered, in bytes: whoever registers has the same. Memory that is registered twice counts twice.
#[derive(Clone, Debug)]
pub(crate) struct Pinned {
    left: Arc<AtomicU64>,
    page: u64,
}

impl Pinned {
    pub fn new(bytes: u64, page: usize) -> Self {
        Self { left: Arc::new(AtomicU64::new(bytes)), page: page as u64 }
    }

    /// Takes the pages of some bytes: how many bytes these are, or `None` where so many are not left.
    pub fn take(&self, address: u64, len: u64) -> Option<u64> {
        let end = address.checked_add(len)?.checked_next_multiple_of(self.page)?;
        let pages = end - address / self.page * self.page;
        let take = |left: u64| left.checked_sub(pages);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok().map(|_| pages)
    }

    /// Gives back what [`take`](Self::take) returned.
    pub fn give(&self, pages: u64) {
        self.left.fetch_add(pages, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_are_pinned_while_there_are_some() {
        let pinned = Pinned::new(10 * 4096 + 4095, 4096);
        let other = pinned.clone();
        for (address, len, pages) in [(4095, 2, 2), (4096, 4096, 1), (0, 1, 1), (8191, 1, 1), (0, 0, 0)] {
            assert_eq!(pinned.take(address, len), Some(pages * 4096), "{len} bytes from {address} on");
        }
        assert_eq!((other.take(0, 5 * 4096 + 1), other.take(0, 5 * 4096)), (None, Some(5 * 4096)));
        assert_eq!(
            (pinned.take(0, 1), pinned.take(u64::MAX, 1), pinned.take(u64::MAX - 1, 1)),
            (None, None, None)
        );
        pinned.give(4096);
        assert_eq!((other.take(0, 1), other.take(0, 1)), (Some(4096), None));
    }
}
