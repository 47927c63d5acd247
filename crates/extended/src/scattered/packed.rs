//! Scattered transfers by messages: small runs travel packed, with a description of where they are to be put, or are got.
//!
//! # Invariants
//! - packed.1: the bytes here of a get stay mapped and nobody else's until its answers have come, as the caller of [`start`] promises; those of a
//!   put are copied into the messages before the call returns.

use super::Peer;
use super::description::{Description, GROUP_WORDS, MAX_WORDS, Owner};
use super::runs::{Run, Runs, Way};
use crate::Error;
use crate::implicit::Implicit;
use gasworks_core::engine::query::{NUMBER, word};
use gasworks_core::engine::{Ask, Commit};
use gasworks_core::ops::{Answer, Places};
use gasworks_core::{
    Categories, Category, CoreMode, Engine, Handlers, Incoming, OpId, Outgoing, Rank, Received,
};
use gasworks_memory::Rights;
use gasworks_rdma::NicError;
use gasworks_sync::{RawSlice, VolatileSlice, racy};
use std::sync::Arc;

/// The library's handler indices for a put, a get, and the replies to them.
const PUT: u8 = 9;
const PUT_DONE: u8 = 10;
const GET: u8 = 11;
const GOT: u8 = 12;
/// Bytes of the arguments: the number, and the words of the description; or whether it was done.
const ARGS: usize = NUMBER + 8;
/// The most bytes that one message brings or asks for.
const MAX_BYTES: usize = 64 << 10;
/// The most runs of a get for which the places here are kept.
const MAX_PLACES: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Runs of which the next one may be taken in parts.
#[derive(Clone)]
struct Cursor<I> {
    runs: I,
    rest: Option<Run>,
}

impl<I: Iterator<Item = Run>> Cursor<I> {
    /// Whether no run is left.
    fn is_over(&mut self) -> bool {
        self.rest = self.rest.take().or_else(|| self.runs.next());
        self.rest.is_none()
    }

    /// The next run, or its first `max` bytes.
    fn take(&mut self, max: usize) -> Option<Run> {
        let run = self.rest.take().or_else(|| self.runs.next())?;
        let len = run.len.min(max);
        if len < run.len {
            self.rest = Some(Run {
                local: run.local.wrapping_add(len),
                remote: run.remote.wrapping_add(len as u64),
                len: run.len - len,
            });
        }
        Some(Run { len, ..run })
    }
}

/// Starts a transfer, of which all parts join the set. If `immediate`, the first part must find room at once.
///
/// # Safety
/// packed.1.
///
/// # Errors
/// The peer is gone, or a poll finds something wrong; if `immediate`, also [`Error::is_busy`].
pub(super) unsafe fn start<M: CoreMode>(
    engine: &Engine<M>,
    peer: Peer<'_>,
    way: Way,
    runs: &impl Runs,
    set: &Implicit,
    mut immediate: bool,
) -> Result<(), Error> {
    let mut next = Cursor { runs: runs.runs(), rest: None };
    let mut sleeper = engine.sleeper();
    loop {
        if next.is_over() {
            return Ok(());
        }
        let first = next.clone();
        let part = Part::next(peer, way, &mut next, engine.max_medium())?;
        if part.bytes == 0 {
            return Err(Error::Scattered("no message has room for a run of it"));
        }
        let set = set.joined(engine);
        loop {
            // SAFETY: packed.1: the caller promises the bytes here.
            match unsafe { part.send(engine, first.clone(), set) } {
                Ok(_) => break,
                Err(error) if error.is_busy() && !immediate => engine.turn(&mut sleeper)?,
                Err(error) => return Err(peer.explain(error)),
            }
        }
        // Something is under way: the rest is waited for.
        immediate = false;
    }
}

/// What one message does.
struct Part {
    way: Way,
    to: Rank,
    description: Description,
    bytes: usize,
    /// Of a get, where the answer goes.
    places: Arc<[RawSlice]>,
}

impl Part {
    /// As many of the next runs as fit one message, and one answer.
    fn next(
        peer: Peer<'_>,
        way: Way,
        runs: &mut Cursor<impl Iterator<Item = Run>>,
        max: usize,
    ) -> Result<Self, Error> {
        let mut description = Description::new(max / 2 / WORD);
        let (mut bytes, mut places, mut to) = (0, Vec::<RawSlice>::new(), 0);
        loop {
            let described = (description.words().len() + GROUP_WORDS) * WORD;
            // What a put brings goes beside its description, what a get does comes alone.
            let room = if way == Way::Put { max.saturating_sub(described) } else { max };
            let room = room.min(MAX_BYTES).saturating_sub(bytes);
            if room == 0 || !description.has_room() || places.len() == MAX_PLACES {
                break;
            }
            let Some(run) = runs.take(room) else { break };
            let place;
            (to, place) = peer.view.place_of(peer.member, run.remote)?;
            description.push(place, run.len as u32);
            bytes += run.len;
            if way == Way::Get {
                match places.last_mut() {
                    Some(last) if last.as_ptr().wrapping_add(last.len()) == run.local => {
                        *last = RawSlice::new(last.as_ptr(), last.len() + run.len);
                    }
                    _ => places.push(RawSlice::new(run.local, run.len)),
                }
            }
        }
        Ok(Self { way, to, description, bytes, places: places.into() })
    }

