//! What another thread may see of an engine while its own threads work, or hang.

use super::Engine;
use crate::{CoreMode, Rank};
use gasworks_shmem::credit::Limits;

/// How an engine stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// How often it was polled; wraps round.
    pub polls: u32,
    /// Requests that are out in all, and how many may be.
    pub out: (u32, u32),
    /// Requests and their bytes that are out to each rank, where there are any.
    pub out_to: Vec<(Rank, u32, u64)>,
    /// How many requests may be out to one rank.
    pub depth: u32,
    /// Credits owed to each rank, where there are any.
    pub owed_to: Vec<(Rank, u32)>,
    /// Steps that are tried again at every poll.
    pub postponed: usize,
}

impl<M: CoreMode> Engine<M> {
    /// How this engine stands. Touches atomics, and what is never written, alone: so any thread may call it, also of an
    /// engine in `Seq`, as long as it is sure that the engine stays where it is.
    pub fn peek(&self) -> Peek {
        let peers = || 0..self.peers.ranks();
        let Limits { depth, total, .. } = self.account.left().limits(self.rank);
        let out_to = peers().map(|peer| (peer, self.account.left().out(peer)));
        let owed_to = peers().map(|peer| (peer, self.account.owed().to(peer).0));
        Peek {
            polls: self.pace.polls(),
            out: (self.account.left().total_out(), total),
            out_to: out_to.filter(|(_, out)| out.0 > 0).map(|(to, out)| (to, out.0, out.1)).collect(),
            depth,
            owed_to: owed_to.filter(|&(_, owed)| owed > 0).collect(),
            postponed: self.transfers.postponed(),
        }
    }
}
