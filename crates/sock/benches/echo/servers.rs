//! The servers. Each has a buffer for every connection, and sends back what a read gave before it reads again.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// The servers by name; what the others are compared with is the first.
pub const KINDS: [&str; 5] = ["epoll", "mio", "tokio", "ours", "posted"];
const BATCH: usize = 256;

/// Binds this process to one processor, if there is that one.
pub fn pin(processor: usize) {
    let mut set = nix::sched::CpuSet::new();
    if set.set(processor).is_ok() {
        // On a machine with one processor it stays where it is.
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
}

/// Serves until all connections have ended.
pub fn serve(kind: &str, place: &str, connections: &str, size: &str) -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    pin(0);
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let number = |text: &str| text.parse::<usize>().map_err(io::Error::other);
    let fds = crate::clients::accept(place, number(connections)?)?;
    // Room for more than a message, so that a read can tell that it found all there is.
    let room = (2 * number(size)?).max(4096);
    match kind {
        "epoll" => epoll(fds, room),
        "mio" => mio_server(fds, room),
        "tokio" => tokio_server(fds, room),
        "ours" => ours(fds, room).map_err(io::Error::other),
        "posted" => posted(fds, room).map_err(io::Error::other),
        _ => Err(io::Error::other(format!("there is no server {kind}"))),
    }
}

/// A connection of the servers that are told of readiness. Whatever the socket, a stream's reads and writes are the same.
struct Connection {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// What is in the buffer and was not sent back yet.
    pending: std::ops::Range<usize>,
}

/// What stopped a connection.
#[derive(PartialEq)]
enum Stop {
    Drained,
    NoRoom,
    Ended,
}

impl Connection {
    fn all(fds: Vec<OwnedFd>, room: usize) -> io::Result<Vec<Option<Self>>> {
        let of = |fd| {
            let stream = UnixStream::from(fd);
            stream.set_nonblocking(true)?;
            Ok(Some(Self { stream, buffer: vec![0; room], pending: 0..0 }))
        };
        fds.into_iter().map(of).collect()
    }

    fn send(&mut self) -> io::Result<bool> {
        while !self.pending.is_empty() {
            match self.stream.write(&self.buffer[self.pending.clone()]) {
                Ok(n) => self.pending.start += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// Sends back what there is, reading once, or until the socket is drained.
    fn echo(&mut self, drain: bool) -> io::Result<Stop> {
        loop {
            if !self.send()? {
                return Ok(Stop::NoRoom);
            }
            let got = match self.stream.read(&mut self.buffer) {
                Ok(0) => return Ok(Stop::Ended),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Stop::Drained),
                Err(e) => return Err(e),
            };
            self.pending = 0..got;
            if !self.send()? {
                return Ok(Stop::NoRoom);
            }
            if !drain || got < self.buffer.len() {
                return Ok(Stop::Drained);
            }
        }
    }
}

/// Level-triggered, one read for each event, as a careful programmer writes it by hand.
fn epoll(fds: Vec<OwnedFd>, room: usize) -> io::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut connections = Connection::all(fds, room)?;
    for (i, connection) in connections.iter().flatten().enumerate() {
        epoll.add(&connection.stream, EpollEvent::new(EpollFlags::EPOLLIN, i as u64))?;
    }
    let (mut left, mut batch) = (connections.len(), [EpollEvent::empty(); BATCH]);
    while left > 0 {
        let n = match epoll.wait(&mut batch, EpollTimeout::NONE) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        for event in &batch[..n] {
            let slot = &mut connections[event.data() as usize];
            let Some(connection) = slot else { continue };
            let waited = !connection.pending.is_empty();
            let stop = if waited {
                if connection.send()? { Stop::Drained } else { Stop::NoRoom }
            } else {
                connection.echo(false)?
            };
            match stop {
                Stop::Ended => {
                    *slot = None;
                    left -= 1;
                }
                Stop::NoRoom if waited => {}
                Stop::Drained if !waited => {}
                stop => {
                    let flags = if stop == Stop::NoRoom { EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
                    epoll.modify(&connection.stream, &mut EpollEvent::new(flags, event.data()))?;
                }
            }
        }
    }
    Ok(())
}

fn mio_server(fds: Vec<OwnedFd>, room: usize) -> io::Result<()> {
    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(BATCH));
    let mut connections = Connection::all(fds, room)?;
    for (i, connection) in connections.iter().flatten().enumerate() {
        let fd = connection.stream.as_raw_fd();
        poll.registry().register(&mut SourceFd(&fd), Token(i), Interest::READABLE | Interest::WRITABLE)?;
    }
    let mut left = connections.len();
    while left > 0 {
        match poll.poll(&mut events, None) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            let slot = &mut connections[event.token().0];
            let Some(connection) = slot else { continue };
            // Told of room alone, with nothing to send, there is nothing to do.
            if !event.is_readable() && connection.pending.is_empty() {
                continue;
            }
            if connection.echo(true)? == Stop::Ended {
                *slot = None;
                left -= 1;
            }
        }
    }
    Ok(())
}

