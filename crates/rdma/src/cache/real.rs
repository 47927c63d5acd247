//! The cache and the system's watching: memory that goes is not found again, whoever takes it away and however.
//!
//! # Invariants
//! - real.1: a mapping belongs to the test that made it, which has no reference to its bytes.
//! - real.2: what the kernel is told by its address lives through the call, which copies it.

use super::tests::Counting;
use super::watch::Monitor;
use super::*;
use crate::stale::pair;
use gasworks_os::userfault::Userfault;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::thread;

const LEN: usize = 1 << 18;

/// Whether the kernel admits watching to this thread. If not, then for a reason that kernels and sandboxes have: it has no such thing, not
/// all of it, or not for this process. Then [`nothing_is_kept`] is what there is to look at.
pub(crate) fn is_admitted() -> bool {
    let Err(why) = Userfault::open() else { return true };
    let reason = why.cause.raw_os_error();
    let known = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENOENT, libc::EINVAL].map(Some);
    assert!(known.contains(&reason) || why.to_string().contains("no write protection"), "{why}");
    eprintln!("nothing can be watched here: {why}");
    false
}

/// What there is without watching: each transfer has a registration of its own, of its bytes alone, which ends with it.
fn nothing_is_kept() {
    let at = map(0, LEN, 0);
    let mut bench = Bench::new();
    for transfer in 0..3 {
        assert_eq!(bench.touch(at + 10, LEN - 20), (transfer, false));
        let span = Span { start: at + 10, end: at + LEN - 10 };
        assert_eq!(bench.nic.made.borrow()[transfer], (span, false));
        empty(at, page());
        bench.cache.tend(&bench.nic);
    }
    assert_eq!(bench.cache.counts(), Registrations { misses: 3, ..Registrations::default() });
    let watch = &mut bench.cache.watch;
    assert!(watch.is_settled() && watch.next().is_none() && watch.descriptor().is_none());
    assert!(!watch.watch(Span { start: at, end: at + LEN }));
    watch.forget(Span { start: at, end: at + LEN });
    assert_eq!(format!("{watch:?}"), "Refused", "it is not asked again");
    unmap(at, LEN);
}

/// From now on the kernel admits no watching to this thread and those that it starts.
fn refuse_watching() {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    // So many steps are left out if it is that, or if not.
    let jump = |is, jt, jf| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, is, jt, jf);
    let answer = |what| step(libc::BPF_RET | libc::BPF_K, what, 0, 0);
    // `struct seccomp_data`: the call's number, and the lower half of its second argument, in which a request is.
    let low = if cfg!(target_endian = "little") { 0 } else { 4 };
    let mut filter = [
        load(0),
        jump(libc::SYS_userfaultfd as u32, 3, 0),
        jump(libc::SYS_ioctl as u32, 0, 3),
        load(16 + 8 + low),
        jump(libc::_IO(0xAA, 0) as u32, 0, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let number = libc::c_ulong::from;
    // SAFETY: the call is given numbers alone: it looks at no memory of ours.
    let rc = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, number(1u32), number(0u32), number(0u32), number(0u32))
    };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
    let mode = number(libc::SECCOMP_MODE_FILTER);
    // SAFETY: real.2: the program and the filter that it points to are on this stack, and the kernel copies both in the call.
    let rc = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
}

/// Wherever the tests run, whoever may watch there.
#[test]
fn where_watching_is_refused_nothing_is_kept() {
    let thread = thread::spawn(|| {
        refuse_watching();
        assert!(!is_admitted());
        let why = Userfault::open().expect_err("it is refused");
        assert_eq!(why.cause.raw_os_error(), Some(libc::EPERM));
        nothing_is_kept();
    });
    assert!(thread.join().is_ok());
}

fn map(at: usize, len: usize, flags: i32) -> usize {
    try_map(at, len, flags).unwrap_or_else(|| panic!("{}", std::io::Error::last_os_error()))
}

