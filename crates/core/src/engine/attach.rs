//! Segments that a network comes to know after the engine was put together.
//!
//! # Invariants
//! - attach.1: the table of peers keeps this rank's own segment mapped, and the engine keeps the table: longer than the engines of the
//!   network, which go with it.

use super::Engine;
use super::by_process::ByProcess;
use super::put::nic_error;
use crate::{CoreMode, Error, Rank};
use gasworks_memory::RegionId;
use gasworks_rdma::{Key, NicError};
use gasworks_sync::RawSlice;

/// What a NIC may take for the alignment of an offset it takes for that of an address.
const WORD: usize = 8;

impl<M: CoreMode> Engine<M> {
    /// Gives this rank's segment the length at which it will stay, registers it with the network, if there is one, and says what
    /// others are to know of it ([`meet_segments`](Self::meet_segments)).
    ///
    /// # Errors
    /// There is not so much memory, or the network does not take it.
    pub fn attach_segment(&self, len: u64) -> Result<Vec<u8>, Error> {
        const DURING: &str = "attach a segment";
        let len = self.peers.attach(len).map_err(Error::memory(DURING))?;
        let own = usize::try_from(len).ok().and_then(|len| self.peers.mapped(self.rank).slice(0, len));
        let bytes = own.unwrap_or(RawSlice::EMPTY);
        // SAFETY: attach.1: `bytes` are of this rank's own segment, which `self.peers` keeps mapped while this engine lives.
        let key = unsafe { self.transfers.rdma().register(bytes) };
        let key = key.map_err(|error| nic_error(DURING, self.rank, error))?;
        Ok([&len.to_le_bytes()[..], &key.0].concat())
    }

    /// Registers this rank's part of a region that was created with the network, if there is one, and returns the key. Without one, what is
    /// not mapped of the region will be reached in its process, or by messages.
    ///
    /// # Errors
    /// The network does not take it.
    pub fn register_region(&self, id: RegionId) -> Result<Vec<u8>, Error> {
        let is_mapped = |rank| id.place(0).is_some_and(|place| self.peers.reaches_at(rank, place));
        if !self.has_network() && !(0..self.ranks()).all(is_mapped) {
            let opened = self.transfers.open_messages(self.least.max_medium);
            opened.map_err(|error| nic_error("create a region", self.rank, error))?;
            let by_process = if self.process_vm { self.transfers.open_processes() } else { None };
            return Ok(by_process.map_or_else(ByProcess::no_key, ByProcess::key));
        }
        let own = self.peers.own_in(id);
        if self.has_network() && !own.is_empty() && !own.as_ptr().addr().is_multiple_of(WORD) {
            // What a rank gives may begin anywhere.
            let why = "they do not begin at a multiple of 8, as a network needs";
            let cause = NicError::Registration { len: own.len(), why };
            return Err(Error::Nic { during: "create a region", cause });
        }
        // SAFETY: attach.1: `self.peers` keeps mapped what it has created, while this engine lives.
        let key = unsafe { self.transfers.rdma().register(own) };
        Ok(key.map_err(|error| nic_error("create a region", self.rank, error))?.0)
    }

    /// Ends the registration of this rank's part of a region, whose key is `key`. Nothing that uses it may be under way, here or at a peer.
    ///
    /// # Errors
    /// The network knows no such registration.
    pub fn deregister_region(&self, key: Vec<u8>) -> Result<(), Error> {
        let ended = self.transfers.rdma().deregister(&Key(key));
        ended.map_err(|error| nic_error("withdraw a region", self.rank, error))
    }

    /// Takes what every rank has said of its segment, once.
    ///
    /// # Errors
    /// What a rank has said is nothing that [`attach_segment`](Self::attach_segment) says.
    pub fn meet_segments<'a>(&self, cards: impl Iterator<Item = &'a [u8]> + Clone) -> Result<(), Error> {
        let short = |rank: Rank, card: &[u8]| {
            let what = format!("a card of {} bytes of its segment", card.len());
            Error::BadMessage { from: rank, what }
        };
        let read = |(rank, card): (Rank, &[u8])| card.first_chunk().ok_or_else(|| short(rank, card)).copied();
        let lens = (0..).zip(cards.clone()).map(read).collect::<Result<Vec<_>, _>>()?;
        // The keys first: who finds the length uses them.
        if !self.peers.set_keys(cards.map(|card| &card[size_of::<u64>()..])) {
            let what = "the keys of segments have different lengths".into();
            return Err(Error::BadMessage { from: self.rank, what });
        }
        (0..).zip(lens).for_each(|(rank, len)| self.peers.told(rank, u64::from_le_bytes(len)));
        Ok(())
    }
}
