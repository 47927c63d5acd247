use super::recorder::{About, Open};
use super::*;
use crate::message::{Encoded, Head, Landing, Returned, first_word};
use crate::{Arrived, Category, Class, Limits, Name, Rank, Reservation, SharedBarrier, Wire, WireError};
use gasworks_os::memfd::MemFd;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use gasworks_sync::{Lent, Mode, RawBytes, Seq};
use std::cell::RefCell;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

fn recorder(events: u32) -> (MemFd, Arc<Recorder>) {
    let file = create(events).expect("a file");
    let recorder = Recorder::join(file.as_fd(), 3).expect("a recorder");
    (file, recorder)
}

/// A transport that gives back what it was sent, and has no room at the first try.
#[derive(Default)]
struct Echo {
    tries: RefCell<u32>,
    heads: RefCell<Vec<Vec<u8>>>,
}

impl<M: Mode> Wire<M> for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }
    fn limits(&self) -> Limits {
        Limits { max_medium: 100, max_long: 1000, packed_long: 100 }
    }
    fn reserve(&self, to: Rank, class: Class, _: usize) -> Result<Reservation, WireError> {
        *self.tries.borrow_mut() += 1;
        match *self.tries.borrow() {
            1 => Err(WireError::Busy { to }),
            _ => Ok(Reservation { to, class, payload: RawBytes::EMPTY, ticket: [0; 2] }),
        }
    }
    fn commit(&self, _: Reservation, head: &[u8]) -> Result<(), WireError> {
        self.heads.borrow_mut().push(head.to_vec());
        Ok(())
    }
    fn cancel(&self, _: Reservation) {}
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let heads: Vec<_> = self.heads.borrow_mut().drain(..).take(burst).collect();
        for head in &heads {
            sink(Arrived { from: 1, head, payload: Lent::new(RawBytes::EMPTY) });
        }
        Ok(heads.len())
    }
    fn sleep(&self, limit: Duration, _: &dyn Fn() -> bool) {
        std::thread::sleep(limit);
    }
    fn wake(&self) {}
}

#[test]
fn messages_are_counted_and_recorded() {
    let (file, recorder) = recorder(100);
    recorder.name_handler(200, "a name that is longer than what there is room for");
    let wire = Observed::new(recorder, 3, 4, Box::new(Echo::default()) as Box<dyn Wire<Seq>>);
    assert_eq!((wire.name(), wire.limits().max_long), ("echo", 1000));
    let short = first_word(Category::Short, false, 200, 0, Returned::default());
    let in_one_go = || wire.send(1, Class::Request, short, &[], &[]);
    assert!(in_one_go().is_err());
    let send = |class, head| {
        let reserved = wire.reserve(1, class, 0).expect("room");
        wire.commit(reserved, Encoded::new(head, Returned::default(), &[]).as_bytes()).expect("sent");
    };
    let landing = Some(Landing { offset: 0, len: 70, in_packet: false });
    let message = |category, reply, landing| Head::Message { category, reply, handler: 200, landing };
    send(Class::Request, message(Category::Short, false, None));
    in_one_go().expect("sent");
    send(Class::Reply, message(Category::Long, true, landing));
    send(Class::Credit, Head::Credits);
    wire.cancel(wire.reserve(1, Class::Request, 0).expect("room"));
    let mut seen = 0;
    assert_eq!(wire.poll(20, &mut |_| seen += 1).expect("polled"), 4);
    assert_eq!(wire.poll(20, &mut |_| seen += 1).expect("polled"), 0);
    assert_eq!(wire.poll(20, &mut |_| seen += 1).expect("polled"), 0);
    wire.sleep(Duration::from_millis(2), &|| true);
    send(Class::Credit, Head::Credits);
    assert_eq!(seen, 4);

    let all = Recording::read(&file).expect("a recording");
    assert_eq!(all.pid, std::process::id());
    let count = |op, class| all.count(op, class);
    assert_eq!((count(Op::RequestShort, 0), count(Op::HandledRequestShort, 0)), ((2, 0), (2, 0)));
    assert_eq!((count(Op::ReplyLong, 3), count(Op::HandledReplyLong, 3)), ((1, 70), (1, 70)));
    assert_eq!((count(Op::CreditsSent, 0), count(Op::CreditsReceived, 0)), ((2, 0), (1, 0)));
    assert_eq!(all.total(Op::ReplyLong), (1, 70));
    let tallies =
        [Tally::Polls, Tally::EmptyPolls, Tally::Busy, Tally::Cancelled, Tally::Sleeps, Tally::Barriers];
    assert_eq!(tallies.map(|tally| all.tally(tally)), [3, 2, 1, 1, 1, 0]);
    assert!(all.tally(Tally::SleepTime) >= 2_000_000);
    assert_eq!(all.handler(200), "a name that is longer than what"[..31].to_owned());

    use What::*;
    let kinds: Vec<_> = all.events.iter().map(|event| event.what).collect();
    let wanted = [
        SendRequest,
        SendRequest,
        SendReply,
        SendCredits,
        HandleRequest,
        HandleRequest,
        HandleReply,
        HandleCredits,
        Sleep,
        Idle,
        SendCredits,
    ];
    assert_eq!(kinds, wanted);
    assert!(all.events.iter().all(|event| event.start <= event.end && !event.unfinished));
    assert_eq!((all.events[9].bytes, all.events[6].category, all.events[6].bytes), (2, 2, 70));
    // Sent from 3 to 1, handled as if from 1 to 3: numbered in order, and never alike in the two directions.
    let flow = |at: usize| all.events[at].flow;
    assert!(flow(0) != 0 && flow(1) == flow(0) + 1 && flow(5) == flow(4) + 1 && flow(2) != flow(6));
    assert!(all.events[9].start < all.events[8].start && all.events[8].end <= all.events[9].end);
}

