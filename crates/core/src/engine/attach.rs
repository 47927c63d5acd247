//! Segments that a network comes to know after the engine was put together.
//!
//! # Invariants
//! - attach.1: the table of peers keeps this rank's own segment mapped, and the engine keeps the table: longer than the engines of the
//!   network, which go with it.

use super::Engine;
use super::put::nic_error;
use crate::{CoreMode, Error, Rank};
use gasworks_memory::PeerTable;
use gasworks_rdma::Key;
use gasworks_sync::RawSlice;
use std::sync::OnceLock;

/// The keys that the peers came with; none where nobody has one yet.
pub(super) fn keys(peers: &PeerTable) -> OnceLock<Box<[Key]>> {
    let all: Box<[Key]> =
        (0..peers.ranks()).filter_map(|rank| peers.get(rank)).map(|peer| Key(peer.key.clone())).collect();
    let keys = OnceLock::new();
    if all.iter().any(|key| !key.0.is_empty()) {
        let _ = keys.set(all);
    }
    keys
}

/// What a key is where there is none: nothing can be moved by it.
static NO_KEY: Key = Key(Vec::new());

impl<M: CoreMode> Engine<M> {
    /// Gives this rank's segment the length at which it will stay, registers it with the network, if there is one, and says what
    /// others are to know of it ([`meet_segments`](Self::meet_segments)).
    ///
    /// # Errors
    /// There is not so much memory, or the network does not take it.
    pub fn attach_segment(&self, len: u64) -> Result<Vec<u8>, Error> {
        const DURING: &str = "attach a segment";
        let len = self.peers.attach(len).map_err(Error::memory(DURING))?;
        let own = self.peers.get(self.rank).and_then(|own| own.mapped.slice(0, usize::try_from(len).ok()?));
        let bytes = own.unwrap_or(RawSlice::EMPTY);
        // SAFETY: attach.1: `bytes` are of this rank's own segment, which `self.peers` keeps mapped while this engine lives.
        let key = unsafe { self.rdma.register(bytes) };
        let key = key.map_err(|error| nic_error(DURING, self.rank, error))?;
        Ok([&len.to_le_bytes()[..], &key.0].concat())
    }

    /// Takes what every rank has said of its segment, once.
    ///
    /// # Errors
    /// What a rank has said is nothing that [`attach_segment`](Self::attach_segment) says.
    pub fn meet_segments(&self, cards: &[Vec<u8>]) -> Result<(), Error> {
        let read = |(rank, card): (Rank, &Vec<u8>)| match card.split_first_chunk() {
            Some((len, key)) => Ok((u64::from_le_bytes(*len), Key(key.to_vec()))),
            None => Err(Error::BadMessage {
                from: rank,
                what: format!("a card of {} bytes of its segment", card.len()),
            }),
        };
        let (lens, keys): (Vec<_>, Vec<_>) =
            (0..).zip(cards).map(read).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        // The keys first: who finds the length uses them.
        let _ = self.keys.set(keys.into());
        (0..).zip(lens).for_each(|(rank, len)| self.peers.told(rank, len));
        Ok(())
    }

    /// The network's key for a rank's segment.
    pub(super) fn key_of(&self, rank: Rank) -> &Key {
        self.keys.get().and_then(|keys| keys.get(rank as usize)).unwrap_or(&NO_KEY)
    }
}
