//! The transport between two processes pinned to two cores: round trips, floods, the barrier.
//!
//! `cargo bench -p gasworks-pshm --bench latency [-- BLOCKS]` prints the median of the blocks and a 95 % interval of
//! the median, in nanoseconds. What `core` adds (heads, credits, handlers) is not in it. The raw rows are what the
//! machine does in the same blocks with a few lines that both processes write without any protocol.
//!
//! # Invariants
//! - latency.1: there is one thread when the process forks, and the child runs only the measurement.
//! - latency.2: the raw lines are mapped before the fork, for ever, and touched through atomics only.
#![allow(unsafe_code)]

use gasworks_bootstrap::{Bootstrap, Together};
use gasworks_core::{Class, Name, SharedBarrier, Wire};
use gasworks_pshm::{Config, Memory, Opened, open};
use gasworks_sync::atomic::{AtomicU64, Ordering};
use gasworks_sync::{Mode, Par, Seq};
use gasworks_testkit::stats::shown;
use std::time::Instant;

const TRIPS: usize = 2_000;
const FLOOD: usize = 20_000;
const SIZES: [usize; 5] = [0, 64, 512, 4096, 65536];
/// Messages that may be out, and how many are taken before a credit message returns them.
const WINDOWS: [(usize, usize); 2] = [(12, 4), (64, 16)];

fn send<M: Mode>(wire: &impl Wire<M>, to: u32, class: Class, bytes: &[u8]) {
    let room = loop {
        if let Ok(room) = wire.reserve(to, class, bytes.len()) {
            break room;
        }
    };
    room.payload().write(bytes);
    wire.commit(room, &[7; 40]).expect("sent");
}

/// A request from rank 0, replied to with as much from inside the sink.
fn round_trips<M: Mode>(wire: &impl Wire<M>, me: u32, bytes: &[u8]) -> f64 {
    let mut buffer = vec![0; bytes.len()];
    let start = Instant::now();
    for _ in 0..TRIPS {
        if me == 0 {
            send(wire, 1, Class::Request, bytes);
        }
        let sink = &mut |message: gasworks_core::Arrived<'_>| {
            message.payload.read(&mut buffer);
            if me == 1 {
                send(wire, 0, Class::Reply, &buffer);
            }
        };
        while wire.poll(1, sink).expect("a healthy queue") == 0 {}
    }
    assert!(buffer == bytes, "bytes were lost");
    start.elapsed().as_nanos() as f64 / TRIPS as f64
}

fn flood<M: Mode>(wire: &impl Wire<M>, me: u32, bytes: &[u8], (window, batch): (usize, usize)) -> f64 {
    let mut buffer = vec![0; bytes.len()];
    let start = Instant::now();
    let (mut credits, mut taken, mut returned) = (window, 0, 0);
    if me == 0 {
        for _ in 0..FLOOD {
            while credits == 0 {
                credits += batch * wire.poll(16, &mut |_| ()).expect("a healthy queue");
            }
            send(wire, 1, Class::Request, bytes);
            credits -= 1;
        }
        while credits < window {
            credits += batch * wire.poll(16, &mut |_| ()).expect("a healthy queue");
        }
    } else {
        while taken < FLOOD {
            let sink = &mut |message: gasworks_core::Arrived<'_>| {
                message.payload.read(&mut buffer);
                taken += 1;
                if taken - returned == batch {
                    send(wire, 0, Class::Credit, &[]);
                    returned += batch;
                }
            };
            wire.poll(16, sink).expect("a healthy queue");
        }
        assert!(buffer == bytes, "bytes were lost");
    }
    start.elapsed().as_nanos() as f64 / FLOOD as f64
}

/// A line that both processes have mapped.
#[repr(C, align(256))]
struct Line(AtomicU64);

