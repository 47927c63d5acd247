//! The memory of one host, by load and store.

use super::{Network, fails};
use crate::{Config, Error, Transport};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::{CoreMode, Domains, Flow};
use gasworks_pshm::{MAX_MEDIUM, Pshm, ShmBarrier};
use gasworks_sync::{Par, ParSync, Seq};
use std::sync::Arc;

/// All ranks in the memory of their host.
pub(crate) struct Memory;

/// What is said before an error of this network.
pub(super) const DOING: &str = "shared memory between the ranks";

macro_rules! in_memory {
    ($($mode:ty),*) => {$(
        impl Network<$mode> for Memory {
            fn names(&self) -> &[&str] {
                &["pshm", "smp"]
            }
            fn about(&self) -> &str {
                "the memory of one host"
            }
            fn max_medium(&self) -> Result<usize, Error> {
                Ok(MAX_MEDIUM)
            }
            fn open(&self, bootstrap: &dyn Bootstrap, config: &Config) -> Result<Transport<$mode>, Error> {
                open::<$mode>(bootstrap, config, |wire| Box::new(wire), |barrier| Box::new(barrier))
            }
        }
    )*};
}

in_memory!(Seq, ParSync, Par);

fn open<M: CoreMode>(
    bootstrap: &dyn Bootstrap,
    config: &Config,
    wire: fn(Pshm<M>) -> Box<M::Wire>,
    barrier: fn(ShmBarrier<M>) -> Box<M::Barrier>,
) -> Result<Transport<M>, Error> {
    let flow = Flow::from_settings(MAX_MEDIUM, gasworks_pshm::FLOW)?;
    let Flow { depth, total, volume } = flow;
    let wanted = gasworks_pshm::Config { memory: config.memory, depth, total, volume };
    let opened = gasworks_pshm::open::<M>(bootstrap, &wanted).map_err(fails(DOING))?;
    Ok(Transport {
        wires: vec![wire(opened.wire)],
        route: vec![0; bootstrap.size() as usize],
        peers: opened.peers,
        rdma: Domains::none(),
        barrier: Some(barrier(opened.barrier)),
        teams: Some(Arc::new(opened.teams)),
        witness: Some(opened.witness),
        together: 0,
    })
}
