//! An engine over a wire that refuses what it is told to: nothing is lost by it, no sleep either.
#![allow(unsafe_code)]

use gasworks_core::message::{Encoded, Head, Returned};
use gasworks_core::{
    Also, Arrived, Ask, Attributes, Category, Class, Commit, Domains, Engine, Entry, Error, Flow, Handlers,
    Limits, Machine, Outgoing, Parts, Patience, Policy, Rank, Rdma, Reservation, Signature, Transfer, Turned,
    Wait, Wire, WireError,
};
use gasworks_memory::{Grows, Growth, Largest, MemoryError, Peer, PeerFlags, RegionTable, Rights};
use gasworks_rdma::{Abilities, Completion, Direction, Key, Nic, NicError, Post, Stage, Tuning};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Mode, Par, RawSlice, VolatileSlice};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const GONE: WireError = WireError::PeerGone { rank: 1 };
const CORRUPT: WireError = WireError::Corrupt { transport: "fickle", at: 0, what: String::new() };
/// The largest Medium, and the largest Long.
const MEDIUM: usize = 512;
const LONG: usize = 4096;

type Words = Box<[AtomicU64]>;

fn words(bytes: usize) -> Words {
    (0..bytes / 8).map(|_| AtomicU64::new(0)).collect()
}

fn bytes_of(words: &Words, len: usize) -> VolatileSlice<'_> {
    VolatileSlice::from_words(words).slice(0, len).expect("as many bytes")
}

/// What the wire brings, refuses and has given out, and what was said when it was to sleep.
#[derive(Default)]
struct State {
    arriving: Vec<(Vec<u8>, Vec<u8>)>,
    fails: bool,
    refuses_commits: bool,
    reserved: i32,
    committed: u32,
    armed: u32,
}

#[derive(Clone)]
struct Fickle(Arc<(Mutex<State>, Words)>);

impl Fickle {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.0.lock().expect("nobody panics in it"))
    }
    fn balance(&self) -> (i32, u32) {
        self.with(|state| (state.reserved, state.committed))
    }
}

impl<M: Mode> Wire<M> for Fickle {
    fn attributes(&self) -> Attributes {
        let limits = Limits { max_medium: MEDIUM, max_long: LONG as u64, packed_long: MEDIUM };
        Attributes::new("fickle", limits, Flow { depth: 8, total: 8, volume: 0 })
    }
    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        self.with(|state| state.reserved += 1);
        Ok(Reservation::new(to, class, bytes_of(&self.0.1, payload), [0; 2]))
    }
    fn commit(&self, _: Reservation<'_>, _: &[u8]) -> Result<(), WireError> {
        self.with(|state| {
            state.reserved -= 1;
            if state.refuses_commits {
                return Err(GONE);
            }
            state.committed += 1;
            Ok(())
        })
    }
    fn cancel(&self, _: Reservation<'_>) {
        self.with(|state| state.reserved -= 1);
    }
    fn poll(&self, _: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let (mut arriving, fails) = self.with(|state| (std::mem::take(&mut state.arriving), state.fails));
        for (head, payload) in &mut arriving {
            sink(Arrived { from: 1, head, payload: VolatileSlice::from_mut(payload) });
        }
        if fails { Err(CORRUPT) } else { Ok(arriving.len()) }
    }
    fn wait(&self) -> Wait<'_> {
        Wait::Nothing
    }
    fn arm(&self) -> Result<Duration, WireError> {
        self.with(|state| state.armed += 1);
        Ok(Duration::from_millis(1))
    }
}

/// A NIC that has done everything by the next poll.
#[derive(Default)]
struct Instant(Mutex<Vec<u64>>);

impl Nic for Instant {
    fn name(&self) -> &'static str {
        "instant"
    }
    fn abilities(&self) -> Abilities {
        let (largest, depth) = (LONG, 8);
        Abilities { largest, depth, ..Abilities::default() }
    }
    unsafe fn register(&self, _: RawSlice) -> Result<Key, NicError> {
        Ok(Key::default())
    }
    fn deregister(&self, _: &Key) -> Result<(), NicError> {
        Ok(())
    }
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        self.0.lock().expect("nobody panics in it").push(post.token);
        Ok(())
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        let mut posted = self.0.lock().expect("nobody panics in it");
        let now = posted.len().min(burst);
        posted.drain(..now).for_each(|token| sink(Completion { token, stage: Stage::Whole, result: Ok(()) }));
        now
    }
}

/// The lengths of both segments, which their owners may change as they like; and the mapped bytes.
struct Lengths(AtomicU64, Words);

