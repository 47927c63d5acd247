//! The thread that calls a launcher's library, one call after the other: a library need not bear calls from several
//! threads, and a call that never returns costs an error and not the rank.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use gasworks_os::{ending, threads};
use gasworks_sync::atomic::{AtomicU32, Ordering};

use crate::BootstrapError;

type Order = Box<dyn FnOnce() + Send>;

/// The thread.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    orders: Sender<Order>,
    /// The process ends, and what a call comes back with is nobody's business any more.
    over: Arc<AtomicU32>,
}

impl Worker {
    pub(crate) fn start() -> Result<Self, BootstrapError> {
        let (orders, inbox) = mpsc::channel::<Order>();
        spawn(move || inbox.into_iter().for_each(|order| order()))?;
        Ok(Self { orders, over: Arc::default() })
    }

    /// Has the thread do `what`, and waits for it no longer than `limit`, where there is one.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        during: &'static str,
        limit: Option<Duration>,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BootstrapError> {
        let came = self.order(limit, what);
        // Set before the end makes calls come back with errors.
        if self.over.load(Ordering::Acquire) != 0 {
            ending::wait_for_the_end();
        }
        came.map_err(|e| match e {
            RecvTimeoutError::Timeout => {
                BootstrapError::TimedOut { during, seconds: limit.unwrap_or_default().as_secs() }
            }
            RecvTimeoutError::Disconnected => {
                BootstrapError::protocol(during, "the thread that calls the launcher's library is gone")
            }
        })
    }

    /// The same for the last words: whatever comes of it, it is the end.
    pub(crate) fn last<T: Send + 'static>(&self, limit: Duration, what: impl FnOnce() -> T + Send + 'static) {
        // There is nobody to tell.
        let _ = self.order(Some(limit), what);
    }

    fn order<T: Send + 'static>(
        &self,
        limit: Option<Duration>,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RecvTimeoutError> {
        let (answer, came) = mpsc::channel();
        let order: Order = Box::new(move || {
            // Whoever asked may have given up.
            let _ = answer.send(what());
        });
        // A thread that is gone shows as an answer that does not come.
        let _ = self.orders.send(order);
        match limit {
            Some(limit) => came.recv_timeout(limit),
            None => came.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// The process ends: whoever waits for a call waits for that instead.
    pub(crate) fn interrupt(&self) {
        self.over.store(1, Ordering::Release);
    }
}

/// Does `what` in a thread of its own, and waits for it no longer than `limit`: for libraries that bear it.
pub(crate) fn aside(limit: Duration, what: impl FnOnce() + Send + 'static) {
    let (done, came) = mpsc::channel();
    let body = move || {
        what();
        // Whoever asked may have given up.
        let _ = done.send(());
    };
    if spawn(body).is_ok() {
        let _ = came.recv_timeout(limit);
    }
}

fn spawn(body: impl FnOnce() + Send + 'static) -> Result<(), BootstrapError> {
    // What the launcher's library starts from there leaves the program's signals alone as well.
    threads::start("gasworks-launch", None, body)
        .map(drop)
        .map_err(|source| BootstrapError::Io { during: "start a thread for the launcher's library", source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn calls_come_in_order_and_a_stuck_one_is_given_up() {
        let worker = Worker::start().expect("a thread");
        let limit = Some(Duration::from_secs(20));
        let numbers: Vec<_> =
            (0..3).map(|i| worker.call("count", limit, move || i).expect("an answer")).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let (release, stuck) = mpsc::channel::<()>();
        let begun = Instant::now();
        let given_up = worker.call("hang", Some(Duration::from_millis(100)), move || stuck.recv().is_err());
        assert!(begun.elapsed() >= Duration::from_millis(100));
        let text = given_up.expect_err("stuck").to_string();
        assert_eq!(text, "hang: nothing came for 0 s (GASWORKS_BOOTSTRAP_TIMEOUT)");
        drop(release);
        assert_eq!(worker.call("go on", None, || 7).expect("an answer"), 7);
        let begun = Instant::now();
        aside(Duration::from_millis(100), || std::thread::sleep(Duration::from_millis(300)));
        assert!(begun.elapsed() >= Duration::from_millis(100));
    }
}
