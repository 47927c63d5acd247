//! The connections by which the ranks of a host tell each other of the end, and notice it when they cannot be told.
//!
//! The ranks form a star: rank 0, the leader, listens on an abstract socket, and each other rank, a follower, keeps a
//! connection to it. A word is eight bytes. A connection that ends without [`Word::Bye`] means that its rank is gone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use gasworks_os::process;
use gasworks_os::unix::{self, Listener, Stream};

/// What ranks say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A follower's first word.
    Hello { rank: u32 },
    /// The leader's answer: from now on the end of the connection means something.
    Welcome,
    /// A follower wishes for the end of the job.
    Exit { code: u8 },
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
const LEN: usize = 8;
/// Stands in every word: whoever speaks something else is not one of us.
const MARK: [u8; 2] = *b"gw";
/// How long the rest of a word may take after its beginning.
const REST: Duration = Duration::from_millis(50);

impl Word {
    fn encode(self) -> [u8; LEN] {
        let (tag, code, rank) = match self {
            Word::Hello { rank } => (1, 0, rank),
            Word::Welcome => (2, 0, 0),
            Word::Exit { code } => (3, code, 0),
            Word::Verdict { code } => (4, code, 0),
            Word::Ready => (5, 0, 0),
            Word::Go { whole } => (6, whole.into(), 0),
            Word::Bye => (7, 0, 0),
        };
        let [a, b, c, d] = rank.to_le_bytes();
        [tag, code, MARK[0], MARK[1], a, b, c, d]
    }

    fn decode([tag, code, m, n, a, b, c, d]: [u8; LEN]) -> Option<Self> {
        if [m, n] != MARK {
            return None;
        }
        Some(match tag {
            1 => Word::Hello { rank: u32::from_le_bytes([a, b, c, d]) },
            2 => Word::Welcome,
            3 => Word::Exit { code },
            4 => Word::Verdict { code },
            5 => Word::Ready,
            6 => Word::Go { whole: code == 1 },
            7 => Word::Bye,
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
    process: Option<OwnedFd>,
}

impl Line {
    fn new(stream: Stream, user: u32) -> Option<Self> {
        let peer = stream.peer().ok()?;
        (peer.uid == user).then(|| Self { stream, pid: peer.pid, process: process::open(peer.pid).ok() })
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

/// Where the followers of a job find their leader. The name of the job alone does not do: another name space of
/// processes may have the same one.
pub(crate) fn address(job: &str) -> String {
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let space: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    let job: String = job.chars().filter(char::is_ascii_graphic).collect();
    // The system takes 107 bytes; what differs between jobs stands at either end.
    let (head, tail) = (&job[..job.len().min(40)], &job[job.len().saturating_sub(30)..]);
    format!("gasworks-{}-{space}-{head}-{tail}", process::user())
}

pub(crate) fn listen(address: &str) -> Option<Listener> {
    unix::listen(address).ok()
}

/// A connection that has come, if one has.
pub(crate) fn accept(listener: &Listener) -> Result<Option<Line>, gasworks_os::OsError> {
    match listener.accept(Instant::now()) {
        Ok(stream) => Ok(Line::new(stream, process::user())),
        Err(e) if e.is_timeout() => Ok(None),
        Err(e) => Err(e),
    }
}

/// A connection to the leader, if it listens already.
pub(crate) fn connect(address: &str) -> Option<Line> {
    Line::new(unix::connect(address, Instant::now()).ok()?, process::user())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_way_and_nothing_else_does() {
        let words = [
            Word::Hello { rank: 70_000 },
            Word::Welcome,
            Word::Exit { code: 255 },
            Word::Verdict { code: 7 },
            Word::Ready,
            Word::Go { whole: false },
            Word::Go { whole: true },
            Word::Bye,
        ];
        for word in words {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        for tag in [0, 8, 255] {
            assert_eq!(Word::decode([tag, 0, b'g', b'w', 0, 0, 0, 0]), None);
        }
        assert_eq!(Word::decode([2, 0, b'g', b'x', 0, 0, 0, 0]), None);
    }

    #[test]
    fn the_address_of_any_job_fits() {
        for job in ["", "5.0", &"x".repeat(256), "kvs_1_0_1804289383_host;ü"] {
            let address = address(job);
            assert!(address.len() <= 107 && address.is_ascii(), "{address}");
        }
        assert_ne!(address("gasrun-1-a"), address("gasrun-2-a"));
    }
}
