//! The PMI-2 client: this rank's side of the conversation with whoever started it.
//!
//! What real servers do differently is kept out of the way: values are encoded and cut into pieces ([`value`]), no key
//! is put twice, none is asked for that may be absent, and the order of the fields in a response does not matter.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use gasworks_os::process;
use gasworks_sync::kill_point;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};

use crate::watcher::Watcher;
use crate::wire::{self, Message, WireError, quote};
use crate::{Bootstrap, BootstrapError, value};

/// What a rank knows before it has spoken with its launcher.
#[derive(Debug)]
pub struct Start {
    /// The connection.
    pub socket: UnixStream,
    /// The rank that the launcher gave this process.
    pub rank: u32,
    /// The number of ranks, where it was told.
    pub size: Option<u32>,
    /// The name of the job, where the launcher wants to hear it.
    pub job: Option<String>,
    /// How long to wait for an answer.
    pub timeout: Duration,
}

/// A rank under a launcher that speaks PMI-2.
#[derive(Debug)]
pub struct Pmi2 {
    connection: RefCell<Connection>,
    put: RefCell<HashSet<String>>,
    rank: u32,
    size: u32,
    job: String,
    fence_limited: Cell<bool>,
    finalized: Cell<bool>,
    watcher: RefCell<Option<Watcher>>,
}

/// The longest key a caller may use: the server's limit less the rank and the number of a piece.
const MAX_KEY: usize = wire::MAX_KEY - 18;

/// How long the last words of an aborting rank have to reach the launcher before the order does.
const ABORT_PAUSE: Duration = Duration::from_millis(20);

impl BootstrapError {
    fn protocol(during: &'static str, what: impl ToString) -> Self {
        BootstrapError::Protocol { during, what: what.to_string() }
    }

    pub(crate) fn put_twice(key: &str) -> Self {
        let what = format!("the key {key} was put before: servers disagree about what a second put means");
        Self::protocol("put a value", what)
    }
}

impl Pmi2 {
    /// Introduces this rank to its launcher.
    pub fn join(start: Start) -> Result<Self, BootstrapError> {
        const DURING: &str = "join the job";
        let Start { socket, rank: wanted, size: told, job, timeout } = start;
        socket.set_nonblocking(true).map_err(|source| BootstrapError::Io { during: DURING, source })?;
        let mut connection = Connection { socket, inbox: Vec::new(), timeout };

        let hello = Message::new("init").with("pmi_version", 2).with("pmi_subversion", 0);
        connection.send(DURING, &hello.encode_line())?;
        kill_point!("bootstrap.init.sent");
        let line = connection.receive(DURING, Some(timeout), wire::take_line)?;
        let bad = |e: WireError| BootstrapError::protocol(DURING, e);
        if line.command != "response_to_init" {
            let what = format!("{} came where response_to_init belongs", quote(line.command.as_bytes()));
            return Err(BootstrapError::protocol(DURING, what));
        }
        let (rc, version) = (line.number("rc").map_err(bad)?, line.number("pmi_version").map_err(bad)?);
        if rc != 0 || version != 2 {
            let what = format!(
                "the launcher answers rc={rc} and version {version} to PMI version 2: ask it for PMI-2 (for srun that is \
                 --mpi=pmi2)"
            );
            return Err(BootstrapError::protocol(DURING, what));
        }
        kill_point!("bootstrap.init.answered");

        let mut introduction = Message::new("fullinit");
        if let Some(job) = &job {
            introduction = introduction.with("pmijobid", job);
        }
        introduction = introduction.with("pmirank", wanted).with("threaded", "FALSE");
        let answer = connection.ask(DURING, &introduction)?;
        kill_point!("bootstrap.fullinit");
        let (rank, size) = (answer.number("rank").map_err(bad)?, answer.number("size").map_err(bad)?);
        let told = told.map_or(size, i64::from);
        if rank != i64::from(wanted) || size != told || size < 1 || size > i64::from(i32::MAX) || rank >= size
        {
            let what =
                format!("the launcher says rank {rank} of {size}, its settings said rank {wanted} of {told}");
            return Err(BootstrapError::protocol(DURING, what));
        }
        let answer = connection.ask("ask for the job's name", &Message::new("job-getid"))?;
        let job = answer
            .need("jobid")
            .map_err(|e| BootstrapError::protocol("ask for the job's name", e))?
            .to_owned();
        kill_point!("bootstrap.jobid");
        Ok(Self {
            connection: RefCell::new(connection),
            put: RefCell::default(),
            rank: wanted,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            job,
            fence_limited: Cell::new(true),
            finalized: Cell::new(false),
            watcher: RefCell::new(None),
        })
    }

