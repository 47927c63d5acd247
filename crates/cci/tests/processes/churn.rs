//! Processes that connect to a server and disconnect, in every way, and are killed at random. The server has nothing of them left.

use super::*;
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Event, SendFlags};
use gasworks_cci::header::ConnectionId;
use gasworks_testkit::cases::is_nightly;
use std::collections::{HashMap, HashSet};

/// Processes at once.
const PROCESSES: usize = 3;
/// The most messages on a connection: as many as a ring holds, so that all are there when it is closed.
const MESSAGES: u64 = 8;
/// The server's memory may grow by so many KiB.
const GROWTH: u64 = 48 << 10;

/// A client's life: connections, one after the other, until it is killed.
pub fn live(base: &str, uri: &str, seed: u64) -> ExitCode {
    let mut random = Random::new(seed);
    loop {
        let wakes = random.below(2) == 0;
        let mut end = Endpoint::create(EndpointConfig { wakes, ..config(base) }).expect("an endpoint");
        for _ in 0..=random.below(20) {
            come_and_go(&mut end, uri, &mut random);
        }
        // The endpoint is dropped, with the connections that are left.
    }
}

fn come_and_go(end: &mut Endpoint, uri: &str, random: &mut Random) {
    let id = end.connect(uri, b"", Attribute::ReliableOrdered, 0, None).expect("asked");
    if random.below(32) == 0 {
        // Given up before there was an answer.
        return end.disconnect(id).expect("it is there");
    }
    let (count, is_awaited, asks) = (1 + random.below(MESSAGES), random.below(2) == 0, random.below(4) == 0);
    let mut is_open = false;
    let mut sent = 0;
    until("a connection comes and goes", || {
        // Events of earlier connections, which were left open, are none of this one's.
        match end.event().expect("no error") {
            Some(Event::Connected { connection, result, .. }) if connection == id => {
                result.expect("the server accepts all");
                is_open = true;
                for number in 0..count {
                    let len = if random.below(8) == 0 { 3000 } else { 3 };
                    let last = if asks { b"asks" } else { b"goes" };
                    let head = [number as u8, count as u8, last[0]];
                    end.send(id, &[&head, &vec![7; len - 3]], 1, SendFlags::empty()).expect("sent");
                }
            }
            Some(Event::Sent { connection, .. }) if connection == id => sent += 1,
            // The server was asked to close it.
            Some(Event::Closed { connection }) => {
                end.disconnect(connection).expect("it is there");
                return connection == id;
            }
            _ => {}
        }
        is_open && !asks && (sent == count || !is_awaited)
    });
    if !asks && random.below(4) > 0 {
        end.disconnect(id).expect("it is there");
    }
}

/// The server, which checks that of each connection all messages come, unless its client was killed.
struct Server {
    end: Endpoint,
    /// Whose each connection is, and how many messages have come and should.
    open: HashMap<ConnectionId, (i32, u64, u64)>,
    killed: HashSet<i32>,
    accepted: u64,
    whole: u64,
}

impl Server {
    fn turn(&mut self) -> bool {
        let mut has_come = false;
        while let Some(event) = self.end.event().expect("no error") {
            has_come = true;
            match event {
                Event::Requested(request) => {
                    let id = self.end.accept(request.id, 0).expect("a request");
                    self.open.insert(id, (request.pid, 0, 0));
                }
                Event::Accepted { result: Ok(()), .. } => self.accepted += 1,
                Event::Accepted { connection, .. } => drop(self.open.remove(&connection)),
                Event::Received(message) => {
                    let place = self.open.get_mut(&message.connection).expect("a connection that is open");
                    let [number, count, asks, rest @ ..] = &*message.bytes else { panic!("a message") };
                    assert_eq!((place.1, place.2.max(1) <= (*count).into()), ((*number).into(), true));
                    assert!(rest.iter().all(|byte| *byte == 7));
                    *place = (place.0, place.1 + 1, (*count).into());
                    if *asks == b'a' && place.1 == place.2 {
                        self.whole += 1;
                        self.open.remove(&message.connection);
                        self.end.disconnect(message.connection).expect("it is there");
                    }
                    self.end.give_back(message);
                }
                Event::Closed { connection } => {
                    // It may lie in the queue behind the message for which the connection was closed here.
                    let Some((pid, come, wanted)) = self.open.remove(&connection) else { continue };
                    let is_whole = come == wanted && wanted > 0;
                    self.whole += u64::from(is_whole);
                    // One that was killed between two messages, or before the first.
                    assert!(is_whole || self.killed.contains(&pid), "{come} of {wanted} messages of {pid}");
                    self.end.disconnect(connection).expect("it is there");
                }
                other => panic!("{other:?}"),
            }
        }
        has_come
    }
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

pub fn check() {
    let (wanted, seed) = if is_nightly() { (100_000, 2) } else { (600, 1) };
    // By night this takes minutes.
    let limit = if is_nightly() { 60 * LONG } else { LONG };
    let _alone = COUNTED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = directory();
    let base = folder.path().to_str().expect("text").to_owned();
    let end = Endpoint::create(config(&base)).expect("an endpoint");
    let uri = end.uri().to_string();
    let mut server = Server { end, open: HashMap::new(), killed: HashSet::new(), accepted: 0, whole: 0 };
    let before = held();
    let mut memory = None;
    let mut random = Random::new(seed);
    let mut seeds = 0u64..;
    let mut start = || {
        let seed = seeds.next().unwrap_or(0).to_string();
        Process::start(&["come-and-go", &base, &uri, &seed], None)
    };
    let mut processes: Vec<_> = std::iter::repeat_with(&mut start).take(PROCESSES).collect();
    let (begun, mut kill_at, mut kills, mut told) = (Instant::now(), 20, 0u32, 0);
    while server.accepted < wanted {
        if !server.turn() {
            sleep(&[&server.end]);
        }
        if server.accepted >= wanted / 10 {
            memory = memory.or_else(|| Some(resident()));
        }
        if server.accepted >= kill_at {
            kill_at = server.accepted + 10 + random.below(if is_nightly() { 200 } else { 40 });
            let victim = random.below(PROCESSES as u64) as usize;
            server.killed.insert(processes[victim].pid());
            processes[victim] = start();
            kills += 1;
        }
        for process in &mut processes {
            let end = process.0.try_wait().expect("a process");
            assert!(end.is_none(), "a process has ended by itself: {end:?}");
        }
        if random.below(4096) == 0 {
            directory::endpoints(&base, true).expect("it can be read");
        }
        assert!(begun.elapsed() < limit, "{} connections in {limit:?}", server.accepted);
        if server.accepted >= told {
            println!("{told} connections after {:?}", begun.elapsed());
            told += wanted / 10;
        }
    }
    server.killed.extend(processes.iter().map(Process::pid));
    drop(processes);
    until("the server learns that all are gone", || {
        if !server.turn() {
            sleep(&[&server.end]);
        }
        server.end.connections() == 0
    });
    println!(
        "{} connections, {} whole, {kills} killed, {:?}",
        server.accepted,
        server.whole,
        begun.elapsed()
    );
    assert!(server.open.is_empty() && server.whole * 2 > wanted && kills > 5, "{} {kills}", server.whole);
    assert_eq!(held(), before, "descriptors, mappings");
    let grown = resident().saturating_sub(memory.expect("it was looked at"));
    assert!(grown < GROWTH, "the server has grown by {grown} KiB");
    nothing_is_left(&base, 1);
}
