//! What moves a job's messages and transfers.

use gasworks_core::observe::Witness;
use gasworks_core::{CoreMode, Domains, TeamBarriers};
use gasworks_memory::RegionTable;
use std::sync::Arc;

/// What a network brings to a job.
pub struct Transport<M: CoreMode> {
    /// Its wires.
    pub wires: Vec<Box<M::Wire>>,
    /// For each rank the number of the wire that reaches it.
    pub route: Vec<u8>,
    /// Where each rank's segment is.
    pub peers: RegionTable,
    /// The engines of its network interface, if it has one.
    pub rdma: Domains<M>,
    /// A barrier of its own, if it has one; without one the barrier goes by messages.
    pub barrier: Option<Box<M::Barrier>>,
    /// Barriers for teams whose members share memory, if it has some; used where the job's barrier is the transport's, too.
    pub teams: Option<Arc<dyn TeamBarriers + Send + Sync>>,
    /// What sees from outside where this rank is in that barrier.
    pub witness: Option<Arc<dyn Witness>>,
    /// How many ranks of a host share memory at most, in the order of their numbers; 0 for all of them.
    pub together: u32,
}
