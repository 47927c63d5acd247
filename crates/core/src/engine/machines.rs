//! Machines: what needs a turn at every poll until it is over, such as a barrier that goes by messages, or a step that had no room.

use super::Engine;
use crate::{CoreMode, Error};
use crossbeam_queue::{ArrayQueue, SegQueue};
use gasworks_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// What a machine's turn has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It waits for a message, which ends a sleep.
    Waits,
    /// It waits for room or a credit, for which it has to be turned again: no thread sleeps meanwhile.
    Busy,
    /// It is over, and leaves the list. That may be what a thread of this rank sleeps for.
    Ended,
}

/// A machine on the list, the specification's "progress function". It must not poll. No two threads turn it at once.
pub trait Machine<M: CoreMode>: Send + Sync {
    /// Goes as far as it can at once.
    ///
    /// # Errors
    /// Any: the poll returns it, and the machine leaves the list.
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error>;
}

struct Running<M: CoreMode> {
    machine: Arc<dyn Machine<M>>,
    is_busy: bool,
}

/// So many have places that are used again; those of more are allocated.
const FEW: usize = 64;

/// Those that run. One whose turn it is is not among them.
pub(super) struct Machines<M: CoreMode> {
    running: ArrayQueue<Running<M>>,
    /// Those for which there was no place.
    more: SegQueue<Running<M>>,
    /// How many are [busy](Turned::Busy), or had no turn yet.
    busy: AtomicUsize,
}

impl<M: CoreMode> Machines<M> {
    pub(super) fn new() -> Self {
        Self { running: ArrayQueue::new(FEW), more: SegQueue::new(), busy: AtomicUsize::new(0) }
    }

    fn push(&self, one: Running<M>) {
        let left = self.running.push(one);
        left.err().into_iter().for_each(|one| self.more.push(one));
    }

    /// How many have to be turned again.
    pub(super) fn busy(&self) -> usize {
        self.busy.load(Relaxed)
    }
}

impl<M: CoreMode> Engine<M> {
    /// Has a machine run: every poll gives it a turn until it is over. Without one, polls cost no more.
    pub fn start_machine(&self, machine: Arc<dyn Machine<M>>) {
        // Before it can leave.
        self.pace.machine_began();
        self.machines.busy.fetch_add(1, Relaxed);
        self.machines.push(Running { machine, is_busy: true });
    }

    /// Gives each machine a turn.
    ///
    /// # Errors
    /// That of the first which fails; those behind it have their turns in the next poll.
    #[cold]
    pub(super) fn turn_machines(&self) -> Result<(), Error> {
        let machines = &self.machines;
        let Machines { running, more, busy } = machines;
        // Those that begin meanwhile come after these.
        let (few, others) = (running.len(), more.len());
        let all = (0..few).map(|_| running.pop()).chain((0..others).map(|_| more.pop()));
        for Running { machine, is_busy: was_busy } in all.flatten() {
            let seen = self.waits.events();
            let turned = machine.turn(self);
            let is_busy = turned == Ok(Turned::Busy);
            match (was_busy, is_busy) {
                (true, false) => _ = busy.fetch_sub(1, Relaxed),
                (false, true) => _ = busy.fetch_add(1, Relaxed),
                _ => {}
            }
            match turned {
                Ok(Turned::Waits | Turned::Busy) => {
                    machines.push(Running { machine, is_busy });
                    if M::PARALLEL && self.waits.events() != seen {
                        // Another thread has handled what this machine may wait for, did not find it on the list, and may sleep.
                        self.wake();
                    }
                }
                ended => {
                    self.pace.machine_ended();
                    // In every mode: what this thread waits for itself may be done, though its poll has handled nothing.
                    self.wake();
                    ended?;
                }
            }
        }
        Ok(())
    }
}
