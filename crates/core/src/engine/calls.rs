//! Calls of transports: what every message goes by in a job that is observed, since its mapped queues are not used, and elsewhere what
//! does not go through those. Whoever observes the job is told here.

use super::Engine;
use crate::wire::{Arrived, Class, Reservation, Wire, WireError};
use crate::{CoreMode, Rank};
use std::time::Duration;

impl<M: CoreMode> Engine<M> {
    /// [`Wire::reserve`] of the transport that reaches `to`.
    pub(super) fn reserve(
        &self,
        to: Rank,
        class: Class,
        payload: usize,
    ) -> Result<Reservation<'_>, WireError> {
        let reserved = self.router.to(to).reserve(to, class, payload);
        if let (Some(observer), Err(error)) = (&self.observer, &reserved) {
            observer.refused(error);
        }
        reserved
    }

    /// [`Wire::commit`].
    pub(super) fn commit(&self, reservation: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let (to, packet) = (reservation.to, reservation.payload().len());
        let commit = || self.router.to(to).commit(reservation, head);
        match &self.observer {
            None => commit(),
            Some(observer) => observer.sends(to, head, packet, commit),
        }
    }

    /// [`Wire::cancel`].
    pub(super) fn cancel(&self, reservation: Reservation<'_>) {
        if let Some(observer) = &self.observer {
            observer.cancelled();
        }
        self.router.to(reservation.to).cancel(reservation);
    }

    /// [`Wire::send`].
    #[inline]
    pub(super) fn send_by_call(
        &self,
        to: Rank,
        class: Class,
        word: u64,
        args: &[u8],
        payload: &[u8],
    ) -> Result<(), WireError> {
        let send = || self.router.to(to).send(to, class, word, args, payload);
        match &self.observer {
            None => send(),
            Some(observer) => observer.sends_word(to, (word, args), payload.len(), send),
        }
    }

    /// [`Wire::poll`].
    #[inline]
    pub(super) fn poll_by_call(
        &self,
        wire: &M::Wire,
        burst: usize,
        sink: &mut dyn FnMut(Arrived<'_>),
    ) -> Result<usize, WireError> {
        let Some(observer) = &self.observer else { return wire.poll(burst, sink) };
        let taken = wire.poll(burst, &mut |arrived| observer.arrives(arrived, sink))?;
        observer.polled(taken);
        Ok(taken)
    }

    /// Sleeps on the transports; whether it has.
    pub(super) fn sleep(&self, limit: Duration, stay: &dyn Fn() -> bool) -> Result<bool, WireError> {
        let sleep = || self.router.sleep(limit, stay);
        match &self.observer {
            None => sleep(),
            Some(observer) => observer.sleeps(sleep),
        }
    }
}
