//! Machines: what needs a turn at every poll until it is over, such as a barrier that goes by messages, or a step that had no room.

use super::Engine;
use crate::{CoreMode, Error};
use crossbeam_queue::SegQueue;

/// What a machine's turn has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It waits for something still.
    Waits,
    /// It is over, and leaves the list. That may be what a thread of this rank sleeps for.
    Ended,
}

/// A machine on the list, the specification's "progress function". It must not poll. No two threads turn it at once.
pub trait Machine<M: CoreMode>: Send {
    /// Goes as far as it can at once.
    ///
    /// # Errors
    /// Any: the poll returns it, and the machine leaves the list.
    fn turn(&mut self, engine: &Engine<M>) -> Result<Turned, Error>;
}

/// Those that run. One whose turn it is is not among them.
pub(super) struct Machines<M: CoreMode> {
    running: SegQueue<Box<dyn Machine<M>>>,
}

impl<M: CoreMode> Machines<M> {
    pub(super) fn new() -> Self {
        Self { running: SegQueue::new() }
    }
}

impl<M: CoreMode> Engine<M> {
    /// Has a machine run: every poll gives it a turn until it is over. Without one, polls cost no more.
    pub fn start_machine(&self, machine: Box<dyn Machine<M>>) {
        // Before it can leave.
        self.pace.machine_began();
        self.machines.running.push(machine);
    }

    /// Gives each machine a turn.
    ///
    /// # Errors
    /// That of the first which fails; those behind it have their turns in the next poll.
    #[cold]
    pub(super) fn turn_machines(&self) -> Result<(), Error> {
        let running = &self.machines.running;
        // Those that begin meanwhile come after these.
        for _ in 0..running.len() {
            let seen = self.waits.events();
            let Some(mut machine) = running.pop() else { break };
            match machine.turn(self) {
                Ok(Turned::Waits) => {
                    running.push(machine);
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
