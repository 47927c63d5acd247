//! The client of PMI-1 and PMI-2: this rank's side of the conversation on a wire with whoever started it.
//!
//! What real servers do differently is kept out of the way: values come here encoded and cut into pieces, no key is put
//! twice, none is asked for that may be absent, and the order of the fields in an answer does not matter.
//!
//! Which dialect, where no setting names it: launchers that set `PMI_JOBID` (ours, Slurm) are offered PMI-2, all others
//! PMI-1. Every server that was tried speaks PMI-1, and its barrier is one; hydra (4 and 5) answers a fence of PMI-2 at
//! once, and what is awaited is only what is asked for later. A server that answers with the other version, whatever
//! its `rc`, waits for a second opening line, and gets it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gasworks_os::descriptor::Descriptor;
use gasworks_os::eventfd::EventFd;
use gasworks_sync::kill_point;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};

use crate::connection::Connection;
use crate::dialect::{Dialect, Verb};
use crate::store::{Identity, Joined, LastWords, Store};
use crate::value::PIECE;
use crate::wire::{self, Message, quote};
use crate::{BootstrapError, settings};

const JOIN: &str = "join the job";
const NAME: &str = "ask for the job's name";

/// A way over a socket.
#[derive(Debug)]
pub struct Wire {
    /// The connection.
    pub stream: Stream,
    /// The rank that the launcher gave this process.
    pub rank: u32,
    /// The number of ranks, where it was told.
    pub size: Option<u32>,
    /// The name of the job, where the launcher wants to hear it.
    pub job: Option<String>,
    /// The dialect to speak; `None`: the best one that the launcher speaks.
    pub dialect: Option<Dialect>,
}

/// A connection to a launcher.
#[derive(Debug)]
pub enum Stream {
    /// The launcher made it for this rank (`PMI_FD`).
    Descriptor(OwnedFd),
    /// This rank made it (`PMI_PORT`), and says who it is.
    Port(OwnedFd),
}

impl Stream {
    pub(crate) fn socket(&self) -> &OwnedFd {
        let (Stream::Descriptor(socket) | Stream::Port(socket)) = self;
        socket
    }

    pub(crate) fn into_socket(self) -> OwnedFd {
        let (Stream::Descriptor(socket) | Stream::Port(socket)) = self;
        socket
    }
}

/// The launcher's store of keys and values, over a conversation.
#[derive(Debug)]
struct Client {
    connection: Connection,
    dialect: Dialect,
    rank: u32,
    size: u32,
    job: String,
    /// The launcher answers a fence only when all ranks have come to it.
    holds: bool,
    fences: u32,
}

/// Introduces this rank to its launcher.
pub(crate) fn join(wire: Wire, timeout: Duration) -> Result<Joined, BootstrapError> {
    let Wire { stream, rank: wanted, size: told, job, dialect } = wire;
    let second = stream.socket().try_clone().map_err(|source| BootstrapError::Io { during: JOIN, source })?;
    let interrupt = Arc::new(EventFd::new()?);
    let over_port = matches!(stream, Stream::Port(_));
    let mut connection = Connection::new(stream.into_socket(), timeout, Arc::clone(&interrupt));
    let mut me = Told { rank: None, size: told };
    if over_port {
        me = knock(&mut connection, wanted)?;
    }
    let likely = if job.is_some() { Dialect::Pmi2 } else { Dialect::Pmi1 };
    let dialect = open(&mut connection, dialect, likely)?;
    kill_point!("bootstrap.init.answered");
    let wanted = me.rank.unwrap_or(wanted);
    let name = String::new();
    let mut client = Client { connection, dialect, rank: wanted, size: 1, job: name, holds: true, fences: 0 };
    let answer = client.introduce(wanted, job.as_deref())?;
    kill_point!("bootstrap.fullinit");
    let (rank, size) = match dialect {
        Dialect::Pmi1 => {
            let size = me.size.ok_or_else(|| {
                let what =
                    "PMI-1 over a descriptor does not say how many ranks there are, and PMI_SIZE is not set";
                BootstrapError::protocol(JOIN, what)
            })?;
            check_limits(&answer)?;
            (i64::from(wanted), i64::from(size))
        }
        Dialect::Pmi2 => (number(&answer, "rank")?, number(&answer, "size")?),
    };
    let (rank, size) = Identity::check(rank, size, (Some(wanted), me.size))?;
    let ours = answer.get("launcher") == Some("gasrun");
    let answer = client.ask(NAME, Verb::Name, &dialect.question(Verb::Name))?;
    let name = answer.need(dialect.job_key()).map_err(|e| BootstrapError::protocol(NAME, e))?.to_owned();
    (client.size, client.job) = (size, name.clone());
    // The name says whether PMI_JOBID comes from this launcher, or from one further out.
    client.holds = dialect == Dialect::Pmi1 || ours || job.is_some_and(|job| job == name);
    Ok(Joined {
        identity: Identity { rank, size, job: name, ours },
        store: Box::new(client),
        words: Box::new(Words { socket: second.into(), interrupt, dialect, ours }),
    })
}

