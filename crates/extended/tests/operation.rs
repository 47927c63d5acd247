//! An operation that is not the library's: the number of bits that are set in a rank's bytes, counted where they lie. It is two handlers and
//! a query, and completes in the one table as puts and gets do: by its event, in a set, or with an error.
#![allow(unsafe_code)]

mod sim;

use gasworks_conformance::simnet::{self, SimConfig, SimRank};
use gasworks_core::engine::query::NUMBER;
use gasworks_core::ops::Answer;
use gasworks_core::{
    Also, Categories, Category, Engine, Entry, Error as CoreError, Handlers, Incoming, OpId, Outgoing,
    Signature,
};
use gasworks_extended::Error;
use gasworks_memory::{Peer, PeerFlags, RegionTable, Rights};
use gasworks_rdma::NicError;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use gasworks_sync::{RawSlice, Seq};
use std::sync::Arc;

type Result<T, E = Error> = std::result::Result<T, E>;

type Handler = <Seq as gasworks_core::CoreMode>::Function;

const ASK: u8 = 200;
const ANSWER: u8 = 201;
/// Bytes of the arguments: the number of the query; where the bytes are; how many. Or whether they could be counted, and the count.
const ARGS: usize = NUMBER + 16;

fn word(args: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(args[at..at + 8].try_into().expect("eight bytes"))
}

fn count(asked: &Incoming<'_, Seq>) -> Result<(), Box<CoreError>> {
    let (args, rank) = (asked.args(), asked.rank());
    let (offset, len) = (word(args, NUMBER), word(args, NUMBER + 8) as usize);
    let found = asked.engine().peers().reach(rank, offset, len, Rights::READ).ok().flatten();
    let ones = found.map(|bytes| {
        let mut copy = vec![0u8; len];
        bytes.read(&mut copy);
        copy.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
    });
    let words = [word(args, 0), u64::from(ones.is_some()), ones.unwrap_or(0)];
    let args: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let message =
        Outgoing { category: Category::Short, handler: ANSWER, args: &args, payload: &[], landing: 0 };
    Ok(asked.reply(&message)?)
}

fn hear(answer: &Incoming<'_, Seq>) -> Result<(), Box<CoreError>> {
    let (args, peer) = (answer.args(), answer.source());
    let found = if word(args, NUMBER) == 1 {
        Ok(Answer::Plain(&args[NUMBER + 8..]))
    } else {
        Err(NicError::BadKey { peer })
    };
    Ok(answer.engine().answered(peer, word(args, 0), found)?)
}

/// An engine that has the operation. No rank's memory is mapped at another one.
fn engine(rank: &SimRank) -> Result<Engine<Seq>> {
    let handlers = Handlers::new();
    for (index, reply, function) in [(ASK, false, count as fn(&Incoming<'_, Seq>) -> _), (ANSWER, true, hear)]
    {
        let signature = Signature {
            name: format!("count.{index}"),
            category: Category::Short,
            reply,
            nargs: ARGS / 4,
            also: Also::empty(),
        };
        let function: Box<Handler> = Box::new(function);
        handlers.register(Some(index), Entry { signature, function })?;
    }
    let own = rank.rank();
    let peer = |number| {
        let (mapped, flags) = match number == own {
            true => (rank.segment().raw(), PeerFlags::SELF | PeerFlags::MAPPED),
            false => (RawSlice::EMPTY, PeerFlags::empty()),
        };
        Peer { mapped, len: rank.segment().len() as u64, remote_base: 0, key: Vec::new(), flags }
    };
    // SAFETY: `rank` holds the net, of which its segment is a block, and the table is given a clone of it to keep.
    let peers = unsafe { RegionTable::new((0..rank.config().ranks).map(peer), Arc::new(rank.clone())) };
    Ok(sim::engine(rank, handlers, peers))
}

/// Has a rank count, as part of a set or for an event of its own.
fn ask(
    engine: &Engine<Seq>,
    rank: u32,
    (offset, len): (u64, u64),
    into: &mut u64,
    set: Option<OpId>,
) -> Result<OpId> {
    let mut sleeper = engine.sleeper();
    loop {
        let mut args = [[0; NUMBER], offset.to_le_bytes(), len.to_le_bytes()].concat();
        let place = RawSlice::new((&raw mut *into).cast(), 8);
        // SAFETY: all callers keep the word until the operation, or the set that it is in, has completed.
        match unsafe { engine.query(rank, (ASK, &mut args), place, Categories::GET, set, None) } {
            Ok(id) => return Ok(id),
            Err((error, _)) if error.is_busy() => engine.turn(&mut sleeper)?,
            Err((error, _)) => return Err(error.into()),
        }
    }
}

/// Waits for an operation or a set.
fn finish(engine: &Engine<Seq>, id: OpId) -> Result<std::result::Result<(), NicError>> {
    let mut sleeper = engine.sleeper();
    loop {
        if let Some((ended, _)) = engine.test(id)? {
            return Ok(ended);
        }
        engine.turn(&mut sleeper)?;
    }
}

/// Waits until all ranks have come as often as this one, and serves them meanwhile.
fn meet(engine: &Engine<Seq>, come: &AtomicU32, times: u32) -> Result<()> {
    come.fetch_add(1, Ordering::SeqCst);
    while come.load(Ordering::SeqCst) < times * engine.ranks() {
        engine.poll()?;
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn an_operation_of_another_crate_completes_as_puts_and_gets_do() {
    let come = AtomicU32::new(0);
    let ran = simnet::run(SimConfig::varied(3, 11), |rank| {
        let engine = engine(&rank)?;
        let (own, ranks) = (rank.rank(), rank.config().ranks);
        rank.segment().slice(8, 4).expect("inside").write(&[own as u8; 4]);
        meet(&engine, &come, 1)?;
        let next = (own + 1) % ranks;
        let ones = |rank: u32| 4 * u64::from(rank.count_ones());
        // By an event.
        let mut found = u64::MAX;
        let id = ask(&engine, next, (8, 4), &mut found, None)?;
        assert_eq!((finish(&engine, id)?, found), (Ok(()), ones(next)));
        assert!(engine.test(id).is_err(), "it is forgotten");
        // Many in a set, more than may be under way.
        let set = engine.open_set();
        let mut all = vec![u64::MAX; 20];
        for found in &mut all {
            ask(&engine, next, (8, 4), found, Some(set))?;
        }
        assert_eq!((finish(&engine, set)?, all), (Ok(()), vec![ones(next); 20]));
        // Where there is nothing to count, the owner says so, and who has asked is told.
        let len = rank.segment().len() as u64;
        let id = ask(&engine, next, (len - 3, 4), &mut found, None)?;
        assert_eq!((finish(&engine, id)?, found), (Err(NicError::BadKey { peer: next }), ones(next)));
        // Others may still ask.
        meet(&engine, &come, 2)
    });
    ran.unwrap_or_else(|error| panic!("{error}")).into_iter().for_each(|rank| assert_eq!(rank, Ok(())));
}
