//! What a set is inside: the system's set, the socks, the queue of events, the timers.
//!
//! Underneath is `epoll(7)`, told each descriptor once, which tells of changes (edge-triggered). What is ready is
//! remembered by the sock, so a post can transfer at once, and several threads may wait: each change is told to one of
//! them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use gasworks_os::eventfd::EventFd;
use gasworks_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use parking_lot::Mutex;

use super::sock::{Life, Shared, State};
use super::table::Table;
use super::{connect, drive};
use crate::queue::Queue;
use crate::{Class, Error, Event, Op, Options, SetId, SockId};

/// The token of the bell; no sock has generation 0.
const BELL: u64 = 0;
/// How many changes one call to the system takes at most, and how many where there were no more the time before.
const BATCH: usize = 256;
const FEW: usize = 16;
/// After so many events without a call to the system there is one: completions that follow each other without end must
/// not keep other descriptors from being looked at.
const PATIENCE: usize = 4 * BATCH;

pub(crate) struct Core {
    pub(crate) id: SetId,
    pub(crate) options: Options,
    pub(crate) epoll: Epoll,
    bell: EventFd,
    pub(crate) queue: Queue<Item, Change>,
    pub(crate) table: Mutex<Table>,
    timers: Mutex<BTreeSet<(Instant, SockId)>>,
    /// How many timers there are, to be asked without their lock.
    timed: AtomicUsize,
    /// Events delivered since the system was last asked.
    unlooked: AtomicUsize,
    /// Whether there may be more than [`FEW`] changes at a time.
    crowded: AtomicBool,
    destroyed: AtomicBool,
    waits: AtomicU64,
    changes: AtomicU64,
}

/// What a set has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls by which threads waited for changes, or looked for them.
    pub waits: u64,
    /// Changes of descriptors that these calls told of, the bell included. Idle descriptors make none.
    pub changes: u64,
}

/// What waits in the queue of a set.
pub(crate) enum Item {
    Event(Event),
    /// A poster leaves a sock's operations to a thread that waits.
    Attend(SockId),
    /// A sock comes to its end when this is delivered.
    Close(SockId),
}

/// The system told of a change that nobody has looked at yet. It may be put off.
pub(crate) struct Change(Arc<Shared>, EpollFlags);

/// Where events go.
#[derive(Clone, Copy)]
pub(crate) struct Sink<'a> {
    pub(crate) core: &'a Core,
    way: Way<'a>,
}

#[derive(Clone, Copy)]
enum Way<'a> {
    /// From a poster, who has to ring for a sleeper.
    Loud,
    /// From a thread that waits, and takes the next itself.
    Quiet,
    /// From a thread that waits, and takes the first with it; it leaves the rest to the others.
    First(&'a RefCell<Option<Event>>),
}

impl<'a> Sink<'a> {
    pub(crate) fn loud(core: &'a Core) -> Self {
        Self { core, way: Way::Loud }
    }

    pub(crate) fn quiet(core: &'a Core) -> Self {
        Self { core, way: Way::Quiet }
    }

    /// Delivers an event.
    #[inline]
    pub(crate) fn tell(self, event: Event) {
        if let Way::First(first) = self.way {
            let mut first = first.borrow_mut();
            if first.is_none() {
                *first = Some(event);
                return;
            }
        }
        self.push(Item::Event(event));
    }

    pub(crate) fn push(self, item: Item) {
        match self.way {
            Way::Quiet => self.core.queue.push_quiet(item),
            Way::Loud | Way::First(_) => self.core.push(item),
        }
    }

    /// Lets another thread take what this one has so far.
    pub(crate) fn share(self) {
        if let Way::First(first) = self.way
            && let Some(event) = first.borrow_mut().take()
        {
            self.core.push(Item::Event(event));
        }
        if !self.core.queue.is_empty() {
            self.core.rouse();
        }
    }
}

