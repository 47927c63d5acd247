//! Regions against a plain model of them.

use super::*;
use crate::{PeerFlags, RegionTable};
use proptest::prelude::*;

const RANKS: u32 = 4;
const ROOM: u64 = 64;
/// The rank whose table it is, and one whose regions are not mapped.
const OWN: u32 = 1;
const FAR: u32 = 2;

/// All regions are of the same bytes, which nobody touches.
struct Memory {
    bytes: Vec<u8>,
    fails: bool,
}

// SAFETY: table.1: the bytes live as long as this value, and no test touches them.
unsafe impl RegionMemory for Memory {
    fn create(&self, _: RegionId, asked: &[Asked]) -> Result<Vec<Peer>, MemoryError> {
        if self.fails {
            return Err(MemoryError::CannotCreate { cause: "it fails".into() });
        }
        let mapped = RawSlice::new(self.bytes.as_ptr().cast_mut(), self.bytes.len());
        let peer = |(rank, asked): (u32, &Asked)| {
            let (mapped, mut flags) = match rank {
                FAR => (RawSlice::EMPTY, PeerFlags::empty()),
                _ => (mapped, PeerFlags::MAPPED),
            };
            flags.set(PeerFlags::SELF, rank == OWN);
            Peer { mapped, len: asked.len, remote_base: 0, key: Vec::new(), flags }
        };
        Ok((0..).zip(asked).map(peer).collect())
    }
    fn unmap(&self, _: RegionId) -> Result<(), MemoryError> {
        Ok(())
    }
    fn free(&self, _: RegionId) -> Result<(), MemoryError> {
        Ok(())
    }
}

fn table(fails: bool) -> RegionTable {
    let segment = |rank| {
        let own = if rank == OWN { PeerFlags::SELF } else { PeerFlags::empty() };
        Peer { mapped: RawSlice::EMPTY, len: ROOM, remote_base: 0, key: Vec::new(), flags: own }
    };
    // SAFETY: table.1: nothing is mapped of these segments.
    let table = unsafe { RegionTable::new((0..RANKS).map(segment), Arc::new(())) };
    table.with_regions(Arc::new(Memory { bytes: vec![0; ROOM as usize], fails }))
}

/// No keys. Each rank's part begins where nobody looks.
fn keys() -> impl Iterator<Item = (u64, &'static [u8])> + Clone {
    (0..RANKS).map(|_| (0, &[][..]))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Pending,
    Published,
    Withdrawn,
}

#[derive(Clone, Debug)]
enum Step {
    Create([u64; RANKS as usize], [u32; RANKS as usize]),
    Publish(usize),
    Withdraw(usize),
    Reach { region: usize, rank: u32, offset: u64, len: u64, rights: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![Just(0), Just(ROOM), 1..ROOM];
    let offset = prop_oneof![4 => 0..ROOM + 2, 1 => Just(RegionId::MAX_LEN - 1)];
    let bytes = prop_oneof![4 => 0..ROOM + 2, 1 => Just(u64::MAX)];
    prop_oneof![
        2 => (prop::array::uniform4(len), prop::array::uniform4(prop_oneof![Just(7u32), 0..8u32]))
            .prop_map(|(lens, rights)| Step::Create(lens, rights)),
        2 => any::<usize>().prop_map(Step::Publish),
        1 => any::<usize>().prop_map(Step::Withdraw),
        12 => (any::<usize>(), 0..RANKS + 1, offset, bytes, 0..8u32).prop_map(|(region, rank, offset, len, rights)| {
            Step::Reach { region, rank, offset, len, rights }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 256 }, failure_persistence: None,
        ..ProptestConfig::default() })]

