//! Headers and payloads, frame by frame, as CCI's design has them.
#![allow(unsafe_code)]

use crate::endpoint::{bytes, next_of};
use crate::peer::{Peer, message, no_event, turn};
use gasworks_cci::endpoint::{Endpoint, Event, Failure, RmaHandle, RmaKind, RmaRights, SendFlags};
use gasworks_cci::header::{HeaderType, LINE};
use gasworks_sync::RawSlice;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

fn sent(end: &mut Endpoint, wanted: u64) -> Result<(), Failure> {
    let (_, event) = next_of(&mut [end]);
    let Event::Sent { context, result, .. } = event else { panic!("{event:?}") };
    assert_eq!(context, wanted);
    result
}

#[test]
fn a_directory_has_the_files_that_the_seed_names() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    let at = end.uri().directory();
    let names = || {
        let entries = std::fs::read_dir(&at).expect("it is there");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("one").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["fifo", "lock", "msgs", "sock"]);
    let msgs = std::fs::metadata(at.join("msgs")).expect("it is there");
    assert_eq!((msgs.len(), msgs.blocks()), (4 << 20, 0), "it takes no room before it is used");
    for name in ["fifo", "msgs"] {
        let mode = std::fs::metadata(at.join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let (here, _) = end.allocate(100, RmaRights::empty()).expect("memory");
    let there = RmaHandle::from_words([9 << 32, 0, 100, 0]);
    end.rma(peer.id, RmaKind::Read, (here, 0), (there, 0), 1, None, 0, SendFlags::empty()).expect("begun");
    assert_eq!(names(), ["fifo", "lock", "msgs", "rmas", "sock"]);
    assert_eq!(peer.header().map(|header| header.of), Some(HeaderType::RmaRead));
}

#[test]
fn a_payload_lies_in_the_sender_s_lines_until_it_is_acknowledged() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    let mut headers = Vec::new();
    for (context, len) in [100, 0, 64, 65, 0, 1].into_iter().enumerate() {
        end.send(peer.id, &[&bytes(context, len)], context as u64, SendFlags::empty()).expect("sent");
        let header = peer.header().expect("a header for each message");
        assert_eq!((header.of, header.length as usize), (HeaderType::Send, len));
        assert_eq!(peer.payload(header), bytes(context, len));
        headers.push(header);
    }
    // Whole lines each, the first that are free.
    assert_eq!(headers.iter().map(|header| header.offset).collect::<Vec<_>>(), [0, 0, 2, 3, 0, 5]);
    no_event(&mut end);
    // In another order: messages count as delivered in the order in which they were sent, and their lines are free at once.
    peer.write(HeaderType::SendAck, 2, 64);
    no_event(&mut end);
    end.send(peer.id, &[&[7; 10]], 6, SendFlags::empty()).expect("sent");
    assert_eq!(peer.header().map(|header| (header.offset, header.length)), Some((2, 10)));
    // Acknowledgements of nothing, or of another length, mean nothing.
    peer.write(HeaderType::SendAck, 2, 64);
    peer.write(HeaderType::SendAck, 0xFFFF, 100);
    no_event(&mut end);
    for header in [0, 1, 3, 4, 5].map(|at: usize| headers[at]) {
        peer.write(HeaderType::SendAck, header.offset, header.length);
    }
    peer.write(HeaderType::SendAck, 2, 10);
    for context in 0..7 {
        assert_eq!(sent(&mut end, context), Ok(()));
    }
    end.send(peer.id, &[b"again"], 7, SendFlags::empty()).expect("sent");
    assert_eq!(peer.header().map(|header| header.offset), Some(0));
}

