//! NICs that find each other through the system, as those of different processes do, of one host or of several; here they are one
//! process's.
#![cfg(all(not(gasworks_loom), not(miri), not(gasworks_tsan)))]
#![allow(unsafe_code)]

#[path = "near/far.rs"]
mod far;
#[path = "near/shares.rs"]
#[allow(unsafe_code)]
mod shares;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gasworks_gni_sys::*;
use gasworks_os::{memfd, process, unix};
use gasworks_sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use gasworks_testkit::cases::is_nightly;
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::entry::{Entry, Status};
use gasworks_ugni_sim::far::Gate;
use gasworks_ugni_sim::near::{AttachError, Attached, Name, Wire, attach};
use gasworks_ugni_sim::nic::{Channel, Cq, Endpoint, Mood, Next, Outcome};
use gasworks_ugni_sim::post::{Rules, Way};
use gasworks_ugni_sim::process::Process;
use gasworks_ugni_sim::reduction::{is_whole, status};
use gasworks_ugni_sim::window::{Shape, Window};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, poll};

const ADDRESS: u32 = 0x2_0001;
const WORDS: usize = 16;

fn name(cookie: u32, instance: u32) -> Name {
    Name { cookie: std::process::id() << 8 | cookie, ptag: 3, address: ADDRESS, instance }
}

/// The wires of so many processes, which have met: of one host, and as if each had a host of its own.
fn both(count: usize) -> [Vec<Wire>; 2] {
    [vec![Wire::default(); count], far_apart(count)]
}

const SECRET: [u8; 16] = *b"nobody knows it!";

fn far_apart(count: usize) -> Vec<Wire> {
    let gates: Vec<_> = (0..count).map(|_| Gate::open().expect("a gate")).collect();
    let places: Vec<String> = gates.iter().map(|gate| gate.place()).collect();
    let ranks: Vec<(u32, &str)> = places.iter().map(|place| (ADDRESS, &place[..])).collect();
    let wire = |gate: Arc<Gate>| {
        gate.learn(SECRET, &ranks).expect("places");
        Wire { gate: Some(gate), always: true }
    };
    gates.into_iter().map(wire).collect()
}

fn attached(wire: &Wire, name: Name, mood: Mood) -> Result<Attached, AttachError> {
    let rules = Rules { chip: Chip::Aries, modes: GNI_CDM_MODE_DUAL_EVENTS };
    // SAFETY: process.1 and process.2 of `gasworks_ugni_sim`: what is registered and posted are atomic words or mapped files, and nobody
    // has plain references to them.
    let memory = unsafe { Process::own() }.expect("this process");
    attach(name, rules, Arc::new(memory), (mood, Arc::default()), wire)
}

/// Where nobody has registered anything.
const NOWHERE: (u64, gni_mem_handle_t) = (4096, gni_mem_handle_t { qword1: 1, qword2: 1 << 28 | 1 });

struct Rank {
    words: Box<[AtomicU64]>,
    handle: gni_mem_handle_t,
    events: Arc<Cq>,
    arrivals: Arc<Cq>,
    endpoint: Endpoint,
    /// The last to go.
    attached: Attached,
}

/// A rank with an endpoint to a peer.
fn rank(wire: &Wire, (cookie, mood): (u32, Mood), instance: u32, peer: u32) -> Rank {
    let attached = attached(wire, name(cookie, instance), mood).expect("a NIC");
    let nic = attached.nic();
    let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let (events, arrivals) = (nic.queue(16).expect("a queue"), nic.queue(16).expect("a queue"));
    let bytes = (words.as_ptr() as u64, 8 * WORDS as u64);
    let handle = nic.register(bytes, Some(&arrivals), 0).expect("registered");
    let endpoint = nic.endpoint(Some(&events)).expect("an endpoint");
    endpoint.bind(ADDRESS, peer).expect("bound");
    Rank { words, handle, events, arrivals, endpoint, attached }
}

impl Rank {
    /// Where its words are.
    fn place(&self) -> (u64, gni_mem_handle_t) {
        (self.words.as_ptr() as u64, self.handle)
    }