impl Growth for Lengths {
    fn length(&self, _: u32) -> u64 {
        self.0.load(Relaxed)
    }
    fn grow(&self, len: u64) -> Result<u64, MemoryError> {
        Ok(len)
    }
    fn largest(&self) -> Largest {
        Largest::default()
    }
}

/// Rank 0 of two with segments of so many bytes, the other's mapped or reached by the NIC. It sleeps at once.
fn engine_with(mapped: bool, len: u64) -> (Engine<Par>, Fickle, u8) {
    let handlers = Handlers::<Par>::new();
    let signature = Signature {
        name: "short".into(),
        category: Category::Short,
        reply: false,
        nargs: 0,
        also: Also::empty(),
    };
    let handler = handlers.register(None, Entry { signature, function: Box::new(|_| Ok(())) });
    let handler = handler.expect("a free index");
    let lengths = Lengths(AtomicU64::new(len), words(LONG));
    let bytes = bytes_of(&lengths.1, LONG).raw();
    let peer = |flags| Peer { mapped: bytes, len, remote_base: 0, key: Vec::new(), flags };
    let other = if mapped { PeerFlags::MAPPED } else { PeerFlags::empty() };
    let peers = vec![peer(PeerFlags::SELF | PeerFlags::MAPPED), peer(other)];
    let wire = Fickle(Arc::new((Mutex::default(), words(MEDIUM))));
    let tuning = Tuning { descriptors: 8, ..Tuning::default() };
    let nic = Box::<Instant>::default() as Box<dyn Nic + Send + Sync>;
    // SAFETY: `RawSlice::EMPTY` has no bytes, so there are none to keep mapped.
    let nic = unsafe { Rdma::<Par, _>::new(nic, RawSlice::EMPTY, &tuning) };
    let at_once = Policy { spins: 0, yields: 0, ..Policy::for_host(1, 1) };
    let parts = Parts {
        rank: 0,
        wires: vec![Box::new(wire.clone()) as Box<dyn Wire<Par> + Send + Sync>],
        route: vec![0, 0],
        // SAFETY: the words of `lengths` are on the heap and do not move with it into the table's owner; they are atomics.
        peers: unsafe { RegionTable::growing(peers, Arc::new(lengths), Grows::AnyTime) },
        rdma: if mapped { Domains::none() } else { Domains::one(nic.expect("it needs no memory")) },
        patience: Patience::new(at_once),
        process_vm: false,
        handlers,
        observer: None,
    };
    (Engine::new(parts), wire, handler)
}

/// Rank 0 of two, without a segment's byte in use.
fn engine() -> (Engine<Par>, Fickle, u8) {
    engine_with(true, 0)
}

fn request(handler: u8) -> (Vec<u8>, Vec<u8>) {
    let head = Head::Message { category: Category::Short, reply: false, handler, landing: None };
    (Encoded::new(head, Returned::default(), &[]).as_bytes().to_vec(), Vec::new())
}

#[test]
fn what_a_lost_message_was_to_return_is_still_owed() {
    let (engine, wire, handler) = engine();
    let owed = || engine.peek().owed_to;
    wire.with(|state| state.arriving = vec![request(handler)]);
    assert_eq!(engine.poll(), Ok(1));
    assert_eq!(owed(), [(1, 1)]);
    wire.with(|state| state.refuses_commits = true);
    let short = Outgoing { category: Category::Short, handler, args: &[], payload: &[], landing: 0 };
    let long = Outgoing { category: Category::Long, ..short };
    for message in [short, long] {
        assert_eq!(engine.request(1, &message), Err(Error::Wire(GONE)));
        assert_eq!((owed(), engine.out(1)), (vec![(1, 1)], (0, 0)), "{message:?}");
    }
    assert_eq!(engine.poll(), Err(Error::Wire(GONE)), "an idle rank returns what it owes");
    assert_eq!(owed(), [(1, 1)]);
    wire.with(|state| state.refuses_commits = false);
    assert_eq!(engine.poll(), Ok(0));
    assert_eq!((owed(), wire.balance()), (vec![], (0, 1)));
}

