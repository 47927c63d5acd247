//! What is found of peers' segments, and what is not.

use super::*;
use gasworks_sync::atomic::AtomicU64;
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

fn fixed_table(peers: Vec<Peer>, owner: Arc<()>) -> RegionTable {
    // SAFETY: table.1: each test keeps the bytes longer than its tables, and touches none of them.
    unsafe { RegionTable::new(peers, owner) }
}

fn growing_table<G: Growth + Any>(peers: Vec<Peer>, owner: Arc<G>, grows: Grows) -> RegionTable {
    // SAFETY: table.1: each test keeps as many bytes as are mapped of a segment, however long that is said to be, and touches none of
    // them.
    unsafe { RegionTable::growing(peers, owner, grows) }
}

/// Descriptions of bytes that are never touched.
fn peer(at: *mut u8, room: usize, len: u64, flags: PeerFlags) -> Peer {
    Peer { mapped: RawSlice::new(at, room), len, remote_base: 0, key: Vec::new(), flags }
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
        let table = growing_table(peers, announced.clone(), Grows::AnyTime);
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
            let found = table.reach(rank, offset, len, Rights::all());
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
    let far = Peer { mapped: RawSlice::EMPTY, ..peer(at, 64, 8, PeerFlags::empty()) };
    let peers = vec![
        peer(at, 64, 8, PeerFlags::SELF | PeerFlags::MAPPED),
        peer(at, 64, 8, PeerFlags::COUNTED),
        far,
        peer(at, 64, 0, PeerFlags::MAPPED),
    ];
    let table = fixed_table(peers, Arc::new(()));
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
            let reached = match table.reach(rank, offset, len, Rights::all()) {
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
    let other = |len| Peer { mapped: RawSlice::EMPTY, ..peer(at, 64, len, PeerFlags::empty()) };
    let own = peer(at, 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
    let peers = vec![other(5), other(70), own];
    let fixed = fixed_table(peers.clone(), Arc::new(()));
    assert_eq!((fixed.ranks(), fixed.room(), fixed.grow(8)), (3, 8, Ok(8)));
    for refused in [fixed.grow(9), fixed.attach(9)] {
        assert_eq!(refused, Err(MemoryError::FixedSegment { rank: 2, len: 9 }));
    }
    let growing = growing_table(
        peers,
        Arc::new(Announced(vec![5, 70, 8].into_iter().map(AtomicU64::new).collect())),
        Grows::AnyTime,
    );
    assert_eq!((growing.ranks(), growing.room()), (3, 64));
    let shown = format!("{growing:?}");
    assert!(
        shown.starts_with('[') && shown.matches("Entry {").count() == 3 && shown.contains("SELF | MAPPED"),
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
    let table = fixed_table(peers, Arc::new(()));
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
    assert_eq!([0, 1, 2, 3].map(|rank| table.mapped(rank).len()), [56, 56, 0, 0]);
    assert_eq!([0, 1, 2, 3].map(|rank| table.base(rank)), [Some(0x1000), Some(0x2000), Some(0x3000), None]);
}

#[test]
fn growth_is_seen_when_it_is_needed() {
    let mut memory = vec![0u8; 64];
    let own = peer(memory.as_mut_ptr(), 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
    let announced = Arc::new(Announced(vec![AtomicU64::new(8)]));
    let table = growing_table(vec![own.clone()], announced, Grows::AnyTime);
    assert!(table.reach(0, 8, 8, Rights::all()).is_err());
    assert_eq!(table.grow(32), Ok(32));
    assert!(table.reach(0, 8, 24, Rights::all()).is_ok_and(|found| found.is_some()));
    assert_eq!(table.largest(), Some(Largest { local: 2, global: 1 }));
    let fixed = fixed_table(vec![own], Arc::new(()));
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
    let far = Peer { mapped: RawSlice::EMPTY, flags: PeerFlags::empty(), ..mapped.clone() };
    let announced = Announced([8, 48, 48, 48].map(AtomicU64::new).into());
    let owner = Arc::new(Asked(announced, AtomicU32::new(0)));
    let table = growing_table(vec![own, mapped, counted, far], owner.clone(), Grows::Never);
    let asked = || owner.1.swap(0, Relaxed);
    let open = |rank| table.open(rank, 0, 8).is_some();
    assert_eq!([0, 1, 2, 3].map(open), [true, false, false, false]);
    assert_eq!(asked(), 0);
    for (rank, is_open, times) in [(0, true, 0), (1, true, 1), (2, false, 1), (3, false, 0)] {
        let found = table.reach(rank, 40, if rank == 0 { 0 } else { 8 }, Rights::all());
        assert_eq!(found.map(|found| found.is_some()).ok(), (rank > 0).then_some(rank < 3), "{rank}");
        assert_eq!((open(rank), asked()), (is_open, if rank == 0 { 1 } else { times }), "{rank}");
        // Once is enough.
        assert!(table.reach(rank, 0, 8, Rights::all()).is_ok() && asked() == 0, "{rank}");
    }
}

#[test]
fn what_is_attached_late_grows_once() {
    let mut memory = vec![0u8; 64];
    let own = peer(memory.as_mut_ptr(), 64, 8, PeerFlags::SELF | PeerFlags::MAPPED);
    let far = Peer { mapped: RawSlice::EMPTY, len: 0, flags: PeerFlags::empty(), ..own.clone() };
    let announced = Arc::new(Announced(vec![AtomicU64::new(8), AtomicU64::new(64)]));
    let table = growing_table(vec![own, far], announced, Grows::Once);
    assert!(table.grow(32).is_err() && table.room() == 64);
    assert_eq!((table.attach(32), table.len_of(0)), (Ok(32), Some(32)));
    assert!(table.grow(33).is_err() && table.attach(33).is_err() && table.room() == 32);
    assert_eq!(table.attach(32), Ok(32));
    // What is mapped is believed as far as its mapping goes, what is not as its rank says.
    table.told(0, 64);
    table.told(1, 64);
    table.told(2, 64);
    assert_eq!((table.len_of(0), table.len_of(1), table.len_of(2)), (Some(32), Some(64), None));
    assert!(table.open(1, 0, 8).is_none() && table.reach(1, 57, 8, Rights::all()).is_err());
    assert!(matches!(table.reach(1, 56, 8, Rights::all()), Ok(None)));
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
    let mapped = RawSlice::new(bytes.as_mut_ptr(), 64);
    let peer = |flags| Peer { mapped, len: 64, remote_base: 0, key: Vec::new(), flags };
    let peers = vec![peer(PeerFlags::MAPPED | PeerFlags::SELF), peer(PeerFlags::empty())];
    let table = fixed_table(peers, Arc::new(()));
    let found = |table: &RegionTable| {
        [0, 1].map(|rank| {
            let of = |found: Result<Option<VolatileSlice<'_>>, _>| found.is_ok_and(|found| found.is_some());
            (table.open(rank, 8, 8).is_some(), of(table.reach(rank, 8, 8, Rights::all())))
        })
    };
    assert!(table.watch().is_none());
    assert_eq!(found(&table), [(true, true), (false, false)]);
    let (count, mut copied) = (Arc::new(Count::default()), 0);
    let table = table.watched(count.clone());
    assert_eq!(found(&table), [(false, true), (false, false)]);
    assert!(table.reach(0, 60, 8, Rights::all()).is_err() && table.reach(2, 0, 0, Rights::all()).is_err());
    assert_eq!(table.flags(0), Some(PeerFlags::COUNTED | PeerFlags::SELF));
    table.watch().into_iter().for_each(|watch| watch.accesses(Access::Put, 0, 8, &mut || copied += 1));
    assert_eq!((count.0.load(Relaxed), copied), (1, 1));
}

#[test]
fn keys_are_as_long_as_each_other_or_none() {
    let mut memory = vec![0u8; 64];
    let at = memory.as_mut_ptr();
    let keyed = |key: &[u8]| Peer { key: key.to_vec(), ..peer(at, 64, 8, PeerFlags::empty()) };
    let of = |keys: &[&[u8]]| {
        let table = fixed_table(keys.iter().map(|key| keyed(key)).collect(), Arc::new(()));
        (0..4).map(|rank| table.key(rank).to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(of(&[&[], &[1, 2], &[]]), [&[][..], &[1, 2], &[], &[]]);
    assert_eq!(of(&[&[3, 4], &[], &[5, 6]]), [&[3, 4][..], &[], &[5, 6], &[]]);
    assert_eq!(of(&[&[1], &[1, 2]]), [&[0u8; 0]; 4], "of different lengths");
    let table = fixed_table(vec![keyed(&[]), keyed(&[])], Arc::new(()));
    let (short, all, others) = ([&[1][..], &[1, 2]], [&[][..], &[7, 8]], [&[9, 9][..], &[9, 9]]);
    assert!(!table.set_keys(short.into_iter()) && table.key(1).is_empty());
    assert!(table.set_keys(all.into_iter()) && table.set_keys(others.into_iter()));
    assert_eq!([0, 1, 2].map(|rank| table.key(rank)), [&[][..], &[7, 8], &[]], "the first stay");
}

/// A member's row is its rank's; a team's own rows learn by an update what the table has learnt.
#[test]
fn the_rows_of_a_team_are_those_of_its_ranks() {
    let mut memory = vec![0u8; ROOM as usize];
    let at = memory.as_mut_ptr();
    let flags = |rank| if rank == 2 { PeerFlags::empty() } else { PeerFlags::MAPPED };
    // As many bytes further on for each, so that rows can be told from each other.
    let place = |rank: u32| at.wrapping_add(100 * rank as usize);
    let peers = (0..4).map(|rank| peer(place(rank), 50, 0, flags(rank))).collect();
    let announced = Arc::new(Announced([10, 20, 30, 40].map(AtomicU64::new).into()));
    let table = growing_table(peers, announced.clone(), Grows::AnyTime);
    let opens = |rows: Rows<'_>, member: u32, offset: u64| {
        rows.open(member, offset, 1).map(|byte| byte.as_ptr().addr())
    };
    let byte_of = |rank: u32, offset: u64| Some(place(rank).addr() + offset as usize);

    let list = table.rows_of([3, 1, 9, 2]);
    let members = [Some(3), Some(1), None, None, None].into_iter();
    for (member, rank) in (0..).zip(members) {
        assert_eq!(opens(list.rows(), member, 9), rank.and_then(|rank| byte_of(rank, 9)), "member {member}");
    }
    assert_eq!(
        (opens(list.rows(), 0, 40), opens(list.rows(), 1, 20)),
        (None, None),
        "as long as they were said to be"
    );
    announced.0[3].store(45, Relaxed);
    list.update(0, 3);
    assert_eq!(opens(list.rows(), 0, 40), None, "nobody has asked");
    assert_eq!(table.len_of(3), Some(45));
    list.update(1, 3);
    list.update(2, 3);
    list.update(7, 3);
    assert!((0..5).all(|member| opens(list.rows(), member, 40).is_none()), "none of them is rank 3");
    list.update(0, 3);
    assert_eq!((opens(list.rows(), 0, 40), opens(list.rows(), 0, 45)), (byte_of(3, 40), None));
}

/// Base, length and key: nothing else is memory of a rank that only the network reaches.
#[cfg(not(miri))]
#[test]
fn a_rank_of_another_host_takes_32_bytes() {
    const RANKS: u32 = 1 << 20;
    let resident = || gasworks_os::memory_use::own().expect("known").anonymous;
    let before = resident();
    let far = |rank: u32| Peer {
        remote_base: u64::from(rank),
        ..peer(std::ptr::null_mut(), 0, 8, PeerFlags::empty())
    };
    // SAFETY: table.1: nothing is mapped.
    let table = unsafe { RegionTable::new((0..RANKS).map(far), Arc::new(())) };
    assert!(table.set_keys((0..RANKS).map(|_| &[7; 16][..])));
    let taken = resident().saturating_sub(before);
    // The last page of an allocation may be a large one.
    assert!(taken < u64::from(RANKS) * 32 + (4 << 20), "{taken} bytes");
    assert_eq!(table.remote(RANKS - 1, 5), (&[7; 16][..], u64::from(RANKS) - 1, 5));
}
