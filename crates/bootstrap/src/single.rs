//! The only rank of a job that nobody launched.

use std::cell::RefCell;
use std::collections::HashMap;

use gasworks_os::{process, random};
use gasworks_sync::kill_point;

use crate::{Bootstrap, BootstrapError, Host, Hosts};

/// Rank 0 of 1; what it puts stays in this process.
#[derive(Debug)]
pub struct Single {
    job: String,
    host: Host,
    hosts: Hosts,
    values: RefCell<HashMap<String, Vec<u8>>>,
}

impl Single {
    /// A job of its own, under a name drawn at random.
    pub fn new() -> Result<Self, BootstrapError> {
        kill_point!("bootstrap.single");
        Ok(Self {
            job: format!("single-{}", random::hex(&random::nonce()?)),
            host: Host::alone(0),
            hosts: Hosts::one(1, 0),
            values: RefCell::default(),
        })
    }
}

impl Bootstrap for Single {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn job(&self) -> &str {
        &self.job
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        match self.values.borrow_mut().insert(key.to_owned(), value.to_vec()) {
            None => Ok(()),
            Some(_) => Err(BootstrapError::put_twice(key)),
        }
    }

    fn fence(&self) -> Result<(), BootstrapError> {
        Ok(())
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let found = self.values.borrow().get(key).cloned();
        found.filter(|_| rank == 0).ok_or_else(|| BootstrapError::Protocol {
            during: "get a value",
            what: format!("rank {rank} of 1 has not put the key {key}"),
        })
    }

    fn host(&self) -> Result<&Host, BootstrapError> {
        Ok(&self.host)
    }

    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        Ok(&self.hosts)
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        gasworks_os::say(&format!("gasworks: rank 0: {message}"));
        process::exit_now(code)
    }

    fn finalize(&self) -> Result<(), BootstrapError> {
        kill_point!("bootstrap.single.finalize");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_everything_is_there() {
        let single = Single::new().expect("a job");
        assert_eq!((single.rank(), single.size()), (0, 1));
        assert_eq!(single.exchange("card", b"mine").expect("exchanged").to_vec(), [b"mine"]);
        let twice = single.put("card", b"again").expect_err("put twice").to_string();
        assert!(twice.starts_with("put a value: the key card was put before"), "{twice}");
        for (rank, key) in [(1, "card"), (0, "other")] {
            let error = single.get(rank, key).expect_err("absent").to_string();
            assert_eq!(error, format!("get a value: rank {rank} of 1 has not put the key {key}"));
        }
        assert_eq!(single.host_hint().expect("answered"), None);
        assert!(single.job().starts_with("single-"), "{}", single.job());
        assert_eq!(single.host().expect("a host").ranks(), [0]);
        assert_eq!(single.hosts().expect("hosts").count(), 1);
        assert_ne!(single.job(), Single::new().expect("a job").job());
        single.finalize().expect("ended");
    }
}
