//! Active messages.

use super::{Agent, named};
use crate::event::Event;
use crate::index::{Args, LongRequest, MediumRequest, ShortRequest};
use crate::{Error, GlobalPtr, ThreadMode};
use bytemuck::Pod;
use gasworks_core::{Category, Engine, Outgoing, View};
use gasworks_extended::Implicit;
use gasworks_extended::event::{self, Kept};
use gasworks_extended::long::{request_nb, request_nbi};

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// Sends a Short request, polling while credits are short.
    ///
    /// # Errors
    /// There is no such rank, the peer is gone, or a poll finds something wrong.
    pub fn request_short<A: Args>(&self, to: u32, handler: ShortRequest<A>, args: A) -> Result<(), Error> {
        Ok(self.engine().request_in(&self.view, to, &short(handler, &args))?)
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
        Ok(self.engine().try_request_in(&self.view, to, &short(handler, &args))?)
    }

    /// Sends a Medium request, polling while credits or room are short. The payload may be used again on return.
    ///
    /// # Errors
    /// The payload is larger than [`max_medium_to`](Self::max_medium_to) that rank, there is no such rank, the peer is gone, or a poll
    /// finds something wrong.
    pub fn request_medium<A: Args>(
        &self,
        to: u32,
        handler: MediumRequest<A>,
        args: A,
        payload: &[u8],
    ) -> Result<(), Error> {
        Ok(self.engine().request_in(&self.view, to, &medium(handler, &args, payload))?)
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
        Ok(self.engine().try_request_in(&self.view, to, &medium(handler, &args, payload))?)
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
        let message = long(handler, &args, payload, landing.known(self.view)?);
        Ok(self.engine().request_in(&self.view, landing.rank(), &message)?)
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
        let message = long(handler, &args, payload, landing.known(self.view)?);
        Ok(self.engine().try_request_in(&self.view, landing.rank(), &message)?)
    }

    /// Sends a Long request with a payload that it keeps, and gives it back when it may be used again, which may be long
    /// before the request is handled.
    ///
    /// # Errors
    /// Those of [`request_long`](Self::request_long); the payload is dropped then.
    pub fn request_long_owned<A: Args, T: Pod + Send + Sync>(
        &self,
        handler: LongRequest<A>,
        args: A,
        payload: Vec<T>,
        landing: GlobalPtr<T>,
    ) -> Result<Event<'job, M, Vec<T>>, Error> {
        let started = send_owned_long((self.engine(), self.view), None, handler, args, payload, landing)?;
        Ok(Event::new(self.engine(), started, |kept| kept.and_then(M::unkeep)))
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

/// Sends a Long request with a payload that the operation keeps, by itself or in a set, which then has no event of its own.
pub(crate) fn send_owned_long<M: ThreadMode, A: Args, T: Pod + Send + Sync>(
    (engine, view): (&Engine<M>, View<'_>),
    set: Option<&Implicit>,
    handler: LongRequest<A>,
    args: A,
    payload: Vec<T>,
    landing: GlobalPtr<T>,
) -> Result<(event::Event, Kept<M>), Error> {
    let (to, offset) = landing.place(view)?;
    // The vector's heap block does not move when the vector is put where the operation keeps it.
    let (start, len) = (payload.as_ptr().cast::<u8>(), size_of_val(&payload[..]));
    // SAFETY: long.1 of `gasworks_extended`: `start` and `len` are those of the vector, plain data on the heap, which stays there when the
    // operation takes the vector to keep.
    let started = unsafe {
        let bytes = std::slice::from_raw_parts(start, len);
        let message = long(handler, &args, bytes, GlobalPtr::new(to, offset));
        let keep = Some(M::keep(payload));
        match set {
            None => request_nb(engine, to, &message, keep),
            Some(set) => request_nbi(engine, set, to, &message, keep).map(|()| (event::Event::DONE, None)),
        }
    };
    started.map_err(named(view, landing.rank()))
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
