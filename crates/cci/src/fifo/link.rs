//! A connection by FIFOs, as one of its endpoints keeps it.

use super::{CREDITS, LINES, MAX_INBOUND, OwnFiles, PeerFiles, RMAS, Run, SendBuffer};
use crate::channel::{BLOCKS, MAX_SEND, Payload, PeerError, SendError, Sent};
use crate::header::{ConnectionId, HEADER_LEN, Header, HeaderType, LINE};
use gasworks_os::fifo::{ATOMIC, Written};
use gasworks_sync::VolatileSlice;
use std::collections::VecDeque;
use std::sync::Arc;

/// Headers that are written at once.
const MAX_WRITE: usize = ATOMIC / HEADER_LEN;

/// A message that is not acknowledged.
#[derive(Debug)]
struct InFlight {
    run: Run,
    len: u32,
    is_taken: bool,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct FifoLink {
    own: Arc<OwnFiles>,
    peer: Arc<PeerFiles>,
    id: ConnectionId,
    peer_id: ConnectionId,
    /// What has come and was not handled.
    inbound: VecDeque<Header>,
    /// Messages that the peer has not acknowledged, the first first; how many were sent; and how many of the first it has taken.
    in_flight: VecDeque<InFlight>,
    sent: u64,
    taken: u64,
    /// Lines of the RMA buffer, each with a fragment.
    fragments: [Option<Run>; BLOCKS as usize],
    /// The peer sends more than it may.
    is_damaged: bool,
    /// The peer sends and takes no more; and there is none that reads.
    is_closed: bool,
    is_broken: bool,
    /// The peer knows that this side sends and takes no more.
    has_told: bool,
}

impl FifoLink {
    /// The connection `id` of this endpoint, which is `peer_id` of the peer's.
    pub(crate) fn new(
        own: Arc<OwnFiles>,
        peer: Arc<PeerFiles>,
        id: ConnectionId,
        peer_id: ConnectionId,
    ) -> Self {
        Self {
            own,
            peer,
            id,
            peer_id,
            inbound: VecDeque::new(),
            in_flight: VecDeque::new(),
            sent: 0,
            taken: 0,
            fragments: [None; BLOCKS as usize],
            is_damaged: false,
            is_closed: false,
            is_broken: false,
            has_told: false,
        }
    }

    /// Takes a header from the FIFO; whether the connection is to be looked at.
    pub(crate) fn arrive(&mut self, mut header: Header) -> bool {
        // What is behind a peer's last word is not the peer's.
        if self.is_closed || self.is_damaged {
            return false;
        }
        match header.of {
            HeaderType::SendAck => {
                self.acknowledged(header);
                return false;
            }
            HeaderType::Disconnect => {
                self.end();
                return true;
            }
            HeaderType::RmaAck => {
                // One of nothing is ignored, as one of no message.
                let Some(index) = self.fragment_at(header.offset) else { return false };
                header.offset = index as u16;
            }
            _ => {}
        }
        self.is_damaged = self.inbound.len() >= MAX_INBOUND;
        self.inbound.push_back(header);
        self.is_damaged || self.inbound.len() == 1
    }

    /// As [`arrive`](Self::arrive), for a connection that the program has closed: only what frees this side's lines matters.
    pub(crate) fn settle(&mut self, header: Header) {
        match header.of {
            HeaderType::SendAck => self.acknowledged(header),
            HeaderType::Disconnect => self.end(),
            HeaderType::RmaAck => {
                if let Some(index) = self.fragment_at(header.offset) {
                    self.free_fragment(index as u32);
                }
            }
            _ => {}
        }
    }

    /// The number of the fragment that begins at this line.
    fn fragment_at(&self, line: u16) -> Option<usize> {
        self.fragments.iter().position(|run| run.is_some_and(|run| run.start == line))
    }

    /// The peer has taken a message. They are acknowledged in order, as a rule; one of no message is ignored.
    fn acknowledged(&mut self, header: Header) {
        let is_it = |sent: &&mut InFlight| {
            !sent.is_taken && sent.run.start == header.offset && sent.len == header.length
        };
        let Some(sent) = self.in_flight.iter_mut().find(is_it) else { return };
        sent.is_taken = true;
        let run = std::mem::replace(&mut sent.run.count, 0);
        let run = Run { count: run, ..sent.run };
        self.own.shared.lock().msgs.free(run);
        while self.in_flight.pop_front_if(|sent| sent.is_taken).is_some() {
            self.taken += 1;
        }
    }

