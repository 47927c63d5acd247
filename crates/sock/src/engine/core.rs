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
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use parking_lot::Mutex;

use super::table::Table;
use crate::queue::Queue;
use crate::{Class, Error, Event, Options, SetId, SockId};

/// The token of the bell; no sock has generation 0.
pub(super) const BELL: u64 = 0;

/// A set whose socks are `S`.
pub(crate) struct Core<S> {
    pub(crate) id: SetId,
    pub(crate) options: Options,
    pub(crate) epoll: Epoll,
    bell: EventFd,
    pub(crate) queue: Queue<Item, Change<S>>,
    pub(crate) table: Mutex<Table<S>>,
    pub(super) timers: Mutex<BTreeSet<(Instant, SockId)>>,
    /// How many timers there are, to be asked without their lock.
    pub(super) timed: AtomicUsize,
    /// Events delivered since the system was last asked.
    pub(super) unlooked: AtomicUsize,
    /// Whether there may be more than a few changes at a time.
    pub(super) crowded: AtomicBool,
    destroyed: AtomicBool,
    pub(super) waits: AtomicU64,
    pub(super) changes: AtomicU64,
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
pub(crate) struct Change<S>(pub(super) Arc<S>, pub(super) EpollFlags);

/// Where events go.
pub(crate) struct Sink<'a, S> {
    pub(crate) core: &'a Core<S>,
    way: Way<'a>,
}

impl<S> Clone for Sink<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Sink<'_, S> {}

#[derive(Clone, Copy)]
enum Way<'a> {
    /// From a poster, who has to ring for a sleeper.
    Loud,
    /// From a thread that waits, and takes the next itself.
    Quiet,
    /// From a thread that waits, and takes the first with it; it leaves the rest to the others.
    First(&'a RefCell<Option<Event>>),
}

impl<'a, S> Sink<'a, S> {
    pub(crate) fn loud(core: &'a Core<S>) -> Self {
        Self { core, way: Way::Loud }
    }

    pub(crate) fn quiet(core: &'a Core<S>) -> Self {
        Self { core, way: Way::Quiet }
    }

    pub(crate) fn first(core: &'a Core<S>, first: &'a RefCell<Option<Event>>) -> Self {
        Self { core, way: Way::First(first) }
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

impl<S> Core<S> {
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

    pub(crate) fn find(&self, id: SockId) -> Option<Arc<S>> {
        self.table.lock().get(id)
    }
}

/// What the set tells of.
pub(crate) fn interest(room: bool) -> EpollFlags {
    let always = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    if room { always | EpollFlags::EPOLLOUT } else { always }
}