    /// Posts a transaction of its first word and one at a place of its peer; how it ended.
    fn run(&self, there: (u64, gni_mem_handle_t), kind: gni_post_type_t, mode: u16) -> Status {
        let descriptor = gni_post_descriptor_t {
            r#type: kind,
            cq_mode: GNI_CQMODE_GLOBAL_EVENT | mode,
            amo_cmd: GNI_FMA_ATOMIC_ADD,
            first_operand: 1,
            local_addr: self.place().0,
            local_mem_hndl: self.handle,
            remote_addr: there.0,
            remote_mem_hndl: there.1,
            length: 8,
            ..Default::default()
        };
        let way = if kind == GNI_POST_RDMA_PUT { Way::Bte } else { Way::Fma };
        self.endpoint.post(&descriptor, way, 1, None).expect("posted");
        let event = await_event(&self.events);
        self.events.completed(event).expect("a transaction").1
    }
}

fn await_event(queue: &Cq) -> u64 {
    let begun = Instant::now();
    loop {
        if let Next::Event(event) = queue.next() {
            return event.word;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "there is no event");
        std::thread::yield_now();
    }
}

#[test]
fn neighbours_put_get_and_tell() {
    for wires in both(2) {
        put_get_and_tell(&wires);
    }
}

fn put_get_and_tell(wires: &[Wire]) {
    let ranks = [rank(&wires[0], (1, Mood::Plain), 0, 1), rank(&wires[1], (1, Mood::Plain), 1, 0)];
    for (kind, value) in [(GNI_POST_FMA_PUT, 5), (GNI_POST_RDMA_PUT, 6)] {
        ranks[0].words[0].store(value, Relaxed);
        assert_eq!(ranks[0].run(ranks[1].place(), kind, GNI_CQMODE_REMOTE_EVENT), Status::Ok);
        assert_eq!(ranks[1].words[0].load(Relaxed), value);
        assert!(ranks[1].arrivals.holds_event());
        assert_eq!(await_event(&ranks[1].arrivals) & 0xffff_ffff, 0, "the instance of who put it");
    }
    ranks[0].words[0].store(7, Relaxed);
    assert_eq!(ranks[1].run(ranks[0].place(), GNI_POST_FMA_GET, 0), Status::Ok);
    assert_eq!(ranks[1].words[0].load(Relaxed), 7);
}

/// A queue that was armed is looked at by nobody but the NIC, whatever the mood, and as often as it is armed.
/// What one NIC of a process has registered serves through its others, here and at a peer.
#[test]
fn memory_is_a_process_s_and_not_one_nic_s() {
    for (cookie, wires) in (70..).zip(both(2)) {
        let job = (cookie, Mood::Plain);
        let (first, second) = (rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0));
        // Of the same processes.
        let (third, fourth) = (rank(&wires[0], job, 2, 3), rank(&wires[1], job, 3, 2));
        third.words[0].store(5, Relaxed);
        let put = gni_post_descriptor_t {
            r#type: GNI_POST_RDMA_PUT,
            cq_mode: GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
            local_addr: third.place().0,
            local_mem_hndl: third.handle,
            remote_addr: fourth.place().0,
            remote_mem_hndl: fourth.handle,
            length: 8,
            ..Default::default()
        };
        let ended = |post: &gni_post_descriptor_t| {
            let way = if post.r#type == GNI_POST_RDMA_PUT { Way::Bte } else { Way::Fma };
            first.endpoint.post(post, way, 1, None).expect("posted");
            first.events.completed(await_event(&first.events)).expect("a transaction").1
        };
        assert_eq!(ended(&put), Status::Ok);
        assert_eq!(fourth.words[0].load(Relaxed), 5);
        await_event(&fourth.arrivals);
        assert_eq!(second.arrivals.next(), Next::Nothing);
        for kind in [GNI_POST_FMA_GET, GNI_POST_AMO] {
            let post =
                gni_post_descriptor_t { r#type: kind, amo_cmd: GNI_FMA_ATOMIC_ADD, first_operand: 1, ..put };
            assert_eq!(ended(&post), Status::Ok, "{kind}");
        }
        assert_eq!(fourth.words[0].load(Relaxed), 6);
        // Until it has ended.
        let (theirs, ours) = (fourth.attached.nic(), third.attached.nic());
        assert_eq!(second.attached.nic().deregister(&fourth.handle), Err(GNI_RC_INVALID_PARAM));
        theirs.deregister(&fourth.handle).expect("its own");
        assert_eq!(ended(&put), Status::Descriptor);
        ours.deregister(&third.handle).expect("its own");
        assert_eq!(first.endpoint.post(&put, Way::Bte, 1, None), Err(GNI_RC_INVALID_PARAM));
    }
}

