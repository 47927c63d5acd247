//! A completion channel: a descriptor that is readable when a notification has come, so that a rank can wait for it beside others.

use super::Domain;
use gasworks_gni_sys::{
    GNI_RC_NOT_DONE, GNI_RC_SUCCESS, gni_comp_chan_handle_t, gni_cq_handle_t, gni_return_t,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::null_mut;

/// A channel, and what is asked of it, which not every version of the library has.
pub(super) struct Channel {
    handle: gni_comp_chan_handle_t,
    next: unsafe extern "C" fn(gni_comp_chan_handle_t, *mut gni_cq_handle_t) -> gni_return_t,
    arm: unsafe extern "C" fn(*mut gni_cq_handle_t, u32) -> gni_return_t,
    destroy: unsafe extern "C" fn(gni_comp_chan_handle_t) -> gni_return_t,
}

impl Domain {
    /// Has the library tell of notifications by a descriptor, of which this is another one; each [`arm`](Self::arm) has it tell once.
    /// `None` if the library has no channels.
    pub fn open_channel(&mut self) -> Option<OwnedFd> {
        if self.given_up {
            return None;
        }
        let (create, number_of) = (self.ugni.GNI_CompChanCreate?, self.ugni.GNI_CompChanFd?);
        let attach = self.ugni.GNI_CqAttachCompChan?;
        let (next, arm, destroy) =
            (self.ugni.GNI_CompChanGetEvent?, self.ugni.GNI_CqArmCompChan?, self.ugni.GNI_CompChanDestroy?);
        let (mut handle, mut number) = (null_mut(), -1);
        // SAFETY: domain.1: the NIC is there: the domain was not given up. domain.2: the handle is written to `handle`.
        if unsafe { create(self.nic, &raw mut handle) } != GNI_RC_SUCCESS {
            return None;
        }
        // From here on the end of the domain ends it.
        self.channel = Some(Channel { handle, next, arm, destroy });
        // SAFETY: domain.1: `handle` was made just now. domain.2: the descriptor's number is written to `number`.
        if unsafe { number_of(handle, &raw mut number) } != GNI_RC_SUCCESS || number < 0 {
            return None;
        }
        // SAFETY: domain.1: the descriptor is that of the channel, which is there, and is not used after this.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        // Or the library would wait for a notification where there is none.
        fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).ok()?;
        let other = fd.try_clone_to_owned().ok()?;
        // SAFETY: domain.1: `handle` was made above, and the queue is there: the domain was not given up.
        let code = unsafe { attach(self.arrivals, handle) };
        (code == GNI_RC_SUCCESS).then_some(other)
    }

    /// Has the channel tell of the next notification, and forget what it has told; whether none has come by now. `None`: it cannot tell.
    pub fn arm(&mut self) -> Option<bool> {
        let Channel { handle, next, arm, .. } = self.channel.as_ref()?;
        let mut queue = null_mut();
        // SAFETY: domain.1: the end of the domain takes the channel away. domain.2: the queue's handle is written to `queue`.
        while unsafe { next(*handle, &raw mut queue) } == GNI_RC_SUCCESS {}
        queue = self.arrivals;
        // SAFETY: domain.1: the queue is there as long as the channel, to which it is attached. domain.2: its handle is read from `queue`.
        let code = unsafe { arm(&raw mut queue, 1) };
        // SAFETY: domain.1: the queue is there as long as the channel.
        let is_silent = || unsafe { (self.ugni.GNI_CqTestEvent)(queue) } == GNI_RC_NOT_DONE;
        (code == GNI_RC_SUCCESS).then(is_silent)
    }

    /// Gives the channel back to the library, when its queue is gone.
    pub(super) fn end_channel(&mut self) {
        if let Some(Channel { handle, destroy, .. }) = self.channel.take() {
            // SAFETY: domain.1: `open_channel` made it, and it was taken away: nobody uses it after this.
            unsafe { destroy(handle) };
        }
    }
}
