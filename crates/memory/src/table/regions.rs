//! Regions that are created while the job runs, by collective calls.
//!
//! # Invariants
//! - regions.1: what is mapped of a region stays mapped, readable and writable, as long as the [`RegionMemory`] that mapped it, which the
//!   table keeps: withdrawing a region changes what the addresses lead to, and not that they may be used.

use super::column::{Column, Peer, REACHED, Rows};
use crate::{Given, MemoryError, RegionHandle, RegionId, Rights};
use gasworks_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use gasworks_sync::doubling::Doubling;
use gasworks_sync::{Lock, Mode, Par, RawSlice, VolatileSlice};
use std::sync::{Arc, OnceLock};

/// What a rank asks for in a new region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// How many bytes of memory.
    pub len: u64,
    /// What peers may do with them.
    pub rights: Rights,
    /// Where they lie in its process, if it [gives](Given) them; else the library has memory for them.
    pub given: Option<u64>,
}

/// Where the memory of regions comes from: implemented by transports. All calls are collective: every rank makes them for the same regions, in
/// the same order.
///
/// # Safety
/// table.1, of what [`create`](Self::create) returns: it stays mapped, readable and writable, until this value is dropped, whatever else is
/// called; and nobody has references to it but to atomics.
pub unsafe trait RegionMemory: Send + Sync {
    /// Gives this rank as many zero bytes as it asks for, and maps those of all ranks that can be mapped. Returns what is known of each
    /// rank's region then, in the order of the ranks. `asked` are the wishes of all ranks, in that order.
    ///
    /// # Errors
    /// There is not enough memory, or not enough addresses. Nothing is left then.
    fn create(&self, id: RegionId, asked: &[Asked]) -> Result<Vec<Peer>, MemoryError>;

    /// Puts private pages of zeroes in the place of what is mapped of a region.
    ///
    /// # Errors
    /// The system refuses.
    fn unmap(&self, id: RegionId) -> Result<(), MemoryError>;

    /// Frees the memory of a region that all ranks have [unmapped](Self::unmap).
    ///
    /// # Errors
    /// The system refuses.
    fn free(&self, id: RegionId) -> Result<(), MemoryError>;
}

const PENDING: u32 = 0;
const PUBLISHED: u32 = 1;
const WITHDRAWN: u32 = 2;

/// How many columns collective calls may give out.
const COLUMNS: usize = (RegionId::LAST - RegionId::FIRST) as usize + 1;

/// The generation of the next region in each column that collective calls may give out, `u16::MAX` where it can have none: of one rank, or, in each
/// column, the largest that any of some ranks has said.
pub type Generations = [u16; COLUMNS];

/// In [`Generations`], of a column that has a region, or has had all that it can.
const NO_GENERATION: u16 = u16::MAX;

/// The regions of all ranks that one collective call created.
#[derive(Debug)]
struct Created {
    id: RegionId,
    state: AtomicU32,
    column: Column,
    rights: Box<[Rights]>,
    /// Whether this rank gave its part.
    is_given: bool,
}

/// All regions beside the segments.
pub(super) struct Regions {
    memory: Option<Arc<dyn RegionMemory>>,
    /// What this rank has given.
    given: <Par as Mode>::Lock<Vec<Given>>,
    /// Whether nobody names memory of this rank any more.
    closed: AtomicBool,
    /// All that were ever created, in that order.
    created: Doubling<Box<[OnceLock<Created>]>, 1>,
    /// How many of them there are, and which columns are kept for some that are about to be created. A lock, so that one at a time is created.
    count: <Par as Mode>::Lock<Count>,
    /// For each column, from the first on, the number of its latest among all that were created, from 1 on; 0 for none.
    latest: OnceLock<Box<[AtomicU32]>>,
}

#[derive(Default)]
struct Count {
    created: u32,
    reserved: Vec<u8>,
}

impl Default for Regions {
    fn default() -> Self {
        Self {
            memory: None,
            given: Lock::new(Vec::new()),
            closed: AtomicBool::new(false),
            created: Doubling::default(),
            count: Lock::new(Count::default()),
            latest: OnceLock::new(),
        }
    }
}

/// No column can have a region.
const NO_COLUMN: MemoryError = MemoryError::NoColumn { columns: COLUMNS as u32 };

/// The region of a column that can have one: of the one that comes so far behind the first, around.
pub(super) fn nth_of(generations: &Generations, nth: u32) -> Result<RegionId, MemoryError> {
    let all = (RegionId::FIRST..=RegionId::LAST).zip(generations);
    let free = all.map(|(index, &generation)| RegionId { index, generation });
    let free: Vec<_> = free.filter(|id| id.generation != NO_GENERATION).collect();
    let nth = (nth as usize).checked_rem(free.len()).ok_or(NO_COLUMN)?;
    free.get(nth).copied().ok_or(NO_COLUMN)
}

