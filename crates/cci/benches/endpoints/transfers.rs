//! RMA by each of its ways.

use crate::{Bench, End, pair, pin};
use gasworks_cci::endpoint::{Event, RmaHandle, RmaKind, RmaRights, RmaWays, SendFlags};
use gasworks_os::remote::Remote;
use gasworks_sync::RawSlice;
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Instant;

/// Nanoseconds of one of many.
fn each(count: usize, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| call());
    start.elapsed().as_nanos() as f64 / count as f64
}

fn register(end: &mut End, len: usize) -> (RmaHandle, RawSlice) {
    let memory = vec![1u8; len].leak();
    let raw = RawSlice::new(memory.as_mut_ptr(), len);
    // SAFETY: leaked memory of this program's, which is used by transfers alone (registration.1 of gasworks_cci).
    let handle = unsafe { end.0.register(raw, RmaRights::all()) }.expect("registered");
    (handle, raw)
}

fn write(client: &mut End, here: RmaHandle, there: RmaHandle, len: usize) {
    let (connection, flags) = (client.1, SendFlags::empty());
    let begun = client.0.rma(connection, RmaKind::Write, (here, 0), (there, 0), len as u64, None, 0, flags);
    begun.expect("begun");
    loop {
        match client.0.event().expect("no error") {
            Some(Event::Sent { result: Ok(()), .. }) => return,
            None => {}
            other => panic!("{other:?}"),
        }
    }
}

pub fn measure(bench: &Bench) {
    for (len, count) in [(8, 20_000), (4096, 20_000), (1 << 20, 200)] {
        let count = count / bench.scale;
        let gigabytes = if len < 4096 { ("ns", 0.0) } else { ("GB/s", len as f64) };
        bench.row(
            &format!("write by the system, {len} B"),
            "process_vm_writev",
            gigabytes,
            1.05,
            &mut || {
                let ways = RmaWays { mapped: false, by_system: true };
                let (_directory, mut client, mut server) = pair(|config| config.ways = ways);
                let ((here, from), (there, to)) = (register(&mut client, len), register(&mut server, len));
                pin(0);
                let ours = each(count, || write(&mut client, here, there, len));
                let remote = Remote::open(std::process::id() as i32).expect("this process");
                let (to, from) = (to.as_ptr().addr() as u64, from.as_ptr().addr() as u64);
                // SAFETY: both are leaked memory of this program's, to which nobody has a reference (remote.2 of gasworks_os).
                let plain =
                    each(count, || unsafe { remote.write_from(to, from, len as u64) }.expect("written"));
                [ours, plain]
            },
        );
        bench.row(&format!("write by mapping, {len} B"), "memcpy", gigabytes, 1.05, &mut || {
            let (_directory, mut client, mut server) = pair(|_| {});
            let (here, from) = client.0.allocate(len, RmaRights::empty()).expect("memory");
            let (there, to) = server.0.allocate(len, RmaRights::all()).expect("memory");
            pin(0);
            // The first asks for the file.
            write(&mut client, here, there, len);
            for _ in 0..5000 {
                assert!(
                    server.0.event().expect("no error").is_none()
                        && client.0.event().expect("no error").is_none()
                );
            }
            let ours = each(count, || write(&mut client, here, there, len));
            let plain = each(count, || from.bytes().copy_to(to.bytes()));
            [ours, plain]
        });
    }
    let len = 1 << 22;
    bench.row("write by fragments, 4 MiB", "memcpy", ("GB/s", len as f64), 0.0, &mut || {
        let ways = RmaWays { mapped: false, by_system: false };
        let (_directory, mut client, mut server) = pair(|config| config.ways = ways);
        let ((here, from), (there, to)) = (register(&mut client, len), register(&mut server, len));
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let target = std::thread::spawn(move || {
            pin(1);
            while !over.load(Relaxed) {
                assert!(server.0.event().expect("no error").is_none());
            }
            server
        });
        pin(0);
        let count = (40 / bench.scale).max(2);
        let ours = each(count, || write(&mut client, here, there, len));
        is_over.store(true, Relaxed);
        drop(target.join().expect("the target"));
        // SAFETY: leaked memory of this program's, without references (registration.1 of gasworks_cci).
        let (from, to) = unsafe { (from.borrow(), to.borrow()) };
        [ours, each(count, || from.copy_to(to))]
    });
}
