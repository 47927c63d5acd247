//! What messages bring to a rank, and the handlers that take it in.

use gasworks::{Error, Landed, LongRequest, MediumRequest, Payload, Request, Seq, ShortRequest, Table};
use gasworks_examples::table::KmerTable;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

/// No arguments.
pub type None = [u32; 0];

/// In place of a number of k-mers: the rank found its input wrong.
pub const FAILED: u64 = u64::MAX;

/// A block that landed in a slot of this rank's segment.
pub struct Block {
    pub slot: u64,
    pub len: usize,
    /// The number of its first record in the file.
    pub first: u64,
}

/// A rank's state: handlers write it, the rank's loop reads it.
pub struct State {
    /// The k-mers that this rank owns.
    pub table: RefCell<KmerTable>,
    /// K-mers that came from other ranks.
    pub received: Cell<u64>,
    /// Blocks waiting to be counted, how many there have been, and how many there will be once that is known.
    pub blocks: RefCell<VecDeque<Block>>,
    pub blocks_seen: Cell<u64>,
    pub blocks_in_all: Cell<Option<u64>>,
    /// On rank 0, the slots of other ranks that are free.
    pub free: RefCell<VecDeque<(u32, u64)>>,
    /// Ranks that have sent all their k-mers, and how many of those went to this rank.
    pub settled: Cell<u32>,
    pub announced: Cell<u64>,
    /// Whether some rank found its input wrong, and on rank 0 what it said.
    pub failed: Cell<bool>,
    pub why: RefCell<Option<String>>,
}

impl State {
    /// A state with a small table.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            table: RefCell::new(KmerTable::with_room_for(0)?),
            received: Cell::default(),
            blocks: RefCell::default(),
            blocks_seen: Cell::default(),
            blocks_in_all: Cell::default(),
            free: RefCell::default(),
            settled: Cell::default(),
            announced: Cell::default(),
            failed: Cell::default(),
            why: RefCell::default(),
        })
    }
}

/// The handlers' places in the table.
#[derive(Clone, Copy)]
pub struct Handlers {
    /// A batch of k-mers for their owner.
    pub kmers: MediumRequest<None>,
    /// A block of sequence: its slot and its first record.
    pub block: LongRequest<[u64; 2]>,
    /// A slot is free again.
    pub free: ShortRequest<u64>,
    /// So many blocks were dealt to you, and no more will be.
    pub end: ShortRequest<u64>,
    /// So many k-mers were sent to you, or [`FAILED`].
    pub sent: ShortRequest<u64>,
    /// To rank 0: what is wrong with the input.
    pub why: MediumRequest<None>,
}

impl Handlers {
    pub fn register(table: &mut Table<Seq>, state: &Rc<State>) -> Result<Self, Error> {
        let s = state.clone();
        let kmers =
            table.medium_request("kmers", move |_: Request<'_, Seq>, _: None, batch: Payload<'_>| {
                // Copied out in pieces: what a peer can still write to is never worked on in place.
                let mut piece = [0u64; 1024];
                let mut table = s.table.borrow_mut();
                for offset in (0..batch.len()).step_by(size_of_val(&piece)) {
                    let piece = &mut piece[..((batch.len() - offset) / 8).min(1024)];
                    batch.copy_range_to(offset, piece)?;
                    table
                        .add_all(piece)
                        .map_err(|e| Error::Program(format!("the k-mer table cannot grow: {e}")))?;
                }
                s.received.set(s.received.get() + batch.len() as u64 / 8);
                Ok::<(), Error>(())
            })?;
        let s = state.clone();
        let block = table.long_request(
            "block",
            move |_: Request<'_, Seq>, [slot, first]: [u64; 2], data: Landed| {
                s.blocks.borrow_mut().push_back(Block { slot, len: data.len as usize, first });
                s.blocks_seen.set(s.blocks_seen.get() + 1);
            },
        )?;
        let s = state.clone();
        let free = table.short_request("free", move |request: Request<'_, Seq>, slot: u64| {
            s.free.borrow_mut().push_back((request.source(), slot));
        })?;
        let s = state.clone();
        let end = table.short_request("end", move |_: Request<'_, Seq>, blocks: u64| {
            s.blocks_in_all.set(Some(blocks));
        })?;
        let s = state.clone();
        let sent = table.short_request("sent", move |_: Request<'_, Seq>, kmers: u64| {
            s.settled.set(s.settled.get() + 1);
            if kmers == FAILED {
                s.failed.set(true);
            } else {
                s.announced.set(s.announced.get() + kmers);
            }
        })?;
        let s = state.clone();
        let why = table.medium_request("why", move |_: Request<'_, Seq>, _: None, text: Payload<'_>| {
            let text = String::from_utf8_lossy(&text.to_vec::<u8>()).into_owned();
            s.why.borrow_mut().get_or_insert(text);
            s.failed.set(true);
        })?;
        Ok(Self { kmers, block, free, end, sent, why })
    }
}
