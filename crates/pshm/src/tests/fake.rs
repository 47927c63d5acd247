//! Ranks that are threads of this process.

use crate::{Config, Memory, Opened, PshmError, open};
use gasworks_bootstrap::{Bootstrap, Together};
use gasworks_sync::Mode;
use std::time::{Duration, Instant};

pub(crate) const SEGMENT: u64 = 1 << 20;
pub(crate) const CONFIG: Config = Config { memory: Memory::of(SEGMENT), depth: 4, total: 8, volume: 4 << 16 };

/// Runs `body` as each of `size` ranks, on a thread each, with an open transport.
pub(crate) fn run<M: Mode, R: Send>(
    size: u32,
    config: Config,
    body: impl Fn(u32, Opened<M>) -> R + Sync,
) -> Vec<R> {
    each(size, |rank| body(rank.rank(), open::<M>(&rank, &config).unwrap_or_else(|e| panic!("{e}"))))
}

/// Runs `body` with the bootstrap of each of `size` ranks, on a thread each.
pub(crate) fn each<R: Send>(size: u32, body: impl Fn(Together) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let body = &body;
        let ranks = Together::ranks(size).expect("a job");
        let threads: Vec<_> = ranks.into_iter().map(|rank| scope.spawn(move || body(rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank")).collect()
    })
}

/// A single rank's transport.
pub(crate) fn alone<M: Mode>() -> Result<Opened<M>, PshmError> {
    open(&Together::ranks(1).expect("a job")[0], &CONFIG)
}

/// The moment at which a test gives up.
pub(crate) struct Watchdog(Instant);

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self(Instant::now() + Duration::from_secs(120))
    }

    pub(crate) fn check(&self, what: impl Fn() -> String) {
        assert!(Instant::now() < self.0, "no progress: {}", what());
        std::thread::yield_now();
    }
}
