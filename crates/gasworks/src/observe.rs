//! A job that is observed: its engine and its barrier tell an observer what they do, and its table of peers one that counts.

use crate::{Error, ThreadMode};
use gasworks_core::handlers::Handlers;
use gasworks_core::observe::{Observer, Op, Recorder};
use gasworks_memory::{Access, RegionTable, Watch};
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
    /// Who is told of messages, waits and barriers.
    pub(crate) observer: Arc<Observer>,
    handlers: Handlers<M>,
}

impl<M: ThreadMode> Observation<M> {
    /// Of `rank` among so many, if whoever started this process wants that.
    pub(crate) fn start(rank: u32, ranks: u32, handlers: &Handlers<M>) -> Result<Option<Self>, Error> {
        let Some(recorder) = Recorder::from_settings(rank)? else { return Ok(None) };
        let observer = Arc::new(Observer::new(recorder.clone(), rank, ranks));
        let this = Self { recorder, observer, handlers: handlers.clone() };
        this.name_handlers();
        Ok(Some(this))
    }

    /// A table of peers whose puts, gets and atomic operations are counted.
    pub(crate) fn watch(&self, peers: RegionTable) -> RegionTable {
        peers.watched(Arc::new(Transfers(self.recorder.clone())))
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
