//! What a transaction of the software NIC takes between two pinned processes in the plain mood, from its post to its event.
//!
//! Beside it, in the same turns, the one call of the system under it: that much of it is not ours.
#![allow(unsafe_code)]
// A measurement outside the building, which bypasses the floors on purpose.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use gasworks_gni_sys::*;
use gasworks_os::remote::Remote;
use gasworks_os::{affinity, maps, memfd};
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::near::{Attached, Name, Wire, attach};
use gasworks_ugni_sim::nic::{Bytes, Cq, Endpoint, Mood, Next, Nic};
use gasworks_ugni_sim::post::{Rules, Way};
use gasworks_ugni_sim::process::Process;

const TURNS: usize = 101;
const WARM_UP: usize = 5;
const BYTES: usize = 1 << 20;
const ADDRESS: u32 = 1;

/// Memory that a NIC may write: of the process alone, and of a memory file.
fn buffers() -> [u64; 2] {
    let cells: Vec<_> = (0..BYTES).map(|_| std::cell::UnsafeCell::new(7u8)).collect();
    // The file stays open, so that the NIC finds it.
    let file = Box::leak(Box::new(memfd::create("bench", BYTES).expect("a file")));
    let mapping = Box::leak(Box::new(file.map().expect("mapped")));
    [cells.leak().as_ptr() as u64, mapping.as_ptr() as u64]
}

fn nic(cookie: u32, instance: u32) -> Attached {
    let rules = Rules { chip: Chip::Aries, modes: GNI_CDM_MODE_DUAL_EVENTS };
    let name = Name { cookie, ptag: 1, address: ADDRESS, instance };
    // SAFETY: process.1 and process.2 of `gasworks_ugni_sim`: what is registered and posted are leaked buffers without references.
    let memory = unsafe { Process::own() }.expect("this process");
    attach(name, rules, Arc::new(memory), (Mood::Plain, Arc::default()), &Wire::default()).expect("a NIC")
}

/// The target: says where its memory is, and stays until its input ends.
fn target(cookie: u32) {
    affinity::bind(affinity::allowed().expect("processors")[1]).expect("pinned");
    let nic = nic(cookie, 1);
    for buffer in buffers() {
        let handle = register(nic.nic(), buffer);
        print!("{buffer} {} {} ", handle.qword1, handle.qword2);
    }
    println!();
    let _ = std::io::stdin().read(&mut [0]);
}

fn register(nic: &Nic, first: u64) -> gni_mem_handle_t {
    let (len, lies) = (BYTES as u64, maps::look(first, BYTES as u64).lies);
    nic.register(Bytes { first, len, lies }, None, 0).expect("registered")
}

struct Poster {
    endpoint: Endpoint,
    events: Arc<Cq>,
}

impl Poster {
    fn run(&self, descriptor: &gni_post_descriptor_t, way: Way) {
        self.endpoint.post(descriptor, way, 1, None).expect("posted");
        loop {
            if let Next::Event(event) = self.events.next() {
                let (_, status) = self.events.completed(event.word).expect("a transaction");
                assert_eq!(status as u8, 0);
                return;
            }
        }
    }
}

/// Nanoseconds of one of so many.
fn time(repeats: usize, mut act: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..repeats).for_each(|_| act());
    begun.elapsed().as_nanos() as f64 / repeats as f64
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, cookie, ..] = &words[..]
        && word == "target"
    {
        return target(cookie.parse().expect("a number"));
    }
    let cookie = std::process::id();
    let mut child = Command::new(&words[0]);
    child.args(["target", &cookie.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().expect("a process");
    affinity::bind(affinity::allowed().expect("processors")[0]).expect("pinned");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let words: Vec<u64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let there: Vec<_> = words
        .chunks_exact(3)
        .map(|place| (place[0], gni_mem_handle_t { qword1: place[1], qword2: place[2] }))
        .collect();
    let nic = nic(cookie, 0);
    let here = buffers().map(|here| (here, register(nic.nic(), here)));
    let events = nic.nic().queue(64).expect("a queue");
    let endpoint = nic.nic().endpoint(Some(&events)).expect("an endpoint");
    endpoint.bind(ADDRESS, 1).expect("bound");
    let poster = Poster { endpoint, events };
    let remote = Remote::open(child.id() as i32).expect("the target");
    let kinds = [
        // Without bytes the system is not called: what is ours.
        ("FMA put", GNI_POST_FMA_PUT, Way::Fma, 0, 2000),
        ("FMA put", GNI_POST_FMA_PUT, Way::Fma, 8, 2000),
        ("FMA put", GNI_POST_FMA_PUT, Way::Fma, 1024, 2000),
        ("FMA get", GNI_POST_FMA_GET, Way::Fma, 8, 2000),
        ("FMA atomic", GNI_POST_AMO, Way::Fma, 8, 1000),
        ("BTE put", GNI_POST_RDMA_PUT, Way::Bte, 1 << 20, 10),
        ("BTE get", GNI_POST_RDMA_GET, Way::Bte, 1 << 20, 10),
    ];
    println!(
        "| what | memory | bytes | with its event | the system's call | ratio |\n|---|---|---|---|---|---|"
    );
    let all = kinds
        .iter()
        .flat_map(|kind| ["private", "shared"].into_iter().enumerate().map(move |memory| (kind, memory)));
    for (&(what, kind, way, length, repeats), (at, memory)) in all {
        let ((here, own), (there, theirs)) = (here[at], there[at]);
        let descriptor = gni_post_descriptor_t {
            r#type: kind,
            cq_mode: GNI_CQMODE_GLOBAL_EVENT,
            amo_cmd: GNI_FMA_ATOMIC_FADD,
            local_addr: here,
            local_mem_hndl: own,
            remote_addr: there,
            remote_mem_hndl: theirs,
            length,
            ..Default::default()
        };
        let turn = || {
            let ours = time(repeats, || poster.run(black_box(&descriptor), way));
            let system = time(repeats, || {
                // SAFETY: remote.2 of `gasworks_os`: the target has leaked and registered the bytes at `there`, for others to write.
                black_box(unsafe { remote.write_from(black_box(there), here, length) }).expect("written")
            });
            (ours, system)
        };
        for _ in 0..WARM_UP {
            let _ = turn();
        }
        let mut turns: Vec<(f64, f64)> = (0..TURNS).map(|_| turn()).collect();
        let mut median = |key: fn(&(f64, f64)) -> f64| {
            turns.sort_by(|a, b| key(a).total_cmp(&key(b)));
            key(&turns[TURNS / 2])
        };
        let (ours, system, ratio) = (median(|t| t.0), median(|t| t.1), median(|t| t.0 / t.1));
        let speed = |ns: f64| match length >= 1 << 20 {
            true => format!("{:.1} us ({:.1} GB/s)", ns / 1e3, length as f64 / ns),
            false => format!("{:.2} us", ns / 1e3),
        };
        match length {
            0 => println!("| {what} | {memory} | 0 | {} | | |", speed(ours)),
            _ => println!(
                "| {what} | {memory} | {length} | {} | {} | {ratio:.2} |",
                speed(ours),
                speed(system)
            ),
        }
    }
    drop(child.stdin.take());
    child.wait().expect("its end");
    std::io::stdout().flush().expect("written");
}