/// What a launcher says about the ranks before the conversation is opened.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    rank: Option<u32>,
    size: Option<u32>,
}

fn number(answer: &Message, key: &str) -> Result<i64, BootstrapError> {
    answer.number(key).map_err(|e| BootstrapError::protocol(JOIN, e))
}

/// Says on a fresh connection which of the expected ranks this is. The answer is several lines, of which the last
/// begins with `cmd=set debug=`; what some servers say in the first already they say again.
fn knock(connection: &mut Connection, id: u32) -> Result<Told, BootstrapError> {
    /// More lines than any server sends.
    const MOST: usize = 16;
    connection.send(JOIN, &Message::new("initack").with("pmiid", id).encode_line())?;
    let mut told = Told::default();
    for _ in 0..MOST {
        let line = connection.receive(JOIN, Some(connection.timeout), wire::take_line)?;
        match line.command.as_str() {
            "initack" => {
                if line.get("rc").is_some() && number(&line, "rc")? != 0 {
                    let what = format!("the launcher does not know the rank {id} (PMI_ID): {}", shown(&line));
                    return Err(BootstrapError::protocol(JOIN, what));
                }
            }
            "set" => {
                let read = |key| match line.get(key) {
                    None => Ok(None),
                    Some(_) => match u32::try_from(number(&line, key)?) {
                        Ok(number) => Ok(Some(number)),
                        Err(_) => {
                            Err(BootstrapError::protocol(JOIN, format!("{} is no {key}", shown(&line))))
                        }
                    },
                };
                told.rank = read("rank")?.or(told.rank);
                told.size = read("size")?.or(told.size);
                if line.get("debug").is_some() {
                    return Ok(told);
                }
            }
            _ => {
                let what = format!("{} came where the answer to initack belongs", shown(&line));
                return Err(BootstrapError::protocol(JOIN, what));
            }
        }
    }
    Err(BootstrapError::protocol(JOIN, format!("the answer to initack does not end within {MOST} lines")))
}

fn shown(line: &Message) -> String {
    quote(line.encode_line().trim_ascii_end())
}

/// Opens the conversation in `wish`, or else in the `likely` dialect or the one that the launcher speaks instead.
fn open(
    connection: &mut Connection,
    wish: Option<Dialect>,
    likely: Dialect,
) -> Result<Dialect, BootstrapError> {
    let offer = wish.unwrap_or(likely);
    let (rc, version) = offered(connection, offer)?;
    if (rc, version) == (0, offer.version().0) {
        return Ok(offer);
    }
    if wish.is_some() {
        let hint = format!("{} asks for it: leave that to auto", settings::BOOTSTRAP.name);
        return Err(refused(offer, rc, version, &hint));
    }
    let other = offer.other();
    if version != other.version().0 {
        return Err(refused(offer, rc, version, "ask it for PMI-2 (for srun that is --mpi=pmi2)"));
    }
    match offered(connection, other)? {
        (0, version) if version == other.version().0 => Ok(other),
        (rc, version) => Err(refused(other, rc, version, "and it had named that version itself")),
    }
}

