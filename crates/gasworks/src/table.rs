//! The handler table of a program: typed closures, registered before the job opens.

use crate::handler::{Landed, Outcome, Payload, Reply, Request};
use crate::index::{Args, LongReply, LongRequest, MediumReply, MediumRequest, ShortReply, ShortRequest};
use crate::{Error, GlobalPtr, ThreadMode};
use gasworks_core::{Also, Category, CoreMode, Entry, Handlers, Incoming, Received, Signature};
use gasworks_sync::{Par, ParSync, Seq, VolatileSlice};
use std::marker::PhantomData;

/// A handler's closure: `'static` in [`Seq`]; in [`Par`] and [`ParSync`], where any thread may run it, `Send + Sync` as
/// well.
pub trait Handler<M: CoreMode>: Sized + 'static {
    #[doc(hidden)]
    fn boxed(self, adapt: Adapt<Self, M>) -> Box<M::Function>;
}

type Adapt<F, M> = for<'a> fn(&F, &'a Incoming<'a, M>) -> Result<(), Box<gasworks_core::Error>>;

impl<F: 'static> Handler<Seq> for F {
    fn boxed(self, adapt: Adapt<Self, Seq>) -> Box<<Seq as CoreMode>::Function> {
        Box::new(move |incoming: &Incoming<'_, Seq>| adapt(&self, incoming))
    }
}

impl<F: Send + Sync + 'static> Handler<ParSync> for F {
    fn boxed(self, adapt: Adapt<Self, ParSync>) -> Box<<ParSync as CoreMode>::Function> {
        Box::new(move |incoming: &Incoming<'_, ParSync>| adapt(&self, incoming))
    }
}

impl<F: Send + Sync + 'static> Handler<Par> for F {
    fn boxed(self, adapt: Adapt<Self, Par>) -> Box<<Par as CoreMode>::Function> {
        Box::new(move |incoming: &Incoming<'_, Par>| adapt(&self, incoming))
    }
}

/// A handler table. What is registered before the job opens must be the same on all ranks, in the same order: the job
/// compares. More may be registered while the job is open ([`Job::table`](crate::Job::table)): then a request may arrive
/// at once, and it is for the ranks to see that everybody has registered before anybody sends.
pub struct Table<M: ThreadMode> {
    pub(crate) handlers: Handlers<M>,
    fixed: Option<u8>,
}

impl<M: ThreadMode> Default for Table<M> {
    fn default() -> Self {
        Self { handlers: Handlers::new(), fixed: None }
    }
}

