//! The order of the reductions that a network does for a team: that of the team's collectives.

use gasworks_sync::{Lock, Mode, Par};
use std::collections::VecDeque;
use std::sync::Arc;

/// The reductions of words that this rank has called and that are not over: their places among the team's collectives, in order.
#[derive(Clone)]
pub(crate) struct TicketQueue(Arc<<Par as Mode>::Lock<VecDeque<u64>>>);

impl Default for TicketQueue {
    fn default() -> Self {
        Self(Arc::new(Lock::new(VecDeque::new())))
    }
}

impl TicketQueue {
    /// Takes a place among the team's collectives, and a ticket for it. Both at once, so that tickets are in the order of the places whichever threads take them.
    pub fn take(&self, take_place: impl FnOnce() -> u64) -> Ticket {
        let place = self.0.with(|places| {
            let place = take_place();
            places.push_back(place);
            place
        });
        Ticket { queue: self.clone(), place }
    }
}

/// A reduction's turn: until it is [over](Self::end), or dropped.
pub(crate) struct Ticket {
    queue: TicketQueue,
    place: u64,
}

impl Ticket {
    /// The reduction's place among the team's collectives.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Whether all reductions before it are over.
    pub fn is_first(&self) -> bool {
        self.queue.0.with(|places| places.front() == Some(&self.place))
    }

    /// The network has done it.
    pub fn end(&self) {
        self.queue.0.with(|places| places.retain(|place| *place != self.place));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end();
    }
}