fn tokio_server(fds: Vec<OwnedFd>, room: usize) -> io::Result<()> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for fd in fds {
            let stream = UnixStream::from(fd);
            stream.set_nonblocking(true)?;
            let mut stream = tokio::net::UnixStream::from_std(stream)?;
            tasks.push(tokio::spawn(async move {
                let mut buffer = vec![0; room];
                loop {
                    match stream.read(&mut buffer).await? {
                        0 => return io::Result::Ok(()),
                        n => stream.write_all(&buffer[..n]).await?,
                    }
                }
            }));
        }
        for task in tasks {
            task.await.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

/// On the engine as the others are on theirs: what can be written now is, and only what is left is posted.
fn ours(fds: Vec<OwnedFd>, room: usize) -> Result<(), gasworks_sock::Error> {
    engine(fds, room, |sock, mut buffer, bytes| {
        let written = sock.write(&buffer[..bytes])?;
        if written == bytes {
            return sock.post_read(buffer, 1, room, None);
        }
        buffer.copy_within(written..bytes, 0);
        sock.post_write(buffer, bytes - written, bytes - written, None)
    })
}

/// On the engine, with everything posted: two events for an echo.
fn posted(fds: Vec<OwnedFd>, room: usize) -> Result<(), gasworks_sock::Error> {
    engine(fds, room, |sock, buffer, bytes| sock.post_write(buffer, bytes, bytes, None))
}

/// `answer` sends back so many bytes of a buffer, and posts something.
fn engine(
    fds: Vec<OwnedFd>,
    room: usize,
    answer: impl Fn(&gasworks_sock::Sock, Vec<u8>, usize) -> Result<(), gasworks_sock::Error>,
) -> Result<(), gasworks_sock::Error> {
    use gasworks_sock::{Class, Error, Op, Set, Sock};
    let set = Set::new()?;
    let mut socks: Vec<Sock> = Vec::new();
    for fd in fds {
        let sock = set.adopt(socks.len() as u64, fd)?;
        sock.post_read(vec![0; room], 1, room, None)?;
        socks.push(sock);
    }
    let mut left = socks.len();
    while left > 0 {
        let Some(mut event) = set.wait(None)? else { continue };
        let sock = &socks[event.user as usize];
        match (event.op, event.error.as_ref().map(Error::class)) {
            (Op::Read, None) => answer(sock, event.take_buffer(), event.bytes)?,
            (Op::Write, None) => sock.post_read(event.take_buffer(), 1, room, None)?,
            (Op::Read, Some(Class::ConnClosed)) => sock.post_close()?,
            (Op::Close, None) => left -= 1,
            _ => return Err(event.error.unwrap_or(Error::new(Class::Fail, "serve"))),
        }
    }
    Ok(())
}
