//! A column: at most one region of each rank, with the rows that the fast path reads.
//!
//! # Invariants
//! - column.1: behind the rows of all ranks, and behind those of a team's own, is one that is closed and stays so.
//! - column.2: [`Rows`] borrow as many rows as they count, and the closed one behind those.

use crate::MemoryError;
use bitflags::bitflags;
use bytemuck::Zeroable;
use gasworks_os::Reserved;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{RawSlice, VolatileSlice};
use std::marker::PhantomData;
use std::sync::OnceLock;

bitflags! {
    /// What is known of a peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PeerFlags: u8 {
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

/// What the fast path reads of a peer. Its layout is that of `struct gasworks_row` in `gasworks_layout.h`, where the inline functions of
/// programs in C read it. One that is all zero is closed.
#[derive(Debug, Zeroable)]
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

// SAFETY: table.1: the bytes may be reached from any thread, and nothing here changes but by atomics.
unsafe impl Send for Row {}
// SAFETY: table.1: threads that share it read the pointer, which never changes, and atomics.
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

    /// A closed one, of a peer's region that is mapped.
    pub(super) fn new(peer: &Peer) -> Self {
        let mapped = peer.mapped.as_ptr();
        let delta = (mapped.addr() as u64).wrapping_sub(peer.remote_base) as isize;
        Self { mapped, delta, ..Self::default() }
    }

    /// Closes it, as if nothing were known of the region. Threads that have looked at it before may still use what they found.
    pub(super) fn close(&self) {
        self.words.store(0, Relaxed);
        self.open.store(0, Relaxed);
    }

    /// Has at least the first `len` bytes be open (table.2).
    pub(super) fn open_to(&self, len: u64) {
        self.words.fetch_max(len.saturating_sub(WORD - 1), Relaxed);
        self.open.fetch_max(len, Relaxed);
    }

    /// `len` bytes at an offset.
    ///
    /// # Safety
    /// They lie inside what is known of a segment that is mapped, and the table is borrowed for `'a`.
    #[inline(always)]
    pub(super) unsafe fn part<'a>(&self, offset: u64, len: usize) -> VolatileSlice<'a> {
        // SAFETY: inside a mapping (table.2) that lasts as long as the table (table.1), and so within its object; only such slices of it
        // are handed out.
        unsafe { RawSlice::new(self.mapped.add(offset as usize), len).borrow() }
    }
}

/// The bytes that are counted at once by [`Row`]'s `words`.
const WORD: u64 = 8;

/// The flags of peers that load and store reach.
pub(super) const REACHED: PeerFlags = PeerFlags::MAPPED.union(PeerFlags::COUNTED);

/// The rows of a team's members, and a closed one behind them. Who puts and gets often keeps a copy: then compilers know that these stay
/// where they are.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    first: *const Row,
    /// How many members there are: the place of the closed row.
    count: usize,
    of: PhantomData<&'a [Row]>,
}

// SAFETY: column.2: the rows are borrowed, and may be shared between threads.
unsafe impl Send for Rows<'_> {}
// SAFETY: column.2: the rows are borrowed, and may be shared between threads.
unsafe impl Sync for Rows<'_> {}

impl<'a> Rows<'a> {
    /// Those of members, and the closed one (column.1).
    #[inline]
    fn new(rows: &'a [Row]) -> Self {
        Self { first: rows.as_ptr(), count: rows.len() - 1, of: PhantomData }
    }

    /// A member's row; the closed one if there is no such member. That takes no branch, so that a loop with one member looks for it once.
    #[inline(always)]
    fn of(self, member: u32) -> &'a Row {
        let at = (member as usize).min(self.count);
        // SAFETY: column.2: `at` is no more than the place of the closed row, the last of those that are borrowed.
        unsafe { &*self.first.add(at) }
    }

    /// How many members there are.
    pub fn count(self) -> u32 {
        self.count as u32
    }

    /// The first of them.
    pub fn as_ptr(self) -> *const Row {
        self.first
    }

    /// The bytes `offset..offset + len` of a member's segment, if a copy is all there is to a put or get: they are mapped and
    /// not counted, and inside what is known here of the segment. Where it says no, [`RegionTable::reach`](crate::RegionTable::reach) knows why.
    #[inline(always)]
    pub fn open(self, member: u32, offset: u64, len: usize) -> Option<VolatileSlice<'a>> {
        let row = self.of(member);
        let open = row.open.load(Relaxed);
        // SAFETY: inside what is open (table.2), of a table that these rows borrow.
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
        // SAFETY: a word from there on is inside what is open (table.2), of a table that these rows borrow.
        (offset < row.words.load(Relaxed)).then(|| unsafe { row.part(offset, len) })
    }
}

