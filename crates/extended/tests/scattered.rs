//! What a peer asks for by scattered transfers that go by messages is checked before a byte is touched.
#![allow(unsafe_code)]

mod sim;

use gasworks_conformance::simnet::{self, SimConfig, SimRank};
use gasworks_core::engine::query::NUMBER;
use gasworks_core::ops::Places;
use gasworks_core::{Categories, Engine, Handlers};
use gasworks_extended::scattered::{self, Peer as Target, Strided, Way};
use gasworks_extended::{Error, event};
use gasworks_memory::{Peer, PeerFlags, RegionTable};
use gasworks_rdma::NicError;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use gasworks_sync::{RawSlice, Seq, VolatileSlice};
use std::sync::Arc;

/// The library's handlers for a put and a get.
const PUT: u8 = 9;
const GET: u8 = 11;
/// Bytes of a rank's segment.
const LEN: usize = 4096;

/// An engine without a network. No rank's memory is mapped at another one.
fn engine(rank: &SimRank) -> Result<Engine<Seq>, Error> {
    let handlers = Handlers::new();
    scattered::register(&handlers)?;
    let own = rank.rank();
    let peer = |number| {
        let (mapped, flags) = match number == own {
            true => (rank.segment().raw(), PeerFlags::SELF | PeerFlags::MAPPED),
            false => (RawSlice::EMPTY, PeerFlags::empty()),
        };
        Peer { mapped, len: LEN as u64, remote_base: 0, key: Vec::new(), flags }
    };
    // SAFETY: `rank` holds the net, of which its segment is a block of `LEN` bytes, and the table is given a clone of it to keep.
    let peers = unsafe { RegionTable::new((0..rank.config().ranks).map(peer), Arc::new(rank.clone())) };
    Ok(sim::engine(rank, handlers, peers))
}

/// Sends rank 1 a request of this description and these bytes, and says how it ended.
fn ask(
    engine: &Engine<Seq>,
    (handler, count): (u8, u64),
    words: &[u64],
    bytes: &[u8],
    place: RawSlice,
) -> Result<Result<(), NicError>, Error> {
    let payload = [bytemuck::cast_slice(words), bytes].concat();
    let fill = |room: VolatileSlice<'_>| room.write(&payload);
    let mut sleeper = engine.sleeper();
    let id = loop {
        let mut args = [[0; NUMBER], count.to_le_bytes()].concat();
        let places = Places::Many([place].into());
        let counts = if handler == PUT { Categories::PUT_ALONE } else { Categories::GET };
        // SAFETY: all callers keep the place until this has returned, which is when the answer has come.
        match unsafe {
            engine.query_medium(1, (handler, &mut args), (payload.len(), &fill), places, (None, counts))
        } {
            Ok(id) => break id,
            Err(error) if error.is_busy() => engine.turn(&mut sleeper)?,
            Err(error) => return Err(error.into()),
        }
    };
    loop {
        if let Some((ended, _)) = engine.test(id)? {
            return Ok(ended);
        }
        engine.turn(&mut sleeper)?;
    }
}

/// A group of runs, as messages have it.
fn group(place: u64, len: u32, count: u32, stride: i64) -> Vec<u64> {
    let shape = u64::from(len) | u64::from(count) << 32;
    if count == 1 { vec![place, shape] } else { vec![place, shape, stride as u64] }
}

