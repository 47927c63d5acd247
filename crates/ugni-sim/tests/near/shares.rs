//! Memory that lies in a file which others map.

use std::os::fd::{AsRawFd, OwnedFd};

use gasworks_os::maps;
use gasworks_os::memfd::{Mapping, MemFd};
use gasworks_os::remote::Remote;
use gasworks_ugni_sim::nic::Bytes;
use gasworks_ugni_sim::shares::Shares;
use gasworks_ugni_sim::table::{Lies, Place};
use nix::sys::memfd::{MFdFlags, memfd_create};
use proptest::prelude::*;

use super::*;

const BYTES: usize = 20_000;
/// Where the registration begins in its file.
const OFFSET: usize = 4096 + 40;

/// A file of `OFFSET` bytes and those that are registered.
fn file() -> MemFd {
    memfd::create("gasworks-shares", OFFSET + BYTES).expect("a file")
}

/// Bytes that are registered with a NIC: its client's alone, or of a file.
struct Area {
    first: u64,
    handle: gni_mem_handle_t,
    mapping: Option<Mapping>,
    /// Words of the client's own, or none.
    words: Box<[AtomicU64]>,
}

impl Area {
    fn private(rank: &Rank) -> Self {
        let words: Box<[AtomicU64]> = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        Self::of(rank, words.as_ptr() as u64, None, words, 0)
    }

    fn in_file(rank: &Rank, file: &impl AsFd, flags: u32) -> Self {
        let mapping = memfd::map(file.as_fd(), OFFSET + BYTES).expect("mapped");
        Self::of(rank, mapping.as_ptr() as u64 + OFFSET as u64, Some(mapping), Box::default(), flags)
    }

    fn of(rank: &Rank, first: u64, mapping: Option<Mapping>, words: Box<[AtomicU64]>, flags: u32) -> Self {
        let len = BYTES as u64;
        let bytes = Bytes { first, len, lies: maps::look(first, len).lies };
        let handle = rank.attached.nic().register(bytes, None, flags).expect("registered");
        Self { first, handle, mapping, words }
    }

