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

/// The middle of the star: what it knows of each of the others, those that lead other hosts among them.
#[derive(Debug)]
pub(super) struct Leader {
    seats: Vec<Seat>,
    /// The first leader, of which this one is a follower with its host.
    above: Option<Follower>,
    /// It reaches every host of the job.
    reaches_all: bool,
}

/// What the leader knows of a rank.
#[derive(Debug)]
struct Seat {
    rank: u32,
    /// It leads another host: it speaks for all of that, and no signal reaches it.
    leads: bool,
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
    pub(super) fn new(Lines { lines, leads, hosts, reaches_all, above }: Lines) -> Self {
        let seat = |leads, (rank, line)| {
            let (wished, ready, bye) = (false, false, false);
            Seat { rank, leads, line: Some(line), wished, ready, bye }
        };
        let mut lines = lines.into_iter();
        if leads {
            let above = above.map(|(leader, line)| Follower { leader, line, bye: false });
            let own = lines.map(|line| seat(false, line));
            let seats: Vec<_> = own.chain(hosts.into_iter().map(|line| seat(true, line))).collect();
            return match (seats.len(), &above) {
                (0, None) => Star::Alone,
                _ => Star::Leader(Leader { seats, above, reaches_all }),
            };
        }
        match lines.next() {
            Some((leader, line)) => Star::Follower(Follower { leader, line, bye: false }),
            None => Star::Alone,
        }
    }

