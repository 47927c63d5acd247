//! Transfers by messages: how memory is reached that is neither mapped nor known to a network, such as what a rank gives to a region, where
//! the system does not copy it either (`by_process`).
//!
//! `MessageNic` is a network interface for the engine that drives any. A post is a request to the owner of the memory, who puts or gets, and
//! whose reply completes it; a transfer that is longer than a Medium is several.
//!
//! # Invariants
//! - by_message.1: the local bytes of a post stay mapped, unchanged for a put and nobody else's for a get, until its completion is polled
//!   (the promise of [`Nic::post`]); what waits here or is out is not complete.
//! - by_message.2: an engine of `MessageNic` has no memory of its own.

use super::machines::{Machine, Turned};
use super::query::word;
use super::{Ask, Commit, Engine, Incoming, Outgoing, Received, thread};
use crate::handlers::Handlers;
use crate::{Category, CoreMode, Error, Rank, Rdma};
use gasworks_memory::Rights;
use gasworks_rdma::{Abilities, Completion, Direction, EngineError, Key, Nic, NicError, Post, Stage, Tuning};
use gasworks_sync::{Lock, Mode, Par, RawSlice, VolatileSlice};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The library's handler indices for a put, a get, and the replies to them.
const PUT: u8 = 5;
const PUT_DONE: u8 = 6;
const GET: u8 = 7;
const GOT: u8 = 8;
/// Bytes of the arguments: the post's number, then the place, and of a get the length; or whether it was done.
const PUT_ARGS: usize = 16;
const GET_ARGS: usize = 24;
const DONE_ARGS: usize = 16;

/// How many posts may be under way.
const DEPTH: usize = 64;

/// A put or get of no more than a message carries.
#[derive(Clone, Copy, Debug)]
struct Posted {
    direction: Direction,
    peer: Rank,
    place: u64,
    local: RawSlice,
    token: u64,
}

#[derive(Default)]
struct State {
    /// The number of the last one that was sent.
    number: u64,
    /// What is to be sent.
    waiting: VecDeque<Posted>,
    /// What was sent, by number.
    out: BTreeMap<u64, Posted>,
    done: VecDeque<Completion>,
    /// Whether they are among the machines.
    runs: bool,
}

/// The posts of a rank that go by messages.
struct Posts {
    max_medium: usize,
    state: <Par as Mode>::Lock<State>,
}

impl Posts {
    /// The next that is to be sent, and its number.
    fn take(&self) -> Option<(u64, Posted)> {
        self.state.with(|state| {
            let posted = state.waiting.pop_front()?;
            state.number += 1;
            Some((state.number, posted))
        })
    }

    /// From now on it may be answered, so nobody here touches its bytes any more.
    fn enter(&self, number: u64, posted: Posted) {
        self.state.with(|state| state.out.insert(number, posted));
    }

    /// One could not be sent now.
    fn again(&self, number: u64, posted: Posted) {
        self.state.with(|state| {
            state.out.remove(&number);
            state.waiting.push_back(posted);
        });
    }

    /// What was sent to a rank by this number, and is answered.
    fn answered(&self, from: Rank, number: u64) -> Option<Posted> {
        self.state.with(|state| {
            state.out.get(&number).filter(|posted| posted.peer == from)?;
            state.out.remove(&number)
        })
    }

    /// Whether a machine is to be started for them, which is not running yet.
    fn start(&self) -> bool {
        self.state.with(|state| !std::mem::replace(&mut state.runs, true))
    }

    fn complete(&self, token: u64, result: Result<(), NicError>) {
        self.state.with(|state| state.done.push_back(Completion { token, stage: Stage::Whole, result }));
    }
}

/// A network interface whose posts are messages.
struct MessageNic(Arc<Posts>);

impl Nic for MessageNic {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn abilities(&self) -> Abilities {
        Abilities { largest: self.0.max_medium, depth: DEPTH, burst: DEPTH, ..Abilities::PLAIN }
    }

    unsafe fn register(&self, _: RawSlice) -> Result<Key, NicError> {
        Ok(Key::default())
    }

    fn deregister(&self, _: &Key) -> Result<(), NicError> {
        Ok(())
    }

    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        let &Post { direction, peer, local, remote_offset: place, token, .. } = post;
        self.0.state.with(|state| state.waiting.push_back(Posted { direction, peer, place, local, token }));
        Ok(())
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        let done: Vec<_> = self.0.state.with(|state| {
            let count = burst.min(state.done.len());
            state.done.drain(..count).collect()
        });
        done.iter().copied().for_each(sink);
        done.len()
    }
}

