//! An engine for a rank of a simulated network.

use gasworks_conformance::simnet::SimRank;
use gasworks_core::{Domains, Engine, Flow, Handlers, Parts, Patience, Policy, Wire};
use gasworks_memory::RegionTable;
use gasworks_sync::Seq;

/// Of a rank whose peers' memory this is, with little flow, so that messages have to wait.
pub fn engine(rank: &SimRank, handlers: Handlers<Seq>, peers: RegionTable) -> Engine<Seq> {
    let ranks = rank.config().ranks as usize;
    Engine::new(Parts {
        rank: rank.rank(),
        wires: vec![
            Box::new(rank.wire().with_flow(Flow { depth: 2, total: 3, volume: 0 })) as Box<dyn Wire<Seq>>
        ],
        route: vec![0; ranks],
        peers,
        rdma: Domains::none(),
        patience: Patience::new(Policy::for_host(ranks, 2)),
        process_vm: false,
        handlers,
        observer: None,
    })
}