impl<M: ThreadMode> Table<M> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn of(handlers: Handlers<M>) -> Self {
        Self { handlers, fixed: None }
    }

    /// Gives the next handler this index, 128 to 255, instead of the highest free one.
    pub fn at(&mut self, index: u8) -> &mut Self {
        self.fixed = Some(index);
        self
    }

    /// Registers a handler of Short requests.
    ///
    /// # Errors
    /// The index is taken, or the table is full.
    pub fn short_request<A: Args, R: Outcome, F>(
        &mut self,
        name: &str,
        f: F,
    ) -> Result<ShortRequest<A>, Error>
    where
        F: for<'a> Fn(Request<'a, M>, A) -> R + Handler<M>,
    {
        let run: Adapt<F, M> = |f, message| {
            let args = args_of(message);
            settle(&message.source(), f(Request(message), args))
        };
        self.register::<A>(name, Category::Short, false, f.boxed(run)).map(ShortRequest::new)
    }

    /// Registers a handler of Medium requests.
    ///
    /// # Errors
    /// The index is taken, or the table is full.
    pub fn medium_request<A: Args, R: Outcome, F>(
        &mut self,
        name: &str,
        f: F,
    ) -> Result<MediumRequest<A>, Error>
    where
        F: for<'a> Fn(Request<'a, M>, A, Payload<'a>) -> R + Handler<M>,
    {
        let run: Adapt<F, M> = |f, message| {
            let (args, payload) = (args_of(message), payload_of(message));
            settle(&message.source(), f(Request(message), args, payload))
        };
        self.register::<A>(name, Category::Medium, false, f.boxed(run)).map(MediumRequest::new)
    }

    /// Registers a handler of Long requests.
    ///
    /// # Errors
    /// The index is taken, or the table is full.
    pub fn long_request<A: Args, R: Outcome, F>(&mut self, name: &str, f: F) -> Result<LongRequest<A>, Error>
    where
        F: for<'a> Fn(Request<'a, M>, A, Landed) -> R + Handler<M>,
    {
        let run: Adapt<F, M> = |f, message| {
            let (args, landed) = (args_of(message), landed_of(message));
            settle(&message.source(), f(Request(message), args, landed))
        };
        self.register::<A>(name, Category::Long, false, f.boxed(run)).map(LongRequest::new)
    }

    /// Registers a handler of Short replies.
    ///
    /// # Errors
    /// The index is taken, or the table is full.
    pub fn short_reply<A: Args, R: Outcome, F>(&mut self, name: &str, f: F) -> Result<ShortReply<A>, Error>
    where
        F: for<'a> Fn(Reply<'a>, A) -> R + Handler<M>,
    {
        let run: Adapt<F, M> = |f, message| settle(&message.source(), f(reply_of(message), args_of(message)));
        self.register::<A>(name, Category::Short, true, f.boxed(run)).map(ShortReply::new)
    }

    /// Registers a handler of Medium replies.
    ///
    /// # Errors
    /// The index is taken, or the table is full.
    pub fn medium_reply<A: Args, R: Outcome, F>(&mut self, name: &str, f: F) -> Result<MediumReply<A>, Error>
    where
        F: for<'a> Fn(Reply<'a>, A, Payload<'a>) -> R + Handler<M>,
    {
        let run: Adapt<F, M> = |f, message| {
            settle(&message.source(), f(reply_of(message), args_of(message), payload_of(message)))
        };
        self.register::<A>(name, Category::Medium, true, f.boxed(run)).map(MediumReply::new)
    }

    /// Registers a handler of Long replies.
    ///
    /// # Errors
    /// The index is taken, or the table is full.
    pub fn long_reply<A: Args, R: Outcome, F>(&mut self, name: &str, f: F) -> Result<LongReply<A>, Error>
    where
        F: for<'a> Fn(Reply<'a>, A, Landed) -> R + Handler<M>,
    {
        let run: Adapt<F, M> = |f, message| {
            settle(&message.source(), f(reply_of(message), args_of(message), landed_of(message)))
        };
        self.register::<A>(name, Category::Long, true, f.boxed(run)).map(LongReply::new)
    }

    fn register<A: Args>(
        &mut self,
        name: &str,
        category: Category,
        reply: bool,
        function: Box<M::Function>,
    ) -> Result<u8, Error> {
        const {
            assert!(
                size_of::<A>() <= 64,
                "the arguments of an active message are at most 16 words of 32 bits"
            );
            assert!(
                size_of::<A>().is_multiple_of(4),
                "the arguments of an active message are whole words of 32 bits"
            );
        };
        let signature =
            Signature { name: name.into(), category, reply, nargs: size_of::<A>() / 4, also: Also::empty() };
        Ok(self.handlers.register(self.fixed.take(), Entry { signature, function })?)
    }
}

/// The engine has checked that the number of arguments is the signature's.
fn args_of<A: Args, M: ThreadMode>(message: &Incoming<'_, M>) -> A {
    bytemuck::pod_read_unaligned(message.args())
}

fn reply_of<'a, M: ThreadMode>(message: &Incoming<'a, M>) -> Reply<'a> {
    Reply { source: message.source(), rank: message.rank(), of: PhantomData }
}

fn payload_of<'a, M: ThreadMode>(message: &Incoming<'a, M>) -> Payload<'a> {
    let bytes = match message.received() {
        Received::Payload(bytes) => bytes,
        _ => VolatileSlice::EMPTY,
    };
    Payload { bytes }
}

fn landed_of<M: ThreadMode>(message: &Incoming<'_, M>) -> Landed {
    let (offset, len) = match message.received() {
        Received::Landed { offset, len } => (offset, len),
        _ => (0, 0),
    };
    Landed { at: GlobalPtr::new(message.rank(), offset), len }
}

fn settle(from: &u32, outcome: impl Outcome) -> Result<(), Box<gasworks_core::Error>> {
    outcome.into_result().map_err(|error| {
        Box::new(match error {
            Error::Core(error) => error,
            error => gasworks_core::Error::Handler { from: *from, what: error.to_string() },
        })
    })
}