/// Fails where another thread has mapped something meanwhile.
fn try_map(at: usize, len: usize, flags: i32) -> Option<usize> {
    let (flags, may) = (flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: real.1: the kernel takes a free place, or, told by `MAP_FIXED`, pages of the test's own mapping.
    let mapped = unsafe { libc::mmap(std::ptr::without_provenance_mut(at), len, may, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then(|| {
        // SAFETY: real.1: these `len` bytes were mapped just now, to be written, and nobody else knows of them.
        unsafe { mapped.cast::<u8>().write_bytes(1, len) };
        mapped.expose_provenance()
    })
}

fn pointer(at: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(at)
}

fn unmap(at: usize, len: usize) {
    // SAFETY: real.1: these bytes are the test's, which does not use them after this.
    assert_eq!(unsafe { libc::munmap(pointer(at).cast(), len) }, 0);
}

fn empty(at: usize, len: usize) {
    // SAFETY: real.1: these pages are the test's, and nobody relies on what is in them.
    assert_eq!(unsafe { libc::madvise(pointer(at).cast(), len, libc::MADV_DONTNEED) }, 0);
    // SAFETY: real.1: the pages are still mapped, to be written, and the test's.
    unsafe { pointer(at).write_bytes(2, len) };
}

/// Moves it away; where it was nothing is mapped, or nothing is left of it.
fn away(at: usize, more: i32) {
    // SAFETY: real.1: `LEN` bytes at `at` are the test's, and so are those that they replace, which were mapped just now.
    let to =
        unsafe { libc::mremap(pointer(at).cast(), LEN, LEN, libc::MREMAP_MAYMOVE | more, map(0, LEN, 0)) };
    assert_ne!(to, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    unmap(to.addr(), LEN);
}

struct Bench {
    nic: Counting,
    cache: Cache,
}

impl Bench {
    fn new() -> Self {
        let watch = Box::new(System::Unasked);
        Self { nic: Counting::default(), cache: Cache::new(&Tuning::ARIES, true, page(), watch) }
    }

    /// Takes a registration and gives it back: its number, and whether it was there already.
    fn touch(&mut self, at: usize, len: usize) -> (usize, bool) {
        let hits = self.cache.counts().hits;
        let bytes = RawSlice::new(pointer(at), len);
        // SAFETY: the NIC of these tests counts, and looks at no bytes.
        let lease = unsafe { self.cache.take(&self.nic, bytes, Direction::Get) }.expect("registered");
        let number = Counting::number(self.cache.key(&lease).expect("in use"));
        self.cache.give(&self.nic, lease);
        (number, self.cache.counts().hits > hits)
    }

    /// The same until it is kept: not while the thread that is told of changes is still at one.
    fn keep(&mut self, at: usize, len: usize) -> usize {
        for _ in 0..1_000_000 {
            if let (number, true) = self.touch(at, len) {
                return number;
            }
            thread::yield_now();
        }
        panic!("it is never kept");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.cache.close(&self.nic);
    }
}

/// A way to lose memory, and to have other memory in its place; unless another thread was quicker to have some there.
type Change = fn(usize) -> Option<usize>;

const CHANGES: [(&str, Change); 9] = [
    ("unmapped and mapped", |at| {
        unmap(at, LEN);
        try_map(at, LEN, libc::MAP_FIXED_NOREPLACE)
    }),
    ("mapped over", |at| try_map(at, LEN, libc::MAP_FIXED)),
    ("given back", |at| {
        empty(at, LEN);
        Some(at)
    }),
    ("its first page unmapped", |at| {
        unmap(at, page());
        try_map(at, page(), libc::MAP_FIXED_NOREPLACE)
    }),
    ("its last page given back", |at| {
        empty(at + LEN - page(), page());
        Some(at)
    }),
    ("a page in the middle mapped over", |at| try_map(at + LEN / 2, page(), libc::MAP_FIXED)),
    ("unmapped with what is around it", |at| {
        unmap(at - page(), LEN + 2 * page());
        try_map(at - page(), LEN + 2 * page(), libc::MAP_FIXED_NOREPLACE)
    }),
    ("moved away", |at| {
        away(at, libc::MREMAP_FIXED);
        try_map(at, LEN, libc::MAP_FIXED_NOREPLACE)
    }),
    ("its pages moved away", |at| {
        away(at, libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP);
        // SAFETY: real.1: `MREMAP_DONTUNMAP` has left these `LEN` bytes mapped, and they are the test's.
        unsafe { pointer(at).write_bytes(3, LEN) };
        Some(at)
    }),
];

#[test]
fn what_happens_to_memory_ends_its_registration() {
    if !is_admitted() {
        return nothing_is_kept();
    }
    for (name, change) in CHANGES {
        let done = (0..1000).any(|_| is_seen(name, change));
        assert!(done, "{name}: others were always quicker");
    }
}

fn is_seen(name: &str, change: Change) -> bool {
    let page = page();
    let around = map(0, LEN + 2 * page, 0);
    let at = around + page;
    let mut bench = Bench::new();
    let first = bench.keep(at + 10, LEN - 20);
    // Its neighbours' fate is of no interest.
    empty(around, page);
    map(at + LEN, page, libc::MAP_FIXED);
    assert_eq!(bench.keep(at + 10, LEN - 20), first, "{name}");
    if change(at).is_none() {
        return false;
    }
    let (second, found) = bench.touch(at + 10, LEN - 20);
    assert!(second > first && !found, "{name}: registration {second} after {first}");
    // And it is watched as before.
    let third = bench.keep(at + 10, LEN - 20);
    assert!(!bench.nic.made.borrow()[first].1, "{name}: the old one is ended");
    empty(at, page);
    assert!(bench.touch(at + 10, LEN - 20).0 > third, "{name}");
    unmap(around, LEN + 2 * page);
    true
}

/// Nothing of these is told, or not everything that may happen.
#[test]
fn what_is_shared_is_not_kept() {
    let mut bench = Bench::new();
    let shared = gasworks_os::memfd::create("shared", LEN).expect("a file").map().expect("mapped");
    // SAFETY: real.1: `shared` has `LEN` bytes, which stay mapped while it lives, and nobody else has it.
    unsafe { shared.as_ptr().write_bytes(1, LEN) };
    let (own, part) = (map(0, LEN, 0), map(0, LEN, 0));
    // Somebody else watches that one; and where nobody may, nothing is kept.
    let others = is_admitted().then(|| {
        let fault = Userfault::open().expect("it is admitted");
        fault.watch(own, LEN).expect("watched");
        fault
    });
    // The last page of this one is not there.
    // SAFETY: real.1: the last page of what `map` gave here, to which no reference is ever made.
    assert_eq!(unsafe { libc::madvise(pointer(part + LEN - page()).cast(), page(), libc::MADV_DONTNEED) }, 0);
    for at in [shared.as_ptr().addr(), own, part] {
        assert!(!bench.touch(at, LEN).1 && !bench.touch(at, LEN).1);
        assert_eq!((bench.cache.counts().kept, bench.cache.bytes), (0, 0));
    }
    drop(others);
    for at in [own, part] {
        empty(at + LEN - page(), page());
        if is_admitted() {
            bench.keep(at, LEN);
        }
        unmap(at, LEN);
    }
}

/// A process that was forked off has the descriptor too, and so the watching does not end with the engine: but it is of nothing.
#[test]
fn an_ended_cache_watches_nothing() {
    if !is_admitted() {
        return nothing_is_kept();
    }
    let at = map(0, LEN, 0);
    let mut bench = Bench::new();
    bench.keep(at, LEN / 2);
    bench.keep(at + LEN / 4, LEN / 2);
    bench.keep(at + page(), page());
    let copy = bench.cache.watch.descriptor().expect("it watches");
    drop(bench);
    assert!(!copy.is_changing());
    unmap(at, LEN);
}

/// Whether nobody watches some pages any more, although the descriptor is still there.
fn is_free(at: usize, len: usize) -> bool {
    Userfault::open().is_ok_and(|other| other.watch(at, len).is_ok())
}

#[test]
fn what_was_moved_and_what_is_around_a_hole_is_forgotten() {
    if !is_admitted() {
        return nothing_is_kept();
    }
    let (from, at, page) = (map(0, LEN, 0), map(0, LEN, 0), page());
    let mut bench = Bench::new();
    bench.keep(from, LEN);
    bench.keep(at, LEN);
    const MOVE: i32 = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: real.1: `LEN` bytes at `from` are the test's, and so are those that they replace, which were mapped just now.
    let to = unsafe { libc::mremap(pointer(from).cast(), LEN, LEN, MOVE, map(0, LEN, 0)) }.addr();
    // It is emptied, and before that is known something else, which cannot be watched, is in the midst of it.
    let program = std::fs::File::open("/proc/self/exe").expect("a file");
    empty(at, page);
    let (middle, flags) = (pointer(at + LEN / 2).cast(), libc::MAP_FIXED | libc::MAP_PRIVATE);
    // SAFETY: real.1: the page lies in the middle of what `map` gave at `at`, and nobody refers to it.
    let over = unsafe { libc::mmap(middle, page, libc::PROT_READ, flags, program.as_raw_fd(), 0) };
    assert_eq!(over, middle);
    while !bench.cache.watch.is_settled() {
        thread::yield_now();
    }
    bench.cache.tend(&bench.nic);
    let copy = bench.cache.watch.descriptor().expect("it watches");
    assert!(is_free(at, page) && is_free(at + LEN / 2 - page, page) && is_free(at + LEN - page, page));
    assert!(is_free(to, LEN));
    drop((bench, copy));
    unmap(to, LEN);
    unmap(at, LEN);
}

/// While somebody waits for an event to be read, and while it is being read, nothing is settled.
#[test]
fn a_change_under_way_is_known() {
    if !is_admitted() {
        return nothing_is_kept();
    }
    let fault = Userfault::open().expect("it is admitted");
    let (mut words_in, words) = pair(4);
    let reads = fault.try_clone().expect("a descriptor");
    let mut watch = System::Tells(Monitor::unread(fault, words));
    let at = map(0, LEN, 0);
    let span = Span { start: at, end: at + LEN };
    assert!(watch.watch(span) && watch.is_settled() && watch.next().is_none());
    thread::scope(|scope| {
        let changes = scope.spawn(|| unmap(at, LEN));
        while watch.is_settled() {
            thread::yield_now();
        }
        assert!(!changes.is_finished(), "it waits");
        let mut read = 0;
        words_in.enter(|| {
            assert!(!watch.is_settled());
            read += 1;
            (read == 1).then(|| {
                while reads.next().is_none() {}
                Gone::Unmapped(span)
            })
        });
    });
    assert!(watch.is_settled());
    assert_eq!(watch.next(), Some(Gone::Unmapped(span)));
}

/// Threads map, empty and unmap memory, with the cache's lock and without, and use registrations of what they have. Addresses go from
/// one to the other. Registrations are numbered as they are made: one of what a thread has is never older than that.
#[test]
fn threads_find_no_registration_of_what_was_there_before() {
    const ROUNDS: usize = 1500;
    let shared = Mutex::new(Bench::new());
    let made = || shared.lock().expect("no thread panicked").nic.made.borrow().len();
    thread::scope(|scope| {
        for seed in 1..4usize {
            let (shared, made) = (&shared, &made);
            scope.spawn(move || {
                let mut dice = seed;
                let mut own: Vec<(usize, usize)> = Vec::new();
                for _ in 0..ROUNDS {
                    dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let roll = dice >> 33;
                    if own.len() < 3 {
                        let at = map(0, LEN, 0);
                        own.push((at, made()));
                    }
                    let which = roll / 16 % own.len();
                    let (at, since) = own[which];
                    match roll % 16 {
                        0 => {
                            own.swap_remove(which);
                            unmap(at, LEN);
                        }
                        1 => {
                            own.swap_remove(which);
                            let _bench = shared.lock().expect("no thread panicked");
                            unmap(at, LEN);
                        }
                        2 => {
                            empty(at, LEN);
                            own[which].1 = made();
                        }
                        3 => drop(vec![1u8; LEN]),
                        _ => {
                            let mut bench = shared.lock().expect("no thread panicked");
                            let (number, _) = bench.touch(at, LEN);
                            assert!(
                                number >= since,
                                "registration {number}, of what was there before {since}"
                            );
                        }
                    }
                }
                own.into_iter().for_each(|(at, _)| unmap(at, LEN));
            });
        }
    });
    let counts = shared.lock().expect("no thread panicked").cache.counts();
    let found = [counts.hits > 0, counts.stale > 0];
    assert_eq!(found, [is_admitted(); 2], "{counts:?}");
}
