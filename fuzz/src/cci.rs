//! What endpoints read of their peers: datagrams, headers, and memory that a peer writes.

#[path = "../../crates/cci/tests/processes/raw.rs"]
mod raw;

use crate::ugni::Numbers;
use gasworks_cci::datagram::{Datagram, MAX_LEN};
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event, RmaRights, RmaWays, SendFlags};
use gasworks_cci::header::{ConnectionId, Header};
use raw::RawPeer;

/// A datagram: refused, or understood so well that encoding it again gives the same bytes.
pub fn datagram(data: &[u8]) {
    if let Ok(datagram) = Datagram::decode(data) {
        assert_eq!(datagram.encode(), data);
        assert!(data.len() <= MAX_LEN);
    }
}

/// Headers, one behind the other.
pub fn header(data: &[u8]) {
    for bytes in data.as_chunks().0 {
        if let Some(header) = Header::decode(*bytes) {
            assert_eq!(header.encode(), *bytes);
        }
    }
}

/// An endpoint, and the connections of its that are open.
struct Server {
    end: Endpoint,
    open: Vec<ConnectionId>,
}

impl Server {
    /// Handles what has come; the endpoint fails at nothing that peers do.
    fn turn(&mut self) {
        for _ in 0..100 {
            match self.end.event().expect("no error") {
                None => return,
                Some(Event::Requested(request)) => {
                    self.open.extend(self.end.accept(request.id, 0));
                }
                Some(Event::Received(message)) => self.end.give_back(message),
                Some(Event::Closed { connection }) => self.close(connection),
                Some(Event::Accepted { connection, result: Err(_), .. }) => {
                    self.open.retain(|open| *open != connection);
                }
                Some(_) => {}
            }
        }
    }

    fn close(&mut self, connection: ConnectionId) {
        // One that was closed before is none any more.
        let _ = self.end.disconnect(connection);
        self.open.retain(|open| *open != connection);
    }
}

/// An endpoint whose peer sends datagrams and writes words to all memory that it may map, as the bytes say.
pub fn endpoint(data: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let Some(base) = folder.path().to_str() else { return };
    let config = EndpointConfig {
        base: base.into(),
        wakes: true,
        ways: RmaWays { mapped: true, by_system: false },
        ..EndpointConfig::default()
    };
    let mut end = Endpoint::create(config).expect("an endpoint");
    end.allocate(4096, RmaRights::all()).expect("memory");
    let uri = end.uri().to_string();
    let mut raw = RawPeer::new(base, &uri, [9; 16]);
    let mut server = Server { end, open: Vec::new() };
    raw.request();
    server.turn();
    let mut numbers = Numbers(data);
    let mut slots = 0u64;
    while !numbers.0.is_empty() {
        raw.receive();
        match numbers.next(1) % 8 {
            0 => {
                let (kind, len) = (numbers.next(1), numbers.next(1) as usize);
                let (bytes, rest) = numbers.0.split_at(len.min(numbers.0.len()));
                numbers.0 = rest;
                let start: &[u8] = if kind & 1 == 0 { b"gw-cci\0\x01" } else { b"" };
                raw.send(&[start, bytes].concat(), kind & 2 != 0);
            }
            1 => {
                // A slot that is nearly right: of this lap, for this connection.
                let id = u64::from(raw.connection.index) << 4 | u64::from(raw.connection.generation) << 20;
                let (lap, low) = (1 + slots / 8, u64::from(numbers.quarter()));
                let (of, third) = (numbers.next(1) & 15, numbers.word());
                let flag = lap << 32 | 8 << 8 | low & 0x80FF;
                raw.write_slot(slots as usize, [flag, of | id | numbers.next(5) << 28, third]);
                slots += 1;
                raw.announce();
            }
            2 => {
                let (piece, at) = (numbers.next(1) as usize, numbers.quarter());
                raw.write(piece, at.into(), numbers.word());
            }
            3 => {
                if let Some(open) = server.open.first().copied() {
                    let bytes = vec![7; usize::from(numbers.quarter())];
                    let _ = server.end.send(open, &[&bytes], 0, SendFlags::empty());
                }
            }
            4 => {
                if let (0, Some(open)) = (numbers.next(1) % 4, server.open.first().copied()) {
                    server.close(open);
                }
            }
            5 => raw.request(),
            _ => server.turn(),
        }
    }
    raw.announce();
    server.turn();
}
