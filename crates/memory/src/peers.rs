//! Where each peer's segment is: the small table that every put and get looks at first.
//!
//! # Invariants
//! P1. A peer with [`PeerFlags::MAPPED`] or [`PeerFlags::COUNTED`] has all of `mapped` mapped for as long as the table lives, which keeps
//!     whatever owns the mappings; readable and writable as far as its length is known here.
//! P2. The length that is known here of such a peer's segment never exceeds that of `mapped`, and only grows. What is open
//!     to the fast path is as long for a peer that is `MAPPED`, and nothing for all others. So a range inside either is
//!     inside the mapping.

use crate::MemoryError;
use bitflags::bitflags;
use gasworks_sync::RawBytes;
use gasworks_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::any::Any;
use std::sync::Arc;

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

/// One peer's segment, seen from here.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where its segment is mapped in this process, with the room it has to grow; [`RawBytes::EMPTY`] if it is not.
    pub mapped: RawBytes,
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

// SAFETY: P1: the bytes may be reached from any thread, and nothing here changes but by atomics.
unsafe impl Send for Row {}
// SAFETY: P1: threads that share it read the pointer, which never changes, and atomics.
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

    /// Has at least the first `len` bytes be open (P2).
    fn open_to(&self, len: u64) {
        self.words.fetch_max(len.saturating_sub(WORD - 1), Relaxed);
        self.open.fetch_max(len, Relaxed);
    }

    /// `len` bytes at an offset, which lie inside what is mapped.
    #[inline(always)]
    fn part(&self, offset: u64, len: usize) -> RawBytes {
        // SAFETY: inside a mapping that lasts (P1, P2), and so within its object.
        unsafe { RawBytes::new(self.mapped.add(offset as usize), len) }
    }
}

/// The bytes that are counted at once by [`Row`]'s `words`.
const WORD: u64 = 8;

/// The flags of peers that load and store reach.
const REACHED: PeerFlags = PeerFlags::MAPPED.union(PeerFlags::COUNTED);

/// What is mapped of a peer's segment.
fn mapped(peer: &Peer) -> RawBytes {
    if peer.flags.intersects(REACHED) { peer.mapped } else { RawBytes::EMPTY }
}

/// The rows of all ranks. Who puts and gets often keeps a copy: then compilers know that these stay where they are.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(&'a [Row]);

impl Rows<'_> {
    /// The first of them.
    pub fn as_ptr(self) -> *const Row {
        self.0.as_ptr()
    }

    /// The bytes `offset..offset + len` of `rank`'s segment, if a copy is all there is to a put or get: they are mapped and
    /// not counted, and inside what is known here of the segment. Where it says no, [`PeerTable::reach`] knows why.
    #[inline(always)]
    pub fn open(self, rank: u32, offset: u64, len: usize) -> Option<RawBytes> {
        let row = self.0.get(rank as usize)?;
        let open = row.open.load(Relaxed);
        (offset < open && len as u64 <= open - offset).then(|| row.part(offset, len))
    }

    /// As [`open`](Self::open), for so many bytes as are known when the program is compiled: by one comparison if they are no more than a
    /// word. It says no to less than a word at the very end of a segment.
    #[inline(always)]
    pub fn open_value(self, rank: u32, offset: u64, len: usize) -> Option<RawBytes> {
        if len as u64 > WORD {
            return self.open(rank, offset, len);
        }
        let row = self.0.get(rank as usize)?;
        (offset < row.words.load(Relaxed)).then(|| row.part(offset, len))
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

/// The peers of a job, by rank.
pub struct PeerTable {
    rows: Box<[Row]>,
    /// How long each segment is, as far as is known here.
    lens: Box<[AtomicU64]>,
    peers: Box<[Peer]>,
    watch: Option<Arc<dyn Watch>>,
    growth: Option<Arc<dyn Growth>>,
    /// Whether segments may still grow: any time, once and all together ([`attach`](PeerTable::attach)), or not any more.
    grows: AtomicU32,
    /// The largest segments that could have been had, where a network has its own limit.
    largest: Option<Largest>,
    /// Never looked at: it is here for P1.
    _owner: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&*self.peers).finish()
    }
}

