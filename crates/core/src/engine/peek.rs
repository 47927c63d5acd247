//! What another thread may see of an engine while its own threads work, or hang.

use super::Engine;
use super::by_process::ByProcess;
use crate::observe::LongWait;
use crate::{CoreMode, Rank};

/// How an engine stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// How often it was polled; wraps round.
    pub polls: u32,
    /// How often a thread has slept; wraps round.
    pub sleeps: u32,
    /// Requests that are out in all, and how many may be.
    pub out: (u32, u32),
    /// Requests that are out to each rank, how many may be, and their bytes; where there are any.
    pub out_to: Vec<(Rank, (u32, u32), u64)>,
    /// Credits owed to each rank, where there are any.
    pub owed_to: Vec<(Rank, u32)>,
    /// Steps that are tried again at every poll.
    pub postponed: usize,
    /// The ranks whose given memory was asked for and is reached by `process_vm_*`.
    pub by_process: Vec<Rank>,
    /// Those whose given memory is reached by messages instead, and why.
    pub by_message: Vec<(Rank, String)>,
    /// What is waited for since long.
    pub long_waits: Vec<LongWait>,
}

impl<M: CoreMode> Engine<M> {
    /// How this engine stands. Touches atomics, a lock among them, and what is never written, alone: so any thread may call it, also of an
    /// engine in `Seq`, as long as it is sure that the engine stays where it is.
    pub fn peek(&self) -> Peek {
        let peers = || 0..self.peers.ranks();
        let left = self.account.left();
        let total =
            self.router.attributes().iter().fold(0u32, |sum, wire| sum.saturating_add(wire.flow.total));
        let out_to = peers().map(|peer| (peer, left.out(peer), left.limits(peer).depth));
        let owed_to = peers().map(|peer| (peer, self.account.owed().to(peer).0));
        let (by_process, by_message) = self.by_process().map(ByProcess::standing).unwrap_or_default();
        Peek {
            polls: self.pace.polls(),
            sleeps: self.waits.sleeps(),
            out: (left.total_out(), total),
            out_to: out_to
                .filter(|(_, out, _)| out.0 > 0)
                .map(|(to, out, most)| (to, (out.0, most), out.1))
                .collect(),
            owed_to: owed_to.filter(|&(_, owed)| owed > 0).collect(),
            postponed: self.machines.busy(),
            by_process,
            by_message,
            long_waits: self.long_waits.all(),
        }
    }
}