    /// From now on this process ends, with a message, when the launcher vanishes.
    pub fn watch(&mut self) -> Result<(), BootstrapError> {
        let copy = self.connection.get_mut().socket.try_clone();
        let copy = copy.map_err(|source| BootstrapError::Io { during: "watch over the launcher", source })?;
        *self.watcher.get_mut() = Some(Watcher::start(copy.into(), format!("rank {}", self.rank))?);
        Ok(())
    }

    /// The key as the server sees it.
    fn key(&self, rank: u32, key: &str, piece: usize) -> String {
        if piece == 0 { format!("{key}-{rank}") } else { format!("{key}-{rank}-{piece}") }
    }

    fn get_piece(&self, rank: u32, key: &str, piece: usize) -> Result<String, BootstrapError> {
        const DURING: &str = "get a value";
        let key = self.key(rank, key, piece);
        let question = Message::new("kvs-get").with("jobid", &self.job).with("srcid", rank).with("key", &key);
        let answer = self.connection.borrow_mut().ask(DURING, &question)?;
        // Some servers leave the field out when there is a value.
        if answer.get("found").is_some_and(|found| found != "TRUE") {
            let what = format!("the launcher does not know the key {key}, which rank {rank} has put");
            return Err(BootstrapError::protocol(DURING, what));
        }
        Ok(answer.need("value").map_err(|e| BootstrapError::protocol(DURING, e))?.to_owned())
    }
}

impl Bootstrap for Pmi2 {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn job(&self) -> &str {
        &self.job
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        const DURING: &str = "put a value";
        if key.is_empty()
            || key.len() > MAX_KEY
            || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        {
            let what = format!("the key {key:?} must be 1 to {MAX_KEY} letters, digits, '.', '_' or '-'");
            return Err(BootstrapError::protocol(DURING, what));
        }
        let Some(pieces) = value::pieces(value) else {
            let what =
                format!("{} bytes under the key {key} are too many to pass through a launcher", value.len());
            return Err(BootstrapError::protocol(DURING, what));
        };
        if !self.put.borrow_mut().insert(key.to_owned()) {
            return Err(BootstrapError::put_twice(key));
        }
        for (i, piece) in pieces.iter().enumerate() {
            let question =
                Message::new("kvs-put").with("key", self.key(self.rank, key, i)).with("value", piece);
            self.connection.borrow_mut().ask(DURING, &question)?;
            kill_point!("bootstrap.put");
        }
        Ok(())
    }

    fn fence(&self) -> Result<(), BootstrapError> {
        const DURING: &str = "wait for all ranks";
        let mut connection = self.connection.borrow_mut();
        let question = Message::new("kvs-fence");
        connection.send(DURING, &question.encode().map_err(|e| BootstrapError::protocol(DURING, e))?)?;
        kill_point!("bootstrap.fence.sent");
        let limit = self.fence_limited.get().then_some(connection.timeout);
        let answer = connection.receive(DURING, limit, wire::take_message)?;
        kill_point!("bootstrap.fence");
        check(DURING, &question, answer).map(drop)
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        const DURING: &str = "get a value";
        if rank >= self.size {
            let what = format!("there is no rank {rank} in a job of {}", self.size);
            return Err(BootstrapError::protocol(DURING, what));
        }
        let damaged = |e: String| {
            let what = format!("the launcher damaged the value of the key {key} of rank {rank}: {e}");
            BootstrapError::protocol(DURING, what)
        };
        let first = self.get_piece(rank, key, 0)?;
        let (count, text) = value::head(&first).map_err(damaged)?;
        let mut text = text.to_owned();
        for piece in 1..count {
            text.push_str(&self.get_piece(rank, key, piece)?);
        }
        kill_point!("bootstrap.get");
        value::decode(&text).map_err(damaged)
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        let message: String =
            message.chars().filter(|c| !c.is_control()).map(|c| if c == ';' { ',' } else { c }).collect();
        gasworks_os::say(&format!("gasworks: rank {}: {message}", self.rank));
        // Some launchers drop everything at the order to abort, this line too: let it pass first.
        std::thread::sleep(ABORT_PAUSE);
        // From here on a hang-up is expected. The call may come from inside another one of this object.
        if let Ok(mut watcher) = self.watcher.try_borrow_mut() {
            watcher.take();
        }
        if let Ok(mut connection) = self.connection.try_borrow_mut() {
            let short: String = message.chars().take(value::PIECE / 4).collect();
            let order = Message::new("abort").with("isworld", "TRUE").with("msg", short);
            // Whether it arrives or not, this process ends; a launcher that is gone has no use for it.
            if let Ok(bytes) = order.encode() {
                let _ = connection.send("abort", &bytes);
            }
            kill_point!("bootstrap.abort");
        }
        process::exit_now(code)
    }

