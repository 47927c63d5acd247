//! Endpoints, two or more of them in one process, which one thread turns.

mod connecting;
mod messages;
mod sleeping;
mod tasks;
mod transfers;

use gasworks_cci::datagram::Attribute;
use gasworks_cci::endpoint::{Backend, Endpoint, EndpointConfig, Event, Failure, Message, SendFlags};
use gasworks_cci::header::ConnectionId;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// By what means these tests' endpoints work: `tests/fifo` has the same tests, by FIFOs.
fn backend() -> Backend {
    if env!("CARGO_CRATE_NAME") == "fifo" { Backend::Fifo } else { Backend::Rings }
}

/// How long anything may take that is expected to happen.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A directory for endpoints of this test alone.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new().prefix("cci").tempdir().expect("a directory")
}

pub(crate) fn config(directory: &TempDir) -> EndpointConfig {
    let base = directory.path().to_str().expect("text").into();
    EndpointConfig { base, backend: backend(), ..EndpointConfig::default() }
}

/// Endpoints that are connected: the client and its connection, the server and its.
pub(crate) struct Pair {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) ids: [ConnectionId; 2],
    _directory: TempDir,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(Attribute::ReliableOrdered, |_| {})
    }

    pub(crate) fn with(attribute: Attribute, change: impl Fn(&mut EndpointConfig)) -> Self {
        let directory = directory();
        let ends = [(); 2].map(|()| {
            let mut config = config(&directory);
            change(&mut config);
            Endpoint::create(config).expect("an endpoint")
        });
        let mut pair =
            Self { ends, ids: [ConnectionId { index: 0, generation: 0 }; 2], _directory: directory };
        let uri = pair.ends[SERVER].uri().to_string();
        pair.ids[CLIENT] = pair.ends[CLIENT].connect(&uri, b"hello", attribute, 11, None).expect("asked");
        let (_, event) = pair.next();
        let Event::Requested(request) = event else { panic!("{event:?}") };
        assert_eq!((&*request.data, request.attribute), (&b"hello"[..], attribute));
        assert_eq!((&request.uri, request.pid), (pair.ends[CLIENT].uri(), std::process::id() as i32));
        pair.ids[SERVER] = pair.ends[SERVER].accept(request.id, 22).expect("accepted");
        let (side, event) = pair.next();
        let Event::Connected { connection, context: 11, result: Ok(()) } = event else { panic!("{event:?}") };
        assert_eq!((side, connection), (CLIENT, pair.ids[CLIENT]));
        let (side, event) = pair.next();
        let Event::Accepted { connection, context: 22, result: Ok(()) } = event else { panic!("{event:?}") };
        assert_eq!((side, connection), (SERVER, pair.ids[SERVER]));
        pair
    }

    /// The next event of either side.
    pub(crate) fn next(&mut self) -> (usize, Event) {
        let [client, server] = &mut self.ends;
        next_of(&mut [client, server])
    }

    /// The next message of a side; what else there is has to be success.
    fn message(&mut self, side: usize) -> Message {
        loop {
            match self.next() {
                (at, Event::Received(message)) if at == side => return message,
                (_, Event::Sent { result: Ok(()), .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn send(&mut self, side: usize, bytes: &[u8], context: u64) {
        let id = self.ids[side];
        self.ends[side].send(id, &[bytes], context, SendFlags::empty()).expect("sent");
    }

    /// How a side's operation ends.
    fn ends(&mut self, side: usize, wanted: u64) -> Result<(), Failure> {
        match self.next() {
            (at, Event::Sent { context, result, .. }) if at == side && context == wanted => result,
            other => panic!("{other:?}"),
        }
    }
}

/// The next event of some endpoints, and whose it is.
pub(crate) fn next_of(ends: &mut [&mut Endpoint]) -> (usize, Event) {
    let start = Instant::now();
    loop {
        for (at, end) in ends.iter_mut().enumerate() {
            if let Some(event) = end.event().expect("no error") {
                return (at, event);
            }
        }
        assert!(start.elapsed() < LONG, "nothing happens");
    }
}

/// Has nothing happen at some endpoints for a while.
fn nothing_of(ends: &mut [&mut Endpoint], time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        for end in ends.iter_mut() {
            assert!(end.event().expect("no error").is_none());
        }
    }
}

pub(crate) fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + seed * 31) as u8).collect()
}
