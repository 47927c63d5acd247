//! Bytes moved between registered memory, by each of the ways.
#![allow(unsafe_code)]

use super::*;
use gasworks_cci::endpoint::{CallError, RmaHandle, RmaKind, RmaMemory, RmaRights, RmaWays};
use gasworks_sync::RawSlice;

const ALL: RmaRights = RmaRights::all();
const LENGTHS: [usize; 8] = [0, 1, 8, 100, 4096, 65_472, 65_473, 1 << 20];

/// A pair that goes only by some ways.
fn pair(mapped: bool, by_system: bool) -> Pair {
    Pair::with(Attribute::ReliableOrdered, |config| config.ways = RmaWays { mapped, by_system })
}

/// Memory of this program, which is never freed.
fn register(end: &mut Endpoint, bytes: &[u8], rights: RmaRights) -> (RmaHandle, RmaBytes) {
    let memory = bytes.to_vec().leak();
    let raw = RawSlice::new(memory.as_mut_ptr(), memory.len());
    // SAFETY: registration.1 of gasworks_cci: it was leaked, and is used as the raw slice alone.
    let handle = unsafe { end.register(raw, rights) }.expect("registered");
    (handle, RmaBytes(raw))
}

struct RmaBytes(RawSlice);

impl RmaBytes {
    fn get(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.len()];
        // SAFETY: registration.1 of gasworks_cci: leaked memory, without references.
        unsafe { self.0.borrow() }.read(&mut bytes);
        bytes
    }
}

fn contents(memory: &RmaMemory) -> Vec<u8> {
    let mut bytes = vec![0; memory.bytes().len()];
    memory.bytes().read(&mut bytes);
    bytes
}

impl Pair {
    fn rma(
        &mut self,
        kind: RmaKind,
        local: (RmaHandle, u64),
        remote: (RmaHandle, u64),
        len: u64,
    ) -> Result<(), String> {
        let id = self.ids[CLIENT];
        let begun = self.ends[CLIENT].rma(id, kind, local, remote, len, None, 77, SendFlags::empty());
        begun.map_err(|error| error.to_string())?;
        self.ends(CLIENT, 77).map_err(|failure| failure.to_string())
    }
}

#[test]
fn bytes_are_written_and_read_by_every_way() {
    for (mapped, by_system) in [(false, false), (false, true), (true, true)] {
        let mut pair = pair(mapped, by_system);
        for len in LENGTHS {
            let sent = bytes(len, len + 10);
            let (here, own) = register(&mut pair.ends[CLIENT], &sent, RmaRights::empty());
            let (there, peers) = register(&mut pair.ends[SERVER], &vec![0xFF; len + 100], ALL);
            pair.rma(RmaKind::Write, (here, 3), (there, 50), len as u64).expect("written");
            let mut wanted = vec![0xFF; len + 100];
            wanted[50..50 + len].copy_from_slice(&sent[3..3 + len]);
            assert_eq!(peers.get(), wanted, "{len} {mapped} {by_system}");
            pair.rma(RmaKind::Read, (here, 0), (there, 45), len as u64 + 10).expect("read");
            assert_eq!(own.get(), wanted[45..55 + len], "{len} {mapped} {by_system}");
            pair.ends[CLIENT].deregister(here).expect("it was registered");
            pair.ends[SERVER].deregister(there).expect("it was registered");
        }
    }
}

/// Memory of the library's: at first another way is gone, then by the peer's mapping.
#[test]
fn memory_of_the_library_is_reached_by_plain_copies() {
    for by_system in [false, true] {
        let mut pair = pair(true, by_system);
        let (there, peers) = pair.ends[SERVER].allocate(100_000, ALL).expect("memory");
        let (here, own) = pair.ends[CLIENT].allocate(100_000, RmaRights::empty()).expect("memory");
        for round in 0..5 {
            own.bytes().write(&bytes(round, 100_000));
            pair.rma(RmaKind::Write, (here, 0), (there, 0), 100_000).expect("written");
            assert_eq!(contents(&peers), bytes(round, 100_000));
            // The file is passed meanwhile.
            let [client, server] = &mut pair.ends;
            nothing_of(&mut [client, server], Duration::from_millis(2));
        }
        pair.rma(RmaKind::Read, (here, 10), (there, 20), 1000).expect("read");
        assert_eq!(contents(&own)[10..1010], contents(&peers)[20..1020]);
    }
}

