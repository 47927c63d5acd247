//! Completion channels: a descriptor that one can wait at with others, for queues that one wants to hear of.
//!
//! A queue is armed for one notification. Events come from other processes, which know nothing of channels: so whoever plays the
//! NIC looks at the armed queues now and then.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use gasworks_gni_sys::*;
use gasworks_os::OsError;
use gasworks_os::eventfd::EventFd;
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;

use super::mood::{self, Mood};
use super::{Cq, Nic};

/// Tells which of the queues that are armed with it have an event.
pub struct Channel {
    /// Readable as long as something is to be told.
    bell: EventFd,
    fired: Mutex<VecDeque<u64>>,
}

impl Channel {
    /// One that tells nothing (`GNI_CompChanCreate`).
    ///
    /// # Errors
    /// The system gives no descriptor.
    pub fn new() -> Result<Self, OsError> {
        let bell = EventFd::new()?;
        // Whether one waits for a notification is for the client to say, by this very flag.
        let set = fcntl(&bell, FcntlArg::F_SETFL(OFlag::empty()));
        set.map_err(|e| OsError::new("make wait", "an event counter", e))?;
        Ok(Self { bell, fired: Mutex::default() })
    }

    fn fire(&self, name: u64) {
        let mut fired = self.fired.lock();
        fired.push_back(name);
        // Who does not hear it finds the name when it looks.
        let _ = self.bell.ring();
    }

    fn is_readable(&self, patience: PollTimeout) -> bool {
        let mut bell = [PollFd::new(self.bell.as_fd(), PollFlags::POLLIN)];
        poll(&mut bell, patience).is_ok_and(|ready| ready > 0)
    }

    fn pop(&self) -> Option<u64> {
        let mut fired = self.fired.lock();
        let name = fired.pop_front()?;
        // A client may have read it, and reading it again would wait.
        if fired.is_empty() && self.is_readable(PollTimeout::ZERO) {
            self.bell.clear();
        }
        Some(name)
    }

    /// The name of a queue that had an event after it was armed, waited for unless the client has made the descriptor one
    /// that does not wait (`GNI_CompChanGetEvent`).
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE`: there is none.
    pub fn next(&self) -> Result<u64, gni_return_t> {
        loop {
            if let Some(name) = self.pop() {
                return Ok(name);
            }
            let flags = fcntl(&self.bell, FcntlArg::F_GETFL).unwrap_or(0);
            if OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK) {
                return Err(GNI_RC_NOT_DONE);
            }
            self.is_readable(PollTimeout::NONE);
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// What is watched for a client.
#[derive(Default)]
pub(super) struct Watch {
    armed: Mutex<Vec<Armed>>,
    /// How often the client has waited for any of several queues.
    waits: AtomicU64,
}

struct Armed {
    queue: Weak<Cq>,
    channel: Weak<Channel>,
    name: u64,
}

impl Nic {
    /// Arms a queue for one notification, by a name that the client knows (`GNI_CqArmCompChan`). One that has an event already
    /// is told of at the next [look](Self::watch).
    pub fn arm(&self, queue: &Arc<Cq>, channel: &Arc<Channel>, name: u64) {
        let new = Armed { queue: Arc::downgrade(queue), channel: Arc::downgrade(channel), name };
        let mut armed = self.0.watch.armed.lock();
        armed.retain(|old| !old.queue.ptr_eq(&new.queue));
        armed.push(new);
    }

    /// Tells of the armed queues that have an event; whether any is left to be looked at.
    pub fn watch(&self) -> bool {
        let mut armed = self.0.watch.armed.lock();
        armed.retain(|Armed { queue, channel, name }| {
            let (Some(queue), Some(channel)) = (queue.upgrade(), channel.upgrade()) else { return false };
            let fires = queue.holds_event();
            if fires {
                channel.fire(*name);
            }
            !fires
        });
        !armed.is_empty()
    }

    /// Whether a wait for any of several queues is to end now with the first, which has no event for the client
    /// (`GNI_CqVectorMonitor`): the library wants to be called.
    pub fn wakes_falsely(&self) -> bool {
        let wait = self.0.watch.waits.fetch_add(1, Relaxed);
        match self.0.mood {
            Mood::Plain => false,
            Mood::Adversarial { seed } | Mood::Unordered { seed } => {
                mood::wakes_falsely(seed, self.instance(), wait)
            }
        }
    }
}