/// On the machines a transaction goes to a node: the number that an endpoint is bound to is for events and messages.
#[test]
fn memory_of_a_node_is_found_by_its_handle_where_nobody_has_the_number() {
    let (wire, job) = (Wire::default(), (74, Mood::Plain));
    let (first, second) = (rank(&wire, job, 0, 77), rank(&wire, job, 1, 0));
    first.words[0].store(5, Relaxed);
    for (kind, flag) in [(GNI_POST_FMA_PUT, 0), (GNI_POST_RDMA_PUT, 0), (GNI_POST_FMA_GET, 0)] {
        assert_eq!(first.run(second.place(), kind, flag), Status::Ok, "{kind}");
    }
    assert_eq!(second.words[0].load(Relaxed), 5);
    assert_eq!(first.run(NOWHERE, GNI_POST_FMA_PUT, 0), Status::Gone);
    // Who comes later is found too; who has gone, and what has ended, is not.
    let third = rank(&wire, job, 2, 0);
    assert_eq!(first.run(third.place(), GNI_POST_FMA_PUT, 0), Status::Ok);
    let gone = third.place();
    drop(third);
    assert_eq!(first.run(gone, GNI_POST_FMA_PUT, 0), Status::Gone);
    second.attached.nic().deregister(&second.handle).expect("its own");
    assert_eq!(first.run(second.place(), GNI_POST_FMA_PUT, 0), Status::Gone);
}

#[test]
fn a_channel_tells_of_what_a_neighbour_does() {
    let moods = [(40, Mood::Plain), (41, Mood::Adversarial { seed: 3 })];
    for (wires, job) in both(2).iter().flat_map(|wires| moods.map(|job| (wires, job))) {
        let ranks = [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)];
        let channel = Arc::new(Channel::new().expect("a channel"));
        fcntl(&*channel, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("set");
        for name in 0..20 {
            ranks[1].attached.arm(&ranks[1].arrivals, &channel, name);
            assert_eq!(ranks[0].run(ranks[1].place(), GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT), Status::Ok);
            let _ = poll(&mut [PollFd::new(channel.as_fd(), PollFlags::POLLIN)], 60_000u16);
            assert_eq!(channel.next(), Ok(name));
            await_event(&ranks[1].arrivals);
        }
    }
}

/// A host has so many FMA descriptors for domains that share none: what a domain leaves another has, and other hosts have theirs.
#[test]
fn domains_with_a_descriptor_of_their_own_are_few() {
    for chip in Chip::ALL {
        let address = (std::process::id() << 1 | u32::from(chip == Chip::Aries)) & 0x3_ffff;
        let attached = |instance, address, modes| {
            // SAFETY: nothing is registered with these NICs, and nothing is posted to them.
            let memory = unsafe { Process::own() }.expect("this process");
            let name = Name { address, ..name(50, instance) };
            attach(
                name,
                Rules { chip, modes },
                Arc::new(memory),
                (Mood::Plain, Arc::default()),
                &Wire::default(),
            )
        };
        let dedicated = |instance| attached(instance, address, GNI_CDM_MODE_FMA_DEDICATED);
        let full = |instance| matches!(dedicated(instance), Err(AttachError::NoDescriptor));
        let mut all: Vec<_> =
            (0..chip.fma_descriptors()).map(|i| dedicated(i).expect("one of them")).collect();
        assert!(all.iter().all(Attached::has_fma_descriptor) && full(500));
        let sharing = attached(500, address, GNI_CDM_MODE_FMA_SHARED).expect("it needs none");
        assert!(!sharing.has_fma_descriptor());
        assert!(attached(501, address ^ 0x2_0000, GNI_CDM_MODE_FMA_DEDICATED).is_ok());
        drop(all.swap_remove(5));
        // A name that is taken does not cost one.
        assert!(matches!(dedicated(0), Err(AttachError::Taken)));
        let last = dedicated(502).expect("what was left");
        assert!(full(503));
        drop((all, last));
    }
}

