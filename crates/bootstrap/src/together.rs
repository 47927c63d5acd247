//! Ranks that were connected from the start, without a launcher.

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem;

use gasworks_os::process;

use crate::host::Parts;
use crate::{Bootstrap, BootstrapError, Host, Hosts};

/// Who has put a value, and under which key.
type Key = (u32, Vec<u8>);

/// A rank of a job whose ranks are threads of one process, or processes that it forks: for tests and benches of what
/// stands on a [`Bootstrap`].
#[derive(Debug)]
pub struct Together {
    rank: u32,
    /// All of them.
    all: Host,
    host: Host,
    hosts: Hosts,
    /// Keys and values, alternating, that were put since the last fence.
    fresh: RefCell<Vec<Vec<u8>>>,
    known: RefCell<HashMap<Key, Vec<u8>>>,
}

impl Together {
    /// One for each of `size` ranks.
    ///
    /// # Errors
    /// The system makes no sockets.
    pub fn ranks(size: u32) -> Result<Vec<Self>, BootstrapError> {
        Self::on(Hosts::one(size, 0))
    }

    /// The same, as if they were on these hosts: those of one alone meet as the ranks of a host.
    ///
    /// # Errors
    /// The system makes no sockets.
    pub fn on(hosts: Hosts) -> Result<Vec<Self>, BootstrapError> {
        let everybody: Vec<_> = (0..hosts.size()).collect();
        let mut ranks = Vec::new();
        for leader in hosts.numbered().0 {
            let here: Vec<_> = hosts.ranks(leader).collect();
            ranks.extend(here.iter().copied().zip(Host::together(&here)?));
        }
        ranks.sort_by_key(|(rank, _)| *rank);
        let ranks = ranks.into_iter().zip(Host::together(&everybody)?);
        let rank = |((rank, host), all)| Self {
            rank,
            all,
            host,
            hosts: hosts.clone(),
            fresh: RefCell::default(),
            known: RefCell::default(),
        };
        Ok(ranks.map(rank).collect())
    }
}

impl Bootstrap for Together {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.hosts.size()
    }

    fn job(&self) -> &str {
        "together"
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.fresh.borrow_mut().extend([key.as_bytes().to_vec(), value.to_vec()]);
        Ok(())
    }

    fn fence(&self) -> Result<(), BootstrapError> {
        let mine: Parts = mem::take(&mut *self.fresh.borrow_mut()).into_iter().collect();
        for (rank, parcel) in (0..).zip(self.all.all_gather(&mine.into_bytes(), &[], None)?) {
            let pairs = Parts::read(parcel.bytes).unwrap_or_default();
            let mut pairs = pairs.iter();
            while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
                if self.known.borrow_mut().insert((rank, key.to_vec()), value.to_vec()).is_some() {
                    return Err(BootstrapError::put_twice(&String::from_utf8_lossy(key)));
                }
            }
        }
        Ok(())
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let found = self.known.borrow().get(&(rank, key.as_bytes().to_vec())).cloned();
        found.ok_or_else(|| {
            BootstrapError::protocol("get a value", format!("rank {rank} has not put the key {key}"))
        })
    }

    fn host(&self) -> Result<&Host, BootstrapError> {
        Ok(&self.host)
    }

    fn hosts(&self) -> Result<&Hosts, BootstrapError> {
        Ok(&self.hosts)
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        gasworks_os::say(&format!("gasworks: rank {}: {message}", self.rank));
        process::exit_now(code)
    }

    fn finalize(&self) -> Result<(), BootstrapError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_exchange_values() {
        exchange(Together::ranks(3).expect("a job"));
        let ranks = Together::on(Hosts::led_by(vec![0, 1, 0])).expect("a job");
        let here: Vec<_> = ranks.iter().map(|rank| rank.host().expect("a host").ranks().to_vec()).collect();
        assert_eq!(here, [vec![0, 2], vec![1], vec![0, 2]]);
        exchange(ranks);
    }

    fn exchange(ranks: Vec<Together>) {
        std::thread::scope(|scope| {
            for rank in ranks {
                scope.spawn(move || {
                    let value = |rank: u32| vec![7; rank as usize];
                    assert_eq!((rank.size(), rank.job()), (3, "together"));
                    let all = rank.exchange("card", &value(rank.rank())).expect("exchanged");
                    assert_eq!(all.to_vec(), [value(0), value(1), value(2)]);
                    assert!(rank.get(2, "other").is_err());
                    rank.put("late", &[rank.rank() as u8]).expect("put");
                    rank.barrier().expect("passed");
                    assert_eq!(rank.get(2, "late").expect("a barrier is a fence"), [2]);
                    assert_eq!(rank.host_hint().expect("answered"), None);
                    rank.put("card", b"again").expect("put");
                    let twice = rank.fence().expect_err("put twice").to_string();
                    assert!(twice.starts_with("put a value: the key card was put before"), "{twice}");
                });
            }
        });
    }
}
