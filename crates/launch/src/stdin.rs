//! Standard input, passed on to rank 0.
//!
//! A rank has a process group of its own and may not read from the terminal; a file or a pipe it simply inherits, unless
//! it is on another host.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use gasworks_sock::{Direction, Error, Event, Set};
use nix::errno::Errno;
use nix::sys::termios::{LocalFlags, tcgetattr};

use crate::line::Line;
use crate::spawn::Input;
use crate::token;
use crate::watched::Watched;

/// How much of standard input may be on its way to rank 0.
const ROOM: usize = 64 << 10;

/// What kind of input rank 0 gets, if it is to have any.
pub(crate) fn input(is_wanted: bool) -> Input {
    if !is_wanted {
        return Input::Null;
    }
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Input::Inherited;
    }
    // A job in the background must not read: it would be stopped.
    let foreground = nix::unistd::tcgetpgrp(stdin.as_fd()).is_ok_and(|group| group == nix::unistd::getpgrp());
    if foreground { Input::Piped } else { Input::Null }
}

/// Whether this process's terminal, where it writes to one, stops processes in the background that write to it.
pub(crate) fn stops_output() -> bool {
    let stops = |fd: BorrowedFd<'_>| {
        tcgetattr(fd).is_ok_and(|terminal| terminal.local_flags.contains(LocalFlags::TOSTOP))
    };
    stops(io::stdout().as_fd()) || stops(io::stderr().as_fd())
}

/// Standard input of this process.
#[derive(Debug)]
pub(crate) struct Typed {
    source: Watched,
    room: usize,
}

impl Typed {
    pub(crate) fn new(set: &Set) -> anyhow::Result<Self> {
        let mut typed = Self { source: Watched::new(set, token::STDIN, io::stdin())?, room: ROOM };
        typed.taken(0)?;
        Ok(typed)
    }

    /// Rank 0 has taken so much.
    pub(crate) fn taken(&mut self, count: usize) -> Result<(), Error> {
        self.room = self.room.saturating_add(count);
        if self.room > 0 { self.source.ask(Direction::Read) } else { Ok(()) }
    }

    /// What there is to read, of which the set has told; nothing means the end, or what is as good as the end.
    pub(crate) fn read(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.source.told();
        let mut bytes = vec![0; self.room.min(4096)];
        let read = match self.source.with_fd(|fd| nix::unistd::read(fd, &mut bytes))? {
            Err(Errno::EINTR | Errno::EAGAIN) => None,
            Ok(count) if count > 0 => Some(count),
            _ => return Ok(Some(Vec::new())),
        };
        self.room -= read.unwrap_or(0);
        self.taken(0)?;
        bytes.truncate(read.unwrap_or(0));
        Ok(read.map(|_| bytes))
    }
}

/// Rank 0's standard input where it comes through this process.
#[derive(Debug)]
pub(crate) struct Piped {
    pipe: Option<Line>,
    /// All has come.
    ended: bool,
    /// What has come and was not told to be taken.
    untold: usize,
}

impl Piped {
    pub(crate) fn new(pipe: OwnedFd, set: &Set) -> anyhow::Result<Self> {
        let pipe = Line::outward(set.adopt(token::RANK0_INPUT, pipe)?);
        Ok(Self { pipe: Some(pipe), ended: false, untold: 0 })
    }

    /// Takes what has come, nothing meaning the end.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.ended |= bytes.is_empty();
        self.untold += bytes.len();
        if let Some(pipe) = &mut self.pipe {
            pipe.post(bytes);
        }
    }

    /// What was posted has been written, or cannot be.
    pub(crate) fn event(&mut self, event: Event) {
        if let Some(pipe) = &mut self.pipe {
            pipe.event(event);
        }
    }

    /// How much rank 0 has taken since the last call.
    pub(crate) fn taken(&mut self) -> usize {
        let left = self.pipe.as_ref().map_or(0, Line::unwritten);
        if self.pipe.as_ref().is_some_and(|pipe| pipe.ended().is_some() || (self.ended && left == 0)) {
            // Rank 0 sees the end of its input; or it does not read any more.
            self.pipe = None;
        }
        let taken = self.untold - left;
        self.untold = left;
        taken
    }

    /// Whether rank 0 still takes input.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::time::Duration;

    #[test]
    fn rank_0_gets_its_input_as_fast_as_it_reads() {
        let set = Set::new().expect("a set");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut piped = Piped::new(writer.into(), &set).expect("an end of a pipe");
        let quiet = Some(Duration::from_millis(20));
        let (count, mut taken) = (8, 0);
        for _ in 0..count {
            piped.feed(&[7; ROOM]);
            taken += piped.taken();
        }
        piped.feed(&[]);
        while let Some(event) = set.wait(quiet).expect("waited") {
            piped.event(event);
            taken += piped.taken();
        }
        assert!(taken < count * ROOM && piped.is_open(), "{taken}");
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        while piped.is_open() {
            piped.event(set.wait(None).expect("waited").expect("an event"));
            taken += piped.taken();
        }
        let all = reading.join().expect("ended").expect("read");
        assert_eq!((taken, all.len()), (count * ROOM, count * ROOM));
    }

    #[test]
    fn one_that_does_not_read_any_more_is_not_heard_of_again() {
        let set = Set::new().expect("a set");
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut piped = Piped::new(writer.into(), &set).expect("an end of a pipe");
        drop(reader);
        assert!(set.wait(Some(Duration::from_millis(20))).expect("waited").is_none() && piped.is_open());
        assert!(set.counts().changes <= 1, "it is told once");
        piped.feed(b"more");
        assert_eq!((piped.taken(), piped.is_open()), (4, false));
    }
}