    /// Against the plain model: a list of all that were ever created.
    #[test]
    fn a_range_is_found_if_its_region_allows_it(
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 25 } else { 80 }),
    ) {
        let table = table(false);
        let mut model: Vec<(RegionId, State, Vec<Asked>)> = Vec::new();
        for step in steps {
            let count = model.len().max(1);
            match step {
                Step::Create(lens, rights) => {
                    let id = table.next_region().expect("there are many columns");
                    prop_assert!(model.iter().all(|(other, ..)| *other != id), "{} again", id);
                    let rights = rights.map(Rights::from_bits_truncate);
                    let asked: Vec<_> = lens.into_iter().zip(rights).map(|(len, rights)| Asked { len, rights, given: None }).collect();
                    prop_assert_eq!(table.create(id, &asked, None), Ok(()));
                    // What was in this column before is gone for good.
                    model.push((id, State::Pending, asked));
                }
                Step::Publish(which) => if let Some((id, state, _)) = model.get_mut(which % count) {
                    table.publish(*id, keys());
                    if *state == State::Pending {
                        *state = State::Published;
                    }
                },
                Step::Withdraw(which) => if let Some((id, state, _)) = model.get_mut(which % count) {
                    prop_assert_eq!(table.withdraw(*id).is_ok(), *state != State::Withdrawn);
                    *state = State::Withdrawn;
                },
                Step::Reach { region, rank, offset, len, rights } => {
                    let Some((id, state, asked)) = model.get(region % count) else { continue };
                    let rights = Rights::from_bits_truncate(rights);
                    let region = RegionHandle { owner: rank, id: *id };
                    let place = id.place(offset).expect("it is no farther");
                    let found = table.reach(rank, place, len as usize, rights);
                    let latest = model.iter().filter(|(other, ..)| other.index == id.index).map(|(id, ..)| *id).next_back();
                    let wanted = match asked.get(rank as usize) {
                        _ if latest != Some(*id) => Err(MemoryError::Withdrawn { region }),
                        _ if *state == State::Withdrawn => Err(MemoryError::Withdrawn { region }),
                        None => Err(MemoryError::NoSuchRank { rank, ranks: RANKS }),
                        Some(_) if *state == State::Pending && rank != OWN => Err(MemoryError::NotPublished { region }),
                        Some(&Asked { len: size, rights: has, .. }) => match offset.checked_add(len) {
                            None => Err(MemoryError::Wraps { region, offset, len }),
                            Some(end) if end <= size && has.contains(rights) => Ok(rank != FAR),
                            Some(end) if end <= size => Err(MemoryError::Denied { region, has, lacks: rights - has }),
                            Some(_) if size == 0 => Err(MemoryError::EmptyRegion { region }),
                            Some(_) => Err(MemoryError::OutsideRegion { region, offset, len, size }),
                        },
                    };
                    let found_len = found.as_ref().ok().and_then(|found| found.as_ref()).map(|found| found.len() as u64);
                    prop_assert!(found_len.is_none_or(|found| found == len));
                    prop_assert_eq!(found.map(|found| found.is_some()), wanted);
                    let wanted = asked.get(rank as usize).map_or(0, |asked| asked.len.saturating_sub(offset));
                    prop_assert_eq!(table.left(rank, place), if latest == Some(*id) { wanted } else { 0 });
                }
            }
        }
    }
}

#[test]
fn a_region_that_was_never_created_is_an_error() {
    let table = table(false);
    let id = table.next_region().expect("there are columns");
    assert_eq!(id, RegionId { index: RegionId::FIRST, generation: 0 });
    let place = id.place(3).expect("it is no farther");
    let region = RegionHandle { owner: 0, id };
    let missing = Err(MemoryError::NoSuchRegion { region });
    assert_eq!(table.reach(0, place, 1, Rights::READ).map(|found| found.is_some()), missing);
    table
        .create(id, &[Asked { len: 8, rights: Rights::all(), given: None }; RANKS as usize], None)
        .expect("there is memory");
    // One of a generation to come.
    let later = RegionId { generation: 1, ..id };
    let place = later.place(3).expect("it is no farther");
    let found = table.reach(0, place, 1, Rights::READ).map(|found| found.is_some());
    assert_eq!(found, Err(MemoryError::NoSuchRegion { region: RegionHandle { owner: 0, id: later } }));
    assert_eq!((table.len_in(id, 0), table.len_in(later, 0), table.len_in(id, RANKS)), (Some(8), None, None));
    assert!(
        !table.publish(later, keys()) && table.withdraw(later).is_err() && table.own_in(later).is_empty()
    );
    assert_eq!(table.own_in(id).len(), ROOM as usize);
}