/// Rows of a team's own. A row opens as far as the segment was known when it was made or
/// [updated](Self::update), which is never more than the table knows.
#[derive(Debug)]
pub struct OwnRows<'a> {
    rows: Box<[Row]>,
    /// Those of all ranks.
    all: Rows<'a>,
}

impl<'a> OwnRows<'a> {
    /// Copies of these ranks' rows, of which those that do not exist are closed.
    pub(super) fn new(all: Rows<'a>, ranks: impl IntoIterator<Item = u32>) -> Self {
        let copy = |rank| {
            let of = all.of(rank);
            let row = Row { mapped: of.mapped, delta: of.delta, ..Row::default() };
            row.open_to(of.open.load(Relaxed));
            row
        };
        Self { rows: ranks.into_iter().map(copy).chain([Row::default()]).collect(), all }
    }

    /// As they are read, with the closed one behind them.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.rows)
    }

    /// Opens a member's row as far as its rank's is open in the table. Nothing happens where the member is of another rank.
    pub fn update(&self, member: u32, rank: u32) {
        let (own, of) = (self.rows().of(member), self.all.of(rank));
        // What is open of a mapping is so whoever looks at it (table.2).
        if own.mapped == of.mapped && !own.mapped.is_null() {
            own.open_to(of.open.load(Relaxed));
        }
    }
}

/// What is known of a rank's region, mapped or not.
#[derive(Debug)]
struct Remote {
    /// The address of its first byte in its own process.
    base: AtomicU64,
    /// How long it is, as far as is known here.
    len: AtomicU64,
}

/// What a column has of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub row: &'a Row,
    /// The address of its first byte in its own process.
    pub base: u64,
    /// How long it is, as far as is known here.
    pub len: &'a AtomicU64,
    /// How many bytes of addresses it has here, if it is mapped.
    pub room: u64,
    pub flags: PeerFlags,
}

/// Opaque keys of all ranks, each of the same length: a rank that has none has no bytes of it.
#[derive(Debug)]
pub(super) struct Keys {
    width: usize,
    bytes: Box<[u8]>,
    /// Which ranks have none, if any.
    without: Vec<u32>,
}

impl Keys {
    /// `None` if keys have different lengths.
    pub(super) fn new<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Self> {
        let width = keys.clone().map(<[u8]>::len).max().unwrap_or(0);
        let mut bytes = vec![0; width * keys.clone().count()];
        let mut without = Vec::new();
        for ((rank, place), key) in (0..).zip(bytes.chunks_mut(width.max(1))).zip(keys) {
            match key.len() {
                0 => without.push(rank),
                len if len == width => place.copy_from_slice(key),
                _ => return None,
            }
        }
        Some(Self { width, bytes: bytes.into(), without })
    }

    pub(super) fn of(&self, rank: u32) -> &[u8] {
        let key = self.bytes.get(rank as usize * self.width..).and_then(|rest| rest.get(..self.width));
        key.filter(|_| self.without.binary_search(&rank).is_err()).unwrap_or_default()
    }
}

/// The regions of a column. The rows, flags and rooms of ranks whose regions are not mapped are never written, and so take no memory.
#[derive(Debug)]
pub(super) struct Column {
    rows: Reserved<Row>,
    remote: Box<[Remote]>,
    /// The bits of [`PeerFlags`].
    flags: Reserved<u8>,
    rooms: Reserved<u64>,
    /// The network's keys, once they are known.
    pub keys: OnceLock<Keys>,
    /// The rank whose table it is.
    pub own: u32,
}

