//! Errors, for those of a client's threads that want to hear of them apart from the queues.
//!
//! A transaction that fails is reported once, to each subscription that asked for its category. What finds a subscription full is
//! lost; reports are numbered as they come, so that a gap in the numbers says how many were.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gasworks_gni_sys::*;
use parking_lot::{Condvar, Mutex};

use super::Nic;
use crate::entry::Status;

/// How many reports there is room for where the client does not say.
const ROOM: u32 = 64;

/// An error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it is.
    pub status: Status,
    /// `GNI_ERRMASK_*`.
    pub category: gni_error_mask_t,
    /// The how manieth it is of its subscription, from 1 on.
    pub serial: u32,
    /// When it was reported, in nanoseconds since 1970.
    pub at: u64,
}

/// What a client has asked to hear of.
pub struct Subscription {
    state: Mutex<State>,
    came: Condvar,
}

struct State {
    mask: gni_error_mask_t,
    room: usize,
    reported: u32,
    reports: VecDeque<Report>,
    /// How many threads wait.
    waiting: u32,
    closed: bool,
}

/// The category of what ended a transaction.
fn category(status: Status) -> gni_error_mask_t {
    match status {
        Status::Translation => GNI_ERRMASK_ADDRESS_TRANSLATION,
        _ if status.is_recoverable() => GNI_ERRMASK_TRANSIENT,
        _ => GNI_ERRMASK_TRANSACTION,
    }
}

impl Subscription {
    fn note(&self, status: Status) {
        let category = category(status);
        let mut state = self.state.lock();
        if state.mask & category == 0 {
            return;
        }
        state.reported = state.reported.wrapping_add(1);
        if state.reports.len() < state.room {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
            let serial = state.reported;
            state.reports.push_back(Report { status, category, serial, at });
            self.came.notify_all();
        }
    }

    /// Which categories it is of (`GNI_GetErrorMask`).
    pub fn mask(&self) -> gni_error_mask_t {
        self.state.lock().mask
    }

    /// Asks for others from now on; which they were (`GNI_SetErrorMask`).
    pub fn set_mask(&self, mask: gni_error_mask_t) -> gni_error_mask_t {
        std::mem::replace(&mut self.state.lock().mask, mask)
    }

    /// The next report, if there is one (`GNI_GetErrorEvent`).
    pub fn next(&self) -> Option<Report> {
        self.state.lock().reports.pop_front()
    }

    /// Waits for a report, and then for so long at most for more, until there are `most` or no more fit
    /// (`GNI_WaitErrorEvents`). Also whether the time was over before.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`: for none. `GNI_RC_NOT_DONE`: the client goes.
    pub fn wait(&self, most: usize, linger: Duration) -> Result<(Vec<Report>, bool), gni_return_t> {
        if most == 0 {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let mut state = self.state.lock();
        state.waiting += 1;
        let (mut late, mut end) = (false, None);
        while !state.closed {
            if state.reports.is_empty() {
                // Nothing has come, or another thread has taken it.
                end = None;
                self.came.wait(&mut state);
                continue;
            }
            if late || state.reports.len() >= most.min(state.room) {
                break;
            }
            let end = *end.get_or_insert_with(|| Instant::now() + linger);
            late = self.came.wait_until(&mut state, end).timed_out();
        }
        state.waiting -= 1;
        if state.reports.is_empty() {
            return Err(GNI_RC_NOT_DONE);
        }
        let count = most.min(state.reports.len());
        Ok((state.reports.drain(..count).collect(), count < most.min(state.room)))
    }

    /// Ends it (`GNI_ReleaseErrors`).
    ///
    /// # Errors
    /// `GNI_RC_NOT_DONE`: a thread waits.
    pub fn release(&self) -> Result<(), gni_return_t> {
        let mut state = self.state.lock();
        if state.waiting > 0 {
            return Err(GNI_RC_NOT_DONE);
        }
        state.closed = true;
        Ok(())
    }

    /// The client goes: nobody waits any more.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.came.notify_all();
    }
}

impl Nic {
    /// A subscription to errors of some categories, with room for so many reports, or for some if that is 0
    /// (`GNI_SubscribeErrors`). It ends when it is dropped.
    pub fn subscribe(&self, mask: gni_error_mask_t, room: u32) -> Arc<Subscription> {
        let room = if room == 0 { ROOM } else { room } as usize;
        let (reports, reported, waiting, closed) = (VecDeque::new(), 0, 0, false);
        let state = Mutex::new(State { mask, room, reported, reports, waiting, closed });
        let new = Arc::new(Subscription { state, came: Condvar::new() });
        let mut subscriptions = self.0.subscriptions.lock();
        subscriptions.retain(|old| old.strong_count() > 0);
        subscriptions.push(Arc::downgrade(&new));
        new
    }

    /// A transaction has failed.
    pub(super) fn report(&self, status: Status) {
        let subscriptions = self.0.subscriptions.lock();
        subscriptions.iter().filter_map(|old| old.upgrade()).for_each(|one| one.note(status));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_work_again_is_transient() {
        for status in Status::ALL.into_iter().filter(|status| *status != Status::Ok) {
            assert_eq!(category(status) == GNI_ERRMASK_TRANSIENT, status.is_recoverable(), "{status:?}");
        }
        assert_eq!(category(Status::Translation), GNI_ERRMASK_ADDRESS_TRANSLATION);
        assert_eq!(category(Status::Bounds), GNI_ERRMASK_TRANSACTION);
    }
}