#[test]
fn what_is_received_is_acknowledged_by_offset_and_length() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    for (line, len) in [(0, 100), (40, 0), (7, 4096)] {
        peer.send(line, &bytes(len, len));
        assert_eq!(message(&mut end), bytes(len, len));
        let header = peer.header().expect("an acknowledgement");
        assert_eq!((header.of, header.offset, header.length as usize), (HeaderType::SendAck, line, len));
        assert!(peer.header().is_none());
    }
    peer.write(HeaderType::Keepalive, 0, 0);
    turn(&mut end);
    assert_eq!(peer.header().map(|header| header.of), Some(HeaderType::KeepaliveAck));
}

/// No more than a few are not acknowledged; the others wait for those.
#[test]
fn a_connection_has_so_many_messages_under_way() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    for number in 0..20u8 {
        end.send(peer.id, &[&[number]], number.into(), SendFlags::empty()).expect("sent");
    }
    turn(&mut end);
    let mut headers = Vec::new();
    for number in 0..20u8 {
        headers.extend(std::iter::from_fn(|| peer.header()));
        assert_eq!(headers.len(), 20.min(gasworks_cci::fifo::CREDITS + usize::from(number)));
        let header = headers[usize::from(number)];
        assert_eq!(peer.payload(header), [number]);
        peer.write(HeaderType::SendAck, header.offset, 1);
        assert_eq!(sent(&mut end, number.into()), Ok(()));
        turn(&mut end);
    }
}

/// The peer publishes no registrations: it is asked by fragments, which it refuses or serves.
#[test]
fn the_initiator_s_fragments_lie_in_its_rma_buffer() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    let (here, memory) = end.allocate(200_000, RmaRights::empty()).expect("memory");
    memory.bytes().write(&bytes(3, 200_000));
    let there = RmaHandle::from_words([9 << 32 | 5, 6, 1 << 20, 0]);
    let id = peer.id;
    let begin = |end: &mut Endpoint, kind, context| {
        end.rma(id, kind, (here, 10), (there, 1000), 100_000, None, context, SendFlags::empty())
            .expect("begun");
    };
    begin(&mut end, RmaKind::Write, 1);
    let theirs =
        File::options().read(true).write(true).open(end.uri().directory().join("rmas")).expect("made");
    let mut written: Vec<u8> = Vec::new();
    for len in [65_472, 34_528] {
        let header = peer.header().expect("a fragment");
        assert_eq!((header.of, header.length as usize), (HeaderType::RmaWrite, LINE + len));
        let mut fragment = vec![0; LINE + len];
        theirs.read_exact_at(&mut fragment, u64::from(header.offset) * LINE as u64).expect("read");
        let word = |at: usize| u64::from_le_bytes(fragment[8 * at..8 * at + 8].try_into().expect("eight"));
        assert_eq!([word(0), word(1), word(2)], [6 << 32 | 5, 1000 + written.len() as u64, len as u64]);
        written.extend(&fragment[LINE..]);
        peer.write(HeaderType::RmaAck, header.offset, 0);
    }
    assert_eq!(written, bytes(3, 200_000)[10..100_010]);
    assert_eq!(sent(&mut end, 1), Ok(()));
    begin(&mut end, RmaKind::Read, 2);
    for len in [65_472, 34_528] {
        let header = peer.header().expect("a fragment");
        assert_eq!((header.of, header.length as usize), (HeaderType::RmaRead, LINE + len));
        theirs
            .write_all_at(&vec![len as u8; len], (u64::from(header.offset) + 1) * LINE as u64)
            .expect("room");
        peer.write(HeaderType::RmaAck, header.offset, 0);
    }
    assert_eq!(sent(&mut end, 2), Ok(()));
    let mut found = vec![0; 100_012];
    memory.bytes().slice(9, 100_012).expect("inside").read(&mut found);
    let whole = [&bytes(3, 10)[9..], &[65_472u32 as u8; 65_472], &[34_528u32 as u8; 34_528]].concat();
    assert_eq!(found[..100_001], whole);
    assert_eq!(found[100_001..], bytes(3, 200_000)[100_010..100_021][..11]);
    // Refused, and an acknowledgement of no fragment.
    begin(&mut end, RmaKind::Write, 3);
    peer.write(HeaderType::RmaAck, 4000, 0);
    while let Some(header) = peer.header() {
        peer.write(HeaderType::RmaAck, header.offset, 1);
    }
    assert_eq!(sent(&mut end, 3), Err(Failure::Handle));
}

