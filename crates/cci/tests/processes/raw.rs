//! A peer that is no endpoint: it does the handshake itself, and has all that a peer may have of an endpoint mapped, to be written at will.

use gasworks_cci::datagram::{Attribute, ConnectRequest, Datagram, MAX_LEN, Nonce, Party};
use gasworks_cci::directory::Directory;
use gasworks_cci::header::ConnectionId;
use gasworks_cci::uri::Uri;
use gasworks_os::datagram::DatagramSocket;
use gasworks_os::memfd::{self, Mapping, MemFd};
use std::os::fd::AsFd;

/// Bytes of a half, of an endpoint's wake-ups, and of its table of registrations, as an endpoint wants them.
const HALF: usize = 4096 + 8 * 65_536;
const WAKEUPS: usize = 4096 + 8 * 1024;
const REGISTRATIONS: usize = 8 * 4 * 4096;

pub struct RawPeer {
    own: [Mapping; 2],
    files: [MemFd; 3],
    /// The endpoint's half of the connection and its wake-ups, once it has accepted.
    peer: Option<[Mapping; 2]>,
    /// By which name the endpoint knows the connection.
    pub connection: ConnectionId,
    server: Uri,
    nonce: Nonce,
    socket: DatagramSocket,
    directory: Directory,
}

impl RawPeer {
    /// One with a directory of its own under `base`, of an endpoint at `uri`.
    pub fn new(base: &str, uri: &str, nonce: Nonce) -> Self {
        let directory = Directory::create_next(base, std::process::id()).expect("a directory");
        let socket = DatagramSocket::bind(&directory.uri().socket()).expect("a socket");
        let half = memfd::create("raw half", HALF).expect("memory");
        let wakeups = memfd::create("raw wakeups", WAKEUPS).expect("memory");
        let (registrations, _) = memfd::create_published("raw registrations", REGISTRATIONS).expect("memory");
        let own = [half.map().expect("mapped"), wakeups.map().expect("mapped")];
        let server = Uri::parse(uri).expect("an address");
        let connection = ConnectionId { index: 0, generation: 0 };
        let files = [half, wakeups, registrations];
        Self { own, files, peer: None, connection, server, nonce, socket, directory }
    }

    /// Sends any bytes to the endpoint, with or without the memory of this side.
    pub fn send(&self, bytes: &[u8], with_memory: bool) {
        let files = self.files.each_ref().map(AsFd::as_fd);
        let files = if with_memory { &files[..] } else { &[] };
        // There may be no room, and nobody.
        let _ = self.socket.send_to(&self.server.socket(), bytes, files);
    }

    /// Asks for a connection.
    pub fn request(&self) {
        let (connection, marked) = (ConnectionId { index: 0, generation: 0 }, [7; 16]);
        let party = Party { connection, by_fifo: false, max_send: 65_536, tag: 1, mark: 4096, marked };
        let (nonce, uri) = (self.nonce, self.directory.uri().to_string());
        let attribute = Attribute::ReliableOrdered;
        let request = ConnectRequest { nonce, party, attribute, uri, data: b"raw".to_vec() };
        self.send(&Datagram::Request(request).encode(), true);
    }

    /// Takes what the endpoint has sent; whether it has accepted, now or before.
    pub fn receive(&mut self) -> bool {
        let mut bytes = [0; MAX_LEN];
        while let Ok(Some(received)) = self.socket.receive(&mut bytes) {
            let datagram = Datagram::decode(&bytes[..received.len.min(MAX_LEN)]);
            let (Ok(Datagram::Reply { party, .. }), [half, wakeups, _]) = (datagram, &received.fds[..])
            else {
                continue;
            };
            let map = |file: &std::os::fd::OwnedFd, len| memfd::map(file.as_fd(), len).expect("mapped");
            self.peer = Some([map(half, HALF), map(wakeups, WAKEUPS)]);
            self.connection = party.connection;
            self.send(&Datagram::Ack { nonce: self.nonce }.encode(), false);
        }
        self.peer.is_some()
    }

    /// Writes a word to one of the four pieces of memory: the endpoint's half and wake-ups, and those of this side.
    pub fn write(&self, piece: usize, at: usize, word: u64) {
        let peer = self.peer.as_ref().map(|peer| &peer[piece % 2]);
        let Some(mapping) =
            peer.filter(|_| piece.is_multiple_of(4) || piece % 4 == 1).or(self.own.get(piece % 2))
        else {
            return;
        };
        let at = at % (mapping.len() / 8) * 8;
        if let Some(place) = mapping.bytes().slice(at, 8) {
            place.write(&word.to_le_bytes());
        }
    }

    /// Sets all bits that say that something has come, and wakes the endpoint.
    pub fn announce(&self) {
        for word in 0..16 {
            self.write(1, 512 + word, u64::MAX);
        }
        self.write(1, 16, u64::MAX);
        self.send(&[], false);
    }

    /// Writes a slot of the endpoint's ring that is nearly right: its flag, a header, and what follows.
    pub fn write_slot(&self, slot: usize, words: [u64; 3]) {
        for (at, word) in words.into_iter().enumerate().rev() {
            self.write(0, (SLOTS_AT + slot % 8 * 256) / 8 + at, word);
        }
    }
}

/// Where in a half the ring's slots begin.
pub const SLOTS_AT: usize = 512;