/// A message behind a transfer finds its bytes there, by whatever way they went, and comes in order with others.
#[test]
fn a_message_comes_behind_the_bytes() {
    for by_system in [false, true] {
        let mut pair = pair(false, by_system);
        let id = pair.ids[CLIENT];
        let len = 1 << 20;
        let (here, _) = register(&mut pair.ends[CLIENT], &bytes(1, len), RmaRights::empty());
        let (there, peers) = register(&mut pair.ends[SERVER], &vec![0; len], ALL);
        pair.send(CLIENT, b"before", 1);
        let told: &[&[u8]] = &[b"be", b"hind"];
        let flags = SendFlags::empty();
        let begun = pair.ends[CLIENT].rma(
            id,
            RmaKind::Write,
            (here, 0),
            (there, 0),
            len as u64,
            Some(told),
            2,
            flags,
        );
        begun.expect("begun");
        pair.send(CLIENT, b"after", 3);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut over = Vec::new();
        while seen.len() < 3 || over.len() < 3 {
            match pair.next() {
                (SERVER, Event::Received(message)) => {
                    if *message.bytes == *b"behind" {
                        assert_eq!(peers.get(), bytes(1, len));
                    }
                    seen.push(message.bytes.to_vec());
                    pair.ends[SERVER].give_back(message);
                }
                (CLIENT, Event::Sent { context, result: Ok(()), .. }) => over.push(context),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, [&b"before"[..], b"behind", b"after"]);
        over.sort_unstable();
        assert_eq!(over, [1, 2, 3]);
    }
}

#[test]
fn what_is_not_allowed_is_refused_and_touches_nothing() {
    for by_system in [false, true] {
        let mut pair = pair(false, by_system);
        let (here, _) = register(&mut pair.ends[CLIENT], &[1; 100], RmaRights::empty());
        let (read, readable) = register(&mut pair.ends[SERVER], &[2; 100], RmaRights::READ);
        let (write, writable) = register(&mut pair.ends[SERVER], &[3; 100], RmaRights::WRITE);
        let (none, closed) = register(&mut pair.ends[SERVER], &[4; 100], RmaRights::empty());
        for (kind, local, remote, len, words) in [
            (RmaKind::Write, (here, 0), (read, 0), 1, "not registered for that"),
            (RmaKind::Read, (here, 0), (write, 0), 1, "not registered for that"),
            (RmaKind::Read, (here, 0), (none, 0), 1, "not registered for that"),
            (RmaKind::Write, (here, 0), (write, 1), 100, "not so many"),
            (RmaKind::Write, (here, 1), (write, 0), 100, "not so many"),
            (RmaKind::Write, (here, 0), (write, u64::MAX), 2, "not so many"),
            (RmaKind::Write, (here, u64::MAX), (write, 0), 2, "not so many"),
            (RmaKind::Write, (write, 0), (write, 0), 1, "this endpoint's memory is no registration"),
            (RmaKind::Write, (here, 0), (here, 0), 1, "the peer's memory is no registration"),
        ] {
            let error = pair.rma(kind, local, remote, len).expect_err(words);
            assert!(error.contains(words), "{error}, and not {words}");
        }
        pair.ends[SERVER].deregister(write).expect("it was registered");
        assert!(matches!(pair.ends[SERVER].deregister(write), Err(CallError::Handle { .. })));
        let error = pair.rma(RmaKind::Write, (here, 0), (write, 0), 1).expect_err("it is gone");
        assert!(error.contains("no registration"), "{error}");
        let any = RmaHandle::from_words([u64::MAX; 4]);
        assert!(pair.rma(RmaKind::Write, (here, 0), (any, 0), 1).is_err());
        assert_eq!(
            [readable.get(), writable.get(), closed.get()],
            [vec![2; 100], vec![3; 100], vec![4; 100]]
        );
    }
    let mut unreliable = Pair::with(Attribute::Unreliable, |_| {});
    let (here, _) = register(&mut unreliable.ends[CLIENT], &[1; 8], ALL);
    let (there, _) = register(&mut unreliable.ends[SERVER], &[1; 8], ALL);
    assert!(
        unreliable.rma(RmaKind::Read, (here, 0), (there, 0), 8).expect_err("refused").contains("reliable")
    );
}

/// Memory that is taken back while fragments of it are under way: the transfer fails, on either side.
#[test]
fn a_transfer_of_memory_that_is_taken_back_fails() {
    for side in [CLIENT, SERVER] {
        let mut pair = pair(false, false);
        let id = pair.ids[CLIENT];
        let (here, _) = register(&mut pair.ends[CLIENT], &[1; 1 << 20], RmaRights::empty());
        let (there, _) = register(&mut pair.ends[SERVER], &[2; 1 << 20], ALL);
        let flags = SendFlags::empty();
        let begun = pair.ends[CLIENT].rma(id, RmaKind::Read, (here, 0), (there, 0), 1 << 20, None, 1, flags);
        begun.expect("begun");
        pair.ends[side].deregister([here, there][side]).expect("it was registered");
        assert_eq!(pair.ends(CLIENT, 1), Err(Failure::Handle));
        // The connection works on.
        pair.send(CLIENT, b"x", 2);
        assert_eq!(&*pair.message(SERVER).bytes, b"x");
    }
}

#[test]
fn memory_that_is_none_is_not_registered() {
    let directory = directory();
    let mut end = Endpoint::create(config(&directory)).expect("an endpoint");
    for (address, len, words) in
        [(8, 0, "there are none"), (0, 8, "there are none"), (4096, 8, "not all mapped")]
    {
        let raw = RawSlice::new(std::ptr::without_provenance_mut(address), len);
        // SAFETY: registration.1 of gasworks_cci: refused, so that nothing is used.
        let error = unsafe { end.register(raw, ALL) }.expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(end.allocate(0, ALL).is_err());
}

/// Several transfers and messages at once, by fragments, in both directions.
#[test]
fn transfers_both_ways_at_once_get_on() {
    let mut pair = pair(false, false);
    let len = 300_000u64;
    let handles = [CLIENT, SERVER].map(|side| {
        let (local, _) = register(&mut pair.ends[side], &bytes(side, 300_000), RmaRights::empty());
        let (remote, memory) = register(&mut pair.ends[side], &vec![0; 300_000], ALL);
        (local, remote, memory)
    });
    for side in [CLIENT, SERVER] {
        let id = pair.ids[side];
        for context in 0..3 {
            let (local, remote) = ((handles[side].0, 0), (handles[1 - side].1, 0));
            let begun =
                pair.ends[side].rma(id, RmaKind::Write, local, remote, len, None, context, SendFlags::FENCE);
            begun.expect("begun");
        }
    }
    let mut over = 0;
    while over < 6 {
        let (_, event) = pair.next();
        assert!(matches!(event, Event::Sent { result: Ok(()), .. }), "{event:?}");
        over += 1;
    }
    for side in [CLIENT, SERVER] {
        assert_eq!(handles[1 - side].2.get(), bytes(side, 300_000));
    }
}

/// The memory of an endpoint that is gone is the program's again, whether or not its peers have looked.
#[test]
fn memory_of_an_endpoint_that_is_gone_is_not_reached() {
    for by_system in [false, true] {
        let Pair { ends: [mut client, mut server], ids, _directory } =
            Pair::with(Attribute::ReliableOrdered, |config| {
                config.ways = RmaWays { mapped: false, by_system }
            });
        let (here, _) = register(&mut client, &[1; 100], RmaRights::empty());
        let (there, memory) = register(&mut server, &[2; 100], ALL);
        drop(server);
        let flags = SendFlags::empty();
        let begun = client.rma(ids[CLIENT], RmaKind::Write, (here, 0), (there, 0), 100, None, 0, flags);
        assert!(
            matches!(begun, Err(CallError::Disconnected | CallError::Handle { .. }) | Ok(_)),
            "{begun:?}"
        );
        if begun.is_ok() {
            // By the FIFO the end is found later, and the bytes go nowhere.
            let (_, event) = next_of(&mut [&mut client]);
            assert!(matches!(event, Event::Sent { result: Err(_), .. } | Event::Closed { .. }), "{event:?}");
        }
        assert_eq!(memory.get(), vec![2; 100]);
    }
}

/// A fence: what was read before has come when it is written on, though both go by fragments.
#[test]
fn a_fence_waits_for_what_was_begun_before() {
    let mut pair = pair(false, false);
    let id = pair.ids[CLIENT];
    let (here, _) = register(&mut pair.ends[CLIENT], &[0; 200_000], RmaRights::empty());
    let (from, _) = register(&mut pair.ends[SERVER], &bytes(3, 200_000), ALL);
    let (to, written) = register(&mut pair.ends[SERVER], &vec![0; 200_000], ALL);
    let len = 200_000;
    for (context, kind, there, flags) in
        [(1, RmaKind::Read, from, SendFlags::empty()), (2, RmaKind::Write, to, SendFlags::FENCE)]
    {
        let begun = pair.ends[CLIENT].rma(id, kind, (here, 0), (there, 0), len, None, context, flags);
        begun.expect("begun");
    }
    assert_eq!((pair.ends(CLIENT, 1), pair.ends(CLIENT, 2)), (Ok(()), Ok(())));
    assert_eq!(written.get(), bytes(3, 200_000));
}
