//! What moves a job's messages and transfers, and how it is opened over each network.

use crate::{Config, Error, Network, ThreadMode};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::observe::Witness;
use gasworks_core::{Domains, Flow};
use gasworks_gni::Chip;
use gasworks_memory::{Growth, PeerTable};
use gasworks_pshm::Memory;
use std::sync::Arc;

/// What a transport brings to a job.
pub struct Transport<M: ThreadMode> {
    /// Its wires.
    pub wires: Vec<Box<M::Wire>>,
    /// For each rank the number of the wire that reaches it.
    pub route: Vec<u8>,
    /// Where each rank's segment is.
    pub peers: PeerTable,
    /// The engines of its network interface, if it has one.
    pub rdma: Domains<M>,
    /// A barrier of its own, if it has one; without one the barrier goes by messages.
    pub barrier: Option<Box<M::Barrier>>,
    /// What sees from outside where this rank is in that barrier.
    pub witness: Option<Arc<dyn Witness>>,
    /// Flow control.
    pub flow: Flow,
}

impl<M: ThreadMode> Transport<M> {
    /// Opens the one that is asked for. Collective.
    pub(crate) fn open(bootstrap: &dyn Bootstrap, config: &Config) -> Result<Self, Error> {
        match config.network {
            Network::Memory => over_pshm(bootstrap, config),
            Network::Gni | Network::Aries | Network::Gemini => over_gni(bootstrap, config),
        }
    }
}

/// All ranks in the memory of their host.
fn over_pshm<M: ThreadMode>(bootstrap: &dyn Bootstrap, config: &Config) -> Result<Transport<M>, Error> {
    let flow = Flow::from_settings(gasworks_pshm::MAX_MEDIUM, gasworks_pshm::FLOW)?;
    let Flow { depth, total, volume } = flow;
    let wanted = gasworks_pshm::Config { memory: config.memory, depth, total, volume };
    let opened = gasworks_pshm::open::<M>(bootstrap, &wanted)?;
    Ok(Transport {
        wires: vec![M::wire(opened.wire)],
        route: vec![0; bootstrap.size() as usize],
        peers: opened.peers,
        rdma: Domains::none(),
        barrier: Some(M::barrier(opened.barrier)),
        witness: Some(opened.witness),
        flow,
    })
}

/// Ranks of a host in its memory, the others over uGNI.
fn over_gni<M: ThreadMode>(bootstrap: &dyn Bootstrap, config: &Config) -> Result<Transport<M>, Error> {
    let way = gasworks_extended::barrier::asked()?;
    let plan = gasworks_gni::Plan::new(bootstrap, M::PARALLEL, way).map_err(Error::Gni)?;
    let wanted = match config.network {
        Network::Aries => Chip::Aries,
        Network::Gemini => Chip::Gemini,
        Network::Memory | Network::Gni => plan.chip(),
    };
    if wanted != plan.chip() {
        return Err(Error::OtherChip { wanted, found: plan.chip() });
    }
    let Flow { depth, total, volume } = plan.flow();
    // A segment that a NIC knows does not grow: one that is to be attached is not known to it before.
    let memory = if config.memory.later { config.memory } else { Memory { room: None, ..config.memory } };
    let wanted = gasworks_pshm::Config { memory, depth, total, volume };
    let beside = gasworks_pshm::Beside {
        most: gasworks_pshm::most_together()?,
        limit: plan.largest_segment(),
        search: plan.searches(),
        again: plan.is_patient(),
    };
    let near = gasworks_pshm::join::<M>(bootstrap, &wanted, Some(&beside))?;
    let largest = near.segments.largest().local;
    let together: Vec<_> = near.segments.peers().collect();
    let here: Vec<_> = together.iter().map(|(rank, _)| *rank).collect();
    let segments =
        gasworks_gni::Segments { near: together, largest, owner: near.segments, later: config.memory.later };
    // A rank that is alone talks over the network to itself, too.
    let shares = here.len() > 1;
    let barrier = shares.then(|| M::barrier(near.barrier));
    let far = plan.open::<M>(bootstrap, segments, barrier, M::gni_nic).map_err(Error::Gni)?;
    let mut wires = vec![M::gni_wire(far.wire)];
    let mut route = vec![0; bootstrap.size() as usize];
    if shares {
        // The first is the one that a rank sleeps on.
        wires.insert(0, M::wire(near.wire));
        route.fill(1);
        here.iter().for_each(|&rank| route[rank as usize] = 0);
    }
    Ok(Transport {
        wires,
        route,
        peers: far.peers,
        rdma: far.rdma,
        barrier: Some(M::gni_barrier(far.barrier)),
        witness: Some(far.witness),
        flow: far.flow,
    })
}