/// Else a sender of large payloads waits until its last one is read before it copies the next.
#[test]
fn a_quarter_of_the_volume_is_returned_at_once() {
    let (engine, wire, _) = engine();
    let signature = Signature {
        name: "medium".into(),
        category: Category::Medium,
        reply: false,
        nargs: 0,
        also: Also::empty(),
    };
    let handler = engine.handlers().register(None, Entry { signature, function: Box::new(|_| Ok(())) });
    let handler = handler.expect("a free index");
    let head = Head::Message { category: Category::Medium, reply: false, handler, landing: None };
    let arrives = |len| {
        let head = Encoded::new(head, Returned::default(), &[]).as_bytes().to_vec();
        wire.with(|state| state.arriving = vec![(head, vec![1; len])]);
        assert_eq!(engine.poll(), Ok(1));
        (engine.peek().owed_to, wire.balance().1)
    };
    let quarter = engine.flow(1).expect("it is there").volume as usize / 4;
    assert_eq!(arrives(quarter - 1), (vec![(1, 1)], 0));
    assert_eq!(arrives(1), (vec![], 1));
    assert_eq!(arrives(quarter), (vec![], 2));
}

#[test]
fn a_long_of_no_bytes_is_prepared_anywhere_and_one_of_some_is_not() {
    let (engine, wire, handler) = engine();
    let ask =
        |most| Ask { category: Category::Long, least: most, most, landing: Some(u64::MAX), source: None };
    for _ in 0..20 {
        let refused = engine.prepare(1, &ask(1)).map(|_| ()).expect_err("outside the segment").to_string();
        assert!(refused.contains("outside the segment of rank 1"), "{refused}");
    }
    assert_eq!((wire.balance(), engine.out(1)), ((0, 0), (0, 0)));
    let commit = Commit { handler, args: &[], len: 0, landing: u64::MAX, source: None };
    let prepared = engine.prepare(1, &ask(0)).expect("room for nothing");
    assert_eq!(prepared.commit(&commit), Ok(()));
    let elsewhere = engine.prepare(1, &ask(0)).expect("room for nothing");
    let refused = elsewhere.commit(&Commit { landing: 7, ..commit });
    assert_eq!(refused, Err(Error::Landing { to: 1, asked: u64::MAX, landing: 7 }));
    assert_eq!((wire.balance(), engine.out(1)), ((0, 1), (1, 0)));
}

#[test]
fn credits_bring_nothing_else() {
    let (engine, wire, _) = engine();
    let credits = Encoded::new(Head::Credits, Returned::default(), &[]).as_bytes().to_vec();
    wire.with(|state| state.arriving = vec![(credits.clone(), Vec::new())]);
    assert_eq!(engine.poll(), Ok(1));
    wire.with(|state| state.arriving = vec![(credits, vec![1])]);
    let refused = engine.poll().expect_err("a payload").to_string();
    assert!(refused.contains("rank 1") && refused.contains("credits that bring something else"), "{refused}");
}

/// A request that was prepared, or whose payload has landed, and which the wire then refuses.
#[test]
fn a_request_refused_at_the_last_step_gives_its_credit_back() {
    let (engine, wire, handler) = engine();
    wire.with(|state| state.refuses_commits = true);
    let ask = Ask { category: Category::Medium, least: 8, most: 64, landing: None, source: None };
    for len in [64, 5] {
        let prepared = engine.prepare(1, &ask).expect("room");
        assert_eq!(engine.out(1), (1, 64));
        let commit = Commit { handler, args: &[], len, landing: 0, source: None };
        assert_eq!(prepared.commit(&commit), Err(Error::Wire(GONE)));
        assert_eq!((wire.balance(), engine.out(1)), ((0, 0), (0, 0)), "{len} bytes");
    }

    let (engine, wire, handler) = engine_with(false, LONG as u64);
    wire.with(|state| state.refuses_commits = true);
    let payload = [7; MEDIUM + 1];
    let long = Outgoing { category: Category::Long, handler, args: &[], payload: &payload, landing: 0 };
    assert_eq!(engine.request(1, &long), Ok(()), "the payload has landed");
    assert_eq!(engine.out(1), (0, 0));
    assert_eq!(engine.poll(), Err(Error::Wire(GONE)), "what nobody could be told of yet");
    let (least, source) = (payload.len(), Some(payload.len()));
    let ask = Ask { category: Category::Long, least, most: least, landing: Some(8), source };
    for len in [least, 0] {
        let prepared = engine.prepare(1, &ask).expect("a credit");
        assert_eq!(
            prepared.commit(&Commit { handler, args: &[], len, landing: 8, source: Some(&payload) }),
            Ok(())
        );
        assert_eq!((engine.out(1), engine.poll()), ((0, 0), Err(Error::Wire(GONE))), "{len} bytes");
    }
    assert_eq!((wire.balance(), engine.poll()), ((0, 0), Ok(0)));
}