/// A NIC on which things take their time goes on without its client.
#[test]
fn a_nic_goes_on_while_its_client_does_not_look() {
    for (wires, seed) in both(2).iter().flat_map(|wires| (0..8).map(move |seed| (wires, seed))) {
        let job = (10 + seed as u32, Mood::Adversarial { seed });
        let ranks = [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)];
        ranks[0].words[0].store(9, Relaxed);
        let put = gni_post_descriptor_t {
            r#type: GNI_POST_FMA_PUT,
            local_addr: ranks[0].words.as_ptr() as u64,
            remote_addr: ranks[1].words.as_ptr() as u64,
            remote_mem_hndl: ranks[1].handle,
            length: 8,
            ..Default::default()
        };
        ranks[0].endpoint.post(&put, Way::Fma, 1, None).expect("posted");
        let begun = Instant::now();
        while ranks[1].words[0].load(Relaxed) != 9 {
            assert!(begun.elapsed() < Duration::from_secs(60), "seed {seed}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn atomics_of_several_nics_exclude_each_other() {
    // And where some are near and others are not.
    let [near, mut far] = both(4);
    far[2] = Wire { always: false, ..far[2].clone() };
    [near, far].iter().for_each(|wires| atomics_exclude_each_other(wires));
}

fn atomics_exclude_each_other(wires: &[Wire]) {
    const EACH: u64 = 500;
    let target = rank(&wires[0], (2, Mood::Plain), 0, 0);
    std::thread::scope(|scope| {
        for instance in 1..4 {
            let target = &target;
            scope.spawn(move || {
                let rank = rank(&wires[instance as usize], (2, Mood::Plain), instance, 0);
                for _ in 0..EACH {
                    assert_eq!(rank.run(target.place(), GNI_POST_AMO, 0), Status::Ok);
                }
            });
        }
    });
    assert_eq!(target.words[0].load(Relaxed), 3 * EACH);
}

#[test]
fn a_name_is_had_by_one() {
    let attached = || attached(&Wire::default(), name(3, 0), Mood::Plain);
    let first = attached().expect("a NIC");
    assert!(matches!(attached(), Err(AttachError::Taken)));
    drop(first);
    drop(attached().expect("it is free again"));
}

/// Who is gone is told of as gone, and who comes under its name is found.
#[test]
fn a_nic_that_goes_is_gone_until_another_comes() {
    both(2).iter().for_each(|wires| goes_until_another_comes(wires));
}

fn goes_until_another_comes(wires: &[Wire]) {
    let job = (4, Mood::Plain);
    let [first, second] = [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)];
    assert_eq!(first.run(second.place(), GNI_POST_FMA_PUT, 0), Status::Ok);
    let (place, words) = (second.place(), second.words);
    drop(second.attached);
    // The process is there still, and its memory, so that the end of the connection alone tells.
    let begun = Instant::now();
    while first.run(place, GNI_POST_FMA_PUT, 0) != Status::Gone {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    drop(words);
    let third = rank(&wires[1], job, 1, 0);
    first.words[0].store(33, Relaxed);
    assert_eq!(first.run(third.place(), GNI_POST_FMA_PUT, 0), Status::Ok);
    assert_eq!(third.words[0].load(Relaxed), 33);
}

/// What becomes of a datagram, when it is over.
fn outcome(end: &Endpoint, id: Option<u64>) -> Outcome {
    let begun = Instant::now();
    loop {
        let outcome = end.test_datagram(id, 128).expect("it was posted");
        if outcome.state != GNI_POST_PENDING {
            return outcome;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not over");
        std::thread::yield_now();
    }
}

/// Offers wait for a NIC that comes later, are answered while its client does not look, and end with it.
#[test]
fn datagrams_find_each_other() {
    both(4).iter().for_each(|wires| find_each_other(wires));
}

fn find_each_other(wires: &[Wire]) {
    let job = (6, Mood::Plain);
    let first = rank(&wires[0], job, 0, 1);
    first.endpoint.post_datagram(b"hello", None).expect("posted");
    std::thread::sleep(Duration::from_millis(5));
    let second = rank(&wires[1], job, 1, 0);
    let listener = second.attached.nic().endpoint(None).expect("an endpoint");
    listener.post_datagram(b"whoever you are", Some(3)).expect("posted");
    assert_eq!(outcome(&first.endpoint, None).data, b"whoever you are");
    let got = outcome(&listener, Some(3));
    assert_eq!((got.peer, &got.data[..]), (Some((ADDRESS, 0)), &b"hello"[..]));

    // Both look for each other at the same time.
    let [third, fourth] = [rank(&wires[2], job, 2, 3), rank(&wires[3], job, 3, 2)];
    std::thread::scope(|scope| {
        for (rank, says) in [(&third, b"third "), (&fourth, b"fourth")] {
            scope.spawn(move || {
                rank.endpoint.post_datagram(says, Some(1)).expect("posted");
                assert_ne!(outcome(&rank.endpoint, Some(1)).data, says);
            });
        }
    });

    first.endpoint.post_datagram(b"anybody?", None).expect("posted");
    drop(second.attached);
    assert_eq!(outcome(&first.endpoint, None).state, GNI_POST_TIMEOUT);
}

/// An endpoint in a tree of NICs that have an engine each, or none.
fn seat(rank: &Rank, to: u32, child: u32, kind: gni_ce_child_t) -> Endpoint {
    let end = rank.attached.nic().endpoint(Some(&rank.events)).expect("an endpoint");
    end.bind(ADDRESS, to).expect("bound");
    // The first engine of that rank: names begin with the instance.
    end.set_attributes(to << 2, child, kind).expect("said");
    end
}

/// The first word of a rank's result.
fn place(rank: &Rank) -> usize {
    let first = rank.words.as_ptr().addr();
    (first.next_multiple_of(32) - first) / 8
}

fn contribute(rank: &Rank, leaf: &Endpoint) {
    let what = gni_post_descriptor_t {
        r#type: GNI_POST_CE,
        local_addr: (&raw const rank.words[place(rank)]) as u64,
        local_mem_hndl: rank.handle,
        ce_cmd: GNI_FMA_CE_IADD,
        first_operand: 1,
        ..Default::default()
    };
    leaf.post(&what, Way::Fma, 1, None).expect("posted");
}

/// The status of a rank's result, and its first number.
fn result(rank: &Rank) -> (u64, u64) {
    let begun = Instant::now();
    loop {
        let words = &rank.words[place(rank)..];
        let control = words[0].load(Acquire);
        if is_whole(control) {
            return (status(control), words[1].load(Relaxed));
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "there is no result");
        std::thread::yield_now();
    }
}

/// Two clients of one's engine: the other is told when that goes.
#[test]
fn a_client_does_not_wait_for_an_engine_that_has_gone() {
    both(2).iter().for_each(|wires| does_not_wait_for_an_engine(wires));
}

fn does_not_wait_for_an_engine(wires: &[Wire]) {
    let job = (29, Mood::Plain);
    let [first, second] = [rank(&wires[0], job, 0, 1), rank(&wires[1], job, 1, 0)];
    let engine = first.attached.nic().engine().expect("an engine");
    let clients = [0, 1].map(|at| seat(&first, at, at, GNI_CE_CHILD_PE));
    engine.configure(&clients.each_ref(), None, None, 0).expect("configured");
    let leaves = [seat(&first, 0, 0, GNI_CE_CHILD_PE), seat(&second, 0, 1, GNI_CE_CHILD_PE)];
    for _ in 0..3 {
        contribute(&second, &leaves[1]);
        contribute(&first, &leaves[0]);
        assert_eq!([result(&first), result(&second)], [(0, 2); 2]);
    }
    contribute(&second, &leaves[1]);
    drop(first);
    assert_eq!(result(&second), (Status::Gone as u64, 0));
}

/// Reductions of three NICs, one below the other, while no client looks but at its memory; and what becomes of those that wait
/// for one that has gone, above or below.
#[test]
fn a_reduction_goes_on_while_nobody_looks_and_ends_with_whom_it_waits_for() {
    let rounds = [(Mood::Plain, 0), (Mood::Plain, 1), (Mood::Plain, 2), (Mood::Adversarial { seed: 3 }, 1)];
    let rounds = (30..).zip(rounds);
    for (wires, (cookie, (mood, gone))) in
        both(3).iter().flat_map(|wires| rounds.clone().map(move |round| (wires, round)))
    {
        let rank = |at: u32| Some(rank(&wires[at as usize], (cookie, mood), at, 0));
        let mut ranks: Vec<_> = (0..3).map(rank).collect();
        let mut engines: Vec<_> = ranks
            .iter()
            .flatten()
            .map(|rank| Some(rank.attached.nic().engine().expect("an engine")))
            .collect();
        let mut leaves = Vec::new();
        for (at, (rank, engine)) in (0..).zip(ranks.iter().flatten().zip(engines.iter().flatten())) {
            let below = (at < 2).then(|| seat(rank, at + 1, 1, GNI_CE_CHILD_VCE));
            let above = (at > 0).then(|| seat(rank, at - 1, 1, GNI_CE_CHILD_VCE));
            leaves.push(Some(seat(rank, at, 0, GNI_CE_CHILD_PE)));
            let client = seat(rank, at, 0, GNI_CE_CHILD_PE);
            let children: Vec<_> = [Some(&client), below.as_ref()].into_iter().flatten().collect();
            engine.configure(&children, above.as_ref(), None, 0).expect("configured");
        }
        for _ in 0..20 {
            ranks
                .iter()
                .flatten()
                .zip(leaves.iter().flatten())
                .for_each(|(rank, leaf)| contribute(rank, leaf));
            assert!(ranks.iter().flatten().all(|rank| result(rank) == (0, 3)));
        }
        // One goes while the others wait; what it had said is no more than a process that ends says.
        for at in (0..3).filter(|at| *at != gone) {
            contribute(ranks[at].as_ref().expect("there"), leaves[at].as_ref().expect("there"));
        }
        drop(ranks[gone].take());
        for rank in ranks.iter().flatten() {
            assert_eq!(result(rank), (Status::Gone as u64, 0), "{gone} has gone");
        }
        drop((leaves[gone].take(), engines[gone].take()));
    }
}

/// Who listens under the name of a NIC and is none, or shows nonsense, is none.
#[test]
fn what_shows_no_window_is_no_nic() {
    let rank = rank(&Wire::default(), (5, Mood::Plain), 0, 1);
    let Name { cookie, ptag, address, .. } = name(5, 1);
    let socket = format!("gasworks-ugni-{}-{cookie:x}-{ptag:x}-{address:x}-1", process::user());
    let listener = unix::listen(&socket).expect("a socket");
    let soon = || Instant::now() + Duration::from_secs(30);
    let empty = memfd::create("nonsense", 4096).expect("a file");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Says nothing; another thing; the right thing without a descriptor; with one that shows nothing.
            drop(listener.accept(soon()).expect("a guest"));
            for (greeting, files) in
                [(b"hello", [empty.as_fd()].as_slice()), (b"gwnic", &[]), (b"gwnic", &[empty.as_fd()])]
            {
                listener.accept(soon()).expect("a guest").send_fds(greeting, files, soon()).expect("sent");
            }
        });
        // Each post looks for the NIC twice: by its number, and among the neighbours.
        for _ in 0..2 {
            assert_eq!(rank.run(NOWHERE, GNI_POST_FMA_PUT, 0), Status::Gone);
        }
        thread.join().expect("no panic");
    });
    // Nobody accepts any more: that takes the time that a NIC has to answer, 5 s, twice.
    if is_nightly() {
        assert_eq!(rank.run(NOWHERE, GNI_POST_FMA_PUT, 0), Status::Gone);
    }
}

