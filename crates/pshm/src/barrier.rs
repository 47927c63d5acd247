//! The barrier of the ranks that share memory.

use crate::region::Host;
use gasworks_core::{Name, SharedBarrier};
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
    fn arrive(&self, name: Name) {
        self.host.barrier.arrive(name);
        // Whoever comes last wakes those that sleep. Of two that come together at least one sees the other, because
        // both look after the fence.
        doorbell::settle();
        if !self.host.barrier.complete() {
            return;
        }
        for region in &self.host.ranks {
            region.ring();
        }
    }

    #[inline]
    fn done(&self) -> Option<Name> {
        self.host.barrier.done()
    }
}