    /// The peer reads, writes and sends no more.
    pub(crate) fn end(&mut self) {
        self.is_closed = true;
        self.free_all();
    }

    fn free_all(&mut self) {
        let mut shared = self.own.shared.lock();
        for sent in self.in_flight.drain(..) {
            shared.msgs.free(sent.run);
        }
        for run in self.fragments.iter_mut().filter_map(Option::take) {
            if let Some(rmas) = &mut shared.rmas {
                rmas.free(run);
            }
        }
    }

    /// Writes headers to the peer's FIFO, all or none; whether they were.
    fn write(&mut self, headers: impl Iterator<Item = Header>) -> bool {
        let mut bytes = [0; ATOMIC];
        let mut len = 0;
        for (room, header) in bytes.chunks_exact_mut(HEADER_LEN).zip(headers) {
            room.copy_from_slice(&header.encode());
            len += HEADER_LEN;
        }
        if self.is_broken {
            return false;
        }
        match self.peer.fifo.write(&bytes[..len]) {
            Ok(Written::Done) => true,
            Ok(Written::Full) => {
                self.own.shared.lock().is_blocked = true;
                false
            }
            Ok(Written::Broken) | Err(_) => {
                self.break_off();
                false
            }
        }
    }

    /// The peer does not read its FIFO any more. What it sent before is read first.
    pub(crate) fn break_off(&mut self) {
        if !std::mem::replace(&mut self.is_broken, true) {
            self.own.shared.lock().gone.push(self.id);
        }
    }

    /// Sends a header, with a payload if it is a message.
    #[inline(never)]
    pub(crate) fn send(&mut self, mut header: Header, parts: &[&[u8]]) -> Result<Sent, SendError> {
        let number = self.sent;
        let sent = Ok(Sent { number, wakes: false });
        if header.of != HeaderType::Send {
            return if self.write(std::iter::once(header)) { sent } else { Err(SendError::Full) };
        }
        let len = parts.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        if len > MAX_SEND {
            return Err(SendError::TooLong { len });
        }
        if self.in_flight.len() >= CREDITS || self.is_closed || self.is_broken {
            return Err(SendError::Full);
        }
        let run = {
            let mut shared = self.own.shared.lock();
            // Where there are no lines, acknowledgements bring some.
            let run = shared.msgs.claim(len).ok_or(SendError::Full)?;
            if shared.msgs.file.write(run.offset(), parts).is_err() {
                shared.msgs.free(run);
                shared.is_blocked = true;
                return Err(SendError::Full);
            }
            run
        };
        header.offset = run.start;
        if !self.write(std::iter::once(header)) {
            self.own.shared.lock().msgs.free(run);
            return Err(SendError::Full);
        }
        self.in_flight.push_back(InFlight { run, len: len as u32, is_taken: false });
        self.sent += 1;
        sent
    }

    /// Sends headers without payloads, as many as go at once, and takes them from the queue.
    pub(crate) fn send_answers(&mut self, headers: &mut VecDeque<Header>) -> Result<Sent, SendError> {
        let count = headers.len().min(MAX_WRITE);
        if !self.write(headers.iter().take(count).copied()) {
            return Err(SendError::Full);
        }
        headers.drain(..count);
        Ok(Sent { number: self.sent, wakes: false })
    }

    /// How many messages the peer has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes the next header that is to be handled.
    #[inline(never)]
    pub(crate) fn receive(&mut self) -> Result<Option<(Header, Payload<'static>)>, PeerError> {
        if std::mem::take(&mut self.is_damaged) {
            self.inbound.clear();
            self.end();
            return Err(PeerError::Content);
        }
        let Some(header) = self.inbound.pop_front() else { return Ok(None) };
        let len = header.length as usize;
        let payload = match header.of {
            HeaderType::Send | HeaderType::RmaWrite | HeaderType::RmaRead => {
                let lines = usize::from(header.offset) + len.div_ceil(LINE);
                if len > MAX_SEND || lines > LINES {
                    return Err(PeerError::Content);
                }
                Payload::File { offset: header.offset, len }
            }
            _ => Payload::Copy(&[]),
        };
        Ok(Some((header, payload)))
    }

    /// Copies the payload of a message out of the peer's buffer; whether it is there.
    pub(crate) fn read_payload(&self, offset: u16, into: &mut [u8]) -> bool {
        self.peer.msgs.read(u64::from(offset) * LINE as u64, into).is_ok()
    }

    /// Whether something has come.
    pub(crate) fn waits(&self) -> bool {
        !self.inbound.is_empty() || self.is_damaged
    }

