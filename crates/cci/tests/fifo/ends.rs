//! FIFOs that are full or that nobody reads, and what is left behind.
#![allow(unsafe_code)]

use crate::endpoint::{CLIENT, LONG, Pair, SERVER, config, directory, next_of};
use crate::peer::{Peer, message, opened};
use gasworks_cci::datagram::Attribute;
use gasworks_cci::directory::{Liveness, endpoints};
use gasworks_cci::endpoint::{CallError, Endpoint, EndpointConfig, Event, Failure, SendFlags};
use gasworks_cci::header::{ConnectionId, Header, HeaderType};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Fills an endpoint's FIFO with headers that mean nothing there; how many.
fn fill(end: &Endpoint) -> usize {
    let connection = ConnectionId { index: 999, generation: 3 };
    let bytes = Header { of: HeaderType::Send, connection, offset: 0, length: 0 }.encode();
    let mut fifo = opened(&end.uri().directory().join("fifo"), OFlag::O_WRONLY);
    std::iter::repeat_with(|| fifo.write(&bytes)).take_while(Result::is_ok).count()
}

/// What finds no room waits, in order; who sleeps meanwhile looks from time to time, and no more; and nothing is lost.
#[test]
fn a_full_fifo_loses_nothing() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| config.wakes = true);
    assert!(fill(&pair.ends[SERVER]) > 100);
    for number in 0..20u8 {
        pair.send(CLIENT, &[number], number.into());
    }
    let (start, mut woken) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(100) {
        assert!(pair.ends[CLIENT].event().expect("no error").is_none());
        let mut fds = [PollFd::new(pair.ends[CLIENT].as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(60_000u16)).expect("polled"), 1);
        woken += 1;
    }
    assert!(woken <= start.elapsed().as_millis() + 2, "{woken} times");
    let (mut received, mut sent) = (0, 0);
    while received < 20 || sent < 20 {
        match pair.next() {
            (SERVER, Event::Received(message)) => {
                assert_eq!(&*message.bytes, [received]);
                // Its acknowledgement waits as well.
                if received == 7 {
                    fill(&pair.ends[CLIENT]);
                }
                received += 1;
                pair.ends[SERVER].give_back(message);
            }
            (CLIENT, Event::Sent { context, result: Ok(()), .. }) => {
                assert_eq!(context, sent);
                sent += 1;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A connection that is closed while there is no room to say so.
#[test]
fn the_end_is_told_when_there_is_room() {
    let mut pair = Pair::new();
    let [client, server] = pair.ids;
    pair.send(CLIENT, b"x", 0);
    fill(&pair.ends[SERVER]);
    pair.ends[CLIENT].disconnect(client).expect("closed");
    assert_eq!(message(&mut pair.ends[SERVER]), b"x");
    pair.ends[CLIENT].progress();
    let (_, event) = next_of(&mut [&mut pair.ends[SERVER]]);
    assert!(matches!(event, Event::Closed { connection } if connection == server), "{event:?}");
}

/// A peer that reads no more, and whose socket still is there: `EPIPE` says so, and `SIGPIPE`, which would end this process, does not come. What it sent before comes first.
#[test]
fn a_peer_that_does_not_read_is_gone() {
    // SAFETY: no handler is installed; tests/fifo has no other test in this process that minds.
    let before = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }.expect("set");
    for sends in [true, false] {
        let (_base, mut end, mut peer) = Peer::new(|_| {});
        for number in 0..6u8 {
            peer.send(number.into(), &[number]);
        }
        drop(peer.fifo.take());
        if sends {
            end.send(peer.id, &[b"nobody"], 5, SendFlags::empty()).expect("it is not known yet");
        }
        // Else the acknowledgements tell.
        let mut failed = false;
        let mut received = 0;
        loop {
            match next_of(&mut [&mut end]).1 {
                Event::Received(message) => {
                    assert_eq!(&*message.bytes, [received]);
                    received += 1;
                    end.give_back(message);
                }
                Event::Sent { context: 5, result: Err(Failure::Disconnected), .. } => failed = true,
                Event::Closed { connection } => break assert_eq!(connection, peer.id),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((received, failed), (6, sends));
        let sent = end.send(peer.id, &[b"x"], 0, SendFlags::empty());
        assert!(matches!(sent, Err(CallError::Disconnected)));
        end.disconnect(peer.id).expect("closed");
        assert_eq!(end.connections(), 0);
    }
    // SAFETY: no handler of this program is put back, but what the runtime had chosen: to ignore it.
    unsafe { signal(Signal::SIGPIPE, before) }.expect("set");
}

/// A process that is killed leaves files, until somebody looks for what the dead have left; its peers are told.
#[test]
fn what_a_killed_process_leaves_is_found_and_removed() {
    let directory = directory();
    let base = directory.path().to_str().expect("text");
    let service = Some((88, 1));
    let settings = EndpointConfig { service, ..config(&directory) };
    // SAFETY: the child makes an endpoint and uses nothing that other threads of this process may have locked but the allocator, which is made for that.
    let child = match unsafe { fork() }.expect("a process") {
        ForkResult::Child => {
            let mut end = Endpoint::create(settings).expect("an endpoint");
            loop {
                if let Ok(Some(Event::Requested(request))) = end.event() {
                    let id = end.accept(request.id, 0).expect("accepted");
                    end.send(id, &[b"last words"], 0, SendFlags::SILENT).expect("sent");
                }
            }
        }
        ForkResult::Parent { child } => child,
    };
    let place = directory.path().join("88/1");
    let start = Instant::now();
    while !place.join("fifo").exists() {
        assert!(start.elapsed() < LONG);
        std::thread::yield_now();
    }
    let mut end = Endpoint::create(config(&directory)).expect("an endpoint");
    let uri = format!("sm://{}", place.display());
    let id = end.connect(&uri, b"", Attribute::ReliableOrdered, 1, None).expect("asked");
    let (_, event) = next_of(&mut [&mut end]);
    assert!(matches!(event, Event::Connected { result: Ok(()), .. }), "{event:?}");
    assert_eq!(message(&mut end), b"last words");
    kill(child, Signal::SIGKILL).expect("killed");
    waitpid(child, None).expect("it has ended");
    let (_, event) = next_of(&mut [&mut end]);
    assert!(matches!(event, Event::Closed { connection } if connection == id), "{event:?}");
    let names = ["sock", "fifo", "msgs"];
    assert!(names.iter().all(|name| place.join(name).exists()));
    let found = endpoints(base, true).expect("listed");
    assert!(found.iter().any(|found| found.uri.pid() == 88 && found.liveness == Liveness::Dead));
    assert!(!place.exists() && !directory.path().join("88").exists());
    drop(end);
    assert_eq!(std::fs::read_dir(base).expect("it is there").count(), 0);
}

/// Lines of closed connections are free again, whatever the peers did.
#[test]
fn connections_that_come_and_go_leave_no_lines_taken() {
    let mut pair = Pair::new();
    let uri = pair.ends[SERVER].uri().to_string();
    let large = vec![5; 65_536];
    // Each leaves eight messages that nobody takes: the buffer has room for eight such.
    for round in 0..40 {
        let [client, server] = &mut pair.ends;
        let id = client.connect(&uri, b"", Attribute::ReliableOrdered, round, None).expect("asked");
        let other = loop {
            match next_of(&mut [client, server]).1 {
                Event::Requested(request) => drop(server.accept(request.id, round).expect("accepted")),
                Event::Accepted { connection, result: Ok(()), .. } => break connection,
                Event::Connected { result: Ok(()), .. } | Event::Sent { .. } => {}
                other => panic!("{other:?}"),
            }
        };
        for _ in 0..8 {
            client.send(id, &[&large], round, SendFlags::empty()).expect("sent");
        }
        client.disconnect(id).expect("closed");
        server.disconnect(other).expect("closed");
    }
    pair.send(CLIENT, &large, 1000);
    loop {
        match pair.next() {
            (SERVER, Event::Received(message)) => break assert_eq!(*message.bytes, *large),
            (_, Event::Sent { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
