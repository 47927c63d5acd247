//! The barrier of the ranks that share memory.

use crate::region::Host;
use gasworks_core::SharedBarrier;
use gasworks_os::futex;
use gasworks_shmem::doorbell;
use std::sync::Arc;

/// A barrier in shared memory.
#[derive(Debug)]
pub struct ShmBarrier {
    host: Arc<Host>,
}

impl ShmBarrier {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host }
    }
}

impl SharedBarrier for ShmBarrier {
    fn arrive(&self) {
        self.host.barrier.arrive();
        // Somebody may sleep until the last one arrives.
        doorbell::settle();
        for region in &self.host.ranks {
            if region.bell.ring_settled() {
                futex::wake(region.bell.word(), u32::MAX);
            }
        }
    }

    #[inline]
    fn done(&self) -> bool {
        self.host.barrier.done()
    }
}