/// What drives them.
pub(super) struct ByMessage<M: CoreMode> {
    pub(super) rdma: Rdma<M, M::Nic>,
    posts: Arc<Posts>,
}

impl<M: CoreMode> ByMessage<M> {
    /// Of a rank whose Mediums have so many bytes.
    pub(super) fn new(max_medium: usize) -> Result<Self, EngineError> {
        let posts = Arc::new(Posts { max_medium, state: Lock::new(State::default()) });
        let tuning = Tuning { descriptors: DEPTH, bounce_space: 0, ..Tuning::default() };
        // SAFETY: by_message.2: the memory that it is given has no bytes.
        let rdma = unsafe { Rdma::new(M::box_nic(MessageNic(posts.clone())), RawSlice::EMPTY, &tuning) }?;
        Ok(Self { rdma, posts })
    }

    /// Sends what is posted, as far as credits and room go; not in a handler, whose thread polls afterwards.
    pub(super) fn send(&self, engine: &Engine<M>) {
        if !thread::is_free() {
            return;
        }
        // What must wait comes to the end, so as many turns as there are now are enough.
        for _ in 0..self.posts.state.with(|state| state.waiting.len()) {
            let Some((number, posted)) = self.posts.take() else { return };
            match send(engine, &self.posts, number, &posted) {
                Ok(()) => {}
                Err(error) if error.is_busy() => self.posts.again(number, posted),
                Err(error) => {
                    self.posts.answered(posted.peer, number);
                    self.posts.complete(posted.token, Err(NicError::PeerGone { peer: posted.peer }));
                    engine.fail_later(error);
                }
            }
        }
    }

    /// A transfer was started: sends what can be sent, and has the rest go on at every poll.
    pub(super) fn go_on(&self, engine: &Engine<M>) {
        if self.posts.start() {
            engine.start_machine(Arc::new(Turn));
        }
        self.send(engine);
    }
}

/// The posts as a machine, while there are any.
struct Turn;

impl<M: CoreMode> Machine<M> for Turn {
    fn turn(&self, engine: &Engine<M>) -> Result<Turned, Error> {
        let Some(ByMessage { rdma, posts }) = engine.by_message() else { return Ok(Turned::Ended) };
        if rdma.poll(rdma.burst(), &mut |token, progress| engine.go_on(token, progress)) > 0 {
            engine.wake();
        }
        engine.by_message().into_iter().for_each(|by_message| by_message.send(engine));
        if rdma.pending() == 0 {
            posts.state.with(|state| state.runs = false);
            // One that another thread has started meanwhile relies on this machine, or has one of its own.
            if rdma.pending() == 0 || !posts.start() {
                return Ok(Turned::Ended);
            }
        }
        Ok(if posts.state.with(|state| state.waiting.is_empty()) { Turned::Waits } else { Turned::Busy })
    }
}

fn send<M: CoreMode>(engine: &Engine<M>, posts: &Posts, number: u64, posted: &Posted) -> Result<(), Error> {
    let &Posted { direction, peer, place, local, .. } = posted;
    let words = [number, place, local.len() as u64].map(u64::to_le_bytes);
    let args = words.as_flattened();
    if direction != Direction::Put {
        let message = Outgoing { category: Category::Short, handler: GET, args, payload: &[], landing: 0 };
        posts.enter(number, *posted);
        return engine.try_request(peer, &message);
    }
    let prepared = engine.try_prepare(peer, &medium(local.len()))?;
    // SAFETY: by_message.1: the post is not complete, so its bytes are mapped and nobody writes to them.
    unsafe { local.borrow() }.copy_to(prepared.room());
    posts.enter(number, *posted);
    let args = &args[..PUT_ARGS];
    prepared.commit(&Commit { handler: PUT, args, len: local.len(), landing: 0, source: None })
}

fn medium(len: usize) -> Ask {
    Ask { category: Category::Medium, least: len, most: len, landing: None, source: None }
}

/// Enters the handlers for what other ranks put and get by messages.
///
/// # Errors
/// An index is taken.
pub fn register<M: CoreMode>(handlers: &Handlers<M>) -> Result<(), Error> {
    let enter = |index, name, category, reply, bytes, handle| {
        handlers.register_internal(index, name, (category, reply, bytes), M::box_function(handle))
    };
    enter(PUT, "gasworks.put", Category::Medium, false, PUT_ARGS, serve_put)?;
    enter(PUT_DONE, "gasworks.put.done", Category::Short, true, DONE_ARGS, hear)?;
    enter(GET, "gasworks.get", Category::Short, false, GET_ARGS, serve_get)?;
    enter(GOT, "gasworks.get.done", Category::Medium, true, DONE_ARGS, hear)
}