impl Regions {
    /// Has new regions get their memory from there.
    pub fn set_memory(&mut self, memory: Arc<dyn RegionMemory>) {
        self.memory = Some(memory);
    }

    /// Where the memory comes from.
    pub fn memory(&self) -> Result<&dyn RegionMemory, MemoryError> {
        self.memory.as_deref().ok_or(MemoryError::NoRegions)
    }

    /// Keeps memory of this rank as long as the table.
    pub fn keep(&self, given: Given) {
        self.given.with(|all| all.push(given));
    }

    /// Nobody names memory of this rank any more.
    pub fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// What bytes overlap of regions that are not withdrawn, as they lie here; but what this rank gave is not in the way of itself, with the same rights.
    pub fn overlapped(&self, bytes: RawSlice, rights: Rights) -> Option<RegionHandle> {
        let is_same = |created: &Created| {
            let own = created.column.own;
            created.is_given
                && created.column.mapped(own) == bytes
                && created.rights.get(own as usize) == Some(&rights)
        };
        let is_there =
            |created: &&Created| created.state.load(Ordering::Relaxed) != WITHDRAWN && !is_same(created);
        (RegionId::FIRST..=RegionId::LAST).filter_map(|index| self.latest(index)).filter(is_there).find_map(
            |Created { id, column, .. }| Some(RegionHandle { owner: column.overlapped(bytes)?, id: *id }),
        )
    }

    /// The place for the one with this number, from 1 on.
    fn slot(&self, number: u32) -> Option<&OnceLock<Created>> {
        let (part, at) = Doubling::<Box<[OnceLock<Created>]>, 1>::locate(number.checked_sub(1)?);
        self.created.get_or_make(part, |len| (0..len).map(|_| OnceLock::new()).collect())?.get(at)
    }

    /// What a column has or had last.
    fn latest(&self, index: u8) -> Option<&Created> {
        let column = usize::from(index.checked_sub(RegionId::FIRST)?);
        // Acquire: with `set`, so that who finds a number finds what it is of.
        let number = self.latest.get()?.get(column)?.load(Ordering::Acquire);
        self.slot(number)?.get()
    }

    /// The region, if it is what its column has or had last.
    fn find(&self, id: RegionId) -> Option<&Created> {
        self.latest(id.index).filter(|created| created.id == id)
    }

    /// The generation of the next region in a column.
    fn next_in(&self, index: u8) -> u16 {
        match self.latest(index) {
            None => 0,
            Some(Created { id, state, .. }) if state.load(Ordering::Relaxed) == WITHDRAWN => {
                id.generation.saturating_add(1)
            }
            Some(_) => NO_GENERATION,
        }
    }

    /// The generation of the next region in each column.
    pub fn generations(&self) -> Generations {
        self.count.with(|count| {
            let next =
                |index| if count.reserved.contains(&index) { NO_GENERATION } else { self.next_in(index) };
            std::array::from_fn(|column| next(RegionId::FIRST + column as u8))
        })
    }

    /// Keeps a column for a region of this name; whether it can have that.
    pub fn reserve(&self, id: RegionId) -> bool {
        self.count.with(|count| {
            let can = !count.reserved.contains(&id.index) && self.can_have(id);
            can.then(|| count.reserved.push(id.index)).is_some()
        })
    }

    /// Keeps it no more.
    pub fn release(&self, id: RegionId) {
        self.count.with(|count| count.reserved.retain(|index| *index != id.index));
    }

    /// Whether its column can have a region of this name.
    fn can_have(&self, id: RegionId) -> bool {
        id.index >= RegionId::FIRST
            && id.index <= RegionId::LAST
            && id.generation < NO_GENERATION
            && self.next_in(id.index) <= id.generation
    }

    /// Adds a region that is not published, of which peers are mapped as [`RegionMemory::create`] says.
    pub fn add(
        &self,
        id: RegionId,
        peers: Vec<Peer>,
        asked: &[Asked],
        is_given: bool,
    ) -> Result<(), MemoryError> {
        let created = Created {
            id,
            state: AtomicU32::new(PENDING),
            column: Column::new(peers),
            rights: asked.iter().map(|asked| asked.rights).collect(),
            is_given,
        };
        let latest = self.latest.get_or_init(|| (0..COLUMNS).map(|_| AtomicU32::new(0)).collect());
        self.count.with(|count| {
            count.reserved.retain(|index| *index != id.index);
            let number = count.created + 1;
            let column = usize::from(id.index.wrapping_sub(RegionId::FIRST));
            let slot = self.slot(number).filter(|_| self.can_have(id));
            let (slot, of) = slot.zip(latest.get(column)).ok_or(NO_COLUMN)?;
            let _ = slot.set(created);
            of.store(number, Ordering::Release);
            count.created = number;
            Ok(())
        })
    }

