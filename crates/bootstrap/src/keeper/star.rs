//! This rank's place in the star: what it hears from the others, and what it says to them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use gasworks_os::unix::Listener;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lifeline::{self, Line, Word};

/// What came from another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It wishes for the end of the job.
    Exit { code: u8 },
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
    /// There are no others, or no way to them.
    Alone,
    /// Rank 0.
    Leader(Leader),
    /// Any other.
    Follower(Follower),
}

/// The middle of the star.
#[derive(Debug)]
pub(super) struct Leader {
    listener: Option<Listener>,
    /// Connections whose rank is not known yet.
    strangers: Vec<Line>,
    seats: Vec<Seat>,
    verdict: Option<u8>,
}

/// What the leader knows of a rank.
#[derive(Debug, Default)]
struct Seat {
    line: Option<Line>,
    /// It has wished for an end with code 0.
    zero: bool,
    ready: bool,
    bye: bool,
    gone: bool,
}

/// A ray of the star.
#[derive(Debug)]
pub(super) struct Follower {
    rank: u32,
    address: String,
    line: Option<Line>,
    welcome: bool,
    bye: bool,
    tried: Instant,
    tries: u32,
    pause: Duration,
    give_up: Instant,
}

impl Star {
    pub(super) fn new(rank: u32, size: u32, job: &str, patience: Duration) -> Self {
        let address = lifeline::address(job);
        if size < 2 {
            return Star::Alone;
        }
        if rank > 0 {
            let now = Instant::now();
            return Star::Follower(Follower {
                rank,
                address,
                line: None,
                welcome: false,
                bye: false,
                tried: now,
                tries: 0,
                pause: Duration::ZERO,
                give_up: now + patience,
            });
        }
        match lifeline::listen(&address) {
            None => Star::Alone,
            listener => Star::Leader(Leader {
                listener,
                strangers: Vec::new(),
                seats: (0..size).map(|_| Seat::default()).collect(),
                verdict: None,
            }),
        }
    }