    /// Ends the mapping. What is there from now on may not be touched: addresses that are free go to the next thread that starts, for
    /// its signals, and bytes would arrive there.
    fn unmap(&mut self) {
        let mapping = self.mapping.take().expect("mapped");
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the pages are this mapping's, which nobody borrows and which is not ended a second time, since it is forgotten.
        let at = unsafe { libc::mmap(mapping.as_ptr().cast(), mapping.len(), libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        std::mem::forget(mapping);
    }

    fn bytes(&self) -> Vec<u8> {
        let Some(mapping) = &self.mapping else {
            return self.words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        };
        let mut bytes = vec![0; BYTES];
        mapping.bytes().slice(OFFSET, BYTES).expect("inside").read(&mut bytes);
        bytes
    }
}

/// A transaction of so many bytes.
fn post(
    kind: gni_post_type_t,
    (here, at): (&Area, u64),
    (there, to): (&Area, u64),
    length: u64,
) -> gni_post_descriptor_t {
    gni_post_descriptor_t {
        r#type: kind,
        cq_mode: GNI_CQMODE_GLOBAL_EVENT,
        amo_cmd: GNI_FMA_ATOMIC_FADD,
        first_operand: 1 << 40 | 1,
        local_addr: here.first + at,
        local_mem_hndl: here.handle,
        remote_addr: there.first + to,
        remote_mem_hndl: there.handle,
        length,
        ..Default::default()
    }
}

fn ended(rank: &Rank, post: &gni_post_descriptor_t) -> Status {
    let is_rdma = [GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET].contains(&post.r#type);
    let way = if is_rdma { Way::Bte } else { Way::Fma };
    rank.endpoint.post(post, way, 1, None).expect("posted");
    rank.events.completed(await_event(&rank.events)).expect("a transaction").1
}

/// Two ranks, the second of which has registered what `area` gives.
fn two<T>(cookie: u32, area: impl Fn(&Rank) -> T) -> ([Rank; 2], T) {
    let (wire, job) = (Wire::default(), (cookie, Mood::Plain));
    let ranks = [rank(&wire, job, 0, 1), rank(&wire, job, 1, 0)];
    let area = area(&ranks[1]);
    (ranks, area)
}

fn this_process() -> Remote {
    Remote::open(std::process::id() as i32).expect("this one")
}

#[derive(Clone, Debug)]
struct Step {
    kind: gni_post_type_t,
    by: usize,
    here: (usize, u64),
    there: (usize, u64),
    length: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = vec![GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_GET, GNI_POST_AMO];
    let length = prop_oneof![1u64..70, 4090u64..4100, 1u64..9000];
    let place = || (0..2usize, 0..10_000u64);
    (prop::sample::select(kinds), 0..2usize, place(), place(), length).prop_map(
        |(kind, by, here, there, length)| {
            let whole = |at: u64, of: u64| at.next_multiple_of(of);
            let (grain, length) = match kind {
                GNI_POST_AMO => (8, 8),
                GNI_POST_FMA_GET | GNI_POST_RDMA_GET => (4, whole(length, 4)),
                _ => (1, length),
            };
            let here = (here.0, whole(here.1, grain));
            Step { kind, by, here, there: (there.0, whole(there.1, grain)), length }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// Whichever way bytes go, and wherever they lie, the same becomes of them.
    #[test]
    fn shared_and_private_memory_are_alike(steps in prop::collection::vec(step(), 1..40), wire in 0..2usize) {
        let wires = &both(2)[wire];
        let job = (80 + wire as u32, Mood::Plain);
        let ranks = [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)];
        let areas: Vec<[Area; 2]> =
            ranks.iter().map(|rank| [Area::private(rank), Area::in_file(rank, &file(), 0)]).collect();
        let mut model: Vec<[Vec<u8>; 2]> = (0..2).map(|_| [(); 2].map(|()| vec![0; BYTES])).collect();
        // Something to tell bytes by.
        for (areas, model) in areas.iter().zip(&mut model) {
            for (area, model) in areas.iter().zip(model) {
                let bytes: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
                // SAFETY: remote.2 of `gasworks_os`: the area was registered to be written, and only atomics and volatile bytes lead there.
                unsafe { this_process().write(area.first, &bytes) }.expect("written");
                *model = bytes;
            }
        }
        for step in &steps {
            let Step { kind, by, here, there, length } = *step;
            let (mine, theirs) = (&areas[by][here.0], &areas[1 - by][there.0]);
            let post = post(kind, (mine, here.1), (theirs, there.1), length);
            prop_assert_eq!(ended(&ranks[by], &post), Status::Ok);
            let (from, to) = (here.1 as usize..(here.1 + length) as usize, there.1 as usize..(there.1 + length) as usize);
            match kind {
                GNI_POST_FMA_PUT | GNI_POST_RDMA_PUT => {
                    let bytes = model[by][here.0][from].to_vec();
                    model[1 - by][there.0][to].copy_from_slice(&bytes);
                }
                _ => {
                    let bytes = model[1 - by][there.0][to.clone()].to_vec();
                    model[by][here.0][from].copy_from_slice(&bytes);
                    if kind == GNI_POST_AMO {
                        let old = u64::from_le_bytes(bytes.try_into().expect("a word"));
                        let new = old.wrapping_add(post.first_operand);
                        model[1 - by][there.0][to].copy_from_slice(&new.to_le_bytes());
                    }
                }
            }
            for (areas, model) in areas.iter().zip(&model) {
                for (area, model) in areas.iter().zip(model) {
                    prop_assert!(area.bytes() == *model, "after {:?}", step);
                }
            }
        }
    }
}

/// The hardware keeps pages that are registered; of private memory there is nothing left where it is unmapped.
#[test]
fn registered_pages_of_a_file_are_reached_after_they_are_unmapped() {
    let file = file();
    let (ranks, mut area) = two(82, |rank| Area::in_file(rank, &file, 0));
    let here = Area::private(&ranks[0]);
    here.words[0].store(77, Relaxed);
    drop(area.mapping.take());
    assert_eq!(ended(&ranks[0], &post(GNI_POST_FMA_PUT, (&here, 0), (&area, 8), 8)), Status::Ok);
    assert_eq!(ended(&ranks[0], &post(GNI_POST_AMO, (&here, 8), (&area, 8), 8)), Status::Ok);
    assert_eq!(here.words[1].load(Relaxed), 77);
    // Here too.
    let mut own = Area::in_file(&ranks[0], &file, 0);
    drop(own.mapping.take());
    assert_eq!(ended(&ranks[0], &post(GNI_POST_FMA_GET, (&own, 16), (&area, 8), 8)), Status::Ok);
    area.mapping = Some(file.map().expect("mapped"));
    assert_eq!(area.bytes()[16..24], area.bytes()[8..16]);
    assert_eq!(area.bytes()[8..16], (77u64 + (1 << 40 | 1)).to_le_bytes());
}

/// What somebody may shrink nobody maps, nor what a strict NIC is to find unmapped.
#[test]
fn other_memory_is_asked_for_by_its_addresses() {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let open: OwnedFd = memfd_create("gasworks-shares", flags).expect("a file");
    nix::unistd::ftruncate(&open, (OFFSET + BYTES) as i64).expect("sized");
    let sealed = file();
    for (cookie, fd, strict) in [(83, open.as_fd(), false), (84, sealed.as_fd(), true)] {
        let (ranks, mut area) = two(cookie, |rank| {
            if strict {
                rank.attached.nic().be_strict(Box::new(|_| {}), &Default::default());
            }
            Area::in_file(rank, &fd, 0)
        });
        let here = Area::private(&ranks[0]);
        here.words[0].store(5, Relaxed);
        let put = post(GNI_POST_FMA_PUT, (&here, 0), (&area, 16), 8);
        assert_eq!(ended(&ranks[0], &put), Status::Ok);
        assert_eq!(area.bytes()[16..24], 5u64.to_le_bytes());
        area.unmap();
        assert_eq!(ended(&ranks[0], &put), Status::Translation, "{cookie}");
    }
}

#[test]
fn rules_are_kept_in_shared_memory_too() {
    let file = file();
    let (ranks, area) = two(86, |rank| Area::in_file(rank, &file, GNI_MEM_READ_ONLY));
    let here = Area::private(&ranks[0]);
    assert_eq!(ended(&ranks[0], &post(GNI_POST_FMA_GET, (&here, 0), (&area, 0), 8)), Status::Ok);
    let put = post(GNI_POST_FMA_PUT, (&here, 0), (&area, 0), 8);
    assert_eq!(ranks[0].endpoint.post(&put, Way::Fma, 1, None), Err(GNI_RC_PERMISSION_ERROR));
    ranks[1].attached.nic().deregister(&area.handle).expect("its own");
    assert_eq!(ended(&ranks[0], &post(GNI_POST_FMA_GET, (&here, 0), (&area, 0), 8)), Status::Descriptor);
    let area = Area::in_file(&ranks[1], &file, 0);
    // The file goes on before the registration, and the page after it.
    let page = |at: usize| at as u64 / 4096 * 4096;
    for to in [page(OFFSET).wrapping_sub(OFFSET as u64 + 8), page(OFFSET + BYTES + 4095) - OFFSET as u64] {
        let there = Area { first: area.first.wrapping_add(to), mapping: None, words: Box::default(), ..area };
        assert_eq!(ended(&ranks[0], &post(GNI_POST_FMA_PUT, (&here, 0), (&there, 0), 8)), Status::Bounds);
    }
    // What is left of a page behind the file is registered too.
    let rest = Area { first: area.first + BYTES as u64, mapping: None, words: Box::default(), ..area };
    assert_eq!(ended(&ranks[0], &post(GNI_POST_FMA_PUT, (&here, 0), (&rest, 0), 8)), Status::Ok);
    // A source that is nowhere.
    let wild = gni_post_descriptor_t { local_addr: 64, ..post(GNI_POST_FMA_PUT, (&here, 0), (&area, 0), 8) };
    assert_eq!(ended(&ranks[0], &wild), Status::Translation);
    assert_eq!(area.bytes(), vec![0; BYTES]);
}

/// A peer may say what it likes of its descriptors.
#[test]
fn what_is_said_of_files_is_checked() {
    let shape = Shape { registrations: 1, queues: 1, lines: 1 };
    let (window, process) = (Window::on_heap(Chip::Aries, shape), this_process());
    let (sealed, open) = (file(), memfd_create("gasworks-shares", MFdFlags::MFD_CLOEXEC).expect("a file"));
    nix::unistd::ftruncate(&open, (OFFSET + BYTES) as i64).expect("sized");
    let place = |descriptor: u32, offset: u64| Place {
        first: 1 << 40,
        len: BYTES as u64,
        lies: Some(Lies { descriptor, offset }),
        ..Place::default()
    };
    let shares = Shares::of(process);
    let find = |descriptor: u32, offset: u64, bytes| {
        shares.find(&window, &place(descriptor, offset), bytes).is_some()
    };
    let (end, first) = ((OFFSET + BYTES) as u64, 1 << 40);
    let number = |fd: &dyn AsFd| fd.as_fd().as_raw_fd() as u32;
    for _ in 0..2 {
        assert!(find(number(&sealed), 0, (first, 8)) && find(number(&sealed), end - 8, (first, 8)));
        for (offset, bytes) in
            [(end - 7, (first, 8)), (u64::MAX, (first, 8)), (0, (first - 1, 1)), (8, (first + end - 8, 1))]
        {
            assert!(!find(number(&sealed), offset, bytes), "{bytes:?} with {offset}");
        }
        for descriptor in [number(&open), 0, 1 << 20, u32::MAX - 1] {
            assert!(!find(descriptor, 0, (first, 8)), "{descriptor}");
        }
        // However many there are.
        (0..200).for_each(|at| assert!(!find(1 << 21 | at, 0, (first, 8))));
    }
    assert!(shares.find(&window, &Place { lies: None, ..place(3, 0) }, (first, 8)).is_none());
}

/// A file is kept as long as something in it is registered, once for all; and others let go of it when they look next.
#[test]
fn files_are_kept_as_long_as_they_are_registered() {
    const NAME: &str = "gasworks-kept";
    let file = || memfd::create(NAME, OFFSET + BYTES).expect("a file");
    let mappings = || std::fs::read_to_string("/proc/self/maps").expect("maps").matches(NAME).count();
    let descriptors = || {
        let all = std::fs::read_dir("/proc/self/fd").expect("descriptors");
        let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().contains(NAME)).count()
    };
    let (ranks, ()) = two(87, |_| ());
    let here = Area::private(&ranks[0]);
    let put = |area: &Area| ended(&ranks[0], &post(GNI_POST_FMA_PUT, (&here, 0), (area, 0), 8));
    for value in 0..100u64 {
        let (one, two) = (file(), file());
        here.words[0].store(value, Relaxed);
        let areas = [&one, &one, &two].map(|file| Area::in_file(&ranks[1], file, 0));
        for area in &areas {
            assert_eq!(put(area), Status::Ok);
            assert_eq!(area.bytes()[..8], value.to_le_bytes(), "that of this turn");
        }
        assert_eq!(descriptors(), 2 + 2, "ours and the NIC's: whoever posts keeps none");
        // Each is mapped by its area, and once for all who post.
        assert_eq!(mappings(), 3 + 2, "turn {value}");
        drop((one, two));
        assert_eq!(descriptors(), 2, "the NIC's own");
        areas.iter().for_each(|area| ranks[1].attached.nic().deregister(&area.handle).expect("its own"));
        assert_eq!(descriptors(), 0);
        drop(areas);
    }
    let last = Area::in_file(&ranks[1], &file(), 0);
    assert_eq!(put(&last), Status::Ok);
}
