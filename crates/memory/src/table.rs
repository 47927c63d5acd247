//! The one table of memory that peers may name: segments, and regions that are made while the job runs.
//!
//! A place is a rank and a 64-bit number: an offset in the rank's segment, or a [`RegionId`] and an offset in that region. The fast path
//! looks at the rows of the segments alone, where places in regions are beyond the end; the slow path, [`RegionTable::reach`], serves all.
//!
//! # Invariants
//! - table.1: a peer with [`PeerFlags::MAPPED`] or [`PeerFlags::COUNTED`] has all of `mapped` mapped for as long as the table lives, which
//!   keeps whatever owns the mappings; readable and writable as far as its length is known here. Whoever makes the table promises it of
//!   segments, whoever implements [`RegionMemory`] of regions, and given.1 of what this rank gives to one.
//! - table.2: the length that is known here of such a peer's region never exceeds that of `mapped`, and only grows. What is open
//!   to the fast path is as long for a peer that is `MAPPED`, or nothing, and nothing for all others. So a range inside either is
//!   inside the mapping.

mod column;
mod regions;

pub use column::{OwnRows, Peer, PeerFlags, Row, Rows};
pub use regions::{Asked, Generations, RegionMemory};

use crate::{Given, MemoryError, RegionHandle, RegionId, Rights};
use column::{Column, REACHED};
use gasworks_sync::atomic::{AtomicU32, Ordering::Relaxed};
use gasworks_sync::{RawSlice, VolatileSlice};
use regions::Regions;
use std::any::Any;
use std::sync::Arc;

/// What is done with another rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Bytes are put there.
    Put,
    /// Bytes are got from there.
    Get,
    /// A word there is changed or read by an atomic operation.
    Update,
}

/// Counts puts, gets and atomic operations, where a job is observed.
pub trait Watch: Send + Sync {
    /// One of `len` bytes of `rank`'s; `act` does it, if that is all there is to it.
    fn accesses(&self, access: Access, rank: u32, len: usize, act: &mut dyn FnMut());
}

/// The largest segments that memory and its limits allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Largest {
    /// For this rank, in bytes: the specification's `gasnet_getMaxLocalSegmentSize`.
    pub local: u64,
    /// For all ranks alike, in bytes: the specification's `gasnet_getMaxGlobalSegmentSize`.
    pub global: u64,
}

/// Segments that grow in place, by whoever mapped them.
pub trait Growth: Send + Sync {
    /// The length of a rank's segment now, as its owner announced it: a peer's word. As much of it can be used here from then on.
    fn length(&self, rank: u32) -> u64;
    /// Makes this rank's own segment at least `len` bytes long, and announces it. Returns the length it has then.
    ///
    /// # Errors
    /// The segment has no room to grow so far, or there is not enough memory.
    fn grow(&self, len: u64) -> Result<u64, MemoryError>;
    /// The largest segments that could have been had when the table was made.
    fn largest(&self) -> Largest;
}

/// When this rank's segment grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Grows {
    /// It keeps its length.
    Never,
    /// Once and for all, by [`RegionTable::attach`].
    Once,
    /// At any time, by [`RegionTable::grow`].
    AnyTime,
}

const NEVER: u32 = Grows::Never as u32;
const ONCE: u32 = Grows::Once as u32;
const ANY_TIME: u32 = Grows::AnyTime as u32;

/// The segments of a job's ranks, and their other regions.
pub struct RegionTable {
    /// Column 0. Its keys are known once the segments are attached.
    segments: Column,
    regions: Regions,
    watch: Option<Arc<dyn Watch>>,
    growth: Option<Arc<dyn Growth>>,
    /// Whether segments may still grow: any time, once and all together ([`attach`](RegionTable::attach)), or not any more.
    grows: AtomicU32,
    /// The largest segments that could have been had, where a network has its own limit.
    largest: Option<Largest>,
    /// Never looked at: it is here for table.1.
    _owner: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for RegionTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.segments.entries()).finish()
    }
}

impl RegionTable {
    /// Takes the peers in rank order, and what owns their mappings. Their segments keep their lengths.
    ///
    /// # Safety
    /// table.1: what is `mapped` of a peer that load and store reach stays mapped as long as `owner` lives; as many bytes of it as its `len`
    /// are readable and writable, and nobody has references to them but to atomics.
    pub unsafe fn new(
        peers: impl IntoIterator<IntoIter: ExactSizeIterator<Item = Peer>>,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let segments = Column::new(peers);
        segments.open(|_| true);
        Self {
            segments,
            regions: Regions::default(),
            watch: None,
            growth: None,
            grows: AtomicU32::new(NEVER),
            largest: None,
            _owner: owner,
        }
    }

