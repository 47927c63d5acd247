//! A connection between `gasrun` and an agent, or between two agents: whole messages, in order, and a beat.
//!
//! Each frame has its length (4 bytes) in front. Both sides send something every [`BEAT`]; who hears nothing for as long
//! as the setting `GASWORKS_LOST_AFTER` says, and gets no acknowledgement from the other's system, takes the other for lost.

use std::time::{Duration, Instant};

use gasworks_sock::{Event, Op, Sock};

use super::codec;
use crate::line::Line;

/// How often a side says that it is there.
pub(crate) const BEAT: Duration = Duration::from_millis(200);
/// How much one read takes at most.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Link {
    line: Line,
    /// What stands in the inbox before this was used.
    used: usize,
    /// When something came last, and when something was sent last.
    heard: Instant,
    said: Instant,
}

impl Link {
    /// Over a connected sock of which nothing is posted.
    pub(crate) fn new(sock: Sock) -> Self {
        let now = Instant::now();
        Self { line: Line::new(sock, CHUNK), used: 0, heard: now, said: now }
    }

    /// Something that was posted has come to its end.
    pub(crate) fn event(&mut self, event: Event) {
        if event.op == Op::Read && event.bytes > 0 {
            self.heard = Instant::now();
        }
        self.line.event(event);
        self.line.go_on();
    }

    /// The next message, or the error that ends the link: then nothing comes any more.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let waiting = &self.line.inbox[self.used..];
        let Some((frame, rest)) = codec::frame(waiting).map_err(|e| e.to_string())? else {
            return self.line.ended().map_or(Ok(None), |why| Err(why.to_owned()));
        };
        let frame = frame.to_vec();
        self.used = self.line.inbox.len() - rest.len();
        if self.used == self.line.inbox.len() || self.used > CHUNK {
            self.line.inbox.drain(..self.used);
            self.used = 0;
        }
        Ok(Some(frame))
    }

    pub(crate) fn send(&mut self, frame: &[u8]) {
        // What is longer is refused by the other side.
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.line.post(&[&length.to_le_bytes(), frame].concat());
        self.said = Instant::now();
    }

    /// Whether nothing has come for so long, neither from the process at the other side nor from its system, which acknowledges
    /// what is sent to it while that is stopped.
    pub(crate) fn is_silent(&self, patience: Duration) -> bool {
        self.heard.elapsed() >= patience && self.line.acknowledged().is_none_or(|age| age >= patience)
    }

    /// What was silence while this process did not run itself is none.
    pub(crate) fn forgive(&mut self, gap: Duration) {
        self.heard += gap;
    }

    /// When it is time to say something again.
    pub(crate) fn beat_at(&self) -> Instant {
        self.said + BEAT
    }
}
