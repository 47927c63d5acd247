//! The clients: blocking, the same for every server.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::Case;
use crate::servers::{KINDS, pin};

/// Both kinds of stream.
pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A server process with its connections.
struct Server {
    process: Child,
    connections: Vec<Box<dyn Stream>>,
}

impl Server {
    /// Starts a server; `words` come before the program, to count its calls.
    fn start(kind: &str, case: &Case, tcp: bool, words: &[&str]) -> io::Result<Self> {
        let own = std::env::current_exe()?;
        let mut command = match words {
            [] => Command::new(&own),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(&own);
                command
            }
        };
        let place = if tcp { free_port()? } else { format!("@gasworks-echo-{}-{kind}", std::process::id()) };
        command.args(["serve", kind, &place, &case.connections.to_string(), &case.size.to_string()]);
        let process = command.spawn()?;
        let mut connections: Vec<Box<dyn Stream>> = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        while connections.len() < case.connections {
            match connect(&place) {
                Ok(stream) => connections.push(stream),
                // It does not listen yet, or its queue is full.
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { process, connections })
    }

    /// Every connection sends a message and gets it back, so often.
    fn rounds(&mut self, case: &Case, rounds: usize) -> io::Result<Duration> {
        let (sent, mut got) = (vec![0x5a; case.size], vec![0; case.size]);
        let start = Instant::now();
        for _ in 0..rounds {
            for connection in &mut self.connections {
                connection.write_all(&sent)?;
            }
            for connection in &mut self.connections {
                got.fill(0);
                connection.read_exact(&mut got)?;
                if got != sent {
                    return Err(io::Error::other("the echo is not what was sent"));
                }
            }
        }
        Ok(start.elapsed())
    }

    /// The server ends when all connections have.
    fn end(mut self) -> io::Result<()> {
        self.connections.clear();
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("a server ended with {status}"))) }
    }
}

fn free_port() -> io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string())
}

fn connect(place: &str) -> io::Result<Box<dyn Stream>> {
    match place.strip_prefix('@') {
        Some(name) => Ok(Box::new(UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?)),
        None => {
            let stream = TcpStream::connect(("127.0.0.1", place.parse().map_err(io::Error::other)?))?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}

/// The server's end of all connections.
pub fn accept(place: &str, connections: usize) -> io::Result<Vec<std::os::fd::OwnedFd>> {
    match place.strip_prefix('@') {
        Some(name) => {
            let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            (0..connections).map(|_| Ok(listener.accept()?.0.into())).collect()
        }
        None => {
            let listener = TcpListener::bind(("127.0.0.1", place.parse().map_err(io::Error::other)?))?;
            let next = |_| {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            };
            (0..connections).map(next).collect()
        }
    }
}

/// The time of each server's block in each turn, in the order of [`KINDS`].
pub fn measure(case: &Case, turns: usize, tcp: bool) -> io::Result<Vec<Vec<Duration>>> {
    pin(1);
    let mut servers = Vec::new();
    for kind in KINDS {
        servers.push(Server::start(kind, case, tcp, &[])?);
    }
    for server in &mut servers {
        server.rounds(case, case.rounds.div_ceil(4))?;
    }
    let mut times = vec![Vec::new(); servers.len()];
    for turn in 0..turns {
        for i in 0..servers.len() {
            // Nobody is always the first of a turn.
            let which = (i + turn) % servers.len();
            times[which].push(servers[which].rounds(case, case.rounds)?);
        }
    }
    servers.into_iter().try_for_each(Server::end)?;
    Ok(times)
}

/// System calls of each server for one echo; `None` where they cannot be counted.
pub fn count(case: &Case, tcp: bool) -> io::Result<Vec<Option<f64>>> {
    KINDS.iter().map(|kind| count_one(kind, case, tcp)).collect()
}

fn count_one(kind: &str, case: &Case, tcp: bool) -> io::Result<Option<f64>> {
    let rounds = case.rounds.clamp(4, 200);
    let (few, many) = (calls(kind, case, tcp, rounds)?, calls(kind, case, tcp, 2 * rounds)?);
    let echoes = (rounds * case.connections) as f64;
    Ok(few.zip(many).map(|(few, many)| (many - few) / echoes))
}

/// All system calls of a server that serves so many rounds.
fn calls(kind: &str, case: &Case, tcp: bool, rounds: usize) -> io::Result<Option<f64>> {
    let there = Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    if !there {
        return Ok(None);
    }
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_string_lossy().into_owned();
    let mut server = Server::start(kind, case, tcp, &["strace", "-f", "-c", "-o", &path])?;
    server.rounds(case, rounds)?;
    server.end()?;
    let text = std::fs::read_to_string(file.path())?;
    let line = text.lines().rev().find(|line| line.trim_end().ends_with("total"));
    // % time, seconds, usecs/call, calls, perhaps errors, "total"
    Ok(line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()))
}
