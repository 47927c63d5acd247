use super::recorder::{About, Open};
use super::*;
use crate::message::{Encoded, Head, Landing, Returned, first_word};
use crate::{Arrived, Category, WireError};
use gasworks_os::memfd::MemFd;
use gasworks_sync::VolatileSlice;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

fn recorder(events: u32) -> (MemFd, Arc<Recorder>) {
    let file = create(events).expect("a file");
    let recorder = Recorder::join(file.as_fd(), 3).expect("a recorder");
    (file, recorder)
}

/// An observer of rank 3 among 4, to whom nobody has a name.
fn observer(recorder: Arc<Recorder>) -> Observer {
    Observer::new(recorder, 3, 4)
}

/// Sends rank 1 a message without a payload, with this head.
fn send(observer: &Observer, head: &[u8]) {
    assert_eq!(observer.sends(1, head, 0, || Ok(())), Ok(()));
}

/// Has rank 1 send one; how often it was handled.
fn receive(observer: &Observer, head: &[u8]) -> u32 {
    let mut handled = 0;
    let arrived = Arrived { from: 1, head, payload: VolatileSlice::EMPTY };
    observer.arrives(arrived, &mut |arrived| handled += u32::from(arrived.head == head));
    handled
}

#[test]
fn messages_are_counted_and_recorded() {
    let (file, recorder) = recorder(100);
    recorder.name_handler(200, "a name that is longer than what there is room for");
    let observer = observer(recorder);
    let encoded = |head| Encoded::new(head, Returned::default(), &[]);
    let landing = Some(Landing { offset: 0, len: 70, in_packet: false });
    let message =
        |category, reply, landing| encoded(Head::Message { category, reply, handler: 200, landing });
    let short = message(Category::Short, false, None);
    let heads = [short, short, message(Category::Long, true, landing), encoded(Head::Credits)];
    // What is refused is not sent; that there was no room is counted.
    for error in [WireError::Busy { to: 1 }, WireError::PeerGone { rank: 1 }] {
        assert_eq!(observer.sends(1, short.as_bytes(), 0, || Err(error.clone())), Err(error));
    }
    heads.iter().for_each(|head| send(&observer, head.as_bytes()));
    observer.cancelled();
    let seen: u32 = heads.iter().map(|head| receive(&observer, head.as_bytes())).sum();
    assert_eq!(seen, 4);
    [4, 0, 0].into_iter().for_each(|taken| observer.polled(taken));
    let slept = observer.sleeps(|| {
        std::thread::sleep(Duration::from_millis(2));
        Ok::<_, WireError>(true)
    });
    assert_eq!(slept, Ok(true));
    // Something had come: it is no sleep.
    assert_eq!(observer.sleeps(|| Ok::<_, WireError>(false)), Ok(false));
    send(&observer, encoded(Head::Credits).as_bytes());
    // No head: whoever handles it finds out.
    assert_eq!((receive(&observer, &[1, 2, 3]), observer.sends(1, &[1, 2], 0, || Ok(()))), (1, Ok(())));

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
        let observer = observer(recorder);
        let head = first_word(Category::Short, false, 200, 0, Returned::default()).to_le_bytes();
        (0..3).for_each(|_| send(&observer, &head));
        assert_eq!((0..3).map(|_| receive(&observer, &head)).sum::<u32>(), 3);
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

/// A barrier's time is that of its event; who finds it over once more records nothing.
#[test]
fn a_barrier_lasts_from_its_begin_to_its_end() {
    let (file, recorder) = recorder(8);
    let observer = observer(recorder);
    let before = monotonic();
    for number in 1..3 {
        observer.barrier_begins();
        let all = Recording::read(&file).expect("a recording");
        assert_eq!(all.events.iter().filter(|event| event.unfinished).count(), 1);
        assert_eq!(all.tally(Tally::Barriers), number);
        observer.barrier_ends();
        observer.barrier_ends();
    }
    let all = Recording::read(&file).expect("a recording");
    assert_eq!((all.tally(Tally::Barriers), all.events.len()), (2, 2));
    assert!(all.events.iter().all(|event| event.what == What::Barrier && !event.unfinished));
    assert!(all.events.iter().all(|event| before <= event.start && event.end <= monotonic()));
    let time = all.events.iter().map(|event| event.end - event.start).sum::<u64>();
    assert_eq!(all.tally(Tally::BarrierTime), time);
}

/// Of two collectives each has a span of its own, by name and bytes, in whatever order they end.
#[test]
fn a_collective_is_a_span() {
    let (file, recorder) = recorder(8);
    let observer = observer(recorder);
    let before = monotonic();
    let first = observer.collective_begins(Collective::Broadcast, 9);
    let second = observer.collective_begins(Collective::ReduceAll, 600);
    let open = Recording::read(&file).expect("a recording");
    assert_eq!(
        open.events.iter().map(|event| (event.what, event.unfinished)).collect::<Vec<_>>(),
        [(What::Collective, true)]
    );
    observer.collective_ends(Collective::ReduceAll, 600, second);
    observer.collective_ends(Collective::Broadcast, 9, first);
    let all = Recording::read(&file).expect("a recording");
    let mut spans: Vec<_> =
        all.events.iter().map(|event| (event.handler, event.bytes, event.unfinished)).collect();
    spans.sort_unstable();
    assert_eq!(spans, [(Collective::Broadcast as u8, 9, false), (Collective::ReduceAll as u8, 600, false)]);
    assert!(all.events.iter().all(|event| before <= event.start && event.end <= monotonic()));
    assert_eq!((all.count(Op::Collective, 2), all.count(Op::Collective, 4)), ((1, 9), (1, 600)));
    let time = all.events.iter().map(|event| event.end - event.start).sum::<u64>();
    assert_eq!(all.tally(Tally::CollectiveTime), time);
}

#[test]
fn a_file_that_is_none_is_refused_and_a_damaged_one_is_read() {
    let other = gasworks_os::memfd::create("other", 8 * 5000).expect("a file");
    let refused = Recorder::join(other.as_fd(), 0).expect_err("not one for recording").to_string();
    assert!(refused.contains("does not begin as one for recording"), "{refused}");
    let file = create(2).expect("a file");
    let map = file.map().expect("a map");
    let bytes = map.bytes();
    bytes.slice(8, 8).expect("inside").write(&u64::from(u32::MAX).to_le_bytes());
    let refused = Recorder::join(file.as_fd(), 0).expect_err("too short").to_string();
    assert!(refused.contains("4294967295 events do not fit"), "{refused}");
    // Whatever stands behind the first word, reading finds no more than there is room for.
    let len = bytes.len() - 8;
    bytes.slice(8, len).expect("inside").write(&vec![0xFF; len]);
    let all = Recording::read(&file).expect("a recording");
    assert!(all.events.len() <= 2 && all.total(Op::Put).0 == u64::MAX);
}

/// What began before `before` and what is about to be are not among it: the clock that events are measured by.
fn monotonic() -> u64 {
    gasworks_os::clock::monotonic()
}

#[test]
fn an_event_is_read_as_it_was_recorded() {
    let (file, recorder) = recorder(3);
    let before = monotonic();
    let about = About {
        what: What::SendReply,
        category: 2,
        handler: 200,
        peer: 70_000,
        bytes: 12_345,
        flow: u64::MAX,
    };
    recorder.event(about, 50, 60);
    recorder.event(About { bytes: u64::MAX, ..About::plain(What::Put) }, 7, 3);
    recorder.transfer(Op::Put, 1, 600, || ());
    let all = Recording::read(&file).expect("a recording");
    let thread = gasworks_os::process::thread();
    let wanted = Event {
        what: What::SendReply,
        start: 50,
        end: 60,
        unfinished: false,
        category: 2,
        handler: 200,
        peer: Some(70_000),
        bytes: 12_345,
        thread,
        flow: u64::MAX,
    };
    assert_eq!(all.events[0], wanted);
    let [_, cut, put] = &all.events[..] else { panic!("{:?}", all.events) };
    assert_eq!((cut.bytes, cut.thread, cut.peer, cut.flow), ((1 << 40) - 1, thread, None, 0));
    assert_eq!((cut.start, cut.end), (7, 7), "it does not end before it began");
    assert_eq!((put.what, put.bytes, put.peer), (What::Put, 600, Some(1)));
    assert!(before <= put.start && put.start <= put.end && put.end <= monotonic());
    assert!(before >= all.monotonic && all.monotonic > 0 && all.realtime > 1 << 60);
    assert_eq!((all.count(Op::Put, 4), all.total(Op::Put), all.overwritten), ((1, 600), (1, 600), 0));
}

#[test]
fn whatever_is_open_is_unfinished() {
    let (file, recorder) = recorder(8);
    for (at, open) in Open::ALL.into_iter().enumerate() {
        let what = [What::Barrier, What::HandleReply, What::Sleep, What::Collective][at];
        recorder.open(open, About { handler: 7, ..About::plain(what) }, 100 + at as u64);
        let all = Recording::read(&file).expect("a recording");
        let event = all.events.last().expect("it is open");
        assert_eq!(
            (event.what, event.handler, event.start, event.unfinished),
            (what, 7, 100 + at as u64, true)
        );
        assert_eq!((event.thread, event.end), (all.pid, all.monotonic));
    }
    assert_eq!(Open::ALL.map(|open| recorder.take_open(open)), [100, 101, 102, 103].map(Some));
    assert_eq!(recorder.take_open(Open::Sleep), None);
    assert!(Recording::read(&file).expect("a recording").events.is_empty());
}

proptest::proptest! {
    /// Whatever comes from another host is read or refused, and holds no more than there may be.
    #[test]
    fn bytes_of_another_host_are_read_or_refused(
        changes in proptest::collection::vec((0usize..file_len(4), proptest::prelude::any::<u64>()), 0..20),
        len in 0usize..=file_len(4) + 9,
        events in 0u32..6,
    ) {
        let (file, recorder) = recorder(4);
        (0..7).for_each(|i| recorder.transfer(Op::Put, i, 600, || ()));
        let map = file.map().expect("a map");
        let mut bytes = vec![0; file_len(4)];
        map.bytes().read(&mut bytes);
        for (at, word) in changes {
            let end = bytes.len().min(at + 8);
            bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
        }
        bytes.resize(len, 0xFF);
        match Recording::from_bytes(&bytes, events) {
            Ok(all) => {
                assert!(len >= file_len(0) && all.events.len() <= events.min(4) as usize + Open::ALL.len());
                assert!(all.events.iter().all(|event| event.start <= event.end));
            }
            Err(error) => assert!(len < file_len(0) && error.to_string().contains("a recording")),
        }
    }
}

#[test]
fn the_beginning_of_a_file_is_read_as_far_as_it_goes() {
    let (file, recorder) = recorder(4);
    for puts in 1..7 {
        recorder.transfer(Op::Put, puts, 600, || ());
        let used = used_len(&file).expect("a length");
        assert_eq!(used, file_len(puts.min(4)));
        let mut bytes = vec![0; file_len(4)];
        file.map().expect("a map").bytes().read(&mut bytes);
        let (whole, read) = (Recording::read(&file), Recording::from_bytes(&bytes[..used], 4));
        let (whole, read) = (whole.expect("a recording"), read.expect("a recording"));
        assert_eq!((read.pid, read.total(Op::Put)), (whole.pid, whole.total(Op::Put)));
        assert_eq!((read.events, read.overwritten), (whole.events, whole.overwritten));
    }
}

#[test]
fn names_of_handlers_are_cut_and_cleaned() {
    let (file, recorder) = recorder(0);
    let longest = "a name of 31 bytes, and no more";
    let rows = [
        (0, "first", "first"),
        (1, longest, longest),
        (254, "two\nlines", "twolines"),
        (255, "\u{e9}".repeat(16).as_str(), "\u{e9}".repeat(15).as_str()),
    ]
    .map(|(index, name, kept)| (index, name.to_owned(), kept.to_owned()));
    for (index, name, _) in &rows {
        recorder.name_handler(*index, name);
    }
    let all = Recording::read(&file).expect("a recording");
    for (index, _, kept) in &rows {
        assert_eq!(all.handler(*index), kept);
    }
    assert_eq!((longest.len(), all.handler(2), all.events.len()), (31, "", 0));
}

/// Polls that found nothing are one event as long as they follow each other, and none if there was one.
#[test]
fn idle_polls_follow_each_other() {
    let (file, recorder) = recorder(1000);
    let polls = |count| (0..count).for_each(|_| recorder.polled_in_vain());
    let idle = |from: usize| {
        let all = Recording::read(&file).expect("a recording");
        all.events[from..]
            .iter()
            .filter(|event| event.what == What::Idle)
            .map(|event| event.bytes)
            .collect::<Vec<_>>()
    };
    // A thread may be held up between two polls, so that it takes several tries to see what is usual.
    let usual = (0..200).any(|_| {
        let from = Recording::read(&file).expect("a recording").events.len();
        polls(3);
        std::thread::sleep(Duration::from_millis(2));
        polls(4);
        recorder.worked();
        idle(from) == [3, 4]
    });
    assert!(usual, "{:?}", idle(0));
    let from = Recording::read(&file).expect("a recording").events.len();
    polls(1);
    recorder.still_idle(monotonic() + 1);
    recorder.worked();
    recorder.worked();
    assert_eq!(idle(from), vec![]);
}

#[test]
fn jobs_of_a_process_number_their_messages_apart() {
    let file = create(0).expect("a file");
    let first = [(); 3].map(|()| Recorder::join(file.as_fd(), 0).expect("a recorder").first_number());
    assert_eq!(first, [0, 0x9E37_79B1, 0x3C6E_F362]);
}

#[test]
fn a_file_that_is_too_short_is_no_recording() {
    for missing in [8, 8 * 1000] {
        let file = gasworks_os::memfd::create("short", file_len(0) - missing).expect("a file");
        let refused = Recording::read(&file).expect_err("too short").to_string();
        assert!(refused.contains("a recording"), "{refused}");
    }
    // A file without room for events has lost none, whatever their number says.
    let file = create(0).expect("a file");
    let map = file.map().expect("a map");
    map.bytes().slice(8 * 6, 8).expect("inside").write(&[9, 0, 0, 0, 0, 0, 0, 0]);
    let all = Recording::read(&file).expect("a recording");
    assert_eq!((all.overwritten, all.events.len(), all.pid), (0, 0, 0));
}

/// The descriptor comes with the environment, which is a process's own: each row asks another one.
#[test]
fn a_rank_records_where_it_is_told_to() {
    const NAME: &str = "observe::tests::a_rank_records_where_it_is_told_to";
    let asked = std::env::args().find_map(|arg| arg.strip_prefix("told=").map(str::to_owned));
    if let Some(asked) = asked {
        let found = Recorder::from_settings(5);
        match &asked[..] {
            "nothing" => assert!(matches!(found, Ok(None))),
            "file" => found.expect("a recorder").expect("it is told to").count(Op::Get, 9),
            wrong => assert!(found.is_err_and(|error| error.to_string().contains(wrong))),
        }
        return;
    }
    let file = create(0).expect("a file");
    let passed = file.as_fd().try_clone_to_owned().expect("a copy");
    gasworks_os::inherited::let_pass(&passed).expect("it passes");
    let number = std::os::fd::AsRawFd::as_raw_fd(&passed).to_string();
    for (asked, setting) in [
        ("nothing", None),
        ("file", Some(&number[..])),
        ("GASWORKS_OBSERVE_FD", Some("many")),
        ("inherited descriptor", Some("999999")),
    ] {
        let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", NAME, &format!("told={asked}")]);
        child.envs(setting.map(|setting| ("GASWORKS_OBSERVE_FD", setting)));
        let output = child.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{asked}: {text}");
    }
    assert_eq!(Recording::read(&file).expect("a recording").total(Op::Get), (1, 9));
}