impl Column {
    /// Takes the regions in the order of the ranks, all closed.
    pub fn new(peers: impl IntoIterator<IntoIter: ExactSizeIterator<Item = Peer>>) -> Self {
        let peers = peers.into_iter();
        let ranks = peers.len();
        // The last row is nobody's (column.1).
        let mut rows = Reserved::<Row>::new(ranks + 1);
        let mut rooms = Reserved::<u64>::new(ranks);
        let mut flags = Reserved::<u8>::new(ranks);
        let mut remote = Vec::with_capacity(ranks);
        // No keys at all where nobody has one.
        let (mut keys, mut own) = (Vec::new(), 0);
        for (rank, peer) in peers.enumerate() {
            let mut len = peer.len;
            if peer.flags.intersects(REACHED) {
                (rows[rank], rooms[rank]) = (Row::new(&peer), peer.mapped.len() as u64);
                len = len.min(rooms[rank]);
            }
            remote.push(Remote { base: AtomicU64::new(peer.remote_base), len: AtomicU64::new(len) });
            if !peer.flags.is_empty() {
                flags[rank] = peer.flags.bits();
            }
            if peer.flags.contains(PeerFlags::SELF) {
                own = rank as u32;
            }
            if !peer.key.is_empty() {
                keys.resize(rank, Vec::new());
                keys.push(peer.key);
            }
        }
        let column = Self { rows, remote: remote.into(), flags, rooms, keys: OnceLock::new(), own };
        if !keys.is_empty() {
            keys.resize(ranks, Vec::new());
            column.set_keys(keys.iter().map(|key| &key[..]));
        }
        column
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.remote.len() as u32
    }

    /// What the fast path reads, for each rank.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.rows)
    }

    /// What is known of a rank.
    pub fn of(&self, rank: u32) -> Result<Entry<'_>, MemoryError> {
        let at = rank as usize;
        let Some(Remote { base, len }) = self.remote.get(at) else {
            return Err(MemoryError::NoSuchRank { rank, ranks: self.ranks() });
        };
        let (row, room) = (&self.rows[at], self.rooms[at]);
        let flags = PeerFlags::from_bits_retain(self.flags[at]);
        Ok(Entry { row, base: base.load(Relaxed), len, room, flags })
    }

    /// What is known of all ranks.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.ranks()).filter_map(|rank| self.of(rank).ok())
    }

    /// Where a rank's region lies here, with the room that it has to grow; no bytes if load and store do not reach it.
    pub fn mapped(&self, rank: u32) -> RawSlice {
        match self.of(rank) {
            Ok(Entry { row, room, flags, .. }) if flags.intersects(REACHED) => {
                RawSlice::new(row.mapped, room as usize)
            }
            _ => RawSlice::EMPTY,
        }
    }

    /// Has no region be [`MAPPED`](PeerFlags::MAPPED) any more: those that were are [`COUNTED`](PeerFlags::COUNTED), and closed.
    pub fn set_counted(&mut self) {
        for (row, flags) in self.rows.iter().zip(&mut *self.flags) {
            if *flags & PeerFlags::MAPPED.bits() != 0 {
                *flags ^= REACHED.bits();
                row.close();
            }
        }
    }

    /// The first rank whose region these bytes overlap, as it lies here.
    pub fn overlapped(&self, bytes: RawSlice) -> Option<u32> {
        let starts = |of: RawSlice, before: RawSlice| {
            of.as_ptr().addr().wrapping_sub(before.as_ptr().addr()) < before.len()
        };
        (0..self.ranks()).find(|&rank| {
            let mapped = self.mapped(rank);
            !mapped.is_empty() && !bytes.is_empty() && (starts(bytes, mapped) || starts(mapped, bytes))
        })
    }

    /// Takes the address at which each rank's region begins in its own process, in the order of the ranks.
    pub fn set_bases(&self, bases: impl Iterator<Item = u64>) {
        self.remote.iter().zip(bases).for_each(|(remote, base)| remote.base.store(base, Relaxed));
    }

    /// Takes the network's keys, in the order of the ranks, unless they are known; whether they can be: they have one length.
    pub fn set_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
        Keys::new(keys).is_some_and(|keys| {
            let _ = self.keys.set(keys);
            true
        })
    }

    /// The network's key for a rank's region; no bytes if it has none, or none yet.
    pub fn key(&self, rank: u32) -> &[u8] {
        self.keys.get().map_or(&[], |keys| keys.of(rank))
    }

    /// Opens the rows of all mapped regions as far as they are long, of those ranks for which `all` says that everything is allowed.
    pub fn open(&self, all: impl Fn(u32) -> bool) {
        for (rank, of) in (0..).zip(self.entries()) {
            if of.flags.contains(PeerFlags::MAPPED) && all(rank) {
                of.row.open_to(of.len.load(Relaxed));
            }
        }
    }

    /// Closes the rows of all.
    pub fn close(&self) {
        let reached = self.entries().filter(|of| of.flags.intersects(REACHED));
        reached.for_each(|of| of.row.close());
    }
}