    /// A rank's segment is at least `len` bytes long.
    fn know(&self, rank: u32, len: u64) {
        let Ok(of) = self.segments.of(rank) else { return };
        let len = of.len.fetch_max(len, Relaxed).max(len);
        if of.flags.contains(PeerFlags::MAPPED) {
            of.row.open_to(len);
        }
    }

    /// Says how large segments could have been, where the network has a limit of its own.
    #[must_use]
    pub fn with_largest(self, largest: Largest) -> Self {
        Self { largest: Some(largest), ..self }
    }

    /// As [`new`](Self::new), with segments that may grow within what is mapped of them. How long another rank's is that is mapped here the
    /// owner is asked when it matters first: so it need not have that memory be used before.
    ///
    /// # Safety
    /// As for [`new`](Self::new), but for the segments of others: of those as many bytes as the owner says ([`Growth::length`]) are readable
    /// and writable from then on, as far as they are mapped. As many of the own are when it has [grown](Growth::grow).
    pub unsafe fn growing<G: Growth + Any>(
        peers: impl IntoIterator<IntoIter: ExactSizeIterator<Item = Peer>>,
        owner: Arc<G>,
        grows: Grows,
    ) -> Self {
        // SAFETY: table.1: the caller promises that `owner` keeps the mappings; rows of others' segments, whose bytes it does not promise
        // yet, are closed next.
        let table = unsafe { Self::new(peers, owner.clone()) };
        for of in table.segments.entries() {
            if of.flags.intersects(REACHED) && !of.flags.contains(PeerFlags::SELF) {
                of.row.close();
                of.len.store(0, Relaxed);
            }
        }
        Self { growth: Some(owner), grows: AtomicU32::new(grows as u32), ..table }
    }

    /// Has puts and gets counted from now on: no peer is [`MAPPED`](PeerFlags::MAPPED) any more, those that were are
    /// [`COUNTED`](PeerFlags::COUNTED).
    #[must_use]
    pub fn watched(mut self, watch: Arc<dyn Watch>) -> Self {
        self.segments.set_counted();
        self.watch = Some(watch);
        self
    }

    /// Has new regions get their memory from there.
    #[must_use]
    pub fn with_regions(mut self, memory: Arc<dyn RegionMemory>) -> Self {
        self.regions.set_memory(memory);
        self
    }

    /// What this rank can create: ranks that create a region together name it by the largest of each column that any of them has said
    /// ([`name_region`](Self::name_region)).
    ///
    /// # Errors
    /// The transport has no regions.
    pub fn generations(&self) -> Result<Generations, MemoryError> {
        self.regions.memory().map(|_| self.regions.generations())
    }

    /// A name for a region of ranks that have said these generations: in the first column that is free on all of them, or the one that comes so far behind it.
    ///
    /// # Errors
    /// No column is free on all of them.
    pub fn name_region(generations: &Generations, nth: u32) -> Result<RegionId, MemoryError> {
        regions::nth_of(generations, nth)
    }

    /// Keeps this name for a region that is [created](Self::create) next; whether this rank can. Another thread may have taken it since this rank has said what it can create.
    pub fn reserve(&self, id: RegionId) -> bool {
        self.regions.reserve(id)
    }

    /// Keeps the name no more.
    pub fn release(&self, id: RegionId) {
        self.regions.release(id);
    }

    /// The name that a region would get which only this rank creates, or those that have created and withdrawn the same ones.
    ///
    /// # Errors
    /// Those of [`generations`](Self::generations) and [`name_region`](Self::name_region).
    pub fn next_region(&self) -> Result<RegionId, MemoryError> {
        self.generations().and_then(|generations| Self::name_region(&generations, 0))
    }

