//! A peer that is played by hand, with the files and frames of CCI's design.

use crate::endpoint::{config, directory, next_of};
use gasworks_cci::datagram::{Attribute, Datagram, MAX_LEN, Party};
use gasworks_cci::endpoint::{Endpoint, EndpointConfig, Event};
use gasworks_cci::header::{ConnectionId, HEADER_LEN, Header, HeaderType, LINE};
use gasworks_os::datagram::DatagramSocket;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The peer's name of its connection.
pub const OWN: ConnectionId = ConnectionId { index: 0x1234, generation: 0x56 };

/// A peer, with one connection to an endpoint.
pub struct Peer {
    pub at: PathBuf,
    /// Open as long as this.
    _socket: DatagramSocket,
    /// Its FIFO, to be read; and the endpoint's, to be written to.
    pub fifo: Option<File>,
    pub to: File,
    /// Its send buffer, and the endpoint's.
    pub msgs: File,
    pub theirs: File,
    /// The endpoint's name of the connection.
    pub id: ConnectionId,
}

/// Opens a file so that nothing waits.
pub fn opened(path: &Path, flags: OFlag) -> File {
    open(path, flags | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty()).expect("opened").into()
}

/// Files as an endpoint has them, under its base.
fn files(base: &Path, number: u32) -> (PathBuf, DatagramSocket, File, File) {
    let at = base.join("77").join(number.to_string());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&at).expect("a directory");
    let socket = DatagramSocket::bind(&at.join("sock")).expect("a socket");
    nix::unistd::mkfifo(&at.join("fifo"), Mode::S_IRWXU).expect("a FIFO");
    let fifo = opened(&at.join("fifo"), OFlag::O_RDWR);
    let msgs = File::options().read(true).write(true).create_new(true).open(at.join("msgs")).expect("a file");
    msgs.set_len(1 << 20).expect("its size");
    (at, socket, fifo, msgs)
}

fn party() -> Party {
    Party { connection: OWN, by_fifo: true, max_send: 4096, tag: 9, mark: 0, marked: [0; 16] }
}

impl Peer {
    /// An endpoint, and a peer to which it has connected.
    pub fn new(change: impl Fn(&mut EndpointConfig)) -> (TempDir, Endpoint, Self) {
        let directory = directory();
        let mut config = config(&directory);
        change(&mut config);
        let mut end = Endpoint::create(config).expect("an endpoint");
        let peer = Self::of(&mut end, directory.path(), 1);
        (directory, end, peer)
    }

    /// A peer to which `end` connects.
    pub fn of(end: &mut Endpoint, base: &Path, number: u32) -> Self {
        let (at, socket, fifo, msgs) = files(base, number);
        let uri = format!("sm://{}", at.display());
        let id = end.connect(&uri, b"", Attribute::ReliableOrdered, 1, None).expect("asked");
        let mut buffer = [0; MAX_LEN];
        let received = socket.receive(&mut buffer).expect("no error").expect("a request");
        let Ok(Datagram::Request(request)) = Datagram::decode(&buffer[..received.len]) else {
            panic!("a request")
        };
        assert!(request.party.by_fifo && request.party.connection == id);
        let reply = Datagram::Reply { nonce: request.nonce, party: party() }.encode();
        socket.send_to(&end.uri().socket(), &reply, &[]).expect("sent");
        let (_, event) = next_of(&mut [end]);
        assert!(matches!(event, Event::Connected { result: Ok(()), .. }), "{event:?}");
        let theirs = end.uri().directory();
        let to = opened(&theirs.join("fifo"), OFlag::O_WRONLY);
        let theirs = opened(&theirs.join("msgs"), OFlag::O_RDWR);
        Self { at, _socket: socket, fifo: Some(fifo), to, msgs, theirs, id }
    }

    /// What lies in its FIFO: eight bytes, or nothing.
    pub fn header(&mut self) -> Option<Header> {
        let mut bytes = [0; HEADER_LEN];
        match self.fifo.as_mut().expect("it is open").read(&mut bytes) {
            Ok(count) => {
                assert_eq!(count, HEADER_LEN);
                let word = u64::from_le_bytes(bytes);
                assert_eq!(
                    (word >> 4 & 0xFFFF, word >> 20 & 0xFF),
                    (OWN.index.into(), OWN.generation.into())
                );
                Some(Header::decode(bytes).expect("a header"))
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                None
            }
        }
    }

    /// Writes a header to the endpoint's FIFO.
    pub fn write(&mut self, of: HeaderType, offset: u16, length: u32) {
        let header = Header { of, connection: self.id, offset, length };
        assert_eq!(self.to.write(&header.encode()).expect("room"), HEADER_LEN);
    }

    /// The payload of a message.
    pub fn payload(&self, header: Header) -> Vec<u8> {
        let mut bytes = vec![0; header.length as usize];
        self.theirs.read_exact_at(&mut bytes, u64::from(header.offset) * LINE as u64).expect("read");
        bytes
    }

    /// Sends a message from some line on.
    pub fn send(&mut self, line: u16, bytes: &[u8]) {
        self.msgs.write_all_at(bytes, u64::from(line) * LINE as u64).expect("room");
        self.write(HeaderType::Send, line, bytes.len() as u32);
    }
}

/// Has an endpoint go on, without events.
pub fn turn(end: &mut Endpoint) {
    for _ in 0..50 {
        end.progress();
    }
}

/// The next message of an endpoint.
pub fn message(end: &mut Endpoint) -> Vec<u8> {
    let (_, event) = next_of(&mut [end]);
    let Event::Received(message) = event else { panic!("{event:?}") };
    let bytes = message.bytes.to_vec();
    end.give_back(message);
    bytes
}

pub fn no_event(end: &mut Endpoint) {
    turn(end);
    assert!(end.event().expect("no error").is_none());
}
