//! A bootstrap whose ranks are threads of this process.

use crate::{Config, Memory, Opened, PshmError, open};
use gasworks_bootstrap::{Bootstrap, BootstrapError};
use gasworks_sync::Mode;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Board {
    values: Mutex<HashMap<(u32, String), Vec<u8>>>,
    changed: Condvar,
}

/// One rank's end of it.
#[derive(Clone)]
pub(crate) struct Fake {
    rank: u32,
    size: u32,
    board: Arc<Board>,
}

/// A bootstrap for each of `size` ranks.
pub(crate) fn ranks(size: u32) -> Vec<Fake> {
    let board = Arc::new(Board::default());
    (0..size).map(|rank| Fake { rank, size, board: board.clone() }).collect()
}

impl Bootstrap for Fake {
    fn rank(&self) -> u32 {
        self.rank
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn job(&self) -> &str {
        "test"
    }
    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.board.values.lock().expect("the board").insert((self.rank, key.into()), value.into());
        self.board.changed.notify_all();
        Ok(())
    }
    /// `get` waits instead.
    fn fence(&self) -> Result<(), BootstrapError> {
        Ok(())
    }
    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let wanted = (rank, key.to_owned());
        let limit = Duration::from_secs(10);
        let values = self.board.values.lock().expect("the board");
        let waited =
            self.board.changed.wait_timeout_while(values, limit, |values| !values.contains_key(&wanted));
        let (values, _) = waited.expect("the board");
        values
            .get(&wanted)
            .cloned()
            .ok_or(BootstrapError::TimedOut { during: "get", seconds: limit.as_secs() })
    }
    fn abort(&self, code: i32, message: &str) -> ! {
        panic!("abort with {code}: {message}")
    }
    fn finalize(&self) -> Result<(), BootstrapError> {
        Ok(())
    }
}

pub(crate) const SEGMENT: u64 = 1 << 20;
pub(crate) const CONFIG: Config = Config { memory: Memory::of(SEGMENT), depth: 4, total: 8, volume: 4 << 16 };

/// Runs `body` as each of `size` ranks, on a thread each, with an open transport.
pub(crate) fn run<M: Mode, R: Send>(
    size: u32,
    config: Config,
    body: impl Fn(u32, Opened<M>) -> R + Sync,
) -> Vec<R> {
    each(size, |fake| body(fake.rank, open::<M>(&fake, &config).unwrap_or_else(|e| panic!("{e}"))))
}

/// Runs `body` with the bootstrap of each of `size` ranks, on a thread each.
pub(crate) fn each<R: Send>(size: u32, body: impl Fn(Fake) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = ranks(size).into_iter().map(|fake| scope.spawn(move || body(fake))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank")).collect()
    })
}

/// A single rank's transport.
pub(crate) fn alone<M: Mode>() -> Result<Opened<M>, PshmError> {
    open(&ranks(1)[0], &CONFIG)
}

/// The moment at which a test gives up.
pub(crate) struct Watchdog(Instant);

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self(Instant::now() + Duration::from_secs(30))
    }

    pub(crate) fn check(&self, what: impl Fn() -> String) {
        assert!(Instant::now() < self.0, "no progress: {}", what());
        std::thread::yield_now();
    }
}
