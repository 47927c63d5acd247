//! What ranks write, passed on line by line so that lines of different ranks never mix. A line that does not come to its end,
//! such as a question, is passed on after a moment; at a terminal somebody else's then begins on a new line.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

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
/// How long the beginning of a line waits for the rest.
const HELD: Duration = Duration::from_millis(100);
/// Who writes: an agent, this process; ranks have their tokens.
const AGENTS: u64 = 1 << 56;
const OWN: u64 = u64::MAX;
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
    /// Who has begun a line that has not come to its end.
    open: Option<u64>,
    /// Whether somebody looks at it: then a line is ended before another one begins. What a program reads is left as it is.
    is_seen: bool,
    written: usize,
    /// Bytes written in all.
    passed: u64,
    /// Nothing more can be written to it: nobody reads it any more, or it failed.
    pub(crate) broken: bool,
    /// Why it failed. A reader that went away has read enough; any other reason means that output is lost.
    failure: Option<Errno>,
}

impl Sink {
    pub(crate) fn new(set: &Set, token: u64, fd: impl AsFd + IsTerminal) -> anyhow::Result<Self> {
        let is_seen = fd.is_terminal();
        Ok(Self { out: Some(Watched::new(set, token, fd)?), is_seen, ..Self::upward() })
    }

    /// For an agent.
    pub(crate) fn upward() -> Self {
        Self {
            out: None,
            full: false,
            room: WINDOW,
            waiting: Vec::new(),
            open: None,
            is_seen: false,
            written: 0,
            passed: 0,
            broken: false,
            failure: None,
        }
    }

    /// What may go up now: all, or whole lines, or a piece of a line for which there will never be room at once.
    pub(crate) fn take_upward(&mut self) -> Option<Vec<u8>> {
        if self.broken {
            self.waiting.clear();
        }
        let may = self.waiting.len().min(self.room);
        let last = self.waiting[..may].iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
        let is_all = may == self.waiting.len() || (last == 0 && self.room == WINDOW);
        let count = if is_all { may } else { last };
        self.room -= count;
        (count > 0).then(|| self.waiting.drain(..count).collect())
    }

    /// What the agent of `node` has sent.
    pub(crate) fn pass_on(&mut self, node: u32, bytes: &[u8]) {
        self.put(AGENTS + u64::from(node), "", bytes);
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.put(OWN, "", format!("{text}\n").as_bytes());
    }

    /// Appends `text` of `who`, `label` before each of its lines.
    fn put(&mut self, who: u64, label: &str, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if self.open.is_some_and(|open| open != who) {
            self.waiting.extend(self.is_seen.then_some(b'\n'));
            self.open = None;
        }
        let (mut begins, mut returned) = (self.open.is_none(), false);
        // A progress bar begins its line anew by a carriage return; one before the end of a line is a part of that.
        for piece in text.split_inclusive(|&b| b == b'\n' || b == b'\r') {
            if begins && !(returned && piece == b"\n") {
                self.waiting.extend_from_slice(label.as_bytes());
            }
            self.waiting.extend_from_slice(piece);
            (begins, returned) = (true, piece.ends_with(b"\r"));
        }
        self.open = (text.last() != Some(&b'\n')).then_some(who);
    }

    /// How many bytes were written in all.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
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
                Ok(n) => {
                    self.written += n;
                    self.passed += n as u64;
                }
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
    /// Who writes this.
    who: u64,
    /// What was passed on last is no whole line.
    begun: bool,
    /// Since when the beginning of a line waits for the rest.
    held: Option<Instant>,
}