#[test]
fn what_cannot_be_created_leaves_nothing() {
    let asked = |len| [Asked { len, rights: Rights::all(), given: None }; RANKS as usize];
    let table = table(true);
    let id = table.next_region().expect("there are columns");
    let refused = table.create(id, &asked(8), None).expect_err("it fails");
    assert_eq!(refused.to_string(), "a region cannot be created: it fails");
    // Other ranks may have created it, so nothing else gets its name.
    let (region, place) = (RegionHandle { owner: 0, id }, id.place(0).expect("it is no farther"));
    let found = table.reach(0, place, 1, Rights::READ).map(|found| found.is_some());
    assert_eq!(found, Err(MemoryError::Withdrawn { region }));
    assert_eq!(table.next_region(), Ok(RegionId { generation: 1, ..id }));
    let len = RegionId::MAX_LEN + 1;
    assert_eq!(table.create(id, &asked(len), None), Err(MemoryError::RegionTooLarge { len }));
    // SAFETY: table.1: there are no segments.
    let none = unsafe { RegionTable::new([], Arc::new(())) };
    assert_eq!(none.next_region(), Err(MemoryError::NoRegions));
    assert_eq!(none.create(id, &asked(8), None), Err(MemoryError::NoRegions));
}

#[test]
fn columns_are_used_again_and_are_not_more_than_there_are() {
    let table = table(false);
    let asked = [Asked { len: 8, rights: Rights::all(), given: None }; RANKS as usize];
    let create =
        || table.next_region().inspect(|&id| table.create(id, &asked, None).expect("there is memory"));
    let first = create().expect("there are columns");
    let next = create().expect("there are columns");
    assert_eq!(next, RegionId { index: first.index + 1, generation: 0 });
    table.withdraw(first).expect("it is there");
    assert_eq!(create(), Ok(RegionId { generation: 1, ..first }));
    // Each looks at all columns, which takes Miri minutes.
    if !cfg!(miri) {
        for index in first.index + 2..=RegionId::LAST {
            assert_eq!(create(), Ok(RegionId { index, generation: 0 }));
        }
        assert_eq!(create(), Err(MemoryError::NoColumn { columns: 191 }));
    }
    table.withdraw(next).expect("it is there");
    assert_eq!(create(), Ok(RegionId { generation: 1, ..next }));
    assert!(table.withdraw(next).is_err(), "it was there before");
}