/// A process opens one job after another: what was sent in one was not handled in the other.
#[test]
fn messages_of_two_jobs_are_told_apart() {
    let file = create(100).expect("a file");
    let of_job = |seen: usize| {
        let recorder = Recorder::join(file.as_fd(), 3).expect("a recorder");
        let wire = Observed::new(recorder, 3, 4, Box::new(Echo::default()) as Box<dyn Wire<Seq>>);
        let short = first_word(Category::Short, false, 200, 0, Returned::default());
        assert!(wire.send(1, Class::Request, short, &[], &[]).is_err(), "no room at the first try");
        (0..3).for_each(|_| wire.send(1, Class::Request, short, &[], &[]).expect("sent"));
        assert_eq!(wire.poll(20, &mut |_| ()), Ok(3));
        let flows = Recording::read(&file).expect("a recording").events.split_off(seen);
        flows.into_iter().map(|event| event.flow).collect::<std::collections::HashSet<_>>()
    };
    let jobs = [of_job(0), of_job(6), of_job(12)];
    assert!(jobs.iter().all(|flows| flows.len() == 6), "{jobs:?}");
    assert!(jobs[0].is_disjoint(&jobs[1]) && jobs[2].is_disjoint(&(&jobs[0] | &jobs[1])), "{jobs:?}");
}

#[test]
fn the_ring_keeps_the_last_events() {
    let (file, recorder) = recorder(4);
    for i in 0..10 {
        recorder.event(About { bytes: i, ..About::plain(What::Put) }, i, i + 1);
    }
    let all = Recording::read(&file).expect("a recording");
    assert_eq!(all.overwritten, 6);
    assert_eq!(all.events.iter().map(|event| event.bytes).collect::<Vec<_>>(), [6, 7, 8, 9]);
}

#[test]
fn without_room_for_events_only_counts_are_kept() {
    let (file, recorder) = recorder(0);
    recorder.transfer(Op::Put, 1, 9, || ());
    recorder.polled_in_vain();
    let all = Recording::read(&file).expect("a recording");
    assert_eq!((all.count(Op::Put, 2), all.events.len(), all.overwritten), ((1, 9), 0, 0));
}

#[test]
fn what_a_rank_dies_in_is_known() {
    let (file, recorder) = recorder(8);
    let about = About { handler: 130, peer: 2, ..About::plain(What::HandleRequest) };
    recorder.open(Open::Handler, about, recorder.time());
    recorder.transfer(Op::Get, 1, 0, || ());
    let all = Recording::read(&file).expect("a recording");
    let [get, handler] = &all.events[..] else { panic!("{:?}", all.events) };
    assert!(get.what == What::Get && !get.unfinished);
    assert!(handler.unfinished && handler.handler == 130 && handler.peer == Some(2));
    assert!(handler.start <= get.start && get.end <= handler.end);
}

struct Count(AtomicU32);

impl SharedBarrier for Count {
    fn arrive(&self, _: Name) {
        self.0.store(2, Ordering::Relaxed);
    }
    fn done(&self) -> Option<Name> {
        (self.0.fetch_sub(1, Ordering::Relaxed) <= 1).then_some(Name::Any)
    }
}

#[test]
fn a_barrier_lasts_from_its_begin_to_its_end() {
    let (file, recorder) = recorder(8);
    let barrier =
        ObservedBarrier::new(recorder, Box::new(Count(AtomicU32::new(0))) as Box<dyn SharedBarrier>);
    for _ in 0..2 {
        barrier.arrive(Name::Any);
        assert_eq!(
            Recording::read(&file).expect("a recording").events.iter().filter(|e| e.unfinished).count(),
            1
        );
        assert!(barrier.done().is_none());
        assert!(barrier.done().is_some());
    }
    let all = Recording::read(&file).expect("a recording");
    assert_eq!((all.tally(Tally::Barriers), all.events.len()), (2, 2));
    assert!(all.events.iter().all(|event| event.what == What::Barrier && !event.unfinished));
}

#[test]
fn a_file_that_is_none_is_refused_and_a_damaged_one_is_read() {
    let other = gasworks_os::memfd::create("other", 8 * 5000).expect("a file");
    let refused = Recorder::join(other.as_fd(), 0).expect_err("not one for recording").to_string();
    assert!(refused.contains("does not begin as one for recording"), "{refused}");
    let file = create(2).expect("a file");
    let map = file.map().expect("a map");
    // SAFETY: the mapping outlives the view, and nobody else touches the bytes meanwhile.
    let bytes = unsafe { map.bytes() };
    bytes.slice(8, 8).expect("inside").write(&u64::from(u32::MAX).to_le_bytes());
    let refused = Recorder::join(file.as_fd(), 0).expect_err("too short").to_string();
    assert!(refused.contains("4294967295 events do not fit"), "{refused}");
    // Whatever stands behind the first word, reading finds no more than there is room for.
    let len = bytes.len() - 8;
    bytes.slice(8, len).expect("inside").write(&vec![0xFF; len]);
    let all = Recording::read(&file).expect("a recording");
    assert!(all.events.len() <= 2 && all.total(Op::Put).0 == u64::MAX);
}
