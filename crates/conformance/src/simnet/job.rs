//! A job over a `SimNet`.
//!
//! # Invariants
//! - job.1: a rank's segment is a block of the net, and every part of a job over it (wire, NIC, bootstrap) holds the net: so
//!   the segment stays mapped as long as any rank's engine can name it.

use super::{SimBarrier, SimConfig, SimError, SimNic, SimRank, SimWire, run};
use gasworks::{Config, Error, Job, Network, Networks, Par, ParSync, Seq, Table, ThreadMode, Transport};
use gasworks_bootstrap::Bootstrap;
use gasworks_core::{Domains, Flow, Rdma};
use gasworks_memory::{Peer, PeerFlags, RegionTable};
use gasworks_rdma::Key;
use gasworks_sync::RawSlice;
use std::fmt::Display;
use std::sync::Arc;

/// What a job over a net asks for by [`Config::network`].
pub const NAME: &str = "simnet";

/// A thread mode in which jobs can be opened over a net.
pub trait SimMode: ThreadMode {
    /// The library's networks, and a rank's net.
    fn with_net(rank: &SimRank) -> Networks<Self>;
}

/// What a thread mode makes of the net's ports.
struct Boxes<M: ThreadMode> {
    wire: fn(SimWire) -> Box<M::Wire>,
    nic: fn(SimNic) -> Box<M::Nic>,
    barrier: fn(SimBarrier) -> Box<M::Barrier>,
}

macro_rules! over_simnet {
    ($($mode:ty),*) => {$(
        impl SimMode for $mode {
            fn with_net(rank: &SimRank) -> Networks<Self> {
                Self::networks().with(rank.clone())
            }
        }
        impl Network<$mode> for SimRank {
            fn names(&self) -> &[&str] {
                &[NAME]
            }
            fn about(&self) -> &str {
                "a net of this process, whose delays and orders come from a seed"
            }
            fn max_medium(&self) -> Result<usize, Error> {
                Ok(self.config().max_medium)
            }
            fn open(&self, bootstrap: &dyn Bootstrap, _: &Config) -> Result<Transport<$mode>, Error> {
                self.transport(bootstrap, &Boxes::<$mode> {
                    wire: |wire| Box::new(wire),
                    nic: |nic| Box::new(nic),
                    barrier: |barrier| Box::new(barrier),
                })
            }
        }
    )*};
}

over_simnet!(Seq, ParSync, Par);

impl SimRank {
    /// Joins the net's job, as this rank. Collective; once for each net.
    ///
    /// # Errors
    /// Those of [`Job::open_among`].
    pub fn open<M: SimMode>(&self, table: Table<M>) -> Result<Job<M>, Error> {
        Job::open_among(
            &M::with_net(self),
            Box::new(self.bootstrap()),
            Config::from_env()?.network(NAME),
            table,
        )
    }

    fn transport<M: ThreadMode>(
        &self,
        bootstrap: &dyn Bootstrap,
        boxes: &Boxes<M>,
    ) -> Result<Transport<M>, Error> {
        let SimConfig { ranks, max_medium, mapped, nic, .. } = self.config();
        let (rdma, mine) = if mapped {
            (Domains::none(), Key::default())
        } else {
            let bounce = if nic.registers_local { self.aux().raw() } else { RawSlice::EMPTY };
            let tuning = gasworks_rdma::Tuning::from_settings(
                gasworks_rdma::Tuning::default(),
                gasworks_os::memfd::page_size(),
                max_medium,
            )?;
            // SAFETY: job.1: the auxiliary memory is a block of the net, which the NIC holds; this engine alone is given it.
            let rdma = unsafe { Rdma::<M, M::Nic>::new((boxes.nic)(self.nic()), bounce, &tuning) };
            let rdma = rdma.map_err(program)?;
            // SAFETY: job.1: the segment is a block of the net, which the NIC in the engine holds.
            let key = unsafe { rdma.register(self.segment().raw()) }.map_err(program)?;
            (Domains::one(rdma), key)
        };
        let keys = bootstrap.exchange("simnet.keys", &mine.0)?.to_vec();
        let peer = |(rank, key): (u32, Vec<u8>)| {
            let mapped = self.peer_segment(rank);
            let mut flags = PeerFlags::empty();
            flags.set(PeerFlags::SELF, rank == self.rank());
            flags.set(PeerFlags::MAPPED, mapped.is_some());
            let len = self.segment().len() as u64;
            let mapped = mapped.map_or(RawSlice::EMPTY, |mapped| mapped.raw());
            Peer { mapped, len, remote_base: 0, key, flags }
        };
        // SAFETY: job.1: what is mapped of peers are blocks of the net, which the clone of this rank holds as the table's owner.
        let peers = unsafe { RegionTable::new((0..ranks).zip(keys).map(peer), Arc::new(self.clone())) };
        let peers = peers.with_regions(Arc::new(self.clone()));
        Ok(Transport {
            wires: vec![(boxes.wire)(self.wire().with_flow(Flow::from_settings(max_medium, Flow::SEED)?))],
            route: vec![0; ranks as usize],
            peers,
            rdma,
            witness: None,
            barrier: self.barrier().map(boxes.barrier),
            teams: self.teams(),
            together: 0,
        })
    }
}

fn program(cause: impl Display) -> Error {
    Error::Program(format!("opening the simulated network: {cause}"))
}

/// Runs a job as every rank of a net: `table` makes each rank's handler table with whatever its handlers share, and
/// `body` is the program. The job is closed when it returns.
///
/// # Errors
/// What went wrong first, with the seed; an error that a rank returned counts as its panic.
pub fn job<M: SimMode, S, R: Send, E: Display + From<Error>>(
    config: SimConfig,
    table: impl Fn(&SimRank) -> Result<(Table<M>, S), E> + Sync,
    body: impl Fn(&Job<M>, &S) -> Result<R, E> + Sync,
) -> Result<Vec<R>, SimError> {
    run(config, |rank| {
        let whole = || -> Result<R, E> {
            let (table, shared) = table(&rank)?;
            let job = rank.open(table)?;
            let result = body(&job, &shared)?;
            job.close()?;
            Ok(result)
        };
        // Not a bug in this rank's code, so no panic message: the run reports it.
        whole().unwrap_or_else(|error| std::panic::resume_unwind(Box::new(error.to_string())))
    })
}