/// What a window says of itself is checked before it is believed.
#[test]
fn a_window_that_lies_is_refused() {
    let shape = Shape { registrations: 4, queues: 2, lines: 64 };
    let file = memfd::create("window", shape.bytes()).expect("a file");
    let map = || file.map().expect("mapped");
    let refusal = || Window::open(map()).err().unwrap_or_default();
    assert!(refusal().contains("not laid out"), "{}", refusal());
    let window = Window::make(Chip::Gemini, shape, map()).expect("it fits");
    assert!(window.make_queue(1, 0, 16) && !window.make_queue(2, 0, 16) && !window.make_queue(0, 62, 16));
    let seen = Window::open(map()).expect("a window");
    assert_eq!((seen.chip(), seen.shape()), (Chip::Gemini, shape));
    assert!(seen.queue(1).is_some() && seen.queue(0).is_none() && seen.queue(2).is_none());
    assert!(seen.registration(3).is_some() && seen.registration(4).is_none());
    assert!(Window::make(Chip::Aries, Shape { lines: 65, ..shape }, map()).is_none());

    let bytes = map();
    let write = |word: usize, value: u64| {
        bytes.bytes().slice(8 * word, 8).expect("inside").write(&value.to_le_bytes());
    };
    for (word, wrong) in [(1, 2), (1, u64::MAX), (2, 5000), (2, u64::MAX), (3, 1025), (4, 65), (4, u64::MAX)]
    {
        Window::make(Chip::Gemini, shape, map()).expect("it fits");
        write(word, wrong);
        assert_ne!(refusal(), "", "word {word} is {wrong}");
    }
    // A directory that leads out of the window.
    Window::make(Chip::Gemini, shape, map()).expect("it fits");
    let directory = (4096 + 4 * 64) / 8;
    for wrong in [0, 1 << 32, 62 << 32 | 1, u64::MAX, 1 << 63 | 1, 1 | 64 << 32, 1 << 31, u64::from(u32::MAX)]
    {
        write(directory, wrong);
        assert!(Window::open(map()).expect("a window").queue(0).is_none(), "{wrong:#x}");
    }
}
