//! How much memory of this rank is registered, and so pinned: no more than `GASNET_PHYSMEM_MAX` has for it. And how often the NIC is asked
//! for a registration that the job cannot do without.

use gasworks_gni_sys::{GNI_RC_ERROR_RESOURCE, gni_return_t};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

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

/// How often the NIC is asked while it has no room, and how long after the first time; then twice as long each time.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// Registers memory that the job cannot do without.
///
/// # Errors
/// The code of the last time.
pub(crate) fn patiently<T>(mut register: impl FnMut() -> Result<T, gni_return_t>) -> Result<T, gni_return_t> {
    let mut tried = 1;
    loop {
        match register() {
            Err(GNI_RC_ERROR_RESOURCE) if tried < TRIES => {
                std::thread::sleep(PAUSE * (1 << (tried - 1)));
                tried += 1;
            }
            made => return made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_gni_sys::GNI_RC_INVALID_PARAM;

    #[test]
    fn lack_of_room_is_waited_for() {
        for (code, refusals, asked) in
            [(GNI_RC_ERROR_RESOURCE, 9, 10), (GNI_RC_ERROR_RESOURCE, 10, 10), (GNI_RC_INVALID_PARAM, 1, 1)]
        {
            let mut count = 0;
            let made = patiently(|| {
                count += 1;
                if count > refusals { Ok(count) } else { Err(code) }
            });
            assert_eq!((made, count), (if refusals < asked { Ok(asked) } else { Err(code) }, asked));
        }
    }

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
