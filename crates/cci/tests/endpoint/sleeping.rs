//! Programs that sleep until there is something to do, and peers that are silent.

use super::*;
use gasworks_cci::endpoint::{RmaKind, RmaRights, RmaWays};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;

/// The next event of an endpoint whose thread sleeps on its descriptor meanwhile, and how often it was woken for nothing.
fn sleep_until(end: &mut Endpoint) -> (Event, u32) {
    let mut woken = 0;
    loop {
        if let Some(event) = end.event().expect("no error") {
            return (event, woken);
        }
        let mut fds = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(60_000u16)).expect("polled"), 1, "it sleeps on");
        woken += 1;
    }
}

/// Whether an endpoint's descriptor becomes readable within a time.
fn is_readable(end: &Endpoint, time: u16) -> bool {
    poll(&mut [PollFd::new(end.as_fd(), PollFlags::POLLIN)], PollTimeout::from(time)).expect("polled") == 1
}

fn wakes(config: &mut EndpointConfig) {
    config.wakes = true;
}

/// Each side in a thread of its own, which sleeps whenever it has nothing to do.
#[test]
fn messages_wake_who_sleeps() {
    const ROUNDS: u32 = 2000;
    let Pair { ends: [mut client, mut server], ids, _directory } =
        Pair::with(Attribute::ReliableOrdered, wakes);
    let echo = std::thread::spawn(move || {
        let mut received = 0;
        while received < ROUNDS {
            match sleep_until(&mut server).0 {
                Event::Received(message) => {
                    received += 1;
                    let sent = server.send(message.connection, &[&message.bytes], 0, SendFlags::SILENT);
                    sent.expect("sent");
                    server.give_back(message);
                }
                other => panic!("{other:?}"),
            }
        }
        server
    });
    for round in 0..ROUNDS {
        client.send(ids[CLIENT], &[&round.to_le_bytes()], 0, SendFlags::SILENT).expect("sent");
        let (event, _) = sleep_until(&mut client);
        let Event::Received(message) = event else { panic!("{event:?}") };
        assert_eq!(&*message.bytes, round.to_le_bytes());
        client.give_back(message);
    }
    drop(echo.join().expect("the echo"));
}

/// Who sleeps until what it sent was taken, and what waits was sent, is woken for it.
#[test]
fn acknowledgements_wake_who_sleeps() {
    let Pair { ends: [mut client, mut server], ids, _directory } =
        Pair::with(Attribute::ReliableOrdered, wakes);
    for context in 0..100 {
        client.send(ids[CLIENT], &[&[7; 5000]], context, SendFlags::empty()).expect("sent");
    }
    let taker = std::thread::spawn(move || {
        for _ in 0..100 {
            let (Event::Received(message), _) = sleep_until(&mut server) else { panic!("a message") };
            server.give_back(message);
            std::thread::sleep(Duration::from_millis(1));
        }
        // The last are acknowledged by a look that finds nothing.
        assert!(server.event().expect("no error").is_none());
        server
    });
    for wanted in 0..100 {
        let (event, _) = sleep_until(&mut client);
        assert!(
            matches!(event, Event::Sent { context, result: Ok(()), .. } if context == wanted),
            "{event:?}"
        );
    }
    drop(taker.join().expect("the taker"));
}

#[test]
fn timers_wake_who_sleeps() {
    let directory = directory();
    let mut client =
        Endpoint::create(EndpointConfig { wakes: true, ..config(&directory) }).expect("an endpoint");
    let server = Endpoint::create(config(&directory)).expect("an endpoint");
    let timeout = Some(Duration::from_millis(100));
    client.connect(&server.uri().to_string(), &[], Attribute::ReliableOrdered, 1, timeout).expect("asked");
    let (event, woken) = sleep_until(&mut client);
    assert!(matches!(event, Event::Connected { result: Err(Failure::TimedOut), .. }), "{event:?}");
    assert!(woken < 50, "{woken} times for nothing");
}