/// Ranks that have created other regions before name one that all can create.
#[test]
fn ranks_agree_on_a_column_that_is_free_on_all() {
    let asked = [Asked { len: 8, rights: Rights::all(), given: None }; RANKS as usize];
    let (one, other) = (table(false), table(false));
    let create = |table: &RegionTable| {
        let id = table.next_region().expect("there are columns");
        table.create(id, &asked, None).expect("there is memory");
        id
    };
    let (first, second) = (create(&one), create(&one));
    one.withdraw(first).expect("it is there");
    for _ in 0..2 {
        let id = create(&other);
        other.withdraw(id).expect("it is there");
    }
    let agreed = |tables: [&RegionTable; 2]| {
        let [mut all, theirs] = tables.map(|table| table.generations().expect("there are regions"));
        all.iter_mut().zip(theirs).for_each(|(most, generation)| *most = generation.max(*most));
        RegionTable::name_region(&all, 0)
    };
    let named = agreed([&one, &other]).expect("there are columns");
    assert_eq!(named, RegionId { generation: 2, ..first }, "the second has had two there");
    for table in [&one, &other] {
        assert_eq!(table.create(named, &asked, None), Ok(()));
    }
    // A name that is kept for another region is not free, and is given back.
    let next = agreed([&one, &other]).expect("there are columns");
    assert!(one.reserve(next) && !one.reserve(next));
    let behind = RegionId { index: next.index + 1, generation: 0 };
    assert_eq!(agreed([&one, &other]), Ok(behind));
    one.release(next);
    let all = one.generations().expect("there are regions");
    let columns = u32::from(RegionId::LAST - RegionId::FIRST) + 1;
    assert_eq!(RegionTable::name_region(&all, 1), Ok(behind));
    assert_eq!(RegionTable::name_region(&all, columns - 2), Ok(next), "two are in use here");
    // The next column is in use on one of them.
    assert_eq!(agreed([&one, &other]), Ok(RegionId { index: second.index + 1, generation: 0 }));
    let older = RegionId { generation: 1, ..first };
    assert_eq!(one.create(older, &asked, None), Err(MemoryError::NoColumn { columns }));
}