impl PeerTable {
    /// Takes the peers in rank order, and what owns their mappings. Their segments keep their lengths.
    pub fn new(peers: Vec<Peer>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        let table = Self {
            rows: peers.iter().map(Row::new).collect(),
            lens: peers.iter().map(|_| AtomicU64::new(0)).collect(),
            peers: peers.into(),
            watch: None,
            growth: None,
            grows: AtomicU32::new(NEVER),
            largest: None,
            _owner: owner,
        };
        for (rank, peer) in (0..).zip(&table.peers) {
            let is_mapped = peer.flags.intersects(REACHED);
            table.know(rank, if is_mapped { peer.len.min(peer.mapped.len() as u64) } else { peer.len });
        }
        table
    }

    /// A rank's segment is at least `len` bytes long.
    fn know(&self, rank: u32, len: u64) {
        let (Some(row), Some(known), Some(peer)) =
            (self.rows.get(rank as usize), self.lens.get(rank as usize), self.get(rank))
        else {
            return;
        };
        let len = known.fetch_max(len, Relaxed).max(len);
        if peer.flags.contains(PeerFlags::MAPPED) {
            row.open_to(len);
        }
    }

    /// Closes a rank's row, as if nothing were known of its segment.
    fn close(&mut self, rank: usize) {
        self.rows[rank] = Row::new(&self.peers[rank]);
    }

    /// Says how large segments could have been, where the network has a limit of its own.
    #[must_use]
    pub fn with_largest(self, largest: Largest) -> Self {
        Self { largest: Some(largest), ..self }
    }

    /// As [`new`](Self::new), with segments that may grow within what is mapped of them. How long another rank's is that is mapped here the
    /// owner is asked when it matters first: so it need not have that memory be used before.
    pub fn growing<G: Growth + Any>(peers: Vec<Peer>, owner: Arc<G>, grows: Grows) -> Self {
        let mut table = Self::new(peers, owner.clone());
        for rank in 0..table.peers.len() {
            let flags = table.peers[rank].flags;
            if flags.intersects(REACHED) && !flags.contains(PeerFlags::SELF) {
                table.close(rank);
                table.lens[rank] = AtomicU64::new(0);
            }
        }
        Self { growth: Some(owner), grows: AtomicU32::new(grows as u32), ..table }
    }