    /// Whether the program has left open what is waited for.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Star::Alone => true,
            Star::Follower(follower) => follower.line.is_whole(),
            Star::Leader(leader) => leader.lines().chain(leader.line_above()).all(Line::is_whole),
        }
    }

    /// What is to be waited for.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Star::Alone => Vec::new(),
            Star::Follower(follower) => follower.line.descriptors().collect(),
            Star::Leader(leader) => {
                leader.lines().chain(leader.line_above()).flat_map(Line::descriptors).collect()
            }
        }
    }

    /// Takes in what has come; `ready` says of each of [`descriptors`](Self::descriptors) whether it is readable.
    pub(super) fn turn(&mut self, ready: &[bool]) -> Vec<Heard> {
        let mut heard = Vec::new();
        match self {
            Star::Alone => {}
            Star::Follower(follower) => follower.turn(&mut ready.iter().copied(), &mut heard),
            Star::Leader(leader) => leader.turn(ready, &mut heard),
        }
        heard
    }

    /// Whether this rank is one that leads a host, and has the first leader above it.
    pub(super) fn has_above(&self) -> bool {
        matches!(self, Star::Leader(Leader { above: Some(_), .. }))
    }

    /// Says a word to the one above, if there is one: the leader of a follower, the first leader of another.
    pub(super) fn say_above(&self, word: Word) {
        match self {
            Star::Follower(Follower { line, .. })
            | Star::Leader(Leader { above: Some(Follower { line, .. }), .. }) => line.say(word),
            Star::Alone | Star::Leader(_) => {}
        }
    }

    /// A rank has gone: whether it is the one above, which is not there any more.
    pub(super) fn lose_above(&mut self, rank: u32) -> bool {
        match self {
            // It hears of no other.
            Star::Follower(_) => {
                *self = Star::Alone;
                true
            }
            Star::Leader(Leader { above, .. }) => above.take_if(|above| above.leader == rank).is_some(),
            Star::Alone => false,
        }
    }

    /// Says a word to all below, or to the leader.
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
            // Its end would have ended the line, so the number is still its own.
            if is_process(line.pid) {
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

    fn line_above(&self) -> Option<&Line> {
        self.above.as_ref().map(|above| &above.line)
    }

    fn turn(&mut self, ready: &[bool], heard: &mut Vec<Heard>) {
        let mut ready = ready.iter().copied();
        for seat in &mut self.seats {
            if seat.line.as_ref().is_some_and(|line| speaks(line, &mut ready)) {
                seat.turn(heard);
            }
        }
        self.above.iter_mut().for_each(|above| above.turn(&mut ready, heard));
    }

    /// Whether it reaches every other host of the job, where there are any.
    pub(super) fn reaches_all(&self) -> bool {
        self.reaches_all
    }

    /// Whether the leader of another host is left.
    pub(super) fn has_unreached(&self) -> bool {
        self.seats.iter().any(|seat| seat.leads && seat.line.is_some())
    }

    /// Every other rank of the host wishes for the end, or has ended.
    pub(super) fn wished_by_all(&self) -> bool {
        self.seats.iter().all(Seat::is_done)
    }

    /// The ranks of this host of which neither is so. Of another its own leader says which.
    pub(super) fn absent(&self) -> Vec<u32> {
        self.seats.iter().filter(|seat| !seat.leads && !seat.is_done()).map(|seat| seat.rank).collect()
    }

    /// Nobody is left to be waited for before the end, of this host or of all `hosts`.
    pub(super) fn all_ready(&self, hosts: bool) -> bool {
        self.seats.iter().all(|seat| seat.leads && !hosts || seat.line.is_none() || seat.ready)
    }

    /// Every rank of the host is there to be told, or has ended by itself.
    pub(super) fn is_whole(&self) -> bool {
        self.seats.iter().all(|seat| seat.line.is_some() || seat.bye)
    }

    /// Nobody is left, of this host or of all `hosts`.
    pub(super) fn all_gone(&self, hosts: bool) -> bool {
        self.seats.iter().all(|seat| seat.leads && !hosts || seat.line.is_none())
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
            Some(Word::Asked { code }) => heard.push(Heard::Exit { code, at_once: false }),
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
    fn turn(&mut self, ready: &mut impl Iterator<Item = bool>, heard: &mut Vec<Heard>) {
        if !speaks(&self.line, ready) {
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

/// Whether a number is one of a rank: 0 and 1 mean something else to the system, and so do numbers below.
fn is_process(number: i32) -> bool {
    number > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use gasworks_os::unix;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    /// Both ends of a connection. Nothing is known of the processes.
    fn ends() -> (Line, Line) {
        let (ours, theirs) = unix::pair().expect("a pair");
        (Line::new(ours, 0), Line::new(theirs, 0))
    }

    /// A leader, and the other ends of its connections to the ranks 1 and 4.
    fn leader() -> (Star, [Line; 2]) {
        let ((ours, theirs), (ours_too, theirs_too)) = (ends(), ends());
        let lines = Lines { lines: vec![(1, ours), (4, ours_too)], leads: true, ..Lines::default() };
        (Star::new(lines), [theirs, theirs_too])
    }

    fn middle(star: &Star) -> &Leader {
        match star {
            Star::Leader(leader) => leader,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_that_mean_more_than_a_process_are_signalled_never() {
        assert_eq!([-7, -1, 0, 1, 2, 4711].map(is_process), [false, false, false, false, true, true]);
    }

    #[test]
    fn a_rank_takes_its_place() {
        let alone = |leads| Star::new(Lines { leads, ..Lines::default() });
        assert!(matches!(alone(true), Star::Alone) && matches!(alone(false), Star::Alone));
        assert!(alone(true).descriptors().is_empty() && alone(true).turn(&[]).is_empty());
        let (leads, _others) = leader();
        assert_eq!(leads.descriptors().len(), 2);
        let (ours, theirs) = ends();
        let mut follows = Star::new(Lines { lines: vec![(3, ours)], ..Lines::default() });
        assert_eq!(follows.descriptors().len(), 1);
        for (word, heard) in [
            (Word::Verdict { code: 7 }, Some(Heard::Verdict { code: 7 })),
            (Word::Go { whole: true }, Some(Heard::Go { whole: true })),
            (Word::Go { whole: false }, Some(Heard::Go { whole: false })),
            // A leader has no reason to say this.
            (Word::Ready, None),
            (Word::Bye, None),
        ] {
            theirs.say(word);
            assert_eq!(follows.turn(&[false]), [], "nothing is read before it is readable");
            assert_eq!(follows.turn(&[true]).first().copied(), heard);
        }
        follows.say(Word::Ready);
        assert_eq!(theirs.hear(), Some(Word::Ready));
        drop(theirs);
        assert_eq!(follows.turn(&[true]), [Heard::Gone { rank: 3, bye: true }]);
    }

    #[test]
    fn a_leader_that_ends_without_a_word_is_gone() {
        let (ours, theirs) = ends();
        let mut follows = Star::new(Lines { lines: vec![(3, ours)], ..Lines::default() });
        drop(theirs);
        assert_eq!(follows.turn(&[true]), [Heard::Gone { rank: 3, bye: false }]);
    }

    #[test]
    fn a_leader_knows_who_has_wished() {
        let (mut star, [one, four]) = leader();
        assert_eq!((middle(&star).wished_by_all(), middle(&star).absent()), (false, vec![1, 4]));
        four.say(Word::Exit { code: 5, at_once: true });
        assert_eq!(star.turn(&[false, true]), [Heard::Exit { code: 5, at_once: true }]);
        assert_eq!((middle(&star).wished_by_all(), middle(&star).absent()), (false, vec![1]));
        one.say(Word::Bye);
        assert_eq!(star.turn(&[true, false]), []);
        assert!(middle(&star).wished_by_all() && middle(&star).absent().is_empty());
    }

    #[test]
    fn a_leader_knows_who_is_ready_and_who_is_left() {
        let (mut star, [one, four]) = leader();
        star.say(Word::Verdict { code: 0 });
        assert_eq!([one.hear(), four.hear()], [Some(Word::Verdict { code: 0 }); 2]);
        let state = |star: &Star| {
            let leader = middle(star);
            (leader.all_ready(true), leader.is_whole(), leader.all_gone(true))
        };
        assert_eq!(state(&star), (false, true, false));
        one.say(Word::Ready);
        assert_eq!(star.turn(&[true, false]), []);
        assert_eq!(state(&star), (false, true, false));
        four.say(Word::Bye);
        assert_eq!(star.turn(&[false, true]), []);
        drop(four);
        assert_eq!(star.turn(&[false, true]), [Heard::Gone { rank: 4, bye: true }]);
        assert_eq!(state(&star), (true, true, false), "it has said good-bye");
        assert_eq!(star.descriptors().len(), 1);
        drop(one);
        assert_eq!(star.turn(&[true]), [Heard::Gone { rank: 1, bye: false }]);
        assert_eq!(state(&star), (true, false, true), "it has not");
    }

    /// A process that waits, and ends when the test does.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("started"))
        }

        fn line(&self) -> Line {
            Line::new(unix::pair().expect("a pair").0, self.0.id() as i32)
        }

        /// The signal that has ended it.
        fn signal(&mut self) -> Option<i32> {
            self.0.wait().expect("ended").signal()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn who_is_not_ready_is_signalled() {
        let (mut first, mut second, mut third) = (Sleeper::start(), Sleeper::start(), Sleeper::start());
        let (ours, theirs) = unix::pair().expect("a pair");
        let ready = Line::new(ours, first.0.id() as i32);
        let lines = Lines { lines: vec![(1, ready), (2, second.line())], leads: true, ..Lines::default() };
        let mut star = Star::new(lines);
        Line::new(theirs, 0).say(Word::Ready);
        // Of each line: the stream, and the handle on the process.
        assert_eq!(star.turn(&[true, false, false, false]), []);
        star.signal(Signal::SIGTERM);
        assert_eq!(second.signal(), Some(Signal::SIGTERM as i32));
        assert!(first.0.try_wait().expect("asked").is_none(), "it was ready");
        // A process that is stopped is let run, and ends.
        let follows = Star::new(Lines { lines: vec![(0, third.line())], ..Lines::default() });
        kill(Pid::from_raw(third.0.id() as i32), Signal::SIGSTOP).expect("sent");
        follows.signal(Signal::SIGTERM);
        assert_eq!(third.signal(), Some(Signal::SIGTERM as i32));
    }

    #[test]
    fn the_end_of_a_process_is_heard_although_its_stream_is_open() {
        let mut gone = Sleeper::start();
        let (ours, _theirs) = unix::pair().expect("a pair");
        let lines =
            Lines { lines: vec![(2, Line::new(ours, gone.0.id() as i32))], leads: true, ..Lines::default() };
        let mut star = Star::new(lines);
        assert_eq!(star.descriptors().len(), 2);
        let _ = gone.0.kill();
        gone.signal();
        assert_eq!(star.turn(&[false, true]), [Heard::Gone { rank: 2, bye: false }]);
        assert!(middle(&star).all_gone(true));
    }
}
