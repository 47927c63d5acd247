//! The barrier of the ranks that share memory.

use crate::region::{Host, Region};
use gasworks_core::observe::{Standing, Witness};
use gasworks_core::{Name, SharedBarrier};
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
    #[inline]
    fn arrive(&self, name: Name) {
        if self.host.barrier.arrive(name) {
            self.host.ranks.iter().for_each(Region::ring);
        }
    }

    #[inline]
    fn done(&self) -> Option<Name> {
        self.host.barrier.done()
    }
}

impl Witness for Host {
    fn standing(&self) -> Standing {
        let (begun, waiting) = self.barrier.standing();
        Standing { begun, waiting }
    }
}
