//! The leaders of a job's hosts: the first takes in the others, over TCP, so that hosts tell each other of the end as the ranks of a
//! host do.
//!
//! A leader that cannot be reached costs no job: its host then hears of ends from the launcher alone.

use std::time::{Duration, Instant};

use gasworks_os::random;
use gasworks_os::unix::Stream;
use gasworks_sock::{HostDescription, Op, Set, Sock};

use super::meeting::INTRODUCTION;
use super::{Host, Hosts, Lines, Parcel};
use crate::lifeline::Line;
use crate::{Bootstrap, BootstrapError};

/// Under which the first leader tells where it is.
const KEY: &str = "leaders-at";
/// Bytes by which it knows the others.
const COOKIE: usize = 16;
/// How long a connection to it may take, and whoever has connected to say who it is.
const CONNECTING: Duration = Duration::from_secs(5);
const SPEAKING: Duration = Duration::from_millis(500);

/// Where the first leader takes in others.
struct LeaderSocket {
    set: Set,
    listener: Sock,
    cookie: [u8; COOKIE],
    description: String,
}

/// Adds the connections between hosts to those of this one, and says whether this host has one. Collective over all ranks of the job.
///
/// # Errors
/// The launcher fails.
pub(crate) fn connect(
    job: &dyn Bootstrap,
    host: &Host,
    hosts: &Hosts,
    mut lines: Lines,
) -> Result<(Lines, bool), BootstrapError> {
    if hosts.count() == 1 {
        return Ok((lines, false));
    }
    let (me, first) = (job.rank(), hosts.leader(0));
    let socket = if me == first { LeaderSocket::open() } else { None };
    if me == first {
        let told = socket.as_ref().map(|socket| [&socket.cookie[..], socket.description.as_bytes()].concat());
        job.put(KEY, &told.unwrap_or_default())?;
    }
    job.fence()?;
    if host.leads() && me != first {
        lines.above = go(me, &job.get(first, KEY)?).map(|line| (first, line));
    }
    job.fence()?;
    if let Some(socket) = socket {
        let others = &hosts.numbered().0[1..];
        lines.hosts = socket.take(others);
        lines.reaches_all = lines.hosts.len() == others.len();
    }
    let has_one = lines.above.is_some() || lines.reaches_all;
    let own = host.leads().then(|| Parcel { bytes: vec![has_one.into()], fds: Vec::new() });
    let has_one = host.hand_out(own, None)?.bytes == [1];
    Ok((lines, has_one))
}

/// The connection itself.
fn stream_of(sock: &Sock) -> Option<Stream> {
    let fd = sock.with_fd(|fd| fd.try_clone_to_owned()).ok()?.ok()?;
    Stream::adopt(fd, "lifeline between hosts").ok()
}

/// At the other leaders: goes to the first, by what that has told.
fn go(me: u32, told: &[u8]) -> Option<Line> {
    let (cookie, description) = told.split_at_checked(COOKIE)?;
    let description = HostDescription::parse(std::str::from_utf8(description).ok()?).ok()?;
    let set = Set::new().ok()?;
    let sock = set.post_connect(0, &description, description.port()?).ok()?;
    let event =
        set.wait(Some(CONNECTING)).ok()?.filter(|event| event.op == Op::Connect && event.error.is_none());
    let stream = event.and_then(|_| stream_of(&sock));
    let _ = set.destroy_now();
    let stream = stream?;
    let words = [cookie, &me.to_le_bytes()].concat();
    stream.send_fds(&words, &[], Instant::now() + SPEAKING).ok()?;
    Some(Line::new(stream, 0))
}

impl LeaderSocket {
    fn open() -> Option<Self> {
        let set = Set::new().ok()?;
        let (listener, port) = set.listen_everywhere(0).ok()?;
        let description = HostDescription::local().ok()?.with_port(port).to_string();
        Some(Self { set, listener, cookie: random::nonce().ok()?, description })
    }

    /// Those of these ranks that come. They have connected before, and so are there in a moment.
    fn take(self, wanted: &[u32]) -> Vec<(u32, Line)> {
        let until = Instant::now() + INTRODUCTION;
        let mut came: Vec<(u32, Line)> = Vec::new();
        while came.len() < wanted.len() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(Some(event)) = self.set.wait(Some(left)) else { break };
            if event.op != Op::Accept {
                continue;
            }
            let stream = self.set.accept(&self.listener, 0).ok().and_then(|sock| stream_of(&sock));
            if let Some((rank, stream)) = stream.and_then(|stream| self.introduce(stream))
                && wanted.contains(&rank)
                && came.iter().all(|(other, _)| *other != rank)
            {
                came.push((rank, Line::new(stream, 0)));
            }
        }
        let _ = self.set.destroy_now();
        came.sort_by_key(|(rank, _)| *rank);
        came
    }

    /// Who has connected; `None` for a stranger.
    fn introduce(&self, stream: Stream) -> Option<(u32, Stream)> {
        let mut words = [0; COOKIE + 4];
        stream.recv_fds(&mut words, 0, Instant::now() + SPEAKING).ok()?;
        let (cookie, rank) = words.split_at(COOKIE);
        let rank = u32::from_le_bytes(rank.try_into().ok()?);
        (cookie == self.cookie).then_some((rank, stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifeline::Word;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// Those that are wanted come once each, and are heard; strangers get nothing.
    #[test]
    fn leaders_come_by_what_the_first_has_told() {
        let socket = LeaderSocket::open().expect("this host has a port");
        let told = [&socket.cookie[..], socket.description.as_bytes()].concat();
        let port = HostDescription::parse(&socket.description).expect("one of ours").port().expect("a port");
        let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("anybody may connect");
        stranger.write_all(&[7; COOKIE + 4]).expect("sent");
        let lines: Vec<_> = [4, 2, 4, 9].into_iter().map(|rank| go(rank, &told)).collect();
        let came = socket.take(&[2, 4]);
        assert_eq!(came.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [2, 4]);
        came[0].1.say(Word::Verdict { code: 3 });
        let second = lines[1].as_ref().expect("it was let in");
        assert_eq!(second.hear(), Some(Word::Verdict { code: 3 }));
        second.say(Word::Ready);
        assert_eq!(came[0].1.hear(), Some(Word::Ready));
        assert_eq!(stranger.read(&mut [0; 1]).unwrap_or(0), 0, "nothing is said to a stranger");
        drop(came);
        assert_eq!(second.hear(), None, "the first is gone");
    }

    #[test]
    fn what_tells_of_nobody_is_not_gone_to() {
        for told in [&b""[..], &[1; COOKIE], &[1; COOKIE + 3]] {
            assert!(go(1, told).is_none(), "{told:?}");
        }
    }
}