    /// Collective: creates a region of this name, of which each rank asks for a part, or gives it: this one `given`. Peers may be told of
    /// it when all ranks have returned ([`publish`](Self::publish)).
    ///
    /// # Errors
    /// There is not enough memory for this rank, or what it gives cannot be a part; all ranks are to [withdraw](Self::withdraw) it, then.
    pub fn create(&self, id: RegionId, asked: &[Asked], given: Option<Given>) -> Result<(), MemoryError> {
        if let Some(&Asked { len, .. }) = asked.iter().find(|asked| asked.len > RegionId::MAX_LEN) {
            return Err(MemoryError::RegionTooLarge { len });
        }
        let own = self.segments.own as usize;
        let rights = asked.get(own).map_or(Rights::empty(), |asked| asked.rights);
        let checked = given.map(|given| self.check_given(&given, rights).map(|()| given)).transpose();
        // Memory for the parts that nobody gives.
        let wanted =
            |asked: &Asked| Asked { len: if asked.given.is_some() { 0 } else { asked.len }, ..*asked };
        let created = self.regions.memory()?.create(id, &asked.iter().map(wanted).collect::<Vec<_>>());
        let (mut peers, result) =
            created.map_or_else(|error| (Vec::new(), Err(error)), |peers| (peers, Ok(())));
        for (peer, asked) in peers.iter_mut().zip(asked) {
            if let Some(remote_base) = asked.given {
                let flags = peer.flags & PeerFlags::SELF;
                *peer = Peer { mapped: RawSlice::EMPTY, len: asked.len, remote_base, key: Vec::new(), flags };
            }
        }
        // Only this rank has what it gives mapped.
        if let (Some(own), Ok(Some(given))) = (peers.get_mut(own), &checked) {
            (own.mapped, own.len) = (given.bytes(), given.bytes().len() as u64);
            own.flags.insert(PeerFlags::MAPPED);
        }
        let counted = |peer: &&mut Peer| self.watch.is_some() && peer.flags.contains(PeerFlags::MAPPED);
        peers.iter_mut().filter(counted).for_each(|peer| peer.flags.toggle(REACHED));
        self.regions.add(id, peers, asked, matches!(checked, Ok(Some(_))))?;
        // So the name is used up on this rank, too.
        result.inspect_err(|_| _ = self.regions.close(id))?;
        checked?.into_iter().for_each(|given| self.regions.keep(given));
        Ok(())
    }

    /// Whether memory can be a part of a region: there is such a range, and it is nothing that peers can name already.
    fn check_given(&self, given: &Given, rights: Rights) -> Result<(), MemoryError> {
        let bytes = given.bytes();
        let (start, len) = (bytes.as_ptr().addr(), bytes.len());
        let cause = match () {
            () if start == 0 => "there is no memory at address 0".into(),
            () if start.checked_add(len).is_none() => "it wraps around".into(),
            () => match (self.segments.overlapped(bytes), self.regions.overlapped(bytes, rights)) {
                (Some(rank), _) => format!("it overlaps the segment of rank {rank}"),
                (None, Some(region)) => format!("it overlaps {region}"),
                (None, None) => return Ok(()),
            },
        };
        Err(MemoryError::CannotGive { start: start as u64, len: len as u64, cause })
    }

    /// Nobody names memory of this rank any more: what it has given is freed with the table.
    pub fn close(&self) {
        self.regions.set_closed();
    }