impl Source {
    pub(crate) fn new(
        set: &Set,
        token: u64,
        fd: OwnedFd,
        label: String,
        finish: bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            line: Line::new(set.adopt(token, fd)?, CHUNK),
            label,
            finish,
            who: token,
            begun: false,
            held: None,
        })
    }

    /// Goes on reading, unless it does.
    pub(crate) fn go_on(&mut self) {
        self.line.go_on();
    }

    /// When the beginning of a line that is held back has waited long enough.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.map(|since| since + HELD)
    }

    /// Moves the beginning of a line to `sink`, unless that has no room: the rest may have been held up.
    pub(crate) fn release(&mut self, sink: &mut Sink) {
        if sink.full {
            self.held = Some(Instant::now());
            return;
        }
        self.pass(self.line.inbox.len(), sink);
        self.held = None;
    }

    /// Moves so much of what has come to `sink`.
    fn pass(&mut self, count: usize, sink: &mut Sink) {
        let bytes = &self.line.inbox[..count];
        self.begun = bytes.last().map_or(self.begun, |&last| last != b'\n');
        sink.put(self.who, &self.label, bytes);
        self.line.inbox.drain(..count);
    }

    /// Moves whole lines of what has come to `sink`, and goes on if that has room; `true` when the rank has closed the
    /// stream.
    pub(crate) fn event(&mut self, event: Event, sink: &mut Sink) -> bool {
        self.line.event(event);
        // A pipe gives no error but one of ours; it is as good as closed then.
        let ended = self.line.ended().is_some();
        let inbox = &mut self.line.inbox;
        let mut whole = inbox.iter().rposition(|&b| b == b'\n' || b == b'\r').map_or(0, |last| last + 1);
        if inbox.len() - whole > LONGEST_LINE {
            whole = inbox.len();
        }
        let is_open = self.begun || !inbox.is_empty();
        if ended && is_open && inbox.last() != Some(&b'\n') {
            if self.finish {
                inbox.push(b'\n');
            }
            whole = inbox.len();
        }
        self.pass(whole, sink);
        let inbox = &self.line.inbox;
        self.held = if inbox.is_empty() { None } else { self.held.or_else(|| Some(Instant::now())) };
        sink.full |= sink.is_full();
        if !sink.full {
            self.line.go_on();
        }
        ended
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
    fn what_is_no_line_yet_comes_after_a_moment() {
        let set = Set::new().expect("a set");
        let pipe = |token| {
            let (reader, writer) = io::pipe().expect("a pipe");
            (Source::new(&set, token, reader.into(), format!("[{token}] "), true).expect("a source"), writer)
        };
        let ((mut asks, mut asked), (mut other, mut said)) = (pipe(1), pipe(2));
        let mut sink = Sink { is_seen: true, ..Sink::upward() };
        let turn = |source: &mut Source, sink: &mut Sink| {
            source.event(set.wait(None).expect("waited").expect("an event"), sink)
        };
        asked.write_all(b"how many? ").expect("written");
        assert!(!turn(&mut asks, &mut sink));
        assert!(sink.is_empty() && asks.due().is_some_and(|at| at > Instant::now()));
        asks.release(&mut sink);
        assert_eq!((sink.take_upward().as_deref(), asks.due()), (Some(b"[1] how many? ".as_slice()), None));
        asked.write_all(b"three\n").expect("written");
        turn(&mut asks, &mut sink);
        assert_eq!(sink.take_upward().as_deref(), Some(b"three\n".as_slice()), "it goes on");
        asked.write_all(b"10 %\r20 %\r").expect("written");
        turn(&mut asks, &mut sink);
        assert_eq!(sink.take_upward().as_deref(), Some(b"[1] 10 %\r[1] 20 %\r".as_slice()), "at once");
        said.write_all(b"a line\n").expect("written");
        turn(&mut other, &mut sink);
        assert_eq!(sink.take_upward().as_deref(), Some(b"\n[2] a line\n".as_slice()), "lines do not mix");
        asked.write_all(b"30 %\r\n40 %").expect("written");
        turn(&mut asks, &mut sink);
        asks.release(&mut sink);
        assert_eq!(sink.take_upward().as_deref(), Some(b"[1] 30 %\r\n[1] 40 %".as_slice()));
        drop(asked);
        while !turn(&mut asks, &mut sink) {}
        assert_eq!(sink.take_upward().as_deref(), Some(b"\n".as_slice()), "it is finished");
    }

    #[test]
    fn who_does_not_read_stops_the_ranks() {
        let set = Set::new().expect("a set");
        let (reader, writer) = io::pipe().expect("a pipe");
        let (mut slow, out) = io::pipe().expect("a pipe");
        let mut source = Source::new(&set, 1, reader.into(), String::new(), true).expect("a source");
        let mut sink = Sink::new(&set, 2, out.as_fd()).expect("a sink");
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
