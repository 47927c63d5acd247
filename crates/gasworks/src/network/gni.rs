//! Gemini and Aries through uGNI, and the memory of each host between its ranks.

use super::{Network, fails, in_a_line, memory};
use crate::{Config, Error, Transport};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::{CoreMode, Flow};
use gasworks_gni::{Chip, GniBarrier, GniNic, GniWire, max_medium};
use gasworks_memory::Growth;
use gasworks_pshm::{MAX_MEDIUM, Memory, Pshm, ShmBarrier};
use gasworks_sync::{Par, ParSync, Seq};
use std::sync::Arc;
use thiserror::Error as ThisError;

/// One of Cray's networks.
pub(crate) struct Gni {
    names: &'static [&'static str],
    about: &'static str,
    /// Which it may be.
    chips: &'static [Chip],
}

/// Whichever there is.
pub(super) const ANY: Gni =
    Gni { names: &["gni"], about: "Gemini or Aries", chips: &[Chip::Aries, Chip::Gemini] };
pub(super) const ARIES: Gni = Gni { names: &["aries"], about: "Aries alone", chips: &[Chip::Aries] };
pub(super) const GEMINI: Gni = Gni { names: &["gemini"], about: "Gemini alone", chips: &[Chip::Gemini] };

/// What is said before an error of this network.
const DOING: &str = "opening the network";

/// The program is for another network than there is.
#[derive(Debug, ThisError)]
#[error("the program is for {wanted:?}, and the network here is {found:?}")]
struct OtherChip {
    wanted: Chip,
    found: Chip,
}

macro_rules! over_gni {
    ($($mode:ty),*) => {$(
        impl Network<$mode> for Gni {
            fn names(&self) -> &[&str] {
                self.names
            }
            fn about(&self) -> &str {
                self.about
            }
            fn lacks(&self) -> Option<String> {
                gasworks_gni::find_library().err().map(in_a_line)
            }
            fn max_medium(&self) -> Result<usize, Error> {
                let most = |least: usize, &chip: &Chip| Ok(least.min(max_medium(chip)?));
                self.chips.iter().try_fold(MAX_MEDIUM, most)
            }
            fn open(&self, bootstrap: &dyn Bootstrap, config: &Config) -> Result<Transport<$mode>, Error> {
                let boxes = Boxes::<$mode> {
                    near: |wire| Box::new(wire),
                    far: |wire| Box::new(wire),
                    nic: |nic| Box::new(nic),
                    of_host: |barrier| Box::new(barrier),
                    of_all: |barrier| Box::new(barrier),
                };
                open(self.chips, bootstrap, config, &boxes)
            }
        }
    )*};
}

over_gni!(Seq, ParSync, Par);

/// What a thread mode makes of the parts.
struct Boxes<M: CoreMode> {
    near: fn(Pshm<M>) -> Box<M::Wire>,
    far: fn(GniWire<M>) -> Box<M::Wire>,
    nic: fn(GniNic<M>) -> Box<M::Nic>,
    of_host: fn(ShmBarrier<M>) -> Box<M::Barrier>,
    of_all: fn(GniBarrier<M>) -> Box<M::Barrier>,
}

fn open<M: CoreMode>(
    chips: &[Chip],
    bootstrap: &dyn Bootstrap,
    config: &Config,
    boxes: &Boxes<M>,
) -> Result<Transport<M>, Error> {
    let way = gasworks_extended::barrier::asked()?;
    let plan = gasworks_gni::Plan::new(bootstrap, M::PARALLEL, way).map_err(fails(DOING))?;
    let found = plan.chip();
    if let Some(&wanted) = chips.first().filter(|_| !chips.contains(&found)) {
        return Err(fails(DOING)(OtherChip { wanted, found }));
    }
    let Flow { depth, total, volume } = Flow::from_settings(MAX_MEDIUM, gasworks_pshm::FLOW)?;
    // A segment that a NIC knows does not grow: one that is to be attached is not known to it before.
    let memory = if config.memory.later { config.memory } else { Memory { room: None, ..config.memory } };
    let wanted = gasworks_pshm::Config { memory, depth, total, volume };
    let together = gasworks_pshm::most_together()?;
    let beside = gasworks_pshm::Beside {
        most: together,
        limit: plan.largest_segment(),
        search: plan.searches(),
        again: plan.is_patient(),
    };
    let near = gasworks_pshm::join::<M>(bootstrap, &wanted, Some(&beside)).map_err(fails(memory::DOING))?;
    let largest = near.segments.largest().local;
    let peers: Vec<_> = near.segments.peers().collect();
    let here: Vec<_> = peers.iter().map(|(rank, _)| *rank).collect();
    let segments = gasworks_gni::Segments {
        near: peers,
        largest,
        owner: near.segments,
        later: config.memory.later,
        regions: near.regions,
    };
    // A rank that is alone talks over the network to itself, too.
    let shares = here.len() > 1;
    let barrier = shares.then(|| (boxes.of_host)(near.barrier));
    let far = plan.open::<M>(bootstrap, segments, barrier, boxes.nic).map_err(fails(DOING))?;
    let mut wires = vec![(boxes.far)(far.wire)];
    let mut route = vec![0; bootstrap.size() as usize];
    if shares {
        // The network keeps the number 0, which takes no memory of a rank that it reaches.
        wires.push((boxes.near)(near.wire));
        here.iter().for_each(|&rank| route[rank as usize] = 1);
    }
    Ok(Transport {
        wires,
        route,
        peers: far.peers,
        rdma: far.rdma,
        barrier: Some((boxes.of_all)(far.barrier)),
        teams: Some(Arc::new(near.teams)),
        witness: Some(far.witness),
        together,
    })
}
