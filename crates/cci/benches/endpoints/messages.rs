//! Messages: to a program that polls, and to one that sleeps.

use crate::{Bench, End, pair, pin};
use gasworks_cci::endpoint::{Event, SendFlags};
use gasworks_os::datagram::{DatagramSocket, Sent};
use gasworks_sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::hint::spin_loop;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

/// A line of cache, with a payload and a flag.
#[repr(align(128))]
#[derive(Default)]
struct Line {
    payload: AtomicU64,
    flag: AtomicU64,
}

/// Half of what a round trip takes, in nanoseconds.
fn one_way(rounds: usize, mut trip: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (1..=rounds as u64).for_each(&mut trip);
    start.elapsed().as_nanos() as f64 / rounds as f64 / 2.0
}

pub fn measure(bench: &Bench) {
    let rounds = 20_000 / bench.scale;
    for len in [8, 48, 1024, 65_536] {
        let rounds = if len > 1024 { rounds / 10 } else { rounds };
        bench.row(&format!("one way, polling, {len} B"), "a line of 8 B", ("ns", 0.0), 1.2, &mut || {
            [ours(rounds, len, false), lines(rounds)]
        });
    }
    let rounds = 2000 / bench.scale;
    bench.row("one way, sleeping, 8 B", "a FIFO and poll", ("ns", 0.0), 1.1, &mut || {
        [ours(rounds, 8, true), fifos(rounds)]
    });
    bench.row("one way, sleeping, 8 B ", "a datagram socket and poll", ("ns", 0.0), 1.1, &mut || {
        [ours(rounds, 8, true), sockets(rounds)]
    });
    flood(bench);
}

/// The next message of an end, which is given back; its first byte, if it has one.
fn take((end, _): &mut End, sleeps: bool) -> usize {
    loop {
        match end.event().expect("no error") {
            Some(Event::Received(message)) => {
                let len = message.bytes.len();
                end.give_back(message);
                return len;
            }
            Some(other) => panic!("{other:?}"),
            None if sleeps => wait(end.as_fd()),
            None => {}
        }
    }
}

fn wait(fd: BorrowedFd<'_>) {
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::NONE).expect("polled");
}

fn ours(rounds: usize, len: usize, sleeps: bool) -> f64 {
    let (_directory, mut client, mut server) = pair(|config| config.wakes = sleeps);
    let echo = std::thread::spawn(move || {
        pin(1);
        let bytes = vec![1; len];
        for _ in 0..rounds {
            take(&mut server, sleeps);
            server.0.send(server.1, &[&bytes], 0, SendFlags::SILENT).expect("sent");
        }
        server
    });
    pin(0);
    let bytes = vec![2; len];
    let took = one_way(rounds, |_| {
        client.0.send(client.1, &[&bytes], 0, SendFlags::SILENT).expect("sent");
        take(&mut client, sleeps);
    });
    drop(echo.join().expect("the echo"));
    took
}

fn lines(rounds: usize) -> f64 {
    let lines: Arc<[Line; 2]> = Arc::default();
    let there = lines.clone();
    let pass = |line: &Line, number: u64| {
        line.payload.store(number, Relaxed);
        line.flag.store(number, Release);
    };
    let take = |line: &Line, number: u64| {
        while line.flag.load(Acquire) != number {
            spin_loop();
        }
        assert_eq!(line.payload.load(Relaxed), number);
    };
    let echo = std::thread::spawn(move || {
        pin(1);
        for number in 1..=rounds as u64 {
            take(&there[0], number);
            pass(&there[1], number);
        }
    });
    pin(0);
    let took = one_way(rounds, |number| {
        pass(&lines[0], number);
        take(&lines[1], number);
    });
    echo.join().expect("the echo");
    took
}

fn fifos(rounds: usize) -> f64 {
    let [(mut here, mut to_there), (mut there, mut to_here)] =
        [(); 2].map(|()| std::io::pipe().expect("a pipe"));
    let echo = std::thread::spawn(move || {
        pin(1);
        let mut bytes = [0; 8];
        for _ in 0..rounds {
            wait(here.as_fd());
            here.read_exact(&mut bytes).expect("read");
            to_here.write_all(&bytes).expect("written");
        }
    });
    pin(0);
    let mut bytes = [0; 8];
    let took = one_way(rounds, |number| {
        to_there.write_all(&number.to_le_bytes()).expect("written");
        wait(there.as_fd());
        there.read_exact(&mut bytes).expect("read");
    });
    echo.join().expect("the echo");
    took
}

fn sockets(rounds: usize) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = ["here", "there"].map(|name| directory.path().join(name));
    let [here, there] = paths.each_ref().map(|path| DatagramSocket::bind(path).expect("a socket"));
    let pass = |socket: &DatagramSocket, to: &std::path::Path, number: u64| {
        let sent = socket.send_to(to, &number.to_le_bytes(), &[]).expect("sent");
        assert_eq!(sent, Sent::Queued);
    };
    let take = |socket: &DatagramSocket| {
        wait(socket.as_fd());
        socket.receive(&mut [0; 8]).expect("received");
    };
    let to_here = paths[0].clone();
    let echo = std::thread::spawn(move || {
        pin(1);
        for number in 0..rounds as u64 {
            take(&there);
            pass(&there, &to_here, number);
        }
    });
    pin(0);
    let took = one_way(rounds, |number| {
        pass(&here, &paths[1], number);
        take(&here);
    });
    echo.join().expect("the echo");
    took
}

/// Messages one behind the other, and silently.
fn flood(bench: &Bench) {
    let count = 200_000 / bench.scale;
    bench.row("flood, 8 B, one of many", "a line of 8 B, there and back", ("ns", 0.0), 1.0, &mut || {
        let (_directory, mut client, mut server) = pair(|_| {});
        let taker = std::thread::spawn(move || {
            pin(1);
            (0..count).for_each(|_| assert_eq!(take(&mut server, false), 8));
            // The sender learns of the last.
            (0..100).for_each(|_| drop(server.0.event().expect("no error")));
            server
        });
        pin(0);
        let start = Instant::now();
        for _ in 0..count {
            while client.0.send(client.1, &[&[7; 8]], 0, SendFlags::SILENT).is_err() {
                client.0.progress();
            }
        }
        while !taker.is_finished() {
            client.0.progress();
        }
        let took = start.elapsed().as_nanos() as f64 / count as f64;
        drop(taker.join().expect("the taker"));
        [took, 2.0 * lines(count / 10)]
    });
}
