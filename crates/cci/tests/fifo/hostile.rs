//! Peers that write what they like to whatever they can open.

use crate::endpoint::{bytes, next_of};
use crate::peer::{Peer, message, no_event, turn};
use gasworks_cci::endpoint::{Endpoint, Event, SendFlags};
use gasworks_cci::header::{HEADER_LEN, Header, HeaderType, LINE};
use proptest::prelude::*;
use std::io::Write;

/// Exchanges a message with an honest peer, both ways.
fn works(end: &mut Endpoint, honest: &mut Peer, round: usize) {
    honest.send(round as u16 % 100, &bytes(round, 200));
    let mut events = Vec::new();
    end.send(honest.id, &[b"to the honest"], 3, SendFlags::empty()).expect("sent");
    let header = honest.header().expect("a header");
    assert_eq!((header.of, honest.payload(header)), (HeaderType::Send, b"to the honest".to_vec()));
    honest.write(HeaderType::SendAck, header.offset, header.length);
    while events.len() < 2 {
        match next_of(&mut [end]).1 {
            Event::Received(message) if message.connection == honest.id => {
                assert_eq!(*message.bytes, *bytes(round, 200));
                events.push(true);
                end.give_back(message);
            }
            Event::Sent { context: 3, result: Ok(()), .. } => events.push(false),
            Event::Received(message) => end.give_back(message),
            Event::Closed { connection } => assert_ne!(connection, honest.id),
            other => panic!("{other:?}"),
        }
    }
    turn(end);
    assert_eq!(honest.header().map(|header| header.of), Some(HeaderType::SendAck));
}

/// What a hostile peer writes to the FIFO.
#[derive(Clone, Debug)]
enum Writes {
    Header(HeaderType, u16, u32),
    /// Bytes that are no header, or a part of one.
    Bytes(Vec<u8>),
}

fn writes() -> impl Strategy<Value = Writes> {
    let header = (prop::sample::select(HeaderType::ALL.to_vec()), any::<u16>(), 0..1u32 << 20)
        .prop_map(|(of, offset, length)| Writes::Header(of, offset, length));
    // The honest connection's id is 0: bytes that name it would be the honest peer's.
    let torn = prop::collection::vec(0x90u8..=0xFF, 0..40).prop_map(Writes::Bytes);
    prop_oneof![3 => header, 1 => torn]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// Any headers and any bytes, between those of an honest peer, whose connection works on.
    #[test]
    fn any_bytes_in_the_fifo_harm_nobody_else(steps in prop::collection::vec(prop::collection::vec(writes(), 0..12), 1..8)) {
        let (base, mut end, mut honest) = Peer::new(|_| {});
        let mut hostile = Peer::of(&mut end, base.path(), 2);
        for (round, step) in steps.into_iter().enumerate() {
            for write in step {
                match write {
                    Writes::Header(of, offset, length) => hostile.write(of, offset, length),
                    Writes::Bytes(bytes) => hostile.to.write_all(&bytes).expect("room"),
                }
            }
            works(&mut end, &mut honest, round);
        }
    }
}

/// More headers than a peer may have under way close its connection, and no other.
#[test]
fn a_flood_closes_the_connection() {
    let (base, mut end, mut honest) = Peer::new(|config| config.receive_buffers = 8);
    let mut hostile = Peer::of(&mut end, base.path(), 2);
    for _ in 0..1000 {
        hostile.write(HeaderType::Send, 0, 10);
    }
    let mut held = Vec::new();
    let start = std::time::Instant::now();
    loop {
        match end.event() {
            Ok(Some(Event::Received(message))) => held.push(message),
            Ok(Some(Event::Closed { connection })) => break assert_eq!(connection, hostile.id),
            Ok(None) => {}
            // None more come, and the end neither, until some are given back.
            Err(_) => held.drain(..).for_each(|message| end.give_back(message)),
            other => panic!("{other:?}"),
        }
        assert!(start.elapsed() < crate::endpoint::LONG);
    }
    held.drain(..).for_each(|message| end.give_back(message));
    works(&mut end, &mut honest, 1);
}

/// Files that are cut end no process: what lay there is not there, and the connection is closed.
#[test]
fn files_that_are_cut_close_the_connection() {
    let (base, mut end, mut honest) = Peer::new(|_| {});
    let mut hostile = Peer::of(&mut end, base.path(), 2);
    hostile.send(4, &[1; 1000]);
    hostile.msgs.set_len(5 * LINE as u64).expect("cut");
    let (_, event) = next_of(&mut [&mut end]);
    assert!(matches!(event, Event::Closed { connection } if connection == hostile.id), "{event:?}");
    works(&mut end, &mut honest, 1);
    // This endpoint's own.
    honest.theirs.set_len(0).expect("cut");
    works(&mut end, &mut honest, 2);
    // Fragments in a buffer that is not there.
    let mut other = Peer::of(&mut end, base.path(), 3);
    other.write(HeaderType::RmaWrite, 0, 100);
    let (_, event) = next_of(&mut [&mut end]);
    assert!(matches!(event, Event::Closed { connection } if connection == other.id), "{event:?}");
    works(&mut end, &mut honest, 3);
}

/// Late headers, of a generation that is gone or was not there yet, reach nobody.
#[test]
fn a_header_of_another_generation_is_ignored() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    let mut connection = peer.id;
    connection.generation = connection.generation.wrapping_add(1);
    let late = Header { of: HeaderType::Send, connection, offset: 0, length: 5 };
    assert_eq!(peer.to.write(&late.encode()).expect("room"), HEADER_LEN);
    no_event(&mut end);
    peer.send(0, b"right");
    assert_eq!(message(&mut end), b"right");
    // The first bytes of a header, and the others later: nobody writes so who is honest.
    let bytes = Header { of: HeaderType::Send, connection: peer.id, offset: 0, length: 5 }.encode();
    peer.to.write_all(&bytes[..3]).expect("room");
    no_event(&mut end);
    peer.to.write_all(&bytes[3..]).expect("room");
    peer.send(0, b"again");
    assert_eq!(message(&mut end), b"again");
}
