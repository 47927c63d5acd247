//! Messages of connections that are there.

use super::*;
use gasworks_cci::endpoint::CallError;
use std::collections::VecDeque;

const LENGTHS: [usize; 10] = [0, 1, 8, 48, 49, 128, 129, 4000, 65_535, 65_536];

#[test]
fn messages_of_all_lengths_come_both_ways() {
    let mut pair = Pair::new();
    for side in [CLIENT, SERVER] {
        for (context, len) in LENGTHS.into_iter().enumerate() {
            let sent = bytes(context, len);
            pair.send(side, &sent, context as u64);
            let message = pair.message(1 - side);
            assert_eq!((message.connection, &*message.bytes), (pair.ids[1 - side], &sent[..]));
            assert_eq!(message.bytes.as_ptr().addr() % 8, 0);
            pair.ends[1 - side].give_back(message);
            assert_eq!(pair.ends(side, context as u64), Ok(()));
        }
    }
}

#[test]
fn parts_follow_each_other() {
    let mut pair = Pair::new();
    let id = pair.ids[CLIENT];
    for parts in [&[&b"one"[..], b"", b" two"][..], &[], &[&[7; 100], &[8; 100]]] {
        pair.ends[CLIENT].send(id, parts, 0, SendFlags::empty()).expect("sent");
        let message = pair.message(SERVER);
        assert_eq!(&*message.bytes, parts.concat());
    }
}

/// Many more than the ring holds, none of which the peer takes before all were sent: CCI's own implementation ends by a signal at the 65th.
#[test]
fn as_many_messages_as_one_likes_are_under_way() {
    let mut pair = Pair::new();
    for number in 0..300u64 {
        pair.send(CLIENT, &bytes(number as usize, LENGTHS[number as usize % 8]), number);
    }
    let (mut received, mut sent) = (0, 0);
    while received < 300 || sent < 300 {
        match pair.next() {
            (SERVER, Event::Received(message)) => {
                assert_eq!(&*message.bytes, bytes(received, LENGTHS[received % 8]));
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

#[test]
fn what_does_not_fit_is_refused() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| {
        config.max_send = 1000;
        config.send_buffers = 3;
    });
    let id = pair.ids[CLIENT];
    let end = &mut pair.ends[CLIENT];
    assert_eq!(end.max_send(id).expect("it is there"), 1000);
    let error = end.send(id, &[&[0; 999], &[0; 2]], 0, SendFlags::empty()).expect_err("too long").to_string();
    assert_eq!(error, "a message of 1001 bytes; the longest of this connection has 1000");
    for _ in 0..3 {
        end.send(id, &[b"x"], 0, SendFlags::empty()).expect("room");
    }
    assert!(matches!(end.send(id, &[b"x"], 0, SendFlags::empty()), Err(CallError::NoRoom)));
    let nobody = ConnectionId { index: 7, generation: 0 };
    assert!(matches!(end.send(nobody, &[b"x"], 0, SendFlags::empty()), Err(CallError::NoConnection)));
}

/// A program that gives nothing back gets nothing any more, and nothing is lost.
#[test]
fn a_program_that_holds_all_messages_gets_no_more() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| config.receive_buffers = 4);
    for number in 0..12 {
        pair.send(CLIENT, &[number], 0);
    }
    let mut held = Vec::new();
    let start = Instant::now();
    while held.len() < 4 {
        assert!(start.elapsed() < LONG);
        if let Some(Event::Received(message)) = pair.ends[SERVER].event().expect("no error") {
            held.push(message);
        }
    }
    assert!(matches!(pair.ends[SERVER].event(), Err(CallError::NoBuffers)));
    for number in 0..12 {
        if held.is_empty() {
            held.push(pair.message(SERVER));
        }
        let message = held.remove(0);
        assert_eq!(&*message.bytes, [number]);
        pair.ends[SERVER].give_back(message);
    }
}

