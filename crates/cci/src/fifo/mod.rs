//! The FIFO backend: headers go by a FIFO for each endpoint, payloads by files that peers open by name, as CCI's design says.
//!
//! In an endpoint's directory, beside the socket:
//!
//! | file | what it is |
//! |---|---|
//! | `fifo` | the FIFO in which the endpoint receives headers of 8 bytes ([`header`](crate::header)), of all connections |
//! | `msgs` | the send buffer: payloads of messages, in runs of cache lines |
//! | `rmas` | the RMA buffer, made when it is used first: fragments, each behind a line that describes it |
//!
//! A sender writes a payload to its own `msgs` and a `SEND` header with offset and length to the receiver's FIFO. The receiver copies the payload and writes a `SEND_ACK` header with the
//! same offset and length to the sender's FIFO, by which the lines are free. Fragments of RMA go the same way, with `RMA_WRITE` or `RMA_READ` and `RMA_ACK`: the target reads from the
//! initiator's `rmas`, or writes to it.
//!
//! # Files that can be cut
//! The files have names and rights for this user, so any process of this user can cut them, and no seal keeps it from that: a sealed memory file has no name. Who has mapped a file that
//! is cut, or for which the file system has no room left, is ended by `SIGBUS` at the next access, and a handler for that signal is the program's and not a library's. So neither
//! the own files nor those of peers are mapped: they are read and written at offsets ([`SharedFile`]), where a cut is an error that ends one connection. A header costs a call of the system
//! anyway, and fragments are moved between file and registered memory without another copy. Peers that map the files see the same bytes.
//!
//! # Whom the FIFO trusts
//! A FIFO does not say who has written. Rights keep other users away. A process of the same user can write what it likes, headers in the name of another peer among it: it can have a
//! connection closed, or bytes of that peer's buffer taken for a message, as it could by a debugger. It cannot do more: each header is checked against the connection that it names, offsets
//! and lengths against the buffers, and acknowledgements against what is under way. Bytes that are no headers are skipped, and what others wrote behind them is found again
//! (`decode`).
//!
//! # What may be under way
//! A connection has at most [`CREDITS`] messages and [`BLOCKS`](crate::channel::BLOCKS) fragments that are not acknowledged. A header for which a FIFO has no room waits with its connection, and is
//! tried again by the next step, or a moment later where the endpoint sleeps.

mod lines;
mod link;

pub(crate) use link::FifoLink;

use crate::channel::MAX_SEND;
use crate::header::{ConnectionId, HEADER_LEN, Header, LINE};
use gasworks_os::Result;
use gasworks_os::directory::OpenDirectory;
use gasworks_os::fifo::{FifoReader, FifoWriter};
use gasworks_os::file::SharedFile;
use lines::Lines;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The names of the files in an endpoint's directory.
pub const FIFO: &str = "fifo";
/// See [`FIFO`].
pub const MSGS: &str = "msgs";
/// See [`FIFO`].
pub const RMAS: &str = "rmas";

/// Messages of a connection that are not acknowledged.
pub const CREDITS: usize = 8;
/// Lines of a buffer: as many as a header's offset can name.
const LINES: usize = 1 << 16;
/// Bytes of a buffer, of which none takes room before it is used.
const BUFFER_LEN: u64 = (LINES * LINE) as u64;
/// Headers of a connection that came and were not handled. An honest peer has fewer under way.
const MAX_INBOUND: usize = 64;
const _: () = assert!(CREDITS * MAX_SEND <= BUFFER_LEN as usize);

/// Lines of a buffer that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u16,
    count: usize,
}

impl Run {
    fn offset(self) -> u64 {
        u64::from(self.start) * LINE as u64
    }
}

/// A buffer from which this endpoint sends.
#[derive(Debug)]
struct SendBuffer {
    file: SharedFile,
    lines: Lines,
}

impl SendBuffer {
    fn make(directory: &OpenDirectory, name: &str) -> Result<Self> {
        Ok(Self { file: directory.make_file(name, BUFFER_LEN)?, lines: Lines::new(LINES) })
    }

    /// Takes room for so many bytes.
    fn claim(&mut self, len: usize) -> Option<Run> {
        let count = len.div_ceil(LINE);
        self.lines.claim(count).and_then(|start| Some(Run { start: u16::try_from(start).ok()?, count }))
    }

    fn free(&mut self, run: Run) {
        self.lines.free(run.start.into(), run.count);
    }
}

