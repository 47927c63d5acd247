//! What threads that wait do: they ask the system for changes, act on them, and take what comes of it.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use gasworks_sync::atomic::Ordering;
use nix::errno::Errno;
use nix::sys::epoll::{EpollEvent, EpollTimeout};

use super::core::{BELL, Change, Item};
use super::state::{Core, Life, Shared, Sink};
use super::{connect, drive};
use crate::{Class, Error, Event, Op, SockId};

/// How many changes one call to the system takes at most, and how many where there were no more the time before.
const BATCH: usize = 256;
const FEW: usize = 16;
/// After so many events without a call to the system there is one: completions that follow each other without end must
/// not keep other descriptors from being looked at.
const PATIENCE: usize = 4 * BATCH;

/// How long a call to the system may wait.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    Not,
    Until(Instant),
    Ever,
}

impl Wait {
    pub(crate) fn of(timeout: Option<Duration>) -> Self {
        match timeout {
            None => Wait::Ever,
            Some(Duration::ZERO) => Wait::Not,
            // A time beyond the clock's end is for ever.
            Some(timeout) => Instant::now().checked_add(timeout).map_or(Wait::Ever, Wait::Until),
        }
    }

    fn timeout(self) -> EpollTimeout {
        match self {
            Wait::Not => EpollTimeout::ZERO,
            Wait::Ever => EpollTimeout::NONE,
            Wait::Until(at) => {
                // Rounded up: a wait that is a little too short would be repeated without rest.
                let left = at.saturating_duration_since(Instant::now());
                let ms = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
                EpollTimeout::try_from(ms).unwrap_or(EpollTimeout::MAX)
            }
        }
    }

    pub(crate) fn or_until(self, other: Option<Instant>) -> Self {
        match (self, other) {
            (Wait::Until(a), Some(b)) if a > b => Wait::Until(b),
            (Wait::Ever, Some(b)) => Wait::Until(b),
            _ => self,
        }
    }

    pub(crate) fn over(self) -> bool {
        match self {
            Wait::Not => true,
            Wait::Until(at) => Instant::now() >= at,
            Wait::Ever => false,
        }
    }
}

impl Core {
    /// Whether the system has not been asked for long. Threads that count at the same time may count as one: it is no
    /// matter of a few.
    pub(crate) fn overdue(&self) -> bool {
        let unlooked = self.unlooked.load(Ordering::Relaxed);
        self.unlooked.store(unlooked + 1, Ordering::Relaxed);
        unlooked >= PATIENCE
    }

    fn run_timers(&self) {
        let now = Instant::now();
        loop {
            let due = self.timers.lock().first().copied().filter(|(at, _)| *at <= now);
            let Some((at, id)) = due else { return };
            self.stop_timer(at, id);
            if let Some(shared) = self.find(id) {
                connect::advance(&shared, self, &mut shared.state.lock(), Sink::loud(self));
            }
        }
    }

    /// Asks the system for changes, waiting until `until`, and acts on them. `asleep`: this thread is counted so. If there
    /// is but one change, what comes of it goes with this thread.
    pub(crate) fn look(&self, until: Wait, asleep: bool) -> Result<Option<Event>, Error> {
        self.unlooked.store(0, Ordering::Relaxed);
        // The system wants memory that is written already: no more of it than there was use for.
        let (mut few, mut many);
        let batch: &mut [EpollEvent] = match self.crowded.load(Ordering::Relaxed) {
            false => {
                few = [EpollEvent::empty(); FEW];
                &mut few
            }
            true => {
                many = [EpollEvent::empty(); BATCH];
                &mut many
            }
        };
        let n = match self.epoll.wait(batch, until.timeout()) {
            Ok(n) => n,
            Err(Errno::EINTR) => 0,
            Err(e) => {
                if asleep {
                    self.queue.woke(false);
                }
                return Err(self.error(Class::Fail, "wait").errno(e));
            }
        };
        let (full, changes) = (n == batch.len(), &batch[..n]);
        if full != self.crowded.load(Ordering::Relaxed) {
            self.crowded.store(full || n > FEW, Ordering::Relaxed);
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.changes.fetch_add(n as u64, Ordering::Relaxed);
        let bell = changes.iter().any(|change| change.data() == BELL);
        match (asleep, bell) {
            (true, _) => self.queue.woke(bell),
            // It was meant for a thread that sleeps.
            (false, true) if self.queue.pass_on() => self.ring(),
            (false, _) => {}
        }
        let event = match changes {
            [change] if !bell => self
                .find(SockId(change.data()))
                .and_then(|shared| self.act_on(Change(shared, change.events()))),
            // One after the other, each with what its events lead to, while its memory is at hand.
            _ => {
                let table = self.table.lock();
                self.queue.put_off(changes.iter().filter_map(|change| {
                    // There is none with the number of the bell.
                    let shared = table.get(SockId(change.data()))?;
                    Some(Change(shared, change.events()))
                }));
                None
            }
        };
        if self.timed.load(Ordering::Relaxed) > 0 {
            self.run_timers();
        }
        Ok(event)
    }

    /// Acts on a change; the first event that comes of it.
    pub(crate) fn act_on(&self, Change(shared, flags): Change<Shared>) -> Option<Event> {
        let first = RefCell::new(None);
        drive::on_change(&shared, self, flags, Sink::first(self, &first));
        first.into_inner()
    }

    pub(crate) fn deliver(&self, item: Item) -> Option<Event> {
        match item {
            Item::Event(event) => Some(event),
            Item::Attend(id) => {
                let shared = self.find(id)?;
                drive::attend(&shared, self);
                None
            }
            Item::Close(id) => {
                let shared = self.find(id)?;
                let state = &mut *shared.state.lock();
                let mut turned = 0;
                if let (Life::Closing(Some(listening)), Some(native)) =
                    (std::mem::replace(&mut state.life, Life::Closed), &state.native)
                {
                    turned = listening.turn_away(native);
                }
                shared.release(state, self);
                self.table.lock().remove(shared.id);
                Some(shared.event(Op::Close, turned, None))
            }
        }
    }
}