impl Core {
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        const OPERATION: &str = "create a set";
        let fail = |e: Errno| Error::new(Class::of_setup(e), OPERATION).errno(e);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(fail)?;
        let bell = EventFd::new().map_err(|e| Error::new(Class::NoMem, OPERATION).cause(e.to_string()))?;
        // Edge-triggered: each ring is told once, and nobody needs to reset the counter.
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, BELL);
        epoll.add(&bell, event).map_err(fail)?;
        Ok(Self {
            id: SetId(epoll.0.as_raw_fd()),
            options,
            epoll,
            bell,
            queue: Queue::default(),
            table: Mutex::default(),
            timers: Mutex::default(),
            timed: AtomicUsize::new(0),
            unlooked: AtomicUsize::new(0),
            crowded: AtomicBool::new(false),
            destroyed: AtomicBool::new(false),
            waits: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        })
    }

    pub(crate) fn destroy(&self) {
        self.destroyed.store(true, Ordering::Relaxed);
        if self.queue.close() {
            self.ring();
        }
    }

    /// Wakes a thread that sleeps, if one does.
    pub(crate) fn rouse(&self) {
        if self.queue.nudge() {
            self.ring();
        }
    }

    /// A thread leaves with an event: another has to look after the timers.
    #[inline]
    pub(crate) fn hand_over(&self) {
        if self.timed.load(Ordering::Relaxed) > 0 {
            self.rouse();
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { waits: self.waits.load(Ordering::Relaxed), changes: self.changes.load(Ordering::Relaxed) }
    }

    /// Whether the system has not been asked for long. Threads that count at the same time may count as one: it is no
    /// matter of a few.
    pub(crate) fn overdue(&self) -> bool {
        let unlooked = self.unlooked.load(Ordering::Relaxed);
        self.unlooked.store(unlooked + 1, Ordering::Relaxed);
        unlooked >= PATIENCE
    }

    pub(crate) fn destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Relaxed)
    }

    pub(crate) fn push(&self, item: Item) {
        if self.queue.push(item) {
            self.ring();
        }
    }

    pub(crate) fn ring(&self) {
        // The counter of a bell cannot overflow, nor its descriptor go away before the set: there is no other error.
        let _ = self.bell.ring();
    }

    pub(crate) fn error(&self, class: Class, operation: &'static str) -> Error {
        Error::new(class, operation).set(self.id)
    }

    /// Takes a descriptor out, before it is closed: others may hold the same open file.
    pub(crate) fn forget(&self, fd: BorrowedFd<'_>, pollable: bool) {
        if pollable {
            // It is there; should the system disagree, there is nothing left to do.
            let _ = self.epoll.delete(fd);
        }
    }

    pub(crate) fn watch_connecting(&self, id: SockId, fd: BorrowedFd<'_>) -> nix::Result<()> {
        self.epoll.add(fd, EpollEvent::new(interest(true), id.0))
    }

    /// Has the set tell when there is room for writing, now included.
    pub(crate) fn tell_room(&self, shared: &Shared, state: &mut State) {
        if !state.tells_room {
            state.tells_room = self.register(shared, state, true);
        }
    }

    /// Not any more. TCP sockets only tell when a write found no room, so there the interest stays.
    pub(crate) fn ignore_room(&self, shared: &Shared, state: &mut State) {
        if state.tells_room && state.native.as_ref().is_some_and(|native| !native.tcp) {
            state.tells_room = !self.register(shared, state, false);
        }
    }

    fn register(&self, shared: &Shared, state: &State, room: bool) -> bool {
        let Some(native) = state.native.as_ref().filter(|native| native.pollable) else { return false };
        self.epoll.modify(native.as_fd(), &mut EpollEvent::new(interest(room), shared.id.0)).is_ok()
    }

    pub(crate) fn start_timer(&self, at: Instant, id: SockId) {
        let first = {
            let mut timers = self.timers.lock();
            timers.insert((at, id));
            self.timed.store(timers.len(), Ordering::Relaxed);
            timers.first() == Some(&(at, id))
        };
        // Who sleeps has planned for longer.
        if first {
            self.rouse();
        }
    }

    pub(crate) fn stop_timer(&self, at: Instant, id: SockId) {
        let mut timers = self.timers.lock();
        timers.remove(&(at, id));
        self.timed.store(timers.len(), Ordering::Relaxed);
    }

    /// Asked by a thread that is counted as asleep: who starts a timer later rouses it.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        if self.timed.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.timers.lock().first().map(|(at, _)| *at)
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

    pub(crate) fn find(&self, id: SockId) -> Option<Arc<Shared>> {
        self.table.lock().get(id)
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
    pub(crate) fn act_on(&self, Change(shared, flags): Change) -> Option<Event> {
        let first = RefCell::new(None);
        drive::on_change(&shared, self, flags, Sink { core: self, way: Way::First(&first) });
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

/// What the set tells of.
pub(crate) fn interest(room: bool) -> EpollFlags {
    let always = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    if room { always | EpollFlags::EPOLLOUT } else { always }
}

/// How long a call to the system may wait.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    Not,
    Until(Instant),
    Ever,
}

impl Wait {
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
