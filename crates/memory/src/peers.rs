//! Where each peer's segment is: the small table that every put and get looks at first.
//!
//! # Invariants
//! - peers.1: a peer with [`PeerFlags::MAPPED`] or [`PeerFlags::COUNTED`] has all of `mapped` mapped for as long as the table lives, which
//!   keeps whatever owns the mappings; readable and writable as far as its length is known here. Whoever makes the table promises it.
//! - peers.2: the length that is known here of such a peer's segment never exceeds that of `mapped`, and only grows. What is open
//!   to the fast path is as long for a peer that is `MAPPED`, and nothing for all others. So a range inside either is
//!   inside the mapping.
//! - peers.3: behind the rows of all ranks, and behind those of a team's own, is one that is closed and stays so.
//! - peers.4: [`Rows`] borrow the rows that they lead to. That of each member below their count, so many times the pitch from the first, is
//!   one of them; so is the closed one.

use crate::MemoryError;
use bitflags::bitflags;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use gasworks_sync::{RawSlice, VolatileSlice};
use std::any::Any;
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

bitflags! {
    /// What is known of a peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PeerFlags: u32 {
        /// This rank itself.
        const SELF = 1;
        /// Its segment is mapped here: load and store reach it.
        const MAPPED = 2;
        /// Its segment is device memory.
        const DEVICE = 4;
        /// Load and store reach it, but puts and gets are to be counted: set in the place of `MAPPED`, so that whatever
        /// looks for that takes the way of an unmapped peer.
        const COUNTED = 8;
    }
}

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

/// One peer's segment, seen from here, of which a table is made.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where its segment is mapped in this process, with the room it has to grow; [`RawSlice::EMPTY`] if it is not.
    pub mapped: RawSlice,
    /// The length of its segment in bytes when the table was made, mapped or not.
    pub len: u64,
    /// The address of its segment in its own process, which a NIC may want.
    pub remote_base: u64,
    /// The NIC's key for its segment: opaque, of any length; empty if there is no NIC.
    pub key: Vec<u8>,
    /// What is known of it.
    pub flags: PeerFlags,
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

/// What the fast path reads of a peer. Its layout is that of `struct gasworks_row` in `gasworks_layout.h`, where the inline functions of
/// programs in C read it. One that is all zero is closed.
#[derive(Debug)]
#[repr(C)]
pub struct Row {
    /// The first byte of its segment, as it is mapped here.
    mapped: *mut u8,
    /// How far that is from where the segment's own process has it.
    delta: isize,
    /// At so many offsets, from the first on, up to 8 bytes may be used.
    words: AtomicU64,
    /// How many bytes the fast path may use.
    open: AtomicU64,
}

// SAFETY: peers.1: the bytes may be reached from any thread, and nothing here changes but by atomics.
unsafe impl Send for Row {}
// SAFETY: peers.1: threads that share it read the pointer, which never changes, and atomics.
unsafe impl Sync for Row {}

impl Default for Row {
    /// A closed one.
    fn default() -> Self {
        Self { mapped: std::ptr::null_mut(), delta: 0, words: AtomicU64::new(0), open: AtomicU64::new(0) }
    }
}

impl Row {
    /// Where its fields lie, by the names that they have in C.
    pub const LAYOUT: [(&str, usize); 5] = [
        ("mapped", std::mem::offset_of!(Row, mapped)),
        ("delta", std::mem::offset_of!(Row, delta)),
        ("words", std::mem::offset_of!(Row, words)),
        ("open", std::mem::offset_of!(Row, open)),
        ("size", size_of::<Row>()),
    ];

    fn new(peer: &Peer) -> Self {
        let mapped = mapped(peer).as_ptr();
        let delta = (mapped.addr() as u64).wrapping_sub(peer.remote_base) as isize;
        Self { mapped, delta, words: AtomicU64::new(0), open: AtomicU64::new(0) }
    }

    /// Closes it, as if nothing were known of the segment.
    fn close(&mut self) {
        (self.words, self.open) = (AtomicU64::new(0), AtomicU64::new(0));
    }

    /// Has at least the first `len` bytes be open (peers.2).
    fn open_to(&self, len: u64) {
        self.words.fetch_max(len.saturating_sub(WORD - 1), Relaxed);
        self.open.fetch_max(len, Relaxed);
    }