    /// Lets this rank use a region that all ranks have created. `parts` are, in the order of the ranks, the address at which each one's part
    /// begins in its own process and the network's key for it. Whether it can: the region is new, and keys have one length.
    pub fn publish<'a>(&self, id: RegionId, parts: impl Iterator<Item = (u64, &'a [u8])> + Clone) -> bool {
        self.regions.publish(id, parts)
    }

    /// Withdraws a region on this rank: its places are errors from now on.
    ///
    /// # Errors
    /// There is no such region any more.
    pub fn withdraw(&self, id: RegionId) -> Result<(), MemoryError> {
        let region = RegionHandle { owner: self.segments.own, id };
        // Where it could not be created.
        self.regions.release(id);
        self.regions.close(id).then_some(()).ok_or(MemoryError::Withdrawn { region })
    }

    /// Ends what this rank has of a region that all ranks have [withdrawn](Self::withdraw): what is borrowed of it are private zero pages.
    ///
    /// # Errors
    /// The system refuses.
    pub fn unmap(&self, id: RegionId) -> Result<(), MemoryError> {
        self.regions.memory()?.unmap(id)
    }

    /// Frees the memory of a region that all ranks have [unmapped](Self::unmap).
    ///
    /// # Errors
    /// The system refuses.
    pub fn free(&self, id: RegionId) -> Result<(), MemoryError> {
        self.regions.memory()?.free(id)
    }

    /// The length of a rank's part of a region; `None` if there is no such region or rank.
    pub fn len_in(&self, id: RegionId, rank: u32) -> Option<u64> {
        self.regions.len(id, rank)
    }

    /// What the fast path reads of a region, for each rank, as [`rows`](Self::rows) of the segments: by offsets in the region. Its rows are closed
    /// while it is not published, and once it is withdrawn; `None` if there is no such region.
    pub fn rows_in(&self, id: RegionId) -> Option<Rows<'_>> {
        self.regions.rows(id)
    }

    /// Where this rank's own part of a region lies; no bytes if there is none.
    pub fn own_in(&self, id: RegionId) -> RawSlice {
        self.regions.own(id)
    }

    /// Who counts what is done with the memory of others.
    pub fn watch(&self) -> Option<&dyn Watch> {
        self.watch.as_deref()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.segments.ranks()
    }

    /// What the fast path reads, for each rank, and a closed row behind them: it stays where it is as long as the table does.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        self.segments.rows()
    }

    /// Rows for ranks in any order, of which those that do not exist are closed. How long their segments are is asked now.
    pub fn rows_of(&self, ranks: impl IntoIterator<Item = u32>) -> OwnRows<'_> {
        OwnRows::new(self.rows(), ranks.into_iter().inspect(|&rank| self.refresh(rank)))
    }

    /// What is known of a rank; `None` if there is no such rank.
    pub fn flags(&self, rank: u32) -> Option<PeerFlags> {
        Some(self.segments.of(rank).ok()?.flags)
    }

    /// The address of a rank's segment in its own process; `None` if there is no such rank.
    #[inline]
    pub fn base(&self, rank: u32) -> Option<u64> {
        Some(self.segments.of(rank).ok()?.base)
    }

    /// Where a rank's segment lies here, with the room that it has to grow; no bytes if load and store do not reach it.
    pub fn mapped(&self, rank: u32) -> RawSlice {
        self.segments.mapped(rank)
    }

    /// The network's key for a rank's segment; no bytes if it has none, or none yet.
    pub fn key(&self, rank: u32) -> &[u8] {
        self.segments.key(rank)
    }

    /// Takes the network's keys for all segments, in the order of the ranks, unless they are known; whether they can be: they have one
    /// length.
    pub fn set_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
        self.segments.set_keys(keys)
    }

    /// The length of a rank's segment now, in bytes; `None` if there is no such rank.
    pub fn len_of(&self, rank: u32) -> Option<u64> {
        self.refresh(rank);
        Some(self.segments.of(rank).ok()?.len.load(Relaxed))
    }

    /// Makes this rank's own segment at least `len` bytes long. Peers may use the new bytes, which are zero, as soon as they
    /// hear of it by any message. Returns the length it has then.
    ///
    /// # Errors
    /// The segment has no room to grow so far, or there is not enough memory.
    pub fn grow(&self, len: u64) -> Result<u64, MemoryError> {
        if self.grows.load(Relaxed) == ANY_TIME { self.attach(len) } else { self.fixed(len) }
    }

    /// As [`grow`](Self::grow), for the one time that segments grow of a table that does so [once](Grows::Once). What peers to whom the segment is
    /// not mapped are to know of it is the caller's to tell ([`told`](Self::told)).
    ///
    /// # Errors
    /// As [`grow`](Self::grow).
    pub fn attach(&self, len: u64) -> Result<u64, MemoryError> {
        match &self.growth {
            Some(growth) if self.grows.load(Relaxed) != NEVER => {
                let len = growth.grow(len)?;
                // Relaxed: one thread attaches, and others look at nothing because of it.
                let _ = self.grows.compare_exchange(ONCE, NEVER, Relaxed, Relaxed);
                Ok(len)
            }
            _ => self.fixed(len),
        }
    }

    /// How long this rank's segment may become, in bytes.
    pub fn room(&self) -> u64 {
        let room = self.mapped(self.segments.own).len() as u64;
        let len = self.len_of(self.segments.own).unwrap_or(0);
        if self.grows.load(Relaxed) == NEVER { len } else { len.max(room) }
    }

    fn fixed(&self, len: u64) -> Result<u64, MemoryError> {
        let rank = self.segments.own;
        self.len_of(rank).filter(|&now| now >= len).ok_or(MemoryError::FixedSegment { rank, len })
    }

    /// Takes a rank's word for how long its segment is now, if it is not mapped here: whoever moves bytes there asks its
    /// network, which knows. Of a mapped one the mapping tells.
    pub fn told(&self, rank: u32, len: u64) {
        if !self.reaches(rank) {
            self.know(rank, len);
        }
    }

    /// The largest segments that could have been had; `None` where the transport sets no limits.
    pub fn largest(&self) -> Option<Largest> {
        self.largest.or_else(|| self.growth.as_ref().map(|growth| growth.largest()))
    }

    /// See [`Rows::open`].
    #[inline(always)]
    pub fn open(&self, rank: u32, offset: u64, len: usize) -> Option<VolatileSlice<'_>> {
        self.rows().open(rank, offset, len)
    }

    /// The `len` bytes from `place` on of a rank's segment or region where load and store reach them, counted or not; `None` where
    /// they do not. `rights` are what the caller means to do with them.
    ///
    /// # Errors
    /// The rank or the region does not exist, the region is not published, withdrawn or does not allow it, or the range is not inside.
    #[inline]
    pub fn reach(
        &self,
        rank: u32,
        place: u64,
        len: usize,
        rights: Rights,
    ) -> Result<Option<VolatileSlice<'_>>, MemoryError> {
        match self.open(rank, place, len) {
            None => self.look_closer(rank, place, len, rights),
            open => Ok(open),
        }
    }

    /// How many bytes there are from `place` on to the end of a rank's segment or region; 0 where there is none.
    pub fn left(&self, rank: u32, place: u64) -> u64 {
        let (len, offset) = match RegionId::of(place) {
            Some((id, offset)) => (self.regions.len(id, rank), offset),
            None => (self.len_of(rank), place),
        };
        len.map_or(0, |len| len.saturating_sub(offset))
    }

    /// How a network names a place: the key of the rank's segment or region, the address at which that begins in the rank's process, and the
    /// offset there.
    pub fn remote(&self, rank: u32, place: u64) -> (&[u8], u64, u64) {
        match RegionId::of(place) {
            Some((id, offset)) => (self.regions.key(id, rank), self.regions.base(id, rank), offset),
            None => (self.key(rank), self.base(rank).unwrap_or(0), place),
        }
    }

    /// The address of a place in the process of its rank.
    pub fn address(&self, rank: u32, place: u64) -> u64 {
        let (_, base, offset) = self.remote(rank, place);
        base.wrapping_add(offset)
    }

    /// Whether load and store reach the segment or region of a rank in which a place is, counted or not.
    pub fn reaches_at(&self, rank: u32, place: u64) -> bool {
        RegionId::of(place).map_or_else(|| self.reaches(rank), |(id, _)| self.regions.reaches(id, rank))
    }

    /// Whether load and store reach a rank's segment, counted or not.
    pub fn reaches(&self, rank: u32) -> bool {
        self.flags(rank).is_some_and(|flags| flags.intersects(REACHED))
    }

    /// What is not inside what is known here may be inside all the same, in a region, or wrong.
    #[cold]
    fn look_closer(
        &self,
        rank: u32,
        place: u64,
        len: usize,
        rights: Rights,
    ) -> Result<Option<VolatileSlice<'_>>, MemoryError> {
        if let Some((id, offset)) = RegionId::of(place) {
            return self.regions.reach(id, (rank, offset), len, rights);
        }
        let (of, offset) = (self.segments.of(rank)?, place);
        let outside = |segment| offset.checked_add(len as u64).is_none_or(|end| end > segment);
        if outside(of.len.load(Relaxed)) {
            self.refresh(rank);
            let segment = of.len.load(Relaxed);
            if outside(segment) {
                return Err(MemoryError::OutsideSegment { rank, offset, len: len as u64, segment });
            }
        }
        // SAFETY: it is mapped, and the range inside what is known of it (table.2), of this table.
        Ok(self.reaches(rank).then(|| unsafe { of.row.part(offset, len) }))
    }

    /// Asks how long a segment is now. What its owner says is believed as far as the mapping goes (table.2).
    fn refresh(&self, rank: u32) {
        let (Some(growth), Ok(of)) = (&self.growth, self.segments.of(rank)) else { return };
        if of.flags.intersects(REACHED) {
            // Relaxed, as all uses of the length are: the bytes are mapped and zero from the beginning, so a thread that sees
            // the new length needs to see nothing else.
            self.know(rank, growth.length(rank).min(of.room));
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
