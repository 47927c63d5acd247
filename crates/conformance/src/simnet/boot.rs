//! Identity, key-value exchange, fences and the end, among threads. Stricter than real servers: a key put twice, or
//! asked for though absent, is an error, for real servers disagree about both.

use super::SimRank;
use gasworks_bootstrap::{Bootstrap, BootstrapError, Host, Hosts};

/// A rank's way to the others at the start and the end.
pub struct SimBootstrap {
    rank: SimRank,
    host: Host,
    hosts: Hosts,
}

impl SimBootstrap {
    /// A network between hosts with one rank each, or by every other seed between hosts of which the launcher says that two ranks are on each.
    pub(super) fn new(rank: SimRank) -> Self {
        let config = &rank.net.config;
        let on_each = if config.seed % 2 == 1 { 2 } else { 1 };
        let leaders: Vec<u32> = (0..config.ranks).map(|rank| rank / on_each * on_each).collect();
        Self { host: Host::alone(rank.rank), hosts: Hosts::led_by(leaders), rank }
    }
}

/// What a rank's thread unwinds with when it has aborted the job.
#[derive(Debug)]
pub(super) struct Aborted {
    pub code: i32,
    pub message: String,
}

fn protocol(during: &'static str, what: String) -> BootstrapError {
    BootstrapError::Protocol { during, what }
}

impl Bootstrap for SimBootstrap {
    fn rank(&self) -> u32 {
        self.rank.rank
    }

    fn size(&self) -> u32 {
        self.rank.net.config.ranks
    }

    fn job(&self) -> &str {
        &self.rank.net.name
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let mut exchange = self.rank.net.exchange.lock();
        let name = (self.rank.rank, key.to_owned());
        if exchange.known.contains_key(&name) || exchange.fresh.contains_key(&name) {
            return Err(protocol("key-value put", format!("rank {} puts {key:?} twice", self.rank.rank)));
        }
        exchange.fresh.insert(name, value.to_vec());
        Ok(())
    }

    fn fence(&self) -> Result<(), BootstrapError> {
        let net = &self.rank.net;
        let mut exchange = net.exchange.lock();
        exchange.waiting += 1;
        let mine = exchange.fences;
        if exchange.waiting == net.config.ranks {
            exchange.waiting = 0;
            exchange.fences += 1;
            let mut fresh = std::mem::take(&mut exchange.fresh);
            exchange.known.append(&mut fresh);
            net.fenced.notify_all();
        }
        while exchange.fences == mine {
            if let Some(broken) = net.broken() {
                return Err(protocol("fence", format!("rank {} is gone: {}", broken.rank, broken.why)));
            }
            exchange = net.fenced.wait(exchange);
        }
        Ok(())
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let exchange = self.rank.net.exchange.lock();
        let value = exchange.known.get(&(rank, key.to_owned())).cloned();
        value.ok_or_else(|| {
            protocol("key-value get", format!("rank {rank} has put no {key:?} before the last fence"))
        })
    }

    fn host(&self) -> Result<&Host, BootstrapError> {
        Ok(&self.host)
    }

    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        Ok(&self.hosts)
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        self.rank.net.give_up(self.rank.rank, format!("it aborted the job: {message}"));
        std::panic::resume_unwind(Box::new(Aborted { code, message: message.to_owned() }))
    }

    fn finalize(&self) -> Result<(), BootstrapError> {
        self.rank.net.exchange.lock().finalized[self.rank.rank as usize] = true;
        Ok(())
    }
}
