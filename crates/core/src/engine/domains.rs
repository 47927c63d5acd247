//! The engines of a network interface: one for each *domain* that this rank has of it, and which thread uses which.
//!
//! What is asked of a domain is asked by one thread at a time. With several, threads that put and get do not wait for each other: what a
//! thread starts goes by its own domain, whose completions it looks for in every poll. Messages arrive in the first domain; its
//! threads look for them in every poll. What is in none of a thread's own it sees to now and then, and whenever it has been
//! idle long enough to give way: somebody has to, where a thread waits for what another one has started, or has ended with
//! something under way.

use super::thread;
use crate::{CoreMode, Rdma};
use gasworks_rdma::{EngineError, Key, Progress};
use gasworks_sync::RawSlice;

/// The engines of a rank's network interface; none, one, or several.
pub struct Domains<M: CoreMode> {
    engines: Box<[Rdma<M, M::Nic>]>,
    threads: u32,
    mask: u32,
}

/// What a thread sees to in a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Messages that come by the first domain.
    pub messages: bool,
    /// Transfers of all domains, and not of its own alone.
    pub around: bool,
}

impl<M: CoreMode> Domains<M> {
    /// No network interface: all peers are mapped.
    pub fn none() -> Self {
        Self { engines: Box::default(), threads: 1, mask: 0 }
    }

    /// One for all threads.
    pub fn one(engine: Rdma<M, M::Nic>) -> Self {
        Self { engines: [engine].into(), ..Self::none() }
    }

    /// One after the other is given to so many `threads`, in the order in which they first communicate, and round again. In its polls a
    /// thread sees to the others' where as many bits as `mask` has set are zero in their count: by 255, in one of 256.
    pub fn several(engines: Vec<Rdma<M, M::Nic>>, threads: u32, mask: u32) -> Self {
        if engines.len() > 1 {
            // Who opens a job is among the first.
            thread::number();
        }
        Self { engines: engines.into(), threads: threads.max(1), mask }
    }

    /// The number of this thread's domain.
    fn own(&self) -> usize {
        if self.engines.len() < 2 {
            return 0;
        }
        domain_of(thread::number(), self.threads, self.engines.len())
    }

    /// The engine of this thread's domain.
    #[inline]
    pub(super) fn mine(&self) -> Option<&Rdma<M, M::Nic>> {
        self.engines.get(self.own())
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.engines.is_empty()
    }

    /// Has memory of this rank known to all of them: the first registers it, and its key is good for the others.
    ///
    /// # Safety
    /// The bytes stay mapped until [`deregister`](Self::deregister), or until the engines are dropped.
    ///
    /// # Errors
    /// The network does not take it.
    pub unsafe fn register(&self, bytes: RawSlice) -> Result<Key, EngineError> {
        // A network knows no memory of no bytes.
        let [first, further @ ..] = &*self.engines else { return Ok(Key(Vec::new())) };
        if bytes.is_empty() {
            return Ok(Key(Vec::new()));
        }
        // SAFETY: the caller promises that `bytes` stay mapped until `deregister`, or until the engines of all domains are dropped, the first
        // among them.
        let key = unsafe { first.register(bytes) }?;
        // SAFETY: the caller promises that `bytes` stay mapped until these engines are dropped, or forget them in `deregister`, before the
        // first ends the registration.
        further.iter().for_each(|engine| unsafe { engine.learn(bytes, &key) });
        Ok(key)
    }

    /// Ends a registration that [`register`](Self::register) made. No operation that uses the memory may be pending, here or in a peer.
    ///
    /// # Errors
    /// The network knows no such registration.
    pub fn deregister(&self, key: &Key) -> Result<(), EngineError> {
        let [first, further @ ..] = &*self.engines else { return Ok(()) };
        if key.0.is_empty() {
            return Ok(());
        }
        further.iter().for_each(|engine| engine.forget(key));
        first.deregister(key)
    }

    /// How many operations are under way, in all of them.
    pub(super) fn pending(&self) -> usize {
        self.engines.iter().map(Rdma::pending).sum()
    }

    /// What this thread sees to in the poll that begins.
    #[inline]
    pub(super) fn look(&self) -> Look {
        if self.engines.len() < 2 {
            return Look { messages: true, around: true };
        }
        let around = thread::count_poll() & self.mask == 0;
        Look { messages: around || self.own() == 0, around }
    }

    /// This thread's next poll sees to everything: it has been idle.
    pub(super) fn look_around(&self) {
        if self.engines.len() > 1 {
            thread::count_polls_anew();
        }
    }

    /// Moves transfers on; returns how many tokens were handed to `done`.
    pub(super) fn poll(&self, around: bool, done: &mut dyn FnMut(u64, Progress)) -> usize {
        if around {
            return self.engines.iter().map(|engine| engine.poll(engine.burst(), done)).sum();
        }
        self.mine().map_or(0, |engine| engine.poll(engine.burst(), done))
    }
}

/// Which of so many domains the thread with this number has.
fn domain_of(number: u32, threads: u32, domains: usize) -> usize {
    (number / threads) as usize % domains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_dealt_out_in_turn() {
        let dealt =
            |threads, domains| (0..8).map(|number| domain_of(number, threads, domains)).collect::<Vec<_>>();
        assert_eq!(dealt(1, 1), [0; 8]);
        assert_eq!(dealt(1, 3), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(dealt(2, 3), [0, 0, 1, 1, 2, 2, 0, 0]);
    }
}