/// An endpoint with a connection and nothing to do is seldom woken.
#[test]
fn nobody_is_woken_for_nothing() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, wakes);
    let start = Instant::now();
    let mut woken = 0;
    while start.elapsed() < Duration::from_millis(500) {
        assert!(pair.ends[SERVER].event().expect("no error").is_none());
        let mut fds = [PollFd::new(pair.ends[SERVER].as_fd(), PollFlags::POLLIN)];
        woken += poll(&mut fds, PollTimeout::from(100u16)).expect("polled");
    }
    assert!(woken <= 3, "{woken} times");
}

#[test]
fn a_peer_of_which_nothing_is_heard_is_told_of_once() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| {
        config.keepalive = Some(Duration::from_millis(100));
    });
    // As long as both look, each hears of the other.
    let [client, server] = &mut pair.ends;
    nothing_of(&mut [client, server], Duration::from_millis(400));
    let (_, event) = next_of(&mut [&mut pair.ends[CLIENT]]);
    assert!(matches!(event, Event::Silent { connection } if connection == pair.ids[CLIENT]), "{event:?}");
    nothing_of(&mut [&mut pair.ends[CLIENT]], Duration::from_millis(300));
    assert_eq!(pair.ends[CLIENT].connection_keepalive(pair.ids[CLIENT]).expect("it is there"), None);
    // The connection was not closed.
    pair.send(CLIENT, b"x", 5);
    loop {
        match pair.next() {
            (SERVER, Event::Received(message)) => break assert_eq!(&*message.bytes, b"x"),
            (SERVER, Event::Silent { .. }) | (CLIENT, Event::Sent { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn waiting_ends_with_an_event_or_with_the_time() {
    for wakes in [false, true] {
        let mut pair = Pair::with(Attribute::ReliableOrdered, |config| config.wakes = wakes);
        let start = Instant::now();
        pair.ends[SERVER].wait(Some(Duration::from_millis(30)), |_| false).expect("no error");
        assert!(start.elapsed() >= Duration::from_millis(30));
        pair.send(CLIENT, b"x", 0);
        pair.ends[SERVER].wait(None, |_| false).expect("no error");
        assert!(matches!(pair.ends[SERVER].event(), Ok(Some(Event::Received(_)))));
    }
}

/// Fragments of RMA are no events. Some come in the look that an endpoint has before it sleeps, and what comes next wakes it all the same.
#[test]
fn fragments_wake_who_sleeps() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| {
        config.wakes = true;
        config.ways = RmaWays { mapped: false, by_system: false };
    });
    let [here, there] =
        pair.ends.each_mut().map(|end| end.allocate(1 << 20, RmaRights::all()).expect("memory").0);
    // What a program does that is woken: how many operations are over.
    let turn = |end: &mut Endpoint| {
        let mut over = 0;
        loop {
            match end.event().expect("no error") {
                Some(Event::Sent { result: Ok(()), .. }) => over += 1,
                Some(other) => panic!("{other:?}"),
                None if is_readable(end, 5) => {}
                None => return over,
            }
        }
    };
    assert_eq!(pair.ends.each_mut().map(turn), [0, 0]);
    let id = pair.ids[CLIENT];
    for context in 0..20 {
        let [client, server] = &mut pair.ends;
        let (from, to, len) = ((here, 0), (there, 0), 8 * 65_472);
        client.rma(id, RmaKind::Write, from, to, len, None, context, SendFlags::empty()).expect("begun");
        assert!(is_readable(server, 100), "nobody has woken the target of transfer {context}");
        assert_eq!(turn(server), 0);
        assert!(is_readable(client, 100), "nobody has woken the initiator of transfer {context}");
        assert_eq!(turn(client), 1, "transfer {context} is not over, and both sleep");
    }
}

/// A connection that is closed, and that the program has not given up, wants no signs of life: nobody is told, and the clock goes on.
#[test]
fn a_closed_connection_is_not_waited_for() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| {
        config.keepalive = Some(Duration::from_millis(20));
        config.retransmit = Duration::ZERO;
    });
    let [client, server] = pair.ids;
    pair.ends[CLIENT].disconnect(client).expect("closed");
    let (_, event) = next_of(&mut [&mut pair.ends[SERVER]]);
    assert!(matches!(event, Event::Closed { connection } if connection == server), "{event:?}");
    nothing_of(&mut [&mut pair.ends[SERVER]], Duration::from_millis(100));
}