    /// `len` bytes at an offset.
    ///
    /// # Safety
    /// They lie inside what is known of a segment that is mapped, and the table is borrowed for `'a`.
    #[inline(always)]
    unsafe fn part<'a>(&self, offset: u64, len: usize) -> VolatileSlice<'a> {
        // SAFETY: inside a mapping (peers.2) that lasts as long as the table (peers.1), and so within its object; only such slices of it
        // are handed out.
        unsafe { RawSlice::new(self.mapped.add(offset as usize), len).borrow() }
    }
}

/// The bytes that are counted at once by [`Row`]'s `words`.
const WORD: u64 = 8;

/// Bytes from a row to the next.
const PITCH: isize = size_of::<Row>() as isize;

/// The flags of peers that load and store reach.
const REACHED: PeerFlags = PeerFlags::MAPPED.union(PeerFlags::COUNTED);

/// What is mapped of a peer's segment.
fn mapped(peer: &Peer) -> RawSlice {
    if peer.flags.intersects(REACHED) { peer.mapped } else { RawSlice::EMPTY }
}

/// The rows of a team's members: the first, and how far it is from each to the next. Who puts and gets often keeps a copy: then compilers
/// know that these stay where they are.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Member 0's.
    first: *const Row,
    /// In bytes.
    pitch: isize,
    /// How many members there are.
    count: u32,
    /// Nobody's.
    closed: *const Row,
    of: PhantomData<&'a [Row]>,
}

// SAFETY: peers.4: the rows are borrowed, and may be shared between threads.
unsafe impl Send for Rows<'_> {}
// SAFETY: peers.4: the rows are borrowed, and may be shared between threads.
unsafe impl Sync for Rows<'_> {}

impl<'a> Rows<'a> {
    /// Those of a slice, whose last is closed, from one on, each `step` after the one before; `None` if they are not all in it before
    /// the last.
    fn new(rows: &'a [Row], first: u32, step: i32, count: u32) -> Option<Self> {
        let (closed, ranks) = rows.split_last()?;
        let last = i64::from(first) + i64::from(step) * i64::from(count.saturating_sub(1));
        let are_inside =
            count == 0 || ((first as usize) < ranks.len() && (0..ranks.len() as i64).contains(&last));
        are_inside.then(|| Self {
            first: rows.as_ptr().wrapping_add(first as usize),
            pitch: step as isize * PITCH,
            count,
            closed,
            of: PhantomData,
        })
    }

    /// A member's row; the closed one if there is no such member. That takes no branch, so that a loop with one member looks for it once.
    #[inline(always)]
    fn of(self, member: u32) -> &'a Row {
        let row = self.first.wrapping_byte_offset((member as isize).wrapping_mul(self.pitch));
        let row = select_unpredictable(member < self.count, row, self.closed);
        // SAFETY: peers.4: the row of a member, or the closed one.
        unsafe { &*row }
    }

    /// How many members there are.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The first of them.
    pub fn as_ptr(self) -> *const Row {
        self.first
    }

    /// The bytes `offset..offset + len` of a member's segment, if a copy is all there is to a put or get: they are mapped and
    /// not counted, and inside what is known here of the segment. Where it says no, [`PeerTable::reach`] knows why.
    #[inline(always)]
    pub fn open(self, member: u32, offset: u64, len: usize) -> Option<VolatileSlice<'a>> {
        let row = self.of(member);
        let open = row.open.load(Relaxed);
        // SAFETY: inside what is open (peers.2), of a table that these rows borrow.
        (offset < open && len as u64 <= open - offset).then(|| unsafe { row.part(offset, len) })
    }

    /// As [`open`](Self::open), for so many bytes as are known when the program is compiled: by one comparison if they are no more than a
    /// word. It says no to less than a word at the very end of a segment.
    #[inline(always)]
    pub fn open_value(self, member: u32, offset: u64, len: usize) -> Option<VolatileSlice<'a>> {
        if len as u64 > WORD {
            return self.open(member, offset, len);
        }
        let row = self.of(member);
        // SAFETY: a word from there on is inside what is open (peers.2), of a table that these rows borrow.
        (offset < row.words.load(Relaxed)).then(|| unsafe { row.part(offset, len) })
    }
}