#[test]
fn at_a_known_landing_as_much_is_granted_as_the_segment_has() {
    for mapped in [true, false] {
        let (engine, wire, _) = engine_with(mapped, 1000);
        let granted = |least, most, landing| {
            let ask = Ask { category: Category::Long, least, most, landing: Some(landing), source: None };
            engine.prepare(1, &ask).map(|prepared| (prepared.granted(), prepared.room().len()))
        };
        assert_eq!(granted(64, 4096, 900), Ok((100, 100)));
        assert_eq!(granted(0, usize::MAX, 990), Ok((10, 10)));
        assert_eq!(granted(100, 100, 900), Ok((100, 100)));
        for landing in [1000, 1001, u64::MAX] {
            assert_eq!(granted(0, usize::MAX, landing), Ok((0, 0)));
        }
        let refused = granted(101, 4096, 900).expect_err("the least does not fit").to_string();
        assert!(refused.contains("outside the segment of rank 1"), "{refused}");
        assert_eq!((wire.balance(), engine.out(1)), ((0, 0), (0, 0)));
    }
}

/// More than a message carries is made in memory of the library's own, where nobody knows yet where it lands.
#[test]
fn a_long_made_before_it_is_known_where_it_lands_may_be_as_long_as_any() {
    for mapped in [true, false] {
        let (engine, wire, handler) = engine_with(mapped, LONG as u64);
        let prepare = |least| {
            let ask = Ask { category: Category::Long, least, most: usize::MAX, landing: None, source: None };
            engine.prepare(1, &ask)
        };
        assert_eq!(prepare(MEDIUM).map(|prepared| prepared.granted()), Ok(MEDIUM), "in the message");
        let granted = |least| prepare(least).map(|prepared| (prepared.granted(), prepared.room().len()));
        assert_eq!(granted(MEDIUM + 1), Ok((LONG, LONG)));
        assert!(granted(LONG + 1).is_err_and(|e| e.to_string().contains("at most 4096")));
        assert_eq!(wire.balance(), (0, 0));
        for (sent, len) in [LONG, MEDIUM + 1, 3, 0].into_iter().enumerate() {
            let prepared = prepare(MEDIUM + 1).expect("a credit");
            prepared.room().write(&[sent as u8 + 1; LONG]);
            assert_eq!(
                prepared.commit(&Commit { handler, args: &[], len, landing: 0, source: None }),
                Ok(())
            );
            assert_eq!((engine.poll().is_ok(), wire.balance()), (true, (0, sent as u32 + 1)));
            if let Ok(Some(landed)) = engine.peers().reach(1, 0, LONG, Rights::all()) {
                let mut bytes = [0; LONG];
                landed.read(&mut bytes);
                assert!(bytes[..len].iter().all(|&byte| usize::from(byte) == sent + 1), "{len} bytes");
                assert!(bytes[len..].iter().all(|&byte| usize::from(byte) <= sent), "and no more");
            }
        }
        assert_eq!(engine.out(1), (4, 0), "nobody has replied, and nothing travelled in a message");
        let prepared = prepare(MEDIUM + 1).expect("a credit");
        assert!(
            prepared.commit(&Commit { handler, args: &[], len: 8, landing: u64::MAX, source: None }).is_err()
        );
        assert_eq!((engine.out(1), wire.balance()), ((4, 0), (0, 4)));
    }
}

