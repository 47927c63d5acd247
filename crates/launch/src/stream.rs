//! What ranks write, passed on line by line so that lines of different ranks never mix.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use gasworks_sock::{Direction, Error, Event, Set};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::line::Line;
use crate::watched::Watched;

/// A line longer than this is passed on in pieces.
const LONGEST_LINE: usize = 1 << 20;
/// With more than this waiting for a reader, ranks are not read any more.
const HIGH: usize = 1 << 20;
/// How much of a host's output may be on its way to `gasrun`.
pub(crate) const WINDOW: usize = 1 << 20;
/// How much of what a rank writes is read at once: all that a pipe holds.
const CHUNK: usize = 64 << 10;
/// A pipe that is ready for writing takes this much without waiting (`PIPE_BUF`).
const SURE: usize = 4096;

/// Where output goes: one of this process's own streams, or for an agent's ranks the way up to `gasrun`.
#[derive(Debug)]
pub(crate) struct Sink {
    /// None for the way up.
    out: Option<Watched>,
    /// Ranks are not read any more until there is room.
    full: bool,
    /// How much more may go up before `gasrun` says that it was passed on.
    pub(crate) room: usize,
    waiting: Vec<u8>,
    written: usize,
    /// Nothing more can be written to it: nobody reads it any more, or it failed.
    pub(crate) broken: bool,
    /// Why it failed. A reader that went away has read enough; any other reason means that output is lost.
    failure: Option<Errno>,
}

impl Sink {
    pub(crate) fn new(set: &Set, token: u64, fd: impl AsFd) -> anyhow::Result<Self> {
        Ok(Self { out: Some(Watched::new(set, token, fd)?), ..Self::upward() })
    }

    /// For an agent.
    pub(crate) fn upward() -> Self {
        Self {
            out: None,
            full: false,
            room: WINDOW,
            waiting: Vec::new(),
            written: 0,
            broken: false,
            failure: None,
        }
    }

    /// Whole lines that may go up now, or a piece of a line for which there will never be room at once.
    pub(crate) fn take_upward(&mut self) -> Option<Vec<u8>> {
        if self.broken {
            self.waiting.clear();
        }
        let may = self.waiting.len().min(self.room);
        let last = self.waiting[..may].iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
        let count = if last == 0 && self.room == WINDOW { may } else { last };
        self.room -= count;
        (count > 0).then(|| self.waiting.drain(..count).collect())
    }

    /// Lines that an agent has sent.
    pub(crate) fn pass_on(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.waiting.extend_from_slice(text.as_bytes());
        self.waiting.push(b'\n');
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() - self.written > HIGH
    }

    /// Why output is lost, if it is; told once.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take().map(io::Error::from)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The set has told that there is room.
    pub(crate) fn has_room(&mut self) {
        if let Some(out) = &mut self.out {
            out.told();
        }
    }

    /// Whether those that wait for room may go on; told once.
    pub(crate) fn takes_again(&mut self) -> bool {
        let again = self.full && !self.is_full();
        self.full &= !again;
        again
    }

    /// Writes what can be written without waiting, and has the set tell when there is room for the rest.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        let Some(out) = self.out.as_mut().filter(|out| !out.is_asked()) else { return Ok(()) };
        while self.written < self.waiting.len() && !self.broken {
            match out.with_fd(|fd| write_sure(fd, &self.waiting[self.written..]))? {
                Ok(n) => self.written += n,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    out.ask(Direction::Write)?;
                    break;
                }
                Err(e) => {
                    self.broken = true;
                    self.failure = (e != Errno::EPIPE).then_some(e);
                }
            }
        }
        if self.broken || self.written == self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        } else if self.written > HIGH {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}

/// Writes what is sure to fit. The descriptor is shared with others and so must stay a blocking one.
fn write_sure(fd: BorrowedFd<'_>, bytes: &[u8]) -> nix::Result<usize> {
    match poll(&mut [PollFd::new(fd, PollFlags::POLLOUT)], PollTimeout::ZERO)? {
        0 => Err(Errno::EAGAIN),
        _ => nix::unistd::write(fd, &bytes[..bytes.len().min(SURE)]),
    }
}

/// One stream of one rank.
#[derive(Debug)]
pub(crate) struct Source {
    line: Line,
    /// What each line begins with.
    label: String,
    /// Whether an unfinished last line is finished for the rank.
    finish: bool,
}

