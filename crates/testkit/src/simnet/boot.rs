//! Identity, key-value exchange, fences and the end, among threads. Stricter than real servers: a key put twice, or
//! asked for though absent, is an error, for real servers disagree about both.

use super::SimRank;
use gasworks_bootstrap::{Bootstrap, BootstrapError};

/// A rank's way to the others at the start and the end.
#[derive(Clone)]
pub struct SimBootstrap(pub(super) SimRank);

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
        self.0.rank
    }

    fn size(&self) -> u32 {
        self.0.net.config.ranks
    }

    fn job(&self) -> &str {
        &self.0.net.name
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let mut exchange = self.0.net.exchange.lock();
        let name = (self.0.rank, key.to_owned());
        if exchange.known.contains_key(&name) || exchange.fresh.contains_key(&name) {
            return Err(protocol("key-value put", format!("rank {} puts {key:?} twice", self.0.rank)));
        }
        exchange.fresh.insert(name, value.to_vec());
        Ok(())
    }

    fn fence(&self) -> Result<(), BootstrapError> {
        let net = &self.0.net;
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
        let exchange = self.0.net.exchange.lock();
        let value = exchange.known.get(&(rank, key.to_owned())).cloned();
        value.ok_or_else(|| {
            protocol("key-value get", format!("rank {rank} has put no {key:?} before the last fence"))
        })
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        self.0.net.give_up(self.0.rank, format!("it aborted the job: {message}"));
        std::panic::resume_unwind(Box::new(Aborted { code, message: message.to_owned() }))
    }

    fn finalize(&self) -> Result<(), BootstrapError> {
        self.0.net.exchange.lock().finalized[self.0.rank as usize] = true;
        Ok(())
    }
}