/// The peer is the initiator: its fragments lie in its buffer.
#[test]
fn the_target_copies_what_fragments_say() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    let memory = vec![7u8; 5000].leak();
    let raw = RawSlice::new(memory.as_mut_ptr(), memory.len());
    // SAFETY: registration.1 of gasworks_cci: it was leaked, and is used as the raw slice alone.
    let handle = unsafe { end.register(raw, RmaRights::all()) }.expect("registered").to_words();
    let rmas =
        File::options().read(true).write(true).create_new(true).open(peer.at.join("rmas")).expect("made");
    rmas.set_len(1 << 20).expect("its size");
    let mut ask = |of, offset: u64, len: u64, payload: &[u8]| {
        let words = [handle[1] << 32 | handle[0] & 0xFFFF_FFFF, offset, len];
        let line = words.map(u64::to_le_bytes).concat();
        rmas.write_all_at(&line, 30 * LINE as u64).expect("room");
        rmas.write_all_at(payload, 31 * LINE as u64).expect("room");
        peer.write(of, 30, (LINE + payload.len()) as u32);
        turn(&mut end);
        let header = peer.header().expect("an acknowledgement");
        assert_eq!((header.of, header.offset), (HeaderType::RmaAck, 30));
        let mut found = vec![0; payload.len()];
        rmas.read_exact_at(&mut found, 31 * LINE as u64).expect("read");
        (header.length, found)
    };
    assert_eq!(ask(HeaderType::RmaWrite, 100, 4000, &bytes(1, 4000)).0, 0);
    let (status, found) = ask(HeaderType::RmaRead, 99, 4002, &[0; 4002]);
    assert_eq!((status, found), (0, [&[7][..], &bytes(1, 4000), &[7]].concat()));
    // Beyond the memory, or the fragment.
    assert_eq!(ask(HeaderType::RmaRead, 1000, 4001, &[1; 4001]), (2, vec![1; 4001]));
    assert_eq!(ask(HeaderType::RmaRead, 0, 101, &[1; 100]), (2, vec![1; 100]));
    assert_eq!(ask(HeaderType::RmaWrite, u64::MAX, 2, &[1; 2]).0, 2);
}

#[test]
fn who_closes_says_so_behind_what_it_sent() {
    let (_base, mut end, mut peer) = Peer::new(|_| {});
    end.send(peer.id, &[b"last"], 0, SendFlags::empty()).expect("sent");
    end.disconnect(peer.id).expect("closed");
    let [message, last] = [(); 2].map(|()| peer.header().expect("a header"));
    assert_eq!((message.of, last.of), (HeaderType::Send, HeaderType::Disconnect));
    assert_eq!(sent(&mut end, 0), Err(Failure::Disconnected));
    // Its lines are not another's until the peer has read them.
    let base = peer.at.parent().and_then(|at| at.parent()).expect("a base").to_owned();
    let mut other = Peer::of(&mut end, &base, 2);
    let mut next = |end: &mut Endpoint| {
        end.send(other.id, &[b"other"], 0, SendFlags::SILENT).expect("sent");
        other.header().map(|header| header.offset)
    };
    assert_eq!(next(&mut end), Some(1));
    assert_eq!(peer.payload(message), b"last");
    peer.write(HeaderType::SendAck, message.offset, message.length);
    turn(&mut end);
    assert_eq!(next(&mut end), Some(0));
    // The files stay readable for who has them open.
    drop(end);
    assert_eq!(peer.payload(message), b"othe");
    assert_eq!(other.header().map(|header| header.of), Some(HeaderType::Disconnect));
}
