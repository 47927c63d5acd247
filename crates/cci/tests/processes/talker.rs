//! An endpoint that does on each connection all that one can do: messages of all lengths, answers to them, transfers both ways.

use super::*;
use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Event, RmaHandle, RmaKind, RmaMemory, RmaRights, RmaWays, SendFlags};
use gasworks_cci::header::ConnectionId;
use std::collections::HashMap;

/// The first byte of a message: a handle of memory; behind bytes that were written there; to be answered; an answer.
const HANDLE: u8 = b'h';
const WRITTEN: u8 = b'w';
const REQUEST: u8 = b'e';
const ANSWER: u8 = b'r';
/// Lengths of requests. More than a ring holds, so that some wait for acknowledgements.
const LENGTHS: [usize; 12] = [1, 8, 100, 129, 5000, 65_536, 1, 300, 20, 65_536, 7, 1];
const MEMORY: usize = 200_000;
/// Endpoints that a process of the tests makes, one after the other.
const ROUNDS: usize = 3;

/// How far a connection is.
#[derive(Debug, Default)]
pub struct Progress {
    pub answers: usize,
    has_written: bool,
    was_written: bool,
}

impl Progress {
    fn is_complete(&self) -> bool {
        self.answers >= LENGTHS.len() && self.has_written && self.was_written
    }
}

pub struct Talker {
    pub end: Endpoint,
    pub connections: HashMap<ConnectionId, Progress>,
    memory: (RmaHandle, RmaMemory),
}

impl Talker {
    pub fn new(base: &str) -> Self {
        let ways = RmaWays { mapped: true, by_system: false };
        let mut end = Endpoint::create(EndpointConfig { ways, ..config(base) }).expect("an endpoint");
        let memory = end.allocate(MEMORY, RmaRights::all()).expect("memory");
        Self { end, connections: HashMap::new(), memory }
    }

    pub fn connect(&mut self, uri: &str) {
        self.end.connect(uri, b"talk", Attribute::ReliableOrdered, 0, None).expect("an address");
    }

    /// Sends something; a peer that is gone is told of by an event.
    pub fn send(&mut self, to: ConnectionId, parts: &[&[u8]]) {
        let _ = self.end.send(to, parts, 0, SendFlags::SILENT);
    }

    pub fn request(&mut self, to: ConnectionId) {
        self.send(to, &[&[REQUEST]]);
    }

    fn begin(&mut self, connection: ConnectionId) {
        self.connections.insert(connection, Progress::default());
        let words = self.memory.0.to_words().map(u64::to_le_bytes);
        self.send(connection, &[&[HANDLE], words.as_flattened()]);
        for len in LENGTHS {
            self.send(connection, &[&[REQUEST], &vec![len as u8; len - 1]]);
        }
    }

    fn receive(&mut self, from: ConnectionId, bytes: &[u8]) {
        let (kind, rest) = bytes.split_first().expect("no message is empty");
        let progress = self.connections.entry(from).or_default();
        match *kind {
            HANDLE => {
                let words: Vec<u64> =
                    rest.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
                let there = RmaHandle::from_words(words.try_into().expect("a handle"));
                let (here, told): (_, &[&[u8]]) = (self.memory.0, &[&[WRITTEN]]);
                let (end, flags) = (&mut self.end, SendFlags::empty());
                // Twice: at first by fragments, then by the peer's file, if that has come.
                for context in [1, 2] {
                    let len = MEMORY as u64;
                    let _ =
                        end.rma(from, RmaKind::Write, (here, 0), (there, 0), len, Some(told), context, flags);
                }
            }
            WRITTEN => progress.was_written = true,
            REQUEST => {
                assert!(rest.iter().all(|byte| *byte == bytes.len() as u8), "a spoilt message");
                self.send(from, &[&[ANSWER], rest]);
            }
            ANSWER => progress.answers += 1,
            other => panic!("a message of kind {other}"),
        }
    }

    /// Handles all events that there are.
    pub fn turn(&mut self) {
        while let Some(event) = self.end.event().expect("no error") {
            match event {
                Event::Requested(request) => drop(self.end.accept(request.id, 0).expect("a request")),
                Event::Accepted { connection, result, .. } | Event::Connected { connection, result, .. } => {
                    match result {
                        Ok(()) => self.begin(connection),
                        Err(_) => drop(self.connections.remove(&connection)),
                    }
                }
                Event::Received(message) => {
                    self.receive(message.connection, &message.bytes);
                    self.end.give_back(message);
                }
                Event::Sent { connection, context: 2, result: Ok(()), .. } => {
                    self.connections.entry(connection).or_default().has_written = true;
                }
                Event::Sent { .. } => {}
                Event::Closed { connection } => self.close(connection),
                Event::Silent { .. } => panic!("nobody has asked for that"),
            }
        }
    }

