//! Active messages.

use super::Agent;
use crate::table::{Args, LongRequest, MediumRequest, ShortRequest};
use crate::{Error, GlobalPtr, ThreadMode};
use gasworks_core::{Category, Outgoing};

impl<M: ThreadMode> Agent<'_, M> {
    /// Sends a Short request, polling while credits are short.
    ///
    /// # Errors
    /// There is no such rank, the peer is gone, or a poll finds something wrong.
    pub fn request_short<A: Args>(&self, to: u32, handler: ShortRequest<A>, args: A) -> Result<(), Error> {
        Ok(self.engine().request(to, &short(handler, &args))?)
    }

    /// Sends a Short request, or says that it must wait ([`Error::is_busy`]).
    ///
    /// # Errors
    /// It must wait; and those of [`request_short`](Self::request_short).
    pub fn try_request_short<A: Args>(
        &self,
        to: u32,
        handler: ShortRequest<A>,
        args: A,
    ) -> Result<(), Error> {
        Ok(self.engine().try_request(to, &short(handler, &args))?)
    }

    /// Sends a Medium request, polling while credits or room are short. The payload may be used again on return.
    ///
    /// # Errors
    /// The payload is larger than [`max_medium`](Self::max_medium), there is no such rank, the peer is gone, or a poll
    /// finds something wrong.
    pub fn request_medium<A: Args>(
        &self,
        to: u32,
        handler: MediumRequest<A>,
        args: A,
        payload: &[u8],
    ) -> Result<(), Error> {
        Ok(self.engine().request(to, &medium(handler, &args, payload))?)
    }

    /// Sends a Medium request, or says that it must wait ([`Error::is_busy`]).
    ///
    /// # Errors
    /// It must wait; and those of [`request_medium`](Self::request_medium).
    pub fn try_request_medium<A: Args>(
        &self,
        to: u32,
        handler: MediumRequest<A>,
        args: A,
        payload: &[u8],
    ) -> Result<(), Error> {
        Ok(self.engine().try_request(to, &medium(handler, &args, payload))?)
    }

    /// Sends a Long request: the payload lands at `landing` in its rank's segment, then the handler runs there. The
    /// payload may be used again on return.
    ///
    /// # Errors
    /// The place is not inside the segment, there is no such rank, the peer is gone, or a poll finds something wrong.
    pub fn request_long<A: Args>(
        &self,
        handler: LongRequest<A>,
        args: A,
        payload: &[u8],
        landing: GlobalPtr<u8>,
    ) -> Result<(), Error> {
        Ok(self.engine().request(landing.rank(), &long(handler, &args, payload, landing))?)
    }

    /// Sends a Long request, or says that it must wait ([`Error::is_busy`]). To a peer that is not mapped it returns when
    /// the payload has landed.
    ///
    /// # Errors
    /// It must wait; and those of [`request_long`](Self::request_long).
    pub fn try_request_long<A: Args>(
        &self,
        handler: LongRequest<A>,
        args: A,
        payload: &[u8],
        landing: GlobalPtr<u8>,
    ) -> Result<(), Error> {
        Ok(self.engine().try_request(landing.rank(), &long(handler, &args, payload, landing))?)
    }
}

fn short<A: Args>(handler: ShortRequest<A>, args: &A) -> Outgoing<'_> {
    let args = bytemuck::bytes_of(args);
    Outgoing { category: Category::Short, handler: handler.index(), args, payload: &[], landing: 0 }
}

fn medium<'a, A: Args>(handler: MediumRequest<A>, args: &'a A, payload: &'a [u8]) -> Outgoing<'a> {
    let args = bytemuck::bytes_of(args);
    Outgoing { category: Category::Medium, handler: handler.index(), args, payload, landing: 0 }
}

fn long<'a, A: Args>(
    handler: LongRequest<A>,
    args: &'a A,
    payload: &'a [u8],
    landing: GlobalPtr<u8>,
) -> Outgoing<'a> {
    let args = bytemuck::bytes_of(args);
    Outgoing { category: Category::Long, handler: handler.index(), args, payload, landing: landing.offset() }
}