    /// Lets all that peers have of a region be used, with the addresses at which their parts begin and the network's keys for these; whether it
    /// is new, and keys have one length.
    pub fn publish<'a>(&self, id: RegionId, parts: impl Iterator<Item = (u64, &'a [u8])> + Clone) -> bool {
        let Some(created) = self.find(id) else { return false };
        if !created.column.set_keys(parts.clone().map(|(_, key)| key)) {
            return false;
        }
        created.column.set_bases(parts.map(|(base, _)| base));
        // Release, for keys and addresses.
        let was = created.state.compare_exchange(PENDING, PUBLISHED, Ordering::Release, Ordering::Relaxed);
        if was.is_ok() {
            created.column.open(|rank| created.rights.get(rank as usize) == Some(&Rights::all()));
        }
        was.is_ok()
    }

    /// Closes a region on this rank; whether it was there.
    pub fn close(&self, id: RegionId) -> bool {
        let created = self.find(id);
        created.is_some_and(|created| {
            let was = created.state.swap(WITHDRAWN, Ordering::Relaxed);
            created.column.close();
            was != WITHDRAWN
        })
    }

    /// The address of a rank's region in its own process; 0 where the library has its memory, before it is published.
    pub fn base(&self, id: RegionId, rank: u32) -> u64 {
        self.find(id).and_then(|created| created.column.of(rank).ok()).map_or(0, |of| of.base)
    }

    /// Whether load and store reach a rank's region, counted or not.
    pub fn reaches(&self, id: RegionId, rank: u32) -> bool {
        let of = self.find(id).and_then(|created| created.column.of(rank).ok());
        of.is_some_and(|of| of.flags.intersects(REACHED))
    }

    /// The length of a rank's region.
    pub fn len(&self, id: RegionId, rank: u32) -> Option<u64> {
        Some(self.find(id)?.column.of(rank).ok()?.len.load(Ordering::Relaxed))
    }

    /// The network's key for a rank's region; no bytes if there is none, or it is withdrawn: what was looked at before that and is started
    /// after it fails for want of a key.
    pub fn key(&self, id: RegionId, rank: u32) -> &[u8] {
        let there = self.find(id).filter(|created| created.state.load(Ordering::Acquire) != WITHDRAWN);
        there.map_or(&[], |created| created.column.key(rank))
    }

    /// What the fast path reads of a region: closed rows if it is withdrawn.
    pub fn rows(&self, id: RegionId) -> Option<Rows<'_>> {
        Some(self.find(id)?.column.rows())
    }

    /// Where this rank's own region lies.
    pub fn own(&self, id: RegionId) -> RawSlice {
        self.find(id).map_or(RawSlice::EMPTY, |created| created.column.mapped(created.column.own))
    }

    /// As [`RegionTable::reach`](super::RegionTable::reach), of a rank's region.
    pub fn reach(
        &self,
        id: RegionId,
        (owner, offset): (u32, u64),
        len: usize,
        rights: Rights,
    ) -> Result<Option<VolatileSlice<'_>>, MemoryError> {
        let region = RegionHandle { owner, id };
        let Some(created) = self.latest(id.index).filter(|created| created.id.generation >= id.generation)
        else {
            return Err(MemoryError::NoSuchRegion { region });
        };
        if created.id.generation > id.generation {
            return Err(MemoryError::Withdrawn { region });
        }
        let column = &created.column;
        if let Some(open) = column.rows().open(owner, offset, len) {
            return Ok(Some(open));
        }
        let state = created.state.load(Ordering::Acquire);
        if state == WITHDRAWN {
            return Err(MemoryError::Withdrawn { region });
        }
        let of = column.of(owner)?;
        // Peers may have what this rank has created a moment before it knows that.
        if state == PENDING && owner != column.own {
            return Err(MemoryError::NotPublished { region });
        }
        let (size, has) = (of.len.load(Ordering::Relaxed), created.rights[owner as usize]);
        let (end, bytes) = (offset.checked_add(len as u64), len as u64);
        match end {
            None => Err(MemoryError::Wraps { region, offset, len: bytes }),
            Some(end) if end > size && size == 0 => Err(MemoryError::EmptyRegion { region }),
            Some(end) if end > size => Err(MemoryError::OutsideRegion { region, offset, len: bytes, size }),
            Some(_) if !has.contains(rights) => Err(MemoryError::Denied { region, has, lacks: rights - has }),
            // SAFETY: inside the mapping (table.2), which regions.1 keeps as long as the table, of which the regions are borrowed.
            Some(_) => Ok(of.flags.intersects(REACHED).then(|| unsafe { of.row.part(offset, len) })),
        }
    }
}

/// A rank whose job is dropped in the middle may be put to as long as its process lives, so what it has given stays.
impl Drop for Regions {
    fn drop(&mut self) {
        if !self.closed.load(Ordering::Acquire) {
            self.given.with(std::mem::take).into_iter().for_each(std::mem::forget);
        }
    }
}

impl std::fmt::Debug for Regions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries((RegionId::FIRST..=RegionId::LAST).filter_map(|index| self.latest(index)))
            .finish()
    }
}

#[cfg(test)]
mod tests;
