//! What ranks write, passed on line by line so that lines of different ranks never mix.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use gasworks_sock::poll::{Channel, Filled, Interest, Set, SockError};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A line longer than this is passed on in pieces.
const LONGEST_LINE: usize = 1 << 20;
/// With more than this waiting for a reader, ranks are not read any more.
const HIGH: usize = 1 << 20;
/// How much of a host's output may be on its way to `gasrun`.
pub(crate) const WINDOW: usize = 1 << 20;
/// A pipe that is ready for writing takes this much without waiting (`PIPE_BUF`).
const SURE: usize = 4096;

/// Where output goes: one of this process's own streams, or for an agent's ranks the way up to `gasrun`.
#[derive(Debug)]
pub(crate) struct Sink {
    /// None for the way up.
    fd: Option<OwnedFd>,
    token: u64,
    /// How much more may go up before `gasrun` says that it was passed on.
    pub(crate) room: usize,
    waiting: Vec<u8>,
    written: usize,
    in_set: bool,
    /// Nothing more can be written to it: nobody reads it any more, or it failed.
    pub(crate) broken: bool,
    /// Why it failed. A reader that went away has read enough; any other reason means that output is lost.
    failure: Option<Errno>,
}

impl Sink {
    pub(crate) fn new(fd: impl AsFd, token: u64) -> io::Result<Self> {
        Ok(Self { fd: Some(fd.as_fd().try_clone_to_owned()?), token, ..Self::upward() })
    }

    /// For an agent.
    pub(crate) fn upward() -> Self {
        Self {
            fd: None,
            token: 0,
            room: WINDOW,
            waiting: Vec::new(),
            written: 0,
            in_set: false,
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

    /// Writes what can be written without waiting, and has the set tell when there is room for the rest.
    ///
    /// The descriptor is shared with others and so must stay a blocking one; instead no more is written at once than
    /// is sure to fit.
    pub(crate) fn flush(&mut self, set: &Set) -> Result<(), SockError> {
        let Some(fd) = &self.fd else { return Ok(()) };
        while self.written < self.waiting.len() && !self.broken {
            let mut ready = [PollFd::new(fd.as_fd(), PollFlags::POLLOUT)];
            if !matches!(poll(&mut ready, PollTimeout::ZERO), Ok(n) if n > 0) {
                break;
            }
            let end = self.waiting.len().min(self.written + SURE);
            match nix::unistd::write(fd, &self.waiting[self.written..end]) {
                Ok(n) => self.written += n,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
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
        let wanted = !self.waiting.is_empty();
        if wanted != self.in_set {
            // A plain file is refused by the set, but is always ready, so nothing of it ever waits.
            match wanted {
                true => set.add(fd, self.token, Interest::Write)?,
                false => set.remove(fd)?,
            }
            self.in_set = wanted;
        }
        Ok(())
    }
}

/// One stream of one rank.
#[derive(Debug)]
pub(crate) struct Source {
    channel: Channel,
    /// What each line begins with.
    label: String,
    /// Whether an unfinished last line is finished for the rank.
    finish: bool,
}

impl Source {
    pub(crate) fn new(fd: OwnedFd, label: String, finish: bool) -> io::Result<Self> {
        Ok(Self { channel: Channel::new(fd)?, label, finish })
    }

    /// Reads about `enough` bytes and moves whole lines to `sink`; `true` when the rank has closed the stream.
    pub(crate) fn turn(&mut self, enough: usize, sink: &mut Sink) -> bool {
        // A pipe gives no error but one of ours; it is as good as closed then.
        let ended = !matches!(self.channel.fill(enough), Ok(Filled::Bytes(_)));
        let inbox = self.channel.inbox();
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
        ended
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.channel.as_fd()
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
    use std::io::Write;

    #[test]
    fn lines_come_whole() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut source = Source::new(reader.into(), "[3] ".into(), true).expect("a source");
        let mut sink = Sink::new(io::stdout(), 1).expect("a sink");
        writer.write_all(b"one\ntw").expect("written");
        assert!(!source.turn(100, &mut sink));
        assert_eq!(sink.waiting, b"[3] one\n");
        writer.write_all(b"o\n\nthree").expect("written");
        drop(writer);
        assert!(source.turn(100, &mut sink));
        assert_eq!(sink.waiting, b"[3] one\n[3] two\n[3] \n[3] three\n");
        sink.waiting.clear();
    }
}