/// Puts what another rank sends. What cannot be done is said to be so: whose mistake it is has the error.
fn serve_put<M: CoreMode>(asked: &Incoming<'_, M>) -> Result<(), Box<Error>> {
    let (args, Received::Payload(bytes)) = (asked.args(), asked.received()) else { return Ok(()) };
    let place = asked.engine().peers().reach(asked.rank(), word(args, 1), bytes.len(), Rights::WRITE);
    let place = place.ok().flatten();
    place.into_iter().for_each(|place| bytes.copy_to(place));
    let args = done_args(word(args, 0), place.is_some());
    let args = args.as_flattened();
    let done = Outgoing { category: Category::Short, handler: PUT_DONE, args, payload: &[], landing: 0 };
    Ok(asked.reply(&done)?)
}

/// Sends what another rank gets, as [`serve_put`].
fn serve_get<M: CoreMode>(asked: &Incoming<'_, M>) -> Result<(), Box<Error>> {
    let (args, engine) = (asked.args(), asked.engine());
    let len = usize::try_from(word(args, 2)).ok().filter(|&len| len <= engine.max_medium());
    let place = len
        .and_then(|len| engine.peers().reach(asked.rank(), word(args, 1), len, Rights::READ).ok().flatten());
    let bytes = place.unwrap_or(VolatileSlice::EMPTY);
    let args = done_args(word(args, 0), place.is_some());
    Ok(asked.reply_prepared(&medium(bytes.len()), |prepared| {
        bytes.copy_to(prepared.room());
        Some(Commit { handler: GOT, args: args.as_flattened(), len: bytes.len(), landing: 0, source: None })
    })?)
}

fn done_args(number: u64, was_done: bool) -> [[u8; 8]; 2] {
    [number, u64::from(was_done)].map(u64::to_le_bytes)
}

/// Takes the reply to a put or a get.
fn hear<M: CoreMode>(answer: &Incoming<'_, M>) -> Result<(), Box<Error>> {
    let (args, from) = (answer.args(), answer.source());
    let bytes = match answer.received() {
        Received::Payload(bytes) => bytes,
        _ => VolatileSlice::EMPTY,
    };
    let posts = answer.engine().by_message().map(|by_message| &by_message.posts);
    let posted = posts.and_then(|posts| Some((posts, posts.answered(from, word(args, 0))?)));
    let Some((posts, Posted { direction, local, token, .. })) = posted else {
        let what = "it answers a put or a get that nobody has made".into();
        return Err(Error::BadMessage { from, what }.into());
    };
    let target = if direction == Direction::Put { RawSlice::EMPTY } else { local };
    let was_done = word(args, 1) == 1 && bytes.len() == target.len();
    if was_done {
        // SAFETY: by_message.1: the post is completed below, so until then its bytes are mapped and, of a get, nobody else's.
        bytes.copy_to(unsafe { target.borrow() });
    }
    posts.complete(token, if was_done { Ok(()) } else { Err(NicError::BadKey { peer: from }) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(token: u64) -> Posted {
        Posted { direction: Direction::Put, peer: 3, place: 0, local: RawSlice::EMPTY, token }
    }

    /// A peer may guess numbers. As long as a post's bytes are being copied nobody can end it.
    #[test]
    fn a_post_is_not_answered_before_it_is_sent() {
        let posts = Posts { max_medium: 8, state: Lock::new(State::default()) };
        posts.state.with(|state| state.waiting.extend([posted(1), posted(2)]));
        let (number, first) = posts.take().expect("it waits");
        assert!(posts.answered(3, number).is_none(), "it is being copied");
        posts.enter(number, first);
        assert!(posts.answered(2, number).is_none(), "by another rank");
        // There was no room: it comes to the end, under another number.
        posts.again(number, first);
        assert!(posts.answered(3, number).is_none(), "it was not sent");
        for token in [2, 1] {
            let (number, next) = posts.take().expect("it waits");
            posts.enter(number, next);
            assert_eq!(posts.answered(3, number).map(|posted| posted.token), Some(token));
            assert!(posts.answered(3, number).is_none(), "twice");
        }
        assert!(posts.take().is_none());
    }

    #[test]
    fn one_machine_runs_for_all_posts() {
        let posts = Posts { max_medium: 8, state: Lock::new(State::default()) };
        assert_eq!([posts.start(), posts.start()], [true, false]);
        posts.state.with(|state| state.runs = false);
        assert!(posts.start());
    }
}
