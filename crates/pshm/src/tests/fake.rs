//! A bootstrap whose ranks are threads of this process.

use crate::{Config, Memory, Opened, PshmError, open};
use gasworks_bootstrap::{Bootstrap, BootstrapError, Host, Hosts};
use gasworks_sync::Mode;
use std::time::{Duration, Instant};

/// One rank's end of it.
pub(crate) struct Fake {
    rank: u32,
    size: u32,
    host: Host,
    hosts: Hosts,
}

/// A bootstrap for each of `size` ranks.
pub(crate) fn ranks(size: u32) -> Vec<Fake> {
    let hosts = Host::together(size).expect("pairs of sockets");
    (0..).zip(hosts).map(|(rank, host)| Fake { rank, size, host, hosts: Hosts::one(size, 0) }).collect()
}

impl Fake {
    /// The ranks have these leaders.
    pub(crate) fn is_elsewhere(&mut self, leaders: &[u32]) {
        self.hosts = Hosts::led_by(leaders);
    }
}

/// The transport asks who is there, and gathers among the ranks of the host.
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
    fn put(&self, key: &str, _: &[u8]) -> Result<(), BootstrapError> {
        panic!("{key} is put")
    }
    fn fence(&self) -> Result<(), BootstrapError> {
        panic!("a fence")
    }
    fn get(&self, _: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        panic!("{key} is asked for")
    }
    fn host(&self) -> Result<&Host, BootstrapError> {
        Ok(&self.host)
    }
    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        Ok(&self.hosts)
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