#[test]
fn silent_and_awaited_messages_make_no_event() {
    let mut pair = Pair::new();
    let id = pair.ids[CLIENT];
    pair.ends[CLIENT].send(id, &[b"silent"], 1, SendFlags::SILENT).expect("sent");
    let awaited = pair.ends[CLIENT].send(id, &[b"awaited"], 2, SendFlags::AWAITED).expect("sent");
    assert_eq!(pair.ends[CLIENT].outcome(awaited), None);
    pair.send(CLIENT, b"told", 3);
    let (mut texts, mut told) = (Vec::new(), None);
    while texts.len() < 3 || told.is_none() {
        match pair.next() {
            (SERVER, Event::Received(message)) => texts.push(message.bytes.to_vec()),
            (CLIENT, Event::Sent { context, result, .. }) => told = Some((context, result)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        (texts, told),
        (vec![b"silent".to_vec(), b"awaited".to_vec(), b"told".to_vec()], Some((3, Ok(()))))
    );
    assert_eq!(pair.ends[CLIENT].outcome(awaited), Some(Ok(())));
    assert_eq!(pair.ends[CLIENT].outcome(awaited), None, "it is told once");
}

#[test]
fn an_unreliable_message_is_sent_when_it_has_left() {
    let mut pair = Pair::with(Attribute::Unreliable, |_| {});
    for number in 0..20 {
        pair.send(CLIENT, &[number], number.into());
        let event = pair.ends[CLIENT].event().expect("no error");
        assert!(matches!(event, Some(Event::Sent { result: Ok(()), .. })), "{event:?}");
    }
    // Those for which there was no room are lost; the others come in some order.
    let mut seen = VecDeque::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(50) {
        if let Some(Event::Received(message)) = pair.ends[SERVER].event().expect("no error") {
            seen.push_back(message.bytes[0]);
            pair.ends[SERVER].give_back(message);
        }
    }
    assert!((4..20).contains(&seen.len()) && seen.iter().is_sorted(), "{seen:?}");
}

#[test]
fn a_message_that_takes_too_long_is_lost() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| {
        config.send_timeout = Some(Duration::from_millis(50));
    });
    for context in 0..10 {
        pair.send(CLIENT, b"x", context);
    }
    for wanted in 0..10 {
        let (_, event) = next_of(&mut [&mut pair.ends[CLIENT]]);
        let Event::Sent { context, result, .. } = event else { panic!("{event:?}") };
        assert_eq!((context, result), (wanted, Err(Failure::TimedOut)));
    }
}

/// Whoever finds that the peer's socket is gone takes what the peer has sent before it is told that the connection is closed.
#[test]
fn what_a_peer_sent_before_it_was_gone_comes_first() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| config.wakes = true);
    for number in 0..6u8 {
        pair.send(CLIENT, &[number], 0);
    }
    // Asleep, so that the server sends a datagram.
    let none = pair.ends[CLIENT].event().expect("no error");
    assert!(none.is_none(), "{none:?}");
    std::fs::remove_file(pair.ends[CLIENT].uri().socket()).expect("its socket");
    pair.send(SERVER, b"x", 1);
    for wanted in 0..6 {
        let (_, event) = next_of(&mut [&mut pair.ends[SERVER]]);
        assert!(matches!(&event, Event::Received(message) if *message.bytes == [wanted]), "{event:?}");
    }
    let failed = next_of(&mut [&mut pair.ends[SERVER]]).1;
    assert!(matches!(failed, Event::Sent { result: Err(Failure::Disconnected), .. }), "{failed:?}");
    assert!(matches!(next_of(&mut [&mut pair.ends[SERVER]]).1, Event::Closed { .. }));
}

/// Two programs that wait for their messages' delivery, each for its own: both get on.
#[test]
fn who_waits_takes_what_comes_meanwhile() {
    let mut pair = Pair::new();
    let [client, server] = pair.ids;
    let one = pair.ends[CLIENT].send(client, &[b"one"], 0, SendFlags::AWAITED).expect("sent");
    let two = pair.ends[SERVER].send(server, &[b"two"], 0, SendFlags::AWAITED).expect("sent");
    let start = Instant::now();
    let mut over = [None; 2];
    while over != [Some(Ok(())); 2] {
        for (side, operation) in [one, two].into_iter().enumerate() {
            pair.ends[side].progress();
            over[side] = over[side].or_else(|| pair.ends[side].outcome(operation));
        }
        assert!(start.elapsed() < LONG);
    }
    for (side, text) in [(SERVER, b"one"), (CLIENT, b"two")] {
        let (_, event) = next_of(&mut [&mut pair.ends[side]]);
        assert!(matches!(&event, Event::Received(message) if *message.bytes == *text), "{event:?}");
    }
}