    pub fn close(&mut self, connection: ConnectionId) {
        self.end.disconnect(connection).expect("it is there");
        self.connections.remove(&connection);
    }

    fn is_complete(&self) -> bool {
        self.connections.len() == 2 && self.connections.values().all(Progress::is_complete)
    }
}

/// What a process does that may be killed: an endpoint that connects and is connected to, one after the other.
pub fn live(base: &str, uri: &str) -> ExitCode {
    for _ in 0..ROUNDS {
        let mut talker = Talker::new(base);
        println!("{}", talker.end.uri());
        talker.connect(uri);
        until("two connections are through", || {
            talker.turn();
            let is_over = talker.is_complete();
            if !is_over {
                sleep(&[&talker.end]);
            }
            is_over
        });
        // One is closed, and the other when the endpoint is dropped.
        let first = talker.connections.keys().next().copied().expect("two of them");
        talker.close(first);
        let handle = talker.memory.0;
        talker.end.deregister(handle).expect("it was registered");
    }
    ExitCode::SUCCESS
}

/// Two endpoints of this process, which talk with each other, and one of them with another process.
pub struct Survivors {
    pub base: String,
    pub ends: [Talker; 2],
    /// The connection between the two, as the first has it.
    pub honest: ConnectionId,
    _folder: tempfile::TempDir,
}

impl Survivors {
    pub fn new() -> Self {
        let folder = super::directory();
        let base = folder.path().to_str().expect("text").to_owned();
        let mut ends = [Talker::new(&base), Talker::new(&base)];
        let uri = ends[1].end.uri().to_string();
        ends[0].connect(&uri);
        until("they talk", || {
            ends.iter_mut().for_each(Talker::turn);
            ends.iter().all(|end| end.connections.values().any(Progress::is_complete))
        });
        let honest = *ends[0].connections.keys().next().expect("one");
        Self { base, ends, honest, _folder: folder }
    }

    pub fn turn(&mut self) {
        self.ends.iter_mut().for_each(Talker::turn);
        sleep(&[&self.ends[0].end, &self.ends[1].end]);
    }

    /// A message goes to the other endpoint of this process, and an answer comes back.
    pub fn round_trip(&mut self) {
        let answers = |ends: &[Talker; 2], id| ends[0].connections[&id].answers;
        let (honest, before) = (self.honest, answers(&self.ends, self.honest));
        self.ends[0].request(honest);
        until("an answer", || {
            self.turn();
            answers(&self.ends, honest) > before
        });
    }

    /// Talks with a process until that has ended, and this one knows; how it ended.
    pub fn outlive(&mut self, kill_at: Option<&str>) -> std::process::ExitStatus {
        use std::io::BufRead;
        let uri = self.ends[0].end.uri().to_string();
        let mut process = Process::start(&["talk", &self.base, &uri], kill_at);
        let (lines, uris) = std::sync::mpsc::channel();
        let said = std::io::BufReader::new(process.0.stdout.take().expect("piped"));
        let reader = std::thread::spawn(move || {
            said.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        let mut end = None;
        until("the process ends", || {
            self.turn();
            uris.try_iter().for_each(|uri| self.ends[0].connect(&uri));
            self.round_trip();
            end = process.0.try_wait().expect("a process");
            end.is_some()
        });
        let _ = reader.join();
        uris.try_iter().for_each(|uri| self.ends[0].connect(&uri));
        until("this one learns it", || {
            self.turn();
            self.ends[0].end.connections() == 1
        });
        end.expect("it has ended")
    }
}

pub fn nobody_dies() {
    let _alone = COUNTED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut survivors = Survivors::new();
    let before = held();
    for _ in 0..2 {
        let end = survivors.outlive(None);
        assert!(end.success(), "{end}");
        survivors.round_trip();
        nothing_is_left(&survivors.base, 2);
    }
    let (descriptors, mappings) = held();
    // Files of the other process's memory stay mapped, one for each of its endpoints.
    assert!(
        descriptors == before.0 && mappings <= before.1 + 2 * ROUNDS,
        "{before:?} {descriptors} {mappings}"
    );
}