    /// Sends it. `runs` begins with those that are in it.
    ///
    /// # Safety
    /// packed.1.
    unsafe fn send<M: CoreMode>(
        &self,
        engine: &Engine<M>,
        runs: Cursor<impl Iterator<Item = Run> + Clone>,
        set: OpId,
    ) -> Result<OpId, gasworks_core::Error> {
        let words = self.description.words();
        let described = bytemuck::cast_slice(words);
        let mut args = [0; ARGS];
        args[NUMBER..].copy_from_slice(&(words.len() as u64).to_le_bytes());
        let (handler, len, counts) = match self.way {
            Way::Put => (PUT, described.len() + self.bytes, Categories::PUT_ALONE),
            Way::Get => (GET, described.len(), Categories::GET),
        };
        let fill = |room: VolatileSlice<'_>| {
            room.write(described);
            let (mut runs, mut at) = (runs.clone(), described.len());
            while at < len
                && let Some(run) = runs.take(len - at)
            {
                let Some(room) = room.slice(at, run.len) else { return };
                // SAFETY: packed.1: the caller promises `run.len` bytes here, which nobody writes; `room` has as many, and is the message's.
                unsafe { racy::copy_in(room.as_ptr(), run.local, run.len) };
                at += run.len;
            }
        };
        let places = Places::Many(self.places.clone());
        // SAFETY: packed.1: the caller promises the places until the answer has come, which is when the operation is done.
        unsafe {
            engine.query_medium(self.to, (handler, &mut args), (len, &fill), places, (Some(set), counts))
        }
    }
}

pub(super) fn register<M: CoreMode>(handlers: &Handlers<M>) -> Result<(), gasworks_core::Error> {
    let enter = |index, name, category, reply, handle| {
        handlers.register_internal(index, name, (category, reply, ARGS), M::box_function(handle))
    };
    enter(PUT, "gasworks.scattered.put", Category::Medium, false, serve_put)?;
    enter(PUT_DONE, "gasworks.scattered.put.done", Category::Short, true, hear)?;
    enter(GET, "gasworks.scattered.get", Category::Medium, false, serve_get)?;
    enter(GOT, "gasworks.scattered.get.done", Category::Medium, true, hear)
}

/// A description that another rank has sent: a private copy, which is checked and then used; and what came behind it.
fn description<'a, M: CoreMode>(
    asked: &Incoming<'a, M>,
    copy: &'a mut [u64; MAX_WORDS],
) -> Option<(&'a [u64], VolatileSlice<'a>)> {
    let Received::Payload(payload) = asked.received() else { return None };
    let words = copy.get_mut(..usize::try_from(word(asked.args(), 1)).ok()?)?;
    let described: &mut [u8] = bytemuck::cast_slice_mut(words);
    let rest = payload.len().checked_sub(described.len())?;
    payload.read(described);
    let behind = payload.slice(described.len(), rest)?;
    Some((words, behind))
}

fn owner<'a, M: CoreMode>(asked: &Incoming<'a, M>, rights: Rights) -> Owner<'a> {
    Owner { peers: asked.engine().peers(), rank: asked.rank(), rights }
}

/// Puts what another rank sends. What cannot be done is said to be so, before a byte is touched: whose mistake it is has the error.
fn serve_put<M: CoreMode>(asked: &Incoming<'_, M>) -> Result<(), Box<gasworks_core::Error>> {
    let args = done(asked, unpack(asked).is_some());
    let args = args.as_flattened();
    Ok(asked.reply(&Outgoing {
        category: Category::Short,
        handler: PUT_DONE,
        args,
        payload: &[],
        landing: 0,
    })?)
}

fn unpack<M: CoreMode>(asked: &Incoming<'_, M>) -> Option<()> {
    let mut copy = [0; MAX_WORDS];
    let (words, bytes) = description(asked, &mut copy)?;
    let owner = owner(asked, Rights::WRITE);
    owner.measure(words, bytes.len()).filter(|&len| len == bytes.len())?;
    let mut from = 0;
    owner.runs(words, |run| {
        bytes.slice(from, run.len())?.copy_to(run);
        from += run.len();
        Some(())
    })
}

/// Sends what another rank gets, as [`serve_put`].
fn serve_get<M: CoreMode>(asked: &Incoming<'_, M>) -> Result<(), Box<gasworks_core::Error>> {
    let mut copy = [0; MAX_WORDS];
    let owner = owner(asked, Rights::READ);
    let found = description(asked, &mut copy)
        .and_then(|(words, _)| Some((words, owner.measure(words, asked.engine().max_medium())?)));
    let (words, len) = found.unwrap_or_default();
    let ask = Ask { category: Category::Medium, least: len, most: len, landing: None, source: None };
    let mut args = done(asked, found.is_some());
    Ok(asked.reply_prepared(&ask, |prepared| {
        let (room, mut at) = (prepared.room(), 0);
        let all = owner.runs(words, |run| {
            run.copy_to(room.slice(at, run.len())?);
            at += run.len();
            Some(())
        });
        if all.is_none() {
            args = done(asked, false);
        }
        Some(Commit { handler: GOT, args: args.as_flattened(), len, landing: 0, source: None })
    })?)
}

fn done<M: CoreMode>(asked: &Incoming<'_, M>, was_done: bool) -> [[u8; 8]; 2] {
    [word(asked.args(), 0), u64::from(was_done)].map(u64::to_le_bytes)
}

/// Takes the reply to a put or a get.
fn hear<M: CoreMode>(answer: &Incoming<'_, M>) -> Result<(), Box<gasworks_core::Error>> {
    let (args, peer) = (answer.args(), answer.source());
    let bytes = match answer.received() {
        Received::Payload(bytes) => bytes,
        _ => VolatileSlice::EMPTY,
    };
    let was = if word(args, 1) == 1 { Ok(Answer::Shared(bytes)) } else { Err(NicError::BadKey { peer }) };
    Ok(answer.engine().answered(peer, word(args, 0), was)?)
}