impl Source {
    pub(crate) fn new(
        set: &Set,
        token: u64,
        fd: OwnedFd,
        label: String,
        finish: bool,
    ) -> Result<Self, Error> {
        Ok(Self { line: Line::new(set.adopt(token, fd)?, CHUNK), label, finish })
    }

    /// Goes on reading, unless it does.
    pub(crate) fn go_on(&mut self) {
        self.line.go_on();
    }

    /// Moves whole lines of what has come to `sink`, and goes on if that has room; `true` when the rank has closed the
    /// stream.
    pub(crate) fn event(&mut self, event: Event, sink: &mut Sink) -> bool {
        self.line.event(event);
        // A pipe gives no error but one of ours; it is as good as closed then.
        let ended = self.line.ended().is_some();
        let inbox = &mut self.line.inbox;
        let mut whole = inbox.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
        if inbox.len() - whole > LONGEST_LINE {
            whole = inbox.len();
        }
        if ended && whole < inbox.len() {
            whole = inbox.len();
            if self.finish {
                inbox.push(b'\n');
                whole += 1;
            }
        }
        lines(&inbox[..whole], &self.label, &mut sink.waiting);
        inbox.drain(..whole);
        sink.full |= sink.is_full();
        if !sink.full {
            self.line.go_on();
        }
        ended
    }
}

/// Appends `text` to `out`, `label` before each of its lines.
fn lines(text: &[u8], label: &str, out: &mut Vec<u8>) {
    if label.is_empty() {
        out.extend_from_slice(text);
        return;
    }
    for line in text.split_inclusive(|&b| b == b'\n') {
        out.extend_from_slice(label.as_bytes());
        out.extend_from_slice(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn lines_come_whole() {
        let set = Set::new().expect("a set");
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut source = Source::new(&set, 1, reader.into(), "[3] ".into(), true).expect("a source");
        let mut sink = Sink::upward();
        let mut turn =
            |sink: &mut Sink| source.event(set.wait(None).expect("waited").expect("an event"), sink);
        writer.write_all(b"one\ntw").expect("written");
        assert!(!turn(&mut sink));
        assert_eq!(sink.waiting, b"[3] one\n");
        writer.write_all(b"o\n\nthree").expect("written");
        drop(writer);
        while !turn(&mut sink) {}
        assert_eq!(sink.waiting, b"[3] one\n[3] two\n[3] \n[3] three\n");
    }

    #[test]
    fn who_does_not_read_stops_the_ranks() {
        let set = Set::new().expect("a set");
        let (reader, writer) = io::pipe().expect("a pipe");
        let (mut slow, out) = io::pipe().expect("a pipe");
        let mut source = Source::new(&set, 1, reader.into(), String::new(), true).expect("a source");
        let mut sink = Sink::new(&set, 2, &out).expect("a sink");
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        let count = 40_000;
        let written =
            std::thread::spawn(move || (0..count).for_each(|_| (&writer).write_all(&line).expect("read")));
        let mut most = 0;
        let mut turn = |sink: &mut Sink, timeout| {
            sink.flush().expect("flushed");
            if sink.takes_again() {
                source.go_on();
            }
            let event = set.wait(timeout).expect("waited")?;
            most = most.max(sink.waiting.len());
            match event.user {
                1 => Some(source.event(event, sink)),
                _ => {
                    sink.has_room();
                    Some(false)
                }
            }
        };
        let quiet = Some(std::time::Duration::from_millis(50));
        while turn(&mut sink, quiet).is_some() {}
        assert!(sink.is_full() && !written.is_finished(), "nothing moves while nobody reads");
        drop(out);
        let reading = std::thread::spawn(move || {
            let mut all = 0;
            let mut bytes = [0; 1 << 16];
            // The sink has a descriptor of its own and never ends.
            while all < count * 100 {
                all += slow.read(&mut bytes).expect("read");
            }
            all
        });
        while !sink.is_empty() || !written.is_finished() || turn(&mut sink, quiet).is_some() {
            turn(&mut sink, quiet);
        }
        assert_eq!(reading.join().expect("ended"), count * 100);
        assert!(most <= HIGH + CHUNK + HIGH, "{most}");
        written.join().expect("ended");
    }
}
