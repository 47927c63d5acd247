//! The attempts of a connect to a host that has several addresses: one after the other, each new one beside those that
//! are silent.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::address::{Address, Failure, Standing, connect, standing};
use super::core::Core;
use crate::{Class, Error, Options, SockId};

/// How long to wait before a Unix listener whose queue is full is asked again: it does not tell when there is room.
const FULL_PAUSE: Duration = Duration::from_millis(5);

pub(crate) struct Connecting {
    /// The addresses that were not tried yet, best first.
    targets: VecDeque<Address>,
    /// Those that have not answered yet.
    attempts: Vec<Attempt>,
    /// Those that failed, and why.
    failures: Vec<(Address, Failure)>,
    /// When the next address is tried, if none that is being tried fails before.
    next: Instant,
    /// When a full queue counts as no answer.
    patience: Instant,
    /// The entry in the set's timers.
    timer: Option<Instant>,
}

struct Attempt {
    fd: OwnedFd,
    address: Address,
    until: Instant,
}

impl Connecting {
    pub(crate) fn new(targets: Vec<Address>, options: &Options) -> Self {
        let next = Instant::now();
        let (targets, attempts, failures, timer) = (targets.into(), Vec::new(), Vec::new(), None);
        let patience = next + options.connect_limit;
        Self { targets, attempts, failures, next, patience, timer }
    }

    /// Looks how they stand, and goes on with them; what has come of them, once they are over: a connection and the address
    /// that it leads to, or why there is none.
    pub(crate) fn go_on<S>(
        &mut self,
        id: SockId,
        core: &Core<S>,
    ) -> Option<Result<(OwnedFd, Address), Error>> {
        let now = Instant::now();
        if let Some(timer) = self.timer.take() {
            core.stop_timer(timer, id);
        }
        if let Some(won) = self.settle(core, now).or_else(|| self.begin(id, core, now)) {
            return Some(Ok((won.fd, won.address)));
        }
        let Some(due) = self.due() else { return Some(Err(self.error(core.options.connect_limit))) };
        self.timer = Some(due);
        core.start_timer(due, id);
        None
    }

    /// Ends all attempts.
    pub(crate) fn abandon<S>(mut self, core: &Core<S>) {
        self.attempts.drain(..).for_each(|attempt| attempt.drop(core));
    }

    /// Asks how the attempts stand; gives the one that succeeded.
    fn settle<S>(&mut self, core: &Core<S>, now: Instant) -> Option<Attempt> {
        let mut i = 0;
        while let Some(attempt) = self.attempts.get(i) {
            let failure = match standing(&attempt.fd) {
                Standing::Connected => return Some(self.attempts.remove(i)),
                Standing::Failed(e) => Failure::System(e),
                Standing::Waiting if now >= attempt.until => Failure::Silent,
                Standing::Waiting => {
                    i += 1;
                    continue;
                }
            };
            let attempt = self.attempts.remove(i);
            self.failures.push((attempt.address.clone(), failure));
            attempt.drop(core);
            self.next = now;
        }
        None
    }

    /// Tries further addresses if it is time; gives the one that connected at once.
    fn begin<S>(&mut self, id: SockId, core: &Core<S>, now: Instant) -> Option<Attempt> {
        while now >= self.next {
            let address = self.targets.pop_front()?;
            let (fd, done) = match connect(&address, &core.options) {
                Ok(begun) => begun,
                Err(Failure::System(Errno::EAGAIN)) if now < self.patience => {
                    self.targets.push_front(address);
                    self.next = now + FULL_PAUSE;
                    return None;
                }
                Err(failure) => {
                    self.failures.push((address, failure));
                    continue;
                }
            };
            let attempt = Attempt { fd, address, until: now + core.options.connect_limit };
            if let Err(e) = core.watch_connecting(id, attempt.fd.as_fd()) {
                self.failures.push((attempt.address, Failure::System(e)));
                continue;
            }
            if done {
                return Some(attempt);
            }
            self.attempts.push(attempt);
            self.next = now + core.options.connect_stagger;
        }
        None
    }

    /// When to look again.
    fn due(&self) -> Option<Instant> {
        let next = (!self.targets.is_empty()).then_some(self.next);
        self.attempts.iter().map(|attempt| attempt.until).chain(next).min()
    }

    /// All addresses failed.
    fn error(&self, limit: Duration) -> Error {
        let mut class = Class::ConnFailed;
        let mut errno = None;
        let mut told = Vec::new();
        for (address, failure) in &self.failures {
            told.push(match failure {
                Failure::System(e) => {
                    errno = Some(*e);
                    format!("{address}: {}", e.desc())
                }
                Failure::Silent => {
                    errno = Some(Errno::ETIMEDOUT);
                    format!("{address}: no answer in {} s", limit.as_secs_f64())
                }
                Failure::NoPort(error) => {
                    (class, errno) = (error.class(), error.raw_os_error().map(Errno::from_raw));
                    format!("{address}: {error}")
                }
            });
        }
        let error = Error::new(class, "connect").cause(format!("no address answered: {}", told.join("; ")));
        match errno {
            Some(errno) => error.errno(errno),
            None => error,
        }
    }
}

impl Attempt {
    fn drop<S>(self, core: &Core<S>) {
        core.forget(self.fd.as_fd(), true);
    }
}