/// What all connections of an endpoint use.
#[derive(Debug)]
struct Shared {
    msgs: SendBuffer,
    rmas: Option<SendBuffer>,
    /// Connections whose peers do not read their FIFOs any more.
    gone: Vec<ConnectionId>,
    /// Whether something waits that no header will announce: room in a peer's FIFO, or in the file system.
    is_blocked: bool,
}

/// The files of this endpoint.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    directory: OpenDirectory,
    fifo: FifoReader,
    shared: Mutex<Shared>,
}

/// The files of another endpoint.
#[derive(Debug)]
pub(crate) struct PeerFiles {
    directory: OpenDirectory,
    fifo: FifoWriter,
    msgs: SharedFile,
    rmas: OnceLock<Option<SharedFile>>,
}

impl PeerFiles {
    /// Opens what there is in a peer's directory.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let directory = OpenDirectory::open(directory)?;
        let (fifo, msgs) = (directory.open_fifo(FIFO)?, directory.open_file(MSGS, LINE as u64)?);
        Ok(Self { directory, fifo, msgs, rmas: OnceLock::new() })
    }

    /// The RMA buffer, which the peer makes before it sends its first fragment.
    fn rmas(&self) -> Option<&SharedFile> {
        self.rmas.get_or_init(|| self.directory.open_file(RMAS, LINE as u64).ok()).as_ref()
    }
}

/// An endpoint's FIFO and files, and connections that the program has closed, of which peers may still read.
#[derive(Debug)]
pub(crate) struct Fifo {
    files: Arc<OwnFiles>,
    /// Room for what the FIFO holds, and a header more; and how many bytes of it are the beginning of a header.
    bytes: Vec<u8>,
    kept: usize,
    headers: Vec<Header>,
    closing: HashMap<ConnectionId, Box<FifoLink>>,
    /// Those whose peers have not been told.
    untold: Vec<ConnectionId>,
}

impl Fifo {
    /// Makes the files in the endpoint's directory.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let directory = OpenDirectory::open(directory)?;
        let msgs = SendBuffer::make(&directory, MSGS)?;
        let fifo = directory.make_fifo(FIFO)?;
        let bytes = vec![0; fifo.capacity() + HEADER_LEN];
        let shared = Shared { msgs, rmas: None, gone: Vec::new(), is_blocked: false };
        Ok(Self {
            files: Arc::new(OwnFiles { directory, fifo, shared: Mutex::new(shared) }),
            bytes,
            kept: 0,
            headers: Vec::new(),
            closing: HashMap::new(),
            untold: Vec::new(),
        })
    }

    pub(crate) fn files(&self) -> Arc<OwnFiles> {
        self.files.clone()
    }

    /// Reads what has come: headers of connections that `is_known` knows, which are [given back](Self::keep), as a list, when they were handled.
    pub(crate) fn read(&mut self, is_known: impl Fn(ConnectionId) -> bool) -> Vec<Header> {
        self.tell();
        let mut found = std::mem::take(&mut self.headers);
        // What cannot be read is not there.
        let count = self.files.fifo.read(&mut self.bytes[self.kept..]).unwrap_or(0);
        let end = self.kept + count;
        if end == 0 {
            return found;
        }
        let is_known = |id| is_known(id) || self.closing.contains_key(&id);
        let is_all = end < self.bytes.len();
        let used = decode(&self.bytes[..end], is_all, is_known, &mut found);
        self.bytes.copy_within(used..end, 0);
        self.kept = end - used;
        if !self.closing.is_empty() {
            found.retain(|header| {
                let link = self.closing.get_mut(&header.connection);
                link.map(|link| link.settle(*header)).is_none()
            });
            self.closing.retain(|_, link| !link.is_over());
        }
        found
    }

    /// Takes back an empty list.
    pub(crate) fn keep(&mut self, mut headers: Vec<Header>) {
        headers.clear();
        self.headers = headers;
    }

    /// The connections whose peers read no more: what they sent before has been read by the [`read`](Self::read) after that was found.
    pub(crate) fn take_gone(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.files.shared.lock().gone)
    }

    /// Whether something is to be done that nothing announces: at once, or after a while.
    pub(crate) fn is_pending(&self) -> (bool, bool) {
        let mut shared = self.files.shared.lock();
        (!shared.gone.is_empty(), std::mem::take(&mut shared.is_blocked))
    }

    /// Keeps a connection that is over until the peer has read what it was sent, or says that it does not.
    pub(crate) fn close_later(&mut self, id: ConnectionId, mut link: Box<FifoLink>) {
        link.close();
        if !link.is_over() {
            if !link.has_told() {
                self.untold.push(id);
            }
            self.closing.insert(id, link);
        }
    }

    /// Tells peers of connections that are closed, where there was no room before.
    fn tell(&mut self) {
        for _ in 0..self.untold.len() {
            let Some(id) = self.untold.pop() else { return };
            let Some(link) = self.closing.get_mut(&id) else { continue };
            link.close();
            if link.is_over() {
                self.closing.remove(&id);
            } else if !link.has_told() {
                // The others can wait as well.
                return self.untold.push(id);
            }
        }
    }

    /// Forgets closed connections whose peers are gone.
    pub(crate) fn sweep(&mut self) {
        self.closing.retain(|_, link| !link.is_broken());
    }
}

