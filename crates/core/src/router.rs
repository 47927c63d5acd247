//! Which transport reaches which peer.

use crate::{CoreMode, Rank, Wire, WireError};
use gasworks_shmem::queues::Queues;
use std::time::Duration;

/// The transports of a job and, for each peer, the one that reaches it.
pub(crate) struct Router<M: CoreMode> {
    wires: Vec<Box<M::Wire>>,
    route: Box<[u8]>,
}

impl<M: CoreMode> Router<M> {
    /// `route[rank]` is the number of a wire.
    pub(crate) fn new(wires: Vec<Box<M::Wire>>, route: Vec<u8>) -> Self {
        assert!(
            route.iter().all(|&wire| usize::from(wire) < wires.len()),
            "a route to a wire that is not there"
        );
        Self { wires, route: route.into() }
    }

    /// The wire that reaches `rank`, which exists: the engine has checked.
    #[inline]
    pub(crate) fn to(&self, rank: Rank) -> &M::Wire {
        &self.wires[usize::from(self.route[rank as usize])]
    }

    /// Whether nothing has come, as far as a look can tell.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.wires.iter().all(|wire| wire.queues().is_some_and(Queues::is_idle))
    }

    /// All of them.
    #[inline]
    pub(crate) fn wires(&self) -> impl Iterator<Item = &M::Wire> {
        self.wires.iter().map(|wire| &**wire)
    }

    /// Sleeps on the first wire. With more than one the sleep is short, since the others cannot end it.
    pub(crate) fn sleep(&self, limit: Duration, stay: &dyn Fn() -> bool) -> Result<(), WireError> {
        let limit = if self.wires.len() > 1 { limit.min(Duration::from_micros(50)) } else { limit };
        self.wires.first().map_or(Ok(()), |wire| wire.sleep(limit, stay))
    }

    /// Wakes this rank's sleeping threads.
    pub(crate) fn wake(&self) {
        self.wires.iter().for_each(|wire| wire.wake());
    }
}
