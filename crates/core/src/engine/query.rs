//! Queries: requests whose reply completes an operation, and brings a few bytes for it.
//!
//! The operation has a number, which goes with the request and comes back with the reply; where the bytes go stays here.
//!
//! # Invariants
//! - query.1: the places for the answer stay mapped and are not used otherwise until the operation has completed: the caller of
//!   [`Engine::query`] or [`Engine::query_medium`] promises it.

use super::{Ask, Commit, Engine, Outgoing};
use crate::ops::{After, Answer, NotStarted, Places};
use crate::{Categories, Category, CoreMode, Error, OpId, Rank};
use gasworks_rdma::NicError;
use gasworks_sync::atomic::Ordering::Relaxed;
use gasworks_sync::{RawSlice, VolatileSlice};

/// Bytes of the number with which the arguments begin.
pub const NUMBER: usize = 8;

/// A word of eight bytes of a message's arguments, by its number; 0 if there are not as many.
pub fn word(args: &[u8], number: usize) -> u64 {
    args.as_chunks().0.get(number).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl<M: CoreMode> Engine<M> {
    /// Sends a Short request to one of the library's handlers, which replies such that [`answered`](Self::answered) is called here. The
    /// first [`NUMBER`] bytes of `args` become the operation's number. The operation counts as these; it must be tested until it is done,
    /// or abandoned, unless it is part of a set.
    ///
    /// # Safety
    /// query.1, for `place`.
    ///
    /// # Errors
    /// [`Error::is_busy`] if a credit or room is short, and those of [`request`](Self::request); the set is unknown.
    pub unsafe fn query(
        &self,
        to: Rank,
        (handler, args): (u8, &mut [u8]),
        place: RawSlice,
        counts: Categories,
        set: Option<OpId>,
        keep: Option<Box<M::Keep>>,
    ) -> Result<OpId, NotStarted<M>> {
        if self.is_over() {
            // Nobody answers any more.
            return Err((Error::Over, keep));
        }
        let after = After::Answer { from: to, places: Places::One(place) };
        let id = self.transfers.start(set, Some(after), counts, keep)?;
        self.transfers.queries().fetch_add(1, Relaxed);
        args[..NUMBER].copy_from_slice(&id.to_bits().to_le_bytes());
        let message = Outgoing { category: Category::Short, handler, args, payload: &[], landing: 0 };
        self.try_request(to, &message).map(|()| id).map_err(|error| {
            self.transfers.queries().fetch_sub(1, Relaxed);
            (error, self.transfers.ops().withdraw(id))
        })
    }

    /// As [`query`](Self::query) by a Medium, with a payload of `len` bytes that `fill` writes.
    ///
    /// # Safety
    /// query.1, for `places`.
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    pub unsafe fn query_medium(
        &self,
        to: Rank,
        (handler, args): (u8, &mut [u8]),
        (len, fill): (usize, &dyn Fn(VolatileSlice<'_>)),
        places: Places,
        (set, counts): (Option<OpId>, Categories),
    ) -> Result<OpId, Error> {
        if self.is_over() {
            return Err(Error::Over);
        }
        let ask = Ask { category: Category::Medium, least: len, most: len, landing: None, source: None };
        let prepared = self.try_prepare(to, &ask)?;
        fill(prepared.room());
        let after = After::Answer { from: to, places };
        let id = self.transfers.start(set, Some(after), counts, None).map_err(|(error, _)| error)?;
        self.transfers.queries().fetch_add(1, Relaxed);
        args[..NUMBER].copy_from_slice(&id.to_bits().to_le_bytes());
        prepared.commit(&Commit { handler, args, len, landing: 0, source: None }).map(|()| id).inspect_err(
            |_| {
                self.transfers.queries().fetch_sub(1, Relaxed);
                drop(self.transfers.ops().withdraw(id));
            },
        )
    }

    /// The reply of `from` to the query of this number: with what it brings, of which as much is kept as there is place for, or why it was
    /// not done. What goes to many places has to be as long as they are together.
    ///
    /// # Errors
    /// There is no such query to that rank under way, or the answer has another length.
    pub fn answered(
        &self,
        from: Rank,
        number: u64,
        answer: Result<Answer<'_>, NicError>,
    ) -> Result<(), Error> {
        if self.transfers.ops().answer(number, |after| after.answered(from, answer)) {
            self.transfers.queries().fetch_sub(1, Relaxed);
            return Ok(());
        }
        Err(Error::BadMessage { from, what: "it answers a query that nobody has made".into() })
    }
}
