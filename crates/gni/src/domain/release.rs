//! What a domain has taken goes back to the library: registrations and endpoints one by one, and all of it at the end.

use super::{Domain, Handle, Network};
use gasworks_gni_sys::*;
use std::ptr::null_mut;

impl Domain {
    /// Gives all back to the library, unless that has posts. Nothing is posted from then on, and nothing comes.
    pub fn give_up(&mut self) {
        if self.under_way() == 0 && !self.given_up {
            self.given_up = true;
            self.release();
        }
    }

    /// Gives all back to the library. Once, and nothing is used after that.
    fn release(&mut self) {
        drop(self.kept.take());
        self.end_engines();
        for at in 0..self.endpoints.len() {
            // Those of ranks that nobody has talked to are not written, either.
            if !self.endpoints[at].is_null() {
                let endpoint = std::mem::replace(&mut self.endpoints[at], null_mut());
                self.end_endpoint(endpoint);
            }
        }
        for (handle, _) in std::mem::take(&mut self.registered) {
            self.end_registration(handle);
        }
        for queue in [self.source, self.arrivals] {
            if !queue.is_null() {
                // SAFETY: domain.1: `open` made it, and after this `given_up` is set, or the domain is dropped: nobody asks it again.
                unsafe { (self.ugni.GNI_CqDestroy)(queue) };
            }
        }
        self.end_channel();
        if !self.cdm.is_null() {
            // SAFETY: domain.1: `open` made it, and it goes last: endpoints, registrations and queues of it are gone.
            unsafe { (self.ugni.GNI_CdmDestroy)(self.cdm) };
        }
    }

    /// Ends a registration; whether there was one.
    pub fn deregister(&mut self, handle: Handle) -> bool {
        let pages = self.registered.remove(&handle);
        pages.is_some_and(|pages| {
            self.pinned.give(pages);
            self.end_registration(handle)
        })
    }

    fn end_registration(&mut self, handle: Handle) -> bool {
        let mut raw = handle.raw();
        // SAFETY: domain.1: each caller has taken the handle out of `registered`, so it ends once. domain.2: `raw` is this call's.
        unsafe { (self.ugni.GNI_MemDeregister)(self.nic, &raw mut raw) == GNI_RC_SUCCESS }
    }

    /// Ends an endpoint, if it is one.
    pub(super) fn end_endpoint(&self, endpoint: gni_ep_handle_t) {
        if !endpoint.is_null() {
            // SAFETY: domain.1: the caller has taken it out of `endpoints`, or never put it there: nobody else has it.
            unsafe {
                (self.ugni.GNI_EpUnbind)(endpoint);
                (self.ugni.GNI_EpDestroy)(endpoint);
            }
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // Whoever knows of this memory may write to it, as long as this process lives.
        let is_known = !self.addresses.is_empty();
        if is_known && !self.closed.is_set() {
            std::mem::forget(self.kept.take());
            return;
        }
        if !self.given_up {
            self.release();
        }
        if self.under_way() == 0 {
            let posts = std::ptr::slice_from_raw_parts_mut(self.posts, self.wanted.posts as usize);
            // SAFETY: domain.3: made by `Box::into_raw` in `open`, freed once, and none is with the library.
            drop(unsafe { Box::from_raw(posts) });
        }
    }
}
