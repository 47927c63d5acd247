//! The ports, observed: a transport and a barrier of shared memory that record what goes through them.

use super::layout::{Tally, What};
use super::observer::{Observer, read};
use super::recorder::{About, Open, Recorder};
use crate::wire::head_of;
use crate::{Arrived, Class, Limits, Name, Rank, Reservation, SharedBarrier, Wire, WireError};
use gasworks_os::clock;
use gasworks_sync::Mode;
use std::sync::Arc;
use std::time::Duration;

/// A transport that records what goes through it.
pub struct Observed<W: ?Sized> {
    observer: Arc<Observer>,
    inner: Box<W>,
}

impl<W: ?Sized> Observed<W> {
    /// Records what goes through `inner`, one of the transports of the observer's rank.
    pub fn new(observer: Arc<Observer>, inner: Box<W>) -> Self {
        Self { observer, inner }
    }
}

impl<M: Mode, W: Wire<M> + ?Sized> Wire<M> for Observed<W> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn reserve(&self, to: Rank, class: Class, payload: usize) -> Result<Reservation<'_>, WireError> {
        let reserved = self.inner.reserve(to, class, payload);
        if matches!(reserved, Err(WireError::Busy { .. })) {
            self.observer.recorder.tally(Tally::Busy, 1);
        }
        reserved
    }

    fn commit(&self, reservation: Reservation<'_>, head: &[u8]) -> Result<(), WireError> {
        let told = read(head, reservation.payload().len(), reservation.to);
        let start = self.observer.recorder.time();
        self.inner.commit(reservation, head)?;
        self.observer.sent(told, start);
        Ok(())
    }

    fn send(&self, to: Rank, class: Class, word: u64, args: &[u8], payload: &[u8]) -> Result<(), WireError> {
        let (head, len) = head_of(word, args);
        let told = read(&head[..len], payload.len(), to);
        let start = self.observer.recorder.time();
        let sent = self.inner.send(to, class, word, args, payload);
        match sent {
            Ok(()) => self.observer.sent(told, start),
            Err(WireError::Busy { .. }) => self.observer.recorder.tally(Tally::Busy, 1),
            Err(_) => {}
        }
        sent
    }

    fn beside(&self, reservation: &mut Reservation<'_>) -> Option<u32> {
        self.inner.beside(reservation)
    }

    fn cancel(&self, reservation: Reservation<'_>) {
        self.observer.recorder.tally(Tally::Cancelled, 1);
        self.inner.cancel(reservation);
    }

    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Arrived<'_>)) -> Result<usize, WireError> {
        let taken = self.inner.poll(burst, &mut |arrived| match read(
            arrived.head,
            arrived.payload.len(),
            arrived.from,
        ) {
            Some(told) => self.observer.handled(told, false, || sink(arrived)),
            None => sink(arrived),
        })?;
        self.observer.recorder.tally(Tally::Polls, 1);
        if taken == 0 {
            self.observer.recorder.tally(Tally::EmptyPolls, 1);
            self.observer.recorder.polled_in_vain();
        }
        Ok(taken)
    }

    fn sleep(&self, limit: Duration, stay: &dyn Fn() -> bool) -> Result<(), WireError> {
        // Whoever sleeps has time to read the clock.
        let (start, about) = (clock::monotonic(), About::plain(What::Sleep));
        self.observer.recorder.open(Open::Sleep, about, start);
        let slept = self.inner.sleep(limit, stay);
        let end = clock::monotonic();
        self.observer.recorder.close(Open::Sleep, about, start, end);
        self.observer.recorder.still_idle(end);
        self.observer.recorder.tally(Tally::Sleeps, 1);
        self.observer.recorder.tally(Tally::SleepTime, end - start);
        slept
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn burst(&self) -> u32 {
        self.inner.burst()
    }

    fn is_of_first_domain(&self) -> bool {
        self.inner.is_of_first_domain()
    }

    fn is_settled(&self) -> bool {
        self.inner.is_settled()
    }

    fn closed(&self) {
        self.inner.closed();
    }
}

/// A transport's barrier that records its phases.
pub struct ObservedBarrier<B: ?Sized> {
    recorder: Arc<Recorder>,
    inner: Box<B>,
}

impl<B: SharedBarrier + ?Sized> ObservedBarrier<B> {
    /// Records the phases of `inner`.
    pub fn new(recorder: Arc<Recorder>, inner: Box<B>) -> Self {
        Self { recorder, inner }
    }
}

impl<B: SharedBarrier + ?Sized> SharedBarrier for ObservedBarrier<B> {
    fn words(&self) -> &'static [&'static str] {
        self.inner.words()
    }

    fn arrive(&self, name: Name) {
        self.recorder.worked();
        self.recorder.tally(Tally::Barriers, 1);
        self.recorder.open(Open::Barrier, About::plain(What::Barrier), clock::monotonic());
        self.inner.arrive(name);
    }

    fn done(&self) -> Option<Name> {
        let done = self.inner.done()?;
        // Of several threads that see the end one records it.
        if let Some(start) = self.recorder.take_open(Open::Barrier) {
            self.recorder.worked();
            let end = clock::monotonic();
            self.recorder.tally(Tally::BarrierTime, end - start);
            self.recorder.event(About::plain(What::Barrier), start, end);
        }
        Some(done)
    }
}