    /// Has puts and gets counted from now on: no peer is [`MAPPED`](PeerFlags::MAPPED) any more, those that were are
    /// [`COUNTED`](PeerFlags::COUNTED).
    #[must_use]
    pub fn watched(mut self, watch: Arc<dyn Watch>) -> Self {
        for rank in 0..self.peers.len() {
            if self.peers[rank].flags.contains(PeerFlags::MAPPED) {
                self.peers[rank].flags.toggle(REACHED);
                self.close(rank);
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
        self.peers.len() as u32
    }

    /// What the fast path reads, for each rank: it stays where it is as long as the table does.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows(&self.rows)
    }

    /// The peer of that rank, if there is one.
    #[inline]
    pub fn get(&self, rank: u32) -> Option<&Peer> {
        self.peers.get(rank as usize)
    }

    /// The length of a rank's segment now, in bytes; `None` if there is no such rank.
    pub fn len_of(&self, rank: u32) -> Option<u64> {
        self.refresh(rank);
        Some(self.lens.get(rank as usize)?.load(Relaxed))
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
        let own = self.own();
        let room = self.get(own).map_or(0, |own| mapped(own).len() as u64);
        let len = self.len_of(own).unwrap_or(0);
        if self.grows.load(Relaxed) == NEVER { len } else { len.max(room) }
    }

    fn own(&self) -> u32 {
        self.peers.iter().position(|peer| peer.flags.contains(PeerFlags::SELF)).unwrap_or(0) as u32
    }

    fn fixed(&self, len: u64) -> Result<u64, MemoryError> {
        let own = self.own();
        self.len_of(own).filter(|&now| now >= len).ok_or(MemoryError::FixedSegment { rank: own, len })
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
    pub fn open(&self, rank: u32, offset: u64, len: usize) -> Option<RawBytes> {
        self.rows().open(rank, offset, len)
    }

    /// The bytes `offset..offset + len` of `rank`'s segment where load and store reach them, counted or not; `None` where
    /// they do not.
    ///
    /// # Errors
    /// The rank does not exist, or the range is not inside its segment.
    #[inline]
    pub fn reach(&self, rank: u32, offset: u64, len: usize) -> Result<Option<RawBytes>, MemoryError> {
        match self.open(rank, offset, len) {
            None => self.look_closer(rank, offset, len),
            open => Ok(open),
        }
    }

    /// Whether load and store reach a rank's segment, counted or not.
    pub fn reaches(&self, rank: u32) -> bool {
        self.get(rank).is_some_and(|peer| peer.flags.intersects(REACHED))
    }

    /// What is not inside what is known here may be inside all the same, or wrong.
    #[cold]
    fn look_closer(&self, rank: u32, offset: u64, len: usize) -> Result<Option<RawBytes>, MemoryError> {
        let (Some(row), Some(known)) = (self.rows.get(rank as usize), self.lens.get(rank as usize)) else {
            return Err(MemoryError::NoSuchRank { rank, ranks: self.ranks() });
        };
        let outside = |segment| offset.checked_add(len as u64).is_none_or(|end| end > segment);
        if outside(known.load(Relaxed)) {
            self.refresh(rank);
            let segment = known.load(Relaxed);
            if outside(segment) {
                return Err(MemoryError::OutsideSegment { rank, offset, len: len as u64, segment });
            }
        }
        Ok(self.reaches(rank).then(|| row.part(offset, len)))
    }

    /// Asks how long a segment is now. What its owner says is believed as far as the mapping goes (P2).
    fn refresh(&self, rank: u32) {
        let (Some(growth), Some(peer)) = (&self.growth, self.get(rank)) else { return };
        if peer.flags.intersects(REACHED) {
            // Relaxed, as all uses of the length are: the bytes are mapped and zero from the beginning, so a thread that sees
            // the new length needs to see nothing else.
            self.know(rank, growth.length(rank).min(peer.mapped.len() as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lengths that owners announce, some of them lies.
    struct Announced(Vec<AtomicU64>);

    impl Growth for Announced {
        fn length(&self, rank: u32) -> u64 {
            self.0[rank as usize].load(Relaxed)
        }
        fn grow(&self, len: u64) -> Result<u64, MemoryError> {
            Ok(self.0[0].fetch_max(len, Relaxed).max(len))
        }
        fn largest(&self) -> Largest {
            Largest { local: 2, global: 1 }
        }
    }

    /// Descriptions of bytes that are never touched.
    fn peer(at: *mut u8, room: usize, len: u64, flags: PeerFlags) -> Peer {
        // SAFETY: the bytes are only located, never used.
        Peer { mapped: unsafe { RawBytes::new(at, room) }, len, remote_base: 0, key: Vec::new(), flags }
    }

    const ROOM: u64 = 1000;

    /// A number, or so many beyond the length of the segment: at its end the limits are.
    #[derive(Clone, Copy, Debug)]
    enum Number {
        Is(u64),
        Beyond(i64),
    }

    impl Number {
        fn of(self, end: u64) -> u64 {
            match self {
                Self::Is(number) => number,
                Self::Beyond(by) => end.saturating_add_signed(by),
            }
        }
    }

    fn number(most: u64) -> impl Strategy<Value = Number> {
        let ends = prop::sample::select(vec![0, 1, ROOM - 1, ROOM, ROOM + 1, u64::MAX - 1, u64::MAX]);
        prop_oneof![
            4 => (0..most).prop_map(Number::Is),
            2 => ends.prop_map(Number::Is),
            4 => (-2i64..3).prop_map(Number::Beyond),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 256 }, failure_persistence: None,
            ..ProptestConfig::default() })]

        /// Against the plain model: a range is found exactly if it lies within the largest length announced so far,
        /// as far as the mapping goes.
        #[test]
        fn a_range_is_found_if_it_lies_within_what_was_announced(
            steps in proptest::collection::vec(
                (0u32..5, number(ROOM * 2), number(600), proptest::option::of(number(ROOM * 2))),
                1..if cfg!(miri) { 20 } else { 60 },
            ),
        ) {
            let mut memory = vec![0u8; ROOM as usize];
            let at = memory.as_mut_ptr();
            let flags = |rank| if rank == 2 { PeerFlags::empty() } else { PeerFlags::MAPPED };
            let peers = (0..4).map(|rank| peer(at, ROOM as usize, 100 * rank, flags(rank))).collect();
            let announced = Arc::new(Announced((0..4).map(|rank| AtomicU64::new(100 * rank)).collect()));
            let table = PeerTable::growing(peers, announced.clone(), Grows::AnyTime);
            // How long a mapped one is nobody knows before it looks.
            let mut lens = [0, 0, 200, 0];
            for (rank, offset, len, grown) in steps {
                if let (Some(grown), true) = (grown, rank < 4) {
                    let grown = grown.of(lens[rank as usize]);
                    announced.0[rank as usize].store(grown, Relaxed);
                }
                if rank < 4 && rank != 2 {
                    let known = &mut lens[rank as usize];
                    *known = announced.0[rank as usize].load(Relaxed).min(ROOM).max(*known);
                }
                // A length that was announced and taken back before anybody looked may or may not have been seen;
                // looking here makes the model certain.
                prop_assert_eq!(table.len_of(rank), lens.get(rank as usize).copied());
                let end = lens.get(rank as usize).copied().unwrap_or(ROOM);
                let offset = offset.of(end);
                // To the end, if the length is not a number of its own.
                let len = len.of(end.saturating_sub(offset)) as usize;
                let open = table.open(rank, offset, len);
                // A value that is no more than a word is inside with all of a word, or not here.
                let value = table.rows().open_value(rank, offset, len).is_some();
                let word = table.open(rank, offset, len.max(8)).is_some();
                prop_assert_eq!(value, if len > 8 { open.is_some() } else { word });
                let found = table.reach(rank, offset, len);
                let inside = offset.checked_add(len as u64).is_some_and(|end| lens.get(rank as usize).is_some_and(|&l| end <= l));
                prop_assert_eq!(open.is_some(), inside && rank < 4 && rank != 2 && offset < end);
                if let (Some(open), Ok(Some(found))) = (open, &found) {
                    prop_assert_eq!((open.as_ptr(), open.len()), (found.as_ptr(), found.len()));
                }
                match found {
                    Ok(Some(bytes)) => {
                        prop_assert!(inside && rank != 2);
                        prop_assert_eq!(bytes.len(), len);
                        prop_assert_eq!(bytes.as_ptr() as u64, at as u64 + offset);
                    }
                    Ok(None) => prop_assert!(inside && rank == 2),
                    Err(MemoryError::NoSuchRank { rank: 4, ranks: 4 }) => prop_assert_eq!(rank, 4),
                    Err(MemoryError::OutsideSegment { segment, .. }) => {
                        prop_assert!(!inside);
                        prop_assert_eq!(segment, lens[rank as usize]);
                    }
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
        }
    }

    /// What is open to the fast path, and reached at all, next to both ends of a segment of 8 bytes: mapped, counted, not mapped, empty.
    #[test]
    fn a_segment_is_open_to_its_last_byte() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Found {
            Here,
            Elsewhere,
            Outside,
        }
        use Found::*;
        let mut memory = vec![0u8; 64];
        let at = memory.as_mut_ptr();
        let far = Peer { mapped: RawBytes::EMPTY, ..peer(at, 64, 8, PeerFlags::empty()) };
        let peers = vec![
            peer(at, 64, 8, PeerFlags::SELF | PeerFlags::MAPPED),
            peer(at, 64, 8, PeerFlags::COUNTED),
            far,
            peer(at, 64, 0, PeerFlags::MAPPED),
        ];
        let table = PeerTable::new(peers, Arc::new(()));
        for (offset, len, is_open, found) in [
            (0, 0, true, Here),
            (0, 1, true, Here),
            (0, 8, true, Here),
            (0, 9, false, Outside),
            (7, 1, true, Here),
            (7, 2, false, Outside),
            (8, 0, false, Here),
            (8, 1, false, Outside),
            (9, 0, false, Outside),
            (1, usize::MAX, false, Outside),
            (u64::MAX, 0, false, Outside),
            (u64::MAX, 1, false, Outside),
            (u64::MAX, usize::MAX, false, Outside),
        ] {
            let looked = |rank: u32| {
                let open = table.open(rank, offset, len);
                let reached = match table.reach(rank, offset, len) {
                    Ok(Some(bytes)) => {
                        assert_eq!((bytes.as_ptr(), bytes.len()), (at.wrapping_add(offset as usize), len));
                        assert!(open.is_none_or(|open| (open.as_ptr(), open.len()) == (bytes.as_ptr(), len)));
                        Here
                    }
                    Ok(None) => Elsewhere,
                    Err(error) => {
                        let segment = if rank == 3 { 0 } else { 8 };
                        let outside = MemoryError::OutsideSegment { rank, offset, len: len as u64, segment };
                        assert_eq!(error, outside);
                        Outside
                    }
                };
                (open.is_some(), reached)
            };
            let elsewhere = if found == Here { Elsewhere } else { Outside };
            let in_none = if (offset, len) == (0, 0) { Here } else { Outside };
            let wanted = [(is_open, found), (false, found), (false, elsewhere), (false, in_none)];
            assert_eq!([0, 1, 2, 3].map(looked), wanted, "{len} bytes from {offset} on");
        }
        assert_eq!([0, 1, 2, 3, 4].map(|rank| table.reaches(rank)), [true, true, false, true, false]);
    }

    #[test]
    fn the_own_segment_is_that_of_its_rank() {
        let mut memory = vec![0u8; 64];
        let at = memory.as_mut_ptr();
        let other = |len| Peer { mapped: RawBytes::EMPTY, ..peer(at, 64, len, PeerFlags::empty()) };
        let own = peer(at, 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
        let peers = vec![other(5), other(70), own];
        let fixed = PeerTable::new(peers.clone(), Arc::new(()));
        assert_eq!((fixed.ranks(), fixed.room(), fixed.grow(8)), (3, 8, Ok(8)));
        for refused in [fixed.grow(9), fixed.attach(9)] {
            assert_eq!(refused, Err(MemoryError::FixedSegment { rank: 2, len: 9 }));
        }
        let growing = PeerTable::growing(
            peers,
            Arc::new(Announced(vec![5, 70, 8].into_iter().map(AtomicU64::new).collect())),
            Grows::AnyTime,
        );
        assert_eq!((growing.ranks(), growing.room()), (3, 64));
        let shown = format!("{growing:?}");
        assert!(
            shown.starts_with('[') && shown.matches("Peer {").count() == 3 && shown.contains("SELF | MAPPED"),
            "{shown}"
        );
    }

    /// The inline functions of programs in C read it by these offsets.
    #[test]
    fn the_fast_path_finds_its_fields_by_their_offsets() {
        let mut memory = vec![0u8; 64];
        let at = memory.as_mut_ptr();
        let based = |base, flags| Peer { remote_base: base, ..peer(at.wrapping_add(8), 56, 40, flags) };
        let peers = vec![
            based(0x1000, PeerFlags::MAPPED | PeerFlags::SELF),
            based(0x2000, PeerFlags::COUNTED),
            based(0x3000, PeerFlags::empty()),
        ];
        let table = PeerTable::new(peers, Arc::new(()));
        let [first_byte, delta, words, open, size] = ["mapped", "delta", "words", "open", "size"]
            .map(|name| Row::LAYOUT.iter().find(|row| row.0 == name).expect("it has a name").1);
        let first = at.wrapping_add(8);
        let apart = |base: u64| (first.addr() as u64).wrapping_sub(base) as i64;
        for (rank, wanted) in
            [(first, apart(0x1000), 33, 40), (first, apart(0x2000), 0, 0)].into_iter().enumerate()
        {
            let row = table.rows().as_ptr().cast::<u8>().wrapping_add(rank * size);
            // SAFETY: there are as many of them as ranks, whose fields lie there; they change by atomics alone, and not now.
            let found = unsafe {
                (
                    row.add(first_byte).cast::<*mut u8>().read(),
                    row.add(delta).cast::<i64>().read(),
                    row.add(words).cast::<u64>().read(),
                    row.add(open).cast::<u64>().read(),
                )
            };
            assert_eq!(found, wanted, "rank {rank}");
        }
        assert_eq!([0, 1, 2].map(|rank| mapped(&table.peers[rank]).len()), [56, 56, 0]);
    }

    #[test]
    fn growth_is_seen_when_it_is_needed() {
        let mut memory = vec![0u8; 64];
        let own = peer(memory.as_mut_ptr(), 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
        let announced = Arc::new(Announced(vec![AtomicU64::new(8)]));
        let table = PeerTable::growing(vec![own.clone()], announced, Grows::AnyTime);
        assert!(table.reach(0, 8, 8).is_err());
        assert_eq!(table.grow(32), Ok(32));
        assert!(table.reach(0, 8, 24).is_ok_and(|found| found.is_some()));
        assert_eq!(table.largest(), Some(Largest { local: 2, global: 1 }));
        let fixed = PeerTable::new(vec![own], Arc::new(()));
        assert_eq!((fixed.grow(8), fixed.largest()), (Ok(8), None));
        let refused = fixed.grow(9).expect_err("it cannot grow").to_string();
        assert!(refused.contains("rank 0") && refused.contains("9 bytes"), "{refused}");
    }

    /// The owner of a mapping has time until then to make it usable.
    #[test]
    fn how_long_anothers_segment_is_is_asked_when_it_matters() {
        struct Asked(Announced, AtomicU32);
        impl Growth for Asked {
            fn length(&self, rank: u32) -> u64 {
                self.1.fetch_add(1, Relaxed);
                self.0.length(rank)
            }
            fn grow(&self, len: u64) -> Result<u64, MemoryError> {
                self.0.grow(len)
            }
            fn largest(&self) -> Largest {
                self.0.largest()
            }
        }
        let mut memory = vec![0u8; 64];
        let own = peer(memory.as_mut_ptr(), 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
        let mapped = Peer { len: 48, flags: PeerFlags::MAPPED, ..own.clone() };
        let counted = Peer { flags: PeerFlags::COUNTED, ..mapped.clone() };
        let far = Peer { mapped: RawBytes::EMPTY, flags: PeerFlags::empty(), ..mapped.clone() };
        let announced = Announced([8, 48, 48, 48].map(AtomicU64::new).into());
        let owner = Arc::new(Asked(announced, AtomicU32::new(0)));
        let table = PeerTable::growing(vec![own, mapped, counted, far], owner.clone(), Grows::Never);
        let asked = || owner.1.swap(0, Relaxed);
        let open = |rank| table.open(rank, 0, 8).is_some();
        assert_eq!([0, 1, 2, 3].map(open), [true, false, false, false]);
        assert_eq!(asked(), 0);
        for (rank, is_open, times) in [(0, true, 0), (1, true, 1), (2, false, 1), (3, false, 0)] {
            let found = table.reach(rank, 40, if rank == 0 { 0 } else { 8 });
            assert_eq!(found.map(|found| found.is_some()).ok(), (rank > 0).then_some(rank < 3), "{rank}");
            assert_eq!((open(rank), asked()), (is_open, if rank == 0 { 1 } else { times }), "{rank}");
            // Once is enough.
            assert!(table.reach(rank, 0, 8).is_ok() && asked() == 0, "{rank}");
        }
    }

    #[test]
    fn what_is_attached_late_grows_once() {
        let mut memory = vec![0u8; 64];
        let own = peer(memory.as_mut_ptr(), 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
        let far = Peer { mapped: RawBytes::EMPTY, len: 0, flags: PeerFlags::empty(), ..own.clone() };
        let announced = Arc::new(Announced(vec![AtomicU64::new(8), AtomicU64::new(64)]));
        let table = PeerTable::growing(vec![own, far], announced, Grows::Once);
        assert!(table.grow(32).is_err() && table.room() == 64);
        assert_eq!((table.attach(32), table.len_of(0)), (Ok(32), Some(32)));
        assert!(table.grow(33).is_err() && table.attach(33).is_err() && table.room() == 32);
        assert_eq!(table.attach(32), Ok(32));
        // What is mapped is believed as far as its mapping goes, what is not as its rank says.
        table.told(0, 64);
        table.told(1, 64);
        table.told(2, 64);
        assert_eq!((table.len_of(0), table.len_of(1), table.len_of(2)), (Some(32), Some(64), None));
        assert!(table.open(1, 0, 8).is_none() && table.reach(1, 57, 8).is_err());
        assert!(matches!(table.reach(1, 56, 8), Ok(None)));
        let largest = Largest { local: 7, global: 6 };
        assert_eq!(table.with_largest(largest).largest(), Some(largest));
    }

    #[derive(Default)]
    struct Count(AtomicU32);
    impl Watch for Count {
        fn accesses(&self, _: Access, _: u32, _: usize, act: &mut dyn FnMut()) {
            self.0.fetch_add(1, Relaxed);
            act();
        }
    }

    #[test]
    fn a_counted_peer_is_reached_but_not_open() {
        let mut bytes = vec![0u8; 64];
        // SAFETY: the bytes outlive the table, and nobody else uses them meanwhile.
        let mapped = unsafe { RawBytes::new(bytes.as_mut_ptr(), 64) };
        let peer = |flags| Peer { mapped, len: 64, remote_base: 0, key: Vec::new(), flags };
        let peers = vec![peer(PeerFlags::MAPPED | PeerFlags::SELF), peer(PeerFlags::empty())];
        let table = PeerTable::new(peers, Arc::new(()));
        let found = |table: &PeerTable| {
            [0, 1].map(|rank| {
                let of = |found: Result<Option<RawBytes>, _>| found.is_ok_and(|found| found.is_some());
                (table.open(rank, 8, 8).is_some(), of(table.reach(rank, 8, 8)))
            })
        };
        assert!(table.watch().is_none());
        assert_eq!(found(&table), [(true, true), (false, false)]);
        let (count, mut copied) = (Arc::new(Count::default()), 0);
        let table = table.watched(count.clone());
        assert_eq!(found(&table), [(false, true), (false, false)]);
        assert!(table.reach(0, 60, 8).is_err() && table.reach(2, 0, 0).is_err());
        assert_eq!(table.get(0).map(|peer| peer.flags), Some(PeerFlags::COUNTED | PeerFlags::SELF));
        table.watch().into_iter().for_each(|watch| watch.accesses(Access::Put, 0, 8, &mut || copied += 1));
        assert_eq!((count.0.load(Relaxed), copied), (1, 1));
    }
}