fn refused(offer: Dialect, rc: i64, version: i64, hint: &str) -> BootstrapError {
    let wanted = offer.version().0;
    let what = format!("the launcher answers rc={rc} and version {version} to PMI version {wanted}: {hint}");
    BootstrapError::protocol(JOIN, what)
}

/// The launcher's answer to an opening line: its `rc`, and the version it speaks.
fn offered(connection: &mut Connection, offer: Dialect) -> Result<(i64, i64), BootstrapError> {
    let (version, subversion) = offer.version();
    let hello = Message::new("init").with("pmi_version", version).with("pmi_subversion", subversion);
    connection.send(JOIN, &hello.encode_line())?;
    kill_point!("bootstrap.init.sent");
    let line = connection.receive(JOIN, Some(connection.timeout), wire::take_line)?;
    if line.command != "response_to_init" {
        let what = format!("{} came where response_to_init belongs", quote(line.command.as_bytes()));
        return Err(BootstrapError::protocol(JOIN, what));
    }
    Ok((number(&line, "rc")?, number(&line, "pmi_version")?))
}

/// Checks that what will be put fits.
fn check_limits(answer: &Message) -> Result<(), BootstrapError> {
    for (limit, need) in [("keylen_max", wire::MAX_KEY), ("vallen_max", PIECE)] {
        let allowed = number(answer, limit)?;
        if allowed < need as i64 {
            let what = format!("the launcher allows {limit}={allowed} bytes, and {need} are needed");
            return Err(BootstrapError::protocol(JOIN, what));
        }
    }
    Ok(())
}

impl Client {
    fn ask(
        &mut self,
        during: &'static str,
        verb: Verb,
        question: &Message,
    ) -> Result<Message, BootstrapError> {
        self.say(during, question)?;
        self.hear(during, verb, question, Some(self.connection.timeout))
    }

    fn say(&mut self, during: &'static str, question: &Message) -> Result<(), BootstrapError> {
        let bytes = self.dialect.encode(question).map_err(|e| BootstrapError::protocol(during, e))?;
        self.connection.send(during, &bytes)
    }

    fn hear(
        &mut self,
        during: &'static str,
        verb: Verb,
        question: &Message,
        limit: Option<Duration>,
    ) -> Result<Message, BootstrapError> {
        let dialect = self.dialect;
        let answer = self.connection.receive(during, limit, |inbox| dialect.take(inbox))?;
        dialect.check(during, verb, question, answer)
    }

    fn introduce(&mut self, rank: u32, job: Option<&str>) -> Result<Message, BootstrapError> {
        let mut question = self.dialect.question(Verb::Introduce);
        if self.dialect == Dialect::Pmi2 {
            if let Some(job) = job {
                question = question.with("pmijobid", job);
            }
            question = question.with("pmirank", rank).with("threaded", "FALSE");
        }
        self.ask(JOIN, Verb::Introduce, &question)
    }

    /// The beginning of a question about a key: where it is looked for.
    fn about(&self, verb: Verb) -> Message {
        let question = self.dialect.question(verb);
        // PMI-2 puts into the rank's own job, without saying so.
        if (self.dialect, verb) == (Dialect::Pmi2, Verb::Put) {
            return question;
        }
        question.with(self.dialect.job_key(), &self.job)
    }
}