    fn started(&self) {
        self.fence_limited.set(false);
    }

    fn finalize(&self) -> Result<(), BootstrapError> {
        if self.finalized.replace(true) {
            return Ok(());
        }
        // The launcher may close the connection as soon as it has heard of the end.
        self.watcher.borrow_mut().take();
        kill_point!("bootstrap.finalize");
        self.connection.borrow_mut().ask("end in good order", &Message::new("finalize"))?;
        kill_point!("bootstrap.finalized");
        Ok(())
    }
}

/// A stream with what has come on it.
#[derive(Debug)]
struct Connection {
    socket: UnixStream,
    inbox: Vec<u8>,
    timeout: Duration,
}

/// Checks that an answer belongs to its question and reports success.
fn check(during: &'static str, question: &Message, answer: Message) -> Result<Message, BootstrapError> {
    if answer.command.strip_suffix("-response") != Some(&question.command) {
        let what = format!(
            "{} came where the answer to {} belongs",
            quote(answer.command.as_bytes()),
            question.command
        );
        return Err(BootstrapError::protocol(during, what));
    }
    let rc = answer.number("rc").map_err(|e| BootstrapError::protocol(during, e))?;
    if rc == 0 {
        return Ok(answer);
    }
    let why = answer.get("errmsg").map_or_else(String::new, |why| format!(": {}", quote(why.as_bytes())));
    let on = question.get("key").map_or_else(String::new, |key| format!(" of the key {key}"));
    Err(BootstrapError::protocol(
        during,
        format!("the launcher refuses the {}{on}, rc={rc}{why}", question.command),
    ))
}

impl Connection {
    fn ask(&mut self, during: &'static str, question: &Message) -> Result<Message, BootstrapError> {
        let bytes = question.encode().map_err(|e| BootstrapError::protocol(during, e))?;
        self.send(during, &bytes)?;
        let answer = self.receive(during, Some(self.timeout), wire::take_message)?;
        check(during, question, answer)
    }

    fn wait(&self, what: PollFlags, deadline: Option<Instant>) -> io::Result<()> {
        loop {
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let ms = left.map_or(PollTimeout::NONE, |left| {
                u16::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u16::MAX).into()
            });
            match poll(&mut [PollFd::new(self.socket.as_fd(), what)], ms) {
                Ok(0) if left.is_some_and(|left| left.is_zero()) => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn fail(&self, during: &'static str, limit: Option<Duration>, source: io::Error) -> BootstrapError {
        match source.kind() {
            io::ErrorKind::TimedOut => {
                BootstrapError::TimedOut { during, seconds: limit.unwrap_or(self.timeout).as_secs() }
            }
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                let what = if self.inbox.is_empty() {
                    "the launcher closed the connection".to_owned()
                } else {
                    format!("the launcher closed the connection in the middle of {}", quote(&self.inbox))
                };
                BootstrapError::protocol(during, what)
            }
            _ => BootstrapError::Io { during, source },
        }
    }

    fn send(&mut self, during: &'static str, bytes: &[u8]) -> Result<(), BootstrapError> {
        let deadline = Instant::now() + self.timeout;
        let mut rest = bytes;
        while !rest.is_empty() {
            // A program in C may not ignore SIGPIPE.
            match send(self.socket.as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => rest = &rest[n..],
                Err(Errno::EAGAIN) => {
                    self.wait(PollFlags::POLLOUT, Some(deadline)).map_err(|e| self.fail(during, None, e))?;
                }
                Err(Errno::EINTR) => {}
                Err(e) => return Err(self.fail(during, None, e.into())),
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        during: &'static str,
        limit: Option<Duration>,
        take: impl Fn(&mut Vec<u8>) -> Result<Option<Message>, WireError>,
    ) -> Result<Message, BootstrapError> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let taken = take(&mut self.inbox).map_err(|e| {
                BootstrapError::protocol(during, format!("the launcher does not keep to PMI-2: {e}"))
            })?;
            if let Some(message) = taken {
                return Ok(message);
            }
            let mut chunk = [0u8; 4096];
            match (&self.socket).read(&mut chunk) {
                Ok(0) => return Err(self.fail(during, limit, io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => self.inbox.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::POLLIN, deadline).map_err(|e| self.fail(during, limit, e))?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(during, limit, e)),
            }
        }
    }
}
