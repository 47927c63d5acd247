//! Clients that ask again and again for what is not there yet.
//!
//! The machines have a processor for each rank; here ranks share them, and one that spins keeps from its processor who would make
//! its event: the thread of a NIC, another rank, the system's own threads. Yielding does not help: there are systems on
//! which two that yield to each other starve a third for seconds. So who has looked in vain for long sleeps now and then.

use std::time::Duration;

use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Looks in a row that may be in vain, before every so many of them are followed by a rest.
const HARDY: u64 = 4096;
const STRETCH: u64 = 64;
const REST: Duration = Duration::from_micros(50);

/// How often a client has asked in vain, in a row. Where threads ask at the same time some are not counted.
pub(super) struct Patience(AtomicU64);

/// That of this process.
pub(super) static PATIENCE: Patience = Patience(AtomicU64::new(0));

impl Patience {
    /// Something was there.
    pub(super) fn found(&self) {
        self.0.store(0, Relaxed);
    }

    /// Nothing was there.
    pub(super) fn in_vain(&self) {
        let looks = self.0.load(Relaxed).wrapping_add(1);
        self.0.store(looks, Relaxed);
        if looks >= HARDY && looks.is_multiple_of(STRETCH) {
            std::thread::sleep(REST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_asks_in_vain_for_long_rests_until_something_is_there() {
        let patience = Patience(AtomicU64::new(0));
        let ask = |times: u64| {
            let begun = Instant::now();
            (0..times).for_each(|_| patience.in_vain());
            begun.elapsed()
        };
        ask(HARDY - 1);
        assert!(ask(20 * STRETCH) >= 20 * REST, "a rest for each stretch");
        patience.found();
        assert_eq!(patience.0.load(Relaxed), 0);
    }
}
