//! What the facade needs to know of a thread mode.

use gasworks_core::{CoreMode, Incoming};
use gasworks_extended::barrier::Dissemination;
use gasworks_pshm::{Pshm, ShmBarrier};
use gasworks_sync::{Par, Seq};
use std::sync::Arc;

/// [`Seq`] or [`Par`].
pub trait ThreadMode: CoreMode {
    #[doc(hidden)]
    fn wire(wire: Pshm<Self>) -> Box<Self::Wire>;
    #[doc(hidden)]
    fn barrier(barrier: ShmBarrier) -> Box<Self::Barrier>;
    #[doc(hidden)]
    fn hear(state: Arc<Dissemination>) -> Box<Self::Function>;
}

impl ThreadMode for Seq {
    fn wire(wire: Pshm<Self>) -> Box<Self::Wire> {
        Box::new(wire)
    }
    fn barrier(barrier: ShmBarrier) -> Box<Self::Barrier> {
        Box::new(barrier)
    }
    fn hear(state: Arc<Dissemination>) -> Box<Self::Function> {
        Box::new(move |step: Incoming<'_, Self>| {
            state.hear(step.args());
            Ok(())
        })
    }
}

impl ThreadMode for Par {
    fn wire(wire: Pshm<Self>) -> Box<Self::Wire> {
        Box::new(wire)
    }
    fn barrier(barrier: ShmBarrier) -> Box<Self::Barrier> {
        Box::new(barrier)
    }
    fn hear(state: Arc<Dissemination>) -> Box<Self::Function> {
        Box::new(move |step: Incoming<'_, Self>| {
            state.hear(step.args());
            Ok(())
        })
    }
}