impl AsFd for Fifo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.files.fifo.as_fd()
    }
}

/// Finds headers in bytes that were read, which `is_all` says are all that there were; how many bytes were used.
///
/// Writes of whole headers are atomic, so that each begins at a multiple of 8 bytes. Who writes another number of bytes shifts what others write behind them. If these are all that the FIFO
/// held, the remainder is the shift. Where something is no header of a known connection, it is late, for a connection that is gone, or the shift is there: whether the next known header lies
/// at a multiple of 8 bytes, or the shift behind one, says which.
fn decode(
    bytes: &[u8],
    is_all: bool,
    is_known: impl Fn(ConnectionId) -> bool,
    found: &mut Vec<Header>,
) -> usize {
    let header_at = |at: usize| {
        let bytes = bytes.get(at..at + HEADER_LEN)?.try_into().ok()?;
        Header::decode(bytes).filter(|header| is_known(header.connection))
    };
    let next = |from: usize| {
        (from..bytes.len()).step_by(HEADER_LEN).find(|at| header_at(*at).is_some()).unwrap_or(bytes.len())
    };
    let mut at = 0;
    let mut shifted = 0;
    while at + HEADER_LEN <= bytes.len() {
        if let Some(header) = header_at(at) {
            found.push(header);
            at += HEADER_LEN;
            continue;
        }
        let shift = (bytes.len() - at) % HEADER_LEN;
        if is_all && shift > 0 {
            // It is the same until something behind it is reached.
            if shifted < at + shift {
                shifted = next(at + shift);
            }
            at = next(at + HEADER_LEN).min(shifted);
        } else {
            at += HEADER_LEN;
        }
    }
    if is_all { bytes.len() } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::HeaderType;
    use proptest::prelude::*;

    fn header(index: u16, offset: u16) -> Header {
        let connection = ConnectionId { index, generation: 0 };
        Header { of: HeaderType::Send, connection, offset, length: 100 }
    }

    fn decoded(bytes: &[u8], is_all: bool) -> (Vec<Header>, usize) {
        let mut found = Vec::new();
        let used = decode(bytes, is_all, |id| id == header(3, 0).connection, &mut found);
        (found, used)
    }

    proptest! {
        /// Whole headers of known connections all come, whatever others lie between, and so do those behind torn bytes.
        #[test]
        fn headers_are_found_behind_torn_ones(
            before in prop::collection::vec(prop::sample::select(vec![3u16, 4]), 0..20),
            torn in prop::collection::vec(Just(0u8), 0..8),
            after in 1usize..20,
        ) {
            let known = (0..before.len()).filter(|at| before[*at] == 3);
            let mut wanted: Vec<_> = known.map(|at| header(3, at as u16)).collect();
            let mut bytes: Vec<u8> = before.iter().enumerate().flat_map(|(at, index)| header(*index, at as u16).encode()).collect();
            bytes.extend(&torn);
            for at in 0..after {
                bytes.extend(header(3, 1000 + at as u16).encode());
                wanted.push(header(3, 1000 + at as u16));
            }
            let (found, used) = decoded(&bytes, true);
            prop_assert_eq!(used, bytes.len());
            prop_assert_eq!(found, wanted);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), is_all: bool) {
            let (found, used) = decoded(&bytes, is_all);
            prop_assert!(found.len() <= bytes.len() / HEADER_LEN && used <= bytes.len());
            prop_assert!(bytes.len() - used < HEADER_LEN);
        }
    }

    #[test]
    fn the_beginning_of_a_header_is_kept_where_more_follows() {
        let bytes = header(3, 7).encode();
        assert_eq!(decoded(&[&bytes[..], &bytes[..3]].concat(), false), (vec![header(3, 7)], 8));
        assert_eq!(decoded(&[&bytes[..], &bytes[..3]].concat(), true), (vec![header(3, 7)], 11));
    }
}
