//! This process's connection to its launcher: one for all the jobs that the process is in, one after the other.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use gasworks_os::eventfd::EventFd;
use gasworks_sync::atomic::{AtomicU32, Ordering};
use gasworks_sync::kill_point;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};
use std::os::fd::{AsFd, AsRawFd};

use crate::connection::Connection;
use crate::host::{Host, Hosts, Lines};
use crate::wire::{self, Message, WireError, quote};
use crate::{BootstrapError, Start};

/// A rank that has introduced itself.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Mutex<Connection>,
    /// The same stream, for last words that cannot wait for a conversation to end.
    socket: UnixStream,
    interrupt: Arc<EventFd>,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) job: String,
    /// The launcher is one of ours, and knows words that others do not.
    pub(crate) ours: bool,
    /// The ranks of this host, and of the others, once they have met.
    pub(crate) host: OnceLock<Host>,
    pub(crate) hosts: OnceLock<Hosts>,
    /// The connections by which the ranks of this host tell each other of the end, until the keeper takes them.
    lines: Mutex<Option<Lines>>,
    jobs: AtomicU32,
    finalized: AtomicU32,
}

/// How long a conversation under way has to make room for the last words.
const ROOM: Duration = Duration::from_millis(50);

impl Link {
    /// Introduces this rank to its launcher.
    pub(crate) fn join(start: Start) -> Result<Self, BootstrapError> {
        const DURING: &str = "join the job";
        let Start { socket, rank: wanted, size: told, job, timeout } = start;
        let io = |source| BootstrapError::Io { during: DURING, source };
        let second = socket.try_clone().map_err(io)?;
        let interrupt = Arc::new(EventFd::new()?);
        let mut connection = Connection::new(socket, timeout, Arc::clone(&interrupt)).map_err(io)?;

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
        let ours = answer.get("launcher") == Some("gasrun");
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
            connection: Mutex::new(connection),
            socket: second,
            interrupt,
            rank: wanted,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            job,
            ours,
            host: OnceLock::new(),
            hosts: OnceLock::new(),
            lines: Mutex::new(None),
            jobs: AtomicU32::new(0),
            finalized: AtomicU32::new(0),
        })
    }

    /// The ranks of this host have met.
    pub(crate) fn met(&self, host: Host, hosts: Hosts, lines: Lines) {
        // It happens once.
        let _ = self.host.set(host);
        let _ = self.hosts.set(hosts);
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    }

    /// The connections for the end; once.
    pub(crate) fn take_lines(&self) -> Option<Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// All ranks are on one host, as far as that is known.
    pub(crate) fn is_on_one_host(&self) -> bool {
        self.hosts.get().is_some_and(|hosts| hosts.count() == 1)
    }

    /// The number of the next job over this link, from 0.
    pub(crate) fn next_job(&self) -> u32 {
        self.jobs.fetch_add(1, Ordering::Relaxed)
    }

    /// The conversation: one at a time.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something that has no answer, whatever conversation is under way. A message this short is written whole or
    /// not at all, and one that is lost is missed by nobody: the process ends.
    pub(crate) fn blurt(&self, message: &Message) {
        if let Ok(bytes) = message.encode() {
            // A program in C may not ignore SIGPIPE.
            let _ = send(self.socket.as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT);
        }
    }

    /// Tells a launcher of ours whose code the job's will be.
    pub(crate) fn announce_exit(&self, code: u8) {
        if self.ours {
            self.blurt(&Message::new("gasworks-exit").with("code", code));
        }
    }

    /// Tells the launcher that this rank ends in good order. Once; later calls do nothing.
    pub(crate) fn finalize(&self) -> Result<(), BootstrapError> {
        if self.finalized.swap(1, Ordering::AcqRel) != 0 {
            return Ok(());
        }
        self.connection().ask("end in good order", &Message::new("finalize")).map(drop)
    }

    /// The same from the thread that ends the process, whatever the others do: within `limit`. A conversation under
    /// way is broken off. There is nobody to tell of a failure but the launcher, which draws its own conclusions.
    pub(crate) fn finalize_at_exit(&self, limit: Duration) {
        if self.finalized.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        let deadline = Instant::now() + limit;
        // What waits for an answer stops here, so that it does not take this one.
        let _ = self.interrupt.ring();
        let room = Instant::now() + ROOM;
        let _held = loop {
            match self.connection.try_lock() {
                Ok(held) => break Some(held),
                Err(TryLockError::Poisoned(held)) => break Some(held.into_inner()),
                // Held by a thread that waits for its end, which is this one's to bring about.
                Err(TryLockError::WouldBlock) if Instant::now() > room => break None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        kill_point!("bootstrap.exit.finalize");
        self.blurt(&Message::new("finalize"));
        self.await_answer("finalize-response", deadline);
        kill_point!("bootstrap.exit.finalized");
    }

    /// Reads until `wanted` has come, the stream has ended, or the time is up.
    fn await_answer(&self, wanted: &str, deadline: Instant) {
        let mut seen = Vec::new();
        let mut chunk = [0; 512];
        while !seen.windows(wanted.len()).any(|part| part == wanted.as_bytes()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let ms = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            if left.is_zero() {
                return;
            }
            let _ = poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], ms);
            match (&self.socket).read(&mut chunk) {
                Ok(0) => return,
                Ok(n) => seen.extend_from_slice(&chunk[..n]),
                Err(e)
                    if matches!(
                        e.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => return,
            }
        }
    }
}