/// Rows of a team's own, for members whose ranks follow no stride. A row opens as far as the segment was known when it was made or
/// [updated](Self::update), which is never more than the table knows.
#[derive(Debug)]
pub struct OwnRows<'a> {
    rows: Box<[Row]>,
    table: &'a PeerTable,
}

impl OwnRows<'_> {
    /// As they are read, with the closed one behind them.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        // As many as there are before the closed one.
        let count = self.rows.len() as u32 - 1;
        Rows {
            first: self.rows.as_ptr(),
            pitch: PITCH,
            count,
            closed: &raw const self.rows[count as usize],
            of: PhantomData,
        }
    }

    /// Opens a member's row as far as its rank's is open in the table. Nothing happens where the member is of another rank.
    pub fn update(&self, member: u32, rank: u32) {
        let (own, of) = (self.rows().of(member), self.table.rows().of(rank));
        // What is open of a mapping is so whoever looks at it (peers.2).
        if own.mapped == of.mapped && !own.mapped.is_null() {
            own.open_to(of.open.load(Relaxed));
        }
    }
}

/// When this rank's segment grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Grows {
    /// It keeps its length.
    Never,
    /// Once and for all, by [`PeerTable::attach`].
    Once,
    /// At any time, by [`PeerTable::grow`].
    AnyTime,
}

const NEVER: u32 = Grows::Never as u32;
const ONCE: u32 = Grows::Once as u32;
const ANY_TIME: u32 = Grows::AnyTime as u32;

/// What is known of a rank's segment beside what the fast path reads of it.
#[derive(Debug)]
struct Remote {
    /// The address of its first byte in its own process.
    base: u64,
    /// How long it is, as far as is known here.
    len: AtomicU64,
    /// How many bytes of addresses it has here, if it is mapped.
    room: u64,
    flags: PeerFlags,
}

/// Opaque keys of all ranks, each of the same length: a rank that has none has no bytes of it.
#[derive(Debug)]
struct Keys {
    width: usize,
    has: Box<[bool]>,
    bytes: Box<[u8]>,
}

impl Keys {
    /// `None` if keys have different lengths.
    fn new<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Self> {
        let width = keys.clone().map(<[u8]>::len).max().unwrap_or(0);
        let has: Box<[bool]> = keys.clone().map(|key| !key.is_empty()).collect();
        let mut bytes = vec![0; width * has.len()];
        for (place, key) in bytes.chunks_mut(width.max(1)).zip(keys).filter(|(_, key)| !key.is_empty()) {
            if key.len() != width {
                return None;
            }
            place.copy_from_slice(key);
        }
        Some(Self { width, has, bytes: bytes.into() })
    }

    fn of(&self, rank: u32) -> &[u8] {
        let rank = rank as usize;
        let is_there = self.has.get(rank).copied().unwrap_or(false);
        if is_there { &self.bytes[rank * self.width..][..self.width] } else { &[] }
    }
}

/// The peers of a job, by rank.
pub struct PeerTable {
    rows: Box<[Row]>,
    remote: Box<[Remote]>,
    /// The network's keys for the segments, once these are attached.
    keys: OnceLock<Keys>,
    /// The rank whose table it is.
    own: u32,
    watch: Option<Arc<dyn Watch>>,
    growth: Option<Arc<dyn Growth>>,
    /// Whether segments may still grow: any time, once and all together ([`attach`](PeerTable::attach)), or not any more.
    grows: AtomicU32,
    /// The largest segments that could have been had, where a network has its own limit.
    largest: Option<Largest>,
    /// Never looked at: it is here for peers.1.
    _owner: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&*self.remote).finish()
    }
}

