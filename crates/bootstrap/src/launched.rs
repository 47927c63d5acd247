//! A rank of a job that somebody launched, whatever protocol the launcher speaks.
//!
//! Values are encoded and cut into pieces ([`value`]) and no key is put twice here; how a piece is put, fetched and
//! waited for is the launcher's [`Store`](crate::store::Store).

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use gasworks_os::ending::{self, Wish};
use gasworks_os::process;
use gasworks_sync::kill_point;

use crate::host::exchange::exchange;
use crate::host::meeting::Inherited;
use crate::host::{self, Host, Hosts, Parts};
use crate::link::Link;
use crate::start::Start;
use crate::{Bootstrap, BootstrapError, value, wire};

/// A rank under a launcher, in one of the jobs that its process takes part in.
#[derive(Debug)]
pub struct Launched {
    link: Arc<Link>,
    /// Jobs are numbered over the link: every rank opens them in the same order.
    number: u32,
    job: String,
    /// A keeper sees to the end of this process, and to the last word to the launcher.
    kept: bool,
    put: RefCell<HashSet<String>>,
    fence_limited: Cell<bool>,
    ended: Cell<bool>,
}

/// The longest key a caller may use: the server's limit less the numbers of the job, the rank and a piece.
const MAX_KEY: usize = wire::MAX_KEY - 18 - 11;

/// The code of a program in Rust whose main thread panics.
const PANICKED: i32 = 101;

/// How long the last words of an aborting rank have to reach the launcher before the order does.
const ABORT_PAUSE: Duration = Duration::from_millis(20);

impl BootstrapError {
    pub(crate) fn protocol(during: &'static str, what: impl ToString) -> Self {
        BootstrapError::Protocol { during, what: what.to_string() }
    }

    pub(crate) fn put_twice(key: &str) -> Self {
        let what = format!("the key {key} was put before: servers disagree about what a second put means");
        Self::protocol("put a value", what)
    }
}

impl Launched {
    /// Introduces this rank to its launcher. Nothing watches over this process: see [`connect`](crate::connect).
    pub fn join(start: Start) -> Result<Self, BootstrapError> {
        Ok(Self::over(Arc::new(Link::join(start)?), false))
    }

    /// The next job over a link.
    pub(crate) fn over(link: Arc<Link>, kept: bool) -> Self {
        if kept {
            ending::enter_job();
        }
        let number = link.next_job();
        let job = if number == 0 { link.job.clone() } else { format!("{}.{number}", link.job) };
        Self {
            link,
            number,
            job,
            kept,
            put: RefCell::default(),
            fence_limited: Cell::new(true),
            ended: Cell::new(false),
        }
    }

    /// The key as the launcher sees it.
    fn key(&self, rank: u32, key: &str, piece: usize) -> String {
        let number = self.number;
        let job = if number == 0 { String::new() } else { format!("-{number}.") };
        if piece == 0 { format!("{job}{key}-{rank}") } else { format!("{job}{key}-{rank}-{piece}") }
    }

    /// How long this rank waits for the others.
    fn limit(&self) -> Option<Duration> {
        self.fence_limited.get().then_some(self.link.timeout)
    }

    fn get_piece(&self, rank: u32, key: &str, piece: usize) -> Result<String, BootstrapError> {
        self.link.store().get(rank, &self.key(rank, key, piece))
    }
}

impl Bootstrap for Launched {
    fn rank(&self) -> u32 {
        self.link.rank
    }

    fn size(&self) -> u32 {
        self.link.size
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
            self.link.store().put(&self.key(self.link.rank, key, i), piece)?;
            kill_point!("bootstrap.put");
        }
        Ok(())
    }

    fn fence(&self) -> Result<(), BootstrapError> {
        let fenced = self.link.store().fence(self.limit());
        kill_point!("bootstrap.fence");
        fenced
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        const DURING: &str = "get a value";
        if rank >= self.link.size {
            let what = format!("there is no rank {rank} in a job of {}", self.link.size);
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

    fn host(&self) -> Result<&Host, BootstrapError> {
        if let Some(host) = self.link.host.get() {
            return Ok(host);
        }
        let left = if self.link.ours { Inherited::for_rank(self.link.rank)? } else { None };
        let (host, lines) = host::meet(self, self.link.timeout, left)?;
        let hosts = Hosts::find(self, &host)?;
        let (lines, tells_others) = host::leaders::connect(self, &host, &hosts, lines)?;
        self.link.met(host, hosts, lines, tells_others);
        self.link
            .host
            .get()
            .ok_or_else(|| BootstrapError::protocol("meet the ranks of this host", "they have not met"))
    }

    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        self.host()?;
        self.link
            .hosts
            .get()
            .ok_or_else(|| BootstrapError::protocol("find the hosts of the job", "they are not known"))
    }

    fn exchange(&self, label: &str, mine: &[u8]) -> Result<Parts, BootstrapError> {
        let gathered = self.link.store().all_gather(mine, self.limit());
        match gathered {
            Some(gathered) => Ok(gathered?.into_iter().collect()),
            None => exchange(self, self.host()?, self.hosts()?, label, mine, self.limit()),
        }
    }

    fn barrier(&self) -> Result<(), BootstrapError> {
        self.link.store().barrier(self.limit())
    }

    fn host_hint(&self) -> Result<Option<Vec<u32>>, BootstrapError> {
        self.link.store().host_hint()
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        let message: String =
            message.chars().filter(|c| !c.is_control()).map(|c| if c == ';' { ',' } else { c }).collect();
        // The wish first: the launcher's order makes the others end with codes of their own, and this one is to win.
        if self.kept {
            ending::begin_abort(code);
        }
        gasworks_os::say(&format!("gasworks: rank {}: {message}", self.link.rank));
        // Other launchers end the job by the code alone, as a rule, and some make another one of this order. But where hosts are not
        // connected nobody else tells the others.
        if self.link.abort_keeps_code() || self.link.needs_launcher() {
            // Some launchers drop everything at the order to abort, the line above too: let it pass first.
            std::thread::sleep(ABORT_PAUSE);
            // The keeper says it as well, but may be late: the launcher is to know the code before the order.
            if let Some(Wish::Exit { code: code @ 1.., .. }) = ending::wish() {
                self.link.announce_exit(code, false);
            }
            let short: String = message.chars().take(value::PIECE / 4).collect();
            self.link.abort(code, &short);
            kill_point!("bootstrap.abort");
        }
        if self.kept { ending::finish_exit(code) } else { process::exit_now(code) }
    }

    fn started(&self) {
        self.fence_limited.set(false);
    }

    fn finalize(&self) -> Result<(), BootstrapError> {
        if self.ended.replace(true) {
            return Ok(());
        }
        if self.kept {
            ending::leave_job();
        }
        // Where somebody sees to the end of the process, the launcher hears of it then, so that another job may follow.
        if self.kept { Ok(()) } else { self.link.finalize() }
    }
}

/// A job that unwinding drops has failed, and the others need not wait for it. One that is dropped otherwise stays
/// open for the hooks: the end of the process is then the end of the job.
impl Drop for Launched {
    fn drop(&mut self) {
        if self.kept && !self.ended.get() && std::thread::panicking() {
            ending::exit(PANICKED);
        }
    }
}
