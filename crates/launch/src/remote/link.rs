//! A connection between `gasrun` and an agent, or between two agents: whole messages, in order, and a beat.
//!
//! Each frame has its length (4 bytes) in front. Both sides send something every [`BEAT`]; who hears nothing for as long
//! as the setting `GASWORKS_LOST_AFTER` says takes the other for lost.

use std::time::{Duration, Instant};

use gasworks_sock::{Event, Op, Sock};

/// How often a side says that it is there.
pub(crate) const BEAT: Duration = Duration::from_millis(200);
/// The longest message.
const LONGEST: usize = 1 << 30;
/// How much one read takes at most.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Link {
    sock: Sock,
    inbox: Vec<u8>,
    /// What stands in the inbox before this was used.
    used: usize,
    outbox: Vec<u8>,
    writing: bool,
    /// When something came last, and when something was sent last.
    pub(crate) heard: Instant,
    said: Instant,
    /// Why nothing comes any more.
    ended: Option<String>,
}

impl Link {
    /// Over a connected sock of which nothing is read yet; `begun` was read before.
    pub(crate) fn new(sock: Sock, begun: Vec<u8>) -> Self {
        let now = Instant::now();
        let mut link = Self {
            sock,
            inbox: begun,
            used: 0,
            outbox: Vec::new(),
            writing: false,
            heard: now,
            said: now,
            ended: None,
        };
        link.post_read(vec![0; CHUNK]);
        link
    }

    fn post_read(&mut self, buffer: Vec<u8>) {
        if let Err(e) = self.sock.post_read(buffer, 1, CHUNK, None) {
            self.ended.get_or_insert(e.to_string());
        }
    }

    /// Something that was posted has come to its end.
    pub(crate) fn event(&mut self, mut event: Event) {
        match event.op {
            Op::Read => {
                self.inbox.extend_from_slice(event.data());
                if event.bytes > 0 {
                    self.heard = Instant::now();
                }
                match event.error.take() {
                    Some(error) => self.ended = Some(error.to_string()),
                    None => self.post_read(event.take_buffer()),
                }
            }
            Op::Write => {
                self.writing = false;
                match event.error.take() {
                    Some(error) => self.ended = Some(error.to_string()),
                    None => self.flush(),
                }
            }
            _ => {}
        }
    }

    /// The next message, or the error that ends the link: then nothing comes any more.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let waiting = &self.inbox[self.used..];
        let ended = || self.ended.clone().map_or(Ok(None), Err);
        let Some((head, rest)) = waiting.split_first_chunk::<4>() else { return ended() };
        let length = u32::from_le_bytes(*head) as usize;
        if length > LONGEST {
            return Err(format!("a message announces {length} bytes"));
        }
        let Some(frame) = rest.get(..length) else { return ended() };
        let frame = frame.to_vec();
        self.used += 4 + length;
        if self.used == self.inbox.len() || self.used > CHUNK {
            self.inbox.drain(..self.used);
            self.used = 0;
        }
        Ok(Some(frame))
    }

    pub(crate) fn send(&mut self, frame: &[u8]) {
        // What is longer is refused by the other side.
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.outbox.extend_from_slice(&length.to_le_bytes());
        self.outbox.extend_from_slice(frame);
        self.said = Instant::now();
        self.flush();
    }

    fn flush(&mut self) {
        if self.writing || self.outbox.is_empty() || self.ended.is_some() {
            return;
        }
        let bytes = std::mem::take(&mut self.outbox);
        let length = bytes.len();
        match self.sock.post_write(bytes, length, length, None) {
            Ok(()) => self.writing = true,
            Err(e) => self.ended = Some(e.to_string()),
        }
    }

    /// Whether all that was sent is on its way.
    pub(crate) fn is_flushed(&self) -> bool {
        self.ended.is_some() || (!self.writing && self.outbox.is_empty())
    }

    /// When it is time to say something again.
    pub(crate) fn beat_at(&self) -> Instant {
        self.said + BEAT
    }

    pub(crate) fn close(&self) {
        // It may have come to its end by itself.
        let _ = self.sock.post_close();
    }
}