#[test]
fn keys_of_a_region_go_with_it() {
    let table = table(false);
    let id = table.next_region().expect("there are columns");
    table
        .create(id, &[Asked { len: 8, rights: Rights::all(), given: None }; RANKS as usize], None)
        .expect("there is memory");
    let place = id.place(5).expect("it is no farther");
    assert_eq!(table.remote(FAR, place), (&[][..], 0, 5));
    let parts = |keys: [&'static [u8]; 4]| [400, 500, 600, 700].into_iter().zip(keys);
    assert!(!table.publish(id, parts([&[1], &[], &[1, 2], &[]])), "of different lengths");
    assert!(table.publish(id, parts([&[], &[], &[1, 2], &[]])));
    assert_eq!(table.remote(FAR, place), (&[1, 2][..], 600, 5));
    assert_eq!((table.remote(0, place), table.address(0, place)), ((&[][..], 400, 5), 405));
    assert_eq!(table.remote(0, 7), (&[][..], 0, 7), "of a segment");
}

/// Puts to a job that is observed are counted, in regions as well.
#[test]
fn regions_of_an_observed_job_are_counted() {
    struct Nobody;
    impl crate::Watch for Nobody {
        fn accesses(&self, _: crate::Access, _: u32, _: usize, act: &mut dyn FnMut()) {
            act();
        }
    }
    let table = table(false).watched(Arc::new(Nobody));
    let id = table.next_region().expect("there are columns");
    table
        .create(id, &[Asked { len: 8, rights: Rights::all(), given: None }; RANKS as usize], None)
        .expect("there is memory");
    assert!(table.publish(id, keys()));
    let place = id.place(0).expect("it is no farther");
    assert!(table.reach(0, place, 8, Rights::WRITE).is_ok_and(|found| found.is_some()));
    assert_eq!(
        table.regions.find(id).map(|created| created.column.of(0).expect("rank 0").flags),
        Some(PeerFlags::COUNTED)
    );
}

/// What ranks give in a region of four: this one a box, and the two others what this table does not see.
fn given(len: u64) -> Vec<Asked> {
    let starts = [Some(4096), Some(8192), Some(8192), None];
    starts.iter().map(|&given| Asked { len, rights: Rights::all(), given }).collect()
}

#[test]
fn what_a_rank_gives_is_reached_by_itself_alone() {
    let table = table(false);
    let id = table.next_region().expect("there are columns");
    let memory = Given::owned(vec![7u32; 4].into_boxed_slice());
    let start = memory.bytes().as_ptr();
    assert_eq!(table.create(id, &given(16), Some(memory)), Ok(()));
    let parts = given(16).into_iter().map(|asked| (asked.given.unwrap_or(0), &[][..]));
    assert!(table.publish(id, parts));
    assert_eq!(table.own_in(id), RawSlice::new(start, 16));
    let place = id.place(12).expect("it is no farther");
    for (rank, mapped) in [(0, false), (OWN, true), (FAR, false), (3, true)] {
        let found = table.reach(rank, place, 4, Rights::all()).map(|found| found.is_some());
        assert_eq!((found, table.reaches_at(rank, place)), (Ok(mapped), mapped), "rank {rank}");
        assert_eq!(table.left(rank, place), 4);
        assert!(table.reach(rank, place, 5, Rights::all()).is_err());
    }
    assert_eq!([0, FAR, 3].map(|rank| table.address(rank, place)), [4108, 8204, 12]);
    let mut word = [0; 4];
    let own = table.reach(OWN, place, 4, Rights::READ).ok().flatten().expect("it is mapped");
    own.read(&mut word);
    assert_eq!(u32::from_ne_bytes(word), 7);
    table.withdraw(id).expect("it is there");
    own.read(&mut word);
    assert_eq!(u32::from_ne_bytes(word), 7, "it is kept");
    // Nobody uses it any more, so it goes with the table.
    table.close();
}

#[test]
fn what_cannot_be_given_is_refused_and_the_region_is_there_to_be_ended() {
    let table = table(false);
    let memory = [0u64; 8];
    let first = memory.as_ptr().cast_mut().cast::<u8>();
    // SAFETY: given.1: the bytes are of `memory`, which nobody uses and which outlives the table; or they are refused.
    let at = |start: *mut u8, len| unsafe { Given::at(RawSlice::new(start, len)) };
    let whole = table.next_region().expect("there are columns");
    assert_eq!(table.create(whole, &given(32), Some(at(first.wrapping_add(16), 32))), Ok(()));
    let overlaps = format!("overlaps region {whole} of rank {OWN}");
    let rows = [
        (std::ptr::null_mut(), 8, "at address 0"),
        (std::ptr::without_provenance_mut(usize::MAX - 2), 4, "wraps around"),
        (first, 17, &overlaps),
        (first.wrapping_add(47), 1, &overlaps),
        (first.wrapping_add(20), 8, &overlaps),
        (first, 64, &overlaps),
    ];
    for (start, len, words) in rows {
        let id = table.next_region().expect("there are columns");
        let refused =
            table.create(id, &given(len as u64), Some(at(start, len))).expect_err(words).to_string();
        assert!(refused.starts_with(&format!("{len} bytes at ")) && refused.contains(words), "{refused}");
        assert!(table.own_in(id).is_empty());
        assert_eq!((table.withdraw(id), table.unmap(id), table.free(id)), (Ok(()), Ok(()), Ok(())));
    }
    for (start, len) in [(first, 16), (first.wrapping_add(48), 16), (first.wrapping_add(20), 0)] {
        let id = table.next_region().expect("there are columns");
        assert_eq!(table.create(id, &given(len as u64), Some(at(start, len))), Ok(()), "{len} bytes");
    }
    // The very same bytes may be given again, with the same rights.
    let twice = table.next_region().expect("there are columns");
    assert_eq!(table.create(twice, &given(32), Some(at(first.wrapping_add(16), 32))), Ok(()));
    let reads: Vec<_> = given(32).into_iter().map(|asked| Asked { rights: Rights::READ, ..asked }).collect();
    let id = table.next_region().expect("there are columns");
    let refused = table.create(id, &reads, Some(at(first.wrapping_add(16), 32))).expect_err("other rights");
    assert!(refused.to_string().contains(&overlaps), "{refused}");
    // What was withdrawn may be given again.
    table.withdraw(whole).expect("it is there");
    let again = table.next_region().expect("there are columns");
    assert_eq!(table.create(again, &given(32), Some(at(first.wrapping_add(16), 32))), Ok(()));
}
