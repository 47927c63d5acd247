//! The barrier of all ranks: in one level, where the ranks meet in [`phases`](crate::phases), or in two, where one of each group that shares
//! memory does ([`levels`](crate::levels)).

use crate::wire::Shared;
use gasworks_core::{CoreMode, Name, SharedBarrier};
use gasworks_sync::Lock;
use gasworks_sync::atomic::Ordering;
use std::sync::Arc;

/// The word of `GASNET_BARRIER` by which engines are asked for.
pub(crate) const BY_ENGINES: &str = "GNICE";

/// The barrier of a job over uGNI.
pub struct GniBarrier<M: CoreMode>(pub(crate) Arc<Shared<M>>);

impl<M: CoreMode> SharedBarrier for GniBarrier<M> {
    fn words(&self) -> &'static [&'static str] {
        if self.0.by_engines { &[BY_ENGINES] } else { &["GNIDISSEM", "RDMADISSEM"] }
    }

    fn arrive(&self, name: Name) {
        self.0.awaited.store(true, Ordering::Relaxed);
        match &self.0.levels {
            None => self.0.with(|messages| messages.begin_barrier(name)),
            Some(levels) => {
                levels.with(|levels| levels.arrive(name));
                self.0.meeting.store(true, Ordering::Relaxed);
                self.0.turn_levels();
            }
        }
    }

    fn done(&self) -> Option<Name> {
        let done = match &self.0.levels {
            None => self.0.with(|messages| messages.barrier_done()),
            Some(_) => self.0.turn_levels(),
        };
        if done.is_some() {
            self.0.awaited.store(false, Ordering::Relaxed);
        }
        done
    }
}