fn raw_lines() -> &'static [Line] {
    const LINES: usize = 16;
    let (len, protection) = (LINES * size_of::<Line>(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: the address is null and not fixed, so the kernel takes one where nothing is mapped; no file is named.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
    assert!(at != libc::MAP_FAILED, "no memory: {}", std::io::Error::last_os_error());
    // SAFETY: latency.2: the mapping has room for `LINES` lines, begins at a page, and stays; zeroed pages are zero counters.
    unsafe { std::slice::from_raw_parts(at.cast(), LINES) }
}

/// What the machine does: a line passed to and fro, and three barriers of two.
fn raw(lines: &[Line], me: u32, phase: &mut u64, note: &mut impl FnMut(&str, f64)) {
    let await_line = |line: &Line, phase: u64| {
        while line.0.load(Ordering::Acquire) < phase {
            gasworks_sync::spin();
        }
    };
    let (mine, theirs) = (me as usize, 1 - me as usize);
    let mut timed = |name: &str, turn: &mut dyn FnMut(u64)| {
        let start = Instant::now();
        for _ in 0..TRIPS {
            *phase += 1;
            turn(*phase);
        }
        note(name, start.elapsed().as_nanos() as f64 / TRIPS as f64);
    };
    timed("raw line, to and fro", &mut |phase| {
        if me == 0 {
            lines[2].0.store(phase, Ordering::Release);
        } else {
            await_line(&lines[2], phase);
            lines[3].0.store(phase, Ordering::Release);
        }
        await_line(&lines[3], phase);
    });
    timed("raw barrier, flags", &mut |phase| {
        lines[mine].0.store(phase, Ordering::Release);
        await_line(&lines[theirs], phase);
    });
    timed("raw barrier, flags and fence", &mut |phase| {
        lines[mine].0.store(phase, Ordering::Release);
        gasworks_sync::fence(Ordering::SeqCst);
        await_line(&lines[theirs], phase);
    });
    let mut target = lines[4].0.load(Ordering::Relaxed);
    target -= target % 2;
    timed("raw barrier, counter", &mut |_| {
        lines[4].0.fetch_add(1, Ordering::AcqRel);
        target += 2;
        await_line(&lines[4], target);
    });
}

fn measure<M: Mode>(two: &Together, lines: &[Line], blocks: usize, rows: &mut Vec<(String, Vec<f64>)>) {
    let config = Config { memory: Memory::of(1 << 20), depth: 64, total: 64, volume: 4 << 20 };
    let Opened { wire, barrier, .. } = open::<M>(two, &config).expect("open");
    let pass = || {
        barrier.arrive(Name::Any);
        while barrier.done().is_none() {
            gasworks_sync::spin();
        }
    };
    let mut note =
        |block: usize, row: String, value: f64| match rows.iter_mut().find(|(name, _)| *name == row) {
            _ if block == 0 => {} // the warm-up
            Some((_, values)) => values.push(value),
            None => rows.push((row, vec![value])),
        };
    let mut phase = lines[two.rank() as usize].0.load(Ordering::Relaxed);
    for block in 0..=blocks {
        pass();
        raw(lines, two.rank(), &mut phase, &mut |name, value| {
            note(block, format!("{name} ({} run)", M::NAME), value);
        });
        for size in SIZES {
            pass();
            let bytes = vec![block as u8; size];
            note(block, format!("{} round trip, {size} B", M::NAME), round_trips(&wire, two.rank(), &bytes));
            for window in WINDOWS {
                pass();
                let row = format!("{} flood, {size} B, {} out", M::NAME, window.0);
                note(block, row, flood(&wire, two.rank(), &bytes, window));
            }
        }
        let start = Instant::now();
        (0..TRIPS).for_each(|_| pass());
        note(block, format!("{} barrier", M::NAME), start.elapsed().as_nanos() as f64 / TRIPS as f64);
        let start = Instant::now();
        (0..TRIPS).for_each(|_| assert_eq!(wire.poll(1, &mut |_| ()), Ok(0)));
        note(block, format!("{} empty poll", M::NAME), start.elapsed().as_nanos() as f64 / TRIPS as f64);
    }
    pass();
}

fn main() {
    let blocks = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(25);
    let mut ranks = Together::ranks(2).expect("a job");
    let lines = raw_lines();
    // SAFETY: latency.1: no thread was started before this, and the child runs the measurement and ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no second process: {}", std::io::Error::last_os_error());
    let me = u32::from(child == 0);
    // SAFETY: each call is given numbers or a pointer to `set` or `priority`, which are of this function and of which zeros are values.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(me as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        let priority = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(120);
    }
    let two = ranks.swap_remove(me as usize);
    let mut rows = Vec::new();
    measure::<Seq>(&two, lines, blocks, &mut rows);
    measure::<Par>(&two, lines, blocks, &mut rows);
    if me == 1 {
        // SAFETY: the call takes a number and does not return, so the child runs nothing of what the parent runs at its end.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to `status`, of this function, and the call ends before it goes.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the second process failed");
    println!("{blocks} blocks; median [95 % interval of the median], ns");
    for (row, values) in &rows {
        println!("{row:30} {:>28}", shown(values, 1));
    }
}
