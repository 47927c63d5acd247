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
    /// This host can tell the others of the end.
    tells_others: AtomicU32,
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
            tells_others: AtomicU32::new(0),
            jobs: AtomicU32::new(0),
            finalized: AtomicU32::new(0),
        })
    }

    /// The ranks of this host have met.
    pub(crate) fn met(&self, host: Host, hosts: Hosts, lines: Lines, tells_others: bool) {
        // It happens once. Relaxed: what comes next releases it.
        self.tells_others.store(tells_others.into(), Ordering::Relaxed);
        let _ = self.host.set(host);
        let _ = self.hosts.set(hosts);
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    }

    /// The connections for the end; once.
    pub(crate) fn take_lines(&self) -> Option<Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Some ranks are on other hosts.
    pub(crate) fn spans_hosts(&self) -> bool {
        self.hosts.get().is_some_and(|hosts| hosts.count() > 1)
    }

    /// Some ranks are on other hosts, and hear of an end from the launcher alone.
    pub(crate) fn needs_launcher(&self) -> bool {
        self.spans_hosts() && self.tells_others.load(Ordering::Relaxed) == 0
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

    /// Tells a launcher of ours whose code the job's will be, and whether the other ranks hear of it from this one.
    pub(crate) fn announce_exit(&self, code: u8, told: bool) {
        self.words.announce_exit(code, told);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// What a launcher was asked and told, in that order.
    type Record = Arc<Mutex<Vec<String>>>;

    fn note(record: &Record, what: impl Into<String>) {
        record.lock().expect("not poisoned").push(what.into());
    }

    #[derive(Debug)]
    struct Recorded(Record);

    impl Store for Recorded {
        fn put(&mut self, _: &str, _: &str) -> Result<(), BootstrapError> {
            Ok(())
        }
        fn fence(&mut self, limit: Option<Duration>) -> Result<(), BootstrapError> {
            note(&self.0, format!("fence {limit:?}"));
            Ok(())
        }
        fn get(&mut self, _: u32, key: &str) -> Result<String, BootstrapError> {
            Err(BootstrapError::protocol("get a value", key))
        }
        fn finalize(&mut self) -> Result<(), BootstrapError> {
            note(&self.0, "finalize");
            Ok(())
        }
    }

    impl LastWords for Recorded {
        fn abort_keeps_code(&self) -> bool {
            true
        }
        fn abort(&self, code: i32, message: &str) {
            note(&self.0, format!("abort {code} {message}"));
        }
        fn announce_exit(&self, code: u8, told: bool) {
            note(&self.0, format!("exit {code} {told}"));
        }
        fn interrupt(&self) {
            note(&self.0, "interrupt");
        }
        fn finalize(&self, deadline: Instant) {
            let left = deadline.saturating_duration_since(Instant::now());
            let when = if left > LIMIT / 2 { "in time" } else { "late" };
            note(&self.0, format!("last finalize, {when}"));
        }
    }

    /// Longer than any of these tests takes.
    const LIMIT: Duration = Duration::from_secs(60);

    fn link() -> (Link, Record) {
        let record = Record::default();
        let link = Link {
            store: Mutex::new(Box::new(Recorded(Arc::clone(&record)))),
            words: Box::new(Recorded(Arc::clone(&record))),
            rank: 0,
            size: 3,
            job: "recorded".to_owned(),
            ours: false,
            timeout: LIMIT,
            host: OnceLock::new(),
            hosts: OnceLock::new(),
            lines: Mutex::new(None),
            tells_others: AtomicU32::new(0),
            jobs: AtomicU32::new(0),
            finalized: AtomicU32::new(0),
        };
        (link, record)
    }

    fn taken(record: &Record) -> Vec<String> {
        std::mem::take(&mut *record.lock().expect("not poisoned"))
    }

    #[test]
    fn the_launcher_hears_of_the_end_once() {
        let (first, record) = link();
        first.finalize().expect("ended");
        first.finalize().expect("ended before");
        first.finalize_at_exit(LIMIT);
        assert_eq!(taken(&record), ["finalize"]);
        let (second, record) = link();
        second.finalize_at_exit(LIMIT);
        second.finalize_at_exit(LIMIT);
        second.finalize().expect("ended before");
        assert_eq!(taken(&record), ["interrupt", "last finalize, in time"]);
    }

    #[test]
    fn a_conversation_under_way_is_given_a_moment_to_stop() {
        let (link, record) = link();
        let held = link.store();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| link.finalize_at_exit(LIMIT)).join().expect("ended");
        });
        assert!(begun.elapsed() >= ROOM);
        drop(held);
        assert_eq!(taken(&record), ["interrupt", "last finalize, in time"]);
    }

    #[test]
    fn what_is_said_reaches_the_launcher() {
        let (link, record) = link();
        link.abort(42, "no more");
        link.announce_exit(7, true);
        assert_eq!(taken(&record), ["abort 42 no more", "exit 7 true"]);
        assert!(link.abort_keeps_code());
        // A launcher that has no barrier of its own is asked for a fence.
        link.store().barrier(Some(LIMIT)).expect("passed");
        assert_eq!(taken(&record), ["fence Some(60s)"]);
        assert!(link.store().all_gather(b"x", None).is_none());
        assert_eq!(link.store().host_hint().expect("answered"), None);
    }

    #[test]
    fn jobs_are_numbered_and_lines_are_taken_once() {
        let ((link, _), (spread, _)) = (link(), link());
        assert_eq!([link.next_job(), link.next_job(), link.next_job()], [0, 1, 2]);
        assert!(link.take_lines().is_none() && !link.spans_hosts());
        let lines = Lines { leads: true, ..Lines::default() };
        link.met(Host::alone(0), Hosts::one(3, 0), lines, false);
        assert!(!link.spans_hosts(), "there is one host");
        assert!(link.take_lines().is_some_and(|lines| lines.leads));
        assert!(link.take_lines().is_none());
        assert!(!link.needs_launcher());
        spread.met(Host::alone(0), Hosts::led_by(vec![0, 1, 0]), Lines::default(), false);
        assert!(spread.spans_hosts() && spread.needs_launcher());
        let (connected, _) = self::link();
        connected.met(Host::alone(0), Hosts::led_by(vec![0, 1, 0]), Lines::default(), true);
        assert!(connected.spans_hosts() && !connected.needs_launcher());
    }
}