/// No wire, no credit; a message that no handler takes is refused, and a handler's failure is the next poll's.
#[test]
fn what_a_rank_sends_to_itself_meets_no_wire() {
    let (engine, wire, handler) = engine_with(true, LONG as u64);
    wire.with(|state| state.refuses_commits = true);
    let short = Outgoing { category: Category::Short, handler, args: &[], payload: &[], landing: 0 };
    for _ in 0..100 {
        assert_eq!(engine.try_request(0, &short), Ok(()));
    }
    let wrong =
        engine.request(0, &Outgoing { args: &[0; 4], ..short }).expect_err("it takes none").to_string();
    assert!(wrong.contains("request with 1 arguments") && wrong.contains("which takes a short"), "{wrong}");
    let large = Outgoing { category: Category::Medium, payload: &[0; MEDIUM + 1], ..short };
    assert!(matches!(engine.request(0, &large), Err(Error::PayloadTooLarge { to: 0, .. })));
    let beyond = Outgoing { category: Category::Long, payload: &[0; 8], landing: LONG as u64, ..short };
    assert!(matches!(engine.request(0, &beyond), Err(Error::Memory { .. })));
    let unknown = engine.request(0, &Outgoing { handler: handler - 1, ..short }).expect_err("there is none");
    assert!(unknown.to_string().contains("no handler is registered at index"), "{unknown}");
    assert_eq!((engine.out(0), wire.balance(), engine.poll()), ((0, 0), (0, 0), Ok(0)));

    let signature = Signature {
        name: "fails".into(),
        category: Category::Short,
        reply: false,
        nargs: 0,
        also: Also::empty(),
    };
    let failure = || Error::Handler { from: 0, what: "it fails".into() };
    let function = Box::new(move |_: &gasworks_core::Incoming<'_, Par>| Err(Box::new(failure())));
    let fails = engine.handlers().register(None, Entry { signature, function }).expect("a free index");
    assert_eq!(engine.request(0, &Outgoing { handler: fails, ..short }), Ok(()));
    assert_eq!((engine.poll(), engine.poll()), (Err(failure()), Ok(0)));
}

#[test]
fn of_two_failures_in_one_poll_the_next_poll_tells_the_second() {
    let (engine, wire, _) = engine();
    let unknown = request(77);
    let fails = |fails, arriving| wire.with(|state| (state.fails, state.arriving) = (fails, arriving));
    fails(true, vec![unknown]);
    let first = engine.poll().expect_err("no such handler").to_string();
    assert!(first.contains("index 77"), "{first}");
    fails(false, vec![]);
    assert_eq!(engine.poll(), Err(Error::Wire(CORRUPT)));
    engine.fail_later(Error::Wire(GONE));
    fails(true, vec![]);
    assert_eq!(engine.poll(), Err(Error::Wire(GONE)));
    fails(false, vec![]);
    assert_eq!((engine.poll(), engine.poll()), (Err(Error::Wire(CORRUPT)), Ok(0)));
}

/// Is over at its third turn, and waits like this before.
struct Third(AtomicU64, Turned);

impl Machine<Par> for Third {
    fn turn(&self, _: &Engine<Par>) -> Result<Turned, Error> {
        Ok(if self.0.fetch_add(1, Relaxed) == 2 { Turned::Ended } else { self.1 })
    }
}

/// What waits for room is turned again, and no thread sleeps before that.
#[test]
fn nobody_sleeps_while_a_machine_waits_for_room() {
    let (engine, wire, _) = engine();
    engine.start_machine(Arc::new(Third(AtomicU64::new(0), Turned::Busy)));
    let mut sleeper = engine.sleeper();
    assert_eq!(engine.peek().postponed, 1);
    for armed in [0, 0, 1, 2] {
        engine.turn(&mut sleeper).expect("a turn");
        assert_eq!(wire.with(|state| state.armed), armed);
    }
    assert_eq!(engine.peek().postponed, 0);
}

/// A poll that handles nothing may still end what this thread, or another, waits for.
#[test]
fn a_machine_that_is_over_ends_sleeps() {
    let (engine, wire, _) = engine();
    engine.start_machine(Arc::new(Third(AtomicU64::new(0), Turned::Waits)));
    let mut sleeper = engine.sleeper();
    for (armed, sleeps) in [(1, 1), (2, 2), (3, 2), (4, 3)] {
        engine.turn(&mut sleeper).expect("a turn");
        assert_eq!((wire.with(|state| state.armed), engine.peek().sleeps), (armed, sleeps));
    }
}

/// A thread that waits for its own put completes what others have started.
#[test]
fn an_operation_that_another_thread_completes_ends_sleeps() {
    let (engine, wire, handler) = engine_with(false, LONG as u64);
    let mut waiting = engine.sleeper();
    let mut local = [1u8; 8];
    let transfer = Transfer {
        direction: Direction::Put,
        peer: 1,
        offset: 0,
        local: local.as_mut_ptr(),
        len: local.len(),
        set: None,
        local_apart: false,
    };
    // SAFETY: `local` lives until the end of this function, before which the put is found done; and this NIC touches no bytes.
    let id = unsafe { engine.transfer(&transfer, None) }.map_err(|(error, _)| error).expect("a put");
    let payload = [7; MEDIUM + 1];
    let long = Outgoing { category: Category::Long, handler, args: &[], payload: &payload, landing: 0 };
    std::thread::scope(|scope| scope.spawn(|| engine.try_request(1, &long)).join().expect("the other"))
        .expect("a request");
    engine.turn(&mut waiting).expect("a turn");
    let (armed, sleeps) = (wire.with(|state| state.armed), engine.peek().sleeps);
    assert_eq!((armed, sleeps), (1, 0), "it sleeps though the put is done");
    assert!(engine.test(id).is_ok_and(|done| done.is_some()));
}