impl PeerTable {
    /// Takes the peers in rank order, and what owns their mappings. Their segments keep their lengths.
    ///
    /// # Safety
    /// peers.1: what is `mapped` of a peer that load and store reach stays mapped as long as `owner` lives; as many bytes of it as its `len`
    /// are readable and writable, and nobody has references to them but to atomics.
    pub unsafe fn new(peers: impl IntoIterator<Item = Peer>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        let peers = peers.into_iter();
        let (mut rows, mut remote) =
            (Vec::with_capacity(peers.size_hint().0 + 1), Vec::with_capacity(peers.size_hint().0));
        // No keys at all where nobody has one.
        let (mut keys, mut own) = (Vec::new(), 0);
        for (rank, peer) in (0..).zip(peers) {
            let (room, flags) = (mapped(&peer).len() as u64, peer.flags);
            let len = if flags.intersects(REACHED) { peer.len.min(room) } else { peer.len };
            let row = Row::new(&peer);
            if flags.contains(PeerFlags::MAPPED) {
                row.open_to(len);
            }
            rows.push(row);
            remote.push(Remote { base: peer.remote_base, len: AtomicU64::new(len), room, flags });
            if flags.contains(PeerFlags::SELF) {
                own = rank;
            }
            if !peer.key.is_empty() {
                keys.resize(rank as usize, Vec::new());
                keys.push(peer.key);
            }
        }
        // Nobody's (peers.3).
        rows.push(Row::default());
        let table = Self {
            rows: rows.into(),
            remote: remote.into(),
            keys: OnceLock::new(),
            own,
            watch: None,
            growth: None,
            grows: AtomicU32::new(NEVER),
            largest: None,
            _owner: owner,
        };
        if !keys.is_empty() {
            keys.resize(table.remote.len(), Vec::new());
            table.set_keys(keys.iter().map(|key| &key[..]));
        }
        table
    }

    /// A rank's segment is at least `len` bytes long.
    fn know(&self, rank: u32, len: u64) {
        let (Some(row), Some(remote)) = (self.rows.get(rank as usize), self.remote.get(rank as usize)) else {
            return;
        };
        let len = remote.len.fetch_max(len, Relaxed).max(len);
        if remote.flags.contains(PeerFlags::MAPPED) {
            row.open_to(len);
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
        peers: impl IntoIterator<Item = Peer>,
        owner: Arc<G>,
        grows: Grows,
    ) -> Self {
        // SAFETY: peers.1: the caller promises that `owner` keeps the mappings; rows of others' segments, whose bytes it does not promise
        // yet, are closed next.
        let mut table = unsafe { Self::new(peers, owner.clone()) };
        for (row, remote) in table.rows.iter_mut().zip(&mut table.remote) {
            if remote.flags.intersects(REACHED) && !remote.flags.contains(PeerFlags::SELF) {
                row.close();
                remote.len = AtomicU64::new(0);
            }
        }
        Self { growth: Some(owner), grows: AtomicU32::new(grows as u32), ..table }
    }

    /// Has puts and gets counted from now on: no peer is [`MAPPED`](PeerFlags::MAPPED) any more, those that were are
    /// [`COUNTED`](PeerFlags::COUNTED).
    #[must_use]
    pub fn watched(mut self, watch: Arc<dyn Watch>) -> Self {
        for (row, remote) in self.rows.iter_mut().zip(&mut self.remote) {
            if remote.flags.contains(PeerFlags::MAPPED) {
                remote.flags.toggle(REACHED);
                row.close();
            }
        }
        self.watch = Some(watch);
        self
    }

    /// Who counts what is done with the memory of others.
    pub fn watch(&self) -> Option<&dyn Watch> {
        self.watch.as_deref()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.remote.len() as u32
    }

    /// What the fast path reads, for each rank: it stays where it is as long as the table does.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        let count = self.remote.len();
        let closed = &raw const self.rows[count];
        Rows { first: self.rows.as_ptr(), pitch: PITCH, count: count as u32, closed, of: PhantomData }
    }

