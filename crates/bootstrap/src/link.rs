//! This process's way to its launcher: one for all the jobs that the process is in, one after the other.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use gasworks_sync::atomic::{AtomicU32, Ordering};
use gasworks_sync::kill_point;

use crate::BootstrapError;
use crate::host::{Host, Hosts, Lines};
use crate::start::Start;
use crate::store::{Identity, Joined, LastWords, Store};

/// A rank that has introduced itself.
#[derive(Debug)]
pub(crate) struct Link {
    store: Mutex<Box<dyn Store>>,
    words: Box<dyn LastWords>,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) job: String,
    /// The launcher is one of ours, and knows words that others do not.
    pub(crate) ours: bool,
    /// How long to wait for the launcher, and for others while the job starts.
    pub(crate) timeout: Duration,
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
        let timeout = start.timeout;
        let Joined { identity: Identity { rank, size, job, ours }, store, words } = start.join()?;
        kill_point!("bootstrap.joined");
        Ok(Self {
            store: Mutex::new(store),
            words,
            rank,
            size,
            job,
            ours,
            timeout,
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

    /// Some ranks are on other hosts, and hear of an end from the launcher alone.
    pub(crate) fn spans_hosts(&self) -> bool {
        self.hosts.get().is_some_and(|hosts| hosts.count() > 1)
    }

    /// The number of the next job over this link, from 0.
    pub(crate) fn next_job(&self) -> u32 {
        self.jobs.fetch_add(1, Ordering::Relaxed)
    }

    /// The conversation: one at a time.
    pub(crate) fn store(&self) -> MutexGuard<'_, Box<dyn Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an order to abort makes its code that of the job.
    pub(crate) fn abort_keeps_code(&self) -> bool {
        self.words.abort_keeps_code()
    }

    /// Orders the end of all ranks, whatever conversation is under way.
    pub(crate) fn abort(&self, code: i32, message: &str) {
        self.words.abort(code, message);
    }

    /// Tells a launcher of ours whose code the job's will be.
    pub(crate) fn announce_exit(&self, code: u8) {
        self.words.announce_exit(code);
    }

    /// Tells the launcher that this rank ends in good order. Once; later calls do nothing.
    pub(crate) fn finalize(&self) -> Result<(), BootstrapError> {
        if self.finalized.swap(1, Ordering::AcqRel) != 0 {
            return Ok(());
        }
        self.store().finalize()
    }

    /// The same from the thread that ends the process, whatever the others do: within `limit`. A conversation under
    /// way is broken off. There is nobody to tell of a failure but the launcher, which draws its own conclusions.
    pub(crate) fn finalize_at_exit(&self, limit: Duration) {
        if self.finalized.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        let deadline = Instant::now() + limit;
        // What waits for an answer stops here, so that it does not take this one.
        self.words.interrupt();
        let room = Instant::now() + ROOM;
        let _held = loop {
            match self.store.try_lock() {
                Ok(held) => break Some(held),
                Err(TryLockError::Poisoned(held)) => break Some(held.into_inner()),
                // Held by a thread that waits for its end, which is this one's to bring about.
                Err(TryLockError::WouldBlock) if Instant::now() > room => break None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        kill_point!("bootstrap.exit.finalize");
        self.words.finalize(deadline);
        kill_point!("bootstrap.exit.finalized");
    }
}
