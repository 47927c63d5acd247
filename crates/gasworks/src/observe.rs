//! A job that is observed: its transports, its barrier and its table of peers are replaced by such as record.

use crate::{Error, ThreadMode, Transport};
use gasworks_core::handlers::Handlers;
use gasworks_core::observe::{Observed, ObservedBarrier, Observer, Op, Recorder};
use gasworks_memory::{Access, Watch};
use std::sync::Arc;

/// Counts puts, gets and atomic operations.
struct Transfers(Arc<Recorder>);

impl Watch for Transfers {
    fn accesses(&self, access: Access, rank: u32, len: usize, act: &mut dyn FnMut()) {
        let op = match access {
            Access::Put => Op::Put,
            Access::Get => Op::Get,
            Access::Update => Op::Atomic,
        };
        self.0.transfer(op, rank, len as u64, act);
    }
}

/// What a job that is observed records in, and the handlers whose names it enters there.
pub(crate) struct Observation<M: ThreadMode> {
    recorder: Arc<Recorder>,
    /// Who says what is sent and handled.
    pub(crate) observer: Arc<Observer>,
    handlers: Handlers<M>,
}

impl<M: ThreadMode> Observation<M> {
    /// Observes `transport`, if whoever started this process wants that.
    pub(crate) fn start(
        rank: u32,
        handlers: &Handlers<M>,
        transport: Transport<M>,
    ) -> Result<(Transport<M>, Option<Self>), Error> {
        let Some(recorder) = Recorder::from_settings(rank)? else { return Ok((transport, None)) };
        let Transport { wires, route, peers, rdma, barrier, witness, flow, together } = transport;
        let ranks = peers.ranks();
        let observer = Arc::new(Observer::new(recorder.clone(), rank, ranks));
        let wires = wires.into_iter().map(|wire| M::observed(Observed::new(observer.clone(), wire)));
        let barrier =
            barrier.map(|barrier| M::observed_barrier(ObservedBarrier::new(recorder.clone(), barrier)));
        let peers = peers.watched(Arc::new(Transfers(recorder.clone())));
        let transport =
            Transport { wires: wires.collect(), route, peers, rdma, barrier, witness, flow, together };
        let this = Self { recorder, observer, handlers: handlers.clone() };
        this.name_handlers();
        Ok((transport, Some(this)))
    }

    fn name_handlers(&self) {
        for index in 0..=u8::MAX {
            if let Some(entry) = self.handlers.get(index) {
                self.recorder.name_handler(index, &entry.signature.name);
            }
        }
    }
}

/// Handlers may have been registered since the job was opened.
impl<M: ThreadMode> Drop for Observation<M> {
    fn drop(&mut self) {
        self.name_handlers();
    }
}