    /// What is to be waited for.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Star::Alone => Vec::new(),
            Star::Follower(follower) => follower.line.iter().flat_map(Line::descriptors).collect(),
            Star::Leader(leader) => {
                let lines = leader.seats.iter().filter_map(|seat| seat.line.as_ref());
                let lines = leader.strangers.iter().chain(lines).flat_map(Line::descriptors);
                leader.listener.iter().map(AsFd::as_fd).chain(lines).collect()
            }
        }
    }

    /// When a follower wants to try again to reach the leader.
    pub(super) fn next_try(&self) -> Option<Instant> {
        match self {
            Star::Follower(follower) => follower.next_try(),
            _ => None,
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
    pub(super) fn say(&mut self, word: Word) {
        match self {
            Star::Alone => {}
            Star::Follower(follower) => follower.line.iter().for_each(|line| line.say(word)),
            Star::Leader(leader) => {
                if let Word::Verdict { code } = word {
                    leader.verdict = Some(code);
                }
                leader.seats.iter().filter_map(|seat| seat.line.as_ref()).for_each(|line| line.say(word));
            }
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
            Star::Follower(follower) => follower.line.iter().for_each(send),
            Star::Leader(leader) => {
                let late = leader.seats.iter().filter(|seat| !seat.ready || leader.verdict.is_none());
                late.filter_map(|seat| seat.line.as_ref()).for_each(send);
            }
        }
    }

    /// Whether this rank can come to terms with the others: a follower that has not met its leader cannot.
    pub(super) fn is_met(&self) -> bool {
        match self {
            Star::Follower(follower) => follower.line.is_some() && follower.welcome,
            Star::Alone | Star::Leader(_) => true,
        }
    }
}

/// Whether there is something to hear on a line: takes what is said of each of its descriptors.
fn speaks(line: &Line, ready: &mut impl Iterator<Item = bool>) -> bool {
    line.descriptors().fold(false, |any, _| ready.next().unwrap_or(false) | any)
}

impl Leader {
    fn turn(&mut self, ready: &[bool], heard: &mut Vec<Heard>) {
        let mut ready = ready.iter().copied();
        let knocks = self.listener.is_some() && ready.next().unwrap_or(false);
        let strangers: Vec<bool> = self.strangers.iter().map(|line| speaks(line, &mut ready)).collect();
        for (rank, seat) in (0u32..).zip(&mut self.seats) {
            if seat.line.as_ref().is_some_and(|line| speaks(line, &mut ready)) {
                seat.turn(rank, heard);
            }
        }
        let mut known = strangers.into_iter();
        let (speaking, silent) =
            std::mem::take(&mut self.strangers).into_iter().partition(|_| known.next().unwrap_or(false));
        self.strangers = silent;
        let speaking: Vec<Line> = speaking;
        for line in speaking {
            if let Some(Word::Hello { rank }) = line.hear()
                && let Some(seat) = self.seats.get_mut(rank as usize)
                && seat.line.is_none()
                && !seat.gone
            {
                line.say(Word::Welcome);
                if let Some(code) = self.verdict {
                    line.say(Word::Verdict { code });
                }
                seat.line = Some(line);
            }
        }
        if knocks && let Some(listener) = &self.listener {
            match lifeline::accept(listener) {
                Ok(line) => self.strangers.extend(line),
                // As a rule too many descriptors: who is not welcomed relies on the launcher.
                Err(_) => self.listener = None,
            }
        }
    }

    /// Every other rank wishes for an end with code 0, or has ended.
    pub(super) fn wished_by_all(&self) -> bool {
        self.seats.iter().skip(1).all(|seat| seat.zero || seat.bye || seat.gone)
    }

    /// The ranks of which neither is so.
    pub(super) fn absent(&self) -> Vec<u32> {
        let seats = (0u32..).zip(&self.seats).skip(1);
        seats.filter(|(_, seat)| !(seat.zero || seat.bye || seat.gone)).map(|(rank, _)| rank).collect()
    }

    /// Nobody is left to be waited for before the end; where `all`, not even who has not come yet.
    pub(super) fn all_ready(&self, all: bool) -> bool {
        self.seats.iter().skip(1).all(|seat| match seat.line {
            Some(_) => seat.ready,
            None => !all || seat.bye || seat.gone,
        })
    }

    /// Every rank is there to be told, or has ended by itself.
    pub(super) fn is_whole(&self) -> bool {
        self.seats.iter().skip(1).all(|seat| seat.line.is_some() || seat.bye)
    }

    /// Nobody is left.
    pub(super) fn all_gone(&self) -> bool {
        self.seats.iter().all(|seat| seat.line.is_none())
    }
}

impl Seat {
    fn turn(&mut self, rank: u32, heard: &mut Vec<Heard>) {
        match self.line.as_ref().and_then(Line::hear) {
            Some(Word::Exit { code }) => {
                self.zero |= code == 0;
                heard.push(Heard::Exit { code });
            }
            Some(Word::Ready) => self.ready = true,
            Some(Word::Bye) => self.bye = true,
            Some(_) => {}
            None => {
                (self.line, self.gone) = (None, true);
                heard.push(Heard::Gone { rank, bye: self.bye });
            }
        }
    }
}

impl Follower {
    fn next_try(&self) -> Option<Instant> {
        let wanted = self.line.is_none() && Instant::now() <= self.give_up;
        wanted.then(|| self.tried + self.pause)
    }

    fn turn(&mut self, ready: &[bool], heard: &mut Vec<Heard>) {
        let Some(line) = &self.line else {
            if self.next_try().is_some_and(|at| at <= Instant::now()) {
                self.line = lifeline::connect(&self.address);
                self.line.iter().for_each(|line| line.say(Word::Hello { rank: self.rank }));
                self.tried = Instant::now();
                // The leader is about to come, as a rule; where it is not, nobody is in a hurry.
                self.tries += 1;
                self.pause = Duration::from_millis(if self.tries < 200 { 1 } else { 50 });
            }
            return;
        };
        if !speaks(line, &mut ready.iter().copied()) {
            return;
        }
        match line.hear() {
            Some(Word::Welcome) => self.welcome = true,
            Some(Word::Verdict { code }) => heard.push(Heard::Verdict { code }),
            Some(Word::Go { whole }) => heard.push(Heard::Go { whole }),
            Some(Word::Bye) => self.bye = true,
            Some(_) => {}
            None => {
                self.line = None;
                // It is not tried again: the leader does not listen twice.
                self.give_up = self.tried;
                self.pause = Duration::from_secs(1);
                if self.welcome {
                    heard.push(Heard::Gone { rank: 0, bye: self.bye });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_that_has_given_up_asks_for_no_time() {
        let patience = Duration::from_millis(400);
        let mut star = Star::new(1, 2, "a job without a leader", patience);
        assert!(star.turn(&[]).is_empty() && !star.is_met());
        assert!(star.next_try().is_some());
        // It wakes too late for another try: a time that has passed would never let the keeper sleep again.
        std::thread::sleep(patience);
        assert!(star.turn(&[]).is_empty());
        assert_eq!(star.next_try(), None);
    }
}
