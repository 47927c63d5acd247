//! The barrier of the ranks that share memory.

use crate::region::Host;
use gasworks_core::observe::{Standing, Witness};
use gasworks_core::wire::ring;
use gasworks_core::{Name, SharedBarrier};
use gasworks_sync::Mode;
use std::marker::PhantomData;
use std::sync::Arc;

/// A barrier in shared memory. In `Par` any thread asks, in `Seq` one does.
#[derive(Debug)]
pub struct ShmBarrier<M: Mode> {
    host: Arc<Host>,
    mode: PhantomData<M>,
}

impl<M: Mode> ShmBarrier<M> {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, mode: PhantomData }
    }
}

impl<M: Mode> SharedBarrier for ShmBarrier<M> {
    #[inline]
    fn arrive(&self, name: Name) {
        if self.host.barrier.arrive(name) {
            self.host.bells().for_each(ring);
        }
    }

    #[inline]
    fn done(&self) -> Option<Name> {
        if M::PARALLEL { self.host.barrier.done() } else { self.host.barrier.done_alone() }
    }
}

impl Witness for Host {
    fn standing(&self) -> Standing {
        let (begun, waiting) = self.barrier.standing();
        Standing { begun, waiting }
    }
}
