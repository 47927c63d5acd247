//! This rank's place in the star of its host: what it hears from the others, and what it says to them.

use std::os::fd::BorrowedFd;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::Lines;
use crate::lifeline::{Line, Word};

/// What came from another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It wishes for the end of the job.
    Exit { code: u8, at_once: bool },
    /// It says that the job ends.
    Verdict { code: u8 },
    /// It says that everybody is ready, or that nobody is waited for any more; and whether that is everybody.
    Go { whole: bool },
    /// Its process has ended; whether it had said so before.
    Gone { rank: u32, bye: bool },
}

/// This rank's place.
#[derive(Debug)]
pub(super) enum Star {
    /// There are no others, or none any more.
    Alone,
    /// The one in the middle.
    Leader(Leader),
    /// Any other.
    Follower(Follower),
}

/// The middle of the star: what it knows of each of the others.
#[derive(Debug)]
pub(super) struct Leader {
    seats: Vec<Seat>,
}

/// What the leader knows of a rank.
#[derive(Debug)]
struct Seat {
    rank: u32,
    line: Option<Line>,
    /// It has wished for the end.
    wished: bool,
    ready: bool,
    bye: bool,
}

/// A ray of the star.
#[derive(Debug)]
pub(super) struct Follower {
    leader: u32,
    line: Line,
    bye: bool,
}

impl Star {
    pub(super) fn new(Lines { lines, leads }: Lines) -> Self {
        let seat = |(rank, line)| Seat { rank, line: Some(line), wished: false, ready: false, bye: false };
        let mut lines = lines.into_iter();
        if leads {
            return match lines.len() {
                0 => Star::Alone,
                _ => Star::Leader(Leader { seats: lines.map(seat).collect() }),
            };
        }
        match lines.next() {
            Some((leader, line)) => Star::Follower(Follower { leader, line, bye: false }),
            None => Star::Alone,
        }
    }

    /// What is to be waited for.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Star::Alone => Vec::new(),
            Star::Follower(follower) => follower.line.descriptors().collect(),
            Star::Leader(leader) => leader.lines().flat_map(Line::descriptors).collect(),
        }
    }

    /// Takes in what has come; `ready` says of each of [`descriptors`](Self::descriptors) whether it is readable.
    pub(super) fn turn(&mut self, ready: &[bool]) -> Vec<Heard> {
        let mut heard = Vec::new();
        match self {
            Star::Alone => {}
            Star::Follower(follower) => follower.turn(ready, &mut heard),
            Star::Leader(leader) => leader.turn(ready, &mut heard),
        }
        heard
    }

    /// Says a word to whoever is at the other ends.
    pub(super) fn say(&self, word: Word) {
        match self {
            Star::Alone => {}
            Star::Follower(follower) => follower.line.say(word),
            Star::Leader(leader) => leader.lines().for_each(|line| line.say(word)),
        }
    }

    /// Signals the processes that are still there and not ready, and lets them run, should they be stopped.
    pub(super) fn signal(&self, signal: Signal) {
        let send = |line: &Line| {
            // Its end would have ended the line, so the number is still its own. 0 and 1 mean something else to the system.
            if line.pid > 1 {
                let _ = kill(Pid::from_raw(line.pid), signal);
                let _ = kill(Pid::from_raw(line.pid), Signal::SIGCONT);
            }
        };
        match self {
            Star::Alone => {}
            Star::Follower(follower) => send(&follower.line),
            Star::Leader(leader) => {
                leader
                    .seats
                    .iter()
                    .filter(|seat| !seat.ready)
                    .filter_map(|seat| seat.line.as_ref())
                    .for_each(send);
            }
        }
    }
}

/// Whether there is something to hear on a line: takes what is said of each of its descriptors.
fn speaks(line: &Line, ready: &mut impl Iterator<Item = bool>) -> bool {
    line.descriptors().fold(false, |any, _| ready.next().unwrap_or(false) | any)
}

impl Leader {
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.seats.iter().filter_map(|seat| seat.line.as_ref())
    }

    fn turn(&mut self, ready: &[bool], heard: &mut Vec<Heard>) {
        let mut ready = ready.iter().copied();
        for seat in &mut self.seats {
            if seat.line.as_ref().is_some_and(|line| speaks(line, &mut ready)) {
                seat.turn(heard);
            }
        }
    }

    /// Every other rank of the host wishes for the end, or has ended.
    pub(super) fn wished_by_all(&self) -> bool {
        self.seats.iter().all(Seat::is_done)
    }

    /// The ranks of which neither is so.
    pub(super) fn absent(&self) -> Vec<u32> {
        self.seats.iter().filter(|seat| !seat.is_done()).map(|seat| seat.rank).collect()
    }

    /// Nobody is left to be waited for before the end.
    pub(super) fn all_ready(&self) -> bool {
        self.seats.iter().all(|seat| seat.line.is_none() || seat.ready)
    }

    /// Every rank of the host is there to be told, or has ended by itself.
    pub(super) fn is_whole(&self) -> bool {
        self.seats.iter().all(|seat| seat.line.is_some() || seat.bye)
    }

    /// Nobody is left.
    pub(super) fn all_gone(&self) -> bool {
        self.seats.iter().all(|seat| seat.line.is_none())
    }
}

impl Seat {
    fn is_done(&self) -> bool {
        self.wished || self.bye || self.line.is_none()
    }

    fn turn(&mut self, heard: &mut Vec<Heard>) {
        match self.line.as_ref().and_then(Line::hear) {
            Some(Word::Exit { code, at_once }) => {
                self.wished = true;
                heard.push(Heard::Exit { code, at_once });
            }
            Some(Word::Ready) => self.ready = true,
            Some(Word::Bye) => self.bye = true,
            Some(_) => {}
            None => {
                self.line = None;
                heard.push(Heard::Gone { rank: self.rank, bye: self.bye });
            }
        }
    }
}

impl Follower {
    fn turn(&mut self, ready: &[bool], heard: &mut Vec<Heard>) {
        if !speaks(&self.line, &mut ready.iter().copied()) {
            return;
        }
        match self.line.hear() {
            Some(Word::Verdict { code }) => heard.push(Heard::Verdict { code }),
            Some(Word::Go { whole }) => heard.push(Heard::Go { whole }),
            Some(Word::Bye) => self.bye = true,
            Some(_) => {}
            None => heard.push(Heard::Gone { rank: self.leader, bye: self.bye }),
        }
    }
}