/// A server with more clients than it looks at directly: all are served, in order each.
#[test]
fn many_clients_are_served() {
    const CLIENTS: usize = 100;
    let directory = directory();
    let mut server = Endpoint::create(config(&directory)).expect("an endpoint");
    let mut client = Endpoint::create(EndpointConfig { send_buffers: 20 * CLIENTS, ..config(&directory) })
        .expect("an endpoint");
    let uri = server.uri().to_string();
    let mut ids = Vec::new();
    for context in 0..CLIENTS {
        ids.push(client.connect(&uri, &[], Attribute::ReliableOrdered, context as u64, None).expect("asked"));
    }
    let (mut connected, mut accepted) = (0, 0);
    while connected < CLIENTS || accepted < CLIENTS {
        match next_of(&mut [&mut client, &mut server]) {
            (_, Event::Requested(request)) => drop(server.accept(request.id, 0).expect("accepted")),
            (_, Event::Connected { result: Ok(()), .. }) => connected += 1,
            (_, Event::Accepted { result: Ok(()), .. }) => accepted += 1,
            other => panic!("{other:?}"),
        }
    }
    for round in 0..20u8 {
        for id in &ids {
            client.send(*id, &[&[round]], 0, SendFlags::SILENT).expect("sent");
        }
    }
    let mut rounds = std::collections::HashMap::new();
    for _ in 0..20 * CLIENTS {
        let (_, event) = next_of(&mut [&mut server, &mut client]);
        let Event::Received(message) = event else { panic!("{event:?}") };
        let round = rounds.entry(message.connection).or_insert(0u8);
        assert_eq!(&*message.bytes, [*round]);
        *round += 1;
        server.give_back(message);
    }
    assert!(rounds.len() == CLIENTS && rounds.values().all(|round| *round == 20));
}

/// A message that a program has is delivered, also where the program closes the connection before it does anything else.
#[test]
fn who_has_a_message_and_closes_the_connection_has_it() {
    let mut pair = Pair::new();
    pair.send(CLIENT, b"bye", 7);
    let message = pair.message(SERVER);
    let id = pair.ids[SERVER];
    pair.ends[SERVER].disconnect(id).expect("closed");
    pair.ends[SERVER].give_back(message);
    assert_eq!(pair.ends(CLIENT, 7), Ok(()));
}

/// Of many connections only a few are looked at directly. The others' messages are acknowledged as soon.
#[test]
fn a_message_is_acknowledged_however_many_connections_there_are() {
    const POLLS: usize = 50_000;
    let mut pair = Pair::new();
    let uri = pair.ends[SERVER].uri().to_string();
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(pair.ends[CLIENT].connect(&uri, b"", Attribute::ReliableOrdered, 0, None).expect("asked"));
        let (_, Event::Requested(request)) = pair.next() else { panic!("no request") };
        pair.ends[SERVER].accept(request.id, 0).expect("accepted");
        let (_, Event::Connected { result: Ok(()), .. }) = pair.next() else { panic!("no connection") };
        let (_, Event::Accepted { result: Ok(()), .. }) = pair.next() else { panic!("not accepted") };
    }
    for id in ids {
        pair.ids[CLIENT] = id;
        pair.send(CLIENT, b"x", 7);
        let (mut messages, mut ends) = (0, 0);
        for _ in 0..POLLS {
            if let Some(event) = pair.ends[SERVER].event().expect("no error") {
                let Event::Received(message) = event else { panic!("{event:?}") };
                messages += 1;
                pair.ends[SERVER].give_back(message);
            }
            if let Some(event) = pair.ends[CLIENT].event().expect("no error") {
                assert!(matches!(event, Event::Sent { context: 7, result: Ok(()), .. }), "{event:?}");
                ends += 1;
                break;
            }
        }
        assert_eq!((messages, ends), (1, 1));
    }
}

/// A program that may have no more messages learns that its own was taken, although the messages that say so wait.
#[test]
fn who_can_take_no_more_learns_what_was_taken() {
    let mut pair = Pair::with(Attribute::ReliableOrdered, |config| config.receive_buffers = 2);
    let mut held = Vec::new();
    for _ in 0..2 {
        pair.send(SERVER, b"held", 0);
        held.push(pair.message(CLIENT));
    }
    let id = pair.ids[CLIENT];
    let operation = pair.ends[CLIENT].send(id, &[b"x"], 0, SendFlags::AWAITED).expect("sent");
    let start = Instant::now();
    let mut outcome = None;
    while outcome.is_none() {
        assert!(start.elapsed() < LONG, "it is never told");
        if let Some(Event::Received(message)) = pair.ends[SERVER].event().expect("no error") {
            // Its answer says that it has the message, and lies in the client's ring.
            pair.send(SERVER, b"answer", 0);
            pair.ends[SERVER].give_back(message);
        }
        pair.ends[CLIENT].progress();
        outcome = pair.ends[CLIENT].outcome(operation);
    }
    assert_eq!(outcome, Some(Ok(())));
}