    /// Whether the peer sends no more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Says that this side sends no more, and takes no more.
    pub(crate) fn close(&mut self) {
        if !self.has_told {
            let connection = self.peer_id;
            let header = Header { of: HeaderType::Disconnect, connection, offset: 0, length: 0 };
            self.has_told = self.write(std::iter::once(header));
        }
    }

    /// Whether the peer knows that this side has closed the connection, or is gone.
    pub(crate) fn has_told(&self) -> bool {
        self.has_told || self.is_broken
    }

    /// Whether nobody reads or writes this side's lines any more, and the peer has been told what there is to be told.
    pub(crate) fn is_over(&self) -> bool {
        let is_unused = self.in_flight.is_empty() && self.fragments.iter().all(Option::is_none);
        self.is_broken || (self.has_told && (self.is_closed || is_unused))
    }

    /// Whether the peer does not read its FIFO any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken || self.peer.fifo.is_broken()
    }

    /// Takes lines of the RMA buffer for a fragment of `len` bytes with its line; the number of the fragment.
    pub(crate) fn claim(&mut self, len: usize) -> Option<u32> {
        if self.is_closed || self.is_broken {
            return None;
        }
        let index = self.fragments.iter().position(Option::is_none)?;
        let mut shared = self.own.shared.lock();
        if shared.rmas.is_none() {
            let made = SendBuffer::make(&self.own.directory, RMAS);
            shared.is_blocked |= made.is_err();
            shared.rmas = made.ok();
        }
        self.fragments[index] = Some(shared.rmas.as_mut()?.claim(len)?);
        Some(index as u32)
    }

    /// Gives a fragment's lines back.
    pub(crate) fn free_fragment(&mut self, index: u32) {
        let run = self.fragments.get_mut(index as usize).and_then(Option::take);
        let mut shared = self.own.shared.lock();
        if let (Some(run), Some(rmas)) = (run, &mut shared.rmas) {
            rmas.free(run);
        }
    }

    /// Does something with a fragment's lines, which begin at an offset in the file.
    fn with_fragment(
        &self,
        index: u32,
        work: impl FnOnce(&gasworks_os::file::SharedFile, u64) -> gasworks_os::Result<()>,
    ) -> bool {
        let Some(run) = self.fragments.get(index as usize).copied().flatten() else { return false };
        let mut shared = self.own.shared.lock();
        let is_done = shared.rmas.as_ref().is_some_and(|rmas| work(&rmas.file, run.offset()).is_ok());
        shared.is_blocked |= !is_done;
        is_done
    }

    /// Writes the line of a fragment, and its payload if it has one; whether there was room in the file system.
    pub(crate) fn fill(&self, index: u32, line: &[u8; LINE], payload: Option<VolatileSlice<'_>>) -> bool {
        self.with_fragment(index, |file, at| {
            file.write(at, &[line])?;
            payload.map_or(Ok(()), |payload| file.write_from(at + LINE as u64, payload))
        })
    }

    /// Copies the payload of a fragment that the target has filled; whether it is there.
    pub(crate) fn drain(&self, index: u32, into: VolatileSlice<'_>) -> bool {
        self.with_fragment(index, |file, at| file.read_to(at + LINE as u64, into))
    }

    /// Sends the header of a fragment that was filled.
    pub(crate) fn send_fragment(&mut self, mut header: Header, index: u32) -> Result<Sent, SendError> {
        let run = self.fragments.get(index as usize).copied().flatten().ok_or(SendError::Full)?;
        header.offset = run.start;
        self.send(header, &[])
    }

    /// The line of a fragment of the peer's.
    pub(crate) fn fragment_line(&self, offset: u32) -> Option<[u8; LINE]> {
        let mut line = [0; LINE];
        self.peer.rmas()?.read(u64::from(offset) * LINE as u64, &mut line).ok()?;
        Some(line)
    }

    /// Copies the payload of a fragment of the peer's to memory of this side, or from it; whether that was possible.
    pub(crate) fn move_fragment(&self, offset: u32, here: VolatileSlice<'_>, is_read: bool) -> bool {
        let at = (u64::from(offset) + 1) * LINE as u64;
        self.peer.rmas().is_some_and(|file| {
            let moved = if is_read { file.write_from(at, here) } else { file.read_to(at, here) };
            moved.is_ok()
        })
    }
}

impl Drop for FifoLink {
    fn drop(&mut self) {
        self.free_all();
    }
}
