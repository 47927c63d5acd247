//! The connections by which the ranks of a host tell each other of the end, and notice it when they cannot be told.
//!
//! The ranks of a host form a star: one of them, the leader, keeps a connection to each of the others, its followers. Where there are
//! several hosts the first leader keeps one to each of the others, which are its followers with their hosts. They
//! are made when the ranks meet. A word is four bytes. A connection that ends without [`Word::Bye`] means that its rank is
//! gone.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use gasworks_os::descriptor::Descriptor;
use gasworks_os::process;
use gasworks_os::unix::Stream;

/// What ranks say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A follower, with all of its host if it leads one, wishes for the end of the job, and perhaps that the others get no time to wish for
    /// it by themselves.
    Exit { code: u8, at_once: bool },
    /// Somebody on the host that a follower leads wishes for the end, and others there do not yet.
    Asked { code: u8 },
    /// The leader's verdict: the job ends, with this code.
    Verdict { code: u8 },
    /// A follower has done what it does before it ends.
    Ready,
    /// The leader's last word: end now. Whether every rank of the job has come to it.
    Go { whole: bool },
    /// The process ends by itself, and the job need not end with it.
    Bye,
}

/// The length of a word.
const LEN: usize = 4;
/// Stands in every word: whoever speaks something else is not one of us.
const MARK: [u8; 2] = *b"gw";
/// How long the rest of a word may take after its beginning.
const REST: Duration = Duration::from_millis(50);

impl Word {
    fn encode(self) -> [u8; LEN] {
        let (tag, code) = match self {
            Word::Exit { code, at_once: false } => (1, code),
            Word::Exit { code, at_once: true } => (6, code),
            Word::Verdict { code } => (2, code),
            Word::Ready => (3, 0),
            Word::Go { whole } => (4, whole.into()),
            Word::Bye => (5, 0),
            Word::Asked { code } => (7, code),
        };
        [tag, code, MARK[0], MARK[1]]
    }

    fn decode([tag, code, m, n]: [u8; LEN]) -> Option<Self> {
        if [m, n] != MARK {
            return None;
        }
        Some(match tag {
            1 | 6 => Word::Exit { code, at_once: tag == 6 },
            2 => Word::Verdict { code },
            3 => Word::Ready,
            4 => Word::Go { whole: code == 1 },
            5 => Word::Bye,
            7 => Word::Asked { code },
            _ => return None,
        })
    }
}

/// A connection to another rank's process.
#[derive(Debug)]
pub(crate) struct Line {
    stream: Stream,
    /// The other process, for signals; 0 where it is in another name space of processes.
    pub(crate) pid: i32,
    /// A handle on it, if the system gives one: a child that it has forked keeps the stream open when it has ended.
    process: Option<Descriptor>,
}

impl Line {
    /// Over a stream that leads to the process `pid`.
    pub(crate) fn new(stream: Stream, pid: i32) -> Self {
        Self { stream, pid, process: process::open(pid).ok().map(Descriptor::from) }
    }

    /// Whether the program has left it open.
    pub(crate) fn is_whole(&self) -> bool {
        self.stream.is_whole() && self.process.as_ref().is_none_or(Descriptor::is_whole)
    }

    /// What is readable when there is something to hear.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.stream.as_fd()).chain(self.process.as_ref().map(AsFd::as_fd))
    }

    /// Sends a word. A failure shows as the end of the connection.
    pub(crate) fn say(&self, word: Word) {
        let _ = self.stream.send_fds(&word.encode(), &[], Instant::now() + REST);
    }

    /// The next word where there is something to hear; `None` if the connection, or the process, has ended and
    /// nothing is left.
    pub(crate) fn hear(&self) -> Option<Word> {
        let mut bytes = [0; LEN];
        self.stream.recv_fds(&mut bytes, 0, Instant::now() + REST).ok()?;
        Word::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_way_and_nothing_else_does() {
        let words = [
            Word::Exit { code: 255, at_once: false },
            Word::Exit { code: 3, at_once: true },
            Word::Verdict { code: 7 },
            Word::Ready,
            Word::Go { whole: false },
            Word::Go { whole: true },
            Word::Bye,
            Word::Asked { code: 5 },
        ];
        for word in words {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        for tag in [0, 8, 255] {
            assert_eq!(Word::decode([tag, 0, b'g', b'w']), None);
        }
        assert_eq!(Word::decode([2, 0, b'g', b'x']), None);
    }
    #[test]
    fn a_line_carries_words_and_notices_its_end() {
        let (a, b) = gasworks_os::unix::pair().expect("a pair");
        let (ours, theirs) = (Line::new(a, 0), Line::new(b, 0));
        assert_eq!((ours.pid, ours.descriptors().count()), (0, 1), "nothing is known of the other process");
        theirs.say(Word::Verdict { code: 9 });
        theirs.say(Word::Bye);
        assert_eq!(ours.hear(), Some(Word::Verdict { code: 9 }));
        drop(theirs);
        assert_eq!(ours.hear(), Some(Word::Bye));
        assert_eq!(ours.hear(), None);
        let own = Line::new(gasworks_os::unix::pair().expect("a pair").0, std::process::id() as i32);
        assert_eq!(own.descriptors().count(), 2, "the stream, and a handle on the process");
    }

    #[test]
    fn the_rest_of_a_word_is_waited_for() {
        let (a, b) = gasworks_os::unix::pair().expect("a pair");
        b.send_fds(&Word::Ready.encode()[..2], &[], Instant::now() + REST).expect("sent");
        let begun = Instant::now();
        assert_eq!(Line::new(a, 0).hear(), None);
        assert!(begun.elapsed() >= REST);
    }

    #[test]
    fn one_who_does_not_listen_is_given_time() {
        let (a, _b) = gasworks_os::unix::pair().expect("a pair");
        while a.send_fds(&[0; 4096], &[], Instant::now()).is_ok() {}
        let begun = Instant::now();
        Line::new(a, 0).say(Word::Ready);
        assert!(begun.elapsed() >= REST);
    }
}