fn asks_for_what_is_wrong(engine: &Engine<Seq>) -> Result<(), Error> {
    let (good, refused) = (group(8, 4, 2, 100), Err(NicError::BadKey { peer: 1 }));
    let end = LEN as u64;
    let wrong = [
        (group(end - 3, 4, 1, 0), 4),
        (group(8, 4, 2, end as i64), 8),
        (group(8, 4, 2, -9), 8),
        (group(8, 4, 2, i64::MAX), 8),
        (group(8, 4, u32::MAX, i64::MIN), 8),
        (group(u64::MAX, 4, 1, 0), 4),
        (group(8, 4, 1, 0), 5),
        (group(8, 4, 1, 0), 3),
        (group(8, 4, 0, 0), 0),
        (group(8, 0, 4_000_000_000, 0), 0),
        (group(8, 4, 2, 100)[..2].to_vec(), 8),
        (vec![8], 4),
        ([good.clone(), group(end, 4, 1, 0)].concat(), 12),
    ];
    for (words, len) in wrong {
        let ended = ask(engine, (PUT, words.len() as u64), &words, &vec![7; len], RawSlice::EMPTY)?;
        assert_eq!(ended, refused, "a put to {words:?}");
    }
    for count in [u64::MAX, 1 << 32, 513, 4, 2] {
        let ended = ask(engine, (PUT, count), &good, &[7; 8], RawSlice::EMPTY)?;
        assert_eq!(ended, refused, "a description of {count} words");
    }
    let mut place = vec![9u8; 8];
    let raw = RawSlice::new(place.as_mut_ptr(), 8);
    let large = engine.max_medium() as u32 / 64 + 1;
    for words in [group(end, 8, 1, 0), group(8, 64, large, 1), group(8, 4, u32::MAX, 0), group(8, 0, 1, 0)] {
        let ended = ask(engine, (GET, words.len() as u64), &words, &[], raw)?;
        assert_eq!(ended, refused, "a get from {words:?}");
    }
    assert_eq!(place, [9; 8]);
    // And what is right is done.
    assert_eq!(ask(engine, (PUT, 3), &good, &[1, 2, 3, 4, 5, 6, 7, 8], RawSlice::EMPTY)?, Ok(()));
    assert_eq!(ask(engine, (GET, 3), &group(8, 4, 2, 100), &[], raw)?, Ok(()));
    assert_eq!(place, [1, 2, 3, 4, 5, 6, 7, 8]);
    Ok(())
}

#[test]
fn what_a_peer_asks_for_is_checked_first() {
    let is_over = AtomicU32::new(0);
    let config = SimConfig { segment: LEN, ..SimConfig::varied(2, 3) };
    let ran = simnet::run(config, |rank| {
        let engine = engine(&rank)?;
        if rank.rank() == 0 {
            asks_for_what_is_wrong(&engine)?;
            is_over.store(1, Ordering::SeqCst);
            return engine.drain().map_err(Error::from);
        }
        while is_over.load(Ordering::SeqCst) == 0 {
            engine.poll()?;
            std::thread::yield_now();
        }
        let mut found = vec![0; LEN];
        rank.segment().read(&mut found);
        let mut wanted = vec![0; LEN];
        wanted[8..12].copy_from_slice(&[1, 2, 3, 4]);
        wanted[108..112].copy_from_slice(&[5, 6, 7, 8]);
        assert_eq!(found, wanted, "what was refused has changed bytes");
        engine.drain().map_err(Error::from)
    });
    for ended in ran.expect("the net runs") {
        ended.expect("no rank fails");
    }
}

/// Of an event that keeps its buffer: whether it is given back, at once or when the answers have come, and that it may be abandoned.
#[test]
fn a_set_keeps_its_buffer_until_all_answers_have_come() {
    let is_over = AtomicU32::new(0);
    let config = SimConfig { segment: LEN, ..SimConfig::varied(2, 5) };
    let ran = simnet::run(config, |rank| {
        let engine = engine(&rank)?;
        while rank.rank() == 1 && is_over.load(Ordering::SeqCst) == 0 {
            engine.poll()?;
            std::thread::yield_now();
        }
        for (to, waits) in [(1, true), (1, false), (0, true)].into_iter().filter(|_| rank.rank() == 0) {
            let kept = Arc::new(vec![to as u8 + 5; 900]);
            let dimensions = [scattered::Dimension { count: 300, local: 3, remote: 8 }];
            let first = (kept.as_ptr().cast_mut(), 16);
            let array = Strided::new(first, 1, dimensions.into_iter())?;
            let target = Target { view: engine.everyone(), member: to };
            let keep: Box<dyn std::any::Any> = Box::new(kept.clone());
            // SAFETY: the operation keeps the vector, which nobody writes.
            let (event, back) = unsafe {
                scattered::transfer_nb(&engine, target, Way::Put, &array, Some(keep), Default::default())
            }?;
            assert_eq!((event.is_done(), back.is_some()), (to == 0, to == 0), "to {to}");
            if waits && to == 1 {
                assert_eq!(Arc::strong_count(&kept), 2);
                let back = event::wait(&engine, &event)?.expect("what it kept");
                assert!(back.is::<Arc<Vec<u8>>>());
            } else {
                event::abandon(&engine, event);
            }
            engine.drain()?;
            drop(back);
            assert_eq!(Arc::strong_count(&kept), 1, "to {to}");
        }
        is_over.store(1, Ordering::SeqCst);
        engine.drain().map_err(Error::from)
    });
    for ended in ran.expect("the net runs") {
        ended.expect("no rank fails");
    }
}