    /// What the fast path reads of so many ranks, each `step` after the one before; `None` if there is one that is no rank.
    pub fn rows_by_stride(&self, first: u32, step: i32, count: u32) -> Option<Rows<'_>> {
        Rows::new(&self.rows, first, step, count)
    }

    /// Rows for ranks in any order, of which those that do not exist are closed. How long their segments are is asked now.
    pub fn rows_of(&self, ranks: impl IntoIterator<Item = u32>) -> OwnRows<'_> {
        let copy = |rank| {
            self.refresh(rank);
            let of = self.rows().of(rank);
            let row = Row { mapped: of.mapped, delta: of.delta, ..Row::default() };
            row.open_to(of.open.load(Relaxed));
            row
        };
        let rows = ranks.into_iter().map(copy).chain([Row::default()]).collect();
        OwnRows { rows, table: self }
    }

    /// What is known of a rank; `None` if there is no such rank.
    pub fn flags(&self, rank: u32) -> Option<PeerFlags> {
        Some(self.remote.get(rank as usize)?.flags)
    }

    /// The address of a rank's segment in its own process; `None` if there is no such rank.
    #[inline]
    pub fn base(&self, rank: u32) -> Option<u64> {
        Some(self.remote.get(rank as usize)?.base)
    }

    /// Where a rank's segment lies here, with the room that it has to grow; no bytes if load and store do not reach it.
    pub fn mapped(&self, rank: u32) -> RawSlice {
        match (self.rows.get(rank as usize), self.remote.get(rank as usize)) {
            (Some(row), Some(remote)) if remote.flags.intersects(REACHED) => {
                RawSlice::new(row.mapped, remote.room as usize)
            }
            _ => RawSlice::EMPTY,
        }
    }

    /// The network's key for a rank's segment; no bytes if it has none, or none yet.
    pub fn key(&self, rank: u32) -> &[u8] {
        self.keys.get().map_or(&[], |keys| keys.of(rank))
    }

    /// Takes the network's keys for all segments, in the order of the ranks, unless they are known; whether they can be: they have one
    /// length.
    pub fn set_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
        Keys::new(keys).is_some_and(|keys| {
            let _ = self.keys.set(keys);
            true
        })
    }

    /// The length of a rank's segment now, in bytes; `None` if there is no such rank.
    pub fn len_of(&self, rank: u32) -> Option<u64> {
        self.refresh(rank);
        Some(self.remote.get(rank as usize)?.len.load(Relaxed))
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
        let room = self.mapped(self.own).len() as u64;
        let len = self.len_of(self.own).unwrap_or(0);
        if self.grows.load(Relaxed) == NEVER { len } else { len.max(room) }
    }

    fn fixed(&self, len: u64) -> Result<u64, MemoryError> {
        let rank = self.own;
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

    /// The bytes `offset..offset + len` of `rank`'s segment where load and store reach them, counted or not; `None` where
    /// they do not.
    ///
    /// # Errors
    /// The rank does not exist, or the range is not inside its segment.
    #[inline]
    pub fn reach(
        &self,
        rank: u32,
        offset: u64,
        len: usize,
    ) -> Result<Option<VolatileSlice<'_>>, MemoryError> {
        match self.open(rank, offset, len) {
            None => self.look_closer(rank, offset, len),
            open => Ok(open),
        }
    }

    /// Whether load and store reach a rank's segment, counted or not.
    pub fn reaches(&self, rank: u32) -> bool {
        self.flags(rank).is_some_and(|flags| flags.intersects(REACHED))
    }

    /// What is not inside what is known here may be inside all the same, or wrong.
    #[cold]
    fn look_closer(
        &self,
        rank: u32,
        offset: u64,
        len: usize,
    ) -> Result<Option<VolatileSlice<'_>>, MemoryError> {
        let (Some(row), Some(remote)) = (self.rows.get(rank as usize), self.remote.get(rank as usize)) else {
            return Err(MemoryError::NoSuchRank { rank, ranks: self.ranks() });
        };
        let outside = |segment| offset.checked_add(len as u64).is_none_or(|end| end > segment);
        if outside(remote.len.load(Relaxed)) {
            self.refresh(rank);
            let segment = remote.len.load(Relaxed);
            if outside(segment) {
                return Err(MemoryError::OutsideSegment { rank, offset, len: len as u64, segment });
            }
        }
        // SAFETY: it is mapped, and the range inside what is known of it (peers.2), of this table.
        Ok(self.reaches(rank).then(|| unsafe { row.part(offset, len) }))
    }

    /// Asks how long a segment is now. What its owner says is believed as far as the mapping goes (peers.2).
    fn refresh(&self, rank: u32) {
        let (Some(growth), Some(remote)) = (&self.growth, self.remote.get(rank as usize)) else { return };
        if remote.flags.intersects(REACHED) {
            // Relaxed, as all uses of the length are: the bytes are mapped and zero from the beginning, so a thread that sees
            // the new length needs to see nothing else.
            self.know(rank, growth.length(rank).min(remote.room));
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
