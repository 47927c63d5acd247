//! An engine over a wire that refuses what it is told to: nothing is lost by it.

use gasworks_core::message::{Encoded, Head, Returned};
use gasworks_core::{
    Arrived, Ask, Category, Class, Engine, Entry, Error, Flow, Handlers, Limits, Outgoing, Parts, Patience,
    Policy, Rank, Reservation, Signature, Wire, WireError,
};
use gasworks_memory::{Growth, Largest, MemoryError, Peer, PeerFlags, PeerTable};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use gasworks_sync::{Lent, RawBytes, Seq};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const GONE: WireError = WireError::PeerGone { rank: 1 };

/// What the wire brings, refuses and has given out.
#[derive(Default)]
struct State {
    arriving: RefCell<Vec<(Vec<u8>, Vec<u8>)>>,
    refuses_commits: Cell<bool>,
    reserved: Cell<i32>,
    committed: Cell<u32>,
}

#[derive(Clone, Default)]
struct Fickle(Rc<State>);

impl Wire for Fickle {
    fn name(&self) -> &'static str {
        "fickle"
    }
    fn limits(&self) -> Limits {
        Limits { max_medium: 512, max_long: 512 }
    }
    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation, WireError> {
        assert_eq!(payload, 0, "nothing here goes in a packet");
        self.0.reserved.set(self.0.reserved.get() + 1);
        Ok(Reservation { to, class, payload: RawBytes::EMPTY, ticket: [0; 2] })
    }
    fn commit(&self, _: Reservation, _: &[u8]) -> Result<(), WireError> {
        self.0.reserved.set(self.0.reserved.get() - 1);
        if self.0.refuses_commits.get() {
            return Err(GONE);
        }
        self.0.committed.set(self.0.committed.get() + 1);
        Ok(())
    }
    fn cancel(&self, _: Reservation) {
        self.0.reserved.set(self.0.reserved.get() - 1);
    }
    fn poll(&self, _: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let arriving = self.0.arriving.take();
        for (head, payload) in &arriving {
            // SAFETY: the sink only reads the bytes, which outlive the call.
            let payload = unsafe { RawBytes::new(payload.as_ptr().cast_mut(), payload.len()) };
            sink(Arrived { from: 1, head, payload: Lent::new(payload) });
        }
        Ok(arriving.len())
    }
    fn sleep(&self, _: Duration, _: &dyn Fn() -> bool) {}
    fn wake(&self) {}
}

/// The lengths of both segments, which their owners may change as they like.
struct Lengths(AtomicU64);

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

/// Rank 0 of two, without a segment's byte in use.
fn engine() -> (Engine<Seq>, Fickle, u8) {
    let handlers = Handlers::<Seq>::new();
    let signature = Signature { name: "short".into(), category: Category::Short, reply: false, nargs: 0 };
    let handler = handlers.register(None, Entry { signature, function: Box::new(|_| Ok(())) });
    let handler = handler.expect("a free index");
    let peer = |flags| Peer { mapped: RawBytes::EMPTY, len: 0, remote_base: 0, key: Vec::new(), flags };
    let peers = vec![peer(PeerFlags::SELF | PeerFlags::MAPPED), peer(PeerFlags::MAPPED)];
    let wire = Fickle::default();
    let parts = Parts {
        rank: 0,
        wires: vec![Box::new(wire.clone()) as Box<dyn Wire>],
        route: vec![0, 0],
        peers: PeerTable::growing(peers, Arc::new(Lengths(AtomicU64::new(0)))),
        rdma: None,
        flow: Flow { depth: 8, total: 8, volume: 0 },
        patience: Patience::new(Policy::for_host(1, 1)),
        handlers,
    };
    (Engine::new(parts), wire, handler)
}

fn request(handler: u8) -> (Vec<u8>, Vec<u8>) {
    let head = Head::Message { category: Category::Short, reply: false, handler, landing: None };
    (Encoded::new(head, Returned::default(), &[]).as_bytes().to_vec(), Vec::new())
}

#[test]
fn what_a_lost_message_was_to_return_is_still_owed() {
    let (engine, wire, handler) = engine();
    let owed = || engine.peek().owed_to;
    wire.0.arriving.replace(vec![request(handler)]);
    assert_eq!(engine.poll(), Ok(1));
    assert_eq!(owed(), [(1, 1)]);
    wire.0.refuses_commits.set(true);
    let short = Outgoing { category: Category::Short, handler, args: &[], payload: &[], landing: 0 };
    let long = Outgoing { category: Category::Long, ..short };
    for message in [short, long] {
        assert_eq!(engine.request(1, &message), Err(Error::Wire(GONE)));
        assert_eq!((owed(), engine.out(1)), (vec![(1, 1)], (0, 0)), "{message:?}");
    }
    assert_eq!(engine.poll(), Err(Error::Wire(GONE)), "an idle rank returns what it owes");
    assert_eq!(owed(), [(1, 1)]);
    wire.0.refuses_commits.set(false);
    assert_eq!(engine.poll(), Ok(0));
    assert_eq!((owed(), wire.0.reserved.get(), wire.0.committed.get()), (vec![], 0, 1));
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
    assert_eq!((wire.0.reserved.get(), engine.out(1)), (0, (0, 0)));
    let commit = gasworks_core::Commit { handler, args: &[], len: 0, landing: u64::MAX };
    let prepared = engine.prepare(1, &ask(0)).expect("room for nothing");
    assert_eq!(prepared.commit(&commit), Ok(()));
    let elsewhere = engine.prepare(1, &ask(0)).expect("room for nothing");
    let refused = elsewhere.commit(&gasworks_core::Commit { landing: 7, ..commit });
    assert_eq!(refused, Err(Error::Landing { to: 1, asked: u64::MAX, landing: 7 }));
    assert_eq!((wire.0.reserved.get(), wire.0.committed.get(), engine.out(1)), (0, 1, (1, 0)));
}

#[test]
fn credits_bring_nothing_else() {
    let (engine, wire, _) = engine();
    let credits = Encoded::new(Head::Credits, Returned::default(), &[]).as_bytes().to_vec();
    wire.0.arriving.replace(vec![(credits.clone(), Vec::new())]);
    assert_eq!(engine.poll(), Ok(1));
    wire.0.arriving.replace(vec![(credits, vec![1])]);
    let refused = engine.poll().expect_err("a payload").to_string();
    assert!(refused.contains("rank 1") && refused.contains("credits that bring something else"), "{refused}");
}