impl Client {
    /// Sends what was put, and waits for the launcher's answer.
    fn fence_once(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError> {
        const DURING: &str = "wait for all ranks";
        let question = self.dialect.question(Verb::Fence);
        self.say(DURING, &question)?;
        kill_point!("bootstrap.fence.sent");
        self.hear(DURING, Verb::Fence, &question, limit).map(drop)
    }

    fn get_within(
        &mut self,
        rank: u32,
        key: &str,
        limit: Option<Duration>,
    ) -> Result<String, BootstrapError> {
        const DURING: &str = "get a value";
        let mut question = self.about(Verb::Get);
        if self.dialect == Dialect::Pmi2 {
            question = question.with("srcid", rank);
        }
        let question = question.with("key", key);
        self.say(DURING, &question)?;
        let answer = self.hear(DURING, Verb::Get, &question, limit)?;
        // Some servers leave the field out when there is a value, and PMI-1 has none.
        if answer.get("found").is_some_and(|found| found != "TRUE") {
            let what = format!("the launcher does not know the key {key}, which rank {rank} has put");
            return Err(BootstrapError::protocol(DURING, what));
        }
        Ok(answer.need("value").map_err(|e| BootstrapError::protocol(DURING, e))?.to_owned())
    }
}

impl Store for Client {
    fn put(&mut self, key: &str, text: &str) -> Result<(), BootstrapError> {
        let question = self.about(Verb::Put).with("key", key).with("value", text);
        self.ask("put a value", Verb::Put, &question).map(drop)
    }

    /// Where the launcher's fence holds nobody, ranks hold each other: in each of log2(size) rounds a rank awaits the
    /// token of the one that is twice as far away as in the round before, and so, in the end, of all.
    fn fence(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError> {
        self.fences += 1;
        if self.holds || self.size == 1 {
            return self.fence_once(limit);
        }
        // No other key has this character.
        let token = |number: u32, far: u32, rank: u32| format!("fence+{number}.{far}-{rank}");
        let mut far = 1;
        while far < self.size {
            self.put(&token(self.fences, far, self.rank), "here")?;
            self.fence_once(limit)?;
            let other = (self.rank + (self.size - far)) % self.size;
            self.get_within(other, &token(self.fences, far, other), limit)?;
            far = far.saturating_mul(2);
        }
        Ok(())
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootstrapError> {
        self.get_within(rank, key, Some(self.connection.timeout))
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        self.ask("end in good order", Verb::Finalize, &self.dialect.question(Verb::Finalize)).map(drop)
    }
}

/// The same stream, for what cannot wait for a conversation to end.
#[derive(Debug)]
struct Words {
    socket: Descriptor,
    interrupt: Arc<EventFd>,
    dialect: Dialect,
    ours: bool,
}

impl Words {
    /// A message this short is written whole or not at all, and one that is lost is missed by nobody.
    fn blurt(&self, message: &Message) {
        if let Ok(bytes) = self.dialect.encode(message) {
            // A program in C may not ignore SIGPIPE.
            let _ = send(
                self.socket.as_fd().as_raw_fd(),
                &bytes,
                MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
            );
        }
    }
}

impl LastWords for Words {
    fn abort_keeps_code(&self) -> bool {
        // PMI-2 has no place for it; a launcher of ours has heard of the code by other means.
        self.ours || self.dialect == Dialect::Pmi1
    }

    fn abort(&self, code: i32, message: &str) {
        self.blurt(&self.dialect.abort(code, message));
    }

    fn announce_exit(&self, code: u8, told: bool) {
        if self.ours {
            self.blurt(&Message::new("gasworks-exit").with("code", code).with("told", u8::from(told)));
        }
    }

    fn interrupt(&self) {
        let _ = self.interrupt.ring();
    }

    /// Reads until the answer has come, the stream has ended, or the time is up.
    fn finalize(&self, deadline: Instant) {
        let (_, wanted) = self.dialect.words(Verb::Finalize);
        self.blurt(&self.dialect.question(Verb::Finalize));
        let mut seen = Vec::new();
        let mut chunk = [0; 512];
        while !seen.windows(wanted.len()).any(|part| part == wanted.as_bytes()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let ms = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            if left.is_zero() {
                return;
            }
            let _ = poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], ms);
            match recv(self.socket.as_fd().as_raw_fd(), &mut chunk, MsgFlags::MSG_DONTWAIT) {
                Ok(0) => return,
                Ok(n) => seen.extend_from_slice(&chunk[..n]),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}
